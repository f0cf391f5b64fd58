// Grids of blocks of warps, as a card runs them: each warp by itself, from one barrier to the next.
#ifndef TRADEWIND_TEST_CARD_GRID_H
#define TRADEWIND_TEST_CARD_GRID_H

#include "card/ptx.h"

typedef struct {
    unsigned x, y, z;
} extent3;

// A call of a function by a warp: its registers, and each lane's memory.
typedef struct frame {
    const function *f;
    struct frame *up;
    uint8_t *rows;
    uint8_t *lanes; // [WARP][lane_bytes]: parameters
    uint8_t *local; // [WARP][local_bytes]
    uint32_t carry;
} frame;

typedef struct {
    uint8_t *to;
    const uint8_t *from;
    int bytes, filled;
} pending_copy;

typedef struct block block;

struct warp {
    frame *now;
    uint32_t live; // lanes that have not left the kernel
    block *block;
    const insn *at;
    pending_copy *copies; // in order; of groups that were committed, and then of the open one
    int copy_count;
    int groups[64], group_count; // copies up to the end of each committed group
};

// True if the bytes are memory of the card's.
typedef bool grid_owns(const void *at, size_t bytes);

typedef struct {
    const function *f;
    extent3 grid, block;
    size_t shared;
    const uint8_t *args;
    grid_owns *owns;
} grid_call;

typedef enum { GRID_DONE, GRID_BAD_ADDRESS, GRID_MISALIGNED, GRID_TRAP, GRID_STUCK } grid_end;

// Runs all blocks. An end that is not GRID_DONE has been told on stderr, with the kernel and the line of its PTX.
grid_end grid_run(const grid_call *c);

// For operations (test/card/lanes.c): a lane's memory at an instruction's address; ends the grid where it is not its
// own.
void *grid_reach(warp *w, const insn *i, int lane, int address);
int64_t grid_base(warp *w, int space, int lane);
void grid_fault(warp *w, grid_end end, int lane, const char *what);

// True if these bytes of shared memory are the block's.
bool grid_in_shared(const warp *w, int64_t at, int64_t bytes);

// The warp's number in its block.
int grid_warp_number(const warp *w);

// $TRADEWIND_CARD_ORDER=backwards: blocks, warps and the nodes of a recording begin with the last, so that what depends
// on an order shows.
bool grid_goes_backwards(void);

#endif
