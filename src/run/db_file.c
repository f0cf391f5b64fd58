#include "run/db_file.h"

#include "base/file.h"
#include "base/format.h"
#include "base/network.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

enum { COLUMNS_MOST = 512, EXPRESSION_MOST = 1280, SQL_MOST = 2048 };

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
    "  temperature REAL, power REAL, clock REAL, memory_clock REAL);"
    "CREATE TABLE IF NOT EXISTS sums (name TEXT PRIMARY KEY, sum INTEGER) WITHOUT ROWID;";

#define STEPS "step, epoch, done, steps, time, loss_min, loss_mean, loss_max, grad_norm, lr"

// Sums: their names, the tables with all their columns; `newest`: the column by which only the last row is summed, or
// NULL. `drawn`: the rows are shown one by one alone, so that they are compared where that is asked for.
static const struct {
    const char *key, *name, *columns, *newest;
    bool drawn;
} tables[] = {
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

// Sums

static uLong sum_value(uLong sum, sqlite3_value *v) {
    unsigned char type = (unsigned char)sqlite3_value_type(v);
    sum = crc32_z(sum, &type, 1);
    if (type == SQLITE_INTEGER) {
        sqlite3_int64 number = sqlite3_value_int64(v);
        return crc32_z(sum, (const unsigned char *)&number, sizeof number);
    }
    if (type == SQLITE_FLOAT) {
        double real = sqlite3_value_double(v);
        return crc32_z(sum, (const unsigned char *)&real, sizeof real);
    }
    const unsigned char *text = type == SQLITE_NULL ? NULL : sqlite3_value_blob(v);
    int bytes = text ? sqlite3_value_bytes(v) : 0;
    sum = crc32_z(sum, (const unsigned char *)&bytes, sizeof bytes);
    return bytes ? crc32_z(sum, text, (size_t)bytes) : sum;
}

// row_sum(columns...): 2^32 and their CRC-32.
static void row_sum(sqlite3_context *to, int count, sqlite3_value **value) {
    uLong sum = 0;
    for (int i = 0; i < count; i++) sum = sum_value(sum, value[i]);
    sqlite3_result_int64(to, (sqlite3_int64)((1ull << 32) + sum));
}

static bool add_function(sqlite3 *file) {
    return sqlite3_create_function(
               file, "row_sum", -1, SQLITE_UTF8 | SQLITE_DETERMINISTIC, NULL, row_sum, NULL, NULL) == SQLITE_OK;
}

// The columns of a table, each with `before` before it.
static void put_columns(char *to, size_t room, int table, const char *before) {
    size_t used = 0;
    for (const char *at = tables[table].columns; *at; at += strspn(at, ", ")) {
        size_t n = strcspn(at, ",");
        int put = snprintf(to + used, room - used, "%s%s%.*s", used ? ", " : "", before, (int)n, at);
        CHECK(put > 0 && (size_t)put < room - used, "columns of %s", tables[table].name);
        used += (size_t)put;
        at += n;
    }
}

// The sum of a table by its rows, as an expression.
static void put_total(char *to, size_t room, int table) {
    const char *name = tables[table].name, *columns = tables[table].columns, *newest = tables[table].newest;
    if (newest)
        snprintf(to, room, "coalesce((SELECT row_sum(%s) FROM %s ORDER BY %s DESC LIMIT 1), 0)", columns, name, newest);
    else
        snprintf(to, room, "(SELECT coalesce(sum(row_sum(%s)), 0) FROM %s)", columns, name);
}

__attribute__((format(printf, 2, 3))) static bool execute(sqlite3 *file, const char *fmt, ...) {
    char sql[SQL_MOST];
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(sql, sizeof sql, fmt, args);
    va_end(args);
    CHECK(n > 0 && n < SQL_MOST, "a statement of %d bytes", n);
    return sqlite3_exec(file, sql, NULL, NULL, NULL) == SQLITE_OK;
}

// The new sum of a table once a row was added or removed. No statement of the writer changes a row where it is: it is
// replaced, which is both.
static bool add_triggers(sqlite3 *file, int table) {
    static const struct {
        const char *event, *row, *sign;
    } changes[] = {{"INSERT", "new.", "+"}, {"DELETE", "old.", "-"}};
    const char *name = tables[table].name, *key = tables[table].key;
    char columns[COLUMNS_MOST], after[EXPRESSION_MOST];
    bool ok = true;
    for (int i = 0; ok && i < 2; i++) {
        put_columns(columns, sizeof columns, table, changes[i].row);
        if (tables[table].newest)
            put_total(after, sizeof after, table);
        else
            snprintf(after, sizeof after, "sum %s row_sum(%s)", changes[i].sign, columns);
        ok = execute(file,
            "CREATE TEMP TRIGGER %s_%s AFTER %s ON main.%s BEGIN UPDATE sums SET sum = %s WHERE name = '%s'; END", key,
            changes[i].event, changes[i].event, name, after, key);
    }
    return ok;
}

// Rows that an earlier program has written are summed as they are.
static bool add_sums(sqlite3 *file) {
    char total[EXPRESSION_MOST];
    bool ok = true;
    for (int i = 0; ok && i < TABLES; i++) {
        put_total(total, sizeof total, i);
        ok = execute(file, "INSERT INTO sums SELECT '%s', %s WHERE NOT EXISTS (SELECT 1 FROM sums WHERE name = '%s')",
                 tables[i].key, total, tables[i].key) &&
             add_triggers(file, i);
    }
    return ok;
}

// Triggers are to be told of rows that are replaced, too.
bool db_file_prepare(sqlite3 *file, const char *path) {
    const char *journal = network_of(path) ? "DELETE" : "WAL";
    return execute(file,
               "PRAGMA journal_mode = %s; PRAGMA synchronous = NORMAL; PRAGMA temp_store = MEMORY;"
               "PRAGMA recursive_triggers = ON",
               journal) &&
           add_function(file) && execute(file, "%s", schema) && add_sums(file) && execute(file, "COMMIT");
}

// Checking

static bool has_table(sqlite3 *file, const char *name) {
    return sqlite3_table_column_metadata(file, NULL, name, NULL, NULL, NULL, NULL, NULL, NULL) == SQLITE_OK;
}

// 1: rows and sum are the same; 0: they are not; -1: SQLite has failed.
static int compare(sqlite3 *file, int table) {
    char total[EXPRESSION_MOST], query[SQL_MOST];
    sqlite3_stmt *st = NULL;
    put_total(total, sizeof total, table);
    snprintf(query, sizeof query, "SELECT (SELECT sum FROM sums WHERE name = '%s') IS %s", tables[table].key, total);
    bool ok = sqlite3_prepare_v2(file, query, -1, &st, NULL) == SQLITE_OK && sqlite3_step(st) == SQLITE_ROW;
    int same = ok ? sqlite3_column_int(st, 0) : -1;
    sqlite3_finalize(st);
    return same;
}

db_file_state db_file_check(sqlite3 *file, bool drawn, const char **table) {
    if (!add_function(file)) return DB_FILE_FAILED;
    if (!has_table(file, "sums")) return DB_FILE_UNSUMMED;
    for (int i = 0; i < TABLES; i++) {
        int same = tables[i].drawn == drawn ? compare(file, i) : 1;
        *table = tables[i].name;
        if (same != 1) return same ? DB_FILE_FAILED : DB_FILE_DAMAGED;
    }
    return DB_FILE_WHOLE;
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
    db_file_state state = db_file_check(r->file, drawn, &table);
    r->unsummed = state == DB_FILE_UNSUMMED;
    if (state == DB_FILE_FAILED) return db_file_fail(r->file, r->path, "", e);
    return state != DB_FILE_DAMAGED || err_input(e,
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
