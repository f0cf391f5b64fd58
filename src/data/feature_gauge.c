#include "data/feature_gauge.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DAY = 86400, DAY_MINUTES = 1440, OPERANDS = 3 };

static const double PI = 3.14159265358979323846;
static const double YEAR_DAYS = 365.2425;

typedef enum { EMA, WILDER, MOMENTS, HIGHEST, LOWEST, LAG, ABOUT, LESS, POSITION, CONTRAST } node_kind;

// `out` is the node's slot; MOMENTS has the variance in the slot after it.
//
// A window is two halves: `old` whole blocks' suffixes (of sums, or of extremes) and the prefix of the block being
// filled, `at` values long. Sums are taken about `anchor`, the newest value of the old block, which is in the window
// until the block is replaced: equal values have a variance of exactly 0.
typedef struct {
    node_kind kind;
    int of[OPERANDS];
    int bars, out;
    int64_t first; // the bar at which all operands are defined
    double alpha;
    int at;
    bool full; // a whole block has been seen
    double anchor, sum, square;
    double *block, *suffix, *suffix_square;
} node;

struct gauge {
    int64_t span, count, day;
    int nodes, most, slots;
    node *node;
    double *value;
    int64_t *first, *settled;
    double *window; // what the nodes' blocks point into
    bar before;
    double sine[DAY_MINUTES];
};

gauge *gauge_new(int64_t span, int most, err *e) {
    CHECK(span > 0 && most >= 0 && most <= 1 << 20, "%lld, %d", (long long)span, most);
    gauge *g = calloc(1, sizeof *g);
    size_t slots = GAUGE_BASES + (size_t)most + 1;
    if (!g) goto done;
    g->span = span;
    g->most = most;
    g->node = calloc(slots, sizeof *g->node);
    g->value = calloc(slots, sizeof *g->value);
    g->first = calloc(slots, sizeof *g->first);
    g->settled = calloc(slots, sizeof *g->settled);
    if (!g->node || !g->value || !g->first || !g->settled) goto done;
    g->slots = GAUGE_BASES;
    for (int s = GAUGE_BEFORE; s < GAUGE_BASES; s++) g->first[s] = g->settled[s] = 1;
    g->first[GAUGE_RETURN_CROSS] = g->settled[GAUGE_RETURN_CROSS] = 2;
    for (int m = 0; m < DAY_MINUTES; m++) g->sine[m] = sin(2 * PI * m / DAY_MINUTES);
    g->day = INT64_MIN;
    return g;
done:
    gauge_free(g);
    err_run(e, "no memory for %d running quantities; use fewer features", most);
    return NULL;
}

void gauge_free(gauge *g) {
    if (!g) return;
    free(g->node);
    free(g->value);
    free(g->first);
    free(g->settled);
    free(g->window);
    free(g);
}

// Building

static int operands(node_kind kind) {
    return kind == POSITION ? 3 : kind == LESS || kind == CONTRAST || kind == ABOUT ? 2 : 1;
}

// The latest of a node's operands by `at`, which is g->first or g->settled.
static int64_t latest(const int64_t *at, const node *n) {
    int64_t most = 0;
    for (int i = 0; i < operands(n->kind); i++) most = at[n->of[i]] > most ? at[n->of[i]] : most;
    return most;
}

// Bars after its operands' first until a node is defined, and until it is settled.
static int64_t wait_first(const node *n) {
    return n->kind == LAG ? n->bars : n->kind >= LESS ? 0 : n->bars - 1;
}

// A weight w leaves (1 - w)^k of the start after k bars: below 1/1000 from 3.5 (n + 1) and 7 n on.
static int64_t wait_settled(const node *n) {
    if (n->bars == 1) return 0;
    return n->kind == EMA ? ((int64_t)n->bars + 1) * 7 / 2 : n->kind == WILDER ? (int64_t)n->bars * 7 : 0;
}

static int add(gauge *g, node n) {
    CHECK(!g->window, "the gauge has started");
    CHECK(n.bars >= 1 && n.bars <= GAUGE_WINDOW_MOST, "a window of %d bars", n.bars);
    for (int i = 0; i < OPERANDS; i++) CHECK(n.of[i] >= 0 && n.of[i] < g->slots, "slot %d", n.of[i]);
    for (int i = 0; i < g->nodes; i++) {
        const node *o = &g->node[i];
        if (o->kind == n.kind && o->bars == n.bars && !memcmp(o->of, n.of, sizeof n.of)) return o->out;
    }
    int yields = n.kind == MOMENTS ? 2 : 1;
    CHECK(g->slots + yields <= GAUGE_BASES + g->most, "more than %d slots", g->most);
    n.out = g->slots;
    n.first = latest(g->first, &n);
    n.alpha = n.kind == EMA ? 2.0 / (n.bars + 1) : 1.0 / n.bars;
    for (int i = 0; i < yields; i++) {
        g->first[n.out + i] = n.first + wait_first(&n);
        g->settled[n.out + i] = latest(g->settled, &n) + wait_first(&n) + wait_settled(&n);
    }
    g->node[g->nodes++] = n;
    g->slots += yields;
    return n.out;
}

int gauge_ema(gauge *g, int of, int bars) {
    return add(g, (node){.kind = EMA, .of = {of}, .bars = bars});
}

int gauge_wilder(gauge *g, int of, int bars) {
    return add(g, (node){.kind = WILDER, .of = {of}, .bars = bars});
}

int gauge_mean(gauge *g, int of, int bars) {
    return add(g, (node){.kind = MOMENTS, .of = {of}, .bars = bars});
}

int gauge_variance(gauge *g, int of, int bars) {
    return gauge_mean(g, of, bars) + 1;
}

int gauge_highest(gauge *g, int of, int bars) {
    return add(g, (node){.kind = HIGHEST, .of = {of}, .bars = bars});
}

int gauge_lowest(gauge *g, int of, int bars) {
    return add(g, (node){.kind = LOWEST, .of = {of}, .bars = bars});
}

int gauge_lag(gauge *g, int of, int bars) {
    return add(g, (node){.kind = LAG, .of = {of}, .bars = bars});
}

// The window of values starts with the operand, before the mean is defined: it is filled from the operand's first bar.
int gauge_spread_about(gauge *g, int of, int bars) {
    int mean = gauge_mean(g, of, bars), nodes = g->nodes,
        slot = add(g, (node){.kind = ABOUT, .of = {of, mean}, .bars = bars});
    if (g->nodes > nodes) {
        g->node[nodes].first = g->first[of];
        g->first[slot] = g->first[mean];
        g->settled[slot] = g->settled[mean];
    }
    return slot;
}

int gauge_less(gauge *g, int a, int b) {
    return add(g, (node){.kind = LESS, .of = {a, b}, .bars = 1});
}

int gauge_position(gauge *g, int of, int low, int high) {
    return add(g, (node){.kind = POSITION, .of = {of, low, high}, .bars = 1});
}

int gauge_contrast(gauge *g, int a, int b) {
    return add(g, (node){.kind = CONTRAST, .of = {a, b}, .bars = 1});
}

// Doubles that a node keeps a bar of its window.
static size_t kept(node_kind kind) {
    return kind == MOMENTS ? 3 : kind == HIGHEST || kind == LOWEST ? 2 : kind == LAG || kind == ABOUT ? 1 : 0;
}

bool gauge_start(gauge *g, err *e) {
    size_t doubles = 1;
    for (int i = 0; i < g->nodes; i++) doubles += kept(g->node[i].kind) * (size_t)g->node[i].bars;
    g->window = calloc(doubles, sizeof *g->window);
    if (!g->window) return err_run(e, "no memory for windows of %zu numbers; use shorter windows", doubles);
    double *at = g->window;
    for (int i = 0; i < g->nodes; i++) {
        node *n = &g->node[i];
        n->block = at;
        n->suffix = at + n->bars;
        n->suffix_square = at + 2 * n->bars;
        at += kept(n->kind) * (size_t)n->bars;
    }
    gauge_reset(g);
    return true;
}

void gauge_reset(gauge *g) {
    g->count = 0;
    g->day = INT64_MIN;
    memset(g->value, 0, sizeof *g->value * (size_t)g->slots);
    for (int i = 0; i < g->nodes; i++) {
        node *n = &g->node[i];
        n->at = 0;
        n->full = false;
        n->anchor = n->sum = n->square = 0;
    }
}

// The state: count and day, the bar before, the slots, then every node's place, sums and window.

enum { HEAD = 2 + BAR_NUMBERS, NODE_HEAD = 5 };

size_t gauge_state(const gauge *g) {
    size_t n = HEAD + (size_t)g->slots;
    for (int i = 0; i < g->nodes; i++) n += NODE_HEAD + kept(g->node[i].kind) * (size_t)g->node[i].bars;
    return n;
}

void gauge_save(const gauge *g, double *to) {
    *to++ = (double)g->count;
    *to++ = bar_moment(g->day);
    bar_save(&g->before, to);
    to += BAR_NUMBERS;
    memcpy(to, g->value, sizeof *to * (size_t)g->slots);
    to += g->slots;
    for (int i = 0; i < g->nodes; i++) {
        const node *n = &g->node[i];
        size_t window = kept(n->kind) * (size_t)n->bars;
        const double head[NODE_HEAD] = {n->at, n->full, n->anchor, n->sum, n->square};
        memcpy(to, head, sizeof head);
        memcpy(to + NODE_HEAD, n->block, sizeof *to * window);
        to += NODE_HEAD + window;
    }
}

bool gauge_load(gauge *g, const double *from) {
    if (!(from[0] >= 0 && from[0] < 1e15 && fabs(from[1]) <= 0x1p53)) return false;
    g->count = (int64_t)from[0];
    g->day = from[1] == -0x1p53 ? INT64_MIN : (int64_t)from[1];
    bar_load(&g->before, from + 2);
    from += HEAD;
    memcpy(g->value, from, sizeof *from * (size_t)g->slots);
    from += g->slots;
    for (int i = 0; i < g->nodes; i++) {
        node *n = &g->node[i];
        size_t window = kept(n->kind) * (size_t)n->bars;
        // An average stays at the end of its bars; a window never does.
        if (!(from[0] >= 0 && from[0] < n->bars + !window)) return false;
        n->at = (int)from[0];
        n->full = from[1] != 0;
        n->anchor = from[2];
        n->sum = from[3];
        n->square = from[4];
        memcpy(n->block, from + NODE_HEAD, sizeof *from * window);
        from += NODE_HEAD + window;
    }
    return true;
}

// Slots of the bar itself

static double bounded(double x, double least) {
    return x > least ? (x < 1e60 ? x : 1e60) : least;
}

static double more(double a, double b) {
    return a > b ? a : b;
}

static double fewer(double a, double b) {
    return a < b ? a : b;
}

static double sign(double x) {
    return (double)((x > 0) - (x < 0));
}

static bar repaired(const bar *b) {
    bar r = {.time = b->time};
    r.open = bounded(b->open, 1e-60);
    r.close = bounded(b->close, 1e-60);
    r.high = more(more(r.open, r.close), more(bounded(b->high, 1e-60), bounded(b->low, 1e-60)));
    r.low = fewer(fewer(r.open, r.close), fewer(bounded(b->high, 1e-60), bounded(b->low, 1e-60)));
    r.volume = bounded(b->volume, 0);
    r.spread = bounded(b->spread, 0);
    return r;
}

static void push_day(gauge *g, int64_t day) {
    double *v = g->value;
    int64_t weekday = ((day + 3) % 7 + 7) % 7; // 1970-01-01 was a Thursday
    double year = 2 * PI * fmod((double)day, YEAR_DAYS) / YEAR_DAYS;
    g->day = day;
    v[GAUGE_DAY] = (double)day;
    v[GAUGE_WEEKDAY] = (double)weekday;
    v[GAUGE_WEEKDAY_SIN] = sin(2 * PI * (double)weekday / 7);
    v[GAUGE_WEEKDAY_COS] = cos(2 * PI * (double)weekday / 7);
    v[GAUGE_YEAR_SIN] = sin(year);
    v[GAUGE_YEAR_COS] = cos(year);
}

static void push_time(gauge *g, int64_t time) {
    int64_t second = time % DAY, day = time / DAY - (second < 0), minute = (second + (second < 0) * DAY) / 60;
    if (day != g->day) push_day(g, day);
    g->value[GAUGE_HOUR] = (double)minute / 60;
    g->value[GAUGE_HOUR_SIN] = g->sine[minute];
    g->value[GAUGE_HOUR_COS] = g->sine[(minute + DAY_MINUTES / 4) % DAY_MINUTES];
}

static void push_alone(gauge *g, const bar *b) {
    double *v = g->value, range = b->high - b->low, relative = log(b->high / b->low);
    v[GAUGE_OPEN] = b->open;
    v[GAUGE_HIGH] = b->high;
    v[GAUGE_LOW] = b->low;
    v[GAUGE_CLOSE] = b->close;
    v[GAUGE_VOLUME] = b->volume;
    v[GAUGE_SPREAD] = b->spread;
    v[GAUGE_RANGE] = range;
    v[GAUGE_TYPICAL] = (b->high + b->low + b->close) / 3;
    v[GAUGE_DIRECTION] = sign(b->close - b->open);
    v[GAUGE_MONEY] = v[GAUGE_TYPICAL] * b->volume;
    v[GAUGE_PRESSURE] = range > 0 ? b->volume * ((b->close - b->low) - (b->high - b->close)) / range : 0;
    v[GAUGE_LOG_CLOSE] = log(b->close);
    v[GAUGE_LOG_RANGE] = relative * relative;
}

// `log_close`, `typical`, `ret` are those of the bar before.
static void push_pair(gauge *g, const bar *b, double log_close, double typical, double ret) {
    double *v = g->value, change = b->close - g->before.close;
    double rise = b->high - g->before.high, fall = g->before.low - b->low, streak = v[GAUGE_STREAK];
    v[GAUGE_BEFORE] = g->before.close;
    // Times are subtracted as doubles: a file may hold any 64-bit numbers.
    v[GAUGE_MISSED] = more(((double)b->time - (double)g->before.time) / (double)g->span - 1, 0);
    v[GAUGE_RETURN] = v[GAUGE_LOG_CLOSE] - log_close;
    v[GAUGE_CHANGE] = change;
    v[GAUGE_TRAVEL] = fabs(change);
    v[GAUGE_GAIN] = more(change, 0);
    v[GAUGE_LOSS] = more(-change, 0);
    v[GAUGE_TRUE_RANGE] = more(b->high, g->before.close) - fewer(b->low, g->before.close);
    v[GAUGE_RISE] = rise > fall && rise > 0 ? rise : 0;
    v[GAUGE_FALL] = fall > rise && fall > 0 ? fall : 0;
    v[GAUGE_VOLUME_SIDE] = sign(change) * b->volume;
    v[GAUGE_MONEY_UP] = v[GAUGE_TYPICAL] > typical ? v[GAUGE_MONEY] : 0;
    v[GAUGE_MONEY_DOWN] = v[GAUGE_TYPICAL] < typical ? v[GAUGE_MONEY] : 0;
    v[GAUGE_STREAK] = change > 0 ? more(streak, 0) + 1 : change < 0 ? fewer(streak, 0) - 1 : 0;
    v[GAUGE_RETURN_CROSS] = g->count > 1 ? v[GAUGE_RETURN] * ret : 0;
}

// Windows

static void push_average(node *n, double *v, double x) {
    if (n->full) {
        v[n->out] += n->alpha * (x - v[n->out]);
        return;
    }
    n->sum += x;
    if (++n->at < n->bars) return;
    v[n->out] = n->sum / n->bars;
    n->full = true;
}

// The filled block becomes the old one, its newest value the anchor.
static void turn_moments(node *n, double x) {
    double sum = 0, square = 0;
    for (int i = n->bars - 1; i >= 0; i--) {
        double d = n->block[i] - x;
        n->suffix[i] = sum += d;
        n->suffix_square[i] = square += d * d;
    }
    n->anchor = x;
    n->sum = n->square = 0;
    n->at = 0;
    n->full = true;
}

static void push_moments(node *n, double *v, double x) {
    double d = x - n->anchor;
    n->block[n->at++] = x;
    n->sum += d;
    n->square += d * d;
    if (n->at == n->bars) turn_moments(n, x);
    if (!n->full) return;
    double mean = (n->suffix[n->at] + n->sum) * n->alpha;
    v[n->out] = n->anchor + mean;
    v[n->out + 1] = more((n->suffix_square[n->at] + n->square) * n->alpha - mean * mean, 0);
}

// The highest of `side` times the values. `sum` is the prefix's, begun with the old block's newest value, which is in
// the window as long as the block is.
static void push_extreme(node *n, double *v, double x, double side) {
    x *= side;
    n->sum = more(n->sum, x);
    n->block[n->at++] = x;
    if (n->at == n->bars) {
        double most = x;
        for (int i = n->bars - 1; i >= 0; i--) n->suffix[i] = most = more(most, n->block[i]);
        n->sum = x;
        n->at = 0;
        n->full = true;
    }
    if (n->full) v[n->out] = side * more(n->suffix[n->at], n->sum);
}

static void push_lag(node *n, double *v, double x) {
    if (n->full) v[n->out] = n->block[n->at];
    n->block[n->at++] = x;
    if (n->at == n->bars) {
        n->at = 0;
        n->full = true;
    }
}

static void push_about(node *n, double *v, double x, double mean) {
    n->block[n->at++] = x;
    if (n->at == n->bars) {
        n->at = 0;
        n->full = true;
    }
    if (!n->full) return;
    double sum = 0;
    for (int i = 0; i < n->bars; i++) sum += fabs(n->block[i] - mean);
    v[n->out] = sum * n->alpha;
}

static void push_node(node *n, double *v) {
    double a = v[n->of[0]], b = v[n->of[1]], c = v[n->of[2]];
    switch (n->kind) {
    case EMA:
    case WILDER: push_average(n, v, a); break;
    case MOMENTS: push_moments(n, v, a); break;
    case HIGHEST: push_extreme(n, v, a, 1); break;
    case LOWEST: push_extreme(n, v, a, -1); break;
    case LAG: push_lag(n, v, a); break;
    case ABOUT: push_about(n, v, a, b); break;
    case LESS: v[n->out] = a - b; break;
    case POSITION: v[n->out] = c > b ? (a - b) / (c - b) : 0.5; break;
    case CONTRAST: v[n->out] = a + b > 0 ? fabs(a - b) / (a + b) : 0; break;
    }
}

void gauge_push(gauge *g, const bar *b) {
    CHECK(g->window, "gauge_start first");
    double *v = g->value, log_close = v[GAUGE_LOG_CLOSE], typical = v[GAUGE_TYPICAL], ret = v[GAUGE_RETURN];
    bar r = repaired(b);
    push_time(g, r.time);
    push_alone(g, &r);
    if (g->count) push_pair(g, &r, log_close, typical, ret);
    for (int i = 0; i < g->nodes; i++)
        if (g->count >= g->node[i].first) push_node(&g->node[i], v);
    g->before = r;
    g->count++;
}

const double *gauge_values(const gauge *g) {
    return g->value;
}

int64_t gauge_count(const gauge *g) {
    return g->count;
}

int64_t gauge_first(const gauge *g, int slot) {
    return g->first[slot];
}

int64_t gauge_settled(const gauge *g, int slot) {
    return g->settled[slot];
}

static int64_t largest(const int64_t *at, int count) {
    int64_t most = 0;
    for (int i = 0; i < count; i++) most = at[i] > most ? at[i] : most;
    return most;
}

int64_t gauge_first_of_all(const gauge *g) {
    return largest(g->first, g->slots);
}

int64_t gauge_settled_of_all(const gauge *g) {
    return largest(g->settled, g->slots);
}
