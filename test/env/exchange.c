#include "env/exchange.h"

#include "support.h"

#include <math.h>
#include <string.h>

static int64_t money(double v) {
    return llround(v * 1e8);
}

// Prices move by a part of a hundredth a bar, and now and then by a fifth.
static void make_bars(account_bar *bar, dice *d) {
    double price = 100;
    for (int i = 0; i < EXCHANGE_BARS; i++) {
        double most = dice_below(d, 30) ? 0.01 : 0.2;
        double open = price * (1 + 0.3 * most * (double)dice_unit(d));
        price = open * (1 + most * (double)dice_unit(d));
        if (price < 50 || price > 200) price = 100;
        double high = fmax(open, price) * (1.001 + 0.001 * (double)dice_unit(d));
        double low = fmin(open, price) * (0.999 + 0.001 * (double)dice_unit(d));
        bar[i] = (account_bar){money(open), money(high), money(low), money(price), (int64_t)dice_below(d, 3000000)};
    }
}

static void make_calendar(int32_t *calendar, dice *d) {
    for (int i = 0; i < EXCHANGE_BARS; i++, calendar += MARKET_COLUMNS) {
        calendar[MARKET_NIGHTS] = i % 7 ? 0 : i % 35 ? 1 : 3;
        calendar[MARKET_ENDS] = i % 7 == 6;
        calendar[MARKET_CLOCK] = (int32_t)dice_below(d, 86400);
    }
}

static void make_features(exchange *x, dice *d) {
    for (int i = 0; i < EXCHANGE_ROWS * EXCHANGE_WIDTH; i++) x->feature[i] = 3 * dice_unit(d);
    for (int i = 0; i < EXCHANGE_WIDTH; i++) {
        x->scale[i] = dice_unit(d);
        x->scale[EXCHANGE_WIDTH + i] = 1 + 0.5f * dice_unit(d);
    }
}

static void make_stretches(market_stretch *s) {
    const int64_t shortly = EXCHANGE_BARS - EXCHANGE_SHORT;
    int64_t before = 0;
    for (int k = 0; k < EXCHANGE_STRETCHES; k++) {
        int64_t of = k / 2, start = of * EXCHANGE_BARS, first = k % 2 ? start + shortly : start + EXCHANGE_LAGS - 1;
        s[k] = (market_stretch){first, k % 2 ? start + EXCHANGE_BARS : start + shortly, of, before};
        before += s[k].end - s[k].first - 1;
    }
}

// An account with costs of every kind; one of lots, with much leverage; one that cannot be short, and is ruined by its
// spread; one that is so rich that its money soon overflows.
static void make_rules(account_rules *r) {
    r[0] = (account_rules){.cash = money(10000),
        .spread = {2000000, 0},
        .slippage = {0, money(0.01)},
        .swap_long = {-700000, money(-0.01)},
        .swap_short = {200000, money(-0.02)},
        .commission_share = 200000,
        .commission_money = money(0.005),
        .commission_units = ACCOUNT_ONE,
        .leverage = 2 * ACCOUNT_ONE,
        .margin_call = ACCOUNT_SHARE / 2,
        .contract = ACCOUNT_ONE,
        .lot_step = money(0.01),
        .entry_stop = true,
        .shorts = true};
    for (int k = 1; k < EXCHANGE_INSTRUMENTS; k++) r[k] = r[0];
    r[1].leverage = 30 * ACCOUNT_ONE;
    r[1].contract = 10 * ACCOUNT_ONE;
    r[1].lot_step = money(0.1);
    r[2].spread.share = ACCOUNT_SHARE / 50;
    r[2].shorts = false;
    r[2].entry_stop = false;
    r[3].cash = 45 * (ACCOUNT_MOST / 90);
}

void exchange_init(exchange *x) {
    dice d = {.seed = 17};
    memset(x, 0, sizeof *x);
    for (int k = 0; k < EXCHANGE_INSTRUMENTS; k++) {
        make_bars(x->bar + k * EXCHANGE_BARS, &d);
        make_calendar(x->calendar + k * EXCHANGE_BARS * MARKET_COLUMNS, &d);
    }
    make_features(x, &d);
    make_stretches(x->stretch);
    make_rules(x->rules);
}

#define WORDS(type) ((int64_t)sizeof(type) / 8)

void exchange_world(const exchange *x, agent_world *w) {
    market_settings *s = &w->env.market;
    w->env.kind = ENV_market;
    s->lags = EXCHANGE_LAGS;
    s->lagged = EXCHANGE_LAGGED;
    s->once = EXCHANGE_ONCE;
    s->stretches = EXCHANGE_STRETCHES;
    s->size = 1.8;
    s->ruin = 0.8;
    s->eta = 0.05;
    s->shape = 0.5;
    w->parts = MARKET_PARTS;
    w->part[MARKET_BARS] = (agent_part){"bars", DTYPE_I64, shape2(EXCHANGE_ROWS, WORDS(account_bar)), x->bar, true};
    w->part[MARKET_FEATURES] =
        (agent_part){"features", DTYPE_F32, shape2(EXCHANGE_ROWS, EXCHANGE_WIDTH), x->feature, true};
    w->part[MARKET_SCALE] = (agent_part){"scale", DTYPE_F32, shape2(2, EXCHANGE_WIDTH), x->scale, false};
    w->part[MARKET_CALENDAR] =
        (agent_part){"calendar", DTYPE_I32, shape2(EXCHANGE_ROWS, MARKET_COLUMNS), x->calendar, true};
    w->part[MARKET_STRETCHES] =
        (agent_part){"stretches", DTYPE_I64, shape2(EXCHANGE_STRETCHES, WORDS(market_stretch)), x->stretch, false};
    w->part[MARKET_RULES] =
        (agent_part){"rules", DTYPE_I64, shape2(EXCHANGE_INSTRUMENTS, WORDS(account_rules)), x->rules, true};
}
