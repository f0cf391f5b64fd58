#include "support.h"

#include "base/rng.h"
#include "train/metric.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#endif

bool support_sanitized(void) {
#ifdef SANITIZED
    return true;
#else
    return false;
#endif
}

double support_seconds(void) {
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

void support_ok(bool ok, const err *e) {
    if (!ok) fail_msg("%s", e->text);
}

void support_aborts(void (*fn)(void), const char *text) {
    char said[1024] = "";
    FILE *f = tmpfile();
    assert_non_null(f);
    pid_t child = fork();
    assert_true(child >= 0);
    if (!child) {
        dup2(fileno(f), STDERR_FILENO);
        fn();
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    rewind(f);
    size_t n = fread(said, 1, sizeof said - 1, f);
    fclose(f);
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT) fail_msg("no abort, but status %d: %s", status, said);
    if (!strstr(said, text)) fail_msg("\"%s\" does not say %s", said, text);
    assert_ptr_equal(strchr(said, '\n'), said + n - 1);
}

int support_enter(void **state) {
    const char *base = getenv("TMPDIR");
    char *dir = NULL;
    if (asprintf(&dir, "%s/tradewind.XXXXXX", base ? base : "/tmp") < 0) return -1;
    *state = dir;
    return mkdtemp(dir) && !chdir(dir) ? 0 : -1;
}

int support_leave(void **state) {
    char command[4200];
    snprintf(command, sizeof command, "rm -rf '%s'", (char *)*state);
    int rc = chdir("/") || system(command);
    free(*state);
    return rc;
}

// A new file each time: file systems flush one that is shortened and rewritten.
void support_put(const char *path, const void *data, size_t bytes) {
    unlink(path);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, bytes, f), bytes);
    assert_int_equal(fclose(f), 0);
}

// Choices

static uint32_t dice_bits(dice *d) {
    uint64_t i = d->draws++;
    return rng_philox(d->seed, (uint32_t)(i >> 2), (uint32_t)(i >> 34), (uint32_t)RNG_TEST << 16, 2).v[i & 3];
}

uint64_t dice_below(dice *d, uint64_t most) {
    uint64_t high = dice_bits(d);
    return (high << 32 | dice_bits(d)) % most;
}

float dice_unit(dice *d) {
    return 2 * rng_unit(dice_bits(d)) - 1;
}

// The rig

static void assign_all(config *c, const char *assignments) {
    err e;
    char *text = strdup(assignments), *rest = NULL;
    assert_non_null(text);
    for (char *word = strtok_r(text, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
        support_ok(config_override(c, word, &e), &e);
    free(text);
}

void rig_open(rig *r, const device *d, int threads, const char *assignments) {
    rig_open_in(r, d, threads, PRECISION_FP32, assignments);
}

model_spec support_model(const char *assignments, const model_data *d) {
    err e = {0};
    model_spec s = {0};
    config *c = config_read("test", "", 0, settings_keys(), settings_key_count(), &e);
    support_ok(c != NULL, &e);
    assign_all(c, assignments);
    support_ok(config_check(c, &e) && model_read(c, d, &s, &e), &e);
    config_free(c);
    return s;
}

void rig_open_in(rig *r, const device *d, int threads, precision p, const char *assignments) {
    rig_open_on(r, NULL, d, threads, p, assignments);
}

// The CPU has one precision, which a description need not name.
static task_change computed_in(const device *d, precision p) {
    if (d->host_memory && p == PRECISION_FP32) return (task_change){0};
    return (task_change){"gpu_optimization.use_mixed_precision", p == PRECISION_FP32 ? "false" : precision_name(p)};
}

// The description is the market's size and the assignments. What was tuned on this machine is no part of a test.
void rig_open_on(rig *r, dataset *data, const device *d, int threads, precision p, const char *assignments) {
    enum { WORDS_MOST = 64 };
    const char *word[WORDS_MOST];
    err e = {0};
    int count = 0;
    char *text = strdup(assignments), *rest = NULL;
    assert_non_null(text);
    for (char *w = strtok_r(text, " ", &rest); w && count < WORDS_MOST; w = strtok_r(NULL, " ", &rest))
        word[count++] = w;
    task_options o = {.description = {.file = "test",
                          .text = "data: {synthetic: {bars: 2000}}\n",
                          .before = {computed_in(d, p)},
                          .overrides = word,
                          .override_count = count},
        .devices.options.threads = threads,
        .version = "test",
        .data = data};
    *(d->host_memory ? &o.devices.host : &o.devices.card) = d;
    setenv("TRADEWIND_WISDOM", "/nonexistent", 0);
    support_ok(task_open(r, &o, &e), &e);
    free(text);
}

void rig_close(rig *r) {
    dataset *given = r->options.data;
    task_close(r);
    dataset_free(given);
}

trainer *rig_trainer(rig *r) {
    err e = {0};
    trainer *t = trainer_new(r->device, r->queue, &r->job, r->data, &r->split, &r->settings, &e);
    support_ok(t != NULL, &e);
    return t;
}

float *rig_weights(rig *r, trainer *t) {
    err e;
    float *w = malloc((size_t)graph_slab_elements(r->job.g) * sizeof *w);
    assert_non_null(w);
    support_ok(support_read(t, graph_slab(r->job.g, SLAB_WEIGHTS), w, &e), &e);
    return w;
}

bool support_write(trainer *t, tensor of, const void *from, err *e) {
    return program_write(engine_evaluation(trainer_engine(t)), of, from, e);
}

bool support_read(trainer *t, tensor of, void *to, err *e) {
    return program_read(engine_evaluation(trainer_engine(t)), of, to, e);
}

bool support_step_write(trainer *t, const solo_step *s, err *e) {
    step_progress p = {.seed = s->seed, .update = s->update, .lr = s->lr};
    step_cursor c = {
        .count = s->count, .position = s->position, .row = s->row, .epoch = s->epoch, .shuffle = s->shuffle};
    c.spans = 1;
    c.span[0].first = s->first;
    return store_progress_write(engine_store(trainer_engine(t)), &p, e) &&
           program_seek(engine_steps(trainer_engine(t)), &c, e);
}

bool support_step_read(trainer *t, solo_step *s, err *e) {
    step_progress p;
    step_cursor c;
    if (!store_progress_read(engine_store(trainer_engine(t)), &p, e)) return false;
    if (!program_cursor(engine_steps(trainer_engine(t)), &c, e)) return false;
    *s = (solo_step){p.seed, p.update, c.span[0].first, c.count, c.position, c.row, c.epoch, c.shuffle, p.lr};
    return true;
}

bool support_play(trainer *t, pass which, err *e) {
    return program_play(engine_steps(trainer_engine(t)), which, e);
}

// Steps together

enum { LEFT_MOST = 16 };

typedef struct {
    size_t bytes[LEFT_MOST];
    void *data[LEFT_MOST];
    int count, plays;
    solo_step after;
} left;

static const device *counted_device;
static int counted_plays;

static bool counted_play(queue *q, recording *p, err *e) {
    counted_plays++;
    return counted_device->play(q, p, e);
}

static void leave(left *l, rig *r, solo *x, tensor t) {
    err e;
    const tensor_info *info = graph_info(r->job.g, t);
    int i = l->count++;
    assert_true(i < LEFT_MOST);
    l->bytes[i] = (size_t)shape_count(info->shape) * dtype_bytes(info->type);
    l->data[i] = malloc(l->bytes[i] + 1);
    assert_non_null(l->data[i]);
    support_ok(solo_read(x, t, l->data[i], &e), &e);
}

static void put_start(rig *r, solo *x) {
    err e;
    const float root[2] = {r->job.precision == PRECISION_FP16 ? LOSS_SCALE_START : 1, 0};
    solo_step s = {.seed = 3,
        .first = (uint64_t)part_first(&r->split.train),
        .count = (uint64_t)r->split.train.count,
        .epoch = 1,
        .shuffle = 1,
        .lr = 1e-2f};
    float *w = malloc((size_t)graph_slab_elements(r->job.g) * sizeof *w);
    assert_non_null(w);
    graph_initial(r->job.g, 5, w);
    support_ok(solo_write(x, graph_slab(r->job.g, SLAB_WEIGHTS), w, &e), &e);
    support_ok(solo_write(x, r->job.seed, root, &e) && solo_step_write(x, &s, &e), &e);
    support_ok(solo_clear(x, r->job.totals, &e), &e);
    if (r->job.confusion.id) support_ok(solo_clear(x, r->job.confusion, &e), &e);
    free(w);
}

static left steps_played(rig *r, int64_t steps, int together) {
    err e;
    left l = {0};
    device d = *r->device;
    counted_device = r->device;
    counted_plays = 0;
    d.play = counted_play;
    solo *x =
        solo_new(&d, r->queue, r->job.g, &(solo_options){.rows = r->settings.batch_size, .together = together}, &e);
    support_ok(x != NULL, &e);
    put_start(r, x);
    support_ok(solo_play_steps(x, steps, &e) && d.sync(r->queue, &e), &e);
    for (int k = 0; k < SLAB_COUNT; k++)
        if (graph_uses_slab(r->job.g, (slab_kind)k)) leave(&l, r, x, graph_slab(r->job.g, (slab_kind)k));
    leave(&l, r, x, r->job.totals);
    leave(&l, r, x, r->job.clip);
    if (r->job.confusion.id) leave(&l, r, x, r->job.confusion);
    leave(&l, r, x, r->job.seed);
    support_ok(solo_step_read(x, &l.after, &e), &e);
    l.plays = counted_plays;
    solo_free(x);
    return l;
}

void rig_check_together(rig *r) {
    enum { STEPS = 19, TOGETHER = 8 };
    left one = steps_played(r, STEPS, 0), many = steps_played(r, STEPS, TOGETHER);
    assert_int_equal(one.plays, 2 * STEPS);
    assert_int_equal(many.plays, STEPS / TOGETHER + 2 * (STEPS % TOGETHER));
    assert_int_equal(one.count, many.count);
    assert_int_equal(one.after.update, STEPS);
    assert_memory_equal(&one.after, &many.after, sizeof one.after);
    for (int i = 0; i < one.count; i++) {
        if (memcmp(one.data[i], many.data[i], one.bytes[i]) != 0) fail_msg("tensor %d of %d differs", i, one.count);
        free(one.data[i]);
        free(many.data[i]);
    }
}

double rig_best_mcc(const rig *r, const split_part *samples) {
    const dataset *d = r->data;
    int64_t count[CLASSES_MOST * CLASSES_MOST] = {0};
    for (int64_t k = 0; k < samples->count; k++) {
        int64_t i = part_sample(samples, k);
        count[d->label[i] * d->classes + d->best[i]]++;
    }
    return metric_mcc(count, d->classes);
}
