// dropout on the CPU: random numbers of several counters at a time (cpu/keep.h). Backward draws them again.
#include "cpu/keep.h"
#include "ops/op.h"

static int64_t row_elements(const call *c) {
    return operand_count(&c->in[0]) / c->in[0].shape.dim[0];
}

static void apply(const call *c, const operand *from, const operand *to, int64_t begin, int64_t end) {
    int64_t n = row_elements(c);
    for (int64_t b = begin; b < end; b++) {
        keep k = keep_of(c, b, ((const dropout_attr *)c->attr)->probability);
        const float *x = (const float *)from->data + b * n;
        float *y = (float *)to->data + b * n;
        for (int64_t i = 0; i < n; i += KEEP_MANY) {
            uint64_t bits = keep_bits(&k, i / RANDOM_OCTET);
            for (int64_t j = i; j < i + KEEP_MANY && j < n; j += VEC, bits >>= VEC)
                vec_put_some(
                    y + j, vec_where(vec_mask((uint32_t)bits), vec_load_some(x + j, n - j) * k.scale), n - j, to->add);
        }
    }
}

static void forward_rows(const call *c, int64_t begin, int64_t end) {
    apply(c, &c->in[0], &c->out[0], begin, end);
}

static void backward_rows(const call *c, int64_t begin, int64_t end) {
    apply(c, &c->dout[0], &c->din[0], begin, end);
}

static void copy_range(const call *c, int64_t begin, int64_t end) {
    memcpy(
        (float *)c->out[0].data + begin, (const float *)c->in[0].data + begin, (size_t)(end - begin) * sizeof(float));
}

static void forward(const call *c) {
    if (c->training) {
        op_for(c, c->in[0].shape.dim[0], row_elements(c), forward_rows);
    } else {
        op_for(c, operand_count(&c->in[0]), 1, copy_range);
    }
}

static void backward(const call *c) {
    op_for(c, c->in[0].shape.dim[0], row_elements(c), backward_rows);
}

const kernel KERNEL(cpu_dropout) = {forward, backward, NULL, NULL};
