// A space: the lowest stretch that is large enough, addresses that repeat, reservations that never overlap, refusals
// with their figures, and spaces inside each other.
#include "graph/space.h"

#include "cpu/cpu.h"
#include "support.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { KB = 1024 };

typedef struct {
    device d;
    queue *q;
    space *s;
} stage;

static int allocations, releases;

static void *count_allocation(queue *q, size_t bytes, err *e) {
    allocations++;
    return cpu_device.allocate(q, bytes, e);
}

static void count_release(queue *q, void *memory, size_t bytes) {
    releases++;
    cpu_device.release(q, memory, bytes);
}

static void stage_open(stage *t, size_t bytes) {
    err e;
    *t = (stage){.d = cpu_device};
    t->d.allocate = count_allocation;
    t->d.release = count_release;
    allocations = releases = 0;
    t->q = cpu_device.open(&(queue_options){.threads = 1}, &e);
    support_ok(t->q != NULL, &e);
    t->s = space_new(&t->d, t->q, bytes, &e);
    support_ok(t->s != NULL, &e);
}

// The device's allocation is the only one, and is given back.
static void stage_close(stage *t) {
    space_free(t->s);
    cpu_device.close(t->q);
    assert_int_equal(allocations, 1);
    assert_int_equal(releases, 1);
}

static unsigned char *taken(space *s, size_t bytes) {
    err e;
    void *at = space_take(s, "a piece", bytes, &e);
    support_ok(at != NULL, &e);
    assert_int_equal((uintptr_t)at % SPACE_ALIGN, 0);
    return at;
}

static void the_lowest_stretch_is_taken(void **state) {
    (void)state;
    stage t;
    stage_open(&t, 16 * KB);
    unsigned char *a = taken(t.s, 4 * KB), *b = taken(t.s, 1), *c = taken(t.s, 2 * KB), *d = taken(t.s, 513);
    assert_true(b == a + 4 * KB && c == b + SPACE_ALIGN && d == c + 2 * KB);
    assert_int_equal(space_used(t.s), 4 * KB + SPACE_ALIGN + 2 * KB + 2 * SPACE_ALIGN);
    space_give(t.s, a);
    space_give(t.s, c);
    assert_ptr_equal(taken(t.s, 4 * KB - 600), a);              // the lowest, though the other is nearer in size
    assert_ptr_equal(taken(t.s, KB), c);                        // 512 bytes behind the first are too few
    assert_ptr_equal(taken(t.s, SPACE_ALIGN), b - SPACE_ALIGN); // and are taken by what fits
    assert_int_equal(space_most(t.s), space_used(t.s) + KB);
    space_give(t.s, a);
    space_give(t.s, b - SPACE_ALIGN);
    space_give(t.s, b);
    space_give(t.s, c);
    space_give(t.s, d);
    space_give(t.s, NULL);
    assert_int_equal(space_used(t.s), 0);
    stage_close(&t);
}

// The same reservations in the same order, whatever was there before.
static void addresses_repeat(void **state) {
    (void)state;
    enum { PIECES = 12 };
    stage t;
    stage_open(&t, 256 * KB);
    unsigned char *first[PIECES];
    for (int round = 0; round < 5; round++) {
        unsigned char *now[PIECES];
        for (int i = 0; i < PIECES; i++) now[i] = taken(t.s, (size_t)(1 + i * 977 % 4000));
        if (round == 0) memcpy(first, now, sizeof first);
        assert_memory_equal(now, first, sizeof first);
        for (int i = 0; i < PIECES; i++) space_give(t.s, now[(i * 5 + round) % PIECES]); // in another order each time
    }
    stage_close(&t);
}

typedef struct {
    unsigned char *at;
    size_t bytes;
    unsigned char mark;
} piece;

static void check_marks(const piece *p) {
    for (size_t k = 0; k < p->bytes; k++) assert_int_equal(p->at[k], p->mark);
}

// Every piece is filled with bytes of its own, which are still there when it is given back.
static void pieces_never_overlap(void **state) {
    (void)state;
    enum { PIECES = 40, TURNS = 4000 };
    stage t;
    stage_open(&t, 64 * KB);
    piece p[PIECES] = {0};
    dice d = {.seed = 4};
    int refused = 0;
    size_t used = 0;
    for (int turn = 0; turn < TURNS; turn++) {
        err e;
        piece *x = &p[dice_below(&d, PIECES)];
        if (x->at) {
            check_marks(x);
            space_give(t.s, x->at);
            used -= space_aligned(x->bytes);
            *x = (piece){0};
        } else {
            *x = (piece){.bytes = 1 + dice_below(&d, 5 * KB), .mark = (unsigned char)(1 + turn % 255)};
            x->at = space_take(t.s, "a piece", x->bytes, &e);
            refused += !x->at;
            if (x->at) memset(x->at, x->mark, x->bytes), used += space_aligned(x->bytes);
        }
        assert_int_equal(space_used(t.s), used);
    }
    assert_true(refused > TURNS / 100 && space_most(t.s) <= space_bytes(t.s));
    for (int i = 0; i < PIECES; i++) space_give(t.s, p[i].at);
    stage_close(&t);
}

static void refusals_have_figures(void **state) {
    (void)state;
    err e;
    stage t;
    stage_open(&t, 10000000);
    assert_int_equal(space_bytes(t.s), space_aligned(10000000));
    unsigned char *a = taken(t.s, 7000000);
    assert_null(space_take(t.s, "a second job", 4000000, &e));
    assert_int_equal(e.kind, ERR_RUN);
    assert_string_equal(e.text, "a second job needs 4.0 MB, and of 10.0 MB planned in all 7.0 MB are taken");
    assert_int_equal(space_used(t.s), space_aligned(7000000));
    unsigned char *rest = taken(t.s, space_bytes(t.s) - space_used(t.s)); // to the last byte
    assert_null(space_take(t.s, "one byte", 1, &e));
    space_give(t.s, rest);
    space_give(t.s, a);
    stage_close(&t);
}

static void no_space_without_memory(void **state) {
    (void)state;
    err e;
    queue *q = cpu_device.open(&(queue_options){.threads = 1}, &e);
    support_ok(q != NULL, &e);
    assert_null(space_new(&cpu_device, q, (size_t)1 << 60, &e));
    assert_int_equal(e.kind, ERR_RUN);
    cpu_device.close(q);
}

// A space of its own inside a reservation: it takes that as a whole and no byte beside it.
static void spaces_lie_within_spaces(void **state) {
    (void)state;
    err e;
    stage t;
    stage_open(&t, 32 * KB);
    unsigned char *before = taken(t.s, KB);
    space *in = space_within(t.s, "an engine", 8 * KB - 100, &e);
    support_ok(in != NULL, &e);
    assert_int_equal(space_bytes(in), 8 * KB);
    assert_int_equal(space_used(t.s), 9 * KB);
    assert_ptr_equal(space_device(in), &t.d);
    unsigned char *a = taken(in, 8 * KB), *after = taken(t.s, KB);
    assert_true(a == before + KB && after == a + 8 * KB);
    assert_null(space_take(in, "one more", 1, &e));
    assert_null(space_within(t.s, "a large one", 100 * KB, &e));
    assert_non_null(strstr(e.text, "a large one needs"));
    space_give(in, a);
    assert_int_equal(space_used(t.s), 10 * KB); // the whole stays while its parts come and go
    space_free(in);
    assert_int_equal(space_used(t.s), 2 * KB);
    space_give(t.s, before);
    space_give(t.s, after);
    stage_close(&t);
}

// Several threads

typedef struct {
    space *s;
    uint64_t seed;
    int clashes;
} user;

static void *use(void *arg) {
    user *u = arg;
    dice d = {.seed = u->seed};
    for (int turn = 0; turn < 2000; turn++) {
        err e;
        size_t bytes = 1 + dice_below(&d, 2 * KB);
        unsigned char *at = space_take(u->s, "a thread's", bytes, &e);
        if (!at) continue;
        memset(at, (int)u->seed, bytes);
        for (size_t k = 0; k < bytes; k++) u->clashes += at[k] != u->seed;
        space_give(u->s, at);
    }
    return NULL;
}

static void threads_share_a_space(void **state) {
    (void)state;
    enum { THREADS = 4 };
    stage t;
    stage_open(&t, 6 * KB);
    pthread_t thread[THREADS];
    user u[THREADS];
    for (int i = 0; i < THREADS; i++) {
        u[i] = (user){t.s, (uint64_t)(i + 1), 0};
        assert_int_equal(pthread_create(&thread[i], NULL, use, &u[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
        assert_int_equal(u[i].clashes, 0);
    }
    assert_int_equal(space_used(t.s), 0);
    stage_close(&t);
}

// Mistakes

static void give_twice(void) {
    stage t;
    stage_open(&t, KB);
    void *at = taken(t.s, 1);
    space_give(t.s, at);
    space_give(t.s, at);
}

static void end_too_early(void) {
    stage t;
    stage_open(&t, KB);
    taken(t.s, 1);
    space_free(t.s);
}

static void take_nothing(void) {
    err e;
    stage t;
    stage_open(&t, KB);
    space_take(t.s, "nothing", 0, &e);
}

static void mistakes_stop_the_program(void **state) {
    (void)state;
    support_aborts(give_twice, "memory that is not reserved is given back");
    support_aborts(end_too_early, "a space ends while a piece is reserved in it");
    support_aborts(take_nothing, "a reservation of no bytes for nothing");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_lowest_stretch_is_taken),
        cmocka_unit_test(addresses_repeat),
        cmocka_unit_test(pieces_never_overlap),
        cmocka_unit_test(refusals_have_figures),
        cmocka_unit_test(no_space_without_memory),
        cmocka_unit_test(spaces_lie_within_spaces),
        cmocka_unit_test(threads_share_a_space),
        cmocka_unit_test(mistakes_stop_the_program),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
