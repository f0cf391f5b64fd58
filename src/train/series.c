#include "train/series.h"

#include "train/metric.h"
#include "train/naive.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static double smape_term(double y, double f) {
    double size = fabs(y) + fabs(f);
    return size > 0 ? 200 * fabs(y - f) / size : 0;
}

void series_add(series_score *s, const double *known, int64_t n, int64_t window, int64_t season, const float *future,
    const float *forecast, int64_t horizon) {
    double *naive2 = malloc((size_t)horizon * sizeof *naive2), error = 0, naive2_error = 0, H = (double)horizon;
    int64_t seen = window && window < n ? window : n;
    NEED(naive2, "out of memory for a forecast of %lld values", (long long)horizon);
    if (season)
        naive_two(known, n, season, naive2, horizon);
    else
        memset(naive2, 0, (size_t)horizon * sizeof *naive2);
    for (int64_t i = 0; i < horizon; i++) {
        double y = (double)future[i], f = forecast ? (double)forecast[i] : naive2[i], e = fabs(y - f);
        s->square += e * e;
        error += e;
        naive2_error += fabs(y - naive2[i]);
        s->smape += smape_term(y, f) / H;
        if (season) s->naive2_smape += smape_term(y, naive2[i]) / H;
    }
    free(naive2);
    s->forecasts++;
    s->values += H;
    s->absolute += error;
    double scale = season ? naive_scale(known + n - seen, seen, season) : 0;
    if (!(scale > 0)) return;
    s->scaled++;
    s->mase += error / H / scale;
    s->naive2_mase += naive2_error / H / scale;
}

bool series_add_part(series_score *s, const dataset *d, const split_part *samples, int64_t window, int64_t season,
    const float *forecast, int64_t width, int64_t at, err *e) {
    const stream *from = &d->stream[0];
    int64_t longest = 0, horizon = d->target_width;
    for (int64_t k = 0; season && k < samples->count; k++) {
        int64_t i = part_sample(samples, k);
        if (from->row[i] - from->first[i] >= longest) longest = from->row[i] - from->first[i] + 1;
    }
    float *raw = malloc((size_t)(longest + 1) * sizeof *raw);
    double *known = malloc((size_t)(longest + 1) * sizeof *known);
    bool ok = (raw && known) || err_run(e, "out of memory for a series of %lld values", (long long)longest);
    for (int64_t i = 0; ok && i < samples->count; i++) {
        int64_t sample = part_sample(samples, i), n = season ? from->row[sample] - from->first[sample] + 1 : 0;
        if (season) table_read(&from->series, from->first[sample], n, raw);
        for (int64_t t = 0; t < n; t++) known[t] = (double)raw[t];
        series_add(s, known, n, window, season, d->target + sample * horizon,
            forecast ? forecast + i * width + at : NULL, horizon);
    }
    free(raw);
    free(known);
    return ok;
}

static double mean(double sum, double count) {
    return count > 0 ? sum / count : (double)NAN;
}

double series_mae(const series_score *s) {
    return mean(s->absolute, s->values);
}

double series_rmse(const series_score *s) {
    return sqrt(mean(s->square, s->values));
}

double series_smape(const series_score *s) {
    return mean(s->smape, (double)s->forecasts);
}

double series_mase(const series_score *s) {
    return mean(s->mase, (double)s->scaled);
}

void series_naive2(const series_score *s, double naive2[2]) {
    naive2[0] = mean(s->naive2_smape, (double)s->forecasts);
    naive2[1] = mean(s->naive2_mase, (double)s->scaled);
}

double series_owa(const series_score *s) {
    double naive2[2];
    series_naive2(s, naive2);
    return metric_owa(series_smape(s), series_mase(s), naive2[0], naive2[1]);
}
