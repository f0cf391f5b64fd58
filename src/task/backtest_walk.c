#include "task/backtest_walk.h"

#include "run/results.h"
#include "run/run.h"
#include "task/backtest_work.h"
#include "task/source.h"
#include "task/walk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void backtest_walk_done(backtested_walk *w) {
    backtest_run_done(&w->all);
    free(w->fold);
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

static bool goes_forward(const task *t, const char *dir, err *e) {
    if (t->settings.walk.scheme.kind != SCHEME_CPCV) return true;
    return err_input(e,
        "%s: folds of cpcv are trained on data behind their tests, so that nobody could have traded them in order; "
        "use walk.scheme rolling or expanding",
        dir);
}

static bool take_folds(backtested_walk *w, const scheme_folds *from, const char *dir, err *e) {
    w->fold = calloc((size_t)from->count, sizeof *w->fold);
    if (!w->fold) return err_run(e, "no memory for %lld folds of %s", (long long)from->count, dir);
    w->count = from->count;
    for (int64_t i = 0; i < w->count; i++) {
        w->fold[i].number = from->fold[i].number + 1;
        snprintf(w->fold[i].why, sizeof w->fold[i].why, "%s", from->fold[i].why);
    }
    return true;
}

// Opens the data, which all folds share, and lists the folds. The data are the caller's.
static bool open_folds(backtested_walk *w, const backtest_run_options *o, dataset **data, err *e) {
    const char *dir = o->run.run;
    task t;
    scheme_folds folds;
    int64_t window[STREAMS_MOST];
    char *file = run_path(dir, "config.yaml");
    task_options as = {
        .description = {.file = file, .overrides = o->run.overrides, .override_count = o->run.override_count},
        .version = o->run.version,
        .listener = o->run.listener};
    bool described = walk_describe(&t, &as, e), ok = described && goes_forward(&t, dir, e);
    ok = ok && (*data = source_open(t.config, &t.settings, &as.listener, e)) && source_check(*data, &as.listener, e) &&
         walk_folds(&t, *data, window, &folds, e);
    if (ok) {
        ok = take_folds(w, &folds, dir, e);
        scheme_done(&folds);
    }
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
    return market_score(&b->market, t, &t->samples, &f->from, &f->to, e);
}

static void note_fold(backtested_walk *w, const trained *t, const char *walk) {
    backtested *b = &w->all;
    int64_t before = b->trained_on;
    if (is_first(w))
        backtest_work_about(b, t, walk);
    else if (before >= 0)
        b->trained_on = t->trained_on < 0 ? -1 : before + t->trained_on;
    w->traded++;
}

static bool open_fold(backtested_walk *w, backtest_fold *f, const backtest_run_options *o, dataset *data, err *e) {
    trained t;
    trained_options as = o->run;
    char *dir = walk_dir(o->run.run, &(scheme_fold){.number = f->number - 1});
    as.run = dir;
    as.dataset = data;
    as.part = "test";
    as.finished = true;
    bool ok = trained_open(&t, &as, e);
    if (ok) {
        ok = backtest_work_rule(&f->rule, &w->all.terms, &t, dir, o->symbol, e) && answer(w, f, &t, o->symbol, e);
        if (ok) note_fold(w, &t, o->run.run);
        trained_close(&t);
    }
    free(dir);
    return ok;
}

// Asks every fold. False where a run of one fails: a fold that is missing is told, and others are traded.
static bool ask_folds(backtested_walk *w, const backtest_run_options *o, dataset *data, err *e) {
    for (int64_t i = 0; i < w->count; i++) {
        backtest_fold *f = &w->fold[i];
        err why = {0};
        if (f->why[0] || open_fold(w, f, o, data, &why)) continue;
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

bool backtest_walk_make(backtested_walk *w, const backtest_run_options *o, err *e) {
    dataset *data = NULL;
    *w = (backtested_walk){0};
    bool ok = check_options(o, e) && backtest_work_keys(&o->run, e) && open_folds(w, o, &data, e) &&
              ask_folds(w, o, data, e) && trade(w, o->run.run, e);
    dataset_free(data);
    if (!ok) backtest_walk_done(w);
    return ok;
}

bool backtest_walk_store(const backtested_walk *w, const assumptions *a, const char *dir, err *e) {
    return results_write(dir, RESULTS_BACKTEST, document_make(a, &w->all.replay, &w->all.stats), e);
}
