// advance on the card: see ops/advance.c.
#include "cuda/cuda.cuh"

static __global__ void micro_kernel(step_cursor *s, uint64_t rows) {
    s->row += rows;
}

static __global__ void update_kernel(step s) {
    s.progress->update++;
    s.cursor->position += s.cursor->row;
    s.cursor->row = 0;
}

static void forward(const call *c) {
    if (((const advance_attr *)c->attr)->after_micro) {
        LAUNCH(c, micro_kernel, 1, 1, 0, c->step.cursor, (uint64_t)c->batch);
    } else {
        LAUNCH(c, update_kernel, 1, 1, 0, c->step);
    }
}

extern "C" const kernel cuda_advance = {forward, NULL, NULL, NULL};
