#include "watch/tail.h"

#include "base/clock.h"
#include "run/image.h"
#include "run/run.h"
#include "watch/holder.h"

#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROWS_AT_ONCE = 16384 };

// Largest run.db whose rows are compared with their sums: tens of milliseconds.
enum { VOUCHED_BYTES = 32 << 20 };

static const double QUIET = 10;       // seconds without a row, after which the run's process is looked for
static const double LOOK_AGAIN = 2;   // seconds between such looks
static const double MOVING_LONG = 10; // a journal that stays so long was left by a killed process

struct tail {
    char *dir;
    image *image;
    int opened; // image_count of the last image
    tail_now now;
    bool ready;          // an image was whole
    bool untold;         // something new was seen outside of a poll
    double moving_since; // 0: it does not
    double looked;       // when the process was looked for
    bool killed;
    db_news rows;
};

static double wall(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

tail *tail_open(const char *dir) {
    tail *f = calloc(1, sizeof *f);
    NEED(f && (f->dir = strdup(dir)), "out of memory to follow a run");
    char *path = run_path(dir, "run.db");
    f->image = image_new(path);
    free(path);
    f->now = (tail_now){.status = "", .silent = NAN};
    db_news_init(&f->rows);
    return f;
}

void tail_close(tail *f) {
    if (!f) return;
    image_free(f->image);
    db_now_done(&f->now.run);
    db_news_done(&f->rows);
    free(f->dir);
    free(f);
}

const char *tail_dir(const tail *f) {
    return f->dir;
}

const tail_now *tail_at(const tail *f) {
    return &f->now;
}

// States

static tail_news enter(tail *f, tail_state state) {
    bool same = f->now.state == state;
    f->now.state = state;
    if (state != TAIL_READY) f->now.status = "";
    return same ? TAIL_SAME : TAIL_NEW;
}

static tail_news gone(tail *f) {
    f->now.was_there |= f->ready;
    f->now.silent = NAN;
    return enter(f, TAIL_ABSENT);
}

static tail_news broken(tail *f, const err *why) {
    bool same = f->now.state == TAIL_BROKEN && strcmp(why->text, f->now.trouble.text) == 0;
    f->now.trouble = *why;
    enter(f, TAIL_BROKEN);
    return same ? TAIL_SAME : TAIL_NEW;
}

// Pages that move are the usual matter of milliseconds.
static tail_news moving(tail *f) {
    err why;
    if (!f->moving_since) f->moving_since = clock_seconds();
    if (clock_seconds() - f->moving_since > MOVING_LONG) {
        err_input(&why,
            "%s/run.db: a process that was killed has left a transaction half written; `tradewind inspect %s` "
            "takes it back",
            f->dir, f->dir);
        return broken(f, &why);
    }
    return f->now.state == TAIL_READY ? TAIL_SAME : enter(f, TAIL_UNREADY);
}

// True where a run says running and its process is gone; only asked where nothing is written.
static bool look_for_process(tail *f) {
    double now = clock_seconds();
    bool running = strcmp(f->now.run.status, "running") == 0;
    if (!running || !(f->now.silent > QUIET)) return false;
    if (f->looked && now - f->looked < LOOK_AGAIN) return f->killed;
    f->looked = now;
    return holder_look(f->dir) == HOLDER_NONE;
}

static tail_news tell_status(tail *f) {
    const char *before = f->now.status;
    f->killed = look_for_process(f);
    f->now.status = f->killed ? "killed" : f->now.run.status;
    return strcmp(before, f->now.status) == 0 ? TAIL_SAME : TAIL_NEW;
}

// A run that went back to a checkpoint has fewer rows than before, or says so.
static bool went_back(const db_now *was, const db_now *is) {
    return is->epoch < was->epoch || is->step < was->step || is->event < was->event || is->sample < was->sample ||
           is->resumed > was->resumed || is->started != was->started;
}

static tail_news unreadable(tail *f) {
    err why;
    if (!image_whole(f->image)) return moving(f);
    sqlite3 *file = image_file(f->image);
    NEED(sqlite3_errcode(file) != SQLITE_NOMEM, "%s/run.db: cannot be read: out of memory", f->dir);
    err_input(&why, "%s/run.db: cannot be read: %s", f->dir, sqlite3_errmsg(file));
    return broken(f, &why);
}

// A number that SQLite has for a pragma; 0 where it cannot be read.
static int64_t pragma(tail *f, const char *query) {
    sqlite3_stmt *st = NULL;
    int64_t value = 0;
    if (sqlite3_prepare_v2(image_file(f->image), query, -1, &st, NULL) == SQLITE_OK && sqlite3_step(st) == SQLITE_ROW)
        value = sqlite3_column_int64(st, 0);
    sqlite3_finalize(st);
    return value;
}

// Rows of a run that has ended are compared with their sums, once: a run that goes on would be read whole at each look.
static bool has_flipped(tail *f, const db_now *now, err *why) {
    if (!now->status[0] || strcmp(now->status, "running") == 0) return false;
    if (pragma(f, "PRAGMA page_count") * pragma(f, "PRAGMA page_size") > VOUCHED_BYTES) return false;
    char *path = run_path(f->dir, "run.db");
    bool fits = db_vouch(image_file(f->image), path, why);
    free(path);
    return !fits;
}

// Reasons for which rows of a whole image are not shown.
static bool is_unfit(tail *f, const db_now *now, err *why) {
    int64_t version = pragma(f, "PRAGMA user_version");
    if (version <= DB_VERSION) return has_flipped(f, now, why);
    err_input(why, "%s/run.db: was written by a newer tradewind (format %lld, this program reads up to %d); update",
        f->dir, (long long)version, DB_VERSION);
    return true;
}

static tail_news take(tail *f) {
    err why;
    db_now now;
    image_state state = image_take(f->image, &why);
    if (state == IMAGE_MOVING) return moving(f);
    if (state == IMAGE_BAD) return broken(f, &why);
    if (!db_now_read(image_file(f->image), &now)) return unreadable(f);
    bool unfit = is_unfit(f, &now, &why), whole = image_whole(f->image);
    if (whole) f->moving_since = 0;
    if (unfit || !whole) {
        db_now_done(&now);
        return whole ? broken(f, &why) : moving(f);
    }
    if (!f->ready || f->opened != image_count(f->image) || went_back(&f->now.run, &now)) f->now.life++;
    f->opened = image_count(f->image);
    f->ready = true;
    db_now_done(&f->now.run);
    f->now.run = now;
    f->looked = 0;
    enter(f, now.status[0] ? TAIL_READY : TAIL_UNREADY);
    return TAIL_NEW;
}

tail_news tail_poll(tail *f) {
    image_news look = image_look(f->image);
    if (look == IMAGE_GONE) return gone(f);
    tail_news news = f->untold ? TAIL_NEW : TAIL_SAME;
    f->untold = false;
    if (look == IMAGE_CHANGED && take(f) == TAIL_NEW) news = TAIL_NEW;
    if (f->now.state != TAIL_READY) return news;
    f->now.silent = fmax(0, wall() - image_written(f->image));
    tail_news status = tell_status(f);
    return news == TAIL_NEW ? news : status;
}

// Rows

// True where there is an image to read from, of now.
static bool is_readable(tail *f) {
    if (f->now.state != TAIL_READY) return false;
    image_news look = image_look(f->image);
    if (look == IMAGE_SAME) return true;
    if (look == IMAGE_CHANGED && take(f) == TAIL_NEW) f->untold = true;
    return look == IMAGE_CHANGED && f->now.state == TAIL_READY && !f->moving_since;
}

bool tail_read(tail *f, tail_cursor *c, tail_rows *out) {
    *out = (tail_rows){0};
    if (!is_readable(f)) return false;
    tail_cursor at = *c;
    if (c->life != f->now.life) at = (tail_cursor){.life = f->now.life};
    if (!db_since(image_file(f->image), &at.at, ROWS_AT_ONCE, &f->rows) || !image_whole(f->image)) return false;
    *out = (tail_rows){c->life != 0 && c->life != at.life, f->rows.more, &f->rows};
    *c = at;
    return true;
}

bool tail_each_table(tail *f, void (*use)(void *arg, const char *name, bool known), void *arg) {
    return is_readable(f) && db_each_table(image_file(f->image), use, arg) && image_whole(f->image);
}

bool tail_each_row(tail *f, const char *table, db_use_row *use, void *arg) {
    return is_readable(f) && db_each_row(image_file(f->image), table, use, arg) && image_whole(f->image);
}

// Parts

static int by_name(const void *a, const void *b) {
    return strverscmp(*(char *const *)a, *(char *const *)b);
}

// Neither parts that were set aside nor those that have not begun.
static bool is_part(const char *name, const char *path) {
    return run_owns(name) && !strchr(name, '.') && strcmp(name, "earlier") != 0 && run_is(path);
}

char **tail_parts(const char *dir) {
    size_t count = 0;
    char **parts = calloc(1, sizeof *parts);
    NEED(parts, "out of memory for a list of runs");
    DIR *d = opendir(dir);
    for (const struct dirent *each; d && (each = readdir(d));) {
        char *path = run_path(dir, each->d_name);
        if (!is_part(each->d_name, path)) {
            free(path);
            continue;
        }
        parts = realloc(parts, (count + 2) * sizeof *parts);
        NEED(parts, "out of memory for a list of runs");
        parts[count++] = path;
        parts[count] = NULL;
    }
    if (d) closedir(d);
    if (count) qsort(parts, count, sizeof *parts, by_name);
    return parts;
}

void tail_parts_free(char **parts) {
    for (char **each = parts; parts && *each; each++) free(*each);
    free(parts);
}
