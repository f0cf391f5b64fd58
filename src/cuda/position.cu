// position on the card: see ops/position.c. A thread does a few neighbouring elements of the table: of all samples forward,
// of a part of them backward, where the parts' sums are then added in order.
#include "cuda/quad.cuh"

enum { THREADS = 128, PARTS_MOST = 128, SAMPLES = 4, ADD_ACROSS = 32, ADD_DOWN = 8 };

struct position_args {
    view x, table, y; // backward: dx, none, and dy
    float *part;      // [parts][n], or NULL
    int64_t B, n;
};

template <int WIDTH> static __global__ void forward_kernel(const __grid_constant__ position_args a) {
    cuda_begin();
    int64_t i = ((int64_t)blockIdx.x * THREADS + threadIdx.x) * WIDTH;
    if (i >= a.n) return;
    quad table = part_load<WIDTH>(a.table, i);
#pragma unroll 4
    for (int64_t b = a.B * blockIdx.y / gridDim.y; b < a.B * (blockIdx.y + 1) / gridDim.y; b++)
        part_put<WIDTH>(a.y, b * a.n + i, quad_add(part_load<WIDTH>(a.x, b * a.n + i), table));
}

template <int WIDTH> static __global__ void backward_kernel(const __grid_constant__ position_args a) {
    cuda_begin();
    int64_t i = ((int64_t)blockIdx.x * THREADS + threadIdx.x) * WIDTH;
    if (i >= a.n) return;
    quad sum = {};
#pragma unroll 4
    for (int64_t b = a.B * blockIdx.y / gridDim.y; b < a.B * (blockIdx.y + 1) / gridDim.y; b++) {
        quad d = part_load<WIDTH>(a.y, b * a.n + i);
        if (a.x.data) part_put<WIDTH>(a.x, b * a.n + i, d);
        sum = quad_add(sum, d);
    }
    view to = {a.part, DTYPE_F32, false};
    if (a.part) part_put<WIDTH>(to, (int64_t)blockIdx.y * a.n + i, sum);
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

static dim3 grid_of(const position_args &a, int width) {
    return dim3((unsigned)((a.n / width + THREADS - 1) / THREADS), (unsigned)parts_of(a));
}

static void forward(const call *c) {
    position_args a = args_of(c);
    a.x = view_of(&c->in[0]);
    a.table = view_of(&c->in[1]);
    a.y = view_of(&c->out[0]);
    a.y.add = false;
    if (a.n % QUAD == 0)
        LAUNCH_EARLY(c, forward_kernel<QUAD>, grid_of(a, QUAD), THREADS, 0, a);
    else
        LAUNCH_EARLY(c, forward_kernel<1>, grid_of(a, 1), THREADS, 0, a);
}

static void backward(const call *c) {
    position_args a = args_of(c);
    a.x = view_of(&c->din[0]);
    a.y = view_of(&c->dout[0]);
    a.part = c->din[1].data ? (float *)c->scratch : NULL;
    if (a.n % QUAD == 0)
        LAUNCH_EARLY(c, backward_kernel<QUAD>, grid_of(a, QUAD), THREADS, 0, a);
    else
        LAUNCH_EARLY(c, backward_kernel<1>, grid_of(a, 1), THREADS, 0, a);
    if (a.part)
        LAUNCH_EARLY(c, add_kernel, blocks_for(a.n, ADD_ACROSS), dim3(ADD_ACROSS, ADD_DOWN), 0, a.part, parts_of(a),
            view_of(&c->din[1]), a.n);
}

static size_t scratch(const call *c) {
    position_args a = args_of(c);
    return c->backward ? (size_t)parts_of(a) * (size_t)a.n * sizeof(float) : 0;
}

extern "C" const kernel cuda_position = {forward, backward, scratch, NULL};
