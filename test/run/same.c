#include "run/same.h"

#include "run/safetensors.h"
#include "support.h"

#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void same_notes(const safetensors *a, const safetensors *b) {
    static const char *const keys[] = {"step", "epoch", "done", "best_epoch", "precision", "plan", "version"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const char *x = safetensors_metadata(a, keys[i]), *y = safetensors_metadata(b, keys[i]);
        assert_int_equal(x != NULL, y != NULL);
        if (x) assert_string_equal(x, y);
    }
}

void same_files(const char *a, const char *b) {
    err e;
    safetensors *x = safetensors_open(a, &e), *y = safetensors_open(b, &e);
    support_ok(x && y, &e);
    assert_int_equal(safetensors_count(x), safetensors_count(y));
    for (int i = 0; i < safetensors_count(x); i++) {
        const safetensors_entry *s = safetensors_at(x, i), *t = safetensors_find(y, s->name);
        if (!t || s->bytes != t->bytes) fail_msg("%s: not in both", s->name);
        size_t skip = strcmp(s->name, "trainer.values") == 0 ? sizeof(double) : 0;
        if (memcmp((const char *)s->data + skip, (const char *)t->data + skip, s->bytes - skip) != 0)
            fail_msg("%s differs", s->name);
    }
    same_notes(x, y);
    safetensors_close(x);
    safetensors_close(y);
}

static void same_named(const char *a, const char *b, const char *name) {
    char x[256], y[256];
    snprintf(x, sizeof x, "%s/%s", a, name);
    snprintf(y, sizeof y, "%s/%s", b, name);
    same_files(x, y);
}

static sqlite3 *open_db(const char *dir, const char *other) {
    sqlite3 *db;
    char text[256];
    snprintf(text, sizeof text, "%s/run.db", dir);
    assert_int_equal(sqlite3_open(text, &db), SQLITE_OK);
    snprintf(text, sizeof text, "ATTACH '%s/run.db' AS other", other);
    assert_int_equal(sqlite3_exec(db, text, NULL, NULL, NULL), SQLITE_OK);
    return db;
}

// All rows of a query, as text; the caller frees it.
static char *rows_of(sqlite3 *db, const char *query) {
    sqlite3_stmt *st;
    char *text = NULL;
    size_t bytes;
    FILE *f = open_memstream(&text, &bytes);
    assert_non_null(f);
    if (sqlite3_prepare_v2(db, query, -1, &st, NULL) != SQLITE_OK) fail_msg("%s: %s", query, sqlite3_errmsg(db));
    while (sqlite3_step(st) == SQLITE_ROW)
        for (int i = 0; i < sqlite3_column_count(st); i++) {
            int type = sqlite3_column_type(st, i);
            if (type == SQLITE_FLOAT)
                fprintf(f, "%a ", sqlite3_column_double(st, i));
            else
                fprintf(f, "%s ", type == SQLITE_NULL ? "NULL" : (const char *)sqlite3_column_text(st, i));
        }
    sqlite3_finalize(st);
    assert_int_equal(fclose(f), 0);
    return text;
}

// Both runs: the table's database stands between `columns` and `rest`.
static void same_rows(sqlite3 *db, const char *columns, const char *rest) {
    char query[256];
    snprintf(query, sizeof query, "SELECT %s FROM main.%s", columns, rest);
    char *a = rows_of(db, query);
    snprintf(query, sizeof query, "SELECT %s FROM other.%s", columns, rest);
    char *b = rows_of(db, query);
    assert_true(strlen(a) > 0);
    assert_string_equal(a, b);
    free(a);
    free(b);
}

static void answers(sqlite3 *db, const char *query, const char *answer) {
    char *text = rows_of(db, query);
    if (strcmp(text, answer) != 0) fail_msg("%s: %s", query, text);
    free(text);
}

void same_runs(const char *a, const char *b) {
    same_named(a, b, "last.safetensors");
    same_named(a, b, "best.safetensors");
    sqlite3 *db = open_db(b, a);
    same_rows(db, "epoch, step, best, confusion", "epochs ORDER BY epoch");
    same_rows(db, "epoch, part, name, value",
        "metrics WHERE name NOT IN ('time/fps', 'time/rollout', 'time/update') ORDER BY epoch, part, name");
    same_rows(db, "version, plan, status, note", "run");
    answers(db, "SELECT count(*) - count(DISTINCT step) FROM main.steps", "0 ");
    answers(db, "SELECT coalesce(sum(steps) <= max(step), 1) FROM main.steps", "1 ");
    answers(db,
        "SELECT count(*) FROM main.steps m JOIN other.steps o USING (step) WHERE m.epoch <> o.epoch OR "
        "m.done <> o.done OR m.grad_norm <> o.grad_norm OR m.lr <> o.lr",
        "0 ");
    sqlite3_close(db);
}
