// Identities as texts: what people read, what a plan and what tuning hold, and back.
#include "graph/identity.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const device_identity card = {.name = "cuda",
    .card = "NVIDIA H200",
    .arch = 90,
    .ptx = 75,
    .driver = "550.1",
    .cuda = 12040,
    .free = (size_t)100 << 30,
    .total = (size_t)139 << 30,
    .products = "cuBLASLt 13.1 (large), own (small)"};
static const device_identity cpu = {.name = "cpu", .isa = "avx512", .threads = 8};

typedef void (*writer)(const device_identity *i, char *text, size_t room);

static void writes(writer w, const device_identity *i, const char *expected) {
    char text[IDENTITY_ROOM];
    w(i, text, sizeof text);
    assert_string_equal(text, expected);
}

static void texts_hold_what_they_are_for(void **state) {
    (void)state;
    writes(identity_text, &card,
        "cuda, NVIDIA H200, sm_90, kernels from compute_75 PTX, driver 550.1, CUDA 12.4, 100.0 of 139.0 GB free; "
        "products by cuBLASLt 13.1 (large), own (small)");
    writes(identity_hardware, &card, "cuda, NVIDIA H200, sm_90, kernels from compute_75 PTX");
    writes(identity_driver, &card, "driver 550.1, CUDA 12.4");
    writes(identity_plan, &card, "cuda, NVIDIA H200, sm_90, kernels from compute_75 PTX, driver 550.1, CUDA 12.4");
    writes(identity_text, &cpu, "cpu, avx512, 8 threads");
    writes(identity_hardware, &cpu, "cpu, avx512, 8 threads");
    writes(identity_driver, &cpu, "none");
    writes(identity_plan, &cpu, "cpu, avx512");
    writes(identity_text, &(device_identity){.name = "cpu", .isa = "base", .threads = 1}, "cpu, base, 1 thread");
    writes(identity_driver, &(device_identity){.name = "cuda", .cuda = 13000}, "driver for CUDA 13.0");
}

// Every line of a plan is read to an identity that writes the same line.
static void a_plan_is_read_back(void **state) {
    (void)state;
    static const char *const lines[] = {"cpu, avx512", "cpu, base", "cuda, NVIDIA H200, sm_90, driver 550.1, CUDA 12.4",
        "cuda, NVIDIA H200, sm_90, driver for CUDA 12.4",
        "cuda, A, sm_75, kernels from compute_75 PTX, driver 1, CUDA 13.0", "cuda, a card of the test",
        "cuda, A, B and C, sm_90, driver 1, CUDA 13.0", "something else", "", "a, b, c, d, e"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        device_identity is;
        identity_read(&is, lines[i]);
        writes(identity_plan, &is, lines[i]);
    }
    device_identity is;
    identity_read(&is, "cuda, NVIDIA H200, sm_90, driver 550.1, CUDA 12.4; products by cuBLASLt 13.1 (large), own");
    assert_int_equal(is.arch, 90);
    assert_int_equal(is.cuda, 12040);
    assert_string_equal(is.driver, "550.1");
    writes(identity_plan, &is, "cuda, NVIDIA H200, sm_90, driver 550.1, CUDA 12.4");
}

static void hardware_decides(void **state) {
    (void)state;
    device_identity other = card;
    snprintf(other.driver, sizeof other.driver, "560.9");
    other.cuda = 13000;
    other.free = 0;
    other.products[0] = 0;
    assert_true(identity_same(&card, &other));
    other.ptx = 0;
    assert_false(identity_same(&card, &other));
    other = cpu;
    other.threads = 1;
    assert_true(identity_same(&cpu, &other));
    snprintf(other.isa, sizeof other.isa, "avx2");
    assert_false(identity_same(&cpu, &other));
    assert_false(identity_same(&cpu, &card));
}

// A text that is longer than its room is cut and ends.
static void a_short_room_is_kept(void **state) {
    (void)state;
    for (size_t room = 1; room < 200; room++) {
        char text[200];
        memset(text, 'x', sizeof text);
        identity_text(&card, text, room);
        assert_true(strlen(text) < room);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_hold_what_they_are_for),
        cmocka_unit_test(a_plan_is_read_back),
        cmocka_unit_test(hardware_decides),
        cmocka_unit_test(a_short_room_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
