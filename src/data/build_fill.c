// The block of a dataset of bars: tables, lists, names, bars and state. Counted first, taken in the same order.
#include "base/half.h"
#include "base/stop.h"
#include "data/build_work.h"

#include <stdlib.h>
#include <string.h>

static const char *const three[] = {"DOWN", "NEUTRAL", "UP"};
static const char *const five[] = {"STRONG_DOWN", "DOWN", "NEUTRAL", "UP", "STRONG_UP"};

static bool is_named(const build *b) {
    return b->from->of[0].symbol[0] != 0;
}

// Room

static size_t text_bytes(const build *b) {
    size_t bytes = 0;
    for (int i = 0; i < b->from->frames; i++) {
        const feature_list *l = bar_stream_features(b->stream, i);
        bytes += strlen(b->from->frame[i].name) + 1;
        for (int c = 0; c < feature_list_width(l); c++) bytes += strlen(feature_list_name(l, c)) + 1;
    }
    for (int s = 0; s < b->from->series; s++) bytes += strlen(b->from->of[s].symbol) + 1;
    return bytes;
}

static size_t measure_frame(const build *b, int i) {
    int64_t width = feature_list_width(bar_stream_features(b->stream, i)), all = b->samples + b->unlabelled;
    return dataset_room(b->rows[i] * width, sizeof(float)) + dataset_room(width, sizeof(char *)) +
           2 * dataset_room(all, sizeof(int32_t)) + 2 * dataset_room(b->from->series + 1, sizeof(int64_t)) +
           dataset_room(2 * b->bars[i], sizeof(int64_t)) + dataset_room(6 * b->bars[i], sizeof(double));
}

static size_t measure(const build *b) {
    const build_options *o = b->o;
    int64_t all = b->samples + b->unlabelled;
    size_t bytes = dataset_room((int64_t)text_bytes(b), 1) + dataset_room(b->from->series, sizeof(char *));
    for (int i = 0; i < b->from->frames; i++) bytes += measure_frame(b, i);
    if (o->vector) {
        bytes += o->compact ? dataset_room(all * STRATEGIES, 1) + dataset_room(all * STRATEGIES, 2)
                            : dataset_room(all * STRATEGY_COLUMNS, sizeof(float));
        bytes += dataset_room(STRATEGY_COLUMNS, sizeof(char *));
    }
    bytes += o->label == BUILD_FORECAST ? dataset_room(b->samples * o->horizon, sizeof(float))
                                        : dataset_room(b->samples, sizeof(int32_t));
    bytes += dataset_room(all, sizeof(int64_t)) + dataset_room(b->samples, sizeof(int64_t));
    bytes += dataset_room(all, sizeof(float));
    if (build_volatility_bars(o)) bytes += dataset_room(b->bars[0], sizeof(double));
    return bytes + dataset_room((int64_t)build_state(b, &b->work[0]) * b->from->series, sizeof(double));
}

// Frames

static const char *put_text(char **at, const char *text) {
    const char *here = *at;
    *at = stpcpy(*at, text) + 1;
    return here;
}

static void fill_starts(const build *b, int frame, int64_t *row, int64_t *bars) {
    for (int s = 0; s < b->from->series; s++) {
        row[s] = b->work[s].row[frame];
        bars[s] = b->work[s].bar[frame];
    }
    row[b->from->series] = b->rows[frame];
    bars[b->from->series] = b->bars[frame];
}

// An instrument's bars, old and new.
static void fill_bars(const build *b, const work *w, int frame, int64_t *time, double *price) {
    int64_t old = w->before[frame];
    time += 2 * w->bar[frame];
    price += 6 * w->bar[frame];
    if (old) {
        const bar_table *t = &b->old->stream[frame].bars;
        memcpy(time, t->time + 2 * w->old_bar[frame], (size_t)(2 * old) * sizeof *time);
        memcpy(price, t->price + 6 * w->old_bar[frame], (size_t)(6 * old) * sizeof *price);
    }
    for (int64_t t = old; t < w->count[frame]; t++) {
        const bar *x = &w->from->frame[frame].bar[t - old];
        const double each[6] = {x->open, x->high, x->low, x->close, x->volume, x->spread};
        time[2 * t] = x->time;
        time[2 * t + 1] = x->end;
        memcpy(price + 6 * t, each, sizeof each);
    }
}

// An instrument's rows of features: the old ones as they are, the new ones computed. Rows before the warm-up all go to
// the place of the first that is kept.
static bool fill_rows(build *b, const work *w, int frame, float *data, err *e) {
    int64_t width = feature_list_width(bar_stream_features(b->stream, frame)), old = w->before[frame],
            warm = b->warm_up[frame];
    data += w->row[frame] * width;
    if (old)
        memcpy(data, table_floats(&b->old->stream[frame].series) + w->old_row[frame] * width,
            (size_t)((old - warm) * width) * sizeof *data);
    for (int64_t t = old; t < w->count[frame]; t++) {
        if (t % BUILD_BETWEEN == 0 && !stop_go_on(e)) return false;
        bar_stream_push(
            b->stream, frame, &w->from->frame[frame].bar[t - old], data + (t < warm ? 0 : t - warm) * width);
    }
    return true;
}

static void fill_places(const build *b, const work *w, int frame, int32_t *row, int32_t *first) {
    for (int64_t t = w->first; t < w->count[0]; t++) {
        int64_t sample = w->place[t - w->first], at = frame ? w->seen[frame][t - w->first] : t;
        row[sample] = (int32_t)(w->row[frame] + at - b->warm_up[frame]);
        first[sample] = (int32_t)w->row[frame];
    }
}

// Everything of a frame but its rows, which come instrument by instrument; `data` is theirs.
static void fill_frame(build *b, int i, size_t *at, char **text, float **data) {
    const feature_list *l = bar_stream_features(b->stream, i);
    stream *s = &b->d->stream[i];
    int64_t width = feature_list_width(l), all = b->samples + b->unlabelled;
    *data = dataset_take(b->d, at, b->rows[i] * width, sizeof **data);
    const char **columns = dataset_take(b->d, at, width, sizeof *columns);
    int32_t *row = dataset_take(b->d, at, all, sizeof *row), *first = dataset_take(b->d, at, all, sizeof *first);
    int64_t *start = dataset_take(b->d, at, b->from->series + 1, sizeof *start);
    int64_t *bars = dataset_take(b->d, at, b->from->series + 1, sizeof *bars);
    int64_t *time = dataset_take(b->d, at, 2 * b->bars[i], sizeof *time);
    double *price = dataset_take(b->d, at, 6 * b->bars[i], sizeof *price);
    s->name = put_text(text, b->from->frame[i].name);
    for (int c = 0; c < width; c++) columns[c] = put_text(text, feature_list_name(l, c));
    fill_starts(b, i, start, bars);
    for (int k = 0; k < b->from->series; k++) {
        fill_bars(b, &b->work[k], i, time, price);
        fill_places(b, &b->work[k], i, row, first);
    }
    s->series = table_of(COLUMN_F32, b->rows[i], width, *data);
    s->series.columns = columns;
    s->row = row;
    s->first = first;
    s->start = start;
    s->bars = (bar_table){b->bars[i], time, price, bars};
    b->d->span[i] = b->from->frame[i].span;
}

// The vector

typedef struct {
    int8_t *signals; // compact: [samples, 32] and
    uint16_t *halves;
    float *floats; // or [samples, 64]
} vectors;

static vectors take_vectors(build *b, size_t *at) {
    int64_t all = b->samples + b->unlabelled;
    table *t = &b->d->vector;
    vectors v = {0};
    if (!b->o->vector) return v;
    t->rows = all;
    if (b->o->compact) {
        v.signals = dataset_take(b->d, at, all * STRATEGIES, sizeof *v.signals);
        v.halves = dataset_take(b->d, at, all * STRATEGIES, sizeof *v.halves);
        table_add(t, COLUMN_I8, STRATEGIES, v.signals);
        table_add(t, COLUMN_F16, STRATEGIES, v.halves);
    } else {
        v.floats = dataset_take(b->d, at, all * STRATEGY_COLUMNS, sizeof *v.floats);
        table_add(t, COLUMN_F32, STRATEGY_COLUMNS, v.floats);
    }
    const char **columns = dataset_take(b->d, at, STRATEGY_COLUMNS, sizeof *columns);
    for (int c = 0; c < STRATEGY_COLUMNS; c++) columns[c] = strategy_name(c);
    t->columns = columns;
    return v;
}

static void put_vector(const vectors *v, int64_t k, const int8_t *signal, const float *strength) {
    if (v->floats) {
        float *to = v->floats + k * STRATEGY_COLUMNS;
        for (int i = 0; i < STRATEGIES; i++) to[i] = (float)signal[i];
        memcpy(to + STRATEGIES, strength, STRATEGIES * sizeof *to);
        return;
    }
    memcpy(v->signals + k * STRATEGIES, signal, STRATEGIES);
    for (int i = 0; i < STRATEGIES; i++) v->halves[k * STRATEGIES + i] = half_narrow(strength[i]);
}

// The row of an old sample, part by part.
static void copy_vector(const build *b, int64_t from, int64_t to) {
    const table *old = &b->old->vector, *new = &b->d->vector;
    for (int k = 0; k < new->parts; k++) {
        size_t bytes = (size_t) new->part[k].width *column_bytes(new->part[k].type);
        memcpy((char *)new->part[k].data + (size_t)to *bytes, (const char *)old->part[k].data + (size_t)from * bytes,
            bytes);
    }
}

static bool fill_vectors(build *b, const work *w, const vectors *v, err *e) {
    int8_t signal[STRATEGIES];
    float strength[STRATEGIES];
    int64_t old = w->before[0];
    for (int64_t t = w->first; t < old; t++) copy_vector(b, w->was[t - w->first], w->place[t - w->first]);
    for (int64_t t = old; t < w->count[0]; t++) {
        if (t % BUILD_BETWEEN == 0 && !stop_go_on(e)) return false;
        bar_stream_judge(b->stream, &w->from->frame[0].bar[t - old], signal, strength);
        if (t >= w->first) put_vector(v, w->place[t - w->first], signal, strength);
    }
    return true;
}

// Lists

typedef struct {
    int32_t *label;
    float *target;
    int64_t *time, *end;
    float *price;
} lists;

// The label of a bar that was made here, or that the old dataset has.
static void put_label(const build *b, const work *w, int64_t t, int64_t k, const lists *l) {
    int64_t width = b->d->target_width, i = t - w->fresh;
    if (i >= 0) {
        l->end[k] = build_end_of(b, w, 0, w->fresh + w->end[i]);
        if (l->label) l->label[k] = w->label[i];
        if (l->target) memcpy(l->target + k * width, w->target + i * width, (size_t)width * sizeof *l->target);
        return;
    }
    int64_t was = w->was[t - w->first];
    l->end[k] = b->old->end[was];
    if (l->label) l->label[k] = b->old->label[was];
    if (l->target) memcpy(l->target + k * width, b->old->target + was * width, (size_t)width * sizeof *l->target);
}

static void fill_lists(build *b, size_t *at) {
    dataset *d = b->d;
    int64_t all = b->samples + b->unlabelled;
    lists l = {0};
    d->target_width = b->o->label == BUILD_FORECAST ? b->o->horizon : 0;
    if (d->target_width)
        l.target = dataset_take(d, at, b->samples * d->target_width, sizeof *l.target);
    else
        l.label = dataset_take(d, at, b->samples, sizeof *l.label);
    l.time = dataset_take(d, at, all, sizeof *l.time);
    l.end = dataset_take(d, at, b->samples, sizeof *l.end);
    l.price = dataset_take(d, at, all, sizeof *l.price);
    for (int s = 0; s < b->from->series; s++) {
        const work *w = &b->work[s];
        for (int64_t t = w->first; t < w->count[0]; t++) {
            int64_t k = w->place[t - w->first];
            l.time[k] = build_end_of(b, w, 0, t);
            l.price[k] = (float)build_bar_of(b, w, 0, t).close;
            if (k < b->samples) put_label(b, w, t, k, &l);
        }
    }
    d->label = l.label;
    d->target = l.target;
    d->time = l.time;
    d->end = l.end;
    d->price = l.price;
}

// Instruments

// Rows, vectors and the state of one instrument after its last bars.
static bool fill_series(build *b, const work *w, float *const *data, const vectors *v, double *state, err *e) {
    bar_stream_reset(b->stream);
    if (w->old_state && !bar_stream_load(b->stream, w->old_state)) return build_damaged(b, e);
    for (int i = 0; i < b->from->frames; i++)
        if (!fill_rows(b, w, i, data[i], e)) return false;
    if (b->o->vector && !fill_vectors(b, w, v, e)) return false;
    bar_stream_save(b->stream, state);
    if (w->meter) volatility_save(w->meter, state + bar_stream_state(b->stream));
    return true;
}

static void fill_names(build *b, size_t *at, char **text) {
    dataset *d = b->d;
    const char **names = dataset_take(d, at, b->from->series, sizeof *names);
    for (int s = 0; s < b->from->series; s++) names[s] = put_text(text, b->from->of[s].symbol);
    if (!is_named(b)) return;
    d->panel = b->from->series;
    d->panel_names = names;
    d->panel_first = d->stream[0].start;
}

static void fill_volatility(build *b, size_t *at) {
    if (!build_volatility_bars(b->o)) return;
    double *all = dataset_take(b->d, at, b->bars[0], sizeof *all);
    for (int s = 0; s < b->from->series; s++) {
        const work *w = &b->work[s];
        memcpy(all + w->bar[0], w->volatility, (size_t)w->count[0] * sizeof *all);
    }
    b->d->volatility = all;
}

bool build_fill(build *b, err *e) {
    size_t at = 0, state = build_state(b, &b->work[0]);
    float *data[FRAMES_MOST];
    dataset *d = b->d = dataset_new(measure(b), e);
    if (!d) return false;
    char *text = dataset_take(d, &at, (int64_t)text_bytes(b), 1);
    d->name = "bars";
    d->samples = b->samples;
    d->unlabelled = b->unlabelled;
    d->streams = b->from->frames;
    d->raw = true;
    d->classes = build_classes(b->o);
    d->class_names = d->classes == 5 ? five : d->classes ? three : NULL;
    for (int i = 0; i < d->streams; i++) fill_frame(b, i, &at, &text, &data[i]);
    fill_names(b, &at, &text);
    vectors v = take_vectors(b, &at);
    fill_lists(b, &at);
    fill_volatility(b, &at);
    double *states = dataset_take(d, &at, (int64_t)state * b->from->series, sizeof *states);
    d->state = states;
    d->states = (int64_t)state * b->from->series;
    for (int s = 0; s < b->from->series; s++)
        if (!fill_series(b, &b->work[s], data, &v, states + (size_t)s * state, e)) return false;
    return true;
}
