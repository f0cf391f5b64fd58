// tradewind bench: the timed cases, ours beside PyTorch's in one run.
//
// A timed step is all that a training step does: shuffle, gather, forward with dropout, loss, backward, clipping,
// AdamW, metric sums. Figures are medians after warm-up. A comparison takes PyTorch's fastest variant of this run.
#include "base/clock.h"
#include "base/json.h"
#include "base/pool.h"
#include "base/rng.h"
#include "base/term.h"
#include "cli/ask.h"
#include "cli/cli.h"
#include "cli/copying.h"
#include "cli/gathering.h"
#include "cli/peer.h"
#include "cli/replaying.h"
#include "cli/work.h"
#include "data/set.h"
#include "graph/dtype.h"
#include "graph/grad.h"
#include "graph/solo.h"
#include "model/layer.h"
#include "task/source.h"
#include "train/job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum { GROUP_MAIN, GROUP_SHAPES, GROUP_DEEP, GROUP_NONE } case_group;

typedef struct {
    const char *name, *peer;
    int64_t batch;
    int64_t hidden, window, layers; // lstm: units of the fast stream (the slow one has half), its window, layers
    case_group group;
    dataset *(*data)(int64_t samples, err *e);
    const char *model; // as a run description has it; NULL: an lstm of the sizes above
    void (*build)(job *j, const dataset *d, const settings *s, precision p); // the step's graph; NULL: job_init
} bench_case;

// Samples of an epoch on a card: the training part of the reference job.
enum { EPOCH = 343000 };

// Data

static dataset *market_data(int64_t samples, err *e) {
    return synthetic_new(&(synthetic_options){.bars = samples + 240, .seed = 1, .strength = 1.5}, e);
}

// The first stream alone.
static dataset *stream_data(int64_t samples, err *e) {
    dataset *d = market_data(samples, e);
    if (!d) return NULL;
    d->streams = 1;
    d->vector = (table){0};
    return d;
}

// A random vector and a random label per sample, and nothing else.
static dataset *vector_data(int64_t n, int64_t width, err *e) {
    dataset *d = dataset_new((size_t)(n * (width + 1)) * 4 + 2 * 64, e);
    if (!d) return NULL;
    size_t at = 0;
    float *v = dataset_take(d, &at, n * width, sizeof *v);
    int32_t *label = dataset_take(d, &at, n, sizeof *label);
    for (int64_t i = 0; i < n * width; i++) {
        rng_block r = rng_philox(1, (uint32_t)i, (uint32_t)(i >> 32), (uint32_t)RNG_SYNTHETIC << 16, 1);
        v[i] = 3.4641f * (rng_unit(r.v[0]) - 0.5f);
        if (i % width == 0) label[i / width] = (int32_t)(r.v[1] % 3);
    }
    d->name = "random";
    d->samples = n;
    d->vector = table_of(COLUMN_F32, n, width, v);
    d->classes = 3;
    d->label = label;
    return d;
}

static dataset *features_data(int64_t n, err *e) {
    return vector_data(n, 64, e);
}

enum { LOOKBACK = 60, HORIZON = 12 };

static dataset *forecast_data(int64_t n, err *e) {
    return vector_data(n, LOOKBACK + HORIZON, e);
}

// N-BEATS, generic: 30 blocks of four layers of 512 and one to backcast and forecast; the mean absolute error.
static void nbeats_step(job *j, const dataset *d, const settings *s, precision p) {
    *j = (job){.g = graph_new()};
    graph *g = j->g;
    tensor index = op_draw(g, BATCH), weight = graph_sibling(g, index, 1), y = TENSOR_NONE;
    const float *rows = table_floats(&d->vector);
    tensor row = op_take(g, graph_constant(g, "rows", DTYPE_F32, shape2(d->samples, d->vector.width), rows), index);
    tensor x = op_slice(g, row, 0, LOOKBACK), target = op_slice(g, row, LOOKBACK, LOOKBACK + HORIZON);
    for (int b = 0; b < 30; b++) {
        char name[32];
        tensor t = x;
        for (int layer = 0; layer < 5; layer++) {
            snprintf(name, sizeof name, "blocks.%d.%d", b, layer);
            bool last = layer == 4;
            t = layer_linear(g, name, t, last ? LOOKBACK + HORIZON : 512, last ? ACT_NONE : ACT_RELU);
        }
        tensor forecast = op_slice(g, t, LOOKBACK, LOOKBACK + HORIZON);
        y = y.id ? op_axpby(g, y, forecast, 1, 1) : forecast;
        if (b < 29) x = op_axpby(g, x, op_slice(g, t, 0, LOOKBACK), 1, -1);
    }
    tensor loss = op_mae(g, y, target, weight);
    j->totals = op_tally(g, loss);
    op_advance(g, PHASE_AFTER);
    dtype_assign(g, p);
    j->seed = grad_build(g, loss);
    j->clip = op_clip(g, j->totals, j->seed, s->max_norm, p == PRECISION_FP16);
    optimizer_add(&s->optimizer, g, j->clip, &(lr_schedule){0});
    op_advance(g, PHASE_UPDATE);
}

#define LSTM(name, batch, hidden, window, layers, group)                                                               \
    { name, "lstm", batch, hidden, window, layers, group, market_data, NULL, NULL }
#define OTHER(name, peer, batch, group, data, model, build)                                                            \
    { name, peer, batch, 0, 0, 0, group, data, model, build }

#define MLP "{model: {kind: mlp, widths: 512-256, dropout: 0}}"
#define TRANSFORMER                                                                                                    \
    "{data: {windows: {fast: 50}}, model: {kind: transformer, hidden: {fast: 128}, layers: 3, heads: 8, ff: 512, "     \
    "activation: gelu, head: 0, dropout: 0.1}}"

static const bench_case cases[] = {
    LSTM("lstm", 3072, 32, 50, 1, GROUP_MAIN),
    LSTM("lstm-512", 512, 32, 50, 1, GROUP_MAIN),
    OTHER("mlp", "mlp", 512, GROUP_MAIN, features_data, MLP, NULL),
    OTHER("mlp-16384", "mlp", 16384, GROUP_MAIN, features_data, MLP, NULL),
    OTHER("nbeats", "nbeats", 1024, GROUP_MAIN, forecast_data, MLP, nbeats_step),
    OTHER("nbeats-8192", "nbeats", 8192, GROUP_NONE, forecast_data, MLP, nbeats_step),
    OTHER("transformer", "transformer", 3072, GROUP_NONE, stream_data, TRANSFORMER, NULL),
    OTHER("transformer-512", "transformer", 512, GROUP_NONE, stream_data, TRANSFORMER, NULL),
    LSTM("hidden-16", 3072, 16, 50, 1, GROUP_SHAPES),
    LSTM("hidden-24", 3072, 24, 50, 1, GROUP_SHAPES),
    LSTM("hidden-48", 3072, 48, 50, 1, GROUP_SHAPES),
    LSTM("hidden-64", 3072, 64, 50, 1, GROUP_SHAPES),
    LSTM("hidden-96", 3072, 96, 50, 1, GROUP_SHAPES),
    LSTM("hidden-128", 3072, 128, 50, 1, GROUP_SHAPES),
    LSTM("window-20", 3072, 32, 20, 1, GROUP_SHAPES),
    LSTM("window-100", 3072, 32, 100, 1, GROUP_SHAPES),
    LSTM("window-200", 3072, 32, 200, 1, GROUP_SHAPES),
    LSTM("batch-1000", 1000, 32, 50, 1, GROUP_SHAPES),
    LSTM("batch-16384", 16384, 32, 50, 1, GROUP_SHAPES),
    LSTM("layers-2", 3072, 32, 50, 2, GROUP_SHAPES),
    LSTM("deep-96", 2048, 96, 50, 2, GROUP_DEEP),
    LSTM("deep-256", 2048, 256, 50, 2, GROUP_DEEP),
    LSTM("deep-512", 2048, 512, 50, 2, GROUP_DEEP),
};
enum { CASES = sizeof cases / sizeof *cases };

// The run description of a case's model.
static void describe(const bench_case *c, char *text, size_t room) {
    if (c->model)
        snprintf(text, room, "%s", c->model);
    else
        snprintf(text, room,
            "{data: {windows: {fast: %lld, slow: 20}}, model: {kind: lstm, hidden: {fast: %lld, slow: %lld}, "
            "layers: %lld, dropout: 0.3}}",
            (long long)c->window, (long long)c->hidden, (long long)c->hidden / 2, (long long)c->layers);
}

// Timing

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// One timed run: a step on the CPU; a whole epoch, tail included, on a card, where steps follow each other without the
// host.
static bool one_run(
    const device *d, queue *q, solo *x, const dataset *data, int64_t batch, uint32_t run, double *ms, err *e) {
    int64_t steps = d->host_memory ? 1 : (data->samples + batch - 1) / batch;
    solo_step s = {.seed = 1, .count = (uint64_t)data->samples, .epoch = run, .shuffle = 1, .lr = 1e-3f, .update = run};
    if (d->host_memory) s.position = run % 3 * (uint64_t)batch;
    bool ok = solo_step_write(x, &s, e);
    double t = clock_seconds();
    ok = ok && solo_play_steps(x, steps, e) && d->sync(q, e);
    *ms = (clock_seconds() - t) / (double)steps * 1e3;
    return ok;
}

// The median over runs, in milliseconds a step.
static bool time_steps(
    const device *d, queue *q, solo *x, const dataset *data, int64_t batch, int64_t runs, double *ms, err *e) {
    int64_t warm = runs < 3 ? runs : 3;
    double *times = calloc((size_t)(warm + runs), sizeof *times);
    if (!times) return err_run(e, "out of memory for %lld timings", (long long)runs);
    bool ok = true;
    for (int64_t i = 0; ok && i < warm + runs; i++) ok = one_run(d, q, x, data, batch, (uint32_t)i, &times[i], e);
    qsort(times + warm, (size_t)runs, sizeof *times, by_value);
    *ms = times[warm + runs / 2];
    free(times);
    return ok;
}

// Results

enum { PRECISIONS = PRECISION_FP16 + 1 };

typedef struct {
    const cli_options *o;
    const bench_case *c;
    const device *d;
    queue *q;
    const task_devices *devices; // that alone
    int64_t batch;
    precision precision;
    double ours[PRECISIONS], peer[PRECISIONS]; // samples a second by precision, the best of each; 0: none
} outcome;

// One variant's figures. `work` is 0 where it is not known.
typedef struct {
    const char *variant, *device, *precision;
    double ms, mb;
    work work;
} figures;

static void print_line(const outcome *r, const figures *f) {
    double rate = (double)r->batch / f->ms * 1e3, tflops = f->work.flop / f->ms / 1e9,
           gbs = f->work.bytes / f->ms / 1e6;
    double epoch = EPOCH / rate;
    if (r->o->json) {
        json_t *line = json_pack("{s:s, s:s, s:s, s:s, s:I, s:o, s:o, s:o, s:o}", "case", r->c->name, "variant",
            f->variant, "device", f->device, "precision", f->precision, "batch", (json_int_t)r->batch, "ms_per_step",
            json_number(f->ms), "samples_per_s", json_number(rate), "memory_mb", json_number(f->mb), "epoch_s",
            json_number(epoch));
        if (f->work.flop > 0 && line) {
            json_object_set_new(line, "tflop_per_s", json_number(tflops));
            json_object_set_new(line, "gb_per_s", json_number(gbs));
        }
        json_line(stdout, line);
        return;
    }
    char text[32];
    term_count(text, sizeof text, rate);
    printf("%-11s %-14s %-4s %-9s %6lld %10.3f %11s %8.3f %9.0f", r->c->name, f->variant, f->device, f->precision,
        (long long)r->batch, f->ms, text, epoch, f->mb);
    if (f->work.flop > 0) printf(" %8.2f %7.0f", tflops, gbs);
    putchar('\n');
    fflush(stdout);
}

static const char *text_of(const json_t *line, const char *key) {
    const char *v = json_string_value(json_object_get(line, key));
    return v ? v : "?";
}

static double number_of(const json_t *line, const char *key) {
    return json_number_value(json_object_get(line, key));
}

static void on_peer_line(void *arg, const json_t *line) {
    outcome *r = arg;
    double rate = number_of(line, "samples_per_s");
    const char *name = text_of(line, "precision");
    if (!(rate > 0)) return;
    for (int p = 0; p < PRECISIONS; p++)
        if (strcmp(name, precision_name((precision)p)) == 0 && rate > r->peer[p]) r->peer[p] = rate;
    print_line(r, &(figures){text_of(line, "variant"), text_of(line, "device"), name, number_of(line, "ms_per_step"),
                      number_of(line, "memory_mb"), {0, 0}});
}

// Ceilings of the card: its best rate in one large product, or copy.
static void on_ceiling(void *arg, const json_t *line) {
    const cli_options *o = arg;
    double tflops = number_of(line, "tflop_per_s"), gbs = number_of(line, "gb_per_s");
    if (o->json)
        json_line(stdout, json_incref((json_t *)(uintptr_t)line));
    else if (tflops > 0)
        printf("%-11s matmul in %s %.1f TFLOP/s\n", "ceilings", text_of(line, "precision"), tflops);
    else
        printf("%-11s copy %.0f GB/s, read and written\n", "ceilings", gbs);
}

static int fastest(const double rate[PRECISIONS]) {
    int best = 0;
    for (int p = 1; p < PRECISIONS; p++) best = rate[p] > rate[best] ? p : best;
    return best;
}

// fp32 beside fp32, and the fastest beside the fastest, both precisions named.
static void print_ratios(const outcome *r) {
    if (r->ours[PRECISION_FP32] > 0 && r->peer[PRECISION_FP32] > 0)
        printf("%-11s %.2f times PyTorch's fastest, fp32 beside fp32\n", r->c->name,
            r->ours[PRECISION_FP32] / r->peer[PRECISION_FP32]);
    int ours = fastest(r->ours), peer = fastest(r->peer);
    if (ours != PRECISION_FP32 || peer != PRECISION_FP32)
        printf("%-11s %.2f times PyTorch's fastest, %s beside %s\n", r->c->name, r->ours[ours] / r->peer[peer],
            precision_name((precision)ours), precision_name((precision)peer));
}

// A case made ready in a precision.
typedef struct {
    dataset *data;
    task task;
    job built; // of a case that builds its own graph
    graph *graph;
    tensor seed; // of the gradient
    solo *solo;
    bool opened;
} rig;

static void rig_close(rig *g) {
    solo_free(g->solo);
    if (g->built.g) job_done(&g->built);
    if (g->opened) task_close(&g->task);
    dataset_free(g->data);
}

static bool set_initial(rig *g, precision p, err *e) {
    const float root[2] = {p == PRECISION_FP16 ? LOSS_SCALE_START : 1, 0};
    float *weights = malloc((size_t)graph_slab_elements(g->graph) * sizeof *weights);
    if (!weights) return err_run(e, "out of memory for initial weights");
    graph_initial(g->graph, g->task.settings.seed, weights);
    bool ok =
        solo_write(g->solo, graph_slab(g->graph, SLAB_WEIGHTS), weights, e) && solo_write(g->solo, g->seed, root, e);
    free(weights);
    return ok;
}

// All samples are trained on, on the device and as they are.
static bool rig_task(rig *g, const outcome *r, err *e) {
    char text[256], batch[32];
    describe(r->c, text, sizeof text);
    snprintf(batch, sizeof batch, "%lld", (long long)r->batch);
    const char *exact = r->precision == PRECISION_FP32 ? "false" : precision_name(r->precision);
    task_options o = {.description = {.file = r->c->name,
                          .text = text,
                          .before = {{"train.batch_size", batch}, {"gpu_optimization.use_mixed_precision", exact},
                              {"data.residency", "device"}, {"data.scale", "none"}}},
        .devices = *r->devices,
        .version = TRADEWIND_VERSION,
        .untuned = true,
        .data = g->data,
        .whole = true};
    return g->opened = task_open(&g->task, &o, e);
}

static bool rig_open(rig *g, const outcome *r, err *e) {
    const device *d = r->d;
    *g = (rig){.data = r->c->data(d->host_memory ? 4 * r->batch : EPOCH, e)};
    if (!g->data || !rig_task(g, r, e)) return false;
    if (r->c->build) r->c->build(&g->built, g->data, &g->task.settings, r->precision);
    const job *j = r->c->build ? &g->built : &g->task.job;
    g->graph = j->g;
    g->seed = j->seed;
    int together = program_together(d, g->graph, r->batch, (g->data->samples + r->batch - 1) / r->batch);
    g->solo = solo_new(d, g->task.queue, g->graph, &(solo_options){.rows = r->batch, .together = together}, e);
    return g->solo && set_initial(g, r->precision, e);
}

static int64_t timed_runs(const outcome *r) {
    if (r->o->steps) return r->o->steps;
    if (!r->d->host_memory) return r->c->group == GROUP_MAIN ? 7 : 3;
    return r->c->batch <= 512 ? 50 : r->c->build ? 5 : 15;
}

static bool run_ours(outcome *r, err *e) {
    double ms = 0;
    rig g;
    bool ok = rig_open(&g, r, e);
    ok = ok && time_steps(r->d, g.task.queue, g.solo, g.data, r->batch, timed_runs(r), &ms, e);
    if (ok) {
        r->ours[r->precision] = (double)r->batch / ms * 1e3;
        // A card has the data in its slab; the CPU reads them where they are.
        size_t bytes = solo_bytes(g.solo) + (r->d->host_memory ? (size_t)dataset_bytes(g.data) : 0);
        print_line(r, &(figures){"tradewind", r->d->name, precision_name(r->precision), ms, (double)bytes / (1 << 20),
                          work_of_step(g.graph, program_plan(solo_program(g.solo, true)))});
    }
    rig_close(&g);
    return ok;
}

// Every precision that the device computes.
static bool run_precisions(outcome *r, err *e) {
    bool ok = true;
    for (int p = PRECISION_FP32; ok && p <= PRECISION_FP16; p++) {
        r->precision = (precision)p;
        bool wanted = !r->o->precision || strcmp(r->o->precision, precision_name(r->precision)) == 0;
        if (wanted && r->d->computes(r->q, r->precision)) ok = run_ours(r, e);
    }
    return ok;
}

typedef struct {
    const device *d;
    queue *q;
    task_devices devices; // that alone
    const char *script;   // of the peer; NULL: ours alone
    int threads;
} bench;

// The device as PyTorch takes it: with the number of the card, where one is given.
static const char *peer_device(const cli_options *o, const bench *b) {
    return strchr(o->device, ':') ? o->device : b->d->name;
}

static bool run_case(const cli_options *o, const bench *b, const bench_case *c, err *e) {
    outcome r = {.o = o, .c = c, .d = b->d, .q = b->q, .devices = &b->devices, .batch = o->batch ? o->batch : c->batch};
    if (!run_precisions(&r, e)) return false;
    if (!b->script) return true;
    err why;
    bool graph_only = c->group == GROUP_SHAPES || c->group == GROUP_DEEP;
    peer_case p = {
        b->script, peer_device(o, b), c->peer, b->threads, r.batch, c->hidden, c->window, c->layers, graph_only};
    if (!peer_run(&p, on_peer_line, &r, &why))
        fprintf(stderr, "tradewind: %s\n", why.text);
    else if (!o->json)
        print_ratios(&r);
    return true;
}

static const bench_case *find(const char *name) {
    for (int i = 0; i < CASES; i++)
        if (strcmp(cases[i].name, name) == 0) return &cases[i];
    return NULL;
}

static bool is_chosen(const cli_options *o, const bench_case *c) {
    static const char *const groups[] = {"main", "shapes", "deep", ""};
    bool any = o->words == 0 && c->group == GROUP_MAIN;
    for (int k = 0; k < o->words; k++) any |= strcmp(o->word[k], groups[c->group]) == 0 || find(o->word[k]) == c;
    return any;
}

// The loader: no training step, but batches gathered on the host.

enum { LOADER_BATCH = 3072, LOADER_PASSES = 9 };

static void print_gathering(const cli_options *o, int64_t batch, const gathering *g) {
    const char *const variant[] = {"tradewind", "memcpy"};
    const double rate[] = {g->loader, g->copies};
    for (int i = 0; i < 2; i++) {
        double ms = (double)batch / rate[i] * 1e3;
        char text[32];
        term_count(text, sizeof text, rate[i]);
        if (o->json)
            json_line(stdout, json_pack("{s:s, s:s, s:s, s:s, s:I, s:o, s:o, s:o, s:o}", "case", "loader", "variant",
                                  variant[i], "device", "cpu", "precision", "fp32", "batch", (json_int_t)batch,
                                  "ms_per_step", json_number(ms), "samples_per_s", json_number(rate[i]), "memory_mb",
                                  json_number(g->megabytes), "ratio", json_number(rate[i] / g->copies)));
        else
            printf("%-11s %-14s %-4s %-9s %6lld %10.3f %11s %8.3f %9.0f\n", "loader", variant[i], "cpu", "fp32",
                (long long)batch, ms, text, EPOCH / rate[i], g->megabytes);
    }
    if (!o->json) printf("%-11s %.2f times two threads that only copy\n", "loader", g->loader / g->copies);
}

static bool run_loader(const cli_options *o, err *e) {
    static const int64_t window[] = {50, 20};
    gathering g = {0};
    int64_t batch = o->batch ? o->batch : LOADER_BATCH;
    dataset *d = market_data(EPOCH, e);
    bool ok = d && gathering_measure(d, window, batch, o->steps ? o->steps : LOADER_PASSES, &g, e);
    if (ok) print_gathering(o, batch, &g);
    dataset_free(d);
    return ok;
}

// Copies: a set of the user's, from its file to the device.

static void print_copy(const cli_options *o, const bench *b, int64_t batch, const copying *c) {
    const struct {
        const char *variant;
        double rate;
        int threads;
    } lines[] = {{"pinned", c->pinned, 0}, {"file", c->file, c->threads}, {"loader", c->loader, c->workers}};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        double rate = lines[i].rate * 1e9 / c->sample, ms = (double)batch / rate * 1e3;
        char text[32];
        term_count(text, sizeof text, rate);
        if (o->json)
            json_line(stdout, json_pack("{s:s, s:s, s:s, s:s, s:I, s:o, s:o, s:o, s:o, s:i}", "case", "copy", "variant",
                                  lines[i].variant, "device", b->d->name, "precision", "fp32", "batch",
                                  (json_int_t)batch, "ms_per_step", json_number(ms), "samples_per_s", json_number(rate),
                                  "memory_mb", json_number(c->pinned_bytes / (1 << 20)), "gb_per_s",
                                  json_number(lines[i].rate), "threads", lines[i].threads));
        else
            printf("%-11s %-14s %-4s %-9s %6lld %10.3f %11s %8.3f %9.0f %8s %7.2f\n", "copy", lines[i].variant,
                b->d->name, "fp32", (long long)batch, ms, text, EPOCH / rate, c->pinned_bytes / (1 << 20), "",
                lines[i].rate);
    }
}

static bool run_copy(const cli_options *o, const bench *b, err *e) {
    int64_t window[STREAMS_MOST], batch = o->batch ? o->batch : LOADER_BATCH;
    const char *path = cli_given(o, "--data");
    copying c;
    dataset *d = source_open_file(path, e);
    for (int i = 0; d && i < d->streams; i++) window[i] = set_window(d, i);
    bool ok = d && copying_measure(d, b->d, b->q, window, batch, b->threads, &c, e);
    if (ok) print_copy(o, b, batch, &c);
    dataset_free(d);
    return ok;
}

// The event pass of a backtest.

enum { REPLAY_BARS = 1000000, REPLAY_PASSES = 9 };

static bool run_replay(const cli_options *o, err *e) {
    replaying r;
    char text[32];
    if (!replaying_measure(REPLAY_BARS, o->steps ? o->steps : REPLAY_PASSES, &r, e)) return false;
    term_count(text, sizeof text, r.rate);
    if (o->json)
        json_line(stdout, json_pack("{s:s, s:s, s:s, s:I, s:I, s:o, s:o}", "case", "replay", "variant", "tradewind",
                              "device", "cpu", "bars", (json_int_t)r.bars, "trades", (json_int_t)r.trades, "bars_per_s",
                              json_number(r.rate), "memory_mb", json_number(r.megabytes)));
    else
        printf("%-11s %-14s %-4s %s bars a second on one processor; %lld bars, %lld trades, %.0f MB\n", "replay",
            "tradewind", "cpu", text, (long long)r.bars, (long long)r.trades, r.megabytes);
    return true;
}

static bool is_named(const cli_options *o, const char *name) {
    for (int i = 0; i < o->words; i++)
        if (strcmp(o->word[i], name) == 0) return true;
    return false;
}

static bool run_chosen(const cli_options *o, const bench *b, err *e) {
    err why;
    peer_case ceilings = {.script = b->script, .device = peer_device(o, b), .name = "ceilings"};
    if (!o->json)
        printf("%d threads\n%-11s %-14s %-4s %-9s %6s %10s %11s %8s %9s %8s %7s\n", b->threads, "case", "variant", "on",
            "precision", "batch", "ms/step", "samples/s", "epoch s", "memory MB", "TFLOP/s", "GB/s");
    if (b->script && !b->d->host_memory && !peer_run(&ceilings, on_ceiling, (void *)(uintptr_t)o, &why))
        fprintf(stderr, "tradewind: %s\n", why.text);
    int failed = 0;
    for (int i = 0; i < CASES; i++) {
        if (!is_chosen(o, &cases[i]) || run_case(o, b, &cases[i], &why)) continue;
        fprintf(stderr, "tradewind: %s: %s\n", cases[i].name, why.text);
        failed++;
    }
    if (is_named(o, "loader") && !run_loader(o, &why)) {
        fprintf(stderr, "tradewind: loader: %s\n", why.text);
        failed++;
    }
    if (is_named(o, "copy") && !run_copy(o, b, &why)) {
        fprintf(stderr, "tradewind: copy: %s\n", why.text);
        failed++;
    }
    if (is_named(o, "replay") && !run_replay(o, &why)) {
        fprintf(stderr, "tradewind: replay: %s\n", why.text);
        failed++;
    }
    return failed == 0 || err_run(e, "%d of the cases could not be timed", failed);
}

static bool is_group(const char *word) {
    return strcmp(word, "main") == 0 || strcmp(word, "shapes") == 0 || strcmp(word, "deep") == 0 ||
           strcmp(word, "loader") == 0 || strcmp(word, "copy") == 0 || strcmp(word, "replay") == 0;
}

static bool run(const cli_options *o, err *e) {
    err why;
    const char *script = o->peer ? o->peer : "bench/peers.py";
    bench b = {.threads = o->threads ? o->threads : pool_processors()};
    for (int i = 0; i < o->words; i++)
        if (!find(o->word[i]) && !is_group(o->word[i]))
            return err_input(e, "%s: unknown case; `tradewind bench --help` lists them", o->word[i]);
    if (is_named(o, "copy") != (cli_given(o, "--data") != NULL))
        return err_input(e, "the case copy and --data FILE go together: the set to be copied");
    if (!ask_queue(o, &b.d, &b.q, &why, e)) return false;
    *(b.d->host_memory ? &b.devices.host : &b.devices.card) = b.d;
    b.devices.queue = b.q; // the one queue: beside another a card's steps are slower
    if (why.text[0]) fprintf(stderr, "tradewind: no card, the CPU computes: %s\n", why.text);
    if (!o->no_peer && peer_ready(script, &why))
        b.script = script;
    else if (!o->no_peer)
        fprintf(stderr, "tradewind: %s\n", why.text);
    bool ok = run_chosen(o, &b, e);
    b.d->close(b.q);
    return ok;
}

const cli_command cli_bench = {"bench", "[CASE...]", "timed training steps, beside PyTorch where it is installed",
    "cases (everything a training step does; dropout 0.3 in lstm, none in mlp; memory is the plan's and the data's):\n"
    "  lstm        reference LSTM, 26,403 parameters, batch 3072\n"
    "  lstm-512    the same, batch 512\n"
    "  mlp         64-512-256-3, batch 512\n"
    "  mlp-16384   the same, batch 16,384\n"
    "  nbeats      30 blocks of width 512, lookback 60, horizon 12, batch 1024\n"
    "  main        the five above, which is also what runs without a name\n"
    "  nbeats-8192 the same, batch 8192\n"
    "  transformer one stream of 50 bars, width 128, 8 heads, 3 layers, dropout 0.1, batch 3072; -512: batch 512\n"
    "  shapes      lstm with hidden-16, -24, -48, -64, -96, -128, window-20, -100, -200, batch-1000, -16384, layers-2\n"
    "  deep        lstm of two layers at batch 2048: deep-96, deep-256, deep-512, by the fast stream's units\n"
    "  loader      batches gathered on the host by two threads, beside two threads that only copy the same samples;\n"
    "              windows 50x15 and 20x8, vector 64, batch 3072; --steps counts passes over 343,000 samples\n"
    "  copy        a set from its mapped file to the device, needs --data FILE: from pinned memory alone, through it "
    "from\n"
    "              the file's pages in order, and as shuffled batches of the loader; GB/s, the best of some passes\n"
    "  replay      a backtest's event pass over a million made-up bars, with costs, stops and targets: bars a second "
    "on\n"
    "              one processor; --steps counts passes\n"
    "TFLOP/s counts 6 for every weight and row; GB/s counts every tensor written once and read once (bench/README.md)\n"
    "  --batch N   another batch size     --steps N   timed steps; on a card, timed epochs of 343,000 samples\n"
    "  --precision NAME   only this one: fp32, tf32, bf16 or fp16\n"
    "  --peer FILE the PyTorch script (default bench/peers.py)     --no-peer   ours alone\n",
    NULL, "--batch --steps --peer --no-peer --precision", WORDS_MOST, run, "--data", NULL};
