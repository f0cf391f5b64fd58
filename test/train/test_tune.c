// Tuning: which sizes are candidates, the rule that picks the winner, and the sweep itself: that a step is timed
// without what the trainer does between epochs, that time and memory are kept to, that a stop leaves a table, and that
// the winner is tried with other products and threads.
//
// Runs in: test-long
#include "cpu/cpu.h"
#include "ops/ops.h"
#include "slow.h"
#include "support.h"
#include "train/tune.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

// Candidates

static void candidates_are_powers_and_what_lies_between(void **state) {
    (void)state;
    static const int64_t expected[] = {256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384};
    int64_t list[TUNE_BATCHES_MOST];
    assert_int_equal(tune_batches(256, 16384, list, TUNE_BATCHES_MOST), 13);
    assert_memory_equal(list, expected, sizeof expected);
    assert_int_equal(tune_batches(300, 800, list, TUNE_BATCHES_MOST), 3);
    assert_true(list[0] == 384 && list[1] == 512 && list[2] == 768);
    assert_int_equal(tune_batches(1, 4, list, TUNE_BATCHES_MOST), 4); // 1 2 3 4
    assert_int_equal(tune_batches(5, 5, list, TUNE_BATCHES_MOST), 0);
    assert_int_equal(tune_batches(1, 10000000, list, 5), 5);
    assert_int_equal(list[4], 6);
}

// The choice

static void add(tune_result *r, int64_t batch, precision p, bool usual, double rate) {
    tune_row *row = &r->row[r->rows++];
    *row = (tune_row){.batch = batch, .precision = p, .usual = usual, .samples_per_s = rate};
    row->seconds = rate > 0 ? (double)batch / rate : 0;
}

static void choose(tune_result *r, double noise, int64_t knee, int64_t winner) {
    r->later = (noise_scale){.measured = true, .known = noise > 0, .scale = noise};
    r->steps = TUNE_LEARNT;
    tune_choose(r, 0.85);
    assert_int_equal(r->row[r->knee].batch, knee);
    assert_int_equal(r->row[r->winner].batch, winner);
    assert_int_equal(r->capped, winner < knee);
}

static void the_winner_is_the_knee_or_what_noise_allows(void **state) {
    (void)state;
    tune_result r = {0};
    add(&r, 256, PRECISION_FP32, true, 40);
    add(&r, 512, PRECISION_FP32, true, 70);
    add(&r, 1024, PRECISION_FP32, true, 86);
    add(&r, 2048, PRECISION_FP32, true, 84); // the smallest that is enough counts, whatever comes behind it
    add(&r, 4096, PRECISION_FP32, true, 100);
    add(&r, 8192, PRECISION_FP32, true, 0); // was not measured
    choose(&r, 0, 1024, 1024);
    assert_int_equal(r.best, 4);
    assert_float_equal(r.row[0].share, 0.4, 1e-12);
    assert_float_equal(r.row[4].share, 1, 1e-12);
    choose(&r, 100000, 1024, 1024); // no candidate is that large
    choose(&r, 1024, 1024, 1024);
    choose(&r, 1023, 1024, 1024);
    choose(&r, 512, 1024, 512);
    choose(&r, 300, 1024, 512); // the first at or above it
    choose(&r, 10, 1024, 256);
    r.steps = TUNE_LEARNT - 1; // too early to say
    tune_choose(&r, 0.85);
    assert_true(!r.capped && r.row[r.winner].batch == 1024);
    tune_choose(&r, 1);
    assert_int_equal(r.row[r.knee].batch, 4096);
    tune_result none = {0};
    add(&none, 256, PRECISION_FP32, true, 0);
    tune_choose(&none, 0.85);
    assert_true(none.best < 0 && none.knee < 0 && none.winner < 0);
}

// Another precision has to be faster by more than a little; of two ways the faster counts.
static void another_precision_has_to_pay(void **state) {
    (void)state;
    tune_result r = {0};
    add(&r, 512, PRECISION_BF16, true, 100);
    add(&r, 512, PRECISION_BF16, true, 102); // split in another way
    add(&r, 512, PRECISION_FP16, false, 106);
    add(&r, 512, PRECISION_FP32, false, 50);
    add(&r, 1024, PRECISION_FP16, false, 90);
    assert_int_equal(tune_best_of(&r, 512), 1);
    assert_int_equal(tune_best_of(&r, 1024), 4);
    assert_int_equal(tune_best_of(&r, 2048), -1);
    choose(&r, 0, 512, 512);
    assert_int_equal(r.winner, 1);
    assert_float_equal(r.row[2].share, 106.0 / 102, 1e-12);
    r.row[2].samples_per_s = 120;
    choose(&r, 0, 512, 512);
    assert_int_equal(r.winner, 2);
}

static void has_rate(tune_trial *t, double rate, double slowest) {
    *t = (tune_trial){.seconds = 1 / rate, .slowest = 1 / slowest, .samples_per_s = rate};
}

// A trial of the winner has to be faster by 2 % each time, whatever else was tried and whether it was measured.
static void a_trial_has_to_pay(void **state) {
    (void)state;
    tune_result r = {.trials = 3};
    has_rate(&r.trial[0], 1000, 500);
    has_rate(&r.trial[1], 1019, 1019);
    tune_take(&r);
    assert_int_equal(r.taken, 0);
    has_rate(&r.trial[1], 1021, 1021);
    tune_take(&r);
    assert_int_equal(r.taken, 1);
    has_rate(&r.trial[2], 1100, 1050);
    tune_take(&r);
    assert_int_equal(r.taken, 2);
    has_rate(&r.trial[2], 1100, 1010);
    tune_take(&r);
    assert_int_equal(r.taken, 1);
    r.trials = 0;
    tune_take(&r);
    assert_int_equal(r.taken, 0);
}

// The sweep

static const char keys[] = "model.kind=mlp model.widths=16 model.dropout=0 data.windows.fast=4 data.windows.slow=2 "
                           "data.synthetic.bars=3000 gpu_optimization.dynamic_batch_sizing=true ";

typedef struct {
    int calls;
    int64_t stop_at; // says stop when this batch is measured; 0: never
} told;

static bool on_progress(void *arg, const tune_row *at, double share) {
    told *t = arg;
    assert_true(share >= 0 && share <= 1);
    t->calls++;
    return !at || !t->stop_at || at->batch < t->stop_at;
}

static budget plenty(void) {
    return (budget){.host = true, .counted = true, .base = 1000, .free = (size_t)1 << 40, .slab = (size_t)1 << 40};
}

// Seconds for what takes so many on a plain build.
static double enough(double seconds) {
    return support_sanitized() ? 3 * seconds : seconds;
}

static tune_task task_of(rig *r, const device *d, const budget *b, told *t, double seconds) {
    return (tune_task){.device = d,
        .queue = r->queue,
        .data = r->data,
        .split = &r->split,
        .described = &r->settings,
        .budget = b,
        .jobs = {{PRECISION_FP32, &r->job, NULL}},
        .precisions = 1,
        .seconds = seconds,
        .target = 0.85,
        .on_progress = on_progress,
        .arg = t};
}

// Findings of a task; the caller frees them.
static tune_result *found_by(const tune_task *task) {
    err e = {0};
    tune_result *found = malloc(sizeof *found);
    assert_non_null(found);
    support_ok(tune_run(task, found, &e), &e);
    return found;
}

static void a_sweep_fills_the_table(void **state) {
    (void)state;
    rig r;
    told t = {0};
    rig_open(&r, &cpu_device, 2, keys);
    budget b = plenty();
    tune_task task = task_of(&r, r.device, &b, &t, enough(6));
    task.batches = tune_batches(16, 128, task.batch, TUNE_BATCHES_MOST);
    double began = support_seconds();
    tune_result *found = found_by(&task);
    double took = support_seconds() - began;
    assert_int_equal(found->rows, task.batches);
    assert_true(found->winner >= 0 && found->knee >= 0 && found->best >= 0 && !found->interrupted);
    assert_true(found->steps > 0 && t.calls > task.batches);
    for (int i = 0; i < found->rows; i++) {
        const tune_row *row = &found->row[i];
        assert_int_equal(row->batch, task.batch[i]);
        assert_true(row->seconds > 0 && row->share > 0 && row->share <= 1 && !row->why[0]);
        assert_float_equal(row->samples_per_s * row->seconds, (double)row->batch, 1e-6 * (double)row->batch);
        int64_t steps = (r.split.train.count + row->batch - 1) / row->batch;
        assert_float_equal(row->epoch_s, row->seconds * (double)steps, 1e-6 * row->epoch_s);
        assert_true(row->bytes > 1000);
    }
    print_message("%.1f s; noise scale %.0f, then %.0f after %lld steps\n", took, found->start.scale,
        found->later.scale, (long long)found->steps);
    assert_true(support_sanitized() || took < 9);
    assert_true(found->start.measured && found->later.measured);
    free(found);
    rig_close(&r);
}

// A CPU that notes what is read and written of the size of the weights, by a hash.
typedef struct {
    size_t bytes;
    uint64_t initial;      // the first that were written
    uint64_t read;         // the last that were read,
    uint64_t before, back; // those before the first others were written, and these
    uint64_t last;         // the last others that were written
} seen_weights;

static seen_weights seen;

static uint64_t hash_of(const void *data, size_t bytes) {
    uint64_t h = 14695981039346656037u;
    for (size_t i = 0; i < bytes; i++) h = (h ^ ((const unsigned char *)data)[i]) * 1099511628211u;
    return h;
}

static bool note_read(queue *q, void *to, const void *from, size_t bytes, err *e) {
    if (!cpu_device.read(q, to, from, bytes, e)) return false;
    if (bytes == seen.bytes) seen.read = hash_of(to, bytes);
    return true;
}

static bool note_write(queue *q, void *to, const void *from, size_t bytes, err *e) {
    uint64_t hash = bytes == seen.bytes ? hash_of(from, bytes) : 0;
    if (hash && !seen.initial) seen.initial = hash;
    if (hash && hash != seen.initial) {
        if (!seen.back) {
            seen.before = seen.read;
            seen.back = hash;
        }
        seen.last = hash;
    }
    return cpu_device.write(q, to, from, bytes, e);
}

// A trainer ends by writing its best epoch's weights back. The later noise scale is that of the last step's.
static void the_noise_scale_is_of_the_last_steps_weights(void **state) {
    (void)state;
    rig r;
    told t = {0};
    rig_open(&r, &cpu_device, 1, keys);
    device noting = cpu_device;
    noting.read = note_read;
    noting.write = note_write;
    seen = (seen_weights){.bytes = (size_t)graph_slab_elements(r.job.g) * sizeof(float)};
    budget b = plenty();
    tune_task task = task_of(&r, &noting, &b, &t, 4);
    task.batch[task.batches++] = (r.split.train.count + 3) / 4; // so that there are epochs to be the best
    tune_result *found = found_by(&task);
    assert_true(found->later.measured && found->steps > 4);
    assert_true(seen.back && seen.before != seen.back);
    assert_true(seen.last == seen.before);
    free(found);
    rig_close(&r);
}

// A CPU on which playing takes its time: evaluating a hundred times as much as what else there is.
static const device *fast;
static recording *evaluation;

static recording *note_record(queue *q, room *m, call *calls, int count, err *e) {
    recording *made = fast->record(q, m, calls, count, e);
    if (!calls[0].training) evaluation = made;
    return made;
}

static bool slow_play(queue *q, recording *r, err *e) {
    nanosleep(&(struct timespec){.tv_nsec = r == evaluation ? 200000000 : 2000000}, NULL);
    return fast->play(q, r, e);
}

// 4 steps an epoch, each of two recordings that take 2 ms: with the evaluations a step would have 50 ms more.
static void what_is_between_epochs_is_not_counted(void **state) {
    (void)state;
    rig r;
    told t = {0};
    rig_open(&r, &cpu_device, 1, keys);
    device slow = cpu_device;
    fast = &cpu_device;
    slow.record = note_record;
    slow.play = slow_play;
    budget b = plenty();
    tune_task task = task_of(&r, &slow, &b, &t, 5);
    task.batch[task.batches++] = (r.split.train.count + 3) / 4;
    tune_result *found = found_by(&task);
    print_message("%.1f ms a step\n", 1e3 * found->row[0].seconds);
    assert_true(found->row[0].seconds >= 0.004);
    assert_true(support_sanitized() || found->row[0].seconds < 0.025);
    free(found);
    rig_close(&r);
}

// Steps of 0.1 s each in 1.5 s: some sizes are measured, the rest is passed over, and none runs over the time.
static bool lazy_play(queue *q, recording *r, err *e) {
    nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    return fast->play(q, r, e);
}

static void time_is_kept_to(void **state) {
    (void)state;
    rig r;
    told t = {0};
    rig_open(&r, &cpu_device, 1, keys);
    device lazy = cpu_device;
    fast = &cpu_device;
    lazy.play = lazy_play;
    budget b = plenty();
    tune_task task = task_of(&r, &lazy, &b, &t, 1.5);
    task.batches = tune_batches(8, 256, task.batch, TUNE_BATCHES_MOST);
    double began = support_seconds();
    tune_result *found = found_by(&task);
    assert_true(support_sanitized() || support_seconds() - began < 3);
    assert_true(found->row[0].seconds > 0.05);
    assert_true(found->rows < task.batches);
    assert_non_null(strstr(found->row[found->rows - 1].why, "no time is left"));
    free(found);
    rig_close(&r);
}

static void a_stop_leaves_what_was_measured(void **state) {
    (void)state;
    rig r;
    told t = {.stop_at = 32};
    rig_open(&r, &cpu_device, 1, keys);
    budget b = plenty();
    tune_task task = task_of(&r, r.device, &b, &t, 60);
    task.batches = tune_batches(16, 512, task.batch, TUNE_BATCHES_MOST);
    tune_result *found = found_by(&task);
    assert_true(found->interrupted);
    assert_int_equal(found->rows, 2); // 16 24
    for (int i = 0; i < found->rows; i++) assert_true(found->row[i].seconds > 0);
    free(found);
    t = (told){.stop_at = 16};
    found = found_by(&task);
    assert_true(found->interrupted && !found->rows && found->winner < 0);
    free(found);
    rig_close(&r);
}

// Memory

static budget limit_of(size_t slab) {
    size_t base = 1000000;
    return (budget){.host = true,
        .limited = true,
        .counted = true,
        .limit = base + slab,
        .base = base,
        .free = (size_t)1 << 40,
        .slab = slab};
}

// A limit that is enough for a split batch alone: other ways that fit are measured beside the planner's.
static void a_limit_brings_other_ways(void **state) {
    (void)state;
    rig r;
    told t = {0};
    rig_open(&r, &cpu_device, 1, keys);
    settings s = r.settings;
    chooser c = {.near = &r.job, .settings = &s, .split = &r.split, .device = r.device, .queue = r.queue};
    demand whole = choose_demand(&c, &(way){.batch = 512, .parts = 1}),
           half = choose_demand(&c, &(way){.batch = 256, .parts = 1});
    size_t enough = half.slab + half.copies, all = whole.slab + whole.copies;
    assert_true(enough < all);
    budget b = limit_of(enough + (all - enough) / 10);
    tune_task task = task_of(&r, r.device, &b, &t, 4);
    task.batch[task.batches++] = 256;
    task.batch[task.batches++] = 512;
    tune_result *found = found_by(&task);
    assert_int_equal(found->row[0].way.parts, 1);
    assert_true(found->rows > 2 && found->rows <= 4);
    for (int i = 1; i < found->rows; i++) {
        assert_int_equal(found->row[i].batch, 512);
        assert_true(found->row[i].way.parts > 1 && found->row[i].seconds > 0);
        assert_true(found->row[i].bytes <= b.limit);
    }
    free(found);
    rig_close(&r);
}

// 509 rows cannot be split, 512 can: what does not fit ends nothing, and what is behind the last that fits is told
// once.
static void a_size_that_does_not_fit_ends_nothing(void **state) {
    (void)state;
    rig r;
    told t = {0};
    rig_open(&r, &cpu_device, 1, keys);
    settings s = r.settings;
    chooser c = {.near = &r.job, .settings = &s, .split = &r.split, .device = r.device, .queue = r.queue};
    demand most = choose_demand(&c, &(way){.batch = 300, .parts = 1});
    budget b = limit_of(most.slab + most.copies);
    tune_task task = task_of(&r, r.device, &b, &t, 4);
    static const int64_t sizes[] = {256, 509, 512, 1021, 1031};
    memcpy(task.batch, sizes, sizeof sizes);
    task.batches = 5;
    tune_result *found = found_by(&task);
    int last = found->rows - 1;
    assert_true(found->row[1].batch == 509 && found->row[1].large && !found->row[1].ends);
    assert_true(found->row[2].batch == 512 && found->row[2].seconds > 0 && found->row[2].way.parts > 1);
    assert_true(found->row[last].batch == 1021 && found->row[last].large && found->row[last].ends);
    assert_int_equal(found->row[last - 1].batch, 512);
    free(found);
    rig_close(&r);
}

// The larger batch by which the noise scale is measured has no room.
static void a_noise_scale_without_memory_says_so(void **state) {
    (void)state;
    rig r;
    told t = {0};
    rig_open(&r, &cpu_device, 1,
        "model.kind=mlp model.widths=16 data.windows.fast=4 data.windows.slow=2 data.synthetic.bars=3000");
    settings s = r.settings;
    chooser c = {.near = &r.job, .settings = &s, .split = &r.split, .device = r.device, .queue = r.queue};
    demand most = choose_demand(&c, &(way){.batch = 200, .parts = 1});
    budget b = limit_of(most.slab + most.copies);
    tune_task task = task_of(&r, r.device, &b, &t, 4);
    task.batch[task.batches++] = 64;
    tune_result *found = found_by(&task);
    assert_true(!found->later.measured && found->steps > 0);
    assert_string_equal(found->noise_why, "no memory");
    free(found);
    rig_close(&r);
}

static void what_fits_nowhere_is_refused_with_the_limit_that_works(void **state) {
    (void)state;
    err e = {0};
    rig r;
    told t = {0};
    rig_open(&r, &cpu_device, 1, keys);
    budget b = limit_of(1000);
    tune_task task = task_of(&r, r.device, &b, &t, 4);
    tune_result *found = malloc(sizeof *found);
    assert_non_null(found);
    task.batch[task.batches++] = 256;
    task.batch[task.batches++] = 512;
    assert_false(tune_run(&task, found, &e));
    assert_int_equal(e.kind, ERR_RUN);
    assert_non_null(strstr(e.text, "set gpu_optimization.max_host_memory_gb to 0.0"));
    free(found);
    rig_close(&r);
}

// A split that the description gives is kept; sizes that it does not divide are left out.
static void a_split_of_the_description_stays(void **state) {
    (void)state;
    rig r;
    told t = {0};
    rig_open(&r, &cpu_device, 1,
        "model.kind=mlp model.widths=16 data.windows.fast=4 data.windows.slow=2 data.synthetic.bars=3000 "
        "train.batch_size=64 gpu_optimization.gradient_accumulation_steps=3");
    budget b = plenty();
    tune_task task = task_of(&r, r.device, &b, &t, 3);
    task.batches = tune_batches(96, 192, task.batch, TUNE_BATCHES_MOST);
    assert_int_equal(task.batches, 3); // 96 128 192
    tune_result *found = found_by(&task);
    assert_int_equal(found->rows, 2);
    for (int i = 0; i < 2; i++) assert_int_equal(found->row[i].way.parts, 3);
    free(found);
    rig_close(&r);
}

// Batches from the host: the loader and its lanes are the trainer's.
static void streamed_batches_are_measured_too(void **state) {
    (void)state;
    rig r;
    told t = {0};
    rig_open(&r, &cpu_device, 1,
        "model.kind=mlp model.widths=16 data.windows.fast=4 data.windows.slow=2 data.synthetic.bars=3000 "
        "data.residency=host");
    budget b = plenty();
    tune_task task = task_of(&r, r.device, &b, &t, 3);
    task.jobs[0] = (tune_jobs){PRECISION_FP32, NULL, &r.job};
    task.batches = tune_batches(64, 256, task.batch, TUNE_BATCHES_MOST);
    tune_result *found = found_by(&task);
    assert_int_equal(found->rows, task.batches);
    for (int i = 0; i < found->rows; i++) assert_true(found->row[i].seconds > 0 && found->row[i].way.host);
    free(found);
    rig_close(&r);
}

// Trials

// A CPU that is slow, but for what PRODUCTS_LIBRARY computes and on queues that are opened later, and whose linear
// layers need more memory than there is where PRODUCTS_OWN computes, and a little more where PRODUCTS_LIBRARY does.
static products_by recorded_by;
static queue *opened_later;
static int opened;

static recording *picky_record(queue *q, room *m, call *calls, int count, err *e) {
    recorded_by = calls[0].products;
    return cpu_device.record(q, m, calls, count, e);
}

static bool picky_play(queue *q, recording *r, err *e) {
    bool quick = recorded_by == PRODUCTS_LIBRARY || q == opened_later;
    double began = support_seconds();
    bool ok = cpu_device.play(q, r, e) && cpu_device.sync(q, e);
    quick ? slow_by(0.0005, 0) : slow_by(0.004, support_seconds() - began);
    return ok;
}

static queue *picky_open(const queue_options *o, err *e) {
    opened++;
    assert_int_equal(o->threads, 1);
    assert_string_equal(o->isa, "base");
    return opened_later = cpu_device.open(o, e);
}

static size_t (*linear_scratch)(const call *c);

static size_t picky_scratch(const call *c) {
    return c->products == PRODUCTS_OWN ? (size_t)1 << 41 : linear_scratch(c) + (c->products == PRODUCTS_LIBRARY) * 4096;
}

static const kernel *const *picky_kernels(const queue *q) {
    static const kernel *all[OP_COUNT];
    static kernel linear;
    memcpy(all, cpu_device.kernels(q), sizeof all);
    linear = *all[OP_linear];
    linear_scratch = linear.scratch;
    linear.scratch = picky_scratch;
    all[OP_linear] = &linear;
    return all;
}

// Tunes a batch on that CPU in a precision with the trials that are given; the caller frees what was found.
static tune_result *try_out(precision p, const tune_trial *list, int count, double seconds) {
    rig r;
    told t = {0};
    rig_open(&r, &cpu_device, 2, keys);
    device picky = cpu_device;
    picky.record = picky_record;
    picky.play = picky_play;
    picky.open = picky_open;
    picky.kernels = picky_kernels;
    opened = 0;
    budget b = plenty();
    tune_task task = task_of(&r, &picky, &b, &t, enough(seconds));
    task.jobs[0].precision = p;
    task.options = (queue_options){.threads = 2, .isa = "base"};
    task.batch[task.batches++] = 64;
    memcpy(task.trial, list, (size_t)count * sizeof *list);
    task.trials = count;
    tune_result *found = found_by(&task);
    assert_int_equal(graph_multiplies_by(r.job.g), PRODUCTS_AUTO);
    rig_close(&r);
    return found;
}

static const tune_trial by_products[] = {
    {.products = PRODUCTS_AUTO}, {.products = PRODUCTS_OWN}, {.products = PRODUCTS_LIBRARY}};

static void try_products(precision p) {
    tune_result *found = try_out(p, by_products, 3, 4);
    assert_int_equal(found->trials, 3);
    assert_int_equal(found->taken, 2);
    assert_true(found->trial[0].seconds > 0.008 && found->trial[0].seconds <= found->row[0].seconds);
    assert_true(found->trial[1].seconds == 0 && strstr(found->trial[1].why, "does not fit"));
    assert_true(found->trial[2].seconds > 0.001 && found->trial[2].seconds < found->trial[0].seconds);
    assert_float_equal(found->trial[2].samples_per_s * found->trial[2].seconds, 64, 1e-6);
    assert_true(found->row[0].seconds > 0.008); // the table is of the rule's products
    free(found);
}

static void other_products_are_tried_where_they_fit(void **state) {
    (void)state;
    try_products(PRECISION_TF32);
    try_products(PRECISION_FP32);
}

static void fewer_threads_are_tried_on_a_queue_of_their_own(void **state) {
    (void)state;
    static const tune_trial by_threads[] = {{.threads = 0}, {.threads = 1}};
    tune_result *found = try_out(PRECISION_FP32, by_threads, 2, 4);
    assert_int_equal(found->trials, 2);
    assert_int_equal(found->taken, 1);
    assert_int_equal(opened, 2);
    assert_true(found->trial[1].seconds < found->trial[0].seconds && found->trial[0].seconds > 0.008);
    free(found);
}

static bool stop_later(void *arg, const tune_row *at, double share) {
    (void)arg;
    return !at || share < 1;
}

static void trials_that_were_stopped_say_so(void **state) {
    (void)state;
    rig r;
    told t = {0};
    rig_open(&r, &cpu_device, 1, keys);
    budget b = plenty();
    tune_task task = task_of(&r, r.device, &b, &t, 2);
    task.jobs[0].precision = PRECISION_TF32;
    task.on_progress = stop_later;
    task.batch[task.batches++] = 64;
    memcpy(task.trial, by_products, sizeof by_products);
    task.trials = 3;
    tune_result *found = found_by(&task);
    assert_true(found->interrupted && found->rows == 1 && found->winner == 0 && found->trials == 3);
    for (int i = 1; i < 3; i++) assert_string_equal(found->trial[i].why, "stopped");
    free(found);
    rig_close(&r);
}

// Where the plan is the same the kernels are: there is nothing to measure.
static void trials_of_the_same_are_not_run(void **state) {
    (void)state;
    rig r;
    told t = {0};
    rig_open(&r, &cpu_device, 1, keys);
    budget b = plenty();
    tune_task task = task_of(&r, &cpu_device, &b, &t, 1);
    task.jobs[0].precision = PRECISION_TF32;
    task.batch[task.batches++] = 64;
    memcpy(task.trial, by_products, sizeof by_products);
    task.trials = 3;
    tune_result *found = found_by(&task);
    assert_int_equal(found->taken, 0);
    for (int i = 1; i < 3; i++) assert_string_equal(found->trial[i].why, "the same as auto here");
    free(found);
    rig_close(&r);
}

// Steps of 0.1 s in 0.5 s: what is left is less than a trial takes.
static void trials_without_time_say_so(void **state) {
    (void)state;
    rig r;
    told t = {0};
    rig_open(&r, &cpu_device, 1, keys);
    device lazy = cpu_device;
    fast = &cpu_device;
    lazy.play = lazy_play;
    budget b = plenty();
    tune_task task = task_of(&r, &lazy, &b, &t, 0.5);
    task.jobs[0].precision = PRECISION_TF32;
    task.batch[task.batches++] = 64;
    memcpy(task.trial, by_products, sizeof by_products);
    task.trials = 3;
    tune_result *found = found_by(&task);
    assert_int_equal(found->trials, 3);
    assert_int_equal(found->taken, 0);
    for (int i = 1; i < 3; i++) {
        assert_true(found->trial[i].seconds == 0);
        assert_string_equal(found->trial[i].why, "no time");
    }
    free(found);
    rig_close(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(candidates_are_powers_and_what_lies_between),
        cmocka_unit_test(the_winner_is_the_knee_or_what_noise_allows),
        cmocka_unit_test(another_precision_has_to_pay),
        cmocka_unit_test(a_trial_has_to_pay),
        cmocka_unit_test(a_sweep_fills_the_table),
        cmocka_unit_test(the_noise_scale_is_of_the_last_steps_weights),
        cmocka_unit_test(what_is_between_epochs_is_not_counted),
        cmocka_unit_test(time_is_kept_to),
        cmocka_unit_test(a_stop_leaves_what_was_measured),
        cmocka_unit_test(a_limit_brings_other_ways),
        cmocka_unit_test(a_size_that_does_not_fit_ends_nothing),
        cmocka_unit_test(a_noise_scale_without_memory_says_so),
        cmocka_unit_test(what_fits_nowhere_is_refused_with_the_limit_that_works),
        cmocka_unit_test(a_split_of_the_description_stays),
        cmocka_unit_test(streamed_batches_are_measured_too),
        cmocka_unit_test(other_products_are_tried_where_they_fit),
        cmocka_unit_test(fewer_threads_are_tried_on_a_queue_of_their_own),
        cmocka_unit_test(trials_of_the_same_are_not_run),
        cmocka_unit_test(trials_without_time_say_so),
        cmocka_unit_test(trials_that_were_stopped_say_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
