// position on the card: see ops/position.c. A thread does eight neighbouring elements of the table, or one where they
// are no multiple of eight, in a part of the samples, several of them on their way at once; backward the parts' sums
// are then added in order.
#include "cuda/octet.cuh"

enum { THREADS = 128, PARTS_MOST = 128, SAMPLES = 4, ADD_ACROSS = 32, ADD_DOWN = 8 };

struct position_args {
    view x, table, y; // backward: dx, none, and dy
    float *part;      // [parts][n], or NULL
    int64_t B, n;
};

// A block's samples.
struct position_span {
    int64_t begin, end;
};

CUDA_FN position_span span_of(const position_args &a) {
    return position_span{a.B * blockIdx.y / gridDim.y, a.B * (blockIdx.y + 1) / gridDim.y};
}

// Elements at i of SAMPLES samples from b on, 0 where there are none.
struct position_some {
    octet_raw o[SAMPLES];
};

CUDA_FN position_some some_fetch(const view &from, int64_t n, int64_t b, int64_t end, int64_t i) {
    position_some s = {};
#pragma unroll
    for (int u = 0; u < SAMPLES; u++)
        if (b + u < end) s.o[u] = octet_fetch<TYPE_ANY>(from, (b + u) * n + i);
    return s;
}

static __global__ void __launch_bounds__(THREADS) forward_kernel(const __grid_constant__ position_args a) {
    cuda_begin();
    int64_t i = ((int64_t)blockIdx.x * THREADS + threadIdx.x) * OCTET;
    if (i >= a.n) return;
    octet table = octet_load<TYPE_ANY>(a.table, i);
    position_span p = span_of(a);
    for (int64_t b = p.begin; b < p.end; b += SAMPLES) {
        position_some x = some_fetch(a.x, a.n, b, p.end, i);
#pragma unroll
        for (int u = 0; u < SAMPLES; u++)
            if (b + u < p.end)
                octet_store<TYPE_ANY>(a.y, (b + u) * a.n + i, octet_add(octet_of<TYPE_ANY>(a.x, x.o[u]), table));
    }
}

static __global__ void __launch_bounds__(THREADS) backward_kernel(const __grid_constant__ position_args a) {
    cuda_begin();
    int64_t i = ((int64_t)blockIdx.x * THREADS + threadIdx.x) * OCTET;
    if (i >= a.n) return;
    octet sum = {};
    position_span p = span_of(a);
    for (int64_t b = p.begin; b < p.end; b += SAMPLES) {
        position_some dy = some_fetch(a.y, a.n, b, p.end, i);
#pragma unroll
        for (int u = 0; u < SAMPLES; u++) {
            octet d = octet_of<TYPE_ANY>(a.y, dy.o[u]);
            if (b + u >= p.end) continue;
            if (a.x.data) octet_put<TYPE_ANY>(a.x, (b + u) * a.n + i, d);
            sum = octet_add(sum, d);
        }
    }
    view to = {a.part, DTYPE_F32, false};
    if (a.part) octet_store<DTYPE_F32>(to, (int64_t)blockIdx.y * a.n + i, sum);
}

// Tables of any size

static __global__ void forward_any(const __grid_constant__ position_args a) {
    cuda_begin();
    int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    position_span p = span_of(a);
    for (int64_t b = p.begin; i < a.n && b < p.end; b++)
        view_store(a.y, b * a.n + i, view_load(a.x, b * a.n + i) + view_load(a.table, i));
}

static __global__ void backward_any(const __grid_constant__ position_args a) {
    cuda_begin();
    int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    position_span p = span_of(a);
    float sum = 0;
    if (i >= a.n) return;
    for (int64_t b = p.begin; b < p.end; b++) {
        float d = view_load(a.y, b * a.n + i);
        if (a.x.data) view_put(a.x, b * a.n + i, d);
        sum += d;
    }
    if (a.part) a.part[blockIdx.y * a.n + i] = sum;
}

static __global__ void add_kernel(const float *part, int parts, view dtable, int64_t n) {
    cuda_begin();
    __shared__ float room[ADD_DOWN][ADD_ACROSS];
    int64_t i = (int64_t)blockIdx.x * ADD_ACROSS + threadIdx.x;
    float sum = 0;
    if (i < n) {
#pragma unroll 8
        for (int p = threadIdx.y; p < parts; p += ADD_DOWN) sum += part[p * n + i];
    }
    room[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y || i >= n) return;
    for (int r = 1; r < ADD_DOWN; r++) sum += room[r][threadIdx.x];
    view_put(dtable, i, sum);
}

static position_args args_of(const call *c) {
    position_args a = {};
    a.n = operand_count(&c->in[1]);
    a.B = operand_count(&c->in[0]) / a.n;
    return a;
}

// How many parts the samples are cut into, by sizes alone.
static int parts_of(const position_args &a) {
    int64_t parts = (a.B + SAMPLES - 1) / SAMPLES;
    return parts < PARTS_MOST ? (int)parts : (int)PARTS_MOST;
}

static bool is_octets(const position_args &a) {
    return a.n % OCTET == 0 && a.x.type <= DTYPE_BF16 && a.y.type <= DTYPE_BF16;
}

static dim3 grid_of(const position_args &a) {
    int64_t threads = is_octets(a) ? a.n / OCTET : a.n;
    return dim3((unsigned)((threads + THREADS - 1) / THREADS), (unsigned)parts_of(a));
}

static void forward(const call *c) {
    position_args a = args_of(c);
    a.x = view_of(&c->in[0]);
    a.table = view_of(&c->in[1]);
    a.y = view_of(&c->out[0]);
    if (is_octets(a))
        LAUNCH_EARLY(c, forward_kernel, grid_of(a), THREADS, 0, a);
    else
        LAUNCH_EARLY(c, forward_any, grid_of(a), THREADS, 0, a);
}

static void backward(const call *c) {
    position_args a = args_of(c);
    a.x = view_of(&c->din[0]);
    a.y = view_of(&c->dout[0]);
    a.part = c->din[1].data ? (float *)c->scratch : NULL;
    if (is_octets(a))
        LAUNCH_EARLY(c, backward_kernel, grid_of(a), THREADS, 0, a);
    else
        LAUNCH_EARLY(c, backward_any, grid_of(a), THREADS, 0, a);
    if (a.part)
        LAUNCH_EARLY(c, add_kernel, blocks_for(a.n, ADD_ACROSS), dim3(ADD_ACROSS, ADD_DOWN), 0, a.part, parts_of(a),
            view_of(&c->din[1]), a.n);
}

static size_t scratch(const call *c) {
    position_args a = args_of(c);
    return c->backward ? (size_t)parts_of(a) * (size_t)a.n * sizeof(float) : 0;
}

extern "C" const kernel cuda_position = {forward, backward, scratch, NULL};
