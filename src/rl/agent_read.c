#include "rl/agent_read.h"

#include "rl/nets.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// "0.2", or "lin_0.001": from that to 0. False for any other text.
static bool read_value(const char *text, ramp *r) {
    static const char linear[] = "lin_";
    char *end;
    bool falls = strncmp(text, linear, sizeof linear - 1) == 0;
    if (falls) text += sizeof linear - 1;
    double v = strtod(text, &end);
    if (end == text || *end || !isfinite(v) || v < 0) return false;
    *r = (ramp){.kind = falls ? RAMP_LINEAR : RAMP_CONSTANT, .from = v, .to = falls ? 0 : v};
    return true;
}

static bool read_section(const config *c, const char *path, ramp *r, err *e) {
    char kind[64], from[64], to[64];
    snprintf(kind, sizeof kind, "%s.kind", path);
    snprintf(from, sizeof from, "%s.from", path);
    snprintf(to, sizeof to, "%s.to", path);
    if (!config_has(c, from)) return config_fail(c, from, e, "is missing; name the value at the beginning");
    *r = (ramp){.from = config_real(c, from), .to = config_real(c, to)};
    for (int k = 0; k < RAMP_KINDS; k++)
        if (config_is(c, kind, ramp_name((ramp_kind)k))) r->kind = (ramp_kind)k;
    if (r->kind == RAMP_EXPONENTIAL && !(r->from > 0 && r->to > 0))
        return config_fail(
            c, config_given(c, to) ? to : path, e, "an exponential one never reaches 0; set from and to above 0");
    return true;
}

// A number that may change over the run. `off`: a word for 0, or NULL.
static bool read_ramp(const config *c, const char *path, const char *off, ramp *r, err *e) {
    if (config_count(c, path)) return read_section(c, path, r, e);
    const char *text = config_text(c, path);
    if (off && strcmp(text, off) == 0) {
        *r = (ramp){.kind = RAMP_CONSTANT};
        return true;
    }
    return read_value(text, r) ||
           config_fail(c, path, e,
               "must be a number from 0 on, lin_NUMBER, or {kind: linear, from: NUMBER, to: NUMBER}, not %s", text);
}

static bool check_target(const config *c, const agent_settings *s, err *e) {
    return config_is(c, "agent.target_kl", "none") || s->target_kl.from > 0 ||
           config_fail(c, "agent.target_kl", e, "a target of 0 would stop every update; set it above 0, or to none");
}

static bool read_ramps(const config *c, agent_settings *s, err *e) {
    return read_ramp(c, "agent.learning_rate", NULL, &s->rate, e) &&
           read_ramp(c, "agent.clip_range", NULL, &s->clip, e) &&
           read_ramp(c, "agent.ent_coef", NULL, &s->entropy, e) &&
           read_ramp(c, "agent.target_kl", "none", &s->target_kl, e) && check_target(c, s, e);
}

static void read_rollout(const config *c, agent_settings *s) {
    static const char parts[] = "gpu_optimization.gradient_accumulation_steps";
    s->envs = config_int(c, "agent.n_envs");
    s->steps = config_int(c, "agent.n_steps");
    s->batch = s->micro = config_int(c, "agent.batch_size");
    if (!config_is(c, parts, "auto")) s->batch *= config_int(c, parts);
    s->epochs = config_int(c, "agent.n_epochs");
    s->total = config_int(c, "agent.total_timesteps");
    s->tests = config_int(c, "agent.evaluate_episodes");
    s->gamma = config_real(c, "agent.gamma");
    s->lambda = config_real(c, "agent.gae_lambda");
    s->seed = (uint64_t)config_int(c, "train.seed");
}

static void read_loss(const config *c, agent_settings *s) {
    s->value = config_real(c, "agent.vf_coef");
    s->max_norm = config_real(c, "agent.max_grad_norm");
    if (!config_is(c, "agent.clip_range_vf", "off")) s->value_clip = config_real(c, "agent.clip_range_vf");
    s->entropy_bound = config_real(c, "agent.entropy_bound");
    s->value_bound = config_real(c, "agent.value_loss_bound");
    s->adam_eps = 1e-5;
    s->normalise_advantage = config_bool(c, "agent.normalize_advantage");
    s->normalise_observation = config_bool(c, "agent.normalize_observation");
    s->normalise_reward = config_bool(c, "agent.normalize_reward");
    s->shared = config_bool(c, "agent.shared");
    s->lstm = config_int(c, "agent.lstm");
}

static market_settings read_market(const config *c) {
    market_settings m = {.lags = (int32_t)config_int(c, "agent.lags"),
        .continuous = config_is(c, "agent.actions", "continuous"),
        .size = config_real(c, "agent.position"),
        .ruin = config_real(c, "agent.ruin"),
        .eta = config_real(c, "agent.sharpe_rate"),
        .shape = config_real(c, "agent.drawdown_weight"),
        .reward = MARKET_LOG};
    if (config_is(c, "agent.reward", "sharpe")) m.reward = MARKET_SHARPE;
    if (config_is(c, "agent.reward", "shaped")) m.reward = MARKET_SHAPED;
    return m;
}

static bool read_world(const config *c, agent_settings *s, err *e) {
    if (!config_has(c, "agent.env")) {
        char names[160] = "";
        for (int k = 0; k < ENV_COUNT; k++) {
            size_t n = strlen(names);
            snprintf(names + n, sizeof names - n, "%s%s", k ? ", " : "", env_name((env_kind)k));
        }
        return config_fail(c, "agent.env", e, "is missing; name an environment: %s", names);
    }
    env_settings env = {.kind = env_find(config_text(c, "agent.env")), .market = read_market(c)};
    env_shape shape = env_shape_of(&env);
    if (env.market.continuous && env.kind != ENV_market && shape.choices)
        return config_fail(
            c, "agent.actions", e, "%s has choices, not numbers, as actions; leave it out", env_name(env.kind));
    env.limit = config_is(c, "agent.limit", "auto") ? shape.limit : (int32_t)config_int(c, "agent.limit");
    s->world.env = s->test.env = env;
    s->log_std = config_real(c, "agent.log_std_init");
    s->state_noise = config_is(c, "agent.noise", "state");
    s->noise_hold = (int32_t)config_int(c, "agent.noise_every");
    return true;
}

// Settings that contradict each other: the text of agent_check begins with the key.
static bool check(const config *c, const agent_settings *s, err *e) {
    err why;
    char key[64];
    if (agent_check(s, &why)) return true;
    size_t n = strcspn(why.text, ":");
    snprintf(key, sizeof key, "%.*s", (int)n, why.text);
    bool named = why.text[n] && strncmp(key, "agent.", 6) == 0 && !strchr(key, ' ');
    return config_fail(c, named ? key : "agent", e, "%s", named ? why.text + n + 2 : why.text);
}

bool agent_read(const config *c, agent_settings *s, err *e) {
    *s = (agent_settings){0};
    read_rollout(c, s);
    read_loss(c, s);
    return read_world(c, s, e) && read_ramps(c, s, e) && check(c, s, e);
}

int64_t agent_evaluate_every(const config *c, const agent_settings *s) {
    enum { BETWEEN = 10000 }; // steps of all environments
    int64_t usual = BETWEEN / (s->envs * s->steps);
    if (!config_is(c, "agent.evaluate_every", "auto")) return config_int(c, "agent.evaluate_every");
    return usual > 0 ? usual : 1;
}

// True where there is a sequence for a model that sees one.
static bool sees_lags(const config *c, const agent_settings *s, err *e) {
    if (s->world.env.kind != ENV_market)
        return config_fail(c, "model.kind", e,
            "a transformer sees the bars of agent.env: market as a sequence, and %s has none; use mlp",
            env_name(s->world.env.kind));
    if (s->world.env.market.lags < 2)
        return config_fail(c, "model.kind", e, "a transformer sees several bars; set agent.lags to 2 or more");
    return !s->lstm ||
           config_fail(c, "agent.lstm", e, "a transformer sees bars itself, without an LSTM before it; leave it out");
}

bool agent_read_model(const config *c, const agent_settings *s, model_spec *m, err *e) {
    env_shape shape = env_shape_of(&s->world.env);
    model_data about = {.classes = shape.choices ? shape.choices : shape.action};
    if (config_is(c, "model.kind", "transformer")) {
        if (!sees_lags(c, s, e)) return false;
        about.streams = 1;
        about.stream[0] = NETS_STREAM;
    } else if (!config_is(c, "model.kind", "mlp")) {
        return config_fail(c, "model.kind", e, "agents are of kind mlp, or transformer over lags of market, not %s%s",
            config_text(c, "model.kind"),
            config_is(c, "model.kind", "lstm") ? "; agent.lstm puts a memory before an mlp" : "");
    }
    if (config_real(c, "model.dropout") > 0)
        return config_fail(c, "model.dropout", e, "an agent's nets have none, as both nets must answer alike; use 0");
    return model_read(c, &about, m, e);
}
