// lstm: a whole sequence, in one direction or both, as PyTorch's nn.LSTM has one layer of it (gate order i, f, g, o).
//   x [B, T, I]; per direction w_ih [4H, I], w_hh [4H, H], b_ih [4H], b_hh [4H]
//   h0, c0 [B, D*H] or none (zero); reset [B, T] or none: where it is 1 the state is zeroed before that step
//   -> h_last, c_last [B, D*H], directions side by side; and, with all_states, states [B, T, D*H]
// The second direction runs from the last step to the first; its last state is the one at step 0. The builder returns
// the states if asked for, else h_last; graph_sibling finds the others. Several layers are several nodes. Backward:
// gradients may arrive at any of the outputs; they go to x, the weights, h0 and c0.
#include "ops/activation.h"
#include "ops/op.h"

#include <string.h>

#ifdef OP_RULES

static void check_direction(const graph *g, const tensor *w, int64_t H, int64_t I) {
    CHECK(shape_equal(op_shape(g, w[0]), shape2(4 * H, I)), "lstm: w_ih does not fit");
    CHECK(shape_equal(op_shape(g, w[1]), shape2(4 * H, H)), "lstm: w_hh does not fit");
    CHECK(shape_equal(op_shape(g, w[2]), shape1(4 * H)), "lstm: b_ih does not fit");
    CHECK(shape_equal(op_shape(g, w[3]), shape1(4 * H)), "lstm: b_hh does not fit");
}

tensor op_lstm(
    graph *g, tensor x, const tensor *weights, int directions, tensor h0, tensor c0, tensor reset, bool all_states) {
    shape sx = op_shape(g, x);
    CHECK(sx.rank == 3 && (directions == 1 || directions == 2), "lstm: x needs 3 dimensions, directions are 1 or 2");
    CHECK(!h0.id == !c0.id, "lstm: h0 and c0 come together");
    int64_t H = shape_last(op_shape(g, weights[1])), I = sx.dim[2];
    tensor in[LSTM_WEIGHTS + 2 * LSTM_PER_DIRECTION + 3] = {x};
    for (int d = 0; d < directions; d++) check_direction(g, weights + d * LSTM_PER_DIRECTION, H, I);
    for (int k = 0; directions == 2 && k < LSTM_PER_DIRECTION; k++)
        CHECK(weights[k].id != weights[LSTM_PER_DIRECTION + k].id, "lstm: both directions share a weight");
    int at = lstm_input_h0(directions);
    memcpy(in + LSTM_WEIGHTS, weights, (size_t)(directions * LSTM_PER_DIRECTION) * sizeof *weights);
    in[at] = h0;
    in[at + 1] = c0;
    in[at + 2] = reset;
    node *n = op_node(g, OP_lstm, in, at + 3);
    lstm_attr a = {directions, all_states};
    graph_attr_add(g, n, &a, sizeof a);
    n->flows = (1u << (at + 2)) - 1;
    n->needs = (1u << (at + 3)) - 1;
    n->wide = 1u << LSTM_C_LAST;
    tensor h = graph_output_add(g, n, DTYPE_F32, shape2(sx.dim[0], directions * H));
    graph_output_add(g, n, DTYPE_F32, shape2(sx.dim[0], directions * H));
    return all_states ? graph_output_add(g, n, DTYPE_F32, shape3(sx.dim[0], sx.dim[1], directions * H)) : h;
}

#else

// Kept for backward, per direction, sample and step: i, f, g, o, c, h.
enum { KEPT = 6 };

typedef struct {
    const lstm_attr *attr;
    int64_t B, T, I, H, D;
    const real *x, *h0, *c0, *reset;
} sizes;

static sizes sizes_of(const call *c) {
    const lstm_attr *a = c->attr;
    int at = lstm_input_h0(a->directions);
    shape x = c->in[LSTM_X].shape;
    return (sizes){a, x.dim[0], x.dim[1], x.dim[2], c->in[LSTM_WEIGHTS + 1].shape.dim[1], a->directions, c->in[0].data,
        c->in[at].data, c->in[at + 1].data, c->in[at + 2].data};
}

static real *kept_at(const call *c, const sizes *s, int64_t d, int64_t b, int64_t t) {
    real *base = c->reserve ? c->reserve : c->scratch;
    return base + ((d * s->B + b) * s->T + t) * KEPT * s->H;
}

// The state that step t of direction d starts from, after a reset: the value of unit u of h (kept 5) or c (kept 4).
static real previous(const call *c, const sizes *s, int64_t d, int64_t b, int64_t t, int which, int64_t u) {
    if (s->reset && s->reset[b * s->T + t] != 0) return 0;
    int64_t before = d ? t + 1 : t - 1;
    if (before >= 0 && before < s->T) return kept_at(c, s, d, b, before)[which * s->H + u];
    const real *start = which == 5 ? s->h0 : s->c0;
    return start ? start[b * s->D * s->H + d * s->H + u] : 0;
}

static void forward_step(const call *c, const sizes *s, int64_t d, int64_t b, int64_t t) {
    const operand *w = &c->in[LSTM_WEIGHTS + d * LSTM_PER_DIRECTION];
    const real *wi = w[0].data, *wh = w[1].data, *bi = w[2].data, *bh = w[3].data;
    const real *x = s->x + (b * s->T + t) * s->I;
    int64_t H = s->H;
    real *k = kept_at(c, s, d, b, t);
    for (int64_t r = 0; r < 4 * H; r++) {
        real z = bi[r] + bh[r];
        for (int64_t i = 0; i < s->I; i++) z += wi[r * s->I + i] * x[i];
        for (int64_t u = 0; u < H; u++) z += wh[r * H + u] * previous(c, s, d, b, t, 5, u);
        k[r] = r / H == 2 ? (real)tanh(z) : activation_sigmoid(z);
    }
    for (int64_t u = 0; u < H; u++) {
        real cell = k[H + u] * previous(c, s, d, b, t, 4, u) + k[u] * k[2 * H + u];
        k[4 * H + u] = cell;
        k[5 * H + u] = k[3 * H + u] * (real)tanh(cell);
    }
}

static void copy_out(const call *c, const sizes *s, int64_t d, int64_t b) {
    int64_t H = s->H, last = d ? 0 : s->T - 1, at = b * s->D * H + d * H;
    size_t bytes = (size_t)H * sizeof(real);
    memcpy((real *)c->out[LSTM_H_LAST].data + at, kept_at(c, s, d, b, last) + 5 * H, bytes);
    memcpy((real *)c->out[LSTM_C_LAST].data + at, kept_at(c, s, d, b, last) + 4 * H, bytes);
    real *states = s->attr->all_states ? c->out[LSTM_STATES].data : NULL;
    for (int64_t t = 0; states && t < s->T; t++)
        memcpy(states + (b * s->T + t) * s->D * H + d * H, kept_at(c, s, d, b, t) + 5 * H, bytes);
}

static void forward_samples(const call *c, int64_t begin, int64_t end) {
    sizes s = sizes_of(c);
    for (int64_t b = begin; b < end; b++)
        for (int64_t d = 0; d < s.D; d++) {
            for (int64_t i = 0; i < s.T; i++) forward_step(c, &s, d, b, d ? s.T - 1 - i : i);
            copy_out(c, &s, d, b);
        }
}

static void forward(const call *c) {
    sizes s = sizes_of(c);
    op_for(c, s.B, s.D * s.T * 4 * s.H * (s.I + s.H), forward_samples);
}

// The gates' gradients of one step, given dh and dc, which become those of the step before.
static void backward_gates(
    const call *c, const sizes *s, int64_t d, int64_t b, int64_t t, const real *dh, real *dc, real *dz) {
    int64_t H = s->H;
    const real *k = kept_at(c, s, d, b, t);
    bool cut = s->reset && s->reset[b * s->T + t] != 0;
    for (int64_t u = 0; u < H; u++) {
        real i = k[u], f = k[H + u], g = k[2 * H + u], o = k[3 * H + u], th = (real)tanh(k[4 * H + u]);
        real cell = dc[u] + dh[u] * o * (1 - th * th);
        dz[u] = cell * g * i * (1 - i);
        dz[H + u] = cell * previous(c, s, d, b, t, 4, u) * f * (1 - f);
        dz[2 * H + u] = cell * i * (1 - g * g);
        dz[3 * H + u] = dh[u] * th * o * (1 - o);
        dc[u] = cut ? 0 : cell * f;
    }
}

// dh of the step before, and dx of this one.
static void backward_products(
    const call *c, const sizes *s, int64_t d, int64_t b, int64_t t, const real *dz, real *dh) {
    const operand *w = &c->in[LSTM_WEIGHTS + d * LSTM_PER_DIRECTION];
    const real *wi = w[0].data, *wh = w[1].data;
    int64_t H = s->H;
    bool cut = s->reset && s->reset[b * s->T + t] != 0;
    for (int64_t u = 0; u < H; u++) {
        real sum = 0;
        for (int64_t r = 0; r < 4 * H; r++) sum += dz[r] * wh[r * H + u];
        dh[u] = cut ? 0 : sum;
    }
    operand dx = c->din[LSTM_X];
    dx.add |= d == 1;
    for (int64_t i = 0; dx.data && i < s->I; i++) {
        real sum = 0;
        for (int64_t r = 0; r < 4 * H; r++) sum += dz[r] * wi[r * s->I + i];
        op_put(&dx, (b * s->T + t) * s->I + i, sum);
    }
}

static void incoming(const call *c, const sizes *s, int64_t d, int64_t b, int64_t t, real *dh) {
    const real *states = s->attr->all_states ? c->dout[LSTM_STATES].data : NULL;
    for (int64_t u = 0; states && u < s->H; u++) dh[u] += states[((b * s->T + t) * s->D + d) * s->H + u];
}

// dz of every step of samples begin..end into scratch; dx, dh0 and dc0 on the way.
static void backward_samples(const call *c, int64_t begin, int64_t end) {
    sizes s = sizes_of(c);
    int64_t H = s.H, at = lstm_input_h0(s.attr->directions);
    const real *dhl = c->dout[LSTM_H_LAST].data, *dcl = c->dout[LSTM_C_LAST].data;
    for (int64_t d = 0; d < s.D; d++) {
        for (int64_t b = begin; b < end; b++) {
            real *dz = (real *)c->scratch + (d * s.B + b) * (s.T * 4 + 2) * H, *dh = dz + s.T * 4 * H, *dc = dh + H;
            for (int64_t u = 0; u < H; u++) {
                dh[u] = dhl ? dhl[(b * s.D + d) * H + u] : 0;
                dc[u] = dcl ? dcl[(b * s.D + d) * H + u] : 0;
            }
            for (int64_t i = s.T - 1; i >= 0; i--) {
                int64_t t = d ? s.T - 1 - i : i;
                incoming(c, &s, d, b, t, dh);
                backward_gates(c, &s, d, b, t, dh, dc, dz + t * 4 * H);
                backward_products(c, &s, d, b, t, dz + t * 4 * H, dh);
            }
            for (int64_t u = 0; u < H && c->din[at].data; u++) op_put(&c->din[at], (b * s.D + d) * H + u, dh[u]);
            for (int64_t u = 0; u < H && c->din[at + 1].data; u++)
                op_put(&c->din[at + 1], (b * s.D + d) * H + u, dc[u]);
        }
    }
}

// Row `item` of the gates: direction item / 4H, its weights' gradients over all samples and steps.
static void backward_weights(const call *c, int64_t begin, int64_t end) {
    sizes s = sizes_of(c);
    int64_t H = s.H;
    for (int64_t item = begin; item < end; item++) {
        int64_t d = item / (4 * H), r = item % (4 * H);
        const operand *dw = &c->din[LSTM_WEIGHTS + d * LSTM_PER_DIRECTION];
        const real *dz = (const real *)c->scratch + d * s.B * (s.T * 4 + 2) * H;
        for (int64_t k = 0; k < s.I + H + 1; k++) {
            real sum = 0;
            for (int64_t b = 0; b < s.B; b++)
                for (int64_t t = 0; t < s.T; t++) {
                    real z = dz[b * (s.T * 4 + 2) * H + t * 4 * H + r];
                    sum += k < s.I       ? z * s.x[(b * s.T + t) * s.I + k]
                           : k < s.I + H ? z * previous(c, &s, d, b, t, 5, k - s.I)
                                         : z;
                }
            if (k < s.I && dw[0].data) op_put(&dw[0], r * s.I + k, sum);
            if (k >= s.I && k < s.I + H && dw[1].data) op_put(&dw[1], r * H + k - s.I, sum);
            if (k == s.I + H && dw[2].data) op_put(&dw[2], r, sum);
            if (k == s.I + H && dw[3].data) op_put(&dw[3], r, sum);
        }
    }
}

static void backward(const call *c) {
    sizes s = sizes_of(c);
    op_for(c, s.B, s.D * s.T * 4 * s.H * (s.I + s.H), backward_samples);
    op_for(c, s.D * 4 * s.H, s.B * s.T * (s.I + s.H), backward_weights);
}

static size_t reserve(const call *c) {
    sizes s = sizes_of(c);
    return (size_t)(s.D * s.B * s.T * KEPT * s.H) * sizeof(real);
}

static size_t scratch(const call *c) {
    sizes s = sizes_of(c);
    if (!c->backward) return c->keeps ? 0 : reserve(c);
    return (size_t)(s.D * s.B * (s.T * 4 + 2) * s.H) * sizeof(real);
}

const kernel KERNEL(lstm) = {forward, backward, scratch, reserve};

#endif
