#include "watch/screen.h"

#include "base/term.h"
#include "watch/plot.h"
#include "watch/screen_live.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { CHOICES_MOST = STORY_CURVES_MOST + GAUGES + 4, SIDE = 27, KEYS_ROWS = 1, EVENTS_LEAST = 2, ROWS_ENOUGH = 14 };

// Characters that can be drawn

typedef struct {
    char name[64];
    const trace *line[2];
    const char *legend[2]; // NULL: there is one line
    const char *x;
} choice;

typedef struct {
    int count;
    choice at[CHOICES_MOST];
} choices;

static void add(choices *c, const char *name, const trace *a, const trace *b, const char *x) {
    if (c->count == CHOICES_MOST || ((!a || !a->count) && (!b || !b->count))) return;
    for (int i = 0; i < c->count; i++)
        if (strcmp(c->at[i].name, name) == 0) return;
    choice *to = &c->at[c->count++];
    *to = (choice){.line = {a ? a : b, a ? b : NULL}, .x = x};
    snprintf(to->name, sizeof to->name, "%s", name);
}

static const trace *values(const story *s, const char *part, const char *name) {
    const story_curve *c = story_find(s, part, name);
    return c ? c->values : NULL;
}

// A metric of validation, with that of training beside it.
static void add_metric(choices *c, const story *s, const char *name) {
    const trace *validation = values(s, "validation", name), *train = values(s, "train", name);
    int before = c->count;
    add(c, name, validation, train, "epoch");
    if (c->count == before || !validation || !train) return;
    c->at[before].legend[0] = "validation";
    c->at[before].legend[1] = "train";
}

static void add_agent(choices *c, const story *s) {
    int before = c->count;
    add(c, "mean reward", values(s, "", "eval/mean_reward"), values(s, "", "rollout/ep_rew_mean"), "iteration");
    if (c->count == before || !c->at[before].line[1]) return;
    c->at[before].legend[0] = "evaluations";
    c->at[before].legend[1] = "last 100 episodes";
}

static void find_choices(const story *s, choices *c) {
    static const char *const gauges[GAUGES] = {"memory of the process, bytes", "memory of all, bytes", "utilisation, %",
        "temperature, C", "power, W", "clock, MHz"};
    c->count = 0;
    if (s->agent[0]) add_agent(c, s);
    if (s->metric[0]) add_metric(c, s, s->metric);
    add_metric(c, s, "loss");
    add(c, "loss by step", s->loss, NULL, "step");
    add(c, "learning rate", s->lr, NULL, "step");
    add(c, s->agent[0] ? "steps a second" : "samples a second", s->rate, NULL, s->agent[0] ? "iteration" : "epoch");
    for (int i = 0; i < s->curves; i++) {
        const story_curve *each = &s->curve[i];
        if (each->part[0])
            add_metric(c, s, each->name);
        else
            add(c, each->name, each->values, NULL, s->agent[0] ? "iteration" : "epoch");
    }
    for (int i = 0; i < GAUGES; i++) add(c, gauges[i], s->gauge[i], NULL, "second");
}

int screen_curves(const story *s) {
    choices c;
    find_choices(s, &c);
    return c.count;
}

const char *screen_curve_name(const story *s, int which, char *text, size_t room) {
    choices c;
    find_choices(s, &c);
    snprintf(text, room, "%s", which >= 0 && which < c.count ? c.at[which].name : "");
    return text;
}

// Head

static void duration_text(char *text, size_t room, double seconds) {
    term_eta(text, room, floor(fmax(seconds, 0)));
}

// "running 0:34", "done", "killed", or why nothing is shown.
static void status_text(const tail_now *now, double wall, char *text, size_t room) {
    char since[24];
    bool running = strcmp(now->status, "running") == 0;
    duration_text(since, sizeof since, wall - now->run.started);
    if (now->state == TAIL_ABSENT)
        snprintf(text, room, now->was_there ? "gone: the directory is no longer there" : "waiting: no run has begun");
    else if (now->state == TAIL_BROKEN)
        snprintf(text, room, "cannot be read");
    else if (now->state == TAIL_UNREADY)
        snprintf(text, room, "waiting for the first rows");
    else if (running && now->silent > 30)
        snprintf(text, room, "running, silent for %.0f s", now->silent);
    else if (running)
        snprintf(text, room, "running for %s", since);
    else
        snprintf(text, room, "%s%s%s", now->status, now->run.note && now->run.note[0] ? ": " : "",
            now->run.note ? now->run.note : "");
}

static void draw_title(cells *g, const tail *t, const screen_view *v) {
    char status[160], which[32] = "";
    status_text(tail_at(t), v->now, status, sizeof status);
    if (v->runs > 1) snprintf(which, sizeof which, "  run %d of %d", v->run + 1, v->runs);
    cells_fill(g, 0, 0, g->columns, STYLE_BAR, ' ');
    int wide = (int)strlen(status), left = g->columns - wide - 3;
    if (left < 20) left = 20;
    int n = 1 + cells_text(g, 0, 1, left - 1 - (int)strlen(which), STYLE_BAR, tail_dir(t));
    cells_text(g, 0, n, left - n, STYLE_BAR, which);
    if (v->note) cells_format(g, 0, n + (int)strlen(which) + 2, left - n - 2, STYLE_BAR, "%s", v->note);
    cells_text(g, 0, g->columns - wide - 1 > left ? g->columns - wide - 1 : left + 1, wide, STYLE_BAR, status);
}

static void draw_what(cells *g, const story *s) {
    char n[32], line[256];
    int used = snprintf(line, sizeof line, "%s", s->agent[0] ? s->agent : s->model);
    if (s->parameters > 0) {
        term_count(n, sizeof n, s->parameters);
        used += snprintf(line + used, sizeof line - (size_t)used, "  %s parameters", n);
    }
    used += snprintf(
        line + used, sizeof line - (size_t)used, "  %s%s%s", s->device, s->precision[0] ? "  " : "", s->precision);
    if (s->batch > 0) snprintf(line + used, sizeof line - (size_t)used, "  batch %.0f", s->batch);
    cells_text(g, 1, 1, g->columns - 2, STYLE_DIM, line);
}

static void draw_bar(cells *g, int row, int column, int columns, double share) {
    int full = (int)(fmin(fmax(share, 0), 1) * columns + 0.5);
    cells_fill(g, row, column, full, STYLE_FIRST, g->ascii ? '#' : 0x2588);
    cells_fill(g, row, column + full, columns - full, STYLE_DIM, g->ascii ? '-' : 0x2591);
}

static void draw_progress(cells *g, const story *s, const tail *t) {
    story_progress p = story_progress_of(s, tail_at(t));
    char rate[32], eta[24], epoch[64], figures[128];
    snprintf(epoch, sizeof epoch, s->epochs > 0 ? "%s %lld of %.0f" : "%s %lld", s->agent[0] ? "iteration" : "epoch",
        (long long)p.epoch, s->epochs);
    term_count(rate, sizeof rate, p.rate);
    term_eta(eta, sizeof eta, p.left);
    int used = 0;
    figures[0] = 0;
    if (isfinite(p.share)) used = snprintf(figures, sizeof figures, "%.0f %%", floor(100 * p.share));
    if (p.rate > 0)
        used += snprintf(
            figures + used, sizeof figures - (size_t)used, "  %s %s/s", rate, s->agent[0] ? "steps" : "samples");
    if (isfinite(p.left)) snprintf(figures + used, sizeof figures - (size_t)used, "  ETA %s", eta);
    int column = 1 + cells_text(g, 2, 1, g->columns - 2, STYLE_BOLD, epoch) + 2, wide = (int)strlen(figures);
    int bar = g->columns - column - wide - 3;
    if (bar >= 6 && isfinite(p.share)) {
        draw_bar(g, 2, column, bar, p.share);
        column += bar + 2;
    }
    cells_text(g, 2, column, g->columns - column, STYLE_PLAIN, figures);
}

// Curve

// In the place of a metric that has one epoch so far, the loss by step.
static int first_choice(const choices *c, int which) {
    if (which || c->at[0].line[0]->count > 1) return which;
    for (int i = 0; i < c->count; i++)
        if (strcmp(c->at[i].x, "step") == 0) return i;
    return 0;
}

static void draw_curve(cells *g, area a, const story *s, const screen_view *v) {
    choices c;
    find_choices(s, &c);
    if (!c.count) {
        cells_text(g, a.row, a.column + 1, a.columns - 1, STYLE_DIM, "no curves yet");
        return;
    }
    const choice *of = &c.at[first_choice(&c, v->curve % c.count)];
    int at = a.column + 1;
    at += cells_text(g, a.row, at, a.columns, STYLE_BOLD, of->name) + 1;
    if (of->legend[0]) {
        at += 1 +
              cells_format(g, a.row, at, a.columns, STYLE_FIRST, "%s %s", g->ascii ? "*" : "\u2580", of->legend[0]) + 1;
        at +=
            cells_format(g, a.row, at, a.columns, STYLE_SECOND, "%s %s", g->ascii ? "o" : "\u2580", of->legend[1]) + 2;
    }
    if (v->zoom) at += cells_format(g, a.row, at, a.columns, STYLE_DIM, "newest 1/%d ", 1 << v->zoom);
    if (v->logarithm) cells_text(g, a.row, at, a.columns, STYLE_DIM, "log");
    plot p = {.line = {of->line[0], of->line[1]}, .zoom = v->zoom, .logarithm = v->logarithm, .x = of->x};
    plot_draw(g, (area){a.row + 1, a.column, a.rows - 1, a.columns}, &p);
}

// Figures

static int draw_value(cells *g, area a, int row, const char *name, double last, double best) {
    char text[32];
    if (row >= a.rows || !isfinite(last)) return row;
    cells_format(g, a.row + row, a.column, 10, STYLE_PLAIN, "%.10s", name);
    cells_format(g, a.row + row, a.column + 11, 8, STYLE_BOLD, "%7s", cells_number(text, last, 4, 7));
    if (isfinite(best))
        cells_format(g, a.row + row, a.column + 19, 8, STYLE_GOOD, "%7s", cells_number(text, best, 4, 7));
    return row + 1;
}

static int draw_metric(
    cells *g, area a, int row, const story *s, const char *part, const char *name, const char *shown) {
    const story_curve *c = story_find(s, part, name);
    return c ? draw_value(g, a, row, shown, c->last, c->best) : row;
}

static void draw_figures(cells *g, area a, const story *s) {
    int row = 1;
    cells_text(g, a.row, a.column, 11, STYLE_DIM, "");
    cells_format(g, a.row, a.column + 11, a.columns - 11, STYLE_DIM, "%7s %7s", "now", "at best");
    if (s->agent[0]) {
        row = draw_metric(g, a, row, s, "", "eval/mean_reward", "evaluation");
        row = draw_metric(g, a, row, s, "", "rollout/ep_rew_mean", "reward");
        row = draw_metric(g, a, row, s, "", "rollout/ep_len_mean", "length");
        row = draw_metric(g, a, row, s, "", "train/approx_kl", "approx. KL");
        row = draw_metric(g, a, row, s, "", "train/explained_variance", "explained");
        row = draw_metric(g, a, row, s, "", "train/learning_rate", "learn rate");
    }
    row = draw_metric(g, a, row, s, "validation", "loss", "val. loss");
    if (s->metric[0] && strcmp(s->metric, "loss") != 0)
        row = draw_metric(g, a, row, s, "validation", s->metric, s->metric);
    row = draw_value(g, a, row, "loss", s->loss_now, NAN);
    row = draw_value(g, a, row, "learn rate", s->lr_now, NAN);
    row = draw_value(g, a, row, "grad. norm", s->grad_now, NAN);
    static const char *const more[] = {"accuracy", "f1", "mae", "rmse", "smape", "mase"};
    for (size_t i = 0; i < sizeof more / sizeof *more; i++)
        if (strcmp(more[i], s->metric) != 0) row = draw_metric(g, a, row, s, "validation", more[i], more[i]);
    if (s->best_epoch && row < a.rows)
        cells_format(g, a.row + row, a.column, a.columns, STYLE_GOOD, "best: %s %lld",
            s->agent[0] ? "iteration" : "epoch", (long long)s->best_epoch);
}

// Confusion

static void draw_confusion(cells *g, area a, const story *s) {
    int n = s->classes;
    if (!n || a.rows < n + 1 || a.columns < 7 * n) return;
    int wide = a.columns / n < 9 ? a.columns / n : 9;
    cells_text(g, a.row, a.column, a.columns, STYLE_DIM, "confusion, rows are true");
    for (int i = 0; i < n; i++) {
        double sum = 0;
        for (int k = 0; k < n; k++) sum += s->confusion[i][k];
        for (int k = 0; k < n; k++) {
            double share = sum > 0 ? s->confusion[i][k] / sum : 0;
            char text[24];
            term_count(text, sizeof text, s->confusion[i][k]);
            style as = i == k ? STYLE_GOOD : share >= 0.4 ? STYLE_POOR : STYLE_PLAIN;
            cells_format(g, a.row + 1 + i, a.column + k * wide, wide, as, "%*s", wide - 1, text);
        }
    }
}

// Device

static style style_of_share(double share) {
    return share >= 0.97 ? STYLE_POOR : share >= 0.9 ? STYLE_FAIR : STYLE_PLAIN;
}

static void draw_memory(cells *g, area a, const story *s) {
    const db_sample_row *d = &s->now;
    double of = s->limit > 0 ? s->limit : d->memory_total, share = d->memory_process / of;
    const char *what = s->limit > 0 ? " limit" : "";
    char text[96];
    const int bar = 8;
    cells_text(g, a.row, a.column, 9, STYLE_PLAIN, s->card ? "card" : "memory");
    if (!isfinite(share)) return;
    draw_bar(g, a.row, a.column + 9, bar, share);
    int n = snprintf(text, sizeof text, "%.0f of %.0f MB%s", d->memory_process / 1e6, of / 1e6, what);
    if (isfinite(d->memory_used) && isfinite(d->memory_total))
        snprintf(text + n, sizeof text - (size_t)n, ", all %.0f", d->memory_used / 1e6);
    cells_text(g, a.row, a.column + 9 + bar + 1, a.columns - 9 - bar - 1, style_of_share(share), text);
}

static void draw_device(cells *g, area a, const story *s) {
    const db_sample_row *d = &s->now;
    char text[160];
    int used = 0;
    const int bar = 8;
    if (!s->samples_seen) {
        cells_text(g, a.row, a.column, a.columns, STYLE_DIM, "the device is not sampled");
        return;
    }
    draw_memory(g, a, s);
    if (a.rows < 2) return;
    cells_text(g, a.row + 1, a.column, 9, STYLE_PLAIN, "busy");
    if (isfinite(d->utilisation)) draw_bar(g, a.row + 1, a.column + 9, bar, d->utilisation / 100);
    text[0] = 0;
    if (isfinite(d->utilisation)) used = snprintf(text, sizeof text, "%.0f %%", d->utilisation);
    if (isfinite(d->temperature)) used += snprintf(text + used, sizeof text - (size_t)used, "  %.0f C", d->temperature);
    if (isfinite(d->power)) used += snprintf(text + used, sizeof text - (size_t)used, "  %.0f W", d->power);
    if (isfinite(d->clock)) used += snprintf(text + used, sizeof text - (size_t)used, "  %.0f MHz", d->clock);
    if (isfinite(d->memory_clock)) snprintf(text + used, sizeof text - (size_t)used, "/%.0f", d->memory_clock);
    cells_text(g, a.row + 1, a.column + 9 + bar + 1, a.columns - 9 - bar - 1, STYLE_PLAIN, text);
}

// Verdicts and events

// Draws a text in lines that break at spaces, as far as there are rows; how many it needs.
static int draw_lines(cells *g, area a, style as, const char *text) {
    int rows = 0;
    for (; *text; rows++) {
        int n = (int)strlen(text), cut = n <= a.columns ? n : a.columns;
        while (cut < n && cut > 0 && text[cut] != ' ') cut--;
        if (!cut) cut = a.columns; // a word that is longer than a line
        if (rows < a.rows) cells_format(g, a.row + rows, a.column, a.columns, as, "%.*s", cut, text);
        text += cut;
        text += strspn(text, " ");
    }
    return rows;
}

// Draws verdicts, the worst first, that fit as a whole; how many rows they take. Without rows: how many all need.
static int draw_verdicts(cells *g, area a, const story *s) {
    static const style of[] = {STYLE_GOOD, STYLE_FAIR, STYLE_POOR};
    verdict v[VERDICTS_MOST];
    int row = 0;
    for (int i = 0, n = story_verdicts(s, v); i < n; i++) {
        area words = {a.row + row, a.column + 6, 0, a.columns - 6};
        int needs = draw_lines(g, words, STYLE_PLAIN, v[i].text);
        if (a.rows && row && row + needs > a.rows) break;
        words.rows = a.rows - row;
        draw_lines(g, words, STYLE_PLAIN, v[i].text);
        if (a.rows) cells_text(g, a.row + row, a.column, 5, of[v[i].grade], verdict_word(v[i].grade));
        row += needs;
    }
    return a.rows && row > a.rows ? a.rows : row;
}

static void draw_events(cells *g, area a, const story *s) {
    int64_t held = s->events < STORY_EVENTS ? s->events : STORY_EVENTS;
    int rows = held < a.rows ? (int)held : a.rows;
    for (int i = 0; i < rows; i++) {
        const story_event *e = &s->event[(s->events - rows + i) % STORY_EVENTS];
        char clock[16] = "";
        time_t at = (time_t)e->time;
        struct tm tm;
        if (localtime_r(&at, &tm)) strftime(clock, sizeof clock, "%H:%M:%S", &tm);
        style as = strcmp(e->kind, "memory") == 0 || strcmp(e->kind, "precision") == 0 ? STYLE_FAIR : STYLE_DIM;
        cells_format(g, a.row + i, a.column, a.columns, as, "%s %-10s %s", clock, e->kind, e->text);
    }
}

// Everything

static void draw_trouble(cells *g, const tail *t) {
    const tail_now *now = tail_at(t);
    if (now->state == TAIL_BROKEN)
        draw_lines(g, (area){4, 1, g->rows - 5, g->columns - 2}, STYLE_POOR, now->trouble.text);
}

static void draw_keys(cells *g, const screen_view *v) {
    cells_fill(g, g->rows - 1, 0, g->columns, STYLE_BAR, ' ');
    cells_text(g, g->rows - 1, 1, g->columns - 2, STYLE_BAR,
        v->runs > 1 ? "q quit  ? help  m metric  +/- zoom  l log  f large  Tab run"
                    : "q quit  ? help  m metric  +/- zoom  l log  f large");
}

static void draw_help(cells *g) {
    static const char *const lines[] = {"q         quit; the run goes on", "m M       next, previous metric",
        "+ - 0     zoom into the newest part, out, all", "l         logarithm of the values",
        "f         the curve alone, and back", "Tab n p   next, previous run", "1 to 9    a run by its number",
        "? h       this help, and back", "", "Curves: every extreme is drawn, however many values a dot stands for.",
        "The verdicts are explained in doc/watch.md."};
    for (int i = 0; i < (int)(sizeof lines / sizeof *lines) && 2 + i < g->rows - 1; i++)
        cells_text(g, 2 + i, 2, g->columns - 4, STYLE_PLAIN, lines[i]);
}

// Rows from the bottom: keys, events, verdicts, device, a live session; the curve has the rest.
static void draw_body(cells *g, const story *s, const screen_view *v) {
    int bottom = g->rows - KEYS_ROWS, rest = bottom - 3, most = v->large ? 0 : rest / 4;
    int verdicts = draw_verdicts(g, (area){0, 0, 0, g->columns - 2}, s);
    if (verdicts > most) verdicts = most;
    if (v->large || rest < ROWS_ENOUGH) {
        draw_curve(g, (area){3, 0, rest - verdicts, g->columns - 1}, s, v);
        if (verdicts) draw_verdicts(g, (area){bottom - verdicts, 1, verdicts, g->columns - 2}, s);
        return;
    }
    int events = rest / 5 < EVENTS_LEAST ? EVENTS_LEAST : rest / 5, device = 2;
    if (events > 12) events = 12;
    bool side = g->columns >= SIDE + 40;
    int middle = side && s->classes + 1 > device && rest >= 16 ? s->classes + 1 : device;
    int live = screen_live_rows(v->live);
    if (live > rest / 3) live = rest / 3;
    int rows = rest - verdicts - events - middle - 1 - live;
    draw_curve(g, (area){3, 0, rows, side ? g->columns - SIDE - 2 : g->columns - 1}, s, v);
    if (side) draw_figures(g, (area){3, g->columns - SIDE, rows, SIDE}, s);
    int at = 3 + rows;
    screen_live(g, (area){at, 1, live, g->columns - 2}, v->live);
    at += live;
    int wide = middle > device ? g->columns - SIDE - 2 : g->columns - 2;
    draw_device(g, (area){at, 1, device, wide}, s);
    if (middle > device) draw_confusion(g, (area){at, g->columns - SIDE, middle, SIDE}, s);
    at += middle + 1;
    if (verdicts) at += draw_verdicts(g, (area){at, 1, verdicts, g->columns - 2}, s);
    draw_events(g, (area){at, 1, bottom - at, g->columns - 2}, s);
}

void screen_draw(cells *g, const story *s, const tail *t, const screen_view *v) {
    if (g->rows < SCREEN_ROWS_LEAST || g->columns < SCREEN_COLUMNS_LEAST) {
        cells_format(
            g, 0, 0, g->columns, STYLE_PLAIN, "%d columns, %d rows at least", SCREEN_COLUMNS_LEAST, SCREEN_ROWS_LEAST);
        return;
    }
    draw_title(g, t, v);
    draw_keys(g, v);
    if (v->help) {
        draw_help(g);
        return;
    }
    draw_trouble(g, t);
    if (!s->described) return;
    draw_what(g, s);
    draw_progress(g, s, t);
    draw_body(g, s, v);
}
