// Verdicts: figures of runs that people know, and the words that they should get.
#include "watch/verdict.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static verdict_figures unknown(void) {
    return (verdict_figures){.utilisation = NAN,
        .clock = NAN,
        .clock_most = NAN,
        .temperature = NAN,
        .power = NAN,
        .power_most = NAN,
        .process = NAN,
        .limit = NAN,
        .used = NAN,
        .total = NAN,
        .step_seconds = NAN,
        .parameters = NAN,
        .steps = NAN,
        .skipped = NAN,
        .patience = NAN};
}

static void says(verdict v, verdict_grade g, const char *words) {
    if (v.grade != g || !strstr(v.text, words)) fail_msg("%s: '%s', wanted %s", v.about, v.text, words);
}

static void nothing_is_said_of_what_is_not_known(void **state) {
    (void)state;
    verdict_figures f = unknown();
    verdict all[VERDICTS_MOST];
    assert_int_equal(verdicts(&f, all), 0);
}

static void utilisation_has_a_reason(void **state) {
    (void)state;
    verdict_figures f = unknown();
    f.card = true;
    f.utilisation = 93;
    says(verdict_utilisation(&f), VERDICT_GOOD, "93 %");
    f.utilisation = 25;
    f.parameters = 26403;
    says(verdict_utilisation(&f), VERDICT_POOR, "the model is too small for it");
    f.streamed = true;
    says(verdict_utilisation(&f), VERDICT_POOR, "the loader");
    f.streamed = false;
    f.parameters = 3e7;
    f.utilisation = 60;
    says(verdict_utilisation(&f), VERDICT_FAIR, "the host");
    f.step_seconds = 2e-4;
    says(verdict_utilisation(&f), VERDICT_FAIR, "too small");
    f.card = false;
    says(verdict_utilisation(&f), VERDICT_FAIR, "the run uses 60 % of the processors: few threads");
}

static void slow_clocks_have_a_reason(void **state) {
    (void)state;
    verdict_figures f = unknown();
    f.card = true;
    f.utilisation = 95;
    f.clock = 1800;
    f.clock_most = 1980;
    assert_string_equal(verdict_clocks(&f).text, "");
    f.clock = 1500;
    f.temperature = 87;
    says(verdict_clocks(&f), VERDICT_FAIR, "1500 of 1980 MHz: thermal throttling at 87 C");
    f.clock = 1000;
    f.temperature = 60;
    f.power = f.power_most = 220;
    says(verdict_clocks(&f), VERDICT_POOR, "power limit");
    f.utilisation = 10; // a card with little to do clocks down by itself
    assert_string_equal(verdict_clocks(&f).text, "");
}

static void memory_is_compared_with_what_is_nearer(void **state) {
    (void)state;
    verdict_figures f = unknown();
    f.process = 5e9;
    f.limit = 10e9;
    says(verdict_memory(&f), VERDICT_GOOD, "50 % of the limit at most; 5000 MB free");
    f.process = 9.8e9;
    says(verdict_memory(&f), VERDICT_POOR, "98 %");
    f.process = 1e9;
    f.used = 15e9;
    f.total = 16e9;
    f.card = true;
    says(verdict_memory(&f), VERDICT_FAIR, "with what others use");
    f.process = 11e9;
    says(verdict_memory(&f), VERDICT_POOR, "1000 MB beyond the limit");
}

// A card has a number of GB or a share, of which no more counts than there is; a run on the CPU has the limit of the
// host.
static void limits_are_those_of_the_device(void **state) {
    (void)state;
    static const char both[] = "gpu_optimization:\n  max_memory_gb: 2\n  max_host_memory_gb: 1\n";
    static const char share[] = "gpu_optimization:\n  max_memory_gb: 0\n  memory_fraction: 0.5\n";
    verdict_limit card = verdict_limit_read(both, true), host = verdict_limit_read(both, false);
    assert_true(verdict_limit_bytes(&card, NAN) == 0x1p31 && verdict_limit_bytes(&host, 0x1p33) == 0x1p30);
    assert_true(verdict_limit_bytes(&card, 0x1p30) == 0x1p30);
    card = verdict_limit_read(share, true);
    host = verdict_limit_read(share, false);
    assert_true(verdict_limit_bytes(&card, 3e9) == 1.5e9);
    assert_true(isnan(verdict_limit_bytes(&card, NAN)) && isnan(verdict_limit_bytes(&host, 3e9)));
    card = verdict_limit_read(NULL, true);
    assert_true(isnan(verdict_limit_bytes(&card, 3e9)));
}

static void skipped_steps_are_a_share(void **state) {
    (void)state;
    verdict_figures f = unknown();
    f.steps = 10000;
    f.skipped = 0;
    assert_string_equal(verdict_overflow(&f).text, "");
    f.skipped = 3;
    says(verdict_overflow(&f), VERDICT_GOOD, "3 of 10000");
    f.skipped = 500;
    says(verdict_overflow(&f), VERDICT_POOR, "bf16");
}

static void a_loss_that_stays_is_told(void **state) {
    (void)state;
    static const double falls[] = {1, 0.9, 0.8, 0.7, 0.65, 0.6}, stays[] = {1, 0.7, 0.71, 0.7001, 0.702, 0.701},
                        rises[] = {1, 0.7, 0.75, 0.8, 0.85, 0.9}, breaks[] = {1, 0.9, NAN};
    verdict_figures f = unknown();
    f.loss = falls;
    f.losses = 6;
    assert_string_equal(verdict_loss(&f).text, "");
    f.loss = stays;
    says(verdict_loss(&f), VERDICT_FAIR, "none better for 4 epochs, since 0.7 at epoch 2");
    f.patience = 20;
    assert_string_equal(verdict_loss(&f).text, "");
    f.patience = 6;
    f.loss = rises;
    says(verdict_loss(&f), VERDICT_POOR, "overfitting");
    f.loss = breaks;
    f.losses = 3;
    says(verdict_loss(&f), VERDICT_POOR, "not finite");
}

static void a_rate_that_fell_is_told(void **state) {
    (void)state;
    static const double steady[] = {900, 1000, 1010, 990, 500, 1000, 1000},
                        fell[] = {900, 1000, 1010, 990, 800, 790, 780};
    verdict_figures f = unknown();
    f.rate = steady;
    f.rates = 7;
    f.seconds = 60;
    assert_string_equal(verdict_throughput(&f).text, "");
    f.rate = fell;
    says(verdict_throughput(&f), VERDICT_FAIR, "790 samples/s, 21 % fewer than around epoch 2");
    f.agent = true;
    says(verdict_throughput(&f), VERDICT_FAIR, "790 steps/s, 21 % fewer than around iteration 2");
    f.seconds = 0.1; // noise
    assert_string_equal(verdict_throughput(&f).text, "");
}

static void the_worst_comes_first(void **state) {
    (void)state;
    verdict_figures f = unknown();
    verdict all[VERDICTS_MOST];
    f.process = 1;
    f.limit = 10;
    f.utilisation = 20;
    assert_int_equal(verdicts(&f, all), 2);
    assert_string_equal(all[0].about, "utilisation");
    assert_string_equal(all[1].about, "memory");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_said_of_what_is_not_known),
        cmocka_unit_test(utilisation_has_a_reason),
        cmocka_unit_test(slow_clocks_have_a_reason),
        cmocka_unit_test(memory_is_compared_with_what_is_nearer),
        cmocka_unit_test(limits_are_those_of_the_device),
        cmocka_unit_test(skipped_steps_are_a_share),
        cmocka_unit_test(a_loss_that_stays_is_told),
        cmocka_unit_test(a_rate_that_fell_is_told),
        cmocka_unit_test(the_worst_comes_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
