// A plug-in that stands for a card with a trouble, which FAKE_CARD names: "blind" finds no driver, "full" has its
// memory taken by others, "small" has too little, "tight" has 8 MB left beside what recordings may take, "emptying" 100
// MB until the process opens it a third time, "unseen" has no monitor, "swollen" takes more than it said, "filling" is
// taken by others while a run goes on, "lost" and "lost early" fail in a run, "overflows" has fp16, in which no
// gradient is finite, "picky" has tf32, and is slow where its library does not compute the products, which takes 4 MB,
// "picky and tight" is both, "debug" opens in debug mode only, "idle" computes nothing, "crashes" does so as it is
// loaded. It computes with the plain kernels on memory that it does not call the host's, so that the rest of the
// program treats it as it treats a card.
//
// FAKE_CARDS is how many cards there are (1): the first, a second of 8 GB, and old ones. FAKE_BUILT is what the plug-in
// was built for.
//
// FAKE_CARD_FAILS="CALL N" loses the card in the N-th such call of the process: it and all calls behind it fail.
// "CALL N full" fails that call alone, as where another process has taken what was left of the memory. CALL is
// allocate, write, read, fill, pin, feed, fed, record, play or sync. The file `struck` is made when the call comes.
#include "base/clock.h"
#include "graph/plugin.h"
#include "ops/ops.h"
#include "ops/table.h"
#include "slow.h"

#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    LOST_AFTER = 12, // updates: in the second epoch of the test's run
    LIBRARY_ROOM = 1 << 22,
    RECORDED = 24 << 20, // what recordings may take of a card (train/budget.h)
    USED = 7000000,      // bytes of a card
};
static const size_t EIGHT_GB = (size_t)8 << 30;

struct queue {
    int updates;
    int number; // of the card
    int nth;    // that this process has opened
    bool recorded;
    bool swollen; // steps were recorded that are not of fp16
    atomic_size_t slab;
};

struct recording {
    const call *calls;
    int count;
};

static bool trouble(const char *name) {
    const char *is = getenv("FAKE_CARD");
    return is && strcmp(is, name) == 0;
}

static bool is_picky(void) {
    return trouble("picky") || trouble("picky and tight");
}

__attribute__((constructor)) static void crash(void) {
    if (trouble("crashes")) raise(SIGSEGV);
}

// True where FAKE_CARD_FAILS lets this call fail; the reason is filled in.
static bool fails(const char *call, err *e) {
    static int calls;
    static bool lost;
    const char *which = getenv("FAKE_CARD_FAILS");
    char name[16] = "", how[16] = "";
    int at = 0;
    if (!which || sscanf(which, "%15s %d %15s", name, &at, how) < 2) return false;
    bool now = strcmp(name, call) == 0 && ++calls == at;
    if (now) close(open("struck", O_WRONLY | O_CREAT, 0666));
    bool full = strcmp(how, "full") == 0;
    lost |= now && !full;
    if (lost) err_run(e, "the card was lost (%s)", call);
    if (now && full) err_run(e, "the card has no memory left (%s)", call);
    return now || lost;
}

static void describe(int number, device_identity *i) {
    *i = (device_identity){.name = "cuda", .card = "a card of the test", .total = (size_t)16 << 30};
    if (number == 1) *i = (device_identity){.name = "cuda", .card = "a second one", .arch = 86, .total = EIGHT_GB};
    if (number > 1) *i = (device_identity){.name = "cuda", .card = "an old one", .arch = 61, .total = EIGHT_GB};
}

static int cards(device_identity *list, int most) {
    const char *given = getenv("FAKE_CARDS");
    int count = trouble("blind") ? 0 : given ? atoi(given) : 1;
    for (int i = 0; i < count && i < most; i++) describe(i, &list[i]);
    return count;
}

static queue *open_queue(const queue_options *o, err *e) {
    static int opened;
    bool debug = trouble("debug") && !o->card.debug;
    if (trouble("blind") || debug) {
        err_run(e, debug ? "the card was not asked for debug" : "no NVIDIA driver was found");
        return NULL;
    }
    queue *q = calloc(1, sizeof *q);
    NEED(q, "out of memory for a queue");
    q->nth = ++opened;
    q->number = o->number;
    return q;
}

static void close_queue(queue *q) {
    free(q);
}

// The library wants memory.
static size_t linear_scratch(const call *c) {
    size_t room = ops_table_base[OP_linear]->scratch(c);
    return c->products == PRODUCTS_LIBRARY ? room + LIBRARY_ROOM : room;
}

static const kernel *const *kernels(const queue *q) {
    static const kernel *all[OP_COUNT];
    static kernel linear;
    (void)q;
    if (!is_picky()) return ops_table_base;
    memcpy(all, ops_table_base, sizeof all);
    linear = *all[OP_linear];
    linear.scratch = linear_scratch;
    all[OP_linear] = &linear;
    return all;
}

static bool computes(const queue *q, precision p) {
    (void)q;
    bool fp16 = trouble("overflows") || trouble("swelling") || trouble("full");
    if (p == PRECISION_TF32) return is_picky();
    return p == PRECISION_FP32 || (p == PRECISION_FP16 && fp16);
}

// Free memory differs from one moment to the next, and products are known once something was recorded. FAKE_DRIVER is
// the driver's version.
static void identify(const queue *q, device_identity *i) {
    const char *driver = getenv("FAKE_DRIVER");
    describe(q->number, i);
    i->free = ((size_t)getpid() % 16 << 30) + ((size_t)1 << 29);
    if (driver) snprintf(i->driver, sizeof i->driver, "%s", driver);
    if (q->recorded) snprintf(i->products, sizeof i->products, "the test");
}

// Memory that others leave of a card that they hold; 0 where they hold none.
static size_t left(const queue *q) {
    if (trouble("emptying") && q->nth < 3) return (100 << 20) + RECORDED;
    return trouble("tight") || trouble("picky and tight") ? (8 << 20) + RECORDED : 0;
}

static size_t available(const queue *q) {
    if (left(q)) return left(q);
    if (q->number) return EIGHT_GB - USED;
    return trouble("full") || trouble("small") ? 1000 : (size_t)1 << 40;
}

static bool memory(const queue *q, device_memory *m) {
    bool more = q->slab && (trouble("swollen") || (trouble("swelling") && q->swollen));
    size_t base = more ? (size_t)1 << 30 : 2000000;
    *m = (device_memory){MEMORY_OF_CARD, q->slab, base, USED, trouble("small") ? 2000000 : (size_t)1 << 40};
    if (q->number) m->total = EIGHT_GB;
    if (left(q)) m->used = m->total - left(q);
    return !trouble("unseen");
}

// A card of 1,000 MB, of which others hold 100; where it is filling, 900 from the second reading on.
static bool readings(const queue *q, device_readings *r) {
    static atomic_int readings_so_far;
    bool filled = atomic_fetch_add(&readings_so_far, 1) > 0 && trouble("filling");
    (void)q;
    *r = device_shows_nothing();
    r->total = 1e9;
    r->process = 8e7;
    r->others = filled ? 9e8 : 1e8;
    r->used = r->process + r->others;
    r->processes = 2;
    r->utilisation = filled ? 90 : 50;
    r->temperature = 61;
    r->power = 250;
    r->clock = 1980;
    return !trouble("unseen");
}

static void *allocate(queue *q, size_t bytes, err *e) {
    if (fails("allocate", e)) return NULL;
    q->slab += bytes;
    void *p = calloc(1, bytes + 1);
    if (!p) err_run(e, "out of memory");
    return p;
}

static void release(queue *q, void *slab, size_t bytes) {
    q->slab -= bytes;
    free(slab);
}

static bool write_to(queue *q, void *to, const void *from, size_t bytes, err *e) {
    (void)q;
    if (fails("write", e)) return false;
    if (bytes) memcpy(to, from, bytes);
    return true;
}

static bool read_from(queue *q, void *to, const void *from, size_t bytes, err *e) {
    (void)q;
    if (fails("read", e)) return false;
    if (bytes) memcpy(to, from, bytes);
    return true;
}

static bool fill(queue *q, void *to, int byte, size_t bytes, err *e) {
    (void)q;
    if (fails("fill", e)) return false;
    memset(to, byte, bytes);
    return true;
}

static void *pin(queue *q, size_t bytes) {
    (void)q;
    return fails("pin", NULL) ? NULL : malloc(bytes + 1);
}

static void unpin(queue *q, void *memory, size_t bytes) {
    (void)q;
    (void)bytes;
    free(memory);
}

static bool feed(queue *q, int lane, void *to, const void *from, size_t bytes, err *e) {
    (void)lane;
    (void)q;
    if (fails("feed", e)) return false;
    if (bytes) memcpy(to, from, bytes);
    return true;
}

static bool fed(queue *q, int lane, err *e) {
    (void)q;
    (void)lane;
    return !fails("fed", e);
}

static void forget(queue *q, recording *r) {
    (void)q;
    free(r);
}

static bool is_fp16(const recording *r) {
    for (int i = 0; i < r->count; i++) {
        const call *c = &r->calls[i];
        if (c->op == OP_clip && ((const clip_attr *)c->attr)->moves) return true;
        for (int k = 0; k < c->outputs; k++)
            if (c->out[k].type == DTYPE_F16) return true;
    }
    return false;
}

static recording *record(queue *q, room *unused, call *calls, int count, err *e) {
    if (fails("record", e)) return NULL;
    recording *r = calloc(1, sizeof *r);
    (void)unused;
    if (!r) {
        err_run(e, "out of memory");
        return NULL;
    }
    *r = (recording){calls, count};
    q->recorded = true;
    if (!is_fp16(r)) q->swollen = true;
    return r;
}

// Remains of a step in fp16: samples drawn, and a gradient that was not finite.
static void overflow(const recording *r) {
    for (int i = 0; i < r->count; i++) {
        const call *c = &r->calls[i];
        if (c->op == OP_draw || c->op == OP_advance) ops_table_base[c->op]->forward(c);
        if (c->op != OP_clip) continue;
        double *state = c->out[0].data;
        state[CLIP_NONFINITE]++;
        state[CLIP_IN_A_ROW]++;
        *(float *)c->out[1].data = LOSS_SCALE_FLOOR;
    }
}

static bool play(queue *q, recording *r, err *e) {
    if (fails("play", e)) return false;
    if ((trouble("lost") && q->updates > LOST_AFTER) || trouble("lost early"))
        return err_run(e, "the card was lost while running a step");
    if (trouble("idle")) return true;
    if (is_fp16(r)) {
        overflow(r);
        return true;
    }
    double began = clock_seconds();
    for (int i = 0; i < r->count; i++) {
        const call *c = &r->calls[i];
        q->updates += (op_traits((op)c->op) & WRITES_WEIGHTS) != 0;
        c->backward ? ops_table_base[c->op]->backward(c) : ops_table_base[c->op]->forward(c);
    }
    if (is_picky() && r->calls[0].products != PRODUCTS_LIBRARY) slow_by(0.012, clock_seconds() - began);
    return true;
}

static bool finish(queue *q, err *e) {
    (void)q;
    return !fails("sync", e);
}

static bool narrow(queue *q, void *to, dtype type, const float *from, size_t count, err *e) {
    (void)q;
    (void)to;
    (void)type;
    (void)from;
    (void)count;
    (void)e;
    return true;
}

static device fake = {
    .name = "cuda",
    .needs = 13000,
    .cards = cards,
    .open = open_queue,
    .close = close_queue,
    .kernels = kernels,
    .computes = computes,
    .identify = identify,
    .available = available,
    .memory = memory,
    .readings = readings,
    .allocate = allocate,
    .release = release,
    .write = write_to,
    .read = read_from,
    .fill = fill,
    .narrow = narrow,
    .pin = pin,
    .unpin = unpin,
    .feed = feed,
    .fed = fed,
    .record = record,
    .forget = forget,
    .play = play,
    .sync = finish,
};

const plugin *tradewind_plugin(void);

const plugin *tradewind_plugin(void) {
    static const plugin p = {PLUGIN_HASH, &fake};
    fake.built = getenv("FAKE_BUILT");
    return &p;
}
