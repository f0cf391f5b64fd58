#include "train/keeper.h"

#include "base/clock.h"
#include "run/checkpoint.h"
#include "run/outline.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct keeper {
    keeper_options o;
    char *best, *newest;
    int64_t best_epoch;
    uint64_t newest_update;
    bool resumed;
    double due; // when the next checkpoint is
    err failure;
};

static void set_due(keeper *k) {
    k->due = clock_seconds() + 60 * k->o.settings->checkpoint_minutes;
}

keeper *keeper_new(const keeper_options *o) {
    keeper *k = calloc(1, sizeof *k);
    CHECK(k, "out of memory for a keeper");
    k->o = *o;
    k->best = run_path(run_dir(o->run), "best.safetensors");
    set_due(k);
    return k;
}

void keeper_free(keeper *k) {
    if (!k) return;
    free(k->best);
    free(k->newest);
    free(k);
}

bool keeper_describe(keeper *k, err *e) {
    return run_write(k->o.run, "config.yaml", k->o.config, e) && run_write(k->o.run, "plan.yaml", k->o.plan, e);
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
    const safetensors_note notes[] = {{"config", k->o.config}, {"plan", k->o.plan}, {"version", k->o.version}};
    double began = clock_seconds();
    char where[128];
    int64_t epoch, done;
    char *path = checkpoint_path(run_dir(k->o.run), kind, number);
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
    set_due(k);
    return true;
}

bool keeper_step(keeper *k) {
    uint64_t update;
    int64_t epoch, done;
    if (k->failure.kind != ERR_NONE) return false;
    if (k->o.settings->checkpoint_minutes <= 0 || clock_seconds() < k->due) return true;
    trainer_stands(k->o.trainer, &update, &epoch, &done);
    return save(k, CHECKPOINT_STEP, update);
}

// Once the run is at its end one of those of steps is enough, should this one be damaged.
static bool save_last(keeper *k, bool ended) {
    if (!save(k, CHECKPOINT_LAST, 0)) return false;
    if (!ended) return true;
    checkpoint_rotate(run_dir(k->o.run), CHECKPOINT_STEP, 1);
    return true;
}

bool keeper_epoch(keeper *k, const epoch_report *r) {
    if (k->failure.kind != ERR_NONE) return false;
    if (r->best) {
        if (!trainer_save(k->o.trainer, k->best, &k->failure)) return false;
        k->best_epoch = r->epoch;
    }
    if (r->epoch % k->o.settings->checkpoint_every == 0 && !save(k, CHECKPOINT_EPOCH, (uint64_t)r->epoch)) return false;
    return !r->last || save_last(k, true);
}

bool keeper_leave(keeper *k) {
    return k->failure.kind == ERR_NONE && save_last(k, false);
}

bool keeper_conclude(keeper *k, const train_result *r) {
    if (k->failure.kind != ERR_NONE) return false;
    if (!k->resumed || !r->best_epoch || k->best_epoch == r->best_epoch) return true;
    k->best_epoch = r->best_epoch;
    return trainer_save(k->o.trainer, k->best, &k->failure);
}

// Resuming

// Keys that may change: they move no bit of what was trained so far, nor of what the next step does.
static bool may_change(const char *path) {
    static const char *const keys[] = {"train.epochs", "train.patience", "train.checkpoint_every",
        "train.checkpoint_minutes", "train.keep_checkpoints", "train.init_from", "data.num_workers",
        "data.prefetch_factor", "data.residency", "run.dir"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(path, keys[i]) == 0) return true;
    return false;
}

typedef struct {
    keeper *k;
    void (*tell)(void *arg, const char *line);
    void *arg;
} teller;

static void tell(const teller *t, const char *line) {
    log_line(run_log(t->k->o.run), "resume %s", line);
    if (t->tell) t->tell(t->arg, line);
}

static void tell_damaged(void *arg, const char *why) {
    char line[1200];
    snprintf(line, sizeof line, "passed over: %s", why);
    tell(arg, line);
}

static bool check_same(const keeper *k, const safetensors *s, const char *path, const teller *t, err *e) {
    const char *config = safetensors_metadata(s, "config"), *plan = safetensors_metadata(s, "plan");
    char text[700], line[800];
    if (!config || !plan) return err_input(e, "%s: does not say under which description it was made", path);
    if (outline_compare(config, k->o.config, may_change, text, sizeof text))
        return err_input(
            e, "%s: was made under another description: %s; put that back, or train without --resume", path, text);
    if (outline_compare(plan, k->o.plan, NULL, text, sizeof text))
        return err_input(
            e, "%s: was made under another plan: %s; a run goes on exactly only under its own", path, text);
    if (outline_compare(config, k->o.config, NULL, text, sizeof text)) {
        snprintf(line, sizeof line, "changed: %s", text);
        tell(t, line);
    }
    return true;
}

bool keeper_resume(keeper *k, void (*to)(void *arg, const char *line), void *arg, err *e) {
    teller t = {k, to, arg};
    char *path, line[700], where[128];
    int64_t epoch, done;
    safetensors *s = checkpoint_newest(run_dir(k->o.run), tell_damaged, &t, &path, e);
    if (!s) return false;
    bool ok = check_same(k, s, path, &t, e) && trainer_restore(k->o.trainer, s, path, e);
    safetensors_close(s);
    if (!ok) {
        free(path);
        return false;
    }
    k->newest = path;
    k->resumed = true;
    trainer_stands(k->o.trainer, &k->newest_update, &epoch, &done);
    snprintf(line, sizeof line, "from %.400s: %s", path, place(k, where, sizeof where));
    tell(&t, line);
    return true;
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
