// A directory that runs begin in, one after another: what becomes of the files of the one before.
#include "run/run.h"
#include "support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static bool there(const char *path) {
    return access(path, F_OK) == 0;
}

static void put(const char *path) {
    support_put(path, path, strlen(path));
}

// Whether files were moved.
static bool begin(void) {
    err e = {0};
    run *r = run_begin("made", &e);
    support_ok(r != NULL, &e);
    bool moved = run_moved(r);
    run_close(r);
    return moved;
}

static void refused(const char *why) {
    err e = {0};
    assert_null(run_begin("made", &e));
    assert_int_equal(e.kind, ERR_RUN);
    if (!strstr(e.text, why)) fail_msg("\"%s\" does not say %s", e.text, why);
}

static void put_member(const char *dir, bool weights) {
    char path[128];
    static const char *const files[] = {"config.yaml", "run.db", "lock", "plan.yaml.12.1.tmp", "best.safetensors"};
    mkdir("made", 0777);
    put("made/lock");
    put("made/training_log.txt");
    mkdir(dir, 0777);
    for (int i = 0; i < 4 + weights; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, files[i]);
        put(path);
    }
}

static void members_move_with_their_ensemble(void **state) {
    (void)state;
    put_member("made/member_1", true);
    put_member("made/member_12", false);
    put("made/config.yaml");
    put("made/notes");
    put_member("made/member_x", true);
    assert_true(begin());
    assert_true(there("made/earlier/member_1/best.safetensors") && there("made/earlier/member_12/config.yaml"));
    assert_true(there("made/earlier/config.yaml") && !there("made/config.yaml"));
    assert_false(there("made/member_1") || there("made/member_12"));
    assert_true(there("made/notes") && there("made/member_x/best.safetensors"));
    // The next pushes it out, all of it.
    mkdir("made/earlier/member_12/earlier", 0777);
    put("made/earlier/member_12/earlier/config.yaml");
    put_member("made/member_2", true);
    assert_true(begin());
    assert_true(there("made/earlier/member_2/best.safetensors"));
    assert_false(
        there("made/earlier/member_1") || there("made/earlier/member_12") || there("made/earlier/config.yaml"));
}

static void members_without_weights_are_removed(void **state) {
    (void)state;
    put_member("made/member_1", true);
    assert_true(begin());
    put_member("made/member_1", false);
    put("made/config.yaml");
    assert_false(begin());
    assert_false(there("made/member_1") || there("made/config.yaml"));
    assert_true(there("made/earlier/member_1/best.safetensors"));
}

static void what_is_of_others_stays(void **state) {
    (void)state;
    put_member("made/member_1", true);
    assert_true(begin());
    put("made/earlier/member_1/notes");
    put_member("made/member_1", true);
    refused("made/earlier/member_1: cannot be removed");
    assert_true(there("made/earlier/member_1/notes") && there("made/member_1/best.safetensors"));
}

static void a_member_in_use_is_left_alone(void **state) {
    (void)state;
    err e = {0};
    put_member("made/member_1", true);
    run *member = run_resume("made/member_1", &e);
    support_ok(member != NULL, &e);
    refused("made/member_1: another process trains here");
    assert_true(there("made/member_1/best.safetensors"));
    run_close(member);
    assert_true(begin());
}

// Files that only have the names of a run's.
static void what_no_run_has_written_is_not_replaced(void **state) {
    (void)state;
    static const char *const names[] = {"made/config.yaml", "made/best.safetensors", "made/last.safetensors"};
    err e = {0};
    mkdir("made", 0777);
    for (int i = 0; i < 3; i++) {
        put(names[i]);
        assert_null(run_begin("made", &e));
        assert_int_equal(e.kind, ERR_INPUT);
        assert_non_null(strstr(e.text, "that no run has written; choose another run.dir"));
        assert_true(there(names[i]) && !there("made/lock"));
        unlink(names[i]);
    }
    put("made/notes");
    assert_false(begin());
    put("made/config.yaml");
    assert_false(begin());
    assert_true(there("made/notes") && !there("made/config.yaml"));
}

static void files_that_a_run_replaces_are_known(void **state) {
    (void)state;
    put_member("made/member_1", true);
    mkdir("made/other", 0777);
    put("made/notes");
    put("made/best.safetensors");
    put("made/other/best.safetensors");
    put("best.safetensors");
    assert_true(
        run_replaces("made", "made/best.safetensors") && run_replaces("./made", "made/../made/best.safetensors"));
    assert_true(run_replaces("made", "made/member_1/best.safetensors"));
    assert_false(run_replaces("made", "made/notes") || run_replaces("made", "made/other/best.safetensors"));
    assert_false(run_replaces("made", "best.safetensors") || run_replaces("none", "made/best.safetensors"));
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, support_enter, support_leave)
    const struct CMUnitTest tests[] = {
        TEST(members_move_with_their_ensemble),
        TEST(members_without_weights_are_removed),
        TEST(what_is_of_others_stays),
        TEST(a_member_in_use_is_left_alone),
        TEST(what_no_run_has_written_is_not_replaced),
        TEST(files_that_a_run_replaces_are_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
