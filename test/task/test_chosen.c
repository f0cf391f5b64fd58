// The chosen plan: its text, read back, and which differences forbid to go on.
#include "task/chosen.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

// As commit 7a0ccf0 wrote it; behind the semicolon stands what some of its plans had.
#define REST                                                                                                           \
    "precision: bf16\nmicro_batch: 512\naccumulation: 6\nagain: 1\nresidency: host\ntuned: 2026-11-15\nthreads: 4\n"   \
    "products: library\nparameters: 26403\ndata_sum: 00c0ffee\nsamples:\n  all: 490000\n  train: 343000 from 0\n"      \
    "  validation: 73500 from 343050\n  labels: 00000000deadbeef\n  targets: 0123456789abcdef\n"
#define CARD "cuda, NVIDIA H200, sm_90, driver 550.1, CUDA 12.4"

static chosen read(const char *text) {
    chosen c;
    assert_true(chosen_read(&c, text));
    return c;
}

static void is_read_back(void **state) {
    (void)state;
    chosen c = read("device: " CARD "\n" REST);
    assert_int_equal(c.device.arch, 90);
    assert_int_equal(c.precision, PRECISION_BF16);
    assert_int_equal(c.micro, 512);
    assert_int_equal(c.parts, 6);
    assert_int_equal(c.products, PRODUCTS_LIBRARY);
    assert_true(c.host && c.summed && c.labelled && c.aimed);
    assert_int_equal(c.data_sum, 0xc0ffee);
    assert_int_equal(c.validation.first, 343050);
    assert_string_equal(c.tuned, "2026-11-15");
    char *text = chosen_write(&c);
    assert_string_equal(text, "device: " CARD "\n" REST);
    free(text);
    c = read("device: " CARD "; products by cuBLASLt 12.4 (large), own (small)\n" REST);
    text = chosen_write(&c);
    assert_string_equal(text, "device: " CARD "\n" REST);
    free(text);
}

static void what_is_no_plan_is_refused(void **state) {
    (void)state;
    chosen c;
    assert_false(chosen_read(&c, ""));
    assert_false(chosen_read(&c, "device: cpu, avx2\n"));
    assert_false(chosen_read(&c, "device: cpu, avx2\nfolds: 3\n" REST));
    char *text = strdup("device: cpu, avx2\n" REST), *at = strstr(text, "512");
    memcpy(at, "0x2", 3);
    assert_false(chosen_read(&c, text));
    memcpy(at, "-12", 3);
    assert_false(chosen_read(&c, text));
    memcpy(at, "512", 3);
    assert_true(chosen_read(&c, text));
    memcpy(strstr(text, "threads: 4") + 8, "-4", 2);
    assert_false(chosen_read(&c, text));
    free(text);
}

// A driver, threads, residency, what is recomputed and the day of tuning are told and go on.
static void bits_decide(void **state) {
    (void)state;
    char text[700];
    chosen was = read("device: " CARD "\n" REST), is = was;
    assert_int_equal(chosen_changes(&was, &is, text, sizeof text), 0);
    snprintf(is.device.driver, sizeof is.device.driver, "560.9");
    snprintf(is.device.products, sizeof is.device.products, "own");
    is.host = false;
    is.again = 0;
    is.threads = 0;
    is.tuned[0] = 0;
    assert_int_equal(chosen_differs(&was, &is, text, sizeof text), 0);
    assert_int_equal(chosen_changes(&was, &is, text, sizeof text), 5);
    assert_string_equal(text, "again is 0, was 1; residency is device, was host; threads is not given, was 4; tuned is "
                              "not given, was 2026-11-15; device has driver 560.9, CUDA 12.4, had driver 550.1, CUDA "
                              "12.4");
    is.device.arch = 75;
    assert_int_equal(chosen_differs(&was, &is, text, sizeof text), 1);
    assert_string_equal(text, "device is cuda, NVIDIA H200, sm_75, driver 560.9, CUDA 12.4, was " CARD);
    is = was;
    is.micro = 1024;
    is.labels++;
    assert_int_equal(chosen_differs(&was, &is, text, sizeof text), 2);
    assert_string_equal(text, "micro_batch is 1024, was 512; the data have changed: labels are others");
    is = was;
    is.train_spans = 7; // the same first sample and count in several spans
    assert_int_equal(chosen_differs(&was, &is, text, sizeof text), 1);
    char *written = chosen_write(&is);
    chosen back;
    assert_true(written && chosen_read(&back, written) && back.train_spans == 7);
    free(written);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_read_back),
        cmocka_unit_test(what_is_no_plan_is_refused),
        cmocka_unit_test(bits_decide),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
