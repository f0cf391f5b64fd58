#include "data/build.h"

#include "data/build_work.h"
#include "data/leaks.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

const char *const build_stream_names[FRAMES_MOST] = {"fast", "slow", "slower", "slowest"};

const build_options build_defaults = {
    .label = BUILD_DIRECTION,
    .direction = {.horizon = 1, .measure = LABEL_LOG, .band = 0.5, .volatility_bars = 100, .classes = 3, .strong = 2},
    .barrier = {.up = 2, .down = 2, .volatility_bars = 100, .limit = 24, .side = 1},
    .horizon = 12,
    .value = LABEL_PATH,
    .vector = true,
};

static uint32_t sum_bars(const build_source *from) {
    uLong sum = crc32(0, NULL, 0);
    for (int s = 0; s < from->series; s++)
        for (int i = 0; i < from->frames; i++) {
            const build_bars_of *x = &from->of[s].frame[i];
            if (x->count) sum = crc32_z(sum, (const unsigned char *)x->bar, (size_t)x->count * sizeof *x->bar);
        }
    return (uint32_t)sum;
}

static void check_source(const build_source *from, const dataset *old) {
    CHECK(from->frames >= 1 && from->frames <= FRAMES_MOST && from->series >= 1, "%d frames of %d series", from->frames,
        from->series);
    for (int i = 1; i < from->frames; i++)
        CHECK(from->frame[i].span > from->frame[i - 1].span, "frame %d is not coarser", i);
    for (int s = 0; s < from->series; s++) {
        CHECK(!s || strcmp(from->of[s - 1].symbol, from->of[s].symbol) < 0, "symbols are out of order");
        for (int i = 0; i < from->frames; i++)
            CHECK(
                from->of[s].frame[i].count >= !old && from->of[s].frame[i].count <= INT32_MAX, "frame %d is empty", i);
    }
}

// ERR_INPUT for options that no label can have; the label functions say what is wrong.
static bool check_label(const build_options *o, err *e) {
    int32_t label, end;
    float target;
    return o->label == BUILD_DIRECTION ? label_direction(NULL, NULL, 0, &o->direction, &label, &end, e)
           : o->label == BUILD_BARRIER ? label_barrier(NULL, NULL, 0, &o->barrier, &label, &end, NULL, e)
                                       : label_forecast(NULL, 0, o->horizon, o->value, &target, &end, e);
}

dataset *build_bars(const build_source *from, const build_options *o, const dataset *old, build_report *r, err *e) {
    if (leaks_planted.bars) from = leaks_planted.bars(from);
    check_source(from, old);
    if (!check_label(o, e)) return NULL;
    build b = {.from = from, .o = o, .old = old};
    b.work = calloc((size_t)from->series, sizeof *b.work);
    bool ok = b.work || err_run(e, "no memory for %d instruments", from->series);
    ok = ok && (b.stream = bar_stream_new(from->frame, from->frames, o->vector, e));
    ok = ok && build_prepare(&b, e) && build_order(&b, e) && build_fill(&b, e);
    if (ok) b.d->sum = sum_bars(from);
    if (ok) b.d->about = json_pack("{s:s, s:o}", "made_of", "bars", "label", build_label_json(o));
    if (ok && leaks_planted.built) leaks_planted.built(b.d);
    if (ok && r) *r = b.report;
    for (int s = 0; b.work && s < from->series; s++) work_done(&b.work[s]);
    free(b.work);
    bar_stream_free(b.stream);
    if (ok) return b.d;
    dataset_free(b.d);
    return NULL;
}

// Labels in words

static const char *const kinds[] = {"direction", "barrier", "forecast"};
static const char *const values[] = {"close", "step", "path"};

json_t *build_label_json(const build_options *o) {
    const label_direction_options *w = &o->direction;
    const label_barrier_options *x = &o->barrier;
    if (o->label == BUILD_FORECAST)
        return json_pack(
            "{s:s, s:I, s:s}", "kind", "forecast", "horizon", (json_int_t)o->horizon, "value", values[o->value]);
    if (o->label == BUILD_BARRIER)
        return json_pack("{s:s, s:f, s:f, s:I, s:I, s:s, s:s}", "kind", "barrier", "up", x->up, "down", x->down,
            "volatility", (json_int_t)x->volatility_bars, "limit", (json_int_t)x->limit, "side",
            x->side > 0 ? "long" : "short", "timeout", x->timeout == LABEL_TIMEOUT_SIGN ? "sign" : "neutral");
    return json_pack("{s:s, s:I, s:f, s:I, s:i, s:f, s:s, s:b}", "kind", "direction", "horizon", (json_int_t)w->horizon,
        "band", w->band, "volatility", (json_int_t)w->volatility_bars, "classes", w->classes, "strong", w->strong,
        "measure", w->measure == LABEL_LOG ? "log" : "relative", "joined", o->to_three);
}

// The place of a text of an object among some words; -1 where it is none of them.
static int word_of(const json_t *from, const char *key, const char *const *words, int count) {
    const char *text = json_string_value(json_object_get(from, key));
    for (int i = 0; text && i < count; i++)
        if (strcmp(text, words[i]) == 0) return i;
    return -1;
}

static double real_of(const json_t *from, const char *key) {
    return json_number_value(json_object_get(from, key));
}

static int64_t whole_of(const json_t *from, const char *key) {
    return json_integer_value(json_object_get(from, key));
}

bool build_label_read(const json_t *from, build_options *o) {
    int kind = word_of(from, "kind", kinds, 3), value = word_of(from, "value", values, 3);
    static const char *const sides[] = {"short", "long"}, *const timeouts[] = {"neutral", "sign"},
                             *const measures[] = {"relative", "log"};
    if (kind < 0 || (kind == BUILD_FORECAST && value < 0)) return false;
    o->label = (build_label)kind;
    if (kind == BUILD_FORECAST) {
        o->horizon = whole_of(from, "horizon");
        o->value = (label_value)value;
        return true;
    }
    if (kind == BUILD_BARRIER) {
        int side = word_of(from, "side", sides, 2), timeout = word_of(from, "timeout", timeouts, 2);
        o->barrier = (label_barrier_options){.up = real_of(from, "up"),
            .down = real_of(from, "down"),
            .volatility_bars = whole_of(from, "volatility"),
            .limit = whole_of(from, "limit"),
            .side = side ? 1 : -1,
            .timeout = (label_timeout)timeout};
        return side >= 0 && timeout >= 0;
    }
    int measure = word_of(from, "measure", measures, 2);
    o->direction = (label_direction_options){.horizon = whole_of(from, "horizon"),
        .measure = (label_return)measure,
        .band = real_of(from, "band"),
        .volatility_bars = whole_of(from, "volatility"),
        .classes = (int)whole_of(from, "classes"),
        .strong = real_of(from, "strong")};
    o->to_three = json_is_true(json_object_get(from, "joined"));
    return measure >= 0;
}
