#include "task/tuning.h"

#include "base/pool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_USUAL = 256, LAST_USUAL = 16384, SECONDS_CARD = 50, SECONDS_CPU = 100 };

// Batches

// Up to a quarter of the samples, and from less than usual where there are few.
static bool list_batches(tuning *v, const tuning_options *w, err *e) {
    tune_task *t = &v->measured;
    int64_t samples = v->task.split.train.count, quarter = samples / 4 ? samples / 4 : 1;
    int64_t to = w->to ? w->to : quarter < LAST_USUAL ? quarter : LAST_USUAL, from = w->from ? w->from : FIRST_USUAL;
    if (!w->to && w->from > to) to = w->from > samples / 2 ? samples : 2 * w->from;
    while (!w->from && from > to && from > 1) from /= 2;
    memcpy(t->batch, w->batch, sizeof t->batch);
    t->batches = w->batches ? w->batches : tune_batches(from, to, t->batch, TUNE_BATCHES_MOST);
    int64_t most = t->batches ? t->batch[t->batches - 1] : from;
    if (most > samples)
        return err_input(
            e, "a batch of %lld is more than the %lld training samples; use less", (long long)most, (long long)samples);
    if (t->batches) return true;
    return err_input(e, "from %lld to %lld lies no power of two, nor three quarters of one; name sizes with --batches",
        (long long)from, (long long)to);
}

// Jobs

// The task's precision first; where the description leaves it open, every other one that the device computes.
static void list_precisions(tuning *v) {
    static const precision order[] = {PRECISION_BF16, PRECISION_FP16, PRECISION_TF32, PRECISION_FP32};
    tune_task *t = &v->measured;
    const task *s = &v->task;
    t->jobs[t->precisions++] = (tune_jobs){s->precision, s->chooser.near, s->chooser.far};
    for (size_t i = 0; s->described.precision_open && i < sizeof order / sizeof *order; i++) {
        precision p = order[i];
        if (p == s->precision || !s->device->computes(s->queue, p)) continue;
        tune_jobs *to = &t->jobs[t->precisions++];
        *to = (tune_jobs){.precision = p};
        if (s->chooser.near) task_job(s, to->near = &v->other[v->others++], RESIDENCY_DEVICE, p);
        if (s->chooser.far) task_job(s, to->far = &v->other[v->others++], RESIDENCY_HOST, p);
    }
}

// Further ways to compute the winner: other products on a card, half the threads of the CPU, where neither is
// said.
static void list_trials(tuning *v) {
    tune_task *t = &v->measured;
    bool card = !v->task.device->host_memory;
    int threads = card || v->task.options.devices.options.threads ? 0 : pool_processors();
    t->options = v->task.options.devices.options;
    if (card && v->task.described.products == PRODUCTS_AUTO)
        for (int p = PRODUCTS_AUTO; p <= PRODUCTS_LIBRARY; p++)
            t->trial[t->trials++] = (tune_trial){.products = (products_by)p};
    if (threads < 2) return;
    t->trial[t->trials++] = (tune_trial){0};
    t->trial[t->trials++] = (tune_trial){.threads = threads / 2};
}

static bool on_progress(void *arg, const tune_row *at, double share) {
    const tuning *v = arg;
    return task_tell(
        &v->task.options.listener, &(task_event){.kind = TASK_TUNING, .task = &v->task, .tuning = {at, share}});
}

static bool measure(tuning *v, const tuning_options *w, err *e) {
    const task *s = &v->task;
    tune_task *t = &v->measured;
    *t = (tune_task){.device = s->device,
        .queue = s->queue,
        .data = s->data,
        .split = &s->split,
        .described = &s->described,
        .budget = &s->budget,
        .seconds = (double)(w->seconds               ? w->seconds
                            : s->device->host_memory ? SECONDS_CPU
                                                     : SECONDS_CARD),
        .target = s->described.target_utilization / 100,
        .on_progress = on_progress,
        .arg = v};
    if (!list_batches(v, w, e)) return false;
    list_precisions(v);
    list_trials(v);
    return tune_run(t, &v->result, e);
}

// Keeping

static wisdom_entry entry_of(const tune_result *r, int i) {
    const tune_row *row = &r->row[i];
    return (wisdom_entry){.batch = row->batch,
        .micro = row->way.batch,
        .parts = row->way.parts,
        .again = row->way.again,
        .host = row->way.host,
        .precision = row->precision,
        .samples_per_s = row->samples_per_s,
        .noise_scale = r->later.known ? r->later.scale : 0};
}

// With what else was taken of the winner.
static void add_taken(const tune_result *r, wisdom_entry *w) {
    const tune_trial *taken = &r->trial[r->taken];
    if (!r->taken) return;
    w->products = taken->products;
    w->threads = taken->threads;
    w->samples_per_s = taken->samples_per_s;
}

// The winner among entries of several tunings, by the same rule, with the noise scale of the last that has one; -1: it
// is out of memory.
static int winner_of(const tuning *v, const wisdom_entry *list, int count) {
    tune_result *r = calloc(1, sizeof *r);
    if (!r) return -1;
    for (int i = 0; i < count; i++)
        r->row[r->rows++] = (tune_row){.batch = list[i].batch, .usual = true, .samples_per_s = list[i].samples_per_s};
    r->later = v->result.later;
    r->steps = v->result.steps;
    bool known = v->result.later.known && v->result.steps >= TUNE_LEARNT;
    if (!known) r->later = (noise_scale){0};
    for (int i = 0; i < count && !known; i++) {
        if (!(list[i].noise_scale > r->later.scale)) continue;
        r->later = (noise_scale){.known = true, .scale = list[i].noise_scale};
        r->steps = TUNE_LEARNT;
    }
    tune_choose(r, v->measured.target);
    int winner = r->winner;
    free(r);
    return winner;
}

// Adds what an earlier tuning found for the same, unless the machine is another by now; the winner of all.
static int join_earlier(tuning *v, const wisdom_key *k, wisdom_entry *list, int *count, int winner) {
    wisdom_entry earlier[WISDOM_ENTRIES_MOST];
    char when[16];
    wisdom_entry now = list[winner];
    int n = wisdom_list(k, earlier, when);
    if (!n) return winner;
    if (!wisdom_join(list, count, earlier, n)) {
        snprintf(v->replaced, sizeof v->replaced, "%s", when);
        return winner;
    }
    int best = winner_of(v, list, *count);
    if (best < 0) best = winner;
    v->stays = list[best];
    bool same = v->stays.batch == now.batch && v->stays.samples_per_s == now.samples_per_s;
    if (!same) snprintf(v->earlier, sizeof v->earlier, "%s", when);
    return best;
}

// Keeps the best way of each batch.
static bool keep(tuning *v, err *e) {
    const tune_result *r = &v->result;
    wisdom_entry list[WISDOM_ENTRIES_MOST];
    wisdom_key k;
    int n = 0, winner = 0;
    for (int i = 0; i < r->rows && n < WISDOM_ENTRIES_MOST; i++) {
        if (i != tune_best_of(r, r->row[i].batch)) continue;
        if (r->row[i].batch == r->row[r->winner].batch) winner = n;
        list[n++] = entry_of(r, i);
    }
    add_taken(r, &list[winner]);
    task_key(&v->task, &k);
    winner = join_earlier(v, &k, list, &n, winner);
    return v->kept = wisdom_keep(&k, list, n, winner, e);
}

bool tuning_open(tuning *v, const task_options *o, err *e) {
    task_options as = *o;
    as.untuned = true;
    memset(v, 0, sizeof *v);
    return wisdom_ready(e) && task_open(&v->task, &as, e);
}

bool task_tune(tuning *v, const tuning_options *w, bool *measured, err *e) {
    *measured = measure(v, w, e);
    return *measured && (v->result.interrupted || keep(v, e));
}

void tuning_close(tuning *v) {
    for (int i = 0; i < v->others; i++) job_done(&v->other[i]);
    task_close(&v->task);
}
