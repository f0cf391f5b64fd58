// Figures of an agent's training.
#include "watch/chart.h"
#include "watch/figure.h"

#include <math.h>
#include <stdio.h>

static const struct {
    const char *name, *title;
} curves[] = {{"rollout/ep_rew_mean", "last 100 episodes"}, {"eval/mean_reward", "evaluations"}};
enum { CURVES = sizeof curves / sizeof *curves };

// Curves of a walk are its folds'.
static bool is_trained_here(const facts *f) {
    return f->is_run;
}

static bool has_reward(const facts *f) {
    bool some = false;
    for (int i = 0; i < CURVES; i++) some |= facts_curve(f, "", curves[i].name) != NULL;
    return some;
}

static void draw_reward(const facts *f, svg *s) {
    limits x = limits_none, y = limits_none;
    for (int i = 0; i < CURVES; i++) {
        const trace *t = facts_curve(f, "", curves[i].name);
        if (t) x = limits_add(x, t->x, t->count);
        if (t) y = limits_add(y, t->mean, t->count);
    }
    chart_place at = {0, s->height, "iteration", "reward"};
    chart c = chart_open(s, &at, axis_counts(x.low, x.high, 8), axis_numbers(y.low, y.high, 6));
    for (int i = 0; i < CURVES; i++) {
        const trace *t = facts_curve(f, "", curves[i].name);
        points p = t ? (points){t->count, t->x, t->mean} : (points){0};
        if (t) chart_line(&c, &p, i, curves[i].title);
    }
    char word[64];
    double best = facts_best(f, "", "eval/mean_reward");
    if (!isnan(best)) {
        snprintf(word, sizeof word, "best: %.4g", best);
        chart_mark(&c, (double)f->sum.best_epoch, word);
    }
    svg_describe(s, "Reward of an episode over %lld iterations; best evaluation %.4g in iteration %lld.",
        (long long)f->sum.epochs, best, (long long)f->sum.best_epoch);
}

const figure figure_reward = {.name = "reward",
    .title = "Learning curve: reward",
    .section = "Training",
    .of = FIGURE_OF_AGENTS,
    .applies = is_trained_here,
    .has = has_reward,
    .draw = draw_reward,
    .why = "no episode has ended; an ensemble's are in its members' directories"};
