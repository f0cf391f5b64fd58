// The head of a classifier as a row kernel (cuda/rows/rows.h): a layer with few classes, its loss, and back through
// both, with a dropout before the layer and the slope of the one below if they are there. Where rows are many, such a
// row kernel has a kernel of its own (cuda/rows/rows_head.cu): one pass over the rows in which a warp keeps eight of
// them in registers, where a block that follows instructions would wait at each. Its results are rounded where those of
// the instructions are. On the way it sums, by parts of the rows, the gradients of the layer's weights and bias, and
// that of the bias below; a second launch adds the parts up.
#ifndef TRADEWIND_CUDA_ROWS_ROWS_HEAD_H
#define TRADEWIND_CUDA_ROWS_ROWS_HEAD_H

#include "cuda/rows/rows.h"

// A lane has a run of eight columns, and all weights of them; four neighbours have the classes of a row.
enum { ROWS_HEAD_WIDTH = 256, ROWS_HEAD_LEAST = 64, ROWS_HEAD_CLASSES = 4 };

typedef struct {
    step step;
    const void *y; // [rows][width], of the row kernel's type: what the layer reads, or drops out
    void *x;       // with dropout: what is left of it, if somebody wants that
    void *z, *dz;  // [rows][classes], if somebody wants them
    void *dx;      // [rows][width]: the gradient of y, or with `slope` that of the sums of the layer below
    const float *weights, *bias; // [classes][width]; bias may be NULL
    const int32_t *label;
    const float *weight, *class_weight, *up; // of rows; of classes, may be NULL; the gradient of the loss
    void *loss_parts;                        // sums of the loss, one of every block's rows of a row kernel
    void *confusion;                         // counts, or NULL
    float *sums;                             // of gradients, or NULL
    int32_t width, classes;
    int64_t rows;
    float smoothing, scale; // scale: of what dropout keeps
    uint32_t node, least;   // dropout's
    bool drop, slope;
} rows_head;

// A row kernel that is complete but for its weights' places becomes a head if it is one. Its weights are then read as
// they are, not packed. Sums of gradients go to the scratch of the layer's backward call if that wants them, and what
// they alone would have read does not come home.
void rows_lay_head(rows_compiler *r);

// Arguments of the kernel for such a row kernel.
rows_head rows_head_of(const row_kernel *p);

// A block of the kernel has so many rows, and a part of the sums for them: of `classes` x `width` weights, of `classes`
// biases, and of the `width` columns of dx, one behind the other. Where there would be more than so many parts, nothing
// is summed, and for sizes that no head has neither; the scratch for the parts is 0 bytes then.
enum { ROWS_HEAD_ROWS = 64, ROWS_HEAD_PARTS = 1024 };

static inline int64_t rows_head_parts(int64_t rows) {
    return (rows + ROWS_HEAD_ROWS - 1) / ROWS_HEAD_ROWS;
}

#ifdef __CUDACC__
__host__ __device__
#endif
    static inline int64_t
    rows_head_part(int64_t width, int64_t classes) {
    return classes * (width + 1) + width;
}

size_t rows_head_scratch(int64_t rows, int64_t width, int64_t classes);

#endif
