#include "task/backtest_run.h"

#include "backtest/judge.h"
#include "run/results.h"
#include "task/rebuild.h"
#include "task/trials.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void backtest_run_done(backtested *b) {
    replay_done(&b->replay);
    signals_orders_done(&b->orders);
    market_close(&b->market);
    b->quotes = (quotes){0};
}

// The rule

static bool read_keys(backtested *b, const trained *t, signal_settings *s, err *e) {
    const config *c = t->task.config;
    return account_terms_read(c, &b->terms, e) && signal_read(c, s, e);
}

// Rows from..to of quotes and predictions.
static quotes cut_quotes(const quotes *q, int64_t from, int64_t to) {
    quotes part = {to - from + 1, q->time + from, q->open + from, q->high + from, q->low + from, q->close + from,
        q->spread ? q->spread + from : NULL, q->point};
    return part;
}

static follow_series cut_series(const follow_series *s, int64_t from) {
    return (follow_series){s->score + from, s->volatility + from};
}

// The row whose close makes the label of row `last` known: a part reaches so far, and the next one begins behind it.
static int64_t row_known(const market *m, int64_t last) {
    int64_t behind = last + build_reach(&m->label);
    return behind < m->quotes.count ? behind : m->quotes.count - 1;
}

static bool fit(backtested *b, market *m, int64_t from, int64_t to, err *e) {
    rule_record *r = &b->rule;
    quotes q = cut_quotes(&m->quotes, from, row_known(m, to));
    follow_series s = cut_series(&m->all, from);
    account_rules rules;
    bool ok = account_rules_make(&rules, &b->terms, m->quotes.point, e) &&
              follow_fit(&r->rule, &q, &s, &b->terms, &rules, &r->fitted, e);
    if (!ok) return false;
    r->was_fitted = true;
    r->rule.threshold = r->fitted.threshold;
    return true;
}

// Makes the rule from the run's own data, opened so that its split has a validation part.
static bool make_rule(backtested *b, trained *t, const backtest_run_options *o, err *e) {
    signal_settings s;
    market m;
    int64_t from, to;
    if (!read_keys(b, t, &s, e)) return false;
    b->trials = report_trials(t->task.config);
    b->trials_given = b->trials != SIGNAL_AUTO;
    if (!b->trials_given) b->trials = trials_count(o->run.run);
    if (!market_open(&m, t, &(market_options){.symbol = o->symbol}, &b->terms, e)) return false;
    bool ok = market_score(&m, t, &t->task.split.validation, &from, &to, e);
    if (ok) {
        decide_rule_make(&b->rule.rule, &s, &m.label, market_bars_a_year(&m, 0, to));
        snprintf(b->rule.symbol, sizeof b->rule.symbol, "%s", m.symbol);
        b->rule.epoch = rule_epoch(o->run.run);
        ok = market_measure(&m, t, b->rule.rule.volatility_bars, e) &&
             (s.threshold != SIGNAL_AUTO || fit(b, &m, from, to, e));
    }
    market_close(&m);
    return ok;
}

// Outcomes

// Log return over the bars that the label looks ahead.
static bool judge_part(backtested *b, int64_t from, err *e) {
    const market *m = &b->market;
    int64_t reach = build_reach(&m->label), n = 0;
    double *pair = malloc(2 * (size_t)b->quotes.count * sizeof *pair), *outcome = pair + b->quotes.count;
    if (!pair) return err_run(e, "no memory for %lld predictions", (long long)b->quotes.count);
    for (int64_t i = 0; i < b->quotes.count; i++) {
        double score = m->all.score[from + i];
        b->scores += !isnan(score);
        if (isnan(score) || from + i + reach >= m->quotes.count) continue;
        pair[n] = score;
        outcome[n++] = log((double)m->quotes.close[from + i + reach] / (double)m->quotes.close[from + i]);
    }
    judge_options how = {.trials = (double)b->trials, .prediction = pair, .outcome = outcome, .predictions = n};
    bool ok = judge(&b->replay, &b->terms, &how, &b->stats, e);
    free(pair);
    return ok;
}

static bool replay_part(backtested *b, int64_t from, int64_t to, err *e) {
    b->quotes = cut_quotes(&b->market.quotes, from, row_known(&b->market, to));
    follow_series s = cut_series(&b->market.all, from);
    b->orders.item = calloc((size_t)b->quotes.count, sizeof *b->orders.item);
    if (!b->orders.item) return err_run(e, "no memory for the orders of %lld bars", (long long)b->quotes.count);
    return account_rules_make(&b->rules, &b->terms, b->market.quotes.point, e) &&
           replay_init(&b->replay, &b->quotes, &b->terms, &b->rules, b->quotes.count, e) &&
           follow(&b->replay, &b->rule.rule, &s, &b->orders, e) && judge_part(b, from, e);
}

static bool trade(backtested *b, trained *t, const backtest_run_options *o, err *e) {
    int64_t from, to;
    snprintf(b->part, sizeof b->part, "%s", o->bars || o->run.data ? "all" : t->part);
    snprintf(b->data, sizeof b->data, "%s", o->bars ? o->bars : t->task.data->name);
    b->trained_on = t->trained_on;
    b->warnings = t->warnings;
    memcpy(b->warning, t->warning, sizeof b->warning);
    return market_open(&b->market, t, &(market_options){o->symbol, o->bars}, &b->terms, e) &&
           market_score(&b->market, t, &t->samples, &from, &to, e) &&
           market_measure(&b->market, t, b->rule.rule.volatility_bars, e) && replay_part(b, from, to, e);
}

// Opening

// A part that the run's own split has.
static bool is_own_part(const backtest_run_options *o) {
    return !o->bars && !o->run.data && !(o->run.part && strcmp(o->run.part, "all") == 0);
}

static bool check_part(const backtest_run_options *o, err *e) {
    static const char *const parts[] = {"train", "validation", "test", "all"};
    const char *part = o->run.part;
    if (o->bars && part) return err_input(e, "--part: with --bars every bar with enough past is traded; leave one out");
    if (o->bars && o->run.data) return err_input(e, "--data: with --bars the set is made of that file; leave one out");
    if (o->run.data && part && strcmp(part, "all") != 0)
        return err_input(e, "--part %s: another set is traded whole; leave --part out", part);
    for (size_t i = 0; part && i < sizeof parts / sizeof *parts; i++)
        if (strcmp(part, parts[i]) == 0) return true;
    return !part || err_input(e, "--part %s: unknown part; use train, validation, test or all", part);
}

// Trades on other data, or on all of them: these are opened apart from the run's own split.
static bool trade_apart(backtested *b, const trained_options *own, const backtest_run_options *o, err *e) {
    trained t;
    trained_options as = o->run;
    rebuild again = {0};
    if (!trained_open(&t, own, e)) return false;
    bool ok = make_rule(b, &t, o, e) &&
              (!o->bars || rebuild_make(&again, &t.task, o->bars, o->symbol, own->overrides, own->override_count, e));
    trained_close(&t);
    as.part = "all";
    if (o->bars) {
        as.overrides = again.overrides;
        as.override_count = again.count;
    }
    bool opened = ok && trained_open(&t, &as, e);
    ok = opened && trade(b, &t, o, e);
    if (opened) trained_close(&t);
    rebuild_done(&again);
    return ok;
}

bool backtest_run_make(backtested *b, const backtest_run_options *o, err *e) {
    trained_options own = o->run;
    trained t;
    *b = (backtested){0};
    if (!check_part(o, e)) return false;
    own.data = NULL;
    if (!is_own_part(o)) own.part = "validation";
    bool ok = false;
    if (!is_own_part(o)) {
        ok = trade_apart(b, &own, o, e);
    } else if (trained_open(&t, &own, e)) {
        ok = make_rule(b, &t, o, e) && trade(b, &t, o, e);
        trained_close(&t);
    }
    if (!ok) backtest_run_done(b);
    return ok;
}

bool backtest_run_store(const backtested *b, const assumptions *a, const char *dir, err *e) {
    return rule_write(dir, &b->rule, e) &&
           results_write(dir, RESULTS_BACKTEST, document_make(a, &b->replay, &b->stats), e);
}
