#include "task/records.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/term.h"
#include "run/aside.h"
#include "run/command.h"
#include "run/hook.h"
#include "run/outline.h"
#include "task/describe.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct records {
    records_options o;
    char *plan; // o.plan as plan.yaml has it
    char *newest;
    uint64_t newest_update;
    bool resumed, warned;
    hook *hook;           // the command of on_event, or NULL
    const char *finished; // what it is told at the end; NULL: nothing. A run that is through may still have failed
    db_sample_row seen;   // the last sample; of utilisation, the sum and the number since the last line
    double busy;
    int busy_samples;
    bool has_seen;
    double due; // when the next checkpoint is
};

static void set_due(records *r) {
    r->due = clock_seconds() + 60 * r->o.settings->checkpoint_minutes;
}

records *records_new(const records_options *o) {
    records *r = calloc(1, sizeof *r);
    NEED(r, "out of memory for a run's records");
    r->o = *o;
    r->plan = chosen_write(o->plan);
    if (!o->settings->walk.fold) // a walk tells of itself
        r->hook = hook_new(
            &(hook_options){.command = o->settings->on_event, .events = o->settings->events, .dir = run_dir(o->run)});
    set_due(r);
    return r;
}

static json_t *step_json(uint64_t update) {
    return json_pack("{s:I}", "step", (json_int_t)update);
}

static void hear(records *r) {
    char why[256];
    if (!hook_tick(r->hook, why, sizeof why)) return;
    log_line(run_log(r->o.run), "warning: %s", why);
    db_event(run_db(r->o.run), r->newest_update, "on_event", why);
}

void records_free(records *r) {
    if (!r) return;
    if (r->finished) hook_tell(r->hook, HOOK_FINISHED, r->finished, step_json(r->newest_update));
    hook_finish(r->hook);
    hear(r);
    hook_free(r->hook);
    free(r->plan);
    free(r->newest);
    free(r);
}

const char *records_plan(const records *r) {
    return r->plan;
}

bool records_describe(records *r, err *e) {
    db_run(run_db(r->o.run), r->o.version, r->o.config, r->plan);
    if (!r->resumed) db_event(run_db(r->o.run), 0, "start", "");
    return run_put_description(r->o.run, r->o.config, e) && run_put_plan(r->o.run, r->plan, e);
}

// Checkpoints

bool records_due(records *r) {
    hear(r);
    db_tick(run_db(r->o.run));
    return r->o.settings->checkpoint_minutes > 0 && clock_seconds() >= r->due;
}

void records_saved(records *r, char *path, checkpoint_kind kind, uint64_t update, const char *where, double seconds) {
    free(r->newest);
    r->newest = path;
    r->newest_update = update;
    checkpoint_rotate(run_dir(r->o.run), kind, r->o.settings->keep_checkpoints);
    log_line(run_log(r->o.run), "checkpoint %s: %s (%.0f ms)", path, where, 1e3 * seconds);
    db_event(run_db(r->o.run), update, "checkpoint", path);
    task_tell(&r->o.listener, &(task_event){.kind = TASK_CHECKPOINT, .task = r->o.task, .checkpoint = {path, update}});
    set_due(r);
}

void records_ended(records *r) {
    if (r->o.settings->keep_checkpoints) checkpoint_rotate(run_dir(r->o.run), CHECKPOINT_STEP, 1);
}

const char *records_newest(const records *r, uint64_t *update) {
    *update = r->newest_update;
    return r->newest;
}

// Notes on the way

void records_warn(records *r) {
    err why;
    if (r->warned || !db_trouble(run_db(r->o.run), &why)) return;
    r->warned = true;
    log_line(run_log(r->o.run), "warning: %s", why.text);
}

static void note_sample(records *r, const db_sample_row *row) {
    r->seen = *row;
    r->has_seen = true;
    if (row->utilisation < 0) return;
    r->busy += row->utilisation;
    r->busy_samples++;
}

void records_add_state(records *r, double left, char *text, size_t room) {
    char eta[24];
    size_t n = strlen(text);
    term_eta(eta, sizeof eta, left);
    if (isfinite(left)) n += (size_t)snprintf(text + n, room - n, "  ETA %s", eta);
    double memory = r->seen.memory_process >= 0 ? r->seen.memory_process : r->seen.memory_used;
    if (n < room && r->has_seen && memory >= 0)
        n += (size_t)snprintf(text + n, room - n, "  memory %.0f MB", memory / 1e6);
    double busy = r->busy_samples ? r->busy / r->busy_samples : r->has_seen ? r->seen.utilisation : -1;
    if (n < room && busy >= 0) snprintf(text + n, room - n, "  utilisation %.0f %%", busy);
    r->busy = 0;
    r->busy_samples = 0;
}

void records_best(records *r, uint64_t update, const char *what, int64_t epoch, const char *metric, double value) {
    char text[96];
    if (!r->hook) return;
    snprintf(text, sizeof text, "%s %lld: %s %.6g", what, (long long)epoch, metric, value);
    hook_tell(r->hook, HOOK_BEST, text,
        json_pack("{s:I, s:I, s:s, s:o}", "step", (json_int_t)update, "epoch", (json_int_t)epoch, "metric", metric,
            "value", json_number(value)));
}

void records_samples(records *r, monitor *m, uint64_t update) {
    db_sample_row row;
    char warning[256];
    while (monitor_take(m, &row, warning, sizeof warning)) {
        db_sample(run_db(r->o.run), &row);
        note_sample(r, &row);
        if (!warning[0]) continue;
        log_line(run_log(r->o.run), "warning: %s", warning);
        db_event(run_db(r->o.run), update, "memory", warning);
        hook_tell(r->hook, HOOK_MEMORY, warning, step_json(update));
        task_tell(&r->o.listener, &(task_event){.kind = TASK_WARNING, .task = r->o.task, .line = warning});
    }
}

monitor *records_watch(records *r, const device *d, queue *q, const budget *b) {
    double every = r->o.settings->monitor_every;
    err why;
    if (every <= 0) return NULL;
    monitor *m = monitor_start(
        &(monitor_options){.device = d, .queue = q, .every = every, .limit = b->limited ? b->limit : 0}, &why);
    if (!m) log_line(run_log(r->o.run), "warning: %s", why.text);
    return m;
}

void records_unwatch(records *r, monitor *m, uint64_t update) {
    monitor_stop(m);
    records_samples(r, m, update);
    if (monitor_lost(m))
        log_line(run_log(r->o.run), "warning: %lld samples of the monitor found no place", (long long)monitor_lost(m));
}

// The end

void records_stop(records *r) {
    db_event(run_db(r->o.run), r->newest_update, "stop", "by a signal");
    hook_tell(r->hook, HOOK_STOP, "stopped by a signal", step_json(r->newest_update));
}

void records_conclude(records *r, bool stopped, bool early) {
    db_status(run_db(r->o.run), stopped ? "stopped" : "done", early ? "stopped early" : "");
    db_sync(run_db(r->o.run));
    if (!stopped) r->finished = early ? "stopped early" : "done";
}

void records_fail(records *r, const char *why) {
    log_line(run_log(r->o.run), "ended: %s", why);
    db_status(run_db(r->o.run), "failed", why);
    db_sync(run_db(r->o.run));
    r->finished = NULL;
    hook_tell(r->hook, HOOK_FAILED, why, step_json(r->newest_update));
}

void records_tell_lost(const records *r) {
    err why;
    char line[sizeof why.text + 16];
    task_event lost = {
        .kind = TASK_LOST, .task = r->o.task, .line = "some lines of training_log.txt could not be written"};
    if (log_failed(run_log(r->o.run))) task_tell(&r->o.listener, &lost);
    if (!db_trouble(run_db(r->o.run), &why)) return;
    snprintf(line, sizeof line, "warning: %s", why.text);
    lost.line = line;
    task_tell(&r->o.listener, &lost);
}

// Files are replaced in one move, so what is there is whole.
bool records_say_saved(const records *r, const char *best, int64_t epoch, err *e) {
    err why = *e;
    if (r->newest)
        return err_run(e, "%s; --resume goes on from %s, step %" PRIu64, why.text, r->newest, r->newest_update);
    if (epoch) return err_run(e, "%s; %s holds epoch %lld", why.text, best, (long long)epoch);
    return err_run(e, "%s; no weights were saved yet", why.text);
}

// Descriptions compared

static bool is_one_of(const char *word, const char *const *list, size_t count) {
    bool is = false;
    for (size_t i = 0; word && i < count; i++) is |= strcmp(word, list[i]) == 0;
    return is;
}

bool records_epochs_matter(const char *config) {
    static const char *const kinds[] = {"cosine", "linear", "one_cycle"};
    char *kind = outline_value(config, "train.schedule.kind"), *total = outline_value(config, "train.schedule.total");
    bool matter = is_one_of(kind, kinds, sizeof kinds / sizeof *kinds) && total && strcmp(total, "auto") == 0;
    free(kind);
    free(total);
    return matter;
}

bool records_timesteps_matter(const char *config) {
    static const char *const paths[] = {"agent.learning_rate", "agent.clip_range", "agent.ent_coef", "agent.target_kl"};
    bool matter = false;
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        char kind[64];
        snprintf(kind, sizeof kind, "%s.kind", paths[i]);
        char *value = outline_value(config, paths[i]), *goes = outline_value(config, kind);
        matter |= goes ? strcmp(goes, "constant") != 0 : value && strncmp(value, "lin_", 4) == 0;
        free(value);
        free(goes);
    }
    return matter;
}

static bool may_change_but_epochs(const char *path) {
    return strcmp(path, "train.epochs") != 0 && settings_may_change(path);
}

static bool may_change_but_timesteps(const char *path) {
    return strcmp(path, "agent.total_timesteps") != 0 && settings_may_change(path);
}

int records_differ(const char *was, const char *is, char *text, size_t room) {
    bool (*skip)(const char *path) = settings_may_change;
    if (records_epochs_matter(was)) skip = may_change_but_epochs;
    if (records_timesteps_matter(was)) skip = may_change_but_timesteps;
    return outline_compare(was, is, skip, text, room);
}

// A run that was copied or moved goes on where it is.
static bool is_place(const char *path) {
    return strcmp(path, "run.dir") == 0;
}

// Resuming

static void tell(records *r, const char *line) {
    db_event(run_db(r->o.run), r->newest_update, "resume", line);
    log_line(run_log(r->o.run), "resume %s", line);
    task_tell(&r->o.listener, &(task_event){.kind = TASK_RESUME, .task = r->o.task, .line = line});
}

static void tell_damaged(void *arg, const char *why) {
    char line[1200];
    snprintf(line, sizeof line, "passed over: %s", why);
    tell(arg, line);
}

static void tell_changes(records *r, const char *config, const chosen *was) {
    char text[700], line[800];
    if (outline_compare(config, r->o.config, is_place, text, sizeof text)) {
        snprintf(line, sizeof line, "changed: %s", text);
        tell(r, line);
    }
    if (chosen_changes(was, r->o.plan, text, sizeof text)) {
        snprintf(line, sizeof line, "planned: %s", text);
        tell(r, line);
    }
}

// True if descriptions differ in the length of the run alone, which a schedule fixes.
static bool is_longer_alone(const char *was, const char *is) {
    char unused[700];
    return !outline_compare(was, is, settings_may_change, unused, sizeof unused);
}

static bool compare(const records *r, const safetensors *s, const char *config, chosen *was, const char *path, err *e) {
    char text[700];
    if (records_differ(config, r->o.config, text, sizeof text))
        return err_input(e, "%s: was made under another description: %s%s; put that back, or train without --resume",
            path, text,
            is_longer_alone(config, r->o.config) ? ", and a value that changes over the run goes by it" : "");
    return chosen_read(was, safetensors_metadata(s, "plan")) ||
           err_input(e, "%s: has a plan that this program cannot read; train without --resume", path);
}

static bool is_same_plan(const records *r, const chosen *was, const char *path, err *e) {
    char text[700];
    return !chosen_differs(was, r->o.plan, text, sizeof text) ||
           err_input(e, "%s: was made under another plan: %s; put that back, or train without --resume", path, text);
}

static bool is_same(records *r, const safetensors *s, records_check *check, const void *arg, const char *path, err *e) {
    const char *config = safetensors_metadata(s, "config");
    chosen was;
    if (!config || !safetensors_metadata(s, "plan"))
        return err_input(e, "%s: does not say under which description it was made", path);
    char *whole = task_description_complete(config);
    bool same = compare(r, s, whole, &was, path, e) && (!check || check(arg, s, &was, path, e)) &&
                is_same_plan(r, &was, path, e);
    if (same) tell_changes(r, whole, &was);
    free(whole);
    return same;
}

safetensors *records_find(records *r, records_check *check, const void *arg, char **path, err *e) {
    safetensors *s = checkpoint_newest(run_dir(r->o.run), tell_damaged, r, path, e);
    if (!s || is_same(r, s, check, arg, *path, e)) return s;
    safetensors_close(s);
    free(*path);
    return NULL;
}

void records_resume(records *r, char *path, uint64_t update, int64_t epoch, bool changed, const char *where) {
    char line[700];
    r->newest = path;
    r->resumed = true;
    r->newest_update = update;
    db_rewind(run_db(r->o.run), update, epoch, changed);
    snprintf(line, sizeof line, "from %.400s: %s", path, where);
    tell(r, line);
}

bool records_resumed(const records *r) {
    return r->resumed;
}

void records_restart(records *r) {
    char *earlier = aside_newest(run_dir(r->o.run)), *line;
    char *resume = earlier && checkpoint_any(earlier) ? command_resume(earlier) : NULL;
    db_rewind(run_db(r->o.run), 0, 1, false);
    NEED(asprintf(&line, "%s has no checkpoint yet: the run begins anew%s%s%s", run_dir(r->o.run),
             resume ? "; the run before it goes on with `" : "", resume ? resume : "", resume ? "`" : "") >= 0,
        "out of memory for a line");
    tell(r, line);
    free(line);
    free(resume);
    free(earlier);
}
