// tradewind train: trains, shows progress, and leaves the best weights, a log and the resolved description in the run's
// directory.
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/term.h"
#include "cli/cli.h"
#include "cli/setup.h"
#include "train/metric.h"
#include "train/trainer.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

typedef struct {
    const cli_options *o;
    const setup *s;
    log_file *log;
    progress bar;
    trainer *trainer;
    char *weights; // path of the best epoch's
    int64_t saved; // the epoch that they are of; 0 for none yet
    err unsaved;   // why they could not be written, or ERR_NONE
    double ready;  // when the slab was filled and the step recorded, as clock_seconds has it
    double begun;  // when the first step was done; 0 before
} view;

// The one wait in a run: how long the start took is known only when the device is through with a step.
static void note_first_step(view *v) {
    err later; // a failure stays and is told by the next call that can fail
    v->s->device->sync(v->s->queue, &later);
    v->begun = clock_seconds();
}

static bool on_step(void *arg, int64_t epoch, int64_t done, int64_t total) {
    view *v = arg;
    if (v->begun == 0) note_first_step(v);
    double all = (double)(total * v->s->settings.epochs), at = (double)((epoch - 1) * total + done);
    if (at < all) progress_at(&v->bar, at, "epoch %lld of %lld", (long long)epoch, (long long)v->s->settings.epochs);
    return !cli_interrupted() && v->unsaved.kind == ERR_NONE;
}

static void print_epoch_json(const epoch_report *r) {
    json_line(stdout,
        json_pack("{s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:o, s:b}", "epoch", (json_int_t)r->epoch,
            "train_loss", json_number(r->train.loss), "train_mcc", json_number(r->train.mcc), "validation_loss",
            json_number(r->validation.loss), "validation_accuracy", json_number(r->validation.accuracy),
            "validation_mcc", json_number(r->validation.mcc), "validation_macro_f1",
            json_number(r->validation.macro_f1), "grad_norm", json_number(r->grad_norm), "seconds",
            json_number(r->seconds), "samples_per_s", json_number(r->samples_per_s), "steps_skipped",
            (json_int_t)r->skipped, "loss_scale", json_number((double)r->loss_scale), "best", r->best));
}

// The best weights are on the disk from the epoch that made them, so that no end of the run can lose them.
static void on_epoch(void *arg, const epoch_report *r) {
    view *v = arg;
    if (r->best && v->unsaved.kind == ERR_NONE && trainer_save(v->trainer, v->weights, &v->unsaved))
        v->saved = r->epoch;
    char rate[32], line[256];
    term_count(rate, sizeof rate, r->samples_per_s);
    int n = snprintf(line, sizeof line,
        "epoch %3lld  loss %.4f  validation loss %.4f  accuracy %.3f  mcc %.4f%s  %s samples/s", (long long)r->epoch,
        r->train.loss, r->validation.loss, r->validation.accuracy, r->validation.mcc, r->best ? " *" : "  ", rate);
    if (r->skipped && n > 0 && (size_t)n < sizeof line)
        n += snprintf(line + n, sizeof line - (size_t)n, "  %lld steps skipped (not finite)", (long long)r->skipped);
    if (v->s->precision == PRECISION_FP16 && n > 0 && (size_t)n < sizeof line)
        snprintf(line + n, sizeof line - (size_t)n, "  loss scale %g", (double)r->loss_scale);
    log_line(v->log, "%s", line);
    if (v->o->json) {
        print_epoch_json(r);
    } else if (!v->o->quiet) {
        progress_done(&v->bar);
        printf("%s\n", line);
        fflush(stdout);
    }
}

// What the best possible classifier scores on the validation samples, where the data knows it.
static double best_possible(const dataset *d, span v) {
    int64_t count[CLASSES_MOST * CLASSES_MOST] = {0};
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

static json_t *bytes_or_null(bool known, size_t bytes) {
    return known ? json_integer((json_int_t)bytes) : json_null();
}

static json_t *result_object(const view *v, const train_result *r, const char *path) {
    const setup *s = v->s;
    device_memory m;
    bool counted = s->device->memory(s->queue, &m);
    double best = s->data->best ? best_possible(s->data, s->split.validation) : NAN;
    return json_pack("{s:I, s:o, s:o, s:b, s:b, s:s, s:s, s:s?, s:o, s:o, s:o, s:o, s:o, s:s?}", "best_epoch",
        (json_int_t)r->best_epoch, "validation_mcc", json_number(r->best_mcc), "best_possible_mcc", json_number(best),
        "stopped_early", r->stopped_early, "interrupted", r->interrupted, "weights", path, "device", s->device->name,
        "no_card", s->no_card.text[0] ? s->no_card.text : NULL, "first_step_s", json_number(v->begun - v->o->started),
        "host_peak_bytes", bytes_or_null(true, (size_t)host_peak()), "slab_bytes",
        bytes_or_null(true, exec_used(trainer_exec(v->trainer)).total), "base_bytes", bytes_or_null(counted, m.base),
        "monitor_bytes", bytes_or_null(counted, m.base + m.slab), "monitor_counts",
        !counted                        ? NULL
        : m.source == MEMORY_OF_PROCESS ? "process"
                                        : "card");
}

static void conclude(const view *v, const train_result *r, const char *path) {
    const setup *s = v->s;
    double best = s->data->best ? best_possible(s->data, s->split.validation) : 0;
    log_line(
        v->log, "best epoch %lld, validation mcc %.4f; weights in %s", (long long)r->best_epoch, r->best_mcc, path);
    if (v->o->json) {
        json_line(stdout, result_object(v, r, path));
        return;
    }
    if (r->interrupted) log_line(v->log, "stopped by a signal in epoch %lld", (long long)r->epochs + 1);
    if (v->o->quiet) return;
    if (r->interrupted) printf("stopped by a signal in epoch %lld\n", (long long)r->epochs + 1);
    if (r->stopped_early) printf("stopped early: no better epoch in %lld\n", (long long)s->settings.patience);
    printf("best      epoch %lld, validation MCC %.4f", (long long)r->best_epoch, r->best_mcc);
    if (s->data->best) printf("; the best possible classifier has %.4f", best);
    if (best > 0) printf(" (%.0f %% of it reached)", 100 * r->best_mcc / best);
    printf("\nweights   %s\n", path);
    if (v->o->verbose) tell_start(v);
}

static bool write_description(const setup *s, const char *path, err *e) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *f = open_memstream(&text, &bytes);
    if (!f) return err_run(e, "out of memory for the description");
    bool ok = config_write(s->config, f);
    ok = fclose(f) == 0 && ok;
    file_writer w;
    if (!ok) {
        err_run(e, "out of memory for the description");
    } else {
        ok = file_writer_open(&w, path, e) && file_writer_write(&w, text, bytes, e) && file_writer_commit(&w, e);
        file_writer_abandon(&w);
    }
    free(text);
    return ok;
}

static char *path_in(const char *dir, const char *name) {
    size_t n = strlen(dir) + strlen(name) + 2;
    char *path = malloc(n);
    CHECK(path, "out of memory for a path");
    snprintf(path, n, "%s/%s", dir, name);
    return path;
}

// Weights of an earlier run in the same directory are moved aside: they are not this run's.
static bool set_aside(view *v, err *e) {
    char *old = path_in(v->s->settings.dir, "best.safetensors.old");
    bool there = access(v->weights, F_OK) == 0, ok = !there || rename(v->weights, old) == 0;
    if (!ok) err_run(e, "%s: cannot be moved aside: %s", v->weights, strerror(errno));
    if (ok && there && !v->o->quiet && !v->o->json) printf("earlier   weights of another run here are now %s\n", old);
    free(old);
    return ok;
}

static bool open_directory(view *v, err *e) {
    const char *dir = v->s->settings.dir;
    if (!file_make_dirs(dir, e)) return false;
    v->weights = path_in(dir, "best.safetensors");
    char *log = path_in(dir, "training_log.txt"), *description = path_in(dir, "config.yaml");
    v->log = log_open(log, e);
    bool ok = v->log && set_aside(v, e) && write_description(v->s, description, e);
    free(log);
    free(description);
    return ok;
}

// A run that failed says what it leaves behind. Weights are replaced in one move, so what is there is whole.
static bool tell_saved(const view *v, err *e) {
    err why = *e;
    if (v->saved) return err_run(e, "%s; %s holds epoch %lld", why.text, v->weights, (long long)v->saved);
    return err_run(e, "%s; no weights were saved yet", why.text);
}

static bool train(view *v, trainer *t, err *e) {
    const setup *s = v->s;
    char device[128];
    s->device->describe(s->queue, device, sizeof device);
    log_line(v->log, "training %s with %lld parameters on %s", model_name(s->model.kind),
        (long long)graph_parameter_values(s->job.g), device);
    train_result r;
    watcher w = {.on_step = on_step, .on_epoch = on_epoch, .arg = v};
    progress_init(
        &v->bar, stderr, "training", (double)(s->split.train.count * s->settings.epochs), v->o->quiet || v->o->json);
    cli_watch_signals();
    bool ok = trainer_run(t, &w, &r, e);
    progress_done(&v->bar);
    if (v->unsaved.kind != ERR_NONE) {
        *e = v->unsaved;
        return false;
    }
    if (!ok) return tell_saved(v, e);
    if (!r.best_epoch && r.interrupted)
        return err_run(e, "stopped before the first epoch was finished; no weights were kept");
    if (!r.best_epoch)
        return err_run(
            e, "the validation loss was not finite in any epoch; no weights were kept; lower train.optimizer.lr");
    conclude(v, &r, v->weights);
    return true;
}

static bool run(const cli_options *o, err *e) {
    setup s;
    if (!setup_open(&s, o, e)) return false;
    view v = {.o = o, .s = &s};
    bool ok = setup_fits(&s, e) && open_directory(&v, e);
    if (ok && !o->quiet && !o->json) {
        setup_print(&s, stdout);
        fflush(stdout);
    }
    if (ok) v.trainer = trainer_new(s.device, s.queue, &s.job, s.data, &s.split, &s.settings, e);
    v.ready = clock_seconds();
    if (v.trainer) tell_memory(&v);
    if (v.trainer && o->verbose && !o->json && !o->quiet)
        plan_print(exec_plan(trainer_exec(v.trainer), true), s.job.g, stdout);
    ok = v.trainer && train(&v, v.trainer, e);
    if (!ok) log_line(v.log, "ended: %s", e->text);
    if (log_failed(v.log) && !o->quiet)
        fprintf(stderr, "tradewind: some lines of training_log.txt could not be written\n");
    trainer_free(v.trainer);
    log_close(v.log);
    free(v.weights);
    setup_close(&s);
    return ok;
}

static void print_keys(void) {
    printf("\nkeys of a description:\n");
    config_help(settings_keys, settings_key_count, stdout);
}

const cli_command cli_train = {"train", "CONFIG [key=value...]", "trains the model that a run description describes",
    "The description is a YAML file whose keys are listed below. Any key can be set on the command line:\n"
    "  tradewind train examples/quickstart.yaml train.epochs=4 train.optimizer.lr=3e-4\n"
    "The run's directory (run.dir) receives best.safetensors, training_log.txt and config.yaml. Ctrl-C finishes the\n"
    "step and keeps the best weights so far. --seed N stands for train.seed=N.\n",
    print_keys, "--seed", WORDS_MOST, run, NULL, NULL};
