// Ensembles over time, from outside: refused where they cannot go on, begun anew, and used without their run.db.
#include "cli/program.h"
#include "support.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static void put_description(void) {
    put_text("run.yaml", "data: {synthetic: {bars: 1500}, split: {embargo: 0}}\nmodel: {kind: mlp, widths: 4}\n"
                         "train: {epochs: 1, ensemble: 3}\nrun: {dir: made}\n");
}

static bool there(const char *path) {
    return access(path, F_OK) == 0;
}

static void shell(const char *command) {
    if (system(command) != 0) fail_msg("%s", command);
}

// A member that cannot go on says so, and the ensemble is as good as before.
static void refused_resumes_change_nothing(void **state) {
    (void)state;
    put_description();
    assert_int_equal(RUN("train", "run.yaml", "-q"), 0);
    shell("cp made/config.yaml was.yaml");
    complains(RUN("train", "made/config.yaml", "--resume", "train.optimizer.lr=0.01"),
        "made: was made under another description: train\\.optimizer\\.lr is 0\\.01, was [^;]*; put that back, or .*");
    complains(RUN("train", "made/config.yaml", "--resume", "train.seed=9"),
        "made: was made under another description: train\\.seed is 9, was 1; .*");
    complains(RUN("train", "made/config.yaml", "--resume", "train.ensemble=2"),
        "made: has 3 members, to which more can be added; leave train\\.ensemble=2 out, or .*");
    complains(RUN("train", "made/config.yaml", "--resume", "train.ensemble=1"),
        "made: holds an ensemble of 3; set train\\.ensemble=3");
    same_bytes("made/config.yaml", "was.yaml");
    assert_int_equal(RUN("evaluate", "made"), 0);
    assert_int_equal(RUN("train", "made/config.yaml", "--resume", "train.epochs=2", "train.ensemble=4"), 0);
    matches("out", "^member +1 of 4, seed 1\n.*\nensemble +made: 4 members");
    assert_int_equal(RUN("evaluate", "made", "--json"), 0);
    assert_true(number("members") == 4);
}

static void single_runs_become_no_ensembles(void **state) {
    (void)state;
    put_description();
    assert_int_equal(RUN("train", "run.yaml", "-q", "train.ensemble=1"), 0);
    shell("cp made/config.yaml was.yaml");
    complains(RUN("train", "made/config.yaml", "--resume", "train.ensemble=2"),
        "made: holds a single run; set train\\.ensemble back to 1, or train without --resume");
    same_bytes("made/config.yaml", "was.yaml");
    assert_false(there("made/member_1"));
    assert_int_equal(RUN("evaluate", "made"), 0);
    complains(RUN("train", "run.yaml", "--resume", "run.dir=none"), "none: there is no run to resume; .*");
    assert_false(there("none"));
}

static void put_panel(int more) {
    FILE *f = fopen("p.csv", "w");
    assert_non_null(f);
    for (int s = 0; s < 4; s++) {
        fprintf(f, "S%d", s);
        for (int t = 0; t < 40; t++) fprintf(f, ",%d", 100 + t * (s + 1) + more);
        fputc('\n', f);
    }
    fclose(f);
    assert_int_equal(RUN("import", "p.csv", "-o", "p.npz", "--horizon=2", "-q"), 0);
}

// Members of one ensemble have seen the same data, also those that are done.
static void members_have_the_same_data(void **state) {
    (void)state;
    put_panel(0);
    put_text("run.yaml", "data: {set: p.npz, windows: {series: 6}}\nmodel: {kind: nbeats, width: 8, blocks: 1}\n"
                         "train: {epochs: 1, ensemble: 2}\nrun: {dir: made}\n");
    assert_int_equal(RUN("train", "run.yaml", "-q"), 0);
    put_panel(1);
    complains(RUN("train", "made/config.yaml", "--resume", "train.ensemble=3"),
        "made/member_1: was made under another plan: the data have changed: targets are others; .*");
    assert_false(there("made/member_3"));
    put_panel(0);
    assert_int_equal(RUN("train", "made/config.yaml", "--resume", "train.ensemble=3"), 0);
    matches("out", "^member +1 of 3, seed 1: trained already\nmember +2 of 3, seed 2: trained already\nmember +3 of");
}

// Begun anew under another description, stopped and gone on with: the old ensemble is whole in made.1.
static void beginning_anew_moves_everything(void **state) {
    (void)state;
    put_description();
    assert_int_equal(RUN("train", "run.yaml", "-q"), 0);
    shell("cp -r made was");
    complains(RUN("train", "run.yaml", "train.init_from=none.safetensors"), ".*none\\.safetensors: .*No such file.*");
    same_bytes("made/member_3/best.safetensors", "was/member_3/best.safetensors");
    const char *anew[] = {
        "train", "run.yaml", "train.ensemble=2", "train.epochs=20000", "train.patience=20000", "train.seed=8", NULL};
    pid_t child = program_start("one", anew);
    wait_for("one", "epoch   2 ");
    kill(child, SIGTERM);
    assert_int_equal(program_finish(child), 0);
    matches("one", "^earlier +the run that was in made is now made\\.1\nmember +1 of 2, seed 8\n");
    assert_true(there("made/member_1") && !there("made/member_2") && !there("made/member_3"));
    same_bytes("made.1/config.yaml", "was/config.yaml");
    same_bytes("made.1/member_3/best.safetensors", "was/member_3/best.safetensors");
    assert_int_equal(RUN("evaluate", "made.1"), 0);
    complains(RUN("evaluate", "made"), "made: its members are not all trained; .*");
    assert_int_equal(unlink("made/run.db"), 0);
    complains(RUN("evaluate", "made"), "made: its members are not all trained; .*");
    shell("rm -r made/member_1 && cp -r was/member_1 made");
    complains(RUN("train", "made/config.yaml", "--resume", "train.epochs=1"),
        "made/member_1: was made under another description: [^;]*train\\.seed is 8, was 1; .*");
    shell("rm -r made/member_1");
    assert_int_equal(RUN("train", "made/config.yaml", "--resume", "-q", "train.epochs=1"), 0);
    assert_int_equal(RUN("evaluate", "made"), 0);
    assert_int_equal(RUN("train", "run.yaml", "-q", "train.ensemble=1"), 0);
    assert_true(there("made/best.safetensors") && !there("made/member_1"));
    assert_true(there("made.2/member_2") && !there("made.2/member_3") && there("made.1/member_3"));
}

// A member whose only checkpoint is damaged begins anew, and the ensemble goes on, and can begin anew as a whole.
static void a_damaged_member_begins_anew(void **state) {
    (void)state;
    put_description();
    assert_int_equal(RUN("train", "run.yaml", "-q"), 0);
    shell(
        "cp -r made was; rm -f made/member_2/checkpoint_*; : >made/member_2/last.safetensors; rm made/member_2/run.db");
    assert_int_equal(RUN("train", "run.yaml", "--resume"), 0);
    same_bytes("made/member_2/best.safetensors", "was/member_2/best.safetensors");
    assert_true(there("made/member_2.1/best.safetensors"));
    assert_int_equal(RUN("train", "run.yaml", "-q", "train.ensemble=2"), 0);
    assert_true(there("made.1/member_2.1/best.safetensors") && !there("made/member_3"));
}

static void an_ensemble_needs_no_run_db(void **state) {
    (void)state;
    put_description();
    assert_int_equal(RUN("train", "run.yaml", "-q"), 0);
    shell("rm made/run.db made/member_2/run.db");
    assert_int_equal(RUN("evaluate", "made"), 0);
    assert_int_equal(RUN("predict", "made", "-o", "p.csv"), 0);
    shell("mv made/member_3/best.safetensors lost");
    complains(RUN("evaluate", "made"), "made: its members are not all trained; go on with `tradewind train made/con.*");
    // Its advice brings the weights back, from the checkpoint of the end.
    assert_int_equal(RUN("train", "made/config.yaml", "--resume", "-q"), 0);
    same_bytes("made/member_3/best.safetensors", "lost");
    assert_int_equal(RUN("evaluate", "made"), 0);
}

static void all_seeds_are_checked_first(void **state) {
    (void)state;
    put_description();
    complains(RUN("train", "run.yaml", "train.seed=999999999999999"), "member 3: .*train\\.seed.*");
    assert_false(there("made"));
    assert_int_equal(RUN("train", "run.yaml", "-q", "train.seed=999999999999998"), 0);
}

int main(void) {
    program_use(TRADEWIND_BINARY);
#define TEST(name) cmocka_unit_test_setup_teardown(name, support_enter, support_leave)
    const struct CMUnitTest tests[] = {
        TEST(refused_resumes_change_nothing),
        TEST(single_runs_become_no_ensembles),
        TEST(members_have_the_same_data),
        TEST(beginning_anew_moves_everything),
        TEST(a_damaged_member_begins_anew),
        TEST(an_ensemble_needs_no_run_db),
        TEST(all_seeds_are_checked_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
