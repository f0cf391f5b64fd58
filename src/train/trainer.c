#include "train/trainer.h"

#include "base/clock.h"
#include "ops/schedule.h"
#include "run/weights.h"
#include "train/fallback.h"
#include "train/snapshot.h"
#include "train/trivial.h"

#include <math.h>
#include <stdio.h>
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

// Sums of an epoch on the device: totals, confusion, metrics.
enum { SUMS = 2 + FORECAST_METRICS };

struct trainer {
    const device *d;
    queue *q;
    const dataset *data;
    split split;
    settings s;
    const metric *metric;
    double naive2[2]; // sMAPE and MASE of the naive2 forecasts, or NaN
    space *space;     // of its own, or NULL
    store *dataset;   // in it, or NULL
    engine *x;
    batches batches;
    inference inference;
    int together;  // steps that can be played at once
    float *best;   // the slab of the best epoch's weights
    char *trivial; // of the training part, for trivial answers: shares of the classes, or the mean of the targets
    standing at;
    double began; // when the running epoch would have begun had it never been interrupted
    steps_seen seen;
    epoch_report report;
    bool in_epoch;     // the running epoch was begun or taken up by this trainer
    bool stopped;      // by the watcher
    bool diverged;     // in the epoch that was last finished
    bool best_is_back; // the run is over and its best weights are in place
    void *sums[SUMS];  // of the running epoch, while something is evaluated in its middle
};

static const job *job_of(const trainer *t) {
    return engine_job(t->x);
}

static size_t slab_bytes(const trainer *t) {
    return (size_t)graph_slab_elements(job_of(t)->g) * sizeof(float);
}

static bool read_state(trainer *t, tensor of, void *to, err *e) {
    return store_read(engine_store(t->x), job_of(t)->g, of, to, e);
}

static bool write_state(trainer *t, tensor of, const void *from, err *e) {
    return store_write(engine_store(t->x), job_of(t)->g, of, from, e);
}

static tensor weights_slab(const trainer *t) {
    return graph_slab(job_of(t)->g, SLAB_WEIGHTS);
}

static snapshot whole(trainer *t) {
    precision of = t->best_is_back ? t->at.best_precision : job_of(t)->precision;
    const char *key = job_of(t)->forecasts ? "target_mean" : "class_shares";
    return (snapshot){.x = t->x, .best = t->best, .at = &t->at, .weights = of, .trivial = {key, t->trivial}};
}

static bool set_initial(trainer *t, err *e) {
    const float root[2] = {job_of(t)->precision == PRECISION_FP16 ? LOSS_SCALE_START : 1, 0};
    float *weights = malloc(slab_bytes(t));
    if (!weights) return err_run(e, "out of memory for %zu bytes of weights", slab_bytes(t));
    graph_initial(job_of(t)->g, t->s.seed, weights);
    bool ok = write_state(t, weights_slab(t), weights, e) && write_state(t, job_of(t)->seed, root, e);
    free(weights);
    return ok;
}

// Steps that nothing comes between: those of an epoch, or up to a look at what fp16 counts.
static int64_t stretch(const job *j, const split *sp, const settings *s) {
    int64_t steps = job_updates(sp, s);
    return j->precision == PRECISION_FP16 && steps > FALLBACK_LOOK ? FALLBACK_LOOK : steps;
}

static engine_options options(const job *j, const split *sp, const settings *s, const device *d, queue *q) {
    engine_options o = {.device = d, .queue = q, .rows = s->batch_size, .recompute = s->again};
    if (s->accumulation == 1 && !j->host) o.together = program_together(d, j->g, s->batch_size, stretch(j, sp, s));
    return o;
}

engine_memory trainer_memory(const job *j, const split *sp, const settings *s, const device *d, queue *q) {
    engine_options o = options(j, sp, s, d, q);
    return engine_measure_job(j, &o);
}

static void list_sums(const job *j, tensor list[SUMS]) {
    list[0] = j->totals;
    list[1] = j->confusion;
    memcpy(list + 2, j->metric, sizeof j->metric);
}

// Room on the host for the sums of an epoch, all of eight bytes a value.
static bool take_sums(trainer *t, err *e) {
    tensor of[SUMS];
    list_sums(job_of(t), of);
    for (int k = 0; k < SUMS; k++) {
        if (!of[k].id) continue;
        t->sums[k] = calloc((size_t)shape_count(graph_info(job_of(t)->g, of[k])->shape), sizeof(double));
        if (!t->sums[k]) return err_run(e, "out of memory for the sums of an epoch");
    }
    return true;
}

// "0.25 0.5 0.25"
static char *shares_text(const dataset *d, const split_part *train) {
    enum { EACH = 16 };
    double share[CLASSES_MOST];
    char *text = calloc((size_t)d->classes + 1, EACH), *at = text;
    NEED(text, "out of memory for the shares of %d classes", d->classes);
    trivial_shares(d, train, share);
    for (int k = 0; k < d->classes; k++) at += snprintf(at, EACH, "%s%.9g", k ? " " : "", share[k]);
    return text;
}

static char *mean_text(const dataset *d, const split_part *train) {
    char *text = NULL;
    NEED(asprintf(&text, "%.17g", trivial_mean(d, train)) >= 0, "out of memory for the mean of the targets");
    return text;
}

// Takes a space for the engine and the dataset where none is given.
static bool place(trainer *t, const trainer_place *at, const job *j, err *e) {
    if (at->space) return engine_place(t->x, at->space, at->data, e);
    t->dataset = engine_data(j, at->device->host_memory);
    t->space = space_new(at->device, at->queue, engine_measure(t->x).total, e);
    return t->space && store_place(t->dataset, at->queue, t->space, e) && engine_place(t->x, t->space, t->dataset, e);
}

trainer *trainer_new_in(
    const trainer_place *at, const job *j, const dataset *data, const split *sp, const settings *s, err *e) {
    CHECK(data->classes <= CLASSES_MOST, "%d classes", data->classes);
    trainer *t = calloc(1, sizeof *t);
    if (!t) {
        err_run(e, "out of memory for a trainer");
        return NULL;
    }
    engine_options o = options(j, sp, s, at->device, at->queue);
    *t = (trainer){.d = at->device, .q = at->queue, .data = data, .split = *sp, .s = *s, .together = o.together};
    t->x = engine_new(j, &o);
    t->inference = (inference){at->device, at->queue, t->x, &t->batches, s->batch_size};
    t->at = (standing){.epoch = 1, .stop.patience = s->patience};
    plateau_init(&t->at.plateau, s->lr);
    trainer_judge_by(t, metric_usual(settings_task(s, data)), NULL);
    t->best = malloc(slab_bytes(t));
    if (!j->host) dataset_advise(data);
    t->trivial = j->forecasts ? mean_text(data, &sp->train) : shares_text(data, &sp->train);
    bool ok = t->best || err_run(e, "out of memory for %zu bytes of weights", slab_bytes(t));
    ok = ok && take_sums(t, e) && place(t, at, j, e) && batches_open(&t->batches, at->device, at->queue, t->x, s, e);
    if (ok && set_initial(t, e)) return t;
    trainer_free(t);
    return NULL;
}

trainer *trainer_new(
    const device *d, queue *q, const job *j, const dataset *data, const split *sp, const settings *s, err *e) {
    return trainer_new_in(&(trainer_place){.device = d, .queue = q}, j, data, sp, s, e);
}

void trainer_free(trainer *t) {
    if (!t) return;
    batches_close(&t->batches);
    engine_free(t->x);
    store_free(t->dataset);
    space_free(t->space);
    for (int k = 0; k < SUMS; k++) free(t->sums[k]);
    free(t->best);
    free(t->trivial);
    free(t);
}

engine *trainer_engine(trainer *t) {
    return t->x;
}

size_t trainer_bytes(const trainer *t) {
    return t->space ? space_bytes(t->space) : engine_measure(t->x).own;
}

const job *trainer_job(const trainer *t) {
    return job_of(t);
}

void trainer_judge_by(trainer *t, const metric *m, const double naive2[2]) {
    t->metric = m;
    for (int k = 0; k < 2; k++) t->naive2[k] = naive2 ? naive2[k] : NAN;
    t->at.stop.lower = !m->higher;
}

// Learning rate before the device's schedule: the description's, or the one that the plateau rule has fallen to.
static double rate(const trainer *t) {
    return t->s.rate.kind == RATE_PLATEAU ? t->at.plateau.lr : t->s.lr;
}

// The rate of the last step taken.
static double last_rate(const trainer *t) {
    return schedule_rate(&job_of(t)->schedule, (float)rate(t), t->at.update ? t->at.update - 1 : 0);
}

// Updates that the run may still take.
static int64_t updates_left(const trainer *t) {
    return t->s.steps ? t->s.steps - (int64_t)t->at.update : INT64_MAX;
}

// Samples of the running epoch that were trained on: its last step may reach beyond its end.
static int64_t samples_done(const trainer *t) {
    return t->at.done < t->split.train.count ? t->at.done : t->split.train.count;
}

// Sends the device to the start of an epoch and clears the sums.
static bool begin(trainer *t, err *e) {
    uint32_t epoch = (uint32_t)t->at.epoch;
    step_progress p = {.seed = t->s.seed, .update = t->at.update, .lr = (float)rate(t)};
    step_cursor c = inference_cursor(&t->split.train, epoch, true);
    return batches_seek(&t->batches, &(loader_range){t->split.train, true, epoch, 0}, e) &&
           store_progress_write(engine_store(t->x), &p, e) && program_seek(engine_steps(t->x), &c, e) &&
           inference_clear(&t->inference, e);
}

// One micro-batch.
static bool play(trainer *t, pass which, err *e) {
    return batches_next(&t->batches, e) && program_play(engine_steps(t->x), which, e);
}

// Sends the loader to the rest of the running epoch.
static bool seek_rest(trainer *t, err *e) {
    loader_range rest = {t->split.train, true, (uint32_t)t->at.epoch, t->at.done};
    return t->at.done >= t->split.train.count || batches_seek(&t->batches, &rest, e);
}

// Takes the sums of the running epoch from the device, or puts them back.
static bool move_sums(trainer *t, bool back, err *e) {
    tensor of[SUMS];
    bool ok = true;
    list_sums(job_of(t), of);
    for (int k = 0; ok && k < SUMS; k++)
        if (of[k].id) ok = back ? write_state(t, of[k], t->sums[k], e) : read_state(t, of[k], t->sums[k], e);
    return ok;
}

// Evaluation uses the sums and the loader of the running epoch, which then goes on as if nothing had been.
static bool leave_epoch(trainer *t, err *e) {
    return !t->in_epoch || move_sums(t, false, e);
}

static bool return_to_epoch(trainer *t, err *e) {
    return !t->in_epoch || (move_sums(t, true, e) && seek_rest(t, e));
}

bool trainer_evaluate(trainer *t, const split_part *samples, score *s, err *e) {
    return leave_epoch(t, e) && inference_score(&t->inference, samples, s, e) && return_to_epoch(t, e);
}

bool trainer_predict(trainer *t, const split_part *samples, float *out, err *e) {
    return leave_epoch(t, e) && inference_predict(&t->inference, samples, out, e) && return_to_epoch(t, e);
}

// One optimizer step over the effective batch; micro-batches that lie wholly beyond the epoch's end are left out.
static bool take_step(trainer *t, err *e) {
    for (int64_t m = 0; m < t->s.accumulation; m++) {
        if (m && t->at.done + m * t->s.batch_size >= t->split.train.count) break;
        if (!play(t, m ? PASS_NEXT : PASS_FIRST, e)) return false;
    }
    return program_play(engine_steps(t->x), PASS_UPDATE, e);
}

// Steps up to the next look at the counts of overflows; only fp16 is looked at.
static int64_t until_look(const trainer *t) {
    int64_t steps = t->at.done / (t->s.batch_size * t->s.accumulation);
    return job_of(t)->precision == PRECISION_FP16 ? fallback_ahead(steps) : INT64_MAX;
}

// The next steps of the epoch, `most` at most: several at once, or one; `taken` says how many.
static bool take_steps(trainer *t, int64_t most, int64_t *taken, err *e) {
    int64_t effective = t->s.batch_size * t->s.accumulation;
    int64_t left = (t->split.train.count - t->at.done + effective - 1) / effective;
    if (left > most) left = most;
    if (left > updates_left(t)) left = updates_left(t);
    if (left > until_look(t)) left = until_look(t);
    bool many = t->together && left >= t->together;
    *taken = many ? t->together : 1;
    if (!(many ? program_play_steps(engine_steps(t->x), *taken, e) : take_step(t, e))) return false;
    t->at.update += (uint64_t)*taken;
    t->at.done += *taken * effective;
    return true;
}

// Reads what clip keeps and the present loss scale.
static bool read_clip(trainer *t, double clip[CLIP_COUNT], float *scale, err *e) {
    float root[2];
    if (!read_state(t, job_of(t)->clip, clip, e) || !read_state(t, job_of(t)->seed, root, e)) return false;
    *scale = root[0];
    return true;
}

// Precisions

// Goes on with the job's other precision, on the same store. The samples stay where they are.
static bool change_to(trainer *t, const job *other, err *e) {
    step_cursor c;
    if (other == job_of(t)) return true;
    return batches_settled(&t->batches, e) && program_cursor(engine_steps(t->x), &c, e) &&
           engine_change(t->x, other, e) && program_seek(engine_steps(t->x), &c, e);
}

// Steps that overflowed have changed nothing: weights and moments go on as they are.
static bool fall_back(trainer *t, const watcher *w, double clip[CLIP_COUNT], err *e) {
    static const float root[2] = {1, 0};
    change_report r = {.update = t->at.update, .epoch = t->at.epoch, .from = job_of(t)->precision};
    r.in_a_row = (int64_t)clip[CLIP_IN_A_ROW];
    r.skipped = (int64_t)clip[CLIP_NONFINITE];
    clip[CLIP_IN_A_ROW] = clip[CLIP_GOOD] = 0;
    if (!change_to(t, job_of(t)->fallback, e)) return false;
    if (!write_state(t, job_of(t)->clip, clip, e) || !write_state(t, job_of(t)->seed, root, e)) return false;
    r.to = job_of(t)->precision;
    return !w->on_change || w->on_change(w->arg, &r, e);
}

// Looks at the counts of overflows; fp16 goes on, changes over, or ends the run.
static bool judge(trainer *t, const watcher *w, double clip[CLIP_COUNT], float *scale, err *e) {
    switch (fallback_judge(job_of(t)->precision, clip[CLIP_IN_A_ROW], job_of(t)->fallback != NULL)) {
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

// Reads the device's sums since the last look, and the last step's loss.
static bool look_at_steps(trainer *t, double now, err *e) {
    double totals[TALLY_COUNT];
    steps_seen *s = &t->seen;
    if (!read_state(t, job_of(t)->totals, totals, e)) return false;
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
    double unit = job_of(t)->unit;
    r.loss_min = unit * s->least;
    r.loss_mean = s->norm > 0 ? unit * s->sum / s->norm : 0;
    r.loss_max = unit * s->most;
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
    if (!t->at.done && !begin(t, e)) return false;
    if (t->at.done && (!seek_rest(t, e) || !read_state(t, job_of(t)->totals, totals, e))) return false;
    t->seen.sum_before = totals[TALLY_SUM];
    t->seen.norm_before = totals[TALLY_NORM];
    t->in_epoch = true;
    return true;
}

static bool epoch_is_over(const trainer *t) {
    return t->at.done >= t->split.train.count || updates_left(t) <= 0;
}

// Some steps of the running epoch, `most` at most; `taken` says how many.
static bool advance_epoch(trainer *t, int64_t most, const watcher *w, int64_t *taken, err *e) {
    standing *at = &t->at;
    if (!take_steps(t, most, taken, e) || !look(t, w, e)) return false;
    at->seconds = clock_seconds() - t->began;
    at->best_is_now = false;
    if (!report_steps(t, w, *taken, epoch_is_over(t), e)) return false;
    if (w->on_step) t->stopped = !w->on_step(w->arg, at->epoch, samples_done(t), t->split.train.count);
    return true;
}

// No step of the epoch had a finite gradient: none changed the weights, and none will. fp16 has its own rule.
static bool has_diverged(const trainer *t, const double clip[CLIP_COUNT], const score *validation) {
    int64_t effective = t->s.batch_size * t->s.accumulation, steps = (samples_done(t) + effective - 1) / effective;
    if (job_of(t)->precision == PRECISION_FP16 || isfinite(validation->loss)) return false;
    return clip[CLIP_IN_A_ROW] >= (double)steps;
}

static bool finish_epoch(trainer *t, const watcher *w, epoch_report *r, err *e) {
    double clip[CLIP_COUNT];
    if (!inference_read(&t->inference, samples_done(t), &r->train, e) || !read_clip(t, clip, &r->loss_scale, e))
        return false;
    if (!judge(t, w, clip, &r->loss_scale, e)) return false;
    r->precision = job_of(t)->precision;
    r->epoch = t->at.epoch;
    r->update = t->at.update;
    r->seconds = clock_seconds() - t->began;
    r->samples_per_s = (double)samples_done(t) / r->seconds;
    r->grad_norm = clip[CLIP_NORM];
    r->lr = last_rate(t);
    r->skipped = (int64_t)clip[CLIP_NONFINITE];
    bool ok = inference_score(&t->inference, &t->split.validation, &r->validation, e);
    t->diverged = ok && has_diverged(t, clip, &r->validation);
    return ok;
}

// Judges the epoch that has ended, and stands before the next one.
static bool end_epoch(trainer *t, epoch_report *r, err *e) {
    standing *at = &t->at;
    const score *v = &r->validation;
    metric_score of = {.loss = v->loss, .naive2_smape = t->naive2[0], .naive2_mase = t->naive2[1]};
    of.classes = t->data->classes;
    of.confusion = job_of(t)->forecasts ? NULL : v->confusion;
    of.errors = job_of(t)->forecasts ? v->errors : NULL;
    double value = isfinite(v->loss) ? metric_value(t->metric, &of) : NAN;
    plateau_options o = t->s.rate.plateau;
    o.higher = !at->stop.lower;
    r->best = stop_see(&at->stop, at->epoch, value);
    if (t->s.rate.kind == RATE_PLATEAU) plateau_take(&at->plateau, &o, value);
    if (r->best && !read_state(t, weights_slab(t), t->best, e)) return false;
    at->best_is_now = r->best;
    if (r->best) at->best_precision = job_of(t)->precision;
    r->last = at->epoch >= t->s.epochs || stop_now(&at->stop) || t->diverged || updates_left(t) <= 0;
    at->epoch++;
    at->done = 0;
    at->seconds = 0;
    t->in_epoch = false;
    return true;
}

// Between two epochs nothing may follow; within one its end does.
static bool is_over(const trainer *t) {
    bool ended = stop_now(&t->at.stop) || updates_left(t) <= 0;
    return t->stopped || t->diverged || t->at.epoch > t->s.epochs || (ended && !t->at.done);
}

static bool close_epoch(trainer *t, const watcher *w, err *e) {
    if (!finish_epoch(t, w, &t->report, e) || !end_epoch(t, &t->report, e)) return false;
    if (w->on_epoch) w->on_epoch(w->arg, &t->report);
    return true;
}

bool trainer_advance(trainer *t, int64_t steps, const watcher *w, bool *more, err *e) {
    *more = false;
    while (steps > 0 && !is_over(t)) {
        int64_t taken = 0;
        if (!t->in_epoch && !begin_epoch(t, e)) return false;
        if (!epoch_is_over(t) && !advance_epoch(t, steps, w, &taken, e)) return false;
        if (!t->stopped && epoch_is_over(t) && !close_epoch(t, w, e)) return false;
        steps -= taken;
    }
    *more = !is_over(t);
    return true;
}

static train_result result_of(const trainer *t) {
    const stop *s = &t->at.stop;
    return (train_result){.epochs = t->at.epoch - 1,
        .best_epoch = s->best_epoch,
        .best = s->best,
        .interrupted = t->stopped,
        .diverged = t->diverged,
        .stopped_early = !t->stopped && stop_now(s) && t->at.epoch - 1 < t->s.epochs};
}

bool trainer_finish(trainer *t, train_result *r, err *e) {
    CHECK(is_over(t), "a run is finished before its end");
    *r = result_of(t);
    if (!r->best_epoch) return true;
    return t->best_is_back = write_state(t, weights_slab(t), t->best, e);
}

bool trainer_run(trainer *t, const watcher *w, train_result *r, err *e) {
    bool more = true, ok = true;
    while (ok && more) ok = trainer_advance(t, INT64_MAX, w, &more, e);
    *r = result_of(t);
    return ok && trainer_finish(t, r, e);
}

// Saving

bool trainer_save(trainer *t, const char *path, const safetensors_note *notes, int note_count, err *e) {
    snapshot s = whole(t);
    return snapshot_save_weights(&s, path, notes, note_count, e);
}

bool trainer_load(trainer *t, const char *path, err *e) {
    t->best_is_back = false;
    return snapshot_load_weights(t->x, path, e);
}

bool trainer_checkpoint(trainer *t, const char *path, const safetensors_note *notes, int note_count, err *e) {
    snapshot s = whole(t);
    return snapshot_save(&s, path, notes, note_count, e);
}

// True if the device's record stands where the checkpoint says, among this job's samples.
static bool record_fits(const trainer *t) {
    const step_progress *p = &t->at.progress;
    const step_cursor *is = &t->at.cursor, of = inference_cursor(&t->split.train, (uint32_t)t->at.epoch, true);
    bool ours = p->seed == t->s.seed && p->update == t->at.update && is->epoch == of.epoch && is->shuffle &&
                is->count == of.count && is->spans == of.spans && memcmp(is->span, of.span, sizeof of.span) == 0;
    return ours && !is->row && (t->at.done >= t->split.train.count || is->position == (uint64_t)t->at.done);
}

bool trainer_restore(trainer *t, const safetensors *from, const char *path, err *e) {
    const char *name = safetensors_metadata(from, "precision");
    const job *as = name ? engine_find(t->x, name) : job_of(t);
    if (!as) return err_input(e, "%s: was made in %s; go on in that", path, name);
    if (!change_to(t, as, e)) return false;
    t->in_epoch = t->stopped = t->diverged = t->best_is_back = false;
    t->seen = (steps_seen){0};
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
