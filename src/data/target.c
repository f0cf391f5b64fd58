#include "data/target.h"

#include <math.h>
#include <string.h>

target_kind target_kind_of(const dataset *d) {
    const char *value = json_string_value(json_object_get(json_object_get(d->about, "label"), "value"));
    if (!value || !d->price) return TARGET_VALUES;
    return strcmp(value, "close") == 0 ? TARGET_CLOSES : TARGET_RETURNS;
}

// Runs over the targets of a part, in units of their level. `sum` gets what they are off `from`, `square` the squares.
static bool add_up(
    const dataset *d, const split_part *p, bool closes, double from, double *sum, double *square, err *e) {
    *sum = *square = 0;
    for (int64_t k = 0; k < p->count; k++) {
        int64_t sample = part_sample(p, k);
        const float *y = d->target + sample * d->target_width;
        double level = closes ? (double)d->price[sample] : 1;
        for (int64_t i = 0; i < d->target_width; i++) {
            double off = (double)y[i] / level - from;
            if (!isfinite(off))
                return err_input(e, "target %lld of sample %lld is not a finite number; clean the data",
                    (long long)i + 1, (long long)sample);
            *sum += off;
            *square += off * off;
        }
    }
    return true;
}

bool target_fit(const dataset *d, const split_part *train, target_scale *s, err *e) {
    target_kind kind = target_kind_of(d);
    bool closes = kind == TARGET_CLOSES;
    double mean = closes ? 1 : 0, n = (double)train->count * (double)d->target_width, sum, square;
    *s = (target_scale){0, 1};
    if (!(n > 0)) return true;
    if (kind == TARGET_VALUES) {
        double first = (double)d->target[part_first(train) * d->target_width];
        if (!add_up(d, train, closes, first, &sum, &square, e)) return false;
        mean = first + sum / n;
    }
    if (!add_up(d, train, closes, mean, &sum, &square, e)) return false;
    double std = sqrt(square / n);
    bool still = std < 1e-30 || std < 1e-12 * fabs(mean);
    *s = (target_scale){(float)mean, still ? 1 : (float)std};
    return true;
}
