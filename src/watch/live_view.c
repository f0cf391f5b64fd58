#include "watch/live_view.h"

#include "base/clock.h"
#include "run/image.h"
#include "run/live_file.h"
#include "run/run.h"
#include "watch/holder.h"

#include <stdlib.h>
#include <unistd.h>

static const double POLL_EVERY = 1; // seconds: counting trades reads all of their index

struct live_view {
    char *path, *lock;
    image *image; // NULL: there was no state so far, as of most runs
    json_t *now;
    bool waits;
    double polled; // 0: never
};

live_view *live_view_new(const char *dir) {
    live_view *v = calloc(1, sizeof *v);
    NEED(v, "out of memory to follow a session");
    v->path = run_path(dir, "live.db");
    v->lock = run_path(dir, "live.db.lock");
    return v;
}

void live_view_free(live_view *v) {
    if (!v) return;
    image_free(v->image);
    json_decref(v->now);
    free(v->path);
    free(v->lock);
    free(v);
}

json_t *live_view_now(const live_view *v) {
    return v->now;
}

bool live_view_waits(const live_view *v) {
    return v->waits;
}

// Rows

static json_t *cell_of(sqlite3_stmt *st, int column) {
    switch (sqlite3_column_type(st, column)) {
    case SQLITE_INTEGER: return json_integer(sqlite3_column_int64(st, column));
    case SQLITE_FLOAT: return json_number(sqlite3_column_double(st, column));
    case SQLITE_TEXT: return json_string((const char *)sqlite3_column_text(st, column));
    default: return json_null();
    }
}

// NULL where they cannot be read.
static json_t *rows_of(sqlite3 *file, const char *sql) {
    sqlite3_stmt *st = NULL;
    json_t *rows = json_array();
    int code = sqlite3_prepare_v2(file, sql, -1, &st, NULL);
    if (code == SQLITE_OK) code = SQLITE_ROW;
    while (code == SQLITE_ROW && (code = sqlite3_step(st)) == SQLITE_ROW) {
        json_t *row = json_object();
        for (int c = 0; c < sqlite3_column_count(st); c++)
            json_object_set_new(row, sqlite3_column_name(st, c), cell_of(st, c));
        json_array_append_new(rows, row);
    }
    sqlite3_finalize(st);
    if (code == SQLITE_DONE) return rows;
    json_decref(rows);
    return NULL;
}

static json_t *trouble(const live_view *v, const char *why) {
    return json_pack("{s:s, s:s}", "state", v->path, "why", why);
}

static json_t *read_parts(const live_view *v, sqlite3 *file) {
    json_t *all = json_pack("{s:s}", "state", v->path);
    for (int i = 0; i < LIVE_FILE_PARTS; i++) {
        json_t *rows = rows_of(file, live_file_parts[i].sql);
        if (!rows) {
            json_decref(all);
            return trouble(v, sqlite3_errmsg(file));
        }
        json_object_set_new(all, live_file_parts[i].name, rows);
    }
    return all;
}

// Everything that a whole image shows; NULL where there are no tables yet.
static json_t *read_image(const live_view *v) {
    sqlite3 *file = image_file(v->image);
    err why = {0};
    switch (live_file_known(file, v->path, &why)) {
    case LIVE_FILE_OURS: return read_parts(v, file);
    case LIVE_FILE_EMPTY: return NULL;
    case LIVE_FILE_FOREIGN: return trouble(v, why.text);
    default: return trouble(v, sqlite3_errmsg(file));
    }
}

// False while pages move: the next poll reads what is there then.
static bool take(const live_view *v, json_t **now) {
    err why;
    image_state state = image_take(v->image, &why);
    *now = NULL;
    if (state == IMAGE_MOVING) return false;
    *now = state == IMAGE_BAD ? trouble(v, why.text) : read_image(v);
    if (state == IMAGE_BAD || image_whole(v->image)) return true;
    json_decref(*now);
    return false;
}

static json_t *is_running(const live_view *v) {
    holder who = holder_of(v->lock);
    return who == HOLDER_UNKNOWN ? json_null() : json_boolean(who == HOLDER_SOME);
}

static bool replace(live_view *v, json_t *now) {
    bool same = json_equal(v->now, now) || (!v->now && !now);
    json_decref(v->now);
    v->now = now;
    return !same;
}

bool live_view_poll(live_view *v) {
    json_t *now = NULL;
    double at = clock_seconds();
    if (!v->waits && v->polled > 0 && at - v->polled < POLL_EVERY) return false;
    v->polled = at;
    v->waits = false;
    if (!v->image && access(v->path, F_OK) != 0) return false;
    if (!v->image) v->image = image_new(v->path);
    image_news news = image_look(v->image);
    if (news == IMAGE_GONE) return replace(v, NULL);
    if (news == IMAGE_SAME)
        now = json_copy(v->now);
    else if (!take(v, &now))
        return v->waits = true, false;
    if (now) json_object_set_new(now, "running", is_running(v));
    return replace(v, now);
}
