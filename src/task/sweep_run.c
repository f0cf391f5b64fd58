#include "task/sweep_run.h"

#include "task/backtest_work.h"
#include "task/trials.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    account_terms terms;
    account_rules rules;
    signal_settings signal;
    decide_rule rule;
    err why; // of a fit that failed
} setting;

typedef struct {
    market market;
    quotes quotes; // rows that are played: a view
    follow_series series;
    setting *of; // [settings]
} work;

// Settings

static bool check_keys(const grid *g, err *e) {
    for (int i = 0; i < g->axes; i++) {
        const char *key = g->axis[i].key;
        bool known = strncmp(key, "account.", 8) == 0 || strncmp(key, "signal.", 7) == 0;
        if (!known || strcmp(key, "account.point") == 0)
            return err_input(e, "--sweep %s: has one value for all settings; sweep keys of account and signal", key);
    }
    return true;
}

static bool check_options(const backtest_run_options *o, err *e) {
    const char *part = o->run.part;
    if (o->bars || o->run.data)
        return err_input(e, "--sweep: settings are compared on the run's own data; leave --bars and --data out");
    if (part && strcmp(part, "train") != 0 && strcmp(part, "validation") != 0 && strcmp(part, "test") != 0)
        return err_input(e, "--part %s: a sweep is of one part; use train, validation or test", part);
    return true;
}

static bool read_settings(work *w, config *c, const grid *g, err *e) {
    bool ok = true;
    for (int64_t k = 0; ok && k < g->settings; k++) {
        setting *s = &w->of[k];
        ok = grid_apply(g, k, c, e) && account_terms_read(c, &s->terms, e) && signal_read(c, &s->signal, e);
    }
    return ok;
}

// Rules of settings, from the bars up to row `to`.
static bool make_rules(work *w, int64_t count, int64_t to, err *e) {
    double bars_a_year = market_bars_a_year(&w->market, 0, to);
    for (int64_t k = 0; k < count; k++) {
        setting *s = &w->of[k];
        decide_rule_make(&s->rule, &s->signal, &w->market.label, bars_a_year);
        if (!account_rules_make(&s->rules, &s->terms, w->market.quotes.point, e)) return false;
    }
    return true;
}

// Quotes for a setting: the bars' own spreads are for those that ask for them.
static quotes quotes_for(const work *w, const setting *s) {
    quotes q = w->quotes;
    if (s->terms.spread.measure != ACCOUNT_FROM_FILE) q.spread = NULL;
    return q;
}

static void fit_one(void *arg, int64_t k, int worker) {
    (void)worker;
    work *w = arg;
    setting *s = &w->of[k];
    quotes q = quotes_for(w, s);
    follow_fitted fitted;
    if (s->signal.threshold != SIGNAL_AUTO) return;
    if (follow_fit(&s->rule, &q, &w->series, &s->terms, &s->rules, &fitted, &s->why))
        s->rule.threshold = fitted.threshold;
}

static bool play(void *arg, int64_t k, sweep_play *to, err *e) {
    work *w = arg;
    const setting *s = &w->of[k];
    if (s->why.kind) {
        *e = s->why;
        return false;
    }
    to->terms = s->terms;
    to->quotes = quotes_for(w, s);
    if (s->signal.threshold == SIGNAL_AUTO) to->fitted = s->rule.threshold;
    return replay_init(&to->replay, &to->quotes, &to->terms, &s->rules, to->quotes.count, e) &&
           follow(&to->replay, &(follow_stretch){0, &s->rule}, 1, &w->series, NULL, e);
}

// Parts

static bool from_file(const setting *s) {
    return s->terms.spread.measure == ACCOUNT_FROM_FILE;
}

// Bars, volatility and scores of a part, in place of those before; with spreads where one of the settings needs them.
static bool open_part(
    work *w, trained *t, const split_part *part, const char *symbol, const grid *g, int64_t *to, err *e) {
    int64_t from, with = 0;
    while (with + 1 < g->settings && !from_file(&w->of[with])) with++;
    market_close(&w->market);
    if (!market_open(&w->market, t, &(market_options){.symbol = symbol}, &w->of[with].terms, e) ||
        !market_score(&w->market, t, part, &from, to, e))
        return false;
    decide_rule rule;
    decide_rule_make(&rule, &w->of[0].signal, &w->market.label, 1);
    backtest_work_cut(&w->market, from, *to, &w->quotes, &w->series);
    return market_measure(&w->market, t, rule.volatility_bars, e); // which no setting changes
}

// Fits on validation, then turns to the part that is played.
static bool prepare(work *w, trained *t, const backtest_run_options *o, const grid *g, pool *p, err *e) {
    int64_t to;
    if (!open_part(w, t, &t->task.split.validation, o->symbol, g, &to, e) || !make_rules(w, g->settings, to, e))
        return false;
    pool_run(p, g->settings, fit_one, w);
    return strcmp(t->part, "validation") == 0 || open_part(w, t, &t->samples, o->symbol, g, &to, e);
}

static void describe(swept *s, const work *w, const trained *t) {
    const quotes *q = &w->quotes;
    s->all.bars = q->count;
    s->all.from = q->time[0];
    s->all.to = q->time[q->count - 1];
    for (int64_t i = 0; i < q->count; i++) s->scores += !isnan(w->series.score[i]);
    snprintf(s->part, sizeof s->part, "%s", t->part);
    snprintf(s->data, sizeof s->data, "%s", t->task.data->name);
    snprintf(s->symbol, sizeof s->symbol, "%s", w->market.symbol);
    s->warnings = t->notes.warnings;
    memcpy(s->warning, t->notes.warning, sizeof s->warning);
}

static bool make(swept *s, trained *t, const backtest_run_options *o, const grid *g, pool *p, err *e) {
    work w = {.of = calloc((size_t)g->settings, sizeof *w.of)};
    NEED(w.of, "out of memory for %lld settings", (long long)g->settings);
    int64_t trials = report_trials(t->task.config);
    bool given = trials != SIGNAL_AUTO;
    bool ok = given || trials_count(o->run.run, &trials, e);
    if (!given) trials += g->settings - 1;
    ok = ok && backtest_work_tradable(t, o->run.run, e) && read_settings(&w, t->task.config, g, e) &&
         prepare(&w, t, o, g, p, e) && sweep_make(&s->all, g->settings, (double)trials, play, &w, p, e);
    if (ok) describe(s, &w, t);
    s->all.trials_given = given;
    market_close(&w.market);
    free(w.of);
    return ok;
}

bool sweep_run(swept *s, const backtest_run_options *o, const grid *g, pool *p, err *e) {
    trained_options as = o->run;
    trained t;
    *s = (swept){0};
    if (!check_options(o, e) || !check_keys(g, e) || !backtest_work_keys(&as, "backtest", e)) return false;
    if (!as.part) as.part = "validation";
    if (!trained_open(&t, &as, e)) return false;
    bool ok = make(s, &t, o, g, p, e);
    trained_close(&t);
    return ok;
}

void sweep_run_done(swept *s) {
    sweep_done(&s->all);
}
