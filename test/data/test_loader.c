// The loader: batches in order, equal to a gather written down plainly, the same for any number of threads, from any
// position on; and nothing left behind.
#include "data/loader.h"

#include "base/half.h"
#include "base/rng.h"
#include "support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

enum { SAMPLES = 700, FAST = 900, SLOW = 120, C0 = 5, C1 = 3, WIDTH = 6 };

// Two series in each stream; the first windows of each are cut short. With `typed`, columns of several types.
typedef struct {
    dataset d;
    float fast[FAST * C0], slow[SLOW * C1], vector[SAMPLES * WIDTH], target[SAMPLES * 2];
    int8_t bytes[FAST * 2], signals[SAMPLES * WIDTH / 2];
    uint16_t halves[FAST], strengths[SAMPLES * WIDTH / 2];
    int32_t row[2][SAMPLES], first[2][SAMPLES], label[SAMPLES];
    int64_t window[2];
} made;

static made *make(bool typed) {
    made *m = calloc(1, sizeof *m);
    dice r = {3, 0};
    assert_non_null(m);
    for (int i = 0; i < FAST * C0; i++) m->fast[i] = 100 + dice_unit(&r);
    for (int i = 0; i < SLOW * C1; i++) m->slow[i] = dice_unit(&r);
    for (int i = 0; i < SAMPLES * WIDTH; i++) m->vector[i] = dice_unit(&r);
    for (int i = 0; i < SAMPLES * 2; i++) m->target[i] = dice_unit(&r);
    for (int i = 0; i < FAST * 2; i++) m->bytes[i] = (int8_t)dice_below(&r, 256);
    for (int i = 0; i < FAST; i++) m->halves[i] = half_narrow(dice_unit(&r));
    for (int i = 0; i < SAMPLES * WIDTH / 2; i++) {
        m->signals[i] = (int8_t)(dice_below(&r, 3) - 1);
        m->strengths[i] = half_narrow(dice_unit(&r));
    }
    for (int i = 0; i < SAMPLES; i++) {
        bool second = i % 3 == 2;
        m->first[0][i] = second ? 600 : 0;
        m->row[0][i] = m->first[0][i] + (second ? i / 3 : 2 * i / 3);
        m->first[1][i] = second ? 80 : 0;
        m->row[1][i] = m->first[1][i] + (second ? i / 3 : 2 * i / 3) / 12;
        m->label[i] = (int32_t)dice_below(&r, 3);
    }
    dataset *d = &m->d;
    *d = (dataset){.samples = SAMPLES, .streams = 2, .classes = 3, .label = m->label};
    d->stream[0] = (stream){
        .name = "fast", .series = table_of(COLUMN_F32, FAST, C0, m->fast), .row = m->row[0], .first = m->first[0]};
    d->stream[1] = (stream){
        .name = "slow", .series = table_of(COLUMN_F32, SLOW, C1, m->slow), .row = m->row[1], .first = m->first[1]};
    d->vector = table_of(COLUMN_F32, SAMPLES, WIDTH, m->vector);
    m->window[0] = 9;
    m->window[1] = 4;
    if (!typed) return m;
    table_add(&d->stream[0].series, COLUMN_I8, 2, m->bytes);
    table_add(&d->stream[0].series, COLUMN_F16, 1, m->halves);
    d->vector = table_of(COLUMN_I8, SAMPLES, WIDTH / 2, m->signals);
    table_add(&d->vector, COLUMN_F16, WIDTH / 2, m->strengths);
    d->target = m->target;
    d->target_width = 2;
    return m;
}

static loader_options options(const made *m, int64_t batch, int workers, const scaler *s) {
    loader_options o = {.batch = batch, .seed = 11, .workers = workers, .prefetch = 2, .scaler = s};
    memcpy(o.window, m->window, sizeof m->window);
    return o;
}

static loader *open_loader(const made *m, const loader_options *o) {
    err e = {0};
    loader *l = loader_new(&m->d, o, &e);
    support_ok(l != NULL, &e);
    return l;
}

// Plainly: as the operator `draw` has it, the sample at place p(position) of all spans, one behind the other.

static int64_t sample_of(const loader_range *r, uint64_t seed, int64_t position) {
    uint64_t at = (uint64_t)position, n = (uint64_t)r->samples.count;
    if (at >= n) return r->samples.span[0].first;
    at = r->shuffle ? rng_permute(seed, r->epoch, at, n) : at;
    const span *s = r->samples.span;
    for (; at >= (uint64_t)s->count; s++) at -= (uint64_t)s->count;
    return s->first + (int64_t)at;
}

static float cell(const table *t, int64_t row, int64_t column) {
    for (int k = 0; k < t->parts; k++) {
        const table_part *p = &t->part[k];
        if (column >= p->width) {
            column -= p->width;
            continue;
        }
        int64_t at = row * p->width + column;
        if (p->type == COLUMN_I8) return (float)((const int8_t *)p->data)[at];
        if (p->type == COLUMN_F16) return half_widen(((const uint16_t *)p->data)[at]);
        return ((const float *)p->data)[at];
    }
    fail();
    return 0;
}

static void check_window(const made *m, const loader_options *o, int i, int64_t sample, const float *x) {
    const stream *s = &m->d.stream[i];
    int64_t C = s->series.width, T = o->window[i];
    for (int64_t t = 0; t < T; t++) {
        int64_t row = s->row[sample] - T + 1 + t;
        for (int64_t c = 0; c < C; c++) {
            float want = row < s->first[sample] ? 0 : cell(&s->series, row, c);
            if (o->scaler && row >= s->first[sample])
                want = (want - o->scaler->value[i][c]) * o->scaler->value[i][C + c];
            assert_true(x[t * C + c] == want);
        }
    }
}

static void check_batch(const made *m, const loader_options *o, const loader_range *r, const loader_batch *b) {
    const dataset *d = &m->d;
    for (int64_t k = 0; k < o->batch; k++) {
        int64_t position = b->position + k, sample = sample_of(r, o->seed, position);
        assert_int_equal(b->index[k], sample);
        assert_true(b->weight[k] == (position < r->samples.count ? 1 : 0));
        assert_int_equal(b->label[k], m->label[sample]);
        for (int i = 0; i < d->streams; i++)
            check_window(m, o, i, sample, b->x[i] + k * o->window[i] * d->stream[i].series.width);
        for (int64_t c = 0; c < d->vector.width; c++)
            assert_true(b->vector[k * d->vector.width + c] == cell(&d->vector, sample, c));
        for (int64_t c = 0; d->target && c < 2; c++) assert_true(b->target[k * 2 + c] == m->target[sample * 2 + c]);
    }
}

// All batches of a range, and then none.
static void check_range(const made *m, const loader_options *o, loader *l, loader_range r) {
    loader_batch b;
    int64_t at = r.position;
    loader_seek(l, &r);
    while (loader_next(l, &b)) {
        assert_int_equal(b.position, at);
        assert_int_equal(b.rows, r.samples.count - at < o->batch ? r.samples.count - at : o->batch);
        check_batch(m, o, &r, &b);
        at += o->batch;
    }
    assert_true(at >= r.samples.count && (at < r.samples.count + o->batch || r.position >= r.samples.count));
    assert_false(loader_next(l, &b));
    assert_null(b.weight);
}

// Spans of 1 to 9 samples with gaps between them.
static split_part of_spans(int spans) {
    split_part p = {0};
    for (int k = 0; k < spans; k++) part_add(&p, (span){3 + 17 * k, 1 + k * 7 % 9});
    assert_int_equal(p.spans, spans);
    return p;
}

static void gathers_what_was_asked(void **state) {
    (void)state;
    static const int64_t batches[] = {1, 7, 128, 300, 1000};
    for (int kind = 0; kind < 4; kind++) {
        err e = {0};
        made *m = make(kind & 1);
        split_part all = part_of((span){0, SAMPLES});
        scaler *s = kind & 2 ? scaler_fit(&m->d, &all, m->window, false, &e) : NULL;
        for (size_t i = support_sanitized() ? 1 : 0; i < sizeof batches / sizeof *batches; i++)
            for (int workers = 0; workers <= 3; workers++) {
                loader_options o = options(m, batches[i], workers, s);
                loader *l = open_loader(m, &o);
                check_range(m, &o, l, (loader_range){part_of((span){0, SAMPLES}), true, 1, 0});
                check_range(m, &o, l, (loader_range){part_of((span){100, 333}), true, 2, 0});
                check_range(m, &o, l, (loader_range){part_of((span){100, 333}), false, 2, 0});
                check_range(m, &o, l, (loader_range){part_of((span){699, 1}), true, 7, 0});
                check_range(m, &o, l, (loader_range){part_of((span){5, 0}), true, 7, 0});
                check_range(m, &o, l, (loader_range){of_spans(2), true, 3, 0});
                check_range(m, &o, l, (loader_range){of_spans(40), true, 3, 0});
                check_range(m, &o, l, (loader_range){of_spans(40), false, 3, 0});
                loader_free(l);
            }
        scaler_free(s);
        free(m);
    }
}

// Stopping anywhere and going on from there, in another loader, gives the same batches; so does changing one's mind.
static void seeks_to_any_position(void **state) {
    (void)state;
    made *m = make(true);
    loader_options o = options(m, 50, 2, NULL);
    loader *l = open_loader(m, &o);
    for (int64_t position = 0; position <= 800; position += 150)
        check_range(m, &o, l, (loader_range){part_of((span){0, SAMPLES}), true, 4, position});
    for (int64_t position = 0; position <= 150; position += 50)
        check_range(m, &o, l, (loader_range){of_spans(40), true, 4, position});
    loader_batch b;
    for (int turn = 0; turn < (support_sanitized() ? 50 : 500); turn++) {
        loader_range r = {part_of((span){turn % 40, 600}), turn % 2, (uint32_t)turn, turn % 7 * 50};
        loader_seek(l, &r);
        for (int k = 0; k < turn % 5; k++) {
            assert_true(loader_next(l, &b));
            if (k == turn % 3) check_batch(m, &o, &r, &b);
        }
    }
    loader_free(l); // with batches under way
    free(m);
}

// A batch stays as it is while others are gathered.
static void batches_stay_until_the_next(void **state) {
    (void)state;
    made *m = make(false);
    loader_options o = options(m, 64, 3, NULL);
    o.prefetch = 1;
    loader *l = open_loader(m, &o);
    loader_range r = {part_of((span){0, SAMPLES}), true, 1, 0};
    loader_batch b;
    loader_seek(l, &r);
    while (loader_next(l, &b)) {
        usleep(2000); // the others have time to write where they may
        check_batch(m, &o, &r, &b);
    }
    loader_free(l);
    free(m);
}

// Held batches stay too, as long as there are no more of them than was asked for; each is one block.
static void held_batches_stay(void **state) {
    (void)state;
    enum { HOLD = 3 };
    made *m = make(false);
    loader_options o = options(m, 64, 3, NULL);
    o.prefetch = 1;
    o.hold = HOLD;
    loader *l = open_loader(m, &o);
    loader_layout y = loader_layout_of(&m->d, &o);
    loader_range r = {part_of((span){0, SAMPLES}), true, 1, 0};
    loader_batch b[HOLD];
    loader_seek(l, &r);
    assert_int_equal(loader_measure(&m->d, &o), (o.prefetch + HOLD) * y.bytes);
    for (int n = 0; loader_next(l, &b[n % HOLD]); n++) {
        usleep(1000);
        for (int k = n - HOLD + 1 < 0 ? 0 : n - HOLD + 1; k <= n; k++) check_batch(m, &o, &r, &b[k % HOLD]);
        const char *block = b[n % HOLD].block;
        assert_ptr_equal(b[n % HOLD].x[0], block + y.x[0]);
        assert_ptr_equal(b[n % HOLD].weight, block + y.weight);
        assert_ptr_equal(b[n % HOLD].index, block + y.index);
        assert_true(y.x[0] == 0 && y.weight < y.index && y.index % 64 == 0 && y.index < y.bytes);
    }
    loader_free(l);
    free(m);
}

// Memory

typedef struct {
    int taken, given;
    size_t bytes;
    bool none;
} purse;

static void *purse_take(void *arg, size_t bytes) {
    purse *p = arg;
    p->taken++;
    p->bytes = bytes;
    return p->none ? NULL : malloc(bytes);
}

static void purse_give(void *arg, void *memory, size_t bytes) {
    purse *p = arg;
    p->given++;
    assert_int_equal(bytes, p->bytes);
    free(memory);
}

static void buffers_come_from_the_caller(void **state) {
    (void)state;
    err e = {0};
    made *m = make(true);
    purse p = {0};
    loader_memory memory = {purse_take, purse_give, &p};
    loader_options o = options(m, 33, 2, NULL);
    o.memory = &memory;
    loader *l = open_loader(m, &o);
    assert_int_equal(p.taken, 1);
    assert_int_equal(p.bytes, loader_measure(&m->d, &o));
    check_range(m, &o, l, (loader_range){part_of((span){0, SAMPLES}), true, 1, 0});
    loader_free(l);
    assert_int_equal(p.given, 1);
    p.none = true;
    assert_null(loader_new(&m->d, &o, &e));
    assert_int_equal(e.kind, ERR_RUN);
    assert_non_null(strstr(e.text, "data.prefetch_factor"));
    assert_int_equal(p.given, 1);
    o.batch = INT64_MAX / 8;
    assert_null(loader_new(&m->d, &o, &e));
    assert_non_null(strstr(e.text, "train.batch_size"));
    loader_free(NULL);
    free(m);
}

// Series in a mapped file are read where they are.

typedef struct {
    void *at;
    size_t bytes;
    int released;
} mapping;

static void unmap(void *owner) {
    mapping *map = owner;
    munmap(map->at, map->bytes);
    map->released++;
}

static void mapped_files_are_read_in_place(void **state) {
    (void)state;
    err e = {0};
    made *m = make(false);
    mapping map = {.bytes = sizeof m->fast};
    FILE *f = tmpfile();
    assert_non_null(f);
    assert_int_equal(fwrite(m->fast, 1, map.bytes, f), map.bytes);
    assert_int_equal(fflush(f), 0);
    map.at = mmap(NULL, map.bytes, PROT_READ, MAP_PRIVATE, fileno(f), 0);
    assert_true(map.at != MAP_FAILED);
    fclose(f);
    dataset *d = dataset_new_of(&map, unmap, &e);
    assert_non_null(d);
    void *owner = d->owner;
    *d = m->d;
    d->owner = owner;
    d->release = unmap;
    d->stream[0].series = table_of(COLUMN_F32, FAST, C0, map.at);
    loader_options o = options(m, 100, 2, NULL);
    loader *l = loader_new(d, &o, &e);
    support_ok(l != NULL, &e);
    check_range(m, &o, l, (loader_range){part_of((span){0, SAMPLES}), true, 3, 0});
    loader_free(l);
    dataset_free(d);
    assert_int_equal(map.released, 1);
    free(m);
}

// Mistakes

static void seek_beyond(void) {
    made *m = make(false);
    loader_options o = options(m, 8, 0, NULL);
    loader *l = loader_new(&m->d, &o, NULL);
    loader_seek(l, &(loader_range){part_of((span){1, SAMPLES}), true, 1, 0});
}

static void gather_beyond(void) {
    made *m = make(false);
    loader_options o = options(m, 8, 0, NULL);
    loader *l = loader_new(&m->d, &o, NULL);
    loader_batch b;
    m->row[0][3] = FAST;
    loader_seek(l, &(loader_range){part_of((span){0, 8}), false, 1, 0});
    loader_next(l, &b);
}

static void mistakes_stop_the_program(void **state) {
    (void)state;
    support_aborts(seek_beyond, "samples up to 701 of 700");
    support_aborts(gather_beyond, "sample 3 of fast");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gathers_what_was_asked),
        cmocka_unit_test(seeks_to_any_position),
        cmocka_unit_test(batches_stay_until_the_next),
        cmocka_unit_test(held_batches_stay),
        cmocka_unit_test(buffers_come_from_the_caller),
        cmocka_unit_test(mapped_files_are_read_in_place),
        cmocka_unit_test(mistakes_stop_the_program),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
