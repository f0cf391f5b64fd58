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

CUDA_FN drawn draw_row(const step *s, int64_t r) {
    uint64_t at = s->position + s->row + (uint64_t)r;
    bool inside = at < s->count;
    uint64_t sample = inside ? at : 0;
    if (inside && s->shuffle) sample = rng_permute(s->seed, s->epoch, at, s->count);
    return drawn{(int32_t)(s->first + sample), inside ? 1.0f : 0.0f};
}

#endif
