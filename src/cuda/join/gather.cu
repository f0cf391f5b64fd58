#include "cuda/join/gather.cuh"

#include "cuda/ops/draw.cuh"
#include "cuda/run.cuh"

extern "C" {
#include "ops/ops.h"
}

// A block takes a few rows, or as many as make one wave of five blocks a multiprocessor. One thread a
// row computes its sample; takes of one word, which windows wait for, are done next, a thread each; then every window
// and every other take of every row by a warp of its own, or, where there are no windows, a take by all threads.
enum { GATHER_FEW = 5, GATHER_ROWS = 32, GATHER_WARPS = 8, GATHER_THREADS = GATHER_WARPS * 32, GATHER_BLOCKS = 5 };

// Loads go out together before their stores.
template <typename W> CUDA_FN void copy_units(W *to, const W *from, int n) {
    const int batch = sizeof(W) == 16 ? 2 : 8;
    for (int i = threadIdx.x % 32; i < n; i += 32 * batch) {
        W v[batch];
#pragma unroll
        for (int u = 0; u < batch; u++)
            if (i + 32 * u < n) v[u] = __ldg(from + i + 32 * u);
#pragma unroll
        for (int u = 0; u < batch; u++)
            if (i + 32 * u < n) to[i + 32 * u] = v[u];
    }
}

CUDA_FN void copy_words(void *to, const void *from, int n, bool vectors) {
    if (vectors) {
        copy_units((uint4 *)to, (const uint4 *)from, n / 4);
    } else {
        copy_units((uint32_t *)to, (const uint32_t *)from, n);
    }
}

CUDA_FN void gather_window(const gather_member &m, int64_t b, int row, int first) {
    int lane = threadIdx.x % 32, have = row - first + 1 < m.T ? row - first + 1 : m.T, pad = m.T - have;
    float *to = (float *)m.to + b * m.units;
    for (int i = lane; i < pad * m.C; i += 32) to[i] = 0;
    copy_words(to + pad * m.C, (const float *)m.from + (int64_t)(row - have + 1) * m.C, have * m.C, m.vectors);
    for (int t = lane; t < m.T; t += 32) m.mask[b * m.T + t] = t >= pad ? 1.0f : 0.0f;
}

// A unit as it is stored: as it lies, or in 16 bits.
template <typename W> CUDA_FN void store_unit(W *to, W v, int) {
    *to = v;
}

CUDA_FN void store_unit(uint2 *to, uint4 v, int low) {
    uint2 w;
    float a = __uint_as_float(v.x), b = __uint_as_float(v.y), c = __uint_as_float(v.z), d = __uint_as_float(v.w);
    if (low == DTYPE_BF16) {
        pair_narrow((__nv_bfloat162 *)&w.x, a, b);
        pair_narrow((__nv_bfloat162 *)&w.y, c, d);
    } else {
        pair_narrow((__half2 *)&w.x, a, b);
        pair_narrow((__half2 *)&w.y, c, d);
    }
    *to = w;
}

CUDA_FN void store_unit(uint16_t *to, uint32_t v, int low) {
    view_store(view{to, low, false}, 0, __uint_as_float(v));
}

// Threads that share rows of a take, and which of them this one is.
struct gather_team {
    int threads, thread;
};

// Rows of a take, n units each, AT_ONCE of a thread's under way. W: a unit of the table, S: as it is stored.
template <typename W, typename S>
CUDA_FN void take_rows(const gather_member &m, int n, int64_t first, int rows, const int32_t *sample, gather_team t) {
    const int AT_ONCE = sizeof(W) == 16 ? 2 : 4;
    const W *from = (const W *)m.from;
    S *to = (S *)m.to + first * n;
    for (int i = t.thread; i < rows * n; i += AT_ONCE * t.threads) {
        W v[AT_ONCE] = {};
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++) {
            int at = i + u * t.threads;
            if (at < rows * n) v[u] = __ldg(from + (int64_t)sample[at / n] * n + at % n);
        }
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++) {
            int at = i + u * t.threads;
            if (at < rows * n) store_unit(to + at, v[u], m.low);
        }
    }
}

CUDA_FN void gather_take(const gather_member &m, int64_t first, int rows, const int32_t *sample, gather_team t) {
    if (m.bytes) {
        take_rows<uint8_t, uint8_t>(m, m.units, first, rows, sample, t);
    } else if (m.low != DTYPE_F32 && m.vectors) {
        take_rows<uint4, uint2>(m, m.units / 4, first, rows, sample, t);
    } else if (m.low != DTYPE_F32) {
        take_rows<uint32_t, uint16_t>(m, m.units, first, rows, sample, t);
    } else if (m.vectors) {
        take_rows<uint4, uint4>(m, m.units / 4, first, rows, sample, t);
    } else {
        take_rows<uint32_t, uint32_t>(m, m.units, first, rows, sample, t);
    }
}

static __global__ void __launch_bounds__(GATHER_THREADS, GATHER_BLOCKS)
    gather_kernel(const __grid_constant__ gather_args g) {
    cuda_begin();
    __shared__ int32_t sample[GATHER_ROWS], single[GATHER_ROWS][GATHER_MOST];
    int64_t first = (int64_t)blockIdx.x * g.block;
    int rows = g.rows - first < g.block ? (int)(g.rows - first) : g.block, warp = threadIdx.x / 32;
    int drawn_row = threadIdx.x % 32 * GATHER_WARPS + warp;
    if (drawn_row < rows) {
        drawn d = draw_row(g.step, first + drawn_row);
        sample[drawn_row] = g.index[first + drawn_row] = d.sample;
        g.weight[first + drawn_row] = d.weight;
    }
    __syncthreads();
    for (int n = threadIdx.x; n < rows * g.count; n += GATHER_THREADS) {
        int r = n / g.count, i = n % g.count;
        if (g.m[i].single) single[r][i] = ((int32_t *)g.m[i].to)[first + r] = ((const int32_t *)g.m[i].from)[sample[r]];
    }
    if (g.windows) __syncthreads();
    // The last threads begin: the first ones may still be at the takes of one word.
    gather_team team = {GATHER_THREADS, GATHER_THREADS - 1 - (int)threadIdx.x};
    if (g.windows) team = gather_team{32, (int)threadIdx.x % 32};
    int each = g.windows ? 1 : rows, tasks = rows / each * g.several;
    for (int task = g.windows ? GATHER_WARPS - 1 - warp : 0; task < tasks; task += g.windows ? GATHER_WARPS : 1) {
        int r = task / g.several;
        const gather_member &m = g.m[g.member[task % g.several]];
        if (m.window)
            gather_window(m, first + r, single[r][m.row], single[r][m.first]);
        else
            gather_take(m, first + r, each, sample + r, team);
    }
}

void gather_launch(const call *c, const gather_args *g) {
    LAUNCH_EARLY(c, gather_kernel, (unsigned)((g->rows + g->block - 1) / g->block), GATHER_THREADS, 0, *g);
}

// Matching

static bool aligned(const void *p) {
    return (uintptr_t)p % 16 == 0;
}

static bool match_take(const call *c, gather_args *g, gather_member *m) {
    const operand *t = &c->in[0];
    if (c->op != OP_take || c->in[1].data != g->index || c->in[1].shape.dim[0] != g->rows) return false;
    int64_t bytes = operand_count(t) / t->shape.dim[0] * (int64_t)dtype_bytes(t->type);
    dtype type = c->out[0].type;
    bool narrows = t->type == DTYPE_F32 && (type == DTYPE_BF16 || type == DTYPE_F16);
    if (bytes > INT32_MAX / GATHER_ROWS || (t->type != type && !narrows)) return false;
    m->from = t->data;
    m->to = c->out[0].data;
    m->low = narrows ? (int)type : (int)DTYPE_F32;
    m->bytes = bytes % 4 != 0;
    m->units = (int)(m->bytes ? bytes : bytes / 4);
    m->single = !m->bytes && !narrows && m->units == 1;
    m->vectors = bytes % 16 == 0 && aligned(m->from) && aligned(m->to);
    return true;
}

// The take of one word that wrote an operand, or -1.
static int taken(const gather_args *g, const operand *o) {
    for (int i = 0; i < g->count; i++) {
        const gather_member *m = &g->m[i];
        if (m->to == o->data && o->type == DTYPE_I32 && m->single) return i;
    }
    return -1;
}

static bool match_window(const call *c, gather_args *g, gather_member *m) {
    if (c->op != OP_window || c->in[1].shape.dim[0] != g->rows) return false;
    const window_attr *a = (const window_attr *)c->attr;
    bool plain = c->in[0].type == DTYPE_F32 && window_parts(c->inputs) == 1;
    plain = plain && !c->in[WINDOW_SCALER].data;
    for (int k = 0; k < 2; k++) plain = plain && c->out[k].type == DTYPE_F32 && c->out[k].data;
    m->row = taken(g, &c->in[1]);
    m->first = taken(g, &c->in[2]);
    if (!plain || m->row < 0 || m->first < 0 || a->length * c->in[0].shape.dim[1] > INT32_MAX) return false;
    m->window = true;
    m->from = c->in[0].data;
    m->to = c->out[0].data;
    m->mask = (float *)c->out[1].data;
    m->T = (int)a->length;
    m->C = (int)c->in[0].shape.dim[1];
    m->units = m->T * m->C;
    m->vectors = m->C % 4 == 0 && aligned(m->from) && aligned(m->to);
    return true;
}

// Results of the same launch may not share memory, not even with what nobody reads any more.
static bool apart(const call *calls, int i) {
    for (int k = 0; k < calls[i].outputs; k++) {
        const operand *a = &calls[i].out[k];
        const char *begin = (const char *)a->data, *end = begin + operand_count(a) * (int64_t)dtype_bytes(a->type);
        for (int j = 0; j < i; j++)
            for (int n = 0; n < calls[j].outputs; n++) {
                const operand *b = &calls[j].out[n];
                const char *from = (const char *)b->data, *to = from + operand_count(b) * (int64_t)dtype_bytes(b->type);
                if (begin < to && from < end) return false;
            }
    }
    return true;
}

int gather_match(const call *calls, int count, gather_args *g) {
    const call *d = &calls[0];
    if (count < 2 || d->op != OP_draw || d->out[1].type != DTYPE_F32) return 0;
    *g = gather_args{
        d->step, (int32_t *)d->out[0].data, (float *)d->out[1].data, operand_count(&d->out[0]), 0, 0, 0, false, {}, {}};
    int64_t blocks = (int64_t)d->queue->multiprocessors * GATHER_BLOCKS, wave = (g->rows + blocks - 1) / blocks;
    if (wave < GATHER_FEW) wave = GATHER_FEW;
    g->block = (int)(wave < GATHER_ROWS ? wave : (int64_t)GATHER_ROWS);
    int n = 1;
    for (; n < count && g->count < GATHER_MOST; n++) {
        gather_member *m = &g->m[g->count];
        *m = gather_member{};
        if (!match_take(&calls[n], g, m) && !match_window(&calls[n], g, m)) break;
        if (!apart(calls, n)) break;
        g->windows |= m->window;
        if (!m->single) g->member[g->several++] = (unsigned char)g->count;
        g->count++;
    }
    return n > 1 ? n : 0;
}
