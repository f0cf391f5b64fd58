#include "watch/web/view.h"

#include "run/outline.h"
#include "watch/live_view.h"
#include "watch/tail.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct view {
    char *dir;
    tail *db;        // NULL: the view rests
    live_view *live; // beside it
    tail_cursor cursor;
    bool known;  // the summary is
    bool behind; // rows could not be read at the last look
    view_summary sum;
    char *config, *plan;
    int curves;
    view_curve *curve;
    int hint; // the curve behind the one that the last metric was of
    int events;
    view_event event[VIEW_EVENTS];
    char main[VIEW_NAME];
    double main_best;
    int sparks;
    strip_point spark[2 * VIEW_SPARK + 4];
};

// Columns of rows

typedef struct {
    const char *name;
    size_t at; // in the row
} column;

#define OF(type, field, name)                                                                                          \
    { name, offsetof(type, field) }
static const column epoch_columns[] = {
    OF(db_epoch_row, seconds, "seconds"), OF(db_epoch_row, samples_per_s, "samples_per_s")};
static const column steps_columns[] = {OF(db_steps_row, loss_mean, "loss"), OF(db_steps_row, loss_min, "loss_min"),
    OF(db_steps_row, loss_max, "loss_max"), OF(db_steps_row, grad_norm, "grad_norm"), OF(db_steps_row, lr, "lr")};
static const column sample_columns[] = {OF(db_sample_row, memory_process, "memory_process"),
    OF(db_sample_row, memory_others, "memory_others"), OF(db_sample_row, memory_used, "memory_used"),
    OF(db_sample_row, memory_total, "memory_total"), OF(db_sample_row, memory_most, "memory_most"),
    OF(db_sample_row, processes, "processes"), OF(db_sample_row, utilisation, "utilisation"),
    OF(db_sample_row, temperature, "temperature"), OF(db_sample_row, power, "power"), OF(db_sample_row, clock, "clock"),
    OF(db_sample_row, memory_clock, "memory_clock")};

static const struct {
    const char *group;
    const column *column;
    int columns;
} kinds[] = {[CURVE_EPOCH] = {"epoch", epoch_columns, sizeof epoch_columns / sizeof *epoch_columns},
    [CURVE_STEPS] = {"steps", steps_columns, sizeof steps_columns / sizeof *steps_columns},
    [CURVE_SAMPLE] = {"device", sample_columns, sizeof sample_columns / sizeof *sample_columns}};

static double value_of(const column *c, const void *row) {
    double v;
    memcpy(&v, (const char *)row + c->at, sizeof v);
    return v;
}

// Making

view *view_new(const char *dir) {
    view *v = calloc(1, sizeof *v);
    NEED(v && (v->dir = strdup(dir)), "out of memory for a run");
    v->main_best = NAN;
    return v;
}

static void forget_rows(view *v) {
    for (int i = 0; i < v->curves; i++) strip_done(&v->curve[i].values);
    free(v->curve);
    v->curve = NULL;
    v->curves = v->hint = 0;
    for (int i = 0; i < v->events; i++) free(v->event[i].text);
    v->events = 0;
    v->cursor = (tail_cursor){0};
}

static void forget_counts(view *v) {
    v->sum.epochs = v->sum.best_epoch = v->sum.step = v->sum.begun = v->sum.done = 0;
    v->sum.seconds = 0;
}

void view_rest(view *v) {
    tail_close(v->db);
    live_view_free(v->live);
    v->db = NULL;
    v->live = NULL;
    forget_rows(v);
}

bool view_rests(const view *v) {
    return !v->db;
}

void view_free(view *v) {
    if (!v) return;
    view_rest(v);
    free(v->sum.confusion);
    free(v->config);
    free(v->plan);
    free(v->dir);
    free(v);
}

// Curves

static view_curve *add_curve(view *v, const char *name, curve_kind kind, int column) {
    if (v->curves == VIEW_CURVES) return NULL;
    if ((v->curves & (v->curves - 1)) == 0) {
        v->curve = realloc(v->curve, (v->curves ? 2 * (size_t)v->curves : 1) * sizeof *v->curve);
        NEED(v->curve, "out of memory for curves");
    }
    view_curve *c = &v->curve[v->curves++];
    *c = (view_curve){.kind = kind, .column = column};
    snprintf(c->name, sizeof c->name, "%s", name);
    return c;
}

static view_curve *find(const view *v, const char *name) {
    for (int i = 0; i < v->curves; i++)
        if (strcmp(v->curve[i].name, name) == 0) return &v->curve[i];
    return NULL;
}

const view_curve *view_find(const view *v, const char *name) {
    return find(v, name);
}

static view_curve *curve_named(view *v, const char *group, const char *word, curve_kind kind, int column) {
    char name[VIEW_NAME];
    snprintf(name, sizeof name, "%.22s%s%.47s", group, *group ? "/" : "", word);
    view_curve *c = find(v, name);
    return c ? c : add_curve(v, name, kind, column);
}

// Metrics come in the order of those of the epoch before: each is looked for behind the last one. NULL: no place.
static view_curve *curve_of_metric(view *v, const char *part, const char *word) {
    for (int i = 0; i < v->curves; i++) {
        int k = (v->hint + i) % v->curves;
        view_curve *c = &v->curve[k];
        if (c->kind != CURVE_METRIC || strcmp(c->word, word) != 0 || strcmp(c->part, part) != 0) continue;
        v->hint = (k + 1) % v->curves;
        return c;
    }
    if (strlen(part) >= sizeof v->curve->part || strlen(word) >= sizeof v->curve->word) return NULL;
    view_curve *c = curve_named(v, part, word, CURVE_METRIC, 0);
    if (!c) return NULL;
    snprintf(c->part, sizeof c->part, "%s", part);
    snprintf(c->word, sizeof c->word, "%s", word);
    return c;
}

// A row of figures. What no row has shows no curve.
static void add_row(view *v, curve_kind kind, int64_t key, double x, const void *row) {
    for (int i = 0; i < kinds[kind].columns; i++) {
        double y = value_of(&kinds[kind].column[i], row);
        view_curve *c = isnan(y) && kind == CURVE_SAMPLE
                            ? NULL
                            : curve_named(v, kinds[kind].group, kinds[kind].column[i].name, kind, i);
        if (c) strip_add(&c->values, key, x, y);
    }
}

// Rows

static void keep_text(char **to, const char *text) {
    free(*to);
    NEED(*to = strdup(text ? text : ""), "out of memory for a text");
}

static void add_epoch(view *v, const db_epoch_news *n) {
    view_summary *s = &v->sum;
    s->epochs = n->row.epoch;
    s->begun = s->done = 0;
    if (!isnan(n->row.seconds)) s->seconds += n->row.seconds;
    if ((int64_t)n->row.step > s->step) s->step = (int64_t)n->row.step;
    if (n->row.best) {
        s->best_epoch = n->row.epoch;
        free(s->confusion);
        s->confusion = n->row.confusion ? strdup(n->row.confusion) : NULL;
    }
    add_row(v, CURVE_EPOCH, n->row.epoch, (double)n->row.epoch, &n->row);
}

// An epoch's metrics may come once more, with further ones.
static void add_metric(view *v, const db_metric_news *n) {
    view_curve *c = curve_of_metric(v, n->metric.part, n->metric.name);
    if (c && !(c->values.count + c->values.missing && c->values.last_key >= n->epoch))
        strip_add(&c->values, n->epoch, (double)n->epoch, n->metric.value);
}

static void add_steps(view *v, const db_steps_news *n) {
    view_summary *s = &v->sum;
    if ((int64_t)n->row.step > s->step) s->step = (int64_t)n->row.step;
    s->begun = n->row.epoch > s->epochs ? n->row.epoch : 0;
    s->done = s->begun ? n->row.done : 0;
    add_row(v, CURVE_STEPS, (int64_t)n->row.step, (double)n->row.step, &n->row);
}

static void add_event(view *v, const db_event_news *n) {
    if (v->events == VIEW_EVENTS) {
        free(v->event[0].text);
        memmove(v->event, v->event + 1, (VIEW_EVENTS - 1) * sizeof *v->event);
        v->events--;
    }
    view_event *e = &v->event[v->events++];
    *e = (view_event){.time = n->time, .step = (int64_t)n->step};
    snprintf(e->kind, sizeof e->kind, "%s", n->kind ? n->kind : "");
    keep_text(&e->text, n->text);
}

// A sample's row number stands beside it: samples are counted from the cursor's on.
static void add_rows(view *v, const db_news *n, int64_t sample) {
    for (int i = 0; i < n->epochs; i++) add_epoch(v, &n->epoch[i]);
    for (int i = 0; i < n->metrics; i++) add_metric(v, &n->metric[i]);
    for (int i = 0; i < n->steps; i++) add_steps(v, &n->steps_row[i]);
    for (int i = 0; i < n->samples; i++) add_row(v, CURVE_SAMPLE, sample + 1 + i, n->sample[i].time, &n->sample[i]);
    for (int i = 0; i < n->events; i++) add_event(v, &n->event[i]);
}

// Reads all that has come; false where that is not possible at this moment.
static bool read_rows(view *v) {
    tail_rows rows;
    do {
        int64_t sample = v->cursor.at.sample;
        if (!tail_read(v->db, &v->cursor, &rows)) return false;
        if (rows.again) {
            tail_cursor at = v->cursor;
            forget_rows(v);
            forget_counts(v);
            v->cursor = at;
            sample = 0;
        }
        add_rows(v, rows.rows, sample);
    } while (rows.more);
    return true;
}

// The main curve

static bool choose(view *v, const char *part, const char *word) {
    char name[VIEW_NAME];
    snprintf(name, sizeof name, "%s%s%s", part, *part ? "/" : "", word);
    if (!word[0] || !find(v, name)) return false;
    snprintf(v->main, sizeof v->main, "%s", name);
    return true;
}

static void choose_main(view *v) {
    char *asked = v->config ? outline_value(v->config, "train.metric") : NULL, word[48];
    snprintf(word, sizeof word, "%.47s", asked ? asked : "");
    free(asked);
    bool chosen = choose(v, "validation", word) || choose(v, "", "eval/mean_reward") ||
                  choose(v, "", "rollout/ep_rew_mean") || choose(v, "validation", "mcc") ||
                  choose(v, "validation", "smape") || choose(v, "validation", "loss") || choose(v, "train", "loss") ||
                  choose(v, "steps", "loss");
    const view_curve *c = chosen ? find(v, v->main) : NULL;
    v->sparks = c ? strip_draw(&c->values, -INFINITY, INFINITY, VIEW_SPARK, v->spark) : 0;
    v->main_best = c ? view_best(v, v->main) : NAN;
}

// Refreshing

static void take_state(view *v, const tail_now *now) {
    view_summary *s = &v->sum;
    bool broken = now->state == TAIL_BROKEN;
    snprintf(s->trouble, sizeof s->trouble, "%.*s", (int)sizeof s->trouble - 1, broken ? now->trouble.text : "");
    snprintf(s->status, sizeof s->status, "%s", now->status);
    if (now->state != TAIL_READY) return;
    snprintf(s->version, sizeof s->version, "%s", now->run.version);
    snprintf(s->note, sizeof s->note, "%.*s", (int)sizeof s->note - 1, now->run.note ? now->run.note : "");
    keep_text(&v->config, now->run.config);
    keep_text(&v->plan, now->run.plan);
    s->config = v->config;
    s->plan = v->plan;
    s->started = now->run.started;
    s->changed = now->run.changed;
}

bool view_refresh(view *v) {
    bool rested = !v->db;
    if (rested) {
        v->db = tail_open(v->dir);
        v->live = live_view_new(v->dir);
        forget_rows(v);
    }
    bool live = live_view_poll(v->live);
    if (tail_poll(v->db) == TAIL_SAME && !rested && !v->behind) return live;
    const tail_now *now = tail_at(v->db);
    take_state(v, now);
    if (rested) forget_counts(v);
    v->behind = now->state == TAIL_READY && !read_rows(v);
    if (now->state == TAIL_BROKEN) forget_rows(v);
    choose_main(v);
    v->known |= now->state != TAIL_UNREADY && !v->behind;
    return v->known;
}

// Asking

const view_summary *view_sum(const view *v) {
    return &v->sum;
}

bool view_known(const view *v) {
    return v->known;
}

json_t *view_live(const view *v) {
    return v->live ? live_view_now(v->live) : NULL;
}

size_t view_bytes(const view *v) {
    size_t bytes = 0;
    for (int i = 0; i < v->curves; i++) bytes += strip_bytes(&v->curve[i].values);
    return bytes;
}

int view_curves(const view *v) {
    return v->curves;
}

const view_curve *view_curve_at(const view *v, int i) {
    return &v->curve[i];
}

int view_events(const view *v) {
    return v->events;
}

const view_event *view_event_at(const view *v, int i) {
    return &v->event[i];
}

const char *view_main(const view *v) {
    return v->main;
}

double view_main_best(const view *v) {
    return v->main_best;
}

int view_spark(const view *v, strip_point out[2 * VIEW_SPARK + 4]) {
    memcpy(out, v->spark, (size_t)v->sparks * sizeof *out);
    return v->sparks;
}

double view_last(const view *v, const char *name) {
    const view_curve *c = find(v, name);
    return c && c->values.count ? c->values.last.y : NAN;
}

double view_best(const view *v, const char *name) {
    const view_curve *c = find(v, name);
    strip_point p[8];
    double at = (double)v->sum.best_epoch;
    if (!c || c->kind != CURVE_METRIC || !v->sum.best_epoch) return NAN;
    int n = strip_draw(&c->values, at, at, 1, p);
    for (int i = 0; i < n; i++)
        if (p[i].x == at) return p[i].y;
    return NAN;
}

// Windows

// Adds the values of a curve among rows to a strip; false once they are behind `last`.
static bool add_values(const view_curve *c, const db_news *n, int64_t sample, int64_t last, strip *to) {
    const column *of = c->kind == CURVE_METRIC ? NULL : &kinds[c->kind].column[c->column];
    int64_t key = 0;
    for (int i = 0; c->kind == CURVE_METRIC && i < n->metrics; i++) {
        const db_metric_news *m = &n->metric[i];
        key = m->epoch;
        bool is = strcmp(m->metric.name, c->word) == 0 && strcmp(m->metric.part, c->part) == 0;
        if (is && key <= last && !(to->count && to->last_key >= key)) strip_add(to, key, (double)key, m->metric.value);
    }
    for (int i = 0; c->kind == CURVE_EPOCH && i < n->epochs && (key = n->epoch[i].row.epoch) <= last; i++)
        strip_add(to, key, (double)key, value_of(of, &n->epoch[i].row));
    for (int i = 0; c->kind == CURVE_STEPS && i < n->steps && (key = (int64_t)n->steps_row[i].row.step) <= last; i++)
        strip_add(to, key, (double)key, value_of(of, &n->steps_row[i].row));
    for (int i = 0; c->kind == CURVE_SAMPLE && i < n->samples && (key = sample + 1 + i) <= last; i++)
        strip_add(to, key, n->sample[i].time, value_of(of, &n->sample[i]));
    return key <= last;
}

// Reads the values of some rows anew, in a strip of their own. False where that is not possible now.
static bool read_window(view *v, const view_curve *c, int64_t first, int64_t last, strip *to) {
    const int64_t never = INT64_MAX;
    tail_cursor at = {v->cursor.life, {never, never, never, never, never, 0}};
    int64_t *const places[] = {[CURVE_METRIC] = &at.at.metric,
        [CURVE_EPOCH] = &at.at.epoch,
        [CURVE_STEPS] = &at.at.step,
        [CURVE_SAMPLE] = &at.at.sample};
    tail_rows rows;
    *places[c->kind] = first - 1;
    do {
        int64_t sample = at.at.sample;
        if (!v->db || !tail_read(v->db, &at, &rows) || rows.again) return false;
        if (!add_values(c, rows.rows, sample, last, to)) return true;
    } while (rows.more);
    return true;
}

int view_draw(view *v, const view_curve *c, double from, double to, int points, strip_point *out) {
    int64_t first, last;
    strip whole = {0};
    bool fine = strip_is_coarse(&c->values, from, to, points, &first, &last) && read_window(v, c, first, last, &whole);
    int n = strip_draw(fine ? &whole : &c->values, from, to, points, out);
    strip_done(&whole);
    return n;
}
