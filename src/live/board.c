#include "live/board.h"

#include "base/half.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { WAIT_MOST = 64 };

// Rows of one frame of an instrument; the dataset's table has room for `room` of each.
typedef struct {
    int64_t pushed; // bars
    int64_t rows;   // in the table
    int64_t end;    // of the newest bar
    frame_maker maker;
    bar wait[WAIT_MOST];
    int waits;
} lane;

typedef struct {
    bar_stream *stream;
    lane lane[FRAMES_MOST];
} instrument;

struct board {
    dataset *data;
    int frames, series;
    unsigned made;
    int64_t width[FRAMES_MOST], window[FRAMES_MOST], room[FRAMES_MOST], warm_up[FRAMES_MOST];
    int64_t vector_warm_up;
    bool vector, compact;
    float *row[FRAMES_MOST];    // [series, room, width]
    int32_t *last[FRAMES_MOST]; // [series] of the windows
    float *spare;               // a row that nobody sees
    int8_t *signals;            // of the vector
    uint16_t *halves;
    float *floats;
    int64_t *time;
    float *price;
    instrument *instrument; // [series]
};

// The dataset

// The strategy vector of a dataset, before columns of symbols that may stand behind it.
static bool has_vector(const dataset *d) {
    return d->vector.width >= STRATEGY_COLUMNS && d->vector.columns &&
           strcmp(d->vector.columns[0], strategy_name(0)) == 0;
}

static bool is_followed(const dataset *d, err *e) {
    bool ok = d->streams >= 1 && d->streams <= FRAMES_MOST && d->raw;
    for (int i = 0; ok && i < d->streams; i++) ok = d->span[i] > 0 && d->stream[i].series.columns;
    return ok || err_input(e, "%s: is not made of bars, so that no further bar can follow it; train on data from bars",
                     d->name);
}

static size_t measure_text(const board_options *o) {
    const dataset *d = o->like;
    size_t bytes = strlen(d->name) + 1;
    for (int i = 0; i < d->streams; i++) {
        bytes += strlen(d->stream[i].name) + 1;
        for (int64_t c = 0; c < d->stream[i].series.width; c++) bytes += strlen(d->stream[i].series.columns[c]) + 1;
    }
    for (int k = 0; d->class_names && k < d->classes; k++) bytes += strlen(d->class_names[k]) + 1;
    for (int s = 0; d->panel && s < o->series; s++) bytes += strlen(d->panel_names[o->of[s]]) + 1;
    return bytes;
}

static size_t measure(const board *b, const board_options *o) {
    const dataset *d = o->like;
    int64_t n = b->series;
    size_t bytes = dataset_room((int64_t)measure_text(o), 1) + dataset_room(d->classes, sizeof(char *)) +
                   dataset_room(n, sizeof(char *)) + dataset_room(STRATEGY_COLUMNS, sizeof(char *));
    for (int i = 0; i < b->frames; i++)
        bytes += dataset_room(n * b->room[i] * b->width[i], sizeof(float)) + 2 * dataset_room(n, sizeof(int32_t)) +
                 dataset_room(b->width[i], sizeof(char *)) + dataset_room(n + 1, sizeof(int64_t));
    bytes += dataset_room(n * STRATEGIES, 1) + dataset_room(n * STRATEGIES, 2);
    bytes += dataset_room(n * STRATEGY_COLUMNS, sizeof(float));
    bytes += dataset_room(n, sizeof(int32_t)) + dataset_room(n * d->target_width, sizeof(float));
    return bytes + dataset_room(n, sizeof(int64_t)) + dataset_room(n, sizeof(float));
}

static const char *put_text(char **at, const char *text) {
    const char *here = *at;
    *at = stpcpy(*at, text) + 1;
    return here;
}

static void make_stream(board *b, int i, const dataset *like, size_t *at, char **text) {
    const stream *from = &like->stream[i];
    stream *s = &b->data->stream[i];
    int64_t n = b->series;
    b->row[i] = dataset_take(b->data, at, n * b->room[i] * b->width[i], sizeof(float));
    b->last[i] = dataset_take(b->data, at, n, sizeof(int32_t));
    int32_t *first = dataset_take(b->data, at, n, sizeof *first);
    const char **columns = dataset_take(b->data, at, b->width[i], sizeof *columns);
    int64_t *start = dataset_take(b->data, at, n + 1, sizeof *start);
    s->name = put_text(text, from->name);
    for (int64_t c = 0; c < b->width[i]; c++) columns[c] = put_text(text, from->series.columns[c]);
    for (int64_t k = 0; k < n; k++) b->last[i][k] = first[k] = (int32_t)(k * b->room[i]);
    for (int64_t k = 0; k <= n; k++) start[k] = k * b->room[i];
    s->series = table_of(COLUMN_F32, n * b->room[i], b->width[i], b->row[i]);
    s->series.columns = columns;
    s->row = b->last[i];
    s->first = first;
    s->start = start;
    b->data->span[i] = like->span[i];
    b->data->window[i] = like->window[i];
}

static void make_vector(board *b, size_t *at) {
    table *t = &b->data->vector;
    if (!b->vector) return;
    t->rows = b->series;
    if (b->compact) {
        b->signals = dataset_take(b->data, at, b->series * STRATEGIES, sizeof *b->signals);
        b->halves = dataset_take(b->data, at, b->series * STRATEGIES, sizeof *b->halves);
        table_add(t, COLUMN_I8, STRATEGIES, b->signals);
        table_add(t, COLUMN_F16, STRATEGIES, b->halves);
    } else {
        b->floats = dataset_take(b->data, at, b->series * STRATEGY_COLUMNS, sizeof *b->floats);
        table_add(t, COLUMN_F32, STRATEGY_COLUMNS, b->floats);
    }
    const char **columns = dataset_take(b->data, at, STRATEGY_COLUMNS, sizeof *columns);
    for (int c = 0; c < STRATEGY_COLUMNS; c++) columns[c] = strategy_name(c);
    t->columns = columns;
}

static void make_names(board *b, const board_options *o, size_t *at, char **text) {
    const dataset *like = o->like;
    dataset *d = b->data;
    d->name = put_text(text, like->name);
    if (like->class_names) {
        const char **names = dataset_take(d, at, like->classes, sizeof *names);
        for (int k = 0; k < like->classes; k++) names[k] = put_text(text, like->class_names[k]);
        d->class_names = names;
    }
    if (!like->panel) return;
    const char **names = dataset_take(d, at, b->series, sizeof *names);
    for (int s = 0; s < b->series; s++) names[s] = put_text(text, like->panel_names[o->of[s]]);
    d->panel = b->series;
    d->panel_names = names;
    d->panel_first = d->stream[0].start;
}

static bool make_data(board *b, const board_options *o, err *e) {
    const dataset *like = o->like;
    size_t at = 0;
    dataset *d = b->data = dataset_new(measure(b, o), e);
    if (!d) return false;
    char *text = dataset_take(d, &at, (int64_t)measure_text(o), 1);
    d->samples = b->series;
    d->streams = b->frames;
    d->raw = like->raw;
    d->classes = like->classes;
    d->target_width = like->target_width;
    d->horizon = like->horizon;
    for (int i = 0; i < b->frames; i++) make_stream(b, i, like, &at, &text);
    make_names(b, o, &at, &text);
    make_vector(b, &at);
    int32_t *label = dataset_take(d, &at, b->series, sizeof *label);
    float *target = dataset_take(d, &at, b->series * d->target_width, sizeof *target);
    d->label = like->label ? label : NULL;
    d->target = like->target ? target : NULL;
    d->time = b->time = dataset_take(d, &at, b->series, sizeof *b->time);
    d->price = b->price = dataset_take(d, &at, b->series, sizeof *b->price);
    d->about = json_deep_copy(like->about);
    return true;
}

// Streams

static bool make_streams(board *b, const dataset *like, err *e) {
    frame_spec frame[FRAMES_MOST];
    int64_t widest = 0;
    for (int i = 0; i < b->frames; i++) {
        const stream *s = &like->stream[i];
        frame[i] = (frame_spec){s->name, like->span[i], s->series.columns, (int)s->series.width};
        if (b->width[i] > widest) widest = b->width[i];
    }
    b->spare = calloc((size_t)widest, sizeof *b->spare);
    b->instrument = calloc((size_t)b->series, sizeof *b->instrument);
    if (!b->spare || !b->instrument) return err_run(e, "no memory for %d instruments", b->series);
    for (int s = 0; s < b->series; s++) {
        instrument *x = &b->instrument[s];
        if (!(x->stream = bar_stream_new(frame, b->frames, b->vector, e))) return false;
        for (int i = 0; i < b->frames; i++) {
            x->lane[i].end = INT64_MIN;
            frame_maker_begin(&x->lane[i].maker, like->span[i]);
        }
    }
    for (int i = 0; i < b->frames; i++) b->warm_up[i] = bar_stream_warm_up(b->instrument[0].stream, i);
    b->vector_warm_up = bar_stream_vector_warm_up(b->instrument[0].stream);
    return true;
}

board *board_new(const board_options *o, err *e) {
    const dataset *d = o->like;
    CHECK(o->series >= 1 && o->series < INT32_MAX / (1 << 20), "%d instruments", o->series);
    if (!is_followed(d, e)) return NULL;
    board *b = calloc(1, sizeof *b);
    NEED(b, "out of memory for a board");
    b->frames = d->streams;
    b->series = o->series;
    b->made = o->made;
    b->vector = has_vector(d);
    b->compact = b->vector && d->vector.part[0].type == COLUMN_I8;
    for (int i = 0; i < b->frames; i++) {
        b->width[i] = d->stream[i].series.width;
        b->window[i] = o->window[i];
        b->room[i] = 2 * o->window[i];
    }
    if (make_data(b, o, e) && make_streams(b, d, e)) return b;
    board_free(b);
    return NULL;
}

void board_free(board *b) {
    if (!b) return;
    for (int s = 0; b->instrument && s < b->series; s++) bar_stream_free(b->instrument[s].stream);
    free(b->instrument);
    free(b->spare);
    dataset_free(b->data);
    free(b);
}

dataset *board_data(board *b) {
    return b->data;
}

int board_frames(const board *b) {
    return b->frames;
}

// Bars

static float *rows_of(const board *b, int series, int frame) {
    return b->row[frame] + (int64_t)series * b->room[frame] * b->width[frame];
}

// The place of the next row. Where the room is full the newest rows go to its beginning: all but one of a window.
static float *next_row(board *b, int series, int frame) {
    lane *l = &b->instrument[series].lane[frame];
    float *all = rows_of(b, series, frame);
    int64_t width = b->width[frame], keep = b->window[frame] - 1;
    if (l->rows == b->room[frame]) {
        memmove(all, all + (l->rows - keep) * width, (size_t)(keep * width) * sizeof *all);
        l->rows = keep;
    }
    b->last[frame][series] = (int32_t)((int64_t)series * b->room[frame] + l->rows);
    return all + l->rows++ * width;
}

static void add_bar(board *b, int series, int frame, const bar *x) {
    instrument *of = &b->instrument[series];
    lane *l = &of->lane[frame];
    bool warm = l->pushed++ >= b->warm_up[frame];
    bar_stream_push(of->stream, frame, x, warm ? next_row(b, series, frame) : b->spare);
    l->end = x->end;
}

static void judge(board *b, int series, const bar *x) {
    int8_t signal[STRATEGIES];
    float strength[STRATEGIES];
    bar_stream_judge(b->instrument[series].stream, x, signal, strength);
    if (b->floats) {
        float *to = b->floats + series * STRATEGY_COLUMNS;
        for (int i = 0; i < STRATEGIES; i++) to[i] = (float)signal[i];
        memcpy(to + STRATEGIES, strength, sizeof strength);
        return;
    }
    memcpy(b->signals + series * STRATEGIES, signal, sizeof signal);
    for (int i = 0; i < STRATEGIES; i++) b->halves[series * STRATEGIES + i] = half_narrow(strength[i]);
}

static void forget_first(lane *l) {
    memmove(l->wait, l->wait + 1, (size_t)--l->waits * sizeof *l->wait);
}

void board_wait(board *b, int series, int frame, const bar *x) {
    lane *l = &b->instrument[series].lane[frame];
    CHECK(frame > 0 && frame < b->frames, "frame %d waits", frame);
    if (x->end <= l->end || (l->waits && x->end <= l->wait[l->waits - 1].end)) return;
    // The finest frame stands still: the oldest of them is seen a little early, by nobody.
    if (l->waits == WAIT_MOST) {
        add_bar(b, series, frame, &l->wait[0]);
        forget_first(l);
    }
    l->wait[l->waits++] = *x;
}

static void make_coarse(board *b, int series, int frame, const bar *x) {
    bar made[FRAME_MAKER_MOST];
    int n = frame_maker_push(&b->instrument[series].lane[frame].maker, x, made);
    for (int k = 0; k < n; k++) add_bar(b, series, frame, &made[k]);
}

void board_push(board *b, int series, const bar *x) {
    for (int i = 1; i < b->frames; i++) {
        lane *l = &b->instrument[series].lane[i];
        if (b->made & (1u << i)) make_coarse(b, series, i, x);
        while (l->waits && l->wait[0].end <= x->end) {
            add_bar(b, series, i, &l->wait[0]);
            forget_first(l);
        }
    }
    add_bar(b, series, 0, x);
    if (b->vector) judge(b, series, x);
    b->time[series] = x->end;
    b->price[series] = (float)x->close;
}

bool board_ready(const board *b, int series) {
    const instrument *x = &b->instrument[series];
    for (int i = 0; i < b->frames; i++)
        if (!x->lane[i].rows) return false;
    return x->lane[0].pushed > b->vector_warm_up;
}

int64_t board_needs(const board *b, int series) {
    const instrument *x = &b->instrument[series];
    int64_t most = b->vector_warm_up + 1 - x->lane[0].pushed;
    for (int i = 0; i < b->frames; i++) {
        int64_t left = b->warm_up[i] + 1 - x->lane[i].pushed, each = b->data->span[i] / b->data->span[0];
        if (left > 0 && left * each > most) most = left * each;
    }
    return most > 0 ? most : 0;
}

int64_t board_end(const board *b, int series, int frame) {
    return b->instrument[series].lane[frame].end;
}

int64_t board_waiting(const board *b, int series, int frame) {
    const lane *l = &b->instrument[series].lane[frame];
    return l->waits ? l->wait[l->waits - 1].end : INT64_MIN;
}

// Observation

static int64_t seen_rows(const board *b, int series, int frame) {
    int64_t rows = b->instrument[series].lane[frame].rows;
    return rows < b->window[frame] ? rows : b->window[frame];
}

uint32_t board_sum(const board *b, int series) {
    uLong sum = crc32(0, NULL, 0);
    for (int i = 0; i < b->frames; i++) {
        int64_t rows = seen_rows(b, series, i), width = b->width[i], from = b->instrument[series].lane[i].rows - rows;
        const float *seen = rows_of(b, series, i) + from * width;
        sum = crc32_z(sum, (const unsigned char *)seen, (size_t)(rows * width) * sizeof *seen);
    }
    if (b->floats)
        sum = crc32_z(sum, (const unsigned char *)(b->floats + series * STRATEGY_COLUMNS), STRATEGY_COLUMNS * 4);
    if (b->signals) sum = crc32_z(sum, (const unsigned char *)(b->signals + series * STRATEGIES), STRATEGIES);
    if (b->halves) sum = crc32_z(sum, (const unsigned char *)(b->halves + series * STRATEGIES), STRATEGIES * 2);
    return (uint32_t)sum;
}

const float *board_row(const board *b, int series, int frame) {
    int64_t rows = b->instrument[series].lane[frame].rows;
    return rows ? rows_of(b, series, frame) + (rows - 1) * b->width[frame] : b->spare;
}

// State: a head, the lanes, the numbers of the stream, the rows that a window can see, the vector, a sum.

typedef struct {
    char mark[8];
    int32_t frames, vector;
    int64_t width[FRAMES_MOST], window[FRAMES_MOST], span[FRAMES_MOST];
    int64_t numbers, bytes, time;
    float price;
    uint32_t features; // sum of the columns' names
} head;

static const char mark[8] = "twboard1";

static uint32_t sum_names(const board *b) {
    uLong sum = crc32(0, NULL, 0);
    for (int i = 0; i < b->frames; i++)
        for (int64_t c = 0; c < b->width[i]; c++) {
            const char *name = b->data->stream[i].series.columns[c];
            sum = crc32_z(sum, (const unsigned char *)name, strlen(name) + 1);
        }
    return (uint32_t)sum;
}

static head head_of(const board *b, int series) {
    head h;
    memset(&h, 0, sizeof h);
    memcpy(h.mark, mark, sizeof mark);
    h.frames = b->frames;
    h.vector = b->vector + b->compact;
    h.numbers = (int64_t)bar_stream_state(b->instrument[series].stream);
    h.bytes = (int64_t)(sizeof h + (size_t)b->frames * sizeof(lane) + (size_t)h.numbers * sizeof(double)) + 4;
    for (int i = 0; i < b->frames; i++) {
        h.width[i] = b->width[i];
        h.window[i] = b->window[i];
        h.span[i] = b->data->span[i];
        h.bytes += b->room[i] * b->width[i] * (int64_t)sizeof(float);
    }
    if (b->vector) h.bytes += b->compact ? 3 * STRATEGIES : STRATEGY_COLUMNS * (int)sizeof(float);
    h.features = sum_names(b);
    return h;
}

static void put(char **at, const void *from, size_t bytes) {
    memcpy(*at, from, bytes);
    *at += bytes;
}

void *board_save(const board *b, int series, size_t *bytes) {
    const instrument *x = &b->instrument[series];
    head h = head_of(b, series);
    h.time = b->time[series];
    h.price = b->price[series];
    char *all = calloc(1, (size_t)h.bytes), *at = all;
    NEED(all, "out of memory for a state of %lld bytes", (long long)h.bytes);
    put(&at, &h, sizeof h);
    put(&at, x->lane, (size_t)b->frames * sizeof(lane));
    double *numbers = malloc((size_t)(h.numbers + 1) * sizeof *numbers);
    NEED(numbers, "out of memory for a state of %lld bytes", (long long)h.bytes);
    bar_stream_save(x->stream, numbers);
    put(&at, numbers, (size_t)h.numbers * sizeof *numbers);
    free(numbers);
    for (int i = 0; i < b->frames; i++)
        put(&at, rows_of(b, series, i), (size_t)(b->room[i] * b->width[i]) * sizeof(float));
    if (b->floats) put(&at, b->floats + series * STRATEGY_COLUMNS, STRATEGY_COLUMNS * sizeof(float));
    if (b->signals) put(&at, b->signals + series * STRATEGIES, STRATEGIES);
    if (b->halves) put(&at, b->halves + series * STRATEGIES, STRATEGIES * sizeof *b->halves);
    uint32_t sum = (uint32_t)crc32_z(crc32(0, NULL, 0), (unsigned char *)all, (size_t)h.bytes - 4);
    put(&at, &sum, sizeof sum);
    *bytes = (size_t)h.bytes;
    return all;
}

static bool is_state(const board *b, int series, const char *from, size_t bytes) {
    head is, want = head_of(b, series);
    uint32_t sum;
    if (bytes != (size_t)want.bytes) return false;
    memcpy(&is, from, sizeof is);
    memcpy(&sum, from + bytes - 4, sizeof sum);
    want.time = is.time;
    want.price = is.price;
    return memcmp(&is, &want, sizeof is) == 0 &&
           sum == (uint32_t)crc32_z(crc32(0, NULL, 0), (const unsigned char *)from, bytes - 4);
}

static void take(const char **at, void *to, size_t bytes) {
    memcpy(to, *at, bytes);
    *at += bytes;
}

static bool lanes_fit(const board *b, const instrument *x) {
    for (int i = 0; i < b->frames; i++) {
        const lane *l = &x->lane[i];
        if (l->rows < 0 || l->rows > b->room[i] || l->pushed < l->rows || l->waits < 0 || l->waits > WAIT_MOST)
            return false;
    }
    return true;
}

bool board_load(board *b, int series, const void *from, size_t bytes, err *e) {
    instrument *x = &b->instrument[series];
    const char *at = from;
    head h;
    if (!is_state(b, series, from, bytes))
        return err_input(e, "the state of the features is damaged, or of another model");
    take(&at, &h, sizeof h);
    take(&at, x->lane, (size_t)b->frames * sizeof(lane));
    double *numbers = malloc((size_t)(h.numbers + 1) * sizeof *numbers);
    NEED(numbers, "out of memory for a state of %zu bytes", bytes);
    take(&at, numbers, (size_t)h.numbers * sizeof *numbers);
    bool ok = lanes_fit(b, x) && bar_stream_load(x->stream, numbers);
    free(numbers);
    if (!ok) return err_input(e, "the state of the features is damaged");
    for (int i = 0; i < b->frames; i++) {
        take(&at, rows_of(b, series, i), (size_t)(b->room[i] * b->width[i]) * sizeof(float));
        int64_t last = x->lane[i].rows ? x->lane[i].rows - 1 : 0;
        b->last[i][series] = (int32_t)((int64_t)series * b->room[i] + last);
    }
    if (b->floats) take(&at, b->floats + series * STRATEGY_COLUMNS, STRATEGY_COLUMNS * sizeof(float));
    if (b->signals) take(&at, b->signals + series * STRATEGIES, STRATEGIES);
    if (b->halves) take(&at, b->halves + series * STRATEGIES, STRATEGIES * sizeof *b->halves);
    b->time[series] = h.time;
    b->price[series] = h.price;
    return true;
}
