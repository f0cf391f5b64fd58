// Two pieces of pinned memory take turns, as the lanes of the device do: while one is copied to the device, threads
// fill the other.
#include "cli/copying.h"

#include "base/clock.h"
#include "base/pool.h"
#include "data/loader.h"
#include "train/job.h"
#include "train/pinned.h"

#include <string.h>

enum { RANGES_MOST = (STREAMS_MOST + 1) * PARTS_MOST + 2, SHARE = 256 << 10, PASSES = 3 };

static const size_t piece_bytes[] = {8 << 20, 32 << 20, 96 << 20};
enum { PIECES = sizeof piece_bytes / sizeof *piece_bytes };

// All that training reads of the data, as one stretch of bytes after the other.
typedef struct {
    const char *from[RANGES_MOST];
    size_t bytes[RANGES_MOST], total;
    int count;
} ranges;

// One piece on its way.
typedef struct {
    const ranges *r;
    char *to;
    size_t at, bytes;
} piece;

// Where both sides of the copies are.
typedef struct {
    const device *d;
    queue *q;
    char *pinned, *there; // LANES pieces each
    size_t bytes;         // of all of them
} buffers;

static void add(ranges *r, const void *from, int64_t items, size_t each) {
    if (!from || !items) return;
    r->from[r->count] = from;
    r->bytes[r->count] = (size_t)items * each;
    r->total += r->bytes[r->count++];
}

static void add_table(ranges *r, const table *t) {
    for (int k = 0; k < t->parts; k++)
        add(r, t->part[k].data, t->rows * t->part[k].width, column_bytes(t->part[k].type));
}

static ranges ranges_of(const dataset *d) {
    ranges r = {0};
    for (int i = 0; i < d->streams; i++) add_table(&r, &d->stream[i].series);
    add_table(&r, &d->vector);
    add(&r, d->target, d->samples * d->target_width, sizeof *d->target);
    add(&r, d->label, d->samples, sizeof *d->label);
    return r;
}

// Bytes `at` to `at + bytes` of all ranges.
static void copy_share(void *arg, int64_t item, int worker) {
    const piece *p = arg;
    size_t at = (size_t)item * SHARE, left = p->bytes - at < SHARE ? p->bytes - at : SHARE, skip = p->at + at;
    char *to = p->to + at;
    (void)worker;
    for (int i = 0; left && i < p->r->count; i++) {
        if (skip >= p->r->bytes[i]) {
            skip -= p->r->bytes[i];
            continue;
        }
        size_t n = p->r->bytes[i] - skip < left ? p->r->bytes[i] - skip : left;
        memcpy(to, p->r->from[i] + skip, n);
        to += n;
        left -= n;
        skip = 0;
    }
}

static bool buffers_open(buffers *b, const device *d, queue *q, size_t piece, err *e) {
    *b = (buffers){.d = d, .q = q, .bytes = LANES * piece};
    b->pinned = d->pin(q, b->bytes);
    if (!b->pinned) return err_run(e, "cannot pin %.1f MB of memory", (double)b->bytes / 1e6);
    b->there = d->allocate(q, b->bytes, e);
    return b->there != NULL;
}

static void buffers_close(buffers *b) {
    if (b->there) b->d->release(b->q, b->there, b->bytes);
    if (b->pinned) b->d->unpin(b->q, b->pinned, b->bytes);
}

// One pass in pieces; without a pool nothing is read from the file.
static bool pass(const buffers *b, const ranges *r, pool *p, double *rate, err *e) {
    size_t each = b->bytes / LANES;
    int lane = 0;
    double began = clock_seconds();
    for (size_t at = 0; at < r->total; at += each, lane = (lane + 1) % LANES) {
        piece now = {r, b->pinned + (size_t)lane * each, at, r->total - at < each ? r->total - at : each};
        if (!b->d->fed(b->q, lane, e)) return false;
        if (p) pool_run(p, (int64_t)((now.bytes + SHARE - 1) / SHARE), copy_share, &now);
        if (!b->d->feed(b->q, lane, b->there + (size_t)lane * each, now.to, now.bytes, e)) return false;
    }
    if (!b->d->sync(b->q, e)) return false;
    double gbs = (double)r->total / (clock_seconds() - began) / 1e9;
    if (gbs > *rate) *rate = gbs;
    return true;
}

static bool time_file(const device *d, queue *q, const ranges *r, pool *p, copying *c, err *e) {
    bool ok = true;
    for (int i = 0; ok && i < PIECES * PASSES; i++) {
        buffers b;
        ok = buffers_open(&b, d, q, piece_bytes[i % PIECES], e) && pass(&b, r, p, &c->file, e) &&
             pass(&b, r, NULL, &c->pinned, e);
        if ((double)b.bytes > c->pinned_bytes) c->pinned_bytes = (double)b.bytes;
        buffers_close(&b);
    }
    return ok;
}

// The loader

static bool load(const buffers *b, loader *l, const dataset *data, uint32_t epoch, size_t each, double *rate, err *e) {
    loader_batch batch;
    int64_t batches = 0;
    loader_seek(l, &(loader_range){part_of((span){0, data->samples}), true, epoch, 0});
    double began = clock_seconds();
    for (int lane = 0;; lane = (lane + 1) % LANES, batches++) {
        if (!b->d->fed(b->q, lane, e)) return false;
        if (!loader_next(l, &batch)) break;
        if (!b->d->feed(b->q, lane, b->there + (size_t)lane * each, batch.block, each, e)) return false;
    }
    if (!b->d->sync(b->q, e)) return false;
    double gbs = (double)batches * (double)each / (clock_seconds() - began) / 1e9;
    if (gbs > *rate) *rate = gbs;
    return true;
}

static bool time_loader(
    const dataset *data, const device *d, queue *q, const int64_t *window, int64_t batch, copying *c, err *e) {
    buffers b = {.d = d, .q = q};
    pinned from = {d, q};
    loader_memory memory = pinned_memory(&from);
    loader_options o = {.batch = batch, .seed = 1, .workers = c->workers, .prefetch = 4, .hold = LANES};
    o.memory = &memory;
    memcpy(o.window, window, (size_t)data->streams * sizeof *window);
    size_t each = loader_layout_of(data, &o).index;
    b.bytes = LANES * each;
    b.there = d->allocate(q, b.bytes, e);
    loader *l = b.there ? loader_new(data, &o, e) : NULL;
    bool ok = l != NULL;
    for (uint32_t i = 0; ok && i < PASSES; i++) ok = load(&b, l, data, i, each, &c->loader, e);
    if ((double)loader_measure(data, &o) > c->pinned_bytes) c->pinned_bytes = (double)loader_measure(data, &o);
    loader_free(l);
    if (b.there) d->release(q, b.there, b.bytes);
    return ok;
}

bool copying_measure(const dataset *data, const device *d, queue *q, const int64_t *window, int64_t batch, int threads,
    copying *c, err *e) {
    ranges r = ranges_of(data);
    *c = (copying){.threads = threads, .workers = job_workers(!d->host_memory)};
    c->sample = (double)r.total / (double)data->samples;
    pool *p = pool_new(threads, e);
    bool ok = p && time_file(d, q, &r, p, c, e) && time_loader(data, d, q, window, batch, c, e);
    pool_free(p);
    return ok;
}
