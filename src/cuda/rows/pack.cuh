// Packing: weights as the products of row kernels read them (cuda/rows/rows.h), in a launch for all row kernels of a
// step.
//
// For every group of 8 NJ columns and every run of 16 terms, lane l of a warp has four terms (4t .. 4t+3 where t is
// l%4, or, of 2-byte weights, 2t, 2t+1, 2t+8, 2t+9) of columns NJ (l/4) .. + NJ - 1, one column after another; in
// shared order the lanes' first 16 bytes stand first, then their second, and so on, so that a warp's load is one
// stretch. Biases follow in fp32. The launch depends on the weights alone and runs beside the gathering of the
// micro-batch.
#ifndef TRADEWIND_CUDA_ROWS_PACK_CUH
#define TRADEWIND_CUDA_ROWS_PACK_CUH

#include "cuda/rows/rows.cuh"

// The packs of one row kernel, each at its offset in the room of the program.
struct pack_args {
    rows_pack pack[ROWS_MOST];
    int count;
    int low; // dtype of the packed weights
    char *to;
    pack_args *next;
};

// Packs of row kernels between which no weights change: one launch.
struct pack_list {
    pack_args *first; // each by itself on the heap, the list's own
    int jobs, blocks;
    const void *on_card;
};

// Bytes of packed weights that a call can need of a room at most, if it joins a row kernel; and of their list.
size_t pack_most(const call *c);
size_t pack_list_most(const call *c);

// The packs of a compiled row kernel, with memory in the queue's room; its instructions are then placed. Equal packs
// are one: every step packs anew, and the schedule puts a write behind the reads before it. False where memory is
// short.
bool pack_make(queue *q, pack_args *p, rows_compiler *r);

// Forgets the packs of a room.
void pack_forget(struct room *r);

// The member of a list that has the same packs, or NULL: where no weights change, a row kernel that comes again, as in
// evaluations recorded together, finds its weights packed.
const pack_args *pack_find(const pack_list *l, const pack_args *p);

// True if a row kernel's packs can join a list, which has some; joining; and, once, when all have joined, what the
// launch reads. False where memory is short.
bool pack_joins(const pack_list *l, const rows_compiler *r);
void pack_add(pack_list *l, pack_args *p);
bool pack_upload(queue *q, pack_list *l);
void pack_done(pack_list *l);

void pack_launch(const call *c, const pack_list *l);

#endif
