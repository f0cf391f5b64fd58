// The sample that a row takes: see ops/draw.c.
#ifndef TRADEWIND_CUDA_OPS_DRAW_CUH
#define TRADEWIND_CUDA_OPS_DRAW_CUH

#include "cuda/cuda.cuh"

extern "C" {
#include "base/rng.h"
}

struct drawn {
    int32_t sample;
    float weight;
};

CUDA_FN drawn draw_row(step now, int64_t r) {
    const step_cursor *s = now.cursor;
    uint64_t at = s->position + s->row + (uint64_t)r;
    bool inside = at < s->count;
    uint64_t place = inside ? at : 0;
    if (inside && s->shuffle) place = rng_permute(now.progress->seed, s->epoch, at, s->count);
    return drawn{(int32_t)step_sample(s, place), inside ? 1.0f : 0.0f};
}

#endif
