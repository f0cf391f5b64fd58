#include "task/backtest_walk.h"

#include "run/run.h"
#include "task/agent_chain.h"
#include "task/backtest_work.h"
#include "task/source.h"
#include "task/walk.h"
#include "train/agent_keys.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void backtest_walk_done(backtested_walk *w) {
    backtest_run_done(&w->all);
    free(w->fold);
    for (int p = 0; p < w->paths; p++) {
        json_decref(w->path[p].folds);
        json_decref(w->path[p].curve);
    }
    free(w->path);
    *w = (backtested_walk){0};
}

// Folds

static bool check_options(const backtest_run_options *o, err *e) {
    const char *part = o->run.part;
    if (o->bars || o->run.data)
        return err_input(e,
            "%s: a walk is traded on the tests of its folds; leave --bars and --data out, or name a fold", o->run.run);
    if (part && strcmp(part, "test") != 0)
        return err_input(
            e, "--part %s: a walk is traded on the tests of its folds; leave --part out, or name a fold", part);
    return true;
}

// The walk's data, and its folds with their parts.
typedef struct {
    dataset *data;
    scheme_folds folds;
    bool agents; // folds are agents
} source;

static bool take_memory(backtested_walk *w, int64_t count, err *e) {
    w->fold = calloc((size_t)count, sizeof *w->fold);
    w->count = count;
    return w->fold || err_run(e, "no memory for %lld folds", (long long)count);
}

static void take_fold(backtest_fold *to, const source *s, int64_t at, const split_part *part) {
    const scheme_fold *from = &s->folds.fold[at];
    *to = (backtest_fold){.number = from->number + 1, .at = at, .part = *part};
    snprintf(to->why, sizeof to->why, "%s", from->why);
}

static bool take_folds(backtested_walk *w, const source *s, err *e) {
    if (!take_memory(w, s->folds.count, e)) return false;
    for (int64_t i = 0; i < w->count; i++) take_fold(&w->fold[i], s, i, &s->folds.fold[i].parts.test);
    return true;
}

static bool take_path(backtested_walk *w, const source *s, int path, err *e) {
    if (!take_memory(w, s->folds.groups, e)) return false;
    for (int g = 0; g < s->folds.groups; g++) {
        split_part part = part_of(s->folds.group[g]);
        take_fold(&w->fold[g], s, scheme_of_path(&s->folds, path, g), &part);
    }
    return true;
}

// Opens the data, which all folds share, and lists the folds; the caller gives both back, also on failure.
static bool open_folds(const backtest_run_options *o, source *s, err *e) {
    task t;
    int64_t window[STREAMS_MOST];
    char *file = run_path(o->run.run, "config.yaml");
    task_options as = {
        .description = {.file = file, .overrides = o->run.overrides, .override_count = o->run.override_count},
        .version = o->run.version,
        .listener = o->run.listener};
    bool described = walk_describe(&t, &as, e);
    bool ok = described && (s->data = source_open(t.config, &t.settings, &as.listener, e)) &&
              source_check(s->data, &as.listener, e) && walk_folds(&t, s->data, window, &s->folds, e);
    s->agents = described && agent_given(t.config);
    if (described) task_close(&t);
    free(file);
    return ok;
}

// Answers

static bool is_first(const backtested_walk *w) {
    return w->traded == 0;
}

// Puts the answers of a fold's test into the market, which the first fold opens for all.
static bool answer(backtested_walk *w, backtest_fold *f, trained *t, const char *symbol, err *e) {
    backtested *b = &w->all;
    if (is_first(w)) {
        market_close(&b->market);
        if (!market_open(&b->market, t, &(market_options){.symbol = symbol}, &b->terms, e) ||
            !market_measure(&b->market, t, f->rule.rule.volatility_bars, e))
            return false;
    }
    return market_score(&b->market, t, &f->part, &f->from, &f->to, e);
}

static bool note_fold(backtested_walk *w, const trained *t, const char *walk, err *e) {
    backtested *b = &w->all;
    int64_t before = b->trained_on;
    if (is_first(w) && !backtest_work_about(b, t, walk, e)) return false;
    if (!is_first(w) && before >= 0) b->trained_on = t->notes.trained_on < 0 ? -1 : before + t->notes.trained_on;
    w->traded++;
    return true;
}

static bool open_fold(backtested_walk *w, int64_t i, const backtest_run_options *o, const source *s, err *e) {
    trained t;
    backtest_fold *f = &w->fold[i];
    trained_options as = o->run;
    const scheme_fold *of = &s->folds.fold[f->at];
    char *dir = walk_dir(o->run.run, of);
    as.run = dir;
    as.dataset = s->data;
    as.parts = &of->parts;
    as.part = "test";
    as.finished = true;
    bool ok = trained_open(&t, &as, e);
    if (ok) {
        ok = backtest_work_rule(&f->rule, &w->all.terms, &t, dir, o->symbol, e) && answer(w, f, &t, o->symbol, e) &&
             note_fold(w, &t, o->run.run, e);
        trained_close(&t);
    }
    free(dir);
    return ok;
}

// Asks every fold. False where a run of one fails: a fold that is missing is told, and others are traded.
static bool ask_folds(backtested_walk *w, const backtest_run_options *o, const source *s, err *e) {
    for (int64_t i = 0; i < w->count; i++) {
        backtest_fold *f = &w->fold[i];
        err why = {0};
        if (f->why[0] || open_fold(w, i, o, s, &why)) continue;
        snprintf(f->why, sizeof f->why, "%.*s", (int)sizeof f->why - 1, why.text);
        if (why.kind != ERR_RUN) continue;
        *e = why;
        return false;
    }
    return w->traded || err_input(e, "%s: no fold can be traded: %s", o->run.run, w->fold[0].why);
}

// Trading

static bool trade(backtested_walk *w, const char *walk, err *e) {
    follow_stretch *stretch = malloc((size_t)w->traded * sizeof *stretch);
    int64_t n = 0, first = 0, last = 0;
    if (!stretch) return err_run(e, "no memory for %lld folds", (long long)w->traded);
    for (int64_t i = 0; i < w->count; i++) {
        const backtest_fold *f = &w->fold[i];
        if (f->why[0]) continue;
        if (!n) first = f->from;
        if (f->to > last) last = f->to;
        stretch[n++] = (follow_stretch){f->from - first, &f->rule.rule};
    }
    bool ok = backtest_work_trade(&w->all, stretch, n, first, last, walk, e);
    free(stretch);
    return ok;
}

// Asks the folds that are listed, and trades what they answer; agents trade as they answer.
static bool trade_listed(backtested_walk *w, const backtest_run_options *o, const source *s, err *e) {
    if (s->agents) return agent_chain_trade(&(agent_chain){o, s->data, &s->folds}, w, e);
    return ask_folds(w, o, s, e) && trade(w, o->run.run, e);
}

static bool trade_folds(backtested_walk *w, const backtest_run_options *o, const source *s, err *e) {
    return take_folds(w, s, e) && trade_listed(w, o, s, e);
}

// Paths

static void keep_path(backtest_path *to, const backtested_walk *from) {
    *to = (backtest_path){.stats = from->all.stats,
        .groups = from->count,
        .traded = from->traded,
        .folds = json_array(),
        .curve = document_curve(&from->all.replay)};
    for (int64_t g = 0; g < from->count; g++)
        json_array_append_new(to->folds, json_integer((json_int_t)from->fold[g].number));
}

// The first path stays as it is traded; of the others their statistics and equity do.
static bool trade_paths(backtested_walk *w, const backtest_run_options *o, const source *s, err *e) {
    bool ok = true;
    w->path = calloc((size_t)s->folds.paths, sizeof *w->path);
    if (!w->path) return err_run(e, "no memory for %d paths", s->folds.paths);
    for (int p = 0; ok && p < s->folds.paths; p++) {
        backtested_walk *one = p ? calloc(1, sizeof *one) : w;
        ok = (one || err_run(e, "no memory for a path")) && take_path(one, s, p, e) && trade_listed(one, o, s, e);
        if (ok) keep_path(&w->path[w->paths++], one);
        if (one && p) backtest_walk_done(one);
        if (p) free(one);
    }
    w->all.trained_on = -1; // training surrounds every test
    return ok;
}

bool backtest_walk_make(backtested_walk *w, const backtest_run_options *o, err *e) {
    source s = {0};
    *w = (backtested_walk){0};
    bool ok = check_options(o, e) && backtest_work_keys(&o->run, "backtest", e) && open_folds(o, &s, e) &&
              (s.folds.paths ? trade_paths(w, o, &s, e) : trade_folds(w, o, &s, e));
    scheme_done(&s.folds);
    dataset_free(s.data);
    if (!ok) backtest_walk_done(w);
    return ok;
}
