// window on the card: see ops/window.c. One block a window.
#include "cuda/cuda.cuh"

struct shape_args {
    int64_t N, C, T;
    int scale;
};

static __global__ void forward_kernel(view series, const int32_t *rows, const int32_t *firsts, view out, view mask,
    view scales, shape_args s) {
    __shared__ float room[32];
    int64_t b = blockIdx.x, row = rows[b], first = firsts[b], C = s.C, T = s.T;
    int64_t have = row - first + 1 < T ? row - first + 1 : T, pad = T - have, from = (row - have + 1) * C;
    float scale = 1;
    if (s.scale == SCALE_MEAN_ABS) {
        float sum = 0;
        for (int64_t i = threadIdx.x; i < have * C; i += blockDim.x) sum += fabsf(view_load(series, from + i));
        sum = block_sum(sum, room);
        if (have > 0 && sum > 0) scale = sum / (float)(have * C);
    }
    for (int64_t i = threadIdx.x; i < T * C; i += blockDim.x) {
        float v = i < pad * C ? 0 : view_load(series, from + i - pad * C);
        view_store(out, b * T * C + i, scale == 1 ? v : v / scale);
    }
    for (int64_t t = threadIdx.x; t < T; t += blockDim.x) view_store(mask, b * T + t, t >= pad ? 1.0f : 0.0f);
    if (threadIdx.x == 0) view_store(scales, b, scale);
}

static void forward(const call *c) {
    const window_attr *a = (const window_attr *)c->attr;
    shape_args s = {c->in[0].shape.dim[0], c->in[0].shape.dim[1], a->length, (int)a->scale};
    LAUNCH(c, forward_kernel, (unsigned)c->in[1].shape.dim[0], 128, 0, view_of(&c->in[0]), (const int32_t *)c->in[1].data,
        (const int32_t *)c->in[2].data, view_of(&c->out[0]), view_of(&c->out[1]), view_of(&c->out[2]), s);
}

extern "C" const kernel cuda_window = {forward, NULL, NULL, NULL};
