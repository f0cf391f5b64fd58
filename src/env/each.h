// One environment of a batch, of any kind: episodes that begin, go on and end. One source for C and for nvcc.
//
// A state is `env_words` words of 8 bytes: a head, then the state of the kind. All zeros is one whose episode has not
// begun; env_begin begins it.
#ifndef TRADEWIND_ENV_EACH_H
#define TRADEWIND_ENV_EACH_H

#include "env/cartpole.h"
#include "env/market.h"
#include "env/pendulum.h"

typedef struct {
    int32_t live;  // an episode is under way
    int32_t steps; // of it
    double total;  // its rewards
} env_head;

ENV_FN env_shape env_shape_of(const env_settings *s) {
    switch (s->kind) {
#define ENV(name)                                                                                                      \
    case ENV_##name:                                                                                                   \
        return name##_shape(s);
#include "env/env.def"
#undef ENV
    default: break;
    }
    env_shape none = {0, 0, 0, 0};
    return none;
}

ENV_FN int64_t env_words(const env_settings *s) {
    switch (s->kind) {
#define ENV(name)                                                                                                      \
    case ENV_##name:                                                                                                   \
        return (int64_t)(sizeof(env_head) + sizeof(name##_state) + 7) / 8;
#include "env/env.def"
#undef ENV
    default: break;
    }
    return 0;
}

// Where no episode is under way, one begins.
ENV_FN void env_begin(const env_settings *s, const env_data *d, const env_dice *dice, int64_t *state) {
    env_head *h = (env_head *)state;
    void *own = h + 1;
    if (h->live) return;
    h->live = 1;
    h->steps = 0;
    h->total = 0;
    switch (s->kind) {
#define ENV(name)                                                                                                      \
    case ENV_##name:                                                                                                   \
        name##_reset(s, d, dice, (name##_state *)own);                                                                 \
        break;
#include "env/env.def"
#undef ENV
    default: break;
    }
}

// The observation, of `env_shape.observation` columns.
ENV_FN void env_observe(const env_settings *s, const env_data *d, const int64_t *state, float *to) {
    const void *own = (const env_head *)state + 1;
    switch (s->kind) {
#define ENV(name)                                                                                                      \
    case ENV_##name:                                                                                                   \
        name##_observe(s, d, (const name##_state *)own, to);                                                           \
        break;
#include "env/env.def"
#undef ENV
    default: break;
    }
}

// Outcome of a step.
typedef struct {
    double reward;
    double total;  // rewards of the episode so far
    int32_t steps; // of the episode so far
    env_end end;
} env_result;

// Takes an action. Where the episode ends, the state keeps its last observation, and waits for env_begin.
ENV_FN env_result env_step(const env_settings *s, const env_data *d, int64_t *state, const float *action) {
    env_head *h = (env_head *)state;
    void *own = h + 1;
    env_result r = {0, 0, 0, ENV_GOES_ON};
    switch (s->kind) {
#define ENV(name)                                                                                                      \
    case ENV_##name:                                                                                                   \
        r.end = name##_step(s, d, (name##_state *)own, action, &r.reward);                                             \
        break;
#include "env/env.def"
#undef ENV
    default: break;
    }
    r.steps = ++h->steps;
    r.total = h->total += r.reward;
    if (r.end == ENV_GOES_ON && s->limit && h->steps >= s->limit) r.end = ENV_TRUNCATED;
    if (r.end != ENV_GOES_ON) h->live = 0;
    return r;
}

#endif
