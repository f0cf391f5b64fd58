#include "run/row_sums.h"

#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

enum { COLUMNS_MOST = 512, EXPRESSION_MOST = 1536, SQL_MOST = 2560 };

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
static void put_columns(char *to, size_t room, const row_sums_table *t, const char *before) {
    size_t used = 0;
    for (const char *at = t->columns; *at; at += strspn(at, ", ")) {
        size_t n = strcspn(at, ",");
        int put = snprintf(to + used, room - used, "%s%s%.*s", used ? ", " : "", before, (int)n, at);
        CHECK(put > 0 && (size_t)put < room - used, "columns of %s", t->name);
        used += (size_t)put;
        at += n;
    }
}

// The sum of a table by its rows, as an expression.
static void put_total(char *to, size_t room, const row_sums_table *t) {
    if (t->newest)
        snprintf(to, room, "coalesce((SELECT row_sum(%s) FROM %s ORDER BY %s DESC LIMIT 1), 0)", t->columns, t->name,
            t->newest);
    else
        snprintf(to, room, "(SELECT coalesce(sum(row_sum(%s)), 0) FROM %s)", t->columns, t->name);
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

// The new sum of a table once a row was added, removed or changed.
static bool add_triggers(sqlite3 *file, const row_sums_table *t) {
    static const char *const events[] = {"INSERT", "DELETE", "UPDATE"};
    char now[COLUMNS_MOST], old[COLUMNS_MOST], after[EXPRESSION_MOST];
    bool ok = true;
    put_columns(now, sizeof now, t, "new.");
    put_columns(old, sizeof old, t, "old.");
    for (int i = 0; ok && i < 3; i++) {
        if (t->newest)
            put_total(after, sizeof after, t);
        else if (i < 2)
            snprintf(after, sizeof after, "sum %s row_sum(%s)", i ? "-" : "+", i ? old : now);
        else
            snprintf(after, sizeof after, "sum - row_sum(%s) + row_sum(%s)", old, now);
        ok = execute(file,
            "CREATE TEMP TRIGGER %s_%s AFTER %s ON main.%s BEGIN UPDATE sums SET sum = %s WHERE name = '%s'; END",
            t->key, events[i], events[i], t->name, after, t->key);
    }
    return ok;
}

// Rows that an earlier program has written are summed as they are. Triggers are to be told of rows that are replaced,
// too.
bool row_sums_keep(sqlite3 *file, const row_sums_table *tables, int count) {
    char total[EXPRESSION_MOST];
    bool ok = add_function(file) &&
              execute(file, "CREATE TABLE IF NOT EXISTS sums (name TEXT PRIMARY KEY, sum INTEGER) WITHOUT ROWID;"
                            "PRAGMA recursive_triggers = ON");
    for (int i = 0; ok && i < count; i++) {
        const row_sums_table *t = &tables[i];
        put_total(total, sizeof total, t);
        ok = execute(file, "INSERT INTO sums SELECT '%s', %s WHERE NOT EXISTS (SELECT 1 FROM sums WHERE name = '%s')",
                 t->key, total, t->key) &&
             add_triggers(file, t);
    }
    return ok;
}

// Checking

static bool has_table(sqlite3 *file, const char *name) {
    return sqlite3_table_column_metadata(file, NULL, name, NULL, NULL, NULL, NULL, NULL, NULL) == SQLITE_OK;
}

// 1: rows and sum are the same; 0: they are not; -1: SQLite has failed.
static int compare(sqlite3 *file, const row_sums_table *t) {
    char total[EXPRESSION_MOST], query[SQL_MOST];
    sqlite3_stmt *st = NULL;
    put_total(total, sizeof total, t);
    snprintf(query, sizeof query, "SELECT (SELECT sum FROM sums WHERE name = '%s') IS %s", t->key, total);
    bool ok = sqlite3_prepare_v2(file, query, -1, &st, NULL) == SQLITE_OK && sqlite3_step(st) == SQLITE_ROW;
    int same = ok ? sqlite3_column_int(st, 0) : -1;
    sqlite3_finalize(st);
    return same;
}

row_sums_state row_sums_check(sqlite3 *file, const row_sums_table *tables, int count, bool drawn, const char **table) {
    if (!add_function(file)) return ROW_SUMS_FAILED;
    if (!has_table(file, "sums")) return ROW_SUMS_NONE;
    for (int i = 0; i < count; i++) {
        int same = tables[i].drawn == drawn ? compare(file, &tables[i]) : 1;
        *table = tables[i].name;
        if (same != 1) return same ? ROW_SUMS_FAILED : ROW_SUMS_DAMAGED;
    }
    return ROW_SUMS_WHOLE;
}
