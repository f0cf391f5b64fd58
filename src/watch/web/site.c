#include "watch/web/site.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/text.h"
#include "run/outline.h"
#include "run/results.h"
#include "run/run.h"
#include "watch/web/listing.h"
#include "watch/web/run_doc.h"
#include "watch/web/scrape.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum { POINTS_MOST = 4000, OPEN_MOST = 64, TRIES = 5 };

// Bytes of curves that are kept at most, of all runs; seconds between looks through the directories, at runs that have
// ended, and at documents of runs that somebody has asked for; seconds that one look for news may take before the rest
// waits for the next one.
static const size_t curves_most = (size_t)20 << 20;
static const double list_every = 5, ended_every = 5, files_every = 2, look_most = 0.25;

typedef struct {
    char id[REQUEST_ID + 1];
    char *dir, *name, *parent_dir; // parent_dir: NULL for a run of its own
    view *view;
    double looked, used; // when news were looked for, and when somebody asked
    double compared;     // when its documents were looked at; 0: nobody has asked for the run
    uint64_t files;      // of run_doc_files then
    bool there;          // in the newest listing
} entry;

struct site {
    pthread_mutex_t lock; // of all that follows
    char *dir, *version;
    entry **entry;
    int count;
    bool full;
    double listed; // 0: never
};

// Entries

// FNV-1a of the real path, which stays the same when the server starts anew.
static void make_id(char id[REQUEST_ID + 1], const char *dir) {
    char *real = realpath(dir, NULL);
    uint64_t h = 14695981039346656037u;
    for (const char *c = real ? real : dir; *c; c++) h = (h ^ (unsigned char)*c) * 1099511628211u;
    snprintf(id, REQUEST_ID + 1, "%016" PRIx64, h);
    free(real);
}

static entry *find_id(const site *s, const char *id) {
    for (int i = 0; i < s->count; i++)
        if (strcmp(s->entry[i]->id, id) == 0) return s->entry[i];
    return NULL;
}

static entry *find_dir(const site *s, const char *dir) {
    for (int i = 0; i < s->count; i++)
        if (strcmp(s->entry[i]->dir, dir) == 0) return s->entry[i];
    return NULL;
}

static entry *make_entry(const listing *l, const listed_run *r) {
    entry *e = calloc(1, sizeof *e);
    NEED(e && (e->dir = strdup(r->dir)) && (e->name = strdup(r->name)), "out of memory for a run");
    if (r->parent >= 0) NEED(e->parent_dir = strdup(l->run[r->parent].dir), "out of memory for a run");
    make_id(e->id, e->dir);
    e->view = view_new(e->dir);
    return e;
}

static void free_entry(entry *e) {
    view_free(e->view);
    free(e->dir);
    free(e->name);
    free(e->parent_dir);
    free(e);
}

// The entries of a new listing, in its order; those that were there stay as they are. True where it has changed.
static bool list_runs(site *s) {
    listing l = listing_make(s->dir);
    entry **list = calloc((size_t)l.count + 1, sizeof(entry *));
    NEED(list, "out of memory for a list of runs");
    bool changed = l.count != s->count;
    for (int i = 0; i < s->count; i++) s->entry[i]->there = false;
    for (int i = 0; i < l.count; i++) {
        entry *e =
            i < s->count && strcmp(s->entry[i]->dir, l.run[i].dir) == 0 ? s->entry[i] : find_dir(s, l.run[i].dir);
        changed |= !e || i >= s->count || s->entry[i] != e;
        list[i] = e ? e : make_entry(&l, &l.run[i]);
        list[i]->there = true;
    }
    for (int i = 0; i < s->count; i++)
        if (!s->entry[i]->there) free_entry(s->entry[i]);
    free(s->entry);
    s->entry = list;
    s->count = l.count;
    s->full = l.full;
    s->listed = clock_seconds();
    listing_done(&l);
    return changed;
}

site *site_new(const char *dir, const char *version, err *e) {
    struct stat st;
    if (stat(dir, &st) != 0) {
        err_input(e, "%s: cannot be read: %s", dir, strerror(errno));
        return NULL;
    }
    if (!S_ISDIR(st.st_mode)) {
        err_input(e, "%s: is not a directory", dir);
        return NULL;
    }
    site *s = calloc(1, sizeof *s);
    NEED(s && (s->dir = strdup(dir)) && (s->version = strdup(version)), "out of memory for a server");
    pthread_mutex_init(&s->lock, NULL);
    return s;
}

void site_free(site *s) {
    if (!s) return;
    for (int i = 0; i < s->count; i++) free_entry(s->entry[i]);
    pthread_mutex_destroy(&s->lock);
    free(s->entry);
    free(s->version);
    free(s->dir);
    free(s);
}

// News

// Curves of runs that nobody has looked at for longest are given up.
static void give_up_curves(site *s, const entry *but) {
    for (;;) {
        size_t bytes = 0;
        int open = 0;
        entry *oldest = NULL;
        for (int i = 0; i < s->count; i++) {
            entry *e = s->entry[i];
            if (view_rests(e->view)) continue;
            bytes += view_bytes(e->view);
            open++;
            if (e != but && (!oldest || e->used < oldest->used)) oldest = e;
        }
        if (!oldest || (bytes <= curves_most && open <= OPEN_MOST)) return;
        view_rest(oldest->view);
    }
}

// Looks at a run; true where it has changed. One that is wanted is waited for while its file moves.
static bool look(site *s, entry *e, bool wanted) {
    static const struct timespec pause = {.tv_nsec = 30000000};
    double now = clock_seconds();
    if (wanted) e->used = now;
    bool changed = view_refresh(e->view);
    for (int i = 0; i < TRIES && wanted && !view_known(e->view); i++) {
        nanosleep(&pause, NULL);
        changed |= view_refresh(e->view);
    }
    e->looked = now;
    give_up_curves(s, e);
    return changed;
}

static bool is_running(const entry *e) {
    return strcmp(view_sum(e->view)->status, "running") == 0;
}

// A run that rests is looked at where its files were written to since, which two calls of the system tell.
static bool is_due(const entry *e, double now) {
    struct stat st;
    bool due = false;
    if (!view_known(e->view)) return true;
    if (!view_rests(e->view)) return is_running(e) || now - e->looked >= ended_every;
    if (now - e->looked < ended_every) return false;
    for (int i = 0; i < 2 && !due; i++) {
        char *path = run_path(e->dir, i ? "run.db-wal" : "run.db");
        due = stat(path, &st) == 0 && difftime(st.st_mtime, (time_t)view_sum(e->view)->changed) > 1;
        free(path);
    }
    return due;
}

// True where a command has left a document since somebody looked at the run, as `backtest` does behind its end.
static bool has_new_files(entry *e, double now) {
    if (e->compared <= 0 || now - e->compared < files_every) return false;
    uint64_t files = run_doc_files(e->dir);
    bool changed = files != e->files;
    e->compared = now;
    e->files = files;
    return changed;
}

static void begin_to_compare(entry *e) {
    if (e->compared > 0) return;
    e->compared = clock_seconds();
    e->files = run_doc_files(e->dir);
}

static void tell_run(const entry *e, void (*tell)(void *arg, const char *event, const char *data), void *arg) {
    const view_summary *sum = view_sum(e->view);
    json_t *all = json_pack("{s:s, s:o, s:I, s:I}", "id", e->id, "status", json_text(sum->status), "epoch",
        (json_int_t)sum->epochs, "step", (json_int_t)sum->step);
    char *data = json_dumps(all, JSON_COMPACT);
    NEED(data, "out of memory for an event");
    tell(arg, "run", data);
    json_decref(all);
    free(data);
}

void site_refresh(site *s, void (*tell)(void *arg, const char *event, const char *data), void *arg) {
    pthread_mutex_lock(&s->lock);
    double start = clock_seconds();
    if ((!s->listed || start - s->listed >= list_every) && list_runs(s)) tell(arg, "runs", "{}");
    for (int i = 0; i < s->count && clock_seconds() - start < look_most; i++) {
        entry *e = s->entry[i];
        bool changed = is_due(e, start) && look(s, e, false);
        if (has_new_files(e, start) || changed) tell_run(e, tell, arg);
    }
    pthread_mutex_unlock(&s->lock);
}

static void tell_nobody(void *arg, const char *event, const char *data) {
    (void)arg;
    (void)event;
    (void)data;
}

// The list is made anew for somebody who asks, but not at every question.
static void list_for_asker(site *s) {
    double now = clock_seconds();
    if (!s->listed || now - s->listed >= 1) list_runs(s);
}

static entry *wanted(site *s, const char *id) {
    if (!s->listed) list_runs(s);
    entry *e = find_id(s, id);
    if (e) look(s, e, true);
    return e;
}

// Documents

static run_doc doc_of(const site *s, const entry *e) {
    const entry *parent = e->parent_dir ? find_dir(s, e->parent_dir) : NULL;
    return (run_doc){
        .id = e->id, .name = e->name, .dir = e->dir, .parent = parent ? parent->id : NULL, .view = e->view};
}

// Children stand behind their parents.
static bool has_parts(const site *s, int i) {
    return i + 1 < s->count && s->entry[i + 1]->parent_dir &&
           strcmp(s->entry[i + 1]->parent_dir, s->entry[i]->dir) == 0;
}

json_t *site_runs(site *s) {
    json_t *list = json_array();
    pthread_mutex_lock(&s->lock);
    list_for_asker(s);
    double start = clock_seconds();
    for (int i = 0; i < s->count; i++) {
        if (is_due(s->entry[i], start) && clock_seconds() - start < look_most) look(s, s->entry[i], false);
        run_doc d = doc_of(s, s->entry[i]);
        d.parts = has_parts(s, i);
        json_array_append_new(list, run_doc_short(&d));
    }
    json_t *doc =
        json_pack("{s:s, s:s, s:b, s:o}", "version", s->version, "directory", s->dir, "full", s->full, "runs", list);
    pthread_mutex_unlock(&s->lock);
    return doc;
}

json_t *site_run(site *s, const char *id) {
    json_t *doc = NULL;
    pthread_mutex_lock(&s->lock);
    entry *e = wanted(s, id);
    for (int i = 0; e && i < s->count; i++) {
        if (s->entry[i] != e) continue;
        run_doc d = doc_of(s, e);
        begin_to_compare(e);
        d.parts = has_parts(s, i);
        doc = run_doc_whole(&d);
    }
    pthread_mutex_unlock(&s->lock);
    return doc;
}

char *site_dir(site *s, const char *id) {
    pthread_mutex_lock(&s->lock);
    if (!s->listed) list_runs(s);
    const entry *e = find_id(s, id);
    char *dir = e ? strdup(e->dir) : NULL;
    NEED(dir || !e, "out of memory for a path");
    pthread_mutex_unlock(&s->lock);
    return dir;
}

// Curves

static void put_numbers(FILE *out, const char *key, const strip_point *p, int n, bool y) {
    fprintf(out, "\"%s\":[", key);
    for (int i = 0; i < n; i++) fprintf(out, y ? "%s%.7g" : "%s%.14g", i ? "," : "", y ? p[i].y : p[i].x);
    putc(']', out);
}

static void put_curve(FILE *out, view *v, const view_curve *c, const request *r, strip_point *p) {
    double from = request_number(r, "from", -1e300, 1e300, -INFINITY);
    double to = request_number(r, "to", -1e300, 1e300, INFINITY);
    int points = (int)request_number(r, "points", 1, POINTS_MOST, 1000);
    int n = view_draw(v, c, from, to, points, p);
    json_t *name = json_text(c->name);
    fputs("{\"name\":", out);
    json_dumpf(name, out, JSON_ENCODE_ANY);
    json_decref(name);
    fprintf(out, ",\"count\":%" PRId64 ",\"missing\":%" PRId64 ",", c->values.count, c->values.missing);
    put_numbers(out, "x", p, n, false);
    putc(',', out);
    put_numbers(out, "y", p, n, true);
    putc('}', out);
}

char *site_series(site *s, const request *r, size_t *bytes) {
    text_out t;
    strip_point *points = malloc((2 * POINTS_MOST + 4) * sizeof *points);
    NEED(points, "out of memory for curves");
    text_open(&t);
    FILE *out = t.out;
    pthread_mutex_lock(&s->lock);
    entry *e = wanted(s, r->id);
    fputs("{\"series\":[", out);
    for (int i = 0, n = 0; e && i < r->params; i++) {
        const view_curve *c = strcmp(r->param[i].name, "name") == 0 ? view_find(e->view, r->param[i].value) : NULL;
        if (!c) continue;
        if (n++) putc(',', out);
        put_curve(out, e->view, c, r, points);
    }
    fputs("]}", out);
    pthread_mutex_unlock(&s->lock);
    char *text = text_close(&t);
    NEED(text, "out of memory for curves");
    *bytes = t.bytes;
    free(points);
    if (e) return text;
    free(text);
    return NULL;
}

char *site_metrics(site *s, size_t *bytes) {
    text_out t;
    text_open(&t);
    site_refresh(s, tell_nobody, NULL);
    pthread_mutex_lock(&s->lock);
    const view **views = calloc((size_t)s->count + 1, sizeof *views);
    const char **names = calloc((size_t)s->count + 1, sizeof *names);
    NEED(views && names, "out of memory for metrics");
    for (int i = 0; i < s->count; i++) {
        if (is_running(s->entry[i]) && view_rests(s->entry[i]->view)) look(s, s->entry[i], true);
        views[i] = s->entry[i]->view;
        names[i] = s->entry[i]->name;
    }
    scrape_write(t.out, names, views, s->count);
    free(views);
    free(names);
    pthread_mutex_unlock(&s->lock);
    char *text = text_close(&t);
    NEED(text, "out of memory for metrics");
    *bytes = t.bytes;
    return text;
}
