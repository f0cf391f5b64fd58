#include "task/agent_chain.h"

#include "task/agent_backtest.h"
#include "task/backtest_work.h"
#include "task/walk.h"

#include <stdio.h>
#include <stdlib.h>

// An agent that has been opened, and the stretch of its test that is of the instrument.
typedef struct {
    trained_agent agent;
    market_stretch stretch;
    backtest_fold *fold; // NULL: there is none
} link;

typedef struct {
    const agent_chain *c;
    backtested_walk *w;
    int64_t next;  // fold to be opened
    int64_t first; // row of the market that is bar 0 of the quotes
    link one, other;
    market_state account;
    bool begun, ruined;
} chain;

static void link_close(link *l) {
    if (l->fold) trained_agent_close(&l->agent);
    l->fold = NULL;
}

// Opening

// The first fold opens the account and the instrument for all.
static bool open_account(chain *x, const link *l, err *e) {
    backtested *b = &x->w->all;
    const task *t = &l->agent.task.world.task;
    if (b->market.quotes.count) return true;
    return account_terms_read(t->config, &b->terms, e) && market_choose(&b->market, t->data, x->c->o->symbol, e) &&
           market_quote(&b->market.quotes, t->data, b->market.series, &b->terms, e);
}

static bool find_stretch(const chain *x, link *l, err *e) {
    const agent_data *d = &l->agent.task.world;
    const backtested *b = &x->w->all;
    agent_stretches all;
    bool found = false;
    if (!agent_market_part(&all, &d->market, d->task.data, &l->fold->part, "test", 0, e)) return false;
    for (int64_t k = 0; k < all.count; k++) {
        if (all.item[k].rules != b->market.series) continue;
        if (found) l->stretch.end = all.item[k].end; // one account trades what lies between
        if (!found) l->stretch = all.item[k];
        found = true;
    }
    l->stretch.before = 0;
    agent_stretches_done(&all);
    return found || err_input(e, "the test has no two bars in a row of the instrument");
}

static bool open_link(chain *x, link *l, backtest_fold *f, err *e) {
    const agent_chain *c = x->c;
    trained_options as = c->o->run;
    const scheme_fold *of = &c->folds->fold[f->at];
    char *dir = walk_dir(c->o->run.run, of);
    as.run = dir;
    as.dataset = c->data;
    as.parts = &of->parts;
    as.part = "test";
    as.finished = true;
    bool ok = trained_agent_open(&l->agent, &as, e);
    free(dir);
    if (!ok) return false;
    l->fold = f;
    if (open_account(x, l, e) && find_stretch(x, l, e)) return true;
    link_close(l);
    return false;
}

// Agents of a path were trained on all groups but their own: none may trade the group of an agent that is missing.
static bool may_miss(const chain *x, const backtest_fold *f, err *e) {
    return !x->c->folds->paths || err_input(e, "%s: fold %lld is needed by every path that tests by it: %s",
                                      x->c->o->run.run, (long long)f->number, f->why);
}

// The next fold that can be traded; none where `l->fold` stays NULL. False where a run fails.
static bool open_next(chain *x, link *l, err *e) {
    backtested_walk *w = x->w;
    while (!l->fold && x->next < w->count) {
        backtest_fold *f = &w->fold[x->next++];
        err why = {0};
        if (!f->why[0] && open_link(x, l, f, &why)) return true;
        if (why.kind == ERR_RUN) {
            *e = why;
            return false;
        }
        if (!f->why[0]) snprintf(f->why, sizeof f->why, "%.*s", (int)sizeof f->why - 1, why.text);
        if (!may_miss(x, f, e)) return false;
    }
    return true;
}

// Playing

// Orders of a pass; what is decided at its last bar is the next agent's to decide, unless there is none to come.
static void list_orders(chain *x, const agent_pass *p) {
    backtested *b = &x->w->all;
    const play_run *run = &p->run[0];
    int64_t decided = run->ruined ? run->count : run->count - 1;
    for (int64_t i = 0; i < decided; i++) {
        const play_bar *at = &p->bar[run->first + i];
        int64_t bar = at->row - x->first + 1;
        if (at->orders) b->orders.item[b->orders.count++] = (signals_order){bar, {at->order, 0, 0}};
    }
    b->scores += decided;
    if (run->ruined) b->ruined_at = b->quotes.time[p->bar[run->first + run->count - 1].row - x->first];
}

// Trades a fold up to the first bar of the next one, whose agent sees it with the books that are there then.
static bool play(chain *x, link *now, const link *next, err *e) {
    agent_pass p;
    agent_world w = now->agent.task.agent.test;
    market_stretch s = now->stretch;
    if (next->fold) s.end = next->stretch.first + 1;
    w.env.market.stretches = 1;
    w.part[MARKET_STRETCHES].shape.dim[0] = 1;
    w.part[MARKET_STRETCHES].data = &s;
    if (!agent_play_on(&p, now->agent.actor, &w, x->begun ? &x->account : NULL, &x->account, e)) return false;
    x->begun = true;
    x->ruined = p.run[0].ruined;
    list_orders(x, &p);
    agent_pass_done(&p);
    now->fold->from = s.first;
    now->fold->to = s.end - 1;
    now->fold->equity = x->account.equity;
    return true;
}

static bool note(chain *x, const link *l, err *e) {
    backtested *b = &x->w->all;
    int64_t before = b->trained_on, here = l->agent.notes.trained_on;
    if (!x->w->traded && !agent_backtest_about(b, &l->agent, x->c->o->run.run, e)) return false;
    if (x->w->traded && before >= 0) b->trained_on = here < 0 ? -1 : before + here;
    x->w->traded++;
    return true;
}

// The account's bars, from the first one that an agent sees to the end of the data: cut when the last one is known.
static bool begin(chain *x, const link *l, err *e) {
    backtested *b = &x->w->all;
    const agent_market *m = &l->agent.task.world.market;
    market_stretch all = l->stretch;
    all.end = m->start[all.rules + 1];
    x->first = all.first;
    b->quotes = agent_backtest_bars(b, &l->agent, &all);
    b->orders.item = calloc((size_t)b->quotes.count + 1, sizeof *b->orders.item);
    return b->orders.item || err_run(e, "no memory for the orders of %lld bars", (long long)b->quotes.count);
}

static void say_ruined(const chain *x) {
    for (int64_t i = x->next; i < x->w->count; i++)
        snprintf(x->w->fold[i].why, sizeof x->w->fold[i].why, "the account was ruined before it");
}

// The account ends with the last agent's last bar.
static void cut(backtested *b, int64_t bars) {
    signals_orders *all = &b->orders;
    b->quotes.count = bars;
    while (all->count && all->item[all->count - 1].bar >= bars) all->count--;
}

static bool play_all(chain *x, err *e) {
    link *now = &x->one, *next = &x->other;
    int64_t bars = 0;
    if (!open_next(x, now, e)) return false;
    if (!now->fold) return err_input(e, "%s: no fold can be traded: %s", x->c->o->run.run, x->w->fold[0].why);
    if (!begin(x, now, e)) return false;
    while (now->fold && !x->ruined) {
        if (!open_next(x, next, e) || !play(x, now, next, e) || !note(x, now, e)) return false;
        bars = now->fold->to + 1 - x->first;
        bars += x->ruined && next->fold; // where what is open is closed
        link_close(now);
        link *was = now;
        now = next;
        next = was;
    }
    cut(&x->w->all, bars);
    if (x->ruined && now->fold) snprintf(now->fold->why, sizeof now->fold->why, "the account was ruined before it");
    if (x->ruined) say_ruined(x);
    return true;
}

bool agent_chain_trade(const agent_chain *c, backtested_walk *w, err *e) {
    if (!agent_backtest_keys(&c->o->run, "backtest", e)) return false;
    chain *x = calloc(1, sizeof *x);
    if (!x) return err_run(e, "no memory for the agents of a walk");
    x->c = c;
    x->w = w;
    bool ok = play_all(x, e) && agent_backtest_replay(&w->all, c->o->run.run, e);
    link_close(&x->one);
    link_close(&x->other);
    free(x);
    return ok;
}
