#include "cli/backtest_tell.h"

#include "base/term.h"

#include <stdio.h>
#include <string.h>

enum { WIDTH = 120, KEY = 10 };

// A line behind its word, broken at spaces.
static void print_line(const char *key, const char *text) {
    printf("%-*s", KEY, key);
    for (size_t n = strlen(text); n > WIDTH - KEY; n = strlen(text)) {
        size_t at = WIDTH - KEY;
        while (at && text[at] != ' ') at--;
        if (!at) break;
        printf("%.*s\n%*s", (int)at, text, KEY, "");
        text += at + 1;
    }
    printf("%s\n", text);
}

static void print_statistics(const stats *s, bool verbose) {
    printf(s->block ? "\n%45s  95 %% interval\n" : "\n", "");
    for (int k = 0; k < STATS_COUNT; k++) {
        char figure[160], range[96];
        const stat_row *row = stats_row((stat_name)k);
        stats_figure(s, (stat_name)k, figure, sizeof figure);
        stats_range(s, (stat_name)k, range, sizeof range);
        if (s->of[k].why)
            printf("%-24s %20s  %s\n", row->label, "-", s->of[k].why);
        else
            printf(range[0] ? "%-24s %20s  %s\n" : "%-24s %20s\n", row->label, figure, range);
        if (verbose) printf("%26s%s\n", "", row->definition);
    }
}

void backtest_tell_assumptions(const assumptions *a, bool quiet) {
    for (int i = 0; i < a->count; i++)
        if (!quiet)
            print_line(a->of[i].key, a->of[i].text);
        else if (strcmp(a->of[i].key, "warning") == 0)
            fprintf(stderr, "tradewind: warning: %s\n", a->of[i].text);
}

void backtest_tell(const backtest_told *b, const cli_options *o) {
    backtest_tell_assumptions(b->assumptions, o->quiet);
    print_statistics(b->stats, o->verbose);
}

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

json_t *backtest_tell_json(const backtest_told *b) {
    const replay *p = b->replay;
    json_t *all = json_pack("{s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:f, s:f, s:o, s:o}", "bars",
        (json_int_t)p->quotes->count, "ambiguous_bars", (json_int_t)p->ambiguous, "refused_margin",
        (json_int_t)p->refused.no_margin, "unsized", (json_int_t)p->unsized, "refused_costs",
        (json_int_t)p->refused.costs_above, "commissions", (double)p->books.commission / 1e8, "spread_costs",
        (double)p->books.spread / 1e8, "slippage_costs", (double)p->books.slippage / 1e8, "swaps",
        (double)p->books.swap / 1e8, "account", terms_json(b->terms), "assumptions", assumptions_json(b->assumptions));
    json_join(all, stats_json(b->stats));
    return all;
}
