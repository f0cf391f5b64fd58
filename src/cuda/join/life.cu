#include "cuda/join/life.cuh"

#include "cuda/device/table.cuh"
#include "cuda/join/range.cuh"

static range range_of(const operand *o) {
    return range{(const char *)o->data, (const char *)o->data + (size_t)operand_count(o) * dtype_bytes(o->type), false};
}

static bool meets(const range &r, const void *data, size_t bytes) {
    return data && r.begin < (const char *)data + bytes && (const char *)data < r.end;
}

static bool meets_operand(const range &r, const operand *o) {
    return o->data && meets(r, o->data, (size_t)operand_count(o) * dtype_bytes(o->type));
}

static bool meets_any(const range &r, const operand *o, int count) {
    for (int i = 0; i < count; i++)
        if (meets_operand(r, &o[i])) return true;
    return false;
}

static bool reads(const call *c, const range &r) {
    const kernel *k = cuda_table[c->op];
    if (meets_any(r, c->in, c->inputs)) return true;
    if (!c->backward) return false;
    for (int i = 0; i < c->inputs; i++)
        if (c->din[i].add && meets_operand(r, &c->din[i])) return true;
    return meets_any(r, c->out, c->outputs) || meets_any(r, c->dout, c->outputs) ||
           (k->reserve && meets(r, c->reserve, k->reserve(c)));
}

static bool writes(const call *c, const range &r) {
    const kernel *k = cuda_table[c->op];
    if (k->scratch && meets(r, c->scratch, k->scratch(c))) return true;
    if (c->backward) return meets_any(r, c->din, c->inputs);
    return meets_any(r, c->out, c->outputs) || (k->reserve && meets(r, c->reserve, k->reserve(c)));
}

bool life_meet(const operand *a, const operand *b) {
    return a->data && meets_operand(range_of(a), b);
}

bool life_meet_bytes(const operand *a, const void *at, size_t bytes) {
    return a->data && meets(range_of(a), at, bytes);
}

bool life_over(const operand *o, bool gradient, const call *calls, int count) {
    range r = range_of(o);
    for (int i = 0; i < count; i++) {
        if (reads(&calls[i], r)) return false;
        if (writes(&calls[i], r)) return true;
    }
    return gradient;
}
