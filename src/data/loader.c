// Work is handed out in pieces of rows under one lock, in the order of batches; a piece is long enough that the lock is
// never waited for. A batch is ready when all its pieces are done. Its slot is free again when the caller asks for more
// batches than it may hold.
#include "data/loader.h"

#include "base/rng.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PIECE = 128, AHEAD = 4, ALIGN = 64, PAGE = 4096, WORKERS_MOST = 256 };

typedef struct {
    char *block;
    float *x[STREAMS_MOST], *vector, *target, *price, *weight;
    int32_t *label, *index;
    int64_t done; // pieces
} slot;

struct loader {
    const dataset *d;
    loader_options o;
    loader_memory memory;
    char *ring;
    size_t bytes;
    slot *slot;
    int slots;
    int64_t pieces;                    // of a batch
    float *tiles, *tile[STREAMS_MOST]; // the scaler's two rows, each repeated over a stream's window; or NULL
    pthread_t *threads;
    int started;
    pthread_mutex_t lock;
    pthread_cond_t work, ready;
    // Under the lock. The range changes only while nobody gathers.
    loader_range range;
    int64_t batches; // of the range
    int64_t item;    // the next piece to hand out, counted through all batches
    int64_t given;   // batches that the caller was given
    int64_t freed;   // batches whose slots are free again
    int busy;        // pieces being gathered
    bool stop;
};

// Gathering

static int64_t sample_at(const loader *l, int64_t position) {
    const loader_range *r = &l->range;
    if (position >= r->samples.count) return part_first(&r->samples);
    if (!r->shuffle) return part_sample(&r->samples, position);
    return part_sample(
        &r->samples, (int64_t)rng_permute(l->o.seed, r->epoch, (uint64_t)position, (uint64_t)r->samples.count));
}

typedef float four __attribute__((vector_size(16)));

// n values of a window's rows, less `shift`, times `factor`; x may be `from`.
static void scale(float *x, const float *from, const float *shift, const float *factor, int64_t n) {
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
        four v, s, f;
        memcpy(&v, from + i, sizeof v);
        memcpy(&s, shift + i, sizeof s);
        memcpy(&f, factor + i, sizeof f);
        v = (v - s) * f;
        memcpy(x + i, &v, sizeof v);
    }
    for (; i < n; i++) x[i] = (from[i] - shift[i]) * factor[i];
}

static void gather_window(const loader *l, int i, int64_t sample, float *x) {
    const stream *s = &l->d->stream[i];
    int64_t row = s->row[sample], first = s->first[sample], T = l->o.window[i], C = s->series.width;
    CHECK(first >= 0 && first <= row && row < s->series.rows, "sample %lld of %s: rows %lld..%lld", (long long)sample,
        s->name, (long long)first, (long long)row);
    int64_t have = row - first + 1 < T ? row - first + 1 : T, pad = T - have;
    if (pad) memset(x, 0, (size_t)(pad * C) * sizeof *x);
    x += pad * C;
    const float *from = table_floats(&s->series), *tile = l->tile[i];
    from = from && tile ? from + (row - have + 1) * C : x;
    if (from == x) table_read(&s->series, row - have + 1, have, x);
    if (tile) scale(x, from, tile, tile + T * C, have * C);
}

// Samples lie anywhere in memory: the first lines of a row are asked for some samples before they are copied, and that
// of the page it goes on to; the processor's own prefetching then goes on.
static void fetch(const table *t, int64_t row, int64_t rows) {
    for (int k = 0; k < t->parts; k++) {
        size_t each = (size_t)t->part[k].width * column_bytes(t->part[k].type);
        const char *at = (const char *)t->part[k].data + (size_t)row * each, *end = at + (size_t)rows * each;
        const char *page = at + (PAGE - (uintptr_t)at % PAGE);
        for (int n = 0; n < 4 && at < end; n++, at += ALIGN) __builtin_prefetch(at);
        if (page < end) __builtin_prefetch(page);
    }
}

static void fetch_window(const loader *l, int i, int64_t sample) {
    const stream *s = &l->d->stream[i];
    int64_t from = s->row[sample] - l->o.window[i] + 1;
    fetch(&s->series, from > 0 ? from : 0, l->o.window[i]);
}

// One array after the other, so that what is asked for ahead is of one kind.
static void gather_rows(const loader *l, const slot *s, int64_t first, const int64_t *sample, int64_t count) {
    const dataset *d = l->d;
    for (int i = 0; i < d->streams; i++) {
        float *x = s->x[i] + first * l->o.window[i] * d->stream[i].series.width;
        for (int64_t k = 0; k < count; k++, x += l->o.window[i] * d->stream[i].series.width) {
            if (k + AHEAD < count) fetch_window(l, i, sample[k + AHEAD]);
            gather_window(l, i, sample[k], x);
        }
    }
    for (int64_t k = 0; s->vector && k < count; k++) {
        if (k + AHEAD < count) fetch(&d->vector, sample[k + AHEAD], 1);
        table_read(&d->vector, sample[k], 1, s->vector + (first + k) * d->vector.width);
    }
    for (int64_t k = 0; s->label && k < count; k++) s->label[first + k] = d->label[sample[k]];
    for (int64_t k = 0; s->price && k < count; k++) s->price[first + k] = d->price[sample[k]];
    for (int64_t k = 0; s->target && k < count; k++)
        memcpy(s->target + (first + k) * d->target_width, d->target + sample[k] * d->target_width,
            (size_t)d->target_width * sizeof *s->target);
}

// Rows of one piece of the range's `batch`-th batch.
static void gather_piece(const loader *l, const slot *s, int64_t batch, int64_t piece) {
    const dataset *d = l->d;
    int64_t first = piece * PIECE, count = l->o.batch - first < PIECE ? l->o.batch - first : PIECE;
    int64_t position = l->range.position + batch * l->o.batch, sample[PIECE];
    for (int64_t k = 0; k < count; k++) {
        int64_t at = position + first + k;
        sample[k] = sample_at(l, at);
        s->index[first + k] = (int32_t)sample[k];
        s->weight[first + k] = at < l->range.samples.count ? 1.0f : 0.0f;
        for (int i = 0; i < d->streams; i++) {
            __builtin_prefetch(&d->stream[i].row[sample[k]]);
            __builtin_prefetch(&d->stream[i].first[sample[k]]);
        }
        if (d->label) __builtin_prefetch(&d->label[sample[k]]);
    }
    gather_rows(l, s, first, sample, count);
}

// Handing out

static bool available(const loader *l) {
    int64_t batch = l->item / l->pieces;
    return batch < l->batches && batch < l->freed + l->slots;
}

// Gathers the next piece, with the lock given back meanwhile.
static void do_piece(loader *l) {
    int64_t item = l->item++, batch = item / l->pieces;
    slot *s = &l->slot[batch % l->slots];
    l->busy++;
    pthread_mutex_unlock(&l->lock);
    gather_piece(l, s, batch, item % l->pieces);
    pthread_mutex_lock(&l->lock);
    l->busy--;
    s->done++;
    if (s->done == l->pieces || !l->busy) pthread_cond_broadcast(&l->ready);
}

static void *worker(void *arg) {
    loader *l = arg;
    pthread_mutex_lock(&l->lock);
    while (!l->stop) {
        if (available(l))
            do_piece(l);
        else
            pthread_cond_wait(&l->work, &l->lock);
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

// Gives the slot of the oldest batch back where the caller holds as many as it may.
static void free_given(loader *l) {
    if (l->given - l->freed < l->o.hold) return;
    l->slot[l->freed % l->slots].done = 0;
    l->freed++;
    pthread_cond_broadcast(&l->work);
}

void loader_seek(loader *l, const loader_range *r) {
    CHECK(part_end(&r->samples) <= l->d->samples, "samples up to %lld of %lld", (long long)part_end(&r->samples),
        (long long)l->d->samples);
    CHECK(r->position >= 0, "position %lld", (long long)r->position);
    pthread_mutex_lock(&l->lock);
    l->batches = 0;
    while (l->busy) pthread_cond_wait(&l->ready, &l->lock);
    int64_t left = r->samples.count - r->position;
    l->range = *r;
    l->batches = left > 0 ? (left + l->o.batch - 1) / l->o.batch : 0;
    l->item = l->given = l->freed = 0;
    for (int i = 0; i < l->slots; i++) l->slot[i].done = 0;
    pthread_cond_broadcast(&l->work);
    pthread_mutex_unlock(&l->lock);
}

bool loader_next(loader *l, loader_batch *b) {
    pthread_mutex_lock(&l->lock);
    free_given(l);
    bool more = l->given < l->batches;
    const slot *s = &l->slot[l->given % l->slots];
    while (more && s->done < l->pieces) {
        if (!l->started)
            do_piece(l);
        else
            pthread_cond_wait(&l->ready, &l->lock);
    }
    int64_t position = l->range.position + l->given * l->o.batch;
    l->given += more;
    pthread_mutex_unlock(&l->lock);
    *b = (loader_batch){0};
    if (!more) return false;
    int64_t left = l->range.samples.count - position;
    b->block = s->block;
    for (int i = 0; i < l->d->streams; i++) b->x[i] = s->x[i];
    b->vector = s->vector;
    b->label = s->label;
    b->target = s->target;
    b->price = s->price;
    b->weight = s->weight;
    b->index = s->index;
    b->position = position;
    b->rows = left < l->o.batch ? left : l->o.batch;
    return true;
}

// Making

static void *system_take(void *arg, size_t bytes) {
    (void)arg;
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return NULL;
    madvise(p, bytes, MADV_HUGEPAGE);
    return p;
}

static void system_give(void *arg, void *memory, size_t bytes) {
    (void)arg;
    munmap(memory, bytes);
}

// The next `width` four-byte elements a row, from the block's end on.
static size_t cut(loader_layout *y, int64_t batch, int64_t width) {
    size_t at = y->bytes;
    y->bytes += ((size_t)(batch * width) * 4 + ALIGN - 1) / ALIGN * ALIGN;
    return at;
}

loader_layout loader_layout_of(const dataset *d, const loader_options *o) {
    loader_layout y = {0};
    for (int i = 0; i < d->streams; i++) y.x[i] = cut(&y, o->batch, o->window[i] * d->stream[i].series.width);
    y.vector = cut(&y, o->batch, d->vector.width);
    y.target = cut(&y, o->batch, d->target ? d->target_width : 0);
    y.price = cut(&y, o->batch, o->price ? 1 : 0);
    y.label = cut(&y, o->batch, d->label ? 1 : 0);
    y.weight = cut(&y, o->batch, 1);
    y.index = cut(&y, o->batch, 1);
    return y;
}

static void *within(const slot *s, size_t at) {
    return s->block + at;
}

static void lay_slot(const loader *l, const loader_layout *y, slot *s, char *block) {
    const dataset *d = l->d;
    s->block = block;
    for (int i = 0; i < d->streams; i++) s->x[i] = within(s, y->x[i]);
    if (d->vector.width) s->vector = within(s, y->vector);
    if (d->target) s->target = within(s, y->target);
    if (l->o.price) s->price = within(s, y->price);
    if (d->label) s->label = within(s, y->label);
    s->weight = within(s, y->weight);
    s->index = within(s, y->index);
}

// True if a slot's bytes can be counted: batch times width stays far below what a size holds.
static bool counts(const dataset *d, const loader_options *o) {
    int64_t width = d->vector.width + d->target_width + 4, each, most;
    for (int i = 0; i < d->streams; i++) {
        if (__builtin_mul_overflow(o->window[i], d->stream[i].series.width, &each)) return false;
        if (__builtin_add_overflow(width, each, &width)) return false;
    }
    return !__builtin_mul_overflow(width, o->batch, &most) && !__builtin_mul_overflow(most, (int64_t)64 << 10, &most);
}

static int slots_of(const loader_options *o) {
    return o->prefetch + (o->hold ? o->hold : 1);
}

size_t loader_measure(const dataset *d, const loader_options *o) {
    return loader_layout_of(d, o).bytes * (size_t)slots_of(o);
}

static bool make_ring(loader *l, err *e) {
    loader_layout y = loader_layout_of(l->d, &l->o);
    l->bytes = loader_measure(l->d, &l->o);
    l->slot = calloc((size_t)l->slots, sizeof *l->slot);
    if (l->slot) l->ring = l->memory.take(l->memory.arg, l->bytes);
    if (!l->ring)
        return err_run(e, "not enough memory for %d batches, %.1f MB; lower train.batch_size or data.prefetch_factor",
            l->slots, (double)l->bytes / 1e6);
    for (int i = 0; i < l->slots; i++) lay_slot(l, &y, &l->slot[i], l->ring + (size_t)i * y.bytes);
    return true;
}

static bool make_tiles(loader *l, err *e) {
    const scaler *s = l->o.scaler;
    int64_t values = 0;
    if (!s) return true;
    for (int i = 0; i < s->streams; i++) values += 2 * l->o.window[i] * s->width[i];
    float *at = l->tiles = malloc((size_t)(values + 1) * sizeof *at);
    if (!at) return err_run(e, "out of memory for a loader");
    for (int i = 0; i < s->streams; i++) {
        l->tile[i] = at;
        for (int k = 0; k < 2; k++)
            for (int64_t t = 0; t < l->o.window[i]; t++, at += s->width[i])
                memcpy(at, s->value[i] + k * s->width[i], (size_t)s->width[i] * sizeof *at);
    }
    return true;
}

static bool start_workers(loader *l, err *e) {
    l->threads = calloc((size_t)l->o.workers + 1, sizeof *l->threads);
    if (!l->threads) return err_run(e, "out of memory for a loader");
    for (; l->started < l->o.workers; l->started++)
        if (pthread_create(&l->threads[l->started], NULL, worker, l))
            return err_run(e, "cannot start %d threads; lower data.num_workers", l->o.workers);
    return true;
}

loader *loader_new(const dataset *d, const loader_options *o, err *e) {
    CHECK(o->batch > 0 && o->prefetch > 0 && o->prefetch < 1 << 15, "batch %lld, %d ahead", (long long)o->batch,
        o->prefetch);
    CHECK(o->hold >= 0 && o->hold < 1 << 10, "a hold of %d batches", o->hold);
    CHECK(o->workers >= 0 && o->workers <= WORKERS_MOST, "%d workers", o->workers);
    for (int i = 0; i < d->streams; i++) CHECK(o->window[i] > 0, "no window for %s", d->stream[i].name);
    CHECK(!o->price || d->price, "the data have no prices");
    loader *l = counts(d, o) ? calloc(1, sizeof *l) : NULL;
    if (!l) {
        err_run(e, "not enough memory for batches of %lld; lower train.batch_size", (long long)o->batch);
        return NULL;
    }
    l->d = d;
    l->o = *o;
    l->memory = o->memory ? *o->memory : (loader_memory){system_take, system_give, NULL};
    l->o.hold = o->hold ? o->hold : 1;
    l->slots = slots_of(o);
    l->pieces = (o->batch + PIECE - 1) / PIECE;
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->work, NULL);
    pthread_cond_init(&l->ready, NULL);
    dataset_advise(d);
    if (make_ring(l, e) && make_tiles(l, e) && start_workers(l, e)) return l;
    loader_free(l);
    return NULL;
}

void loader_free(loader *l) {
    if (!l) return;
    pthread_mutex_lock(&l->lock);
    l->stop = true;
    pthread_cond_broadcast(&l->work);
    pthread_mutex_unlock(&l->lock);
    for (int i = 0; i < l->started; i++) pthread_join(l->threads[i], NULL);
    if (l->ring) l->memory.give(l->memory.arg, l->ring, l->bytes);
    pthread_mutex_destroy(&l->lock);
    pthread_cond_destroy(&l->work);
    pthread_cond_destroy(&l->ready);
    free(l->tiles);
    free(l->threads);
    free(l->slot);
    free(l);
}
