// A device: where tensors live and kernels run. Nothing above this header knows which device it is.
//
// There are no globals: every call takes a queue, which is a device's stream of work with its own threads or stream.
// Work enters a queue in order. `record` turns a list of calls into something that `play` repeats at the least cost (a
// loop on the CPU, a captured graph on a card); after recording, playing allocates nothing. Host and device meet only
// in write, read, fed and sync. Compiled by C and by nvcc.
//
// Batches from the host are fed: they come in lanes, which take turns. Each lane is a piece of the slab, with
// recordings that read it. A copy into one runs beside what is played from the other, and the host waits for neither.
#ifndef TRADEWIND_GRAPH_DEVICE_H
#define TRADEWIND_GRAPH_DEVICE_H

#include "base/err.h"
#include "graph/step.h"
#include "graph/types.h"

typedef struct queue queue;
typedef struct recording recording;
typedef struct room room;
typedef struct pool pool;

// A tensor as a kernel sees it: an address and a resolved shape. `data` is NULL where an optional input is absent,
// where no gradient arrives (read it as zero), or where none is wanted (do not write it).
typedef struct {
    void *data;
    dtype type;
    shape shape;
    bool add;       // among `din`: add to what is there instead of overwriting it
    dtype low_type; // of a parameter, or of the slab of all: of its 16-bit copy; DTYPE_F32: it has none
    void *low;      // that copy, which whoever changes the parameter changes too
} operand;

// One node about to run. The arrays are those of the node, in its order.
typedef struct call {
    int op;
    const char *name;
    uint32_t node;        // the node's number, part of a random counter
    int64_t batch;        // rows of the micro-batch
    bool backward;        // which way
    bool training;        // false: evaluation, where dropout is the identity
    bool first;           // the first micro-batch of a step
    bool tf32;            // products of fp32 operands may round them to tf32
    products_by products; // who computes large ones
    bool keeps;           // backward will run: forward fills `reserve`
    const void *attr;     // the operator's own record
    int inputs, outputs;
    operand *in, *out, *din, *dout;
    void *scratch; // scratch() bytes, for this call only
    void *reserve; // reserve() bytes, from forward to backward; NULL unless `keeps`
    step step;     // device memory; written by `advance` and by what it is joined with
    pool *pool;    // CPU: the queue's threads, set by record
    queue *queue;
} call;

// A kernel record: one implementation of one operator. scratch and reserve may be NULL for none; they see a call with
// shapes but no addresses, and are asked before anything is allocated.
typedef struct {
    void (*forward)(const call *c);
    void (*backward)(const call *c);
    size_t (*scratch)(const call *c);
    size_t (*reserve)(const call *c);
} kernel;

// Switches of a card's queue, for tests and for the search of an error. All zero: everything that makes it fast is on.
typedef struct {
    bool debug;         // calls are launched one by one, each is waited for, and the first failure names its operator
    bool no_fuse;       // every call is launched by itself
    bool no_head;       // heads of classifiers are computed like other layers
    bool no_early;      // no launch begins before the one before it ends
    bool no_product;    // no large products by kernels of our own
    const char *blaslt; // cuBLASLt: its file, or "0" to do without it; NULL: found by its usual names
} card_switches;

typedef struct {
    int threads;     // CPU: 0 for one per processor
    const char *isa; // CPU: NULL for the best there is
    queue *beside;   // CPU: an open queue whose threads it shares and which must outlive it; NULL: threads of its own
    bool several;    // card: other queues will be open beside it. The process's first queue then asks the driver for as
                     // many hardware queues as there are, which takes 0.6 s of an H200; later ones need not say so
    int number;      // card: which, as CUDA counts those that this process may see
    card_switches card; // copied when a queue is opened
} queue_options;

// Who counted the bytes of a device_memory.
typedef enum {
    MEMORY_OF_PROCESS, // the card's monitor, for this process
    MEMORY_OF_CARD,    // the card's monitor shows no processes: what the card's use grew by since the queue was opened
} memory_source;

// Memory of a card that this process takes, as the card's own monitor counts it.
typedef struct {
    memory_source source;
    size_t slab;        // what `allocate` gave out
    size_t base;        // all else: context, loaded kernels, handles, recordings
    size_t used, total; // of the card, by everyone
} device_memory;

// Readings of a device at a moment. Negative: it does not show that.
typedef struct {
    double used, total;         // bytes of its memory: in use by everyone, and in all
    double process, others;     // bytes in use by this process, and by all others together
    double most;                // bytes that this process had at most, where the system keeps that
    double processes;           // other processes that use it
    double utilisation;         // percent of the time, or of the processors
    double busy;                // where utilisation is not shown: seconds of work so far, which differ by 1 in a second
                                // in which all processors worked for this process
    double temperature;         // degrees Celsius
    double power;               // watts
    double clock, memory_clock; // MHz
} device_readings;

// A device by what it is, of which graph/identity.h makes texts. A text that does not apply is empty, a number 0.
typedef struct {
    char name[16];      // "cpu", "cuda"
    char card[128];     // model of the card
    char isa[16];       // CPU: instruction set of its kernels
    int threads;        // CPU: that compute, which move no bit
    int arch;           // card: 90 for sm_90
    int ptx;            // card: 75 where the driver compiled the kernels from the PTX of compute_75
    char note[96];      // further words that belong to it
    char driver[80];    // version of the card's driver
    int cuda;           // version that the driver serves, 12040 for 12.4
    size_t free, total; // bytes of the card's memory when the queue was opened
    char products[96];  // kernels that compute large products, once the queue has needed them
} device_identity;

enum { LANES = 2 };

typedef struct device {
    const char *name;
    const char *built; // card: what its kernels were compiled for (graph/arch.h); NULL: the machine it computes on
    int needs;         // card: version of CUDA that a driver has to serve, 13000 for 13.0
    // Card: the number of those that there are, of which the first `most` are described by card, arch and total, in the
    // order of their numbers; 0 without a driver. Opens nothing on them. NULL: there is one device.
    int (*cards)(device_identity *list, int most);
    bool host_memory; // kernels read the host's memory as it is: constants need no copy
    queue *(*open)(const queue_options *options, err *e);
    void (*close)(queue *q);
    const kernel *const *(*kernels)(const queue *q); // [operators of the catalogue]; of a card also without a queue
    bool (*computes)(const queue *q, precision p);   // whether it has kernels for it
    void (*identify)(const queue *q, device_identity *i);
    size_t (*available)(const queue *q);              // bytes that a slab could take now
    bool (*memory)(const queue *q, device_memory *m); // false where nobody counts
    // Readings of this moment; false where it shows nothing. Beside all other calls but close, from any one thread; in
    // milliseconds, and it allocates nothing.
    bool (*readings)(const queue *q, device_readings *r);
    void *(*allocate)(queue *q, size_t bytes, err *e); // zeroed; the one slab
    void (*release)(queue *q, void *slab, size_t bytes);
    bool (*write)(queue *q, void *to, const void *from, size_t bytes, err *e);
    bool (*read)(queue *q, void *to, const void *from, size_t bytes, err *e);
    bool (*fill)(queue *q, void *to, int byte, size_t bytes, err *e);
    // Between two places of the device, to a 16-bit type; NULL where it computes in none.
    bool (*narrow)(queue *q, void *to, dtype type, const float *from, size_t count, err *e);
    void *(*pin)(queue *q, size_t bytes); // memory of the host that `feed` reads at the full rate; NULL: there is none
    void (*unpin)(queue *q, void *memory, size_t bytes);
    // Copies to a lane's piece of the slab. What is played from here on sees it. The copy begins when all that was
    // played before the last feed of another lane is done, so a lane must be read by nothing that comes after that.
    // Returns at once: `from`, which came from `pin`, stays as it is until `fed`.
    bool (*feed)(queue *q, int lane, void *to, const void *from, size_t bytes, err *e);
    bool (*fed)(queue *q, int lane, err *e); // waits until the lane's last feed has been read from the host
    // A room: memory of a program in the space, for what its recordings read beside tensors (packed weights, tables of
    // launches, barrier words). room_bytes is the most that so many recordings of such calls, given without addresses,
    // take of it, whatever the card. NULL where recordings need none; `record` then gets NULL.
    size_t (*room_bytes)(const queue *q, const call *calls, int count, int recordings);
    room *(*room_open)(queue *q, void *memory, size_t bytes, err *e);
    void (*room_close)(queue *q, room *r);                                   // its recordings have been forgotten
    recording *(*record)(queue *q, room *r, call *calls, int count, err *e); // `calls` must outlive it
    void (*forget)(queue *q, recording *r);
    bool (*play)(queue *q, recording *r, err *e);
    bool (*sync)(queue *q, err *e); // waits, and reports what went wrong in what was played
} device;

static inline device_readings device_shows_nothing(void) {
    device_readings r = {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1};
    return r;
}

static inline int64_t operand_count(const operand *o) {
    return shape_count(o->shape);
}

// Elements in a row (the last dimension), and how many such rows.
static inline int64_t operand_width(const operand *o) {
    return o->shape.dim[o->shape.rank - 1];
}

static inline int64_t operand_rows(const operand *o) {
    return o->shape.rank > 1 ? shape_count(o->shape) / operand_width(o) : 1;
}

#endif
