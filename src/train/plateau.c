#include "train/plateau.h"

#include <math.h>

void plateau_init(plateau *p, double lr) {
    *p = (plateau){.lr = lr, .best = (double)NAN};
}

static bool is_better(const plateau *p, const plateau_options *o, double value) {
    if (isnan(value)) return false;
    if (isnan(p->best)) return true;
    double margin = o->threshold * fabs(p->best);
    return o->higher ? value > p->best + margin : value < p->best - margin;
}

bool plateau_take(plateau *p, const plateau_options *o, double value) {
    if (is_better(p, o, value)) {
        p->best = value;
        p->waiting = 0;
        return false;
    }
    if (++p->waiting <= o->patience) return false;
    double before = p->lr;
    p->waiting = 0;
    p->lr = fmin(before, fmax(before * o->factor, o->least));
    if (p->lr == before) return false;
    p->falls++;
    return true;
}
