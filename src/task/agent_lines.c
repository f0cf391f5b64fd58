#include "task/agent_lines.h"

#include "base/term.h"
#include "graph/dtype.h"
#include "task/agent_split.h"

#include <math.h>
#include <stdio.h>

void agent_lines_iteration(const agent_report *r, char *text, size_t room) {
    char step[32], rate[32], reward[64] = "";
    term_count(step, sizeof step, (double)r->total_timesteps);
    term_count(rate, sizeof rate, r->fps);
    if (!isnan(r->ep_rew_mean))
        snprintf(reward, sizeof reward, "  reward %.4g  length %.4g", r->ep_rew_mean, r->ep_len_mean);
    snprintf(text, room, "step %s%s  kl %.4f  clip %.2f%s  value loss %.4g  %s steps/s", step, reward, r->approx_kl,
        r->clip_fraction, r->kl_stopped ? " (KL stop)" : "", r->value_loss, rate);
}

void agent_lines_score(const agent_report *r, const agent_score *s, bool best, char *text, size_t room) {
    char step[32];
    term_count(step, sizeof step, (double)r->total_timesteps);
    snprintf(text, room, "evaluation at step %s: reward %.4g, deviation %.3g, length %.4g%s", step, s->mean,
        s->deviation, s->length, best ? " *" : "");
}

void agent_lines_world(const agent_task *t, char *text, size_t room) {
    const agent_settings *s = &t->agent;
    int64_t rows = s->envs * s->steps, iterations = (s->total + rows - 1) / rows;
    char envs[32], steps[32], batch[32], total[32];
    term_count(envs, sizeof envs, (double)s->envs);
    term_count(steps, sizeof steps, (double)s->steps);
    term_count(batch, sizeof batch, (double)s->batch);
    term_count(total, sizeof total, (double)(iterations * rows));
    snprintf(text, room,
        "%s, %s environment%s x %s steps in a rollout, minibatches of %s, %lld pass%s, %s steps in %lld iteration%s",
        agent_task_env(t), envs, term_s(s->envs), steps, batch, (long long)s->epochs, s->epochs == 1 ? "" : "es", total,
        (long long)iterations, term_s(iterations));
}

void agent_lines_model(const agent_task *t, char *text, size_t room) {
    const char *nets = t->agent.shared ? "one net" : "two nets", *exact = precision_name(t->agent.precision);
    char own[MODEL_OWN_BYTES];
    if (t->model.kind == MODEL_mlp)
        snprintf(text, room, "%s for policy and value: %s, %s, %s, %s", nets, model_name(t->model.kind),
            config_text(t->config, "model.widths"), config_text(t->config, "model.activation"), exact);
    else
        snprintf(text, room, "%s for policy and value over %d bars: %s, %s", nets, (int)t->agent.world.env.market.lags,
            model_describe(&t->model, own, sizeof own), exact);
}

void agent_lines_split(const agent_task *t, char *text, size_t room) {
    char batch[32], micro[32];
    int64_t parts = t->agent.batch / t->agent.micro;
    term_count(batch, sizeof batch, (double)t->agent.batch);
    term_count(micro, sizeof micro, (double)t->agent.micro);
    snprintf(text, room, "minibatches of %s rows in %lld micro-batch%s of %s%s", batch, (long long)parts,
        parts == 1 ? "" : "es", micro, agent_split_is_open(t) ? ", as memory demands" : "");
}

void agent_lines_data(const agent_task *t, char *text, size_t room) {
    char train[32], test[32];
    const agent_data *d = &t->world;
    term_count(train, sizeof train, (double)(d->train.orders + d->train.count));
    term_count(test, sizeof test, (double)(d->test.orders + d->test.count));
    snprintf(text, room, "%s bars to train on, %s of %s (%s); %d numbers observed", train, test, d->part,
        d->task.data->name, env_shape_of(&t->agent.world.env).observation);
}

bool agent_lines_left(const agent_task *t, char *text, size_t room) {
    const agent_stretches *s = &t->world.train;
    char bars[32];
    int limit = (int)t->agent.world.env.limit;
    if (!t->world.open || !s->left_out) return false;
    term_count(bars, sizeof bars, (double)s->left_bars);
    snprintf(text, room,
        "%lld stretch%s of the training part, %s bars in all, %s shorter than an episode of %d steps and left out; a "
        "lower agent.limit takes more",
        (long long)s->left_out, s->left_out == 1 ? "" : "es", bars, s->left_out == 1 ? "is" : "are", limit);
    return true;
}

bool agent_lines_idle(const agent_task *t, char *text, size_t room) {
    if (!t->world.open || !t->world.idle[0]) return false;
    snprintf(text, room, "never traded: %s", t->world.idle);
    return true;
}
