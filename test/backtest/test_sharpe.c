// Sharpe ratios under doubt against published answers and against long double; overfitting against every choice of
// blocks written out; correlations against sums written out; the random-entry control where its answer is known.
#include "backtest/control.h"
#include "backtest/correlation.h"
#include "backtest/overfit.h"
#include "backtest/sharpe.h"

#include "support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void near(double is, double must, double by) {
    if (!(fabs(is - must) <= by)) fail_msg("%.12g, not %.12g", is, must);
}

static void normal_numbers(void **state) {
    (void)state;
    near(normal_below(0), 0.5, 1e-16);
    near(normal_below(1.959963984540054), 0.975, 1e-15);
    near(normal_at(0.95), 1.6448536269514722, 1e-14);
    near(normal_at(1e-10), -6.361340902404056, 1e-12);
    for (double p = 1e-12; p < 1; p = p * 1.7 + 1e-3) near(normal_below(normal_at(p)) / p, 1, 1e-13);
}

// Five years of days at an annual ratio of 2.5, the best of so many trials whose annual ratios have a variance of 0.5.
static void deflated_ratio_is_that_of_the_paper(void **state) {
    (void)state;
    sharpe_sample s = {2.5 / sqrt(250), -3, 10, 1250};
    near(sharpe_probability(&s, sharpe_luck(100, 0.5 / 250)), 0.900397, 5e-7);
    near(sharpe_probability(&s, sharpe_luck(46, 0.5 / 250)), 0.950502, 5e-7);
    near(sharpe_luck(100, 0.5 / 250), 0.113176, 5e-6);
    assert_true(sharpe_luck(1, 0.5) == 0);
    near(sharpe_probability(&s, sharpe_luck(1, 0.5)), sharpe_probability(&s, 0), 0);
}

// 24 months with a ratio of 0.458 a month.
static void track_record_is_that_of_the_paper(void **state) {
    (void)state;
    sharpe_sample s = {0.458, -2.448, 10.164, 24};
    near(sharpe_probability(&s, 0), 0.913361, 5e-7);
    near(sharpe_track(&s, 0, 0.95), 34.558, 5e-4);
    sharpe_sample longer = s;
    longer.count = sharpe_track(&s, 0, 0.95);
    near(sharpe_probability(&longer, 0), 0.95, 1e-12);
    assert_true(isnan(sharpe_track(&s, 0.458, 0.95)));
    s.count = 1;
    assert_true(isnan(sharpe_probability(&s, 0)));
}

static void moments_agree_with_long_double(void **state) {
    (void)state;
    enum { N = 997 };
    double back[N], mean, deviation;
    sharpe_sample s;
    dice d = {.seed = 3};
    for (int i = 0; i < N; i++) back[i] = 0.0004 + 0.01 * pow((double)dice_unit(&d), 3);
    long double m = 0, m2 = 0, m3 = 0, m4 = 0;
    for (int i = 0; i < N; i++) m += (long double)back[i] / N;
    for (int i = 0; i < N; i++) {
        long double x = back[i] - m;
        m2 += x * x / N;
        m3 += x * x * x / N;
        m4 += x * x * x * x / N;
    }
    sharpe_moments(back, N, &mean, &deviation, &s);
    near(mean, (double)m, 1e-16);
    near(deviation, (double)sqrtl(m2 * N / (N - 1)), 1e-15);
    near(s.sharpe, (double)(m / sqrtl(m2 * N / (N - 1))), 1e-12);
    near(s.skew, (double)(m3 / powl(m2, 1.5L)), 1e-12);
    near(s.kurtosis, (double)(m4 / (m2 * m2)), 1e-11);
    assert_true(s.count == N);
}

static void returns_that_do_not_vary(void **state) {
    (void)state;
    double back[50], mean, deviation, equity = 97.3;
    sharpe_sample s;
    bool varies = false;
    for (int i = 0; i < 50; i++) {
        double next = 97.3 * pow(1.0003, i + 1);
        back[i] = next / equity - 1; // equal but for rounding
        equity = next;
        varies |= back[i] != back[0];
    }
    assert_true(varies);
    sharpe_moments(back, 50, &mean, &deviation, &s);
    assert_true(deviation == 0 && isnan(s.sharpe) && isnan(s.skew) && isnan(s.kurtosis));
    sharpe_moments(back, 1, &mean, &deviation, &s);
    assert_true(isnan(deviation) && isnan(s.sharpe) && mean == back[0]);
}

// Overfitting

static double plain_ratio(const double *back, int64_t periods, int64_t trials, int blocks, int64_t k, unsigned choice) {
    long double n = 0, sum = 0, square = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int64_t i = 0; i < periods; i++) {
            int b = 0;
            while (periods * (b + 1) / blocks <= i) b++;
            if (!(choice >> b & 1)) continue;
            long double x = back[i * trials + k];
            if (pass) square += (x - sum / n) * (x - sum / n);
            if (!pass) sum += x;
            if (!pass) n++;
        }
    return square > 0 ? (double)(sum / n / sqrtl(square / (n - 1))) : 0;
}

static overfit plain_overfit(const double *back, int64_t periods, int64_t trials, int blocks) {
    overfit to = {0};
    unsigned all = (1u << blocks) - 1;
    for (unsigned choice = 0; choice <= all; choice++) {
        int bits = 0;
        for (int b = 0; b < blocks; b++) bits += (int)(choice >> b & 1);
        if (bits != blocks / 2) continue;
        int64_t best = 0, below = 0;
        for (int64_t k = 1; k < trials; k++)
            if (plain_ratio(back, periods, trials, blocks, k, choice) >
                plain_ratio(back, periods, trials, blocks, best, choice))
                best = k;
        double out = plain_ratio(back, periods, trials, blocks, best, all & ~choice);
        for (int64_t k = 0; k < trials; k++)
            below += plain_ratio(back, periods, trials, blocks, k, all & ~choice) < out;
        double w = (double)(below + 1) / (double)(trials + 1);
        to.choices++;
        to.probability += w <= 0.5;
        to.loss += out < 0;
        to.logit += log(w / (1 - w));
    }
    to.probability /= (double)to.choices;
    to.loss /= (double)to.choices;
    to.logit /= (double)to.choices;
    return to;
}

static void overfitting_agrees_with_every_choice(void **state) {
    (void)state;
    static const struct {
        int64_t periods, trials;
        int blocks;
    } cases[] = {{40, 2, 2}, {61, 5, 4}, {83, 7, 6}, {50, 9, 8}};
    err e;
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        double back[90 * 9];
        dice d = {.seed = c + 1};
        for (int64_t i = 0; i < cases[c].periods * cases[c].trials; i++)
            back[i] = (double)dice_unit(&d) + 0.05 * (double)(i % cases[c].trials);
        overfit is, must = plain_overfit(back, cases[c].periods, cases[c].trials, cases[c].blocks);
        support_ok(overfit_make(back, cases[c].periods, cases[c].trials, cases[c].blocks, &is, &e), &e);
        assert_int_equal(is.choices, must.choices);
        near(is.probability, must.probability, 1e-12);
        near(is.loss, must.loss, 1e-12);
        near(is.logit, must.logit, 1e-9);
    }
}

// One trial that is truly better wins everywhere; trials of noise alone win by luck.
static void skill_is_told_from_luck(void **state) {
    (void)state;
    enum { T = 1000, N = 10 };
    static double back[T * N];
    err e;
    overfit o;
    dice d = {.seed = 12};
    for (int i = 0; i < T * N; i++) back[i] = (double)dice_unit(&d) + (i % N == 4 ? 0.5 : 0);
    support_ok(overfit_make(back, T, N, OVERFIT_BLOCKS, &o, &e), &e);
    assert_int_equal(o.choices, 12870);
    assert_true(o.probability == 0 && o.loss == 0);
    near(o.logit, log(10), 1e-12);
    for (int i = 0; i < T * N; i++) back[i] = (double)dice_unit(&d);
    support_ok(overfit_make(back, T, N, OVERFIT_BLOCKS, &o, &e), &e);
    assert_true(o.probability > 0.2 && o.probability < 0.9);
    for (int i = 0; i < T * N; i++) back[i] = 0; // nothing varies: all share the middle rank
    support_ok(overfit_make(back, T, N, 4, &o, &e), &e);
    assert_true(o.probability == 1 && o.logit == 0 && o.loss == 0);
}

static void too_little_for_overfitting(void **state) {
    (void)state;
    err e;
    overfit o;
    double back[30] = {0};
    assert_false(overfit_make(back, 30, 1, 16, &o, &e));
    assert_string_equal(e.text, "overfitting is a matter of at least 2 trials; there are 1");
    assert_false(overfit_make(back, 15, 2, 16, &o, &e));
    assert_string_equal(e.text, "15 periods are too few for 16 blocks; there must be 32");
}

// Correlations

static void correlations_agree_with_sums(void **state) {
    (void)state;
    enum { N = 311 };
    double x[N], y[N], is;
    long double mx = 0, my = 0, xx = 0, yy = 0, xy = 0, rank = 0;
    err e;
    dice d = {.seed = 8};
    for (int i = 0; i < N; i++) {
        x[i] = (double)dice_below(&d, 40); // many are equal
        y[i] = x[i] + 30 * (double)dice_unit(&d);
        mx += (long double)x[i] / N;
        my += (long double)y[i] / N;
    }
    for (int i = 0; i < N; i++) {
        xx += (x[i] - mx) * (x[i] - mx);
        yy += (y[i] - my) * (y[i] - my);
        xy += (x[i] - mx) * (y[i] - my);
    }
    near(correlation(x, y, N), (double)(xy / sqrtl(xx * yy)), 1e-12);
    // A rank is the number of smaller values and half the number of other equal ones.
    xx = yy = xy = 0;
    for (int i = 0; i < N; i++) {
        long double rx = 0, ry = 0;
        for (int k = 0; k < N; k++) {
            rx += x[k] < x[i] ? 1 : x[k] == x[i] ? 0.5L : 0;
            ry += y[k] < y[i] ? 1 : y[k] == y[i] ? 0.5L : 0;
        }
        rx -= N / 2.0L;
        ry -= N / 2.0L;
        xx += rx * rx;
        yy += ry * ry;
        xy += rx * ry;
        rank += rx;
    }
    assert_true(fabsl(rank) < 1e-9L);
    support_ok(correlation_of_ranks(x, y, N, &is, &e), &e);
    near(is, (double)(xy / sqrtl(xx * yy)), 1e-12);
}

static void correlations_that_do_not_exist(void **state) {
    (void)state;
    double x[40], y[40], is;
    err e;
    for (int i = 0; i < 40; i++) {
        x[i] = 0.1;
        y[i] = i;
    }
    assert_true(isnan(correlation(x, y, 40)) && isnan(correlation(y, x, 40)) && isnan(correlation(y, y, 1)));
    support_ok(correlation_of_ranks(x, y, 40, &is, &e), &e);
    assert_true(isnan(is));
    support_ok(correlation_of_ranks(x, y, 0, &is, &e), &e);
    assert_true(isnan(is));
    for (int i = 0; i < 40; i++) x[i] = exp(-i); // the other way round, and not straight
    support_ok(correlation_of_ranks(x, y, 40, &is, &e), &e);
    near(is, -1, 1e-14);
}

// The control

static control controls(const control_input *in, double own) {
    err e;
    control c;
    bool room;
    support_ok(control_make(in, own, &c, &room, &e), &e);
    assert_true(room);
    return c;
}

// A price that grows by the same factor every bar: every place gives the same.
static void places_do_not_matter_where_prices_only_grow(void **state) {
    (void)state;
    enum { BARS = 500 };
    double price[BARS];
    for (int i = 0; i < BARS; i++) price[i] = 50 * pow(1.001, i);
    control_trade trade[] = {{10, 1, 0.001}, {0, -0.5, 0}, {250, 2, 0.002}};
    control_input in = {price, BARS, trade, 3, 1};
    double must = (1 + (pow(1.001, 10) - 1) - 0.001) * (1 - 0.5 * 0.001) * (1 + 2 * (pow(1.001, 250) - 1) - 0.002) - 1;
    control c = controls(&in, must + 1e-9);
    near(c.mean, must, 1e-9);
    near(c.low, must, 1e-9);
    near(c.high, must, 1e-9);
    assert_true(c.better == 0 && controls(&in, must - 1e-9).better == 1);
}

// The mean of a one-bar trade's controls is the mean of all bars; a jump is met as often as chance has it.
static void places_are_uniform(void **state) {
    (void)state;
    enum { BARS = 101 };
    double price[BARS];
    for (int i = 0; i < BARS; i++) price[i] = i < 40 ? 100 : 110;
    control_trade trade[] = {{20, 1, 0}};
    control_input in = {price, BARS, trade, 1, 5};
    control c = controls(&in, 0.05); // entries 20 to 39 of 0 to 80 hold over the jump
    near(c.better, 20.0 / 81, 0.04);
    near(c.mean, 0.1 * c.better, 1e-12);
    in.seed = 6;
    control other = controls(&in, 0.05), again = controls(&in, 0.05);
    assert_true(other.better != c.better && other.better == again.better && other.mean == again.mean);
    // Two trades that fill all bars have two orders, each as likely.
    for (int i = 20; i < BARS; i++) price[i] = 110;
    control_trade full[] = {{39, 1, 0}, {61, -1, 0}};
    control_input two = {price, BARS, full, 2, 5};
    near(controls(&two, 0).better, 0.5, 0.05);
}

static void trades_that_overlap_have_no_control(void **state) {
    (void)state;
    double price[10] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    control_trade trade[] = {{5, 1, 0}, {4, 1, 0}, {1, 1, 0}};
    control_input in = {price, 10, trade, 3, 1};
    control c;
    bool room;
    err e;
    support_ok(control_make(&in, 0, &c, &room, &e), &e);
    assert_false(room);
    in.trades = 2;
    assert_true(controls(&in, 0).better == 1);
    trade[0].share = -1;
    for (int i = 0; i < 10; i++) price[i] = pow(3, i); // a short position loses more than all
    near(controls(&in, 0).mean, -1, 1e-12);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(normal_numbers),
        cmocka_unit_test(deflated_ratio_is_that_of_the_paper),
        cmocka_unit_test(track_record_is_that_of_the_paper),
        cmocka_unit_test(moments_agree_with_long_double),
        cmocka_unit_test(returns_that_do_not_vary),
        cmocka_unit_test(overfitting_agrees_with_every_choice),
        cmocka_unit_test(skill_is_told_from_luck),
        cmocka_unit_test(too_little_for_overfitting),
        cmocka_unit_test(correlations_agree_with_sums),
        cmocka_unit_test(correlations_that_do_not_exist),
        cmocka_unit_test(places_do_not_matter_where_prices_only_grow),
        cmocka_unit_test(places_are_uniform),
        cmocka_unit_test(trades_that_overlap_have_no_control),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
