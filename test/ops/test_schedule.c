// Schedules against PyTorch's, written out as torch.optim.lr_scheduler defines them: recursively where it is recursive.
#include "ops/schedule.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static const double pi = 3.14159265358979323846;

static void near(double is, double want) {
    if (!(fabs(is - want) <= 1e-13)) fail_msg("%.17g instead of %.17g", is, want);
}

static void the_cosine_is_one(void **state) {
    (void)state;
    for (int i = 0; i <= 100000; i++) {
        double x = i / 100000.0, want = (1 + cos(pi * x)) / 2;
        if (!(fabs(schedule_fall(x) - want) <= 3e-16)) fail_msg("at %.17g: %.17g", x, schedule_fall(x) - want);
    }
    near(schedule_fall(0), 1);
    near(schedule_fall(0.5), 0.5);
    near(schedule_fall(1), 0);
}

static void powers_keep_their_digits(void **state) {
    (void)state;
    double plain = 1;
    for (uint64_t n = 0; n < 3000; n++, plain *= 0.999) {
        double is = schedule_power(0.999, n);
        assert_true(fabs(is - plain) <= 1e-12 * plain);
    }
    assert_true(fabs(schedule_power(0.999999, 1000000) - exp(1e6 * log(0.999999))) < 1e-9);
    assert_true(schedule_power(0.1, 100000) == 0);
    assert_true(schedule_power(1, UINT64_MAX) == 1);
}

static void constant_is_one(void **state) {
    (void)state;
    lr_schedule s = {.kind = SCHEDULE_CONSTANT};
    static const uint64_t at[] = {0, 1, 1000, UINT64_MAX};
    for (int i = 0; i < 4; i++) assert_true(schedule_factor(&s, at[i]) == 1);
    assert_true(schedule_rate(&s, 1e-3f, 7) == (double)1e-3f);
}

// LinearLR: the first factor, then times 1 + (end - start) / (iters * start + (t - 1) * (end - start)) until t = iters.
static double linear_next(double factor, double start, double end, int iters, int t) {
    return t > iters ? factor : factor * (1 + (end - start) / (iters * start + (t - 1) * (end - start)));
}

static void warm_up_is_LinearLR(void **state) {
    (void)state;
    lr_schedule s = {.kind = SCHEDULE_CONSTANT, .warmup = 5, .start = 1.0 / 3};
    double factor = s.start;
    for (int t = 0; t < 12; t++) {
        if (t) factor = linear_next(factor, s.start, 1, 5, t);
        near(schedule_factor(&s, (uint64_t)t), factor);
    }
    assert_true(schedule_factor(&s, 0) == s.start && schedule_factor(&s, 5) == 1 && schedule_factor(&s, 4) < 1);
    lr_schedule from_zero = {.kind = SCHEDULE_CONSTANT, .warmup = 4};
    static const double want[] = {0, 0.25, 0.5, 0.75, 1, 1};
    for (uint64_t t = 0; t < 6; t++) assert_true(schedule_factor(&from_zero, t) == want[t]);
}

// CosineAnnealingLR, with a rate of 1: eta_min + (1 - eta_min) (1 + cos(pi t / T_max)) / 2, and its recursion.
static void cosine_is_CosineAnnealingLR(void **state) {
    (void)state;
    enum { T = 20 };
    lr_schedule s = {.kind = SCHEDULE_COSINE, .total = T, .end = 0.05};
    double lr = 1;
    for (int t = 0; t <= T; t++) {
        if (t) lr = (1 + cos(pi * t / T)) / (1 + cos(pi * (t - 1) / T)) * (lr - 0.05) + 0.05;
        near(schedule_factor(&s, (uint64_t)t), 0.05 + 0.95 * (1 + cos(pi * t / T)) / 2);
        near(schedule_factor(&s, (uint64_t)t), lr);
    }
    assert_true(schedule_factor(&s, 0) == 1 && schedule_factor(&s, T) == 0.05 && schedule_factor(&s, 1000) == 0.05);
    assert_true(schedule_factor(&s, T - 1) > 0.05);
}

static void linear_is_LinearLR(void **state) {
    (void)state;
    lr_schedule s = {.kind = SCHEDULE_LINEAR, .total = 7, .end = 0.2};
    double factor = 1;
    for (int t = 0; t < 12; t++) {
        if (t) factor = linear_next(factor, 1, 0.2, 7, t);
        near(schedule_factor(&s, (uint64_t)t), factor);
    }
}

// SequentialLR: behind the warm-up the next schedule begins anew, and ends with the run.
static void warm_up_goes_before(void **state) {
    (void)state;
    enum { W = 6, T = 30 };
    static const schedule_kind kinds[] = {SCHEDULE_COSINE, SCHEDULE_LINEAR, SCHEDULE_STEP};
    for (int k = 0; k < 3; k++) {
        lr_schedule s = {kinds[k], W, T, 4, 0.5, 0.1, 0.01, 0}, rest = {kinds[k], 0, T - W, 4, 0.5, 0.1, 0.01, 0};
        for (uint64_t t = 0; t < W; t++) near(schedule_factor(&s, t), 0.1 + 0.9 * (double)t / W);
        for (uint64_t t = W; t < T + 5; t++) assert_true(schedule_factor(&s, t) == schedule_factor(&rest, t - W));
        assert_true(schedule_factor(&s, W) == 1);
    }
}

static void a_warm_up_may_be_all(void **state) {
    (void)state;
    lr_schedule s = {.kind = SCHEDULE_COSINE, .warmup = 10, .total = 10, .start = 0.1, .end = 0};
    assert_true(schedule_factor(&s, 9) < 1 && schedule_factor(&s, 9) > 0.9);
    assert_true(schedule_factor(&s, 10) == 0);
}

// StepLR multiplies by gamma where t is a multiple of step_size; ExponentialLR at every t.
static void steps_are_StepLR_and_ExponentialLR(void **state) {
    (void)state;
    for (int every = 1; every < 5; every += 3) {
        lr_schedule s = {.kind = SCHEDULE_STEP, .every = (uint64_t)every, .gamma = 0.9};
        double lr = 1;
        for (int t = 0; t < 50; t++) {
            if (t && t % every == 0) lr *= 0.9;
            near(schedule_factor(&s, (uint64_t)t), lr);
        }
    }
}

// OneCycleLR with anneal_strategy "cos", three_phase False and a largest rate of 1.
static double one_cycle(int t, int total, double share, double divide, double divide_last) {
    double initial = 1 / divide, last = initial / divide_last, first_end = share * total - 1, end = total - 1;
    if (t <= first_end) return 1 + (initial - 1) / 2 * (1 + cos(pi * (t / first_end)));
    return last + (1 - last) / 2 * (1 + cos(pi * ((t - first_end) / (end - first_end))));
}

static void one_cycle_is_OneCycleLR(void **state) {
    (void)state;
    static const int totals[] = {10, 20, 101, 1000};
    for (int k = 0; k < 4; k++) {
        int n = totals[k];
        lr_schedule s = {.kind = SCHEDULE_ONE_CYCLE, .total = (uint64_t)n, .start = 1.0 / 25, .end = 1.0 / 25 / 1e4};
        s.peak = 0.3 * n - 1;
        for (int t = 0; t < n; t++) near(schedule_factor(&s, (uint64_t)t), one_cycle(t, n, 0.3, 25, 1e4));
        assert_true(schedule_factor(&s, 0) == s.start);
        near(schedule_factor(&s, (uint64_t)n - 1), s.end);
        assert_true(schedule_factor(&s, (uint64_t)n + 3) == s.end);
    }
}

static void short_cycles_are_numbers(void **state) {
    (void)state;
    for (uint64_t total = 1; total < 5; total++) {
        lr_schedule s = {.kind = SCHEDULE_ONE_CYCLE, .total = total, .start = 0.04, .end = 0.01};
        for (uint64_t t = 0; t < 8; t++) {
            double f = schedule_factor(&s, t);
            assert_true(f >= 0.01 && f <= 1);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_cosine_is_one),
        cmocka_unit_test(powers_keep_their_digits),
        cmocka_unit_test(constant_is_one),
        cmocka_unit_test(warm_up_is_LinearLR),
        cmocka_unit_test(cosine_is_CosineAnnealingLR),
        cmocka_unit_test(linear_is_LinearLR),
        cmocka_unit_test(warm_up_goes_before),
        cmocka_unit_test(a_warm_up_may_be_all),
        cmocka_unit_test(steps_are_StepLR_and_ExponentialLR),
        cmocka_unit_test(one_cycle_is_OneCycleLR),
        cmocka_unit_test(short_cycles_are_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
