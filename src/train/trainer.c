#include "train/trainer.h"

#include "base/clock.h"
#include "base/half.h"
#include "ops/schedule.h"
#include "run/weights.h"
#include "train/fallback.h"
#include "train/pinned.h"
#include "train/snapshot.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// Seconds between two reports of steps, and between two looks at a card, which make the host wait for it.
static const double report_every = 0.02, look_at_card_every = 0.1;

// Steps since the last report. The device's sums go on over an epoch; what they were at the last look is kept here.
typedef struct {
    double reported, looked; // when
    double sum, norm, least, most;
    double sum_before, norm_before;
    int64_t steps;
} steps_seen;

struct trainer {
    const device *d;
    queue *q;
    const job *given; // the job in the precision that was asked for
    const job *j;     // it, or its fallback
    const dataset *data;
    split split;
    settings s;
    const metric *metric;
    double naive2[2]; // sMAPE and MASE of the naive2 forecasts, or NaN
    exec *x;
    loader *loader; // where batches come from the host, or NULL; its buffers are
    pinned pinned;
    int together; // steps that can be played at once
    float *best;  // the slab of the best epoch's weights
    standing at;
    double began; // when the running epoch would have begun had it never been interrupted
    steps_seen seen;
    epoch_report report;
    bool diverged;     // in the epoch that was last finished
    bool best_is_back; // the run is over and its best weights are in place
};

static size_t slab_bytes(const trainer *t) {
    return (size_t)graph_slab_elements(t->j->g) * sizeof(float);
}

static tensor weights_slab(const trainer *t) {
    return graph_slab(t->j->g, SLAB_WEIGHTS);
}

static snapshot whole(trainer *t) {
    precision of = t->best_is_back ? t->at.best_precision : t->j->precision;
    return (snapshot){.x = t->x, .j = t->j, .data = t->data, .best = t->best, .at = &t->at, .weights = of};
}

static bool set_initial(trainer *t, err *e) {
    const float root[2] = {t->j->precision == PRECISION_FP16 ? LOSS_SCALE_START : 1, 0};
    float *weights = malloc(slab_bytes(t));
    if (!weights) return err_run(e, "out of memory for %zu bytes of weights", slab_bytes(t));
    graph_initial(t->j->g, t->s.seed, weights);
    bool ok = exec_write(t->x, weights_slab(t), weights, e) && exec_write(t->x, t->j->seed, root, e);
    free(weights);
    return ok;
}

static bool start_loader(trainer *t, err *e) {
    loader_options o = job_loader(t->j, &t->s, !t->d->host_memory);
    t->pinned = (pinned){t->d, t->q};
    loader_memory memory = pinned_memory(&t->pinned);
    o.memory = &memory;
    t->loader = loader_new(t->data, &o, e);
    return t->loader != NULL;
}

// Steps that nothing comes between: those of an epoch, or up to a look at what fp16 counts.
static int64_t stretch(const trainer *t) {
    int64_t steps = job_updates(&t->split, &t->s);
    return t->j->precision == PRECISION_FP16 && steps > FALLBACK_LOOK ? FALLBACK_LOOK : steps;
}

static exec_options executed(const trainer *t) {
    exec_options o = job_exec(t->j, &t->s);
    o.together = t->together;
    return o;
}

trainer *trainer_new(
    const device *d, queue *q, const job *j, const dataset *data, const split *sp, const settings *s, err *e) {
    CHECK(data->classes <= CLASSES_MOST, "%d classes", data->classes);
    trainer *t = calloc(1, sizeof *t);
    if (!t) {
        err_run(e, "out of memory for a trainer");
        return NULL;
    }
    *t = (trainer){.d = d, .q = q, .given = j, .j = j, .data = data, .split = *sp, .s = *s};
    t->at = (standing){.epoch = 1, .stop.patience = s->patience};
    plateau_init(&t->at.plateau, s->lr);
    trainer_judge_by(t, metric_usual(settings_task(s, data)), NULL);
    t->best = malloc(slab_bytes(t));
    bool ok = t->best != NULL;
    if (!ok) err_run(e, "out of memory for %zu bytes of weights", slab_bytes(t));
    if (!j->host) dataset_advise(data);
    if (s->accumulation == 1 && !j->host) t->together = exec_together(d, j->g, s->batch_size, stretch(t));
    exec_options o = executed(t);
    o.room = job_memory(j, s, d->kernels(q), d->host_memory).total;
    if (ok) t->x = exec_new(d, q, j->g, &o, e);
    ok = t->x != NULL;
    if (ok && j->host) ok = start_loader(t, e);
    if (ok && set_initial(t, e)) return t;
    trainer_free(t);
    return NULL;
}

void trainer_free(trainer *t) {
    if (!t) return;
    loader_free(t->loader);
    exec_free(t->x);
    free(t->best);
    free(t);
}

exec *trainer_exec(trainer *t) {
    return t->x;
}

const job *trainer_job(const trainer *t) {
    return t->j;
}

void trainer_judge_by(trainer *t, const metric *m, const double naive2[2]) {
    t->metric = m;
    for (int k = 0; k < 2; k++) t->naive2[k] = naive2 ? naive2[k] : NAN;
    t->at.stop.lower = !m->higher;
}

// What the device multiplies its schedule's factor with: the rate that the description gives, or where it fell to.
static double rate(const trainer *t) {
    return t->s.rate.kind == RATE_PLATEAU ? t->at.plateau.lr : t->s.lr;
}

// Clears what is counted of classes or forecasts.
static bool clear_sums(trainer *t, err *e) {
    const job *j = t->j;
    bool ok = exec_clear(t->x, j->totals, e) && (!j->confusion.id || exec_clear(t->x, j->confusion, e));
    for (int k = 0; ok && k < FORECAST_METRICS; k++) ok = !j->metric[k].id || exec_clear(t->x, j->metric[k], e);
    return ok;
}

// The rate of the last step taken.
static double last_rate(const trainer *t) {
    return schedule_rate(&t->j->schedule, (float)rate(t), t->at.update ? t->at.update - 1 : 0);
}

// Updates that the run may still take.
static int64_t updates_left(const trainer *t) {
    return t->s.steps ? t->s.steps - (int64_t)t->at.update : INT64_MAX;
}

// Samples of the running epoch that were trained on: its last step may reach beyond its end.
static int64_t samples_done(const trainer *t) {
    return t->at.done < t->split.train.count ? t->at.done : t->split.train.count;
}

// Sends the loader to a range, once the device has read what it was given.
static bool seek(trainer *t, loader_range r, err *e) {
    if (!t->loader) return true;
    if (!exec_fed(t->x, false, e)) return false;
    loader_seek(t->loader, &r);
    return true;
}

// Clears the sums and sends the device to the start of a span.
static bool begin(trainer *t, span samples, uint32_t epoch, bool shuffle, err *e) {
    step s = {.seed = t->s.seed,
        .update = t->at.update,
        .first = (uint64_t)samples.first,
        .count = (uint64_t)samples.count,
        .epoch = epoch,
        .shuffle = shuffle,
        .lr = (float)rate(t)};
    return seek(t, (loader_range){samples, shuffle, epoch, 0}, e) && exec_step_write(t->x, &s, e) && clear_sums(t, e);
}

// Feeds the loader's next batch to the step. The loader holds the last batch and this one, which the device may still
// be reading; what came before is given back.
static bool feed(trainer *t, err *e) {
    loader_batch b;
    if (!exec_fed(t->x, true, e)) return false;
    CHECK(loader_next(t->loader, &b), "a step beyond the end of its samples");
    return exec_feed(t->x, b.block, e);
}

// One micro-batch.
static bool play(trainer *t, exec_part part, err *e) {
    return (!t->loader || feed(t, e)) && exec_play(t->x, part, e);
}

static bool score_classes(trainer *t, score *s, err *e) {
    int K = t->data->classes;
    if (!exec_read(t->x, t->j->confusion, s->confusion, e)) return false;
    s->accuracy = metric_accuracy(s->confusion, K);
    s->mcc = metric_mcc(s->confusion, K);
    s->macro_f1 = metric_macro_f1(s->confusion, K);
    return true;
}

static bool score_forecasts(trainer *t, score *s, err *e) {
    double sums[FORECAST_METRICS][TALLY_COUNT] = {0};
    for (int k = 0; k < FORECAST_METRICS; k++)
        if (t->j->metric[k].id && !exec_read(t->x, t->j->metric[k], sums[k], e)) return false;
    s->errors[ERRORS_WEIGHT] = sums[FORECAST_MAE][TALLY_NORM];
    s->errors[ERRORS_ABSOLUTE] = sums[FORECAST_MAE][TALLY_SUM];
    s->errors[ERRORS_SQUARE] = sums[FORECAST_MSE][TALLY_SUM];
    s->errors[ERRORS_SMAPE] = 100 * sums[FORECAST_SMAPE][TALLY_SUM];
    s->errors[ERRORS_SCALED] = sums[FORECAST_MASE][TALLY_SUM];
    s->errors[ERRORS_SCALED_WEIGHT] = sums[FORECAST_MASE][TALLY_NORM];
    s->mae = metric_mae(s->errors);
    s->rmse = metric_rmse(s->errors);
    s->smape = metric_smape(s->errors);
    s->mase = metric_mase(s->errors);
    return true;
}

static bool read_score(trainer *t, int64_t samples, score *s, err *e) {
    double totals[TALLY_COUNT];
    *s = (score){.samples = samples};
    s->accuracy = s->mcc = s->macro_f1 = s->mae = s->rmse = s->smape = s->mase = NAN;
    if (!t->d->sync(t->q, e) || !exec_read(t->x, t->j->totals, totals, e)) return false;
    s->loss = totals[TALLY_NORM] > 0 ? totals[TALLY_SUM] / totals[TALLY_NORM] : 0;
    return t->j->forecasts ? score_forecasts(t, s, e) : score_classes(t, s, e);
}

bool trainer_evaluate(trainer *t, span samples, score *s, err *e) {
    if (!begin(t, samples, 0, false, e)) return false;
    for (int64_t done = 0; done < samples.count; done += t->s.batch_size)
        if (!play(t, EXEC_EVALUATE, e)) return false;
    return read_score(t, samples.count, s, e);
}

// One optimizer step over the effective batch; micro-batches that lie wholly beyond the epoch's end are left out.
static bool take_step(trainer *t, int64_t done, err *e) {
    t->at.update++;
    for (int64_t m = 0; m < t->s.accumulation; m++) {
        if (m && done + m * t->s.batch_size >= t->split.train.count) break;
        if (!play(t, m ? EXEC_NEXT : EXEC_FIRST, e)) return false;
    }
    return exec_play(t->x, EXEC_UPDATE, e);
}

// Steps up to the next look at the counts of overflows; only fp16 is looked at.
static int64_t until_look(const trainer *t) {
    int64_t steps = t->at.done / (t->s.batch_size * t->s.accumulation);
    return t->j->precision == PRECISION_FP16 ? fallback_ahead(steps) : INT64_MAX;
}

// The next steps of an epoch of which `done` samples are done: several at once, or one. Returns how many, 0 on failure.
static int64_t take_steps(trainer *t, int64_t done, int64_t effective, err *e) {
    int64_t left = (t->split.train.count - done + effective - 1) / effective;
    if (left > updates_left(t)) left = updates_left(t);
    if (left > until_look(t)) left = until_look(t);
    if (!t->together || left < t->together) return take_step(t, done, e);
    t->at.update += (uint64_t)t->together;
    return exec_play_steps(t->x, t->together, e) ? t->together : 0;
}

// Reads what clip keeps and the present loss scale.
static bool read_clip(trainer *t, double clip[CLIP_COUNT], float *scale, err *e) {
    float root[2];
    if (!exec_read(t->x, t->j->clip, clip, e) || !exec_read(t->x, t->j->seed, root, e)) return false;
    *scale = root[0];
    return true;
}

// Precisions

// Goes on with the job's other precision: the same run in the same memory.
static bool change_to(trainer *t, const job *other, err *e) {
    snapshot s = whole(t);
    if (other == t->j) return true;
    snapshot_copy *c = snapshot_take(&s, e);
    bool ok = c && (!t->loader || exec_fed(t->x, false, e));
    if (ok) {
        t->j = other;
        exec_options o = executed(t);
        t->x = exec_replace(t->x, other->g, &o, e);
        s = whole(t);
        ok = t->x && snapshot_put(&s, c, e);
    }
    snapshot_drop(c);
    return ok;
}

// The job in a precision of that name; NULL where it has none.
static const job *job_in(const trainer *t, const char *name) {
    for (const job *j = t->given; j; j = j->fallback)
        if (strcmp(precision_name(j->precision), name) == 0) return j;
    return NULL;
}

// Steps that overflowed have changed nothing: weights and moments go on as they are.
static bool fall_back(trainer *t, const watcher *w, double clip[CLIP_COUNT], err *e) {
    static const float root[2] = {1, 0};
    change_report r = {.update = t->at.update, .epoch = t->at.epoch, .from = t->j->precision};
    r.in_a_row = (int64_t)clip[CLIP_IN_A_ROW];
    r.skipped = (int64_t)clip[CLIP_NONFINITE];
    clip[CLIP_IN_A_ROW] = clip[CLIP_GOOD] = 0;
    if (!change_to(t, t->j->fallback, e)) return false;
    if (!exec_write(t->x, t->j->clip, clip, e) || !exec_write(t->x, t->j->seed, root, e)) return false;
    r.to = t->j->precision;
    return !w->on_change || w->on_change(w->arg, &r, e);
}

// Whether fp16 can go on, after a look at the counts.
static bool judge(trainer *t, const watcher *w, double clip[CLIP_COUNT], float *scale, err *e) {
    switch (fallback_judge(t->j->precision, clip[CLIP_IN_A_ROW], t->j->fallback != NULL)) {
    case FALLBACK_STAY: return true;
    case FALLBACK_CHANGE: return fall_back(t, w, clip, e) && read_clip(t, clip, scale, e);
    case FALLBACK_END: break;
    }
    return err_run(e,
        "fp16 overflows: %.0f steps in a row had a gradient that is not finite, down to a loss scale of %g; set "
        "gpu_optimization.use_mixed_precision to bf16 or false, or lower train.optimizer.lr",
        clip[CLIP_IN_A_ROW], (double)*scale);
}

static bool look(trainer *t, const watcher *w, err *e) {
    double clip[CLIP_COUNT];
    float scale;
    if (until_look(t) != FALLBACK_LOOK) return true;
    return read_clip(t, clip, &scale, e) && judge(t, w, clip, &scale, e);
}

// Reports of steps

// What the device has summed since the last look, and the last step's loss.
static bool look_at_steps(trainer *t, double now, err *e) {
    double totals[TALLY_COUNT];
    steps_seen *s = &t->seen;
    if (!exec_read(t->x, t->j->totals, totals, e)) return false;
    double loss = totals[TALLY_STEP_NORM] > 0 ? totals[TALLY_STEP_SUM] / totals[TALLY_STEP_NORM] : 0;
    s->least = s->norm > 0 ? fmin(s->least, loss) : loss;
    s->most = s->norm > 0 ? fmax(s->most, loss) : loss;
    s->sum += totals[TALLY_SUM] - s->sum_before;
    s->norm += totals[TALLY_NORM] - s->norm_before;
    s->sum_before = totals[TALLY_SUM];
    s->norm_before = totals[TALLY_NORM];
    s->looked = now;
    return true;
}

static bool report_steps(trainer *t, const watcher *w, int64_t steps, bool ends, err *e) {
    steps_seen *s = &t->seen;
    double now = clock_seconds(), clip[CLIP_COUNT];
    float scale;
    s->steps += steps;
    if (!w->on_steps || (!ends && !t->d->host_memory && now - s->looked < look_at_card_every)) return true;
    if (!look_at_steps(t, now, e)) return false;
    if (now - s->reported < report_every || !s->steps) return true;
    if (!read_clip(t, clip, &scale, e)) return false;
    step_report r = {.update = t->at.update, .epoch = t->at.epoch, .done = t->at.done, .steps = s->steps};
    r.loss_min = s->least;
    r.loss_mean = s->norm > 0 ? s->sum / s->norm : 0;
    r.loss_max = s->most;
    r.grad_norm = clip[CLIP_NORM];
    r.lr = last_rate(t);
    *s = (steps_seen){.reported = now, .looked = now, .sum_before = s->sum_before, .norm_before = s->norm_before};
    w->on_steps(w->arg, &r);
    return true;
}

// Epochs

// Starts the running epoch, or goes on where a restored one was left.
static bool begin_epoch(trainer *t, err *e) {
    double totals[TALLY_COUNT] = {0};
    t->began = clock_seconds() - t->at.seconds;
    if (!t->at.done && !begin(t, t->split.train, (uint32_t)t->at.epoch, true, e)) return false;
    loader_range rest = {t->split.train, true, (uint32_t)t->at.epoch, (int64_t)t->at.step.position};
    if (t->at.done && t->at.done < t->split.train.count && !seek(t, rest, e)) return false;
    if (t->at.done && !exec_read(t->x, t->j->totals, totals, e)) return false;
    t->seen.sum_before = totals[TALLY_SUM];
    t->seen.norm_before = totals[TALLY_NORM];
    return true;
}

static bool train_epoch(trainer *t, const watcher *w, bool *go_on, err *e) {
    int64_t total = t->split.train.count, effective = t->s.batch_size * t->s.accumulation;
    standing *at = &t->at;
    if (!begin_epoch(t, e)) return false;
    while (*go_on && at->done < total && updates_left(t) > 0) {
        int64_t steps = take_steps(t, at->done, effective, e);
        if (!steps) return false;
        at->done += steps * effective;
        if (!look(t, w, e)) return false;
        at->seconds = clock_seconds() - t->began;
        at->best_is_now = false;
        if (!report_steps(t, w, steps, at->done >= total || updates_left(t) <= 0, e)) return false;
        if (w->on_step) *go_on = w->on_step(w->arg, at->epoch, samples_done(t), total);
    }
    return true;
}

// No step of the epoch had a finite gradient: none changed the weights, and none will. fp16 has its own rule.
static bool has_diverged(const trainer *t, const double clip[CLIP_COUNT], const score *validation) {
    int64_t effective = t->s.batch_size * t->s.accumulation, steps = (samples_done(t) + effective - 1) / effective;
    if (t->j->precision == PRECISION_FP16 || isfinite(validation->loss)) return false;
    return clip[CLIP_IN_A_ROW] >= (double)steps;
}

static bool finish_epoch(trainer *t, const watcher *w, epoch_report *r, err *e) {
    double clip[CLIP_COUNT];
    if (!read_score(t, samples_done(t), &r->train, e) || !read_clip(t, clip, &r->loss_scale, e)) return false;
    if (!judge(t, w, clip, &r->loss_scale, e)) return false;
    r->precision = t->j->precision;
    r->epoch = t->at.epoch;
    r->update = t->at.update;
    r->seconds = clock_seconds() - t->began;
    r->samples_per_s = (double)samples_done(t) / r->seconds;
    r->grad_norm = clip[CLIP_NORM];
    r->lr = last_rate(t);
    r->skipped = (int64_t)clip[CLIP_NONFINITE];
    bool ok = trainer_evaluate(t, t->split.validation, &r->validation, e);
    t->diverged = ok && has_diverged(t, clip, &r->validation);
    return ok;
}

// Judges the epoch that has ended, and stands before the next one.
static bool end_epoch(trainer *t, epoch_report *r, err *e) {
    standing *at = &t->at;
    const score *v = &r->validation;
    metric_score of = {.loss = v->loss, .naive2_smape = t->naive2[0], .naive2_mase = t->naive2[1]};
    of.classes = t->data->classes;
    of.confusion = t->j->forecasts ? NULL : v->confusion;
    of.errors = t->j->forecasts ? v->errors : NULL;
    double value = isfinite(v->loss) ? metric_value(t->metric, &of) : NAN;
    plateau_options o = t->s.rate.plateau;
    o.higher = !at->stop.lower;
    r->best = stop_see(&at->stop, at->epoch, value);
    if (t->s.rate.kind == RATE_PLATEAU) plateau_take(&at->plateau, &o, value);
    if (r->best && !exec_read(t->x, weights_slab(t), t->best, e)) return false;
    at->best_is_now = r->best;
    if (r->best) at->best_precision = t->j->precision;
    r->last = at->epoch >= t->s.epochs || stop_now(&at->stop) || t->diverged || updates_left(t) <= 0;
    at->epoch++;
    at->done = 0;
    at->seconds = 0;
    return true;
}

static bool run_epochs(trainer *t, const watcher *w, bool *go_on, err *e) {
    while (t->at.epoch <= t->s.epochs && !t->diverged) {
        bool ended = stop_now(&t->at.stop) || updates_left(t) <= 0;
        if (ended && !t->at.done) return true;
        if (!train_epoch(t, w, go_on, e)) return false;
        if (!*go_on) return true;
        if (!finish_epoch(t, w, &t->report, e) || !end_epoch(t, &t->report, e)) return false;
        if (w->on_epoch) w->on_epoch(w->arg, &t->report);
    }
    return true;
}

bool trainer_run(trainer *t, const watcher *w, train_result *r, err *e) {
    const stop *s = &t->at.stop;
    bool go_on = true, ok = run_epochs(t, w, &go_on, e);
    *r = (train_result){.epochs = t->at.epoch - 1, .best_epoch = s->best_epoch, .best = s->best};
    r->interrupted = !go_on;
    r->diverged = t->diverged;
    r->stopped_early = ok && go_on && stop_now(s) && r->epochs < t->s.epochs;
    if (ok && s->best_epoch) t->best_is_back = ok = exec_write(t->x, weights_slab(t), t->best, e);
    return ok;
}

// Predicting

static float value_at(const unsigned char *data, dtype type, int64_t i) {
    float v;
    uint16_t bits;
    if (type == DTYPE_F32) {
        memcpy(&v, data + 4 * i, sizeof v);
        return v;
    }
    memcpy(&bits, data + 2 * i, sizeof bits);
    if (type == DTYPE_F16) return half_widen(bits);
    uint32_t wide = (uint32_t)bits << 16;
    memcpy(&v, &wide, sizeof v);
    return v;
}

// Softmax of a row.
static void probabilities(const unsigned char *logits, dtype type, int64_t row, int K, float *to) {
    double most = -INFINITY, sum = 0, e[CLASSES_MOST];
    for (int k = 0; k < K; k++) most = fmax(most, (double)value_at(logits, type, row * K + k));
    for (int k = 0; k < K; k++) sum += e[k] = exp((double)value_at(logits, type, row * K + k) - most);
    for (int k = 0; k < K; k++) to[k] = (float)(e[k] / sum);
}

int64_t trainer_width(const trainer *t) {
    return shape_last(graph_info(t->j->g, t->j->logits)->shape);
}

bool trainer_predict(trainer *t, span samples, float *out, err *e) {
    int64_t K = trainer_width(t);
    tensor from = t->j->forecasts ? t->j->forecast : t->j->logits;
    dtype type = graph_info(t->j->g, from)->type;
    unsigned char *batch = malloc((size_t)t->s.batch_size * (size_t)K * dtype_bytes(type));
    bool ok = batch ? begin(t, samples, 0, false, e) : err_run(e, "out of memory for a batch of predictions");
    for (int64_t done = 0; ok && done < samples.count; done += t->s.batch_size) {
        int64_t rows = samples.count - done < t->s.batch_size ? samples.count - done : t->s.batch_size;
        ok = play(t, EXEC_EVALUATE, e) && exec_peek(t->x, from, false, batch, e);
        for (int64_t i = 0; ok && !t->j->forecasts && i < rows; i++)
            probabilities(batch, type, i, (int)K, out + (done + i) * K);
        for (int64_t i = 0; ok && t->j->forecasts && i < rows * K; i++) out[done * K + i] = value_at(batch, type, i);
    }
    free(batch);
    return ok;
}

// Saving

bool trainer_save(trainer *t, const char *path, err *e) {
    snapshot s = whole(t);
    return snapshot_save_weights(&s, path, e);
}

bool trainer_load(trainer *t, const char *path, err *e) {
    t->best_is_back = false;
    snapshot s = whole(t);
    return snapshot_load_weights(&s, path, e);
}

bool trainer_follow(trainer *t, const char *path, err *e) {
    safetensors *s = weights_open(path, e);
    if (!s) return false;
    const char *name = safetensors_metadata(s, "precision");
    const job *other = name ? job_in(t, name) : NULL;
    safetensors_close(s);
    return !other || change_to(t, other, e);
}

bool trainer_checkpoint(trainer *t, const char *path, const safetensors_note *notes, int note_count, err *e) {
    snapshot s = whole(t);
    return snapshot_save(&s, path, notes, note_count, e);
}

// Whether the device's record stands where the checkpoint says, among this job's samples.
static bool record_fits(const trainer *t) {
    const step *p = &t->at.step;
    bool ours = p->seed == t->s.seed && p->update == t->at.update && p->epoch == t->at.epoch && p->shuffle &&
                p->first == (uint64_t)t->split.train.first && p->count == (uint64_t)t->split.train.count;
    return ours && !p->row && (t->at.done >= t->split.train.count || p->position == (uint64_t)t->at.done);
}

bool trainer_restore(trainer *t, const safetensors *from, const char *path, err *e) {
    const char *name = safetensors_metadata(from, "precision");
    const job *as = name ? job_in(t, name) : t->j;
    if (!as) return err_input(e, "%s: was made in %s; go on in that", path, name);
    if (!change_to(t, as, e)) return false;
    snapshot s = whole(t);
    if (!snapshot_load(&s, from, path, e)) return false;
    if (!t->at.done || record_fits(t)) return true;
    return err_input(e, "%s: stands among other samples, or under another seed", path);
}

void trainer_stands(const trainer *t, uint64_t *update, int64_t *epoch, int64_t *done) {
    *update = t->at.update;
    *epoch = t->at.epoch;
    *done = t->at.done;
}
