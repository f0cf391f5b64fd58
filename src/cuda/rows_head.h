// The head of a classifier as a row program (cuda/rows.h): a layer with few classes, its loss, and back through both,
// with a dropout before the layer and the slope of the one below if they are there. Where rows are many, such a program
// has a kernel of its own (cuda/rows_head.cu): one pass over the rows in which a warp keeps eight of them in registers,
// where a block that follows instructions would wait at each. Its results are rounded where those of the instructions
// are.
#ifndef TRADEWIND_CUDA_ROWS_HEAD_H
#define TRADEWIND_CUDA_ROWS_HEAD_H

#include "cuda/rows.h"

// A lane has a run of eight columns, and all weights of them; four neighbours have the classes of a row.
enum { ROWS_HEAD_WIDTH = 256, ROWS_HEAD_LEAST = 64, ROWS_HEAD_CLASSES = 4 };

typedef struct {
    const struct step *step;
    const void *y; // [rows][width], of the program's type: what the layer reads, or drops out
    void *x;       // with dropout: what is left of it, if somebody wants that
    void *z, *dz;  // [rows][classes], if somebody wants them
    void *dx;      // [rows][width]: the gradient of y, or with `slope` that of the sums of the layer below
    const float *weights, *bias; // [classes][width]; bias may be NULL
    const int32_t *label;
    const float *weight, *class_weight, *up; // of rows; of classes, may be NULL; the gradient of the loss
    void *parts;                             // sums of the loss, one of every block's rows
    void *confusion;                         // counts, or NULL
    int32_t width, classes;
    int64_t rows;
    float smoothing, scale; // scale: of what dropout keeps
    uint32_t node, least;   // dropout's
    bool drop, slope;
} rows_head;

// Whether a program, complete but for its weights' places, is one that the kernel can run. Its weights are then read as
// they are, not packed.
bool rows_is_head(const rows_program *p);

// What the kernel is told, of such a program.
rows_head rows_head_of(const rows_program *p);

#endif
