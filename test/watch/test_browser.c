// The page in a real browser, by test/watch/browser/page.mjs, on runs that were trained here and one of a million
// steps.
//
// Runs in: test-long
#include "cli/program.h"
#include "data/walk.h"
#include "run/db.h"
#include "support.h"

#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

// A run whose steps were written at once, with a peak of one value.
static void put_million(const char *dir) {
    static const char fill[] =
        "BEGIN; WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000)"
        " INSERT INTO steps SELECT i, 1, i, 1, 1700000000 + i, v, v, v, 1, 0.001 FROM"
        " (SELECT i, CASE WHEN i = 654321 THEN 1000.0 ELSE 1 + (i * 7919 % 1000) / 1000.0 END AS v FROM n);"
        " COMMIT";
    char path[512];
    sqlite3 *file;
    assert_int_equal(mkdir(dir, 0777), 0);
    snprintf(path, sizeof path, "%s/config.yaml", dir);
    put_text(path, "model:\n  kind: lstm\n");
    snprintf(path, sizeof path, "%s/run.db", dir);
    db *d = db_open(path);
    db_run(d, "0.1", "model:\n  kind: lstm\n", "device: cpu\n");
    db_status(d, "done", "");
    db_close(d);
    assert_int_equal(sqlite3_open(path, &file), SQLITE_OK);
    assert_int_equal(sqlite3_exec(file, fill, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(file);
}

// A walk on bars, and its trades: an equity and folds.
static void put_traded_walk(void) {
    put_text("walk.yaml", "data: {bars: {fast: a.csv}, vector: false, windows: {fast: 8}, label: {horizon: 3}}\n"
                          "model: {kind: mlp, widths: 6}\ntrain: {epochs: 2, batch_size: 64, metric: loss}\n"
                          "walk: {train: 900, validation: 200, test: 300, folds: 2, embargo: 5}\n"
                          "run: {dir: runs/walk}\n");
    walk_put("a.csv", 2400, 3600, 4);
    assert_int_equal(RUN("walk", "walk.yaml", "--device=cpu", "-q"), 0);
    assert_int_equal(RUN("backtest", "runs/walk", "-q"), 0);
    assert_int_equal(RUN("train", "walk.yaml", "walk.fold=2", "run.dir=runs/traded", "--device=cpu", "-q"), 0);
    assert_int_equal(RUN("backtest", "runs/traded", "-q"), 0);
}

// A run under a limit of memory, whose best loss is the lowest, and an agent.
static void put_others(void) {
    put_text("agent.yaml", "agent: {env: cartpole, n_envs: 4, n_steps: 64, batch_size: 64, total_timesteps: 2048}\n"
                           "run: {dir: runs/agent}\n");
    assert_int_equal(RUN("train", "agent.yaml", "-q"), 0);
    assert_int_equal(RUN("train", "run.yaml", "run.dir=runs/limited", "train.metric=loss", "--device=cpu", "-q",
                         "gpu_optimization.max_host_memory_gb=0.025"),
        0);
}

// Pictures are left where the environment says.
static void the_page_works_in_a_browser(void **state) {
    (void)state;
    char command[2048];
    const char *pictures = getenv("TRADEWIND_PICTURES");
    program_use(TRADEWIND_BINARY);
    put_small_run();
    assert_int_equal(mkdir("runs", 0777), 0);
    assert_int_equal(RUN("train", "run.yaml", "run.dir=runs/quick", "train.epochs=6", "-q"), 0);
    assert_int_equal(RUN("train", "run.yaml", "run.dir=runs/other", "train.epochs=6", "train.seed=9", "-q"), 0);
    assert_int_equal(RUN("evaluate", "runs/quick", "-q"), 0);
    put_traded_walk();
    put_others();
    put_million("runs/million");
    snprintf(command, sizeof command, "%s/watch/browser/run.sh \"$(dirname '%s')\" '%s' \"$PWD/runs\" %s", TEST_DIR,
        TRADEWIND_BINARY, TRADEWIND_BINARY, pictures ? pictures : "");
    assert_int_equal(system(command), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_page_works_in_a_browser, support_enter, support_leave)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
