// tradewind tune: measures batch sizes and what else a description leaves open, shows the table with the knee and the
// gradient noise scale, and keeps the winner for train and plan.
#include "base/json.h"
#include "base/pool.h"
#include "base/term.h"
#include "cli/ask.h"
#include "cli/cli.h"
#include "cli/show.h"
#include "graph/dtype.h"
#include "graph/identity.h"
#include "task/tuning.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH_MOST = 10000000 };

// Largest relative spread of one size's timings, in the mean, that is not reported.
#define UNREST 0.25

typedef struct {
    const cli_options *o;
    tuning t;
    progress bar;
    char why[320]; // the rule that gave the winner
} view;

// Options

// The number at `at`, up to a comma or the end of an option's text.
static bool read_number(
    const char *option, const char *text, const char *at, int64_t most, char **end, int64_t *value, err *e) {
    errno = 0;
    long long v = strtoll(at, end, 10);
    if (errno || *end == at || (**end && **end != ',') || v < 1 || v > most)
        return err_input(e, "%s %.60s: must be %s from 1 to %lld", option, text,
            strchr(text, ',') ? "integers" : "an integer", (long long)most);
    *value = v;
    return true;
}

static bool read_one(const cli_options *o, const char *option, int64_t most, int64_t *value, err *e) {
    const char *text = cli_given(o, option);
    char *end;
    *value = 0;
    if (!text) return true;
    if (!read_number(option, text, text, most, &end, value, e)) return false;
    return !*end || err_input(e, "%s %.60s: is one number", option, text);
}

static int by_size(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

// "512,1024,3072", in any order; each counts once.
static bool read_batches(const char *text, tuning_options *w, err *e) {
    char *end = NULL;
    for (const char *at = text;; at = end + 1) {
        if (w->batches == TUNE_BATCHES_MOST)
            return err_input(e, "--batches: has more than %d numbers", TUNE_BATCHES_MOST);
        if (!read_number("--batches", text, at, BATCH_MOST, &end, &w->batch[w->batches++], e)) return false;
        if (!*end) break;
    }
    qsort(w->batch, (size_t)w->batches, sizeof *w->batch, by_size);
    int n = 0;
    for (int i = 0; i < w->batches; i++)
        if (!n || w->batch[i] != w->batch[n - 1]) w->batch[n++] = w->batch[i];
    w->batches = n;
    return true;
}

static bool read_wishes(const cli_options *o, tuning_options *w, err *e) {
    const char *list = cli_given(o, "--batches");
    *w = (tuning_options){0};
    if (!read_one(o, "--from", BATCH_MOST, &w->from, e) || !read_one(o, "--to", BATCH_MOST, &w->to, e)) return false;
    if (!read_one(o, "--seconds", 86400, &w->seconds, e)) return false;
    if (list && (w->from || w->to)) return err_input(e, "--batches names them all; leave --from and --to out");
    if (w->from && w->to && w->from > w->to) return err_input(e, "--from is larger than --to");
    return !list || read_batches(list, w, e);
}

static bool on_event(void *arg, const task_event *e) {
    view *v = arg;
    if (e->kind != TASK_TUNING) return true;
    const tune_row *at = e->tuning.at;
    double percent = 100 * e->tuning.share;
    if (at)
        progress_at(&v->bar, percent, "batch %lld, %s", (long long)at->batch, precision_name(at->precision));
    else
        progress_at(&v->bar, percent, "gradient noise scale");
    return !cli_interrupted();
}

// The rule, in words

static void count(char *text, size_t room, double n) {
    term_count(text, room, n);
}

static void explain(view *v) {
    const tune_result *r = &v->t.result;
    char batch[32], noise[32], knee[32];
    if (r->winner < 0) return;
    const tune_row *w = &r->row[r->winner];
    count(batch, sizeof batch, (double)w->batch);
    count(knee, sizeof knee, (double)r->row[r->knee].batch);
    count(noise, sizeof noise, r->later.scale);
    int n = snprintf(v->why, sizeof v->why, "%s: %.0f %% of the best rate; ", batch, 100 * w->share);
    char *rest = v->why + n;
    size_t room = sizeof v->why - (size_t)n;
    if (r->capped)
        snprintf(rest, room, "the noise scale is %s, so larger batches help little, up to the knee at %s", noise, knee);
    else if (!r->later.known)
        snprintf(rest, room, "the knee, as the noise scale is not known");
    else if (r->steps < TUNE_LEARNT)
        snprintf(rest, room, "the knee, as the noise scale still grows after %d steps", (int)r->steps);
    else if (r->later.scale <= (double)w->batch)
        snprintf(rest, room, "the noise scale is %s, so larger batches help little", noise);
    else
        snprintf(rest, room, "the noise scale is %s, so larger batches help, but are hardly faster", noise);
}

// Text

static void print_head(const view *v) {
    const task *s = &v->t.task;
    char device[IDENTITY_ROOM], samples[32], values[32];
    device_identity is;
    s->device->identify(s->queue, &is);
    is.total = 0; // what is free is no part of a table that is kept
    identity_text(&is, device, sizeof device);
    count(samples, sizeof samples, (double)s->split.train.count);
    count(values, sizeof values, (double)graph_parameter_values(s->job.g));
    printf("device    %s\n", device);
    if (s->no_card.text[0]) printf("          no card: %s\n", s->no_card.text);
    printf(
        "data      %s training samples (%s), %.1f MB\n", samples, s->data->name, (double)dataset_bytes(s->data) / 1e6);
    printf("model     %s, %s parameters\n", model_name(s->model.kind), values);
    if (s->budget.limited)
        printf("limit     %.1f MB (%.2f GB)\n", (double)s->budget.limit / 1e6, (double)s->budget.limit / 0x1p30);
    else
        printf("limit     none\n");
}

static void add_mark(char *to, size_t room, const char *mark) {
    size_t n = strlen(to);
    snprintf(to + n, room - n, "%s%s", n ? ", " : "", mark);
}

static void print_row(const view *v, int i) {
    const tune_result *r = &v->t.result;
    const tune_row *row = &r->row[i];
    char split[48], rate[32], marks[64] = "";
    snprintf(split, sizeof split, "%lld x %lld", (long long)row->way.parts, (long long)row->way.batch);
    count(rate, sizeof rate, row->samples_per_s);
    if (row->way.host && !v->t.task.device->host_memory) add_mark(marks, sizeof marks, "streamed");
    if (i == r->knee) add_mark(marks, sizeof marks, "knee");
    if (i == r->winner) add_mark(marks, sizeof marks, "winner");
    printf("%7lld %11s %5d %5s %9.3f %11s %8.2f %8.1f %4.0f %%%s%s\n", (long long)row->batch, split, row->way.again,
        precision_name(row->precision), 1e3 * row->seconds, rate, row->epoch_s, (double)row->bytes / 1e6,
        100 * row->share, marks[0] ? "  " : "", marks);
}

static void print_skipped(const view *v) {
    for (int i = 0; i < v->t.result.rows; i++) {
        const tune_row *row = &v->t.result.row[i];
        if (row->seconds > 0) continue;
        printf("skipped   %lld%s in %s: %s\n", (long long)row->batch, row->ends ? " and more" : "",
            precision_name(row->precision), row->why);
    }
}

static void scale_text(char *text, size_t room, const noise_scale *n, const char *why) {
    char scale[32], error[32];
    count(scale, sizeof scale, n->scale);
    count(error, sizeof error, n->error);
    if (n->known)
        snprintf(text, room, "%s (+- %s)", scale, error);
    else if (n->measured)
        snprintf(text, room, "not measurable");
    else
        snprintf(text, room, "not measured (%s)", why);
}

static void print_noise(const view *v) {
    const tune_result *r = &v->t.result;
    char start[80], later[80], steps[32];
    scale_text(start, sizeof start, &r->start, r->noise_why);
    scale_text(later, sizeof later, &r->later, r->noise_why);
    count(steps, sizeof steps, (double)r->steps);
    if (r->steps && (r->start.measured || !r->interrupted))
        printf("noise     the gradient noise scale is %s at the start and %s after %s steps\n", start, later, steps);
}

// Where rounds of the same steps differ as much as sizes do, the table is of the machine's other work.
static void print_unrest(const view *v) {
    double sum = 0;
    int count = 0;
    for (int i = 0; i < v->t.result.rows; i++) {
        if (!(v->t.result.row[i].seconds > 0)) continue;
        sum += v->t.result.row[i].spread;
        count++;
    }
    if (count && sum / count > UNREST)
        printf(
            "warning   rounds of the same steps differed by %.0f %%: other work is on this device; tune again when it "
            "is idle\n",
            100 * sum / count);
}

static const char *trial_name(const view *v, const tune_trial *t, char *text, size_t room) {
    int threads = t->threads ? t->threads : pool_processors();
    if (v->t.task.device->host_memory)
        snprintf(text, room, "%d thread%s", threads, threads == 1 ? "" : "s");
    else
        snprintf(text, room, "%s", settings_products_name(t->products));
    return text;
}

static void print_trials(const view *v) {
    const tune_result *r = &v->t.result;
    const tune_trial *taken = &r->trial[r->taken];
    char name[32], rate[32];
    if (!r->trials) return;
    printf("%-10s", v->t.task.device->host_memory ? "threads" : "products");
    for (int i = 0; i < r->trials; i++) {
        const tune_trial *t = &r->trial[i];
        count(rate, sizeof rate, t->samples_per_s);
        printf("%s%s ", i ? ", " : "", trial_name(v, t, name, sizeof name));
        t->seconds > 0 ? printf("%s samples/s", rate) : printf("not measured (%s)", t->why);
    }
    printf(": %s ", trial_name(v, taken, name, sizeof name));
    if (r->taken)
        printf("taken, %.0f %% faster\n", 100 * (taken->samples_per_s / r->trial[0].samples_per_s - 1));
    else
        printf("kept\n");
}

static void print_kept(const view *v) {
    char batch[32], rate[32];
    count(batch, sizeof batch, (double)v->t.stays.batch);
    count(rate, sizeof rate, v->t.stays.samples_per_s);
    if (v->t.kept && v->t.earlier[0])
        printf("kept      beside what was tuned on %s; of both %s is the winner, with %s samples/s\n", v->t.earlier,
            batch, rate);
    else if (v->t.kept)
        printf("kept      for this device, model, data and build: train.batch_size: auto takes it\n");
    if (v->t.kept && v->t.replaced[0])
        printf("replaced  what was tuned on %s, whose rates are off by more than 5 %% now\n", v->t.replaced);
}

static void print_text(const view *v) {
    const tune_result *r = &v->t.result;
    char knee[32], best[32];
    if (v->o->quiet) {
        if (r->winner >= 0) printf("winner    %s\n", v->why);
        return;
    }
    print_head(v);
    if (r->best >= 0)
        printf("\n%7s %11s %5s %5s %9s %11s %8s %8s %6s\n", "batch", "split", "again", "in", "ms/step", "samples/s",
            "s/epoch", "MB", "share");
    for (int i = 0; i < r->rows; i++)
        if (r->row[i].seconds > 0) print_row(v, i);
    putchar('\n');
    print_skipped(v);
    print_unrest(v);
    print_noise(v);
    if (r->winner < 0) return;
    count(knee, sizeof knee, (double)r->row[r->knee].batch);
    count(best, sizeof best, (double)r->row[r->best].batch);
    printf("knee      %s is the smallest batch with %.0f %% of the best rate, which is that of %s\n", knee,
        100 * v->t.measured.target, best);
    printf("winner    %s\n", v->why);
    print_trials(v);
    print_kept(v);
    printf("time      %.1f s\n", r->seconds);
}

// JSON

static json_t *row_object(const tune_row *row) {
    return json_pack("{s:I, s:I, s:I, s:i, s:s, s:s, s:I}", "batch", (json_int_t)row->batch, "micro_batch",
        (json_int_t)row->way.batch, "accumulation", (json_int_t)row->way.parts, "again", row->way.again, "residency",
        row->way.host ? "host" : "device", "precision", precision_name(row->precision), "memory_bytes",
        (json_int_t)row->bytes);
}

static json_t *winner_object(const view *v) {
    const tune_trial *taken = &v->t.result.trial[v->t.result.taken];
    json_t *all = row_object(&v->t.result.row[v->t.result.winner]);
    products_by by = v->t.result.trials ? taken->products : v->t.task.products;
    json_join(all, json_pack("{s:s, s:i}", "products", settings_products_name(by), "threads", taken->threads));
    return all;
}

static json_t *trials_array(const tune_result *r) {
    json_t *all = json_array();
    for (int i = 0; i < r->trials; i++) {
        const tune_trial *t = &r->trial[i];
        json_t *each = json_pack("{s:s, s:i, s:b}", "products", settings_products_name(t->products), "threads",
            t->threads, "taken", i == r->taken);
        if (t->seconds > 0)
            json_join(each, json_pack("{s:o, s:o}", "ms_per_step", json_number(1e3 * t->seconds), "samples_per_s",
                                json_number(t->samples_per_s)));
        else
            json_join(each, json_pack("{s:s}", "skipped", t->why));
        json_array_append_new(all, each);
    }
    return all;
}

static json_t *scale_or_null(const noise_scale *n) {
    return n->known ? json_number(n->scale) : json_null();
}

static void print_json(const view *v) {
    const tune_result *r = &v->t.result;
    for (int i = 0; i < r->rows; i++) {
        const tune_row *row = &r->row[i];
        json_t *line = row_object(row);
        if (row->seconds > 0)
            json_join(line, json_pack("{s:o, s:o, s:o, s:o, s:o, s:b, s:b}", "ms_per_step",
                                json_number(1e3 * row->seconds), "samples_per_s", json_number(row->samples_per_s),
                                "epoch_s", json_number(row->epoch_s), "spread", json_number(row->spread), "share",
                                json_number(row->share), "knee", i == r->knee, "winner", i == r->winner));
        else
            json_join(line, json_pack("{s:s}", "skipped", row->why));
        json_line(stdout, line);
    }
    if (r->winner < 0) return;
    json_t *all =
        json_pack("{s:o, s:o, s:I, s:I, s:o, s:o, s:I}", "winner", winner_object(v), "trials", trials_array(r), "knee",
            (json_int_t)r->row[r->knee].batch, "best", (json_int_t)r->row[r->best].batch, "noise_scale_start",
            scale_or_null(&r->start), "noise_scale", scale_or_null(&r->later), "noise_steps", (json_int_t)r->steps);
    json_join(all,
        json_pack("{s:I}", "kept_batch", (json_int_t)(v->t.earlier[0] ? v->t.stays.batch : r->row[r->winner].batch)));
    json_join(all, json_pack("{s:s, s:s, s:b, s:b, s:o}", "device", v->t.task.device->name, "why", v->why, "kept",
                       v->t.kept, "interrupted", r->interrupted, "seconds", json_number(r->seconds)));
    json_line(stdout, all);
}

static bool tune(view *v, const tuning_options *w, err *e) {
    bool measured;
    progress_init(&v->bar, stderr, "measuring", 100, v->o->quiet || v->o->json);
    cli_watch_signals();
    bool ok = task_tune(&v->t, w, &measured, e);
    progress_done(&v->bar);
    if (!measured) return false;
    explain(v);
    if (!v->o->quiet) show_keys(&v->t.task, v->o->json, stdout);
    v->o->json ? print_json(v) : print_text(v);
    if (!v->t.result.interrupted) return ok;
    return err_run(e, "stopped before all was measured; nothing was kept");
}

static bool run(const cli_options *o, err *e) {
    tuning_options w;
    task_options ask;
    view *v = calloc(1, sizeof *v);
    if (!v) return err_run(e, "out of memory for a table");
    v->o = o;
    bool ok = read_wishes(o, &w, e) && ask_task(o, &ask, e);
    ask.listener = (task_listener){on_event, v};
    if (ok && (ok = tuning_open(&v->t, &ask, e))) {
        ok = tune(v, &w, e);
        tuning_close(&v->t);
    }
    free(v);
    return ok;
}

const cli_command cli_tune = {"tune", "CONFIG [key=value...]",
    "measures batch sizes under the memory limit, and keeps the best for train",
    "Every size is trained with for a moment, split and recomputed as the limit demands, in each precision that "
    "the\n"
    "description leaves open. The table has the time of a step and of an epoch, the memory, and the share of the best\n"
    "rate. The knee is the smallest batch with gpu_optimization.target_utilization percent of the best rate. The\n"
    "winner is the knee, or less where the gradient noise scale says that larger batches hardly help (doc/memory.md).\n"
    "At last the winner is computed with gpu_optimization.products own and library, on the CPU with half the threads,\n"
    "where neither is said; what is 2 % faster is taken. It is kept for this device, model, data and build, and\n"
    "train.batch_size: auto takes it.\n"
    "  --from N, --to N   powers of two and three quarters of them from N to N (default: 256 to 16384, or to a "
    "quarter\n"
    "                     of the training samples, or to what fits)\n"
    "  --batches LIST     these instead: 512,1024,3072\n"
    "  --seconds N        for all of it (default: 50 on a card, 100 on the CPU)\n"
    "  --seed N           stands for train.seed=N\n"
    "Ctrl-C shows what was measured and keeps nothing (exit status 1). -q prints the winner alone.\n",
    NULL, "--seed", WORDS_MOST, run, "--batches --from --to --seconds", NULL};
