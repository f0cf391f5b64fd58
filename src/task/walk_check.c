#include "task/walk_check.h"

#include "task/source.h"
#include "task/walk.h"
#include "task/walk_check_work.h"
#include "train/agent_keys.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FOLDS_LOOKED = 3, GAPS_EACH = 3, MOMENTS_OF_FOLD = 7 };

static const struct {
    const char *name, *text;
} rules[CHECK_RULES] = {
    {"inputs", "inputs at or before a moment stay, whatever follows"},
    {"labels", "labels known by then stay, and others change with their future"},
    {"samples", "samples and their labels are there, whatever follows"},
    {"parts", "labels and windows of training and validation stay clear of what they are tested on"},
    {"scales", "training samples, their labels, scales and class weights stay, whatever follows training"},
    {"weights", "weights stay to the bit, whatever follows validation"},
};

const char *check_name(check_rule r) {
    return rules[r].name;
}

const char *check_text(check_rule r) {
    return rules[r].text;
}

bool check_found(const check_report *r) {
    for (int i = 0; i < CHECK_RULES; i++)
        if (r->rule[i].failed) return true;
    return false;
}

void check_count(check_result *r, int64_t compared) {
    r->compared += compared;
}

void check_fail(check_result *r, const char *fmt, ...) {
    va_list list;
    if (r->failed++) return;
    va_start(list, fmt);
    vsnprintf(r->first, sizeof r->first, fmt, list);
    va_end(list);
}

// The whole check
typedef struct {
    const task_options *o;
    bool all;
    bool agents; // folds are agents
    task described;
    dataset *data; // of all bars, or as they are
    history history;
    bool rebuilt; // there is a history
    int64_t window[STREAMS_MOST];
    scheme_folds folds;
    task_options options; // of a fold
    char point[POINT_ROOM];
    sight sight;   // of agents
    int64_t *fold; // folds that are looked at, of all that can be trained
    int64_t looked;
    int64_t *moment; // sorted, none twice
    int64_t moments;
    double done, total;
    check_report *report;
} check;

static bool go_on(check *c, double done, err *e) {
    c->done += done;
    task_event step = {.kind = TASK_WALK_STEP, .share = c->done / c->total};
    return task_tell(&c->o->listener, &step) || err_run(e, "stopped by a signal; nothing was written");
}

// Data

// A set without bars cannot be made anew: its own inputs, labels and samples are taken as they are.
static bool open_set(check *c, err *e) {
    err why;
    static const check_rule rest[] = {CHECK_INPUTS, CHECK_LABELS, CHECK_SAMPLES};
    c->data = source_open(c->described.config, &c->described.settings, &c->o->listener, e);
    if (!c->data || !source_check(c->data, &c->o->listener, e)) return false;
    c->rebuilt = history_of_set(&c->history, c->data, &why);
    if (!c->rebuilt && why.kind == ERR_RUN) *e = why;
    if (!c->rebuilt && why.kind == ERR_RUN) return false;
    for (size_t i = 0; !c->rebuilt && i < sizeof rest / sizeof *rest; i++)
        snprintf(c->report->rule[rest[i]].why, CHECK_TEXT, "the data keep no bars that they could be made of anew");
    return true;
}

static bool open_data(check *c, err *e) {
    const task *t = &c->described;
    if (config_count(t->config, "data.bars") == 0) {
        if (!open_set(c, e)) return false;
    } else {
        if (!history_read(&c->history, t->config, &t->settings, e)) return false;
        c->rebuilt = true;
        c->data = history_whole(&c->history, e);
        if (!c->data) return false;
    }
    if (c->rebuilt) history_begin(&c->history, c->data);
    return walk_folds(t, c->data, c->window, &c->folds, e);
}

// Folds and moments

// The first, the middle and the last of the folds that can be trained, or all of them.
static void choose_folds(check *c) {
    int64_t n = 0;
    c->fold = calloc((size_t)c->folds.count, sizeof *c->fold);
    NEED(c->fold, "out of memory for %lld folds", (long long)c->folds.count);
    for (int64_t i = 0; i < c->folds.count; i++)
        if (!c->folds.fold[i].why[0]) c->fold[n++] = i;
    c->looked = c->all || n < FOLDS_LOOKED ? n : FOLDS_LOOKED;
    for (int64_t i = 1; i < c->looked; i++) c->fold[i] = c->fold[i * (n - 1) / (c->looked - 1)];
    c->report->of = n;
}

static int by_value(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

// A moment counts where a label is known by then, and something follows.
static void add_moment(check *c, int64_t t) {
    const dataset *d = c->data;
    if (t >= d->end[0] && t < d->time[d->samples - 1]) c->moment[c->moments++] = t;
}

static void add_parts(check *c, const split *s) {
    const split_part *part[] = {&s->train, &s->validation, &s->test};
    int64_t t;
    for (int i = 0; i < 3; i++) {
        if (!part[i]->count) continue;
        add_moment(c, c->data->time[part_end(part[i]) - 1]);
        if (i != 1) add_moment(c, c->data->time[part_sample(part[i], part[i]->count / 2)]);
    }
    if (fold_trained_by(c->data, s, &t)) add_moment(c, t);
    if (fold_chosen_by(c->data, s, &t)) add_moment(c, t);
}

typedef struct {
    int64_t length, until;
} gap;

static int by_length(const void *a, const void *b) {
    const gap *x = a, *y = b;
    if (x->length != y->length) return x->length < y->length ? -1 : 1;
    return by_value(&x->until, &y->until);
}

// The shortest gaps in the finest bars and the longest, each looked at from its end: before the bar behind it opens.
static bool add_gaps(check *c, err *e) {
    const build_source *from = &c->history.from;
    int64_t n = 0, bars = 0;
    for (int k = 0; k < from->series; k++) bars += from->of[k].frame[0].count;
    gap *all = malloc((size_t)(bars + 1) * sizeof *all);
    if (!all) return err_run(e, "no memory for the gaps of %lld bars", (long long)bars);
    for (int k = 0; k < from->series; k++)
        for (int64_t i = 1; i < from->of[k].frame[0].count; i++) {
            const bar *b = &from->of[k].frame[0].bar[i];
            if (b->time > b[-1].end && b[-1].end >= c->history.since[k] && b->time >= c->data->end[0])
                all[n++] = (gap){b->time - b[-1].end, b->time};
        }
    qsort(all, (size_t)n, sizeof *all, by_length);
    for (int64_t i = 0; i < n; i++)
        if (i < GAPS_EACH || i >= n - GAPS_EACH) add_moment(c, all[i].until);
    free(all);
    return true;
}

static bool choose_moments(check *c, err *e) {
    int64_t n = 0;
    c->moment = malloc((size_t)(MOMENTS_OF_FOLD * c->looked + 2 * GAPS_EACH) * sizeof *c->moment);
    if (!c->moment) return err_run(e, "no memory for %lld folds", (long long)c->looked);
    for (int64_t i = 0; i < c->looked; i++) add_parts(c, &c->folds.fold[c->fold[i]].parts);
    if (!add_gaps(c, e)) return false;
    qsort(c->moment, (size_t)c->moments, sizeof *c->moment, by_value);
    for (int64_t i = 0; i < c->moments; i++)
        if (!n || c->moment[i] != c->moment[n - 1]) c->moment[n++] = c->moment[i];
    c->moments = c->report->moments = n;
    return true;
}

// Comparison

// Three futures of one moment.
static bool look_at_moment(check *c, const roll *whole, int64_t t, err *e) {
    dataset *d[3] = {0};
    roll rolls[3] = {0};
    int64_t reach = build_reach(&c->history.o);
    bool ok = true;
    for (int f = FUTURE_CUT; ok && f <= FUTURE_DOWN; f++) {
        d[f] = history_build(&c->history, t, (future)f, e);
        ok = d[f] && roll_make(&rolls[f], d[f], c->data, e) &&
             same_past(whole, &rolls[f], t, (future)f, reach, c->report, e) &&
             (!c->agents || sight_same(&c->sight, &rolls[f], t, (future)f, c->report, e));
    }
    if (ok) labels_follow(&rolls[FUTURE_UP], &rolls[FUTURE_DOWN], t, c->report);
    for (int f = 0; f < 3; f++) {
        roll_done(&rolls[f]);
        dataset_free(d[f]);
    }
    return ok;
}

static bool look_at_moments(check *c, err *e) {
    roll whole;
    if (!roll_make(&whole, c->data, c->data, e)) return false;
    bool ok = true;
    for (int64_t i = 0; ok && i < c->moments; i++) ok = look_at_moment(c, &whole, c->moment[i], e) && go_on(c, 1, e);
    roll_done(&whole);
    return ok;
}

// Folds of cpcv train on what lies behind their tests, where features have seen the test: nothing can be told there by
// altering bars.
static void say_untested(check_result *r) {
    if (!r->compared && !r->why[0])
        snprintf(r->why, sizeof r->why, "every fold that was looked at trains on what lies behind its test");
}

static bool look_at_folds(check *c, err *e) {
    bool ok = true;
    for (int64_t i = 0; ok && i < c->looked; i++) {
        bool train = c->all || !c->report->trained;
        ok = fold_same(&c->options, c->rebuilt ? &c->history : NULL, c->data, &c->folds.fold[c->fold[i]], train,
                 c->report, e) &&
             go_on(c, 1, e);
    }
    say_untested(&c->report->rule[CHECK_SCALES]);
    say_untested(&c->report->rule[CHECK_WEIGHTS]);
    return ok;
}

static bool open_agents(check *c, err *e) {
    const config *of = c->described.config;
    c->agents = c->report->agents = agent_given(of);
    c->options = *c->o;
    if (!c->agents) return true;
    if (!sight_fix_point(of, c->data, c->point, e) || !sight_make(&c->sight, of, c->data, e)) return false;
    if (c->point[0]) {
        task_change_behind(&c->options.description, "account.point", c->point);
        c->sight.terms.point = strtod(c->point, NULL);
    }
    return true;
}

static bool look(check *c, err *e) {
    if (!open_data(c, e) || !open_agents(c, e)) return false;
    const history *h = c->rebuilt ? &c->history : NULL;
    choose_folds(c);
    if (!parts_apart(c->data, h, c->window, &c->folds, &c->report->rule[CHECK_PARTS], e)) return false;
    if (c->rebuilt && !choose_moments(c, e)) return false;
    c->total = (double)(c->moments + c->looked);
    return (!c->rebuilt || look_at_moments(c, e)) && look_at_folds(c, e);
}

bool task_walk_check(const task_options *o, bool all, check_report *r, err *e) {
    check c = {.o = o, .all = all, .report = r};
    *r = (check_report){0};
    if (!walk_describe(&c.described, o, e)) return false;
    bool ok = look(&c, e);
    free(c.fold);
    free(c.moment);
    scheme_done(&c.folds);
    sight_done(&c.sight);
    dataset_free(c.data);
    history_done(&c.history);
    task_close(&c.described);
    return ok;
}
