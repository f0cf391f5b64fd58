#include "data/label.h"

#include <math.h>

static bool check_bars(const char *what, int64_t bars, int64_t least, err *e) {
    if (bars >= least && bars <= LABEL_BARS_MOST) return true;
    return err_input(
        e, "label: %s of %lld bars; use %lld to %d", what, (long long)bars, (long long)least, LABEL_BARS_MOST);
}

static bool check_distance(const char *what, double x, double least, err *e) {
    if (x >= least && x <= 1e6) return true;
    return err_input(e, "label: %s of %g; use %g to 1000000", what, x, least);
}

// Volatility at a row: 1 where labels are not in units of it, so that multiples of it are returns; negative where it is
// not known.
static double volatility_at(const double *volatility, int64_t row) {
    return volatility ? volatility[row] : 1;
}

// Direction

static bool check_direction(const label_direction_options *o, err *e) {
    if (!check_bars("a horizon", o->horizon, 1, e) || !check_bars("a volatility", o->volatility_bars, 0, e))
        return false;
    if (!check_distance("a band", o->band, 0, e)) return false;
    if (o->classes != 3 && o->classes != 5) return err_input(e, "label: %d classes; use 3 or 5", o->classes);
    if (o->classes == 5 && !(o->band > 0 && o->strong > 1 && o->strong <= 1e6))
        return err_input(e, "label: 5 classes need a band over 0 and a strong move of over 1 band, not %g and %g",
            o->band, o->strong);
    return true;
}

static int32_t classify(const label_direction_options *o, double move, double band) {
    int32_t way = (move > band) - (move < -band);
    if (o->classes == 3) return LABEL_NEUTRAL + way;
    return 2 + way + (move > o->strong * band) - (move < -o->strong * band);
}

bool label_direction(const bar *bars, const double *volatility, int64_t count, const label_direction_options *o,
    int32_t *label, int32_t *end_row, err *e) {
    CHECK(count >= 0 && count <= INT32_MAX, "%lld bars", (long long)count);
    if (!check_direction(o, e)) return false;
    CHECK(!count || !o->volatility_bars == !volatility, "volatility is given where it is used");
    for (int64_t t = 0; t < count; t++) {
        double unit = volatility_at(volatility, t);
        label[t] = LABEL_NONE;
        end_row[t] = -1;
        if (t + o->horizon >= count || unit < 0) continue;
        double ratio = bars[t + o->horizon].close / bars[t].close;
        label[t] = classify(o, o->measure == LABEL_LOG ? log(ratio) : ratio - 1, o->band * unit);
        end_row[t] = (int32_t)(t + o->horizon);
    }
    return true;
}

void label_to_three(int32_t *label, int64_t count) {
    static const int32_t three[] = {LABEL_DOWN, LABEL_DOWN, LABEL_NEUTRAL, LABEL_UP, LABEL_UP};
    for (int64_t t = 0; t < count; t++) {
        CHECK(label[t] >= LABEL_NONE && label[t] < 5, "label %d", (int)label[t]);
        if (label[t] != LABEL_NONE) label[t] = three[label[t]];
    }
}

// Triple barrier

static bool check_barrier(const label_barrier_options *o, err *e) {
    if (!check_bars("a time limit", o->limit, 1, e) || !check_bars("a volatility", o->volatility_bars, 0, e))
        return false;
    if (!check_distance("an upper barrier", o->up, 1e-9, e)) return false;
    if (!check_distance("a lower barrier", o->down, 1e-9, e)) return false;
    CHECK(o->side == 1 || o->side == -1, "side %d", o->side);
    return true;
}

typedef struct {
    double upper, lower;
    bool both, gap; // set where a touch was such
} barriers;

// Which barrier a bar touches: LABEL_UP, LABEL_DOWN or LABEL_NONE.
static int32_t touch(barriers *x, const bar *b, int side) {
    if (b->open >= x->upper || b->open <= x->lower) {
        x->gap = true;
        return b->open >= x->upper ? LABEL_UP : LABEL_DOWN;
    }
    bool up = b->high >= x->upper || b->close >= x->upper, down = b->low <= x->lower || b->close <= x->lower;
    x->both = up && down;
    if (up && (!down || side < 0)) return LABEL_UP;
    return down ? LABEL_DOWN : LABEL_NONE;
}

static int32_t timed_out(const label_barrier_options *o, double from, double to) {
    return o->timeout == LABEL_TIMEOUT_NEUTRAL ? LABEL_NEUTRAL : LABEL_NEUTRAL + (to > from) - (to < from);
}

// The label of row t and its end row, with the reason counted.
static int32_t run_to_barrier(const bar *bars, int64_t count, int64_t t, const label_barrier_options *o, barriers *x,
    label_barrier_counts *n, int32_t *end_row) {
    int64_t last = t + o->limit < count ? t + o->limit : count - 1;
    for (int64_t i = t + 1; i <= last; i++) {
        int32_t touched = touch(x, &bars[i], o->side);
        if (touched == LABEL_NONE) continue;
        n->up += touched == LABEL_UP;
        n->down += touched == LABEL_DOWN;
        n->both += x->both;
        n->gap += x->gap;
        *end_row = (int32_t)i;
        return touched;
    }
    if (last < t + o->limit) return LABEL_NONE;
    n->timeout++;
    *end_row = (int32_t)last;
    return timed_out(o, bars[t].close, bars[last].close);
}

void label_barrier_add(label_barrier_counts *to, const label_barrier_counts *n) {
    to->up += n->up;
    to->down += n->down;
    to->timeout += n->timeout;
    to->both += n->both;
    to->gap += n->gap;
    to->none += n->none;
}

bool label_barrier(const bar *bars, const double *volatility, int64_t count, const label_barrier_options *o,
    int32_t *label, int32_t *end_row, label_barrier_counts *counts, err *e) {
    CHECK(count >= 0 && count <= INT32_MAX, "%lld bars", (long long)count);
    label_barrier_counts n = {0};
    if (!check_barrier(o, e)) return false;
    CHECK(!count || !o->volatility_bars == !volatility, "volatility is given where it is used");
    for (int64_t t = 0; t < count; t++) {
        double unit = volatility_at(volatility, t);
        label[t] = LABEL_NONE;
        end_row[t] = -1;
        if (unit > 0) {
            barriers x = {.upper = bars[t].close * exp(o->up * unit), .lower = bars[t].close * exp(-o->down * unit)};
            label[t] = run_to_barrier(bars, count, t, o, &x, &n, &end_row[t]);
        }
        n.none += label[t] == LABEL_NONE;
    }
    if (counts) *counts = n;
    return true;
}

// Forecasts

bool label_forecast(
    const bar *bars, int64_t count, int64_t horizon, label_value value, float *target, int32_t *end_row, err *e) {
    CHECK(count >= 0 && count <= INT32_MAX, "%lld bars", (long long)count);
    if (!check_bars("a horizon", horizon, 1, e)) return false;
    for (int64_t t = 0; t < count; t++) {
        bool known = t + horizon < count;
        float *out = target + t * horizon;
        end_row[t] = known ? (int32_t)(t + horizon) : -1;
        for (int64_t i = 1; i <= horizon; i++) {
            if (!known)
                out[i - 1] = 0;
            else if (value == LABEL_CLOSE)
                out[i - 1] = (float)bars[t + i].close;
            else
                out[i - 1] = (float)log(bars[t + i].close / bars[value == LABEL_STEP ? t + i - 1 : t].close);
        }
    }
    return true;
}
