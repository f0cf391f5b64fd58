// Rows into a table on the card: see ops/write_rows.c. Rows that the table does not have are not written.
#ifndef TRADEWIND_CUDA_OPS_WRITE_ROWS_CUH
#define TRADEWIND_CUDA_OPS_WRITE_ROWS_CUH

#include "cuda/ops/team.cuh"

struct write_rows_args {
    const step_cursor *cursor;
    view x;
    float *table;
    int64_t rows, C, room; // rows of x and of the table
};

static inline write_rows_args write_rows_args_of(const call *c) {
    int64_t B = c->in[1].shape.dim[0];
    return write_rows_args{c->step.cursor, view_of(&c->in[1]), (float *)c->out[0].data, B, operand_count(&c->in[1]) / B,
        c->out[0].shape.dim[0]};
}

CUDA_FN void write_rows_each(const write_rows_args &a, team t) {
    int64_t row = (int64_t)a.cursor->row, left = (a.room - row) * a.C;
    TEAM_EACH(t, i, a.rows * a.C)
    if (i < left) a.table[row * a.C + i] = view_load(a.x, i);
}

#endif
