// Fusion: a list of calls as a list of groups, each of which is one launch or a short sequence of them.
//
// A group does a run of neighbouring calls: the gathering of a micro-batch (cuda/join/gather.cuh); a row kernel
// (cuda/rows/rows.h), with a group somewhere before it that packs weights (cuda/rows/pack.cuh) and two behind it, side
// by side, for their gradients (cuda/product/weights.cuh) and for what is summed over all rows; dropout with the sum it
// goes into (cuda/join/residual.cuh); small calls of an act (cuda/join/act.cuh); or the end of a step
// (cuda/join/step_end.cuh). A layer with large products is a group for each of its stages (cuda/join/large.cuh); a row
// kernel whose last result goes back to one does its slope, and one of these stages may do that of the layer below,
// large or small. Any other call is a group of its own. `advance` may join a row kernel that stands before it where no
// call between them looks at the step record. Groups in order do what the calls in order do.
#ifndef TRADEWIND_CUDA_JOIN_FUSE_CUH
#define TRADEWIND_CUDA_JOIN_FUSE_CUH

#include "cuda/join/large.cuh"
#include "cuda/join/range.cuh"
#include "cuda/product/weights.cuh"

typedef enum {
    GROUP_CALL,
    GROUP_GATHER,
    GROUP_PACK,
    GROUP_ROWS,
    GROUP_WEIGHTS,
    GROUP_SUMS,
    GROUP_LARGE,
    GROUP_RESIDUAL,
    GROUP_ACT,
    GROUP_STEP_END
} group_kind;

struct group {
    group_kind kind;
    const call *calls; // the neighbours, in the list
    int count;
    const call *advance;              // joined from further on, or NULL
    const call *weight[WEIGHTS_MOST]; // GROUP_WEIGHTS: which of them
    int weights;
    bool head;         // GROUP_WEIGHTS: they are there but for the sum of their parts (cuda/rows/rows_head.h)
    large_stage stage; // GROUP_LARGE
    large_join join;   // GROUP_LARGE: what it does of its neighbours'
    void *args;        // gather_args, pack_list, row_kernel, residual_args, act_args or step_end_args
    const struct pack_args *packed; // GROUP_ROWS: what it reads, or NULL
    const call *below;              // the large layer whose slope (GROUP_ROWS) or bias (GROUP_WEIGHTS) it does, or NULL
    range *ranges;
    int range_count;
};

// The groups of a list of calls, which must outlive them and is changed: the backward call of a small layer whose slope
// another does becomes that of a layer without an activation. Returns NULL where memory ran out.
group *fuse_calls(queue *q, call *calls, int count, int *groups);
void fuse_free(group *g, int groups);

// True if one group must wait for the other; true if nothing but the end of the step waits for a group.
bool group_conflicts(const group *a, const group *b);
bool group_is_aside(const group *g);

// Launches a group on the queue's stream.
void group_launch(const group *g);

#endif
