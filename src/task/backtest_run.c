#include "task/backtest_run.h"

#include "run/results.h"
#include "task/backtest_work.h"
#include "task/rebuild.h"

#include <stdio.h>
#include <string.h>

void backtest_run_done(backtested *b) {
    replay_done(&b->replay);
    signals_orders_done(&b->orders);
    market_close(&b->market);
    b->quotes = (quotes){0};
}

static bool make_rule(backtested *b, trained *t, const backtest_run_options *o, err *e) {
    return backtest_work_rule(&b->rule, &b->terms, t, o->run.run, o->symbol, e);
}

static bool trade(backtested *b, trained *t, const backtest_run_options *o, err *e) {
    int64_t from, to;
    if (!backtest_work_tradable(t, o->run.run, e) || !backtest_work_about(b, t, o->run.run, e)) return false;
    if (o->bars || o->run.data) snprintf(b->part, sizeof b->part, "all");
    if (o->bars) snprintf(b->data, sizeof b->data, "%s", o->bars);
    return market_open(&b->market, t, &(market_options){o->symbol, o->bars}, &b->terms, e) &&
           market_score(&b->market, t, &t->samples, &from, &to, e) &&
           market_measure(&b->market, t, b->rule.rule.volatility_bars, e) &&
           backtest_work_trade(b, &(follow_stretch){0, &b->rule.rule}, 1, from, to, o->run.run, e);
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
    contract *was = task_contract(&t.task);
    int64_t span = t.task.data->span[0];
    bool ok = make_rule(b, &t, o, e) &&
              (!o->bars || rebuild_make(&again, &t.task, o->bars, o->symbol, own->overrides, own->override_count, e));
    trained_close(&t);
    as.part = "all";
    if (o->bars) {
        as.part = NULL;
        as.latest = INT64_MAX; // bars without a label yet are traded as well
        as.overrides = again.overrides;
        as.override_count = again.count;
    }
    bool opened = ok && trained_open(&t, &as, e);
    if (opened) data_notes_files(&t.notes, was, &t.task);
    ok = opened ? trade(b, &t, o, e) : ok && o->bars && rebuild_refuse(o->bars, span, e);
    if (opened) trained_close(&t);
    contract_free(was);
    rebuild_done(&again);
    return ok;
}

bool backtest_run_make(backtested *b, const backtest_run_options *o, err *e) {
    trained_options own = o->run;
    trained t;
    *b = (backtested){0};
    if (!check_part(o, e) || !backtest_work_keys(&o->run, "backtest", e)) return false;
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
    json_t *doc = document_make(a, &b->replay, &b->stats);
    json_object_set_new(doc, "part", json_string(b->part));
    json_object_set_new(doc, "weights", json_string(b->rule.weights));
    if (b->agent || rule_write(dir, &b->rule, e)) return results_write(dir, RESULTS_BACKTEST, doc, e);
    json_decref(doc);
    return false;
}
