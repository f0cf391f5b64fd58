#include "env/account_terms.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FREE = KEY_FREE | KEY_UNTUNED };

static const config_key keys[] = {
    {"account.cash", CONFIG_REAL, "100000", 0.01, 9e10, NULL, "money at the start, in the quote currency", FREE},
    {"account.spread", CONFIG_TEXT, "0", 0, 0, NULL,
        "paid at the entry: 0.0001 is a share of the price, 2pt points, 0.3abs price units, file the bars' own column",
        FREE},
    {"account.commission", CONFIG_TEXT, "0", 0, 0, NULL,
        "paid at each fill: 0.00002 is a share of its value, 7/lot and 0.005/unit are money", FREE},
    {"account.slippage", CONFIG_TEXT, "0", 0, 0, NULL,
        "added to the price of every fill but at a target: 0.0001, 2pt or 0.3abs", FREE},
    {"account.swap_long", CONFIG_TEXT, "0", 0, 0, NULL,
        "added for each night of a long position, negative when paid: -0.0001 of its value, -3pt or -0.3abs a unit",
        FREE},
    {"account.swap_short", CONFIG_TEXT, "0", 0, 0, NULL, "the same of a short position", FREE},
    {"account.leverage", CONFIG_REAL, "1", 1, 10000, NULL, "value of a position that one unit of equity can hold",
        FREE},
    {"account.margin_call", CONFIG_REAL, "0", 0, 1, NULL,
        "share of a position's margin; equity at or below it closes the position", FREE},
    {"account.contract", CONFIG_REAL, "1", 1e-8, 1e9, NULL, "units of a lot; positions are in lots", FREE},
    {"account.lot_step", CONFIG_REAL, "0", 0, 1e9, NULL, "positions are cut to multiples of it; 0: taken as they are",
        FREE},
    {"account.short", CONFIG_BOOL, "true", 0, 0, NULL, "positions below 0 are taken; otherwise they mean flat", FREE},
    {"account.both", CONFIG_CHOICE, "stop", 0, 0, "stop|target", "which counts where one bar reaches both", FREE},
    {"account.entry_stop", CONFIG_CHOICE, "on", 0, 0, "on|off",
        "stop and target can be reached in the bar of the entry", FREE},
    {"account.day_close", CONFIG_CHOICE, "off", 0, 0, "on|off",
        "positions are closed at the close of each day's last bar", FREE},
    {"account.last", CONFIG_CHOICE, "close", 0, 0, "close|open",
        "price of the last bar at which an open position is closed", FREE},
    {"account.days_a_year", CONFIG_REAL, "auto", 1, 366, "auto",
        "trading days that figures are annualised by; auto: days with bars in a mean year", FREE},
    {"account.point", CONFIG_REAL, "auto", 1e-8, 1e9, "auto",
        "size of a point in price units; auto: by the digits of the bars' prices", FREE},
};

const config_key *account_keys(size_t *count) {
    *count = sizeof keys / sizeof *keys;
    return keys;
}

// Endings of an amount, and the keys that take them: bits of 1 << measure.
enum {
    AS_COST = 1 << ACCOUNT_PER_PRICE | 1 << ACCOUNT_PER_POINT | 1 << ACCOUNT_IN_PRICE,
    AS_SPREAD = AS_COST | 1 << ACCOUNT_FROM_FILE,
    AS_COMMISSION = 1 << ACCOUNT_PER_PRICE | 1 << ACCOUNT_PER_LOT | 1 << ACCOUNT_PER_UNIT,
};

static const struct {
    const char *ending;
    account_measure measure;
} endings[] = {{"", ACCOUNT_PER_PRICE}, {"pt", ACCOUNT_PER_POINT}, {"abs", ACCOUNT_IN_PRICE}, {"/lot", ACCOUNT_PER_LOT},
    {"/unit", ACCOUNT_PER_UNIT}};

static bool read_rate(const config *c, const char *path, unsigned takes, double least, account_rate *rate, err *e) {
    const char *text = config_text(c, path);
    char *end;
    if (takes & 1 << ACCOUNT_FROM_FILE && strcmp(text, "file") == 0) {
        *rate = (account_rate){0, ACCOUNT_FROM_FILE};
        return true;
    }
    rate->value = strtod(text, &end);
    bool number = end > text && !strpbrk(text, "xX"); // strtod reads hexadecimal
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        if (!number || strcmp(end, endings[i].ending) != 0 || !(takes & 1 << endings[i].measure)) continue;
        rate->measure = endings[i].measure;
        double most = rate->measure == ACCOUNT_PER_PRICE ? 0.5 : 1e9;
        if (rate->value >= fmax(least, -most) && rate->value <= most) return true;
        return config_fail(c, path, e, "%.60s: must be %g to %g", text, fmax(least, -most), most);
    }
    return config_fail(c, path, e, "%.60s: is no such amount; write %s", text,
        takes == AS_SPREAD       ? "0.0001 (a share of the price), 2pt, 0.3abs or file"
        : takes == AS_COMMISSION ? "0.00002 (a share of the value), 7/lot or 0.005/unit"
                                 : "0.0001 (a share of the price), 2pt or 0.3abs");
}

bool account_terms_read(const config *c, account_terms *t, err *e) {
    *t = (account_terms){.cash = config_real(c, "account.cash"),
        .leverage = config_real(c, "account.leverage"),
        .margin_call = config_real(c, "account.margin_call"),
        .contract = config_real(c, "account.contract"),
        .lot_step = config_real(c, "account.lot_step"),
        .point = config_is(c, "account.point", "auto") ? 0 : config_real(c, "account.point"),
        .days_a_year = config_is(c, "account.days_a_year", "auto") ? 0 : config_real(c, "account.days_a_year"),
        .last_open = config_is(c, "account.last", "open"),
        .day_close = config_is(c, "account.day_close", "on"),
        .target_first = config_is(c, "account.both", "target"),
        .entry_stop = config_is(c, "account.entry_stop", "on"),
        .shorts = config_bool(c, "account.short")};
    return read_rate(c, "account.spread", AS_SPREAD, 0, &t->spread, e) &&
           read_rate(c, "account.commission", AS_COMMISSION, 0, &t->commission, e) &&
           read_rate(c, "account.slippage", AS_COST, 0, &t->slippage, e) &&
           read_rate(c, "account.swap_long", AS_COST, -1e9, &t->swap_long, e) &&
           read_rate(c, "account.swap_short", AS_COST, -1e9, &t->swap_short, e);
}

bool account_needs_point(const account_terms *t) {
    const account_rate *all[] = {&t->spread, &t->slippage, &t->swap_long, &t->swap_short};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i]->measure == ACCOUNT_PER_POINT || all[i]->measure == ACCOUNT_FROM_FILE) return true;
    return false;
}

bool account_fixed(double v, int64_t *fixed) {
    double scaled = rint(v * 1e8);
    *fixed = 0;
    if (!(fabs(scaled) <= 9e18)) return false;
    *fixed = (int64_t)scaled;
    return true;
}

// A cost of prices; false where it is too large.
static bool settle(account_amount *a, const account_rate *rate, int64_t point) {
    *a = (account_amount){0, 0};
    if (rate->measure == ACCOUNT_PER_PRICE) a->share = (int64_t)rint(rate->value * 1e10);
    if (rate->measure == ACCOUNT_PER_POINT) return account_fixed(rate->value * ((double)point / 1e8), &a->price);
    if (rate->measure == ACCOUNT_IN_PRICE) return account_fixed(rate->value, &a->price);
    return true;
}

bool account_rules_make(account_rules *r, const account_terms *t, int64_t point, err *e) {
    *r = (account_rules){.margin_call = (int64_t)rint(t->margin_call * 1e10),
        .target_first = t->target_first,
        .entry_stop = t->entry_stop,
        .shorts = t->shorts};
    bool ok = account_fixed(t->cash, &r->cash) && account_fixed(t->leverage, &r->leverage) &&
              account_fixed(t->contract, &r->contract) && account_fixed(t->lot_step, &r->lot_step) &&
              settle(&r->spread, &t->spread, point) && settle(&r->slippage, &t->slippage, point) &&
              settle(&r->swap_long, &t->swap_long, point) && settle(&r->swap_short, &t->swap_short, point);
    r->commission_units = t->commission.measure == ACCOUNT_PER_LOT ? r->contract : ACCOUNT_ONE;
    if (t->commission.measure == ACCOUNT_PER_PRICE)
        r->commission_share = (int64_t)rint(t->commission.value * 1e10);
    else
        ok = ok && account_fixed(t->commission.value, &r->commission_money);
    return ok ||
           err_input(e, "account: an amount is above 9e10, the most that an account can hold; write a smaller one");
}

char *account_text(char *buf, size_t n, int64_t v, int decimals) {
    enum { DECIMALS = 8 };
    uint64_t size = v < 0 ? -(uint64_t)v : (uint64_t)v, one = (uint64_t)ACCOUNT_ONE;
    char digits[DECIMALS + 1];
    snprintf(digits, sizeof digits, "%08u", (unsigned)(size % one));
    int used = DECIMALS;
    while (used > decimals && digits[used - 1] == '0') used--;
    snprintf(buf, n, "%s%llu%s%.*s", v < 0 ? "-" : "", (unsigned long long)(size / one), used ? "." : "", used, digits);
    return buf;
}

char *account_rate_text(char *buf, size_t n, const account_rate *rate, const char *of) {
    static const char *const words[] = {[ACCOUNT_PER_PRICE] = "",
        [ACCOUNT_PER_POINT] = " point",
        [ACCOUNT_IN_PRICE] = " price unit",
        [ACCOUNT_PER_LOT] = " a lot",
        [ACCOUNT_PER_UNIT] = " a unit"};
    if (rate->measure == ACCOUNT_FROM_FILE)
        snprintf(buf, n, "by the bars' column");
    else if (rate->value == 0)
        snprintf(buf, n, "none");
    else if (rate->measure == ACCOUNT_PER_PRICE)
        snprintf(buf, n, "%.6g %% of %s", 100 * rate->value, of);
    else
        snprintf(buf, n, "%.8g%s%s", rate->value, words[rate->measure],
            rate->measure <= ACCOUNT_IN_PRICE && fabs(rate->value) != 1 ? "s" : "");
    return buf;
}

const char *account_reason_name(account_reason why) {
    static const char *const names[ACCOUNT_REASONS] = {[ACCOUNT_BY_ORDER] = "signal",
        [ACCOUNT_BY_STOP] = "stop",
        [ACCOUNT_BY_TARGET] = "target",
        [ACCOUNT_BY_CALL] = "margin",
        [ACCOUNT_BY_DAY] = "day",
        [ACCOUNT_BY_END] = "end"};
    CHECK(why < ACCOUNT_REASONS && names[why], "reason %d has no name", (int)why);
    return names[why];
}
