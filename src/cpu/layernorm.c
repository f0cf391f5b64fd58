// layernorm on the CPU: lanes are columns. In backward a row is read once from memory for dx and for the gradients of
// gain and bias; these are summed within a piece of rows, then over the pieces, which depend on the sizes only.
#include "cpu/vec.h"
#include "ops/op.h"

#include <math.h>

enum { PIECES = 64 };

typedef struct {
    float first, mean, scale; // the row's first value; the mean of the rest less it; 1 / sqrt(variance + eps)
} moments;

// x less the row's mean, and 0 past its end.
VEC_FN vec centred(const float *x, int64_t n, moments m) {
    return vec_where(vec_below(n), vec_load_some(x, n) - m.first - m.mean);
}

static inline moments moments_of(const float *x, int64_t C, float eps) {
    moments m = {.first = x[0]};
    vec sum = {0}, square = {0};
    for (int64_t i = 0; i < C; i += VEC) sum += centred(x + i, C - i, m);
    m.mean = vec_sum(sum) / (float)C;
    for (int64_t i = 0; i < C; i += VEC) {
        vec d = centred(x + i, C - i, m);
        square += d * d;
    }
    m.scale = 1 / sqrtf(vec_sum(square) / (float)C + eps);
    return m;
}

static void forward_rows(const call *c, int64_t begin, int64_t end) {
    int64_t C = operand_width(&c->in[0]);
    const float *gain = c->in[1].data, *bias = c->in[2].data;
    for (int64_t r = begin; r < end; r++) {
        const float *x = (const float *)c->in[0].data + r * C;
        float *y = (float *)c->out[0].data + r * C;
        moments m = moments_of(x, C, ((const layernorm_attr *)c->attr)->eps);
        for (int64_t i = 0, n = C; i < C; i += VEC, n -= VEC)
            vec_store_some(
                y + i, centred(x + i, n, m) * m.scale * vec_load_some(gain + i, n) + vec_load_some(bias + i, n), n);
    }
}

static void forward(const call *c) {
    op_for(c, operand_rows(&c->in[0]), operand_width(&c->in[0]), forward_rows);
}

// Room for partial sums of gain's gradient, then of bias's.
static int64_t part_floats(const call *c) {
    return 2 * ((operand_width(&c->in[0]) + VEC - 1) / VEC * VEC);
}

// One row: adds to the piece's sums, and gives dx where it is wanted.
static void backward_row(const call *c, int64_t r, float *part) {
    int64_t C = operand_width(&c->in[0]), at = r * C;
    const float *x = (const float *)c->in[0].data + at, *dy = (const float *)c->dout[0].data + at;
    const float *gain = c->in[1].data;
    float *dgain = part, *dbias = part + part_floats(c) / 2, *dx = c->din[0].data;
    moments m = moments_of(x, C, ((const layernorm_attr *)c->attr)->eps);
    vec sum = {0}, dot = {0};
    for (int64_t i = 0, n = C; i < C; i += VEC, n -= VEC) {
        vec up = vec_load_some(dy + i, n), hat = centred(x + i, n, m) * m.scale, g = up * vec_load_some(gain + i, n);
        vec_store(dgain + i, vec_load(dgain + i) + up * hat);
        vec_store(dbias + i, vec_load(dbias + i) + up);
        sum += g;
        dot += g * hat;
    }
    float mean = vec_sum(sum) / (float)C, slope = vec_sum(dot) / (float)C;
    for (int64_t i = 0, n = C; dx && i < C; i += VEC, n -= VEC) {
        vec hat = centred(x + i, n, m) * m.scale, g = vec_load_some(dy + i, n) * vec_load_some(gain + i, n);
        vec_put_some(dx + at + i, m.scale * (g - mean - hat * slope), n, c->din[0].add);
    }
}

static void backward_pieces(const call *c, int64_t begin, int64_t end) {
    int64_t rows = operand_rows(&c->in[0]);
    for (int64_t piece = begin; piece < end; piece++) {
        float *part = (float *)c->scratch + piece * part_floats(c);
        memset(part, 0, (size_t)part_floats(c) * sizeof *part);
        for (int64_t r = piece * rows / PIECES; r < (piece + 1) * rows / PIECES; r++) backward_row(c, r, part);
    }
}

static void reduce(const call *c, int64_t begin, int64_t end) {
    int64_t half = part_floats(c) / 2;
    const float *part = c->scratch;
    for (int64_t i = begin; i < end; i++) {
        float gain = 0, bias = 0;
        for (int64_t p = 0; p < PIECES; p++) {
            gain += part[p * 2 * half + i];
            bias += part[(p * 2 + 1) * half + i];
        }
        if (c->din[1].data) op_put(&c->din[1], i, gain);
        if (c->din[2].data) op_put(&c->din[2], i, bias);
    }
}

static void backward(const call *c) {
    op_for(c, PIECES, operand_count(&c->in[0]) / PIECES, backward_pieces);
    op_for(c, operand_width(&c->in[0]), PIECES, reduce);
}

static size_t scratch(const call *c) {
    return c->backward ? (size_t)(PIECES * part_floats(c)) * sizeof(float) : 0;
}

const kernel KERNEL(cpu_layernorm) = {forward, backward, scratch, NULL};
