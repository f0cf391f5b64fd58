// action_std: deviations of actions that are numbers.
//   like [..., A] (its shape alone), latent [..., F] or none, log_std [A], or [F, A] with a latent -> [..., A]
// Without a latent exp(log_std). With one, of the noise that is latent times a random matrix of deviations
// exp(log_std): sqrt(sum over f of latent_f^2 exp(2 log_std_fa) + 1e-6). No gradient flows to the latent.
#include "ops/op.h"

#include <math.h>

#ifdef OP_RULES

tensor op_action_std(graph *g, tensor like, tensor latent, tensor log_std) {
    shape s = op_shape(g, like), of = op_shape(g, log_std);
    CHECK(shape_last(of) == shape_last(s) && of.rank == (latent.id ? 2 : 1),
        "action_std: log_std is not of these actions");
    CHECK(!latent.id || shape_last(op_shape(g, latent)) == of.dim[0], "action_std: log_std is not of this latent");
    node *n = OP_NODE(g, action_std, like, latent, log_std);
    n->needs = NEEDS_INPUT(1) | NEEDS_INPUT(2) | NEEDS_OUTPUT(0);
    n->flows = 1u << 2;
    return graph_output_add(g, n, DTYPE_F32, s);
}

#else

static void forward_rows(const call *c, int64_t begin, int64_t end) {
    int64_t A = operand_width(&c->out[0]), F = c->in[1].data ? operand_width(&c->in[1]) : 0;
    const real *latent = c->in[1].data, *log_std = c->in[2].data;
    real *std = c->out[0].data;
    for (int64_t b = begin; b < end; b++)
        for (int64_t a = 0; a < A; a++) {
            double sum = F ? 1e-6 : exp(2 * (double)log_std[a]);
            for (int64_t f = 0; f < F; f++) {
                double d = (double)latent[b * F + f] * exp((double)log_std[f * A + a]);
                sum += d * d;
            }
            std[b * A + a] = (real)sqrt(sum);
        }
}

static void forward(const call *c) {
    int64_t F = c->in[1].data ? operand_width(&c->in[1]) : 1;
    op_for(c, operand_rows(&c->out[0]), operand_width(&c->out[0]) * F * 16, forward_rows);
}

// Elements of log_std, each summed over all rows.
static void backward_elements(const call *c, int64_t begin, int64_t end) {
    int64_t B = operand_rows(&c->out[0]), A = operand_width(&c->out[0]),
            F = c->in[1].data ? operand_width(&c->in[1]) : 0;
    const real *latent = c->in[1].data, *log_std = c->in[2].data, *std = c->out[0].data, *up = c->dout[0].data;
    for (int64_t i = begin; i < end; i++) {
        int64_t f = i / A, a = i % A;
        double sum = 0, scale = F ? exp(2 * (double)log_std[i]) : 0;
        for (int64_t b = 0; b < B; b++) {
            double d = (double)up[b * A + a], s = (double)std[b * A + a];
            sum += F ? d * (double)latent[b * F + f] * (double)latent[b * F + f] * scale / s : d * s;
        }
        op_put(&c->din[2], i, (real)sum);
    }
}

static void backward(const call *c) {
    op_for(c, operand_count(&c->in[2]), operand_rows(&c->out[0]), backward_elements);
}

const kernel KERNEL(action_std) = {forward, backward, NULL, NULL};

#endif
