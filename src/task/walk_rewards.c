#include "task/walk_rewards.h"

#include <math.h>

// Change of the log price from the first open behind the first close of a stretch to its last close, in the mean of the
// stretches.
static double hold(const agent_data *d) {
    double sum = 0;
    for (int64_t i = 0; i < d->test.count; i++) {
        const market_stretch *s = &d->test.item[i];
        double bought = (double)d->market.bar[s->first + 1].open, sold = (double)d->market.bar[s->end - 1].close;
        sum += log(sold / bought);
    }
    return sum / (double)d->test.count;
}

static json_t *figures(double reward, double gain, bool log) {
    json_t *to = json_pack("{s:o}", "reward", json_number(reward));
    if (log) json_object_set_new(to, "return", json_number(gain));
    return to;
}

static void put(json_t *to, double reward, double held, bool log) {
    double trivial = log && held > 0 ? held : 0;
    double gain = expm1(reward), other = expm1(trivial);
    json_object_set_new(to, "metrics", figures(reward, gain, log));
    json_object_set_new(to, "trivial", figures(trivial, other, log));
    json_object_set_new(to, "skill", figures(reward - trivial, gain - other, log));
}

void walk_rewards_add(walk_rewards *w, const trained_agent *t, const agent_score *s, json_t *row) {
    const agent_data *d = &t->task.world;
    double held = hold(d);
    int64_t steps = llround(s->length * (double)s->episodes);
    w->log = t->task.agent.test.env.market.reward == MARKET_LOG;
    w->folds++;
    w->reward += s->mean;
    w->hold += held;
    w->samples += d->task.split.test.count;
    w->steps += steps;
    w->orders += d->test.orders;
    put(row, s->mean, held, w->log);
    json_join(row, json_pack("{s:I, s:I, s:I}", "episodes", (json_int_t)s->episodes, "steps", (json_int_t)steps,
                       "orders", (json_int_t)d->test.orders));
}

void walk_rewards_put(const walk_rewards *w, json_t *doc) {
    double n = w->follow ? 1 : w->folds;
    if (!w->folds) return;
    put(doc, w->reward / n, w->hold / n, w->log);
    json_join(doc, json_pack("{s:I, s:I}", "steps", (json_int_t)w->steps, "orders", (json_int_t)w->orders));
}
