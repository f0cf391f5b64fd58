// Ensembles' directories: descriptions and plans that cannot be read are not taken for absent, and a changed plan is
// refused.
#include "task/members.h"

#include "run/run.h"
#include "support.h"
#include "task/describe.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const char description[] = "model:\n  kind: mlp\ntrain:\n  ensemble: 3\n",
                  planned[] = "device: cpu, avx2\nprecision: fp32\nmicro_batch: 64\naccumulation: 1\nagain: 0\n"
                              "residency: device\nparameters: 99\ndata_sum: 00c0ffee\nsamples:\n  all: 490\n"
                              "  train: 343 from 0\n  validation: 73 from 350\n  labels: 00000000deadbeef\n";

static void put_run(void) {
    err e;
    run *r = run_begin("made", &e);
    support_ok(r && run_put_description(r, description, &e) && run_put_plan(r, planned, &e), &e);
    run_close(r);
}

// A file that is there, and whose reading fails as that of a broken disk.
static void break_file(const char *path) {
    unlink(path);
    assert_int_equal(symlink("/proc/self/mem", path), 0);
}

static void members_are_counted(void **state) {
    (void)state;
    int members;
    err e;
    put_run();
    support_ok(members_of("made", &members, &e), &e);
    assert_int_equal(members, 3);
    support_ok(members_of("none", &members, &e), &e);
    assert_int_equal(members, 0);
}

static void what_cannot_be_read_is_not_absent(void **state) {
    (void)state;
    int members;
    bool there, done;
    chosen c;
    err e;
    char *whole = task_description_complete(description);
    put_run();
    support_ok(members_plan("made", &c, &there, &e), &e);
    assert_true(there);
    break_file("made/plan.yaml");
    e.kind = 0;
    assert_false(members_plan("made", &c, &there, &e));
    assert_int_equal(e.kind, ERR_RUN);
    assert_false(members_done("made", whole, &c, &done, &e) || done);
    assert_int_equal(e.kind, ERR_RUN);
    assert_false(members_same("made", whole, &c, &e));
    assert_int_equal(e.kind, ERR_RUN);
    break_file("made/config.yaml");
    e.kind = 0;
    assert_false(members_of("made", &members, &e));
    assert_int_equal(e.kind, ERR_RUN);
    assert_false(members_same("made", whole, NULL, &e));
    assert_int_equal(e.kind, ERR_RUN);
    free(whole);
}

static void a_changed_plan_is_refused(void **state) {
    (void)state;
    chosen c, was;
    bool there;
    err e;
    char *text;
    put_run();
    support_ok(members_plan("made", &was, &there, &e), &e);
    text = run_text("made", "plan.yaml");
    char *at = strstr(text, "490");
    assert_non_null(at);
    at[2] = '1';
    support_put("made/plan.yaml", text, strlen(text));
    free(text);
    assert_false(members_plan("made", &c, &there, &e));
    assert_int_equal(e.kind, ERR_INPUT);
    assert_non_null(strstr(e.text, "made/plan.yaml"));
    support_put("made/plan.yaml", "nothing\n", 8); // without a sum, and yet no plan
    assert_false(members_plan("made", &c, &there, &e));
    assert_int_equal(e.kind, ERR_INPUT);
    assert_int_equal(unlink("made/plan.yaml"), 0);
    support_ok(members_plan("made", &c, &there, &e), &e);
    assert_false(there);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, support_enter, support_leave)
    const struct CMUnitTest tests[] = {
        TEST(members_are_counted),
        TEST(what_cannot_be_read_is_not_absent),
        TEST(a_changed_plan_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
