// Runs that are watched together: which ones, and in which order they come to be known.
#include "watch/watched.h"

#include "run/run.h"
#include "support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <cmocka.h>

static void put(const char *dir) {
    char *config = run_path(dir, "config.yaml");
    mkdir(dir, 0777);
    support_put(config, "a: 1\n", 5);
    free(config);
}

static void are(const watched *w, const char *const *dirs) {
    int n = 0;
    for (; dirs[n]; n++) {
        assert_true(n < w->runs);
        assert_string_equal(tail_dir(w->run[n].tail), dirs[n]);
    }
    assert_int_equal(w->runs, n);
}

#define ARE(w, ...) are(w, (const char *const[]){__VA_ARGS__, NULL})

// A directory where no run was stands for runs to come; it is not one of them.
static void a_directory_gives_its_place_to_its_first_run(void **state) {
    (void)state;
    const char *const dirs[] = {"runs/"};
    watched w;
    mkdir("runs", 0777);
    watched_open(&w, dirs, 1);
    ARE(&w, "runs/");
    put("runs/b");
    watched_look(&w);
    ARE(&w, "runs/b");
    put("runs/a");
    assert_true(watched_look(&w));
    ARE(&w, "runs/b", "runs/a");
    assert_false(watched_look(&w));
    watched_close(&w);
}

// A walk is watched by its folds, also by whoever came before the first.
static void a_walk_gives_its_place_to_its_first_fold(void **state) {
    (void)state;
    const char *const dirs[] = {"one", "walk"};
    watched w;
    put("one");
    put("walk");
    watched_open(&w, dirs, 2);
    ARE(&w, "one", "walk");
    put("walk/fold_1");
    watched_look(&w);
    ARE(&w, "one", "walk/fold_1");
    put("walk/fold_2");
    put("one/other"); // a run in the directory of another is none of its parts
    assert_true(watched_look(&w));
    ARE(&w, "one", "walk/fold_1", "walk/fold_2");
    watched_close(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_directory_gives_its_place_to_its_first_run, support_enter, support_leave),
        cmocka_unit_test_setup_teardown(a_walk_gives_its_place_to_its_first_fold, support_enter, support_leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
