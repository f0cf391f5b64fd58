// The predictor: a row's result is the same to the bit whatever the number of rows in a micro-batch, the row's place
// among them, the number of threads and where the data lie; it is what the trainer predicts; and it takes little
// memory.
#include "train/predictor.h"

#include "cpu/cpu.h"
#include "support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SMALL "data.synthetic.bars=1500 data.windows.fast=12 data.windows.slow=5 model.dropout=0.2 "

static const char *const models[] = {SMALL "model.kind=lstm model.layers=2 model.hidden.fast=24 model.hidden.slow=9",
    SMALL "model.kind=mlp model.widths=72-33 model.activation=gelu",
    SMALL "model.kind=transformer model.heads=2 model.hidden.fast=16 model.hidden.slow=8 model.layers=2",
    SMALL "model.kind=nbeats model.blocks=2 model.width=40 model.layers=2"};
enum { MODELS = sizeof models / sizeof *models, SAMPLES = 530 };

// Predictions of a part by initial weights, in micro-batches of so many rows.
static float *predicted(rig *r, queue *q, int64_t rows, span samples) {
    err e;
    settings s = r->settings;
    s.batch_size = rows;
    job_split(&r->job, &s);
    predictor *p = predictor_new(&(predictor_place){.device = &cpu_device, .queue = q}, &r->job, &s, &e);
    support_ok(p != NULL, &e);
    graph *g = r->job.g;
    float *w = malloc((size_t)graph_slab_elements(g) * sizeof *w);
    float *out = malloc((size_t)(samples.count * inference_width(&r->job)) * sizeof *out);
    assert_true(w && out);
    graph_initial(g, 6, w);
    const inference *i = predictor_inference(p);
    support_ok(store_write(engine_store(i->engine), g, graph_slab(g, SLAB_WEIGHTS), w, &e), &e);
    split_part part = part_of(samples);
    support_ok(inference_predict(i, &part, out, &e), &e);
    predictor_free(p);
    free(w);
    return out;
}

// Rows that differ, the first of them named.
static int differing(
    const char *keys, const char *isa, int64_t rows, int64_t shift, const float *want, const float *is, int64_t width) {
    int count = 0;
    for (int64_t i = shift; i < SAMPLES; i++) {
        if (memcmp(want + i * width, is + (i - shift) * width, (size_t)width * sizeof *is) == 0) continue;
        if (!count++)
            print_message("%s\n  %s, %lld rows: sample %lld, at row %lld, has %.9g, not %.9g\n", keys,
                isa ? isa : "best", (long long)rows, (long long)i, (long long)((i - shift) % rows),
                (double)is[(i - shift) * width], (double)want[i * width]);
    }
    return count;
}

static queue *opened(const char *isa, int threads) {
    err e;
    return cpu_device.open(&(queue_options){.threads = threads, .isa = isa}, &e);
}

static int check_rows(const char *keys, const char *isa) {
    static const int64_t rows[] = {1, 7, 100, 512}, shifts[] = {0, 5, 129};
    rig r;
    queue *one = opened(isa, 1), *three = opened(isa, 3);
    if (!one) return 0; // the processor does not have it
    assert_non_null(three);
    int differ = 0;
    rig_open(&r, &cpu_device, 1, keys);
    job_keep_logits(&r.job);
    int64_t width = inference_width(&r.job);
    float *want = predicted(&r, one, 1, (span){0, SAMPLES});
    for (size_t k = 0; k < 4 * 3; k++) {
        int64_t shift = shifts[k % 3];
        float *is = predicted(&r, k % 2 ? one : three, rows[k / 3], (span){shift, SAMPLES - shift});
        differ += differing(keys, isa, rows[k / 3], shift, want, is, width);
        free(is);
    }
    free(want);
    rig_close(&r);
    cpu_device.close(one);
    cpu_device.close(three);
    return differ;
}

static void a_row_depends_on_nothing_but_itself(void **state) {
    (void)state;
    static const char *const sets[] = {NULL, "avx2", "base"}; // the first is the best that there is
    int differ = 0;
    for (int m = 0; m < MODELS; m++)
        for (int k = 0; k < (support_sanitized() ? 1 : 3); k++) differ += check_rows(models[m], sets[k]);
    assert_int_equal(differ, 0);
    char keys[400];
    snprintf(keys, sizeof keys, "%s data.residency=host", models[1]);
    assert_int_equal(check_rows(keys, "base"), 0);
}

// A predictor beside a training, in its space and on its data: it takes the weights by a copy on the device.
static void it_predicts_what_the_trainer_does(void **state) {
    (void)state;
    err e;
    rig r;
    bool more;
    rig_open(&r, &cpu_device, 1, SMALL "model.kind=mlp model.widths=16 train.batch_size=64 train.epochs=2");
    job_keep_logits(&r.job);
    settings few = r.settings;
    few.batch_size = 3;
    store *data = engine_data(&r.job, true);
    size_t own = trainer_memory(&r.job, &r.split, &r.settings, &cpu_device, r.queue).own,
           bytes = own + predictor_memory(&r.job, &few, &cpu_device, r.queue).own;
    space *s = space_new(&cpu_device, r.queue, bytes, &e);
    support_ok(s && store_place(data, r.queue, s, &e), &e);
    trainer *t =
        trainer_new_in(&(trainer_place){&cpu_device, r.queue, s, data}, &r.job, r.data, &r.split, &r.settings, &e);
    support_ok(t != NULL, &e);
    predictor *p = predictor_new(&(predictor_place){&cpu_device, r.queue, s, data}, &r.job, &few, &e);
    support_ok(p != NULL, &e);
    assert_int_equal(space_used(s), space_bytes(s));
    int64_t values = r.split.test.count * inference_width(&r.job);
    float *want = malloc((size_t)values * sizeof *want), *is = malloc((size_t)values * sizeof *is);
    assert_true(want && is && values > 0);
    for (int k = 0; k < 3; k++) {
        support_ok(trainer_advance(t, 5, &(watcher){.arg = NULL}, &more, &e), &e);
        support_ok(predictor_copy(p, engine_store(trainer_engine(t)), &e), &e);
        support_ok(inference_predict(predictor_inference(p), &r.split.test, is, &e), &e);
        support_ok(trainer_predict(t, &r.split.test, want, &e), &e);
        assert_memory_equal(want, is, (size_t)values * sizeof *want);
    }
    free(want);
    free(is);
    predictor_free(p);
    trainer_free(t);
    store_free(data);
    space_free(s);
    rig_close(&r);
}

static void one_row_takes_less_than_a_megabyte(void **state) {
    (void)state;
    rig r;
    rig_open(&r, &cpu_device, 1, "data.windows.fast=50 data.windows.slow=20 train.batch_size=1");
    assert_int_equal(graph_parameter_values(r.job.g), 26403);
    job_keep_logits(&r.job);
    engine_memory m = predictor_memory(&r.job, &r.settings, &cpu_device, r.queue);
    print_message("weights %zu, activations %zu, all %zu bytes\n", m.weights, m.activations, m.own);
    assert_true(m.own - m.weights < 1000000);
    assert_int_equal(m.gradients + m.moments, 0);
    rig_close(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_depends_on_nothing_but_itself),
        cmocka_unit_test(it_predicts_what_the_trainer_does),
        cmocka_unit_test(one_row_takes_less_than_a_megabyte),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
