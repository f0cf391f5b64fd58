#include "task/keeper.h"

#include "base/clock.h"
#include "base/text.h"
#include "run/checkpoint.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct keeper {
    keeper_options o;
    records *records;
    char *best;
    char *contract, *data; // as files of weights and checkpoints have them
    int64_t best_epoch;
    err failure;
};

keeper *keeper_new(const keeper_options *o) {
    keeper *k = calloc(1, sizeof *k);
    NEED(k, "out of memory for a keeper");
    k->o = *o;
    k->records = records_new(&(records_options){.run = o->run,
        .settings = o->settings,
        .config = o->config,
        .plan = o->plan,
        .version = o->version,
        .task = o->task,
        .listener = o->listener});
    k->best = run_path(run_dir(o->run), "best.safetensors");
    k->contract = contract_text(o->contract);
    k->data = contract_data_text(o->contract);
    return k;
}

void keeper_free(keeper *k) {
    if (!k) return;
    records_free(k->records);
    free(k->best);
    free(k->contract);
    free(k->data);
    free(k);
}

records *keeper_records(const keeper *k) {
    return k->records;
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
    const safetensors_note notes[] = {{"config", k->o.config}, {"plan", records_plan(k->records)},
        {"version", k->o.version}, {contract_key, k->contract}, {contract_data_key, k->data}};
    double began = clock_seconds();
    char where[128];
    int64_t epoch, done;
    char *path = checkpoint_path(run_dir(k->o.run), kind, number);
    db_sync(run_db(k->o.run));
    if (!trainer_checkpoint(k->o.trainer, path, notes, sizeof notes / sizeof *notes, &k->failure)) {
        free(path);
        return false;
    }
    uint64_t update;
    trainer_stands(k->o.trainer, &update, &epoch, &done);
    records_saved(k->records, path, kind, update, place(k, where, sizeof where), clock_seconds() - began);
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
    if (!records_due(k->records)) return true;
    trainer_stands(k->o.trainer, &update, &epoch, &done);
    return save(k, CHECKPOINT_STEP, update);
}

// Once the run is at its end one of those of steps is enough, should this one be damaged.
static bool save_last(keeper *k, bool ended) {
    if (!save(k, CHECKPOINT_LAST, 0)) return false;
    if (ended) records_ended(k->records);
    return true;
}

// The confusion matrix as JSON, rows are true classes, which the caller frees.
static char *matrix_text(const int64_t *count, int K) {
    text_out t;
    text_open(&t);
    for (int i = 0; i < K * K; i++)
        fprintf(t.out, "%s%" PRId64 "%s", i == 0 ? "[[" : i % K ? ", " : "], [", count[i], i == K * K - 1 ? "]]" : "");
    char *text = text_close(&t);
    NEED(text, "out of memory for a confusion matrix");
    return text;
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
    records_warn(k->records);
}

void keeper_steps(keeper *k, const step_report *r) {
    db_steps_row row = {
        r->update, r->epoch, r->done, r->steps, r->loss_min, r->loss_mean, r->loss_max, r->grad_norm, r->lr};
    db_steps(run_db(k->o.run), &row);
}

void keeper_samples(keeper *k, monitor *m) {
    uint64_t update;
    int64_t epoch, done;
    trainer_stands(k->o.trainer, &update, &epoch, &done);
    records_samples(k->records, m, update);
}

void keeper_trivial(keeper *k, const char *line) {
    if (!records_resumed(k->records)) db_event(run_db(k->o.run), 0, "trivial", line);
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
    records_stop(k->records);
    return true;
}

bool keeper_conclude(keeper *k, const train_result *r) {
    if (k->failure.kind != ERR_NONE) return false;
    if (records_resumed(k->records) && r->best_epoch && k->best_epoch != r->best_epoch) {
        k->best_epoch = r->best_epoch;
        if (!save_best(k)) return false;
    }
    records_conclude(k->records, r->interrupted, r->stopped_early);
    return true;
}

// Resuming

// The data of a run that is to go on. The checkpoint's contract, where there is one, knows more of them than the plan.
static bool check_data(const keeper *k, const contract *had, const chosen *was, const char *path, err *e) {
    char plain[128], text[700];
    if (!chosen_data_differ(was, k->o.plan, plain, sizeof plain)) return true;
    if (!had || !contract_data_differ(had, k->o.contract, text, sizeof text))
        snprintf(text, sizeof text, "%.300s has changed since the run began: %s", k->o.contract->data, plain);
    return err_input(
        e, "%s: was made of other data: %s; go on with the file as it was, or begin a new run", path, text);
}

// Inputs and data of the run that is to go on.
static bool check_made(const void *arg, const safetensors *s, const chosen *was, const char *path, err *e) {
    const keeper *k = arg;
    contract *had;
    if (!contract_fits(s, path, k->o.contract, CONTRACT_ALL, e) || !contract_read(&had, s, path, e)) return false;
    bool ok = check_data(k, had, was, path, e);
    contract_free(had);
    return ok;
}

bool keeper_resume(keeper *k, err *e) {
    char *path, where[128];
    uint64_t update;
    int64_t epoch, done;
    const job *given = trainer_job(k->o.trainer);
    safetensors *s = records_find(k->records, check_made, k, &path, e);
    if (!s) return false;
    bool ok = trainer_restore(k->o.trainer, s, path, e);
    safetensors_close(s);
    if (!ok) {
        free(path);
        return false;
    }
    trainer_stands(k->o.trainer, &update, &epoch, &done);
    records_resume(k->records, path, update, epoch, trainer_job(k->o.trainer) != given, place(k, where, sizeof where));
    return true;
}

// Reading

const err *keeper_failure(const keeper *k) {
    return &k->failure;
}

const char *keeper_best(const keeper *k, int64_t *epoch) {
    *epoch = k->best_epoch;
    return k->best;
}
