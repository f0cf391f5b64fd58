// layernorm on the card: see ops/layernorm.c. A warp a row; the columns' sums in fixed pieces of rows.
#include "cuda/cuda.cuh"

enum { ROWS = 4, PIECES = 64 };

struct moments {
    float mean, scale;
};

CUDA_FN float warp_sum(float v) {
    for (int d = 16; d; d >>= 1) v += __shfl_xor_sync(0xFFFFFFFFu, v, d);
    return v;
}

CUDA_FN moments moments_of(view x, int64_t at, int64_t C, float eps) {
    float x0 = view_load(x, at), sum = 0, square = 0;
    for (int64_t i = threadIdx.x; i < C; i += 32) sum += view_load(x, at + i) - x0;
    float mean = warp_sum(sum) / (float)C;
    for (int64_t i = threadIdx.x; i < C; i += 32) {
        float d = view_load(x, at + i) - x0 - mean;
        square += d * d;
    }
    return moments{mean, 1.0f / sqrtf(warp_sum(square) / (float)C + eps)};
}

static __global__ void forward_kernel(view x, view gain, view bias, view y, int64_t rows, int64_t C, float eps) {
    int64_t r = (int64_t)blockIdx.x * ROWS + threadIdx.y;
    if (r >= rows) return;
    moments m = moments_of(x, r * C, C, eps);
    float x0 = view_load(x, r * C);
    for (int64_t i = threadIdx.x; i < C; i += 32)
        view_store(y, r * C + i,
            (view_load(x, r * C + i) - x0 - m.mean) * m.scale * view_load(gain, i) + view_load(bias, i));
}

static __global__ void backward_kernel(view x, view gain, view dy, view dx, moments *kept, int64_t rows, int64_t C,
    float eps) {
    int64_t r = (int64_t)blockIdx.x * ROWS + threadIdx.y;
    if (r >= rows) return;
    moments m = moments_of(x, r * C, C, eps);
    float x0 = view_load(x, r * C), sum = 0, dot = 0;
    if (threadIdx.x == 0) kept[r] = m;
    for (int64_t i = threadIdx.x; i < C; i += 32) {
        float d = view_load(dy, r * C + i) * view_load(gain, i);
        sum += d;
        dot += d * (view_load(x, r * C + i) - x0 - m.mean) * m.scale;
    }
    sum = warp_sum(sum);
    dot = warp_sum(dot);
    for (int64_t i = threadIdx.x; dx.data && i < C; i += 32) {
        float xhat = (view_load(x, r * C + i) - x0 - m.mean) * m.scale;
        float d = view_load(dy, r * C + i) * view_load(gain, i);
        view_put(dx, r * C + i, m.scale * (d - (sum + xhat * dot) / (float)C));
    }
}

// Sums of a piece of rows, for every column: [PIECES][2][C].
static __global__ void columns_kernel(view x, view dy, const moments *kept, float *part, int64_t rows, int64_t C) {
    int64_t piece = blockIdx.y, i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= C) return;
    float gain = 0, bias = 0;
    for (int64_t r = piece * rows / PIECES; r < (piece + 1) * rows / PIECES; r++) {
        float d = view_load(dy, r * C + i);
        gain += d * (view_load(x, r * C + i) - view_load(x, r * C) - kept[r].mean) * kept[r].scale;
        bias += d;
    }
    part[(piece * 2) * C + i] = gain;
    part[(piece * 2 + 1) * C + i] = bias;
}

static __global__ void add_kernel(const float *part, view dgain, view dbias, int64_t C) {
    FOR_EACH(i, C) {
        float gain = 0, bias = 0;
        for (int p = 0; p < PIECES; p++) {
            gain += part[(p * 2) * C + i];
            bias += part[(p * 2 + 1) * C + i];
        }
        if (dgain.data) view_put(dgain, i, gain);
        if (dbias.data) view_put(dbias, i, bias);
    }
}

static float eps_of(const call *c) {
    return ((const layernorm_attr *)c->attr)->eps;
}

static void forward(const call *c) {
    int64_t C = operand_width(&c->in[0]), rows = operand_rows(&c->in[0]);
    LAUNCH(c, forward_kernel, (unsigned)((rows + ROWS - 1) / ROWS), dim3(32, ROWS), 0, view_of(&c->in[0]),
        view_of(&c->in[1]), view_of(&c->in[2]), view_of(&c->out[0]), rows, C, eps_of(c));
}

static size_t moments_bytes(const call *c) {
    return ((size_t)operand_rows(&c->in[0]) * sizeof(moments) + 63) / 64 * 64;
}

static void backward(const call *c) {
    int64_t C = operand_width(&c->in[0]), rows = operand_rows(&c->in[0]);
    moments *kept = (moments *)c->scratch;
    float *part = (float *)((char *)c->scratch + moments_bytes(c));
    LAUNCH(c, backward_kernel, (unsigned)((rows + ROWS - 1) / ROWS), dim3(32, ROWS), 0, view_of(&c->in[0]),
        view_of(&c->in[1]), view_of(&c->dout[0]), view_of(&c->din[0]), kept, rows, C, eps_of(c));
    LAUNCH(c, columns_kernel, dim3(blocks_for(C, 64), PIECES), 64, 0, view_of(&c->in[0]), view_of(&c->dout[0]), kept, part,
        rows, C);
    LAUNCH(c, add_kernel, blocks_for(C, 64), 64, 0, part, view_of(&c->din[1]), view_of(&c->din[2]), C);
}

static size_t scratch(const call *c) {
    return c->backward ? moments_bytes(c) + (size_t)(PIECES * 2 * operand_width(&c->in[0])) * sizeof(float) : 0;
}

extern "C" const kernel cuda_layernorm = {forward, backward, scratch, NULL};
