// tradewind tune from outside: the table, what is kept and used, JSON, mistakes in options, a limit that is too low, a
// signal.
#include "base/pool.h"
#include "cli/program.h"
#include "support.h"

#include <dirent.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define JOB "run.yaml", "--device=cpu", "--threads=1"

static int enter(void **state) {
    int rc = support_enter(state);
    setenv("TRADEWIND_WISDOM", "wisdom", 1);
    program_use(TRADEWIND_BINARY);
    put_text("run.yaml", "data: {synthetic: {bars: 3000}, windows: {fast: 8, slow: 4}}\n"
                         "model: {kind: mlp, widths: 16}\ntrain: {epochs: 1}\nrun: {dir: made}\n");
    return rc;
}

static int kept(void) {
    DIR *d = opendir("wisdom");
    int n = 0;
    for (struct dirent *each; d && (each = readdir(d));) n += each->d_name[0] != '.';
    if (d) closedir(d);
    return n;
}

static void the_winner_is_shown_kept_and_used(void **state) {
    (void)state;
    assert_int_equal(RUN("tune", JOB, "--batches=128,64,128", "--seconds=3"), 0);
    matches("out", "^device +cpu.*\ndata +[0-9,]+ training samples .*\nmodel +mlp.*\nlimit +none\n");
    matches("out", "\n +batch +split +again +in +ms/step +samples/s +s/epoch +MB +share\n"
                   " +64 +1 x 64 +0 +fp32 .* %.*\n +128 +1 x 128 +0 +fp32 ");
    matches("out", "\nnoise +the gradient noise scale is ");
    matches("out", "\nknee +(64|128) is the smallest batch with 85 % of the best rate");
    matches("out", "\nwinner +(64|128): [0-9]+ % of the best rate; ");
    matches("out", "\nkept +");
    assert_int_equal(kept(), 1);
    is_empty("err");
    assert_int_equal(RUN("plan", JOB, "train.batch_size=auto"), 0);
    matches("out", "\ntuned +[0-9-]+: 1 x (64|128) rows");
    assert_int_equal(RUN("train", JOB, "train.batch_size=auto"), 0);
    assert_int_equal(RUN("tune", JOB, "--batches=64", "--seconds=1", "-q"), 0);
    matches("out", "^winner +64[^\n]+\n$");
}

static void json_has_a_line_a_candidate_and_one_for_the_winner(void **state) {
    (void)state;
    assert_int_equal(
        RUN("tune", JOB, "--from=64", "--to=128", "--seconds=3", "--json", "gpu_optimization.target_utilization=1"), 0);
    is_empty("err");
    char *text = slurp("out");
    int lines = 0;
    for (const char *at = text; (at = strchr(at, '\n')); at++) lines++;
    free(text);
    assert_int_equal(lines, 4); // 64 96 128
    matches("out", "^\\{\"batch\":64,\"micro_batch\":64,\"accumulation\":1,\"again\":0,\"residency\":\"device\","
                   "\"precision\":\"fp32\",\"memory_bytes\":[0-9]+,\"ms_per_step\":[0-9.e-]+,\"samples_per_s\":[0-9.]+,"
                   "\"epoch_s\":[0-9.e-]+,\"spread\":[0-9.e-]+,\"share\":[0-9.]+,\"knee\":true,\"winner\":true\\}\n");
    json_t *all = last_line(), *winner = json_object_get(all, "winner");
    assert_int_equal(json_integer_value(json_object_get(winner, "batch")), 64);
    assert_true(json_is_true(json_object_get(all, "kept")));
    assert_true(json_is_false(json_object_get(all, "interrupted")));
    assert_non_null(json_object_get(all, "noise_scale"));
    json_decref(all);
}

// The number of threads is open: half of them are tried. A twentieth of the time is theirs: of few seconds a busy
// machine takes all of it.
static void fewer_threads_are_tried(void **state) {
    (void)state;
    int all = pool_processors();
    if (all < 2) skip();
    assert_int_equal(RUN("tune", "run.yaml", "--device=cpu", "--batches=64", "--seconds=30"), 0);
    matches("out", "\nthreads   [0-9]+ threads [0-9,]+ samples/s, [0-9]+ threads? [0-9,]+ samples/s: [0-9]+ threads? "
                   "(kept|taken, [0-9]+ % faster)\nkept ");
    assert_int_equal(RUN("tune", "run.yaml", "--device=cpu", "--batches=64", "--seconds=30", "--json"), 0);
    json_t *line = last_line(), *trials = json_object_get(line, "trials"), *fewer = json_array_get(trials, 1);
    assert_int_equal(json_array_size(trials), 2);
    assert_int_equal(json_integer_value(json_object_get(fewer, "threads")), all / 2);
    assert_true(json_number_value(json_object_get(fewer, "samples_per_s")) > 0);
    bool taken = json_is_true(json_object_get(fewer, "taken"));
    json_t *winner = json_object_get(line, "winner");
    assert_int_equal(json_integer_value(json_object_get(winner, "threads")), taken ? all / 2 : 0);
    json_decref(line);
    assert_int_equal(RUN("tune", JOB, "--batches=64", "--seconds=1"), 0);
    assert_false(file_holds("out", "\nthreads"));
}

static void mistakes_are_named(void **state) {
    (void)state;
    complains(RUN("tune", JOB, "--batches=64,x"), "--batches 64,x: must be integers from 1 to 10000000");
    complains(RUN("tune", JOB, "--batches=64,"), "--batches 64,: must be integers .*");
    complains(RUN("tune", JOB, "--from=64,128"), "--from 64,128: is one number");
    complains(RUN("tune", JOB, "--from=0"), "--from 0: must be an integer from 1 to 10000000");
    complains(RUN("tune", JOB, "--from=128", "--to=64"), "--from is larger than --to");
    complains(RUN("tune", JOB, "--batches=64", "--to=64"), ".*; leave --from and --to out");
    complains(RUN("tune", JOB, "--seconds=soon"), "--seconds soon: must be an integer from 1 to 86400");
    complains(RUN("tune", JOB, "--batches=100000"), "a batch of 100000 is more than the [0-9]+ training samples; .*");
    complains(
        RUN("tune", JOB, "--from=5", "--to=5"), "from 5 to 5 lies no power of two, .*; name sizes with --batches");
    complains(RUN("tune", JOB, "--batch=64"), "--batch=64: not an option of tune; did you mean --batches.*");
    complains(RUN("tune"), "no run description given; .*");
    assert_int_equal(kept(), 0);
}

static void a_limit_that_is_too_low_is_refused(void **state) {
    (void)state;
    if (support_sanitized()) skip(); // a sanitizer's own memory is counted with the program's
    assert_int_equal(RUN("tune", JOB, "gpu_optimization.max_host_memory_gb=0.005"), 1);
    matches("err", "^tradewind: the plan needs .*; set gpu_optimization\\.max_host_memory_gb to 0\\.[0-9]+ or more");
    is_empty("out");
    assert_int_equal(kept(), 0);
}

static void a_signal_shows_the_table_and_keeps_nothing(void **state) {
    (void)state;
    pid_t child =
        program_start("out", (const char *const[]){"tune", JOB, "--from=16", "--to=512", "--seconds=60", NULL});
    nanosleep(&(struct timespec){.tv_sec = 2}, NULL);
    assert_int_equal(kill(child, SIGINT), 0);
    assert_int_equal(program_finish(child), 1);
    matches("err", "tradewind: stopped before all was measured; nothing was kept\n$");
    matches("out", "\n +16 +1 x 16 +0 +fp32 ");
    assert_false(file_holds("out", "\nkept"));
    assert_int_equal(kept(), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_winner_is_shown_kept_and_used, enter, support_leave),
        cmocka_unit_test_setup_teardown(json_has_a_line_a_candidate_and_one_for_the_winner, enter, support_leave),
        cmocka_unit_test_setup_teardown(fewer_threads_are_tried, enter, support_leave),
        cmocka_unit_test_setup_teardown(mistakes_are_named, enter, support_leave),
        cmocka_unit_test_setup_teardown(a_limit_that_is_too_low_is_refused, enter, support_leave),
        cmocka_unit_test_setup_teardown(a_signal_shows_the_table_and_keeps_nothing, enter, support_leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
