#include "train/stop.h"

#include <math.h>

bool stop_see(stop *s, int64_t epoch, double value) {
    bool better = !s->best_epoch || (s->lower ? value < s->best : value > s->best);
    s->bad++;
    if (!isfinite(value) || !better) return false;
    s->best_epoch = epoch;
    s->best = value;
    s->bad = 0;
    return true;
}

bool stop_now(const stop *s) {
    return s->bad >= s->patience;
}
