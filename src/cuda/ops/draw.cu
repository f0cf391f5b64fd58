// draw on the card: see ops/draw.c.
#include "cuda/ops/draw.cuh"

static __global__ void forward_kernel(step s, int32_t *index, view weight, int64_t rows) {
    FOR_EACH(r, rows) {
        drawn d = draw_row(s, r);
        index[r] = d.sample;
        view_store(weight, r, d.weight);
    }
}

static void forward(const call *c) {
    int64_t rows = operand_count(&c->out[0]);
    LAUNCH(c, forward_kernel, blocks_for(rows, 128), 128, 0, c->step, (int32_t *)c->out[0].data, view_of(&c->out[1]),
        rows);
}

extern "C" const kernel cuda_draw = {forward, NULL, NULL, NULL};
