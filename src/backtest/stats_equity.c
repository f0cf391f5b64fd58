#include "backtest/stats_work.h"

#include <math.h>

static const char *const too_few = "needs two daily returns", *const ruin = "equity falls to 0 or below",
                         *const still = "daily returns do not vary";

// Why ratios of daily returns have no value.
static const char *lack_of(const daily *d) {
    return d->ruined ? ruin : d->backs < 2 ? too_few : still;
}

static double downside(const daily *d) {
    double sum = 0;
    for (int64_t i = 0; i < d->backs; i++) sum += d->back[i] < 0 ? d->back[i] * d->back[i] : 0;
    return sqrt(sum / (double)d->backs);
}

static void put_daily(const stats_base *b, stats *s) {
    double root = sqrt(b->a_year), down = b->daily.backs ? downside(&b->daily) : (double)NAN;
    const char *why = lack_of(&b->daily);
    stat_put(s, STAT_VOLATILITY, b->deviation * root, why);
    stat_put(s, STAT_SHARPE, b->sample.sharpe * root, why);
    stat_put(s, STAT_SKEW, b->sample.skew, why);
    stat_put(s, STAT_KURTOSIS, b->sample.kurtosis, why);
    if (b->daily.backs < 2)
        stat_lack(s, STAT_SORTINO, why);
    else
        stat_put(s, STAT_SORTINO, down > 0 ? b->mean / down * root : (double)NAN, "no day with a loss");
}

// The Sharpe ratio of a curve bar by bar.
static double sharpe_of_bars(const stats_base *b) {
    const double *equity = b->in->equity;
    int64_t n = b->in->bars - 1;
    double first = equity[1] / equity[0] - 1, sum = 0, square = 0;
    for (int64_t i = 0; i < n; i++) {
        double x = equity[i + 1] / equity[i] - 1 - first; // sums of equal returns stay 0
        sum += x;
        square += x * x;
    }
    double deviation = sqrt((square - sum * sum / (double)n) / (double)(n - 1)), mean = first + sum / (double)n;
    double bars = b->a_year * (double)b->in->bars / (double)b->daily.days;
    return deviation > 1e-14 ? mean / deviation * sqrt(bars) : (double)NAN;
}

static void put_bars(const stats_base *b, stats *s) {
    bool ruined = false;
    for (int64_t i = 0; i < b->in->bars; i++) ruined |= !(b->in->equity[i] > 0);
    if (ruined)
        stat_lack(s, STAT_SHARPE_BAR, ruin);
    else if (b->in->bars < 3)
        stat_lack(s, STAT_SHARPE_BAR, "needs two returns");
    else
        stat_put(s, STAT_SHARPE_BAR, sharpe_of_bars(b), "returns of bars do not vary");
}

typedef struct {
    double depth;
    int64_t length, longest; // seconds: of the deepest, and the longest time below a peak
} drawdown;

static drawdown drawdown_of(const int64_t *time, const double *value, int64_t bars, double peak) {
    drawdown d = {0};
    int64_t since = time[0];             // the latest close at the peak
    double low = peak;                   // the lowest since
    bool under = false, deepest = false; // below the peak, and in the deepest drawdown so far
    for (int64_t i = 0; i < bars; i++) {
        if (value[i] < low) {
            low = value[i];
            under = true;
            deepest |= 1 - low / peak > d.depth;
            if (deepest) d.depth = 1 - low / peak;
        }
        if (deepest) d.length = time[i] - since;
        if (under && time[i] - since > d.longest) d.longest = time[i] - since;
        if (value[i] < peak) continue;
        peak = low = value[i];
        since = time[i];
        under = deepest = false;
    }
    return d;
}

static void put_drawdown(const stats_base *b, stats *s) {
    const stats_input *in = b->in;
    drawdown d = drawdown_of(in->time, in->equity, in->bars, in->cash);
    const stat_value *growth = &s->of[STAT_CAGR];
    stat_put(s, STAT_DRAWDOWN, d.depth, NULL);
    stat_put(s, STAT_DRAWDOWN_DAYS, (double)d.length / 86400, NULL);
    stat_put(s, STAT_UNDERWATER_DAYS, (double)d.longest / 86400, NULL);
    if (growth->why)
        stat_lack(s, STAT_CALMAR, growth->why);
    else
        stat_put(s, STAT_CALMAR, d.depth > 0 ? growth->value / d.depth : (double)NAN, "no drawdown");
}

static void put_growth(const stats_base *b, stats *s) {
    double last = b->in->equity[b->in->bars - 1], times = last / b->in->cash;
    double peak = b->in->equity[0];
    for (int64_t i = 1; i < b->in->bars; i++) peak = fmax(peak, b->in->equity[i]);
    stat_put(s, STAT_EQUITY_FINAL, last, NULL);
    stat_put(s, STAT_EQUITY_PEAK, peak, NULL);
    stat_put(s, STAT_RETURN, times - 1, NULL);
    if (last <= 0)
        stat_lack(s, STAT_CAGR, ruin);
    else if (b->in->time[b->in->bars - 1] - b->in->time[0] < 86400)
        stat_lack(s, STAT_CAGR, "less than a day of bars");
    else
        stat_put(s, STAT_CAGR, pow(times, 1 / b->years) - 1, "the time is too short for its return");
}

static bool put_hold(const stats_base *b, stats *s, err *e) {
    static const char *const none = "no prices", *const negative = "a price is 0 or below";
    const double *close = b->in->close;
    bool positive = close != NULL;
    for (int64_t i = 0; close && i < b->in->bars; i++) positive &= close[i] > 0;
    if (!positive) {
        for (int k = STAT_HOLD_RETURN; k <= STAT_HOLD_DRAWDOWN; k++)
            stat_lack(s, (stat_name)k, close ? negative : none);
        return true;
    }
    daily d;
    double mean, deviation;
    sharpe_sample sample;
    if (!daily_make(b->in->time, close, b->in->bars, &d, e)) return false;
    sharpe_moments(d.back, d.backs, &mean, &deviation, &sample);
    stat_put(s, STAT_HOLD_RETURN, close[b->in->bars - 1] / close[0] - 1, NULL);
    stat_put(s, STAT_HOLD_SHARPE, sample.sharpe * sqrt(b->a_year), lack_of(&d));
    stat_put(s, STAT_HOLD_DRAWDOWN, drawdown_of(b->in->time, close, b->in->bars, close[0]).depth, NULL);
    daily_done(&d);
    return true;
}

bool stats_of_equity(const stats_base *b, stats *s, err *e) {
    put_daily(b, s);
    put_bars(b, s);
    put_growth(b, s);
    put_drawdown(b, s);
    return put_hold(b, s, e);
}
