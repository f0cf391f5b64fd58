// attention: multi-head self-attention of a sequence, fused.
//   qkv [B, T, 3 * D]: queries, keys and values side by side, as the in_proj of nn.MultiheadAttention gives them;
//   mask [B, T] or none: 0 for a key that is padding -> y [B, T, D]
// A head has d = D / heads columns of each. Within it, query i gives
//   y_i = sum over j of p_ij v_j, where p_ij = exp(s_ij) / sum over k of exp(s_ik) and s_ij = q_i . k_j / sqrt(d)
// over the keys j that are not padding and, where it is causal, not behind i. A query without any key gives 0. Keys and
// values that are padding are never read.
// In training p is dropped out before it meets v: of a sample's row, element (head * T + i) * T + j.
// Backward computes p again, from q, k and two numbers a query that forward keeps: nothing of T x T is stored.
#include "ops/op.h"
#include "ops/random.h"

#include <math.h>

#ifdef OP_RULES

tensor op_attention(graph *g, tensor qkv, tensor mask, attention_settings settings) {
    shape s = op_shape(g, qkv);
    CHECK(s.rank == 3 && settings.heads > 0 && s.dim[2] % (3 * settings.heads) == 0,
        "attention: %lld columns are not queries, keys and values of %d heads", (long long)shape_last(s),
        settings.heads);
    CHECK(!mask.id || shape_equal(op_shape(g, mask), shape2(s.dim[0], s.dim[1])), "attention: mask does not fit");
    CHECK(settings.dropout >= 0 && settings.dropout < 1, "attention: dropout of %g", (double)settings.dropout);
    CHECK(
        s.dim[1] <= INT32_MAX && settings.heads * s.dim[1] <= INT64_C(0x400000000) / s.dim[1] && graph_nodes(g) < 65536,
        "attention: %lld steps and %d heads are more than the random counter holds", (long long)s.dim[1],
        settings.heads);
    node *n = OP_NODE(g, attention, qkv, mask);
    graph_attr_add(g, n, &settings, sizeof settings);
    n->flows = 1;
    n->needs = NEEDS_INPUT(0) | NEEDS_INPUT(1);
    return graph_output_add(g, n, DTYPE_F32, shape3(s.dim[0], s.dim[1], s.dim[2] / 3));
}

#else

// Heads of samples are taken in so many pieces, each with room of its own.
enum { PIECES = 64 };

// Statistics of a query: the largest score, and the sum of exp(score - largest).
typedef struct {
    real top, sum;
} softmax;

// One head of one sample. Keys and values are copied, padding as 0, also with steps innermost, so that inner loops run
// over neighbours.
typedef struct {
    const call *c;
    int64_t b, h, T, d, D;
    real scale;
    const real *mask;        // [T] or NULL
    softmax *kept;           // [T] or NULL
    const real *q;           // of the first step; a step has 3 * D columns
    real *k, *v;             // [T, d]
    real *k_steps, *v_steps; // [d, T]
    real *dk, *dv;           // [T, d], backward
    real *p, *keep, *dp;     // [T], of one query
    real *dq;                // [d], of one query
} head;

static int64_t head_room(const call *c) {
    int64_t T = c->in[0].shape.dim[1], d = c->in[0].shape.dim[2] / 3 / ((const attention_settings *)c->attr)->heads;
    return 6 * T * d + 3 * T + d;
}

static void head_open(head *w, const call *c, real *room, softmax *kept, int64_t item) {
    const attention_settings *a = c->attr;
    int64_t T = c->in[0].shape.dim[1], D = c->in[0].shape.dim[2] / 3, d = D / a->heads;
    int64_t b = item / a->heads, h = item % a->heads;
    *w = (head){.c = c, .b = b, .h = h, .T = T, .d = d, .D = D, .scale = (real)(1 / sqrt((double)d))};
    w->mask = c->in[1].data ? (const real *)c->in[1].data + b * T : NULL;
    w->kept = kept ? kept + item * T : NULL;
    w->q = (const real *)c->in[0].data + b * T * 3 * D + h * d;
    real **parts[] = {&w->k, &w->v, &w->k_steps, &w->v_steps, &w->dk, &w->dv};
    for (int i = 0; i < 6; i++) *parts[i] = room + i * T * d;
    w->p = room + 6 * T * d;
    w->keep = w->p + T;
    w->dp = w->keep + T;
    w->dq = w->dp + T;
    for (int64_t t = 0; t < T; t++) {
        const real *k = w->q + t * 3 * D + D, *v = k + D;
        bool live = !w->mask || w->mask[t] != 0;
        for (int64_t i = 0; i < d; i++) {
            w->k[t * d + i] = w->k_steps[i * T + t] = live ? k[i] : 0;
            w->v[t * d + i] = w->v_steps[i * T + t] = live ? v[i] : 0;
        }
    }
}

// to[j] = x . column j of `steps`, for the first n columns.
static void dot_steps(const head *w, const real *x, const real *steps, int64_t n, real *to) {
    for (int64_t j = 0; j < n; j++) to[j] = 0;
    for (int64_t i = 0; i < w->d; i++)
        for (int64_t j = 0; j < n; j++) to[j] += x[i] * steps[i * w->T + j];
}

static int64_t keys_of(const head *w, int64_t i) {
    return ((const attention_settings *)w->c->attr)->causal ? i + 1 : w->T;
}

static bool is_key(const head *w, int64_t j) {
    return !w->mask || w->mask[j] != 0;
}

// The scores of query i into p.
static void scores(const head *w, int64_t i, int64_t n) {
    dot_steps(w, w->q + i * 3 * w->D, w->k_steps, n, w->p);
    for (int64_t j = 0; j < n; j++) w->p[j] *= w->scale;
}

static softmax softmax_of(const head *w, int64_t n) {
    softmax m = {0, 0};
    bool any = false;
    for (int64_t j = 0; j < n; j++) {
        if (!is_key(w, j)) continue;
        m.top = !any || w->p[j] > m.top ? w->p[j] : m.top;
        any = true;
    }
    for (int64_t j = 0; j < n; j++)
        if (is_key(w, j)) m.sum += (real)exp((double)(w->p[j] - m.top));
    return m;
}

// Scores in p become probabilities.
static void normalise(const head *w, int64_t n, softmax m) {
    real part = m.sum != 0 ? 1 / m.sum : 0; // a NaN stays one
    for (int64_t j = 0; j < n; j++) w->p[j] = is_key(w, j) ? (real)exp((double)(w->p[j] - m.top)) * part : 0;
}

// Draws dropout's factors of the probabilities of query i.
static void draw_keep(const head *w, int64_t i, int64_t n) {
    float probability = ((const attention_settings *)w->c->attr)->dropout;
    random_key key = random_key_of(w->c->step);
    uint32_t least = random_threshold(probability);
    real scale = (real)random_scale(probability);
    int64_t first = (w->h * w->T + i) * w->T;
    for (int64_t e = first; e < first + n;) {
        rng_block r = random_dropout(&key, (uint64_t)w->b, w->c->node, (uint32_t)(e / RANDOM_OCTET));
        for (bool more = true; more && e < first + n; e++, more = e % RANDOM_OCTET)
            w->keep[e - first] = random_bits(&r, (int)(e % RANDOM_OCTET)) >= least ? scale : 0;
    }
}

static bool drops(const call *c) {
    return c->training && ((const attention_settings *)c->attr)->dropout > 0;
}

static void forward_head(const head *w) {
    real *y = (real *)w->c->out[0].data + w->b * w->T * w->D + w->h * w->d;
    for (int64_t i = 0; i < w->T; i++, y += w->D) {
        int64_t n = keys_of(w, i);
        scores(w, i, n);
        softmax m = softmax_of(w, n);
        if (w->kept) w->kept[i] = m;
        normalise(w, n, m);
        if (drops(w->c)) draw_keep(w, i, n);
        for (int64_t j = 0; drops(w->c) && j < n; j++) w->p[j] *= w->keep[j];
        for (int64_t k = 0; k < w->d; k++) y[k] = 0;
        for (int64_t j = 0; j < n; j++)
            for (int64_t k = 0; k < w->d; k++) y[k] += w->p[j] * w->v[j * w->d + k];
    }
}

// Query i's part of dk and dv, and dq. In p are the probabilities before dropout.
static void backward_query(const head *w, int64_t i, int64_t n, const real *dy) {
    const real *q = w->q + i * 3 * w->D;
    int64_t d = w->d, at = (w->b * w->T + i) * 3 * w->D + w->h * d;
    real mean = 0;
    dot_steps(w, dy, w->v_steps, n, w->dp);
    for (int64_t j = 0; j < n; j++) {
        w->dp[j] *= w->keep[j];
        mean += w->p[j] * w->dp[j];
        for (int64_t k = 0; k < d; k++) w->dv[j * d + k] += w->p[j] * w->keep[j] * dy[k];
    }
    for (int64_t k = 0; k < d; k++) w->dq[k] = 0;
    for (int64_t j = 0; j < n; j++) {
        real ds = w->p[j] * (w->dp[j] - mean) * w->scale;
        for (int64_t k = 0; k < d; k++) {
            w->dk[j * d + k] += ds * q[k];
            w->dq[k] += ds * w->k[j * d + k];
        }
    }
    for (int64_t k = 0; k < d; k++) op_put(&w->c->din[0], at + k, w->dq[k]);
}

static void backward_head(const head *w) {
    int64_t d = w->d, D = w->D;
    const real *dy = (const real *)w->c->dout[0].data + w->b * w->T * D + w->h * d;
    for (int64_t k = 0; k < 2 * w->T * d; k++) w->dk[k] = 0; // and dv, which follows
    for (int64_t j = 0; j < w->T; j++) w->keep[j] = 1;
    for (int64_t i = 0; i < w->T; i++) {
        int64_t n = keys_of(w, i);
        scores(w, i, n);
        normalise(w, n, w->kept[i]);
        if (drops(w->c)) draw_keep(w, i, n);
        backward_query(w, i, n, dy + i * D);
    }
    for (int64_t t = 0; t < w->T; t++) {
        int64_t at = (w->b * w->T + t) * 3 * D + w->h * d;
        for (int64_t k = 0; k < d; k++) {
            op_put(&w->c->din[0], at + D + k, w->dk[t * d + k]);
            op_put(&w->c->din[0], at + 2 * D + k, w->dv[t * d + k]);
        }
    }
}

static int64_t heads_of(const call *c) {
    return c->in[0].shape.dim[0] * ((const attention_settings *)c->attr)->heads;
}

static void pieces(const call *c, int64_t begin, int64_t end) {
    int64_t items = heads_of(c), room = head_room(c);
    for (int64_t piece = begin; piece < end; piece++)
        for (int64_t i = piece * items / PIECES; i < (piece + 1) * items / PIECES; i++) {
            head w;
            head_open(&w, c, (real *)c->scratch + piece * room, c->reserve, i);
            c->backward ? backward_head(&w) : forward_head(&w);
        }
}

static void run(const call *c) {
    op_for(c, PIECES, 16384, pieces);
}

static size_t scratch(const call *c) {
    return (size_t)(PIECES * head_room(c)) * sizeof(real);
}

static size_t reserve(const call *c) {
    return (size_t)(heads_of(c) * c->in[0].shape.dim[1]) * sizeof(softmax);
}

const kernel KERNEL(attention) = {run, run, scratch, reserve};

#endif
