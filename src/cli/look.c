#include "cli/look.h"

#include "base/json.h"
#include "base/term.h"
#include "data/when.h"
#include "run/checkpoint.h"
#include "run/command.h"
#include "run/outline.h"
#include "run/run.h"
#include "run/weights.h"
#include "task/contract.h"
#include "task/lines.h"
#include "task/members.h"
#include "task/walk.h"
#include "train/metric.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

// A value of a YAML file in a directory; empty where there is none.
static void value_of(const char *dir, const char *file, const char *key, char *to, size_t room) {
    char *text = run_text(dir, file);
    char *value = text ? outline_value(text, key) : NULL;
    snprintf(to, room, "%s", value ? value : "");
    free(value);
    free(text);
}

static void note_metric(void *arg, const char *part, const char *name, double value) {
    look *l = arg;
    if (!part[0] && strcmp(name, "eval/mean_reward") == 0) l->reward = value;
    if (strcmp(part, "validation") != 0) return;
    if (strcmp(name, "loss") == 0) l->loss = value;
    if (strcmp(name, "mcc") == 0) l->mcc = value;
    if (strcmp(name, "smape") == 0) l->smape = value;
    if (strcmp(name, "mase") == 0) l->mase = value;
    if (strcmp(name, "mae") == 0) l->mae = value;
}

static void note_skipped(void *arg, const char *part, const char *name, double value) {
    look *l = arg;
    if (!part[0] && strcmp(name, "steps_skipped") == 0) l->skipped = value;
}

// Chooses the usual metric for the run's task.
static void choose_metric(look *l) {
    bool classes = !isnan(l->mcc), series = !isnan(l->mase);
    l->title = metric_usual(classes ? METRIC_CLASSES : series ? METRIC_SERIES : METRIC_FORECASTS)->title;
    l->value = classes ? l->mcc : series ? l->smape : l->mae;
    if (l->agent[0]) {
        l->title = "reward";
        l->value = l->reward;
    }
    if (isnan(l->value)) l->title = NULL;
}

static void count_fold(void *arg, const char *dir) {
    (void)dir;
    ++*(int *)arg;
}

bool look_at_run(const char *dir, look *l, err *e) {
    *l = (look){.loss = NAN, .mcc = NAN, .smape = NAN, .mase = NAN, .mae = NAN, .reward = NAN};
    if (!run_is(dir)) return err_input(e, "%s: is no run's directory; it has no config.yaml", dir);
    char *path = run_path(dir, "run.db");
    db_reader *db = db_reader_open(path, e);
    bool ok = db && db_read(db, &l->sum, e);
    if (ok && l->sum.best_epoch) ok = db_read_metrics(db, l->sum.best_epoch, note_metric, l, e);
    if (ok && l->sum.epochs) ok = db_read_metrics(db, l->sum.epochs, note_skipped, l, e);
    ok = ok && db_read_event(db, "precision", l->changed, sizeof l->changed, e) && db_read_samples(db, &l->gauges, e);
    l->checked = db && db_reader_checked(db);
    db_reader_close(db);
    free(path);
    value_of(dir, "config.yaml", "model.kind", l->model, sizeof l->model);
    value_of(dir, "config.yaml", "agent.env", l->agent, sizeof l->agent);
    choose_metric(l);
    value_of(dir, "plan.yaml", "device", l->device, sizeof l->device);
    ok = ok && members_of(dir, &l->members, e);
    ok = ok && run_each_fold(dir, count_fold, &l->folds, e);
    l->status = run_status(dir, &l->sum);
    return ok;
}

// The monitor

json_t *look_gauges_json(const db_gauges *g) {
    if (!g->samples) return json_null();
    return json_pack("{s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "samples", (json_int_t)g->samples,
        "process_peak_bytes", json_bytes(g->memory_process), "others_peak_bytes", json_bytes(g->memory_others),
        "used_peak_bytes", json_bytes(g->memory_used), "total_bytes", json_bytes(g->memory_total), "utilisation_mean",
        json_number(g->utilisation_mean), "utilisation_peak", json_number(g->utilisation), "temperature_peak",
        json_number(g->temperature), "power_mean", json_number(g->power_mean), "power_peak", json_number(g->power));
}

// A run

static json_t *checkpoints_json(char **name, int count) {
    json_t *all = json_array();
    for (int i = 0; i < count; i++) json_array_append_new(all, json_string(name[i]));
    return all;
}

static int by_version(const void *a, const void *b) {
    return strverscmp(*(char *const *)a, *(char *const *)b);
}

// The names of a directory's checkpoints and weights, in order; the caller frees them.
static char **list_files(const char *dir, int *count) {
    char **name = NULL;
    checkpoint_kind kind;
    uint64_t number;
    *count = 0;
    DIR *d = opendir(dir);
    NEED(d || errno != ENOMEM, "out of memory to look into %s", dir);
    for (const struct dirent *each; d && (each = readdir(d));) {
        if (strcmp(each->d_name, "best.safetensors") != 0 && !checkpoint_named(each->d_name, &kind, &number)) continue;
        name = realloc(name, (size_t)(*count + 1) * sizeof *name);
        NEED(name && (name[*count] = strdup(each->d_name)), "out of memory for a list of files");
        ++*count;
    }
    if (d) closedir(d);
    if (*count) qsort(name, (size_t)*count, sizeof *name, by_version);
    return name;
}

void look_add_json(const look *l, json_t *to) {
    json_join(to,
        json_pack("{s:b, s:o, s:o, s:o, s:o, s:o, s:o}", "checked", l->checked, "validation_loss", json_number(l->loss),
            "validation_mcc", json_number(l->mcc), "validation_smape", json_number(l->smape), "validation_mase",
            json_number(l->mase), "validation_mae", json_number(l->mae), "seconds", json_number(l->sum.seconds)));
    if (l->agent[0]) json_join(to, json_pack("{s:o}", "mean_reward", json_number(l->reward)));
}

// The epoch that has not ended, or null.
static json_t *begun_json(const db_summary *s) {
    if (!s->begun) return json_null();
    return json_pack(
        "{s:I, s:I, s:o}", "epoch", (json_int_t)s->begun, "samples", (json_int_t)s->done, "loss", json_number(s->loss));
}

static void print_run_json(const char *dir, const look *l, char **name, int count) {
    const db_summary *s = &l->sum;
    json_t *all = json_pack("{s:s, s:s, s:s, s:s, s:s, s:o, s:o, s:I, s:I, s:I}", "run", dir, "status", l->status,
        "model", l->model, "device", l->device, "version", s->version, "started", json_number(s->started), "changed",
        json_number(s->changed), "steps", (json_int_t)s->step, "epochs", (json_int_t)s->epochs, "best_epoch",
        (json_int_t)s->best_epoch);
    look_add_json(l, all);
    if (all && l->agent[0]) json_object_set_new(all, "agent", json_string(l->agent));
    if (all) json_object_set_new(all, "within", begun_json(s));
    if (all) json_object_set_new(all, "steps_skipped", json_integer((json_int_t)l->skipped));
    if (all) json_object_set_new(all, "precision_changed", l->changed[0] ? json_string(l->changed) : json_null());
    if (all) json_object_set_new(all, "monitor", look_gauges_json(&l->gauges));
    if (all && l->members) json_object_set_new(all, "members", json_integer(l->members));
    if (all && l->folds) json_object_set_new(all, "folds", json_integer(l->folds));
    if (all) json_object_set_new(all, "files", checkpoints_json(name, count));
    json_line(stdout, all);
}

static void print_member(const char *dir, int k) {
    look l;
    err why;
    char *path = members_dir(dir, k);
    if (!run_is(path))
        printf("member    %d: not begun\n", k);
    else if (!look_at_run(path, &l, &why))
        printf("member    %d: %s\n", k, why.text);
    else if (l.title)
        printf("member    %d: %s, best epoch %lld of %lld, validation %s %.4g\n", k, l.status,
            (long long)l.sum.best_epoch, (long long)l.sum.epochs, l.title, l.value);
    else
        printf("member    %d: %s\n", k, l.status);
    free(path);
}

static void print_resume(const char *dir, const look *l) {
    bool ended = strcmp(l->status, "killed") != 0 && strcmp(l->status, "stopped") != 0;
    if (ended) return;
    bool saved = l->members || l->folds || checkpoint_any(dir);
    char *file = run_path(dir, "config.yaml"), *resume = command_line(l->folds ? "walk" : "train", file, "--resume");
    free(file);
    printf("resume    %s%s\n", saved ? "" : "no checkpoint was written yet; it begins anew: ", resume);
    free(resume);
}

static void print_checked(const look *l) {
    if (!l->checked)
        puts("note      run.db is of an earlier tradewind, which kept no sums: its figures are not checked");
}

static void print_ensemble(const char *dir, const look *l) {
    printf("ensemble  %s: %s, %d members, %s, by tradewind %s\n", dir, l->status, l->members, l->model, l->sum.version);
    for (int k = 1; k <= l->members; k++) print_member(dir, k);
    print_checked(l);
    print_resume(dir, l);
}

static void print_walk(const char *dir, const look *l) {
    printf("walk      %s: %s, %d fold%s begun, %s, by tradewind %s\n", dir, l->status, l->folds, term_s(l->folds),
        l->model, l->sum.version);
    char *runs = command_line("runs", dir, "");
    printf("folds     `%s` lists them; walk.json has their scores on the test\n", runs);
    free(runs);
    print_resume(dir, l);
}

static void print_epochs(const look *l) {
    const db_summary *s = &l->sum;
    char from[32];
    term_count(from, sizeof from, (double)s->step);
    printf("epochs    %lld, %s steps, %.1f s\n", (long long)s->epochs, from, s->seconds);
    term_count(from, sizeof from, (double)s->done);
    if (s->begun) printf("within    epoch %lld, %s samples of it, loss %.4g\n", (long long)s->begun, from, s->loss);
    if (s->best_epoch) printf("best      epoch %lld, validation loss %.4g", (long long)s->best_epoch, l->loss);
    if (s->best_epoch && l->title) printf(", %s %.4g", l->title, l->value);
    if (s->best_epoch) putchar('\n');
}

static void print_iterations(const look *l) {
    const db_summary *s = &l->sum;
    char steps[32];
    term_count(steps, sizeof steps, (double)s->step);
    printf("steps     %s in %lld iteration%s, %.1f s\n", steps, (long long)s->epochs, term_s(s->epochs), s->seconds);
    if (s->best_epoch) printf("best      iteration %lld, mean reward %.4g\n", (long long)s->best_epoch, l->reward);
}

static void print_run(const char *dir, const look *l, char **name, int count) {
    const db_summary *s = &l->sum;
    char from[32], to[32], gauges[256];
    const char *agent = l->agent[0] ? ", agent in " : "";
    printf("run       %s: %s, %s%s%s on %s, by tradewind %s\n", dir, l->status, l->model, agent, l->agent, l->device,
        s->version);
    printf("time      %s to %s UTC\n", when_text(from, sizeof from, (int64_t)s->started),
        when_text(to, sizeof to, (int64_t)s->changed));
    l->agent[0] ? print_iterations(l) : print_epochs(l);
    if (l->skipped > 0) printf("skipped   %.0f steps, whose gradient was not finite\n", l->skipped);
    if (l->changed[0]) printf("precision %s\n", l->changed);
    lines_gauges(&l->gauges, gauges, sizeof gauges);
    if (l->gauges.samples) printf("monitor   %s\n", gauges);
    for (int i = 0; i < count; i++) printf("%s%s\n", i ? "          " : "files     ", name[i]);
    print_checked(l);
    print_resume(dir, l);
}

bool look_print_run(const char *dir, bool json, err *e) {
    look l;
    int count;
    if (!look_at_run(dir, &l, e)) return false;
    char **name = list_files(dir, &count);
    if (json)
        print_run_json(dir, &l, name, count);
    else if (l.folds)
        print_walk(dir, &l);
    else if (l.members)
        print_ensemble(dir, &l);
    else
        print_run(dir, &l, name, count);
    for (int i = 0; i < count; i++) free(name[i]);
    free(name);
    return true;
}

// Weights

static const char *type_name(safetensors_type t) {
    static const char *const names[] = {"f32", "f64", "f16", "bf16", "i8", "i32", "i64", "u8"};
    return names[t];
}

static const char *shape_text(const safetensors_entry *t, char *out, size_t room) {
    size_t at = (size_t)snprintf(out, room, "[");
    for (int i = 0; i < t->rank && at < room; i++)
        at += (size_t)snprintf(out + at, room - at, "%s%lld", i ? ", " : "", (long long)t->dim[i]);
    if (at < room) snprintf(out + at, room - at, "]");
    return out;
}

// True if a tensor is a weight of the model, not an addition of a checkpoint or the scaler.
static bool is_weight(const char *name) {
    static const char *const others[] = {"moment1.", "moment2.", "best.", "state.", "trainer.", "scaler."};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strncmp(name, others[i], strlen(others[i])) == 0) return false;
    return true;
}

static int64_t values_of(const safetensors_entry *t) {
    int64_t n = 1;
    for (int i = 0; i < t->rank; i++) n *= t->dim[i];
    return n;
}

static void print_tensor(const safetensors_entry *t, bool json) {
    char shape[256], name[256];
    shape_text(t, shape, sizeof shape);
    snprintf(name, sizeof name, "%s", t->name);
    term_one_line(name);
    if (json)
        json_line(stdout, json_pack("{s:s, s:s, s:s, s:I}", "name", t->name, "type", type_name(t->type), "shape", shape,
                              "bytes", (json_int_t)t->bytes));
    else
        printf("  %-44s %-5s %s\n", name, type_name(t->type), shape);
}

// Inputs and answers of weights that know them, a line each.
static void print_contract(const safetensors *f, const char *path) {
    contract *c;
    err why;
    char text[1 << 14]; // all columns, so that they can be pasted
    if (!contract_read(&c, f, path, &why)) printf("  damaged: %s\n", why.text);
    if (!c) return;
    for (int i = 0; i < c->streams; i++) printf("  %s\n", contract_stream_line(c, i, text, sizeof text));
    printf("  %s\n", contract_answers_line(c, text, sizeof text));
    contract_free(c);
}

static void print_weights_head(const safetensors *f, const char *path, const char *what) {
    char n[32];
    int64_t values = 0;
    for (int i = 0; i < safetensors_count(f); i++)
        if (is_weight(safetensors_at(f, i)->name)) values += values_of(safetensors_at(f, i));
    term_count(n, sizeof n, (double)values);
    printf("%s: %s, %d tensors, %s parameters\n", path, what, safetensors_count(f), n);
    for (int i = 0; i < safetensors_notes(f); i++) {
        safetensors_note note = safetensors_note_at(f, i);
        char value[128];
        if (strcmp(note.key, contract_data_key) == 0 || strcmp(note.key, contract_key) == 0) continue;
        if (strcmp(note.key, "sum") == 0 || strcmp(note.key, "checkpoint") == 0 || strcmp(note.key, "weights") == 0)
            continue;
        if (strchr(note.value, '\n') || strlen(note.value) >= sizeof value) continue;
        snprintf(value, sizeof value, "%s", note.value);
        term_one_line(value);
        printf("  %.40s: %s\n", note.key, value);
    }
    print_contract(f, path);
}

bool look_print_weights(const char *path, bool json, err *e) {
    safetensors *f = weights_open(path, e);
    if (!f) return false;
    bool checkpoint = safetensors_metadata(f, "checkpoint") != NULL;
    if (checkpoint) { // its bytes are checked against their sum
        safetensors_close(f);
        f = checkpoint_open(path, e);
        if (!f) return false;
    }
    if (!json) print_weights_head(f, path, checkpoint ? "checkpoint, whole" : "weights");
    for (int i = 0; i < safetensors_count(f); i++) {
        const safetensors_entry *t = safetensors_at(f, i);
        if (json || is_weight(t->name)) print_tensor(t, json);
    }
    safetensors_close(f);
    return true;
}
