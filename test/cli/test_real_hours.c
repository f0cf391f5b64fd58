// Forecasts of real hours by the example: the first epoch's RMSE on validation is at most twice that of the zero
// forecast, the best epoch's within 1 % of it or better, and the test part is printed with its skill and interval.
// Runs in: test-long
#include "base/json.h"
#include "cli/program.h"
#include "support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

// RMSE of the zero forecast, the first epoch and the best one, from the lines of train --json.
static void read_lines(double *zero, double *first, double *best) {
    char *text = slurp("out"), *rest = NULL;
    *zero = *first = *best = 0;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        err e = {0};
        json_t *v = json_read(line, strlen(line), &e);
        if (!v) fail_msg("%s: %s", line, e.text);
        const json_t *trivial = json_object_get(json_object_get(v, "trivial"), "zero");
        double rmse = json_number_value(json_object_get(v, "validation_rmse"));
        if (trivial) *zero = json_number_value(json_object_get(trivial, "rmse"));
        if (rmse > 0 && *first == 0) *first = rmse;
        if (rmse > 0 && (*best == 0 || rmse < *best)) *best = rmse;
        json_decref(v);
    }
    free(text);
}

static void forecast(const char *name) {
    char path[4200];
    double zero, first, best;
    const char *folder = getenv("TRADEWIND_DATA");
    if (!folder) folder = TEST_DIR "/../../shared/data";
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (access(path, R_OK)) skip();
    const char *epochs = support_sanitized() ? "train.epochs=1" : "train.epochs=4";
    assert_int_equal(RUN("import", path, "-o", "hours.npz", "--label", "forecast", "-q"), 0);
    assert_int_equal(RUN("train", TEST_DIR "/../examples/forecast_hours.yaml", "--json", epochs), 0);
    read_lines(&zero, &first, &best);
    print_message("%s: RMSE of zero %.6f, first epoch %.6f, best %.6f\n", name, zero, first, best);
    assert_true(zero > 0 && first <= 2 * zero && best <= 1.01 * zero);
    assert_int_equal(RUN("evaluate", "runs/forecast_hours"), 0);
    matches("out", "\ndata +hours\\.npz, test: [0-9,]+ samples\n");
    matches("out", "\nRMSE +[0-9.]+  [0-9.]+ to [0-9.]+ +[0-9.]+  zero forecast +[-+]0\\.0[0-9]+  [-+]0\\.[0-9]+ to ");
    matches("out", " than the trivial answer on these rows\n");
}

static void gold(void **state) {
    (void)state;
    forecast("XAUUSD_H1.csv");
}

static void euro(void **state) {
    (void)state;
    forecast("EURUSD_hourly_pandas.csv");
}

int main(void) {
    program_use(TRADEWIND_BINARY);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(gold, support_enter, support_leave),
        cmocka_unit_test_setup_teardown(euro, support_enter, support_leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
