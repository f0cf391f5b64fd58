#include "env/batch.h"

#include <string.h>

void env_see_rows(const env_settings *s, const env_data *d, env_dice first, int64_t *state, float *observation,
    int64_t begin, int64_t end) {
    int64_t words = env_words(s), columns = env_shape_of(s).observation;
    for (int64_t i = begin; i < end; i++) {
        env_dice dice = {first.seed, first.moment + (uint64_t)i, first.stream};
        env_begin(s, d, &dice, state + i * words);
        env_observe(s, d, state + i * words, observation + i * columns);
    }
}

void env_take_rows(const env_settings *s, const env_data *d, int64_t *state, const float *action, env_result *result,
    float *last, int64_t begin, int64_t end) {
    env_shape shape = env_shape_of(s);
    int64_t words = env_words(s);
    for (int64_t i = begin; i < end; i++) {
        result[i] = env_step(s, d, state + i * words, action + i * shape.action);
        if (result[i].end != ENV_GOES_ON) env_observe(s, d, state + i * words, last + i * shape.observation);
    }
}

const char *env_name(env_kind k) {
    static const char *const names[] = {
#define ENV(name) #name,
#include "env/env.def"
#undef ENV
    };
    return k < ENV_COUNT ? names[k] : NULL;
}

env_kind env_find(const char *name) {
    int k = 0;
    while (k < ENV_COUNT && strcmp(env_name((env_kind)k), name) != 0) k++;
    return (env_kind)k;
}
