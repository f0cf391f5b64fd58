// mean_time on the card: see ops/mean_time.c. A thread does a few neighbouring columns of a sample.
#include "cuda/octet.cuh"

enum { ACROSS = 32, DOWN = 4, AT_ONCE = 8 };

struct mean_args {
    view x, mask; // backward: x is dx
    view y;       // backward: dy
    int64_t B, T, C;
};

CUDA_FN bool is_step(const mean_args &a, int64_t b, int64_t t) {
    return !a.mask.data || view_load(a.mask, b * a.T + t) != 0;
}

CUDA_FN float share(const mean_args &a, int64_t b) {
    int64_t steps = a.mask.data ? 0 : a.T;
    for (int64_t t = 0; a.mask.data && t < a.T; t++) steps += is_step(a, b, t);
    return steps ? 1.0f / (float)steps : 0.0f;
}

// A block does 32 runs of columns; a thread adds every fourth step of its run, several of which are on their way at once,
// and the threads' sums are added in order. TYPE: of x (cuda/octet.cuh).
template <int WIDTH, int TYPE>
static __global__ void __launch_bounds__(ACROSS * DOWN) forward_kernel(const __grid_constant__ mean_args a) {
    cuda_begin();
    __shared__ quad sums[DOWN][ACROSS];
    __shared__ int counts[DOWN][ACROSS];
    int64_t i = (int64_t)blockIdx.x * ACROSS + threadIdx.x, b = i * WIDTH / a.C, j = i * WIDTH % a.C;
    view x = {a.x.data, type_in<TYPE>(a.x), false};
    quad sum = {};
    int steps = 0;
    for (int64_t t0 = threadIdx.y; b < a.B && t0 < a.T; t0 += DOWN * AT_ONCE) {
        quad v[AT_ONCE];
        bool in[AT_ONCE];
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++) in[u] = t0 + u * DOWN < a.T && is_step(a, b, t0 + u * DOWN);
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++) v[u] = in[u] ? part_load<WIDTH>(x, (b * a.T + t0 + u * DOWN) * a.C + j) : quad{};
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++) sum = quad_add(sum, v[u]);
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++) steps += in[u];
    }
    sums[threadIdx.y][threadIdx.x] = sum;
    counts[threadIdx.y][threadIdx.x] = steps;
    __syncthreads();
    if (threadIdx.y || b >= a.B) return;
    for (int d = 1; d < DOWN; d++) {
        sum = quad_add(sum, sums[d][threadIdx.x]);
        steps += counts[d][threadIdx.x];
    }
    part_put<WIDTH>(a.y, i * WIDTH, quad_times(sum, steps ? 1.0f / (float)steps : 0.0f));
}

template <int WIDTH> static __global__ void backward_kernel(const __grid_constant__ mean_args a) {
    cuda_begin();
    FOR_EACH(i, a.B * a.C / WIDTH) {
        int64_t b = i * WIDTH / a.C, j = i * WIDTH % a.C;
        quad d = quad_times(part_load<WIDTH>(a.y, i * WIDTH), share(a, b));
#pragma unroll 4
        for (int64_t t = 0; t < a.T; t++)
            part_put<WIDTH>(a.x, (b * a.T + t) * a.C + j, is_step(a, b, t) ? d : quad{});
    }
}

static mean_args args_of(const call *c) {
    shape s = c->in[0].shape;
    return mean_args{view_of(&c->in[0]), view_of(&c->in[1]), view_of(&c->out[0]), s.dim[0], s.dim[1], s.dim[2]};
}

static void forward(const call *c) {
    mean_args a = args_of(c);
    a.y.add = false;
    dim3 threads(ACROSS, DOWN);
    unsigned blocks = (unsigned)((a.B * a.C / (a.C % QUAD ? 1 : QUAD) + ACROSS - 1) / ACROSS);
    if (a.C % QUAD) {
        LAUNCH_EARLY(c, (forward_kernel<1, TYPE_ANY>), blocks, threads, 0, a);
    } else if (a.x.type == DTYPE_F32) {
        LAUNCH_EARLY(c, (forward_kernel<QUAD, DTYPE_F32>), blocks, threads, 0, a);
    } else {
        LAUNCH_EARLY(c, (forward_kernel<QUAD, TYPE_ANY>), blocks, threads, 0, a);
    }
}

static void backward(const call *c) {
    mean_args a = args_of(c);
    a.x = view_of(&c->din[0]);
    a.y = view_of(&c->dout[0]);
    if (a.C % QUAD == 0)
        LAUNCH_EARLY(c, backward_kernel<QUAD>, blocks_for(a.B * a.C / QUAD, 128), 128, 0, a);
    else
        LAUNCH_EARLY(c, backward_kernel<1>, blocks_for(a.B * a.C, 128), 128, 0, a);
}

extern "C" const kernel cuda_mean_time = {forward, backward, NULL, NULL};
