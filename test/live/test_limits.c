// Limits of live trading: every rule, where it begins, what it answers and what survives a restart.
#include "live/limits.h"

#include "support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static limits limits_of(const char *text) {
    size_t count;
    err e = {0};
    limits l = {0};
    const config_key *keys = live_keys(&count);
    config *c = config_read("live.yaml", text, strlen(text), keys, count, &e);
    support_ok(c && config_check(c, &e) && limits_read(c, &l, &e), &e);
    config_free(c);
    return l;
}

static void refused(const char *text, const char *why) {
    size_t count;
    err e = {0};
    limits l = {0};
    const config_key *keys = live_keys(&count);
    config *c = config_read("live.yaml", text, strlen(text), keys, count, &e);
    assert_false(c && config_check(c, &e) && limits_read(c, &l, &e));
    config_free(c);
    assert_int_equal(e.kind, ERR_INPUT);
    assert_string_equal(e.text, why);
}

static limits_state begun(void) {
    limits_state s;
    limits_begin(&s);
    return s;
}

static int64_t money(double v) {
    return (int64_t)llround(v * 1e8);
}

// A verdict of a rule with its usual answer, counted `times`.
static void says(const limits_state *s, limits_verdict v, limits_rule r, limits_answer a, int64_t times) {
    assert_int_equal(v.answer, a);
    assert_int_equal(v.rule, r);
    assert_int_equal(s->broken[r], times);
    assert_true(strlen(v.text) > 0);
}

static void is_fine(limits_verdict v) {
    if (v.answer != LIMITS_PASS) fail_msg("%s: %s", limits_rule_key(v.rule), v.text);
}

static void usual_limits_are_safe(void **state) {
    (void)state;
    limits l = limits_of("live: {}\n");
    assert_true(l.max_lots == 0 && l.max_exposure == 1 && l.max_day_loss == 0.05 && l.max_loss == 0.2);
    assert_true(l.max_orders == 60 && l.stale == 120 && l.clock_jump == 5 && l.late == 60);
    assert_true(l.outside_share == 0.25 && l.outside_by == 6 && l.day_start == 0);
    assert_int_equal(l.answer[LIMIT_POSITION], LIMITS_SKIP);
    assert_int_equal(l.answer[LIMIT_DAY_LOSS], LIMITS_FLAT);
    assert_int_equal(l.answer[LIMIT_LOSS], LIMITS_STOP);
    assert_int_equal(l.answer[LIMIT_NON_FINITE], LIMITS_FLAT);
    assert_int_equal(l.answer[LIMIT_DOUBLED], LIMITS_IGNORE);
    l = limits_of(
        "live:\n  max_lots: 2\n  max_loss: none\n  day_start: '22:30'\n  answer: {late: flat, doubled: stop}\n");
    assert_true(l.max_lots == 2 && l.max_loss == 0 && l.day_start == 81000);
    assert_int_equal(l.answer[LIMIT_LATE], LIMITS_FLAT);
    assert_int_equal(l.answer[LIMIT_DOUBLED], LIMITS_STOP);
}

static void keys_are_judged(void **state) {
    (void)state;
    refused("live:\n  max_lot: 1\n", "live.yaml:2: live.max_lot: unknown key; did you mean live.max_lots?");
    refused("live:\n  answer:\n    lat: skip\n",
        "live.yaml:3: live.answer.lat: unknown key; did you mean live.answer.late?");
    refused("live:\n  day_start: noon\n", "live.yaml:2: live.day_start: noon: is no time of day; write 22:00");
}

static void position_is_cut(void **state) {
    (void)state;
    limits l = limits_of("live: {max_lots: 2, max_exposure: 1}\n");
    limits_state s = begun();
    double allowed;
    is_fine(limits_position(&l, &s, 2, 0, 100, 1000, &allowed));
    assert_true(allowed == 2);
    says(&s, limits_position(&l, &s, -3, 0, 100, 1000, &allowed), LIMIT_POSITION, LIMITS_SKIP, 1);
    assert_true(fabs(allowed + 2) < 1e-6);
    // By value: 1,000 of equity holds half a lot of 2,000.
    says(&s, limits_position(&l, &s, 1, 0, 2000, 1000, &allowed), LIMIT_POSITION, LIMITS_SKIP, 2);
    assert_true(fabs(allowed - 0.5) < 1e-6);
    // A held position may stay and shrink, but not grow.
    is_fine(limits_position(&l, &s, 3, 4, 100, 1000, &allowed));
    assert_true(allowed == 3);
    limits_position(&l, &s, 5, 4, 100, 1000, &allowed);
    assert_true(allowed == 4);
    // A position turned round is a new one. Numbers that are none and an equity of nothing allow none.
    limits_position(&l, &s, -4, 4, 100, 1000, &allowed);
    assert_true(fabs(allowed + 2) < 1e-6);
    limits_position(&l, &s, NAN, 0, 100, 1000, &allowed);
    assert_true(allowed == 0);
    limits_position(&l, &s, 1, 0, 100, -5, &allowed);
    assert_true(allowed == 0);
    l.answer[LIMIT_POSITION] = LIMITS_FLAT;
    limits_position(&l, &s, 3, 1, 100, 1000, &allowed);
    assert_true(allowed == 0);
    l.answer[LIMIT_POSITION] = LIMITS_NOTE;
    limits_position(&l, &s, 3, 1, 100, 1000, &allowed);
    assert_true(allowed == 3);
    l.max_lots = l.max_exposure = 0;
    is_fine(limits_position(&l, &s, 3000, 1, 100, 1000, &allowed));
}

static const double noon = 1700000000 - 1700000000 % 86400 + 43200;

static void loss_of_a_day_lasts_until_the_next(void **state) {
    (void)state;
    limits l = limits_of("live: {max_day_loss: 0.05}\n");
    limits_state s = begun();
    is_fine(limits_equity(&l, &s, noon, money(100000)));
    is_fine(limits_equity(&l, &s, noon + 60, money(95000.01)));
    is_fine(limits_standing(&l, &s));
    says(&s, limits_equity(&l, &s, noon + 120, money(95000)), LIMIT_DAY_LOSS, LIMITS_FLAT, 1);
    // It is said once, and stands, also when the equity comes back and the clock goes back.
    is_fine(limits_equity(&l, &s, noon + 180, money(99000)));
    assert_int_equal(limits_standing(&l, &s).answer, LIMITS_FLAT);
    is_fine(limits_equity(&l, &s, noon - 86400, money(99000)));
    assert_int_equal(limits_standing(&l, &s).rule, LIMIT_DAY_LOSS);
    // The next day begins with what the last one left: a gap over midnight counts.
    says(&s, limits_equity(&l, &s, noon + 86400, money(94000)), LIMIT_DAY_LOSS, LIMITS_FLAT, 2);
    is_fine(limits_equity(&l, &s, noon + 2 * 86400, money(94000)));
    is_fine(limits_standing(&l, &s));
}

static void day_begins_where_told(void **state) {
    (void)state;
    limits l = limits_of("live: {max_day_loss: 0.05, day_start: '22:00'}\n");
    limits_state s = begun();
    double ten = noon + 10 * 3600;
    is_fine(limits_equity(&l, &s, ten - 60, money(100)));
    says(&s, limits_equity(&l, &s, ten - 1, money(90)), LIMIT_DAY_LOSS, LIMITS_FLAT, 1);
    is_fine(limits_equity(&l, &s, ten, money(90)));
    is_fine(limits_standing(&l, &s));
}

static void whole_loss_stops_for_good(void **state) {
    (void)state;
    limits l = limits_of("live: {max_day_loss: none, max_loss: 0.2}\n");
    limits_state s = begun();
    is_fine(limits_equity(&l, &s, noon, money(1000)));
    is_fine(limits_equity(&l, &s, noon + 86400, money(801)));
    says(&s, limits_equity(&l, &s, noon + 2 * 86400, money(800)), LIMIT_LOSS, LIMITS_STOP, 1);
    is_fine(limits_equity(&l, &s, noon + 9 * 86400, money(5000)));
    assert_int_equal(limits_standing(&l, &s).answer, LIMITS_STOP);
    limits_clear(&s, money(800));
    is_fine(limits_standing(&l, &s));
    is_fine(limits_equity(&l, &s, noon + 10 * 86400, money(641)));
    says(&s, limits_equity(&l, &s, noon + 10 * 86400, money(640)), LIMIT_LOSS, LIMITS_STOP, 2);
    l.answer[LIMIT_LOSS] = LIMITS_FLAT;
    s.stopped = false;
    assert_int_equal(limits_standing(&l, &s).answer, LIMITS_FLAT);
}

static void orders_of_a_minute_are_counted(void **state) {
    (void)state;
    limits l = limits_of("live: {max_orders: 3}\n");
    limits_state s = begun();
    for (int i = 0; i < 3; i++) is_fine(limits_order(&l, &s, noon + i, false));
    says(&s, limits_order(&l, &s, noon + 30, false), LIMIT_ORDERS, LIMITS_SKIP, 1);
    is_fine(limits_order(&l, &s, noon + 30, true)); // closes
    assert_int_equal(s.broken[LIMIT_ORDERS], 2);
    says(&s, limits_order(&l, &s, noon + 59.9, false), LIMIT_ORDERS, LIMITS_SKIP, 3);
    is_fine(limits_order(&l, &s, noon + 62.5, false));
    // A clock that jumped back does not hold orders for ever.
    is_fine(limits_order(&l, &s, noon - 5000, false));
    assert_int_equal(s.orders, 1);
    l.answer[LIMIT_ORDERS] = LIMITS_STOP;
    for (int i = 0; i < 2; i++) is_fine(limits_order(&l, &s, noon - 5000, false));
    assert_int_equal(limits_order(&l, &s, noon - 5000, true).answer, LIMITS_STOP);
    assert_true(s.stopped && s.stopped_by == LIMIT_ORDERS);
    l.max_orders = 0;
    for (int i = 0; i < 2 * LIMITS_ORDERS_MOST; i++) is_fine(limits_order(&l, &s, noon, false));
    assert_int_equal(s.orders, LIMITS_ORDERS_MOST);
}

static void stale_feed_stands_until_a_bar(void **state) {
    (void)state;
    limits l = limits_of("live: {stale: 120}\n");
    limits_state s = begun();
    is_fine(limits_stale(&l, &s, noon, 0)); // the market is closed
    is_fine(limits_stale(&l, &s, noon + 119, noon));
    says(&s, limits_stale(&l, &s, noon + 120, noon), LIMIT_STALE, LIMITS_SKIP, 1);
    is_fine(limits_stale(&l, &s, noon + 121, noon)); // said once
    assert_int_equal(limits_standing(&l, &s).answer, LIMITS_SKIP);
    is_fine(limits_stale(&l, &s, noon + 130, noon + 300));
    is_fine(limits_standing(&l, &s));
    l.stale = 0;
    is_fine(limits_stale(&l, &s, noon + 9999, noon));
}

static void price_of_another_instrument_stands(void **state) {
    (void)state;
    limits l = limits_of("live: {}\n");
    limits_state s = begun(), back;
    err e = {0};
    is_fine(limits_price(&l, &s, 1500, NULL));
    is_fine(limits_price(&l, &s, 14999, NULL));
    is_fine(limits_price(&l, &s, 1500, NULL));
    says(&s, limits_price(&l, &s, 150, NULL), LIMIT_INSTRUMENT, LIMITS_FLAT, 1);
    is_fine(limits_price(&l, &s, 1.1, NULL)); // said once
    assert_int_equal(limits_standing(&l, &s).answer, LIMITS_FLAT);
    char *text = limits_save(&s);
    support_ok(limits_load(&back, text, strlen(text), &e), &e);
    assert_true(back.is_other && back.price == 1500);
    free(text);
    is_fine(limits_price(&l, &s, 1400, NULL));
    is_fine(limits_standing(&l, &s));
    says(&s, limits_price(&l, &s, 14000, NULL), LIMIT_INSTRUMENT, LIMITS_FLAT, 2);
    limits_clear(&s, 1);
    is_fine(limits_price(&l, &s, 14000, NULL));
    says(&s, limits_price(&l, &s, 14000, "as it was"), LIMIT_INSTRUMENT, LIMITS_FLAT, 3);
    l.answer[LIMIT_INSTRUMENT] = LIMITS_NOTE;
    is_fine(limits_standing(&l, &s));
}

static void clock_jumps_are_seen(void **state) {
    (void)state;
    limits l = limits_of("live: {clock_jump: 5}\n");
    limits_state s = begun();
    is_fine(limits_clock(&l, &s, noon, 100));
    is_fine(limits_clock(&l, &s, noon + 3600 + 4.9, 3700));
    says(&s, limits_clock(&l, &s, noon + 3600 + 20, 3710), LIMIT_CLOCK, LIMITS_SKIP, 1);
    says(&s, limits_clock(&l, &s, noon, 3711), LIMIT_CLOCK, LIMITS_SKIP, 2);
    is_fine(limits_clock(&l, &s, noon + 1, 3712));
    // After a restart time has passed, and may; but not backwards.
    s.steady = 0;
    is_fine(limits_clock(&l, &s, noon + 7200, 10));
    s.steady = 0;
    says(&s, limits_clock(&l, &s, noon + 7100, 10), LIMIT_CLOCK, LIMITS_SKIP, 3);
}

static void notes_of_the_feed_have_answers(void **state) {
    (void)state;
    static const struct {
        feed_note note;
        limits_rule rule;
        limits_answer usual;
    } all[] = {{FEED_LATE, LIMIT_LATE, LIMITS_SKIP}, {FEED_DOUBLED, LIMIT_DOUBLED, LIMITS_IGNORE},
        {FEED_REVISED, LIMIT_REVISED, LIMITS_NOTE}, {FEED_MISSING, LIMIT_MISSING, LIMITS_NOTE},
        {FEED_OUT_OF_ORDER, LIMIT_OUT_OF_ORDER, LIMITS_NOTE}, {FEED_UNREADABLE, LIMIT_UNREADABLE, LIMITS_NOTE}};
    limits l = limits_of("live: {}\n");
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        limits_state s = begun();
        feed_event ev = {.kind = FEED_NOTE, .note = all[i].note, .text = "as it was"};
        limits_verdict v = limits_feed(&l, &s, &ev);
        says(&s, v, all[i].rule, all[i].usual, 1);
        assert_string_equal(v.text, "as it was");
        for (limits_answer a = LIMITS_IGNORE; a <= LIMITS_STOP; a++) {
            l.answer[all[i].rule] = a;
            assert_int_equal(limits_feed(&l, &s, &ev).answer, a);
            assert_int_equal(s.stopped, a == LIMITS_STOP);
        }
    }
    limits_state s = begun();
    is_fine(limits_feed(&l, &s, &(feed_event){.kind = FEED_NOTE, .note = FEED_ROTATED}));
    is_fine(limits_feed(&l, &s, &(feed_event){.kind = FEED_BAR}));
}

static void answers_are_finite(void **state) {
    (void)state;
    limits l = limits_of("live: {}\n");
    limits_state s = begun();
    const float good[] = {0.2f, 0.3f, 0.5f}, bad[] = {0.2f, NAN, INFINITY};
    is_fine(limits_answers(&l, &s, good, 3));
    says(&s, limits_answers(&l, &s, bad, 3), LIMIT_NON_FINITE, LIMITS_FLAT, 1);
    for (int i = 1; i < 3; i++) says(&s, limits_answers(&l, &s, &bad[i], 1), LIMIT_NON_FINITE, LIMITS_FLAT, 1 + i);
}

static void inputs_are_like_those_of_training(void **state) {
    (void)state;
    limits l = limits_of("live: {outside_share: 0.25, outside_by: 6}\n");
    limits_state s = begun();
    float x[8] = {0, 1, -1, 6, -6, 5, 6.1f, -7};
    is_fine(limits_inputs(&l, &s, x, 8)); // two of eight
    x[0] = NAN;
    says(&s, limits_inputs(&l, &s, x, 8), LIMIT_OUTSIDE, LIMITS_SKIP, 1);
    says(&s, limits_outside(&l, &s, 3, 8), LIMIT_OUTSIDE, LIMITS_SKIP, 2);
    is_fine(limits_inputs(&l, &s, x, 0));
    l = limits_of("live: {outside_share: none}\n");
    is_fine(limits_outside(&l, &s, 8, 8));
}

static void worst_verdict_counts(void **state) {
    (void)state;
    limits_verdict v = LIMITS_FINE, note = {LIMITS_NOTE, LIMIT_LATE, "a"}, flat = {LIMITS_FLAT, LIMIT_LOSS, "b"};
    limits_worse(&v, &note);
    limits_worse(&v, &flat);
    limits_worse(&v, &note);
    assert_int_equal(v.rule, LIMIT_LOSS);
}

static void state_survives_a_restart(void **state) {
    (void)state;
    limits l = limits_of("live: {max_day_loss: 0.05, max_loss: 0.1, max_orders: 5}\n");
    limits_state s = begun(), back;
    err e = {0};
    for (int step = 0; step < 3; step++) {
        if (step == 1) limits_equity(&l, &s, noon, money(100));
        if (step == 1) limits_stale(&l, &s, noon, noon - 500);
        if (step == 2) limits_equity(&l, &s, noon, money(85));
        for (int i = 0; i < 3 * step; i++) limits_order(&l, &s, noon + 0.1 * i, false);
        limits_clock(&l, &s, noon + step / 3.0, 5);
        char *text = limits_save(&s);
        memset(&back, 7, sizeof back);
        support_ok(limits_load(&back, text, strlen(text), &e), &e);
        assert_true(back.steady == 0 && back.machine == s.machine);
        back.steady = s.steady;
        char *again = limits_save(&back);
        assert_string_equal(again, text);
        assert_int_equal(limits_standing(&l, &back).answer, limits_standing(&l, &s).answer);
        assert_int_equal(limits_order(&l, &back, noon + 2, false).answer, step == 2 ? LIMITS_SKIP : LIMITS_PASS);
        free(again);
        free(text);
    }
    assert_true(back.stopped && back.ended && back.day_over && back.is_stale && back.stopped_by == LIMIT_LOSS);
}

static void damaged_states_are_refused(void **state) {
    (void)state;
    limits_state s = begun(), kept;
    err e = {0};
    s.orders = 1;
    kept = s;
    char *text = limits_save(&s);
    size_t n = strlen(text);
    for (size_t cut = 0; cut < n; cut++) assert_false(limits_load(&s, text, cut, &e));
    static const char *const bad[][2] = {{"\"format\":1", "\"format\":2"}, {"\"ended\":false", "\"ended\":3"},
        {"\"orders\":[0.0]", "\"orders\":[1e300]"}, {"\"orders\":[0.0]", "\"orders\":7"},
        {"\"broken\":{}", "\"broken\":{\"late\":-1}"}, {"\"start_equity\":0", "\"start_equity\":0.5"},
        {"\"price\":0.0", "\"price\":-1"}, {"\"other\":false", "\"other\":1"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char other[4096];
        const char *at = strstr(text, bad[i][0]);
        if (!at) fail_msg("'%s' is not in %s", bad[i][0], text);
        snprintf(other, sizeof other, "%.*s%s%s", (int)(at - text), text, bad[i][1], at + strlen(bad[i][0]));
        if (limits_load(&s, other, strlen(other), &e)) fail_msg("%s was believed", other);
    }
    assert_memory_equal(&s, &kept, sizeof s);
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(usual_limits_are_safe),
        cmocka_unit_test(keys_are_judged),
        cmocka_unit_test(position_is_cut),
        cmocka_unit_test(loss_of_a_day_lasts_until_the_next),
        cmocka_unit_test(day_begins_where_told),
        cmocka_unit_test(whole_loss_stops_for_good),
        cmocka_unit_test(orders_of_a_minute_are_counted),
        cmocka_unit_test(stale_feed_stands_until_a_bar),
        cmocka_unit_test(price_of_another_instrument_stands),
        cmocka_unit_test(clock_jumps_are_seen),
        cmocka_unit_test(notes_of_the_feed_have_answers),
        cmocka_unit_test(answers_are_finite),
        cmocka_unit_test(inputs_are_like_those_of_training),
        cmocka_unit_test(worst_verdict_counts),
        cmocka_unit_test(state_survives_a_restart),
        cmocka_unit_test(damaged_states_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
