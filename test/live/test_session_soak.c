// Runs in: test-long
// A million bars through a session, as fast as it takes them: features, answers, decisions, books, limits and the state
// of every bar. Neither memory nor open files grow.
#include "live/session.h"

#include "cli/program.h"
#include "cpu/cpu.h"
#include "data/walk.h"
#include "live/gauge.h"
#include "live/kept.h"
#include "support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { SPAN = 300, PIECE = 1000 };

static int64_t bars_of_soak(void) {
    return support_sanitized() ? 20000 : 1000000;
}

static int setup(void **state) {
    if (support_enter(state)) return -1;
    program_use(TRADEWIND_BINARY);
    walk_put("train.csv", 1200, SPAN, 4);
    put_text("run.yaml",
        "data: {bars: {fast: train.csv}, frames: [1h], vector: false, windows: {fast: 4, slow: 2},\n"
        "  label: {kind: barrier, up: 1, down: 1, limit: 4}, features: {fast: [return], slow: [return]}}\n"
        "model: {kind: mlp, widths: '4'}\ntrain: {epochs: 1, batch_size: 128}\n"
        "run: {dir: run}\nsignal: {threshold: 0.2}\n");
    return RUN("train", "run.yaml", "-q", "--device", "cpu");
}

static session *begin(void) {
    // The cash outlives a million bars of a model that knows nothing.
    static const char *const words[] = {"live.max_loss=none", "live.max_day_loss=none", "signal.size=1",
        "signal.sizing=fixed", "account.cash=1000000000"};
    static const session_listener silent = {0};
    session_options o = {.state = "s.db"};
    err e = {0};
    o.run = (trained_options){.run = "run", .overrides = words, .override_count = 5, .version = "test"};
    o.run.devices = (task_devices){.host = &cpu_device, .options = {.threads = 1}};
    session *s = session_open(&o, &silent, &e);
    support_ok(s && session_begin(s, INT64_MAX, &e), &e);
    return s;
}

// As `live` does: a bar is taken, the journal is tidied, clocks are looked at now and then.
static void take(session *s, const bar *b, int64_t n) {
    feed_event ev = {.kind = FEED_BAR, .span = SPAN, .bar = *b, .at = (double)b->end};
    err e = {0};
    support_ok(session_take(s, &ev, &e), &e);
    session_rest(s);
    if (n % PIECE == 0) support_ok(session_look(s, (double)b->end, (double)b->end, &e), &e);
}

static void a_million_bars_leave_no_trace(void **state) {
    (void)state;
    int64_t all = bars_of_soak();
    gauge g = {.name = "session"};
    bar *bars = walk_bars(all, SPAN, 5);
    session *s = begin();
    for (int64_t n = 0; n < all; n++) {
        take(s, &bars[n], n);
        gauge_check(&g, n + 1, all);
    }
    session_tally t = session_count_all(s);
    session_close(s);
    free(bars);
    print_message("%lld decided, %lld intents\n", (long long)t.decided, (long long)t.intents);
    assert_int_equal(kept_number("s.db", "SELECT count(*) FROM decisions"), all);
    assert_true(t.decided > all * 9 / 10 && t.intents > all / 100);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_million_bars_leave_no_trace, setup, support_leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
