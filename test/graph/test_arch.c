// Kernels that a build has for a card, and names of devices.
#include "graph/arch.h"
#include "graph/device_name.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

// Machine code serves its own major number from its minor number on, PTX all that is as new; machine code goes first.
static void a_card_gets_what_it_can_use(void **state) {
    (void)state;
    static const char release[] = "75-real:80-real:86-real:89-real:90a-real:120-real:90-virtual";
    static const struct {
        const char *built;
        int card, arch;
        bool ptx;
    } cases[] = {
        {"90a-real:75-virtual", 90, 90, false},
        {"90a-real:75-virtual", 86, 75, true},
        {"90a-real:75-virtual", 100, 75, true},
        {"90a-real:75-virtual", 70, 0, false},
        {"86-real:75-virtual", 80, 75, true},
        {"86-real:75-virtual", 89, 86, false},
        {"80-real:80-virtual", 86, 80, false},
        {"80:75-virtual", 90, 80, true},
        {"90a-virtual", 90, 90, true},
        {"90a-virtual", 100, 0, false},
        {"100f-real", 103, 100, false},
        {"100f-virtual", 110, 0, false},
        {"100f-virtual", 103, 100, true},
        {release, 75, 75, false},
        {release, 87, 86, false},
        {release, 90, 90, false},
        {release, 100, 90, true},
        {release, 121, 120, false},
        {"", 90, 0, false},
        {NULL, 90, 0, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        arch_kernels k = arch_kernels_of(cases[i].built, cases[i].card);
        if (k.arch != cases[i].arch || k.ptx != cases[i].ptx)
            fail_msg("case %zu: sm_%d gets %d, %s", i, cases[i].card, k.arch, k.ptx ? "from PTX" : "machine code");
    }
    assert_int_equal(arch_newest(release), 120);
    assert_int_equal(arch_newest("75-virtual"), 0);
    assert_int_equal(arch_newest("86:90-virtual"), 86);
}

static void writes(const char *built, const char *expected) {
    char text[128];
    arch_text(built, text, sizeof text);
    assert_string_equal(text, expected);
}

static void a_build_is_told(void **state) {
    (void)state;
    writes("90a-real:75-virtual", "sm_90a, and for others from PTX of compute_75");
    writes("86-real:89-real:80-virtual:75-virtual", "sm_86, sm_89, and for others from PTX of compute_80, compute_75");
    writes("86", "sm_86, and for others from PTX of compute_86");
    writes("86-real", "sm_86");
    writes("75-virtual", "from PTX of compute_75");
    for (size_t room = 1; room < 40; room++) {
        char text[40];
        arch_text("86-real:89-real:80-virtual", text, room);
        assert_true(strlen(text) < room);
    }
}

static void devices_have_names(void **state) {
    (void)state;
    static const char *const wrong[] = {"", "gpu", "cuda:", "cuda:-1", "cuda:+1", "cuda: 1", "cuda:1x", "cuda:1000",
        "cuda1", "cpu:0", "auto:1", "CUDA"};
    device_name n;
    assert_true(device_name_read(&n, "auto") && n.kind == DEVICE_AUTO && n.number == 0);
    assert_true(device_name_read(&n, "cpu") && n.kind == DEVICE_CPU && n.number == 0);
    assert_true(device_name_read(&n, "cuda") && n.kind == DEVICE_CUDA && n.number == 0);
    assert_true(device_name_read(&n, "cuda:0") && n.kind == DEVICE_CUDA && n.number == 0);
    assert_true(device_name_read(&n, "cuda:12") && n.kind == DEVICE_CUDA && n.number == 12);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) assert_false(device_name_read(&n, wrong[i]));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_card_gets_what_it_can_use),
        cmocka_unit_test(a_build_is_told),
        cmocka_unit_test(devices_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
