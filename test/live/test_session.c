// A session under its limits: each rule is broken at a moment that the test chooses, and what follows is in the next
// decision, in the books and in the journal. Time comes with the events, so nothing here depends on a clock.
#include "live/session.h"

#include "cli/program.h"
#include "cpu/cpu.h"
#include "data/walk.h"
#include "live/kept.h"
#include "support.h"

#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { N = 400, SPAN = 300, WARM = 100, WORDS = 8 };

// A session, the bars that it is given, and what it has said.
typedef struct {
    session *s;
    bar *all;
    int at; // the next bar
    int intents;
    int64_t units, id; // of the newest intent
    bool repeat;
    char kind[32], answer[16];
} desk;

static bool on_intent(void *arg, const session_intent *i) {
    desk *d = arg;
    d->intents++;
    d->units = i->intent.order.units;
    d->id = i->intent.id;
    d->repeat = i->repeat;
    return true;
}

static void on_event(
    void *arg, const char *symbol, int64_t time, const char *kind, const char *answer, const char *text) {
    desk *d = arg;
    (void)symbol, (void)time, (void)text;
    snprintf(d->kind, sizeof d->kind, "%s", kind);
    snprintf(d->answer, sizeof d->answer, "%s", answer);
}

// A model that opens a position at every close where it holds none: no threshold holds it back.
static int setup(void **state) {
    if (support_enter(state)) return -1;
    program_use(TRADEWIND_BINARY);
    walk_put("train.csv", 1200, SPAN, 4);
    put_text("run.yaml", "data: {bars: {fast: train.csv}, vector: false, windows: {fast: 8},\n"
                         "  label: {kind: barrier, up: 1, down: 1, limit: 4}, features: {fast: [return, body]}}\n"
                         "model: {kind: lstm, hidden: {fast: 4}}\ntrain: {epochs: 1, batch_size: 128}\n"
                         "run: {dir: run}\nsignal: {threshold: 0.2}\n");
    return RUN("train", "run.yaml", "-q", "--device", "cpu");
}

// `words` are keys of the description, parted by spaces.
static void open_desk(desk *d, const char *words) {
    static const char *override[WORDS];
    static char text[400];
    static session_listener l = {on_intent, on_event, NULL};
    session_options o = {.state = "s.db"};
    err e = {0};
    int n = 0;
    snprintf(text, sizeof text, "%s", words);
    for (char *word = strtok(text, " "); word && n < WORDS; word = strtok(NULL, " ")) override[n++] = word;
    o.run = (trained_options){.run = "run", .overrides = override, .override_count = n, .version = "test"};
    o.run.devices = (task_devices){.host = &cpu_device, .options = {.threads = 1}};
    int at = d->at;
    bar *all = d->all ? d->all : walk_bars(N, SPAN, 5);
    *d = (desk){.all = all, .at = at};
    l.arg = d;
    support_ok((d->s = session_open(&o, &l, &e)) && session_begin(d->s, INT64_MAX, &e), &e);
}

static void close_desk(desk *d) {
    session_close(d->s);
    free(d->all);
}

static double now_of(const desk *d) {
    return (double)d->all[d->at].end;
}

static void put(desk *d, const feed_event *ev) {
    err e = {0};
    support_ok(session_take(d->s, ev, &e), &e);
}

static void push(desk *d) {
    feed_event ev = {.kind = FEED_BAR, .span = SPAN, .bar = d->all[d->at], .at = now_of(d)};
    put(d, &ev);
    d->at++;
}

static int64_t held(const desk *d) {
    return session_at(d->s, 0).books->replay.books.units;
}

// Goes on behind a bar before which a position was held that nothing changed; its number.
static int go_behind_rest(desk *d) {
    for (;;) {
        int intents = d->intents;
        int64_t units = held(d);
        push(d);
        assert_true(d->at < N - 40);
        if (d->at > WARM && units && held(d) == units && d->intents == intents) return d->at - 1;
    }
}

// Goes on behind a bar at whose close a position is ordered while none is held; its number.
static int go_behind_an_order(desk *d) {
    for (;;) {
        int intents = d->intents;
        push(d);
        assert_true(d->at < N - 40);
        if (d->at > WARM && !held(d) && d->intents > intents && d->units) return d->at - 1;
    }
}

static void note(desk *d, feed_note n) {
    bool of_bar = n != FEED_UNREADABLE, known = n == FEED_DOUBLED || n == FEED_REVISED || n == FEED_OUT_OF_ORDER;
    feed_event ev = {.kind = FEED_NOTE, .note = n, .at = now_of(d), .text = "as the test wants it"};
    if (of_bar) {
        ev.span = SPAN;
        ev.bar = d->all[known ? d->at - 1 : d->at];
    }
    put(d, &ev);
}

static void look(desk *d, double now, double steady) {
    err e = {0};
    support_ok(session_look(d->s, now, steady, &e), &e);
}

static void look_at_a_stale_feed(desk *d) {
    look(d, now_of(d) + 1000, 1000);
}

static void look_at_a_clock_that_jumps(desk *d) {
    look(d, now_of(d) - 100, 1000);
    look(d, now_of(d) - 50, 1001);
}

// Inputs of the bars before become no numbers, and so does the answer.
static void spoil_inputs(desk *d) {
    const table *t = &session_data(d->s)->stream[0].series;
    float *row = (float *)(uintptr_t)t->part[0].data;
    assert_true(t->parts == 1 && t->part[0].type == COLUMN_F32);
    for (int64_t i = 0; i < t->rows * t->width; i++) row[i] = NAN;
}

static const struct {
    const char *rule;
    feed_note note;
    void (*how)(desk *d); // in place of a note
} rules[] = {{"late", FEED_LATE, NULL}, {"doubled", FEED_DOUBLED, NULL}, {"revised", FEED_REVISED, NULL},
    {"missing", FEED_MISSING, NULL}, {"out_of_order", FEED_OUT_OF_ORDER, NULL}, {"unreadable", FEED_UNREADABLE, NULL},
    {"stale", FEED_NOTES, look_at_a_stale_feed}, {"clock", FEED_NOTES, look_at_a_clock_that_jumps},
    {"non_finite", FEED_NOTES, spoil_inputs}};
enum { RULES = sizeof rules / sizeof *rules };

static void break_rule(desk *d, int r) {
    if (rules[r].how)
        rules[r].how(d);
    else
        note(d, rules[r].note);
}

static void begin(desk *d, int r, const char *answer) {
    char words[160];
    unlink("s.db");
    snprintf(words, sizeof words, "live.answer.%s=%s live.max_day_loss=none live.max_loss=none live.outside_share=none",
        rules[r].rule, answer);
    *d = (desk){0};
    open_desk(d, words);
}

// Begins so that the next bar is the one that `go` finds where nothing is broken.
static void begin_at(desk *d, int r, const char *answer, int (*go)(desk *d)) {
    begin(d, r, "ignore");
    int at = go(d);
    close_desk(d);
    begin(d, r, answer);
    while (d->at < at) push(d);
}

static int64_t events(const char *rule, const char *answer) {
    char sql[120];
    snprintf(sql, sizeof sql, "SELECT count(*) FROM events WHERE kind = '%s' AND answer = '%s'", rule, answer);
    return kept_number("s.db", sql);
}

// What would be opened at a bar's close is not, and is at a later one.
static void skip_holds_back_one_bar(void **state) {
    (void)state;
    for (int r = 0; r < RULES; r++) {
        desk d;
        begin_at(&d, r, "skip", go_behind_an_order);
        int intents = d.intents;
        break_rule(&d, r);
        push(&d);
        if (d.intents != intents || held(&d)) fail_msg("%s: a position was opened", rules[r].rule);
        assert_string_equal(d.kind, rules[r].rule);
        assert_string_equal(d.answer, "skip");
        for (int i = 0; i < 12 && d.intents == intents; i++) push(&d);
        if (d.intents == intents) fail_msg("%s: nothing is opened any more", rules[r].rule);
        close_desk(&d);
    }
}

static void flat_closes(void **state) {
    (void)state;
    for (int r = 0; r < RULES; r++) {
        desk d;
        begin_at(&d, r, "flat", go_behind_rest);
        int intents = d.intents;
        break_rule(&d, r);
        // A feed that is silent and a clock that jumps do not wait for a bar.
        bool now = rules[r].how == look_at_a_stale_feed || rules[r].how == look_at_a_clock_that_jumps;
        if ((d.intents == intents + 1) != now) fail_msg("%s: %d intents", rules[r].rule, d.intents - intents);
        push(&d);
        if (d.intents == intents || d.units) fail_msg("%s: the position was not closed", rules[r].rule);
        if (!now) push(&d);
        assert_int_equal(kept_number("s.db", "SELECT units FROM books"), 0);
        assert_int_equal(session_stopped_by(d.s), LIMITS_RULES);
        close_desk(&d);
    }
}

// A stop ends the session, and the next one too until it is cleared.
// A position that another program was told to close behind the books is asked for again once, by a bar that no limit
// holds back.
static void a_position_that_was_closed_elsewhere_is_asked_for_again(void **state) {
    (void)state;
    desk d = {0};
    open_desk(&d, "signal.hold=60 signal.stop=none signal.target=none live.max_day_loss=none live.max_loss=none "
                  "live.outside_share=none live.answer.missing=skip");
    go_behind_rest(&d);
    int intents = d.intents;
    int64_t units = held(&d), end = d.all[d.at + 1].end, kept = kept_number("s.db", "SELECT count(*) FROM intents");
    session_ask_again(d.s, 0, 7);
    note(&d, FEED_MISSING);
    push(&d);
    assert_int_equal(d.intents, intents);
    push(&d);
    assert_int_equal(d.intents, intents + 1);
    assert_true(d.repeat && d.units == units && d.id == end);
    push(&d);
    assert_int_equal(d.intents, intents + 1);
    assert_true(held(&d) == units);
    assert_int_equal(kept_number("s.db", "SELECT count(*) FROM intents"), kept);
    session_ask_again(d.s, 0, end * 2); // an id from elsewhere
    push(&d);
    assert_true(d.intents == intents + 2 && d.id == end * 2 + 1);
    close_desk(&d);
}

static void stop_stands(void **state) {
    (void)state;
    for (int r = 0; r < RULES; r++) {
        desk d;
        err e = {0};
        begin_at(&d, r, "stop", go_behind_rest);
        break_rule(&d, r);
        push(&d);
        push(&d);
        if (!session_is_over(d.s)) fail_msg("%s: goes on", rules[r].rule);
        assert_string_equal(limits_rule_key(session_stopped_by(d.s)), rules[r].rule);
        assert_true(events(rules[r].rule, "stop") > 0);
        session_close(d.s);
        open_desk(&d, "live.max_loss=none");
        assert_true(session_is_over(d.s));
        int intents = d.intents;
        push(&d);
        assert_int_equal(d.intents, intents);
        support_ok(session_clear(d.s, now_of(&d), &e), &e);
        for (int i = 0; i < 8 && d.intents == intents; i++) push(&d);
        assert_true(!session_is_over(d.s) && d.intents > intents);
        close_desk(&d);
    }
}

// Bars that an earlier process took come again where the source is read anew: that is no note.
static void bars_of_before_a_restart_may_come_again(void **state) {
    (void)state;
    desk d = {0};
    open_desk(&d, "live.answer.doubled=stop");
    while (d.at < WARM) push(&d);
    session_close(d.s);
    open_desk(&d, "live.answer.doubled=stop");
    note(&d, FEED_DOUBLED);
    assert_false(session_is_stopped(d.s));
    push(&d);
    note(&d, FEED_DOUBLED);
    assert_true(session_is_stopped(d.s));
    close_desk(&d);
}

// Orders within a minute: more than one bar of that minute, as several instruments or a feed that catches up give them.
static void orders_of_a_minute_are_held_back(void **state) {
    (void)state;
    desk d = {0};
    open_desk(&d, "live.max_orders=1 live.max_loss=none live.max_day_loss=none live.outside_share=none");
    go_behind_an_order(&d);
    double minute = now_of(&d);
    int intents = d.intents;
    for (int i = 0; i < 30; i++) {
        feed_event ev = {.kind = FEED_BAR, .span = SPAN, .bar = d.all[d.at++], .at = minute};
        put(&d, &ev);
    }
    assert_true(events("orders", "skip") > 0);
    assert_int_equal(d.intents - intents, 1);
    close_desk(&d);
}

// A quote of behind a bar that is late fills nothing: the order fills at that bar's open, before its high and low. The
// last quote before its close does.
static void quotes_of_behind_a_late_bar_fill_nothing(void **state) {
    (void)state;
    for (int late = 0; late < 2; late++) {
        desk d = {0};
        unlink("s.db");
        open_desk(&d, "live.fills=quote live.max_loss=none live.max_day_loss=none live.outside_share=none");
        const bar *b = &d.all[go_behind_an_order(&d)];
        feed_event quote = {.kind = FEED_QUOTE, .bid = b->close - 1, .ask = b->close + 1, .at = now_of(&d)};
        quote.bar.time = quote.bar.end = b->end + SPAN - 1 + late;
        put(&d, &quote);
        assert_int_equal(kept_number("s.db", "SELECT count(*) FROM fills"), !late);
        assert_int_equal(held(&d), late ? 0 : d.units);
        push(&d);
        assert_int_equal(
            kept_number("s.db", "SELECT entry - (SELECT max(time) FROM bars) FROM books"), late ? 0 : SPAN - 1);
        close_desk(&d);
    }
}

// What is odd about a quote is its instrument's, not that of all; a line without a symbol may be of any.
static void notes_of_quotes_are_of_their_instrument(void **state) {
    (void)state;
    static const char broken[] =
        "SELECT count(*) FROM words WHERE key = 'limits:%s' AND text LIKE '%%\"unreadable\":%d%%'";
    char sql[160];
    err e = {0};
    bar *all = walk_bars(800, SPAN, 4);
    FILE *f = fopen("two.csv", "w");
    assert_non_null(f);
    fputs("symbol,time,open,high,low,close,tick_volume,spread\n", f);
    for (int i = 0; i < 1600; i++) {
        const bar *b = &all[i % 800];
        fprintf(f, "%s,%lld,%.9g,%.9g,%.9g,%.9g,1,1\n", i < 800 ? "AAA" : "BBB", (long long)b->time, b->open, b->high,
            b->low, b->close);
    }
    fclose(f);
    free(all);
    assert_int_equal(RUN("import", "two.csv", "--features", "fast=return", "--no-vector", "-o", "two.npz", "-q"), 0);
    put_text("two.yaml", "data: {set: two.npz}\nmodel: {kind: lstm, hidden: {fast: 4}}\n"
                         "train: {epochs: 1, batch_size: 128}\nrun: {dir: run}\nsignal: {threshold: 0.2}\n");
    assert_int_equal(RUN("train", "two.yaml", "-q", "--device", "cpu"), 0);
    desk d = {0};
    open_desk(&d, "live.answer.unreadable=skip");
    for (int i = 0; i < 2; i++) {
        feed_event ev = {.kind = FEED_NOTE, .note = FEED_UNREADABLE, .at = now_of(&d), .text = "as the test wants it"};
        if (!i) strcpy(ev.symbol, "BBB");
        support_ok(session_take(d.s, &ev, &e), &e);
        for (int k = 0; k < 2; k++) { // how often each instrument's rule was broken
            snprintf(sql, sizeof sql, broken, k ? "BBB" : "AAA", i + k);
            assert_int_equal(kept_number("s.db", sql), i + k > 0);
        }
        assert_int_equal(kept_number("s.db", "SELECT count(*) FROM events WHERE symbol = 'BBB'"), 1);
    }
    close_desk(&d);
}

static atomic_bool begins;

// Holds a lock for longer than a session waits at its start, from the moment that one begins to write.
static void *hold_lock(void *arg) {
    sqlite3 *other = arg;
    while (!begins) usleep(1000);
    usleep(3500000);
    sqlite3_exec(other, "ROLLBACK", NULL, NULL, NULL);
    return NULL;
}

// A program that has the state locked for seconds ends no session; it is told.
static void a_lock_of_seconds_is_waited_for(void **state) {
    (void)state;
    desk d = {0};
    sqlite3 *other;
    pthread_t holder;
    open_desk(&d, "live.max_loss=none");
    push(&d);
    assert_int_equal(events("locked", "note"), 0);
    assert_int_equal(sqlite3_open("s.db", &other), SQLITE_OK);
    assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(pthread_create(&holder, NULL, hold_lock, other), 0);
    begins = true;
    push(&d);
    assert_int_equal(pthread_join(holder, NULL), 0);
    sqlite3_close(other);
    assert_int_equal(events("locked", "note"), 1);
    push(&d);
    assert_int_equal(events("locked", "note"), 1);
    close_desk(&d);
}

// Makes prices of a stretch of bars those of another instrument.
static void move_prices(desk *d, int from, int count, double by) {
    for (bar *b = d->all + from; b < d->all + from + count; b++) {
        b->open *= by;
        b->high *= by;
        b->low *= by;
        b->close *= by;
    }
}

// Prices of another instrument are told once, close what is held, and open nothing, also behind a restart.
static void prices_of_another_instrument_close(void **state) {
    (void)state;
    desk d = {0};
    open_desk(&d, "live.max_day_loss=none live.max_loss=none live.outside_share=none");
    go_behind_rest(&d);
    int at = d.at;
    move_prices(&d, at, 20, 0.1);
    push(&d);
    assert_int_equal(events("instrument", "flat"), 1);
    int intents = d.intents;
    for (int i = 0; i < 9; i++) push(&d);
    assert_true(!held(&d) && d.intents == intents);
    bar *kept = d.all;
    session_close(d.s);
    d.all = kept;
    open_desk(&d, "live.max_day_loss=none live.max_loss=none live.outside_share=none");
    for (int i = 0; i < 10; i++) push(&d);
    assert_true(d.intents == 0 && !held(&d) && events("instrument", "flat") == 1);
    for (int i = 0; i < 12 && !d.intents; i++) push(&d);
    assert_true(d.intents > 0);
    close_desk(&d);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, support_leave)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(skip_holds_back_one_bar),
        TEST(flat_closes),
        TEST(a_position_that_was_closed_elsewhere_is_asked_for_again),
        TEST(stop_stands),
        TEST(bars_of_before_a_restart_may_come_again),
        TEST(orders_of_a_minute_are_held_back),
        TEST(quotes_of_behind_a_late_bar_fill_nothing),
        TEST(notes_of_quotes_are_of_their_instrument),
        TEST(a_lock_of_seconds_is_waited_for),
        TEST(prices_of_another_instrument_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
