#include "backtest/quotes.h"

#include "env/account_terms.h"

#include <math.h>
#include <stdlib.h>

void quotes_done(quotes *q) {
    free(q->time); // the arrays are one allocation
    *q = (quotes){0};
}

// One allocation, cut into arrays.
static bool allocate(quotes *q, int64_t count, bool spreads, const char *name, err *e) {
    size_t arrays = spreads ? 6 : 5, n = (size_t)count;
    q->time = calloc(n, arrays * sizeof *q->time);
    if (!q->time) return err_run(e, "%s: no memory for %lld bars", name, (long long)count);
    q->open = q->time + n;
    q->high = q->open + n;
    q->low = q->high + n;
    q->close = q->low + n;
    q->spread = spreads ? q->close + n : NULL;
    q->count = count;
    return true;
}

static bool take_price(double price, int64_t *to, const char *name, int64_t time, err *e) {
    const double coarse = 1e-6;
    char when[32];
    if (account_fixed(price, to) && fabs((double)*to / 1e8 - price) <= coarse * price) return true;
    when_text(when, sizeof when, time);
    if (price > 1)
        return err_input(e,
            "%s: price %g of %s is above 9e10, the most that an account can hold; write prices in a "
            "larger unit",
            name, price, when);
    return err_input(
        e, "%s: price %g of %s needs more than 8 decimals; write prices of 1,000 or more units", name, price, when);
}

// The last digit that any price uses, as a power of ten of 1e-8.
static int64_t smallest_step(const quotes *q) {
    int64_t step = ACCOUNT_ONE;
    for (const int64_t *p = q->open; p < q->open + 4 * q->count; p++)
        while (*p % step) step /= 10;
    return step;
}

static bool put_prices(quotes *q, int64_t i, const bar *x, const char *name, err *e) {
    q->time[i] = x->time;
    return take_price(x->open, &q->open[i], name, x->time, e) && take_price(x->high, &q->high[i], name, x->time, e) &&
           take_price(x->low, &q->low[i], name, x->time, e) && take_price(x->close, &q->close[i], name, x->time, e);
}

static bool put_spread(quotes *q, int64_t i, const bar *x, const char *name, err *e) {
    return account_fixed(x->spread * ((double)q->point / 1e8), &q->spread[i]) ||
           err_input(e, "%s: a spread of %g points is above 9e10; correct the column", name, x->spread);
}

static bool take_spreads(quotes *q, const bars *b, const char *name, err *e) {
    if (!b->report.has_spread)
        return err_input(e, "%s: has no column of spreads, or one of zeros; give account.spread a value", name);
    for (int64_t i = 0; i < q->count; i++)
        if (!put_spread(q, i, &b->bar[i], name, e)) return false;
    return true;
}

bool quotes_init(quotes *q, const bars *b, const char *name, double point, bool spreads, err *e) {
    *q = (quotes){0};
    bool ok = allocate(q, b->count, spreads, name, e);
    for (int64_t i = 0; ok && i < b->count; i++) ok = put_prices(q, i, &b->bar[i], name, e);
    if (ok) {
        if (!account_fixed(point, &q->point) || !q->point) q->point = smallest_step(q);
        ok = !spreads || take_spreads(q, b, name, e);
    }
    if (!ok) quotes_done(q);
    return ok;
}

bool quotes_room(quotes *q, int64_t count, int64_t point, bool spreads, const char *name, err *e) {
    *q = (quotes){0};
    if (!allocate(q, count, spreads, name, e)) return false;
    q->point = point;
    return true;
}

bool quotes_put(quotes *q, int64_t row, const bar *b, const char *name, err *e) {
    return put_prices(q, row, b, name, e) && (!q->spread || put_spread(q, row, b, name, e));
}

bool quotes_read(quotes *q, const char *path, double point, bool spreads, err *e) {
    static const bars_options as_is = {.as_is = true};
    bars b;
    *q = (quotes){0};
    if (!bars_read(&b, path, &as_is, e)) return false;
    bool ok = quotes_init(q, &b, path, point, spreads, e);
    bars_done(&b);
    return ok;
}
