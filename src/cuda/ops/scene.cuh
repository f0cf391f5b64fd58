// An environment as a launch has it: its settings and its data.
#ifndef TRADEWIND_CUDA_OPS_SCENE_CUH
#define TRADEWIND_CUDA_OPS_SCENE_CUH

#include "cuda/ops/team.cuh"
#include "env/each.h"
#include "ops/environment.h"

struct env_scene {
    env_attr attr;
    env_data data;
};

// The call's data are its inputs from `first` on.
static inline env_scene env_scene_of(const call *c, int first) {
    return env_scene{*(const env_attr *)c->attr, environment_data(c, first)};
}

#endif
