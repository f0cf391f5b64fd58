// The memory plan: which tensors are alive when, and where each lies in one stretch of memory. Pure: it reads a graph
// and a table of kernels, and allocates nothing but its own description, so it can be made for any batch size, also for
// one that would never fit.
//
// Placed here: activations, their gradients, what kernels reserve from forward to backward, and their scratch. A block
// is alive from the instruction that first writes it to the last one that reads it; two blocks whose lives meet never
// overlap. Parameters, states and constants live for the whole run and lie in stores.
//
// Segments that are recomputed have two lives: activations of the first die as the forward pass goes on, but for
// what other segments read; before the segment's backward instructions its forward ones stand a second time, as far as
// these need them, and write the blocks of the second life.
#ifndef TRADEWIND_GRAPH_PLAN_H
#define TRADEWIND_GRAPH_PLAN_H

#include "base/arena.h"
#include "graph/device.h"
#include "graph/graph.h"

#include <stdio.h>

typedef struct {
    size_t bytes;
    int first, last; // alive in instructions first..last, both included
    size_t offset;   // chosen by plan_place
    size_t used;     // of `bytes`, without alignment and guard
} plan_block;

enum { PLAN_ALIGN = 64 };

static inline size_t plan_aligned(size_t bytes) {
    return (bytes + PLAN_ALIGN - 1) / PLAN_ALIGN * PLAN_ALIGN;
}

// Chooses offsets, all multiples of PLAN_ALIGN, and returns the bytes needed. Largest blocks first, each at the lowest
// gap that is free for its whole life.
size_t plan_place(plan_block *block, int count);

// The most bytes alive together at any instruction: no placement can need less.
size_t plan_floor(const plan_block *block, int count);

typedef enum { OWNER_TENSOR, OWNER_RESERVE, OWNER_SCRATCH } owner_kind;
typedef struct {
    owner_kind kind;
    int id; // tensor id, node (reserve) or instruction (scratch)
} plan_owner;

typedef struct {
    int node;
    bool backward;
    bool again; // forward, a second time
} instruction;

typedef struct plan {
    int64_t batch;
    bool training;
    int instructions;
    instruction *list; // one micro-batch: forward, backward, after
    int blocks;
    plan_block *block;
    plan_owner *owner;
    int again;          // segments that are recomputed: 1 .. again
    int *of_tensor;     // [tensors + 1] block of a tensor, or -1
    int *of_again;      // the same of its second life
    int *of_reserve;    // [nodes]
    int *of_scratch;    // [instructions]
    int update_scratch; // block that every update node may use, or -1
    size_t peak, floor; // bytes placed; bytes alive together at most
} plan;

typedef struct {
    int64_t batch;    // rows of a micro-batch
    bool training;    // false: forward only, nothing kept
    bool update_only; // no micro-batch: scratch of the update alone
    int linger;       // instructions for which a block's memory stays its own after its last use, so that independent
                      // calls next to each other can run side by side
    int linger_long;  // the same for all of them where it costs little
    int linger_small; // the same for small blocks, where it costs little: calls that share a launch share no memory
    size_t guard;     // bytes left free behind every block, for tests; guarded blocks share no memory
    int again;        // so many segments, from the first on, are recomputed
} plan_options;

// Fills an instruction's call with shapes; every address is NULL. For planning and for programs, which add the
// addresses.
void plan_call(const plan *p, const graph *g, instruction in, arena *a, call *c);

// The block that an instruction has an activation or its gradient in, or -1.
int plan_block_of(const plan *p, const graph *g, instruction in, tensor t);

plan *plan_make(const graph *g, const kernel *const *kernels, const plan_options *o, arena *a);

// The plan as a table: the largest blocks, when they are alive, the peak and where it is.
void plan_print(const plan *p, const graph *g, FILE *out);

#endif
