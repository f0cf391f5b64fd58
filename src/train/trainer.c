#include "train/trainer.h"

#include "base/arena.h"
#include "base/clock.h"
#include "run/safetensors.h"
#include "train/metric.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// fp16 gives up after this many steps in a row without a finite gradient: the loss scale has long been at its floor.
// The host looks at the end of an epoch and every so many steps.
enum { OVERFLOWS_MOST = 100, LOOK_EVERY = 4096 };

struct trainer {
    const device *d;
    queue *q;
    const job *j;
    const dataset *data;
    split split;
    settings s;
    exec *x;
    loader *loader;  // where batches come from the host, or NULL
    uint64_t update; // steps played
    float *weights;  // host copy of the slab, and of the best epoch's
    float *best;
    epoch_report report;
};

static size_t slab_bytes(const trainer *t) {
    return (size_t)graph_slab_elements(t->j->g) * sizeof(float);
}

static tensor weights_slab(const trainer *t) {
    return graph_slab(t->j->g, SLAB_WEIGHTS);
}

static bool set_initial(trainer *t, err *e) {
    const float root[2] = {t->j->precision == PRECISION_FP16 ? LOSS_SCALE_START : 1, 0};
    graph_initial(t->j->g, t->s.seed, t->weights);
    return exec_write(t->x, weights_slab(t), t->weights, e) && exec_write(t->x, t->j->seed, root, e);
}

static bool start_loader(trainer *t, err *e) {
    loader_options o = job_loader(t->j, &t->s);
    t->loader = loader_new(t->data, &o, e);
    return t->loader != NULL;
}

trainer *trainer_new(
    const device *d, queue *q, const job *j, const dataset *data, const split *sp, const settings *s, err *e) {
    CHECK(data->classes <= CLASSES_MOST, "%d classes", data->classes);
    trainer *t = calloc(1, sizeof *t);
    if (!t) {
        err_run(e, "out of memory for a trainer");
        return NULL;
    }
    *t = (trainer){.d = d, .q = q, .j = j, .data = data, .split = *sp, .s = *s};
    t->weights = malloc(slab_bytes(t));
    t->best = malloc(slab_bytes(t));
    bool ok = t->weights && t->best;
    if (!ok) err_run(e, "out of memory for %zu bytes of weights", 2 * slab_bytes(t));
    if (!j->host) dataset_advise(data);
    if (ok) t->x = exec_new(d, q, j->g, &(exec_options){.batch = s->batch_size}, e);
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
    free(t->weights);
    free(t->best);
    free(t);
}

exec *trainer_exec(trainer *t) {
    return t->x;
}

// Clears the sums and sends the device to the start of a span.
static bool begin(trainer *t, span samples, uint32_t epoch, bool shuffle, err *e) {
    step s = {.seed = t->s.seed,
        .update = t->update,
        .first = (uint64_t)samples.first,
        .count = (uint64_t)samples.count,
        .epoch = epoch,
        .shuffle = shuffle,
        .lr = (float)t->s.lr};
    if (t->loader) loader_seek(t->loader, &(loader_range){samples, shuffle, epoch, 0});
    return exec_step_write(t->x, &s, e) && exec_clear(t->x, t->j->totals, e) && exec_clear(t->x, t->j->confusion, e);
}

// Writes the loader's next batch to the step's inputs.
static bool feed(trainer *t, err *e) {
    const job_inputs *in = &t->j->input;
    loader_batch b;
    CHECK(loader_next(t->loader, &b), "a step beyond the end of its samples");
    bool ok = exec_write(t->x, in->label, b.label, e) && exec_write(t->x, in->weight, b.weight, e);
    for (int i = 0; ok && i < t->data->streams; i++) ok = exec_write(t->x, in->x[i], b.x[i], e);
    return ok && (!in->vector.id || exec_write(t->x, in->vector, b.vector, e));
}

// One micro-batch.
static bool play(trainer *t, exec_part part, err *e) {
    return (!t->loader || feed(t, e)) && exec_play(t->x, part, e);
}

static bool read_score(trainer *t, int64_t samples, score *s, err *e) {
    double totals[TALLY_COUNT];
    int K = t->data->classes;
    if (!t->d->sync(t->q, e) || !exec_read(t->x, t->j->totals, totals, e)) return false;
    if (!exec_read(t->x, t->j->confusion, s->confusion, e)) return false;
    s->samples = samples;
    s->loss = totals[TALLY_NORM] > 0 ? totals[TALLY_SUM] / totals[TALLY_NORM] : 0;
    s->accuracy = metric_accuracy(s->confusion, K);
    s->mcc = metric_mcc(s->confusion, K);
    s->macro_f1 = metric_macro_f1(s->confusion, K);
    return true;
}

bool trainer_evaluate(trainer *t, span samples, score *s, err *e) {
    if (!begin(t, samples, 0, false, e)) return false;
    for (int64_t done = 0; done < samples.count; done += t->s.batch_size)
        if (!play(t, EXEC_EVALUATE, e)) return false;
    return read_score(t, samples.count, s, e);
}

// One optimizer step over the effective batch; micro-batches that lie wholly beyond the epoch's end are left out.
static bool take_step(trainer *t, int64_t done, err *e) {
    for (int64_t m = 0; m < t->s.accumulation; m++) {
        if (m && done + m * t->s.batch_size >= t->split.train.count) break;
        if (!play(t, m ? EXEC_NEXT : EXEC_FIRST, e)) return false;
    }
    t->update++;
    return exec_play(t->x, EXEC_UPDATE, e);
}

// Reads what clip keeps and the present loss scale; false where fp16 can go no further.
static bool read_clip(trainer *t, double clip[CLIP_COUNT], float *scale, err *e) {
    float root[2];
    if (!exec_read(t->x, t->j->clip, clip, e) || !exec_read(t->x, t->j->seed, root, e)) return false;
    *scale = root[0];
    if (t->j->precision != PRECISION_FP16 || clip[CLIP_IN_A_ROW] < OVERFLOWS_MOST) return true;
    return err_run(e,
        "fp16 overflows: %.0f steps in a row had a gradient that is not finite, down to a loss scale of %g; set "
        "gpu_optimization.use_mixed_precision to bf16 or false, or lower train.optimizer.lr",
        clip[CLIP_IN_A_ROW], (double)*scale);
}

static bool look(trainer *t, err *e) {
    double clip[CLIP_COUNT];
    float scale;
    return t->j->precision != PRECISION_FP16 || t->update % LOOK_EVERY || read_clip(t, clip, &scale, e);
}

static bool train_epoch(trainer *t, int64_t epoch, const watcher *w, bool *go_on, err *e) {
    int64_t total = t->split.train.count, effective = t->s.batch_size * t->s.accumulation;
    if (!begin(t, t->split.train, (uint32_t)epoch, true, e)) return false;
    for (int64_t done = 0; *go_on && done < total; done += effective) {
        if (!take_step(t, done, e) || !look(t, e)) return false;
        int64_t so_far = done + effective < total ? done + effective : total;
        if (w->on_step) *go_on = w->on_step(w->arg, epoch, so_far, total);
    }
    return true;
}

static bool finish_epoch(trainer *t, epoch_report *r, double started, err *e) {
    double clip[CLIP_COUNT];
    if (!read_score(t, t->split.train.count, &r->train, e) || !read_clip(t, clip, &r->loss_scale, e)) return false;
    r->seconds = clock_seconds() - started;
    r->samples_per_s = (double)t->split.train.count / r->seconds;
    r->grad_norm = clip[CLIP_NORM];
    r->skipped = (int64_t)clip[CLIP_NONFINITE];
    return trainer_evaluate(t, t->split.validation, &r->validation, e);
}

static bool run_epochs(trainer *t, const watcher *w, train_result *r, epoch_report *report, err *e) {
    bool go_on = true;
    for (int64_t epoch = 1; epoch <= t->s.epochs; epoch++) {
        double started = clock_seconds();
        report->epoch = epoch;
        if (!train_epoch(t, epoch, w, &go_on, e)) return false;
        r->interrupted = !go_on;
        if (!go_on) return true;
        if (!finish_epoch(t, report, started, e)) return false;
        report->best = isfinite(report->validation.loss) && (!r->best_epoch || report->validation.mcc > r->best_mcc);
        r->epochs = epoch;
        if (report->best) {
            r->best_epoch = epoch;
            r->best_mcc = report->validation.mcc;
            if (!exec_read(t->x, weights_slab(t), t->best, e)) return false;
        }
        if (w->on_epoch) w->on_epoch(w->arg, report);
        r->stopped_early = epoch - r->best_epoch >= t->s.patience && epoch < t->s.epochs; // also where none was best
        if (r->stopped_early) return true;
    }
    return true;
}

bool trainer_run(trainer *t, const watcher *w, train_result *r, err *e) {
    *r = (train_result){0};
    bool ok = run_epochs(t, w, r, &t->report, e);
    if (ok && r->best_epoch) ok = exec_write(t->x, weights_slab(t), t->best, e);
    return ok;
}

static void list_weights(const trainer *t, safetensors_entry *entries) {
    const graph *g = t->j->g;
    for (int i = 0; i < graph_parameters(g); i++) {
        const tensor_info *p = graph_info(g, graph_parameter_at(g, i));
        safetensors_entry *s = &entries[i];
        *s = (safetensors_entry){
            .name = p->name, .type = SAFE_F32, .rank = p->shape.rank, .data = t->weights + p->offset};
        memcpy(s->dim, p->shape.dim, (size_t)p->shape.rank * sizeof *s->dim);
        s->bytes = (size_t)shape_count(p->shape) * sizeof(float);
    }
}

// "scaler.STREAM.mean" and "scaler.STREAM.std", each [C], for every stream.
static void list_scaler(const trainer *t, safetensors_entry *entries, arena *a) {
    const scaler *sc = t->j->scaler;
    for (int i = 0; i < sc->streams; i++) {
        size_t bytes = (size_t)sc->width[i] * sizeof(float);
        const char *name = t->data->stream[i].name;
        safetensors_entry each = {.type = SAFE_F32, .rank = 1, .dim = {sc->width[i]}, .bytes = bytes};
        entries[2 * i] = entries[2 * i + 1] = each;
        entries[2 * i].name = arena_format(a, "scaler.%s.mean", name);
        entries[2 * i].data = sc->mean[i];
        entries[2 * i + 1].name = arena_format(a, "scaler.%s.std", name);
        entries[2 * i + 1].data = sc->std[i];
    }
}

bool trainer_save(trainer *t, const char *path, err *e) {
    int n = graph_parameters(t->j->g), more = t->j->scaler ? 2 * t->j->scaler->streams : 0;
    if (!exec_read(t->x, weights_slab(t), t->weights, e)) return false;
    arena a;
    arena_init(&a);
    safetensors_entry *entries = arena_array(&a, (size_t)(n + more), sizeof *entries);
    safetensors_note note = {"format", "pt"};
    list_weights(t, entries);
    if (more) list_scaler(t, entries + n, &a);
    bool ok = safetensors_write(path, entries, n + more, &note, 1, e);
    arena_done(&a);
    return ok;
}
