#include "task/keeper.h"

#include "base/clock.h"
#include "run/aside.h"
#include "run/checkpoint.h"
#include "run/command.h"
#include "run/outline.h"
#include "task/describe.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct keeper {
    keeper_options o;
    char *best, *newest;
    char *plan;            // o.plan as plan.yaml has it
    char *contract, *data; // as files of weights and checkpoints have them
    int64_t best_epoch;
    uint64_t newest_update;
    bool resumed, warned;
    double due; // when the next checkpoint is
    err failure;
};

static void set_due(keeper *k) {
    k->due = clock_seconds() + 60 * k->o.settings->checkpoint_minutes;
}

keeper *keeper_new(const keeper_options *o) {
    keeper *k = calloc(1, sizeof *k);
    NEED(k, "out of memory for a keeper");
    k->o = *o;
    k->best = run_path(run_dir(o->run), "best.safetensors");
    k->plan = chosen_write(o->plan);
    k->contract = contract_text(o->contract);
    k->data = contract_data_text(o->contract);
    set_due(k);
    return k;
}

void keeper_free(keeper *k) {
    if (!k) return;
    free(k->best);
    free(k->newest);
    free(k->plan);
    free(k->contract);
    free(k->data);
    free(k);
}

bool keeper_describe(keeper *k, err *e) {
    db_run(run_db(k->o.run), k->o.version, k->o.config, k->plan);
    if (!k->resumed) db_event(run_db(k->o.run), 0, "start", "");
    return run_write(k->o.run, "config.yaml", k->o.config, e) && run_write(k->o.run, "plan.yaml", k->plan, e);
}

// "step 40, in epoch 2 after 1280 samples", or "step 44, after epoch 2".
static const char *place(const keeper *k, char *text, size_t room) {
    uint64_t update;
    int64_t epoch, done;
    trainer_stands(k->o.trainer, &update, &epoch, &done);
    if (done)
        snprintf(text, room, "step %" PRIu64 ", in epoch %" PRId64 " after %" PRId64 " samples", update, epoch, done);
    else
        snprintf(text, room, "step %" PRIu64 ", after epoch %" PRId64, update, epoch - 1);
    return text;
}

// Saving

static bool save(keeper *k, checkpoint_kind kind, uint64_t number) {
    const safetensors_note notes[] = {{"config", k->o.config}, {"plan", k->plan}, {"version", k->o.version},
        {contract_key, k->contract}, {contract_data_key, k->data}};
    double began = clock_seconds();
    char where[128];
    int64_t epoch, done;
    char *path = checkpoint_path(run_dir(k->o.run), kind, number);
    db_sync(run_db(k->o.run));
    if (!trainer_checkpoint(k->o.trainer, path, notes, sizeof notes / sizeof *notes, &k->failure)) {
        free(path);
        return false;
    }
    free(k->newest);
    k->newest = path;
    trainer_stands(k->o.trainer, &k->newest_update, &epoch, &done);
    checkpoint_rotate(run_dir(k->o.run), kind, k->o.settings->keep_checkpoints);
    log_line(run_log(k->o.run), "checkpoint %s: %s (%.0f ms)", path, place(k, where, sizeof where),
        1e3 * (clock_seconds() - began));
    db_event(run_db(k->o.run), k->newest_update, "checkpoint", path);
    task_tell(&k->o.listener,
        &(task_event){.kind = TASK_CHECKPOINT, .task = k->o.task, .checkpoint = {path, k->newest_update}});
    set_due(k);
    return true;
}

static bool save_best(keeper *k) {
    const safetensors_note note = {contract_key, k->contract};
    return trainer_save(k->o.trainer, k->best, &note, 1, &k->failure);
}

bool keeper_step(keeper *k) {
    uint64_t update;
    int64_t epoch, done;
    if (k->failure.kind != ERR_NONE) return false;
    db_tick(run_db(k->o.run));
    if (k->o.settings->checkpoint_minutes <= 0 || clock_seconds() < k->due) return true;
    trainer_stands(k->o.trainer, &update, &epoch, &done);
    return save(k, CHECKPOINT_STEP, update);
}

// Once the run is at its end one of those of steps is enough, should this one be damaged.
static bool save_last(keeper *k, bool ended) {
    if (!save(k, CHECKPOINT_LAST, 0)) return false;
    if (ended && k->o.settings->keep_checkpoints) checkpoint_rotate(run_dir(k->o.run), CHECKPOINT_STEP, 1);
    return true;
}

// The confusion matrix as JSON, rows are true classes, which the caller frees.
static char *matrix_text(const int64_t *count, int K) {
    char *text = NULL;
    size_t bytes;
    FILE *f = open_memstream(&text, &bytes);
    NEED(f, "out of memory for a confusion matrix");
    for (int i = 0; i < K * K; i++)
        fprintf(f, "%s%" PRId64 "%s", i == 0 ? "[[" : i % K ? ", " : "], [", count[i], i == K * K - 1 ? "]]" : "");
    NEED(fclose(f) == 0 && text, "out of memory for a confusion matrix");
    return text;
}

// Once, so that whoever reads the log need not wait for the end to learn that run.db is behind.
static void warn_of_db(keeper *k) {
    err why;
    if (k->warned || !db_trouble(run_db(k->o.run), &why)) return;
    k->warned = true;
    log_line(run_log(k->o.run), "warning: %s", why.text);
}

// Metrics of a score, behind `count` others; their number then.
static int list_metrics(const score *s, const char *part, db_metric *list, int count) {
    const db_metric all[] = {{part, "accuracy", s->accuracy}, {part, "mcc", s->mcc}, {part, "macro_f1", s->macro_f1},
        {part, "mae", s->mae}, {part, "rmse", s->rmse}, {part, "smape", s->smape}, {part, "mase", s->mase}};
    list[count++] = (db_metric){part, "loss", s->loss};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (!isnan(all[i].value)) list[count++] = all[i];
    return count;
}

static void db_report(keeper *k, const epoch_report *r) {
    db_metric metrics[32] = {{"", "grad_norm", r->grad_norm}, {"", "lr", r->lr},
        {"", "steps_skipped", (double)r->skipped}, {"", "loss_scale", (double)r->loss_scale}};
    int count = list_metrics(&r->validation, "validation", metrics, list_metrics(&r->train, "train", metrics, 4));
    db_epoch_row row = {r->epoch, r->update, r->seconds, r->samples_per_s, r->best, NULL};
    char *matrix = k->o.classes ? matrix_text(r->validation.confusion, k->o.classes) : NULL;
    row.confusion = matrix;
    db_epoch(run_db(k->o.run), &row, metrics, count);
    free(matrix);
    db_tick(run_db(k->o.run));
    warn_of_db(k);
}

void keeper_steps(keeper *k, const step_report *r) {
    db_steps_row row = {
        r->update, r->epoch, r->done, r->steps, r->loss_min, r->loss_mean, r->loss_max, r->grad_norm, r->lr};
    db_steps(run_db(k->o.run), &row);
}

void keeper_samples(keeper *k, monitor *m) {
    db_sample_row row;
    char warning[256];
    uint64_t update;
    int64_t epoch, done;
    while (monitor_take(m, &row, warning, sizeof warning)) {
        db_sample(run_db(k->o.run), &row);
        if (!warning[0]) continue;
        trainer_stands(k->o.trainer, &update, &epoch, &done);
        log_line(run_log(k->o.run), "warning: %s", warning);
        db_event(run_db(k->o.run), update, "memory", warning);
        task_tell(&k->o.listener, &(task_event){.kind = TASK_WARNING, .task = k->o.task, .line = warning});
    }
}

void keeper_trivial(keeper *k, const char *line) {
    if (!k->resumed) db_event(run_db(k->o.run), 0, "trivial", line);
}

void keeper_change(keeper *k, const change_report *r, const char *line) {
    log_line(run_log(k->o.run), "%s", line);
    db_event(run_db(k->o.run), r->update, "precision", line);
}

bool keeper_epoch(keeper *k, const epoch_report *r) {
    db_report(k, r);
    if (k->failure.kind != ERR_NONE) return false;
    if (r->best) {
        if (!save_best(k)) return false;
        k->best_epoch = r->epoch;
    }
    // The last one first: a run that is killed behind it has ended, and what ended is not saved again.
    if (r->last && !save_last(k, true)) return false;
    return r->epoch % k->o.settings->checkpoint_every != 0 || save(k, CHECKPOINT_EPOCH, (uint64_t)r->epoch);
}

bool keeper_leave(keeper *k) {
    if (k->failure.kind != ERR_NONE || !save_last(k, false)) return false;
    db_event(run_db(k->o.run), k->newest_update, "stop", "by a signal");
    return true;
}

bool keeper_conclude(keeper *k, const train_result *r) {
    if (k->failure.kind != ERR_NONE) return false;
    if (k->resumed && r->best_epoch && k->best_epoch != r->best_epoch) {
        k->best_epoch = r->best_epoch;
        if (!save_best(k)) return false;
    }
    db_status(run_db(k->o.run), r->interrupted ? "stopped" : "done", r->stopped_early ? "stopped early" : "");
    db_sync(run_db(k->o.run));
    return true;
}

void keeper_fail(keeper *k, const char *why) {
    log_line(run_log(k->o.run), "ended: %s", why);
    db_status(run_db(k->o.run), "failed", why);
    db_sync(run_db(k->o.run));
}

bool keeper_trouble(keeper *k, err *why) {
    return db_trouble(run_db(k->o.run), why);
}

// Resuming

bool keeper_epochs_matter(const char *config) {
    static const char *const kinds[] = {"cosine", "linear", "one_cycle"};
    char *kind = outline_value(config, "train.schedule.kind"), *total = outline_value(config, "train.schedule.total");
    bool matter = false;
    for (size_t i = 0; kind && i < sizeof kinds / sizeof *kinds; i++) matter |= strcmp(kind, kinds[i]) == 0;
    matter = matter && total && strcmp(total, "auto") == 0;
    free(kind);
    free(total);
    return matter;
}

static bool may_change_but_epochs(const char *path) {
    return strcmp(path, "train.epochs") != 0 && settings_may_change(path);
}

int keeper_differs(const char *was, const char *is, char *text, size_t room) {
    return outline_compare(
        was, is, keeper_epochs_matter(was) ? may_change_but_epochs : settings_may_change, text, room);
}

// A run that was copied or moved goes on where it is.
static bool is_place(const char *path) {
    return strcmp(path, "run.dir") == 0;
}

static void tell(keeper *k, const char *line) {
    db_event(run_db(k->o.run), k->newest_update, "resume", line);
    log_line(run_log(k->o.run), "resume %s", line);
    task_tell(&k->o.listener, &(task_event){.kind = TASK_RESUME, .task = k->o.task, .line = line});
}

static void tell_damaged(void *arg, const char *why) {
    char line[1200];
    snprintf(line, sizeof line, "passed over: %s", why);
    tell(arg, line);
}

// The data of a run that is to go on. The checkpoint's contract, where there is one, knows more of them than the plan.
static bool check_data(const keeper *k, const contract *had, const chosen *was, const char *path, err *e) {
    char plain[128], text[700];
    if (!chosen_data_differ(was, k->o.plan, plain, sizeof plain)) return true;
    if (!had || !contract_data_differ(had, k->o.contract, text, sizeof text))
        snprintf(text, sizeof text, "%.300s has changed since the run began: %s", k->o.contract->data, plain);
    return err_input(
        e, "%s: was made of other data: %s; go on with the file as it was, or begin a new run", path, text);
}

// Inputs, data and plan of the run that is to go on.
static bool check_made(const keeper *k, const safetensors *s, const chosen *was, const char *path, err *e) {
    contract *had;
    char text[700];
    if (!contract_fits(s, path, k->o.contract, CONTRACT_ALL, e) || !contract_read(&had, s, path, e)) return false;
    bool ok = check_data(k, had, was, path, e);
    contract_free(had);
    if (!ok) return false;
    return !chosen_differs(was, k->o.plan, text, sizeof text) ||
           err_input(e, "%s: was made under another plan: %s; put that back, or train without --resume", path, text);
}

static bool compare_with(keeper *k, const safetensors *s, const char *config, const char *path, err *e) {
    char text[700], line[800];
    chosen was;
    if (keeper_differs(config, k->o.config, text, sizeof text))
        return err_input(
            e, "%s: was made under another description: %s; put that back, or train without --resume", path, text);
    if (!chosen_read(&was, safetensors_metadata(s, "plan")))
        return err_input(e, "%s: has a plan that this program cannot read; train without --resume", path);
    if (!check_made(k, s, &was, path, e)) return false;
    if (outline_compare(config, k->o.config, is_place, text, sizeof text)) {
        snprintf(line, sizeof line, "changed: %s", text);
        tell(k, line);
    }
    if (chosen_changes(&was, k->o.plan, text, sizeof text)) {
        snprintf(line, sizeof line, "planned: %s", text);
        tell(k, line);
    }
    return true;
}

static bool check_same(keeper *k, const safetensors *s, const char *path, err *e) {
    const char *config = safetensors_metadata(s, "config");
    if (!config || !safetensors_metadata(s, "plan"))
        return err_input(e, "%s: does not say under which description it was made", path);
    char *whole = task_description_complete(config);
    bool same = compare_with(k, s, whole, path, e);
    free(whole);
    return same;
}

bool keeper_resume(keeper *k, err *e) {
    char *path, line[700], where[128];
    int64_t epoch, done;
    const job *given = trainer_job(k->o.trainer);
    safetensors *s = checkpoint_newest(run_dir(k->o.run), tell_damaged, k, &path, e);
    if (!s) return false;
    bool ok = check_same(k, s, path, e) && trainer_restore(k->o.trainer, s, path, e);
    safetensors_close(s);
    if (!ok) {
        free(path);
        return false;
    }
    k->newest = path;
    k->resumed = true;
    trainer_stands(k->o.trainer, &k->newest_update, &epoch, &done);
    db_rewind(run_db(k->o.run), k->newest_update, epoch, trainer_job(k->o.trainer) != given);
    snprintf(line, sizeof line, "from %.400s: %s", path, place(k, where, sizeof where));
    tell(k, line);
    return true;
}

void keeper_restart(keeper *k) {
    char *earlier = aside_newest(run_dir(k->o.run)), *line;
    char *resume = earlier && checkpoint_any(earlier) ? command_resume(earlier) : NULL;
    db_rewind(run_db(k->o.run), 0, 1, false);
    NEED(asprintf(&line, "%s has no checkpoint yet: the run begins anew%s%s%s", run_dir(k->o.run),
             resume ? "; the run before it goes on with `" : "", resume ? resume : "", resume ? "`" : "") >= 0,
        "out of memory for a line");
    tell(k, line);
    free(line);
    free(resume);
    free(earlier);
}

// Reading

const err *keeper_failure(const keeper *k) {
    return &k->failure;
}

const char *keeper_newest(const keeper *k, uint64_t *update) {
    *update = k->newest_update;
    return k->newest;
}

const char *keeper_best(const keeper *k, int64_t *epoch) {
    *epoch = k->best_epoch;
    return k->best;
}
