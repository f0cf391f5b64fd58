// take on the card: see ops/take.c. Rows are moved as 4-byte words where they can be; elements that are of another type
// than the result are converted one by one.
#include "cuda/cuda.cuh"

template <typename W>
static __global__ void forward_kernel(const W *table, const int32_t *index, W *out, int64_t words, int64_t rows) {
    FOR_EACH(i, rows * words) {
        int64_t r = i / words;
        out[i] = table[(int64_t)index[r] * words + i % words];
    }
}

static __global__ void convert_kernel(view table, const int32_t *index, view out, int64_t C, int64_t rows) {
    FOR_EACH(i, rows * C) view_store(out, i, view_load(table, (int64_t)index[i / C] * C + i % C));
}

static void forward(const call *c) {
    const operand *t = &c->in[0];
    int64_t rows = c->in[1].shape.dim[0], C = operand_count(t) / t->shape.dim[0];
    int64_t bytes = C * (int64_t)dtype_bytes(t->type);
    const int32_t *index = (const int32_t *)c->in[1].data;
    if (t->type != c->out[0].type) {
        LAUNCH(c, convert_kernel, blocks_for(rows * C, 256), 256, 0, view_of(t), index, view_of(&c->out[0]), C, rows);
    } else if (bytes % 4 == 0) {
        LAUNCH(c, forward_kernel<uint32_t>, blocks_for(rows * bytes / 4, 256), 256, 0, (const uint32_t *)t->data, index,
            (uint32_t *)c->out[0].data, bytes / 4, rows);
    } else {
        LAUNCH(c, forward_kernel<uint8_t>, blocks_for(rows * bytes, 256), 256, 0, (const uint8_t *)t->data, index,
            (uint8_t *)c->out[0].data, bytes, rows);
    }
}

extern "C" const kernel cuda_take = {forward, NULL, NULL, NULL};
