#include "rl/graphs.h"

#include "base/err.h"
#include "graph/dtype.h"
#include "graph/grad.h"

#include <math.h>
#include <string.h>

enum { STREAM_ROLLOUT = 0, STREAM_TEST = 1 };

static const float observation_clip = 10, reward_clip = 10;

agent_sizes agent_sizes_of(const agent_settings *s) {
    agent_sizes z = {.env = env_shape_of(&s->world.env), .test = env_shape_of(&s->test.env)};
    z.rows = s->envs * s->steps;
    z.cut = s->world.env.limit ? s->steps / s->world.env.limit + 1 : 0;
    z.actions = z.env.choices ? z.env.choices : z.env.action;
    return z;
}

// Nets

enum { POLICY = 1, VALUE = 2 };

typedef struct {
    tensor score, std, latent, log_std, value;
} nets;

// Linear layers begin as Stable-Baselines3 has it: orthogonal, with a gain of sqrt(2) and `last` for the last one, and
// biases of 0.
static void begin_orthogonal(graph *g, int first, double last) {
    int end = graph_parameters(g), head = -1;
    for (int i = first; i < end; i++) {
        tensor t = graph_parameter_at(g, i);
        const tensor_info *p = graph_info(g, t);
        bool matrix = p->shape.rank == 2;
        graph_begins(g, t, matrix ? (init){INIT_ORTHOGONAL, (float)sqrt(2)} : (init){INIT_ZERO, 0});
        if (matrix) head = i;
    }
    if (head >= 0) graph_begins(g, graph_parameter_at(g, head), (init){INIT_ORTHOGONAL, (float)last});
}

static tensor build_net(
    graph *g, const model_spec *policy, const char *prefix, tensor seen, int64_t outputs, double gain) {
    model_spec m = *policy;
    int first = graph_parameters(g);
    m.vector = seen;
    m.classes = outputs;
    graph_prefix(g, prefix);
    tensor y = model_build(g, &m);
    graph_prefix(g, NULL);
    begin_orthogonal(g, first, gain);
    return y;
}

// Input of the layer that made a tensor.
static tensor behind(const graph *g, tensor t) {
    return graph_node(g, graph_info(g, t)->producer)->input[0];
}

// Deviations of actions that are numbers.
static void add_noise(graph *g, const agent_settings *s, nets *n) {
    int64_t A = shape_last(graph_info(g, n->score)->shape);
    if (s->state_noise) n->latent = behind(g, s->shared ? behind(g, n->score) : n->score);
    shape of = s->state_noise ? shape2(shape_last(graph_info(g, n->latent)->shape), A) : shape1(A);
    n->log_std = graph_parameter(g, "log_std", of, (init){INIT_VALUE, (float)s->log_std});
    n->std = op_action_std(g, n->score, n->latent, n->log_std);
}

static nets build_nets(graph *g, const agent_settings *s, const model_spec *policy, tensor seen, unsigned wanted) {
    nets n = {.score = TENSOR_NONE};
    agent_sizes z = agent_sizes_of(s);
    if (s->shared) {
        tensor both = build_net(g, policy, "shared.", seen, z.actions + 1, 0.01);
        if (wanted & POLICY) n.score = op_slice(g, both, 0, z.actions);
        if (wanted & VALUE) n.value = op_slice(g, both, z.actions, z.actions + 1);
    } else {
        if (wanted & POLICY) n.score = build_net(g, policy, "policy.", seen, z.actions, 0.01);
        if (wanted & VALUE) n.value = build_net(g, policy, "value.", seen, 1, 1);
    }
    if (!z.env.choices && (wanted & POLICY)) add_noise(g, s, &n);
    return n;
}

// Parts

static tensor normalised(graph *g, const agent_settings *s, tensor raw, bool learn) {
    return s->normalise_observation ? op_standardise(g, raw, (standardise_settings){observation_clip, learn}) : raw;
}

static int world_parts(graph *g, const agent_world *w, tensor part[ENV_PARTS_MOST]) {
    for (int k = 0; k < w->parts; k++) {
        const agent_part *p = &w->part[k];
        part[k] = graph_constant(g, p->name, p->type, p->shape, p->data);
        graph_share(g, part[k]);
    }
    return w->parts;
}

static tensor environments(graph *g, const char *name, const agent_world *w, int64_t count) {
    return graph_state(g, name, DTYPE_I64, shape2(count, env_words(&w->env)));
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
    nets n = build_nets(g, s, policy, seen, POLICY | VALUE);
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
    if (z->cut) op_write_ends(g, ends_seen(g, s, z), graph_sibling(g, reward, ENV_TAKE_LAST), end);
    op_advance(g, PHASE_AFTER);
}

// Observations behind the rollout. An episode that begins here has begun when the next rollout sees it.
static void build_last(agent_graphs *a, const agent_settings *s, const model_spec *policy, const agent_sizes *z) {
    graph *g = a->g;
    tensor part[ENV_PARTS_MOST];
    int parts = world_parts(g, &s->world, part);
    tensor raw = op_env_see(
        g, environments(g, "environments", &s->world, s->envs), part, parts, (env_attr){s->world.env, STREAM_ROLLOUT});
    nets n = build_nets(g, s, policy, normalised(g, s, raw, false), VALUE);
    op_write_rows(g, values_beyond(g, s, z), n.value);
}

static void build_ends(agent_graphs *a, const agent_settings *s, const model_spec *policy, const agent_sizes *z) {
    graph *g = a->g;
    tensor raw = op_take(g, ends_seen(g, s, z), op_draw(g, BATCH));
    nets n = build_nets(g, s, policy, normalised(g, s, raw, false), VALUE);
    op_write_rows(g, values_beyond(g, s, z), n.value);
    op_advance(g, PHASE_AFTER);
}

static void build_advantage(agent_graphs *a, const agent_settings *s, const agent_sizes *z) {
    graph *g = a->g;
    tensor first = op_gae(g, table(g, "rollout reward", z, 0), table(g, "rollout end", z, 0),
        table(g, "rollout value", z, 0), values_beyond(g, s, z), (gae_settings){(float)s->gamma, (float)s->lambda});
    a->target = graph_sibling(g, first, 1);
}

// Rows of the rollout that the minibatch draws.
static ppo_inputs drawn(graph *g, const agent_settings *s, const agent_sizes *z, tensor *seen) {
    ppo_inputs in = {0};
    tensor index = op_draw(g, BATCH), advantage = table(g, "rollout advantage", z, 0);
    *seen = op_take(g, table(g, "rollout seen", z, z->env.observation), index);
    in.weight = graph_sibling(g, index, 1);
    in.action = op_take(g, table(g, "rollout action", z, z->env.action), index);
    in.log_prob = op_take(g, table(g, "rollout log_prob", z, 0), index);
    in.advantage = op_take(g, advantage, index);
    in.target = op_take(g, table(g, "rollout target", z, 0), index);
    in.old_value = op_take(g, table(g, "rollout value", z, 0), index);
    if (s->normalise_advantage) in.spread = op_spread(g, advantage, s->batch);
    in.knobs = graph_state(g, "knobs", DTYPE_F32, shape1(KNOBS));
    return in;
}

static void build_minibatch(agent_graphs *a, const agent_settings *s, const model_spec *policy, const agent_sizes *z) {
    graph *g = a->g;
    tensor seen;
    ppo_inputs in = drawn(g, s, z, &seen);
    nets n = build_nets(g, s, policy, seen, POLICY | VALUE);
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
    nets n = build_nets(g, s, policy, seen, POLICY);
    tensor action = op_sample(g, n.score, n.std, TENSOR_NONE, TENSOR_NONE, sampling(s, z, true));
    tensor reward = op_env_take(g, a->state, action, part, parts, env);
    a->end = graph_sibling(g, reward, ENV_TAKE_END);
    a->total = graph_sibling(g, reward, ENV_TAKE_TOTAL);
    a->length = graph_sibling(g, reward, ENV_TAKE_STEPS);
    graph_keep(g, a->end);
    graph_keep(g, a->total);
    graph_keep(g, a->length);
    op_advance(g, PHASE_AFTER);
}

void agent_graph_build(agent_graphs *to, agent_graph_kind kind, const agent_settings *s, const model_spec *policy) {
    agent_sizes z = agent_sizes_of(s);
    *to = (agent_graphs){0};
    if (kind == GRAPH_ENDS && !z.cut) return;
    to->g = graph_new();
    switch (kind) {
    case GRAPH_MINIBATCH: build_minibatch(to, s, policy, &z); return;
    case GRAPH_ACT: build_act(to, s, policy, &z); break;
    case GRAPH_LAST: build_last(to, s, policy, &z); break;
    case GRAPH_ENDS: build_ends(to, s, policy, &z); break;
    case GRAPH_ADVANTAGE: build_advantage(to, s, &z); break;
    default: build_test(to, s, policy, &z); break;
    }
    dtype_assign(to->g, s->precision);
}
