// A program: some nodes of a graph, at one number of rows, on one queue. It plans its transient memory, binds every
// call's addresses, records its passes and plays them. After program_ready nothing is allocated.
//
// Training is two programs: one of the passes first, next, update and perhaps together, one of the pass evaluate.
// Prediction is one of evaluate, at any number of rows. A step is PASS_FIRST, then PASS_NEXT for each further
// micro-batch, then PASS_UPDATE. In PASS_FIRST a parameter's gradient overwrites, in PASS_NEXT it adds. PASS_TOGETHER
// is several steps of one micro-batch each, or several evaluations, for devices to which starting a recording is dear.
//
// A program is described first, which needs kernels but no device: it is measured then. Programs of one queue run in
// order and share one transient region, as large as the largest of them needs. Lasting tensors lie in stores, which the
// program finds by name; its own are the cursor, states with a row for each of a batch that the host writes
// (program_write) and, on a card, what its recordings read beside tensors. The passes of a program share the cursor.
#ifndef TRADEWIND_GRAPH_PROGRAM_H
#define TRADEWIND_GRAPH_PROGRAM_H

#include "graph/feed.h"
#include "graph/plan.h"
#include "graph/store.h"

typedef struct program program;

typedef enum { PASS_FIRST, PASS_NEXT, PASS_UPDATE, PASS_EVALUATE, PASS_TOGETHER, PASSES } pass;
#define PASS_BIT(p) (1u << (p))
enum { PASSES_OF_TRAINING = PASS_BIT(PASS_FIRST) | PASS_BIT(PASS_NEXT) | PASS_BIT(PASS_UPDATE) };

typedef struct {
    const graph *graph; // must outlive the program
    int64_t rows;       // of a micro-batch
    unsigned passes;    // PASS_BIT of each; evaluate stands alone
    int together;       // steps or evaluations in PASS_TOGETHER, which it adds; 0: there is no such pass
    int recompute;      // segments, from the first on, whose activations are computed a second time for backward
    size_t guard;       // bytes of 0xA5 behind every planned block, for tests
    feed *feed;         // inputs from the host, or NULL; must outlive the program
} program_options;

// Describes a program for a queue of a device, or for one like it: nothing is allocated there.
program *program_new(const device *d, const queue *q, const program_options *o);
void program_free(program *p);

const plan *program_plan(const program *p);

// Bytes of the queue's transient region that it needs; bytes of its own.
size_t program_transient(const program *p);
size_t program_own(const program *p);

// The memory of a queue that its programs share.
typedef struct {
    size_t bytes;
    void *memory;
    space *in;
} transient;

// Makes it large enough for a program. Before transient_place, which takes it in a space.
void transient_fit(transient *t, const program *p);
bool transient_place(transient *t, space *in, err *e);
void transient_give(transient *t);

enum { PROGRAM_STORES_MOST = 4 };

// The queue that a program runs on and the memory that it uses. Stores are searched in order, NULL ones passed over;
// the first is the one whose progress the program sees. All must outlive the program.
typedef struct {
    queue *queue;
    space *space;
    const transient *transient;
    store *store[PROGRAM_STORES_MOST];
} program_place;

// Takes the program's own memory, binds its calls and records its passes. False leaves it to be freed.
bool program_ready(program *p, const program_place *at, err *e);

// Gives up the recordings and the program's own memory; it can be made ready again.
void program_rest(program *p);

bool program_play(program *p, pass which, err *e);

// Takes that many steps of one micro-batch each, or evaluates as often, together as far as options.together goes.
bool program_play_steps(program *p, int64_t steps, err *e);

// Number of an epoch's `steps`, of one micro-batch each, or of evaluations in a row, to put together on a device: they
// take well under 50 ms, so that the host can still say stop; 0 where it does not pay.
int program_together(const device *d, const graph *g, int64_t rows, int64_t steps);

bool program_seek(program *p, const step_cursor *c, err *e);
bool program_cursor(program *p, step_cursor *c, err *e);

// Moves a whole lasting tensor between host and device, wherever the program has found it: in a store, or of its own.
bool program_write(program *p, tensor t, const void *from, err *e);
bool program_read(program *p, tensor t, void *to, err *e);
bool program_clear(program *p, tensor t, err *e);

// Reads an activation that graph_keep holds until the end of a micro-batch.
bool program_peek(program *p, tensor t, void *to, err *e);

// For tests: fills the transient memory with `byte` outside the guards; tells whether all guards are whole.
bool program_poison(program *p, int byte, err *e);
bool program_guards_whole(program *p, err *e);

#endif
