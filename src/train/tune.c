#include "train/tune.h"

#include "base/clock.h"
#include "train/trainer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ROUNDS_MOST = 64,
    ROUNDS_LEAST = 2,
    ROUNDS_WANTED = 6,
    STEPS_LEAST = 3, // of a candidate: one to warm up and two that count
    OTHERS_MOST = 32,
    OTHERS_TAKEN = TUNE_WAYS_MOST - 1, // measured beside the planner's choice where a limit has forced that
    LEARN_STEPS = 300,                 // before the noise scale is measured a second time, if the time allows so many
};

// Seconds of measuring a candidate once, on the CPU and on a card, and the share of them that warms up; of all time,
// what is kept for the noise scale, which may take twice that where it is left, for the steps before it, and for trials
// of the winner.
static const double slot_cpu = 0.8, slot_card = 0.15, slot_least = 0.02, warm_share = 0.15, noise_share = 0.15,
                    learn_share = 0.125, trial_share = 0.05;

// Rows of the two batches by which the noise scale is measured, and by how much they must differ.
enum { NOISE_SMALL = 64, NOISE_LARGE_CPU = 2048, NOISE_LARGE_CARD = 8192, NOISE_APART = 4 };

typedef struct {
    const tune_task *task;
    tune_result *r;
    queue *queue; // the task's, or that of a trial
    double began, ends;
    int done, planned;                 // candidates: through, and in all
    err first;                         // the first reason why one could not be measured
    float *weights[NOISE_PLACES_MOST]; // at the start and after some steps, or NULL
} sweep;

int tune_batches(int64_t from, int64_t to, int64_t *list, int room) {
    int n = 0;
    for (int64_t power = 1; power <= to && n < room; power *= 2) {
        if (power >= from) list[n++] = power;
        int64_t between = power / 2 * 3;
        if (power > 1 && between >= from && between <= to && n < room) list[n++] = between;
    }
    return n;
}

static double left(const sweep *s) {
    return s->ends - clock_seconds();
}

static bool goes_on(sweep *s, const tune_row *at) {
    const tune_task *t = s->task;
    double share = (double)s->done / (double)s->planned;
    if (t->on_progress && !t->on_progress(t->arg, at, share < 1 ? share : 1)) s->r->interrupted = true;
    return !s->r->interrupted;
}

// Timing

// Rounds of steps. A round ends with the device idle, and the end of an epoch, where the trainer evaluates, is not
// counted.
typedef struct {
    sweep *s;
    const tune_row *row;
    trainer *t;
    double slot, warm_until, until;
    bool warm;      // rounds have begun
    uint64_t learn; // steps to be taken although the slot is over, until learn_until
    double learn_until;
    double round_from, spent;    // when the clock of the round was started; seconds of it before that
    double work_from;            // steps when the round began
    int64_t calls, calls_wanted; // of on_step in this round, and in a whole one
    double seconds[ROUNDS_MOST]; // of a step, of the last rounds
    int rounds;
    bool failed;
    err why;
} timing;

static uint64_t steps_taken(const timing *m) {
    uint64_t update;
    int64_t epoch, done;
    trainer_stands(m->t, &update, &epoch, &done);
    return update;
}

// Micro-batches of an epoch's first `samples` samples, in steps: the last step of an epoch computes only those that it
// has samples for.
static double steps_of(const way *w, int64_t samples) {
    return (double)((samples + w->batch - 1) / w->batch) / (double)w->parts;
}

static double work_done(const timing *m) {
    uint64_t update;
    int64_t epoch, done;
    trainer_stands(m->t, &update, &epoch, &done);
    const way *w = &m->row->way;
    return (double)(epoch - 1) * steps_of(w, m->s->task->split->train.count) + steps_of(w, done);
}

static void begin_round(timing *m, double now) {
    m->round_from = now;
    m->spent = 0;
    m->calls = 0;
    m->work_from = work_done(m);
}

static void end_round(timing *m, double now) {
    double seconds = m->spent + now - m->round_from;
    m->seconds[m->rounds++ % ROUNDS_MOST] = seconds / (work_done(m) - m->work_from);
    double each = seconds / (double)m->calls, wanted = m->slot / ROUNDS_WANTED / each;
    m->calls_wanted = wanted > 1 ? (int64_t)wanted : 1;
    begin_round(m, now);
}

static bool enough(const timing *m, double now) {
    if (m->rounds < ROUNDS_LEAST) return false;
    return now >= (steps_taken(m) < m->learn ? m->learn_until : m->until);
}

static float *read_weights(trainer *t, err *e) {
    graph *g = trainer_job(t)->g;
    float *w = malloc((size_t)graph_slab_elements(g) * sizeof *w);
    if (!w) {
        err_run(e, "out of memory for a copy of the weights");
        return NULL;
    }
    if (store_read(engine_store(trainer_engine(t)), g, graph_slab(g, SLAB_WEIGHTS), w, e)) return w;
    free(w);
    return NULL;
}

// Ends the run. Its last weights are taken here, as the trainer leaves those of its best epoch.
static bool end_steps(timing *m) {
    if (m->learn && !(m->s->weights[1] = read_weights(m->t, &m->why))) m->failed = true;
    return false;
}

static bool on_step(void *arg, int64_t epoch, int64_t done, int64_t total) {
    timing *m = arg;
    (void)epoch;
    m->calls++;
    if (m->warm && done < total && m->calls < m->calls_wanted) return true;
    if (!m->s->task->device->sync(m->s->queue, &m->why)) {
        m->failed = true;
        return false;
    }
    double now = clock_seconds();
    if (!goes_on(m->s, m->row)) return false;
    if (!m->warm && now >= m->warm_until) {
        m->warm = true;
        begin_round(m, now);
    } else if (m->warm && m->calls >= m->calls_wanted) {
        end_round(m, now);
    } else if (m->warm) {
        m->spent += now - m->round_from;
        m->round_from = now;
    }
    return !enough(m, now) || end_steps(m);
}

static void on_epoch(void *arg, const epoch_report *r) {
    timing *m = arg;
    (void)r;
    m->round_from = clock_seconds();
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// The median round and by how much the slowest is above the fastest. The first round is one call long, to see how many
// make a round; it counts only where there are hardly others.
static void judge_rounds(timing *m, tune_row *row) {
    int kept = m->rounds < ROUNDS_MOST ? m->rounds : ROUNDS_MOST,
        from = m->rounds > ROUNDS_LEAST && m->rounds <= ROUNDS_MOST;
    int count = kept - from;
    const double *sorted = m->seconds + from;
    if (!m->rounds) return;
    qsort(m->seconds + from, (size_t)count, sizeof *m->seconds, by_value);
    row->seconds = (sorted[(count - 1) / 2] + sorted[count / 2]) / 2;
    row->spread = (sorted[count - 1] - sorted[0]) / row->seconds;
}

static bool run_steps(timing *m, err *e) {
    train_result unused;
    watcher w = {.on_step = on_step, .on_epoch = on_epoch, .arg = m};
    double now = clock_seconds();
    m->calls_wanted = 1;
    m->warm_until = now + warm_share * m->slot;
    m->until = now + m->slot;
    m->learn_until = fmax(m->until, now + learn_share * m->s->task->seconds);
    bool ok = trainer_run(m->t, &w, &unused, e);
    if (ok && m->failed) *e = m->why;
    if (!ok || m->failed) return false;
    return m->rounds > 0 || m->s->r->interrupted ||
           err_run(e, "no step had a finite gradient; lower train.optimizer.lr");
}

static void drop_weights(sweep *s) {
    for (int k = 0; k < NOISE_PLACES_MOST; k++) {
        free(s->weights[k]);
        s->weights[k] = NULL;
    }
}

// Runs a candidate. With `learns` the weights before and after are kept, for the noise scale, unless the steps end by
// themselves, as the gradients are no longer finite.
static bool time_row(sweep *s, const chooser *c, tune_row *row, double slot, bool learns, err *e) {
    const tune_task *t = s->task;
    settings as = choose_apply(c, &row->way);
    split some = *t->split;
    some.validation = part_of((span){part_first(&some.train), 1});
    as.epochs = as.patience = INT32_MAX;
    as.steps = 0;
    timing m = {.s = s, .row = row, .slot = slot, .learn = learns ? LEARN_STEPS : 0};
    m.t = trainer_new(t->device, s->queue, row->way.host ? c->far : c->near, t->data, &some, &as, e);
    bool ok = m.t && budget_holds(t->budget, t->device, s->queue, e);
    if (ok && as.init_from) ok = trainer_load(m.t, as.init_from, e);
    if (ok && learns) ok = (s->weights[0] = read_weights(m.t, e)) != NULL;
    ok = ok && run_steps(&m, e);
    if (ok) judge_rounds(&m, row);
    bool learnt = ok && s->weights[1];
    if (learns && learnt) s->r->steps = (int64_t)steps_taken(&m);
    if (learns && !learnt) drop_weights(s);
    trainer_free(m.t);
    return ok;
}

// Candidates

static chooser chooser_of(const tune_task *t, int precision, const settings *s) {
    return (chooser){.near = t->jobs[precision].near,
        .far = t->jobs[precision].far,
        .settings = s,
        .split = t->split,
        .device = t->device,
        .queue = t->queue};
}

// The description with another effective batch; false where its split does not divide that.
static bool with_batch(const settings *described, int64_t batch, settings *s) {
    int64_t parts = described->split_open ? 1 : described->accumulation;
    *s = *described;
    s->batch_size = batch / parts;
    s->accumulation = parts;
    return batch % parts == 0;
}

// Which of the task's jobs a row is of.
static int jobs_of(const tune_task *t, const tune_row *row) {
    int precision = 0;
    while (t->jobs[precision].precision != row->precision) precision++;
    return precision;
}

static tune_row *add_row(sweep *s, int precision, const chooser *c, const way *w) {
    const tune_task *t = s->task;
    CHECK(s->r->rows < TUNE_ROWS_MOST, "more than %d candidates", TUNE_ROWS_MOST);
    tune_row *row = &s->r->row[s->r->rows++];
    demand n = choose_demand(c, w);
    *row = (tune_row){.way = *w, .batch = w->batch * w->parts, .precision = t->jobs[precision].precision};
    row->usual = precision == 0;
    row->bytes = t->budget->base + budget_need(t->budget, &n);
    return row;
}

static void skip_row(sweep *s, tune_row *row, const err *why) {
    if (!s->first.text[0]) s->first = *why;
    snprintf(row->why, sizeof row->why, "%.*s", TUNE_WHY - 1, why->text);
}

// Seconds of a step, from the nearest batch that was measured; 0: nothing is known.
static double guess(const sweep *s, int64_t batch) {
    const tune_row *near = NULL;
    for (int i = 0; i < s->r->rows; i++) {
        const tune_row *r = &s->r->row[i];
        if (!(r->seconds > 0)) continue;
        if (!near || llabs(r->batch - batch) < llabs(near->batch - batch)) near = r;
    }
    return near ? near->seconds * fmax(1, (double)batch / (double)near->batch) : 0;
}

// True if there is time for the fewest steps of a batch that tell anything.
static bool has_time(const sweep *s, int64_t batch) {
    return left(s) > STEPS_LEAST * guess(s, batch);
}

// Seconds for one candidate: those that are left, shared among the candidates that are left.
static double slot_of(const sweep *s, int candidates) {
    double slot = s->task->device->host_memory ? slot_cpu : slot_card;
    double share = candidates > 0 ? left(s) / candidates : slot;
    return share < slot_least ? slot_least : share < slot ? share : slot;
}

// Measures a candidate, or measures it again: the faster figure stays, as nothing makes a step faster than it is, while
// others on the machine make it slower.
static void measure_row(sweep *s, const chooser *c, tune_row *row) {
    const tune_task *t = s->task;
    err e = {0};
    double before = row->seconds, spread = row->spread;
    bool learns = !s->weights[0] && row->usual;
    if (goes_on(s, row) && !time_row(s, c, row, slot_of(s, s->planned - s->done), learns, &e) && !(before > 0))
        skip_row(s, row, &e);
    if (before > 0 && !(row->seconds < before)) row->seconds = before;
    row->spread = fmax(row->spread, spread);
    if (!(row->seconds > 0)) {
        s->r->rows -= s->r->interrupted; // it is the last one, and nothing is known of it
        return;
    }
    row->samples_per_s = (double)row->batch / row->seconds;
    row->epoch_s = row->seconds * steps_of(&row->way, t->split->train.count);
}

static int by_seconds(const void *a, const void *b) {
    double x = ((const way *)a)->seconds, y = ((const way *)b)->seconds;
    return (x > y) - (x < y);
}

// The next best of the planner's guesses, where the limit has kept it from its first.
static void measure_others(sweep *s, int precision, const chooser *c, const choice *chosen) {
    way list[OTHERS_MOST];
    if (choose_same_way(&chosen->best, &chosen->fastest)) return;
    int n = choose_others(c, s->task->budget, &chosen->best, list, OTHERS_MOST), taken = 0;
    qsort(list, (size_t)n, sizeof *list, by_seconds);
    for (int i = 0; i < n && taken < OTHERS_TAKEN && !s->r->interrupted; i++) {
        if (!has_time(s, chosen->best.batch * chosen->best.parts)) return;
        demand d = choose_demand(c, &list[i]);
        if (choose_same_way(&list[i], &chosen->best) || !budget_takes(s->task->budget, &d)) continue;
        measure_row(s, c, add_row(s, precision, c, &list[i]));
        taken++;
    }
}

// One batch in one precision. False where it takes too long, as larger ones then do too. One that does not fit says
// nothing of larger ones, which may be divided into more parts.
static bool measure_batch(sweep *s, int precision, int64_t batch) {
    const tune_task *t = s->task;
    settings as;
    err e = {0};
    if (!with_batch(t->described, batch, &as)) return true;
    chooser c = chooser_of(t, precision, &as);
    choice chosen = choose_way(&c, t->budget);
    tune_row *row = add_row(s, precision, &c, &chosen.best);
    demand n = choose_demand(&c, &chosen.best);
    if (!chosen.fits)
        budget_fits(t->budget, &n, t->device->name, &e);
    else if (!has_time(s, batch))
        err_run(&e, "no time is left for %d steps of it; give more --seconds", STEPS_LEAST);
    if (e.text[0]) {
        skip_row(s, row, &e);
        row->large = !chosen.fits;
        row->ends = chosen.fits;
        return row->large;
    }
    measure_row(s, &c, row);
    if (!s->r->interrupted) measure_others(s, precision, &c, &chosen);
    return !s->r->interrupted;
}

// Several last rows that do not fit become one: the first.
static void join_large(tune_result *r, int first) {
    int n = r->rows;
    while (n > first && r->row[n - 1].large) n--;
    if (r->rows - n < 2) return;
    r->row[n].ends = true;
    r->rows = n + 1;
}

static void measure_precision(sweep *s, int precision) {
    const tune_task *t = s->task;
    int end = s->done + t->batches, first = s->r->rows;
    for (int i = 0; i < t->batches; i++, s->done++)
        if (!measure_batch(s, precision, t->batch[i])) break;
    s->done = end;
    join_large(s->r, first);
}

// Once more from the last to the first, as far as time goes: what else the machine did meanwhile strikes others.
static void measure_again(sweep *s) {
    const tune_task *t = s->task;
    for (int i = s->r->rows - 1; i >= 0 && !s->r->interrupted; i--) {
        tune_row *row = &s->r->row[i];
        settings as;
        int precision = jobs_of(t, row);
        if (!(row->seconds > 0) || !has_time(s, row->batch) || !with_batch(t->described, row->batch, &as)) continue;
        chooser c = chooser_of(t, precision, &as);
        measure_row(s, &c, row);
        if (s->done < s->planned) s->done++;
    }
}

// The noise scale

// The planner's way of a batch; false where there is none that fits.
static bool way_for(const tune_task *t, int64_t batch, settings *as, way *w) {
    if (!with_batch(t->described, batch, as)) return false;
    chooser c = chooser_of(t, 0, as);
    choice chosen = choose_way(&c, t->budget);
    *w = chosen.best;
    return chosen.fits;
}

// The larger batch: a quarter of the samples at most, and small enough for some draws in the time.
static int64_t large_batch(const sweep *s, int64_t small, double seconds) {
    enum { DRAWS = 2 * 16 };
    const tune_task *t = s->task;
    int64_t most = t->split->train.count / 4, batch = t->device->host_memory ? NOISE_LARGE_CPU : NOISE_LARGE_CARD;
    while (batch > most) batch /= 2;
    while (batch > small && DRAWS * guess(s, batch) > seconds) batch /= 2;
    return batch;
}

static bool noise_goes_on(void *arg) {
    return goes_on(arg, NULL);
}

// Why there are no two batches for it: for lack of time, unless there are too few samples for any.
static const char *why_not_apart(const tune_task *t, int64_t small) {
    return t->split->train.count / 4 < NOISE_APART * small ? "too few samples" : "no time";
}

// Gives the reason where noise was not measured: it stays unknown then, and the table is made without it.
static const char *measure_noise(sweep *s) {
    const tune_task *t = s->task;
    double seconds = fmin(2 * noise_share * t->seconds, left(s));
    settings small_as, large_as;
    noise_scale scale[NOISE_PLACES_MOST] = {{0}};
    err unused;
    int64_t small = NOISE_SMALL;
    while (small > 1 && small * NOISE_APART * 4 > t->split->train.count) small /= 2;
    int64_t large = large_batch(s, small, seconds);
    noise_task n = {.device = t->device,
        .queue = t->queue,
        .data = t->data,
        .split = t->split,
        .weights = {s->weights[0], s->weights[1]},
        .places = NOISE_PLACES_MOST,
        .seconds = seconds,
        .go_on = noise_goes_on,
        .arg = s};
    if (seconds <= 0) return "no time";
    if (!s->weights[1]) return "no steps were taken for it";
    if (large < NOISE_APART * small) return why_not_apart(t, small);
    if (!way_for(t, small, &small_as, &n.small) || !way_for(t, large, &large_as, &n.large)) return "no memory";
    chooser c = chooser_of(t, 0, &large_as);
    n.chooser = &c;
    if (!noise_measure(&n, scale, &unused)) return "the device failed";
    s->r->start = scale[0];
    s->r->later = scale[1];
    return "no time";
}

// The choice

int tune_best_of(const tune_result *r, int64_t batch) {
    int usual = -1, any = -1;
    for (int i = 0; i < r->rows; i++) {
        const tune_row *row = &r->row[i];
        if (row->batch != batch || !(row->samples_per_s > 0)) continue;
        if (row->usual && (usual < 0 || row->samples_per_s > r->row[usual].samples_per_s)) usual = i;
        if (any < 0 || row->samples_per_s > r->row[any].samples_per_s) any = i;
    }
    if (usual < 0) return any;
    return r->row[any].samples_per_s > TUNE_MARGIN * r->row[usual].samples_per_s ? any : usual;
}

// The smallest batch at which `enough` rows are: those with a share of the rate, or of at least so many rows.
static int smallest(const tune_result *r, double share, double rows) {
    int found = -1;
    for (int i = 0; i < r->rows; i++) {
        const tune_row *row = &r->row[i];
        if (!(row->samples_per_s > 0) || row->share < share || (double)row->batch < rows) continue;
        if (i != tune_best_of(r, row->batch)) continue;
        if (found < 0 || row->batch < r->row[found].batch) found = i;
    }
    return found;
}

void tune_choose(tune_result *r, double target) {
    double most = 0;
    r->best = r->knee = r->winner = -1;
    r->capped = false;
    for (int i = 0; i < r->rows; i++) {
        const tune_row *row = &r->row[i];
        if (!(row->samples_per_s > most) || i != tune_best_of(r, row->batch)) continue;
        r->best = i;
        most = row->samples_per_s;
    }
    if (r->best < 0) return;
    for (int i = 0; i < r->rows; i++) r->row[i].share = r->row[i].samples_per_s / most;
    r->knee = r->winner = smallest(r, target, 0);
    int cap = r->later.known && r->steps >= TUNE_LEARNT ? smallest(r, 0, r->later.scale) : -1;
    r->capped = cap >= 0 && r->row[cap].batch < r->row[r->knee].batch;
    if (r->capped) r->winner = cap;
}

// Trials

static void multiply_by(const chooser *c, products_by p) {
    if (c->near) job_multiply_by(c->near, p);
    if (c->far) job_multiply_by(c->far, p);
}

// Runs the winner's way once as a trial has it.
static bool time_trial(sweep *s, const chooser *c, const tune_trial *as, tune_row *row, double slot, err *e) {
    const tune_task *t = s->task;
    queue_options options = t->options;
    options.threads = as->threads;
    demand n = choose_demand(c, &row->way);
    if (!budget_takes(t->budget, &n)) return err_run(e, "it does not fit into the memory");
    if (as->threads && !(s->queue = t->device->open(&options, e))) {
        s->queue = t->queue;
        return false;
    }
    bool ok = time_row(s, c, row, slot, false, e);
    if (as->threads) t->device->close(s->queue);
    s->queue = t->queue;
    return ok;
}

// True if other products change nothing here: the same kernels compute all sizes. The plan tells, as the
// library's have memory of their own.
static bool is_same(const sweep *s, const chooser *c, const way *w, const tune_trial *as) {
    const tune_trial *first = &s->r->trial[0];
    if (as->products == first->products) return false;
    demand before = choose_demand(c, w);
    multiply_by(c, as->products);
    demand after = choose_demand(c, w);
    multiply_by(c, first->products);
    return before.slab == after.slab;
}

// Measures a trial, or measures it again, where there is time; the faster figure stays, as that of a row does.
static void measure_trial(sweep *s, const chooser *c, const tune_row *winner, tune_trial *as, int candidates) {
    err e = {0};
    tune_row row = *winner;
    row.seconds = 0;
    if (!has_time(s, row.batch)) {
        if (!(as->seconds > 0) && !as->why[0]) snprintf(as->why, sizeof as->why, "no time");
        return;
    }
    if (is_same(s, c, &row.way, as)) {
        snprintf(as->why, sizeof as->why, "the same as auto here");
        return;
    }
    if (!goes_on(s, &row)) return;
    multiply_by(c, as->products);
    bool ok = time_trial(s, c, as, &row, slot_of(s, candidates), &e);
    multiply_by(c, s->r->trial[0].products);
    if (!ok && !(as->seconds > 0)) snprintf(as->why, sizeof as->why, "%.*s", TUNE_WHY - 1, e.text);
    as->slowest = fmax(as->slowest, row.seconds);
    if (!ok || !(row.seconds > 0) || (as->seconds > 0 && as->seconds <= row.seconds)) return;
    as->seconds = row.seconds;
    as->samples_per_s = (double)row.batch / row.seconds;
}

// All of them, and once more from the last to the first.
static void measure_trials(sweep *s) {
    tune_result *r = s->r;
    const tune_task *t = s->task;
    const tune_row *winner = &r->row[r->winner];
    settings as;
    if (!with_batch(t->described, winner->batch, &as)) return;
    chooser c = chooser_of(t, jobs_of(t, winner), &as);
    memcpy(r->trial, t->trial, sizeof r->trial);
    r->trials = t->trials;
    r->trial[0].seconds = winner->seconds;
    r->trial[0].samples_per_s = winner->samples_per_s;
    s->done = s->planned;
    int n = 2 * t->trials;
    for (int i = 0; i < n && !r->interrupted; i++)
        measure_trial(s, &c, winner, &r->trial[i < t->trials ? i : n - 1 - i], n - i);
    for (int i = 0; i < r->trials; i++)
        if (!(r->trial[i].seconds > 0) && !r->trial[i].why[0]) snprintf(r->trial[i].why, TUNE_WHY, "stopped");
}

void tune_take(tune_result *r) {
    r->taken = 0;
    for (int i = 1; i < r->trials; i++) {
        const tune_trial *is = &r->trial[i];
        double sure = is->slowest > 0 ? is->samples_per_s * is->seconds / is->slowest : 0;
        if (sure >= TUNE_GAIN * r->trial[0].samples_per_s && is->samples_per_s > r->trial[r->taken].samples_per_s)
            r->taken = i;
    }
}

bool tune_run(const tune_task *t, tune_result *r, err *e) {
    CHECK(t->batches > 0 && t->batches <= TUNE_BATCHES_MOST, "%d batches", t->batches);
    CHECK(t->precisions > 0 && t->precisions <= TUNE_PRECISIONS_MOST, "%d precisions", t->precisions);
    CHECK(t->trials <= TUNE_TRIALS_MOST, "%d trials", t->trials);
    sweep s = {.task = t, .r = r, .queue = t->queue, .planned = 2 * t->batches * t->precisions};
    double kept = t->trials ? trial_share * t->seconds : 0;
    *r = (tune_result){.best = -1, .knee = -1, .winner = -1, .noise_why = "stopped"};
    s.began = clock_seconds();
    s.ends = s.began + (1 - noise_share) * t->seconds - kept; // the noise scale has the rest
    for (int p = 0; p < t->precisions && !r->interrupted; p++) measure_precision(&s, p);
    if (!r->interrupted) measure_again(&s);
    s.ends = s.began + t->seconds - kept;
    if (!r->interrupted) r->noise_why = measure_noise(&s);
    tune_choose(r, t->target);
    s.ends = fmax(s.began + t->seconds, clock_seconds() + kept); // the trials', also where the noise scale took longer
    if (!r->interrupted && r->winner >= 0) measure_trials(&s);
    tune_take(r);
    r->seconds = clock_seconds() - s.began;
    drop_weights(&s);
    if (r->best >= 0 || r->interrupted) return true;
    *e = s.first;
    return s.first.text[0] ? false : err_run(e, "no batch size could be measured");
}
