// tradewind walk: trains and tests folds that go forward in time, and shows the task's events.
#include "task/walk.h"

#include "base/json.h"
#include "base/term.h"
#include "cli/agent_show.h"
#include "cli/ask.h"
#include "cli/checking.h"
#include "cli/cli.h"
#include "cli/report.h"
#include "cli/shard.h"
#include "cli/show.h"
#include "run/command.h"
#include "run/results.h"
#include "run/run.h"
#include "task/lines.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const cli_options *o;
    progress bar;
    char *bars;  // report of the bar files, until it is shown; or NULL
    int works;   // folds of this process
    bool agents; // folds are agents
} view;

static bool says_text(const view *v) {
    return !v->o->json && !v->o->quiet;
}

// Keys of an agent are told with it.
static void show_first(const view *v, const task_event *e) {
    if (v->agents)
        agent_show(e->walk.agent, v->bars, stdout);
    else
        show_task(e->task, v->bars, stdout);
}

static void on_begin(view *v, const task_event *e) {
    const task_walk_event *w = &e->walk;
    char seeds[32] = "";
    v->agents = w->agent != NULL;
    if (says_text(v)) {
        show_first(v, e);
        if (w->seeds > 1) snprintf(seeds, sizeof seeds, " with %d seeds each", w->seeds);
        printf(
            "folds     %lld, %d of them here%s, %d%s at once on %d thread%s each; the data above are the first one's\n",
            (long long)w->folds->count, w->works, seeds, w->jobs, w->seeds > 1 ? " runs" : "", w->threads,
            term_s(w->threads));
        for (int64_t i = 0; i < w->folds->count; i++)
            if (w->folds->fold[i].why[0])
                printf("left out  fold %lld: %s\n", (long long)w->folds->fold[i].number + 1, w->folds->fold[i].why);
        fflush(stdout);
    }
    if (v->o->json)
        json_line(stdout, json_pack("{s:I, s:i, s:i, s:i, s:i}", "folds", (json_int_t)w->folds->count, "here", w->works,
                              "seeds", w->seeds, "jobs", w->jobs, "threads", w->threads));
    if (v->agents && !v->o->quiet) show_agent_keys(w->agent, v->o->json, stdout);
    free(v->bars);
    v->bars = NULL;
    v->works = w->works;
    progress_init(&v->bar, stderr, "walking", w->works, v->o->quiet || v->o->json);
    cli_watch_signals();
}

static bool on_share(view *v, double share) {
    progress_at(&v->bar, share * v->works, "%.1f of %d folds", share * v->works, v->works);
    return !cli_interrupted();
}

static void print_fold_json(const view *v, const task_event *e) {
    const task_fold_event *f = &e->fold;
    const train_result *r = f->result;
    json_line(stdout,
        json_pack("{s:I, s:s, s:I, s:I, s:o, s:b, s:s?}", "fold", (json_int_t)f->number, "directory", f->dir,
            v->agents ? "iterations" : "epochs", (json_int_t)(r ? r->epochs : 0),
            v->agents ? "best_iteration" : "best_epoch", (json_int_t)(r ? r->best_epoch : 0), "validation_best",
            json_number(r && r->best_epoch ? r->best : NAN), "interrupted", r && r->interrupted, "error", e->line));
}

static void on_fold(view *v, const task_event *e) {
    const task_fold_event *f = &e->fold;
    const train_result *r = f->result;
    const char *unit = v->agents ? "iteration" : "epoch";
    char value[32];
    progress_done(&v->bar);
    if (v->o->json) print_fold_json(v, e);
    if (!says_text(v)) return;
    if (!r)
        printf("fold %3lld  failed: %s\n", (long long)f->number, e->line);
    else if (f->already)
        printf("fold %3lld  was trained before\n", (long long)f->number);
    else if (r->best_epoch && !r->interrupted)
        printf("fold %3lld  %lld %s%s, best %lld: validation %s %s\n", (long long)f->number, (long long)r->epochs, unit,
            term_s(r->epochs), (long long)r->best_epoch, f->metric ? f->metric->title : "reward",
            lines_value(r->best, value, sizeof value));
    else
        printf("fold %3lld  stopped in %s %lld\n", (long long)f->number, unit, (long long)r->epochs + 1);
    fflush(stdout);
}

// The table of folds, from the document that the walk leaves

static const char *text_at(json_t *list, size_t i, char *text, size_t room) {
    json_t *value = json_array_get(list, i);
    snprintf(text, room, "%.10s", value ? json_string_value(value) : "-");
    return text;
}

// Names of the metrics, above their figures; of the first fold that has any.
static void print_heads(json_t *metrics) {
    const char *name;
    json_t *of;
    printf("%-8s  %-10s  %-10s  %9s", "fold", "test from", "to", "samples");
    json_object_foreach(metrics, name, of) printf("  %9s    skill", name);
    printf("\n");
}

static void print_scores(const json_t *of) {
    const char *name;
    json_t *score;
    json_object_foreach(json_object_get(of, "metrics"), name, score) {
        double skill = results_number(json_object_get(json_object_get(of, "skill"), name));
        printf("  %9.4g", results_number(score));
        if (isnan(skill))
            printf("  %7s", "-");
        else
            printf("  %+7.4f", skill);
    }
    printf("\n");
}

static void print_fold(json_t *fold) {
    char from[32], to[32], why[200];
    json_t *test = json_object_get(fold, "test");
    printf("%-8lld  %-10s  %-10s  %9lld", (long long)json_integer_value(json_object_get(fold, "number")),
        text_at(test, 0, from, sizeof from), text_at(test, 1, to, sizeof to),
        (long long)json_integer_value(json_array_get(json_object_get(fold, "samples"), 2)));
    if (json_object_get(fold, "metrics")) {
        print_scores(fold);
        return;
    }
    snprintf(why, sizeof why, "%s", json_string_value(json_object_get(fold, "reason")));
    term_one_line(why);
    printf("  %s: %s\n", json_string_value(json_object_get(fold, "status")), why);
}

// Path of the report, which the caller gives back. One that cannot be written is a note, and the walk is as good.
static json_t *write_report(const view *v, const char *dir) {
    err why = {0};
    json_t *summary = report_write(dir, NULL, &why), *path = json_object_get(summary, "report");
    if (!summary)
        fprintf(
            says_text(v) ? stdout : stderr, "%sno report: %s\n", says_text(v) ? "note      " : "tradewind: ", why.text);
    path = path ? json_incref(path) : json_null();
    json_decref(summary);
    return path;
}

static void print_folds(const task_tested_event *t, bool agents) {
    size_t i;
    json_t *fold;
    printf("\n");
    print_heads(json_object_get(t->doc, "metrics"));
    json_array_foreach(json_object_get(t->doc, "folds"), i, fold) print_fold(fold);
    printf(
        "%-8s  %-10s  %-10s  %9lld", "all", "", "", (long long)json_integer_value(json_object_get(t->doc, "samples")));
    print_scores(t->doc);
    if (agents)
        printf("\nskill is against the better of staying out and of holding: above 0 is better (doc/walk.md)\n");
    else
        printf("\nskill is against each fold's own trivial answer: above 0 is better (doc/scores.md)\n");
    printf("walk      %s/%s\n", t->dir, results_name(RESULTS_WALK));
}

static void on_tested(const view *v, const task_tested_event *t) {
    if (says_text(v)) print_folds(t, json_object_get(json_object_get(t->doc, "metrics"), "reward") != NULL);
    json_t *path = write_report(v, t->dir);
    if (says_text(v) && json_is_string(path)) printf("report    %s\n", json_string_value(path));
    if (v->o->json) {
        json_t *line = json_copy(t->doc);
        json_object_set(line, "report", path);
        json_line(stdout, line);
    }
    json_decref(path);
}

static void on_stopped(const view *v, const char *dir) {
    char *file = run_path(dir, "config.yaml"), *resume = command_line("walk", file, "--resume");
    free(file);
    if (v->o->json) json_line(stdout, json_pack("{s:b, s:s}", "interrupted", true, "resume", resume));
    if (says_text(v)) printf("stopped by a signal\nresume    %s\n", resume);
    free(resume);
}

static bool on_event(void *arg, const task_event *e) {
    view *v = arg;
    switch (e->kind) {
    case TASK_BARS:
        if (says_text(v)) v->bars = show_bars(e, v->o->verbose);
        break;
    case TASK_WALK_EARLIER:
        if (says_text(v)) printf("earlier   the walk that was in %s is now %s\n", e->member.dir, e->member.earlier);
        if (v->o->json) json_line(stdout, json_pack("{s:s}", "earlier", e->member.earlier));
        break;
    case TASK_RESUME:
        if (says_text(v)) printf("resume    %s\n", e->line);
        break;
    case TASK_WALK_BEGIN: on_begin(v, e); break;
    case TASK_KEYS:
        if (!v->o->quiet) show_keys(e->task, v->o->json, stdout);
        break;
    case TASK_WALK_STEP: return on_share(v, e->share);
    case TASK_FOLD: on_fold(v, e); break;
    case TASK_WARNING:
        if (says_text(v)) printf("warning   %s\n", e->line);
        if (v->o->json) json_line(stdout, json_pack("{s:s}", "warning", e->line));
        break;
    case TASK_LOST:
        if (!v->o->quiet) fprintf(stderr, "tradewind: %s\n", e->line);
        break;
    case TASK_WALK_TEST: return !cli_interrupted();
    case TASK_WALK_STOPPED: on_stopped(v, e->member.dir); break;
    case TASK_WALK_DONE: on_tested(v, &e->tested); break;
    default: break; // of single runs, which tell their own logs
    }
    return true;
}

static bool run_walk(const cli_options *o, err *e) {
    view v = {.o = o};
    task_options ask;
    const char *shard = cli_given(o, "--shard");
    walk_options w = {.gather = cli_given(o, "--gather") != NULL};
    bool check = cli_given(o, "--check") != NULL;
    if (check && (shard || w.gather || cli_given(o, "--resume")))
        return err_input(e, "--check: trains nothing that stays; leave --shard, --gather and --resume out");
    if (!check && cli_given(o, "--folds")) return err_input(e, "--folds: goes with --check; walk.folds says how many");
    if (check) return checking_run(o, e);
    if (shard && w.gather) return err_input(e, "--gather: joins what all shards have done; leave --shard out");
    if (shard && !shard_read(shard, &w, e)) return false;
    if (!ask_task(o, &ask, e)) return false;
    ask.listener = (task_listener){on_event, &v};
    if (shard && says_text(&v)) printf("shard     %d of %d\n", w.shard, w.shards);
    bool ok = task_walk(&ask, &w, e);
    progress_done(&v.bar);
    if (ok && shard && says_text(&v) && !cli_interrupted()) {
        char *gather = command_line("walk", o->word[0], "--gather");
        printf("next      `%s`, once all shards are done\n", gather);
        free(gather);
    }
    free(v.bars);
    return ok;
}

const cli_command cli_walk = {"walk", "CONFIG [key=value...]",
    "walk-forward: trains folds and tests each on what came after",
    "The description is one of train, with a section that says how folds are made:\n"
    "  walk: {scheme: rolling, train: 2y, validation: 3M, test: 3M}\n"
    "Each fold is a run in run.dir/fold_01 and so on: scaler, class weights and thresholds are fitted in it anew, and\n"
    "every command that takes a run takes a fold. Its predictions of the test are kept in it. walk.json holds the "
    "folds,\n"
    "their scores and calibration on the test and, with walk.importance=true, importance of columns; report.html "
    "shows\n"
    "them, and `tradewind backtest run.dir` trades all tests in one account.\n"
    "  --resume            go on: folds that are done are kept, others go on where they stood\n"
    "  --shard I/N         train the I-th of N shares of the folds into a directory that all shards see; auto: as\n"
    "                      Slurm arrays and Kubernetes indexed jobs number them; auto/N where they do not tell how "
    "many\n"
    "  --gather            train nothing: test what all shards have trained, on the same data, and write walk.json\n"
    "  --check             write nothing: look for leaks by making everything anew with another future, and training\n"
    "                      the first fold with each; status 1 where one is found\n"
    "  --folds all         with --check: every fold\n"
    "walk.jobs folds run at once, within one memory limit, each to the bits that it has alone.\n"
    "doc/walk.md shows the schemes sample by sample; train --help lists the keys.\n",
    NULL, "--seed", WORDS_MOST, run_walk, "--shard --folds", "--resume --gather --check"};
