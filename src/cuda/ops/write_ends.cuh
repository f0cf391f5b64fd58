// Last observations of truncated episodes on the card: see ops/write_ends.c. Those that the table has no room for are
// not written.
#ifndef TRADEWIND_CUDA_OPS_WRITE_ENDS_CUH
#define TRADEWIND_CUDA_OPS_WRITE_ENDS_CUH

#include "cuda/ops/team.cuh"

struct write_ends_args {
    const step_cursor *cursor;
    view x, end;
    float *table;
    int32_t *count;
    int64_t B, C, K;
};

static inline write_ends_args write_ends_args_of(const call *c) {
    int64_t B = c->in[1].shape.dim[0];
    return write_ends_args{c->step.cursor, view_of(&c->in[1]), view_of(&c->in[2]), (float *)c->out[0].data,
        (int32_t *)c->out[1].data, B, c->in[1].shape.dim[1], c->out[0].shape.dim[0] / B};
}

// A warp a row.
CUDA_FN void write_ends_each(const write_ends_args &a, team t) {
    int lane = threadIdx.x % 32;
    bool anew = !a.cursor->row;
    TEAM_EACH_WARP(t, r, a.B) {
        int32_t k = anew ? 0 : a.count[r];
        bool taken = view_load(a.end, r) == ENV_TRUNCATED && k < a.K;
        for (int64_t i = lane; taken && i < a.C; i += 32)
            a.table[(k * a.B + r) * a.C + i] = view_load(a.x, r * a.C + i);
        __syncwarp(); // all lanes have read the count
        if (lane == 0) a.count[r] = k + taken;
    }
}

#endif
