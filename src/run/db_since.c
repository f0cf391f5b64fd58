#include "run/db_since.h"

#include "run/db_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS_MOST = 64 };

void db_news_init(db_news *n) {
    *n = (db_news){0};
    arena_init(&n->texts);
}

void db_news_done(db_news *n) {
    free(n->epoch);
    free(n->metric);
    free(n->steps_row);
    free(n->sample);
    free(n->event);
    arena_done(&n->texts);
    *n = (db_news){0};
}

// Rows

static void *grown(void *rows, int count, size_t bytes) {
    bool full = (count & (count - 1)) == 0; // rooms are powers of two
    if (!full) return rows;
    rows = realloc(rows, (count ? 2 * (size_t)count : 1) * bytes);
    NEED(rows, "out of memory for rows of run.db");
    return rows;
}

static const char *text_at(sqlite3_stmt *st, int column, db_news *n) {
    if (sqlite3_column_type(st, column) == SQLITE_NULL) return NULL;
    return arena_text(&n->texts, db_file_text(st, column));
}

static void take_epoch(sqlite3_stmt *st, db_news *n, db_cursor *c) {
    n->epoch = grown(n->epoch, n->epochs, sizeof *n->epoch);
    n->epoch[n->epochs++] =
        (db_epoch_news){.row = {sqlite3_column_int64(st, 0), (uint64_t)sqlite3_column_int64(st, 1), db_file_real(st, 2),
                            db_file_real(st, 3), sqlite3_column_int(st, 4) != 0, text_at(st, 5, n)},
            .finished = db_file_real(st, 6)};
    c->epoch = sqlite3_column_int64(st, 0);
}

static void take_steps(sqlite3_stmt *st, db_news *n, db_cursor *c) {
    n->steps_row = grown(n->steps_row, n->steps, sizeof *n->steps_row);
    n->steps_row[n->steps++] =
        (db_steps_news){.row = {(uint64_t)sqlite3_column_int64(st, 0), sqlite3_column_int64(st, 1),
                            sqlite3_column_int64(st, 2), sqlite3_column_int64(st, 3), db_file_real(st, 4),
                            db_file_real(st, 5), db_file_real(st, 6), db_file_real(st, 7), db_file_real(st, 8)},
            .time = db_file_real(st, 9)};
    c->step = sqlite3_column_int64(st, 0);
}

static void take_sample(sqlite3_stmt *st, db_news *n, db_cursor *c) {
    n->sample = grown(n->sample, n->samples, sizeof *n->sample);
    db_sample_row *r = &n->sample[n->samples++];
    double *const fields[] = {&r->time, &r->memory_used, &r->memory_total, &r->memory_process, &r->memory_others,
        &r->memory_most, &r->processes, &r->utilisation, &r->temperature, &r->power, &r->clock, &r->memory_clock};
    for (int i = 0; i < (int)(sizeof fields / sizeof *fields); i++) *fields[i] = db_file_real(st, i + 1);
    c->sample = sqlite3_column_int64(st, 0);
}

static void take_event(sqlite3_stmt *st, db_news *n, db_cursor *c) {
    n->event = grown(n->event, n->events, sizeof *n->event);
    n->event[n->events++] = (db_event_news){sqlite3_column_int64(st, 0), (uint64_t)sqlite3_column_int64(st, 1),
        db_file_real(st, 2), text_at(st, 3, n), text_at(st, 4, n)};
    c->event = sqlite3_column_int64(st, 0);
}

typedef void take_row(sqlite3_stmt *st, db_news *n, db_cursor *c);

// A statement on a table; *st is NULL where the table is not there or has other columns.
static bool prepare(sqlite3 *file, const char *query, sqlite3_stmt **st) {
    *st = NULL;
    int rc = sqlite3_prepare_v2(file, query, -1, st, NULL);
    NEED(rc != SQLITE_NOMEM, "out of memory for a query on run.db");
    return rc == SQLITE_OK || rc == SQLITE_ERROR;
}

// The rows of a query with a key (?1) behind which to begin, and a number of rows (?2).
static bool each_since(
    sqlite3 *file, const char *query, int64_t behind, int most, take_row *take, db_news *n, db_cursor *c) {
    sqlite3_stmt *st;
    int rows = 0;
    bool ok = prepare(file, query, &st);
    if (!st) return ok;
    sqlite3_bind_int64(st, 1, behind);
    sqlite3_bind_int(st, 2, most);
    for (; db_file_next(st, &ok); rows++) take(st, n, c);
    n->more |= rows == most;
    sqlite3_finalize(st);
    return ok;
}

// Metrics

// Takes the epochs from the cursor's on, whole ones. Those of the first are dropped again where they were handed out.
static bool each_metric(sqlite3 *file, int most, db_news *n, db_cursor *c) {
    static const char query[] =
        "SELECT epoch, part, name, value FROM metrics WHERE epoch >= ?1 ORDER BY epoch, part, name";
    sqlite3_stmt *st;
    bool ok = prepare(file, query, &st);
    if (!st) return ok;
    const int64_t last = c->metric, had = c->metrics;
    int64_t epoch = 0, of_it = 0;
    sqlite3_bind_int64(st, 1, last);
    while (db_file_next(st, &ok)) {
        int64_t at = sqlite3_column_int64(st, 0);
        if (at != epoch && epoch == last && of_it == had) n->metrics = 0;
        if (at != epoch && n->metrics >= most) {
            n->more = true;
            break;
        }
        if (at != epoch) of_it = 0;
        epoch = at;
        const char *part = text_at(st, 1, n), *name = text_at(st, 2, n);
        of_it++;
        n->metric = grown(n->metric, n->metrics, sizeof *n->metric);
        n->metric[n->metrics++] = (db_metric_news){epoch, {part ? part : "", name ? name : "", db_file_real(st, 3)}};
    }
    if (epoch == last && of_it == had) n->metrics = 0;
    if (of_it) {
        c->metric = epoch;
        c->metrics = of_it;
    }
    sqlite3_finalize(st);
    return ok;
}

bool db_since(sqlite3 *file, db_cursor *c, int most, db_news *out) {
    db_cursor at = *c;
    out->more = false;
    out->epochs = out->metrics = out->steps = out->samples = out->events = 0;
    arena_done(&out->texts);
    arena_init(&out->texts);
    bool ok = each_since(file,
                  "SELECT epoch, step, seconds, samples_per_s, best, confusion, finished FROM epochs WHERE epoch > ?1"
                  " ORDER BY epoch LIMIT ?2",
                  at.epoch, most, take_epoch, out, &at) &&
              each_since(file,
                  "SELECT step, epoch, done, steps, loss_min, loss_mean, loss_max, grad_norm, lr, time FROM steps"
                  " WHERE step > ?1 ORDER BY step LIMIT ?2",
                  at.step, most, take_steps, out, &at) &&
              each_since(file,
                  "SELECT id, time, memory_used, memory_total, memory_process, memory_others, memory_most, processes,"
                  " utilisation, temperature, power, clock, memory_clock FROM samples WHERE id > ?1 ORDER BY id"
                  " LIMIT ?2",
                  at.sample, most, take_sample, out, &at) &&
              each_since(file, "SELECT id, step, time, kind, text FROM events WHERE id > ?1 ORDER BY id LIMIT ?2",
                  at.event, most, take_event, out, &at) &&
              each_metric(file, most, out, &at);
    if (ok) *c = at;
    return ok;
}

// The run

static char *copy(sqlite3_stmt *st, int column) {
    char *text = strdup(db_file_text(st, column));
    NEED(text, "out of memory for a text of run.db");
    return text;
}

static bool read_row(sqlite3 *file, db_now *out) {
    sqlite3_stmt *st;
    bool ok = prepare(file, "SELECT status, version, config, plan, note, started, changed FROM run", &st);
    if (!st) return ok;
    if (db_file_next(st, &ok)) {
        snprintf(out->status, sizeof out->status, "%s", db_file_text(st, 0));
        snprintf(out->version, sizeof out->version, "%s", db_file_text(st, 1));
        out->config = copy(st, 2);
        out->plan = copy(st, 3);
        out->note = copy(st, 4);
        out->started = db_file_real(st, 5);
        out->changed = db_file_real(st, 6);
    }
    sqlite3_finalize(st);
    return ok;
}

// One number; a table that is not there leaves it.
static bool read_number(sqlite3 *file, const char *query, int64_t *to) {
    sqlite3_stmt *st;
    bool ok = prepare(file, query, &st);
    if (st && db_file_next(st, &ok)) *to = sqlite3_column_int64(st, 0);
    sqlite3_finalize(st);
    return ok;
}

bool db_now_read(sqlite3 *file, db_now *out) {
    *out = (db_now){0};
    bool ok = read_row(file, out) && read_number(file, "SELECT max(epoch) FROM epochs", &out->epoch) &&
              read_number(file, "SELECT max(epoch) FROM epochs WHERE best", &out->best_epoch) &&
              read_number(file, "SELECT max(step) FROM steps", &out->step) &&
              read_number(file, "SELECT max(id) FROM samples", &out->sample) &&
              read_number(file, "SELECT max(id) FROM events", &out->event) &&
              read_number(file, "SELECT max(id) FROM events WHERE kind = 'resume'", &out->resumed);
    if (!ok) db_now_done(out);
    return ok;
}

void db_now_done(db_now *n) {
    free(n->config);
    free(n->plan);
    free(n->note);
    *n = (db_now){0};
}

bool db_vouch(sqlite3 *file, const char *path, err *e) {
    char *name = strdup(path);
    NEED(name, "out of memory for a path");
    db_reader r = {.file = file, .path = name};
    bool fits = db_file_vouches(&r, false, e) && (r.unsummed || db_file_vouches(&r, true, e));
    free(name);
    return fits;
}

// Any table

static bool is_known(const char *name) {
    static const char *const known[] = {"run", "epochs", "metrics", "steps", "events", "samples", "sums"};
    bool is = false;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) is |= strcmp(known[i], name) == 0;
    return is;
}

bool db_each_table(sqlite3 *file, void (*use)(void *arg, const char *name, bool known), void *arg) {
    static const char query[] =
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name";
    sqlite3_stmt *st;
    bool ok = prepare(file, query, &st);
    if (!st) return false;
    while (db_file_next(st, &ok)) use(arg, db_file_text(st, 0), is_known(db_file_text(st, 0)));
    sqlite3_finalize(st);
    return ok;
}

static void note_table(void *arg, const char *name, bool known) {
    const char **asked = arg;
    (void)known;
    if (*asked && strcmp(*asked, name) == 0) *asked = NULL;
}

bool db_each_row(sqlite3 *file, const char *table, db_use_row *use, void *arg) {
    const char *asked = table, *value[COLUMNS_MOST];
    if (!db_each_table(file, note_table, &asked) || asked) return false;
    char *query = sqlite3_mprintf("SELECT * FROM \"%w\"", table);
    NEED(query, "out of memory for a query on run.db");
    sqlite3_stmt *st;
    bool ok = prepare(file, query, &st) && st;
    sqlite3_free(query);
    if (!ok) return false;
    int columns = sqlite3_column_count(st);
    if (columns > COLUMNS_MOST) columns = COLUMNS_MOST;
    for (int i = 0; i < columns; i++) value[i] = sqlite3_column_name(st, i);
    bool more = use(arg, columns, value);
    while (more && db_file_next(st, &ok)) {
        for (int i = 0; i < columns; i++)
            value[i] = sqlite3_column_type(st, i) == SQLITE_NULL ? NULL : db_file_text(st, i);
        more = use(arg, columns, value);
    }
    sqlite3_finalize(st);
    return ok;
}
