#include "watch/terminal.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/stop.h"
#include "watch/panel.h"
#include "watch/screen.h"
#include "watch/watched.h"

#include <langinfo.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { POLL_MS = 250, FIRST_LOOKS = 60 };

static const double LOOK_EVERY = 2, DRAW_EVERY = 1; // seconds

static double wall(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static bool is_ascii(void) {
    setlocale(LC_CTYPE, "");
    return strcmp(nl_langinfo(CODESET), "UTF-8") != 0;
}

// Without a terminal

// Follows runs until each has told how it stands: pages that move at this moment rest soon.
static void settle(watched *w) {
    for (int i = 0; i < FIRST_LOOKS; i++) {
        bool waits = false;
        for (int k = 0; k < w->runs; k++) {
            watched_poll(&w->run[k]);
            const tail_now *now = tail_at(w->run[k].tail);
            waits |= now->state == TAIL_UNREADY || (now->state == TAIL_READY && w->run[k].cursor.life != now->life) ||
                     live_view_waits(w->run[k].live);
        }
        if (!waits) return;
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    }
}

// A single directory without a run is the user's mistake; among others it is told in its place.
static bool has_run(const watched *w, err *e) {
    const tail *t = w->run[0].tail;
    if (w->runs > 1 || tail_at(t)->state == TAIL_READY) return true;
    if (tail_at(t)->state == TAIL_BROKEN) {
        *e = tail_at(t)->trouble;
        return false;
    }
    return err_input(e, "%s: there is no run in it (no run.db)", tail_dir(t));
}

bool terminal_print(const terminal_options *o, int rows, int columns, err *e) {
    watched w;
    bool ascii = is_ascii();
    watched_open(&w, o->dir, o->dirs);
    settle(&w);
    bool ok = has_run(&w, e);
    for (int i = 0; ok && i < w.runs; i++) {
        cells g;
        screen_view v = {.run = i, .runs = w.runs, .now = wall(), .live = live_view_now(w.run[i].live)};
        cells_init(&g, rows, columns, ascii);
        screen_draw(&g, w.run[i].story, w.run[i].tail, &v);
        cells_fill(&g, rows - 1, 0, columns, STYLE_PLAIN, ' '); // there are no keys
        if (i) putchar('\n');
        cells_write(&g, stdout);
        cells_done(&g);
    }
    watched_close(&w);
    return ok;
}

static json_t *metrics_json(const story *s) {
    json_t *all = json_array();
    for (int i = 0; i < s->curves; i++)
        json_array_append_new(all, json_pack("{s:s, s:s, s:o, s:o}", "part", s->curve[i].part, "name", s->curve[i].name,
                                       "last", json_number(s->curve[i].last), "best", json_number(s->curve[i].best)));
    return all;
}

static json_t *device_json(const story *s) {
    const db_sample_row *d = &s->now;
    if (!s->samples_seen) return json_null();
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "memory_process", json_bytes(d->memory_process),
        "memory_used", json_bytes(d->memory_used), "memory_total", json_bytes(d->memory_total), "limit",
        json_bytes(s->limit), "utilisation", json_number(d->utilisation), "temperature", json_number(d->temperature),
        "power", json_number(d->power), "clock", json_number(d->clock), "memory_clock", json_number(d->memory_clock));
}

static json_t *verdicts_json(const story *s) {
    verdict v[VERDICTS_MOST];
    json_t *all = json_array();
    for (int i = 0, n = story_verdicts(s, v); i < n; i++)
        json_array_append_new(all,
            json_pack("{s:s, s:s, s:s}", "about", v[i].about, "grade", verdict_word(v[i].grade), "text", v[i].text));
    return all;
}

// A whole number, or null, also where a description has one that is beyond all counts.
static json_t *count_json(double v) {
    return fabs(v) < 9e18 ? json_integer((json_int_t)v) : json_null();
}

static json_t *run_json(const watched_run *r) {
    const story *s = r->story;
    const tail_now *now = tail_at(r->tail);
    static const char *const states[] = {"absent", "waiting", "unreadable", ""};
    story_progress p = story_progress_of(s, now);
    json_t *all = json_pack("{s:s, s:s, s:s, s:s, s:s}", "run", tail_dir(r->tail), "status",
        now->state == TAIL_READY ? now->status : states[now->state], "model", s->model, "agent", s->agent, "device",
        s->device);
    json_join(all, json_pack("{s:I, s:o, s:I, s:I, s:o, s:o, s:o, s:o}", "epoch", (json_int_t)s->epoch, "epochs",
                       count_json(s->epochs), "best_epoch", (json_int_t)s->best_epoch, "step", (json_int_t)s->step,
                       "timesteps", count_json(s->timesteps), "share", json_number(p.share), "rate",
                       json_number(p.rate), "eta_s", json_number(p.left)));
    json_join(all, json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "loss", json_number(s->loss_now), "learning_rate",
                       json_number(s->lr_now), "grad_norm", json_number(s->grad_now), "metrics", metrics_json(s),
                       "device_now", device_json(s), "verdicts", verdicts_json(s)));
    json_t *live = live_view_now(r->live);
    json_object_set_new(all, "live", live ? json_incref(live) : json_null());
    if (now->state == TAIL_BROKEN) json_object_set_new(all, "why", json_string(now->trouble.text));
    return all;
}

bool terminal_json(const terminal_options *o, err *e) {
    watched w;
    watched_open(&w, o->dir, o->dirs);
    settle(&w);
    bool ok = has_run(&w, e);
    for (int i = 0; ok && i < w.runs; i++)
        ok = json_line(stdout, run_json(&w.run[i])) || err_run(e, "the figures cannot be written");
    watched_close(&w);
    return ok;
}

// With a terminal

typedef struct {
    panel *panel;
    watched runs;
    screen_view view;
    bool ascii, redraw, leave;
    double looked, drawn;
} terminal;

static void draw(terminal *t) {
    cells g;
    int rows, columns;
    panel_size(&rows, &columns);
    cells_init(&g, rows, columns, t->ascii);
    const watched_run *r = &t->runs.run[t->view.run];
    t->view.runs = t->runs.runs;
    t->view.now = wall();
    t->view.live = live_view_now(r->live);
    screen_draw(&g, r->story, r->tail, &t->view);
    panel_show(t->panel, &g);
    cells_done(&g);
    t->drawn = clock_seconds();
    t->redraw = false;
}

static void choose_run(terminal *t, int run) {
    if (run < 0 || run >= t->runs.runs) return;
    t->view.run = run;
    watched_poll(&t->runs.run[run]);
}

static void turn_curve(terminal *t, int by) {
    int n = screen_curves(t->runs.run[t->view.run].story);
    if (n) t->view.curve = (t->view.curve + by + n) % n;
}

static void zoom(terminal *t, int by) {
    int z = t->view.zoom + by;
    if (z >= 0 && z <= SCREEN_ZOOM_MOST) t->view.zoom = z;
}

static void take_key(terminal *t, int key) {
    enum { ESCAPE = 27, CTRL_L = 12 };
    int n = t->runs.runs;
    t->redraw = true;
    switch (key) {
    case 'q': t->leave = true; break;
    case '?':
    case 'h': t->view.help = !t->view.help; break;
    case ESCAPE: t->view.help = t->view.large = false; break;
    case 'm':
    case PANEL_DOWN: turn_curve(t, 1); break;
    case 'M':
    case PANEL_UP: turn_curve(t, -1); break;
    case '+':
    case '=': zoom(t, 1); break;
    case '-': zoom(t, -1); break;
    case '0': t->view.zoom = 0; break;
    case 'l': t->view.logarithm = !t->view.logarithm; break;
    case 'f': t->view.large = !t->view.large; break;
    case '\t':
    case 'n':
    case PANEL_RIGHT: choose_run(t, (t->view.run + 1) % n); break;
    case 'p':
    case PANEL_BACK_TAB:
    case PANEL_LEFT: choose_run(t, (t->view.run + n - 1) % n); break;
    case CTRL_L: panel_again(); break;
    default:
        if (key >= '1' && key <= '9') choose_run(t, key - '1');
    }
}

static void look_around(terminal *t) {
    if (clock_seconds() - t->looked < LOOK_EVERY) return;
    t->looked = clock_seconds();
    t->redraw |= watched_look(&t->runs);
}

static bool is_running(const terminal *t) {
    return strcmp(tail_at(t->runs.run[t->view.run].tail)->status, "running") == 0;
}

static void watch_on(terminal *t) {
    while (!t->leave && !stop_asked()) {
        look_around(t);
        t->redraw |= watched_poll(&t->runs.run[t->view.run]);
        if (t->redraw || (is_running(t) && clock_seconds() - t->drawn >= DRAW_EVERY)) draw(t);
        if (!panel_wait(POLL_MS)) return;
        for (int key; (key = panel_key()) != PANEL_NONE;) take_key(t, key);
    }
}

bool terminal_watch(const terminal_options *o, err *e) {
    terminal t = {.ascii = is_ascii(), .redraw = true, .panel = panel_open(e)};
    if (!t.panel) return false;
    watched_open(&t.runs, o->dir, o->dirs);
    t.looked = clock_seconds();
    watch_on(&t);
    panel_close(t.panel);
    watched_close(&t.runs);
    return true;
}
