#include "backtest/follow.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool follow_changes(const account *a, const account_order *o) {
    int side = a->units > 0 ? 1 : -1;
    if (o->units != a->units) return true;
    if (!o->units) return false;
    return a->stop != (o->stop ? side * o->stop : -ACCOUNT_NEVER) ||
           a->target != (o->target ? side * o->target : ACCOUNT_NEVER);
}

// True where a rule asks for a side, and decided for no position as it has no size for it.
static bool is_unsized(const decide_rule *r, double score, const replay *p) {
    int wants = decide_side(r, score);
    return wants > 0 || (wants < 0 && p->rules.shorts);
}

bool follow_decide(replay *p, const decide_rule *rule, const decide_prediction *at, int64_t held, account_order *next) {
    *next = decide(rule, at, held, &p->books, &p->rules);
    if (!p->books.units && !next->units) p->unsized += is_unsized(rule, at->score, p);
    return follow_changes(&p->books, next);
}

bool follow(
    replay *p, const follow_stretch *stretch, int64_t count, const follow_series *s, signals_orders *orders, err *e) {
    const quotes *q = p->quotes;
    const follow_stretch *at_end = stretch + count - 1;
    account_order next;
    bool ordered = false;
    CHECK(count > 0 && stretch->from == 0, "the first of %lld stretches does not begin with bar 0", (long long)count);
    if (orders) orders->count = 0;
    for (int64_t i = 0; i < q->count; i++) {
        replay_bar(p, i, ordered ? &next : NULL);
        ordered = false;
        if (p->books.state || i + 1 == q->count) continue;
        // The open trade stands behind the closed ones.
        int64_t held = p->books.units ? i - p->trade[p->trades].entry + 1 : 0;
        decide_prediction at = {s->score[i], s->volatility[i], q->close[i]};
        while (stretch < at_end && stretch[1].from <= i) stretch++;
        ordered = follow_decide(p, stretch->rule, &at, held, &next);
        if (ordered && orders) orders->item[orders->count++] = (signals_order){i + 1, next};
    }
    return replay_end(p, e);
}

// Candidates

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// As it is printed, so that the printed one gives the same decisions.
static double printed(double v) {
    char text[32];
    snprintf(text, sizeof text, "%.6g", v);
    return strtod(text, NULL);
}

// Quantiles of the scores' sizes, rising; how many there are, -1 where memory is short.
static int list_candidates(const follow_series *s, int64_t bars, double to[FOLLOW_CANDIDATES]) {
    double *size = malloc((size_t)bars * sizeof *size);
    int64_t n = 0;
    int count = 0;
    if (!size) return -1;
    for (int64_t i = 0; i < bars; i++)
        if (fabs(s->score[i]) > 0) size[n++] = fabs(s->score[i]);
    qsort(size, (size_t)n, sizeof *size, by_size);
    for (int k = 0; n && k < FOLLOW_CANDIDATES; k++) {
        double v = printed(size[n * k / FOLLOW_CANDIDATES]);
        if (!count || v > to[count - 1]) to[count++] = v;
    }
    free(size);
    return count;
}

// True where `is` is to be preferred to `best`, whose threshold is higher.
static bool is_better(const follow_fitted *is, const follow_fitted *best) {
    bool many = is->trades >= FOLLOW_TRADES_LEAST, had = best->trades >= FOLLOW_TRADES_LEAST;
    return many != had ? many : is->result > best->result;
}

static bool try_one(const decide_rule *r, const quotes *q, const follow_series *s, const account_terms *t,
    const account_rules *rules, follow_fitted *to, err *e) {
    replay p;
    if (!replay_init(&p, q, t, rules, q->count, e)) return false;
    bool ok = follow(&p, &(follow_stretch){0, r}, 1, s, NULL, e);
    if (ok)
        *to = (follow_fitted){
            r->threshold, (double)(p.books.cash - rules->cash) / 1e8, p.trades, q->time[0], q->time[q->count - 1]};
    replay_done(&p);
    return ok;
}

bool follow_fit(const decide_rule *r, const quotes *q, const follow_series *s, const account_terms *t,
    const account_rules *rules, follow_fitted *to, err *e) {
    double candidate[FOLLOW_CANDIDATES];
    bool found = false;
    int count = list_candidates(s, q->count, candidate);
    if (count < 0) return err_run(e, "no memory for the scores of %lld bars", (long long)q->count);
    if (!count) return err_input(e, "signal.threshold: validation has no predictions to fit it on; give it a number");
    err why = {0};
    for (int k = count - 1; k >= 0 && why.kind != ERR_RUN; k--) {
        decide_rule with = *r;
        follow_fitted is;
        with.threshold = candidate[k];
        if (!try_one(&with, q, s, t, rules, &is, &why)) continue;
        if (!found || is_better(&is, to)) *to = is;
        found = true;
    }
    if (found && why.kind != ERR_RUN) return true;
    *e = why;
    return false;
}
