#include "cuda/rows/pack.cuh"

#include "cuda/device/room.cuh"
#include "cuda/product/mma.cuh"

extern "C" {
#include "ops/ops.h"
}

#include <stdlib.h>
#include <string.h>

enum { THREADS = 128 };

// A lane's four terms of one column, as words of the row kernel's type.
template <int MATH> CUDA_FN void put_terms(uint32_t *to, const float v[4]) {
    if constexpr (math_type<MATH>::K == 16) {
        to[0] = pair_word<MATH>(v[0], v[1]);
        to[1] = pair_word<MATH>(v[2], v[3]);
    } else {
#pragma unroll
        for (int e = 0; e < 4; e++) to[e] = __float_as_uint(v[e]);
    }
}

CUDA_FN float weight_at(const rows_pack &p, int k, int n) {
    if (k >= p.K || n >= p.N) return 0;
    return __ldcg(p.weights + (p.back ? k * p.N + n : n * p.K + k)); // written while we were waiting
}

// A lane's share of a run: `at` counts lanes, then runs, then groups. Weights that a row kernel reads are few: all
// counts are ints.
template <int MATH, int NJ> CUDA_FN void pack_share(const rows_pack &p, char *to, int at) {
    const int WORDS = NJ * (math_type<MATH>::K == 16 ? 2 : 4);
    int runs = (p.K + ROWS_TERMS - 1) / ROWS_TERMS, lane = at % 32, group = at / 32 / runs,
        run = at / 32 - group * runs;
    if (group * 8 * NJ >= p.N) return;
    bool pairs = math_type<MATH>::K == 16;
    int k = run * ROWS_TERMS + lane % 4 * (pairs ? 2 : 4), n = group * 8 * NJ + lane / 4 * NJ;
    float v[NJ][4];
#pragma unroll
    for (int i = 0; i < NJ * 4; i++) {
        int e = p.back ? i / NJ : i % 4, j = p.back ? i % NJ : i / 4;
        v[j][e] = weight_at(p, k + (pairs ? e % 2 + e / 2 * 8 : e), n + j);
    }
    alignas(16) uint32_t w[WORDS];
#pragma unroll
    for (int j = 0; j < NJ; j++) put_terms<MATH>(w + j * WORDS / NJ, v[j]);
    uint32_t *out = (uint32_t *)(to + p.offset) + (at / 32) * 32 * WORDS;
    if constexpr (WORDS == 2) {
        ((uint2 *)out)[lane] = *(uint2 *)w;
    } else {
#pragma unroll
        for (int q = 0; q < WORDS / 4; q++) ((uint4 *)out)[q * 32 + lane] = *(uint4 *)(w + 4 * q);
    }
}

// The pack of a row kernel that a block works on, and its number among that pack's blocks.
struct pack_job {
    rows_pack pack;
    char *to;       // of the row kernel
    size_t weights; // bytes, without the bias
    int first;      // block
};

template <int MATH>
static __global__ void __launch_bounds__(THREADS) pack_kernel(const pack_job *jobs, const uint16_t *job_of) {
    const pack_job j = jobs[job_of[blockIdx.x]]; // written once: it need not wait for anything
    const rows_pack &p = j.pack;
    int at = ((int)blockIdx.x - j.first) * THREADS + (int)threadIdx.x;
    int columns = rows_columns(&p), biases = p.bias ? (p.N + columns - 1) / columns * columns : 0;
    cuda_begin();
    float bias = p.bias && at < p.N ? __ldcg(p.bias + at) : 0.0f;
    if (p.wide) {
        pack_share<MATH, ROWS_WIDE>(p, j.to, at);
    } else {
        pack_share<MATH, 1>(p, j.to, at);
    }
    if (at < biases) ((float *)(j.to + p.offset + j.weights))[at] = bias; // behind the weights, zeros past the edge
}

// Memory of a pack, in the list of its room.
struct pack_memory {
    pack_memory *next;
    rows_pack pack;
    int low;
};

size_t pack_most(const call *c) {
    if (c->op != OP_linear) return 0;
    int64_t K = operand_width(&c->in[0]), N = operand_width(&c->out[0]);
    rows_pack p = {};
    if (K > ROWS_WIDTH || N > ROWS_WIDTH || rows_weights_wide(K, N, 1)) return 0;
    p.K = (int32_t)(c->backward ? N : K);
    p.N = (int32_t)(c->backward ? K : N);
    p.wide = true; // whose columns are rounded up the most
    p.bias = c->backward ? NULL : (const float *)c;
    return rows_pack_room(&p, c->out[0].type); // a row kernel multiplies in the type of its layers' results
}

static int64_t shares(const rows_pack *p) {
    int columns = rows_columns(p);
    return (int64_t)((p->N + columns - 1) / columns) * ((p->K + ROWS_TERMS - 1) / ROWS_TERMS) * 32;
}

static bool is_same(const rows_pack *a, const rows_pack *b) {
    return a->weights == b->weights && a->bias == b->bias && a->K == b->K && a->N == b->N && a->back == b->back &&
           a->wide == b->wide;
}

// Gives a pack its place in the room.
static bool place(room *in, rows_pack *p, int low) {
    for (const pack_memory *m = in->packs; m; m = m->next)
        if (m->low == low && is_same(&m->pack, p)) {
            p->offset = m->pack.offset;
            return true;
        }
    char *at = (char *)room_take(in, rows_pack_room(p, low));
    pack_memory *m = at ? (pack_memory *)malloc(sizeof *m) : NULL;
    if (!m) return false;
    p->offset = (uint32_t)(at - in->memory);
    *m = pack_memory{in->packs, *p, low};
    in->packs = m;
    return true;
}

void pack_forget(room *r) {
    while (r->packs) {
        pack_memory *m = r->packs;
        r->packs = m->next;
        free(m);
    }
}

bool pack_make(queue *q, pack_args *p, rows_compiler *r) {
    *p = pack_args{};
    for (int i = 0; i < r->packs; i++)
        if (!place(q->room, &r->pack[i], r->made.low)) return false;
    p->low = r->made.low;
    p->to = q->room->memory;
    p->count = r->packs;
    memcpy(p->pack, r->pack, sizeof p->pack);
    rows_place(r, p->to);
    return true;
}

// Lists

static int blocks_of(const rows_pack *p) {
    return (int)((shares(p) + THREADS - 1) / THREADS);
}

// Behind its jobs a list has two bytes for every block.
size_t pack_list_most(const call *c) {
    size_t weights = pack_most(c);
    return weights ? sizeof(pack_job) + sizeof(uint16_t) * (weights / (THREADS * 8) + 2) : 0;
}

static bool is_equal(const pack_args *a, const pack_args *b) {
    if (a->low != b->low || a->count != b->count) return false;
    for (int i = 0; i < a->count; i++)
        if (!is_same(&a->pack[i], &b->pack[i])) return false;
    return true;
}

const pack_args *pack_find(const pack_list *l, const pack_args *p) {
    const pack_args *m = l->first;
    while (m && !is_equal(m, p)) m = m->next;
    return m;
}

bool pack_joins(const pack_list *l, const rows_compiler *r) {
    int jobs = r->packs;
    for (const pack_args *p = l->first; p; p = p->next) jobs += p->count;
    return l->first->low == r->made.low && jobs <= UINT16_MAX;
}

void pack_add(pack_list *l, pack_args *p) {
    pack_args **end = &l->first;
    while (*end) end = &(*end)->next;
    *end = p;
}

// The jobs of a list, and the job of every block behind them.
static void write_jobs(const pack_list *l, pack_job *jobs, uint16_t *job_of) {
    int n = 0, blocks = 0;
    for (const pack_args *p = l->first; p; p = p->next)
        for (int i = 0; i < p->count; i++, n++) {
            jobs[n] = pack_job{p->pack[i], p->to, rows_pack_bytes(&p->pack[i], p->low), blocks};
            for (int end = blocks + blocks_of(&p->pack[i]); blocks < end; blocks++) job_of[blocks] = (uint16_t)n;
        }
}

bool pack_upload(queue *q, pack_list *l) {
    l->jobs = l->blocks = 0;
    for (const pack_args *p = l->first; p; p = p->next)
        for (int i = 0; i < p->count; i++, l->jobs++) l->blocks += blocks_of(&p->pack[i]);
    size_t bytes = (size_t)l->jobs * sizeof(pack_job) + (size_t)l->blocks * sizeof(uint16_t);
    pack_job *jobs = (pack_job *)calloc(1, bytes); // equal lists have equal bytes, between their fields too
    if (!jobs) return false;
    write_jobs(l, jobs, (uint16_t *)(jobs + l->jobs));
    l->on_card = room_put(q, q->room, jobs, bytes);
    free(jobs);
    return l->on_card != NULL;
}

void pack_done(pack_list *l) {
    for (pack_args *p = l->first, *next; p; p = next) {
        next = p->next;
        free(p);
    }
}

void pack_launch(const call *c, const pack_list *l) {
    const pack_job *jobs = (const pack_job *)l->on_card;
    const uint16_t *job_of = (const uint16_t *)(jobs + l->jobs);
    unsigned blocks = (unsigned)l->blocks;
    switch (l->first->low) {
    case DTYPE_BF16: LAUNCH_EARLY(c, pack_kernel<MATH_BF16>, blocks, THREADS, 0, jobs, job_of); break;
    case DTYPE_F16: LAUNCH_EARLY(c, pack_kernel<MATH_F16>, blocks, THREADS, 0, jobs, job_of); break;
    default: LAUNCH_EARLY(c, pack_kernel<MATH_F32>, blocks, THREADS, 0, jobs, job_of); break;
    }
}
