// tradewind tune: measures batch sizes and what else a description leaves open, shows the table with the knee and the
// gradient noise scale, and keeps the winner for train and plan.
#include "train/tune.h"
#include "base/json.h"
#include "base/pool.h"
#include "base/term.h"
#include "cli/cli.h"
#include "cli/setup.h"
#include "graph/dtype.h"
#include "graph/identity.h"
#include "train/wisdom.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_USUAL = 256, LAST_USUAL = 16384, BATCH_MOST = 10000000, SECONDS_CARD = 50, SECONDS_CPU = 100 };

// Of what the figures of one size may differ by, in the mean, before that is told.
#define UNREST 0.25

// What the options ask for; 0: not given.
typedef struct {
    int64_t from, to, seconds;
    int64_t batch[TUNE_BATCHES_MOST];
    int batches;
} wishes;

typedef struct {
    const cli_options *o;
    setup s;
    tune_task task;
    tune_result r;
    job other[2 * TUNE_PRECISIONS_MOST]; // of precisions beside the setup's
    int others;
    progress bar;
    char why[320]; // the rule that gave the winner
    bool kept;
    char earlier[16];   // the day of an earlier tuning, where with that the winner is another; or ""
    wisdom_entry stays; // that
    char replaced[16];  // the day of an earlier tuning that no longer holds, or ""
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
static bool read_batches(const char *text, wishes *w, err *e) {
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

static bool read_wishes(const cli_options *o, wishes *w, err *e) {
    const char *list = cli_given(o, "--batches");
    *w = (wishes){0};
    if (!read_one(o, "--from", BATCH_MOST, &w->from, e) || !read_one(o, "--to", BATCH_MOST, &w->to, e)) return false;
    if (!read_one(o, "--seconds", 86400, &w->seconds, e)) return false;
    if (list && (w->from || w->to)) return err_input(e, "--batches names them all; leave --from and --to out");
    if (w->from && w->to && w->from > w->to) return err_input(e, "--from is larger than --to");
    return !list || read_batches(list, w, e);
}

// Batches

// Up to a quarter of the samples, and from less than usual where there are few.
static bool list_batches(view *v, const wishes *w, err *e) {
    tune_task *t = &v->task;
    int64_t samples = v->s.split.train.count, quarter = samples / 4 ? samples / 4 : 1;
    int64_t to = w->to ? w->to : quarter < LAST_USUAL ? quarter : LAST_USUAL, from = w->from ? w->from : FIRST_USUAL;
    if (!w->to && w->from > to) to = w->from > samples / 2 ? samples : 2 * w->from;
    while (!w->from && from > to && from > 1) from /= 2;
    memcpy(t->batch, w->batch, sizeof t->batch);
    t->batches = w->batches ? w->batches : tune_batches(from, to, t->batch, TUNE_BATCHES_MOST);
    int64_t most = t->batches ? t->batch[t->batches - 1] : from;
    if (most > samples)
        return err_input(
            e, "a batch of %lld is more than the %lld training samples; use less", (long long)most, (long long)samples);
    if (t->batches) return true;
    return err_input(e, "from %lld to %lld lies no power of two, nor three quarters of one; name sizes with --batches",
        (long long)from, (long long)to);
}

// Jobs

// The setup's precision first; where the description leaves it open, every other one that the device computes.
static void list_precisions(view *v) {
    static const precision order[] = {PRECISION_BF16, PRECISION_FP16, PRECISION_TF32, PRECISION_FP32};
    tune_task *t = &v->task;
    const setup *s = &v->s;
    t->jobs[t->precisions++] = (tune_jobs){s->precision, s->chooser.near, s->chooser.far};
    for (size_t i = 0; s->described.precision_open && i < sizeof order / sizeof *order; i++) {
        precision p = order[i];
        if (p == s->precision || !s->device->computes(s->queue, p)) continue;
        tune_jobs *to = &t->jobs[t->precisions++];
        *to = (tune_jobs){.precision = p};
        if (s->chooser.near) setup_job(s, to->near = &v->other[v->others++], RESIDENCY_DEVICE, p);
        if (s->chooser.far) setup_job(s, to->far = &v->other[v->others++], RESIDENCY_HOST, p);
    }
}

// What else the winner is to be computed by: other products on a card, half the threads of the CPU, where neither is
// said.
static void list_trials(view *v) {
    tune_task *t = &v->task;
    bool card = !v->s.device->host_memory;
    int threads = card || v->o->threads ? 0 : pool_processors();
    t->options = (queue_options){.threads = v->o->threads, .isa = v->o->isa};
    if (card && v->s.described.products == PRODUCTS_AUTO)
        for (int p = PRODUCTS_AUTO; p <= PRODUCTS_LIBRARY; p++)
            t->trial[t->trials++] = (tune_trial){.products = (products_by)p};
    if (threads < 2) return;
    t->trial[t->trials++] = (tune_trial){0};
    t->trial[t->trials++] = (tune_trial){.threads = threads / 2};
}

static bool on_progress(void *arg, const tune_row *at, double share) {
    view *v = arg;
    if (at)
        progress_at(&v->bar, 100 * share, "batch %lld, %s", (long long)at->batch, precision_name(at->precision));
    else
        progress_at(&v->bar, 100 * share, "gradient noise scale");
    return !cli_interrupted();
}

static bool measure(view *v, const wishes *w, err *e) {
    const setup *s = &v->s;
    tune_task *t = &v->task;
    *t = (tune_task){.device = s->device,
        .queue = s->queue,
        .data = s->data,
        .split = &s->split,
        .described = &s->described,
        .budget = &s->budget,
        .seconds = (double)(w->seconds               ? w->seconds
                            : s->device->host_memory ? SECONDS_CPU
                                                     : SECONDS_CARD),
        .target = s->described.target_utilization / 100,
        .on_progress = on_progress,
        .arg = v};
    if (!list_batches(v, w, e)) return false;
    list_precisions(v);
    list_trials(v);
    progress_init(&v->bar, stderr, "measuring", 100, v->o->quiet || v->o->json);
    cli_watch_signals();
    bool ok = tune_run(t, &v->r, e);
    progress_done(&v->bar);
    return ok;
}

// The rule, in words

static void count(char *text, size_t room, double n) {
    term_count(text, room, n);
}

static void explain(view *v) {
    const tune_result *r = &v->r;
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
    const setup *s = &v->s;
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
    const tune_result *r = &v->r;
    const tune_row *row = &r->row[i];
    char split[48], rate[32], marks[64] = "";
    snprintf(split, sizeof split, "%lld x %lld", (long long)row->way.parts, (long long)row->way.batch);
    count(rate, sizeof rate, row->samples_per_s);
    if (row->way.host && !v->s.device->host_memory) add_mark(marks, sizeof marks, "streamed");
    if (i == r->knee) add_mark(marks, sizeof marks, "knee");
    if (i == r->winner) add_mark(marks, sizeof marks, "winner");
    printf("%7lld %11s %5d %5s %9.3f %11s %8.2f %8.1f %4.0f %%%s%s\n", (long long)row->batch, split, row->way.again,
        precision_name(row->precision), 1e3 * row->seconds, rate, row->epoch_s, (double)row->bytes / 1e6,
        100 * row->share, marks[0] ? "  " : "", marks);
}

static void print_skipped(const view *v) {
    for (int i = 0; i < v->r.rows; i++) {
        const tune_row *row = &v->r.row[i];
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
    const tune_result *r = &v->r;
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
    for (int i = 0; i < v->r.rows; i++) {
        if (!(v->r.row[i].seconds > 0)) continue;
        sum += v->r.row[i].spread;
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
    if (v->s.device->host_memory)
        snprintf(text, room, "%d thread%s", threads, threads == 1 ? "" : "s");
    else
        snprintf(text, room, "%s", settings_products_name(t->products));
    return text;
}

static void print_trials(const view *v) {
    const tune_result *r = &v->r;
    const tune_trial *taken = &r->trial[r->taken];
    char name[32], rate[32];
    if (!r->trials) return;
    printf("%-10s", v->s.device->host_memory ? "threads" : "products");
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
    count(batch, sizeof batch, (double)v->stays.batch);
    count(rate, sizeof rate, v->stays.samples_per_s);
    if (v->kept && v->earlier[0])
        printf("kept      beside what was tuned on %s; of both %s is the winner, with %s samples/s\n", v->earlier,
            batch, rate);
    else if (v->kept)
        printf("kept      for this device, model, data and build: train.batch_size: auto takes it\n");
    if (v->kept && v->replaced[0])
        printf("replaced  what was tuned on %s, whose rates are off by more than 5 %% now\n", v->replaced);
}

static void print_text(const view *v) {
    const tune_result *r = &v->r;
    char knee[32], best[32];
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
        100 * v->task.target, best);
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
    const tune_trial *taken = &v->r.trial[v->r.taken];
    json_t *all = row_object(&v->r.row[v->r.winner]);
    products_by by = v->r.trials ? taken->products : v->s.products;
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
    const tune_result *r = &v->r;
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
    json_join(
        all, json_pack("{s:I}", "kept_batch", (json_int_t)(v->earlier[0] ? v->stays.batch : r->row[r->winner].batch)));
    json_join(all, json_pack("{s:s, s:s, s:b, s:b, s:o}", "device", v->s.device->name, "why", v->why, "kept", v->kept,
                       "interrupted", r->interrupted, "seconds", json_number(r->seconds)));
    json_line(stdout, all);
}

// Keeping

static wisdom_entry entry_of(const tune_result *r, int i) {
    const tune_row *row = &r->row[i];
    return (wisdom_entry){.batch = row->batch,
        .micro = row->way.batch,
        .parts = row->way.parts,
        .again = row->way.again,
        .host = row->way.host,
        .precision = row->precision,
        .samples_per_s = row->samples_per_s,
        .noise_scale = r->later.known ? r->later.scale : 0};
}

// With what else was taken of the winner.
static void add_taken(const tune_result *r, wisdom_entry *w) {
    const tune_trial *taken = &r->trial[r->taken];
    if (!r->taken) return;
    w->products = taken->products;
    w->threads = taken->threads;
    w->samples_per_s = taken->samples_per_s;
}

// The winner among entries of several tunings, by the same rule, with the noise scale of the last that has one; -1: it
// is out of memory.
static int winner_of(const view *v, const wisdom_entry *list, int count) {
    tune_result *r = calloc(1, sizeof *r);
    if (!r) return -1;
    for (int i = 0; i < count; i++)
        r->row[r->rows++] = (tune_row){.batch = list[i].batch, .usual = true, .samples_per_s = list[i].samples_per_s};
    r->later = v->r.later;
    r->steps = v->r.steps;
    bool known = v->r.later.known && v->r.steps >= TUNE_LEARNT;
    if (!known) r->later = (noise_scale){0};
    for (int i = 0; i < count && !known; i++) {
        if (!(list[i].noise_scale > r->later.scale)) continue;
        r->later = (noise_scale){.known = true, .scale = list[i].noise_scale};
        r->steps = TUNE_LEARNT;
    }
    tune_choose(r, v->task.target);
    int winner = r->winner;
    free(r);
    return winner;
}

// Adds what an earlier tuning found for the same, unless the machine is another by now; the winner of all.
static int join_earlier(view *v, const wisdom_key *k, wisdom_entry *list, int *count, int winner) {
    wisdom_entry earlier[WISDOM_ENTRIES_MOST];
    char when[16];
    wisdom_entry now = list[winner];
    int n = wisdom_list(k, earlier, when);
    if (!n) return winner;
    if (!wisdom_join(list, count, earlier, n)) {
        snprintf(v->replaced, sizeof v->replaced, "%s", when);
        return winner;
    }
    int best = winner_of(v, list, *count);
    if (best < 0) best = winner;
    v->stays = list[best];
    bool same = v->stays.batch == now.batch && v->stays.samples_per_s == now.samples_per_s;
    if (!same) snprintf(v->earlier, sizeof v->earlier, "%s", when);
    return best;
}

// Of each batch the best way.
static bool keep(view *v, err *e) {
    const tune_result *r = &v->r;
    wisdom_entry list[WISDOM_ENTRIES_MOST];
    wisdom_key k;
    int n = 0, winner = 0;
    for (int i = 0; i < r->rows && n < WISDOM_ENTRIES_MOST; i++) {
        if (i != tune_best_of(r, r->row[i].batch)) continue;
        if (r->row[i].batch == r->row[r->winner].batch) winner = n;
        list[n++] = entry_of(r, i);
    }
    add_taken(r, &list[winner]);
    setup_key(&v->s, &k);
    winner = join_earlier(v, &k, list, &n, winner);
    return v->kept = wisdom_keep(&k, list, n, winner, e);
}

static bool tune(view *v, const wishes *w, err *e) {
    if (!measure(v, w, e)) return false;
    explain(v);
    bool ok = v->r.interrupted || keep(v, e);
    v->o->json ? print_json(v) : print_text(v);
    if (!v->r.interrupted) return ok;
    return err_run(e, "stopped before all was measured; nothing was kept");
}

static bool run(const cli_options *o, err *e) {
    wishes w;
    view *v = calloc(1, sizeof *v);
    if (!v) return err_run(e, "out of memory for a table");
    v->o = o;
    bool ok = read_wishes(o, &w, e) && wisdom_ready(e) && setup_open_untuned(&v->s, o, e);
    if (ok) {
        ok = tune(v, &w, e);
        for (int i = 0; i < v->others; i++) job_done(&v->other[i]);
        setup_close(&v->s);
    }
    free(v);
    return ok;
}

const cli_command cli_tune = {"tune", "CONFIG [key=value...]",
    "measures batch sizes under the memory limit, and keeps the best for train",
    "Every size is trained with for a moment, split and computed again as the limit demands, in each precision that "
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
    "Ctrl-C shows what was measured and keeps nothing (exit status 1).\n",
    NULL, "--seed", WORDS_MOST, run, "--batches --from --to --seconds", NULL};
