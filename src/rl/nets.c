#include "rl/nets.h"

#include "base/err.h"
#include "rl/graphs.h"

#include <math.h>
#include <string.h>

int nets_memories(const agent_settings *s) {
    return !s->lstm ? 0 : s->shared ? 1 : 2;
}

const char *nets_memory_name(const agent_settings *s, int i) {
    return s->shared ? "shared" : i ? "value" : "policy";
}

// LSTMs and encoders begin as PyTorch's.
static bool begins_as_it_is(const char *name) {
    return strstr(name, "lstm.") || strstr(name, ".encoder.") || strstr(name, ".position");
}

// Linear layers begin as Stable-Baselines3 has it: orthogonal, with a gain of sqrt(2) and `last` for the last one, and
// biases of 0.
static void begin_orthogonal(graph *g, int first, double last) {
    int head = -1;
    for (int i = first; i < graph_parameters(g); i++) {
        tensor t = graph_parameter_at(g, i);
        const tensor_info *p = graph_info(g, t);
        bool matrix = p->shape.rank == 2;
        if (begins_as_it_is(p->name)) continue;
        graph_begins(g, t, matrix ? (init){INIT_ORTHOGONAL, (float)sqrt(2)} : (init){INIT_ZERO, 0});
        if (matrix) head = i;
    }
    if (head >= 0) graph_begins(g, graph_parameter_at(g, head), (init){INIT_ORTHOGONAL, (float)last});
}

typedef struct {
    graph *g;
    const agent_settings *s;
    const model_spec *policy;
    tensor seen;
    const layer_memory *before;
    nets *n;
} build;

// The states of an LSTM over what is seen: all of them for sequences, the last one for a single step.
static tensor remember(const build *b, int memory) {
    shape s = graph_info(b->g, b->seen)->shape;
    bool sequences = s.rank == 3;
    tensor x = sequences ? b->seen : op_reshape(b->g, b->seen, shape3(s.dim[0], 1, s.dim[1]));
    tensor y = layer_lstm(b->g, "lstm", x, b->s->lstm, b->before[memory], sequences);
    b->n->h[memory] = graph_sibling(b->g, y, LSTM_H_LAST);
    b->n->c[memory] = graph_sibling(b->g, y, LSTM_C_LAST);
    return y;
}

// The lags as a stream of a model that sees sequences, all other columns as its vector.
static void see_lags(const build *b, model_spec *m) {
    const market_settings *k = &b->s->world.env.market;
    shape s = graph_info(b->g, b->seen)->shape;
    int64_t lagged = (int64_t)k->lags * k->lagged;
    CHECK(b->s->world.env.kind == ENV_market && s.rank == 2, "%s over lags of no market", model_name(m->kind));
    tensor bars = op_slice(b->g, b->seen, 0, lagged);
    m->streams = 1;
    m->stream[0] =
        (model_stream){.name = NETS_STREAM, .x = op_reshape(b->g, bars, shape3(s.dim[0], k->lags, k->lagged))};
    m->vector = op_slice(b->g, b->seen, lagged, s.dim[1]);
}

static tensor net(const build *b, const char *prefix, int memory, int64_t outputs, double gain) {
    model_spec m = *b->policy;
    int first = graph_parameters(b->g);
    graph_prefix(b->g, prefix);
    if (m.kind == MODEL_transformer)
        see_lags(b, &m);
    else
        m.vector = b->s->lstm ? remember(b, memory) : b->seen;
    m.classes = outputs;
    tensor y = model_build(b->g, &m);
    graph_prefix(b->g, NULL);
    begin_orthogonal(b->g, first, gain);
    return y;
}

// Input of the layer that made a tensor.
static tensor behind(const graph *g, tensor t) {
    return graph_node(g, graph_info(g, t)->producer)->input[0];
}

// Deviations of actions that are numbers.
static void add_noise(graph *g, const agent_settings *s, nets *n) {
    int64_t A = shape_last(graph_info(g, n->score)->shape);
    if (s->state_noise) n->latent = behind(g, n->score);
    shape of = s->state_noise ? shape2(shape_last(graph_info(g, n->latent)->shape), A) : shape1(A);
    n->log_std = graph_parameter(g, "log_std", of, (init){INIT_VALUE, (float)s->log_std});
    n->std = op_action_std(g, n->score, n->latent, n->log_std);
}

// The value beside a policy that shares all layers but this one: a head with a gain of 1, as a value has it.
static tensor value_head(graph *g, tensor latent) {
    int first = graph_parameters(g);
    tensor value = layer_linear(g, "shared.value", latent, 1, ACT_NONE);
    begin_orthogonal(g, first, 1);
    return value;
}

nets nets_build(graph *g, const agent_settings *s, const model_spec *policy, tensor seen, const layer_memory *before,
    unsigned wanted) {
    nets n = {.score = TENSOR_NONE};
    agent_sizes z = agent_sizes_of(s);
    build b = {g, s, policy, seen, before, &n};
    if (s->shared) {
        n.score = net(&b, "shared.", 0, z.actions, 0.01);
        if (wanted & NETS_VALUE) n.value = value_head(g, behind(g, n.score));
    } else {
        if (wanted & NETS_POLICY) n.score = net(&b, "policy.", 0, z.actions, 0.01);
        if (wanted & NETS_VALUE) n.value = net(&b, "value.", 1, 1, 1);
    }
    if (!z.env.choices && (wanted & NETS_POLICY)) add_noise(g, s, &n);
    return n;
}
