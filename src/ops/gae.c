// gae: generalised advantage estimates of a rollout (Schulman et al., 2016), and the returns that values are to tell.
//   reward, end, value [T * N] (row t N + i is environment i at step t), beyond [(K + 1) * N]
//   -> advantage [T * N], target [T * N], both states
// beyond[k N + i] is the value of the last observation of environment i's k-th truncated episode, and beyond[K N + i]
// that of the observation behind the rollout. Backwards in time, with r the reward, plus gamma times the value beyond
// where the episode was truncated:
//   delta = r + gamma V' live - V;  A = delta + gamma lambda live A';  target = A + V
// live is 0 where an episode ended and 1 elsewhere.
#include "ops/op.h"

#ifdef OP_RULES

tensor op_gae(graph *g, tensor reward, tensor end, tensor value, tensor beyond, gae_settings settings) {
    shape s = op_shape(g, reward);
    CHECK(shape_equal(s, op_shape(g, end)) && shape_equal(s, op_shape(g, value)), "gae: tables of different rows");
    node *n = OP_NODE(g, gae, reward, end, value, beyond);
    graph_attr_add(g, n, &settings, sizeof settings);
    tensor advantage = graph_state_output_add(g, n, "rollout advantage", DTYPE_F32, s);
    graph_state_output_add(g, n, "rollout target", DTYPE_F32, s);
    return advantage;
}

#else

static void environments(const call *c, int64_t begin, int64_t end) {
    const gae_settings *s = c->attr;
    const real *reward = c->in[0].data, *ends = c->in[1].data, *value = c->in[2].data, *beyond = c->in[3].data;
    int64_t N = c->batch, T = operand_count(&c->in[0]) / N, K = operand_count(&c->in[3]) / N - 1;
    real *advantage = c->out[0].data, *target = c->out[1].data, gamma = (real)s->gamma, lambda = (real)s->lambda;
    for (int64_t i = begin; i < end; i++) {
        int64_t cut = 0;
        for (int64_t t = 0; t < T; t++) cut += ends[t * N + i] == ENV_TRUNCATED;
        real next = beyond[K * N + i], later = 0;
        for (int64_t at = (T - 1) * N + i; at >= 0; at -= N) {
            real r = reward[at], live = ends[at] == ENV_GOES_ON ? 1 : 0;
            if (ends[at] == ENV_TRUNCATED) r += gamma * beyond[--cut * N + i];
            later = r + gamma * next * live - value[at] + gamma * lambda * live * later;
            next = value[at];
            advantage[at] = later;
            target[at] = later + next;
        }
    }
}

static void forward(const call *c) {
    op_for(c, c->batch, operand_count(&c->in[0]) / c->batch * 8, environments);
}

const kernel KERNEL(gae) = {forward, NULL, NULL, NULL};

#endif
