#include "cuda/device/room.cuh"

#include "cuda/join/step_end.cuh"
#include "cuda/rows/pack.cuh"

#include <stdlib.h>
#include <string.h>

struct room_table {
    room_table *next;
    const void *on_card;
    size_t bytes; // a copy follows
};

static size_t up(size_t bytes) {
    return (bytes + ROOM_ALIGN - 1) / ROOM_ALIGN * ROOM_ALIGN;
}

// A row kernel is made of two calls at least. Packed weights are there once, their lists and the row kernels for every
// recording.
size_t room_bytes(const queue *q, const call *calls, int count, int recordings) {
    size_t packs = 0, lists = 0, rows = 0;
    (void)q;
    for (int i = 0; i < count; i++) {
        if (rows_of(&calls[i]) > 0) rows++;
        packs += up(pack_most(&calls[i]));
        lists += pack_list_most(&calls[i]);
    }
    size_t each = (rows / 2 + 1) * up(sizeof(row_kernel)) + up(lists) + rows * ROOM_ALIGN;
    return packs + (size_t)recordings * each + up(STEP_END_WORDS * sizeof(unsigned));
}

room *room_open(queue *q, void *memory, size_t bytes, err *e) {
    room *r = (room *)calloc(1, sizeof *r);
    (void)q;
    if (!r) {
        err_run(e, "out of memory for a recording");
        return NULL;
    }
    r->memory = (char *)memory;
    r->bytes = bytes;
    r->meeting = (unsigned *)room_take(r, STEP_END_WORDS * sizeof *r->meeting);
    if (r->meeting) return r;
    err_run(e, "cuda: %zu bytes are too few for a program's recordings", bytes);
    free(r);
    return NULL;
}

void room_close(queue *q, room *r) {
    if (!q->lost) cudaStreamSynchronize(q->stream); // its memory may be another's from here on
    while (r->tables) {
        room_table *t = r->tables;
        r->tables = t->next;
        free(t);
    }
    pack_forget(r);
    free(r);
}

void *room_take(room *r, size_t bytes) {
    size_t at = r->used;
    if (up(bytes) > r->bytes - at) {
        r->full = true;
        return NULL;
    }
    r->used += up(bytes);
    return r->memory + at;
}

const void *room_put(queue *q, room *r, const void *from, size_t bytes) {
    for (const room_table *t = r->tables; t; t = t->next)
        if (t->bytes == bytes && memcmp(t + 1, from, bytes) == 0) return t->on_card;
    void *on_card = room_take(r, bytes);
    room_table *t = on_card ? (room_table *)malloc(sizeof *t + bytes) : NULL;
    if (!t) return NULL;
    *t = room_table{r->tables, on_card, bytes};
    memcpy(t + 1, from, bytes);
    r->tables = t;
    bool there = cudaMemcpyAsync(on_card, t + 1, bytes, cudaMemcpyHostToDevice, q->stream) == cudaSuccess &&
                 cudaStreamSynchronize(q->stream) == cudaSuccess;
    return there ? on_card : NULL;
}
