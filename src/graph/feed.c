#include "graph/feed.h"

#include "base/err.h"
#include "graph/plan.h"

#include <stdlib.h>
#include <string.h>

struct feed {
    feed_input *input;
    int inputs;
    size_t bytes; // of a micro-batch
    int lanes, lane;
    const device *d;
    queue *q;
    space *in;
    unsigned char *memory;
};

feed *feed_new(bool host_memory, const feed_input *input, int inputs, size_t bytes) {
    feed *f = calloc(1, sizeof *f);
    CHECK(inputs > 0, "a feed of no inputs");
    NEED(f, "out of memory for a feed");
    f->input = malloc((size_t)inputs * sizeof *f->input);
    NEED(f->input, "out of memory for a feed of %d inputs", inputs);
    memcpy(f->input, input, (size_t)inputs * sizeof *f->input);
    f->inputs = inputs;
    f->bytes = bytes;
    f->lanes = host_memory ? 1 : LANES;
    return f;
}

void feed_free(feed *f) {
    if (!f) return;
    if (f->memory) space_give(f->in, f->memory);
    free(f->input);
    free(f);
}

size_t feed_bytes(const feed *f) {
    return f ? (size_t)f->lanes * plan_aligned(f->bytes) : 0;
}

bool feed_place(feed *f, queue *q, space *in, err *e) {
    f->d = space_device(in);
    f->q = q;
    f->in = in;
    f->memory = space_take(in, "a feed", feed_bytes(f), e);
    return f->memory != NULL;
}

size_t feed_batch(const feed *f) {
    return f->bytes;
}

int feed_lanes(const feed *f) {
    return f ? f->lanes : 1;
}

int feed_lane(const feed *f) {
    return f ? f->lane : 0;
}

static const feed_input *find(const feed *f, const graph *g, tensor t) {
    const tensor_info *info = graph_info(g, t);
    for (int i = 0; f && info->role == ROLE_STATE && i < f->inputs; i++)
        if (strcmp(f->input[i].state, info->name) == 0) return &f->input[i];
    return NULL;
}

bool feed_has(const feed *f, const graph *g, tensor t) {
    return find(f, g, t) != NULL;
}

void *feed_address(const feed *f, const graph *g, tensor t, int lane) {
    const feed_input *in = find(f, g, t);
    if (!in) return NULL;
    CHECK(in->at % PLAN_ALIGN == 0 && in->at < f->bytes, "%s cannot be fed from byte %zu of %zu", in->state, in->at,
        f->bytes);
    return f->memory + (size_t)lane * plan_aligned(f->bytes) + in->at;
}

bool feed_next(feed *f, const void *from, err *e) {
    f->lane = (f->lane + 1) % f->lanes;
    return f->d->feed(f->q, f->lane, f->memory + (size_t)f->lane * plan_aligned(f->bytes), from, f->bytes, e);
}

bool feed_done(feed *f, bool but_last, err *e) {
    for (int lane = 0; lane < f->lanes; lane++) {
        if (but_last && lane == f->lane) continue;
        if (!f->d->fed(f->q, lane, e)) return false;
    }
    return true;
}
