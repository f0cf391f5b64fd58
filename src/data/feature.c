#include "data/feature.h"

#include "data/feature_rule.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    feature_info info;
    const feature_rule *rule;
} catalogue[] = {
#define FEATURE(name, parameters, a, b, c, range, meaning)                                                             \
    {{#name, parameters, {a, b, c}, range, meaning}, &feature_rule_##name},
#include "data/feature.def"
#undef FEATURE
};

enum { KINDS = sizeof catalogue / sizeof *catalogue };

const char *const feature_default_fast[FEATURE_FAST] = {"log_return_1", "log_return_3", "log_return_12", "body",
    "upper_wick", "lower_wick", "natr_14", "rsi_14", "macd_histogram_12_26_9", "bollinger_position_20_2",
    "ema_distance_20", "volatility_ratio_10_100", "volume_zscore_20", "hour_sin", "hour_cos"};

const char *const feature_default_slow[FEATURE_SLOW] = {"log_return_1", "log_return_6", "natr_14", "rsi_14",
    "ema_distance_50", "macd_12_26_9", "donchian_position_24", "volume_ratio_24"};

// A column: a rule with its numbers, and the bar from which it is defined.
typedef struct {
    feature x;
    int64_t first, settled;
    double (*value)(const feature *x, const double *v);
    const feature_rule *rule;
    char name[FEATURE_NAME_MOST];
} column;

struct feature_list {
    gauge *gauge;
    int width;
    int64_t warm_up;
    column *column;
};

int feature_count(void) {
    return KINDS;
}

feature_info feature_at(int i) {
    CHECK(i >= 0 && i < KINDS, "feature %d", i);
    return catalogue[i].info;
}

// Names

// Single letters changed, put in, left out: Levenshtein's distance, for names of the catalogue.
static int distance(const char *a, size_t len, const char *b) {
    int row[FEATURE_NAME_MOST + 1];
    size_t width = strlen(b);
    for (size_t j = 0; j <= width; j++) row[j] = (int)j;
    for (size_t i = 0; i < len; i++) {
        int corner = row[0];
        row[0] = (int)i + 1;
        for (size_t j = 0; j < width; j++) {
            int change = corner + (a[i] != b[j]), least = row[j] < row[j + 1] ? row[j] + 1 : row[j + 1] + 1;
            corner = row[j + 1];
            row[j + 1] = change < least ? change : least;
        }
    }
    return row[width];
}

static const char *nearest(const char *name, size_t len) {
    int best = 0, least = FEATURE_NAME_MOST * 2;
    for (int i = 0; i < KINDS; i++) {
        int d = distance(name, len, catalogue[i].info.name);
        if (d < least) {
            least = d;
            best = i;
        }
    }
    return catalogue[best].info.name;
}

// True if the text from `s` to `end` is a number as specs have them: digits, at most one point between them.
static bool is_number(const char *s, const char *end) {
    int points = 0;
    if (s == end || !isdigit((unsigned char)*s) || !isdigit((unsigned char)end[-1])) return false;
    for (; s < end; s++) {
        if (*s == '.')
            points++;
        else if (!isdigit((unsigned char)*s))
            return false;
    }
    return points < 2;
}

// Where a spec's numbers begin: at the underscore before the first of them, or at the end.
static const char *name_end(const char *spec) {
    const char *end = spec + strlen(spec);
    for (const char *s = end; s > spec; s--)
        if (*s == '_') {
            const char *next = strchr(s + 1, '_');
            if (!is_number(s + 1, next ? next : s + 1 + strlen(s + 1))) break;
            end = s;
        }
    return end;
}

static int find(const char *name, size_t len) {
    for (int i = 0; i < KINDS; i++)
        if (strlen(catalogue[i].info.name) == len && !memcmp(catalogue[i].info.name, name, len)) return i;
    return -1;
}

static bool check_number(const char *spec, char letter, double number, double before, err *e) {
    if (letter == 'k')
        return (number >= 0.01 && number <= 100) ||
               err_input(e, "feature %s: a multiple of %g; use 0.01 to 100", spec, number);
    if (number < 1 || number > GAUGE_WINDOW_MOST || number != floor(number))
        return err_input(e, "feature %s: %g is no number of bars; use 1 to %d", spec, number, GAUGE_WINDOW_MOST);
    if (letter == 'N' && number <= before)
        return err_input(e, "feature %s: %g is not more than %g; write the shorter length first", spec, number, before);
    return true;
}

// Reads the numbers of a spec from `s` on, which name_end found; the rest are defaults.
static bool read_numbers(const char *spec, const char *s, const feature_info *info, feature *x, err *e) {
    int most = (int)strlen(info->parameters), given = 0;
    memcpy(x->number, info->number, sizeof x->number);
    while (*s) {
        char *end;
        if (given == most)
            return err_input(e, "feature %s: %s takes %d number%s; leave the rest out", spec, info->name, most,
                most == 1 ? "" : "s");
        x->number[given++] = strtod(s + 1, &end);
        s = end;
    }
    for (int i = 0; i < most; i++)
        if (!check_number(spec, info->parameters[i], x->number[i], i ? x->number[i - 1] : 0, e)) return false;
    return true;
}

static void write_name(column *c, const feature_info *info) {
    int at = snprintf(c->name, sizeof c->name, "%s", info->name);
    for (size_t i = 0; i < strlen(info->parameters); i++)
        at += snprintf(c->name + at, sizeof c->name - (size_t)at, "_%.10g", c->x.number[i]);
    CHECK(at < FEATURE_NAME_MOST, "%s is too long", c->name);
}

static bool read_spec(const char *spec, column *c, err *e) {
    if (strlen(spec) >= FEATURE_NAME_MOST)
        return err_input(e, "feature %.20s...: longer than any name; see the catalogue in doc/features.md", spec);
    const char *end = name_end(spec);
    size_t len = (size_t)(end - spec);
    int kind = find(spec, len);
    if (kind < 0) return err_input(e, "feature %s is not known; did you mean %s?", spec, nearest(spec, len));
    if (!read_numbers(spec, end, &catalogue[kind].info, &c->x, e)) return false;
    c->rule = catalogue[kind].rule;
    c->value = c->rule->value;
    write_name(c, &catalogue[kind].info);
    return true;
}

static int by_name(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool check_twice(const feature_list *l, err *e) {
    const char **name = calloc((size_t)l->width, sizeof *name);
    bool ok = true;
    if (!name) return err_run(e, "no memory for %d features; use fewer", l->width);
    for (int i = 0; i < l->width; i++) name[i] = l->column[i].name;
    qsort(name, (size_t)l->width, sizeof *name, by_name);
    for (int i = 1; i < l->width && ok; i++)
        if (!strcmp(name[i - 1], name[i])) ok = err_input(e, "feature %s is listed twice; leave one out", name[i]);
    free(name);
    return ok;
}

// The list

// Defined from the first bar at which all slots are; meaningful from the last to settle.
static void plan_column(feature_list *l, column *c) {
    c->rule->plan(&c->x, l->gauge);
    for (int i = 0; i < FEATURE_SLOTS; i++) {
        int64_t first = gauge_first(l->gauge, c->x.slot[i]), settled = gauge_settled(l->gauge, c->x.slot[i]);
        if (first > c->first) c->first = first;
        if (settled > c->settled) c->settled = settled;
    }
    if (c->settled > l->warm_up) l->warm_up = c->settled;
}

feature_list *feature_list_new(const char *const *specs, int count, int64_t span_seconds, err *e) {
    feature_list *l = NULL;
    if (count < 1 || count > FEATURE_LIST_MOST) {
        err_input(e, "%d features; list 1 to %d", count, FEATURE_LIST_MOST);
        return NULL;
    }
    if (span_seconds < 1) {
        err_input(e, "bars of %lld seconds; give the span of a bar", (long long)span_seconds);
        return NULL;
    }
    l = calloc(1, sizeof *l);
    if (!l || !(l->column = calloc((size_t)count, sizeof *l->column))) {
        err_run(e, "no memory for %d features; use fewer", count);
        goto done;
    }
    l->width = count;
    for (int i = 0; i < count; i++)
        if (!read_spec(specs[i], &l->column[i], e)) goto done;
    if (!check_twice(l, e) || !(l->gauge = gauge_new(span_seconds, count * FEATURE_NODES, e))) goto done;
    for (int i = 0; i < count; i++) plan_column(l, &l->column[i]);
    if (gauge_start(l->gauge, e)) return l;
done:
    feature_list_free(l);
    return NULL;
}

void feature_list_free(feature_list *l) {
    if (!l) return;
    gauge_free(l->gauge);
    free(l->column);
    free(l);
}

int feature_list_width(const feature_list *l) {
    return l->width;
}

const char *feature_list_name(const feature_list *l, int column) {
    CHECK(column >= 0 && column < l->width, "column %d of %d", column, l->width);
    return l->column[column].name;
}

int64_t feature_list_warm_up(const feature_list *l) {
    return l->warm_up;
}

int64_t feature_list_needs(const feature_list *l, int column) {
    return l->column[column].settled;
}

// Cut to what a float holds; ratios of prices that lie 1e120 apart cannot be more.
static float narrowed(double x) {
    return (float)(x < -1e30 ? -1e30 : x > 1e30 ? 1e30 : x);
}

void feature_list_push(feature_list *l, const bar *b, float *out) {
    int64_t t = gauge_count(l->gauge);
    gauge_push(l->gauge, b);
    const double *v = gauge_values(l->gauge);
    for (int i = 0; i < l->width; i++) {
        const column *c = &l->column[i];
        out[i] = t < c->first ? 0 : narrowed(c->value(&c->x, v));
    }
}

void feature_list_run(feature_list *l, const bar *bars, int64_t count, float *out) {
    for (int64_t t = 0; t < count; t++) feature_list_push(l, &bars[t], out + t * l->width);
}

void feature_list_reset(feature_list *l) {
    gauge_reset(l->gauge);
}

size_t feature_list_state(const feature_list *l) {
    return gauge_state(l->gauge);
}

void feature_list_save(const feature_list *l, double *to) {
    gauge_save(l->gauge, to);
}

bool feature_list_load(feature_list *l, const double *from) {
    return gauge_load(l->gauge, from);
}
