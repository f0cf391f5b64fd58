#include "data/volatility.h"

#include "data/feature_gauge.h"

#include <math.h>
#include <stdlib.h>

struct volatility {
    gauge *gauge;
    int mean, variance; // slots
};

volatility *volatility_new(int64_t bars, err *e) {
    volatility *v = calloc(1, sizeof *v);
    if (!v) {
        err_run(e, "no memory for a volatility");
        return NULL;
    }
    v->gauge = gauge_new(1, 2, e);
    if (!v->gauge) goto done;
    v->mean = gauge_mean(v->gauge, GAUGE_RETURN, (int)bars);
    v->variance = gauge_variance(v->gauge, GAUGE_RETURN, (int)bars);
    if (gauge_start(v->gauge, e)) return v;
done:
    volatility_free(v);
    return NULL;
}

void volatility_free(volatility *v) {
    if (!v) return;
    gauge_free(v->gauge);
    free(v);
}

double volatility_push(volatility *v, const bar *b) {
    gauge_push(v->gauge, b);
    const double *x = gauge_values(v->gauge);
    if (gauge_count(v->gauge) <= gauge_first(v->gauge, v->mean)) return -1;
    return sqrt(x[v->variance] + x[v->mean] * x[v->mean]);
}

size_t volatility_state(const volatility *v) {
    return gauge_state(v->gauge);
}

void volatility_save(const volatility *v, double *to) {
    gauge_save(v->gauge, to);
}

bool volatility_load(volatility *v, const double *from) {
    return gauge_load(v->gauge, from);
}
