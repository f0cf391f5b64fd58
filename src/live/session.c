#include "live/session.h"

#include "live/session_work.h"

#include <stdlib.h>
#include <string.h>

// The feed

int session_spans(const session *s, int64_t span[FEED_SPANS_MOST]) {
    int n = 0;
    for (int f = 0; f < s->frames; f++)
        if (!f || !(s->made & (1u << f))) span[n++] = s->span[f];
    return n;
}

bars_options session_reading(const session *s) {
    return s->reading;
}

const limits *session_limits(const session *s) {
    return &s->limits;
}

bool session_tell_known(session *s, live_feed *f, err *e) {
    for (int k = 0; k < s->traders; k++)
        for (int i = 0; i < s->frames; i++) {
            int64_t count;
            bar *all = journal_bars(s->journal, s->trader[k].symbol, i, INT64_MIN, FEED_KNOWN, &count, e);
            if (!all) return false;
            if (count) live_feed_know(f, s->trader[k].symbol, s->span[i], all, count);
            free(all);
        }
    return true;
}

bool session_repeat(session *s, err *e) {
    for (int k = 0; k < s->traders; k++) {
        session_intent i = {.repeat = true};
        if (!journal_newest_intent(s->journal, s->trader[k].symbol, &i.intent, e)) return false;
        if (i.intent.id && !i.intent.sent) session_give(s, k, &i);
    }
    return true;
}

void session_ask_again(session *s, int k, int64_t id) {
    s->trader[k].astray = id;
}

// A bar of the feed without a symbol is of the only instrument, and so is any where the run knows none.
static int trader_of(const session *s, const char *symbol) {
    if (s->traders == 1 && (!*symbol || !s->trader[0].symbol[0])) return 0;
    for (int k = 0; k < s->traders; k++)
        if (strcmp(s->trader[k].symbol, symbol) == 0) return k;
    return -1;
}

static int frame_of(const session *s, int64_t span) {
    for (int f = 0; f < s->frames; f++)
        if (s->span[f] == span && (!f || !(s->made & (1u << f)))) return f;
    return -1;
}

// Coarser bars

// True where a coarser bar must have closed by the end of `b` and has not come.
static bool lacks_coarse(session *s, int k, const bar *b) {
    trader *t = &s->trader[k];
    for (int f = 1; f < s->frames; f++) {
        int64_t seen = board_end(s->board, k, f), waits = board_waiting(s->board, k, f), span = s->span[f];
        int64_t end = waits > seen ? waits : seen;
        if (s->made & (1u << f) || end == INT64_MIN) continue;
        if (t->closed[f] != end) {
            t->closed[f] = end;
            t->begun[f] = INT64_MIN;
        }
        if (t->begun[f] == INT64_MIN && b->time >= end) t->begun[f] = b->time;
        if (t->begun[f] == INT64_MIN) continue;
        if (b->end >= end + ((t->begun[f] - end) / span + 1) * span) return true;
    }
    return false;
}

static bool take_coarse(session *s, int k, int frame, const feed_event *ev, err *e) {
    if (!s->trader[k].kept) {
        board_wait(s->board, k, frame, &ev->bar);
        return true;
    }
    if (!journal_begin(s->journal, e)) return false;
    journal_put_bar(s->journal, s->trader[k].symbol, frame, &ev->bar);
    if (!journal_commit(s->journal, e)) return false;
    board_wait(s->board, k, frame, &ev->bar);
    return true;
}

// The finest frame

// A bar of the past, before anything was decided: it only warms up.
static bool is_past(const session *s, int k, const feed_event *ev) {
    return ev->history && !s->trader[k].kept;
}

static bool take_fine(session *s, int k, const feed_event *ev, err *e) {
    trader *t = &s->trader[k];
    if (!is_past(s, k, ev)) return session_bar(s, k, ev, e);
    limits_verdict v = session_judge_price(s, k, &ev->bar);
    if (v.answer >= LIMITS_NOTE && !session_tell(s, k, ev->bar.time, limits_rule_key(v.rule), v.answer, v.text, e))
        return false;
    session_push(s, k, &ev->bar);
    t->time = ev->bar.time;
    t->end = ev->bar.end;
    t->warmed++;
    t->before = LIMITS_FINE;
    return true;
}

bool session_release(session *s, int k, err *e) {
    trader *t = &s->trader[k];
    if (!t->waits) return true;
    feed_event ev = t->waiting;
    t->waits = false;
    return take_fine(s, k, &ev, e);
}

static bool take_bar(session *s, const feed_event *ev, err *e) {
    int k = trader_of(s, ev->symbol), f = frame_of(s, ev->span);
    if (k < 0 || f < 0) return true; // an instrument or a frame that is not traded
    trader *t = &s->trader[k];
    if (f) {
        if (!take_coarse(s, k, f, ev, e)) return false;
        return !t->waits || lacks_coarse(s, k, &t->waiting.bar) || session_release(s, k, e);
    }
    if (!session_release(s, k, e)) return false;
    if (ev->bar.time <= t->time) return true; // of the history, or taken by an earlier process
    if (!lacks_coarse(s, k, &ev->bar)) return take_fine(s, k, ev, e);
    t->waiting = *ev;
    t->waits = true;
    return true;
}

void session_rest(session *s) {
    journal_rest(s->journal);
}

bool session_flush(session *s, err *e) {
    for (int k = 0; k < s->traders; k++)
        if (!session_release(s, k, e)) return false;
    return true;
}

// Notes

// A line that cannot be read, and shows no symbol, may have been any instrument's.
static bool concerns_all(const feed_event *ev) {
    return ev->note == FEED_UNREADABLE && !ev->span && !*ev->symbol && !ev->history;
}

// Notes of bars of the past are no surprise, but where they are of such by nature. Bars that an earlier process took
// are expected to come again.
static bool is_expected(const trader *t, const feed_event *ev) {
    if (ev->note == FEED_REVISED || ev->note == FEED_OUT_OF_ORDER) return false;
    return ev->history || ev->bar.time <= (ev->note == FEED_DOUBLED ? t->taken : t->time);
}

static bool take_note(session *s, const feed_event *ev, err *e) {
    int k = trader_of(s, ev->symbol);
    limits_verdict v = LIMITS_FINE;
    bool of_one = k >= 0 && (ev->span || *ev->symbol), of_all = concerns_all(ev); // quotes have no span
    if (of_one && ev->span && is_expected(&s->trader[k], ev)) return true;
    for (int i = 0; i < s->traders; i++) {
        if (!of_all && !(of_one && i == k)) continue;
        v = limits_feed(&s->limits, &s->trader[i].limits, ev);
        limits_worse(&s->trader[i].before, &v);
    }
    if (v.answer == LIMITS_IGNORE) return true;
    limits_answer a = v.answer ? v.answer : LIMITS_NOTE;
    int64_t time = ev->span ? ev->bar.time : INT64_MIN;
    return session_tell(s, of_one ? k : -1, time, feed_note_key(ev->note), a, ev->text, e);
}

bool session_take(session *s, const feed_event *ev, err *e) {
    s->now = ev->at;
    if (ev->kind == FEED_BAR) return take_bar(s, ev, e);
    if (ev->kind == FEED_QUOTE) {
        int k = trader_of(s, ev->symbol);
        return k < 0 || session_quote(s, k, ev, e);
    }
    if (ev->note == FEED_END && !session_flush(s, e)) return false;
    return take_note(s, ev, e);
}

// Showing

int session_count(const session *s) {
    return s->traders;
}

// Rows of features come first, then those that an agent looks back on.
static int64_t needs_of(const session *s, int k) {
    int64_t rows = board_needs(s->board, k);
    return rows + (s->agent ? live_agent_needs(s->agent, k) - (rows > 0) : 0);
}

session_view session_at(const session *s, int k) {
    const trader *t = &s->trader[k];
    return (session_view){.symbol = t->symbol,
        .books = &t->books,
        .rule = &t->record.rule,
        .record = &t->record,
        .rules = &t->books.replay.rules,
        .time = t->time,
        .needs = needs_of(s, k),
        .warmed = t->warmed,
        .stopped = t->limits.stopped};
}

const live_model *session_model(const session *s) {
    return s->model;
}

const trained_agent *session_agent(const session *s) {
    return s->agent ? live_agent_trained(s->agent) : NULL;
}

const dataset *session_data(const session *s) {
    return board_data(s->board);
}

const data_notes *session_notes(const session *s) {
    return s->agent ? &live_agent_trained(s->agent)->notes : &s->model->trained.notes;
}

journal *session_journal(session *s) {
    return s->journal;
}

session_tally session_count_all(const session *s) {
    return s->tally;
}

bool session_write_trades(session *s, int k, const char *path, err *e) {
    const trader *t = &s->trader[k];
    int64_t count;
    books_trade *all = journal_trades(s->journal, t->symbol, &count, e);
    if (!all) return false;
    if (t->kept && books_ended(&t->books, &all[count])) count++;
    bool ok = books_write_trades(path, all, count, &t->books.replay.rules, e);
    free(all);
    return ok;
}
