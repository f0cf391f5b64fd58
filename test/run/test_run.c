// A directory that runs begin in, one after another: what becomes of the files of the one before.
#include "run/aside.h"
#include "run/run.h"
#include "support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static bool there(const char *path) {
    return access(path, F_OK) == 0;
}

static void put(const char *path) {
    support_put(path, path, strlen(path));
}

// Begins a run in "made"; where the earlier one went, "" where there was none.
static const char *begin(void) {
    static char where[64];
    err e = {0};
    run *r = run_begin("made", &e);
    support_ok(r != NULL, &e);
    snprintf(where, sizeof where, "%s", run_earlier(r) ? run_earlier(r) : "");
    run_close(r);
    return where;
}

static void refused(err_kind kind, const char *why) {
    err e = {0};
    assert_null(run_begin("made", &e));
    assert_int_equal(e.kind, kind);
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

// The whole directory, whatever lies there, and nothing of the runs before is lost.
static void a_run_is_set_aside_whole(void **state) {
    (void)state;
    put_member("made/member_1", true);
    put_member("made/member_12", false);
    put("made/config.yaml");
    put("made/notes");
    put("made/run.db-journal");
    assert_string_equal(begin(), "made.1");
    assert_true(there("made.1/member_1/best.safetensors") && there("made.1/member_12/config.yaml"));
    assert_true(there("made.1/config.yaml") && there("made.1/notes") && there("made.1/run.db-journal"));
    assert_true(there("made.1/member_12/plan.yaml.12.1.tmp"));
    assert_false(there("made/member_1") || there("made/config.yaml") || there("made/notes"));
    put("made/config.yaml");
    assert_string_equal(begin(), "made.2");
    assert_string_equal(begin(), "made.3");
    assert_true(there("made.1/member_1/best.safetensors") && there("made.2/config.yaml") && there("made.3/run.db"));
}

// The number is behind all that are there, so that the newest is the highest; other names do not count.
static void numbers_rise(void **state) {
    (void)state;
    put_member("made/member_1", true);
    mkdir("made.7", 0777); // not a run's, but in the way
    char *others = aside_newest("made");
    assert_null(others);
    put("made.9x");
    put("made.012");
    mkdir("made2.30", 0777);
    assert_string_equal(begin(), "made.8");
    assert_int_equal(rename("made.8", "kept"), 0);
    assert_string_equal(begin(), "made.8");
    char *newest = aside_newest("made/"), *none = aside_newest("nothing");
    assert_string_equal(newest, "made.8");
    assert_null(none);
    free(newest);
}

static void a_link_stays_a_link(void **state) {
    (void)state;
    put_member("made/member_1", true);
    assert_int_equal(rename("made", "disk"), 0);
    assert_int_equal(symlink("disk", "made"), 0);
    begin();
    struct stat st;
    assert_true(there("disk.1/member_1/best.safetensors") && there("disk/run.db") && !there("made.1"));
    assert_true(lstat("made", &st) == 0 && S_ISLNK(st.st_mode));
}

static void the_working_directory_is_not_moved(void **state) {
    (void)state;
    err e = {0};
    put_member("made/member_1", true);
    assert_int_equal(chdir("made/member_1"), 0);
    assert_null(run_begin("..", &e));
    assert_int_equal(e.kind, ERR_INPUT);
    assert_non_null(strstr(e.text, "the working directory"));
    assert_int_equal(chdir("../.."), 0);
    assert_true(there("made/member_1/best.safetensors") && !there("made.1"));
}

// Runs that lie below another's directory would be moved with it.
static void other_runs_are_not_moved(void **state) {
    (void)state;
    put_member("made/member_1", true);
    put_member("made/member_1.1", true); // these are its own
    put_member("made/earlier", true);
    assert_string_equal(begin(), "made.1");
    put_member("made/gold", true);
    refused(ERR_INPUT, "made: holds an earlier run, and made/gold lies below it; choose another run.dir");
    assert_true(there("made/gold/best.safetensors") && !there("made.2"));
}

static void a_run_in_use_is_left_alone(void **state) {
    (void)state;
    err e = {0};
    static const char *const dirs[] = {"made/member_1", "made"};
    put_member("made/member_1", true);
    for (int i = 0; i < 2; i++) {
        char why[64];
        run *user = run_resume(dirs[i], &e);
        support_ok(user != NULL, &e);
        snprintf(why, sizeof why, "%s: another process", dirs[i]);
        refused(ERR_RUN, why);
        assert_true(there("made/member_1/best.safetensors") && !there("made.1"));
        run_close(user);
    }
    assert_string_equal(begin(), "made.1");
}

static void a_run_that_was_set_aside_is_named(void **state) {
    (void)state;
    err e = {0};
    put_member("made/member_1", true);
    begin();
    assert_int_equal(rename("made", "gone"), 0);
    for (int i = 0; i < 2; i++) {
        assert_null(run_resume("made", &e));
        assert_non_null(strstr(e.text, "`tradewind train made.1/config.yaml --resume`"));
        mkdir("made", 0777);
        put("made/lock"); // what a kill behind the rename leaves
        assert_false(there("made/run.db"));
    }
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
    put("made/run.db"); // a database, by its name alone
    refused(ERR_INPUT, "made: has a run.db that no run has written");
    unlink("made/run.db");
    assert_string_equal(begin(), "");
    assert_true(there("made/notes") && there("made/run.db"));
}

// Every bit of a file: a flip is noticed, or was in the comment alone.
static void flip_each(const char *name, const char *text) {
    char file[64], *whole = run_text("made", name), *now;
    err e = {0};
    bool changed;
    snprintf(file, sizeof file, "made/%s", name);
    size_t n = strlen(whole);
    for (size_t i = 0; i < 8 * n; i++) {
        whole[i / 8] ^= (char)(1 << i % 8);
        support_put(file, whole, n);
        support_ok(run_read_summed("made", name, &now, &changed, &e), &e);
        bool same = strncmp(whole, text, strlen(text)) == 0;
        if (!same && (!changed || !run_text_changed(file))) fail_msg("%s, byte %zu, bit %zu", name, i / 8, i % 8);
        whole[i / 8] ^= (char)(1 << i % 8);
        free(now);
    }
    support_put(file, text, strlen(text)); // as earlier programs, or users, leave it
    assert_false(run_text_changed(file));
    free(whole);
}

static void changed_descriptions_and_plans_are_noticed(void **state) {
    (void)state;
    static const char config[] = "data:\n  set: synthetic\ntrain:\n  epochs: 2\n",
                      plan[] = "device: cpu\nprecision: fp32\nsamples:\n  all: 490\n";
    err e = {0};
    run *r = run_begin("made", &e);
    support_ok(r && run_put_description(r, config, &e) && run_put_plan(r, plan, &e), &e);
    run_close(r);
    assert_false(
        run_text_changed("made/config.yaml") || run_text_changed("made/plan.yaml") || run_text_changed("none"));
    flip_each("config.yaml", config);
    flip_each("plan.yaml", plan);
}

static void files_that_a_run_moves_are_known(void **state) {
    (void)state;
    put_member("made/member_1", true);
    put("made/notes");
    put("best.safetensors");
    mkdir("new", 0777);
    put("new/notes");
    assert_true(run_moves("made", "made/notes") && run_moves("./made", "made/../made/member_1/best.safetensors"));
    assert_false(run_moves("made", "best.safetensors") || run_moves("none", "made/notes"));
    assert_false(run_moves("new", "new/notes")); // no run was there
}

static void count_fold(void *arg, const char *dir) {
    (void)dir;
    ++*(int *)arg;
}

// Folds that cannot be listed are not absent: whoever counts on them would believe that there are none.
static void folds_that_cannot_be_listed_are_told(void **state) {
    (void)state;
    err e = {0};
    int folds = 0;
    struct rlimit files, none;
    mkdir("walk", 0777);
    mkdir("walk/fold_01", 0777);
    put("walk/fold_01/config.yaml");
    assert_true(run_each_fold("nowhere", count_fold, &folds, &e) && folds == 0);
    assert_true(run_each_fold("walk/fold_01/config.yaml", count_fold, &folds, &e) && folds == 0);
    assert_true(run_each_fold("walk", count_fold, &folds, &e) && folds == 1);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
    none = (struct rlimit){0, files.rlim_max};
    setrlimit(RLIMIT_NOFILE, &none);
    bool listed = run_each_fold("walk", count_fold, &folds, &e);
    setrlimit(RLIMIT_NOFILE, &files);
    assert_true(!listed && folds == 1 && e.kind == ERR_RUN);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, support_enter, support_leave)
    const struct CMUnitTest tests[] = {
        TEST(a_run_is_set_aside_whole),
        TEST(numbers_rise),
        TEST(a_link_stays_a_link),
        TEST(the_working_directory_is_not_moved),
        TEST(other_runs_are_not_moved),
        TEST(a_run_in_use_is_left_alone),
        TEST(a_run_that_was_set_aside_is_named),
        TEST(what_no_run_has_written_is_not_replaced),
        TEST(changed_descriptions_and_plans_are_noticed),
        TEST(files_that_a_run_moves_are_known),
        TEST(folds_that_cannot_be_listed_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
