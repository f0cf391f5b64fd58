#include "task/agent_backtest.h"

#include "backtest/judge.h"
#include "task/backtest_work.h"
#include "task/rebuild.h"
#include "task/trials.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The instrument

// The stretch of the part that is of the instrument.
static bool find_stretch(const backtested *b, const trained_agent *t, market_stretch *to, err *e) {
    const agent_data *w = &t->task.world;
    int64_t found = 0;
    for (int64_t k = 0; k < w->test.count; k++) {
        const market_stretch *s = &w->test.item[k];
        if (s->rules != b->market.series) continue;
        *to = *s;
        found++;
    }
    if (found > 1)
        return err_input(e,
            "%s: the part %s has %lld stretches with other bars between them, which one account does not trade; "
            "`tradewind evaluate` plays each by itself",
            w->task.data->name, w->part, (long long)found);
    return found || err_input(e, "%s: the part %s has no two bars in a row of %s", w->task.data->name, w->part,
                        b->market.symbol[0] ? b->market.symbol : "the instrument");
}

// The pass over one stretch alone.
static bool play(trained_agent *t, const market_stretch *s, agent_pass *p, err *e) {
    agent_world w = t->task.agent.test;
    market_stretch one = *s;
    one.before = 0;
    w.env.market.stretches = 1;
    w.part[MARKET_STRETCHES].shape.dim[0] = 1;
    w.part[MARKET_STRETCHES].data = &one;
    return agent_play(p, t->actor, &w, e);
}

quotes agent_backtest_bars(const backtested *b, const trained_agent *t, const market_stretch *s) {
    const agent_market *m = &t->task.world.market;
    const quotes *q = &b->market.quotes;
    int64_t from = q->count - (m->start[s->rules + 1] - s->first);
    return (quotes){s->end - s->first, q->time + from, q->open + from, q->high + from, q->low + from, q->close + from,
        q->spread ? q->spread + from : NULL, q->point};
}

// The account of a run

// Orders of a run; one that is decided at a bar fills in the next.
static bool list_orders(backtested *b, const agent_pass *p, const play_run *run, err *e) {
    b->orders.item = calloc((size_t)b->quotes.count, sizeof *b->orders.item);
    if (!b->orders.item) return err_run(e, "no memory for the orders of %lld bars", (long long)b->quotes.count);
    for (int64_t i = 0; i < run->count && i + 1 < b->quotes.count; i++) {
        const play_bar *at = &p->bar[run->first + i];
        if (at->orders) b->orders.item[b->orders.count++] = (signals_order){i + 1, {at->order, 0, 0}};
    }
    b->scores = run->count;
    b->ruined_at = run->ruined ? b->quotes.time[run->count - 1] : 0;
    return true;
}

// Replays the orders over the quotes.
static bool fill_orders(backtested *b, err *e) {
    return account_rules_make(&b->rules, &b->terms, b->market.quotes.point, e) &&
           replay_init(&b->replay, &b->quotes, &b->terms, &b->rules, b->quotes.count, e) &&
           replay_orders(&b->replay, &b->orders, e);
}

bool agent_backtest_replay(backtested *b, const char *run, err *e) {
    judge_options how = {0};
    return fill_orders(b, e) && backtest_work_judge(b, &how, run, e);
}

// The instrument's account and bars.
static bool open_account(backtested *b, const trained_agent *t, const char *symbol, err *e) {
    return account_terms_read(t->task.config, &b->terms, e) &&
           market_choose(&b->market, t->task.world.task.data, symbol, e) &&
           market_quote(&b->market.quotes, t->task.world.task.data, b->market.series, &b->terms, e);
}

bool agent_backtest_run(backtested *b, const trained_agent *t, const agent_pass *p, int64_t run, err *e) {
    const dataset *d = t->task.world.task.data;
    const play_run *r = &p->run[run];
    const market_stretch *s = &t->task.world.test.item[r->stretch];
    *b = (backtested){0};
    bool ok = agent_backtest_about(b, t, NULL, e) && open_account(b, t, d->panel ? d->panel_names[s->rules] : NULL, e);
    if (ok) b->quotes = agent_backtest_bars(b, t, s);
    if (ok && list_orders(b, p, r, e) && fill_orders(b, e)) return true;
    bool idle = e->kind == ERR_INPUT && b->replay.equity && !b->replay.books.state;
    if (!idle) backtest_run_done(b);
    return false;
}

// Trading

bool agent_backtest_about(backtested *b, const trained_agent *t, const char *run, err *e) {
    const agent_data *w = &t->task.world;
    b->agent = true;
    b->market_of_agent = t->task.agent.test.env.market;
    snprintf(b->part, sizeof b->part, "%s", w->part);
    snprintf(b->data, sizeof b->data, "%s", w->task.data->name);
    b->trained_on = t->notes.trained_on;
    b->warnings = t->notes.warnings;
    memcpy(b->warning, t->notes.warning, sizeof b->warning);
    return !run || (weights_identity(run, b->rule.weights, e) && backtest_work_trials(b, t->task.config, run, e));
}

bool agent_backtest_trade(backtested *b, trained_agent *t, const char *symbol, const char *run, err *e) {
    market_stretch s;
    agent_pass p = {0};
    *b = (backtested){0};
    bool ok = agent_backtest_about(b, t, run, e) && open_account(b, t, symbol, e) && find_stretch(b, t, &s, e) &&
              play(t, &s, &p, e);
    if (ok) {
        b->quotes = agent_backtest_bars(b, t, &s);
        ok = list_orders(b, &p, &p.run[0], e) && agent_backtest_replay(b, run, e);
    }
    agent_pass_done(&p);
    if (!ok) backtest_run_done(b);
    return ok;
}

// Opening

bool agent_backtest_keys(const trained_options *o, const char *what, err *e) {
    for (int i = 0; i < o->override_count; i++)
        if (strncmp(o->overrides[i], "signal.", 7) == 0)
            return err_input(
                e, "%.200s: has no effect on an agent, which decides by itself; leave it out", o->overrides[i]);
    return backtest_work_keys(o, what, e);
}

static bool check_options(const backtest_run_options *o, err *e) {
    const char *part = o->run.part;
    if (o->bars && part) return err_input(e, "--part: with --bars every bar with enough past is traded; leave one out");
    if (o->bars && o->run.data) return err_input(e, "--data: with --bars the set is made of that file; leave one out");
    return !o->run.data || !part || strcmp(part, "all") == 0 ||
           err_input(e, "--part %s: another set is traded whole; leave --part out", part);
}

static bool trade_opened(backtested *b, trained_agent *t, const backtest_run_options *o, err *e) {
    return t->actor ? agent_backtest_trade(b, t, o->symbol, o->run.run, e)
                    : err_input(e, "%s: is an agent of %s, which has no bars to trade on", o->run.run,
                          agent_task_env(&t->task));
}

static bool trade(backtested *b, const backtest_run_options *o, err *e) {
    trained_agent t;
    if (!trained_agent_open(&t, &o->run, e)) return false;
    bool ok = trade_opened(b, &t, o, e);
    trained_agent_close(&t);
    return ok;
}

// `own` is the run's own data, `span` that of their finest bars.
static bool trade_other(backtested *b, const trained_options *as, const contract *own, int64_t span,
    const backtest_run_options *o, err *e) {
    trained_agent t;
    if (!trained_agent_open(&t, as, e)) return rebuild_refuse(o->bars, span, e);
    data_notes_files(&t.notes, own, &t.task.world.task);
    bool ok = trade_opened(b, &t, o, e);
    trained_agent_close(&t);
    return ok;
}

// Bars of a file: a set is made of them as the run's own was.
static bool trade_file(backtested *b, const backtest_run_options *o, err *e) {
    trained_agent t;
    trained_options as = o->run;
    rebuild again = {0};
    as.live = true; // the run's own data say how
    if (!trained_agent_open(&t, &as, e)) return false;
    contract *own = t.task.world.open ? task_contract(&t.task.world.task) : NULL;
    int64_t span = t.task.world.open ? t.task.world.task.data->span[0] : 0;
    bool ok = t.task.world.open
                  ? rebuild_make(&again, &t.task.world.task, o->bars, o->symbol, as.overrides, as.override_count, e)
                  : err_input(e, "--bars: the environment of this run, %s, has no bars; leave it out",
                        agent_task_env(&t.task));
    trained_agent_close(&t);
    as.live = false;
    as.every = true;
    as.overrides = again.overrides;
    as.override_count = again.count;
    ok = ok && trade_other(b, &as, own, span, o, e);
    contract_free(own);
    if (ok) snprintf(b->part, sizeof b->part, "all");
    if (ok) snprintf(b->data, sizeof b->data, "%s", o->bars);
    rebuild_done(&again);
    return ok;
}

bool agent_backtest_make(backtested *b, const backtest_run_options *o, err *e) {
    *b = (backtested){0};
    if (!check_options(o, e) || !agent_backtest_keys(&o->run, "backtest", e)) return false;
    return o->bars ? trade_file(b, o, e) : trade(b, o, e);
}
