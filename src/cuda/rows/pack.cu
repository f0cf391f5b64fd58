#include "cuda/rows/pack.cuh"

#include "cuda/product/mma.cuh"

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

static int64_t shares(const rows_pack *p) {
    int columns = rows_columns(p);
    return (int64_t)((p->N + columns - 1) / columns) * ((p->K + ROWS_TERMS - 1) / ROWS_TERMS) * 32;
}

// Memory of packs, in a list of the queue's.
struct pack_memory {
    pack_memory *next;
    rows_pack pack[ROWS_MOST];
    int count, low, users;
    char *to;
};

static bool is_same(const rows_pack *a, const rows_pack *b) {
    return a->weights == b->weights && a->bias == b->bias && a->offset == b->offset && a->K == b->K && a->N == b->N &&
           a->back == b->back && a->wide == b->wide;
}

static bool serves(const pack_memory *m, const rows_compiler *r) {
    if (m->count != r->packs || m->low != r->made.low) return false;
    for (int i = 0; i < m->count; i++)
        if (!is_same(&m->pack[i], &r->pack[i])) return false;
    return true;
}

static pack_memory *memory_for(queue *q, const rows_compiler *r) {
    for (pack_memory *m = q->packs; m; m = m->next)
        if (serves(m, r)) return m;
    pack_memory *m = (pack_memory *)calloc(1, sizeof *m);
    if (!m || !(m->to = (char *)cuda_memory_take(q, r->packed))) {
        free(m);
        return NULL;
    }
    memcpy(m->pack, r->pack, sizeof m->pack);
    m->count = r->packs;
    m->low = r->made.low;
    m->next = q->packs;
    q->packs = m;
    return m;
}

bool pack_make(queue *q, pack_args *p, rows_compiler *r) {
    *p = pack_args{};
    p->memory = memory_for(q, r);
    if (!p->memory) return false;
    p->memory->users++;
    p->low = r->made.low;
    p->bytes = r->packed;
    p->to = p->memory->to;
    p->count = r->packs;
    memcpy(p->pack, r->pack, sizeof p->pack);
    rows_place(r, p->to);
    return true;
}

static void pack_remove(queue *q, pack_args *p) {
    pack_memory *m = p->memory, **at = &q->packs;
    if (--m->users) return;
    while (*at != m) at = &(*at)->next;
    *at = m->next;
    cuda_memory_give(q, m->to);
    free(m);
}

// Lists

static int blocks_of(const rows_pack *p) {
    return (int)((shares(p) + THREADS - 1) / THREADS);
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
    pack_job *jobs = (pack_job *)malloc(bytes);
    if (!jobs) return false;
    write_jobs(l, jobs, (uint16_t *)(jobs + l->jobs));
    l->on_card = cuda_memory_take(q, bytes);
    bool ok = l->on_card &&
              cudaMemcpyAsync(l->on_card, jobs, bytes, cudaMemcpyHostToDevice, q->stream) == cudaSuccess &&
              cudaStreamSynchronize(q->stream) == cudaSuccess;
    free(jobs);
    return ok;
}

void pack_done(queue *q, pack_list *l) {
    for (pack_args *p = l->first, *next; p; p = next) {
        next = p->next;
        pack_remove(q, p);
        free(p);
    }
    cuda_memory_give(q, l->on_card);
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
