// `tradewind watch` for other programs: tables as CSV, event files, a server that ends when it is asked to.
#include "cli/program.h"
#include "support.h"

#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

// The room that the picture shows and all else that counts are the limit, but for what lies between tensors.
static void the_picture_of_memory_knows_the_limit(void **state) {
    (void)state;
    put_small_run();
    assert_int_equal(RUN("train", "run.yaml", "-q", "--device=cpu"), 0);
    assert_false(file_holds("made/memory.json", "\"room\""));
    assert_int_equal(RUN("train", "run.yaml", "-q", "--device=cpu", "gpu_optimization.max_host_memory_gb=0.25"), 0);
    json_error_t why;
    json_t *doc = json_load_file("made/memory.json", 0, &why), *bytes = json_object_get(doc, "bytes"), *each;
    const char *key;
    double sum = json_number_value(json_object_get(doc, "room"));
    assert_true(sum > json_number_value(json_object_get(doc, "peak")));
    json_object_foreach(bytes, key, each) if (strcmp(key, "activations") != 0) sum += json_number_value(each);
    assert_true(json_number_value(json_object_get(bytes, "base")) > 0 && fabs(sum - 0x1p28) < 65536);
    json_decref(doc);
}

static void tables_are_printed(void **state) {
    (void)state;
    put_small_run();
    assert_int_equal(RUN("train", "run.yaml", "-q"), 0);
    assert_int_equal(RUN("watch", "made", "--csv", "epochs"), 0);
    matches("out", "^epoch,step,finished,seconds,samples_per_s,best,confusion\n1,[0-9]+,.*\n2,[0-9]+,.*\n$");
    complains(RUN("watch", "made", "--csv", "nothing"), ".*made: has no table nothing; it has .*epochs.*");
    complains(RUN("watch", "missing", "--csv", "epochs"), ".*missing: has no run.db.*");
    assert_int_equal(RUN("watch", "made", "--tensorboard", "--json"), 0);
    assert_true(number("values") > 20);
    assert_int_equal(system("test -s made/events.out.tfevents.*"), 0);
    assert_true(file_holds("made/memory.json", "\"peak\""));
}

#define CHECK_BOARD(run)                                                                                               \
    "python3 " TEST_DIR "/../bench/tensorboard_check.py --reader format --program " TRADEWIND_BINARY " " run           \
    " > out 2> err"

// The event file against the tables, as bench/tensorboard_check.py asks TensorBoard itself; those of another run are
// not equal.
static void event_files_have_the_tables_numbers(void **state) {
    (void)state;
    put_small_run();
    assert_int_equal(RUN("train", "run.yaml", "-q"), 0);
    assert_int_equal(WEXITSTATUS(system(CHECK_BOARD("made"))), 0);
    matches("out", "^[0-9]+ scalars in [0-9]+ tags, all equal\n$");
    assert_int_equal(RUN("train", "run.yaml", "-q", "run.dir=other", "train.seed=7"), 0);
    assert_int_equal(system("cp made/events.out.* other/"), 0);
    assert_int_equal(WEXITSTATUS(system(CHECK_BOARD("other"))), 1);
    matches("out", "\ngrad_norm: step [0-9]+: .*\n[0-9]+ scalars in [0-9]+ tags, [0-9]+ differences\n$");
    assert_int_equal(WEXITSTATUS(system(CHECK_BOARD("missing"))), 1);
    matches("err", "^tensorboard_check: [^\n]*missing[^\n]*\n$");
}

static void wrong_words_are_told(void **state) {
    (void)state;
    complains(RUN("watch", "--web", "70000"), ".*--web 70000: must be a port.*");
    complains(RUN("watch", "--web", "x"), ".*--web x: must be a port.*");
    complains(RUN("watch", "missing", "--web", "0"), ".*missing: cannot be read.*");
    complains(RUN("watch", "--bind", "0.0.0.0"), ".*--bind and --host belong to --web.*");
    complains(RUN("watch", ".", "--web", "0", "--bind", "gold.example"), ".*is no address.*");
    complains(RUN("watch", "a", "b", "--web", "0"), ".*b: one directory is enough.*");
}

static void a_server_ends_when_it_is_asked(void **state) {
    (void)state;
    static const int signals[] = {SIGTERM, SIGINT};
    for (int i = 0; i < 2; i++) {
        pid_t child = program_start("served", (const char *const[]){"watch", ".", "--web", "0", NULL});
        wait_for("served", "http://127.0.0.1:");
        nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
        kill(child, signals[i]);
        assert_int_equal(program_finish(child), 0);
        is_empty("err");
        unlink("served");
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, support_enter, support_leave)

int main(void) {
    const struct CMUnitTest tests[] = {TEST(the_picture_of_memory_knows_the_limit), TEST(tables_are_printed),
        TEST(event_files_have_the_tables_numbers), TEST(wrong_words_are_told), TEST(a_server_ends_when_it_is_asked)};
    program_use(TRADEWIND_BINARY);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
