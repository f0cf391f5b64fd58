#include "train/job.h"

#include "base/err.h"
#include "base/pool.h"
#include "graph/grad.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_MOST = 128 };

// "fast.row"
static const char *name_of(const stream *s, const char *of, char name[NAME_MOST]) {
    snprintf(name, NAME_MOST, "%.100s.%s", s->name, of);
    return name;
}

// A constant of the dataset, of which all programs read one copy.
static tensor shared(graph *g, const char *name, dtype type, shape s, const void *data) {
    tensor t = graph_constant(g, name, type, s, data);
    graph_share(g, t);
    return t;
}

static tensor column(graph *g, const char *name, const int32_t *data, int64_t n, tensor index) {
    return op_take(g, shared(g, name, DTYPE_I32, shape1(n), data), index);
}

static dtype dtype_of(column_type t) {
    return t == COLUMN_F32 ? DTYPE_F32 : t == COLUMN_F16 ? DTYPE_F16 : DTYPE_I8;
}

static tensor part_constant(graph *g, const char *name, const table *t, int k) {
    return shared(g, name, dtype_of(t->part[k].type), shape2(t->rows, t->part[k].width), t->part[k].data);
}

// The sample's window of a stream.
static tensor stream_input(job *j, const dataset *d, int i, tensor index, window_layout layout) {
    graph *g = j->g;
    const stream *s = &d->stream[i];
    char name[NAME_MOST];
    tensor part[PARTS_MOST], scaler = TENSOR_NONE;
    for (int k = 0; k < s->series.parts; k++) part[k] = part_constant(g, s->name, &s->series, k);
    tensor row = column(g, name_of(s, "row", name), s->row, d->samples, index);
    tensor first = column(g, name_of(s, "first", name), s->first, d->samples, index);
    if (j->scaler)
        scaler =
            graph_constant(g, name_of(s, "scaler", name), DTYPE_F32, shape2(2, s->series.width), j->scaler->value[i]);
    return op_window(g, part, s->series.parts, row, first, scaler, (window_shape){j->window[i], layout});
}

static tensor vector_input(graph *g, const dataset *d, tensor index) {
    tensor part[PARTS_MOST];
    if (!d->vector.width) return TENSOR_NONE;
    for (int k = 0; k < d->vector.parts; k++) part[k] = op_take(g, part_constant(g, "vector", &d->vector, k), index);
    return d->vector.parts == 1 ? part[0] : op_concat(g, part, d->vector.parts);
}

static target_scale scale_of(const job *j) {
    return j->forecasts && j->scaler ? j->scaler->target : (target_scale){0};
}

static bool by_price(const job *j) {
    return target_scales(scale_of(j)) && target_kind_of(j->data) == TARGET_CLOSES;
}

// The micro-batch, drawn and gathered by the graph.
static job_inputs drawn_inputs(job *j, const dataset *d, window_layout layout) {
    job_inputs in = {0};
    tensor index = op_draw(j->g, BATCH);
    in.weight = graph_sibling(j->g, index, 1);
    for (int i = 0; i < d->streams; i++) in.x[i] = stream_input(j, d, i, index, layout);
    in.vector = vector_input(j->g, d, index);
    if (by_price(j)) in.price = op_take(j->g, shared(j->g, "price", DTYPE_F32, shape1(d->samples), d->price), index);
    if (j->forecasts)
        in.target =
            op_take(j->g, shared(j->g, "target", DTYPE_F32, shape2(d->samples, d->target_width), d->target), index);
    else
        in.label = column(j->g, "label", d->label, d->samples, index);
    return in;
}

// The micro-batch, fed by the host.
static job_inputs written_inputs(job *j, const dataset *d, window_layout layout) {
    job_inputs in = {0};
    for (int i = 0; i < d->streams; i++) {
        int64_t T = j->window[i], C = d->stream[i].series.width;
        shape s = layout == WINDOW_FLAT ? shape2(BATCH, T * C) : shape3(BATCH, T, C);
        in.x[i] = graph_state(j->g, d->stream[i].name, DTYPE_F32, s);
    }
    if (d->vector.width) in.vector = graph_state(j->g, "vector", DTYPE_F32, shape2(BATCH, d->vector.width));
    if (by_price(j)) in.price = graph_state(j->g, "price", DTYPE_F32, shape1(BATCH));
    if (j->forecasts)
        in.target = graph_state(j->g, "target", DTYPE_F32, shape2(BATCH, d->target_width));
    else
        in.label = graph_state(j->g, "label", DTYPE_I32, shape1(BATCH));
    in.weight = graph_state(j->g, "weight", DTYPE_F32, shape1(BATCH));
    return in;
}

static void add_feed(job *j, tensor t, size_t at) {
    if (t.id) j->feed[j->feeds++] = (feed_input){graph_info(j->g, t)->name, at};
}

// Where the loader puts the inputs, the device has them.
static void lay_feeds(job *j, const settings *s) {
    loader_options o = job_loader(j, s, false);
    loader_layout y = loader_layout_of(j->data, &o);
    j->feeds = 0;
    for (int i = 0; i < j->data->streams; i++) add_feed(j, j->input.x[i], y.x[i]);
    add_feed(j, j->input.vector, y.vector);
    add_feed(j, j->input.target, y.target);
    add_feed(j, j->input.price, y.price);
    add_feed(j, j->input.label, y.label);
    add_feed(j, j->input.weight, y.weight);
    j->feed_bytes = y.index;
}

// The number of the model's first node: behind what draws and gathers single tables, whether or not that is there.
static uint32_t first_number(const dataset *d) {
    return (uint32_t)(2 + 3 * d->streams + (d->vector.width > 0));
}

// n / (K * count of the class), over the training samples.
static float *balanced_weights(const dataset *d, const split_part *train) {
    float *w = calloc((size_t)d->classes, sizeof *w);
    int64_t *count = calloc((size_t)d->classes, sizeof *count);
    NEED(w && count, "out of memory for %d class weights", d->classes);
    for (int64_t k = 0; k < train->count; k++) {
        int64_t i = part_sample(train, k);
        CHECK(d->label[i] >= 0 && d->label[i] < d->classes, "label %d of %d classes", (int)d->label[i], d->classes);
        count[d->label[i]]++;
    }
    for (int k = 0; k < d->classes; k++)
        w[k] = count[k] ? (float)((double)train->count / ((double)d->classes * (double)count[k])) : 0;
    free(count);
    return w;
}

int64_t job_updates(const split *sp, const settings *s) {
    int64_t effective = s->batch_size * s->accumulation, n = (sp->train.count + effective - 1) / effective;
    return n > 0 ? n : 1;
}

int64_t job_all_updates(const split *sp, const settings *s) {
    int64_t each = job_updates(sp, s), all = s->epochs > INT64_MAX / each ? INT64_MAX : s->epochs * each;
    return s->steps && s->steps < all ? s->steps : all;
}

int64_t job_all_samples(const split *sp, const settings *s) {
    int64_t each = job_updates(sp, s), all = job_all_updates(sp, s),
            rest = all % each * s->batch_size * s->accumulation;
    return all / each * sp->train.count + rest;
}

static void add_optimizer(job *j, const settings *s) {
    j->clip = op_clip(j->g, j->totals, j->seed, s->max_norm, j->precision == PRECISION_FP16);
    optimizer_add(&s->optimizer, j->g, j->clip, &j->schedule);
    op_advance(j->g, PHASE_UPDATE);
}

// Classes: scores, loss and confusion matrix.
static tensor add_classes(
    job *j, const dataset *d, const split *sp, const settings *s, const model_spec *m, const job_inputs *in) {
    graph *g = j->g;
    tensor balance = TENSOR_NONE;
    if (s->class_weights) {
        j->class_weight = balanced_weights(d, &sp->train);
        balance = graph_constant(g, "class weights", DTYPE_F32, shape1(d->classes), j->class_weight);
    }
    graph_number_from(g, first_number(d));
    j->logits = model_build(g, m);
    tensor loss = loss_add(&s->loss, loss_for(&s->loss, true), g,
        &(loss_inputs){.y = j->logits,
            .label = in->label,
            .weight = in->weight,
            .class_weight = balance,
            .smoothing = s->loss.smoothing});
    j->totals = op_tally(g, loss);
    j->confusion = op_confusion(g, j->logits, in->label, in->weight);
    return loss;
}

// The loss of what the model gives. One without a unit is of the forecasts, where targets are scaled.
static tensor forecast_loss(job *j, const settings *s, const job_inputs *in, tensor target, tensor naive) {
    loss_kind kind = loss_for(&s->loss, false);
    target_scale by = scale_of(j);
    int degree = loss_at(kind)->degree;
    loss_inputs of = {.y = j->logits, .target = target, .weight = in->weight, .naive = naive, .unit = 1};
    if (target_scales(by)) {
        of.unit = degree ? by.std : 1;
        j->unit = pow((double)by.std, degree);
    }
    if (target_scales(by) && !degree) {
        of.y = j->forecast;
        of.target = in->target;
    }
    return loss_add(&s->loss, kind, j->g, &of);
}

static tensor median_of(graph *g, const settings *s, const model_spec *m, tensor y) {
    int at = settings_median(s);
    return m->quantiles < 2 ? y : op_slice(g, y, at * m->horizon, (at + 1) * m->horizon);
}

static void add_forecast_metrics(job *j, const settings *s, const model_spec *m, const job_inputs *in, tensor series) {
    graph *g = j->g;
    tensor y = median_of(g, s, m, j->forecast);
    j->metric[FORECAST_MAE] = op_tally(g, op_mae(g, y, in->target, in->weight));
    j->metric[FORECAST_MSE] = op_tally(g, op_mse(g, y, in->target, in->weight));
    j->metric[FORECAST_SMAPE] = op_tally(g, op_smape(g, y, in->target, in->weight));
    if (!series.id) return;
    tensor naive = op_level(g, series, (level_settings){LEVEL_NAIVE, s->season});
    j->metric[FORECAST_MASE] = op_tally(g, op_mase(g, y, in->target, in->weight, naive));
}

// Targets as the model is to give them, or (`back`) its answers in the data's units.
static tensor rescale(job *j, tensor x, tensor price, bool back) {
    target_scale by = scale_of(j);
    if (!target_scales(by)) return x;
    return op_scale_rows(j->g, x, price, (scale_rows_settings){!back, by.std, by.mean});
}

// Forecasts: the model's output, loss and metrics.
static tensor add_forecast(job *j, const dataset *d, const settings *s, model_spec *m, const job_inputs *in) {
    graph *g = j->g;
    bool levels = settings_levels(s, d), series = settings_task(s, d) == METRIC_SERIES;
    tensor level = TENSOR_NONE, naive = TENSOR_NONE, target = in->target, raw = series ? in->x[0] : TENSOR_NONE;
    if (levels) {
        level = op_level(g, in->x[0], (level_settings){LEVEL_MEAN, 1});
        m->stream[0].x = op_scale_rows(g, in->x[0], level, (scale_rows_settings){true, 1, 0});
        target = op_scale_rows(g, target, level, (scale_rows_settings){true, 1, 0});
    } else {
        target = rescale(j, target, in->price, false);
    }
    if (loss_at(loss_for(&s->loss, false))->naive)
        naive = op_level(g, m->stream[0].x, (level_settings){LEVEL_NAIVE, s->season});
    graph_number_from(g, first_number(d));
    j->logits = model_build(g, m);
    j->forecast = levels ? op_scale_rows(g, j->logits, level, (scale_rows_settings){false, 1, 0})
                         : rescale(j, j->logits, in->price, true);
    tensor loss = forecast_loss(j, s, in, target, naive);
    j->totals = op_tally(g, loss);
    graph_keep(g, j->forecast);
    add_forecast_metrics(j, s, m, in, raw);
    return loss;
}

void job_init(job *j, const dataset *d, const split *sp, const settings *s, const model_spec *m, const int64_t *window,
    const scaler *sc, precision p) {
    *j = (job){.g = graph_new(), .precision = p, .data = d, .scaler = sc, .host = s->residency == RESIDENCY_HOST};
    j->unit = 1;
    j->forecasts = settings_forecasts(s, d);
    j->schedule = rate_schedule(&s->rate, job_all_updates(sp, s), job_updates(sp, s));
    graph *g = j->g;
    model_spec spec = *m;
    for (int i = 0; i < d->streams; i++) j->window[i] = window[i];
    job_inputs in = j->host ? written_inputs(j, d, model_layout(m->kind)) : drawn_inputs(j, d, model_layout(m->kind));
    if (j->host) {
        j->input = in;
        lay_feeds(j, s);
    }
    for (int i = 0; i < d->streams; i++) spec.stream[i].x = in.x[i];
    spec.vector = in.vector;
    tensor loss = j->forecasts ? add_forecast(j, d, s, &spec, &in) : add_classes(j, d, sp, s, &spec, &in);
    graph_normaliser(g, j->totals);
    op_advance(g, PHASE_AFTER);
    dtype_assign(g, p);
    graph_multiply_by(g, s->products);
    j->seed = grad_build(g, loss);
    add_optimizer(j, s);
}

void job_done(job *j) {
    if (j->fallback) job_done(j->fallback);
    free(j->fallback);
    graph_free(j->g);
    free(j->class_weight);
}

void job_add_fallback(job *j, const dataset *d, const split *sp, const settings *s, const model_spec *m,
    const int64_t *window, const scaler *sc, precision p) {
    j->fallback = malloc(sizeof *j->fallback);
    NEED(j->fallback, "out of memory for a job");
    job_init(j->fallback, d, sp, s, m, window, sc, p);
}

void job_keep_logits(job *j) {
    for (job *each = j; each; each = each->fallback) graph_keep(each->g, each->logits);
}

void job_multiply_by(job *j, products_by p) {
    for (job *each = j; each; each = each->fallback) graph_multiply_by(each->g, p);
}

void job_split(job *j, const settings *s) {
    for (job *each = j; each; each = each->fallback)
        if (each->host) lay_feeds(each, s);
}

// A card takes batches as fast as they can be gathered; the CPU needs its processors to compute.
int job_workers(bool card) {
    enum { MOST = 32 };
    int n = pool_processors() - 1;
    return !card || n < 2 ? 2 : n < MOST ? n : MOST;
}

loader_options job_loader(const job *j, const settings *s, bool card) {
    loader_options o = {.batch = s->batch_size, .seed = s->seed, .prefetch = s->prefetch};
    o.workers = s->workers < 0 ? job_workers(card) : s->workers;
    o.hold = card ? LANES : 1;
    memcpy(o.window, j->window, sizeof o.window);
    o.scaler = j->scaler;
    o.price = by_price(j);
    return o;
}
