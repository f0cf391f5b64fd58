// sample: actions drawn from a policy, with the logarithms of their probabilities.
//   score [B, A], std [B, A] or none, latent [B, F] and log_std [F, A] or none -> action [B, 1] or [B, A], log_prob [B]
// Scores of choices are logits, and the action is the number of one. Otherwise scores are means, and the action is
//   mean + std * normal, or, with a latent, mean + latent * M, where M is a matrix of normals times exp(log_std),
// drawn for every environment and kept for `hold` steps of a rollout. Greedy: the likeliest choice, or the mean. Row r
// draws with the moment position + row + r of the cursor, where `row` counts from the rollout's first step.
#include "ops/chance.h"
#include "ops/policy.h"
#include "ops/softmax.h"

#ifdef OP_RULES

tensor op_sample(graph *g, tensor score, tensor std, tensor latent, tensor log_std, sample_settings settings) {
    CHECK(settings.choices != (std.id != 0), "sample: choices have no deviation, and numbers have one");
    CHECK(!latent.id == !log_std.id, "sample: a latent without deviations");
    if (!latent.id) settings.hold = 0;
    node *n = OP_NODE(g, sample, score, std, latent, log_std);
    graph_attr_add(g, n, &settings, sizeof settings);
    tensor action = graph_output_add(g, n, DTYPE_F32, shape2(BATCH, settings.choices ? 1 : op_shape(g, score).dim[1]));
    graph_output_add(g, n, DTYPE_F32, shape1(BATCH));
    return action;
}

#else

static chance chance_of(const call *c, int64_t row, int64_t slot) {
    const step_cursor *at = c->step.cursor;
    uint64_t moment = at->position + (uint64_t)(slot * c->batch + row);
    return (chance){c->step.progress->seed, moment, ((const sample_settings *)c->attr)->stream};
}

static int64_t slot_of(const call *c) {
    return (int64_t)c->step.cursor->row / c->batch;
}

static void choose(const call *c, int64_t r) {
    const sample_settings *s = c->attr;
    int64_t K = c->in[0].shape.dim[1], pick = 0;
    const real *z = (const real *)c->in[0].data + r * K;
    softmax m = softmax_of(z, K);
    chance at = chance_of(c, r, slot_of(c));
    double u = s->greedy ? 0 : chance_unit(&at, 0), sum = 0;
    if (s->greedy) {
        for (int64_t k = 1; k < K; k++)
            if (z[k] > z[pick]) pick = k;
    } else {
        while (pick < K - 1 && (sum += exp((double)log_p(m, z[pick]))) <= u) pick++;
    }
    ((real *)c->out[0].data)[r] = (real)pick;
    ((real *)c->out[1].data)[r] = log_p(m, z[pick]);
}

// Noise of one action of a row, in units of that action.
static double noise(const call *c, int64_t r, int64_t a) {
    const sample_settings *s = c->attr;
    int64_t A = c->in[0].shape.dim[1], F = c->in[2].data ? c->in[2].shape.dim[1] : 0, slot = slot_of(c);
    const real *latent = c->in[2].data, *log_std = c->in[3].data;
    if (s->greedy) return 0;
    chance at = chance_of(c, r, s->hold ? slot / s->hold * s->hold : slot);
    if (!F) return (double)((const real *)c->in[1].data)[r * A + a] * chance_normal(&at, (uint32_t)a);
    double sum = 0;
    for (int64_t f = 0; f < F; f++)
        sum += (double)latent[r * F + f] * exp((double)log_std[f * A + a]) * chance_normal(&at, (uint32_t)(f * A + a));
    return sum;
}

static void draw_numbers(const call *c, int64_t r) {
    int64_t A = c->in[0].shape.dim[1];
    const real *mean = (const real *)c->in[0].data + r * A, *std = (const real *)c->in[1].data + r * A;
    real *action = (real *)c->out[0].data + r * A;
    double all = 0;
    for (int64_t a = 0; a < A; a++) {
        action[a] = (real)((double)mean[a] + noise(c, r, a));
        all += policy_log_normal((double)action[a], (double)mean[a], (double)std[a]);
    }
    ((real *)c->out[1].data)[r] = (real)all;
}

static void sample_rows(const call *c, int64_t begin, int64_t end) {
    bool choices = ((const sample_settings *)c->attr)->choices;
    for (int64_t r = begin; r < end; r++) {
        if (choices)
            choose(c, r);
        else
            draw_numbers(c, r);
    }
}

static void forward(const call *c) {
    op_for(c, c->in[0].shape.dim[0], 64 * c->in[0].shape.dim[1] + 256, sample_rows);
}

const kernel KERNEL(sample) = {forward, NULL, NULL, NULL};

#endif
