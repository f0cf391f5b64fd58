#include "backtest/overfit.h"

#include <math.h>
#include <stdlib.h>

typedef struct {
    double sum, square;
} moments;

typedef struct {
    int64_t trials, periods;
    int blocks;
    moments *of;      // [blocks, trials]
    int64_t *length;  // [blocks]
    double *in, *out; // [trials] ratios in and out of sample
} tables;

static void fill(const double *back, tables *t) {
    for (int b = 0; b < t->blocks; b++) {
        int64_t from = t->periods * b / t->blocks, to = t->periods * (b + 1) / t->blocks;
        t->length[b] = to - from;
        for (int64_t k = 0; k < t->trials; k++) {
            moments m = {0};
            for (int64_t i = from; i < to; i++) {
                m.sum += back[i * t->trials + k];
                m.square += back[i * t->trials + k] * back[i * t->trials + k];
            }
            t->of[b * t->trials + k] = m;
        }
    }
}

// Mean over standard deviation; 0 where what is left of the squares is rounding.
static double ratio(moments m, double n) {
    double mean = m.sum / n, left = m.square - m.sum * mean;
    return left > 1e-12 * m.square ? mean / sqrt(left / (n - 1)) : 0;
}

// Ratios of all trials in the blocks of a choice (bits) and in the others; the trial that wins in the choice.
static int64_t judge(const tables *t, unsigned choice, bool *loses) {
    int64_t best = 0, inside = 0;
    double lost = 0;
    for (int b = 0; b < t->blocks; b++) inside += choice >> b & 1 ? t->length[b] : 0;
    for (int64_t k = 0; k < t->trials; k++) {
        moments side[2] = {{0}};
        for (int b = 0; b < t->blocks; b++) {
            const moments *m = &t->of[b * t->trials + k];
            side[choice >> b & 1].sum += m->sum;
            side[choice >> b & 1].square += m->square;
        }
        t->in[k] = ratio(side[1], (double)inside);
        t->out[k] = ratio(side[0], (double)(t->periods - inside));
        if (k && !(t->in[k] > t->in[best])) continue;
        best = k;
        lost = side[0].sum;
    }
    *loses = lost < 0;
    return best;
}

// Rank of a trial out of sample, 1 the worst, over trials + 1.
static double place(const tables *t, int64_t best) {
    double below = 0, equal = 0;
    for (int64_t k = 0; k < t->trials; k++) {
        below += t->out[k] < t->out[best];
        equal += t->out[k] == t->out[best];
    }
    return (below + (equal + 1) / 2) / (double)(t->trials + 1);
}

static void count_choices(const tables *t, overfit *to) {
    int64_t bad = 0, losses = 0;
    double logits = 0;
    *to = (overfit){0};
    for (unsigned choice = 0; choice < 1u << t->blocks; choice++) {
        if (__builtin_popcount(choice) * 2 != t->blocks) continue;
        bool loses;
        double w = place(t, judge(t, choice, &loses));
        to->choices++;
        bad += w <= 0.5;
        losses += loses;
        logits += log(w / (1 - w));
    }
    to->probability = (double)bad / (double)to->choices;
    to->loss = (double)losses / (double)to->choices;
    to->logit = logits / (double)to->choices;
}

bool overfit_make(const double *back, int64_t periods, int64_t trials, int blocks, overfit *to, err *e) {
    CHECK(blocks >= 2 && blocks <= OVERFIT_BLOCKS_MOST && blocks % 2 == 0, "%d blocks", blocks);
    if (trials < 2)
        return err_input(e, "overfitting is a matter of at least 2 trials; there are %lld", (long long)trials);
    if (periods < 2 * blocks)
        return err_input(
            e, "%lld periods are too few for %d blocks; there must be %d", (long long)periods, blocks, 2 * blocks);
    tables t = {trials, periods, blocks, calloc((size_t)(blocks * trials), sizeof *t.of),
        calloc((size_t)blocks, sizeof *t.length), calloc((size_t)trials, sizeof *t.in),
        calloc((size_t)trials, sizeof *t.out)};
    bool ok = t.of && t.length && t.in && t.out;
    if (ok) {
        fill(back, &t);
        count_choices(&t, to);
    }
    free(t.of);
    free(t.length);
    free(t.in);
    free(t.out);
    return ok || err_run(e, "out of memory for %lld trials", (long long)trials);
}
