#include "run/db_file.h"

#include "base/file.h"
#include "base/format.h"
#include "base/network.h"
#include "run/row_sums.h"

#include <math.h>
#include <stdio.h>

// In one transaction: each by itself would write the first page again.
static const char schema[] =
    "BEGIN IMMEDIATE;"
    "PRAGMA user_version = 2;"
    "CREATE TABLE IF NOT EXISTS run (id INTEGER PRIMARY KEY CHECK (id = 1), version TEXT, config TEXT, plan TEXT,"
    "  started REAL, changed REAL, status TEXT, note TEXT);"
    "CREATE TABLE IF NOT EXISTS epochs (epoch INTEGER PRIMARY KEY, step INTEGER, finished REAL, seconds REAL,"
    "  samples_per_s REAL, best INTEGER, confusion TEXT);"
    "CREATE TABLE IF NOT EXISTS metrics (epoch INTEGER, part TEXT, name TEXT, value REAL,"
    "  PRIMARY KEY (epoch, part, name)) WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS steps (step INTEGER PRIMARY KEY, epoch INTEGER, done INTEGER, steps INTEGER, time REAL,"
    "  loss_min REAL, loss_mean REAL, loss_max REAL, grad_norm REAL, lr REAL);"
    "CREATE TABLE IF NOT EXISTS events (id INTEGER PRIMARY KEY, time REAL, step INTEGER, kind TEXT, text TEXT);"
    "CREATE TABLE IF NOT EXISTS samples (id INTEGER PRIMARY KEY, time REAL, memory_used INTEGER, memory_total INTEGER,"
    "  memory_process INTEGER, memory_others INTEGER, memory_most INTEGER, processes INTEGER, utilisation REAL,"
    "  temperature REAL, power REAL, clock REAL, memory_clock REAL);";

#define STEPS "step, epoch, done, steps, time, loss_min, loss_mean, loss_max, grad_norm, lr"

// The newest step is all that most readers show.
static const row_sums_table tables[] = {
    {"run", "run", "id, version, config, plan, started, changed, status, note", NULL, false},
    {"epochs", "epochs", "epoch, step, finished, seconds, samples_per_s, best, confusion", NULL, false},
    {"metrics", "metrics", "epoch, part, name, value", NULL, false},
    {"steps", "steps", STEPS, "step", false},
    {"all_steps", "steps", STEPS, NULL, true},
    {"events", "events", "id, time, step, kind, text", NULL, false},
    {"samples", "samples",
        "id, time, memory_used, memory_total, memory_process, memory_others, memory_most, processes, utilisation, "
        "temperature, power, clock, memory_clock",
        NULL, false},
};
enum { TABLES = sizeof tables / sizeof *tables };

static bool execute(sqlite3 *file, const char *sql) {
    return sqlite3_exec(file, sql, NULL, NULL, NULL) == SQLITE_OK;
}

// Format

static int version_of(sqlite3 *file) {
    sqlite3_stmt *st = NULL;
    bool ok = sqlite3_prepare_v2(file, "PRAGMA user_version", -1, &st, NULL) == SQLITE_OK;
    int version = ok && sqlite3_step(st) == SQLITE_ROW ? sqlite3_column_int(st, 0) : -1;
    sqlite3_finalize(st);
    return version;
}

bool db_file_known(sqlite3 *file, const char *path, err *e) {
    return format_known(path, version_of(file), DB_VERSION, e);
}

bool db_file_prepare(sqlite3 *file, const char *path) {
    char settings[128];
    snprintf(settings, sizeof settings,
        "PRAGMA journal_mode = %s; PRAGMA synchronous = NORMAL; PRAGMA temp_store = MEMORY",
        network_of(path) ? "DELETE" : "WAL");
    return execute(file, settings) && execute(file, schema) && row_sums_keep(file, tables, TABLES) &&
           execute(file, "COMMIT");
}

// Reading

bool db_file_fail(sqlite3 *file, const char *path, const char *what, err *e) {
    int code = file ? sqlite3_errcode(file) : SQLITE_NOMEM;
    char why[300];
    NEED(code != SQLITE_NOMEM, "%s: cannot be read: out of memory", path);
    if (code == SQLITE_CANTOPEN) file_fail(e, path, "cannot be read", sqlite3_system_errno(file));
    if (code == SQLITE_CANTOPEN && e->kind == ERR_RUN) return false; // a file that is not there is another matter
    snprintf(why, sizeof why, "%s", sqlite3_errmsg(file));
    for (char *c = why; *c; c++) // words of a damaged file may be no text
        if ((unsigned char)*c >= 0x7f) *c = '?';
    if (code == SQLITE_IOERR || code == SQLITE_FULL) return err_run(e, "%s: cannot be read: %s", path, why);
    return err_input(e, "%s: %s%s", path, code == SQLITE_CORRUPT ? "is damaged: " : what, why);
}

bool db_file_vouches(db_reader *r, bool drawn, err *e) {
    const char *table = "";
    row_sums_state state = row_sums_check(r->file, tables, TABLES, drawn, &table);
    r->unsummed = state == ROW_SUMS_NONE;
    if (state == ROW_SUMS_FAILED) return db_file_fail(r->file, r->path, "", e);
    return state != ROW_SUMS_DAMAGED ||
           err_input(e,
               "%s: the rows of its table %s do not fit their sum, so that its figures are "
               "not shown: it is damaged, or "
               "another program has written to it; the run itself does not need it",
               r->path, table);
}

bool db_file_has(const db_reader *r, const char *table) {
    int rc = sqlite3_table_column_metadata(r->file, NULL, table, NULL, NULL, NULL, NULL, NULL, NULL);
    NEED(rc != SQLITE_NOMEM, "%s: cannot be read: out of memory", r->path);
    return rc == SQLITE_OK;
}

bool db_file_next(sqlite3_stmt *st, bool *ok) {
    int rc = sqlite3_step(st);
    *ok = rc == SQLITE_ROW || rc == SQLITE_DONE;
    return rc == SQLITE_ROW;
}

const char *db_file_text(sqlite3_stmt *st, int column) {
    const unsigned char *text = sqlite3_column_text(st, column);
    NEED(text || sqlite3_errcode(sqlite3_db_handle(st)) != SQLITE_NOMEM, "out of memory for a text of run.db");
    return text ? (const char *)text : "";
}

double db_file_real(sqlite3_stmt *st, int column) {
    return sqlite3_column_type(st, column) == SQLITE_NULL ? NAN : sqlite3_column_double(st, column);
}
