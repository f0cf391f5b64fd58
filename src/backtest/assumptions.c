#include "backtest/assumptions.h"

#include "base/term.h"

#include <stdarg.h>
#include <stdio.h>

enum { TEXT = 96 };

void assumptions_add(assumptions *a, const char *key, const char *fmt, ...) {
    va_list args;
    CHECK(a->count < ASSUMPTIONS_MOST, "more than %d assumptions", ASSUMPTIONS_MOST);
    assumption *to = &a->of[a->count++];
    to->key = key;
    va_start(args, fmt);
    vsnprintf(to->text, sizeof to->text, fmt, args);
    va_end(args);
    term_one_line(to->text);
}

static void add_account(assumptions *a, const account_terms *t) {
    char cash[TEXT], step[TEXT] = "", call[TEXT] = "";
    term_count(cash, sizeof cash, t->cash);
    if (t->lot_step > 0) snprintf(step, sizeof step, " in steps of %g", t->lot_step);
    if (t->margin_call > 0) snprintf(call, sizeof call, ", margin call at %g %% of the margin", 100 * t->margin_call);
    assumptions_add(a, "account", "cash %s, leverage %g, lots of %g unit%s%s%s%s", cash, t->leverage, t->contract,
        t->contract == 1 ? "" : "s", step, call, t->shorts ? "" : ", no short positions");
}

static void add_costs(assumptions *a, const account_terms *t, int64_t point) {
    char text[5][TEXT], size[TEXT];
    assumptions_add(a, "costs", "spread at entries: %s; commission at each fill: %s; slippage: %s",
        account_rate_text(text[0], TEXT, &t->spread, "the price"),
        account_rate_text(text[1], TEXT, &t->commission, "its value"),
        account_rate_text(text[2], TEXT, &t->slippage, "the price"));
    if (t->swap_long.value != 0 || t->swap_short.value != 0)
        assumptions_add(a, "swap", "added each night: long %s, short %s",
            account_rate_text(text[3], TEXT, &t->swap_long, "the value"),
            account_rate_text(text[4], TEXT, &t->swap_short, "the value"));
    if (account_needs_point(t)) assumptions_add(a, "point", "%s", account_text(size, sizeof size, point, 0));
}

static void add_fills(assumptions *a, const account_terms *t) {
    assumptions_add(a, "fills",
        "at the open of the next bar; a gap through a stop or target at the open; %s where one bar reaches both; %s; "
        "%swhat is open at the end at the last %s",
        t->target_first ? "the target" : "the stop",
        t->entry_stop ? "also in the bar of the entry" : "not in the bar of the entry",
        t->day_close ? "positions are closed at the close of each day; " : "", t->last_open ? "open" : "close");
}

void assumptions_of_replay(assumptions *a, const account_terms *t, const replay *p) {
    char paid[4][TEXT];
    const int64_t all[4] = {p->books.commission, p->books.spread, p->books.slippage, p->books.swap};
    add_account(a, t);
    add_costs(a, t, p->quotes->point);
    add_fills(a, t);
    assumptions_add(
        a, "ambiguous", "%lld bar%s reached stop and target", (long long)p->ambiguous, term_s(p->ambiguous));
    if (p->unsized)
        assumptions_add(a, "note",
            "%lld prediction%s asked for a position without a size: below account.lot_step, too large, or of unknown "
            "volatility",
            (long long)p->unsized, term_s(p->unsized));
    int64_t refused = p->refused.no_margin + p->refused.costs_above;
    if (refused)
        assumptions_add(a, "refused", "%lld order%s: %lld without enough margin, %lld with costs above the equity",
            (long long)refused, term_s(refused), (long long)p->refused.no_margin, (long long)p->refused.costs_above);
    for (int i = 0; i < 4; i++) snprintf(paid[i], TEXT, "%.2f", (double)all[i] / 1e8);
    assumptions_add(
        a, "paid", "commission %s, spread %s, slippage %s; swap received %s", paid[0], paid[1], paid[2], paid[3]);
}

json_t *assumptions_json(const assumptions *a) {
    json_t *all = json_array();
    for (int i = 0; i < a->count; i++) {
        json_t *text = json_string(a->of[i].text); // NULL where a name in it is not UTF-8
        json_array_append_new(
            all, json_pack("{s:s, s:o}", "key", a->of[i].key, "text", text ? text : json_string("(not UTF-8)")));
    }
    return all;
}
