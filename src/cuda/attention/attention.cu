#include "cuda/attention/attention.cuh"

#include "cuda/product/mma.cuh"

extern "C" {
#include "ops/random.h"
}

// A block takes heads until their rows are whole lines of memory, as long as several blocks share a multiprocessor.
enum { WIDTH_MOST = 128, LINE = 128, ROOM_SHARED = 72 * 1024, SHARED_LEAST = 48 * 1024, COLUMNS_MOST = 1024 };

static const attention_settings *settings_of(const call *c) {
    return (const attention_settings *)c->attr;
}

static int64_t items_of(const call *c) {
    return c->in[0].shape.dim[0] * settings_of(c)->heads * c->in[0].shape.dim[1];
}

static int words_of(int64_t T) {
    return (int)((T + 63) / 64 * 2);
}

static attention_args args_of(const call *c) {
    const attention_settings *s = settings_of(c);
    shape x = c->in[0].shape;
    attention_args a = {};
    a.qkv = view_of(&c->in[0]);
    a.mask = view_of(&c->in[1]);
    a.at = c->step;
    a.T = (int)x.dim[1];
    a.D = (int)(x.dim[2] / 3);
    a.heads = s->heads;
    a.d = a.D / s->heads;
    a.rows = (a.T + 15) / 16 * 16;
    a.slot = (a.d + 15) / 16 * 16;
    a.words = words_of(a.T);
    a.causal = s->causal;
    a.drops = c->training && s->dropout > 0;
    a.kept = (float *)c->reserve;
    a.bits = a.kept && a.drops ? (uint32_t *)(a.kept + (items_of(c) + 1) / 2 * 2) : NULL;
    a.node = c->node;
    a.least = random_threshold(s->dropout);
    a.keep = (float)random_scale(s->dropout);
    a.scale = (float)(1 / sqrt((double)a.d));
    return a;
}

// Bytes of shared memory: see `heads` in cuda/attention/attention_kernel.cuh.
static size_t shared_of(const attention_args *a, size_t bytes, bool backward) {
    size_t rows = (size_t)a->group * (size_t)a->rows, words = (size_t)a->words;
    size_t tiles = (backward ? 4 : 3) * (size_t)a->rows * (size_t)a->stride * bytes + words * 4;
    if (backward) return tiles + 2 * rows * sizeof(float) + (a->drops ? rows * words * 4 : 0);
    if (!a->drops) return tiles;
    return tiles + ((size_t)a->group * (size_t)a->T * (size_t)a->T / 32 + words + 3) * 4; // read past the end by a row
}

static void set_group(attention_args *a, int group, size_t bytes) {
    a->group = group;
    a->stride = group * a->slot + 16 / (int)bytes;
}

static void choose_group(attention_args *a, size_t bytes) {
    int best = 1;
    for (int g = 1; g <= a->heads; g++) {
        set_group(a, g, bytes);
        if (a->heads % g || g * a->slot > COLUMNS_MOST || shared_of(a, bytes, true) > ROOM_SHARED) continue;
        best = g;
        if ((size_t)g * (size_t)a->d * bytes >= LINE) break;
    }
    set_group(a, best, bytes);
}

// Sequences that have kernels of their own, backward for 2-byte elements only: a warp has a head there.
static void choose_whole(const call *c, attention_plan *p, size_t bytes) {
    const attention_args *a = &p->a;
    p->whole = !a->mask.data && !a->causal && a->slot == 16 && a->T > 8 && a->T <= 64 && (!c->backward || bytes == 2);
    if (!p->whole) return;
    int least = 32 * a->group;
    p->threads = c->backward && least < ATTENTION_WHOLE_THREADS ? least : ATTENTION_WHOLE_THREADS;
}

// By sizes, types and the card's shared memory: the same answer forward and backward. Small multiprocessors may have
// less shared memory than backward of one head takes.
static bool plan(const call *c, attention_plan *p) {
    size_t bytes = dtype_bytes(c->out[0].type);
    attention_args *a = &p->a;
    *p = attention_plan{};
    if (c->in[0].shape.dim[1] > 4096 || c->in[0].shape.dim[1] * c->in[0].shape.dim[2] > INT32_MAX) return false;
    *a = args_of(c);
    if (a->d % 8 || a->d > WIDTH_MOST) return false;
    choose_group(a, bytes);
    size_t most = shared_of(a, bytes, true);
    if (most > c->queue->shared_most) return false;
    p->shared = shared_of(a, bytes, c->backward);
    p->blocks = (unsigned)(c->in[0].shape.dim[0] * (a->heads / a->group));
    p->threads = a->group * (a->rows / 16) <= 16 ? ATTENTION_THREADS / 2 : ATTENTION_THREADS;
    choose_whole(c, p, bytes);
    return true;
}

static void forward(const call *c) {
    attention_plan p;
    if (!plan(c, &p)) {
        attention_plain_forward(c);
        return;
    }
    p.a.y = view_of(&c->out[0]);
    p.a.y.add = false;
    switch (math_of(c, c->out[0].type)) {
    case MATH_F32: attention_forward_f32(c, &p); break;
    case MATH_TF32: attention_forward_tf32(c, &p); break;
    case MATH_BF16: attention_forward_bf16(c, &p); break;
    default: attention_forward_f16(c, &p); break;
    }
}

static void backward(const call *c) {
    attention_plan p;
    if (!plan(c, &p)) {
        attention_plain_backward(c);
        return;
    }
    p.a.y = view_of(&c->dout[0]);
    p.a.dx = view_of(&c->din[0]);
    switch (math_of(c, c->out[0].type)) {
    case MATH_F32: attention_backward_f32(c, &p); break;
    case MATH_TF32: attention_backward_tf32(c, &p); break;
    case MATH_BF16: attention_backward_bf16(c, &p); break;
    default: attention_backward_f16(c, &p); break;
    }
}

// Asked before there is a queue: enough for either way.
static size_t scratch(const call *c) {
    return attention_plain_scratch(c);
}

static size_t reserve(const call *c) {
    size_t words = settings_of(c)->dropout > 0 ? (size_t)words_of(c->in[0].shape.dim[1]) : 0;
    size_t own = (size_t)(items_of(c) + 1) * (sizeof(float) + words * sizeof(uint32_t)),
           plain = attention_plain_reserve(c);
    return own > plain ? own : plain;
}

extern "C" const kernel cuda_attention = {forward, backward, scratch, reserve};
