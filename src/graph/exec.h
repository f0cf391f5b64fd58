// The executor: one graph on one queue, at one micro-batch size. It lays out one slab, binds every call's addresses,
// records the parts of a step, and plays them. After exec_new nothing is allocated.
//
// A step is: EXEC_FIRST, then EXEC_NEXT for each further micro-batch, then EXEC_UPDATE. In EXEC_FIRST a parameter's
// gradient overwrites, in EXEC_NEXT it adds. EXEC_EVALUATE is one micro-batch forward, with its own plan in the same
// memory. EXEC_TOGETHER is several steps of one micro-batch each, for devices to which starting one is dear.
//
// Inputs may come from the host, micro-batch by micro-batch (exec_feed). On a device with memory of its own they then
// lie there twice, one behind the other in one block each time, and the parts of a step are recorded once for each
// block: while a step reads one, the next micro-batch is copied to the other. (One block and a copy on the device would
// do with one recording of each part, but the copy stands in every step's way, and may wait for the copy from the
// host.)
#ifndef TRADEWIND_GRAPH_EXEC_H
#define TRADEWIND_GRAPH_EXEC_H

#include "graph/device.h"
#include "graph/graph.h"
#include "graph/plan.h"

typedef struct exec exec;

typedef enum { EXEC_FIRST, EXEC_NEXT, EXEC_UPDATE, EXEC_EVALUATE, EXEC_TOGETHER, EXEC_PARTS } exec_part;

// A state that comes from the host, and where it lies in the bytes of a micro-batch: at a multiple of PLAN_ALIGN.
typedef struct {
    tensor state;
    size_t at;
} exec_input;

typedef struct {
    int64_t batch;           // rows of a micro-batch
    bool inference;          // forward only: no gradients, no moments, no update
    size_t guard;            // bytes of 0xA5 behind every planned block, for tests
    int together;            // steps in EXEC_TOGETHER; 0: there is no such part, as there is none where inputs are fed
    const exec_input *input; // what is fed; looked at by exec_new and exec_measure only
    int inputs;
    size_t input_bytes; // of a micro-batch as exec_feed takes it
    int again;          // segments, from the first on, whose activations are computed again for backward
    size_t room;        // the slab has at least so many bytes, for what may replace this executor
} exec_options;

// Bytes of the slab by purpose; total is what one allocation takes. A pure function of its arguments.
typedef struct {
    size_t weights, gradients, moments, states, constants, staging, activations, total;
    size_t floor; // the most planned bytes alive together
} exec_memory;

exec_memory exec_measure(const graph *g, const kernel *const *kernels, bool host_memory, const exec_options *o);

// The plan that an executor with these options would have.
plan *exec_planned(
    const graph *g, const kernel *const *kernels, bool host_memory, const exec_options *o, bool training, arena *a);

exec *exec_new(const device *d, queue *q, const graph *g, const exec_options *o, err *e);
void exec_free(exec *x);

// An executor of another graph in the slab of this one, which ends and must have had the room. The slab is as empty as
// a new one. On failure both are gone.
exec *exec_replace(exec *x, const graph *g, const exec_options *o, err *e);

exec_memory exec_used(const exec *x);
const plan *exec_plan(const exec *x, bool training);

bool exec_play(exec *x, exec_part part, err *e);

// How many of the `steps` of an epoch, of one micro-batch each, to put together on a device: a number for which they
// take well under 50 ms, so that the host can still say stop; 0 where it does not pay.
int exec_together(const device *d, const graph *g, int64_t batch, int64_t steps);

// Takes that many steps of one micro-batch each, together as far as options.together goes.
bool exec_play_steps(exec *x, int64_t steps, err *e);

// Gives what is played next its inputs: options.input_bytes from memory that the device pinned. Returns while they are
// still being read; exec_fed waits until they have been, of all feeds or of all but the last.
bool exec_feed(exec *x, const void *from, err *e);
bool exec_fed(exec *x, bool but_last, err *e);

// Moves a whole tensor between host and device. Only tensors that outlive a step can be moved: parameters, their
// gradients, slabs, states that are not fed. exec_peek reads an activation that graph_keep holds until the end of a
// micro-batch.
bool exec_write(exec *x, tensor t, const void *from, err *e);
bool exec_read(exec *x, tensor t, void *to, err *e);
bool exec_peek(exec *x, tensor t, bool training, void *to, err *e);
bool exec_clear(exec *x, tensor t, err *e);

// The step record, as the device has it.
bool exec_step_write(exec *x, const step *s, err *e);
bool exec_step_read(exec *x, step *s, err *e);

// For tests: fills the planned memory with `byte` outside the guards; tells whether all guards are whole.
bool exec_poison(exec *x, int byte, bool training, err *e);
bool exec_guards_whole(exec *x, bool training, err *e);

#endif
