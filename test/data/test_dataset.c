// Datasets in memory: tables of several types read as one, memory given back to whoever keeps it, and nonsense refused.
#include "data/dataset.h"

#include "base/half.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ROWS = 5 };

static const float floats[ROWS * 2] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 1e9f};
static const int8_t bytes[ROWS * 3] = {-128, 127, 0, 1, -1, 2, -2, 3, -3, 4, -4, 5, -5, 6, -6};
static uint16_t halves[ROWS];

static table mixed(void) {
    for (int i = 0; i < ROWS; i++) halves[i] = half_narrow(0.25f * (float)(i - 2));
    table t = table_of(COLUMN_I8, ROWS, 3, bytes);
    table_add(&t, COLUMN_F16, 1, halves);
    table_add(&t, COLUMN_F32, 2, floats);
    return t;
}

static void parts_read_as_one_table(void **state) {
    (void)state;
    table t = mixed();
    float all[ROWS * 6], some[2 * 6];
    assert_int_equal(t.width, 6);
    assert_null(table_floats(&t));
    table_read(&t, 0, ROWS, all);
    for (int r = 0; r < ROWS; r++) {
        for (int c = 0; c < 3; c++) assert_true(all[r * 6 + c] == (float)bytes[r * 3 + c]);
        assert_true(all[r * 6 + 3] == 0.25f * (float)(r - 2));
        for (int c = 0; c < 2; c++) assert_true(all[r * 6 + 4 + c] == floats[r * 2 + c]);
    }
    table_read(&t, 2, 2, some);
    assert_memory_equal(some, all + 12, sizeof some);
    table plain = table_of(COLUMN_F32, ROWS, 2, floats);
    assert_ptr_equal(table_floats(&plain), floats);
    table_read(&plain, 1, 3, some);
    assert_memory_equal(some, floats + 2, 6 * sizeof *some);
    table_read(&plain, 1, 0, some);
}

// Ownership

static void count_release(void *owner) {
    ++*(int *)owner;
}

static void owners_are_asked_once(void **state) {
    (void)state;
    err e;
    int released = 0;
    dataset *d = dataset_new_of(&released, count_release, &e);
    assert_non_null(d);
    d->vector = mixed();
    d->samples = ROWS;
    dataset_advise(d); // of memory that is no mapping of its own: harmless
    assert_int_equal(released, 0);
    dataset_free(d);
    assert_int_equal(released, 1);
    dataset_free(NULL);
}

static void blocks_are_cut_aligned(void **state) {
    (void)state;
    err e;
    size_t at = 0, room = dataset_room(3, 1) + dataset_room(5, 8) + dataset_room(0, 4);
    dataset *d = dataset_new(room, &e);
    assert_non_null(d);
    char *a = dataset_take(d, &at, 3, 1), *b = dataset_take(d, &at, 5, 8);
    dataset_take(d, &at, 0, 4);
    assert_true(b - a == 64 && at == room);
    for (size_t i = 0; i < room; i++) assert_int_equal(a[i], 0);
    dataset_free(d);
}

static void bytes_count_what_is_there(void **state) {
    (void)state;
    static const int32_t label[ROWS], row[ROWS];
    static const int64_t time[ROWS];
    static const float target[ROWS * 3];
    dataset d = {.samples = ROWS, .vector = mixed(), .classes = 2, .label = label};
    assert_int_equal(dataset_bytes(&d), ROWS * (3 + 2 + 8 + 4));
    d.time = d.end = time;
    d.target = target;
    d.target_width = 3;
    assert_int_equal(dataset_bytes(&d), ROWS * (3 + 2 + 8 + 4 + 16 + 12));
    d.streams = 1;
    d.stream[0] = (stream){.name = "fast", .series = table_of(COLUMN_F32, ROWS, 2, floats), .row = row, .first = row};
    assert_int_equal(dataset_bytes(&d), ROWS * (3 + 2 + 8 + 4 + 16 + 12 + 8 + 8));
}

// Checking

typedef struct {
    dataset d;
    int32_t row[ROWS], first[ROWS], label[ROWS];
    int64_t time[ROWS], end[ROWS];
} made;

static made *make(void) {
    made *m = calloc(1, sizeof *m);
    assert_non_null(m);
    for (int i = 0; i < ROWS; i++) {
        m->row[i] = i;
        m->label[i] = i % 2;
        m->time[i] = 100 * i;
        m->end[i] = 100 * i + 250;
    }
    m->d = (dataset){.samples = ROWS, .streams = 1, .vector = mixed(), .classes = 2, .label = m->label};
    m->d.time = m->time;
    m->d.end = m->end;
    m->d.stream[0] =
        (stream){.name = "fast", .series = table_of(COLUMN_F32, ROWS, 2, floats), .row = m->row, .first = m->first};
    return m;
}

static void refused(made *m, const char *text) {
    err e = {0};
    assert_false(dataset_check(&m->d, "set.npz", &e));
    assert_int_equal(e.kind, ERR_INPUT);
    assert_true(strncmp(e.text, "set.npz: ", 9) == 0);
    if (!strstr(e.text, text)) fail_msg("\"%s\" does not say %s", e.text, text);
    free(m);
}

#define REFUSED(change, text)                                                                                          \
    do {                                                                                                               \
        made *m = make();                                                                                              \
        change;                                                                                                        \
        refused(m, text);                                                                                              \
    } while (0)

static void nonsense_is_refused(void **state) {
    (void)state;
    err e;
    made *good = make();
    assert_true(dataset_check(&good->d, "set.npz", &e));
    free(good);
    REFUSED(m->d.samples = 0, "0 samples");
    REFUSED(m->d.streams = 9, "9 streams");
    REFUSED(m->d.streams = -1, "streams");
    REFUSED((m->d.streams = 0, m->d.vector = (table){0}), "neither a stream nor a vector");
    REFUSED(m->d.label = NULL, "neither labels nor targets");
    REFUSED(m->d.time = NULL, "ends but samples no times");
    REFUSED(m->d.vector.rows = ROWS - 1, "vectors");
    REFUSED(m->d.vector.width = 7, "7 columns");
    REFUSED(m->d.vector.part[1].data = (const char *)halves + 1, "not aligned");
    REFUSED(m->d.stream[0].series.part[0].data = NULL, "part 1 of fast");
    REFUSED(m->d.stream[0].name = NULL, "lacks its name");
    REFUSED(m->d.stream[0].row = NULL, "lacks its name");
    REFUSED(m->d.stream[0].series.rows = INT64_MAX / 4, "part 1 of fast");
    REFUSED(m->d.stream[0].series.rows = (int64_t)INT32_MAX + 1, "rows");
    REFUSED(m->row[3] = ROWS, "sample 3 points");
    REFUSED(m->row[3] = -1, "sample 3 points");
    REFUSED(m->first[2] = 3, "sample 2 points");
    REFUSED(m->first[2] = -1, "sample 2 points");
    REFUSED(m->label[4] = 2, "label 2");
    REFUSED(m->label[4] = -1, "label -1");
    REFUSED(m->time[2] = 99, "sample 2 is earlier");
    REFUSED(m->end[1] = 99, "label of sample 1 ends before");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_read_as_one_table),
        cmocka_unit_test(owners_are_asked_once),
        cmocka_unit_test(blocks_are_cut_aligned),
        cmocka_unit_test(bytes_count_what_is_there),
        cmocka_unit_test(nonsense_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
