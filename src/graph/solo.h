// One graph by itself, on one queue, in a space of its own: measurements and tests run it. Its training passes and its
// evaluation are two programs on one store.
#ifndef TRADEWIND_GRAPH_SOLO_H
#define TRADEWIND_GRAPH_SOLO_H

#include "graph/program.h"

typedef struct solo solo;

typedef struct {
    int64_t rows;   // of a micro-batch
    bool inference; // evaluation alone
    size_t guard;   // bytes behind every planned block, for tests
    int together;   // steps in PASS_TOGETHER; of inference, evaluations
    int recompute;  // segments whose activations are computed a second time
} solo_options;

// A step record of one span of samples.
typedef struct {
    uint64_t seed, update, first, count, position, row;
    uint32_t epoch, shuffle;
    float lr;
} solo_step;

// The graph must outlive it. NULL on failure.
solo *solo_new(const device *d, queue *q, const graph *g, const solo_options *o, err *e);
void solo_free(solo *x);

// Bytes of its space; the same of one that is not made.
size_t solo_bytes(const solo *x);
size_t solo_measure(const device *d, queue *q, const graph *g, const solo_options *o);

// Its programs; training is NULL for inference.
program *solo_program(solo *x, bool training);

bool solo_play(solo *x, pass which, err *e);
bool solo_play_steps(solo *x, int64_t steps, err *e);

// Lasting tensors, and with `training` or without an activation that is kept. A state with a row for
// each of a batch is written in both programs.
bool solo_write(solo *x, tensor t, const void *from, err *e);
bool solo_read(solo *x, tensor t, void *to, err *e);
bool solo_clear(solo *x, tensor t, err *e);
bool solo_peek(solo *x, tensor t, bool training, void *to, err *e);

// The step record: of both programs when it is written, of the training when it is read.
bool solo_step_write(solo *x, const solo_step *s, err *e);
bool solo_step_read(solo *x, solo_step *s, err *e);

bool solo_poison(solo *x, int byte, bool training, err *e);
bool solo_guards_whole(solo *x, bool training, err *e);

#endif
