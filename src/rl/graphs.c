#include "rl/graphs.h"

#include "base/err.h"
#include "graph/dtype.h"
#include "graph/grad.h"
#include "rl/nets.h"

#include <stdio.h>
#include <string.h>

enum { STREAM_ROLLOUT = 0, STREAM_TEST = 1 };

static const float observation_clip = 10, reward_clip = 10;

agent_sizes agent_sizes_of(const agent_settings *s) {
    agent_sizes z = {.env = env_shape_of(&s->world.env)};
    z.rows = s->envs * s->steps;
    z.length = s->lstm ? s->steps : 1;
    z.samples = z.rows / z.length;
    z.cut = s->world.env.limit ? s->steps / s->world.env.limit + 1 : 0;
    z.actions = z.env.choices ? z.env.choices : z.env.action;
    return z;
}

// Parts

static tensor normalised(graph *g, const agent_settings *s, tensor raw, bool learn) {
    return s->normalise_observation ? op_standardise(g, raw, (standardise_settings){observation_clip, learn}) : raw;
}

static int world_parts(graph *g, const agent_world *w, tensor part[ENV_PARTS_MOST]) {
    for (int k = 0; k < w->parts; k++) {
        const agent_part *p = &w->part[k];
        part[k] = graph_constant(g, p->name, p->type, p->shape, p->data);
        if (p->shared) graph_share(g, part[k]);
    }
    return w->parts;
}

static tensor environments(graph *g, const char *name, const agent_world *w, int64_t count) {
    return graph_state(g, name, DTYPE_I64, shape2(count, env_words(&w->env)));
}

store *agent_world_store(const agent_world *w, bool host_memory, graph **g) {
    tensor part[ENV_PARTS_MOST];
    store *s = store_new(host_memory);
    *g = graph_new();
    int parts = world_parts(*g, w, part);
    op_env_see(*g, environments(*g, "environments", w, 1), part, parts, (env_attr){w->env, STREAM_ROLLOUT});
    store_add(s, *g, STORE_FOR_DATASET);
    return s;
}

// A table with a row for each step of each environment.
static tensor table(graph *g, const char *name, const agent_sizes *z, int64_t columns) {
    return graph_state(g, name, DTYPE_F32, columns ? shape2(z->rows, columns) : shape1(z->rows));
}

static tensor values_beyond(graph *g, const agent_settings *s, const agent_sizes *z) {
    return graph_state(g, "rollout values beyond", DTYPE_F32, shape1((z->cut + 1) * s->envs));
}

static tensor ends_seen(graph *g, const agent_settings *s, const agent_sizes *z) {
    return graph_state(g, "rollout ends seen", DTYPE_F32, shape2(z->cut * s->envs, z->env.observation));
}

// Memory

enum { NAME_MOST = 64 };

// A state of an LSTM, of every environment: "test policy.h".
static tensor memory_state(graph *g, const agent_settings *s, const char *of, int i, char which, int64_t rows) {
    char name[NAME_MOST];
    snprintf(name, sizeof name, "%s%s.%c", of, nets_memory_name(s, i), which);
    return graph_state(g, name, DTYPE_F32, shape2(rows, s->lstm));
}

// The states of the LSTMs, and whether an environment's episode begins with this step.
static void memories(graph *g, const agent_settings *s, const char *of, int64_t rows, layer_memory m[NETS_MOST]) {
    char name[NAME_MOST];
    snprintf(name, sizeof name, "%sbegins", of);
    tensor begins = s->lstm ? graph_state(g, name, DTYPE_F32, shape1(rows)) : TENSOR_NONE;
    for (int i = 0; i < nets_memories(s); i++)
        m[i] = (layer_memory){memory_state(g, s, of, i, 'h', rows), memory_state(g, s, of, i, 'c', rows), begins};
}

static void remember_all(
    graph *g, const agent_settings *s, const layer_memory m[NETS_MOST], const nets *n, tensor end) {
    for (int i = 0; i < nets_memories(s); i++) {
        if (!n->h[i].id) continue;
        op_remember(g, m[i].h, n->h[i]);
        op_remember(g, m[i].c, n->c[i]);
    }
    if (s->lstm && end.id) op_remember(g, m[0].reset, end);
}

// The LSTM that the value is computed with.
static int value_memory(const agent_settings *s) {
    return s->shared ? 0 : 1;
}

static tensor ends_memory(graph *g, const agent_settings *s, const agent_sizes *z, char which) {
    return memory_state(g, s, "rollout ends ", value_memory(s), which, z->cut * s->envs);
}

static sample_settings sampling(const agent_settings *s, const agent_sizes *z, bool greedy) {
    return (sample_settings){.choices = z->env.choices > 0,
        .greedy = greedy,
        .hold = s->state_noise ? s->noise_hold : 0,
        .stream = greedy ? STREAM_TEST : STREAM_ROLLOUT};
}

// Graphs

static tensor scaled_reward(graph *g, const agent_settings *s, tensor reward, tensor end) {
    tensor returns = graph_state(g, "returns", DTYPE_F64, shape1(s->envs));
    return op_scale_reward(g, reward, end, returns, (scale_reward_settings){(float)s->gamma, reward_clip});
}

static void build_act(agent_graphs *a, const agent_settings *s, const model_spec *policy, const agent_sizes *z) {
    graph *g = a->g;
    tensor part[ENV_PARTS_MOST];
    int parts = world_parts(g, &s->world, part);
    env_attr env = {s->world.env, STREAM_ROLLOUT};
    a->state = environments(g, "environments", &s->world, s->envs);
    tensor seen = normalised(g, s, op_env_see(g, a->state, part, parts, env), true);
    if (s->normalise_observation) a->moments = graph_sibling(g, seen, 1);
    layer_memory before[NETS_MOST];
    memories(g, s, "", s->envs, before);
    nets n = nets_build(g, s, policy, seen, before, NETS_POLICY | NETS_VALUE);
    tensor action = op_sample(g, n.score, n.std, s->state_noise ? n.latent : TENSOR_NONE,
        s->state_noise ? n.log_std : TENSOR_NONE, sampling(s, z, false));
    tensor reward = op_env_take(g, a->state, action, part, parts, env), end = graph_sibling(g, reward, ENV_TAKE_END);
    tensor scaled = s->normalise_reward ? scaled_reward(g, s, reward, end) : reward;
    a->table_value = table(g, "rollout value", z, 0);
    a->table_end = table(g, "rollout end", z, 0);
    a->table_total = table(g, "rollout total", z, 0);
    a->table_length = table(g, "rollout length", z, 0);
    op_write_rows(g, table(g, "rollout seen", z, z->env.observation), seen);
    op_write_rows(g, table(g, "rollout action", z, z->env.action), action);
    op_write_rows(g, table(g, "rollout log_prob", z, 0), graph_sibling(g, action, 1));
    op_write_rows(g, a->table_value, n.value);
    op_write_rows(g, table(g, "rollout reward", z, 0), scaled);
    op_write_rows(g, a->table_end, end);
    op_write_rows(g, a->table_total, graph_sibling(g, reward, ENV_TAKE_TOTAL));
    op_write_rows(g, a->table_length, graph_sibling(g, reward, ENV_TAKE_STEPS));
    if (s->lstm) op_write_rows(g, table(g, "rollout begins", z, 0), before[0].reset);
    if (z->cut) op_write_ends(g, ends_seen(g, s, z), graph_sibling(g, reward, ENV_TAKE_LAST), end);
    if (z->cut && s->lstm) {
        op_write_ends(g, ends_memory(g, s, z, 'h'), n.h[value_memory(s)], end);
        op_write_ends(g, ends_memory(g, s, z, 'c'), n.c[value_memory(s)], end);
    }
    remember_all(g, s, before, &n, end);
    op_advance(g, PHASE_AFTER);
}

// Observations behind the rollout. An episode that begins here has begun when the next rollout sees it.
static void build_last(agent_graphs *a, const agent_settings *s, const model_spec *policy, const agent_sizes *z) {
    graph *g = a->g;
    tensor part[ENV_PARTS_MOST];
    int parts = world_parts(g, &s->world, part);
    tensor raw = op_env_see(
        g, environments(g, "environments", &s->world, s->envs), part, parts, (env_attr){s->world.env, STREAM_ROLLOUT});
    layer_memory before[NETS_MOST];
    memories(g, s, "", s->envs, before);
    nets n = nets_build(g, s, policy, normalised(g, s, raw, false), before, NETS_VALUE);
    op_write_rows(g, values_beyond(g, s, z), n.value);
}

static void build_ends(agent_graphs *a, const agent_settings *s, const model_spec *policy, const agent_sizes *z) {
    graph *g = a->g;
    tensor index = op_draw(g, BATCH), raw = op_take(g, ends_seen(g, s, z), index);
    layer_memory before[NETS_MOST] = {0};
    if (s->lstm)
        before[value_memory(s)] = (layer_memory){
            .h = op_take(g, ends_memory(g, s, z, 'h'), index), .c = op_take(g, ends_memory(g, s, z, 'c'), index)};
    nets n = nets_build(g, s, policy, normalised(g, s, raw, false), before, NETS_VALUE);
    op_write_rows(g, values_beyond(g, s, z), n.value);
    op_advance(g, PHASE_AFTER);
}

static void build_advantage(agent_graphs *a, const agent_settings *s, const agent_sizes *z) {
    graph *g = a->g;
    tensor first = op_gae(g, table(g, "rollout reward", z, 0), table(g, "rollout end", z, 0),
        table(g, "rollout value", z, 0), values_beyond(g, s, z), (gae_settings){(float)s->gamma, (float)s->lambda});
    a->target = graph_sibling(g, first, 1);
}

// The LSTMs' states where a rollout begins.
static void build_begin(agent_graphs *a, const agent_settings *s) {
    layer_memory now[NETS_MOST], first[NETS_MOST];
    memories(a->g, s, "", s->envs, now);
    for (int i = 0; i < nets_memories(s); i++) {
        first[i].h = memory_state(a->g, s, "rollout first ", i, 'h', s->envs);
        first[i].c = memory_state(a->g, s, "rollout first ", i, 'c', s->envs);
        op_remember(a->g, first[i].h, now[i].h);
        op_remember(a->g, first[i].c, now[i].c);
    }
}

// Rows of a table of the rollout that the minibatch draws, or whole sequences of environments.
static tensor drawn_of(graph *g, const agent_sizes *z, tensor from, tensor index) {
    return z->length > 1 ? op_sequence(g, from, index, z->length) : op_take(g, from, index);
}

static tensor drawn(graph *g, const agent_sizes *z, const char *name, int64_t columns, tensor index) {
    return drawn_of(g, z, table(g, name, z, columns), index);
}

static ppo_inputs drawn_inputs(graph *g, const agent_settings *s, const agent_sizes *z, tensor index) {
    ppo_inputs in = {0};
    tensor advantage = table(g, "rollout advantage", z, 0);
    in.weight = graph_sibling(g, index, 1);
    in.action = drawn(g, z, "rollout action", z->env.action, index);
    in.log_prob = drawn(g, z, "rollout log_prob", 0, index);
    in.advantage = drawn_of(g, z, advantage, index);
    in.target = drawn(g, z, "rollout target", 0, index);
    in.old_value = drawn(g, z, "rollout value", 0, index);
    if (s->normalise_advantage) in.spread = op_spread(g, advantage, s->batch / z->length, z->length);
    in.knobs = graph_state(g, "knobs", DTYPE_F32, shape1(KNOBS));
    return in;
}

static void drawn_memories(graph *g, const agent_settings *s, const agent_sizes *z, tensor index, layer_memory *m) {
    tensor begins = s->lstm ? drawn(g, z, "rollout begins", 0, index) : TENSOR_NONE;
    for (int i = 0; i < nets_memories(s); i++)
        m[i] = (layer_memory){op_take(g, memory_state(g, s, "rollout first ", i, 'h', s->envs), index),
            op_take(g, memory_state(g, s, "rollout first ", i, 'c', s->envs), index), begins};
}

static void build_minibatch(agent_graphs *a, const agent_settings *s, const model_spec *policy, const agent_sizes *z) {
    graph *g = a->g;
    layer_memory before[NETS_MOST];
    tensor index = op_draw(g, BATCH), seen = drawn(g, z, "rollout seen", z->env.observation, index);
    ppo_inputs in = drawn_inputs(g, s, z, index);
    drawn_memories(g, s, z, index, before);
    nets n = nets_build(g, s, policy, seen, before, NETS_POLICY | NETS_VALUE);
    in.score = n.score;
    in.std = n.std;
    in.value = n.value;
    a->log_std = n.log_std;
    a->knobs = in.knobs;
    a->loss = op_ppo(
        g, in, (ppo_settings){z->env.choices > 0, (float)s->value, (float)s->entropy_bound, (float)s->value_bound});
    a->totals = op_tally(g, a->loss);
    graph_normaliser(g, a->totals);
    op_advance(g, PHASE_AFTER);
    dtype_assign(g, s->precision);
    a->seed = grad_build(g, a->loss);
    a->gate = op_ppo_gate(g, graph_sibling(g, a->loss, 1), a->totals, a->knobs);
    a->clip = op_clip(g, a->totals, a->seed, (float)s->max_norm, s->precision == PRECISION_FP16);
    op_adamw(g, a->clip,
        (adamw_settings){
            .beta1 = 0.9f, .beta2 = 0.999f, .eps = (float)s->adam_eps, .coupled = true, .decay = DECAY_ALL});
    op_advance(g, PHASE_UPDATE);
}

static void build_test(agent_graphs *a, const agent_settings *s, const model_spec *policy, const agent_sizes *z) {
    graph *g = a->g;
    tensor part[ENV_PARTS_MOST];
    int parts = world_parts(g, &s->test, part);
    env_attr env = {s->test.env, STREAM_TEST};
    a->state = environments(g, "test environments", &s->test, s->tests);
    tensor seen = normalised(g, s, op_env_see(g, a->state, part, parts, env), false);
    layer_memory before[NETS_MOST];
    memories(g, s, "test ", s->tests, before);
    nets n = nets_build(g, s, policy, seen, before, NETS_POLICY);
    tensor action = op_sample(g, n.score, n.std, TENSOR_NONE, TENSOR_NONE, sampling(s, z, true));
    tensor reward = op_env_take(g, a->state, action, part, parts, env);
    a->end = graph_sibling(g, reward, ENV_TAKE_END);
    a->total = graph_sibling(g, reward, ENV_TAKE_TOTAL);
    a->length = graph_sibling(g, reward, ENV_TAKE_STEPS);
    a->memory = s->lstm ? before[0] : (layer_memory){0};
    remember_all(g, s, before, &n, a->end);
    graph_keep(g, a->end);
    graph_keep(g, a->total);
    graph_keep(g, a->length);
    op_advance(g, PHASE_AFTER);
}

static void build_answer(agent_graphs *a, const agent_settings *s, const model_spec *policy, const agent_sizes *z) {
    graph *g = a->g;
    layer_memory before[NETS_MOST];
    a->seen = graph_state(g, "answer seen", DTYPE_F32, shape2(BATCH, z->env.observation));
    tensor seen = normalised(g, s, a->seen, false);
    if (s->normalise_observation) a->moments = graph_sibling(g, seen, 1);
    memories(g, s, "answer ", s->tests, before);
    nets n = nets_build(g, s, policy, seen, before, NETS_POLICY);
    a->score = n.score;
    a->action = op_sample(g, n.score, n.std, TENSOR_NONE, TENSOR_NONE, sampling(s, z, true));
    a->memory = s->lstm ? before[0] : (layer_memory){0};
    remember_all(g, s, before, &n, TENSOR_NONE); // beginnings come from the host
    graph_keep(g, a->score);
    graph_keep(g, a->action);
}

void agent_graph_build(agent_graphs *to, agent_graph_kind kind, const agent_settings *s, const model_spec *policy) {
    agent_sizes z = agent_sizes_of(s);
    *to = (agent_graphs){0};
    if ((kind == GRAPH_ENDS && !z.cut) || (kind == GRAPH_BEGIN && !s->lstm)) return;
    to->g = graph_new();
    switch (kind) {
    case GRAPH_MINIBATCH: build_minibatch(to, s, policy, &z); return;
    case GRAPH_ACT: build_act(to, s, policy, &z); break;
    case GRAPH_LAST: build_last(to, s, policy, &z); break;
    case GRAPH_ENDS: build_ends(to, s, policy, &z); break;
    case GRAPH_ADVANTAGE: build_advantage(to, s, &z); break;
    case GRAPH_BEGIN: build_begin(to, s); break;
    case GRAPH_ANSWER: build_answer(to, s, policy, &z); break;
    default: build_test(to, s, policy, &z); break;
    }
    dtype_assign(to->g, s->precision);
}
