// Jobs that forecast: every loss is learnt, forecasts come back in the data's units, metrics are what their definitions
// say, host and device give the same bits, a panel is trained on and a run that was stopped goes on to the same bits;
// and what a description may not ask for. Also the transformer's step: any split of a batch gives the same gradient,
// dropout of attention included.
#include "cpu/cpu.h"
#include "run/checkpoint.h"
#include "support.h"
#include "train/series.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum {
    SERIES = 4,
    LENGTH = 120,
    HORIZON = 4,
    WINDOW = 12,
    PER_SERIES = LENGTH - HORIZON - 1,
    SAMPLES = SERIES * PER_SERIES
};

static struct {
    float value[SERIES * LENGTH], target[SAMPLES * HORIZON];
    int32_t row[SAMPLES], first[SAMPLES];
    dataset d;
} market;

// Waves of very different sizes; samples of all series interleave, from each series' second value on.
static const dataset *series_data(void) {
    for (int s = 0; s < SERIES; s++)
        for (int t = 0; t < LENGTH; t++)
            market.value[s * LENGTH + t] =
                powf(20, (float)s) * (2 + sinf((float)t * 0.5f + (float)s) + 0.3f * sinf((float)t * 1.7f));
    for (int i = 0; i < SAMPLES; i++) {
        int s = i % SERIES, t = 1 + i / SERIES;
        market.row[i] = s * LENGTH + t;
        market.first[i] = s * LENGTH;
        memcpy(market.target + i * HORIZON, market.value + s * LENGTH + t + 1, HORIZON * sizeof(float));
    }
    dataset *d = &market.d;
    *d = (dataset){.name = "waves", .samples = SAMPLES, .streams = 1, .target_width = HORIZON, .target = market.target};
    d->horizon = HORIZON;
    d->stream[0] = (stream){.name = "series", .row = market.row, .first = market.first};
    d->stream[0].series = table_of(COLUMN_F32, SERIES * LENGTH, 1, market.value);
    return d;
}

// A forecasting job on a device

typedef struct {
    config *config;
    settings settings;
    model_spec model;
    split split;
    int64_t window[STREAMS_MOST];
    job job;
    queue *queue;
    solo *x;
} stand;

static config *read_keys(const char *assignments) {
    err e = {0};
    char text[1024], *rest = NULL;
    config *c = config_read("test", "", 0, settings_keys(), settings_key_count(), &e);
    support_ok(c != NULL, &e);
    snprintf(text, sizeof text, "%s", assignments);
    for (char *word = strtok_r(text, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
        support_ok(config_override(c, word, &e), &e);
    support_ok(config_check(c, &e), &e);
    return c;
}

#define SMALL "model.kind=nbeats model.width=24 model.blocks=2 data.windows.series=12 train.batch_size=64 "

static stand stand_open(const dataset *d, const char *assignments) {
    err e = {0};
    stand s = {.config = read_keys(assignments)};
    support_ok(settings_read(s.config, &s.settings, &e), &e);
    support_ok(settings_windows(s.config, d, s.window, &e) && settings_model(s.config, d, &s.model, &e), &e);
    s.split.train = part_of((span){0, SAMPLES});
    job_init(&s.job, d, &s.split, &s.settings, &s.model, s.window, NULL, PRECISION_FP32);
    graph_keep(s.job.g, s.job.logits);
    s.queue = cpu_device.open(&(queue_options){.threads = 2}, &e);
    support_ok(s.queue != NULL, &e);
    s.x = solo_new(&cpu_device, s.queue, s.job.g, &(solo_options){.rows = s.settings.batch_size}, &e);
    support_ok(s.x != NULL, &e);
    float *w = malloc((size_t)graph_slab_elements(s.job.g) * sizeof *w);
    assert_non_null(w);
    graph_initial(s.job.g, s.settings.seed, w);
    const float scale[2] = {1, 0};
    support_ok(solo_write(s.x, graph_slab(s.job.g, SLAB_WEIGHTS), w, &e), &e);
    support_ok(solo_write(s.x, s.job.seed, scale, &e), &e);
    free(w);
    return s;
}

static void stand_close(stand *s) {
    solo_free(s->x);
    cpu_device.close(s->queue);
    job_done(&s->job);
    config_free(s->config);
}

static void begin(stand *s, uint32_t epoch, bool shuffle) {
    err e;
    solo_step at = {.seed = 1, .count = SAMPLES, .epoch = epoch, .shuffle = shuffle, .lr = 3e-3f};
    support_ok(solo_step_write(s->x, &at, &e) && solo_clear(s->x, s->job.totals, &e), &e);
    for (int k = 0; k < FORECAST_METRICS; k++)
        if (s->job.metric[k].id) support_ok(solo_clear(s->x, s->job.metric[k], &e), &e);
}

static double mean_of(stand *s, tensor tally) {
    err e;
    double v[TALLY_COUNT];
    support_ok(solo_read(s->x, tally, v, &e), &e);
    return v[TALLY_SUM] / v[TALLY_NORM];
}

static int steps_of(const stand *s) {
    return (int)((SAMPLES + s->settings.batch_size - 1) / s->settings.batch_size);
}

static double epoch(stand *s, uint32_t number) {
    err e;
    begin(s, number, true);
    for (int i = 0; i < steps_of(s); i++)
        support_ok(solo_play(s->x, PASS_FIRST, &e) && solo_play(s->x, PASS_UPDATE, &e), &e);
    return mean_of(s, s->job.totals);
}

static void every_loss_is_learnt(void **state) {
    (void)state;
    for (int k = 0; k < LOSS_COUNT; k++) {
        char keys[256];
        const char *name = loss_name((loss_kind)k);
        if (loss_at((loss_kind)k)->classes) continue;
        snprintf(keys, sizeof keys, SMALL "train.loss=%s", name);
        stand s = stand_open(series_data(), keys);
        assert_true(s.job.forecasts && !s.job.confusion.id);
        double first = epoch(&s, 0), last = 0;
        for (uint32_t i = 1; i < 30; i++) last = epoch(&s, i);
        if (!(last < 0.35 * first)) fail_msg("%s: from %g to %g", name, first, last);
        stand_close(&s);
    }
}

// Keys of models that are not the one at hand count for nothing.
static void every_model_forecasts(void **state) {
    (void)state;
    for (int k = 0; k < MODEL_COUNT; k++) {
        char keys[512];
        snprintf(keys, sizeof keys,
            "data.windows.series=12 train.batch_size=64 model.kind=%s model.dropout=0 model.hidden.series=8 "
            "model.layers=1 "
            "model.head=0 model.widths=32 model.heads=2 model.stacks=trend,seasonality model.width=16 model.blocks=1",
            model_name((model_kind)k));
        stand s = stand_open(series_data(), keys);
        double first = epoch(&s, 0), last = 0;
        for (uint32_t i = 1; i < 10; i++) last = epoch(&s, i);
        if (!(last < 0.8 * first)) fail_msg("%s: from %g to %g", model_name((model_kind)k), first, last);
        stand_close(&s);
    }
}

// Expected metrics of one batch of the first samples in order, from its forecasts.
static void by_hand(const float *forecast, int64_t width, int64_t at, double want[FORECAST_METRICS]) {
    double count = 0, sum[FORECAST_METRICS] = {0};
    for (int b = 0; b < 64; b++) {
        double naive = 0;
        int row = market.row[b], first = market.first[b], begin = row - WINDOW + 1 > first ? row - WINDOW + 1 : first;
        for (int t = begin + 1; t <= row; t++) naive += fabs((double)market.value[t] - (double)market.value[t - 1]);
        naive /= row - begin;
        for (int h = 0; h < HORIZON; h++, count++) {
            double y = (double)forecast[b * width + at + h], t = (double)market.target[b * HORIZON + h];
            sum[FORECAST_MAE] += fabs(y - t);
            sum[FORECAST_MSE] += (y - t) * (y - t);
            sum[FORECAST_SMAPE] += 2 * fabs(y - t) / (fabs(y) + fabs(t));
            sum[FORECAST_MASE] += fabs(y - t) / naive;
        }
    }
    for (int k = 0; k < FORECAST_METRICS; k++) want[k] = sum[k] / count;
}

// In the data's units: a forecast is what the model gives times the level of its window.
static void forecasts_are_in_the_datas_units(void **state) {
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        err e;
        stand s = stand_open(series_data(), kind ? SMALL "train.loss=quantile train.quantiles=0.2,0.6,0.9" : SMALL);
        int64_t width = kind ? 3 * HORIZON : HORIZON;
        float y[64 * 3 * HORIZON], z[64 * 3 * HORIZON];
        double want[FORECAST_METRICS];
        epoch(&s, 0);
        begin(&s, 0, false);
        support_ok(solo_play(s.x, PASS_EVALUATE, &e), &e);
        support_ok(solo_peek(s.x, s.job.forecast, false, y, &e) && solo_peek(s.x, s.job.logits, false, z, &e), &e);
        for (int b = 0; b < 64; b++) {
            double level = 0;
            int row = market.row[b], first = market.first[b],
                count = row - first + 1 < WINDOW ? row - first + 1 : WINDOW;
            for (int t = row - count + 1; t <= row; t++) level += fabs((double)market.value[t]) / count;
            for (int64_t i = b * width; i < (b + 1) * width; i++)
                assert_true(fabs((double)y[i] - (double)z[i] * level) <= 1e-5 * level * (1 + fabs((double)z[i])));
        }
        by_hand(y, width, kind ? HORIZON : 0, want);
        for (int k = 0; k < FORECAST_METRICS; k++)
            assert_true(fabs(mean_of(&s, s.job.metric[k]) - want[k]) <= 1e-5 * want[k]);
        stand_close(&s);
    }
}

static float *trained_weights(const char *keys, size_t *bytes) {
    err e = {0};
    stand s = stand_open(series_data(), keys);
    loader *l = NULL;
    if (s.job.host) {
        loader_options o = job_loader(&s.job, &s.settings, false);
        l = loader_new(&market.d, &o, &e);
        support_ok(l != NULL, &e);
        loader_seek(l, &(loader_range){part_of((span){0, SAMPLES}), true, 3, 0});
    }
    begin(&s, 3, true);
    for (int i = 0; i < steps_of(&s); i++) {
        loader_batch b;
        const job_inputs *in = &s.job.input;
        if (l) assert_true(loader_next(l, &b));
        if (l) support_ok(solo_write(s.x, in->x[0], b.x[0], &e) && solo_write(s.x, in->target, b.target, &e), &e);
        if (l) support_ok(solo_write(s.x, in->weight, b.weight, &e), &e);
        support_ok(solo_play(s.x, PASS_FIRST, &e) && solo_play(s.x, PASS_UPDATE, &e), &e);
    }
    *bytes = (size_t)graph_slab_elements(s.job.g) * sizeof(float);
    float *w = malloc(*bytes);
    assert_non_null(w);
    support_ok(solo_read(s.x, graph_slab(s.job.g, SLAB_WEIGHTS), w, &e), &e);
    loader_free(l);
    stand_close(&s);
    return w;
}

static void host_and_device_agree(void **state) {
    static const char *const models[] = {"model.kind=nbeats model.width=8 model.blocks=2",
        "model.kind=transformer model.hidden.series=8 model.heads=2 model.layers=1 model.dropout=0.3"};
    (void)state;
    for (int i = 0; i < 2; i++) {
        char keys[256];
        float *w[2];
        size_t bytes = 0;
        for (int host = 0; host < 2; host++) {
            snprintf(keys, sizeof keys, "data.windows.series=12 train.batch_size=64 %s data.residency=%s", models[i],
                host ? "host" : "device");
            w[host] = trained_weights(keys, &bytes);
        }
        assert_memory_equal(w[0], w[1], bytes);
        free(w[0]);
        free(w[1]);
    }
}

// Training on a panel

enum { PANEL_SERIES = 12, PANEL_HORIZON = 6 };

// Series of any size with a trend and a season of 6, of different lengths; the caller frees it.
static dataset *panel_data(void) {
    err e = {0};
    static char text[1 << 16];
    size_t at = 0;
    panel p;
    dice d = {.seed = 4};
    for (int s = 0; s < PANEL_SERIES; s++) {
        at += (size_t)snprintf(text + at, sizeof text - at, "S%d", s);
        for (int t = 0; t < 60 + 7 * s; t++) {
            double trend = 10 * pow(3, s % 5) * (1 + 0.01 * (s + 1) * t);
            double v = trend * (1 + 0.3 * sin(t * 3.14159265 / 3 + s) + 0.02 * (double)dice_unit(&d));
            at += (size_t)snprintf(text + at, sizeof text - at, ",%.6g", v);
        }
        at += (size_t)snprintf(text + at, sizeof text - at, "\n");
        assert_true(at < sizeof text);
    }
    support_ok(panel_parse(&p, "made up", text, at, &e), &e);
    dataset *made = build_panel(&p, "made up", &(build_panel_options){PANEL_HORIZON, 8, 0}, &e);
    support_ok(made != NULL, &e);
    assert_int_equal(made->held, PANEL_SERIES);
    panel_done(&p);
    return made;
}

// A trainer on it, and what its epochs told.
typedef struct {
    config *config;
    settings settings;
    dataset *data;
    split split;
    model_spec model;
    int64_t window[STREAMS_MOST];
    job job;
    queue *queue;
    trainer *t;
    int64_t steps, stop_after; // 0: never
    const char *path;          // of the checkpoint at the stop
    epoch_report report[32];
    int64_t epochs;
    train_result result;
} course;

#define LEARNER                                                                                                        \
    "model.kind=nbeats model.width=32 model.blocks=2 data.windows.series=18 train.batch_size=64 train.patience=30 "

static void course_open(course *c, const char *keys) {
    err e = {0};
    *c = (course){.config = read_keys(keys), .data = panel_data()};
    support_ok(settings_read(c->config, &c->settings, &e), &e);
    support_ok(settings_windows(c->config, c->data, c->window, &e), &e);
    support_ok(settings_model(c->config, c->data, &c->model, &e), &e);
    support_ok(split_make(c->data, c->window, &c->settings.split, &c->split, &e), &e);
    job_init(&c->job, c->data, &c->split, &c->settings, &c->model, c->window, NULL, PRECISION_FP32);
    c->queue = cpu_device.open(&(queue_options){.threads = 2}, &e);
    support_ok(c->queue != NULL, &e);
    c->t = trainer_new(&cpu_device, c->queue, &c->job, c->data, &c->split, &c->settings, &e);
    support_ok(c->t != NULL, &e);
}

static void course_close(course *c) {
    trainer_free(c->t);
    cpu_device.close(c->queue);
    job_done(&c->job);
    dataset_free(c->data);
    config_free(c->config);
}

static bool on_step(void *arg, int64_t epoch, int64_t done, int64_t total) {
    course *c = arg;
    err e;
    (void)epoch;
    (void)done;
    (void)total;
    if (!c->stop_after || ++c->steps < c->stop_after) return true;
    support_ok(trainer_checkpoint(c->t, c->path, NULL, 0, &e), &e);
    return false;
}

static void on_epoch(void *arg, const epoch_report *r) {
    course *c = arg;
    assert_true(r->epoch <= 32);
    c->report[r->epoch - 1] = *r;
    c->epochs = r->epoch;
}

static void course_run(course *c) {
    err e;
    watcher w = {.on_step = on_step, .on_epoch = on_epoch, .arg = c};
    support_ok(trainer_run(c->t, &w, &c->result, &e), &e);
}

static series_score judged(course *c, const split_part *part, const float *forecast, int64_t width, int64_t at) {
    err e;
    series_score s = {0};
    support_ok(series_add_part(&s, c->data, part, c->window[0], c->settings.season, forecast, width, at, &e), &e);
    return s;
}

// The validation is what the panel holds out; forecasts of it get better than naive2's.
static void a_panel_is_learnt(void **state) {
    (void)state;
    static course c;
    course_open(&c, LEARNER "train.epochs=24 train.optimizer.lr=3e-3 train.schedule.kind=cosine train.metric=owa");
    assert_int_equal(c.split.validation.count, PANEL_SERIES);
    assert_int_equal(c.split.train.count + PANEL_SERIES, c.data->samples);
    assert_int_equal(c.split.test.count, 0);
    series_score naive = judged(&c, &c.split.validation, NULL, 0, 0);
    double naive2[2];
    series_naive2(&naive, naive2);
    trainer_judge_by(c.t, metric_find("owa"), naive2);
    course_run(&c);
    const score *first = &c.report[0].train, *last = &c.report[c.epochs - 1].train;
    assert_true(last->loss < 0.4 * first->loss && last->smape < first->smape);
    assert_true(isnan(last->mcc) && isnan(last->accuracy));
    const score *best = &c.report[c.result.best_epoch - 1].validation;
    assert_true(best->smape < naive2[0] && best->mase < naive2[1] && c.result.best < 1);
    assert_true(fabs(c.result.best - metric_owa(best->smape, best->mase, naive2[0], naive2[1])) < 1e-9);
    course_close(&c);
}

// Answers of trainer_predict, judged on the host, have the scores that the device counted.
static void predictions_are_what_is_scored(void **state) {
    static const char *const losses[] = {"train.loss=mae", "train.loss=quantile train.quantiles=0.2,0.4,0.9"};
    (void)state;
    for (int k = 0; k < 2; k++) {
        err e;
        static course c;
        char keys[512];
        snprintf(keys, sizeof keys, LEARNER "train.epochs=2 %s", losses[k]);
        course_open(&c, keys);
        course_run(&c);
        int64_t width = inference_width(trainer_job(c.t)), n = c.split.validation.count;
        assert_int_equal(width, k ? 3 * PANEL_HORIZON : PANEL_HORIZON);
        float *all = malloc((size_t)(n * width) * sizeof *all);
        score *s = calloc(1, sizeof *s);
        assert_true(all && s);
        support_ok(trainer_predict(c.t, &c.split.validation, all, &e), &e);
        support_ok(trainer_evaluate(c.t, &c.split.validation, s, &e), &e);
        series_score host = judged(&c, &c.split.validation, all, width, k ? PANEL_HORIZON : 0);
        assert_int_equal(host.forecasts, n);
        // Sums of f32 over 72 values.
        assert_true(fabs(series_mae(&host) - s->mae) <= 1e-5 * s->mae);
        assert_true(fabs(series_rmse(&host) - s->rmse) <= 1e-5 * s->rmse);
        assert_true(fabs(series_smape(&host) - s->smape) <= 1e-5 * s->smape);
        assert_true(fabs(series_mase(&host) - s->mase) <= 1e-5 * s->mase);
        free(all);
        free(s);
        course_close(&c);
    }
}

static void same_course(const course *a, const course *b) {
    assert_int_equal(a->epochs, b->epochs);
    for (int64_t i = 0; i < a->epochs; i++) {
        assert_memory_equal(&a->report[i].train, &b->report[i].train, sizeof(score));
        assert_memory_equal(&a->report[i].validation, &b->report[i].validation, sizeof(score));
    }
    err e;
    size_t bytes = (size_t)graph_slab_elements(a->job.g) * sizeof(float);
    float *w[2] = {malloc(bytes), malloc(bytes)};
    assert_true(w[0] && w[1]);
    support_ok(support_read(a->t, graph_slab(a->job.g, SLAB_WEIGHTS), w[0], &e), &e);
    support_ok(support_read(b->t, graph_slab(b->job.g, SLAB_WEIGHTS), w[1], &e), &e);
    assert_memory_equal(w[0], w[1], bytes);
    free(w[0]);
    free(w[1]);
}

#define SHORT LEARNER "train.epochs=3 train.loss=mase train.season=6 "

static void host_and_device_train_alike(void **state) {
    (void)state;
    static course a, b;
    course_open(&a, SHORT);
    course_open(&b, SHORT "data.residency=host");
    assert_true(b.job.host);
    course_run(&a);
    course_run(&b);
    same_course(&a, &b);
    course_close(&a);
    course_close(&b);
}

// Left within an epoch, where sums of errors are under way, and taken up again by another trainer.
static void a_stopped_run_goes_on_to_the_same_bits(void **state) {
    (void)state;
    for (int host = 0; host < 2; host++) {
        err e;
        static course whole, left, again;
        const char *keys = host ? SHORT "data.residency=host" : SHORT;
        course_open(&whole, keys);
        course_run(&whole);
        course_open(&left, keys);
        left.stop_after = 17;
        left.path = "left";
        course_run(&left);
        assert_true(left.result.interrupted && left.epochs < 3);
        course_open(&again, keys);
        memcpy(again.report, left.report, sizeof left.report);
        safetensors *f = checkpoint_open("left", &e);
        support_ok(f && trainer_restore(again.t, f, "left", &e), &e);
        safetensors_close(f);
        course_run(&again);
        same_course(&whole, &again);
        course_close(&whole);
        course_close(&left);
        course_close(&again);
    }
}

// Refused descriptions

static void refuses(const dataset *d, const char *keys, const char *text) {
    err e = {0};
    settings s;
    model_spec m;
    int64_t window[STREAMS_MOST];
    config *c = read_keys(keys);
    bool ok = settings_read(c, &s, &e) && settings_windows(c, d, window, &e) && settings_model(c, d, &m, &e);
    if (ok || !strstr(e.text, text)) fail_msg("%s: \"%s\" does not say \"%s\"", keys, ok ? "" : e.text, text);
    config_free(c);
}

static void what_cannot_be_is_told(void **state) {
    (void)state;
    const dataset *d = series_data();
    refuses(d, "train.loss=focal", "is for classes; the data have only targets");
    refuses(d, "model.kind=transformer model.heads=7", "7 do not share the width 128 of stream series evenly");
    refuses(d, "model.kind=transformer model.activation=tanh", "a transformer has relu or gelu");
    refuses(d, "model.kind=transformer data.windows.series=5000", "a transformer takes 4096 steps at most");
    refuses(d, "model.kind=nbeats model.stacks=trend,wave", "wave is not generic, trend or seasonality");
    refuses(d, "model.kind=nbeats model.stacks=[]", "must name 1 to 16 stacks");
    refuses(d, "train.quantiles=0.5,0.4", "rising numbers between 0 and 1");
    refuses(d, "train.quantiles=0.5,0.5", "rising numbers between 0 and 1");
    refuses(d, "train.quantiles=0.5,x", "rising numbers between 0 and 1");
    refuses(d, "train.quantiles=[]", "is empty");
    dataset wide = *d;
    wide.stream[0].series = table_of(COLUMN_F32, SERIES * LENGTH / 2, 2, market.value);
    refuses(&wide, "train.loss=mase", "mase needs one series");
    refuses(&wide, "data.level=mean", "is of one series alone");
    refuses(&wide, "model.kind=nbeats model.stacks=seasonality", "are of one series alone");
    wide.target = NULL;
    wide.label = market.row;
    wide.classes = 3;
    refuses(&wide, "train.loss=mae", "is for forecasts; the data have no targets");
}

// The transformer's step

static float *gradient_of(int64_t batch, int micro) {
    err e = {0};
    rig r;
    char keys[256];
    snprintf(keys, sizeof keys,
        "model.kind=transformer model.hidden.fast=8 model.hidden.slow=8 model.heads=2 "
        "model.dropout=0.3 train.loss=focal train.batch_size=%lld",
        (long long)batch);
    rig_open(&r, &cpu_device, 2, keys);
    trainer *t = rig_trainer(&r);
    solo_step at = {.seed = 3, .update = 5, .count = 100, .epoch = 1, .shuffle = 1};
    support_ok(support_step_write(t, &at, &e), &e);
    for (int i = 0; i < micro; i++) support_ok(support_play(t, i ? PASS_NEXT : PASS_FIRST, &e), &e);
    float *g = malloc((size_t)graph_slab_elements(r.job.g) * sizeof *g);
    assert_non_null(g);
    support_ok(support_read(t, graph_slab(r.job.g, SLAB_GRADIENTS), g, &e), &e);
    trainer_free(t);
    rig_close(&r);
    return g;
}

static void any_split_gives_the_transformers_gradient(void **state) {
    enum { CHECKED = 1000 };
    (void)state;
    float *whole = gradient_of(12, 1), *parts = gradient_of(3, 4);
    double most = 0;
    for (int i = 0; i < CHECKED; i++) most = fmax(most, fabs((double)whole[i]));
    assert_true(most > 0);
    for (int i = 0; i < CHECKED; i++) assert_true(fabs((double)whole[i] - (double)parts[i]) <= 1e-5 * most);
    free(whole);
    free(parts);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_loss_is_learnt),
        cmocka_unit_test(every_model_forecasts),
        cmocka_unit_test(forecasts_are_in_the_datas_units),
        cmocka_unit_test(host_and_device_agree),
        cmocka_unit_test(a_panel_is_learnt),
        cmocka_unit_test(predictions_are_what_is_scored),
        cmocka_unit_test(host_and_device_train_alike),
        cmocka_unit_test_setup_teardown(a_stopped_run_goes_on_to_the_same_bits, support_enter, support_leave),
        cmocka_unit_test(what_cannot_be_is_told),
        cmocka_unit_test(any_split_gives_the_transformers_gradient),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
