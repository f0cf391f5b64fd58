// attention of any size, plainly. A warp a query, whose probabilities are in shared memory; backward a second pass with
// a warp a key. Lanes share out steps for scores and columns for sums, so every sum is formed in one order.
#include "cuda/attention/attention.cuh"

extern "C" {
#include "ops/random.h"
}

struct softmax {
    float top, sum;
};

// Arguments common to all launches of a call. Item (b * heads + h) * T + i is step i of head h of sample b.
struct plain_args {
    view qkv, mask;
    step at;
    softmax *kept;
    float *mean; // [items], backward
    int64_t items, T, D, d;
    int heads;
    bool causal, drops;
    uint32_t node, least;
    float keep, scale;
};

struct place {
    int64_t b, h, i, head;
    int64_t q; // of step i's query in qkv
};

CUDA_FN place place_of(const plain_args *a, int64_t item) {
    place p;
    p.i = item % a->T;
    p.head = item / a->T;
    p.h = p.head % a->heads;
    p.b = p.head / a->heads;
    p.q = (p.b * a->T + p.i) * 3 * a->D + p.h * a->d;
    return p;
}

CUDA_FN float warp_sum(float v) {
    for (int d = 16; d; d >>= 1) v += __shfl_xor_sync(0xFFFFFFFFu, v, d);
    return v;
}

CUDA_FN float warp_max(float v) {
    for (int d = 16; d; d >>= 1) v = fmaxf(v, __shfl_xor_sync(0xFFFFFFFFu, v, d));
    return v;
}

CUDA_FN bool is_key(const plain_args *a, int64_t b, int64_t j) {
    return !a->mask.data || view_load(a->mask, b * a->T + j) != 0;
}

CUDA_FN float dot(view x, int64_t at, view y, int64_t to, int64_t n) {
    float sum = 0;
    for (int64_t k = 0; k < n; k++) sum += view_load(x, at + k) * view_load(y, to + k);
    return sum;
}

// The score of key j for the query at `q`, where p is any step of their head.
CUDA_FN float score(const plain_args *a, const place *p, int64_t q, int64_t j) {
    return a->scale * dot(a->qkv, q, a->qkv, (p->b * a->T + j) * 3 * a->D + a->D + p->h * a->d, a->d);
}

// Factor of dropout for the probability of query i and key j.
CUDA_FN float keep_of(const plain_args *a, const place *p, int64_t i, int64_t j) {
    if (!a->drops) return 1.0f;
    int64_t e = (p->h * a->T + i) * a->T + j;
    random_key key = random_key_of(a->at);
    rng_block r = random_dropout(&key, (uint64_t)p->b, a->node, (uint32_t)(e / RANDOM_OCTET));
    return random_bits(&r, (int)(e % RANDOM_OCTET)) >= a->least ? a->keep : 0.0f;
}

CUDA_FN float probability(softmax m, float s) {
    return m.sum != 0 ? expf(s - m.top) / m.sum : 0.0f;
}

static __global__ void forward_kernel(plain_args a, view y) {
    extern __shared__ float p[]; // [T]
    for (int64_t item = blockIdx.x; item < a.items; item += gridDim.x) {
        place at = place_of(&a, item);
        int64_t n = a.causal ? at.i + 1 : a.T;
        float top = -INFINITY, sum = 0;
        for (int64_t j = threadIdx.x; j < n; j += 32) {
            p[j] = is_key(&a, at.b, j) ? score(&a, &at, at.q, j) : -INFINITY;
            top = fmaxf(top, p[j]);
        }
        top = warp_max(top);
        for (int64_t j = threadIdx.x; j < n; j += 32) sum += is_key(&a, at.b, j) ? expf(p[j] - top) : 0.0f;
        softmax m = {top, warp_sum(sum)};
        if (a.kept && threadIdx.x == 0) a.kept[item] = m;
        for (int64_t j = threadIdx.x; j < n; j += 32)
            p[j] = is_key(&a, at.b, j) ? probability(m, p[j]) * keep_of(&a, &at, at.i, j) : 0.0f;
        __syncwarp();
        for (int64_t k = threadIdx.x; k < a.d; k += 32) {
            float out = 0;
            for (int64_t j = 0; j < n; j++)
                if (is_key(&a, at.b, j))
                    out += p[j] * view_load(a.qkv, (at.b * a.T + j) * 3 * a.D + 2 * a.D + at.h * a.d + k);
            view_store(y, (at.b * a.T + at.i) * a.D + at.h * a.d + k, out);
        }
        __syncwarp();
    }
}

// dq, and each query's mean of dp under p.
static __global__ void query_kernel(plain_args a, view dy, view dx) {
    extern __shared__ float room[]; // p [T], dp [T]
    float *p = room, *dp = room + a.T;
    for (int64_t item = blockIdx.x; item < a.items; item += gridDim.x) {
        place at = place_of(&a, item);
        int64_t n = a.causal ? at.i + 1 : a.T, out = (at.b * a.T + at.i) * a.D + at.h * a.d;
        float mean = 0;
        for (int64_t j = threadIdx.x; j < n; j += 32) {
            p[j] = dp[j] = 0;
            if (!is_key(&a, at.b, j)) continue;
            p[j] = probability(a.kept[item], score(&a, &at, at.q, j));
            int64_t v = (at.b * a.T + j) * 3 * a.D + 2 * a.D + at.h * a.d;
            dp[j] = keep_of(&a, &at, at.i, j) * dot(dy, out, a.qkv, v, a.d);
            mean += p[j] * dp[j];
        }
        mean = warp_sum(mean);
        if (threadIdx.x == 0) a.mean[item] = mean;
        __syncwarp();
        for (int64_t k = threadIdx.x; k < a.d; k += 32) {
            float dq = 0;
            for (int64_t j = 0; j < n; j++)
                if (is_key(&a, at.b, j))
                    dq += p[j] * (dp[j] - mean) * a.scale *
                          view_load(a.qkv, (at.b * a.T + j) * 3 * a.D + a.D + at.h * a.d + k);
            view_put(dx, at.q + k, dq);
        }
        __syncwarp();
    }
}

// dk and dv: the key's part of every query that sees it.
static __global__ void key_kernel(plain_args a, view dy, view dx) {
    extern __shared__ float room[]; // ds [T], p after dropout [T]
    float *ds = room, *p = room + a.T;
    for (int64_t item = blockIdx.x; item < a.items; item += gridDim.x) {
        place at = place_of(&a, item);
        int64_t j = at.i, first = a.causal ? j : 0, end = is_key(&a, at.b, j) ? a.T : first;
        for (int64_t i = first + threadIdx.x; i < end; i += 32) {
            int64_t query = at.head * a.T + i, out = (at.b * a.T + i) * a.D + at.h * a.d;
            float prob = probability(a.kept[query], score(&a, &at, (at.b * a.T + i) * 3 * a.D + at.h * a.d, j));
            float keep = keep_of(&a, &at, i, j), dp = keep * dot(dy, out, a.qkv, at.q + 2 * a.D, a.d);
            p[i] = prob * keep;
            ds[i] = prob * (dp - a.mean[query]) * a.scale;
        }
        __syncwarp();
        for (int64_t k = threadIdx.x; k < a.d; k += 32) {
            float dk = 0, dv = 0;
            for (int64_t i = first; i < end; i++) {
                dk += ds[i] * view_load(a.qkv, (at.b * a.T + i) * 3 * a.D + at.h * a.d + k);
                dv += p[i] * view_load(dy, (at.b * a.T + i) * a.D + at.h * a.d + k);
            }
            view_put(dx, at.q + a.D + k, dk);
            view_put(dx, at.q + 2 * a.D + k, dv);
        }
        __syncwarp();
    }
}

static plain_args args_of(const call *c) {
    const attention_settings *s = (const attention_settings *)c->attr;
    shape x = c->in[0].shape;
    int64_t D = x.dim[2] / 3, d = D / s->heads;
    plain_args a = {};
    a.qkv = view_of(&c->in[0]);
    a.mask = view_of(&c->in[1]);
    a.at = c->step;
    a.kept = (softmax *)c->reserve;
    a.mean = (float *)c->scratch;
    a.items = x.dim[0] * s->heads * x.dim[1];
    a.T = x.dim[1];
    a.D = D;
    a.d = d;
    a.heads = s->heads;
    a.causal = s->causal;
    a.drops = c->training && s->dropout > 0;
    a.node = c->node;
    a.least = random_threshold(s->dropout);
    a.keep = (float)random_scale(s->dropout);
    a.scale = (float)(1 / sqrt((double)d));
    return a;
}

// True if a warp's rows fit into the shared memory that every card has.
static bool fits(const call *c) {
    if (c->in[0].shape.dim[1] <= 48 * 1024 / (2 * (int64_t)sizeof(float))) return true;
    cuda_refused(c, "attention over more than 6144 steps");
    return false;
}

// Bytes of so many floats: whole words of four, which is how the compiler loads them.
static size_t room_for(int64_t floats) {
    return (size_t)(floats + 3) / 4 * 4 * sizeof(float);
}

void attention_plain_forward(const call *c) {
    plain_args a = args_of(c);
    if (!fits(c)) return;
    LAUNCH(c, forward_kernel, blocks_for(a.items, 1), 32, room_for(a.T), a, view_of(&c->out[0]));
}

void attention_plain_backward(const call *c) {
    plain_args a = args_of(c);
    size_t room = room_for(2 * a.T);
    if (!fits(c)) return;
    LAUNCH(c, query_kernel, blocks_for(a.items, 1), 32, room, a, view_of(&c->dout[0]), view_of(&c->din[0]));
    LAUNCH(c, key_kernel, blocks_for(a.items, 1), 32, room, a, view_of(&c->dout[0]), view_of(&c->din[0]));
}

static int64_t items_of(const call *c) {
    return c->in[0].shape.dim[0] * ((const attention_settings *)c->attr)->heads * c->in[0].shape.dim[1];
}

size_t attention_plain_scratch(const call *c) {
    return c->backward ? (size_t)items_of(c) * sizeof(float) : 0;
}

size_t attention_plain_reserve(const call *c) {
    return (size_t)items_of(c) * sizeof(softmax);
}
