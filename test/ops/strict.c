#include "ops/strict.h"

#include "ops/ops.h"

#include <stdlib.h>
#include <string.h>

enum { OPERANDS_MOST = 64 };

// The recording of a strict device: that of all calls, or one for each of them.
struct recording {
    const device *inner;
    call *calls;
    int count, parts; // parts is 1 or count
    recording **part;
};

static const device *inner;
static device strict;

static void hide_step(call *c) {
    if (!(op_traits((op)c->op) & (READS_STEP | WRITES_STEP))) c->step = (step){0};
}

static void forget(queue *q, recording *r) {
    if (!r) return;
    for (int i = 0; i < r->parts; i++)
        if (r->part[i]) r->inner->forget(q, r->part[i]);
    free(r->part);
    free(r);
}

static recording *record(queue *q, room *in, call *calls, int count, err *e) {
    recording *r = calloc(1, sizeof *r);
    int parts = inner->host_memory && count ? count : 1;
    CHECK(r, "out of memory for a recording");
    *r = (recording){inner, calls, count, parts, calloc((size_t)parts, sizeof(recording *))};
    CHECK(r->part, "out of memory for a recording");
    for (int i = 0; i < count; i++) hide_step(&calls[i]);
    for (int i = 0; i < parts; i++) {
        r->part[i] = parts == 1 ? inner->record(q, in, calls, count, e) : inner->record(q, in, calls + i, 1, e);
        if (r->part[i]) continue;
        forget(q, r);
        return NULL;
    }
    return r;
}

// Operands that a call may only read, and copies of them.
typedef struct {
    const operand *of[OPERANDS_MOST];
    void *copy[OPERANDS_MOST];
    int count;
} readings;

static size_t bytes_of(const operand *o) {
    return (size_t)operand_count(o) * dtype_bytes(o->type);
}

static bool overlap(const operand *o, const void *to, size_t bytes) {
    const char *a = o->data, *b = to;
    return b && a < b + bytes && b < a + bytes_of(o);
}

// A call may write there: in backward a plan may give gradients the place of what is not needed any more.
static bool is_written(queue *q, const recording *r, const call *c, const operand *o) {
    const operand *to = c->backward ? c->din : c->out;
    size_t (*scratch)(const call *) = r->inner->kernels(q)[c->op]->scratch;
    for (int i = 0; i < (c->backward ? c->inputs : c->outputs); i++)
        if (overlap(o, to[i].data, bytes_of(&to[i]))) return true;
    return overlap(o, c->scratch, c->scratch && scratch ? scratch(c) : 0);
}

static void note(readings *n, queue *q, const recording *r, const call *c, const operand *list, int count) {
    for (int i = 0; i < count; i++) {
        const operand *o = &list[i];
        if (!o->data || is_written(q, r, c, o)) continue;
        CHECK(n->count < OPERANDS_MOST, "%s has too many operands", c->name);
        n->of[n->count] = o;
        n->copy[n->count] = malloc(bytes_of(o) + 1);
        CHECK(n->copy[n->count], "out of memory for a copy");
        memcpy(n->copy[n->count++], o->data, bytes_of(o));
    }
}

static bool play_one(queue *q, const recording *r, int i, err *e) {
    const call *c = &r->calls[i];
    readings n = {0};
    if (!(op_traits((op)c->op) & WRITES_WEIGHTS)) note(&n, q, r, c, c->in, c->inputs);
    if (c->backward) {
        note(&n, q, r, c, c->out, c->outputs);
        note(&n, q, r, c, c->dout, c->outputs);
    }
    bool ok = r->inner->play(q, r->part[i], e);
    for (int k = 0; k < n.count; k++) {
        if (ok && memcmp(n.copy[k], n.of[k]->data, bytes_of(n.of[k])) != 0)
            ok = err_run(e, "%s changes an operand that it may only read; see the traits in ops.def", c->name);
        free(n.copy[k]);
    }
    return ok;
}

static bool play(queue *q, recording *r, err *e) {
    if (!r->inner->host_memory) return r->inner->play(q, r->part[0], e);
    for (int i = 0; i < r->count; i++)
        if (!play_one(q, r, i, e)) return false;
    return true;
}

const device *strict_device(const device *of) {
    inner = of;
    strict = *of;
    strict.record = record;
    strict.forget = forget;
    strict.play = play;
    return &strict;
}
