// tradewind train: trains or goes on with a run, shows progress, and leaves everything in the run's directory.
#include "base/clock.h"
#include "base/json.h"
#include "base/term.h"
#include "cli/cli.h"
#include "cli/look.h"
#include "cli/setup.h"
#include "cli/texts.h"
#include "graph/identity.h"
#include "task/keeper.h"
#include "task/members.h"
#include "train/metric.h"
#include "train/series.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

// Which member of an ensemble is trained; its directory is that of the ensemble. A run by itself is of none.
typedef struct {
    const char *dir;
    int number, of;
    const chosen *plan; // of them all
} membership;

typedef struct {
    const cli_options *o;
    const setup *s;
    const membership *member; // or NULL
    char *config;             // as the directory and checkpoints have it
    chosen plan;
    run *run;
    log_file *log; // the run's
    keeper *keeper;
    progress bar;
    trainer *trainer;
    monitor *monitor;     // or NULL
    const metric *metric; // what decides which epoch is best
    double ready;         // when the slab was filled and the step recorded, as clock_seconds has it
    double begun;         // when the first step was done; 0 before
    bool interrupted;     // it was asked to stop
} view;

// The one wait in a run: how long the start took is known only when the device is through with a step.
static void note_first_step(view *v) {
    err later; // a failure stays and is told by the next call that can fail
    v->s->device->sync(v->s->queue, &later);
    v->begun = clock_seconds();
}

static void tell_warning(void *arg, const char *line) {
    view *v = arg;
    if (v->o->json) {
        json_line(stdout, json_pack("{s:s}", "warning", line));
    } else if (!v->o->quiet) {
        progress_done(&v->bar);
        printf("warning   %s\n", line);
        fflush(stdout);
    }
}

static bool on_step(void *arg, int64_t epoch, int64_t done, int64_t total) {
    view *v = arg;
    if (v->begun == 0) note_first_step(v);
    double all = (double)job_all_samples(&v->s->split, &v->s->settings), at = (double)((epoch - 1) * total + done);
    if (at < all) progress_at(&v->bar, at, "epoch %lld of %lld", (long long)epoch, (long long)v->s->settings.epochs);
    keeper_samples(v->keeper, v->monitor, tell_warning, v);
    if (!keeper_step(v->keeper)) return false;
    if (!cli_interrupted()) return true;
    keeper_leave(v->keeper);
    return false;
}

static void on_steps(void *arg, const step_report *r) {
    view *v = arg;
    keeper_steps(v->keeper, r);
}

// "step 4096: fp16 had no finite gradient in 100 steps; going on in bf16".
static bool on_change(void *arg, const change_report *r, err *e) {
    view *v = arg;
    char line[256];
    snprintf(line, sizeof line,
        "step %" PRIu64 ", epoch %" PRId64 ": %s overflowed in the last %" PRId64
        " steps, which changed nothing; going "
        "on in %s",
        r->update, r->epoch, precision_name(r->from), r->in_a_row, precision_name(r->to));
    keeper_change(v->keeper, r, line);
    if (v->o->json) {
        json_line(stdout, json_pack("{s:s, s:s, s:I, s:I, s:I, s:I}", "precision", precision_name(r->to), "instead_of",
                              precision_name(r->from), "step", (json_int_t)r->update, "epoch", (json_int_t)r->epoch,
                              "overflows_in_a_row", (json_int_t)r->in_a_row, "steps_skipped", (json_int_t)r->skipped));
    } else if (!v->o->quiet) {
        progress_done(&v->bar);
        printf("precision %s\n", line);
        fflush(stdout);
    }
    return budget_holds(&v->s->budget, v->s->device, v->s->queue, e);
}

static json_t *epoch_scores(const view *v, const epoch_report *r) {
    const score *t = &r->train, *of = &r->validation;
    if (v->s->job.forecasts)
        return json_pack("{s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "epoch", (json_int_t)r->epoch, "train_loss",
            json_number(t->loss), "train_smape", json_number(t->smape), "validation_loss", json_number(of->loss),
            "validation_mae", json_number(of->mae), "validation_rmse", json_number(of->rmse), "validation_smape",
            json_number(of->smape), "validation_mase", json_number(of->mase));
    return json_pack("{s:I, s:o, s:o, s:o, s:o, s:o, s:o}", "epoch", (json_int_t)r->epoch, "train_loss",
        json_number(t->loss), "train_mcc", json_number(t->mcc), "validation_loss", json_number(of->loss),
        "validation_accuracy", json_number(of->accuracy), "validation_mcc", json_number(of->mcc), "validation_macro_f1",
        json_number(of->macro_f1));
}

static void print_epoch_json(const view *v, const epoch_report *r) {
    json_t *all = epoch_scores(v, r),
           *rest = json_pack("{s:o, s:o, s:o, s:I, s:o, s:s, s:b}", "grad_norm", json_number(r->grad_norm), "seconds",
               json_number(r->seconds), "samples_per_s", json_number(r->samples_per_s), "steps_skipped",
               (json_int_t)r->skipped, "loss_scale", json_number((double)r->loss_scale), "precision",
               precision_name(r->precision), "best", r->best);
    json_join(all, rest);
    json_line(stdout, all);
}

// Losses and metrics of an epoch, for people. Those of forecasts have any size.
static void write_scores(const epoch_report *r, bool forecasts, char *text, size_t room) {
    const score *of = &r->validation;
    if (!forecasts)
        snprintf(text, room, "loss %.4f  validation loss %.4f  accuracy %.3f  mcc %.4f", r->train.loss, of->loss,
            of->accuracy, of->mcc);
    else if (isnan(of->mase))
        snprintf(text, room, "loss %.4g  validation loss %.4g  MAE %.5g  RMSE %.5g  sMAPE %.3f", r->train.loss,
            of->loss, of->mae, of->rmse, of->smape);
    else
        snprintf(text, room, "loss %.4g  validation loss %.4g  sMAPE %.3f  MASE %.3f", r->train.loss, of->loss,
            of->smape, of->mase);
}

// The line comes first: should saving fail, the log ends with the reason.
static void on_epoch(void *arg, const epoch_report *r) {
    view *v = arg;
    char rate[32], scores[160], line[384];
    term_count(rate, sizeof rate, r->samples_per_s);
    write_scores(r, v->s->job.forecasts, scores, sizeof scores);
    int n = snprintf(
        line, sizeof line, "epoch %3lld  %s%s  %s samples/s", (long long)r->epoch, scores, r->best ? " *" : "  ", rate);
    if (r->skipped && n > 0 && (size_t)n < sizeof line)
        n += snprintf(line + n, sizeof line - (size_t)n, "  %lld steps skipped (not finite)", (long long)r->skipped);
    if (r->precision == PRECISION_FP16 && n > 0 && (size_t)n < sizeof line)
        snprintf(line + n, sizeof line - (size_t)n, "  loss scale %g", (double)r->loss_scale);
    log_line(v->log, "%s", line);
    if (v->o->json) {
        print_epoch_json(v, r);
    } else if (!v->o->quiet) {
        progress_done(&v->bar);
        printf("%s\n", line);
        fflush(stdout);
    }
    keeper_epoch(v->keeper, r);
}

// The MCC of the best possible classifier on the validation samples; NaN where the data do not know it.
static double best_possible(const setup *s) {
    const dataset *d = s->data;
    span v = s->split.validation;
    int64_t count[CLASSES_MOST * CLASSES_MOST] = {0};
    if (s->job.forecasts || !d->best) return NAN;
    for (int64_t i = v.first; i < v.first + v.count; i++) count[d->label[i] * d->classes + d->best[i]]++;
    return metric_mcc(count, d->classes);
}

// Memory and start

static double host_peak(void) {
    struct rusage r;
    return getrusage(RUSAGE_SELF, &r) == 0 ? (double)r.ru_maxrss * 1024 : 0;
}

// What the card holds for this run, and what its monitor says to that.
static void tell_memory(const view *v) {
    char line[256];
    device_memory m;
    bool counted = v->s->device->memory(v->s->queue, &m);
    if (v->s->device->host_memory) return;
    int n = snprintf(line, sizeof line, "base %.1f MB and slab %.1f MB are %.1f MB", (double)m.base / 1e6,
        (double)m.slab / 1e6, (double)(m.base + m.slab) / 1e6);
    if (!counted) {
        snprintf(line, sizeof line, "slab %.1f MB; the card's monitor (libnvidia-ml.so.1) was not found",
            (double)m.slab / 1e6);
    } else if (m.source == MEMORY_OF_PROCESS) {
        snprintf(line + n, sizeof line - (size_t)n, ", which the card's monitor counts for this process");
    } else {
        snprintf(line + n, sizeof line - (size_t)n,
            ", by which the card's use grew to %.1f MB; its monitor does not show this process", (double)m.used / 1e6);
    }
    log_line(v->log, "card: %s", line);
    if (!v->o->quiet && !v->o->json) printf("card      %s\n", line);
}

// Where the start went and the most memory that the host gave.
static void tell_start(const view *v) {
    double from = v->o->started, made = v->s->made - from, opened = v->s->opened - v->s->made;
    printf("start     first step done after %.2f s: data %.2f, device %.2f, slab and recordings %.2f, step %.2f\n",
        v->begun - from, made, opened, v->ready - v->s->opened, v->begun - v->ready);
    printf("host      %.1f MB at most\n", host_peak() / 1e6);
    tell_memory(v);
}

// A run without its monitor is a run.
static void start_monitor(view *v) {
    const setup *s = v->s;
    err why;
    if (s->settings.monitor_every <= 0) return;
    v->monitor = monitor_start(&(monitor_options){.device = s->device,
                                   .queue = s->queue,
                                   .every = s->settings.monitor_every,
                                   .limit = s->budget.limited ? s->budget.limit : 0},
        &why);
    if (!v->monitor) log_line(v->log, "warning: %s", why.text);
}

static void stop_monitor(view *v) {
    monitor_stop(v->monitor);
    keeper_samples(v->keeper, v->monitor, tell_warning, v);
    if (monitor_lost(v->monitor))
        log_line(v->log, "warning: %lld samples of the monitor found no place", (long long)monitor_lost(v->monitor));
}

// What the monitor saw since this process began.
static void tell_gauges(const view *v) {
    store_gauges g = monitor_gauges(v->monitor);
    char line[256];
    if (!g.samples) return;
    look_write_gauges(&g, line, sizeof line);
    log_line(v->log, "monitor: %s", line);
    if (!v->o->quiet && !v->o->json) printf("monitor   %s\n", line);
}

static bool is_mcc(const view *v) {
    return v->metric == metric_find("mcc");
}

// How to go on, for people to copy.
static const char *resume_command(const view *v, char *text, size_t room) {
    snprintf(text, room, "tradewind train %s/config.yaml --resume", v->member ? v->member->dir : run_dir(v->run));
    return text;
}

static json_t *result_object(const view *v, const train_result *r, const char *path) {
    const setup *s = v->s;
    device_memory m;
    char resume[512];
    bool counted = s->device->memory(s->queue, &m);
    store_gauges seen = monitor_gauges(v->monitor);
    resume_command(v, resume, sizeof resume);
    return json_pack("{s:I, s:s, s:o, s:o, s:o, s:b, s:b, s:s?, s:s?, s:s, s:s?, s:o, s:o, s:o, s:o, s:o, s:s?, s:o}",
        "best_epoch", (json_int_t)r->best_epoch, "metric", v->metric->name, "validation_best",
        json_number(r->best_epoch ? r->best : NAN), "validation_mcc",
        json_number(r->best_epoch && is_mcc(v) ? r->best : NAN), "best_possible_mcc", json_number(best_possible(s)),
        "stopped_early", r->stopped_early, "interrupted", r->interrupted, "resume", r->interrupted ? resume : NULL,
        "weights", r->best_epoch ? path : NULL, "device", s->device->name, "no_card",
        s->no_card.text[0] ? s->no_card.text : NULL, "first_step_s",
        json_number(v->begun > 0 ? v->begun - v->o->started : NAN), "host_peak_bytes", json_bytes(host_peak()),
        "slab_bytes", json_bytes((double)exec_used(trainer_exec(v->trainer)).total), "base_bytes",
        json_bytes(counted ? (double)m.base : NAN), "monitor_bytes",
        json_bytes(counted ? (double)(m.base + m.slab) : NAN), "monitor_counts",
        !counted                        ? NULL
        : m.source == MEMORY_OF_PROCESS ? "process"
                                        : "card",
        "monitor", look_gauges_json(&seen));
}

// Errors of returns are small: figures count, not decimals.
static const char *value_text(char *text, size_t room, double v) {
    snprintf(text, room, fabs(v) < 0.01 ? "%.4g" : "%.4f", v);
    return text;
}

static void print_best(const view *v, const train_result *r, const char *path) {
    double best = is_mcc(v) ? best_possible(v->s) : NAN;
    char value[32];
    printf("best      epoch %lld, validation %s %s", (long long)r->best_epoch, v->metric->title,
        value_text(value, sizeof value, r->best));
    if (!isnan(best)) printf("; the best possible classifier has %.4f", best);
    if (best > 0) printf(" (%.0f %% of it reached)", 100 * r->best / best);
    printf("\nweights   %s\n", path);
}

// Of a run that had ended before --resume, and what of its description may change so that it goes on.
static void tell_over(const view *v, const train_result *r) {
    bool fixed = v->s->settings.steps || keeper_epochs_matter(v->config);
    printf("over      the run had ended after epoch %lld%s\n", (long long)r->epochs,
        r->stopped_early ? "; a larger train.patience goes on"
        : fixed          ? ""
                         : "; a larger train.epochs goes on");
}

static void conclude(const view *v, const train_result *r, const char *path) {
    char resume[512], value[32];
    resume_command(v, resume, sizeof resume);
    tell_gauges(v);
    if (r->best_epoch)
        log_line(v->log, "best epoch %lld, validation %s %s; weights in %s", (long long)r->best_epoch, v->metric->name,
            value_text(value, sizeof value, r->best), path);
    if (r->interrupted)
        log_line(v->log, "stopped by a signal in epoch %lld; go on with: %s", (long long)r->epochs + 1, resume);
    else
        log_line(v->log, "done after %lld epochs%s", (long long)r->epochs, r->stopped_early ? ", stopped early" : "");
    if (v->o->json) {
        json_line(stdout, result_object(v, r, path));
        return;
    }
    if (v->o->quiet) return;
    if (r->interrupted) printf("stopped by a signal in epoch %lld\nresume    %s\n", (long long)r->epochs + 1, resume);
    if (v->begun == 0 && !r->interrupted) tell_over(v, r);
    if (r->stopped_early) printf("stopped early: no better epoch in %lld\n", (long long)v->s->settings.patience);
    if (r->best_epoch) print_best(v, r, path);
    if (v->o->verbose && v->begun > 0) tell_start(v);
}

// A run that failed says what it leaves behind. Files are replaced in one move, so what is there is whole.
static bool tell_saved(const view *v, err *e) {
    err why = *e;
    int64_t epoch;
    uint64_t update;
    const char *best = keeper_best(v->keeper, &epoch), *newest = keeper_newest(v->keeper, &update);
    if (newest) return err_run(e, "%s; --resume goes on from %s, step %" PRIu64, why.text, newest, update);
    if (epoch) return err_run(e, "%s; %s holds epoch %lld", why.text, best, (long long)epoch);
    return err_run(e, "%s; no weights were saved yet", why.text);
}

// Of a run that had a best epoch before its loss ran away.
static bool tell_diverged(const view *v, const train_result *r, err *e) {
    int64_t epoch;
    return err_run(e,
        "the loss is not finite any more: epoch %lld had no step with a finite gradient; %s holds epoch %lld; lower "
        "train.optimizer.lr",
        (long long)r->epochs, keeper_best(v->keeper, &epoch), (long long)r->best_epoch);
}

static void tell_line(void *arg, const char *line) {
    const view *v = arg;
    if (v->o->json || v->o->quiet) return;
    printf("resume    %s\n", line);
}

// Which epoch is best. OWA is measured by what naive2 scores on the same samples, its MASE by the window's scale.
static bool choose_metric(view *v, err *e) {
    const setup *s = v->s;
    series_score naive = {0};
    double naive2[2];
    v->metric = settings_metric(s->config, settings_task(&s->settings, s->data), e);
    if (!v->metric) return false;
    if (v->metric == metric_find("owa") &&
        !series_add_span(&naive, s->data, s->split.validation, s->window[0], s->settings.season, NULL, 0, 0, e))
        return false;
    series_naive2(&naive, naive2);
    trainer_judge_by(v->trainer, v->metric, naive2);
    return true;
}

// Of a run that goes on behind a change of precision.
static void tell_changed(const view *v) {
    char line[64];
    precision is = trainer_job(v->trainer)->precision;
    if (is == v->s->precision) return;
    snprintf(line, sizeof line, "in %s, to which %s gave way", precision_name(is), precision_name(v->s->precision));
    log_line(v->log, "resume %s", line);
    tell_line((void *)(uintptr_t)v, line);
}

// Whether the run computes as the other members of its ensemble do, after what has happened to the machine since.
static bool is_alike(const view *v, err *e) {
    char differs[700];
    if (!v->member || !chosen_differs(v->member->plan, &v->plan, differs, sizeof differs)) return true;
    return err_run(e, "member %d has another plan than the others: %s; go on with --resume once that is as it was",
        v->member->number, differs);
}

// Everything before the first step.
static bool prepare(view *v, err *e) {
    const setup *s = v->s;
    bool resume = cli_given(v->o, "--resume") != NULL;
    char device[IDENTITY_ROOM], others[128], tuned[WISDOM_LINE + 16];
    device_identity is;
    v->config = texts_config(s, e);
    setup_chosen(s, &v->plan);
    if (!v->config || !is_alike(v, e)) return false;
    v->trainer = trainer_new(s->device, s->queue, &s->job, s->data, &s->split, &s->settings, e);
    if (!v->trainer || !budget_holds(&s->budget, s->device, s->queue, e) || !choose_metric(v, e)) return false;
    if (s->settings.init_from && !resume && !trainer_load(v->trainer, s->settings.init_from, e)) return false;
    v->ready = clock_seconds();
    v->run = resume ? run_resume(s->settings.dir, e) : run_begin(s->settings.dir, e);
    if (!v->run) return false;
    v->log = run_log(v->run);
    v->keeper = keeper_new(&(keeper_options){.run = v->run,
        .trainer = v->trainer,
        .settings = &s->settings,
        .classes = s->job.forecasts ? 0 : s->data->classes,
        .config = v->config,
        .plan = &v->plan,
        .version = TRADEWIND_VERSION});
    s->device->identify(s->queue, &is);
    identity_text(&is, device, sizeof device);
    log_line(v->log, "training %s with %lld parameters on %s", model_name(s->model.kind),
        (long long)graph_parameter_values(s->job.g), device);
    if (setup_tuned(s, tuned, sizeof tuned)) log_line(v->log, "tuned %s", tuned);
    if (budget_is_shared(&s->budget, others, sizeof others)) log_line(v->log, "others %s", others);
    // Behind a change of precision other steps are recorded than those above.
    if (resume && !keeper_resume(v->keeper, tell_line, v, e)) return false;
    if (resume && !budget_holds(&s->budget, s->device, s->queue, e)) return false;
    tell_changed(v);
    return keeper_describe(v->keeper, e);
}

static void tell_moved(const cli_options *o, const run *r) {
    if (!run_moved(r) || o->quiet || o->json) return;
    printf("earlier   files of another run here are now in %s/earlier\n", run_dir(r));
}

static void print_start(const view *v) {
    if (v->o->quiet || v->o->json) return;
    setup_print(v->s, stdout);
    tell_moved(v->o, v->run);
    if (v->o->verbose) plan_print(exec_plan(trainer_exec(v->trainer), true), trainer_job(v->trainer)->g, stdout);
    fflush(stdout);
}

static bool train(view *v, err *e) {
    const setup *s = v->s;
    train_result r;
    int64_t epoch;
    watcher w = {.on_step = on_step, .on_epoch = on_epoch, .on_steps = on_steps, .on_change = on_change, .arg = v};
    progress_init(
        &v->bar, stderr, "training", (double)job_all_samples(&s->split, &s->settings), v->o->quiet || v->o->json);
    cli_watch_signals();
    start_monitor(v);
    bool ok = trainer_run(v->trainer, &w, &r, e);
    progress_done(&v->bar);
    stop_monitor(v);
    if (ok && !keeper_conclude(v->keeper, &r)) {
        *e = *keeper_failure(v->keeper);
        ok = false;
    }
    if (ok && r.diverged && r.best_epoch) return tell_diverged(v, &r, e);
    if (!ok) return tell_saved(v, e);
    v->interrupted = r.interrupted;
    if (!r.best_epoch && !r.interrupted)
        return err_run(
            e, "the validation loss was not finite in any epoch; no weights were kept; lower train.optimizer.lr");
    conclude(v, &r, keeper_best(v->keeper, &epoch));
    return true;
}

// What the run lost on the side; it is no failure.
static void warn(view *v) {
    err why;
    if (v->o->quiet) return;
    if (log_failed(v->log)) fprintf(stderr, "tradewind: some lines of training_log.txt could not be written\n");
    if (v->keeper && keeper_trouble(v->keeper, &why)) fprintf(stderr, "tradewind: warning: %s\n", why.text);
}

// One run, from its description to its end.
static bool train_run(const cli_options *o, const membership *member, bool *interrupted, err *e) {
    setup s;
    if (!setup_open_like(&s, o, member ? member->plan : NULL, e)) return false;
    view v = {.o = o, .s = &s, .member = member};
    bool ok = setup_fits(&s, e) && prepare(&v, e);
    if (ok) {
        print_start(&v);
        tell_memory(&v);
        ok = train(&v, e);
    }
    // A description that does not fit is no failure of the run that is there.
    if (!ok && v.keeper && e->kind == ERR_RUN) keeper_fail(v.keeper, e->text);
    warn(&v);
    *interrupted = v.interrupted;
    monitor_free(v.monitor);
    keeper_free(v.keeper);
    run_close(v.run);
    trainer_free(v.trainer);
    free(v.config);
    setup_close(&s);
    return ok;
}

// Ensembles

static uint64_t member_seed(const setup *all, const membership *m) {
    return all->settings.seed + (uint64_t)m->number - 1;
}

static void tell_member(const cli_options *o, const membership *m, uint64_t seed, bool done) {
    if (o->json)
        json_line(stdout, json_pack("{s:i, s:i, s:I, s:b}", "member", m->number, "of", m->of, "seed", (json_int_t)seed,
                              "already_done", done));
    else if (!o->quiet)
        printf("member    %d of %d, seed %llu%s\n", m->number, m->of, (unsigned long long)seed,
            done ? ": trained already" : "");
    fflush(stdout);
}

// What a member is trained by: the ensemble's words and its own behind them, which point into it.
typedef struct {
    cli_options o;
    char seed[64], dir[4352];
} orders;

static bool give_orders(orders *to, const cli_options *o, const setup *all, const membership *m, err *e) {
    const char *const own[] = {to->seed, to->dir, "train.ensemble=1"};
    const int count = sizeof own / sizeof *own;
    char *path = members_dir(m->dir, m->number);
    to->o = *o;
    to->o.seed = NULL;
    snprintf(to->seed, sizeof to->seed, "train.seed=%llu", (unsigned long long)member_seed(all, m));
    bool fits = (size_t)snprintf(to->dir, sizeof to->dir, "run.dir=%s", path) < sizeof to->dir;
    free(path);
    if (!fits || o->words + count > WORDS_MOST) return err_input(e, "too many words, or too long a run.dir");
    for (int i = 0; i < count; i++) to->o.word[to->o.words++] = own[i];
    return true;
}

// The description that words ask for, complete; the caller frees it.
static char *describe(const cli_options *o, err *e) {
    setup s;
    if (!setup_describe(&s, o, e)) return NULL;
    char *text = texts_config(&s, e);
    setup_close(&s);
    return text;
}

// Trains one member, or goes on with it, or passes it over where that has been done.
static bool train_member(const cli_options *o, const setup *all, const membership *m, bool *interrupted, err *e) {
    orders by;
    char *config = give_orders(&by, o, all, m, e) ? describe(&by.o, e) : NULL;
    if (!config) return false;
    char *dir = members_dir(m->dir, m->number);
    bool resume = cli_given(o, "--resume") && members_begun(dir), done = resume && members_done(dir, config, m->plan);
    free(dir);
    free(config);
    tell_member(o, m, member_seed(all, m), done);
    if (!resume) by.o.owns = 0; // --resume, the one option of its own, would find nothing here
    return done || train_run(&by.o, m, interrupted, e);
}

static void conclude_ensemble(const cli_options *o, const membership *m, bool interrupted) {
    if (o->json)
        json_line(
            stdout, json_pack("{s:s, s:i, s:b}", "ensemble", m->dir, "members", m->of, "interrupted", interrupted));
    else if (!o->quiet && !interrupted)
        printf("ensemble  %s: %d members, which evaluate and predict take together\n", m->dir, m->of);
}

static bool could_train(const setup *s, bool begins, err *e) {
    if (!setup_fits(s, e) || !settings_metric(s->config, settings_task(&s->settings, s->data), e)) return false;
    if (!begins || !s->settings.init_from) return true;
    trainer *t = trainer_new(s->device, s->queue, &s->job, s->data, &s->split, &s->settings, e);
    bool ok = t && trainer_load(t, s->settings.init_from, e);
    trainer_free(t);
    return ok;
}

// What follows from the description and the machine, the same for all members: the split is chosen here once, and what
// is free when a member begins does not change it. A mistake in the description is found
// here, before the directory is touched: also a seed of the last member that no description may have.
static bool plan_ensemble(const cli_options *o, const setup *all, chosen *plan, err *e) {
    membership last = {.dir = all->settings.dir, .number = all->settings.ensemble, .of = all->settings.ensemble};
    orders by;
    setup s;
    err why;
    bool ok = false;
    char *config = NULL;
    if (!give_orders(&by, o, all, &last, e)) return false;
    if (!(config = describe(&by.o, &why))) err_input(e, "member %d: %s", last.number, why.text);
    if (config && setup_open(&s, o, e)) {
        ok = could_train(&s, !cli_given(o, "--resume"), e) && setup_settle(all, &s, e);
        if (ok) setup_chosen(&s, plan);
        setup_close(&s);
    }
    free(config);
    return ok;
}

// Whether what a member has saved is of its description and the plan. Where it cannot go on anyway it begins anew.
static bool member_goes_on(const cli_options *o, const setup *all, const membership *m, err *e) {
    orders by;
    err why;
    char *config = give_orders(&by, o, all, m, e) ? describe(&by.o, e) : NULL, *dir = members_dir(m->dir, m->number);
    bool ok = config != NULL;
    if (ok && !members_same(dir, config, m->plan, &why) && members_begun(dir)) {
        *e = why;
        ok = false;
    }
    free(config);
    free(dir);
    return ok;
}

// Whether the directory holds an ensemble that can go on like this: under its own description, but for keys that may
// change and for members added.
static bool goes_on(const cli_options *o, const setup *all, const chosen *plan, err *e) {
    membership m = {.dir = all->settings.dir, .of = members_of(all->settings.dir), .plan = plan};
    char word[64];
    cli_options as = *o;
    if (!m.of && run_is(m.dir))
        return err_input(e, "%s: holds a single run; set train.ensemble back to 1, or train without --resume", m.dir);
    if (!m.of) return err_input(e, "%s: there is no run to resume; leave --resume out to begin one", m.dir);
    if (all->settings.ensemble < m.of)
        return err_input(e,
            "%s: has %d members, to which more can be added; leave train.ensemble=%d out, or train "
            "without --resume",
            m.dir, m.of, all->settings.ensemble);
    snprintf(word, sizeof word, "train.ensemble=%d", m.of);
    as.word[as.words++] = word;
    char *config = describe(&as, e);
    bool ok = config && members_same(m.dir, config, NULL, e);
    for (m.number = 1; ok && m.number <= all->settings.ensemble; m.number++) ok = member_goes_on(o, all, &m, e);
    free(config);
    return ok;
}

static bool train_members(const cli_options *o, const setup *all, run *r, const chosen *plan, err *e) {
    membership m = {.dir = all->settings.dir, .of = all->settings.ensemble, .plan = plan};
    bool ok = true, interrupted = false;
    char *description = run_path(m.dir, "config.yaml");
    cli_options by = *o;
    by.word[0] = description; // the file that was given may change, or may have been moved, before the last member
    while (ok && !interrupted && m.number < m.of) {
        m.number++;
        ok = train_member(&by, all, &m, &interrupted, e);
    }
    free(description);
    const char *failed = !ok && e->kind == ERR_RUN ? "failed" : "stopped";
    store_status(run_store(r), ok && !interrupted ? "done" : failed, ok ? "" : e->text);
    if (ok) conclude_ensemble(o, &m, interrupted);
    return ok;
}

static bool train_ensemble(const cli_options *o, const setup *all, err *e) {
    const char *dir = all->settings.dir;
    bool resume = cli_given(o, "--resume") != NULL;
    chosen plan;
    char *config = plan_ensemble(o, all, &plan, e) ? texts_config(all, e) : NULL;
    run *r = !config ? NULL : resume ? run_resume(dir, e) : run_begin(dir, e);
    bool ok = r && (!resume || goes_on(o, all, &plan, e)) && run_write(r, "config.yaml", config, e);
    if (ok) {
        store_run(run_store(r), TRADEWIND_VERSION, config, "");
        tell_moved(o, r);
        ok = train_members(o, all, r, &plan, e);
    }
    run_close(r);
    free(config);
    return ok;
}

static bool run_train(const cli_options *o, err *e) {
    setup described;
    bool interrupted = false;
    if (!setup_describe(&described, o, e)) return false;
    bool ok = described.settings.ensemble > 1 ? train_ensemble(o, &described, e) : train_run(o, NULL, &interrupted, e);
    setup_close(&described);
    return ok;
}

static void print_keys(void) {
    printf("\nkeys of a description:\n");
    config_help(settings_keys, settings_key_count, stdout);
}

const cli_command cli_train = {"train", "CONFIG [key=value...]", "trains the model that a run description describes",
    "The description is a YAML file whose keys are listed below. Any key can be set on the command line:\n"
    "  tradewind train examples/quickstart.yaml train.epochs=4 train.optimizer.lr=3e-4\n"
    "The run's directory (run.dir) receives best.safetensors, checkpoints, run.db, a log and config.yaml.\n"
    "Ctrl-C or SIGTERM finishes the step, writes a checkpoint, says how to go on and exits with 0; a second one ends\n"
    "the program at once. --resume goes on exactly where the newest whole checkpoint of run.dir stands:\n"
    "  tradewind train runs/quickstart/config.yaml --resume\n"
    "--seed N stands for train.seed=N.\n"
    "train.ensemble: N trains N members, with seeds from train.seed on, as runs in run.dir/member_1 and so on;\n"
    "--resume passes over those that are done. evaluate and predict take run.dir as one.\n"
    "A monitor samples memory, utilisation, temperature and power into run.db (gpu_optimization.memory_monitoring)\n"
    "and warns at 90 % of the limit or of the device's memory.\n",
    print_keys, "--seed", WORDS_MOST, run_train, NULL, "--resume"};
