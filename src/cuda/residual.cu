#include "cuda/residual.cuh"

#include "cuda/life.cuh"

extern "C" {
#include "ops/ops.h"
}

// Matching. One launch reads and writes in no order, so what the second call writes must not lie where the first one reads.

static bool match_forward(const call *drop, const call *sum, residual_args *a) {
    if (drop->op != OP_dropout || drop->backward || !drop->training || sum->op != OP_axpby || sum->backward) return false;
    if (sum->in[1].data != drop->out[0].data || !sum->in[0].data || sum->in[0].data == sum->in[1].data) return false;
    if (life_meet(&sum->out[0], &drop->in[0])) return false;
    a->x = view_of(&sum->in[0]);
    a->y = view_of(&drop->in[0]);
    a->z = view_of(&sum->out[0]);
    a->between = view_of(&drop->out[0]);
    return true;
}

static bool match_backward(const call *sum, const call *drop, residual_args *a) {
    if (drop->op != OP_dropout || !drop->backward || sum->op != OP_axpby || !sum->backward) return false;
    if (!sum->din[1].data || sum->din[1].add || sum->din[1].data != drop->dout[0].data) return false;
    if (sum->din[0].data == sum->din[1].data || !sum->dout[0].data || !drop->din[0].data) return false;
    if (life_meet(&drop->din[0], &sum->dout[0])) return false;
    a->x = view_of(&sum->din[0]);
    a->y = view_of(&drop->din[0]);
    a->z = view_of(&sum->dout[0]);
    a->between = view_of(&sum->din[1]);
    a->backward = true;
    return true;
}

bool residual_match(const call *calls, int count, residual_args *a) {
    *a = residual_args{};
    if (count < 2 || !(match_forward(&calls[0], &calls[1], a) || match_backward(&calls[0], &calls[1], a))) return false;
    const axpby_attr *k = (const axpby_attr *)calls[a->backward ? 0 : 1].attr;
    a->drop = drop_args_of(&calls[a->backward ? 1 : 0]);
    a->a = k->a;
    a->b = k->b;
    if (a->drop.n % QUAD) return false;
    const operand *between = a->backward ? &calls[0].din[1] : &calls[0].out[0];
    if (life_over(between, calls + 2, count - 2)) a->between.data = NULL;
    return true;
}

// Kernels

static __global__ void forward_kernel(const __grid_constant__ residual_args a) {
    cuda_begin();
    step s = drop_step(a.drop);
    FOR_EACH(k, a.drop.rows * a.drop.quads) {
        quad x = quad_load(a.x, k * QUAD), y = quad_load(a.y, k * QUAD);
        y = drop(y, drop_factors(a.drop, s, k));
        if (a.between.data) quad_store(a.between, k * QUAD, y);
        quad_store(a.z, k * QUAD, quad_add(quad_times(x, a.a), quad_times(y, a.b)));
    }
}

static __global__ void backward_kernel(const __grid_constant__ residual_args a) {
    cuda_begin();
    step s = drop_step(a.drop);
    FOR_EACH(k, a.drop.rows * a.drop.quads) {
        quad dz = quad_load(a.z, k * QUAD), dy = quad_times(dz, a.b), factor = drop_factors(a.drop, s, k);
        if (a.x.data) quad_put(a.x, k * QUAD, quad_times(dz, a.a));
        if (a.between.data) quad_store(a.between, k * QUAD, dy);
        quad_put(a.y, k * QUAD, drop(dy, factor));
    }
}

void residual_launch(const call *c, const residual_args *a) {
    unsigned blocks = blocks_for(a->drop.rows * a->drop.quads, 256);
    if (a->backward) {
        LAUNCH_EARLY(c, backward_kernel, blocks, 256, 0, *a);
    } else {
        LAUNCH_EARLY(c, forward_kernel, blocks, 256, 0, *a);
    }
}
