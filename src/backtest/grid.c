#include "backtest/grid.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool add(grid_axis *a, const char *text, const char *value, size_t length, err *e) {
    if (!length) return err_input(e, "--sweep %.200s: a value is empty; write KEY=A,B,C or KEY=FROM:TO:STEP", text);
    if (a->count == GRID_SETTINGS_MOST)
        return err_input(e, "--sweep %.200s: more than %d values; take fewer", text, GRID_SETTINGS_MOST);
    char *word;
    NEED(asprintf(&word, "%s=%.*s", a->key, (int)length, value) >= 0, "out of memory for a setting");
    for (int64_t i = 0; i < a->count; i++) {
        if (strcmp(a->word[i], word) != 0) continue;
        free(word);
        return err_input(e, "--sweep %.200s: %.*s comes twice; leave one out", text, (int)length, value);
    }
    a->word[a->count++] = word;
    return true;
}

static bool add_list(grid_axis *a, const char *text, const char *values, err *e) {
    for (const char *at = values;; at++) {
        size_t n = strcspn(at, ",");
        if (!add(a, text, at, n, e)) return false;
        at += n;
        if (!*at) return true;
    }
}

// A number up to a colon or the end.
static bool take_number(const char **at, double *to) {
    char *end;
    *to = strtod(*at, &end);
    if (end == *at || !isfinite(*to) || (*end && *end != ':')) return false;
    *at = *end ? end + 1 : end;
    return true;
}

static bool add_range(grid_axis *a, const char *text, const char *values, err *e) {
    const char *at = values;
    double from, to, step;
    bool ok = take_number(&at, &from) && take_number(&at, &to) && take_number(&at, &step) && !*at;
    if (!ok || !(step > 0) || to < from)
        return err_input(e, "--sweep %.200s: no such range; write KEY=FROM:TO:STEP, such as 0.4:0.6:0.02", text);
    double steps = floor((to - from) / step + 1e-9); // a step of 0.1 does not end just below its last value
    for (int64_t i = 0; ok && (double)i <= steps; i++) {
        char value[32];
        double v = from + (double)i * step;
        int n = snprintf(value, sizeof value, "%.10g", fabs(v) < 1e-9 * step ? 0 : v);
        ok = add(a, text, value, (size_t)n, e);
    }
    return ok;
}

static bool read_axis(grid *g, const char *text, err *e) {
    grid_axis *a = &g->axis[g->axes];
    const char *equals = strchr(text, '=');
    size_t length = equals ? (size_t)(equals - text) : 0;
    if (!length || length >= sizeof a->key)
        return err_input(e, "--sweep %.200s: not a key with its values; write KEY=A,B,C or KEY=FROM:TO:STEP", text);
    memcpy(a->key, text, length);
    for (int i = 0; i < g->axes; i++)
        if (strcmp(g->axis[i].key, a->key) == 0)
            return err_input(e, "--sweep %.200s: %s comes twice; name all its values at once", text, a->key);
    a->word = calloc(GRID_SETTINGS_MOST, sizeof *a->word);
    NEED(a->word, "out of memory for settings");
    g->axes++;
    return strchr(equals, ':') ? add_range(a, text, equals + 1, e) : add_list(a, text, equals + 1, e);
}

bool grid_read(grid *g, const char *const *texts, int count, err *e) {
    CHECK(count > 0, "%d axes", count);
    *g = (grid){.settings = 1};
    if (count > GRID_AXES_MOST) return err_input(e, "--sweep: more than %d keys; take fewer", GRID_AXES_MOST);
    for (int i = 0; i < count; i++) {
        if (!read_axis(g, texts[i], e)) return false;
        g->settings *= g->axis[i].count;
        if (g->settings > GRID_SETTINGS_MOST)
            return err_input(e, "--sweep: more than %d settings; take fewer values", GRID_SETTINGS_MOST);
    }
    return g->settings > 1 || err_input(e, "--sweep: one setting is nothing to compare; give two values or more");
}

void grid_done(grid *g) {
    for (int i = 0; i < g->axes; i++) {
        for (int64_t k = 0; k < g->axis[i].count; k++) free(g->axis[i].word[k]);
        free(g->axis[i].word);
    }
    *g = (grid){0};
}

static const char *word_of(const grid *g, int64_t setting, int axis) {
    for (int i = g->axes - 1; i > axis; i--) setting /= g->axis[i].count;
    return g->axis[axis].word[setting % g->axis[axis].count];
}

const char *grid_value(const grid *g, int64_t setting, int axis) {
    return strchr(word_of(g, setting, axis), '=') + 1;
}

bool grid_apply(const grid *g, int64_t setting, config *c, err *e) {
    for (int i = 0; i < g->axes; i++)
        if (!config_override(c, word_of(g, setting, i), e)) return false;
    return config_check(c, e);
}
