// env_see: observations of a batch of environments; where no episode is under way, one begins.
//   state [N, env_words] (i64, changed in place), the environment's data -> observation [B, columns]
// Row r draws with the moment position + row + r of the cursor. B is N.
#include "env/batch.h"
#include "ops/environment.h"

#ifdef OP_RULES

tensor op_env_see(graph *g, tensor state, const tensor *data, int parts, env_attr settings) {
    tensor input[ENV_SEE_DATA + ENV_PARTS_MOST] = {state};
    CHECK(parts <= ENV_PARTS_MOST, "env_see: %d parts of data", parts);
    CHECK(op_shape(g, state).dim[1] == env_words(&settings.env), "env_see: the state of another environment");
    for (int k = 0; k < parts; k++) input[ENV_SEE_DATA + k] = data[k];
    node *n = op_node(g, OP_env_see, input, ENV_SEE_DATA + parts);
    graph_attr_add(g, n, &settings, sizeof settings);
    tensor seen = graph_output_add(g, n, DTYPE_F32, shape2(BATCH, env_shape_of(&settings.env).observation));
    graph_state_written_add(g, n, state);
    return seen;
}

#else

static void see_rows(const call *c, int64_t begin, int64_t end) {
    const env_attr *a = c->attr;
    const step_cursor *at = c->step.cursor;
    int64_t words = env_words(&a->env), columns = operand_width(&c->out[0]);
    env_data data = environment_data(c, ENV_SEE_DATA);
    float seen[ENV_OBSERVATION_MOST];
    for (int64_t r = begin; r < end; r++) {
        env_dice dice = {c->step.progress->seed, at->position + at->row + (uint64_t)r, a->stream};
        env_see_rows(&a->env, &data, dice, (int64_t *)c->out[1].data + r * words, seen, 0, 1);
        environment_put(&c->out[0], r, seen, columns);
    }
}

static void forward(const call *c) {
    op_for(c, c->in[0].shape.dim[0], 1024, see_rows);
}

const kernel KERNEL(env_see) = {forward, NULL, NULL, NULL};

#endif
