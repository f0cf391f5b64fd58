// The end of a step: clip, adamw, and the update's `advance` where it follows (ops/clip.c, ops/adamw.c, ops/advance.c).
//
// The norm of the whole gradient comes before the first update of a weight. Every block posts its sum of squares, reads
// those of all, and ends the step for itself; one block alone writes the new state. Sums have one order, whoever forms
// them.
//
// Where a queue is alone in its process that is one launch, whose blocks, no more than the card has multiprocessors,
// wait for each other. What a thread will need afterwards is on its way meanwhile. The first block waits for all
// others, which must have read the old state before it writes the new one; the others wait for a while and then form
// missing sums themselves. So blocks that find no room, because other processes have it, get the room of those that
// end. Beside other queues nothing waits: a first launch posts the sums, and a second one does the rest.
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
    bool apart; // two launches
};

// Words of a meeting: how often there was one; then, for every block, the two halves of its sum, each with the number
// of the meeting that it is for.
enum { STEP_END_BLOCKS = 256, STEP_END_WORDS = 4 + 4 * STEP_END_BLOCKS };

// The number of calls, from the first one on, that this does: 0, 2 or 3. The room's `meeting` is STEP_END_WORDS words
// that start as 0; no two launches at a time use them.
int step_end_match(const call *calls, int count, step_end_args *a);

void step_end_launch(const call *c, const step_end_args *a);

#endif
