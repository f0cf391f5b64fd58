// Environments of a batch on the host.
#ifndef TRADEWIND_ENV_BATCH_H
#define TRADEWIND_ENV_BATCH_H

#include "env/each.h"

// Rows begin .. end - 1 of a batch: states [n, env_words], observations [n, columns]. `moment` is that of row 0.
void env_see_rows(const env_settings *s, const env_data *d, env_dice first, int64_t *state, float *observation,
    int64_t begin, int64_t end);

// Actions [n, columns] of these rows; last observations of episodes that end, other rows of `last` stay as they are.
void env_take_rows(const env_settings *s, const env_data *d, int64_t *state, const float *action, env_result *result,
    float *last, int64_t begin, int64_t end);

// "cartpole", or NULL; ENV_COUNT where there is none of that name.
const char *env_name(env_kind k);
env_kind env_find(const char *name);

#endif
