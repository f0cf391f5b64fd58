#include "task/rule_file.h"

#include "run/results.h"
#include "run/weights.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static json_t *distance_json(const decide_distance *d) {
    return json_pack("{s:f, s:f}", "stop", d->stop, "target", d->target);
}

json_t *rule_to_json(const rule_record *r) {
    const decide_rule *x = &r->rule;
    char from[32], to[32];
    json_t *all = json_pack("{s:f, s:s, s:I, s:o, s:o, s:s, s:s, s:f, s:I, s:f, s:s, s:s}", "threshold", x->threshold,
        "exit", signal_exit_name(x->exit), "hold", (json_int_t)x->hold, "long", distance_json(&x->up), "short",
        distance_json(&x->down), "unit", x->returns ? "return" : "volatility", "sizing", signal_sizing_name(x->sizing),
        "size", x->size, "volatility_bars", (json_int_t)x->volatility_bars, "bars_a_year", x->bars_a_year, "symbol",
        r->symbol, "weights", r->weights);
    if (r->was_fitted)
        json_object_set_new(all, "fitted",
            json_pack("{s:f, s:I, s:s, s:s}", "result", r->fitted.result, "trades", (json_int_t)r->fitted.trades,
                "from", when_moment_text(from, sizeof from, r->fitted.from), "to",
                when_moment_text(to, sizeof to, r->fitted.to)));
    return all;
}

bool rule_write(const char *dir, const rule_record *r, err *e) {
    return results_write(dir, RESULTS_SIGNAL, rule_to_json(r), e);
}

// Reading

static bool word(const json_t *doc, const char *key, const char *(*name)(int), int count, int *to) {
    const char *text = json_string_value(json_object_get(doc, key));
    for (*to = 0; text && *to < count; ++*to)
        if (strcmp(text, name(*to)) == 0) return true;
    return false;
}

static const char *exit_name(int k) {
    return signal_exit_name((signal_exit)k);
}

static const char *sizing_name(int k) {
    return signal_sizing_name((signal_sizing)k);
}

static double number(json_t *doc, const char *path) {
    return results_number(results_get(doc, path));
}

static bool is_within(double v, double least, double most) {
    return v >= least && v <= most;
}

bool rule_from_json(json_t *doc, rule_record *r) {
    decide_rule *x = &r->rule;
    int exit, sizing;
    const char *symbol = json_string_value(json_object_get(doc, "symbol"));
    const char *unit = json_string_value(json_object_get(doc, "unit"));
    const char *weights = json_string_value(json_object_get(doc, "weights"));
    double hold = number(doc, "hold"), bars = number(doc, "volatility_bars");
    bool ok = word(doc, "exit", exit_name, SIGNAL_HORIZON + 1, &exit) &&
              word(doc, "sizing", sizing_name, SIGNAL_EQUITY + 1, &sizing) && symbol && unit && weights &&
              is_within(hold, 0, 1e9) && is_within(bars, 1, LABEL_BARS_MOST);
    if (!ok) return false;
    *x = (decide_rule){.threshold = number(doc, "threshold"),
        .hold = (int64_t)hold,
        .exit = (signal_exit)exit,
        .up = {number(doc, "long.stop"), number(doc, "long.target")},
        .down = {number(doc, "short.stop"), number(doc, "short.target")},
        .returns = strcmp(unit, "return") == 0,
        .sizing = (signal_sizing)sizing,
        .size = number(doc, "size"),
        .volatility_bars = (int64_t)bars,
        .bars_a_year = number(doc, "bars_a_year")};
    snprintf(r->weights, sizeof r->weights, "%s", weights);
    snprintf(r->symbol, sizeof r->symbol, "%s", symbol);
    const double all[] = {
        x->threshold, x->up.stop, x->up.target, x->down.stop, x->down.target, x->size, x->bars_a_year};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (!(all[i] >= 0)) return false;
    return true;
}

bool rule_read(const char *dir, rule_record *r, bool *there, err *e) {
    json_t *doc;
    char now[WEIGHTS_IDENTITY_ROOM];
    *r = (rule_record){0};
    *there = false;
    if (!results_read(dir, RESULTS_SIGNAL, &doc, e)) return false;
    if (!doc) return true;
    bool ok = rule_from_json(doc, r);
    json_decref(doc);
    if (!weights_identity(dir, now, e)) return false;
    *there = ok && now[0] && strcmp(now, r->weights) == 0;
    return ok ||
           err_input(e, "%s/%s: a value is missing or out of its range; make it anew with `tradewind backtest %s`", dir,
               results_name(RESULTS_SIGNAL), dir);
}

bool rule_of(const trained *t, rule_record *r, bool *there, err *e) {
    static const char best[] = "/best.safetensors";
    signal_settings s;
    size_t n = strlen(t->weights), end = sizeof best - 1;
    *r = (rule_record){0};
    *there = false;
    if (!signal_read(t->task.config, &s, e)) return false;
    if (s.threshold != SIGNAL_AUTO) {
        r->rule.threshold = s.threshold;
        *there = true;
        return true;
    }
    if (!t->members && (n <= end || strcmp(t->weights + n - end, best) != 0)) return true;
    char *dir = strndup(t->weights, t->members ? n : n - end);
    NEED(dir, "out of memory for a path");
    bool ok = rule_read(dir, r, there, e);
    free(dir);
    return ok;
}
