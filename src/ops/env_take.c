// env_take: a batch of environments takes actions.
//   state [N, env_words] (i64, changed in place), action [B, columns], the environment's data
//   -> state, reward [B], end [B] (env_end), last [B, columns of the observation], total [B], steps [B]
// `last` is the last observation of an episode that ended, zeros elsewhere; `total` and `steps` are the episode's
// rewards and steps so far. B is N.
#include "env/batch.h"
#include "ops/environment.h"

#ifdef OP_RULES

tensor op_env_take(graph *g, tensor state, tensor action, const tensor *data, int parts, env_attr settings) {
    tensor input[ENV_TAKE_DATA + ENV_PARTS_MOST] = {state, action};
    env_shape s = env_shape_of(&settings.env);
    CHECK(parts <= ENV_PARTS_MOST, "env_take: %d parts of data", parts);
    CHECK(op_shape(g, action).dim[1] == s.action && s.action <= ENV_ACTION_MOST, "env_take: an action of %lld columns",
        (long long)op_shape(g, action).dim[1]);
    for (int k = 0; k < parts; k++) input[ENV_TAKE_DATA + k] = data[k];
    node *n = op_node(g, OP_env_take, input, ENV_TAKE_DATA + parts);
    graph_attr_add(g, n, &settings, sizeof settings);
    graph_state_written_add(g, n, state);
    tensor reward = graph_output_add(g, n, DTYPE_F32, shape1(BATCH));
    graph_output_add(g, n, DTYPE_F32, shape1(BATCH));
    graph_output_add(g, n, DTYPE_F32, shape2(BATCH, s.observation));
    graph_output_add(g, n, DTYPE_F32, shape1(BATCH));
    graph_output_add(g, n, DTYPE_F32, shape1(BATCH));
    return reward;
}

#else

static void take_rows(const call *c, int64_t begin, int64_t end) {
    const env_attr *a = c->attr;
    int64_t words = env_words(&a->env), columns = operand_width(&c->out[ENV_TAKE_LAST]),
            width = operand_width(&c->in[1]);
    env_data data = environment_data(c, ENV_TAKE_DATA);
    float action[ENV_ACTION_MOST], last[ENV_OBSERVATION_MOST];
    for (int64_t r = begin; r < end; r++) {
        env_result of;
        for (int64_t k = 0; k < width; k++) action[k] = (float)((const real *)c->in[1].data)[r * width + k];
        for (int64_t k = 0; k < columns; k++) last[k] = 0;
        env_take_rows(&a->env, &data, (int64_t *)c->out[ENV_TAKE_STATE].data + r * words, action, &of, last, 0, 1);
        environment_put(&c->out[ENV_TAKE_LAST], r, last, columns);
        ((real *)c->out[ENV_TAKE_REWARD].data)[r] = (real)(float)of.reward;
        ((real *)c->out[ENV_TAKE_END].data)[r] = (real)of.end;
        ((real *)c->out[ENV_TAKE_TOTAL].data)[r] = (real)(float)of.total;
        ((real *)c->out[ENV_TAKE_STEPS].data)[r] = (real)of.steps;
    }
}

static void forward(const call *c) {
    op_for(c, c->in[0].shape.dim[0], 1024, take_rows);
}

const kernel KERNEL(env_take) = {forward, NULL, NULL, NULL};

#endif
