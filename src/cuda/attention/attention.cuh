// attention on the card: see ops/attention.c.
//
// A block holds some heads of one sample in shared memory, all their steps (cuda/attention/attention_kernel.cuh, and
// for short sequences cuda/attention/attention_whole.cuh); sizes that do not fit are done plainly, a warp a query
// (cuda/attention/attention_plain.cu).
#ifndef TRADEWIND_CUDA_ATTENTION_ATTENTION_CUH
#define TRADEWIND_CUDA_ATTENTION_ATTENTION_CUH

#include "cuda/cuda.cuh"

enum { ATTENTION_THREADS = 256, ATTENTION_WHOLE_THREADS = 128 }; // of a block, at most

// A call as its kernels see it. Of every query forward keeps log2 of the sum over keys of 2^(score * log2 e), and,
// where it drops out, a bit a key: 1 for one that stays.
struct attention_args {
    view qkv, mask;
    view y;  // forward: the result; backward: its gradient
    view dx; // backward
    step at;
    float *kept;    // [samples][heads][T], or NULL
    uint32_t *bits; // [samples][heads][T][words], from a multiple of 8 bytes on, or NULL
    int T, D, d, heads;
    int group;  // heads of a block
    int rows;   // T, rounded up to whole tiles
    int slot;   // columns of a head in shared memory: d, rounded up
    int stride; // elements from row to row there
    int words;  // of 32 keys
    bool causal, drops;
    uint32_t node, least;
    float keep;  // what a probability that stays is multiplied with
    float scale; // of scores
};

struct attention_plan {
    attention_args a;
    bool whole; // a sequence in one piece, whose keys are all seen
    unsigned blocks;
    int threads;
    size_t shared;
};

void attention_forward_f32(const call *c, const attention_plan *p);
void attention_forward_tf32(const call *c, const attention_plan *p);
void attention_forward_bf16(const call *c, const attention_plan *p);
void attention_forward_f16(const call *c, const attention_plan *p);
void attention_backward_f32(const call *c, const attention_plan *p);
void attention_backward_tf32(const call *c, const attention_plan *p);
void attention_backward_bf16(const call *c, const attention_plan *p);
void attention_backward_f16(const call *c, const attention_plan *p);

void attention_plain_forward(const call *c);
void attention_plain_backward(const call *c);
size_t attention_plain_scratch(const call *c);
size_t attention_plain_reserve(const call *c);

#endif
