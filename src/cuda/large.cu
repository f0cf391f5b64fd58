#include "cuda/large.cuh"

#include "cuda/activation.cuh"
#include "cuda/blaslt.cuh"

extern "C" {
#include "ops/ops.h"
}

// The rule, by sizes and types alone. From 2^27 multiplications on a product keeps a large card busy for longer than a
// launch takes, and sides of 64 fill the tiles that the library multiplies on; below that our own products, which convert
// as they load and join others in one launch, are faster. Rows of multiples of 8 elements lie at multiples of 16 bytes,
// as the card's copy engine wants them. fp32 without tf32 stays with us: the library has no tensor cores for it.
enum { PRODUCTS_LEAST = 1 << 27, SIDE_LEAST = 64, SIDE_STEP = 8 };

struct sizes {
    int64_t rows, I, O;
    dtype type; // of products' operands
    int act;
};

static sizes sizes_of(const call *c) {
    return sizes{operand_rows(&c->out[0]), operand_width(&c->in[0]), operand_width(&c->out[0]), c->out[0].type,
        (int)((const linear_attr *)c->attr)->act};
}

static bool is_side(int64_t n) {
    return n >= SIDE_LEAST && n % SIDE_STEP == 0;
}

// An operand that is of the products' type, or becomes so.
static bool is_source(const operand *o, dtype type) {
    return o->type == type || o->type == DTYPE_F32;
}

static bool is_large(const call *c) {
    sizes s = sizes_of(c);
    bool low = s.type == DTYPE_BF16 || s.type == DTYPE_F16;
    if (!low && !(s.type == DTYPE_F32 && c->tf32)) return false;
    if (!is_source(&c->in[0], s.type) || c->in[1].type != DTYPE_F32 || c->in[2].type != DTYPE_F32) return false;
    if (c->backward && (!is_source(&c->dout[0], s.type) || !is_source(&c->din[0], s.type))) return false;
    return is_side(s.I) && is_side(s.O) && s.rows >= SIDE_LEAST && s.rows * s.I * s.O >= PRODUCTS_LEAST;
}

// Products

static blaslt_shape shape_forward(const call *c) {
    sizes s = sizes_of(c);
    dtype to = c->reserve ? DTYPE_F32 : s.type;
    return blaslt_shape{s.rows, s.O, s.I, s.type, to, false, false, c->in[2].data != NULL, s.act == ACT_RELU};
}

static blaslt_shape shape_dx(const call *c) {
    sizes s = sizes_of(c);
    return blaslt_shape{s.rows, s.I, s.O, s.type, c->din[0].type, false, true, false, false};
}

static blaslt_shape shape_dw(const call *c) {
    sizes s = sizes_of(c);
    return blaslt_shape{s.O, s.I, s.rows, s.type, DTYPE_F32, true, true, false, false};
}

bool large_takes(const call *c) {
    if (c->op != OP_linear || !is_large(c)) return false;
    blaslt_shape forward = shape_forward(c);
    if (!c->backward) return blaslt_has(c->queue, &forward);
    blaslt_shape dx = shape_dx(c), dw = shape_dw(c);
    return c->dout[0].data && (!c->din[0].data || blaslt_has(c->queue, &dx)) &&
           (!c->din[1].data || blaslt_has(c->queue, &dw));
}

// Runs of eight elements, which are aligned

CUDA_FN void run_load(float v[8], const view &from, int64_t i) {
    if (from.type == DTYPE_F32) {
        *(float4 *)v = *(const float4 *)((const float *)from.data + i);
        *(float4 *)(v + 4) = *(const float4 *)((const float *)from.data + i + 4);
        return;
    }
    uint4 w = *(const uint4 *)((const uint16_t *)from.data + i);
    const uint32_t *pair = (const uint32_t *)&w;
#pragma unroll
    for (int p = 0; p < 4; p++) {
        float2 f = from.type == DTYPE_BF16 ? __bfloat1622float2(*(const __nv_bfloat162 *)&pair[p])
                                           : __half22float2(*(const __half2 *)&pair[p]);
        v[2 * p] = f.x;
        v[2 * p + 1] = f.y;
    }
}

CUDA_FN void run_store(const view &to, int64_t i, const float v[8]) {
    if (to.type == DTYPE_F32) {
        *(float4 *)((float *)to.data + i) = *(const float4 *)v;
        *(float4 *)((float *)to.data + i + 4) = *(const float4 *)(v + 4);
        return;
    }
    uint4 w;
    uint32_t *pair = (uint32_t *)&w;
#pragma unroll
    for (int p = 0; p < 4; p++) {
        if (to.type == DTYPE_BF16) *(__nv_bfloat162 *)&pair[p] = __floats2bfloat162_rn(v[2 * p], v[2 * p + 1]);
        if (to.type == DTYPE_F16) *(__half2 *)&pair[p] = __floats2half2_rn(v[2 * p], v[2 * p + 1]);
    }
    *(uint4 *)((uint16_t *)to.data + i) = w;
}

// Conversions: up to three tensors in one launch

struct narrow_jobs {
    view from[3], to[3];
    int64_t end[3]; // of its runs, counted through all tensors
    int count;
};

static __global__ void narrow_kernel(const __grid_constant__ narrow_jobs j) {
    cuda_begin();
    int n = 0;
    FOR_EACH(i, j.end[j.count - 1]) {
        while (i >= j.end[n]) n++;
        int64_t at = (i - (n ? j.end[n - 1] : 0)) * 8;
        alignas(16) float v[8];
        run_load(v, j.from[n], at);
        run_store(j.to[n], at, v);
    }
}

// A tensor in the products' type: itself, or a copy to be made at `*room`, which moves on.
static const void *narrowed(narrow_jobs *j, const operand *o, dtype type, char **room) {
    if (!o->data || o->type == type) return o->data;
    int64_t n = operand_count(o);
    void *to = *room;
    j->from[j->count] = view_of(o);
    j->to[j->count] = view{to, (int)type, false};
    j->end[j->count] = n / 8 + (j->count ? j->end[j->count - 1] : 0);
    j->count++;
    *room += (n * (int64_t)dtype_bytes(type) + 255) / 256 * 256;
    return to;
}

static void narrow(const call *c, const narrow_jobs &j) {
    if (j.count) LAUNCH_EARLY(c, narrow_kernel, blocks_for(j.end[j.count - 1], 256), 256, 0, j);
}

static size_t narrow_bytes(const operand *o, dtype type) {
    return o->type == type ? 0 : ((size_t)operand_count(o) * dtype_bytes(type) + 255) / 256 * 256;
}

// Forward

// Activations in place, or from what is kept. In fp16 a sum may have overflowed, where the activation would not: GELU of
// minus infinity is no number.
static __global__ void activate_kernel(view z, view y, int act, int64_t runs) {
    cuda_begin();
    FOR_EACH(i, runs) {
        alignas(16) float v[8];
        run_load(v, z, i * 8);
#pragma unroll
        for (int e = 0; e < 8; e++) v[e] = v[e] == -INFINITY ? -65504.0f : v[e];
        activate_run<8>(act, v);
        run_store(y, i * 8, v);
    }
}

static char *aligned(void *p) {
    return (char *)(((uintptr_t)p + 255) / 256 * 256);
}

void large_forward(const call *c) {
    sizes s = sizes_of(c);
    blaslt_shape p = shape_forward(c);
    narrow_jobs j = {};
    char *room = aligned(c->scratch);
    blaslt_data d = {};
    d.a = narrowed(&j, &c->in[0], s.type, &room);
    d.b = narrowed(&j, &c->in[1], s.type, &room);
    d.bias = narrowed(&j, &c->in[2], p.to_type, &room);
    d.to = c->reserve ? c->reserve : c->out[0].data;
    narrow(c, j);
    blaslt_multiply(c, &p, &d, room);
    if (s.act == ACT_NONE || s.act == ACT_RELU) return;
    int64_t runs = s.rows * s.O / 8;
    LAUNCH_EARLY(c, activate_kernel, blocks_for(runs, 256), 256, 0, view{d.to, (int)p.to_type, false},
        view_of(&c->out[0]), s.act, runs);
}

// Backward

// A block takes 128 columns of a part of the rows, a thread eight of them of every sixteenth row, two rows at a time so
// that their loads are on their way together.
enum { ACROSS = 16, STRIP = 8 * ACROSS, DOWN = 16, THREADS = ACROSS * DOWN, AT_ONCE = 2, PARTS_MOST = 256, BLOCKS = 264 };

struct slope_args {
    view dy, seen, dz; // seen: z for GELU, else y; dz without data: dy is what is wanted
    int act, width;
    int64_t rows;
    float *sums; // [parts][width], or NULL
};

CUDA_FN void slope_seen(int act, float d[8], const float seen[8]) {
    if (act == ACT_GELU) {
#pragma unroll
        for (int e = 0; e < 8; e++) d[e] *= activation_slope(ACT_GELU, seen[e], 0);
    } else {
        slope_run<8>(act, d, seen);
    }
}

static __global__ void __launch_bounds__(THREADS) slope_kernel(const __grid_constant__ slope_args a) {
    cuda_begin();
    __shared__ float room[DOWN][STRIP];
    int tx = threadIdx.x % ACROSS, ty = threadIdx.x / ACROSS, column = blockIdx.x * STRIP + tx * 8;
    int64_t row = a.rows * blockIdx.y / gridDim.y + ty, end = a.rows * (blockIdx.y + 1) / gridDim.y;
    float sum[8] = {};
    for (; column < a.width && row < end; row += DOWN * AT_ONCE) {
        alignas(16) float d[AT_ONCE][8] = {}, seen[AT_ONCE][8] = {};
#pragma unroll
        for (int r = 0; r < AT_ONCE; r++) {
            int64_t i = (row + r * DOWN) * a.width + column;
            if (row + r * DOWN >= end) continue;
            run_load(d[r], a.dy, i);
            if (a.act != ACT_NONE) run_load(seen[r], a.seen, i);
        }
#pragma unroll
        for (int r = 0; r < AT_ONCE; r++) {
            slope_seen(a.act, d[r], seen[r]);
            if (a.dz.data && row + r * DOWN < end) run_store(a.dz, (row + r * DOWN) * a.width + column, d[r]);
#pragma unroll
            for (int e = 0; e < 8; e++) sum[e] += d[r][e];
        }
    }
    if (!a.sums) return;
#pragma unroll
    for (int e = 0; e < 8; e++) room[ty][tx * 8 + e] = sum[e];
    __syncthreads();
    int to = blockIdx.x * STRIP + threadIdx.x;
    if (threadIdx.x >= STRIP || to >= a.width) return;
    float total = 0;
#pragma unroll
    for (int r = 0; r < DOWN; r++) total += room[r][threadIdx.x];
    a.sums[(int64_t)blockIdx.y * a.width + to] = total;
}

enum { ADD_ACROSS = 32, ADD_DOWN = 8 };

static __global__ void bias_kernel(const float *sums, int parts, int width, view db) {
    cuda_begin();
    __shared__ float room[ADD_DOWN][ADD_ACROSS];
    int column = blockIdx.x * ADD_ACROSS + threadIdx.x;
    float sum = 0;
    if (column < width) {
#pragma unroll 8
        for (int p = threadIdx.y; p < parts; p += ADD_DOWN) sum += sums[(int64_t)p * width + column];
    }
    room[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y || column >= width) return;
    for (int r = 1; r < ADD_DOWN; r++) sum += room[r][threadIdx.x];
    view_put(db, column, sum);
}

// How many parts the rows are cut into, by sizes alone: enough blocks to fill a large card, of 32 rows at least.
static int64_t parts_of(const sizes &s) {
    int64_t parts = BLOCKS / ((s.O + STRIP - 1) / STRIP);
    if (parts > s.rows / (DOWN * AT_ONCE)) parts = s.rows / (DOWN * AT_ONCE);
    return parts < 1 ? 1 : parts > PARTS_MOST ? (int64_t)PARTS_MOST : parts;
}

static bool has_dz(const call *c) {
    return sizes_of(c).act != ACT_NONE || c->dout[0].type != c->out[0].type;
}

static size_t dz_bytes(const call *c) {
    size_t bytes = (size_t)operand_count(&c->out[0]) * dtype_bytes(c->out[0].type);
    return has_dz(c) ? (bytes + 255) / 256 * 256 : 0;
}

static size_t sums_bytes(const sizes &s) {
    return ((size_t)(parts_of(s) * s.O) * sizeof(float) + 255) / 256 * 256;
}

// dz, which is put at `room` unless it is dy, and db.
static const void *take_slope(const call *c, char *room) {
    sizes s = sizes_of(c);
    slope_args a = {view_of(&c->dout[0]), view_of(&c->out[0]), view{has_dz(c) ? room : NULL, (int)s.type, false}, s.act,
        (int)s.O, s.rows, c->din[2].data ? (float *)(room + dz_bytes(c)) : NULL};
    if (s.act == ACT_GELU) a.seen = view{c->reserve, DTYPE_F32, false};
    dim3 grid((unsigned)((s.O + STRIP - 1) / STRIP), (unsigned)parts_of(s));
    if (a.dz.data || a.sums) LAUNCH_EARLY(c, slope_kernel, grid, THREADS, 0, a);
    if (a.sums)
        LAUNCH_EARLY(c, bias_kernel, (unsigned)((s.O + ADD_ACROSS - 1) / ADD_ACROSS), dim3(ADD_ACROSS, ADD_DOWN), 0,
            (const float *)a.sums, (int)parts_of(s), (int)s.O, view_of(&c->din[2]));
    return a.dz.data ? a.dz.data : c->dout[0].data;
}

void large_backward(const call *c) {
    sizes s = sizes_of(c);
    blaslt_shape dx = shape_dx(c), dw = shape_dw(c);
    narrow_jobs j = {};
    char *start = aligned(c->scratch), *room = start + dz_bytes(c) + sums_bytes(s);
    const void *w = c->din[0].data ? narrowed(&j, &c->in[1], s.type, &room) : NULL;
    const void *x = c->din[1].data ? narrowed(&j, &c->in[0], s.type, &room) : NULL;
    narrow(c, j);
    const void *dz = take_slope(c, start);
    blaslt_data to_dx = {dz, w, NULL, c->din[0].data, c->din[0].add};
    blaslt_data to_dw = {dz, x, NULL, c->din[1].data, c->din[1].add};
    if (c->din[0].data) blaslt_multiply(c, &dx, &to_dx, room);
    if (c->din[1].data) blaslt_multiply(c, &dw, &to_dw, room);
}

size_t large_scratch(const call *c) {
    if (!is_large(c)) return 0;
    sizes s = sizes_of(c);
    size_t own = c->backward ? dz_bytes(c) + sums_bytes(s) : narrow_bytes(&c->in[2], s.type);
    return own + narrow_bytes(&c->in[0], s.type) + narrow_bytes(&c->in[1], s.type) + BLASLT_ROOM + 256;
}
