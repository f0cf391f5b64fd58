#include "task/fit.h"

#include "base/clock.h"
#include "base/term.h"
#include "graph/identity.h"
#include "run/command.h"
#include "run/weights.h"
#include "task/keeper.h"
#include "task/keys.h"
#include "task/lines.h"
#include "task/memory_map.h"
#include "train/series.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const task *task;
    const fit_member *member; // or NULL
    char *config;             // as the directory and checkpoints have it
    chosen plan;
    contract *contract;
    char *unlike; // differences between train.init_from and this run that are allowed, in words; or NULL
    run *run;
    log_file *log; // the run's
    keeper *keeper;
    trainer *trainer;
    monitor *monitor;     // or NULL
    const metric *metric; // by which an epoch is best
    double ready;         // when the slab was filled and the step recorded, as clock_seconds has it
    double begun;         // when the first step was done; 0 before
    bool stopped;         // it was asked to stop
} fit;

static bool tell(const fit *f, task_event e) {
    e.task = f->task;
    return task_tell(&f->task->options.listener, &e);
}

// Steps and epochs

// The one wait in a run: how long the start took is known only when the device is through with a step.
static void note_first_step(fit *f) {
    err later; // a failure stays and is told by the next call that can fail
    f->task->device->sync(f->task->queue, &later);
    f->begun = clock_seconds();
}

static bool on_step(void *arg, int64_t epoch, int64_t done, int64_t total) {
    fit *f = arg;
    if (f->begun == 0) note_first_step(f);
    bool on = tell(f, (task_event){.kind = TASK_STEP, .step = {epoch, done, total}});
    keeper_samples(f->keeper, f->monitor);
    if (!keeper_step(f->keeper)) return false;
    if (on) return true;
    keeper_leave(f->keeper);
    return false;
}

static void on_steps(void *arg, const step_report *r) {
    keeper_steps(((fit *)arg)->keeper, r);
}

static bool on_change(void *arg, const change_report *r, err *e) {
    fit *f = arg;
    char line[LINE_ROOM];
    lines_change(r, line, sizeof line);
    keeper_change(f->keeper, r, line);
    tell(f, (task_event){.kind = TASK_PRECISION, .line = line, .change = r});
    return budget_holds(&f->task->budget, f->task->device, f->task->queue, e);
}

// To the end of all epochs, where nothing stops the run before.
static double seconds_left(const fit *f, const epoch_report *r) {
    const settings *s = &f->task->settings;
    if (r->last) return 0;
    return s->steps ? NAN : (double)(s->epochs - r->epoch) * r->seconds;
}

// For the command of on_event: the metric by which the epoch is the best, or the loss where its score does not have it.
static void tell_best(const fit *f, const epoch_report *r) {
    const score *v = &r->validation;
    const struct {
        const char *name;
        double value;
    } all[] = {{"mcc", v->mcc}, {"accuracy", v->accuracy}, {"macro_f1", v->macro_f1}, {"mae", v->mae},
        {"rmse", v->rmse}, {"smape", v->smape}, {"mase", v->mase}};
    const char *name = "loss";
    double value = v->loss;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (strcmp(all[i].name, f->metric->name) != 0 || isnan(all[i].value)) continue;
        name = all[i].name;
        value = all[i].value;
    }
    records_best(keeper_records(f->keeper), r->update, "epoch", r->epoch, name, value);
}

// The line comes first: should saving fail, the log ends with the reason.
static void on_epoch(void *arg, const epoch_report *r) {
    fit *f = arg;
    char line[LINE_ROOM];
    lines_epoch(r, f->task->job.forecasts, line, sizeof line);
    tell(f, (task_event){.kind = TASK_EPOCH, .line = line, .epoch = r});
    records_add_state(keeper_records(f->keeper), seconds_left(f, r), line, sizeof line);
    log_line(f->log, "%s", line);
    if (keeper_epoch(f->keeper, r) && r->best) tell_best(f, r);
}

// Before the first step

// OWA is measured by what naive2 scores on the same samples, its MASE by the window's scale.
const metric *fit_judge_by(const task *t, trainer *tr, err *e) {
    series_score naive = {0};
    double naive2[2];
    const metric *m = settings_metric(t->config, settings_task(&t->settings, t->data), e);
    if (!m) return NULL;
    if (m == metric_find("owa") &&
        !series_add_part(&naive, t->data, &t->split.validation, t->window[0], t->settings.season, NULL, 0, 0, e))
        return NULL;
    series_naive2(&naive, naive2);
    trainer_judge_by(tr, m, naive2);
    return m;
}

// A run that goes on behind a change of precision.
static void tell_changed(const fit *f) {
    char line[64];
    precision is = trainer_job(f->trainer)->precision, was = f->task->precision;
    if (is == was) return;
    snprintf(line, sizeof line, "in %s, to which %s gave way", precision_name(is), precision_name(was));
    log_line(f->log, "resume %s", line);
    tell(f, (task_event){.kind = TASK_RESUME, .line = line});
}

bool fit_is_alike(const fit_member *member, const chosen *plan, err *e) {
    char differs[700];
    if (!member || !chosen_differs(member->plan, plan, differs, sizeof differs)) return true;
    return err_run(e, "member %d has another plan than the others: %s; go on with --resume once that is as it was",
        member->number, differs);
}

// Weights to begin with must see the same columns and tell the same classes. Other differences are told: weights of
// other bars, windows or labels may be meant.
bool fit_begin_from(const task *t, trainer *tr, const contract *is, char **unlike, err *e) {
    enum { MUST = CONTRACT_COLUMNS | CONTRACT_CLASSES };
    const char *path = t->settings.init_from;
    contract *was = NULL;
    char text[900];
    safetensors *f = weights_open(path, e);
    bool ok = f && contract_fits(f, path, is, MUST, e) && contract_read(&was, f, path, e);
    if (was && contract_differs(was, is, CONTRACT_ALL & ~MUST, text, sizeof text) && unlike)
        NEED(asprintf(unlike, "train.init_from %s: %s", path, text) >= 0, "out of memory for a line");
    contract_free(was);
    safetensors_close(f);
    return ok && trainer_load(tr, path, e);
}

static bool make_trainer(fit *f, err *e) {
    const task *t = f->task;
    bool from = !t->options.resume && t->settings.init_from;
    f->config = task_description_text(t->config, e);
    task_chosen(t, &f->plan);
    f->contract = task_contract(t);
    if (!f->config || !fit_is_alike(f->member, &f->plan, e)) return false;
    f->trainer = task_trainer(t, e);
    if (!f->trainer || !budget_holds(&t->budget, t->device, t->queue, e)) return false;
    f->metric = fit_judge_by(t, f->trainer, e);
    if (!f->metric) return false;
    if (from && !fit_begin_from(t, f->trainer, f->contract, &f->unlike, e)) return false;
    f->ready = clock_seconds();
    return true;
}

// The head of the log.
static void log_task(const fit *f) {
    const task *t = f->task;
    char device[IDENTITY_ROOM], others[160], tuned[WISDOM_LINE + 16];
    device_identity is;
    t->device->identify(t->queue, &is);
    identity_text(&is, device, sizeof device);
    log_line(f->log, "training %s with %lld parameters on %s", model_name(t->model.kind),
        (long long)graph_parameter_values(t->job.g), device);
    if (task_tuned_line(t, tuned, sizeof tuned)) log_line(f->log, "tuned %s", tuned);
    if (budget_is_shared(&t->budget, others, sizeof others)) log_line(f->log, "others %s", others);
    if (budget_is_lowered(&t->budget, others, sizeof others)) log_line(f->log, "note %s", others);
}

static bool open_run(fit *f, err *e) {
    const task *t = f->task;
    bool resume = t->options.resume;
    f->run = fit_stays(&t->options, t->settings.dir) ? run_resume(t->settings.dir, e) : run_begin(t->settings.dir, e);
    if (!f->run) return false;
    f->log = run_log(f->run);
    f->keeper = keeper_new(&(keeper_options){.run = f->run,
        .trainer = f->trainer,
        .settings = &t->settings,
        .classes = t->job.forecasts ? 0 : t->data->classes,
        .config = f->config,
        .plan = &f->plan,
        .contract = f->contract,
        .version = t->options.version,
        .task = t,
        .listener = t->options.listener});
    log_task(f);
    // Behind a change of precision other steps are recorded than those above.
    if (resume && (!keeper_resume(f->keeper, e) || !budget_holds(&t->budget, t->device, t->queue, e))) return false;
    if (t->options.restart) records_restart(keeper_records(f->keeper));
    tell_changed(f);
    return records_describe(keeper_records(f->keeper), e);
}

// Scores of trivial answers on the validation samples: what epochs are to be compared with, so MASE is measured by the
// naive error within the window, as theirs is.
static bool score_trivial(const fit *f, skill_table *t, char line[LINE_ROOM], err *e) {
    const task *of = f->task;
    double share[CLASSES_MOST];
    char scores[LINE_ROOM - 32];
    skill_input in = {.data = of->data, .samples = of->split.validation, .share = share};
    in.window = of->window[0];
    task_skill_input(of, &in);
    if (!of->job.forecasts) trivial_shares(of->data, &of->split.train, share);
    if (!skill_make(&in, t, e)) return false;
    lines_trivial(t, of->data, scores, sizeof scores);
    snprintf(line, LINE_ROOM, "%s on validation", scores);
    return true;
}

// Where the picture of memory cannot be written, that is told, and the run goes on.
static void keep_memory(const fit *f) {
    err why;
    engine *x = trainer_engine(f->trainer);
    memory_map m = {.plan = program_plan(engine_steps(x)),
        .graph = trainer_job(f->trainer)->g,
        .bytes = engine_measure(x),
        .budget = f->task->options.place ? NULL : &f->task->budget,
        .demand = task_demand(f->task)};
    if (!memory_map_write(run_dir(f->run), &m, f->log, &why))
        tell(f, (task_event){.kind = TASK_WARNING, .line = why.text});
}

// The first member speaks for all of an ensemble.
static void tell_network(const fit *f) {
    char line[LINE_ROOM];
    if (!lines_network(run_dir(f->run), line, sizeof line)) return;
    log_line(f->log, "warning: %s", line);
    if (!f->member || f->member->number == 1) tell(f, (task_event){.kind = TASK_WARNING, .line = line});
}

// Members of an ensemble have the same parts.
static void tell_classes(const fit *f) {
    const task *t = f->task;
    char line[LINE_ROOM];
    if (t->job.forecasts || !lines_classes(t->data, &t->split, line, sizeof line)) return;
    log_line(f->log, "warning: %s", line);
    if (!f->member || f->member->number == 1) tell(f, (task_event){.kind = TASK_WARNING, .line = line});
}

static bool tell_begin(const fit *f, err *e) {
    const task *t = f->task;
    char card[LINE_ROOM], trivial[LINE_ROOM];
    skill_table scores;
    bool counted = lines_card(t->device, t->queue, card, sizeof card);
    if (!score_trivial(f, &scores, trivial, e)) return false;
    if (counted) log_line(f->log, "card: %s", card);
    log_line(f->log, "trivial: %s", trivial);
    keeper_trivial(f->keeper, trivial);
    if (f->unlike) log_line(f->log, "warning: %s", f->unlike);
    tell(f, (task_event){.kind = TASK_BEGIN,
                .line = trivial,
                .begin = {.plan = program_plan(engine_steps(trainer_engine(f->trainer))),
                    .graph = trainer_job(f->trainer)->g,
                    .card = counted ? card : NULL,
                    .earlier = run_earlier(f->run),
                    .dir = run_dir(f->run),
                    .all_samples = (double)job_all_samples(&t->split, &t->settings),
                    .trivial = &scores}});
    if (f->unlike) tell(f, (task_event){.kind = TASK_WARNING, .line = f->unlike});
    tell_classes(f);
    keep_memory(f);
    tell_network(f);
    skill_done(&scores);
    return true;
}

static void log_key(void *arg, const told_key *k) {
    log_line(arg, "%s %s: %s", k->unused ? "unused" : "key", k->key, k->text);
}

// Members' keys are told by the ensemble.
static void tell_keys(const fit *f) {
    task_each_key(f->task, log_key, f->log);
    if (!f->member) tell(f, (task_event){.kind = TASK_KEYS});
}

// The end

// The MCC of the best possible classifier on the validation samples; NaN where the data do not know it.
static double best_possible(const task *t) {
    const dataset *d = t->data;
    const split_part *v = &t->split.validation;
    int64_t count[CLASSES_MOST * CLASSES_MOST] = {0};
    if (t->job.forecasts || !d->best) return NAN;
    for (int64_t k = 0; k < v->count; k++) {
        int64_t i = part_sample(v, k);
        count[d->label[i] * d->classes + d->best[i]]++;
    }
    return metric_mcc(count, d->classes);
}

static void log_end(const fit *f, const task_done_event *d) {
    const train_result *r = d->result;
    char value[32], *resume = command_resume(d->resume_in);
    if (d->monitor) log_line(f->log, "monitor: %s", d->monitor);
    if (r->best_epoch)
        log_line(f->log, "best epoch %lld, validation %s %s; weights in %s", (long long)r->best_epoch, f->metric->name,
            lines_value(r->best, value, sizeof value), d->weights);
    if (r->interrupted)
        log_line(f->log, "stopped by a signal in epoch %lld; go on with: %s", (long long)r->epochs + 1, resume);
    else
        log_line(f->log, "done after %lld epoch%s%s", (long long)r->epochs, term_s(r->epochs),
            r->stopped_early ? ", stopped early" : "");
    free(resume);
}

static void conclude(const fit *f, const train_result *r, const char *weights) {
    char seen[LINE_ROOM];
    task_done_event d = {.result = r,
        .weights = weights,
        .resume_in = f->member ? f->member->dir : run_dir(f->run),
        .metric = f->metric,
        .best_possible = best_possible(f->task),
        .ready = f->ready,
        .begun = f->begun,
        .epochs_fixed = f->task->settings.steps || records_epochs_matter(f->config),
        .slab = trainer_bytes(f->trainer),
        .seen = monitor_gauges(f->monitor)};
    if (d.seen.samples) {
        lines_gauges(&d.seen, seen, sizeof seen);
        d.monitor = seen;
    }
    log_end(f, &d);
    tell(f, (task_event){.kind = TASK_DONE, .done = d});
}

// A run that failed says what it leaves behind.
static bool say_saved(const fit *f, err *e) {
    int64_t epoch;
    const char *best = keeper_best(f->keeper, &epoch);
    return records_say_saved(keeper_records(f->keeper), best, epoch, e);
}

// A run that had a best epoch before its loss ran away.
static bool say_diverged(const fit *f, const train_result *r, err *e) {
    int64_t epoch;
    return err_run(e,
        "the loss is not finite any more: epoch %lld had no step with a finite gradient; %s holds epoch %lld; lower "
        "train.optimizer.lr",
        (long long)r->epochs, keeper_best(f->keeper, &epoch), (long long)r->best_epoch);
}

static bool train(fit *f, err *e) {
    train_result r;
    uint64_t update;
    int64_t epoch, done;
    watcher w = {.on_step = on_step, .on_epoch = on_epoch, .on_steps = on_steps, .on_change = on_change, .arg = f};
    records *records = keeper_records(f->keeper);
    const task *t = f->task;
    f->monitor = records_watch(records, t->device, t->queue, &t->budget);
    bool ok = trainer_run(f->trainer, &w, &r, e);
    trainer_stands(f->trainer, &update, &epoch, &done);
    records_unwatch(records, f->monitor, update);
    if (ok && !keeper_conclude(f->keeper, &r)) {
        *e = *keeper_failure(f->keeper);
        ok = false;
    }
    if (ok && r.diverged && r.best_epoch) return say_diverged(f, &r, e);
    if (!ok) return say_saved(f, e);
    f->stopped = r.interrupted;
    if (!r.best_epoch && !r.interrupted)
        return err_run(
            e, "the validation loss was not finite in any epoch; no weights were kept; lower train.optimizer.lr");
    conclude(f, &r, keeper_best(f->keeper, &epoch));
    return true;
}

bool fit_batch_suits(const task *t, err *e) {
    enum { TIMES_MOST = 4, ROWS_FREE = 4096 };
    int64_t batch = t->described.batch_size * t->described.accumulation, samples = t->split.train.count;
    if (t->options.resume || t->described.batch_open || batch <= ROWS_FREE || batch <= TIMES_MOST * samples)
        return true;
    return config_fail(t->config, "train.batch_size", e,
        "a step of %lld samples is more than %d times the %lld training samples; use %lld or less", (long long)batch,
        TIMES_MOST, (long long)samples, (long long)samples);
}

bool fit_run(const task_options *o, const fit_member *member, bool *stopped, err *e) {
    task t;
    task_options as = *o;
    if (member) as.like = member->plan;
    if (!task_open(&t, &as, e)) return false;
    fit f = {.task = &t, .member = member};
    bool ok = fit_batch_suits(&t, e) && task_fits(&t, e) && make_trainer(&f, e) && open_run(&f, e);
    ok = ok && tell_begin(&f, e);
    if (ok) tell_keys(&f);
    ok = ok && train(&f, e);
    // A description that does not fit is no failure of the run that is there.
    if (!ok && f.keeper && e->kind == ERR_RUN) records_fail(keeper_records(f.keeper), e->text);
    if (f.keeper) records_tell_lost(keeper_records(f.keeper));
    *stopped = f.stopped;
    monitor_free(f.monitor);
    keeper_free(f.keeper);
    run_close(f.run);
    trainer_free(f.trainer);
    free(f.config);
    free(f.unlike);
    contract_free(f.contract);
    task_close(&t);
    return ok;
}
