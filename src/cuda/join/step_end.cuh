// The end of a step in one launch: clip, adamw, and the update's `advance` where it follows (ops/clip.c, ops/adamw.c,
// ops/advance.c).
//
// The norm of the whole gradient comes before the first update of a weight, so the blocks wait for each other once:
// they are no more than the card's multiprocessors, all of which run at the same time. (Where processes share
// multiprocessors through MPS and want more than there are, they may wait for each other: after some seconds the launch
// gives up.) Every block posts its sum of squares, reads those of all, and ends the step for itself; the first block
// alone writes what came of it. What a thread will need afterwards is on its way meanwhile.
#ifndef TRADEWIND_CUDA_JOIN_STEP_END_CUH
#define TRADEWIND_CUDA_JOIN_STEP_END_CUH

#include "cuda/cuda.cuh"

struct step_end_args {
    const float4 *g;
    float4 *w, *m, *v;
    uint2 *low;           // 16-bit copies of w, or NULL
    bool low_f16;         // else bf16
    const int8_t *decays; // or NULL
    int64_t quads;
    const double *totals;
    double *state; // clip's
    float *scale;
    clip_attr clip;
    adamw_settings adamw;
    float log1, log2;
    step step;
    bool advances; // it is the update's `advance` too
    unsigned *meeting;
    int blocks;
};

// Words of a meeting: how often there was one; then, for every block, the two halves of its sum, each with the number
// of the meeting that it is for.
enum { STEP_END_BLOCKS = 256, STEP_END_WORDS = 4 + 4 * STEP_END_BLOCKS };

// The calls from the first one on that one launch does: 0, 2 or 3. `meeting` is STEP_END_WORDS words that start as 0
// and that no launch at the same time has.
int step_end_match(const call *calls, int count, step_end_args *a, unsigned *meeting);

void step_end_launch(const call *c, const step_end_args *a);

#endif
