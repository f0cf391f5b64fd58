// Reading run.db: all of one moment, and nothing that its sums do not vouch for.
#include "run/db.h"
#include "run/db_file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BUSY_MS = 1000 };

// Opening

// Where there is no WAL, a killed writer leaves a journal that is rolled back before anything can be read, and that is
// to write.
static bool has_journal(const char *path) {
    char *journal;
    NEED(asprintf(&journal, "%s-journal", path) >= 0, "out of memory for a path");
    bool has = access(journal, F_OK) == 0;
    free(journal);
    return has;
}

static sqlite3 *open_file(const char *path) {
    sqlite3 *file = NULL;
    int flags = has_journal(path) ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY;
    if (sqlite3_open_v2(path, &file, flags, NULL) == SQLITE_OK) sqlite3_busy_timeout(file, BUSY_MS);
    return file;
}

bool db_known(const char *path, err *e) {
    sqlite3 *file = open_file(path);
    bool known = sqlite3_errcode(file) != SQLITE_OK || db_file_known(file, path, e);
    sqlite3_close(file);
    return known;
}

// All that follows is read in one transaction.
static bool begin(db_reader *r, err *e) {
    if (sqlite3_errcode(r->file) == SQLITE_OK && !db_file_known(r->file, r->path, e)) return false;
    if (sqlite3_exec(r->file, "BEGIN; SELECT count(*) FROM run", NULL, NULL, NULL) != SQLITE_OK)
        return db_file_fail(r->file, r->path, "is not the database of a run: ", e);
    return db_file_vouches(r, false, e);
}

db_reader *db_reader_open(const char *path, err *e) {
    db_reader *r = calloc(1, sizeof *r);
    NEED(r && (r->path = strdup(path)), "out of memory for a database");
    r->file = open_file(path);
    if (begin(r, e)) return r;
    db_reader_close(r);
    return NULL;
}

void db_reader_close(db_reader *r) {
    if (!r) return;
    sqlite3_close(r->file);
    free(r->path);
    free(r);
}

bool db_reader_checked(const db_reader *r) {
    return !r->unsummed;
}

// Steps of an epoch that has not ended, as a run that was killed leaves them.
static bool read_begun(const db_reader *r, db_summary *out) {
    static const char query[] = "SELECT step, epoch, done, loss_mean FROM steps ORDER BY step DESC LIMIT 1";
    sqlite3_stmt *st = NULL;
    bool ok = sqlite3_prepare_v2(r->file, query, -1, &st, NULL) == SQLITE_OK;
    if (ok && db_file_next(st, &ok) && sqlite3_column_int64(st, 1) > out->epochs) {
        out->step = (uint64_t)sqlite3_column_int64(st, 0);
        out->begun = sqlite3_column_int64(st, 1);
        out->done = sqlite3_column_int64(st, 2);
        out->loss = db_file_real(st, 3);
    }
    sqlite3_finalize(st);
    return ok;
}

bool db_read(db_reader *r, db_summary *out, err *e) {
    static const char query[] =
        "SELECT status, version, started, max(changed, (SELECT coalesce(max(finished), 0) FROM epochs),"
        " coalesce((SELECT time FROM steps ORDER BY step DESC LIMIT 1), 0)), (SELECT coalesce(max(epoch), 0) FROM "
        "epochs),"
        " (SELECT coalesce(max(epoch), 0) FROM epochs WHERE best), (SELECT coalesce(max(step), 0) FROM epochs),"
        " (SELECT coalesce(sum(seconds), 0) FROM epochs) FROM run";
    *out = (db_summary){0};
    sqlite3_stmt *st = NULL;
    int rc = sqlite3_prepare_v2(r->file, query, -1, &st, NULL);
    if (rc == SQLITE_OK) rc = sqlite3_step(st);
    bool ok = rc == SQLITE_ROW;
    if (ok) {
        snprintf(out->status, sizeof out->status, "%s", db_file_text(st, 0));
        snprintf(out->version, sizeof out->version, "%s", db_file_text(st, 1));
        out->started = sqlite3_column_double(st, 2);
        out->changed = sqlite3_column_double(st, 3);
        out->epochs = sqlite3_column_int64(st, 4);
        out->best_epoch = sqlite3_column_int64(st, 5);
        out->step = (uint64_t)sqlite3_column_int64(st, 6);
        out->seconds = sqlite3_column_double(st, 7);
        ok = read_begun(r, out);
    }
    if (rc == SQLITE_DONE) {
        err_input(e, "%s: is empty; the run could not write to it", r->path);
    } else if (!ok) {
        db_file_fail(r->file, r->path, "is not the database of a run: ", e);
    }
    sqlite3_finalize(st);
    return ok;
}

bool db_read_event(db_reader *r, const char *kind, char *text, size_t room, err *e) {
    static const char query[] = "SELECT text FROM events WHERE kind = ?1 ORDER BY id DESC LIMIT 1";
    sqlite3_stmt *st = NULL;
    text[0] = 0;
    bool ok = sqlite3_prepare_v2(r->file, query, -1, &st, NULL) == SQLITE_OK;
    if (ok) sqlite3_bind_text(st, 1, kind, -1, SQLITE_STATIC);
    if (ok && db_file_next(st, &ok)) snprintf(text, room, "%s", db_file_text(st, 0));
    if (!ok) db_file_fail(r->file, r->path, "", e);
    sqlite3_finalize(st);
    return ok;
}

bool db_read_samples(db_reader *r, db_gauges *out, err *e) {
    static const char query[] =
        "SELECT count(*), max(memory_process), max(memory_others), max(memory_used), max(memory_total),"
        " avg(utilisation), max(utilisation), max(temperature), avg(power), max(power) FROM samples";
    double *const to[] = {&out->memory_process, &out->memory_others, &out->memory_used, &out->memory_total,
        &out->utilisation_mean, &out->utilisation, &out->temperature, &out->power_mean, &out->power};
    const int count = sizeof to / sizeof *to;
    sqlite3_stmt *st = NULL;
    out->samples = 0;
    for (int i = 0; i < count; i++) *to[i] = NAN;
    bool there = db_file_has(r, "samples");
    bool ok = !there || sqlite3_prepare_v2(r->file, query, -1, &st, NULL) == SQLITE_OK;
    if (ok && there && db_file_next(st, &ok)) {
        out->samples = sqlite3_column_int64(st, 0);
        for (int i = 0; i < count; i++) *to[i] = db_file_real(st, i + 1);
    }
    if (!ok) db_file_fail(r->file, r->path, "", e);
    sqlite3_finalize(st);
    return ok;
}

bool db_read_metrics(db_reader *r, int64_t epoch,
    void (*use)(void *arg, const char *part, const char *name, double value), void *arg, err *e) {
    static const char query[] = "SELECT part, name, value FROM metrics WHERE epoch = ?1";
    sqlite3_stmt *st = NULL;
    bool ok = sqlite3_prepare_v2(r->file, query, -1, &st, NULL) == SQLITE_OK;
    if (ok) sqlite3_bind_int64(st, 1, epoch);
    while (ok && db_file_next(st, &ok))
        use(arg, db_file_text(st, 0), db_file_text(st, 1), sqlite3_column_double(st, 2));
    if (!ok) db_file_fail(r->file, r->path, "", e);
    sqlite3_finalize(st);
    return ok;
}
