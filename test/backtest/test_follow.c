// Rules over bars: the fitted threshold of a planted signal, orders that no later bar changes, and the vectorised
// replay beside the one by events.
#include "backtest/follow.h"

#include "base/rng.h"
#include "data/walk.h"
#include "support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { N = 3000, SPAN = 3600 };

// A number from -1 to 1.
static double noise_at(uint64_t seed, int64_t i) {
    return 2 * (double)rng_unit(rng_philox(seed, (uint32_t)i, 0, (uint32_t)RNG_TEST << 16, 0).v[0]) - 1;
}

static account_terms terms_of(const char *words) {
    size_t count;
    err e = {0};
    account_terms t = {0};
    const config_key *keys = account_keys(&count);
    config *c = config_read("test", words, strlen(words), keys, count, &e);
    assert_non_null(c);
    support_ok(config_check(c, &e) && account_terms_read(c, &t, &e), &e);
    config_free(c);
    return t;
}

static quotes quotes_of(const bar *all, int64_t count) {
    quotes q;
    err e = {0};
    bars b = {.bar = (bar *)all, .count = count};
    support_ok(quotes_init(&q, &b, "walk", 0, false, &e), &e);
    return q;
}

// Scores and volatilities; the scores know nothing of the bars.
static follow_series series_of(const bar *all, int64_t count, uint64_t seed) {
    follow_series s = {malloc((size_t)count * sizeof *s.score), walk_volatility(all, count, 50)};
    assert_non_null(s.score);
    for (int64_t i = 0; i < count; i++) {
        s.score[i] = noise_at(seed, i);
        if (i % 97 == 0) s.score[i] = NAN;
    }
    return s;
}

static void series_free(follow_series *s) {
    free(s->score);
    free(s->volatility);
}

static const decide_rule rules_to_try[] = {
    {.threshold = 0.6, .hold = 5, .exit = SIGNAL_HORIZON, .sizing = SIGNAL_EQUITY, .size = 0.9},
    {.threshold = 0.8, .hold = 0, .exit = SIGNAL_OPPOSITE, .sizing = SIGNAL_FIXED, .size = 2},
    {.threshold = 0.3,
        .hold = 9,
        .exit = SIGNAL_NEUTRAL,
        .sizing = SIGNAL_VOLATILITY,
        .size = 0.2,
        .bars_a_year = 6000},
    {.threshold = 0.7,
        .hold = 12,
        .exit = SIGNAL_HORIZON,
        .up = {2, 3},
        .down = {3, 2},
        .sizing = SIGNAL_EQUITY,
        .size = 0.5},
};
enum { RULES = sizeof rules_to_try / sizeof *rules_to_try };

typedef struct {
    quotes q;
    account_terms t;
    account_rules rules;
    follow_series s;
    replay p;
    signals_orders o;
} followed;

static void follow_ready(followed *f, const bar *all, int64_t count, const char *account) {
    err e = {0};
    f->q = quotes_of(all, count);
    f->t = terms_of(account);
    f->s = series_of(all, count, 5);
    f->o = (signals_orders){.item = calloc((size_t)count, sizeof *f->o.item)};
    support_ok(account_rules_make(&f->rules, &f->t, f->q.point, &e), &e);
    support_ok(replay_init(&f->p, &f->q, &f->t, &f->rules, count, &e), &e);
}

static void follow_open(followed *f, const bar *all, int64_t count, const decide_rule *r, const char *account) {
    err e = {0};
    follow_ready(f, all, count, account);
    support_ok(follow(&f->p, &(follow_stretch){0, r}, 1, &f->s, &f->o, &e), &e);
}

static void follow_close(followed *f) {
    replay_done(&f->p);
    signals_orders_done(&f->o);
    series_free(&f->s);
    quotes_done(&f->q);
}

static const char costs[] = "account: {spread: 0.0002, commission: 0.0001, slippage: 0.0001, leverage: 2}";

// The orders that a rule gave, replayed as a list, give the same books; where no stop is set both ways do, to the cent.
static void lists_of_orders_give_the_same_books(void **state) {
    (void)state;
    bar *all = walk_bars(N, SPAN, 3);
    for (int k = 0; k < RULES; k++) {
        followed f;
        replay events, plain;
        err e = {0};
        follow_open(&f, all, N, &rules_to_try[k], costs);
        assert_true(f.p.trades > 50);
        support_ok(replay_init(&events, &f.q, &f.t, &f.rules, f.o.count, &e), &e);
        support_ok(replay_init(&plain, &f.q, &f.t, &f.rules, f.o.count, &e), &e);
        support_ok(replay_events(&events, &f.o, &e), &e);
        bool stops = rules_to_try[k].up.stop > 0;
        assert_int_equal(replay_plain(&plain, &f.o), !stops);
        if (!stops) support_ok(replay_end(&plain, &e), &e);
        for (int which = 0; which < (stops ? 1 : 2); which++) {
            const replay *is = which ? &plain : &events;
            assert_memory_equal(is->equity, f.p.equity, N * sizeof *is->equity);
            assert_int_equal(is->trades, f.p.trades);
            for (int64_t i = 0; i < is->trades; i++)
                assert_memory_equal(&is->trade[i], &f.p.trade[i], sizeof *is->trade);
            assert_int_equal(is->held, f.p.held);
        }
        replay_done(&events);
        replay_done(&plain);
        follow_close(&f);
    }
    free(all);
}

// Orders up to a bar stay as they are when everything behind that bar is changed, or cut off.
static void no_order_knows_what_follows(void **state) {
    (void)state;
    static const int64_t cuts[] = {200, 777, 1500, 2999};
    for (int k = 0; k < RULES; k++)
        for (size_t c = 0; c < sizeof cuts / sizeof *cuts; c++)
            for (int cut = 0; cut < 2; cut++) {
                bar *all = walk_bars(N, SPAN, 3);
                followed whole, other;
                follow_open(&whole, all, N, &rules_to_try[k], costs);
                for (int64_t i = cuts[c]; i < N; i++) walk_scramble(&all[i], (uint64_t)i);
                follow_open(&other, all, cut ? cuts[c] : N, &rules_to_try[k], costs);
                // Bar cuts[c] is the first that is another; an order for its open was decided before.
                int64_t last = cut ? cuts[c] - 1 : cuts[c], n = 0;
                for (; n < whole.o.count && whole.o.item[n].bar <= last; n++) {
                    assert_true(n < other.o.count);
                    assert_memory_equal(&whole.o.item[n], &other.o.item[n], sizeof *whole.o.item);
                }
                assert_true(n == other.o.count || other.o.item[n].bar > last);
                if (!cut) assert_memory_equal(whole.p.equity, other.p.equity, (size_t)(cuts[c] - 1) * sizeof(int64_t));
                follow_close(&whole);
                follow_close(&other);
                free(all);
            }
}

// A stretch whose rule asks for nothing is as one without scores; a rule goes on where the next stretch has the same.
static void stretches_have_their_own_rules(void **state) {
    (void)state;
    enum { CUT = 1234, WAYS = 3 };
    bar *all = walk_bars(N, SPAN, 3);
    for (int k = 0; k < RULES; k++) {
        decide_rule never = rules_to_try[k];
        const decide_rule *is = &rules_to_try[k];
        never.threshold = 2;
        const follow_stretch ways[WAYS][2] = {{{0, is}, {CUT, &never}}, {{0, &never}, {CUT, is}}, {{0, is}, {CUT, is}}};
        for (int way = 0; way < WAYS; way++) {
            followed two, one;
            err e = {0};
            follow_ready(&two, all, N, costs);
            follow_ready(&one, all, N, costs);
            for (int64_t i = 0; i < N; i++)
                if ((way == 0 && i >= CUT) || (way == 1 && i < CUT)) one.s.score[i] = NAN;
            support_ok(follow(&two.p, ways[way], 2, &two.s, &two.o, &e), &e);
            support_ok(follow(&one.p, &(follow_stretch){0, is}, 1, &one.s, &one.o, &e), &e);
            assert_true(one.o.count > 20);
            assert_int_equal(two.o.count, one.o.count);
            assert_memory_equal(two.o.item, one.o.item, (size_t)one.o.count * sizeof *one.o.item);
            assert_memory_equal(two.p.equity, one.p.equity, N * sizeof *one.p.equity);
            follow_close(&two);
            follow_close(&one);
        }
    }
    free(all);
}

// Bars of small noise in which a score at or above 0.7 is followed by a rise, and one at or below -0.7 by a fall,
// larger than the costs; other scores are followed by nothing.
static bar *plant(double *score) {
    bar *all = calloc(N, sizeof *all);
    assert_non_null(all);
    double at = 100;
    for (int64_t i = 0; i < N; i++) {
        double noise = 0.001 * noise_at(11, i);
        double told = i > 0 && fabs(score[i - 1]) >= 0.7 ? 0.004 * (score[i - 1] > 0 ? 1 : -1) : 0;
        all[i] = (bar){.time = i * SPAN, .open = at};
        at *= exp(noise);
        all[i].close = at;
        // Fills are at opens: the move lies between the open after the decision and the next one.
        at *= exp(told);
        all[i].high = fmax(all[i].open, all[i].close);
        all[i].low = fmin(all[i].open, all[i].close);
    }
    return all;
}

static void threshold_of_a_planted_signal_is_found(void **state) {
    (void)state;
    err e = {0};
    follow_series s = {malloc(N * sizeof(double)), calloc(N, sizeof(double))};
    for (int64_t i = 0; i < N; i++) s.score[i] = noise_at(5, i);
    bar *all = plant(s.score);
    quotes q = quotes_of(all, N);
    decide_rule r = {.threshold = SIGNAL_AUTO, .hold = 1, .exit = SIGNAL_HORIZON, .sizing = SIGNAL_FIXED, .size = 1};
    account_terms t = terms_of("account: {spread: 0.001}");
    account_rules rules;
    follow_fitted one, two;
    support_ok(account_rules_make(&rules, &t, q.point, &e), &e);
    support_ok(follow_fit(&r, &q, &s, &t, &rules, &one, &e), &e);
    print_message("threshold %g, result %.2f, %lld trades\n", one.threshold, one.result, (long long)one.trades);
    assert_true(one.threshold > 0.65 && one.threshold < 0.75);
    assert_true(one.result > 0 && one.trades > 500);
    // The same again.
    support_ok(follow_fit(&r, &q, &s, &t, &rules, &two, &e), &e);
    assert_memory_equal(&one, &two, sizeof one);
    // Without costs everything that is not wrong on average pays, so that less is asked for or the same.
    t = terms_of("");
    support_ok(account_rules_make(&rules, &t, q.point, &e), &e);
    support_ok(follow_fit(&r, &q, &s, &t, &rules, &two, &e), &e);
    assert_true(two.threshold <= one.threshold);
    for (int64_t i = 0; i < N; i++) s.score[i] = NAN;
    assert_false(follow_fit(&r, &q, &s, &t, &rules, &two, &e));
    assert_non_null(strstr(e.text, "signal.threshold"));
    quotes_done(&q);
    series_free(&s);
    free(all);
}

// A threshold that nobody could pay for is not hidden: the line of the account is told.
static void costs_above_the_capital_are_told(void **state) {
    (void)state;
    err e = {0};
    bar *all = walk_bars(500, SPAN, 3);
    quotes q = quotes_of(all, 500);
    follow_series s = series_of(all, 500, 5);
    decide_rule r = {.threshold = SIGNAL_AUTO, .hold = 1, .exit = SIGNAL_HORIZON, .sizing = SIGNAL_FIXED, .size = 1e6};
    account_terms t = terms_of("account: {cash: 100, commission: 0.5}");
    account_rules rules;
    follow_fitted f;
    support_ok(account_rules_make(&rules, &t, q.point, &e), &e);
    assert_false(follow_fit(&r, &q, &s, &t, &rules, &f, &e));
    assert_true(e.kind == ERR_INPUT && strstr(e.text, "costs are above the capital"));
    quotes_done(&q);
    series_free(&s);
    free(all);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(lists_of_orders_give_the_same_books),
        cmocka_unit_test(no_order_knows_what_follows), cmocka_unit_test(stretches_have_their_own_rules),
        cmocka_unit_test(threshold_of_a_planted_signal_is_found), cmocka_unit_test(costs_above_the_capital_are_told)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
