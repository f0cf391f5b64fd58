// tradewind train: trains or goes on with a run, an ensemble or several models, and shows the task's events.
#include "base/json.h"
#include "base/term.h"
#include "cli/agent_show.h"
#include "cli/ask.h"
#include "cli/cli.h"
#include "cli/look.h"
#include "cli/models.h"
#include "cli/show.h"
#include "graph/dtype.h"
#include "run/command.h"
#include "task/fit.h"
#include "task/lines.h"
#include "task/models.h"
#include "task/skill_json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

typedef struct {
    const cli_options *o;
    progress bar;
    double all;  // samples of all epochs
    char *bars;  // report of the bar files, until it is shown; or NULL
    char *again; // the command that goes on with all of several models; NULL: there is one
} view;

static bool says_text(const view *v) {
    return !v->o->json && !v->o->quiet;
}

// A line below the progress bar.
static void print_line(view *v, const char *title, const char *line) {
    progress_done(&v->bar);
    printf("%s%s\n", title, line);
    fflush(stdout);
}

// Events of a run

static void forget_bars(view *v) {
    free(v->bars);
    v->bars = NULL;
}

static void print_earlier(const char *dir, const char *earlier) {
    printf("earlier   the run that was in %s is now %s\n", dir, earlier);
}

static void on_begin(view *v, const task_event *e) {
    const task_begin_event *b = &e->begin;
    if (says_text(v)) {
        show_task(e->task, v->bars, stdout);
        if (b->earlier) print_earlier(b->dir, b->earlier);
        if (v->o->verbose) show_unchecked(e->task, stdout);
        if (v->o->verbose) plan_print(b->plan, b->graph, stdout);
        fflush(stdout);
        if (b->card) printf("card      %s\n", b->card);
        printf("trivial   %s\n", e->line);
    }
    if (v->o->json && b->earlier) json_line(stdout, json_pack("{s:s}", "earlier", b->earlier));
    if (v->o->json) show_overlap(e->task, true, stdout);
    if (v->o->json)
        json_line(stdout, json_pack("{s:o, s:s}", "trivial", skill_trivial_json(b->trivial), "part", "validation"));
    forget_bars(v);
    v->all = b->all_samples;
    progress_init(&v->bar, stderr, "training", v->all, v->o->quiet || v->o->json);
    cli_watch_signals();
}

static bool on_step(view *v, const task_event *e) {
    const task_step_event *s = &e->step;
    double at = (double)((s->epoch - 1) * s->total + s->done);
    if (at < v->all)
        progress_at(&v->bar, at, "epoch %lld of %lld", (long long)s->epoch, (long long)e->task->settings.epochs);
    return !cli_interrupted();
}

static void on_warning(view *v, const char *line) {
    if (v->o->json) json_line(stdout, json_pack("{s:s}", "warning", line));
    if (says_text(v)) print_line(v, "warning   ", line);
}

static void on_precision(view *v, const task_event *e) {
    const change_report *r = e->change;
    if (v->o->json)
        json_line(stdout, json_pack("{s:s, s:s, s:I, s:I, s:I, s:I}", "precision", precision_name(r->to), "instead_of",
                              precision_name(r->from), "step", (json_int_t)r->update, "epoch", (json_int_t)r->epoch,
                              "overflows_in_a_row", (json_int_t)r->in_a_row, "steps_skipped", (json_int_t)r->skipped));
    if (says_text(v)) print_line(v, "precision ", e->line);
}

static json_t *epoch_scores(bool forecasts, const epoch_report *r) {
    const score *t = &r->train, *of = &r->validation;
    if (forecasts)
        return json_pack("{s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "epoch", (json_int_t)r->epoch, "train_loss",
            json_number(t->loss), "train_smape", json_number(t->smape), "validation_loss", json_number(of->loss),
            "validation_mae", json_number(of->mae), "validation_rmse", json_number(of->rmse), "validation_smape",
            json_number(of->smape), "validation_mase", json_number(of->mase));
    return json_pack("{s:I, s:o, s:o, s:o, s:o, s:o, s:o}", "epoch", (json_int_t)r->epoch, "train_loss",
        json_number(t->loss), "train_mcc", json_number(t->mcc), "validation_loss", json_number(of->loss),
        "validation_accuracy", json_number(of->accuracy), "validation_mcc", json_number(of->mcc), "validation_macro_f1",
        json_number(of->macro_f1));
}

static void print_epoch_json(bool forecasts, const epoch_report *r) {
    json_t *all = epoch_scores(forecasts, r),
           *rest = json_pack("{s:o, s:o, s:o, s:I, s:o, s:s, s:b}", "grad_norm", json_number(r->grad_norm), "seconds",
               json_number(r->seconds), "samples_per_s", json_number(r->samples_per_s), "steps_skipped",
               (json_int_t)r->skipped, "loss_scale", json_number((double)r->loss_scale), "precision",
               precision_name(r->precision), "best", r->best);
    json_join(all, rest);
    json_line(stdout, all);
}

static void on_epoch(view *v, const task_event *e) {
    if (v->o->json) print_epoch_json(e->task->job.forecasts, e->epoch);
    if (says_text(v)) print_line(v, "", e->line);
}

// The end of a run

static double host_peak(void) {
    struct rusage r;
    return getrusage(RUSAGE_SELF, &r) == 0 ? (double)r.ru_maxrss * 1024 : 0;
}

static bool is_mcc(const task_done_event *d) {
    return d->metric == metric_find("mcc");
}

static const char *memory_counts(bool counted, const device_memory *m) {
    if (!counted) return NULL;
    return m->source == MEMORY_OF_PROCESS ? "process" : "card";
}

static json_t *result_object(const view *v, const task *t, const task_done_event *d, const char *resume) {
    const train_result *r = d->result;
    device_memory m;
    bool counted = t->device->memory(t->queue, &m);
    return json_pack("{s:I, s:s, s:o, s:o, s:o, s:b, s:b, s:s?, s:s?, s:s, s:s?, s:o, s:o, s:o, s:o, s:o, s:s?, s:o}",
        "best_epoch", (json_int_t)r->best_epoch, "metric", d->metric->name, "validation_best",
        json_number(r->best_epoch ? r->best : NAN), "validation_mcc",
        json_number(r->best_epoch && is_mcc(d) ? r->best : NAN), "best_possible_mcc", json_number(d->best_possible),
        "stopped_early", r->stopped_early, "interrupted", r->interrupted, "resume", r->interrupted ? resume : NULL,
        "weights", r->best_epoch ? d->weights : NULL, "device", t->device->name, "no_card",
        t->no_card.text[0] ? t->no_card.text : NULL, "first_step_s",
        json_number(d->begun > 0 ? d->begun - v->o->started : NAN), "host_peak_bytes", json_bytes(host_peak()),
        "slab_bytes", json_bytes((double)d->slab), "base_bytes", json_bytes(counted ? (double)m.base : NAN),
        "monitor_bytes", json_bytes(counted ? (double)(m.base + m.slab) : NAN), "monitor_counts",
        memory_counts(counted, &m), "monitor", look_gauges_json(&d->seen));
}

static void print_best(const task_done_event *d) {
    const train_result *r = d->result;
    double best = is_mcc(d) ? d->best_possible : NAN;
    char value[32];
    printf("best      epoch %lld, validation %s %s", (long long)r->best_epoch, d->metric->title,
        lines_value(r->best, value, sizeof value));
    if (!isnan(best)) printf("; the best possible classifier has %.4f", best);
    if (best > 0) printf(" (%.0f %% of it reached)", 100 * r->best / best);
    printf("\nweights   %s\n", d->weights);
}

// A run that had ended before --resume, and what of its description may change so that it goes on.
static void print_over(const task_done_event *d) {
    printf("over      the run had ended after epoch %lld%s\n", (long long)d->result->epochs,
        d->result->stopped_early ? "; a larger train.patience goes on"
        : d->epochs_fixed        ? ""
                                 : "; a larger train.epochs goes on");
}

// Where the start went and the most memory that the host gave.
static void print_start(const view *v, const task *t, const task_done_event *d) {
    double from = v->o->started;
    char card[LINE_ROOM];
    printf("start     first step done after %.2f s: data %.2f, device %.2f, slab and recordings %.2f, step %.2f\n",
        d->begun - from, t->made - from, t->opened - t->made, d->ready - t->opened, d->begun - d->ready);
    printf("host      %.1f MB at most\n", host_peak() / 1e6);
    if (lines_card(t->device, t->queue, card, sizeof card)) printf("card      %s\n", card);
}

static void on_done(view *v, const task_event *e) {
    const task_done_event *d = &e->done;
    const train_result *r = d->result;
    char *resume = v->again ? strdup(v->again) : command_resume(d->resume_in);
    NEED(resume, "out of memory for a line");
    progress_done(&v->bar);
    if (v->o->json) json_line(stdout, result_object(v, e->task, d, resume));
    if (says_text(v) && d->monitor) printf("monitor   %s\n", d->monitor);
    if (says_text(v) && r->interrupted) printf("stopped by a signal in epoch %lld\n", (long long)r->epochs + 1);
    if (says_text(v) && r->interrupted && !v->again) printf("resume    %s\n", resume);
    free(resume);
    if (!says_text(v)) return;
    if (d->begun == 0 && !r->interrupted) print_over(d);
    if (r->stopped_early) printf("stopped early: no better epoch in %lld\n", (long long)e->task->settings.patience);
    if (r->best_epoch) print_best(d);
    if (v->o->verbose && d->begun > 0) print_start(v, e->task, d);
}

// Events of an ensemble

static void on_member(const view *v, const task_member_event *m) {
    if (v->o->json)
        json_line(stdout, json_pack("{s:i, s:i, s:I, s:b}", "member", m->number, "of", m->of, "seed",
                              (json_int_t)m->seed, "already_done", m->already));
    if (says_text(v))
        printf("member    %d of %d, seed %llu%s\n", m->number, m->of, (unsigned long long)m->seed,
            m->already ? ": trained already" : "");
    fflush(stdout);
}

static void on_ensemble(const view *v, const task_member_event *m) {
    if (v->o->json)
        json_line(
            stdout, json_pack("{s:s, s:i, s:b}", "ensemble", m->dir, "members", m->of, "interrupted", m->stopped));
    if (says_text(v) && !m->stopped)
        printf("ensemble  %s: %d members, which evaluate and predict take together\n", m->dir, m->of);
}

static void on_ensemble_begin(const view *v, const task_member_event *m) {
    if (m->earlier && says_text(v)) print_earlier(m->dir, m->earlier);
    if (m->earlier && v->o->json) json_line(stdout, json_pack("{s:s}", "earlier", m->earlier));
}

// Events of several models

static bool on_model(const view *v, const task_model_event *m) {
    if (v->o->json)
        json_line(stdout, json_pack("{s:s, s:s, s:i, s:i, s:b}", "model", m->file, "directory", m->dir, "number",
                              m->number, "of", m->of, "already_done", m->already));
    if (says_text(v))
        printf("%smodel     %d of %d: %s, in %s%s\n", m->number > 1 ? "\n" : "", m->number, m->of, m->file, m->dir,
            m->already ? ", trained already" : "");
    fflush(stdout);
    return !cli_interrupted();
}

static void on_models(const view *v, json_t *table) {
    bool stopped = json_is_true(json_object_get(table, "interrupted"));
    if (says_text(v)) models_print(table, stdout);
    if (says_text(v) && stopped) printf("resume    %s\n", v->again);
    if (!v->o->json) return;
    json_t *line = json_copy(table);
    json_object_set_new(line, "resume", stopped ? json_string(v->again) : json_null());
    json_line(stdout, line);
}

static bool on_agent(view *v, const task_event *e) {
    bool goes_on = agent_show_event(v->o, v->bars, &v->bar, e);
    if (e->kind == TASK_AGENT_BEGIN) forget_bars(v);
    return goes_on;
}

static bool on_event(void *arg, const task_event *e) {
    view *v = arg;
    switch (e->kind) {
    case TASK_BARS:
        if (says_text(v)) v->bars = show_bars(e, v->o->verbose);
        break;
    case TASK_CHECK:
        if (says_text(v)) print_line(v, "check     ", e->line);
        break;
    case TASK_ENSEMBLE_BEGIN: on_ensemble_begin(v, &e->member); break;
    case TASK_MEMBER: on_member(v, &e->member); break;
    case TASK_RESUME:
        if (says_text(v)) printf("resume    %s\n", e->line);
        break;
    case TASK_BEGIN: on_begin(v, e); break;
    case TASK_KEYS:
        if (!v->o->quiet) show_keys(e->task, v->o->json, stdout);
        break;
    case TASK_STEP: return on_step(v, e);
    case TASK_EPOCH: on_epoch(v, e); break;
    case TASK_PRECISION: on_precision(v, e); break;
    case TASK_WARNING: on_warning(v, e->line); break;
    case TASK_DONE: on_done(v, e); break;
    case TASK_ENSEMBLE_DONE: on_ensemble(v, &e->member); break;
    case TASK_MODEL: return on_model(v, &e->model);
    case TASK_MODELS_DONE: on_models(v, e->table); break;
    case TASK_LOST:
        if (!v->o->quiet) fprintf(stderr, "tradewind: %s\n", e->line);
        break;
    case TASK_AGENT_BEGIN:
    case TASK_ACTING:
    case TASK_ITERATION:
    case TASK_AGENT_DONE: return on_agent(v, e);
    case TASK_CHECKPOINT:
    case TASK_TUNING:
    case TASK_WALK_BEGIN:
    case TASK_WALK_EARLIER:
    case TASK_WALK_STEP:
    case TASK_FOLD:
    case TASK_WALK_TEST:
    case TASK_WALK_STOPPED:
    case TASK_WALK_DONE: break;
    }
    return true;
}

static bool run_train(const cli_options *o, err *e) {
    view v = {.o = o};
    task_options ask;
    const char *file[WORDS_MOST];
    cli_options rest;
    int files = models_named(o, file, &rest);
    if (!ask_task(&rest, &ask, e)) return false;
    ask.listener = (task_listener){on_event, &v};
    if (files > 1) v.again = models_resume(o);
    bool ok = files > 1 ? task_models(&ask, file, files, e) : task_fit(&ask, e);
    progress_done(&v.bar);
    free(v.again);
    free(v.bars);
    return ok;
}

static void print_keys(void) {
    printf("\nkeys of a description:\n");
    config_help(settings_keys(), settings_key_count(), stdout);
}

const cli_command cli_train = {"train", "CONFIG... [key=value...]", "trains the model that a run description describes",
    "The description is a YAML file whose keys are listed below. Any key can be set on the command line:\n"
    "  tradewind train examples/quickstart.yaml train.epochs=4 train.optimizer.lr=3e-4\n"
    "The run's directory (run.dir) receives best.safetensors, checkpoints, run.db, a log and config.yaml.\n"
    "Ctrl-C or SIGTERM finishes the step, writes a checkpoint, says how to go on and exits with 0; a second one ends\n"
    "the program at once. --resume goes on exactly where the newest whole checkpoint of run.dir stands:\n"
    "  tradewind train runs/quickstart/config.yaml --resume\n"
    "--seed N stands for train.seed=N.\n"
    "Several descriptions of one set are trained one after another, each in its own run.dir, and end with one table:\n"
    "  tradewind train lstm.yaml mlp.yaml transformer.yaml train.epochs=20\n"
    "Overrides are for all of them. --resume passes over those that are done and goes on with the first that is not.\n"
    "train.ensemble: N trains N members, with seeds from train.seed on, as runs in run.dir/member_1 and so on;\n"
    "--resume passes over those that are done. evaluate and predict take run.dir as one.\n"
    "A section agent: trains an agent by PPO in an environment (doc/agents.md):\n"
    "  tradewind train examples/ppo_cartpole.yaml\n"
    "A monitor samples memory, utilisation, temperature and power into run.db (gpu_optimization.memory_monitoring)\n"
    "and warns at 90 % of the limit or of the device's memory.\n",
    print_keys, "--seed", WORDS_MOST, run_train, NULL, "--resume"};
