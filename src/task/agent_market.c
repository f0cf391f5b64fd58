#include "task/agent_market.h"

#include "data/leaks.h"
#include "task/market.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

void agent_market_done(agent_market *m) {
    free(m->scale);
    if (!m->borrowed) {
        free(m->bar);
        free(m->feature);
        free(m->calendar);
        free(m->rules);
        free(m->start);
        free(m->offset);
    }
    *m = (agent_market){0};
}

// Rows

static int64_t series_of(const dataset *d, int64_t sample) {
    return d->panel ? dataset_panel_of(d, sample) : 0;
}

// Finds the first row with a sample of every instrument, and takes memory for all rows from there on.
static bool take_rows(agent_market *m, const dataset *d, err *e) {
    const stream *s = &d->stream[0];
    m->instruments = dataset_series(d);
    m->start = calloc((size_t)m->instruments + 1, sizeof *m->start);
    m->offset = calloc((size_t)m->instruments, sizeof *m->offset);
    m->rules = calloc((size_t)m->instruments, sizeof *m->rules);
    if (!m->start || !m->offset || !m->rules)
        return err_run(e, "no memory for %lld instruments", (long long)m->instruments);
    for (int64_t k = 0; k < m->instruments; k++) m->offset[k] = s->start[k + 1];
    for (int64_t i = 0; i < dataset_all(d); i++) {
        int64_t *first = &m->offset[series_of(d, i)];
        if (s->row[i] < *first) *first = s->row[i];
    }
    for (int64_t k = 0; k < m->instruments; k++) {
        m->start[k + 1] = m->start[k] + s->start[k + 1] - m->offset[k];
        m->offset[k] -= m->start[k];
    }
    m->rows = m->start[m->instruments];
    if (m->rows != dataset_all(d))
        return err_input(e, "%s: has bars without samples between others; make it again with import", d->name);
    size_t n = (size_t)m->rows, width = (size_t)m->lagged + (size_t)m->once;
    m->bar = calloc(n, sizeof *m->bar);
    m->feature = calloc(n, width * sizeof *m->feature);
    m->calendar = calloc(n, MARKET_COLUMNS * sizeof *m->calendar);
    return (m->bar && m->feature && m->calendar) || err_run(e, "no memory for an agent's %zu bars", n);
}

static int64_t row_of(const agent_market *m, const dataset *d, int64_t sample) {
    return d->stream[0].row[sample] - m->offset[series_of(d, sample)];
}

// Bars

int32_t agent_market_clock(int64_t end) {
    return (int32_t)(end - when_day_of(end) * WHEN_DAY);
}

static void take_bar(agent_market *m, const quotes *q, int64_t i, int64_t end, int64_t row) {
    int32_t *calendar = m->calendar + row * MARKET_COLUMNS;
    int64_t day = when_day_of(q->time[i]);
    m->bar[row] = (account_bar){q->open[i], q->high[i], q->low[i], q->close[i], q->spread ? q->spread[i] : 0};
    calendar[MARKET_NIGHTS] = i ? (int32_t)(day - when_day_of(q->time[i - 1])) : 0;
    calendar[MARKET_ENDS] = i + 1 == q->count || when_day_of(q->time[i + 1]) != day;
    calendar[MARKET_CLOCK] = agent_market_clock(end);
}

// Bars and rules of one instrument.
static bool take_bars(agent_market *m, const dataset *d, int64_t series, const account_terms *t, err *e) {
    const bar_table *from = &d->stream[0].bars;
    int64_t rows = m->start[series + 1] - m->start[series];
    quotes q;
    if (!market_quote(&q, d, series, t, e)) return false;
    for (int64_t i = q.count - rows; i < q.count; i++)
        take_bar(m, &q, i, dataset_bar(from, from->start[series] + i).end, m->start[series + 1] - q.count + i);
    bool ok = account_rules_make(&m->rules[series], t, q.point, e);
    quotes_done(&q);
    return ok;
}

// Features

static bool refuse_number(const dataset *d, int64_t sample, int64_t column, err *e) {
    char when[32] = "a sample";
    if (d->time) when_text(when, sizeof when, d->time[sample]);
    return err_input(e, "%s: feature %lld of %s is not a finite number; clean the data or leave the feature out",
        d->name, (long long)column + 1, when);
}

static int64_t width_of(const agent_market *m) {
    return (int64_t)m->lagged + m->once;
}

void agent_market_features(const dataset *d, int64_t sample, float *to) {
    for (int k = 0; k < d->streams; k++) {
        const table *from = &d->stream[k].series;
        table_read(from, d->stream[k].row[sample], 1, to);
        to += from->width;
    }
    if (d->vector.width) table_read(&d->vector, sample, 1, to);
}

bool agent_market_scale(agent_market *m, const dataset *d, const scaler *s, err *e) {
    int64_t width = width_of(m), at = 0;
    m->scale = calloc((size_t)(2 * width), sizeof *m->scale);
    if (!m->scale) return err_run(e, "no memory for the scale of %lld features", (long long)width);
    for (int64_t c = 0; c < width; c++) m->scale[width + c] = 1;
    for (int k = 0; k < d->streams; k++) {
        int64_t columns = d->stream[k].series.width;
        const float *value = s ? s->value[k] : NULL;
        for (int64_t c = 0; value && c < columns; c++) {
            m->scale[at + c] = value[c];
            m->scale[width + at + c] = value[columns + c];
        }
        at += columns;
    }
    return true;
}

// False where a feature is not finite as it is observed.
static bool check_features(const agent_market *m, const dataset *d, err *e) {
    int64_t width = width_of(m);
    for (int64_t i = 0; i < dataset_all(d); i++) {
        const float *row = m->feature + row_of(m, d, i) * width;
        for (int64_t c = 0; c < width; c++)
            if (!isfinite(market_feature(row, m->scale, width, c))) return refuse_number(d, i, c, e);
    }
    return true;
}

static bool check_width(const agent_market *m, int64_t once, const dataset *d, err *e) {
    int64_t width = (int64_t)m->lags * m->lagged + once + MARKET_OWN;
    return width <= ENV_OBSERVATION_MOST ||
           err_input(e,
               "agent.lags: %d lags of %d features and %lld further ones of %s make an observation of %lld numbers, "
               "and "
               "%d are the most; use fewer",
               (int)m->lags, (int)m->lagged, (long long)once, d->name, (long long)width, ENV_OBSERVATION_MOST);
}

bool agent_market_begin(agent_market *m, const dataset *d, int32_t lags, const account_terms *t, err *e) {
    CHECK(lags > 0, "%d lags", (int)lags);
    int64_t once = d->vector.width;
    for (int k = 1; k < d->streams; k++) once += d->stream[k].series.width;
    *m = (agent_market){
        .lags = lags, .lagged = (int32_t)d->stream[0].series.width, .once = (int32_t)once, .day_close = t->day_close};
    return check_width(m, once, d, e);
}

bool agent_market_make(
    agent_market *m, const dataset *d, int32_t lags, const scaler *s, const account_terms *t, err *e) {
    *m = (agent_market){0};
    if (!market_has_bars(d, e)) return false;
    bool ok = agent_market_begin(m, d, lags, t, e) && take_rows(m, d, e);
    for (int64_t k = 0; ok && k < m->instruments; k++) ok = take_bars(m, d, k, t, e);
    for (int64_t i = 0; ok && i < dataset_all(d); i++)
        agent_market_features(d, i, m->feature + row_of(m, d, i) * width_of(m));
    ok = ok && agent_market_scale(m, d, s, e) && check_features(m, d, e);
    if (ok && leaks_planted.observed) leaks_planted.observed(m->feature, m->rows, width_of(m));
    if (!ok) agent_market_done(m);
    return ok;
}

bool agent_market_like(agent_market *m, const agent_market *from, const dataset *d, const scaler *s, err *e) {
    *m = *from;
    m->borrowed = true;
    m->scale = NULL;
    if (agent_market_scale(m, d, s, e) && check_features(m, d, e)) return true;
    agent_market_done(m);
    return false;
}

// Parts

void agent_stretches_done(agent_stretches *p) {
    free(p->item);
    *p = (agent_stretches){0};
}

// Rows of an instrument's samples in a span; none where `end` is 0.
typedef struct {
    int64_t first, end;
} reach;

static void find_reaches(const agent_market *m, const dataset *d, span in, reach *to) {
    for (int64_t k = 0; k < m->instruments; k++) to[k] = (reach){m->rows, 0};
    for (int64_t i = in.first; i < in.first + in.count; i++) {
        int64_t row = row_of(m, d, i);
        reach *r = &to[series_of(d, i)];
        if (row < r->first) r->first = row;
        if (row >= r->end) r->end = row + 1;
    }
}

// The longest stretch that was found, whether it is kept or not.
static int64_t add_stretches(agent_stretches *p, const agent_market *m, const reach *from, int64_t limit) {
    int64_t longest = 0, least = limit ? limit + 1 : 2;
    for (int64_t k = 0; k < m->instruments; k++) {
        int64_t first = from[k].first, earliest = m->start[k] + m->lags - 1;
        if (first < earliest) first = earliest;
        int64_t bars = from[k].end - first;
        if (bars > longest) longest = bars;
        if (bars < least && bars > 0) {
            p->left_out++;
            p->left_bars += bars;
        }
        if (bars < least) continue;
        p->item[p->count++] = (market_stretch){first, from[k].end, k, p->orders};
        p->orders += bars - 1;
    }
    return longest;
}

static bool refuse_part(
    const agent_market *m, const dataset *d, const char *name, int64_t limit, int64_t longest, err *e) {
    if (longest < 2)
        return err_input(e,
            "%s: the part %s has no two bars in a row to trade on, with %d lags; use more bars or fewer lags", d->name,
            name, (int)m->lags);
    return err_input(e,
        "%s: is shorter than an episode: the part %s has %lld bars in a row to trade on, and an episode of %lld steps "
        "takes %lld; lower agent.limit or use more bars",
        d->name, name, (long long)longest, (long long)limit, (long long)limit + 1);
}

bool agent_market_part(agent_stretches *p, const agent_market *m, const dataset *d, const split_part *part,
    const char *name, int64_t limit, err *e) {
    size_t n = (size_t)m->instruments;
    int64_t longest = 0;
    reach *found = calloc(n, sizeof *found);
    *p = (agent_stretches){.item = calloc(n * (size_t)part->spans + 1, sizeof *p->item)};
    snprintf(p->name, sizeof p->name, "%.20s stretches", name);
    bool ok = found && p->item;
    if (!ok) err_run(e, "no memory for the stretches of %zu instruments", n);
    for (int i = 0; ok && i < part->spans; i++) {
        find_reaches(m, d, part->span[i], found);
        int64_t bars = add_stretches(p, m, found, limit);
        if (bars > longest) longest = bars;
    }
    if (ok && !p->count) ok = refuse_part(m, d, name, limit, longest, e);
    free(found);
    if (!ok) agent_stretches_done(p);
    return ok;
}

int64_t agent_market_series(const agent_market *m, int64_t row) {
    int64_t k = 0;
    while (k + 1 < m->instruments && m->start[k + 1] <= row) k++;
    return k;
}

// The last bar of an instrument has its last row.
int64_t agent_market_bar(const agent_market *m, const dataset *d, int64_t row) {
    int64_t k = agent_market_series(m, row);
    return d->stream[0].bars.start[k + 1] - (m->start[k + 1] - row);
}

bool agent_market_newest(
    agent_stretches *p, const agent_market *m, const dataset *d, int64_t after, const char *name, err *e) {
    int64_t longest = 0;
    reach *from = calloc((size_t)m->instruments, sizeof *from);
    *p = (agent_stretches){.item = calloc((size_t)m->instruments + 1, sizeof *p->item)};
    snprintf(p->name, sizeof p->name, "%.20s stretches", name);
    bool ok = from && p->item;
    if (!ok) err_run(e, "no memory for the stretches of %lld instruments", (long long)m->instruments);
    for (int64_t k = 0; ok && k < m->instruments; k++) {
        int64_t first = m->start[k], end = m->start[k + 1];
        while (first < end && dataset_bar(&d->stream[0].bars, agent_market_bar(m, d, first)).end <= after) first++;
        from[k] = (reach){end - first < 2 ? m->start[k] : first, end};
    }
    if (ok) longest = add_stretches(p, m, from, 0);
    if (ok && !p->count) ok = refuse_part(m, d, name, 0, longest, e);
    free(from);
    if (!ok) agent_stretches_done(p);
    return ok;
}

// Records as rows of whole numbers.
#define WORDS(type) ((int64_t)(sizeof(type) / sizeof(int64_t)))
_Static_assert(sizeof(account_bar) % 8 == 0 && sizeof(market_stretch) % 8 == 0 && sizeof(account_rules) % 8 == 0,
    "records are rows of whole numbers");

void agent_market_world(const agent_market *m, const agent_stretches *p, agent_world *w) {
    market_settings *s = &w->env.market;
    CHECK(p->count > 0 && p->count <= INT32_MAX, "%lld stretches", (long long)p->count);
    w->env.kind = ENV_market;
    s->lags = m->lags;
    s->lagged = m->lagged;
    s->once = m->once;
    s->stretches = (int32_t)p->count;
    s->day_close = m->day_close;
    w->parts = MARKET_PARTS;
    int64_t width = width_of(m);
    w->part[MARKET_BARS] = (agent_part){"bars", DTYPE_I64, shape2(m->rows, WORDS(account_bar)), m->bar, true};
    w->part[MARKET_FEATURES] = (agent_part){"features", DTYPE_F32, shape2(m->rows, width), m->feature, true};
    w->part[MARKET_SCALE] = (agent_part){"scale", DTYPE_F32, shape2(2, width), m->scale, false};
    w->part[MARKET_CALENDAR] = (agent_part){"calendar", DTYPE_I32, shape2(m->rows, MARKET_COLUMNS), m->calendar, true};
    w->part[MARKET_STRETCHES] =
        (agent_part){p->name, DTYPE_I64, shape2(p->count, WORDS(market_stretch)), p->item, false};
    w->part[MARKET_RULES] =
        (agent_part){"rules", DTYPE_I64, shape2(m->instruments, WORDS(account_rules)), m->rules, true};
}
