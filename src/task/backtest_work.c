#include "task/backtest_work.h"

#include "task/trials.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Rows from..to of quotes.
static quotes cut_quotes(const quotes *q, int64_t from, int64_t to) {
    quotes part = {to - from + 1, q->time + from, q->open + from, q->high + from, q->low + from, q->close + from,
        q->spread ? q->spread + from : NULL, q->point};
    return part;
}

// The row whose close makes the label of row `last` known: a part reaches so far, and the next one begins behind it.
static int64_t row_known(const market *m, int64_t last) {
    int64_t behind = last + build_reach(&m->label);
    return behind < m->quotes.count ? behind : m->quotes.count - 1;
}

void backtest_work_cut(const market *m, int64_t from, int64_t to, quotes *q, follow_series *s) {
    *q = cut_quotes(&m->quotes, from, row_known(m, to));
    *s = (follow_series){m->all.score + from, m->all.volatility + from};
}

bool backtest_work_tradable(const trained *t, const char *run, err *e) {
    const walk_settings *w = &t->task.settings.walk;
    if (!w->fold || w->scheme.kind != SCHEME_CPCV) return true;
    return err_input(e,
        "%s: a fold of cpcv tests stretches between its training data, which are not traded; "
        "`tradewind evaluate` scores it",
        run);
}

// The rule

static bool fit(rule_record *r, const account_terms *terms, market *m, int64_t from, int64_t to, err *e) {
    quotes q;
    follow_series s;
    backtest_work_cut(m, from, to, &q, &s);
    account_rules rules;
    bool ok = account_rules_make(&rules, terms, m->quotes.point, e) &&
              follow_fit(&r->rule, &q, &s, terms, &rules, &r->fitted, e);
    if (!ok) return false;
    r->was_fitted = true;
    r->rule.threshold = r->fitted.threshold;
    return true;
}

bool backtest_work_rule(rule_record *r, account_terms *terms, trained *t, const char *run, const char *symbol, err *e) {
    const config *c = t->task.config;
    signal_settings s;
    market m;
    int64_t from, to;
    if (!account_terms_read(c, terms, e) || !signal_read(c, &s, e)) return false;
    if (!market_open(&m, t, &(market_options){.symbol = symbol}, terms, e)) return false;
    bool ok = market_score(&m, t, &t->task.split.validation, &from, &to, e);
    if (ok) {
        decide_rule_make(&r->rule, &s, &m.label, market_bars_a_year(&m, 0, to));
        snprintf(r->symbol, sizeof r->symbol, "%s", m.symbol);
        ok = weights_identity(run, r->weights, e) && market_measure(&m, t, r->rule.volatility_bars, e) &&
             (s.threshold != SIGNAL_AUTO || fit(r, terms, &m, from, to, e));
    }
    market_close(&m);
    return ok;
}

// Keys

static const char read_as[] = "read as ";

// True for a key that was for the training.
static bool is_trained(const char *key) {
    static const char *const sections[] = {"train.", "model.", "walk.", "run."};
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++)
        if (strncmp(key, sections[i], strlen(sections[i])) == 0) return true;
    return false;
}

bool backtest_work_keys(const trained_options *o, const char *what, err *e) {
    for (int i = 0; i < o->override_count; i++)
        if (is_trained(o->overrides[i]))
            return err_input(e, "%.200s: has no effect on a %s, which takes a run as it was trained; leave it out",
                o->overrides[i], what);
    return true;
}

typedef struct {
    const task *task;
    backtested *to;
} noter;

static bool is_other_name(const told_key *k) {
    return strncmp(k->text, read_as, sizeof read_as - 1) == 0;
}

bool backtest_work_unused(const task *t, const told_key *k) {
    return task_key_given(&t->options.description, k->key) &&
           (!is_other_name(k) || is_trained(k->text + sizeof read_as - 1));
}

static void note_unused(void *arg, const told_key *k) {
    const noter *n = arg;
    char *text = n->to->unused;
    size_t used = strlen(text);
    if (!backtest_work_unused(n->task, k)) return;
    snprintf(text + used, sizeof n->to->unused - used, "%s%s: %s%s", used ? "; " : "", k->key, k->text,
        is_other_name(k) ? ", which has no effect on a backtest" : "");
}

bool backtest_work_about(backtested *b, const trained *t, const char *run, err *e) {
    snprintf(b->part, sizeof b->part, "%s", t->part);
    snprintf(b->data, sizeof b->data, "%s", t->task.data->name);
    b->trained_on = t->notes.trained_on;
    b->unused[0] = 0;
    task_each_key(&t->task, note_unused, &(noter){&t->task, b});
    b->warnings = t->notes.warnings;
    memcpy(b->warning, t->notes.warning, sizeof b->warning);
    return backtest_work_trials(b, t->task.config, run, e);
}

bool backtest_work_trials(backtested *b, const config *c, const char *run, err *e) {
    b->trials = report_trials(c);
    b->trials_given = b->trials != SIGNAL_AUTO;
    return b->trials_given || trials_count(run, &b->trials, e);
}

// Trading

bool backtest_work_judge(backtested *b, judge_options *how, const char *run, err *e) {
    json_t *daily = document_daily(&b->replay);
    overfit over;
    bool ok = trials_overfit(run, daily, &over, &b->compared, e);
    json_decref(daily);
    how->trials = (double)b->trials;
    how->overfit = b->compared ? &over : NULL;
    return ok && judge(&b->replay, &b->terms, how, &b->stats, e);
}

// Outcomes are log returns over the bars that the label looks ahead.
static bool judge_rows(backtested *b, int64_t from, const char *run, err *e) {
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
    judge_options how = {.prediction = pair, .outcome = outcome, .predictions = n};
    bool ok = backtest_work_judge(b, &how, run, e);
    free(pair);
    return ok;
}

bool backtest_work_trade(
    backtested *b, const follow_stretch *stretch, int64_t count, int64_t from, int64_t to, const char *run, err *e) {
    follow_series s;
    backtest_work_cut(&b->market, from, to, &b->quotes, &s);
    b->orders.item = calloc((size_t)b->quotes.count, sizeof *b->orders.item);
    if (!b->orders.item) return err_run(e, "no memory for the orders of %lld bars", (long long)b->quotes.count);
    return account_rules_make(&b->rules, &b->terms, b->market.quotes.point, e) &&
           replay_init(&b->replay, &b->quotes, &b->terms, &b->rules, b->quotes.count, e) &&
           follow(&b->replay, stretch, count, &s, &b->orders, e) && judge_rows(b, from, run, e);
}
