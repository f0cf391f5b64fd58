#include "rl/episodes.h"

#include <math.h>

void episodes_add(episodes *e, double total, double steps) {
    int64_t at = e->count++ % EPISODES_KEPT;
    e->total[at] = total;
    e->steps[at] = steps;
}

static double mean(const double *v, int64_t count) {
    int64_t n = count < EPISODES_KEPT ? count : EPISODES_KEPT;
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += v[i];
    return n ? sum / (double)n : NAN;
}

double episodes_reward(const episodes *e) {
    return mean(e->total, e->count);
}

double episodes_length(const episodes *e) {
    return mean(e->steps, e->count);
}
