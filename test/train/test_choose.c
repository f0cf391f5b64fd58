// The planner as a chooser: what it accepts fits, a smaller limit never gives a faster plan, the smallest limit that it
// names is taken and a megabyte less is not, all of it within a second; and whatever it chooses, a step has the same
// gradient.
#include "cpu/cpu.h"
#include "support.h"
#include "train/choose.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

// A job in both places, on a device that is the CPU or (`card`) has memory of its own.
typedef struct {
    rig r;
    job far;
    chooser c;
    bool card;
} bench;

static device own_memory;

static void bench_open(bench *b, bool card, const char *keys) {
    own_memory = cpu_device;
    own_memory.host_memory = false;
    rig_open(&b->r, &cpu_device, 1, keys);
    settings s = b->r.settings;
    s.residency = RESIDENCY_HOST;
    job_init(&b->far, b->r.data, &b->r.split, &s, &b->r.model, b->r.window, b->r.scaler, PRECISION_FP32);
    b->card = card;
    b->c = (chooser){.near = &b->r.job,
        .far = card ? &b->far : NULL,
        .settings = &b->r.settings,
        .split = &b->r.split,
        .device = card ? &own_memory : &cpu_device,
        .queue = b->r.queue};
}

static void bench_close(bench *b) {
    job_done(&b->far);
    rig_close(&b->r);
}

enum { BASE = 100000000, ALLOWANCE = 1 << 20 };

static budget limit_of(const bench *b, size_t limit) {
    size_t over = BASE + ALLOWANCE;
    return (budget){.host = !b->card,
        .limited = true,
        .counted = true,
        .limit = limit,
        .base = BASE,
        .allowance = ALLOWANCE,
        .free = (size_t)1 << 40,
        .slab = limit > over ? limit - over : 0};
}

static const char *const jobs[] = {
    "model.kind=lstm model.layers=3 train.batch_size=4096 gpu_optimization.dynamic_batch_sizing=true",
    "model.kind=transformer model.heads=4 model.hidden.fast=32 model.hidden.slow=16 model.layers=6 "
    "train.batch_size=1000 gpu_optimization.gradient_accumulation_steps=6 gpu_optimization.dynamic_batch_sizing=true",
    "model.kind=mlp train.batch_size=8192 gpu_optimization.gradient_accumulation_steps=auto",
    "model.kind=nbeats model.blocks=8 train.batch_size=5040 gpu_optimization.dynamic_batch_sizing=true",
    "model.kind=nbeats model.blocks=8 train.batch_size=512 gpu_optimization.gradient_accumulation_steps=4",
    "model.kind=transformer model.heads=4 model.hidden.fast=32 model.hidden.slow=16 train.batch_size=512 "
    "gpu_optimization.recompute=2 gpu_optimization.dynamic_batch_sizing=true",
    "model.kind=transformer model.heads=4 model.hidden.fast=32 model.hidden.slow=16 train.batch_size=512 "
    "gpu_optimization.recompute=off gpu_optimization.dynamic_batch_sizing=true",
    "data.synthetic.bars=60000 model.kind=transformer model.heads=2 model.hidden.fast=8 model.hidden.slow=8 "
    "train.batch_size=512 gpu_optimization.dynamic_batch_sizing=true",
};
enum { JOBS = sizeof jobs / sizeof *jobs };

static void same_way(const way *a, const way *b) {
    assert_true(a->host == b->host && a->batch == b->batch && a->parts == b->parts && a->again == b->again);
    assert_true(a->seconds == b->seconds);
}

static void check_way(const bench *b, const choice *c, const budget *limit) {
    const settings *s = &b->r.settings;
    const way *w = &c->best;
    demand n = choose_demand(&b->c, w);
    assert_int_equal(w->batch * w->parts, s->batch_size * s->accumulation);
    assert_true(s->split_open || w->parts == s->accumulation);
    assert_true(s->recompute == RECOMPUTE_AUTO || w->again == s->recompute);
    assert_int_equal(c->fits, budget_takes(limit, &n));
    assert_true(!c->fits || budget_least(limit, &n) <= limit->limit);
    assert_true(w->seconds <= 2 * c->fastest.seconds);
}

// From plenty down to nothing, by way of plans that are split, recomputed and streamed.
static void smaller_limits_are_never_faster(void **state) {
    (void)state;
    int split = 0, again = 0, streamed = 0, all_three = 0;
    for (int k = 0; k < 2 * JOBS; k++) {
        bench b;
        bench_open(&b, k % 2, jobs[k / 2]);
        budget all = limit_of(&b, (size_t)1 << 39);
        choice before = choose_way(&b.c, &all);
        assert_true(before.fits);
        same_way(&before.best, &before.fastest);
        demand whole = choose_demand(&b.c, &before.best);
        bool refused = false;
        for (double share = 1.01; share > 0.001; share *= 0.9) {
            budget limit = limit_of(&b, BASE + ALLOWANCE + (size_t)(share * (double)budget_need(&all, &whole)));
            choice now = choose_way(&b.c, &limit);
            check_way(&b, &now, &limit);
            assert_true(!(refused && now.fits));
            assert_true(!now.fits || now.best.seconds >= before.best.seconds);
            refused = !now.fits;
            if (!now.fits) continue;
            bool is_split = now.best.parts > b.r.settings.accumulation;
            split += is_split;
            again += now.best.again > b.r.settings.again;
            streamed += now.best.host;
            all_three += is_split && now.best.again && now.best.host;
            before = now;
        }
        assert_true(refused);
        bench_close(&b);
    }
    print_message("%d plans split, %d recomputed, %d streamed, %d all three\n", split, again, streamed, all_three);
    assert_true(split > 5 && again > 5 && streamed > 5);
}

static void the_smallest_limit_is_taken(void **state) {
    (void)state;
    for (int k = 0; k < 2 * JOBS; k++) {
        bench b;
        bench_open(&b, k % 2, jobs[k / 2]);
        budget none = limit_of(&b, 1000);
        choice c = choose_way(&b.c, &none);
        assert_false(c.fits);
        way w = choose_least(&b.c, &none);
        same_way(&c.best, &w);
        demand n = choose_demand(&b.c, &w);
        budget all = limit_of(&b, (size_t)1 << 39);
        way again = choose_least(&b.c, &all);
        same_way(&again, &w);
        all.limited = false; // the same is named where no limit is set
        again = choose_least(&b.c, &all);
        same_way(&again, &w);
        budget least = limit_of(&b, budget_least(&none, &n)), less = limit_of(&b, budget_least(&none, &n) - 1000000);
        assert_true(choose_way(&b.c, &least).fits);
        assert_false(choose_way(&b.c, &less).fits);
        bench_close(&b);
    }
}

// All ways of a job whose splits are powers of two: none is left out.
enum { WAYS_MOST = 2 * 16 * 8 };

typedef struct {
    way w;
    size_t need;
} measured;

static int list_ways(const bench *b, measured *list) {
    const settings *s = &b->r.settings;
    int64_t effective = s->batch_size * s->accumulation;
    int n = 0, segments = graph_segments(b->r.job.g);
    for (int host = 0; host <= b->card; host++)
        for (int again = 0; again < segments; again++)
            for (int64_t parts = 1; parts <= effective; parts *= 2) {
                assert_true(n < WAYS_MOST);
                way w = {.host = host, .batch = effective / parts, .parts = parts, .again = again};
                w.seconds = choose_seconds(&b->c, &w);
                budget unused = limit_of(b, 0);
                demand d = choose_demand(&b->c, &w);
                list[n++] = (measured){w, budget_need(&unused, &d)};
            }
    return n;
}

// A card's plan may take more where more is recomputed, and with more parts: the choice is the fastest of all that
// fit nevertheless, and the least is the least.
static void what_is_chosen_is_the_best_of_all(void **state) {
    (void)state;
    static const char *const models[] = {
        "train.batch_size=512 data.synthetic.bars=60000 model.kind=transformer model.heads=2 model.hidden.fast=8",
        "train.batch_size=4096 model.kind=transformer model.heads=4 model.hidden.fast=32 model.hidden.slow=16",
        "model.kind=lstm model.layers=3 train.batch_size=4096",
        "model.kind=nbeats model.blocks=8 train.batch_size=512"};
    static measured list[WAYS_MOST];
    int rising = 0;
    for (size_t m = 0; m < sizeof models / sizeof *models; m++) {
        bench b;
        char keys[300];
        snprintf(keys, sizeof keys, "%s gpu_optimization.dynamic_batch_sizing=true", models[m]);
        bench_open(&b, true, keys);
        int n = list_ways(&b, list);
        size_t least = SIZE_MAX;
        for (int i = 0; i < n; i++) rising += i && list[i].w.parts > 1 && list[i].need > list[i - 1].need;
        for (int at = 0; at < n; at += 5) {
            budget limit = limit_of(&b, BASE + ALLOWANCE + list[at].need);
            choice c = choose_way(&b.c, &limit);
            double best = INFINITY;
            for (int i = 0; i < n; i++) {
                if (list[i].w.seconds > 2 * c.fastest.seconds) continue;
                if (list[i].need < least) least = list[i].need;
                if (list[i].need <= list[at].need) best = fmin(best, list[i].w.seconds);
            }
            assert_int_equal(c.fits, isfinite(best));
            if (c.fits) assert_true(c.best.seconds == best);
        }
        budget none = limit_of(&b, 1000);
        way w = choose_least(&b.c, &none);
        demand d = choose_demand(&b.c, &w);
        assert_int_equal(budget_need(&none, &d), least);
        bench_close(&b);
    }
    print_message("%d splits take more than those with fewer parts\n", rising);
    assert_true(rising > 10);
}

// A run that goes on keeps its split.
static void a_split_that_is_there_is_kept(void **state) {
    (void)state;
    bench b;
    bench_open(&b, false, jobs[0]);
    b.c.parts = 64;
    budget all = limit_of(&b, (size_t)1 << 39);
    choice c = choose_way(&b.c, &all);
    assert_int_equal(c.best.parts, 64);
    assert_int_equal(c.best.batch, 64);
    bench_close(&b);
}

// A prime has no split but the rows themselves; a batch of one has none.
static void odd_batches_are_split_as_they_can_be(void **state) {
    (void)state;
    static const char *const sizes[] = {"model.kind=mlp train.batch_size=9999991", "model.kind=mlp train.batch_size=1"};
    for (int i = 0; i < 2; i++) {
        bench b;
        char keys[200];
        snprintf(keys, sizeof keys, "%s gpu_optimization.dynamic_batch_sizing=true", sizes[i]);
        bench_open(&b, false, keys);
        budget none = limit_of(&b, 1000);
        assert_int_equal(choose_least(&b.c, &none).parts, 1);
        bench_close(&b);
    }
}

static void data_larger_than_the_card_are_streamed(void **state) {
    (void)state;
    bench b;
    bench_open(&b, true, "data.synthetic.bars=60000 train.batch_size=64 model.hidden.fast=4 model.hidden.slow=4");
    way near = {.batch = 64, .parts = 1};
    size_t data = choose_memory(&b.c, &near).data;
    budget limit = limit_of(&b, BASE + ALLOWANCE + data - 1);
    limit.free = data - 1;
    choice c = choose_way(&b.c, &limit);
    assert_true(c.fits && c.best.host && c.fastest.host);
    limit.limited = false;
    assert_true(choose_way(&b.c, &limit).best.host);
    // Ring and copies have a limit of their own.
    demand n = choose_demand(&b.c, &c.best);
    limit.host_limit = n.ring + n.copies;
    assert_true(choose_way(&b.c, &limit).fits);
    limit.host_limit--;
    assert_false(choose_way(&b.c, &limit).fits);
    bench_close(&b);
}

static void the_largest_batch_fits(void **state) {
    (void)state;
    bench b;
    bench_open(&b, false, jobs[1]);
    budget limit = limit_of(&b, BASE + ALLOWANCE + 50000000);
    int64_t kept = choose_largest(&b.c, &limit, false, false), made = choose_largest(&b.c, &limit, false, true);
    assert_true(kept > 1 && made > kept);
    for (int i = 0; i < 2; i++) {
        way w = {.batch = kept + i, .parts = 1};
        demand n = choose_demand(&b.c, &w);
        assert_int_equal(budget_takes(&limit, &n), i == 0);
    }
    budget none = limit_of(&b, 1000);
    assert_int_equal(choose_largest(&b.c, &none, false, true), 0);
    bench_close(&b);
}

// A refusal comes at once, and so does the choice of the worst case.
static void choosing_takes_no_second(void **state) {
    (void)state;
    bench b;
    bench_open(&b, true,
        "model.kind=nbeats model.blocks=30 train.batch_size=65536 gpu_optimization.dynamic_batch_sizing=true");
    budget all = limit_of(&b, (size_t)1 << 39), none = limit_of(&b, 1000);
    demand whole = choose_demand(&b.c, &(way){.batch = 65536, .parts = 1});
    double began = support_seconds();
    choice refused = choose_way(&b.c, &none);
    double refusal = support_seconds() - began, longest = 0;
    int looks = 0;
    assert_false(refused.fits);
    for (double share = 0.9; share > 0.01; share *= 0.7) {
        budget limit = limit_of(&b, BASE + ALLOWANCE + (size_t)(share * (double)budget_need(&all, &whole)));
        began = support_seconds();
        choice c = choose_way(&b.c, &limit);
        if (support_seconds() - began > longest) longest = support_seconds() - began;
        if (c.looks > looks) looks = c.looks;
    }
    print_message("refused in %.0f ms after %d plans; chosen in %.0f ms after %d at most\n", refusal * 1e3,
        refused.looks, longest * 1e3, looks);
    assert_true(refused.looks <= 40 && looks <= 60);
    if (!support_sanitized()) assert_true(refusal < 1 && longest < 1.5);
    bench_close(&b);
}

// The gradient of the first step, of an effective batch that is split and recomputed in the way given.
static float *gradient_of(const char *keys, const way *w, int64_t *count) {
    err e;
    rig r;
    char text[600];
    snprintf(text, sizeof text,
        "%s train.batch_size=%lld gpu_optimization.gradient_accumulation_steps=%lld gpu_optimization.recompute=%d "
        "data.residency=%s",
        keys, (long long)w->batch, (long long)w->parts, w->again, w->host ? "host" : "device");
    rig_open(&r, &cpu_device, 1, text);
    trainer *t = rig_trainer(&r);
    solo_step place = {.seed = 3, .first = 5, .count = 900, .epoch = 1, .shuffle = 1, .lr = 1e-3f};
    loader_options o = job_loader(&r.job, &r.settings, false);
    o.seed = 3;
    loader *l = w->host ? loader_new(r.data, &o, &e) : NULL;
    if (l) loader_seek(l, &(loader_range){part_of((span){5, 900}), true, 1, 0});
    support_ok(support_step_write(t, &place, &e), &e);
    for (int64_t i = 0; i < w->parts; i++) {
        loader_batch batch;
        if (l) support_ok(loader_next(l, &batch) && feed_next(engine_feed(trainer_engine(t)), batch.block, &e), &e);
        support_ok(support_play(t, i ? PASS_NEXT : PASS_FIRST, &e), &e);
    }
    *count = graph_slab_elements(r.job.g);
    float *gradient = malloc((size_t)*count * sizeof *gradient);
    assert_non_null(gradient);
    support_ok(support_read(t, graph_slab(r.job.g, SLAB_GRADIENTS), gradient, &e), &e);
    loader_free(l);
    trainer_free(t);
    rig_close(&r);
    return gradient;
}

// fp32 rounds a sum of 48 rows differently in another order: some 1e-7 of the gradient's norm. What is recomputed
// and where the data lie change no bit.
static void every_plan_has_the_same_gradient(void **state) {
    (void)state;
    static const char *const models[] = {"model.kind=lstm model.layers=2",
        "model.kind=transformer model.heads=2 model.hidden.fast=16 model.hidden.slow=8 model.layers=3",
        "model.kind=nbeats model.blocks=4 model.width=32"};
    static const way ways[] = {{.batch = 48, .parts = 1}, {.batch = 48, .parts = 1, .again = 1},
        {.host = true, .batch = 48, .parts = 1, .again = 2}, {.batch = 24, .parts = 2},
        {.host = true, .batch = 16, .parts = 3, .again = 1}, {.batch = 3, .parts = 16, .again = 2}};
    for (size_t m = 0; m < sizeof models / sizeof *models; m++) {
        int64_t count, same;
        float *whole = gradient_of(models[m], &ways[0], &count);
        for (size_t i = 1; i < sizeof ways / sizeof *ways; i++) {
            float *other = gradient_of(models[m], &ways[i], &same);
            double difference = 0, norm = 0;
            assert_int_equal(count, same);
            for (int64_t k = 0; k < count; k++) {
                difference += pow((double)whole[k] - (double)other[k], 2);
                norm += pow((double)whole[k], 2);
            }
            assert_true(norm > 0 && sqrt(difference) <= 1e-6 * sqrt(norm));
            if (ways[i].parts == 1) assert_memory_equal(whole, other, (size_t)count * sizeof *whole);
            free(other);
        }
        free(whole);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(smaller_limits_are_never_faster),
        cmocka_unit_test(the_smallest_limit_is_taken),
        cmocka_unit_test(what_is_chosen_is_the_best_of_all),
        cmocka_unit_test(a_split_that_is_there_is_kept),
        cmocka_unit_test(odd_batches_are_split_as_they_can_be),
        cmocka_unit_test(data_larger_than_the_card_are_streamed),
        cmocka_unit_test(the_largest_batch_fits),
        cmocka_unit_test(choosing_takes_no_second),
        cmocka_unit_test(every_plan_has_the_same_gradient),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
