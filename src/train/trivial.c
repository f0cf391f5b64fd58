#include "train/trivial.h"

#include "data/target.h"
#include "train/metric.h"
#include "train/naive.h"

#include <string.h>

static const struct {
    const char *name, *title;
} texts[TRIVIAL_KINDS] = {[TRIVIAL_MAJORITY] = {"majority", "majority class"},
    [TRIVIAL_PRIOR] = {"prior", "prior"},
    [TRIVIAL_ZERO] = {"zero", "zero forecast"},
    [TRIVIAL_MEAN] = {"mean", "training mean"},
    [TRIVIAL_LAST] = {"last_value", "last value"},
    [TRIVIAL_SEASONAL] = {"seasonal", "last season"}};

const char *trivial_title(trivial_kind k) {
    return texts[k].title;
}

const char *trivial_name(trivial_kind k) {
    return texts[k].name;
}

int trivial_list(unsigned task, const dataset *d, int64_t season, trivial_kind list[TRIVIAL_MOST]) {
    int n = 0;
    if (task & METRIC_CLASSES) {
        list[n++] = TRIVIAL_MAJORITY;
        list[n++] = TRIVIAL_PRIOR;
        return n;
    }
    if (task & METRIC_SERIES) {
        list[n++] = TRIVIAL_LAST;
        if (season > 1) list[n++] = TRIVIAL_SEASONAL;
        return n;
    }
    target_kind kind = target_kind_of(d);
    list[n++] = kind == TARGET_CLOSES ? TRIVIAL_LAST : TRIVIAL_ZERO;
    if (kind == TARGET_VALUES) list[n++] = TRIVIAL_MEAN;
    return n;
}

void trivial_shares(const dataset *d, const split_part *train, double *share) {
    memset(share, 0, (size_t)d->classes * sizeof *share);
    for (int64_t k = 0; k < train->count; k++) share[d->label[part_sample(train, k)]] += 1 / (double)train->count;
}

int trivial_majority(const double *share, int classes) {
    int best = 0;
    for (int k = 1; k < classes; k++)
        if (share[k] > share[best]) best = k;
    return best;
}

double trivial_mean(const dataset *d, const split_part *train) {
    double sum = 0, n = (double)train->count * (double)d->target_width;
    for (int64_t k = 0; k < train->count; k++)
        for (int64_t i = 0; i < d->target_width; i++)
            sum += (double)d->target[part_sample(train, k) * d->target_width + i] / n;
    return sum;
}

void trivial_forecast(trivial_kind k, const trivial_inputs *in, double *forecast, int64_t horizon) {
    double level = 0;
    if (k == TRIVIAL_SEASONAL) {
        naive_seasonal(in->known, in->n, in->season, forecast, horizon);
        return;
    }
    if (k == TRIVIAL_MEAN) level = in->mean;
    if (k == TRIVIAL_LAST) level = in->n ? in->known[in->n - 1] : in->price;
    for (int64_t i = 0; i < horizon; i++) forecast[i] = level;
}
