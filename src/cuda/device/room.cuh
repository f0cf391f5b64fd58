// A room: the piece of the space in which a program has what its recordings read beside tensors. Packed weights, the
// tables of launches and the words in which blocks meet lie in it; nothing of them is allocated by itself.
//
// The passes of a program run in order, so they share packed weights and words. Tables are written once, when they are
// recorded; equal ones are one. The room is given back as a whole.
#ifndef TRADEWIND_CUDA_DEVICE_ROOM_CUH
#define TRADEWIND_CUDA_DEVICE_ROOM_CUH

#include "cuda/cuda.cuh"

struct room {
    char *memory;
    size_t bytes, used;
    bool full;                 // something found no place
    struct room_table *tables; // those on the card, with their bytes
    struct pack_memory *packs; // cuda/rows/pack.cuh
    unsigned *meeting;         // of the blocks that end a step (cuda/join/step_end.cuh)
};

// As device.h has them. The memory is zero.
size_t room_bytes(const queue *q, const call *calls, int count, int recordings);
room *room_open(queue *q, void *memory, size_t bytes, err *e);
void room_close(queue *q, room *r);

// Every piece starts at a multiple of this many bytes.
enum { ROOM_ALIGN = 256 };

// A piece of the room; NULL where it is full.
void *room_take(room *r, size_t bytes);

// A table on the card that has these bytes; NULL where the room is full or a copy fails.
const void *room_put(queue *q, room *r, const void *from, size_t bytes);

#endif
