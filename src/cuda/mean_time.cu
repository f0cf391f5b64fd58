// mean_time on the card: see ops/mean_time.c. A thread does a few neighbouring columns of a sample.
#include "cuda/quad.cuh"

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

template <int WIDTH> static __global__ void forward_kernel(const __grid_constant__ mean_args a) {
    cuda_begin();
    FOR_EACH(i, a.B * a.C / WIDTH) {
        int64_t b = i * WIDTH / a.C, j = i * WIDTH % a.C;
        quad sum = {};
#pragma unroll 8
        for (int64_t t = 0; t < a.T; t++)
            if (is_step(a, b, t)) sum = quad_add(sum, part_load<WIDTH>(a.x, (b * a.T + t) * a.C + j));
        part_put<WIDTH>(a.y, i * WIDTH, quad_times(sum, share(a, b)));
    }
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
    if (a.C % QUAD == 0)
        LAUNCH_EARLY(c, forward_kernel<QUAD>, blocks_for(a.B * a.C / QUAD, 128), 128, 0, a);
    else
        LAUNCH_EARLY(c, forward_kernel<1>, blocks_for(a.B * a.C, 128), 128, 0, a);
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
