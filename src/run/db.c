#include "run/db.h"

#include "base/clock.h"
#include "run/db_file.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WAITING_MOST = 8192, FIELDS_MOST = 12, BUSY_MS = 20 };

static const double write_every = 0.5;

// Kinds of rows that wait in the queue, and how each is written.
typedef enum {
    ROW_RUN,
    ROW_FORGET_STEPS,
    ROW_FORGET_EPOCHS,
    ROW_FORGET_METRICS,
    ROW_FORGET_CHANGES,
    ROW_STATUS,
    ROW_EPOCH,
    ROW_METRIC,
    ROW_STEPS,
    ROW_EVENT,
    ROW_SAMPLE,
    ROW_KINDS
} row_kind;

// Rows are added, replaced and deleted, never updated: the sums of db_file.c follow these three. Parentheses around
// what takes two lines, so that no comma is missed.
static const char *const statements[ROW_KINDS] = {
    [ROW_RUN] = ("INSERT OR REPLACE INTO run VALUES"
                 "  (1, ?1, ?2, ?3, coalesce((SELECT started FROM run), ?4), ?4, 'running', '')"),
    [ROW_FORGET_STEPS] = "DELETE FROM steps WHERE step > ?1",
    [ROW_FORGET_EPOCHS] = "DELETE FROM epochs WHERE epoch >= ?1",
    [ROW_FORGET_METRICS] = "DELETE FROM metrics WHERE epoch >= ?1",
    [ROW_FORGET_CHANGES] = "DELETE FROM events WHERE step >= ?1 AND kind = 'precision'",
    [ROW_STATUS] = "INSERT OR REPLACE INTO run SELECT id, version, config, plan, started, ?3, ?1, ?2 FROM run",
    [ROW_EPOCH] = "INSERT OR REPLACE INTO epochs VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    [ROW_METRIC] = "INSERT OR REPLACE INTO metrics VALUES (?1, ?2, ?3, ?4)",
    [ROW_STEPS] = "INSERT OR REPLACE INTO steps VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
    [ROW_EVENT] = "INSERT INTO events (time, step, kind, text) VALUES (?1, ?2, ?3, ?4)",
    [ROW_SAMPLE] = "INSERT INTO samples VALUES (NULL, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
};

typedef enum { FIELD_NULL, FIELD_INT, FIELD_REAL, FIELD_TEXT } field_kind;

typedef struct {
    field_kind kind;
    int64_t number;
    double real;
    char *text;
} field;

typedef struct {
    row_kind kind;
    int fields;
    field field[FIELDS_MOST];
} row;

struct db {
    char *path;
    sqlite3 *file;                      // NULL: could not be opened
    bool refused;                       // a newer version has written it
    sqlite3_stmt *statement[ROW_KINDS]; // NULL: no such row was written yet
    row *waiting;
    int count;
    int64_t lost;
    double tried; // when rows were last written, or tried to be
    err why;      // ERR_NONE: the last writing succeeded
};

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

// Opening

static bool note_trouble(db *d) {
    err_run(&d->why, "%s: %s; numbers of the run are missing in it", d->path,
        d->file ? sqlite3_errmsg(d->file) : "out of memory");
    return false;
}

static bool open_file(db *d, int busy_ms) {
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    if (sqlite3_open_v2(d->path, &d->file, flags, NULL) != SQLITE_OK) return note_trouble(d);
    sqlite3_busy_timeout(d->file, busy_ms);
    d->refused = !db_file_known(d->file, d->path, &d->why);
    if (d->refused) return false;
    bool ok = db_file_prepare(d->file, d->path);
    sqlite3_busy_timeout(d->file, BUSY_MS);
    return ok || note_trouble(d);
}

static void close_file(db *d) {
    for (int i = 0; i < ROW_KINDS; i++) {
        sqlite3_finalize(d->statement[i]);
        d->statement[i] = NULL;
    }
    sqlite3_close(d->file);
    d->file = NULL;
}

db *db_open(const char *path) {
    db *d = calloc(1, sizeof *d);
    NEED(d, "out of memory for a database");
    d->waiting = calloc(WAITING_MOST, sizeof *d->waiting);
    d->path = strdup(path);
    NEED(d->waiting && d->path, "out of memory for a database");
    if (!open_file(d, 50 * BUSY_MS)) close_file(d);
    return d;
}

// The queue

static void drop(db *d, int n) {
    for (int i = 0; i < n; i++)
        for (int k = 0; k < d->waiting[i].fields; k++) free(d->waiting[i].field[k].text);
    memmove(d->waiting, d->waiting + n, (size_t)(d->count - n) * sizeof *d->waiting);
    d->count -= n;
}

static int bind(sqlite3_stmt *st, int at, const field *f) {
    switch (f->kind) {
    case FIELD_INT: return sqlite3_bind_int64(st, at, f->number);
    case FIELD_REAL: return sqlite3_bind_double(st, at, f->real);
    case FIELD_TEXT: return sqlite3_bind_text(st, at, f->text, -1, SQLITE_STATIC);
    case FIELD_NULL: return sqlite3_bind_null(st, at);
    }
    return SQLITE_MISUSE;
}

// A value that was not bound would be written as NULL.
static bool write_row(db *d, const row *r) {
    sqlite3_stmt **kept = &d->statement[r->kind];
    bool ok = *kept || sqlite3_prepare_v2(d->file, statements[r->kind], -1, kept, NULL) == SQLITE_OK;
    if (!ok) return false;
    sqlite3_stmt *st = *kept;
    for (int i = 0; ok && i < r->fields; i++) ok = bind(st, i + 1, &r->field[i]) == SQLITE_OK;
    ok = ok && sqlite3_step(st) == SQLITE_DONE;
    sqlite3_reset(st);
    sqlite3_clear_bindings(st);
    return ok;
}

// All that waits, in one transaction or not at all.
static void write_waiting(db *d) {
    d->tried = clock_seconds();
    if (!d->file || !d->count) return;
    bool ok = sqlite3_exec(d->file, "BEGIN IMMEDIATE", NULL, NULL, NULL) == SQLITE_OK;
    for (int i = 0; ok && i < d->count; i++) ok = write_row(d, &d->waiting[i]);
    ok = ok && sqlite3_exec(d->file, "COMMIT", NULL, NULL, NULL) == SQLITE_OK;
    if (ok) {
        d->why.kind = ERR_NONE;
        drop(d, d->count);
        return;
    }
    note_trouble(d);
    if (!sqlite3_get_autocommit(d->file)) sqlite3_exec(d->file, "ROLLBACK", NULL, NULL, NULL);
}

static row *add(db *d, row_kind kind) {
    if (d->count == WAITING_MOST) write_waiting(d);
    if (d->count == WAITING_MOST) {
        d->lost += WAITING_MOST / 4;
        drop(d, WAITING_MOST / 4);
    }
    row *r = &d->waiting[d->count++];
    *r = (row){.kind = kind};
    return r;
}

static field *next(row *r, field_kind kind) {
    CHECK(r->fields < FIELDS_MOST, "more than %d fields", FIELDS_MOST);
    field *f = &r->field[r->fields++];
    *f = (field){.kind = kind};
    return f;
}

static void put_int(row *r, int64_t v) {
    next(r, FIELD_INT)->number = v;
}

static void put_real(row *r, double v) {
    next(r, FIELD_REAL)->real = v;
}

// Puts a value, or NULL for a negative one, which stands for unknown.
static void put_known(row *r, double v) {
    if (v >= 0)
        put_real(r, v);
    else
        next(r, FIELD_NULL);
}

static void put_text(row *r, const char *text) {
    field *f = next(r, text ? FIELD_TEXT : FIELD_NULL);
    if (!text) return;
    f->text = strdup(text);
    NEED(f->text, "out of memory for a text");
}

// Rows

void db_run(db *d, const char *version, const char *config, const char *plan) {
    row *r = add(d, ROW_RUN);
    put_text(r, version);
    put_text(r, config);
    put_text(r, plan);
    put_real(r, now());
    write_waiting(d);
}

void db_rewind(db *d, uint64_t step, int64_t epoch, bool changed) {
    put_int(add(d, ROW_FORGET_STEPS), (int64_t)step);
    put_int(add(d, ROW_FORGET_EPOCHS), epoch);
    put_int(add(d, ROW_FORGET_METRICS), epoch);
    put_int(add(d, ROW_FORGET_CHANGES), (int64_t)step + changed);
    write_waiting(d);
}

void db_status(db *d, const char *status, const char *note) {
    row *r = add(d, ROW_STATUS);
    put_text(r, status);
    put_text(r, note);
    put_real(r, now());
}

void db_epoch(db *d, const db_epoch_row *e, const db_metric *metrics, int count) {
    row *r = add(d, ROW_EPOCH);
    put_int(r, e->epoch);
    put_int(r, (int64_t)e->step);
    put_real(r, now());
    put_real(r, e->seconds);
    put_real(r, e->samples_per_s);
    put_int(r, e->best);
    put_text(r, e->confusion);
    for (int i = 0; i < count; i++) {
        r = add(d, ROW_METRIC);
        put_int(r, e->epoch);
        put_text(r, metrics[i].part);
        put_text(r, metrics[i].name);
        put_real(r, metrics[i].value);
    }
}

void db_steps(db *d, const db_steps_row *e) {
    row *r = add(d, ROW_STEPS);
    put_int(r, (int64_t)e->step);
    put_int(r, e->epoch);
    put_int(r, e->done);
    put_int(r, e->steps);
    put_real(r, now());
    put_real(r, e->loss_min);
    put_real(r, e->loss_mean);
    put_real(r, e->loss_max);
    put_real(r, e->grad_norm);
    put_real(r, e->lr);
}

void db_event(db *d, uint64_t step, const char *kind, const char *text) {
    row *r = add(d, ROW_EVENT);
    put_real(r, now());
    put_int(r, (int64_t)step);
    put_text(r, kind);
    put_text(r, text);
}

void db_sample(db *d, const db_sample_row *e) {
    const double values[] = {e->time, e->memory_used, e->memory_total, e->memory_process, e->memory_others,
        e->memory_most, e->processes, e->utilisation, e->temperature, e->power, e->clock, e->memory_clock};
    row *r = add(d, ROW_SAMPLE);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) put_known(r, values[i]);
}

// Writing

void db_tick(db *d) {
    if (d->count && clock_seconds() - d->tried >= write_every) write_waiting(d);
}

// A file that could not be opened is tried again here, where a checkpoint takes time anyway.
void db_sync(db *d) {
    if (!d->file && (d->refused || !open_file(d, BUSY_MS))) {
        close_file(d);
        return;
    }
    sqlite3_exec(d->file, "PRAGMA synchronous = FULL", NULL, NULL, NULL);
    write_waiting(d);
    sqlite3_exec(d->file, "PRAGMA synchronous = NORMAL", NULL, NULL, NULL);
}

bool db_trouble(const db *d, err *why) {
    *why = d->why;
    if (d->why.kind == ERR_NONE && d->lost)
        err_run(why, "%s: %lld rows were lost while it could not be written", d->path, (long long)d->lost);
    return why->kind != ERR_NONE;
}

void db_close(db *d) {
    if (!d) return;
    write_waiting(d);
    drop(d, d->count);
    close_file(d);
    free(d->waiting);
    free(d->path);
    free(d);
}
