// The gradient noise scale: what the estimator makes of draws whose answer is known, what it refuses, and that
// measuring a job agrees with the gradients of all its samples, taken one by one.
#include "cpu/cpu.h"
#include "support.h"
#include "train/noise.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

// Draws

enum { WIDTH = 100 };

// The squared norm of a gradient of `batch` samples: each component is `mean` and noise of variance 1 / batch (a sum of
// 12 uniform numbers of variance 1/12 each, which is as good as normal here).
static double drawn_norm(dice *d, double mean, int64_t batch) {
    double norm = 0;
    for (int i = 0; i < WIDTH; i++) {
        double noise = 0;
        for (int k = 0; k < 12; k++) noise += 0.5 * (double)dice_unit(d);
        double g = mean + noise / sqrt((double)batch);
        norm += g * g;
    }
    return norm;
}

static noise_draws draws_of(dice *d, double mean, int64_t batch, int count) {
    noise_draws n = {.batch = batch};
    for (int i = 0; i < count; i++) noise_add(&n, drawn_norm(d, mean, batch));
    return n;
}

// A sample's gradient has WIDTH components of mean m and variance 1: tr(S) / |G|^2 is 1 / m^2. A hundred trials: the
// estimate is 10 % off at most where B is near the scale, and the errors it gives are those it makes.
static void a_known_scale_is_found(void **state) {
    (void)state;
    dice d = {.seed = 1};
    double squares = 0;
    enum { TRIALS = 100 };
    for (int i = 0; i < TRIALS; i++) {
        noise_draws small = draws_of(&d, 0.05, 32, 100), large = draws_of(&d, 0.05, 1024, 100);
        noise_scale s = noise_estimate(&small, &large);
        assert_true(s.measured && s.known);
        double off = (s.scale - 400) / s.error;
        squares += off * off;
        assert_true(fabs(s.scale - 400) < 0.1 * 400);
        assert_true(fabs(s.trace - WIDTH) < 0.1 * WIDTH);
        assert_true(fabs(s.gradient - WIDTH * 0.0025) < 0.1 * WIDTH * 0.0025);
    }
    // The mean of a hundred squares of numbers of variance 1 is within 0.6 of 1 but for four times its deviation.
    print_message("mean squared error, in the errors' unit: %.2f\n", squares / TRIALS);
    assert_true(squares / TRIALS > 0.4 && squares / TRIALS < 1.6);
}

static void what_cannot_be_told_is_not(void **state) {
    (void)state;
    dice d = {.seed = 2};
    // Nothing but noise: whatever the sign of what is left, it is not told from nothing.
    int known = 0;
    for (int i = 0; i < 100; i++) {
        noise_draws small = draws_of(&d, 0, 32, 50), large = draws_of(&d, 0, 1024, 50);
        noise_scale s = noise_estimate(&small, &large);
        assert_true(s.measured);
        known += s.known;
    }
    assert_true(known <= 8); // two deviations by chance: 2 of 100
    noise_draws small = draws_of(&d, 0.05, 32, 7), large = draws_of(&d, 0.05, 1024, 100);
    assert_false(noise_estimate(&small, &large).measured);
    // A larger batch with a larger gradient: there is no noise that falls.
    small = large = (noise_draws){.batch = 32};
    large.batch = 64;
    for (int i = 0; i < 20; i++) noise_add(&small, 1 + 0.01 * i), noise_add(&large, 2 + 0.01 * i);
    noise_scale s = noise_estimate(&small, &large);
    assert_true(s.measured && !s.known);
    // Two of the same size say nothing of how noise falls.
    large.batch = 32;
    assert_false(noise_estimate(&small, &large).known);
}

static void norms_that_are_not_finite_are_left_out(void **state) {
    (void)state;
    noise_draws d = {.batch = 4};
    noise_add(&d, 3);
    noise_add(&d, INFINITY);
    noise_add(&d, NAN);
    noise_add(&d, 5);
    assert_int_equal(d.count, 2);
    assert_float_equal(d.mean, 4, 1e-12);
    assert_float_equal(d.square, 2, 1e-12);
}

// A job

static const char keys[] = "model.kind=mlp model.widths=16 model.dropout=0 data.windows.fast=4 data.windows.slow=2 "
                           "data.synthetic.bars=3000 train.batch_size=64";

// The gradient of every training sample by itself, at the initial weights. Sampling without replacement from n samples
// has E|g_B|^2 = |G|^2 + tr(S) (1/B - 1/n), so what the estimator finds as |G|^2 is less by tr(S) / n.
static double exact_scale(rig *r, const float *weights) {
    err e;
    size_t n = (size_t)graph_slab_elements(r->job.g);
    float *g = malloc(n * sizeof *g);
    double *sum = calloc(n, sizeof *sum), squares = 0, mean = 0;
    assert_true(g && sum);
    solo *x = solo_new(r->device, r->queue, r->job.g, &(solo_options){.rows = 1}, &e);
    support_ok(x != NULL, &e);
    const float root[2] = {1, 0};
    split_part all = r->split.train;
    solo_step s = {.seed = 1, .first = (uint64_t)part_first(&all), .count = (uint64_t)all.count};
    support_ok(solo_write(x, graph_slab(r->job.g, SLAB_WEIGHTS), weights, &e), &e);
    support_ok(solo_write(x, r->job.seed, root, &e) && solo_step_write(x, &s, &e), &e);
    for (int64_t i = 0; i < all.count; i++) {
        support_ok(solo_play(x, PASS_FIRST, &e), &e);
        support_ok(solo_read(x, graph_slab(r->job.g, SLAB_GRADIENTS), g, &e), &e);
        support_ok(solo_play(x, PASS_UPDATE, &e), &e);
        for (size_t k = 0; k < n; k++) sum[k] += (double)g[k], squares += (double)g[k] * (double)g[k];
    }
    for (size_t k = 0; k < n; k++) mean += sum[k] / (double)all.count * sum[k] / (double)all.count;
    double trace = (squares - (double)all.count * mean) / (double)(all.count - 1);
    solo_free(x);
    free(sum);
    free(g);
    return trace / (mean - trace / (double)all.count);
}

static void a_jobs_scale_is_that_of_its_samples(void **state) {
    (void)state;
    err e = {0};
    rig r;
    rig_open(&r, &cpu_device, 2, keys);
    float *w = malloc((size_t)graph_slab_elements(r.job.g) * sizeof *w);
    assert_non_null(w);
    graph_initial(r.job.g, r.settings.seed, w);
    double exact = exact_scale(&r, w);
    chooser c = {.near = &r.job, .settings = &r.settings, .split = &r.split, .device = r.device, .queue = r.queue};
    noise_task n = {.device = r.device, .queue = r.queue, .chooser = &c, .data = r.data, .split = &r.split};
    n.small = (way){.batch = 8, .parts = 1};
    n.large = (way){.batch = 64, .parts = 4};
    n.weights[0] = n.weights[1] = w;
    n.places = 2;
    n.seconds = 120; // the draws end it
    noise_scale s[2];
    support_ok(noise_measure(&n, s, &e), &e);
    for (int k = 0; k < 2; k++) {
        print_message("exact %.1f, measured %.1f +- %.1f\n", exact, s[k].scale, s[k].error);
        assert_true(s[k].known);
        assert_true(fabs(s[k].scale - exact) < 4 * s[k].error);
        assert_true(s[k].error < 0.15 * exact);
    }
    free(w);
    rig_close(&r);
}

// Steps that lack rows are no draws of their batch: where an epoch has no other, there are none.
static void steps_that_lack_rows_are_left_out(void **state) {
    (void)state;
    err e = {0};
    rig r;
    rig_open(&r, &cpu_device, 1, keys);
    float *w = malloc((size_t)graph_slab_elements(r.job.g) * sizeof *w);
    assert_non_null(w);
    graph_initial(r.job.g, r.settings.seed, w);
    r.split.train = part_of((span){0, 60});
    chooser c = {.near = &r.job, .settings = &r.settings, .split = &r.split, .device = r.device, .queue = r.queue};
    noise_task n = {.device = r.device, .queue = r.queue, .chooser = &c, .data = r.data, .split = &r.split};
    n.small = (way){.batch = 4, .parts = 1};
    n.large = (way){.batch = 64, .parts = 1};
    n.weights[0] = w;
    n.places = 1;
    n.seconds = 0.4;
    noise_scale s;
    support_ok(noise_measure(&n, &s, &e), &e);
    assert_false(s.measured);
    free(w);
    rig_close(&r);
}

static bool never(void *arg) {
    (void)arg;
    return false;
}

static void a_stop_leaves_it_unknown(void **state) {
    (void)state;
    err e = {0};
    rig r;
    rig_open(&r, &cpu_device, 1, keys);
    float *w = calloc((size_t)graph_slab_elements(r.job.g), sizeof *w);
    assert_non_null(w);
    chooser c = {.near = &r.job, .settings = &r.settings, .split = &r.split, .device = r.device, .queue = r.queue};
    noise_task n = {.device = r.device, .queue = r.queue, .chooser = &c, .data = r.data, .split = &r.split};
    n.small = (way){.batch = 8, .parts = 1};
    n.large = (way){.batch = 64, .parts = 1};
    n.weights[0] = w;
    n.places = 1;
    n.seconds = 120;
    n.go_on = never;
    noise_scale s;
    support_ok(noise_measure(&n, &s, &e), &e);
    assert_false(s.measured || s.known);
    free(w);
    rig_close(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_known_scale_is_found),
        cmocka_unit_test(what_cannot_be_told_is_not),
        cmocka_unit_test(norms_that_are_not_finite_are_left_out),
        cmocka_unit_test(a_jobs_scale_is_that_of_its_samples),
        cmocka_unit_test(steps_that_lack_rows_are_left_out),
        cmocka_unit_test(a_stop_leaves_it_unknown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
