// action_std on the card: see ops/action_std.c. Without a latent a thread an element, with one a warp. Gradients: a
// block has ACROSS elements of log_std, and DOWN threads for each, which share out the rows and add theirs in order.
#include "cuda/ops/action_std.cuh"

enum { THREADS = 256, ACROSS = 32, DOWN = 16 };

static __global__ void __launch_bounds__(THREADS) forward_kernel(action_std_args a) {
    cuda_begin();
    action_std_each(a, team_launch());
}

static __global__ void __launch_bounds__(THREADS) latent_kernel(action_std_args a) {
    cuda_begin();
    TEAM_EACH_WARP(team_launch(), i, a.B * a.A) {
        int64_t b = i / a.A, k = i % a.A;
        double sum = 0;
        for (int64_t f = threadIdx.x % 32; f < a.F; f += 32) {
            double d = (double)view_load(a.latent, b * a.F + f) * exp((double)a.log_std[f * a.A + k]);
            sum += d * d;
        }
        for (int d = 16; d; d >>= 1) sum += __shfl_xor_sync(0xFFFFFFFFu, sum, d);
        if (threadIdx.x % 32 == 0) a.std[i] = (float)sqrt(sum + 1e-6);
    }
}

// A row's part of the gradient of element (f, k), but for the factor exp(2 log_std).
CUDA_FN double row_part(const action_std_args &a, view up, int64_t b, int64_t f, int64_t k) {
    double d = (double)view_load(up, b * a.A + k), s = (double)a.std[b * a.A + k];
    if (!a.F) return d * s;
    double l = (double)view_load(a.latent, b * a.F + f);
    return d * l * l / s;
}

static __global__ void __launch_bounds__(ACROSS *DOWN) backward_kernel(action_std_args a, view up, view to, int64_t n) {
    cuda_begin();
    __shared__ double room[DOWN][ACROSS];
    int64_t i = (int64_t)blockIdx.x * ACROSS + threadIdx.x;
    double sum = 0;
    if (i < n) {
#pragma unroll 4
        for (int64_t b = threadIdx.y; b < a.B; b += DOWN) sum += row_part(a, up, b, i / a.A, i % a.A);
    }
    room[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y || i >= n) return;
    for (int r = 1; r < DOWN; r++) sum += room[r][threadIdx.x];
    view_put(to, i, (float)(a.F ? sum * exp(2 * (double)a.log_std[i]) : sum));
}

static void forward(const call *c) {
    action_std_args a = action_std_args_of(c);
    if (a.F) {
        LAUNCH_EARLY(c, latent_kernel, blocks_for(a.B * a.A * 32, THREADS), THREADS, 0, a);
    } else {
        LAUNCH_EARLY(c, forward_kernel, blocks_for(a.B * a.A, THREADS), THREADS, 0, a);
    }
}

static void backward(const call *c) {
    int64_t n = operand_count(&c->in[2]);
    LAUNCH_EARLY(c, backward_kernel, (unsigned)((n + ACROSS - 1) / ACROSS), dim3(ACROSS, DOWN), 0,
        action_std_args_of(c), view_of(&c->dout[0]), view_of(&c->din[2]), n);
}

extern "C" const kernel cuda_action_std = {forward, backward, NULL, NULL};
