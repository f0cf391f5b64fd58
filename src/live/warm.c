// Warming up: bars that came before the feed, pushed in the order in which they closed; and the state of the features.
#include "live/session_work.h"

#include "base/stop.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

double session_push(session *s, int k, const bar *b) {
    board_push(s->board, k, b);
    if (s->agent) live_agent_push(s->agent, k);
    return s->agent ? (double)NAN : volatility_push(s->trader[k].meter, b);
}

// Bars of one frame: of a dataset's table, or in memory.
typedef struct {
    const bar_table *table;
    int64_t first, count;
    const bar *bar;
    int64_t at;
} lane_bars;

static bar bar_at(const lane_bars *l, int64_t i) {
    return l->table ? dataset_bar(l->table, l->first + i) : l->bar[i];
}

// Bars of coarser frames that a moment may see.
static void wait_for(session *s, int k, int frame, lane_bars *l, int64_t end) {
    for (; l->at < l->count; l->at++) {
        bar slow = bar_at(l, l->at);
        if (slow.end > end) return;
        board_wait(s->board, k, frame, &slow);
    }
}

// Pushes all bars that open before `until` and after those that were pushed already.
static bool push_all(session *s, int k, lane_bars *l, int64_t until, err *e) {
    enum { BETWEEN = 4096 };
    trader *t = &s->trader[k];
    for (int64_t i = 0; i < l[0].count; i++) {
        bar b = bar_at(&l[0], i);
        if (b.time >= until) break;
        if (b.time == t->time) t->end = b.end; // the state is of it
        if (b.time <= t->time) continue;
        if (i % BETWEEN == 0 && !stop_go_on(e)) return false;
        for (int f = 1; f < s->frames; f++) wait_for(s, k, f, &l[f], b.end);
        session_push(s, k, &b);
        if (!t->kept) t->limits.price = b.close;
        t->time = b.time;
        t->end = b.end;
        t->warmed++;
    }
    for (int f = 1; f < s->frames; f++)
        for (; l[f].at < l[f].count; l[f].at++) {
            bar slow = bar_at(&l[f], l[f].at);
            if (slow.end <= until) board_wait(s->board, k, f, &slow);
        }
    return true;
}

bool session_warm_data(session *s, const dataset *d, int64_t until, err *e) {
    for (int k = 0; k < s->traders; k++) {
        if (s->trader[k].kept) continue;
        lane_bars l[FRAMES_MOST] = {0};
        int64_t of = s->trader[k].series;
        for (int f = 0; f < s->frames; f++) {
            const bar_table *t = &d->stream[f].bars;
            bool made = s->made & (1u << f);
            l[f] = (lane_bars){.table = t, .first = t->start[of], .count = made ? 0 : t->start[of + 1] - t->start[of]};
        }
        if (!push_all(s, k, l, until, e)) return false;
    }
    return true;
}

bool session_hours(const session *s, hours *h, err *e) {
    const dataset *d = s->task->data;
    CHECK(s->owns, "the hours of a session that has begun");
    bool ok = true;
    for (int k = 0; ok && k < s->traders; k++)
        for (int f = 0; ok && f < s->frames; f++) {
            const bar_table *t = &d->stream[f].bars;
            int64_t of = s->trader[k].series, count = t->start[of + 1] - t->start[of];
            bar *all = malloc(((size_t)count + 1) * sizeof *all);
            if (!all) return err_run(e, "no memory for %lld bars", (long long)count);
            for (int64_t i = 0; i < count; i++) all[i] = dataset_bar(t, t->start[of] + i);
            ok = hours_learn(h, s->trader[k].symbol, s->span[f], s->tz, all, count, e);
            free(all);
        }
    return ok;
}

// Files

static int frame_of(const session *s, int64_t span) {
    for (int f = 0; f < s->frames; f++)
        if (s->span[f] == span) return f;
    return -1;
}

static int trader_of(const session *s, const char *symbol) {
    for (int k = 0; k < s->traders; k++)
        if (!*symbol || strcmp(s->trader[k].symbol, symbol) == 0) return k;
    return -1;
}

static bool take_file(session *s, const bars *b, const char *path, lane_bars *l, err *e) {
    int k = trader_of(s, b->symbol), f = frame_of(s, b->span);
    char span[32];
    if (k < 0) return true; // an instrument that is not traded
    if (!*b->symbol && s->traders > 1)
        return err_input(e, "%s: names no instrument, and there are several; give a file with a column symbol", path);
    if (f < 0 || (f && s->made & (1u << f)))
        return err_input(e, "%s: has bars of %s, which the model does not take; give bars of its finest frame", path,
            when_span_text(span, sizeof span, b->span));
    l[k * FRAMES_MOST + f] = (lane_bars){.bar = b->bar, .count = b->count};
    return true;
}

bool session_warm_files(session *s, const char *const *file, int files, int64_t until, err *e) {
    bars_list *list = calloc((size_t)files, sizeof *list);
    lane_bars *l = calloc((size_t)s->traders * FRAMES_MOST, sizeof *l);
    bool ok = (list && l) || err_run(e, "no memory for %d files", files);
    for (int i = 0; ok && i < files; i++) {
        ok = bars_read_list(&list[i], file[i], &s->reading, e);
        for (int n = 0; ok && n < list[i].count; n++) {
            bars *b = &list[i].item[n];
            if (b->report.last_bar == BARS_OPEN_WHEN_WRITTEN) b->count--;
            ok = take_file(s, b, file[i], l, e);
        }
    }
    for (int k = 0; ok && k < s->traders; k++) ok = s->trader[k].kept || push_all(s, k, l + k * FRAMES_MOST, until, e);
    for (int i = 0; list && i < files; i++) bars_list_done(&list[i]);
    free(list);
    free(l);
    return ok;
}

// State: that of the board, then the numbers of the volatility, or what an agent sees.

static size_t measure_more(const session *s, int k) {
    return s->agent ? live_agent_state(s->agent) : volatility_state(s->trader[k].meter) * sizeof(double);
}

void session_save_state(session *s, int k) {
    trader *t = &s->trader[k];
    size_t bytes, more = measure_more(s, k);
    char *state = board_save(s->board, k, &bytes), *all = realloc(state, bytes + more);
    double *numbers = malloc(more + 1);
    NEED(all && numbers, "out of memory for a state of %zu bytes", bytes);
    s->agent ? live_agent_save(s->agent, k, numbers) : volatility_save(t->meter, numbers);
    memcpy(all + bytes, numbers, more);
    journal_put_state(s->journal, t->symbol, t->time, all, bytes + more);
    free(numbers);
    free(all);
    t->unsaved = 0;
}

static bool load(session *s, int k, const char *state, size_t bytes, err *e) {
    size_t more = measure_more(s, k);
    if (bytes <= more) return err_input(e, "the state of the features is damaged");
    double *numbers = malloc(more + 1);
    NEED(numbers, "out of memory for a state of %zu bytes", bytes);
    memcpy(numbers, state + bytes - more, more);
    bool ok = board_load(s->board, k, state, bytes - more, e);
    if (ok && s->agent)
        ok = live_agent_load(s->agent, k, numbers) || err_input(e, "the state of the observations is damaged");
    else if (ok)
        ok = volatility_load(s->trader[k].meter, numbers) || err_input(e, "the state of the volatility is damaged");
    free(numbers);
    return ok;
}

// The state that was kept, then the bars behind it.
bool session_load_state(session *s, int k, err *e) {
    trader *t = &s->trader[k];
    lane_bars l[FRAMES_MOST] = {0};
    bar *all[FRAMES_MOST] = {0};
    int64_t newest = t->time;
    size_t bytes;
    err why;
    void *state = journal_take_state(s->journal, t->symbol, &t->time, &bytes, e);
    if (!state) return false;
    bool ok = load(s, k, state, bytes, &why) || err_input(e, "%s: name another --state to begin anew", why.text);
    for (int f = 0; ok && f < s->frames; f++) {
        int64_t after = f ? board_end(s->board, k, f) : INT64_MIN;
        l[f].bar = all[f] = journal_bars(s->journal, t->symbol, f, f ? after : t->time, INT64_MAX, &l[f].count, e);
        ok = all[f] != NULL;
    }
    ok = ok && push_all(s, k, l, INT64_MAX, e);
    if (ok && t->time != newest) ok = err_input(e, "bars and books in the state do not fit together");
    t->unsaved = t->warmed;
    t->warmed = 0;
    for (int f = 0; f < s->frames; f++) free(all[f]);
    free(state);
    return ok;
}
