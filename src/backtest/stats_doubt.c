#include "backtest/stats_work.h"

#include <math.h>
#include <stdlib.h>

void stats_of_doubt(const stats_base *b, stats *s) {
    const stats_input *in = b->in;
    const char *why = b->daily.ruined       ? "equity falls to 0 or below"
                      : b->daily.backs < 2  ? "needs two daily returns"
                      : !(b->deviation > 0) ? "daily returns do not vary"
                                            : "skew and kurtosis allow no estimate";
    double variance = in->trial_variance > 0 ? in->trial_variance / b->a_year : 1 / (b->sample.count - 1);
    bool known = b->deviation > 0;
    stat_put(s, STAT_PSR, known ? sharpe_probability(&b->sample, 0) : (double)NAN, why);
    stat_put(s, STAT_DSR, known ? sharpe_probability(&b->sample, sharpe_luck(in->trials, variance)) : (double)NAN, why);
    if (known && b->sample.sharpe <= 0) why = "the Sharpe ratio is not above 0";
    stat_put(s, STAT_TRACK_DAYS, known ? sharpe_track(&b->sample, 0, 0.95) : (double)NAN, why);
    stat_put(s, STAT_PBO, in->overfit ? in->overfit->probability : (double)NAN,
        in->trials > 1 ? "returns of the trials were not kept" : "there is one trial alone");
}

void stats_of_trials(stats *s, double variance, const overfit *o, const char *why) {
    const stat_value *of = s->of;
    double a_year = of[STAT_DAYS_A_YEAR].value, root = sqrt(a_year);
    sharpe_sample sample = {
        of[STAT_SHARPE].value / root, of[STAT_SKEW].value, of[STAT_KURTOSIS].value, of[STAT_DAYS].value - 1};
    if (!of[STAT_DSR].why && variance >= 0)
        stat_put(s, STAT_DSR, sharpe_probability(&sample, sharpe_luck(of[STAT_TRIALS].value, variance / a_year)),
            "skew and kurtosis allow no estimate");
    stat_put(s, STAT_PBO, o ? o->probability : (double)NAN, why);
}

// Sums over days that the statistics with intervals are made of.
enum { TERM_DAYS, TERM_SUM, TERM_SQUARE, TERM_DOWN, TERM_LOG, TERMS };

static const stat_name ranged[] = {STAT_RETURN, STAT_CAGR, STAT_VOLATILITY, STAT_SHARPE, STAT_SORTINO};

enum { RANGED = sizeof ranged / sizeof *ranged };

static void statistics_of(const void *arg, const double *sums, double *to) {
    const stats_base *b = arg;
    double n = sums[TERM_DAYS], mean = sums[TERM_SUM] / n, root = sqrt(b->a_year);
    double left = sums[TERM_SQUARE] - sums[TERM_SUM] * mean, down = sqrt(sums[TERM_DOWN] / n);
    double deviation = left > 1e-12 * sums[TERM_SQUARE] ? sqrt(left / (n - 1)) : (double)NAN;
    // The first day has no return of its own, but what it made of the cash is in the return of all days.
    double grown = sums[TERM_LOG] + log(b->daily.last[0] / b->in->cash);
    to[0] = expm1(grown);
    to[1] = expm1(grown / b->years);
    to[2] = deviation * root;
    to[3] = mean / deviation * root;
    to[4] = down > 0 ? mean / down * root : (double)NAN;
}

// A day's return depends on those before it as long as a position is held.
static int64_t days_held(const stats_input *in) {
    double seconds = 0;
    for (int64_t i = 0; i < in->trades; i++)
        seconds += (double)(in->time[in->trade[i].exit] - in->time[in->trade[i].entry]) / (double)in->trades;
    return (int64_t)ceil(seconds / 86400);
}

bool stats_of_ranges(const stats_base *b, stats *s, err *e) {
    interval range[RANGED];
    int64_t n = b->daily.backs;
    if (b->in->brief || n < 2) return true;
    double *unit = malloc((size_t)n * TERMS * sizeof *unit);
    if (!unit) return err_run(e, "out of memory for %lld days", (long long)n);
    for (int64_t i = 0; i < n; i++) {
        double x = b->daily.back[i], *to = unit + i * TERMS;
        to[TERM_DAYS] = 1;
        to[TERM_SUM] = x;
        to[TERM_SQUARE] = x * x;
        to[TERM_DOWN] = x < 0 ? x * x : 0;
        to[TERM_LOG] = log1p(x);
    }
    bootstrap_table t = {unit, n, TERMS, bootstrap_block(n, days_held(b->in))};
    bool ok = bootstrap_intervals(&t, statistics_of, b, RANGED, range, e);
    free(unit);
    s->block = t.block;
    for (int k = 0; ok && k < RANGED; k++)
        if (!s->of[ranged[k]].why) s->of[ranged[k]].range = range[k];
    return ok;
}
