// Forecasts of series, judged on the host as the M4 competition did: sMAPE and MASE of each forecast over its horizon,
// then the means of these; and the same of the naive2 forecasts from the same values.
//
// A forecast knows all values of its series up to its sample. MASE divides by the seasonal naive forecast's
// error over them; forecasts for which that is 0 have no MASE.
#ifndef TRADEWIND_TRAIN_SERIES_H
#define TRADEWIND_TRAIN_SERIES_H

#include "data/split.h"

typedef struct {
    int64_t forecasts, scaled;  // all, and those with a MASE
    double values;              // forecast in all
    double absolute, square;    // sums over values
    double smape, naive2_smape; // sums over forecasts, in percent
    double mase, naive2_mase;   //
} series_score;

// Adds one forecast from n known values. The scale of MASE is taken over the last `window` of them, or, where that is
// 0, all. Without a forecast (NULL) that of naive2 is judged in its place. A season of 0 says that what is known is of
// another kind than the targets: there is no MASE then, and no naive2.
void series_add(series_score *s, const double *known, int64_t n, int64_t window, int64_t season, const float *future,
    const float *forecast, int64_t horizon);

// Adds the samples of a part of a dataset, of one column unless `season` is 0. `forecast` is [count, width], of which
// the columns from `at` on are taken; or NULL.
bool series_add_part(series_score *s, const dataset *d, const split_part *samples, int64_t window, int64_t season,
    const float *forecast, int64_t width, int64_t at, err *e);

// NaN where there is none.
double series_mae(const series_score *s);
double series_rmse(const series_score *s);
double series_smape(const series_score *s);
double series_mase(const series_score *s);
double series_owa(const series_score *s);

// sMAPE and MASE of naive2.
void series_naive2(const series_score *s, double naive2[2]);

#endif
