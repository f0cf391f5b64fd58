#include "watch/board.h"

#include "run/run.h"
#include "watch/tail.h"
#include "watch/tfevents.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TRIES = 40 };

struct board {
    tail *run;
    tail_cursor cursor;
    tfevents *out;
    char *path;
    double started;
    struct {
        int64_t epoch, step;
        double time;
    } last;         // the epoch whose metrics come
    int64_t metric; // the last epoch whose metrics were written: they may come once more
    int64_t values;
};

static void put(board *b, double time, int64_t step, const char *group, const char *name, double value) {
    char tag[160];
    if (!isfinite(value)) return;
    snprintf(tag, sizeof tag, "%s%s%s", group, *group ? "/" : "", name);
    tfevents_scalar(b->out, time, step, tag, value);
    b->values++;
}

static void put_epoch(board *b, const db_epoch_news *n) {
    put(b, n->finished, (int64_t)n->row.step, "epoch", "seconds", n->row.seconds);
    put(b, n->finished, (int64_t)n->row.step, "epoch", "samples_per_s", n->row.samples_per_s);
}

// Metrics stand in the order of their epochs, and so do these.
static void put_metrics(board *b, const db_news *n) {
    int at = 0;
    int64_t before = b->metric;
    for (int i = 0; i < n->metrics; i++) {
        const db_metric_news *m = &n->metric[i];
        while (at < n->epochs && n->epoch[at].row.epoch <= m->epoch) {
            b->last.epoch = n->epoch[at].row.epoch;
            b->last.step = (int64_t)n->epoch[at].row.step;
            b->last.time = n->epoch[at++].finished;
        }
        if (m->epoch <= before) continue;
        bool known = b->last.epoch == m->epoch;
        put(b, known ? b->last.time : b->started, known ? b->last.step : m->epoch, m->metric.part, m->metric.name,
            m->metric.value);
        b->metric = m->epoch;
    }
}

static void put_steps(board *b, const db_steps_news *n) {
    const struct {
        const char *name;
        double value;
    } all[] = {{"loss", n->row.loss_mean}, {"loss_min", n->row.loss_min}, {"loss_max", n->row.loss_max},
        {"grad_norm", n->row.grad_norm}, {"lr", n->row.lr}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        put(b, n->time, (int64_t)n->row.step, "steps", all[i].name, all[i].value);
}

static void put_sample(board *b, const db_sample_row *s) {
    const struct {
        const char *name;
        double value;
    } all[] = {{"memory_process", s->memory_process}, {"memory_used", s->memory_used}, {"utilisation", s->utilisation},
        {"temperature", s->temperature}, {"power", s->power}, {"clock", s->clock}};
    int64_t second = (int64_t)fmax(s->time - b->started, 0);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) put(b, s->time, second, "device", all[i].name, all[i].value);
}

// Begins the file: also where the run has gone back, and all that was written is void.
static bool begin(board *b, err *e) {
    char *name;
    tfevents_close(b->out);
    free(b->path);
    b->started = tail_at(b->run)->run.started;
    NEED(asprintf(&name, "events.out.tfevents.%.0f.tradewind", b->started) >= 0, "out of memory for a path");
    b->path = run_path(tail_dir(b->run), name);
    free(name);
    b->values = b->metric = 0;
    b->out = tfevents_open(b->path, b->started, e);
    return b->out != NULL;
}

// Waits until run.db can be read; a run that has just begun needs a moment.
static bool make_ready(board *b, err *e) {
    static const struct timespec pause = {.tv_nsec = 50000000};
    const tail_now *now = tail_at(b->run);
    for (int i = 0; i < TRIES; i++) {
        tail_poll(b->run);
        if (now->state == TAIL_READY) return true;
        if (now->state == TAIL_BROKEN) *e = now->trouble;
        if (now->state == TAIL_BROKEN) return false;
        if (now->state == TAIL_ABSENT) break;
        nanosleep(&pause, NULL);
    }
    return err_input(e, "%s: has no run.db that can be read; name the directory of a run", tail_dir(b->run));
}

board *board_open(const char *dir, err *e) {
    board *b = calloc(1, sizeof *b);
    NEED(b, "out of memory for an event file");
    b->run = tail_open(dir);
    if (make_ready(b, e) && begin(b, e)) return b;
    board_close(b);
    return NULL;
}

void board_close(board *b) {
    if (!b) return;
    tfevents_close(b->out);
    tail_close(b->run);
    free(b->path);
    free(b);
}

bool board_go_on(board *b, bool *running, err *e) {
    tail_rows rows = {.more = true};
    tail_poll(b->run);
    *running = true;
    while (rows.more) {
        if (!tail_read(b->run, &b->cursor, &rows)) break;
        if (rows.again && !begin(b, e)) return false;
        for (int i = 0; i < rows.rows->epochs; i++) put_epoch(b, &rows.rows->epoch[i]);
        put_metrics(b, rows.rows);
        for (int i = 0; i < rows.rows->steps; i++) put_steps(b, &rows.rows->steps_row[i]);
        for (int i = 0; i < rows.rows->samples; i++) put_sample(b, &rows.rows->sample[i]);
        *running = rows.more || strcmp(tail_at(b->run)->status, "running") == 0;
    }
    if (tail_at(b->run)->state == TAIL_ABSENT) *running = false;
    return tfevents_flush(b->out, e);
}

const char *board_path(const board *b) {
    return b->path;
}

int64_t board_values(const board *b) {
    return b->values;
}
