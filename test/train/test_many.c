// Several runs in one process: one space, one copy of the data, a queue and a thread for each; the bytes that were
// predicted, in one allocation; the weights of each run alone; and places that jobs come to and leave.
#include "cpu/cpu.h"
#include "support.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SMALL                                                                                                          \
    "data.synthetic.bars=1500 data.windows.fast=10 data.windows.slow=5 model.kind=lstm model.hidden.fast=12 "          \
    "model.hidden.slow=6 train.batch_size=32 train.steps=20 train.epochs=9 train.class_weights=balanced "

enum { RUNS = 4, PLACES = 3, JOBS = 30 };

// The CPU with memory of its own: data are copied, as to a card. What is allocated is counted.

static atomic_size_t allocated;
static atomic_int allocations;

static void *count_allocation(queue *q, size_t bytes, err *e) {
    atomic_fetch_add(&allocated, bytes);
    atomic_fetch_add(&allocations, 1);
    return cpu_device.allocate(q, bytes, e);
}

// One dataset, jobs that differ by their seeds, and what each gives alone.
typedef struct {
    device d;
    rig r;
    settings settings[RUNS];
    job job[RUNS];
    queue *queue[RUNS];
    float *alone[RUNS];
    size_t weight_bytes;
} stage;

static float *weights_of(trainer *t) {
    err e;
    graph *g = trainer_job(t)->g;
    float *w = malloc((size_t)graph_slab_elements(g) * sizeof *w);
    if (w && !store_read(engine_store(trainer_engine(t)), g, graph_slab(g, SLAB_WEIGHTS), w, &e)) free(w), w = NULL;
    return w;
}

// To the end, a few steps at a time.
static float *run(trainer *t, int64_t steps) {
    err e;
    bool more = true;
    train_result result;
    while (more)
        if (!trainer_advance(t, steps, &(watcher){.arg = NULL}, &more, &e)) return NULL;
    return trainer_finish(t, &result, &e) ? weights_of(t) : NULL;
}

static void stage_open(stage *s) {
    err e;
    s->d = cpu_device;
    s->d.host_memory = false;
    s->d.allocate = count_allocation;
    rig_open(&s->r, &s->d, 1, SMALL);
    s->weight_bytes = (size_t)graph_slab_elements(s->r.job.g) * sizeof(float);
    for (int i = 0; i < RUNS; i++) {
        s->settings[i] = s->r.settings;
        s->settings[i].seed = 11 + (uint64_t)i;
        job_init(&s->job[i], s->r.data, &s->r.split, &s->settings[i], &s->r.model, s->r.window, NULL, PRECISION_FP32);
        s->queue[i] = s->d.open(&(queue_options){.threads = 1}, &e);
        support_ok(s->queue[i] != NULL, &e);
        trainer *t = trainer_new(&s->d, s->queue[i], &s->job[i], s->r.data, &s->r.split, &s->settings[i], &e);
        support_ok(t != NULL, &e);
        s->alone[i] = run(t, 1000);
        assert_non_null(s->alone[i]);
        if (i) assert_memory_not_equal(s->alone[i], s->alone[0], s->weight_bytes);
        trainer_free(t);
    }
    allocated = 0;
    allocations = 0;
}

static void stage_close(stage *s) {
    for (int i = 0; i < RUNS; i++) {
        free(s->alone[i]);
        job_done(&s->job[i]);
        s->d.close(s->queue[i]);
    }
    rig_close(&s->r);
}

static engine_memory memory_of(const stage *s) {
    return trainer_memory(&s->job[0], &s->r.split, &s->settings[0], &s->d, s->queue[0]);
}

static trainer *trainer_in(stage *s, int i, queue *q, space *in, store *data, err *e) {
    return trainer_new_in(&(trainer_place){&s->d, q, in, data}, &s->job[i], s->r.data, &s->r.split, &s->settings[i], e);
}

// Four runs at once

typedef struct {
    trainer *t;
    int64_t steps;
    float *weights;
} runner;

static void *run_one(void *arg) {
    runner *r = arg;
    r->weights = run(r->t, r->steps);
    return NULL;
}

static void four_runs_share_a_space(void **state) {
    (void)state;
    err e;
    static stage s;
    runner each[RUNS];
    pthread_t thread[RUNS];
    stage_open(&s);
    engine_memory m = memory_of(&s);
    size_t bytes = space_aligned(m.data) + RUNS * m.own;
    assert_true(m.data > 100000 && m.total == m.own + space_aligned(m.data));
    space *in = space_new(&s.d, s.queue[0], bytes, &e);
    support_ok(in != NULL, &e);
    store *data = engine_data(&s.job[0], false);
    support_ok(store_place(data, s.queue[0], in, &e), &e);
    for (int i = 0; i < RUNS; i++) {
        each[i] = (runner){trainer_in(&s, i, s.queue[i], in, data, &e), 1 + i, NULL};
        support_ok(each[i].t != NULL, &e);
    }
    assert_int_equal(space_used(in), bytes);
    for (int i = 0; i < RUNS; i++) assert_int_equal(pthread_create(&thread[i], NULL, run_one, &each[i]), 0);
    for (int i = 0; i < RUNS; i++) pthread_join(thread[i], NULL);
    for (int i = 0; i < RUNS; i++) {
        assert_non_null(each[i].weights);
        assert_memory_equal(each[i].weights, s.alone[i], s.weight_bytes);
        free(each[i].weights);
        trainer_free(each[i].t);
    }
    assert_int_equal(allocations, 1);
    assert_int_equal(allocated, bytes);
    assert_int_equal(space_most(in), bytes);
    store_free(data);
    space_free(in);
    stage_close(&s);
}

// Thirty jobs, three at a time

typedef struct {
    stage *s;
    space *in;
    store *data;
    int place;
    const void *known[PLACES]; // where weights lie, by place
    int failed, astray, different;
} place;

static const void *address_of(trainer *t) {
    graph *g = trainer_job(t)->g;
    return store_address(engine_store(trainer_engine(t)), g, graph_slab(g, SLAB_WEIGHTS));
}

static void run_job(place *p, int i) {
    err e;
    trainer *t = trainer_in(p->s, i, p->s->queue[p->place], p->in, p->data, &e);
    float *w = t ? run(t, 7) : NULL;
    bool known = false;
    for (int k = 0; t && k < PLACES; k++) known |= address_of(t) == p->known[k];
    p->failed += !w;
    p->astray += !known;
    p->different += w && memcmp(w, p->s->alone[i], p->s->weight_bytes) != 0;
    free(w);
    trainer_free(t);
}

static void *run_jobs(void *arg) {
    place *p = arg;
    for (int k = 0; k < JOBS / PLACES; k++) run_job(p, (k + p->place) % RUNS);
    return NULL;
}

// There is room for more than three, so that only rule keeps them to three places.
static void jobs_come_and_go(void **state) {
    (void)state;
    err e;
    static stage s;
    place each[PLACES], first = {.s = &s};
    pthread_t thread[PLACES];
    trainer *t[PLACES];
    stage_open(&s);
    engine_memory m = memory_of(&s);
    first.in = space_new(&s.d, s.queue[0], space_aligned(m.data) + 2 * PLACES * m.own, &e);
    support_ok(first.in != NULL, &e);
    first.data = engine_data(&s.job[0], false);
    support_ok(store_place(first.data, s.queue[0], first.in, &e), &e);
    for (int i = 0; i < PLACES; i++) {
        t[i] = trainer_in(&s, i, s.queue[i], first.in, first.data, &e);
        support_ok(t[i] != NULL, &e);
        first.known[i] = address_of(t[i]);
    }
    for (int i = 0; i < PLACES; i++) trainer_free(t[i]);
    assert_int_equal(space_most(first.in), space_aligned(m.data) + PLACES * m.own);
    for (int i = 0; i < PLACES; i++) {
        each[i] = first;
        each[i].place = i;
        assert_int_equal(pthread_create(&thread[i], NULL, run_jobs, &each[i]), 0);
    }
    for (int i = 0; i < PLACES; i++) {
        pthread_join(thread[i], NULL);
        assert_true(!each[i].failed && !each[i].astray && !each[i].different);
    }
    assert_int_equal(space_most(first.in), space_aligned(m.data) + PLACES * m.own);
    assert_int_equal(space_used(first.in), space_aligned(m.data));
    assert_int_equal(allocations, 1);
    store_free(first.data);
    space_free(first.in);
    stage_close(&s);
}

// Two jobs cannot take the same bytes: the one that does not fit is told so, and the others go on.
static void one_too_many_is_refused(void **state) {
    (void)state;
    err e;
    static stage s;
    stage_open(&s);
    engine_memory m = memory_of(&s);
    space *in = space_new(&s.d, s.queue[0], m.total + m.own - SPACE_ALIGN, &e);
    support_ok(in != NULL, &e);
    store *data = engine_data(&s.job[0], false);
    support_ok(store_place(data, s.queue[0], in, &e), &e);
    trainer *t = trainer_in(&s, 0, s.queue[0], in, data, &e);
    support_ok(t != NULL, &e);
    size_t used = space_used(in);
    assert_null(trainer_in(&s, 1, s.queue[1], in, data, &e));
    assert_int_equal(e.kind, ERR_RUN);
    assert_non_null(strstr(e.text, "an engine needs"));
    assert_int_equal(space_used(in), used);
    float *w = run(t, 5);
    assert_non_null(w);
    assert_memory_equal(w, s.alone[0], s.weight_bytes);
    free(w);
    trainer_free(t);
    store_free(data);
    space_free(in);
    stage_close(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(four_runs_share_a_space),
        cmocka_unit_test(jobs_come_and_go),
        cmocka_unit_test(one_too_many_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
