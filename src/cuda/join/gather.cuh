// Gathering a micro-batch in one launch: `draw`, the `take`s by its index, the `window`s whose rows such takes give.
//
// Every result is written to its home, as the single calls would. Windows that are scaled, series that are not fp32 or
// have several parts, and tables whose elements would become wider are left to the single calls.
#ifndef TRADEWIND_CUDA_JOIN_GATHER_CUH
#define TRADEWIND_CUDA_JOIN_GATHER_CUH

#include "cuda/cuda.cuh"

enum { GATHER_MOST = 32 };

// A take of `units` words (or bytes) a row, or a window of T rows of C; `units` is then T * C.
struct gather_member {
    const void *from;
    void *to;
    float *mask; // of a window
    int units, T, C;
    int row, first; // a window's members
    int low;        // of a take: the 16-bit type that its words become, or DTYPE_F32: they stay as they are
    bool window, bytes;
    bool single;  // a take of one word, which windows may wait for
    bool vectors; // four words at a time
};

struct gather_args {
    step step;
    int32_t *index;
    float *weight;
    int64_t rows;
    int block;                         // rows of a block
    int count, several;                // members, and those of more than one word
    bool windows;                      // there are some among them
    unsigned char member[GATHER_MOST]; // which those are
    gather_member m[GATHER_MOST];
};

// How many calls from the first on one launch can do, with what it needs; 0 where that is fewer than two.
int gather_match(const call *calls, int count, gather_args *g);

// `c` is the first of the calls.
void gather_launch(const call *c, const gather_args *g);

#endif
