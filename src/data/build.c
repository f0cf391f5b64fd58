#include "data/build.h"

#include "base/half.h"
#include "base/stop.h"
#include "data/align.h"
#include "data/feature.h"
#include "data/strategy.h"
#include "data/when.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

const char *const build_stream_names[BUILD_STREAMS_MOST] = {"fast", "slow", "slower", "slowest"};

const build_options build_defaults = {
    .label = BUILD_DIRECTION,
    .direction = {.horizon = 1, .measure = LABEL_LOG, .band = 0.5, .volatility_bars = 100, .classes = 3, .strong = 2},
    .barrier = {.up = 2, .down = 2, .volatility_bars = 100, .limit = 24, .side = 1},
    .horizon = 12,
    .value = LABEL_PATH,
    .vector = true,
};

static const char *const three[] = {"DOWN", "NEUTRAL", "UP"};
static const char *const five[] = {"STRONG_DOWN", "DOWN", "NEUTRAL", "UP", "STRONG_UP"};

enum { BETWEEN = 4096 }; // bars between two looks at whether to stop

typedef struct {
    const build_stream *from;
    int streams;
    const build_options *o;
    int64_t count; // bars of the finest stream
    feature_list *list[BUILD_STREAMS_MOST];
    int64_t warm_up[BUILD_STREAMS_MOST]; // rows that are not stored
    int32_t *row[BUILD_STREAMS_MOST];    // [count] the stream's bar at each of the finest; row[0] is not there
    strategy *strategy;
    int64_t first; // the first bar of the finest stream that may be a sample
    int32_t *label, *end;
    float *target;
    int64_t samples, last; // `last`: the bar of the last one
    build_report report;
    dataset *d;
} build;

static int64_t longer(int64_t a, int64_t b) {
    return a > b ? a : b;
}

// Features and warm-ups

static bool make_lists(build *b, err *e) {
    for (int i = 0; i < b->streams; i++) {
        const build_stream *s = &b->from[i];
        const char *const *specs = s->features;
        int count = s->feature_count;
        if (!specs) {
            specs = i ? feature_default_slow : feature_default_fast;
            count = i ? FEATURE_SLOW : FEATURE_FAST;
        }
        err why = {0};
        b->list[i] = feature_list_new(specs, count, s->span, &why);
        if (!b->list[i] && why.kind == ERR_INPUT) return err_input(e, "%s: %s", s->name, why.text);
        if (!b->list[i]) return err_run(e, "%s: %s", s->name, why.text);
        b->warm_up[i] = feature_list_warm_up(b->list[i]);
        if (b->warm_up[i] < s->count) continue;
        return err_input(e,
            "%s: %" PRId64 " bars, but the features of %s need %" PRId64
            " before they mean anything; give more history or features that look back less",
            s->file, s->count, s->name, b->warm_up[i] + 1);
    }
    return true;
}

static bool align(build *b, err *e) {
    const build_stream *fast = &b->from[0];
    b->first = b->warm_up[0];
    if (b->o->vector) {
        b->strategy = strategy_new(fast->span, e);
        if (!b->strategy) return false;
        b->first = longer(b->first, strategy_warm_up(b->strategy));
    }
    for (int i = 1; i < b->streams; i++) {
        const build_stream *s = &b->from[i];
        b->row[i] = malloc((size_t)b->count * sizeof **b->row);
        if (!b->row[i]) return err_run(e, "%s: no memory to align %" PRId64 " bars", s->file, b->count);
        align_rows(fast->bar, b->count, s->bar, s->count, b->row[i]);
        while (b->first < b->count && b->row[i][b->first] < b->warm_up[i]) b->first++;
        if (b->first < b->count) continue;
        return err_input(e, "%s: its bars warm up only after the last bar of %s; do the files cover the same time?",
            s->file, fast->file);
    }
    return true;
}

// Labels

static bool make_labels(build *b, err *e) {
    const build_options *o = b->o;
    const bar *bars = b->from[0].bar;
    size_t n = (size_t)b->count;
    label_barrier_options barrier = o->barrier;
    barrier.count_from = b->first;
    bool targets = o->label == BUILD_FORECAST && o->horizon >= 1 && o->horizon <= LABEL_BARS_MOST;
    b->label = malloc(n * sizeof *b->label);
    b->end = malloc(n * sizeof *b->end);
    if (targets) b->target = malloc(n * (size_t)o->horizon * sizeof *b->target);
    if (!b->label || !b->end || (targets && !b->target))
        return err_run(e, "%s: no memory for the labels of %" PRId64 " bars", b->from[0].file, b->count);
    bool ok = o->label == BUILD_DIRECTION ? label_direction(bars, b->count, &o->direction, b->label, b->end, e)
              : o->label == BUILD_BARRIER
                  ? label_barrier(bars, b->count, &barrier, b->label, b->end, &b->report.barrier, e)
                  : label_forecast(bars, b->count, o->horizon, o->value, b->target, b->end, e);
    if (ok && o->label == BUILD_DIRECTION && o->to_three && o->direction.classes == 5)
        label_to_three(b->label, b->count);
    return ok;
}

static bool count_samples(build *b, err *e) {
    for (int64_t t = b->first; t < b->count; t++) {
        if (b->end[t] < 0) continue;
        b->samples++;
        b->last = t;
    }
    b->report.warm_up = b->first;
    b->report.unlabelled = b->count - b->first - b->samples;
    b->report.unlabelled_end = b->samples ? b->count - 1 - b->last : b->report.unlabelled;
    if (b->samples) return true;
    return err_input(e,
        "%s: %" PRId64 " bars, of which %" PRId64
        " are needed to warm up, and none of the rest has a label; give more history",
        b->from[0].file, b->count, b->first);
}

static int classes_of(const build_options *o) {
    if (o->label == BUILD_FORECAST) return 0;
    return o->label == BUILD_DIRECTION && o->direction.classes == 5 && !o->to_three ? 5 : 3;
}

// The dataset's block: names, tables, lists. Counted first, taken in the same order.

// The bars of a stream that samples see; what follows is nobody's past.
static int64_t seen(const build *b, int i) {
    return (i ? b->row[i][b->last] : b->last) + 1;
}

static size_t text_bytes(const build *b) {
    size_t bytes = 0;
    for (int i = 0; i < b->streams; i++) {
        bytes += strlen(b->from[i].name) + 1;
        for (int c = 0; c < feature_list_width(b->list[i]); c++) bytes += strlen(feature_list_name(b->list[i], c)) + 1;
    }
    return bytes;
}

static size_t measure(const build *b) {
    const build_options *o = b->o;
    size_t bytes = dataset_room((int64_t)text_bytes(b), 1);
    for (int i = 0; i < b->streams; i++) {
        int64_t width = feature_list_width(b->list[i]);
        bytes += dataset_room((seen(b, i) - b->warm_up[i]) * width, sizeof(float));
        bytes += dataset_room(width, sizeof(char *)) + 2 * dataset_room(b->samples, sizeof(int32_t));
    }
    if (o->vector) {
        size_t half = o->compact ? dataset_room(b->samples * STRATEGIES, 1) : 0;
        bytes += half + dataset_room(b->samples * (o->compact ? STRATEGIES : STRATEGY_COLUMNS), o->compact ? 2 : 4);
        bytes += dataset_room(STRATEGY_COLUMNS, sizeof(char *));
    }
    bytes += o->label == BUILD_FORECAST ? dataset_room(b->samples * o->horizon, sizeof(float))
                                        : dataset_room(b->samples, sizeof(int32_t));
    return bytes + 2 * dataset_room(b->samples, sizeof(int64_t)) + dataset_room(b->samples, sizeof(float));
}

static const char *put_text(char **at, const char *text) {
    const char *here = *at;
    *at = stpcpy(*at, text) + 1;
    return here;
}

// Whether the last closed bar of a coarser stream is older than weekends and holidays explain.
static bool is_stale(const build *b, int i, int64_t t) {
    const build_stream *fast = &b->from[0], *s = &b->from[i];
    int64_t age = fast->bar[t].end - s->bar[b->row[i][t]].end;
    return age > s->span + 4 * WHEN_DAY;
}

static bool fill_stream(build *b, int i, size_t *at, char **text, err *e) {
    const build_stream *from = &b->from[i];
    stream *s = &b->d->stream[i];
    int width = feature_list_width(b->list[i]);
    int64_t bars = seen(b, i), rows = bars - b->warm_up[i], k = 0;
    float *data = dataset_take(b->d, at, rows * width, sizeof *data);
    const char **columns = dataset_take(b->d, at, width, sizeof *columns);
    int32_t *row = dataset_take(b->d, at, b->samples, sizeof *row);
    s->first = dataset_take(b->d, at, b->samples, sizeof *row); // all 0: one series
    s->row = row;
    s->name = put_text(text, from->name);
    for (int c = 0; c < width; c++) columns[c] = put_text(text, feature_list_name(b->list[i], c));
    // Rows before the warm-up all go to the place of the first that is kept.
    for (int64_t t = 0; t < bars; t++) {
        if (t % BETWEEN == 0 && !stop_go_on(e)) return false;
        feature_list_push(b->list[i], &from->bar[t], data + (t < b->warm_up[i] ? 0 : t - b->warm_up[i]) * width);
    }
    for (int64_t t = b->first; t < b->count; t++) {
        if (b->end[t] < 0) continue;
        row[k++] = (int32_t)((i ? b->row[i][t] : t) - b->warm_up[i]);
        b->report.stale[i] += i && is_stale(b, i, t);
    }
    s->series = table_of(COLUMN_F32, rows, width, data);
    s->series.columns = columns;
    return true;
}

static bool fill_vector(build *b, size_t *at, err *e) {
    bool compact = b->o->compact;
    int64_t k = 0;
    int8_t *signals = NULL, signal[STRATEGIES];
    uint16_t *halves = NULL;
    float *floats = NULL, strength[STRATEGIES];
    if (compact) {
        signals = dataset_take(b->d, at, b->samples * STRATEGIES, sizeof *signals);
        halves = dataset_take(b->d, at, b->samples * STRATEGIES, sizeof *halves);
    } else {
        floats = dataset_take(b->d, at, b->samples * STRATEGY_COLUMNS, sizeof *floats);
    }
    const char **columns = dataset_take(b->d, at, STRATEGY_COLUMNS, sizeof *columns);
    for (int c = 0; c < STRATEGY_COLUMNS; c++) columns[c] = strategy_name(c);
    for (int64_t t = 0; t < b->count; t++) {
        if (t % BETWEEN == 0 && !stop_go_on(e)) return false;
        strategy_push(b->strategy, &b->from[0].bar[t], signal, strength);
        if (t < b->first || b->end[t] < 0) continue;
        for (int i = 0; i < STRATEGIES && compact; i++) halves[k * STRATEGIES + i] = half_narrow(strength[i]);
        for (int i = 0; i < STRATEGIES && !compact; i++) floats[k * STRATEGY_COLUMNS + i] = (float)signal[i];
        if (compact) memcpy(signals + k * STRATEGIES, signal, sizeof signal);
        if (!compact) memcpy(floats + k * STRATEGY_COLUMNS + STRATEGIES, strength, sizeof strength);
        k++;
    }
    b->d->vector.rows = b->samples;
    b->d->vector.columns = columns;
    if (!compact) {
        table_add(&b->d->vector, COLUMN_F32, STRATEGY_COLUMNS, floats);
        return true;
    }
    table_add(&b->d->vector, COLUMN_I8, STRATEGIES, signals);
    table_add(&b->d->vector, COLUMN_F16, STRATEGIES, halves);
    return true;
}

static void fill_lists(build *b, size_t *at) {
    const build_stream *fast = &b->from[0];
    dataset *d = b->d;
    int64_t width = b->target ? b->o->horizon : 0, k = 0;
    float *target = b->target ? dataset_take(d, at, b->samples * width, sizeof *target) : NULL;
    int32_t *label = b->target ? NULL : dataset_take(d, at, b->samples, sizeof *label);
    int64_t *time = dataset_take(d, at, b->samples, sizeof *time), *end = dataset_take(d, at, b->samples, sizeof *end);
    float *price = dataset_take(d, at, b->samples, sizeof *price);
    for (int64_t t = b->first; t < b->count; t++) {
        if (b->end[t] < 0) continue;
        time[k] = fast->bar[t].end;
        end[k] = fast->bar[b->end[t]].end;
        price[k] = (float)fast->bar[t].close;
        if (label) label[k] = b->label[t];
        if (target) memcpy(target + k * width, b->target + t * width, (size_t)width * sizeof *target);
        k++;
    }
    d->label = label;
    d->target = target;
    d->target_width = width;
    d->time = time;
    d->end = end;
    d->price = price;
}

static bool fill(build *b, err *e) {
    size_t at = 0;
    b->d = dataset_new(measure(b), e);
    if (!b->d) return false;
    char *text = dataset_take(b->d, &at, (int64_t)text_bytes(b), 1);
    b->d->name = "bars";
    b->d->samples = b->samples;
    b->d->streams = b->streams;
    b->d->raw = true;
    b->d->classes = classes_of(b->o);
    b->d->class_names = b->d->classes == 5 ? five : b->d->classes ? three : NULL;
    for (int i = 0; i < b->streams; i++)
        if (!fill_stream(b, i, &at, &text, e)) return false;
    if (b->o->vector && !fill_vector(b, &at, e)) return false;
    fill_lists(b, &at);
    return true;
}

static void done(build *b) {
    for (int i = 0; i < b->streams; i++) {
        feature_list_free(b->list[i]);
        free(b->row[i]);
    }
    strategy_free(b->strategy);
    free(b->label);
    free(b->end);
    free(b->target);
}

static uint32_t sum_bars(const build_stream *from, int streams) {
    uLong sum = crc32(0, NULL, 0);
    for (int i = 0; i < streams; i++)
        sum = crc32_z(sum, (const unsigned char *)from[i].bar, (size_t)from[i].count * sizeof *from[i].bar);
    return (uint32_t)sum;
}

dataset *build_bars(const build_stream *from, int streams, const build_options *o, build_report *r, err *e) {
    CHECK(streams >= 1 && streams <= BUILD_STREAMS_MOST, "%d streams", streams);
    for (int i = 1; i < streams; i++) CHECK(from[i].span > from[i - 1].span, "stream %d is not coarser", i);
    for (int i = 0; i < streams; i++) CHECK(from[i].count > 0 && from[i].count <= INT32_MAX, "stream %d is empty", i);
    build b = {.from = from, .streams = streams, .o = o, .count = from[0].count};
    bool ok = make_lists(&b, e) && align(&b, e) && make_labels(&b, e) && count_samples(&b, e) && fill(&b, e);
    if (ok) b.d->sum = sum_bars(from, streams);
    if (ok) b.d->about = build_about(from, streams, o);
    for (int i = 0; ok && i < streams; i++) b.d->span[i] = from[i].span;
    if (ok && r) *r = b.report;
    done(&b);
    if (ok) return b.d;
    dataset_free(b.d);
    return NULL;
}

// What is told of it

static json_t *label_json(const build_options *o) {
    const label_direction_options *w = &o->direction;
    const label_barrier_options *x = &o->barrier;
    static const char *const values[] = {"close", "step", "path"};
    if (o->label == BUILD_FORECAST)
        return json_pack(
            "{s:s, s:I, s:s}", "kind", "forecast", "horizon", (json_int_t)o->horizon, "value", values[o->value]);
    if (o->label == BUILD_BARRIER)
        return json_pack("{s:s, s:f, s:f, s:I, s:I, s:s, s:s}", "kind", "barrier", "up", x->up, "down", x->down,
            "volatility", (json_int_t)x->volatility_bars, "limit", (json_int_t)x->limit, "side",
            x->side > 0 ? "long" : "short", "timeout", x->timeout == LABEL_TIMEOUT_SIGN ? "sign" : "neutral");
    return json_pack("{s:s, s:I, s:f, s:I, s:i, s:f, s:s}", "kind", "direction", "horizon", (json_int_t)w->horizon,
        "band", w->band, "volatility", (json_int_t)w->volatility_bars, "classes", classes_of(o), "strong", w->strong,
        "measure", w->measure == LABEL_LOG ? "log" : "relative");
}

json_t *build_about(const build_stream *from, int streams, const build_options *o) {
    json_t *all = json_array();
    for (int i = 0; i < streams; i++)
        json_array_append_new(all, json_pack("{s:s, s:s, s:I, s:I}", "stream", from[i].name, "file", from[i].file,
                                       "span", (json_int_t)from[i].span, "bars", (json_int_t)from[i].count));
    return json_pack("{s:s, s:o, s:o, s:s}", "made_of", "bars", "sources", all, "label", label_json(o), "types",
        o->compact ? "compact" : "f32");
}
