// Drift of a session: scores of a journal whose labels are known by hand, and how far they are from validation.
#include "live/drift.h"

#include "live/script.h"
#include "support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

enum { BARS = 41 };

// Closes rise by 1 at even bars and fall by 1 at odd ones; of every answer but one in four the class is right.
static void write_journal(double sure, bool forecasts) {
    build_options o = build_defaults;
    err e = {0};
    o.direction = (label_direction_options){.horizon = 1, .classes = 3};
    if (forecasts) o.label = BUILD_FORECAST;
    o.horizon = 2;
    o.value = LABEL_CLOSE;
    journal *j = journal_open("s.db", false, &e);
    support_ok(j && journal_begin(j, &e), &e);
    json_t *label = build_label_json(&o);
    char *text = json_dumps(label, JSON_COMPACT | JSON_REAL_PRECISION(17));
    journal_put_word(j, "label", text);
    journal_put_word(j, "run", "run");
    for (int n = 0; n < BARS; n++) {
        bar b = script_bar(n);
        b.close = n % 2 ? 101 : 100;
        int right = n % 2 ? LABEL_DOWN : LABEL_UP, said = n % 4 == 3 ? LABEL_UP : right;
        float answer[3];
        for (int k = 0; k < 3; k++) answer[k] = forecasts ? 100.75f : (float)(k == said ? sure : (1 - sure) / 2);
        journal_decision d = {.symbol = "GOLD",
            .bar = b,
            .answer = answer,
            .width = forecasts ? 2 : 3,
            .kind = n % 5 ? DECISION_MADE : DECISION_HELD};
        journal_put_bar(j, "GOLD", 0, &b);
        journal_put_decision(j, &d);
        if (n == 7) journal_put_event(j, 0, b.time, "GOLD", "outside", "skip", "");
    }
    support_ok(journal_commit(j, &e), &e);
    journal_close(j);
    json_decref(label);
    free(text);
}

static bool is(double v, double want) {
    return fabs(v - want) < 1e-6;
}

static void scores_are_those_of_the_labels(void **state) {
    (void)state;
    err e = {0};
    drift d;
    write_journal(0.8, false);
    journal *j = journal_read("s.db", &e);
    support_ok(j && drift_make(j, "GOLD", 1000, NULL, &d, &e), &e);
    assert_int_equal(d.answers, BARS);
    assert_int_equal(d.scores.samples, BARS - 1); // the newest is not known yet
    assert_int_equal(d.classes, 3);
    assert_true(is(d.scores.accuracy, 0.75));
    assert_true(is(d.scores.log_loss, -(0.75 * log(0.8) + 0.25 * log(0.1))));
    assert_true(is(d.scores.share[0], 0.25) && is(d.scores.share[1], 0) && is(d.scores.share[2], 0.75));
    // UP: said with 0.8 in 30 of which 20 are; else 0.1, never. DOWN: 10 with 0.8, all are; 30 with 0.1, 10 are. Never
    // neutral.
    double gap = fabs(24.0 - 20) + 1 + fabs(8.0 - 10) + fabs(3.0 - 10) + 4;
    assert_true(is(d.scores.calibration, gap / (3 * (BARS - 1))));
    assert_int_equal(d.decisions, BARS);
    assert_int_equal(d.held, 9);
    assert_int_equal(d.outside, 1);
    assert_true(isnan(d.apart) && !drift_is_worse(&d));
    assert_true(d.opened == script_bar(0).time && d.from == script_bar(0).end && d.to == script_bar(BARS - 1).end);
    // The newest alone.
    support_ok(drift_make(j, "GOLD", 5, NULL, &d, &e), &e);
    assert_true(d.answers == 5 && d.scores.samples == 4 && d.decisions == 5 && d.outside == 0);
    support_ok(drift_make(j, "SILVER", 5, NULL, &d, &e), &e);
    assert_true(d.answers == 0 && isnan(d.scores.log_loss) && isnan(d.scores.share[2]));
    char *run;
    support_ok(drift_run(j, &run, &e), &e);
    assert_string_equal(run, "run");
    free(run);
    journal_close(j);
}

static void validation_is_compared_with(void **state) {
    (void)state;
    static const char text[] =
        "{\"version\":1,\"parts\":{\"validation\":{\"samples\":4000,\"scores\":[{\"metric\":\"log_loss\","
        "\"score\":0.25},{\"metric\":\"mcc\",\"score\":0.5}],\"confusion\":[[1,0,1],[0,0,0],[0,0,2]],"
        "\"calibration\":[{\"class\":\"UP\",\"bins\":[{\"low\":0,\"high\":0.1,\"count\":3,\"mean\":0.5,"
        "\"share\":0.25},{\"low\":0.1,\"high\":0.2,\"count\":0,\"mean\":null,\"share\":null}]}]}}}";
    err e = {0};
    drift d;
    drift_scores then;
    assert_int_equal(mkdir("run", 0777), 0);
    support_ok(drift_reference("run", &then, &e), &e);
    assert_true(isnan(then.log_loss)); // nothing was evaluated
    for (int k = 0; k < 3; k++) assert_true(isnan(then.share[k]));
    support_put("run/evaluation.json", text, strlen(text));
    support_ok(drift_reference("run", &then, &e), &e);
    assert_true(then.samples == 4000 && then.log_loss == 0.25 && then.mcc == 0.5 && isnan(then.accuracy));
    assert_true(is(then.calibration, 0.25) && is(then.share[0], 0.25) && is(then.share[2], 0.75));
    write_journal(0.8, false);
    journal *j = journal_read("s.db", &e);
    support_ok(j && drift_make(j, "GOLD", 1000, &then, &d, &e), &e);
    double apart = (d.scores.log_loss - 0.25) / (d.deviation * sqrt(1.0 / (BARS - 1) + 1.0 / 4000));
    assert_true(is(d.apart, apart) && drift_is_worse(&d) == (apart >= 3));
    then.log_loss = -1;
    support_ok(drift_make(j, "GOLD", 1000, &then, &d, &e), &e);
    assert_true(drift_is_worse(&d));
    journal_close(j);
}

static void forecasts_are_judged_by_what_came(void **state) {
    (void)state;
    err e = {0};
    drift d;
    write_journal(0, true);
    journal *j = journal_read("s.db", &e);
    support_ok(j && drift_make(j, "GOLD", 1000, NULL, &d, &e), &e);
    assert_true(d.classes == 0 && d.answers == BARS && d.scores.samples == BARS - 2);
    assert_true(is(d.scores.mae, 0.5) && isnan(d.scores.log_loss)); // of 0.75 and 0.25
    journal_close(j);
}

static void states_without_a_label_are_refused(void **state) {
    (void)state;
    err e = {0};
    drift d;
    journal *j = journal_open("old.db", false, &e);
    support_ok(j != NULL, &e);
    assert_false(drift_make(j, "GOLD", 10, NULL, &d, &e));
    assert_non_null(strstr(e.text, "it is of an older session"));
    char *run;
    support_ok(drift_run(j, &run, &e), &e);
    assert_null(run);
    journal_close(j);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(scores_are_those_of_the_labels, support_enter, support_leave),
        cmocka_unit_test_setup_teardown(validation_is_compared_with, support_enter, support_leave),
        cmocka_unit_test_setup_teardown(forecasts_are_judged_by_what_came, support_enter, support_leave),
        cmocka_unit_test_setup_teardown(states_without_a_label_are_refused, support_enter, support_leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
