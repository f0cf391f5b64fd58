// The decision by tables: which side a score asks for, when a position ends, goes on or is reversed, its size, stop and
// target.
#include "backtest/decide.h"

#include "env/account_terms.h"
#include "support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const double price = 100, volatility = 0.01;

static int64_t fixed(double v) {
    int64_t to;
    assert_true(account_fixed(v, &to));
    return to;
}

static account_rules rules_of(double contract, double step, double leverage) {
    return (account_rules){.cash = fixed(10000),
        .commission_units = ACCOUNT_ONE,
        .leverage = fixed(leverage),
        .contract = fixed(contract),
        .lot_step = fixed(step),
        .entry_stop = true,
        .shorts = true};
}

// An account that holds so many units, bought or sold at the price, with a stop and a target at 5 % of it.
static account account_with(const account_rules *r, double units) {
    account a;
    account_events ev;
    int side = units > 0 ? 1 : -1;
    account_order o = {fixed(units), fixed(price - side * 5), fixed(price + side * 5)};
    account_bar b = {fixed(price), fixed(price), fixed(price), fixed(price), 0};
    account_init(&a, r);
    if (units != 0) account_step(&a, r, &o, &b, &ev);
    assert_int_equal(a.units, fixed(units));
    return a;
}

static const decide_rule usual = {.threshold = 0.5,
    .hold = 4,
    .exit = SIGNAL_HORIZON,
    .sizing = SIGNAL_FIXED,
    .size = 3,
    .volatility_bars = 100,
    .bars_a_year = 2500};

static account_order asked(const decide_rule *r, double score, double held_units, int64_t held) {
    account_rules rules = rules_of(1, 0, 1);
    account a = account_with(&rules, held_units);
    return decide(r, &(decide_prediction){score, volatility, fixed(price)}, held, &a, &rules);
}

static void exits_by_table(void **state) {
    (void)state;
    static const struct {
        signal_exit exit;
        int64_t hold;
        double score, units; // that are held
        int64_t held;
        double wanted;
        bool keeps; // stop and target as they are
    } cases[] = {
        // From flat: the threshold itself is enough.
        {SIGNAL_HORIZON, 4, 0.5, 0, 0, 3, false},
        {SIGNAL_HORIZON, 4, -0.5, 0, 0, -3, false},
        {SIGNAL_HORIZON, 4, 0.499999, 0, 0, 0, false},
        {SIGNAL_HORIZON, 4, -0.499999, 0, 0, 0, false},
        {SIGNAL_HORIZON, 4, NAN, 0, 0, 0, false},
        // Horizon: nothing but time ends a position; then it goes on with its size, ends, or is reversed.
        {SIGNAL_HORIZON, 4, -0.9, 2, 3, 2, true},
        {SIGNAL_HORIZON, 4, 0, 2, 3, 2, true},
        {SIGNAL_HORIZON, 4, NAN, 2, 3, 2, true},
        {SIGNAL_HORIZON, 4, 0, 2, 4, 0, false},
        {SIGNAL_HORIZON, 4, NAN, 2, 4, 0, false},
        {SIGNAL_HORIZON, 4, 0.9, 2, 4, 2, false},
        {SIGNAL_HORIZON, 4, -0.9, 2, 4, -3, false},
        {SIGNAL_HORIZON, 4, 0.9, 2, 5, 2, true},
        {SIGNAL_HORIZON, 4, 0, 2, 8, 0, false},
        // Opposite: also the other side.
        {SIGNAL_OPPOSITE, 4, 0, 2, 3, 2, true},
        {SIGNAL_OPPOSITE, 4, 0.9, 2, 3, 2, true},
        {SIGNAL_OPPOSITE, 4, -0.9, 2, 3, -3, false},
        {SIGNAL_OPPOSITE, 4, 0.9, -2, 3, 3, false},
        {SIGNAL_OPPOSITE, 4, 0, 2, 4, 0, false},
        {SIGNAL_OPPOSITE, 0, 0, 2, 1000, 2, true},
        // Neutral: no side is enough.
        {SIGNAL_NEUTRAL, 4, 0, 2, 3, 0, false},
        {SIGNAL_NEUTRAL, 4, 0.9, 2, 3, 2, true},
        {SIGNAL_NEUTRAL, 4, -0.9, -2, 3, -2, true},
        {SIGNAL_NEUTRAL, 4, -0.9, 2, 3, -3, false},
        {SIGNAL_NEUTRAL, 0, 0.9, 2, 1000, 2, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        decide_rule r = usual;
        r.exit = cases[i].exit;
        r.hold = cases[i].hold;
        account_order o = asked(&r, cases[i].score, cases[i].units, cases[i].held);
        int side = cases[i].units > 0 ? 1 : -1;
        if (o.units != fixed(cases[i].wanted))
            fail_msg("case %zu: %.3f units, not %.3f", i, (double)o.units / 1e8, cases[i].wanted);
        bool kept = o.stop == fixed(price - side * 5) && o.target == fixed(price + side * 5);
        if (kept != cases[i].keeps) fail_msg("case %zu: stop and target %s", i, kept ? "stay" : "are others");
    }
}

static void stops_lie_where_labels_have_them(void **state) {
    (void)state;
    decide_rule r = usual;
    r.up = (decide_distance){1, 2};
    r.down = (decide_distance){2, 1};
    account_order o = asked(&r, 0.9, 0, 0);
    assert_int_equal(o.stop, fixed(price * exp(-0.01)));
    assert_int_equal(o.target, fixed(price * exp(0.02)));
    o = asked(&r, -0.9, 0, 0);
    assert_int_equal(o.stop, fixed(price * exp(0.02)));
    assert_int_equal(o.target, fixed(price * exp(-0.01)));
    // A position that goes on has them from this close.
    o = asked(&r, 0.9, 2, 4);
    assert_int_equal(o.stop, fixed(price * exp(-0.01)));
    r.returns = true;
    r.up = (decide_distance){0.5, 0};
    o = asked(&r, 0.9, 0, 0);
    assert_int_equal(o.stop, fixed(price * exp(-0.5)));
    assert_int_equal(o.target, 0);
}

static void unknown_volatility_opens_nothing(void **state) {
    (void)state;
    account_rules rules = rules_of(1, 0, 1);
    account a = account_with(&rules, 0);
    decide_rule r = usual;
    for (int k = 0; k < 2; k++) {
        decide_prediction p = {0.9, k ? NAN : -1, fixed(price)};
        assert_int_equal(decide(&usual, &p, 0, &a, &rules).units, fixed(3));
        r.up.stop = 1;
        assert_int_equal(decide(&r, &p, 0, &a, &rules).units, 0);
        r.up.stop = 0;
        r.sizing = SIGNAL_VOLATILITY;
        assert_int_equal(decide(&r, &p, 0, &a, &rules).units, 0);
        r.sizing = SIGNAL_FIXED;
    }
}

static void sizes_by_table(void **state) {
    (void)state;
    static const struct {
        signal_sizing sizing;
        double size, contract, step, leverage, units;
    } cases[] = {
        {SIGNAL_FIXED, 3, 1, 0, 1, 3},
        {SIGNAL_FIXED, 3, 10, 0, 1, 30},
        {SIGNAL_FIXED, 0.37, 10, 0.1, 1, 3},
        {SIGNAL_EQUITY, 0.5, 1, 0, 1, 50},     // half of 10,000 at 100
        {SIGNAL_EQUITY, 0.5, 30, 0.1, 1, 48},  // 1.666 lots, cut to 1.6
        {SIGNAL_VOLATILITY, 0.1, 1, 0, 1, 20}, // 0.01 x 50 a year is 0.5: a fifth of the equity
        {SIGNAL_VOLATILITY, 5, 1, 0, 1, 95},   // not beyond what the leverage allows
        {SIGNAL_VOLATILITY, 5, 1, 0, 4, 380},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        decide_rule r = usual;
        r.sizing = cases[i].sizing;
        r.size = cases[i].size;
        account_rules rules = rules_of(cases[i].contract, cases[i].step, cases[i].leverage);
        account a = account_with(&rules, 0);
        for (int side = -1; side <= 1; side += 2) {
            decide_prediction p = {0.9 * side, volatility, fixed(price)};
            double units = (double)decide(&r, &p, 0, &a, &rules).units / 1e8;
            if (fabs(units - side * cases[i].units) > 1e-6) fail_msg("case %zu: %.8f units", i, units);
        }
    }
}

static void shorts_can_be_forbidden(void **state) {
    (void)state;
    account_rules rules = rules_of(1, 0, 1);
    account a = account_with(&rules, 0);
    decide_prediction down = {-0.9, volatility, fixed(price)};
    assert_int_equal(decide(&usual, &down, 0, &a, &rules).units, fixed(-3));
    rules.shorts = false;
    assert_int_equal(decide(&usual, &down, 0, &a, &rules).units, 0);
    decide_rule r = usual;
    r.exit = SIGNAL_OPPOSITE;
    a = account_with(&rules, 2);
    assert_int_equal(decide(&r, &down, 1, &a, &rules).units, 0);
    r.exit = SIGNAL_HORIZON;
    assert_int_equal(decide(&r, &down, 1, &a, &rules).units, fixed(2));
}

static void scores_by_hand(void **state) {
    (void)state;
    const float three[] = {0.25F, 0.25F, 0.5F}, even[] = {0.4F, 0.2F, 0.4F},
                five[] = {0.25F, 0.25F, 0.125F, 0.25F, 0.125F};
    assert_float_equal(decide_score_classes(three, 3), 0.5, 0);
    assert_float_equal(decide_score_classes(even, 3), 0, 0);
    assert_float_equal(decide_score_classes(five, 5), -0.5, 0);
    const float path[] = {0.5F, 0.25F}, close[] = {1, 200};
    assert_float_equal(decide_score_forecast(path, 2, LABEL_PATH, 100), 0.25, 0);
    assert_float_equal(decide_score_forecast(path, 2, LABEL_STEP, 100), 0.75, 0);
    assert_float_equal(decide_score_forecast(close, 2, LABEL_CLOSE, 100), log(2), 1e-12);
    assert_true(isnan(decide_score_forecast((const float[]){-1}, 1, LABEL_CLOSE, 100)));
    assert_int_equal(decide_side(&(decide_rule){.threshold = 0}, 0), 0);
}

static signal_settings settings_of(const char *words) {
    size_t count, more;
    config_key keys[32];
    err e = {0};
    signal_settings s = {0};
    const config_key *from = signal_keys(&count);
    for (size_t i = 0; i < count; i++) keys[i] = from[i];
    from = report_keys(&more);
    for (size_t i = 0; i < more; i++) keys[count + i] = from[i];
    config *c = config_read("test", words, strlen(words), keys, count + more, &e);
    assert_non_null(c);
    support_ok(config_check(c, &e) && signal_read(c, &s, &e), &e);
    config_free(c);
    return s;
}

static void rules_have_words(void **state) {
    (void)state;
    char text[400];
    decide_rule r = usual;
    assert_string_equal(decide_text(&r, text, sizeof text),
        "scores of 0.5 or more; held whatever is predicted, 4 bars at most; no stop, no target; 3 lots");
    r.hold = 1;
    r.up = r.down = (decide_distance){.stop = 2, .target = 3};
    assert_string_equal(decide_text(&r, text, sizeof text),
        "scores of 0.5 or more; held whatever is predicted, 1 bar at most; stop at 2 volatilities, target at 3 "
        "volatilities; 3 lots");
}

static void labels_give_the_defaults(void **state) {
    (void)state;
    build_options label = build_defaults;
    signal_settings s = settings_of("");
    decide_rule r;
    label.direction.horizon = 7;
    decide_rule_make(&r, &s, &label, 2500);
    assert_true(r.hold == 7 && r.threshold == SIGNAL_AUTO && r.exit == SIGNAL_HORIZON && r.size == 0.95);
    assert_true(r.up.stop == 0 && r.down.target == 0 && !r.returns && !decide_needs_volatility(&r));
    label.label = BUILD_BARRIER;
    label.barrier = (label_barrier_options){.up = 3, .down = 1, .volatility_bars = 50, .limit = 12, .side = 1};
    decide_rule_make(&r, &s, &label, 2500);
    assert_true(r.hold == 12 && r.up.target == 3 && r.up.stop == 1 && r.down.target == 1 && r.down.stop == 3);
    assert_true(r.volatility_bars == 50 && decide_needs_volatility(&r));
    s = settings_of("signal: {stop: 4, target: none, hold: 5, threshold: 0.6, sizing: volatility}");
    decide_rule_make(&r, &s, &label, 2500);
    assert_true(r.hold == 5 && r.up.stop == 4 && r.down.stop == 4 && r.up.target == 0 && r.down.target == 0);
    assert_true(r.threshold == 0.6 && r.size == 0.1);
    label.barrier.volatility_bars = 0;
    decide_rule_make(&r, &s, &label, 2500);
    assert_true(r.returns && r.volatility_bars == 100);
    label.label = BUILD_FORECAST;
    label.horizon = 9;
    s = settings_of("");
    decide_rule_make(&r, &s, &label, 2500);
    assert_true(r.hold == 9 && !r.returns && r.up.stop == 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(exits_by_table),
        cmocka_unit_test(stops_lie_where_labels_have_them), cmocka_unit_test(unknown_volatility_opens_nothing),
        cmocka_unit_test(sizes_by_table), cmocka_unit_test(shorts_can_be_forbidden), cmocka_unit_test(scores_by_hand),
        cmocka_unit_test(rules_have_words), cmocka_unit_test(labels_give_the_defaults)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
