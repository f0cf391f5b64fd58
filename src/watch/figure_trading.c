// Figures of a backtest: equity and drawdown against buy-and-hold, returns by month, trades on the price.
#include "watch/chart.h"
#include "watch/figure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Folds of cpcv are traded as paths.
static bool has_paths(const facts *f) {
    const char *scheme = json_string_value(results_get(f->doc[RESULTS_WALK], "scheme"));
    return scheme && strcmp(scheme, "cpcv") == 0;
}

// Agents trade in one environment alone.
static bool trades(const facts *f) {
    return !f->agent[0] || strcmp(f->agent, "market") == 0;
}

static bool applies(const facts *f) {
    return !has_paths(f) && trades(f);
}

static json_t *of(const facts *f, const char *path) {
    return results_get(f->doc[RESULTS_BACKTEST], path);
}

// Numbers of a list, NaN where there is none; the caller frees them.
static double *numbers(const json_t *list, int *count) {
    size_t n = json_array_size(list);
    double *v = malloc((n + 1) * sizeof *v);
    NEED(v, "out of memory for a figure");
    for (size_t i = 0; i < n; i++) v[i] = results_number(json_array_get(list, i));
    *count = (int)n;
    return v;
}

// A list of an object over its times; the caller frees both lists. Longer lists are cut to the shorter one.
static points over_time(const json_t *from, const char *values) {
    int n, m;
    points p = {.x = numbers(json_object_get(from, "time"), &n)};
    p.y = numbers(json_object_get(from, values), &m);
    p.count = n < m ? n : m;
    return p;
}

static void points_free(points *p) {
    free((void *)p->x);
    free((void *)p->y);
}

static limits times_of(const points *p) {
    return limits_add(limits_none, p->x, p->count);
}

// "2024-01-02 to 2024-03-05, UTC".
static const char *span_text(limits x, char *text, size_t room) {
    char from[32], to[32];
    bool clock = x.high - x.low < 3 * 86400;
    snprintf(text, room, "%s to %s UTC", axis_moment(x.low, clock, from, sizeof from),
        axis_moment(x.high, clock, to, sizeof to));
    return text;
}

// Equity

static bool is_curve(const json_t *equity) {
    return json_array_size(json_object_get(equity, "time")) > 1 &&
           json_array_size(json_object_get(equity, "equity")) > 1;
}

static bool has_equity(const facts *f) {
    return is_curve(of(f, "equity"));
}

static void draw_drawdown(const json_t *equity, svg *s, double top, axis x, const char *span) {
    points p = over_time(equity, "drawdown");
    double *percent = malloc(((size_t)p.count + 1) * sizeof *percent), zero = 0;
    NEED(percent, "out of memory for a figure");
    for (int i = 0; i < p.count; i++) percent[i] = -100 * fabs(p.y[i]);
    points down = {p.count, p.x, percent};
    limits y = limits_add(limits_add(limits_none, percent, p.count), &zero, 1);
    chart_place at = {top, s->height - top, span, "drawdown %"};
    chart c = chart_open(s, &at, x, axis_numbers(y.low, y.high, 3));
    chart_area(&c, &down, 0, 0);
    chart_line(&c, &down, 0, NULL);
    free(percent);
    points_free(&p);
}

// One account against buy-and-hold, and its drawdown below.
static void draw_account(const json_t *equity, const char *name, svg *s) {
    enum { EQUITY = 270, BOTH = 420 };
    points mine = over_time(equity, "equity"), hold = over_time(equity, "hold");
    limits t = times_of(&mine), y = limits_add(limits_none, mine.y, mine.count);
    y = limits_add(y, hold.y, hold.count);
    axis x = axis_times(t.low, t.high, s->width / 70);
    char span[96];
    s->height = BOTH;
    chart_place at = {0, EQUITY, "", "equity"};
    chart c = chart_open(s, &at, x, axis_numbers(y.low, y.high, 5));
    if (hold.count) chart_line(&c, &hold, 1, "buy and hold");
    chart_line(&c, &mine, 0, name);
    draw_drawdown(equity, s, EQUITY, x, span_text(t, span, sizeof span));
    svg_describe(s, "Equity after costs, %s: from %.2f to %.2f; buy and hold ends at %.2f.", span, mine.y[0],
        mine.y[mine.count - 1], hold.count ? hold.y[hold.count - 1] : NAN);
    points_free(&mine);
    points_free(&hold);
}

static void draw_equity(const facts *f, svg *s) {
    draw_account(of(f, "equity"), "strategy", s);
}

const figure figure_equity = {.name = "equity",
    .title = "Equity and drawdown",
    .section = "Backtest",
    .wide = true,
    .of = FIGURE_OF_ALL,
    .applies = applies,
    .has = has_equity,
    .draw = draw_equity,
    .command = "backtest",
    .options = ""};

// The greedy pass of an agent, from its evaluation

// A walk has its folds'.
static bool plays(const facts *f) {
    return f->is_run && trades(f);
}

static json_t *accounts_of(const facts *f) {
    return json_object_get(f->part, "accounts");
}

static bool has_pass(const facts *f) {
    const json_t *all = accounts_of(f);
    for (size_t i = 0; i < json_array_size(all); i++)
        if (!is_curve(json_object_get(json_array_get(all, i), "equity"))) return false;
    return json_array_size(all) > 0;
}

// Return since the first close, in percent; the caller frees both lists.
static points returns_of(const json_t *account) {
    points p = over_time(json_object_get(account, "equity"), "equity");
    double first = p.y[0], *percent = (double *)p.y;
    for (int i = 0; i < p.count; i++) percent[i] = 100 * (percent[i] / first - 1);
    return p;
}

// Several accounts are told apart by their returns; the first ones are named.
static void draw_accounts(const json_t *list, svg *s) {
    size_t n = json_array_size(list);
    points *all = malloc(n * sizeof *all);
    NEED(all, "out of memory for a figure");
    limits t = limits_none, y = limits_none;
    for (size_t i = 0; i < n; i++) {
        all[i] = returns_of(json_array_get(list, i));
        t = limits_add(t, all[i].x, all[i].count);
        y = limits_add(y, all[i].y, all[i].count);
    }
    char span[96];
    chart_place at = {0, s->height, span_text(t, span, sizeof span), "return %"};
    chart c = chart_open(s, &at, axis_times(t.low, t.high, s->width / 70), axis_numbers(y.low, y.high, 5));
    for (size_t i = 0; i < n; i++) {
        const char *name = json_string_value(json_object_get(json_array_get(list, i), "symbol"));
        chart_line(&c, &all[i], (int)(i % CHART_LINES), i < CHART_LINES ? name : NULL);
        points_free(&all[i]);
    }
    free(all);
    svg_describe(s, "Returns after costs of %zu accounts, %s, between %.2f %% and %.2f %%.", n, span, y.low, y.high);
}

static void draw_pass(const facts *f, svg *s) {
    const json_t *all = accounts_of(f);
    if (json_array_size(all) == 1)
        draw_account(json_object_get(json_array_get(all, 0), "equity"), "agent", s);
    else
        draw_accounts(all, s);
}

const figure figure_pass = {.name = "pass",
    .title = "Greedy pass: equity and drawdown",
    .section = "Answers",
    .wide = true,
    .of = FIGURE_OF_AGENTS,
    .applies = plays,
    .has = has_pass,
    .draw = draw_pass,
    .command = "evaluate",
    .options = ""};

// Paths

static bool has_traded_paths(const facts *f) {
    return json_array_size(of(f, "paths")) > 0;
}

static points path_points(const json_t *path) {
    int n, m;
    points p = {.x = numbers(json_object_get(path, "time"), &n)};
    p.y = numbers(json_object_get(path, "equity"), &m);
    p.count = n < m ? n : m;
    return p;
}

// All paths look alike: what counts is how far they lie apart.
static void draw_paths(const facts *f, svg *s) {
    const json_t *paths = of(f, "paths");
    size_t n = json_array_size(paths);
    points *all = malloc((n + 1) * sizeof *all);
    NEED(all, "out of memory for a figure");
    limits t = limits_none, y = limits_none, last = limits_none;
    for (size_t i = 0; i < n; i++) {
        all[i] = path_points(json_array_get(paths, i));
        t = limits_add(t, all[i].x, all[i].count);
        y = limits_add(y, all[i].y, all[i].count);
        if (all[i].count) last = limits_add(last, &all[i].y[all[i].count - 1], 1);
    }
    char span[96];
    chart_place at = {0, s->height, span_text(t, span, sizeof span), "equity"};
    chart c = chart_open(s, &at, axis_times(t.low, t.high, s->width / 70), axis_numbers(y.low, y.high, 5));
    for (size_t i = 0; i < n; i++) {
        chart_line(&c, &all[i], 0, NULL);
        points_free(&all[i]);
    }
    free(all);
    svg_describe(s, "Equity after costs of %zu path%s, %s: they end between %.2f and %.2f.", n, n == 1 ? "" : "s", span,
        last.low, last.high);
}

const figure figure_paths = {.name = "paths",
    .title = "Equity of all paths",
    .section = "Backtest",
    .wide = true,
    .of = FIGURE_OF_ALL,
    .applies = has_paths,
    .has = has_traded_paths,
    .draw = draw_paths,
    .command = "backtest",
    .options = "",
    .note = "Each line is all of the data, put together of tests of different folds. Folds are trained behind their "
            "tests too: nobody could have traded a path."};

// Months

enum { YEARS_MOST = 60, CELL_HEIGHT = 30, MONTHS_LEFT = 46, MONTHS_TOP = 30 };

typedef struct {
    int first, last; // years
    double value[YEARS_MOST][12];
    double most; // by size
} months;

static bool read_month(const json_t *one, int *year, int *month, double *value) {
    const char *text = json_string_value(json_object_get(one, "month"));
    *value = results_number(json_object_get(one, "return"));
    return text && sscanf(text, "%4d-%2d", year, month) == 2 && *month >= 1 && *month <= 12 && *year > 0 &&
           isfinite(*value);
}

// The newest YEARS_MOST years.
static months read_months(const facts *f) {
    months m = {.first = 0, .last = 0};
    int year, month;
    double value;
    json_t *list = of(f, "monthly"), *one;
    size_t i;
    json_array_foreach(list, i, one) {
        if (!read_month(one, &year, &month, &value)) continue;
        m.last = year > m.last ? year : m.last;
        m.first = !m.first || year < m.first ? year : m.first;
    }
    if (m.first <= m.last - YEARS_MOST) m.first = m.last - YEARS_MOST + 1;
    for (int y = 0; y < YEARS_MOST; y++)
        for (int k = 0; k < 12; k++) m.value[y][k] = NAN;
    json_array_foreach(list, i, one) {
        if (!read_month(one, &year, &month, &value) || year < m.first) continue;
        m.value[year - m.first][month - 1] = value;
        m.most = fmax(m.most, fabs(value));
    }
    return m;
}

static bool has_months(const facts *f) {
    return read_months(f).last > 0;
}

static void draw_month(svg *s, double x, double y, double width, double value, double most) {
    char text[32];
    double shade = most > 0 ? fabs(value) / most : 0;
    svg_rect(s, "frame", x, y, width, CELL_HEIGHT);
    if (isnan(value)) return;
    svg_shade(s, value < 0 ? "fb" : "fa", x, y, width, CELL_HEIGHT, SVG_SHADE_MOST * shade);
    snprintf(text, sizeof text, fabs(value) < 0.0995 ? "%.1f" : "%.0f", 100 * value);
    svg_words(s, "small", SVG_MIDDLE, (svg_point){x + width / 2, y + 19}, text, 0);
}

static void draw_year(svg *s, const months *m, int year, double y, double width) {
    char text[32];
    double whole = 1;
    snprintf(text, sizeof text, "%d", year);
    svg_words(s, "small", SVG_START, (svg_point){4, y + 19}, text, 0);
    for (int k = 0; k < 12; k++) {
        double v = m->value[year - m->first][k];
        draw_month(s, MONTHS_LEFT + width * k, y, width, v, m->most);
        if (!isnan(v)) whole *= 1 + v;
    }
    snprintf(text, sizeof text, "%+.1f", 100 * (whole - 1));
    svg_words(s, "strong small", SVG_END, (svg_point){s->width - 4.0, y + 19}, text, 0);
}

static void draw_monthly(const facts *f, svg *s) {
    enum { YEAR_WIDTH = 50 };
    months m = read_months(f);
    double width = (s->width - MONTHS_LEFT - YEAR_WIDTH) / 12.0;
    int rows = m.last - m.first + 1, count = 0, up = 0;
    for (int k = 0; k < 12; k++) {
        char text[16];
        snprintf(text, sizeof text, "%d", k + 1);
        svg_words(s, "dim small", SVG_MIDDLE, (svg_point){MONTHS_LEFT + width * (k + 0.5), MONTHS_TOP - 8}, text, 0);
    }
    svg_words(s, "dim small", SVG_END, (svg_point){s->width - 4.0, MONTHS_TOP - 8}, "year", 0);
    for (int i = 0; i < rows; i++) {
        draw_year(s, &m, m.first + i, MONTHS_TOP + CELL_HEIGHT * i, width);
        for (int k = 0; k < 12; k++) {
            count += !isnan(m.value[i][k]);
            up += m.value[i][k] > 0;
        }
    }
    s->height = MONTHS_TOP + CELL_HEIGHT * rows + 8;
    svg_describe(s, "Returns by month in percent, %d to %d: %d of %d months gained.", m.first, m.last, up, count);
}

const figure figure_monthly = {.name = "monthly",
    .title = "Returns by month, percent",
    .section = "Backtest",
    .wide = true,
    .of = FIGURE_OF_ALL,
    .applies = applies,
    .has = has_months,
    .draw = draw_monthly,
    .command = "backtest",
    .options = ""};

// Trades

enum { TRADES_MOST = 400 };

static bool has_trades(const facts *f) {
    return json_array_size(of(f, "price.time")) > 1 && json_array_size(of(f, "price.close")) > 1;
}

static double field(const json_t *trade, const char *key) {
    return results_number(json_object_get(trade, key));
}

// An entry as a triangle in the direction of the trade, filled where it gained, and a thin line to its exit.
static void draw_trade(const chart *c, const json_t *trade) {
    double result = field(trade, "result");
    bool gained = result > 0, up = field(trade, "side") > 0;
    double x[2] = {field(trade, "entry_time"), field(trade, "exit_time")};
    double y[2] = {field(trade, "entry"), field(trade, "exit")};
    if (!(x[0] >= c->x.low && x[0] <= c->x.high) || isnan(y[0])) return;
    svg_point from = chart_at(c, x[0], y[0]), to = chart_at(c, x[1], y[1]);
    bool closed = x[1] >= c->x.low && x[1] <= c->x.high && !isnan(y[1]);
    if (closed) svg_path(c->s, gained ? "line thin lc" : "line thin lb", (svg_point[]){from, to}, 2);
    svg_triangle(c->s, gained ? "fc" : "hollow lb", from, 4.5, up);
}

static void draw_trades(const facts *f, svg *s) {
    points price = over_time(of(f, "price"), "close");
    limits t = times_of(&price), y = limits_add(limits_none, price.y, price.count);
    json_t *trades = of(f, "trades");
    size_t n = json_array_size(trades), by = n / TRADES_MOST + 1;
    for (size_t i = 0; i < n; i += by) {
        const json_t *trade = json_array_get(trades, i);
        y = limits_add(y, (const double[]){field(trade, "entry"), field(trade, "exit")}, 2);
    }
    char span[96], name[64];
    s->height = 340;
    chart_place at = {0, s->height, span_text(t, span, sizeof span), "price"};
    chart c = chart_open(s, &at, axis_times(t.low, t.high, s->width / 70), axis_numbers(y.low, y.high, 6));
    snprintf(name, sizeof name, by > 1 ? "close, 1/%zu of trades" : "close", by);
    chart_line(&c, &price, 0, name);
    for (size_t i = 0; i < n; i += by) draw_trade(&c, json_array_get(trades, i));
    svg_describe(s, "Closing price with the entries and exits of %zu trades, %s.", n, span);
    points_free(&price);
}

const figure figure_trades = {.name = "trades",
    .title = "Trades on the price",
    .section = "Backtest",
    .wide = true,
    .of = FIGURE_OF_ALL,
    .applies = applies,
    .has = has_trades,
    .draw = draw_trades,
    .command = "backtest",
    .options = "",
    .note =
        "Triangles are entries, up for long and down for short; filled where the trade gained, hollow where it lost."};
