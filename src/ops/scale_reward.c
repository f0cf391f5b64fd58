// scale_reward: rewards over the running deviation of discounted returns, cut to +-clip.
//   reward [B], end [B] (env_end), returns [N] (f64, changed in place)
//   -> y [B], a state of the moments {count, mean, variance} (f64), returns
//   returns = gamma returns + reward; moments take them in; y = reward / sqrt(variance + 1e-8), within clip; returns of
//   episodes that ended become 0
#include "ops/op.h"
#include "ops/running.h"

#ifdef OP_RULES

tensor op_scale_reward(graph *g, tensor reward, tensor end, tensor returns, scale_reward_settings settings) {
    node *n = OP_NODE(g, scale_reward, reward, end, returns);
    graph_attr_add(g, n, &settings, sizeof settings);
    tensor y = graph_output_add(g, n, DTYPE_F32, op_shape(g, reward));
    graph_state_output_add(g, n, "reward moments", DTYPE_F64, shape1(RUNNING_HEAD + 2));
    graph_state_written_add(g, n, returns);
    return y;
}

#else

static void forward(const call *c) {
    const scale_reward_settings *s = c->attr;
    int64_t B = c->in[0].shape.dim[0];
    const real *reward = c->in[0].data, *end = c->in[1].data;
    double *state = c->out[1].data, *returns = c->out[2].data;
    running_moments now = {0, 0};
    for (int64_t b = 0; b < B; b++) {
        returns[b] = returns[b] * (double)s->gamma + (double)reward[b];
        now.mean += returns[b] / (double)B;
    }
    for (int64_t b = 0; b < B; b++) now.variance += (returns[b] - now.mean) * (returns[b] - now.mean) / (double)B;
    running_moments m = running_join(running_at(state, 1, 0), running_count(state[0]), now, (double)B);
    running_put(state, 1, 0, m);
    state[0] = running_count(state[0]) + (double)B;
    for (int64_t b = 0; b < B; b++) {
        ((real *)c->out[0].data)[b] =
            (real)running_cut((double)reward[b] / sqrt(m.variance + RUNNING_EPS), (double)s->clip);
        if (end[b] != ENV_GOES_ON) returns[b] = 0;
    }
}

const kernel KERNEL(scale_reward) = {forward, NULL, NULL, NULL};

#endif
