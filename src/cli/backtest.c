// tradewind backtest: trades, costs and figures of a signal file on bars.
#include "backtest/backtest.h"

#include "backtest/figures.h"
#include "backtest/trades.h"
#include "base/json.h"
#include "base/term.h"
#include "cli/cli.h"
#include "task/output.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { SHOWN = 40, FIGURE = 64 };

// Assumptions

static void tell_input(const backtest *b, const backtest_options *o) {
    const quotes *q = &b->quotes;
    char n[SHOWN], first[SHOWN], last[SHOWN];
    term_count(n, sizeof n, (double)q->count);
    printf("bars      %s: %s from %s to %s, row by row as they are\n", o->bars, n,
        when_text(first, sizeof first, q->time[0]), when_text(last, sizeof last, q->time[q->count - 1]));
    term_count(n, sizeof n, (double)b->orders.count);
    printf("signals   %s: %s used", o->signals, n);
    if (b->orders.outside) printf(", %lld ignored outside the bars", (long long)b->orders.outside);
    if (b->orders.late) printf(", %lld ignored at the last bar, which has no next open", (long long)b->orders.late);
    printf("\n");
}

static void tell_account(const account_terms *t, int64_t point) {
    char cash[SHOWN], text[5][96], size[SHOWN];
    term_count(cash, sizeof cash, t->cash);
    printf("account   cash %s, leverage %g, lots of %g unit%s", cash, t->leverage, t->contract,
        t->contract == 1 ? "" : "s");
    if (t->lot_step > 0) printf(" in steps of %g", t->lot_step);
    if (t->margin_call > 0) printf(", margin call at %g %% of the margin", 100 * t->margin_call);
    printf("%s\n", t->shorts ? "" : ", no short positions");
    printf("costs     spread at entries: %s; commission at each fill: %s; slippage: %s\n",
        account_rate_text(text[0], sizeof text[0], &t->spread, "the price"),
        account_rate_text(text[1], sizeof text[1], &t->commission, "its value"),
        account_rate_text(text[2], sizeof text[2], &t->slippage, "the price"));
    if (t->swap_long.value != 0 || t->swap_short.value != 0)
        printf("swap      added each night: long %s, short %s\n",
            account_rate_text(text[3], sizeof text[3], &t->swap_long, "the value"),
            account_rate_text(text[4], sizeof text[4], &t->swap_short, "the value"));
    if (account_needs_point(t)) printf("point     %s\n", account_text(size, sizeof size, point, 0));
}

static void tell_rules(const account_terms *t, const replay *p) {
    printf(
        "fills     at the open of the next bar; a gap through a stop or target at the open; %s where one bar reaches "
        "both;\n          %s; what is open at the end at the last %s\n",
        t->target_first ? "the target" : "the stop",
        t->entry_stop ? "also in the bar of the entry" : "not in the bar of the entry",
        t->last_open ? "open" : "close");
    if (t->day_close) printf("          positions are closed at the close of each day\n");
    printf("ambiguous %lld bar%s reached stop and target\n", (long long)p->ambiguous, term_s(p->ambiguous));
    int64_t refused = p->refused.no_margin + p->refused.costs_above;
    if (refused)
        printf("refused   %lld order%s: %lld without enough margin, %lld with costs above the equity\n",
            (long long)refused, term_s(refused), (long long)p->refused.no_margin, (long long)p->refused.costs_above);
}

// Figures

static char *figure_text(char *buf, size_t n, const figure *f, double v) {
    char whole[SHOWN];
    if (!isfinite(v)) {
        snprintf(buf, n, "-");
    } else if (f->unit == FIGURE_SHARE) {
        snprintf(buf, n, "%.4f %%", 100 * v);
    } else if (f->unit == FIGURE_COUNT) {
        term_count(buf, n, v);
    } else {
        double cents = rint(100 * fabs(v));
        term_count(whole, sizeof whole, floor(cents / 100));
        snprintf(buf, n, "%s%s.%02d", v < 0 && cents > 0 ? "-" : "", whole, (int)fmod(cents, 100));
    }
    return buf;
}

static void tell_figures(const replay *p, bool verbose) {
    size_t count;
    const figure *all = figures_all(&count);
    printf("%-16s %18s %18s\n", "", "signals", "buy and hold");
    for (size_t i = 0; i < count; i++) {
        char is[FIGURE], hold[FIGURE] = "";
        if (all[i].hold) figure_text(hold, sizeof hold, &all[i], all[i].hold(p));
        figure_text(is, sizeof is, &all[i], all[i].of(p));
        if (verbose)
            printf("%-16s %18s %18s  %s\n", all[i].label, is, hold, all[i].means);
        else
            printf(all[i].hold ? "%-16s %18s %18s\n" : "%-16s %18s\n", all[i].label, is, hold);
    }
}

// JSON

static json_t *terms_json(const account_terms *t) {
    char text[5][96];
    return json_pack("{s:f, s:s, s:s, s:s, s:s, s:s, s:f, s:f, s:f, s:f, s:b, s:s, s:b, s:b, s:s}", "cash", t->cash,
        "spread", account_rate_text(text[0], sizeof text[0], &t->spread, "the price"), "commission",
        account_rate_text(text[1], sizeof text[1], &t->commission, "the value"), "slippage",
        account_rate_text(text[2], sizeof text[2], &t->slippage, "the price"), "swap_long",
        account_rate_text(text[3], sizeof text[3], &t->swap_long, "the value"), "swap_short",
        account_rate_text(text[4], sizeof text[4], &t->swap_short, "the value"), "leverage", t->leverage, "margin_call",
        t->margin_call, "contract", t->contract, "lot_step", t->lot_step, "short", t->shorts, "both",
        t->target_first ? "target" : "stop", "entry_stop", t->entry_stop, "day_close", t->day_close, "last",
        t->last_open ? "open" : "close");
}

static void tell_json(const backtest *b, const backtest_options *o) {
    const replay *p = &b->replay;
    size_t count;
    const figure *all = figures_all(&count);
    json_t *line = json_pack("{s:s, s:I, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:o}", "bars_file", o->bars, "bars",
        (json_int_t)b->quotes.count, "signals_file", o->signals, "signals_used", (json_int_t)b->orders.count,
        "signals_outside", (json_int_t)b->orders.outside, "signals_late", (json_int_t)b->orders.late, "ambiguous_bars",
        (json_int_t)p->ambiguous, "refused_margin", (json_int_t)p->refused.no_margin, "refused_costs",
        (json_int_t)p->refused.costs_above, "account", terms_json(&b->terms));
    json_t *hold = json_object();
    for (size_t i = 0; i < count; i++) {
        bool whole = all[i].unit == FIGURE_COUNT;
        json_object_set_new(
            line, all[i].key, whole ? json_integer((json_int_t)all[i].of(p)) : json_number(all[i].of(p)));
        if (all[i].hold) json_object_set_new(hold, all[i].key, json_number(all[i].hold(p)));
    }
    json_object_set_new(line, "buy_and_hold", hold);
    json_line(stdout, line);
}

// The command

static bool ask(const cli_options *o, backtest_options *to, err *e) {
    *to = (backtest_options){.signals = cli_given(o, "--signals"),
        .bars = cli_given(o, "--bars"),
        .overrides = o->word,
        .override_count = o->words};
    if (!to->signals) return err_input(e, "no signals given; name their file with --signals FILE");
    if (!to->bars) return err_input(e, "no bars given; name the file that the signals were made on with --bars FILE");
    if (strcmp(to->signals, "-") == 0 && strcmp(to->bars, "-") == 0)
        return err_input(e, "--signals - and --bars - both read standard input; name a file for one of them");
    return true;
}

static bool run(const cli_options *o, err *e) {
    const char *trades = cli_given(o, "--trades");
    backtest_options options;
    backtest b;
    if (!ask(o, &options, e)) return false;
    const char *const inputs[] = {options.signals, options.bars};
    if (trades && !output_may_replace(trades, OUTPUT_TRADES, inputs, 2, e)) return false;
    if (!backtest_run(&b, &options, e)) return false;
    bool ok = !trades || trades_write(trades, &b.replay, e);
    if (ok && o->json) tell_json(&b, &options);
    if (ok && !o->json && !o->quiet) {
        tell_input(&b, &options);
        tell_account(&b.terms, b.quotes.point);
        tell_rules(&b.terms, &b.replay);
    }
    if (ok && !o->json) tell_figures(&b.replay, o->verbose);
    if (ok && trades && !o->json && !o->quiet) printf("trades    %s\n", trades);
    backtest_done(&b);
    return ok;
}

static void print_keys(void) {
    size_t count;
    const config_key *keys = account_keys(&count);
    printf("\nkeys of the account (doc/backtest.md has the rules):\n");
    config_help(keys, count, stdout);
}

const cli_command cli_backtest = {"backtest", "--signals FILE --bars FILE [key=value...]",
    "trades, costs and figures of anyone's signals on bars",
    "Signals are a table with the columns time, position, stop and target, stop and target empty or missing for none.\n"
    "A signal's time is the open of the bar at whose close it was decided; it fills at the open of the next bar, where "
    "the\nold position is closed and the new one opened. The same position again changes stop and target alone.\n"
    "  --signals FILE      the signals\n"
    "  --bars FILE         the bars, in any format that import reads; row by row as they are: nothing is left out\n"
    "  --trades FILE       writes the trades as CSV: position, times, prices, result, commission, swap, reason\n"
    "Further words set keys of the account: account.cash=10000 account.spread=2pt.\n",
    print_keys, NULL, WORDS_MOST, run, "--signals --bars --trades", NULL};
