// draw on the card: see ops/draw.c.
#include "cuda/cuda.cuh"

extern "C" {
#include "base/rng.h"
}

static __global__ void forward_kernel(const step *s, int32_t *index, view weight, int64_t rows) {
    FOR_EACH(r, rows) {
        uint64_t at = s->position + s->row + (uint64_t)r;
        bool inside = at < s->count;
        uint64_t sample = inside ? at : 0;
        if (inside && s->shuffle) sample = rng_permute(s->seed, s->epoch, at, s->count);
        index[r] = (int32_t)(s->first + sample);
        view_store(weight, r, inside ? 1.0f : 0.0f);
    }
}

static void forward(const call *c) {
    int64_t rows = operand_count(&c->out[0]);
    LAUNCH(c, forward_kernel, blocks_for(rows, 128), 128, 0, c->step, (int32_t *)c->out[0].data, view_of(&c->out[1]), rows);
}

extern "C" const kernel cuda_draw = {forward, NULL, NULL, NULL};
