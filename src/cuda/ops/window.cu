// window on the card: see ops/window.c. One block a window.
#include "cuda/cuda.cuh"

struct window_args {
    view part[WINDOW_PARTS_MOST];
    int64_t begin[WINDOW_PARTS_MOST + 1]; // a part's first column
    int parts;
    int64_t C, T;
    const float *scaler;
};

// Element i of the rows from `row` on, their parts side by side, scaled.
CUDA_FN float series_at(const window_args &s, int64_t row, int64_t i) {
    if (s.parts == 1 && !s.scaler) return view_load(s.part[0], row * s.C + i);
    int64_t r = row + i / s.C, column = i % s.C;
    int k = 0;
    while (column >= s.begin[k + 1]) k++;
    float v = view_load(s.part[k], r * (s.begin[k + 1] - s.begin[k]) + column - s.begin[k]);
    return s.scaler ? __fmul_rn(__fsub_rn(v, s.scaler[column]), s.scaler[s.C + column]) : v;
}

static __global__ void forward_kernel(
    const __grid_constant__ window_args s, const int32_t *rows, const int32_t *firsts, view out, view mask) {
    int64_t b = blockIdx.x, row = rows[b], first = firsts[b], C = s.C, T = s.T;
    int64_t have = row - first + 1 < T ? row - first + 1 : T, pad = T - have, from = row - have + 1;
    for (int64_t i = threadIdx.x; i < T * C; i += blockDim.x)
        view_store(out, b * T * C + i, i < pad * C ? 0 : series_at(s, from, i - pad * C));
    for (int64_t t = threadIdx.x; t < T; t += blockDim.x) view_store(mask, b * T + t, t >= pad ? 1.0f : 0.0f);
}

static void forward(const call *c) {
    const window_attr *a = (const window_attr *)c->attr;
    window_args s = {};
    s.parts = window_parts(c->inputs);
    for (int k = 0; k < s.parts; k++) {
        const operand *part = &c->in[window_input(k)];
        s.part[k] = view_of(part);
        s.begin[k + 1] = s.begin[k] + part->shape.dim[1];
    }
    s.C = s.begin[s.parts];
    s.T = a->length;
    s.scaler = (const float *)c->in[WINDOW_SCALER].data;
    LAUNCH(c, forward_kernel, (unsigned)c->in[WINDOW_ROW].shape.dim[0], 128, 0, s,
        (const int32_t *)c->in[WINDOW_ROW].data, (const int32_t *)c->in[WINDOW_FIRST].data, view_of(&c->out[0]),
        view_of(&c->out[1]));
}

extern "C" const kernel cuda_window = {forward, NULL, NULL, NULL};
