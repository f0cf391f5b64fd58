// tradewind live from outside: a replay gives the answers and trades of a backtest of the same bars, wherever the
// history ends and however bars come; a session goes on where it ended; what is refused.
#include "cli/program.h"
#include "data/walk.h"
#include "live/kept.h"
#include "support.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <cmocka.h>

enum { N = 2000, SPAN = 300 };

static const char barrier[] = "label: {kind: barrier, up: 1.5, down: 1, limit: 6}",
                  forecast[] = "label: {kind: forecast, horizon: 4}";

static void put_bars(const char *path, const bar *all, int64_t from, int64_t count) {
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs("time,open,high,low,close,tick_volume,spread\n", f);
    for (const bar *b = all + from; b < all + from + count; b++)
        fprintf(f, "%lld,%.9g,%.9g,%.9g,%.9g,%.0f,%.0f\n", (long long)b->time, b->open, b->high, b->low, b->close,
            b->volume, b->spread);
    fclose(f);
}

static void train(const char *dir, const char *model, const char *label, const char *more) {
    char text[640];
    snprintf(text, sizeof text,
        "data: {bars: {fast: train.csv}, frames: [1h], vector: %s, windows: {fast: 12, slow: 4}, %s,\n"
        "  split: {train: 0.5, validation: 0.2}, features: {fast: [return, body, rsi_14], slow: [return, "
        "natr_14]}}\nmodel: {%s}\n"
        "train: {epochs: 1, batch_size: 128%s}\nrun: {dir: %s}\n",
        strstr(model, "lstm") ? "true" : "false", label, model, more, dir);
    put_text("run.yaml", text);
    assert_int_equal(RUN("train", "run.yaml", "-q", "--device", "cpu"), 0);
}

static int setup(void **state) {
    if (support_enter(state)) return -1;
    walk_put("train.csv", N, SPAN, 4);
    walk_put("b.csv", N, SPAN, 5);
    return 0;
}

// Answers of `predict` in the form of the journal's: a line a bar, its close and its numbers.
static char *predicted(const char *run, int width) {
    char data[] = "data.bars.fast=b.csv", *text, *to = NULL, *save = NULL;
    size_t bytes = 0;
    assert_int_equal(RUN("predict", run, data, "--latest", "100000", "-o", "p.csv", "-q", "--device", "cpu"), 0);
    text = slurp("p.csv");
    FILE *f = open_memstream(&to, &bytes);
    char *header = strtok_r(text, "\n", &save);
    int before = 0, place = 0;
    for (char *name = strtok(header, ","); name; name = strtok(NULL, ","), place++)
        if (strncmp(name, "p_", 2) == 0 || strncmp(name, "forecast", 8) == 0 || strncmp(name, "prob", 4) == 0)
            before = before ? before : place;
    for (char *line; (line = strtok_r(NULL, "\n", &save));) {
        char *cell = line;
        for (int i = 0; i < before; i++) cell = strchr(cell, ',') + 1;
        fputc('[', f);
        for (int k = 0; k < width; k++) {
            fprintf(f, "%s%.*s", k ? "," : "", (int)strcspn(cell, ",\n"), cell);
            cell += strcspn(cell, ",");
            cell += *cell == ',';
        }
        fputs("]\n", f);
    }
    fclose(f);
    free(text);
    return to;
}

static const char answers[] = "SELECT answer FROM decisions WHERE answer IS NOT NULL ORDER BY time";

#define REPLAY(run, ...) RUN("live", run, "--feed", "replay:b.csv", "-q", __VA_ARGS__)

static void check_replay(const char *run, int width) {
    char state[64];
    snprintf(state, sizeof state, "%s.db", run);
    assert_int_equal(RUN("backtest", run, "--bars", "b.csv", "--trades", "bt.csv", "-q", "account.spread=0.0001"), 0);
    assert_int_equal(
        REPLAY(run, "--history", "none", "--state", state, "--trades", "lv.csv", "account.spread=0.0001"), 0);
    same_bytes("bt.csv", "lv.csv");
    char *is = kept_rows(state, answers), *want = predicted(run, width);
    if (strcmp(is, want) != 0) fail_msg("%s: answers differ:\n%.200s\n---\n%.200s", run, is, want);
    assert_true(strlen(want) > 100 && kept_number(state, "SELECT count(*) FROM trades") > 1);
    free(is);
    free(want);
}

static void a_replay_is_a_backtest(void **state) {
    (void)state;
    train("lstm", "kind: lstm, hidden: {fast: 8, slow: 4}", barrier, "");
    check_replay("lstm", 3);
    train("mlp", "kind: mlp, widths: '8'", barrier, "");
    check_replay("mlp", 3);
    train("transformer", "kind: transformer, width: 8, heads: 2, layers: 1", barrier, "");
    check_replay("transformer", 3);
    train("nbeats", "kind: nbeats", forecast, "");
    check_replay("nbeats", 4);
}

static void so_is_one_of_an_ensemble(void **state) {
    (void)state;
    train("three", "kind: mlp, widths: '8'", barrier, ", ensemble: 3");
    check_replay("three", 3);
    train("threef", "kind: mlp, widths: '8'", forecast, ", ensemble: 3");
    check_replay("threef", 4);
}

// The history is the first bars, the feed all others: what is decided is the same from there on.
static void the_history_may_end_anywhere(void **state) {
    (void)state;
    static const int cuts[] = {2, 57, 800, 1333};
    bar *all = walk_bars(N, SPAN, 5);
    train("lstm", "kind: lstm, hidden: {fast: 8, slow: 4}", barrier, "");
    assert_int_equal(REPLAY("lstm", "--history", "none", "--state", "whole.db"), 0);
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        char sql[200], name[32];
        snprintf(name, sizeof name, "cut%zu.db", i);
        put_bars("first.csv", all, 0, cuts[i]);
        put_bars("rest.csv", all, cuts[i], N - cuts[i]);
        assert_int_equal(
            RUN("live", "lstm", "--feed", "replay:rest.csv", "-q", "--history", "first.csv", "--state", name), 0);
        snprintf(sql, sizeof sql,
            "SELECT time, inputs, answer, score, volatility, side FROM decisions WHERE answer IS NOT NULL AND time >= "
            "%lld ORDER BY time",
            (long long)all[cuts[i]].time);
        char *is = kept_rows(name, sql), *want = kept_rows("whole.db", sql);
        if (strcmp(is, want) != 0) fail_msg("cut at %d:\n%.200s\n---\n%.200s", cuts[i], is, want);
        assert_true(strlen(want) > 1000);
        free(is);
        free(want);
    }
    free(all);
}

// The run's own data are the history up to the feed's first bar.
static void the_runs_data_are_the_history(void **state) {
    (void)state;
    bar *all = walk_bars(N, SPAN, 4);
    train("mlp", "kind: mlp, widths: '8'", barrier, "");
    put_bars("rest.csv", all, 1500, N - 1500);
    assert_int_equal(RUN("live", "mlp", "--feed", "replay:train.csv", "-q", "--state", "whole.db"), 0);
    assert_int_equal(RUN("live", "mlp", "--feed", "replay:rest.csv", "--state", "rest.db"), 0);
    matches("out", "\nposition +warmed up with 1,500 bars to ");
    assert_int_equal(kept_number("rest.db", "SELECT count(*) FROM decisions"), N - 1500);
    assert_int_equal(kept_number("rest.db", "SELECT count(*) FROM decisions WHERE answer IS NULL"), 0);
    char sql[200];
    snprintf(sql, sizeof sql, "SELECT time, inputs, answer FROM decisions WHERE time >= %lld ORDER BY time",
        (long long)all[1500].time);
    char *is = kept_rows("rest.db", sql), *want = kept_rows("whole.db", sql);
    assert_string_equal(is, want);
    free(is);
    free(want);
    free(all);
}

// A session that ends with its file and goes on with a longer one has what one session over all has.
static void a_session_goes_on(void **state) {
    (void)state;
    bar *all = walk_bars(N, SPAN, 5);
    train("lstm", "kind: lstm, hidden: {fast: 8, slow: 4}", barrier, "");
    assert_int_equal(REPLAY("lstm", "--history", "none", "--state", "whole.db"), 0);
    static const int ends[] = {1, 300, 1200, 1201, 1900, N};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        put_bars("part.csv", all, 0, ends[i] < 2 ? 2 : ends[i]);
        assert_int_equal(
            RUN("live", "lstm", "--feed", "replay:part.csv", "-q", "--history", "none", "--state", "parts.db"), 0);
    }
    kept_same("whole.db", "parts.db");
    // The same file again changes nothing.
    assert_int_equal(REPLAY("lstm", "--history", "none", "--state", "parts.db"), 0);
    kept_same("whole.db", "parts.db");
    free(all);
}

static void lines_are_bars_too(void **state) {
    (void)state;
    train("mlp", "kind: mlp, widths: '8'", barrier, "");
    assert_int_equal(REPLAY("mlp", "--history", "none", "--state", "whole.db"), 0);
    char line[600];
    snprintf(line, sizeof line,
        "(head -n 700 b.csv; sleep 0.2; tail -n +701 b.csv | head -n 900; sleep 0.1; tail -n +1601 b.csv) | %s live "
        "mlp "
        "--feed - -q --history none --state lines.db live.late=none live.stale=none live.max_loss=none "
        "live.max_day_loss=none live.max_exposure=none live.max_orders=none live.outside_share=none",
        TRADEWIND_BINARY);
    assert_int_equal(system(line), 0);
    kept_same("whole.db", "lines.db");
}

// Bars that a growing file holds warm up: what is needed before the first answer says so.
static void bars_of_a_growing_file_warm_up(void **state) {
    (void)state;
    train("mlp", "kind: mlp, widths: '8'", barrier, "");
    pid_t child = program_start(
        "out", (const char *const[]){"live", "mlp", "--feed", "b.csv", "--history", "none", "--state", "s.db", NULL});
    wait_for("out", "signal ");
    kill(child, SIGTERM);
    assert_int_equal(program_finish(child), 0);
    matches("out",
        "\nposition +begins with the feed; about [0-9]+ bars are needed before the first answer, those that the "
        "feed holds included\n");
    assert_int_equal(RUN("live", "mlp", "--feed", "replay:b.csv", "--history", "none"), 0);
    matches("out", "\nposition +begins with the feed; about [0-9]+ bars are needed before the first answer\n");
}

// Bars of the past all come late: a few lines, what to do, and their number; the state has each.
static void late_bars_are_told_a_few_times(void **state) {
    (void)state;
    int lines = 0;
    char line[300];
    train("mlp", "kind: mlp, widths: '8'", barrier, "");
    snprintf(line, sizeof line, "head -n 301 b.csv | %s live mlp --feed - --history none --state s.db > out 2> err",
        TRADEWIND_BINARY);
    assert_int_equal(system(line), 0);
    char *text = slurp("out");
    for (const char *to = text; (to = strstr(to, "\nlate ")); to++) lines++;
    free(text);
    assert_int_equal(lines, 5);
    matches("out", "\nlate +further [^\n]*--feed replay:FILE[^\n]* live\\.late=none live\\.stale=none\n");
    matches("out", "\nlate +300 bars in a row; ");
    assert_int_equal(kept_number("s.db", "SELECT count(*) FROM events WHERE kind = 'late'"), 300);
}

static void intents_are_lines(void **state) {
    (void)state;
    train("mlp", "kind: mlp, widths: '8'", barrier, "");
    assert_int_equal(REPLAY("mlp", "--history", "none", "--state", "s.db", "--exec", "intents.jsonl"), 0);
    char *text = slurp("intents.jsonl"), *save = NULL;
    int64_t lines = 0, newest = 0;
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save), lines++) {
        json_t *all = json_loads(line, 0, NULL);
        assert_non_null(all);
        int64_t id = json_integer_value(json_object_get(all, "id"));
        assert_true(id > newest);
        newest = id;
        json_decref(all);
    }
    assert_int_equal(kept_number("s.db", "SELECT count(*) FROM intents WHERE id <> time"), 0);
    assert_int_equal(lines, kept_number("s.db", "SELECT count(*) FROM intents"));
    assert_int_equal(lines, kept_number("s.db", "SELECT count(*) FROM intents WHERE sent"));
    assert_true(lines > 20);
    free(text);
}

static void mistakes_are_told(void **state) {
    (void)state;
    train("mlp", "kind: mlp, widths: '8'", barrier, "");
    assert_int_equal(RUN("live", "mlp"), 2);
    matches("err", "no feed given");
    assert_int_equal(RUN("live", "--feed", "replay:b.csv"), 2);
    assert_int_equal(REPLAY("mlp", "--symbol", "X"), 2);
    matches("err", "no such instrument, but: one without a name");
    assert_int_equal(REPLAY("mlp", "--state", "b.csv"), 2);
    matches("err", "b\\.csv: is damaged, or no state of a session");
    assert_int_equal(RUN("live", "--status", "nothing.db"), 2);
    complains(REPLAY("mlp", "train.epochs=2"), "train\\.epochs=2: has no effect on a session, .*");
    complains(REPLAY("mlp", "num_epochs=9"), "num_epochs: has no effect on a session: read as train\\.epochs; .*");
    complains(REPLAY("mlp", "--model-dir", "nowhere"), ".*--model-dir nowhere: there is no such directory; .*");
    complains(REPLAY("mlp", "--model-dir", "b.csv"), ".*--model-dir b\\.csv: there is no such directory; .*");
}

static void it_is_stopped_and_cleared(void **state) {
    (void)state;
    train("mlp", "kind: mlp, widths: '8'", barrier, "");
    assert_int_equal(REPLAY("mlp", "--history", "none", "--state", "s.db"), 0);
    assert_int_equal(RUN("live", "--status", "s.db", "--json"), 0);
    json_t *all = last_line();
    assert_int_equal(json_array_size(json_object_get(all, "books")), 1);
    assert_true(json_is_false(json_object_get(all, "running")));
    json_decref(all);
    assert_int_equal(RUN("live", "--stop", "s.db"), 0);
    bar *more = walk_bars(N + 50, SPAN, 5);
    put_bars("b.csv", more, 0, N + 50);
    free(more);
    assert_int_equal(RUN("live", "mlp", "--feed", "replay:b.csv", "--history", "none", "--state", "s.db"), 0);
    matches("out", "\nstate +s\\.db; the same command with --clear goes on from here\nstopped +by the rule kill; `");
    assert_int_equal(kept_number("s.db", "SELECT units FROM books"), 0);
    assert_int_equal(REPLAY("mlp", "--history", "none", "--state", "s.db"), 2);
    matches("err", "was stopped");
    assert_int_equal(REPLAY("mlp", "--history", "none", "--state", "s.db", "--clear"), 0);
    assert_int_equal(kept_number("s.db", "SELECT count(*) FROM decisions"), N + 50);
    walk_put("b.csv", N, SPAN, 5);
}

// `watch` shows of a session what `live --status` does, without a lock, while one runs and behind it.
static void a_watcher_sees_it(void **state) {
    (void)state;
    static const char *const parts[] = {"books", "intents", "trades", "events"};
    train("mlp", "kind: mlp, widths: '8'", barrier, "");
    assert_int_equal(RUN("watch", "mlp", "--json"), 0);
    matches("out", "\"live\":null");
    assert_int_equal(REPLAY("mlp", "--history", "none", "--state", "mlp/live.db"), 0);
    pid_t child =
        program_start("session", (const char *const[]){"live", "mlp", "--feed", "b.csv", "--history", "none", NULL});
    wait_for("session", "signal ");
    assert_int_equal(RUN("watch", "mlp", "--json"), 0);
    json_t *seen = last_line(), *live = json_object_get(seen, "live");
    assert_int_equal(RUN("live", "--status", "mlp", "--json"), 0);
    json_t *told = last_line();
    assert_true(json_is_true(json_object_get(live, "running")));
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        assert_true(json_array_size(json_object_get(told, parts[i])) > 0);
        assert_true(json_equal(json_object_get(live, parts[i]), json_object_get(told, parts[i])));
    }
    json_decref(seen);
    json_decref(told);
    kill(child, SIGTERM);
    assert_int_equal(program_finish(child), 0);
    setenv("LINES", "40", 1);
    setenv("COLUMNS", "100", 1);
    assert_int_equal(RUN("watch", "mlp", "--once"), 0);
    matches("out", "\n live +no session runs, newest bar 20[0-9: -]+ UTC\n position +(flat|(long|short) [0-9.]+ at )");
    matches("out", "\n event +20[0-9: -]+ end, note: the feed has ended\n");
    matches("out", "\n intent +20[0-9: -]+ (flat|long|short).*, (filled|open|refused|replaced)\n");
    put_text("mlp/live.db", "this is no state of a session, and long enough for a head of one: it has a hundred bytes, "
                            "and then some more of them");
    assert_int_equal(RUN("watch", "mlp", "--once"), 0);
    matches("out", "\n live +mlp/live\\.db: is not the database");
    unsetenv("LINES");
    unsetenv("COLUMNS");
}

// A run's directory stands for its state, and what is no state is refused with nothing written.
static void a_kill_switch_knows_a_state(void **state) {
    (void)state;
    train("mlp", "kind: mlp, widths: '8'", barrier, "");
    complains(RUN("live", "--stop", "mlp"), ".*mlp: no session has kept a state in this directory; .*--state.*");
    assert_int_equal(REPLAY("mlp", "--history", "none", "--state", "mlp/live.db"), 0);
    static const char *const others[] = {"mlp/config.yaml", "b.csv", "mlp/run.db", "nothing.db", "empty.db", "pipe"};
    put_text("empty.db", "");
    assert_int_equal(mkfifo("pipe", 0666), 0);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        char path[64];
        complains(RUN("live", "--stop", others[i]), ".*");
        snprintf(path, sizeof path, "%s.stop", others[i]);
        assert_int_not_equal(access(path, F_OK), 0);
    }
    assert_int_equal(RUN("live", "--status", "mlp"), 0);
    matches("out", "^state +mlp/live\\.db, no session runs\n");
    assert_int_equal(RUN("live", "--drift", "mlp"), 0);
    matches("out", "^state +mlp/live\\.db\ndrift ");
    matches("out", "\n +answers UP +[0-9.]+ +-\n.*`tradewind evaluate [^ ]*mlp --part validation` makes them\n$");
    assert_int_equal(RUN("live", "--stop", "mlp"), 0);
    matches("out", "^asked +mlp/live\\.db: no session runs; ");
    assert_int_equal(access("mlp/live.db.stop", F_OK), 0);
}

// Two instruments in one process, each with its own account: those of two backtests.
static void several_are_traded_at_once(void **state) {
    (void)state;
    FILE *f = fopen("two.csv", "w");
    assert_non_null(f);
    fputs("symbol,time,open,high,low,close,tick_volume,spread\n", f);
    for (int k = 0; k < 2; k++) {
        bar *all = walk_bars(N, SPAN, 8 + (uint64_t)k);
        for (const bar *b = all; b < all + N; b++)
            fprintf(f, "%s,%lld,%.9g,%.9g,%.9g,%.9g,%.0f,%.0f\n", k ? "BBB" : "AAA", (long long)b->time, b->open,
                b->high, b->low, b->close, b->volume, b->spread);
        free(all);
    }
    fclose(f);
    put_text("run.yaml", "data: {set: two.npz, windows: {fast: 12, slow: 4}}\nmodel: {kind: mlp, widths: '8', symbol: "
                         "true}\ntrain: {epochs: 1, batch_size: 128}\nrun: {dir: two}\nsignal: {threshold: 0.34}\n");
    assert_int_equal(RUN("import", "two.csv", "--frames", "1h", "--features", "slow=return", "--types", "compact", "-o",
                         "two.npz", "-q"),
        0);
    assert_int_equal(RUN("train", "run.yaml", "-q", "--device", "cpu"), 0);
    assert_int_equal(RUN("live", "two", "--feed", "replay:two.csv", "-q", "--history", "none", "--state", "two.db"), 0);
    for (int k = 0; k < 2; k++) {
        const char *symbol = k ? "BBB" : "AAA";
        char sql[120];
        assert_int_equal(RUN("predict", "two", "--latest", "100000", "-o", "p.csv", "-q", "--device", "cpu"), 0);
        snprintf(sql, sizeof sql, "SELECT count(*) FROM decisions WHERE symbol = '%s' AND answer IS NOT NULL", symbol);
        assert_true(kept_number("two.db", sql) > 500);
        assert_int_equal(RUN("live", "two", "--feed", "replay:two.csv", "-q", "--history", "none", "--symbol", symbol,
                             "--state", k ? "b.db" : "a.db", "--trades", "lv.csv"),
            0);
        assert_int_equal(
            RUN("backtest", "two", "--part", "all", "--symbol", symbol, "--trades", "bt.csv", "-q", "--device", "cpu"),
            0);
        same_bytes("bt.csv", "lv.csv");
        snprintf(sql, sizeof sql, "SELECT entry, exit, result FROM trades WHERE symbol = '%s' ORDER BY id", symbol);
        char *both = kept_rows("two.db", sql), *one = kept_rows(k ? "b.db" : "a.db", sql);
        assert_string_equal(both, one);
        free(both);
        free(one);
    }
}

static void put_named(const char *path, const char *symbol) {
    bar *all = walk_bars(N, SPAN, 8);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs("symbol,time,open,high,low,close,tick_volume,spread\n", f);
    for (const bar *b = all; b < all + N; b++)
        fprintf(f, "%s,%lld,%.9g,%.9g,%.9g,%.9g,%.0f,%.0f\n", symbol, (long long)b->time, b->open, b->high, b->low,
            b->close, b->volume, b->spread);
    fclose(f);
    free(all);
}

// A broker's own spelling of a name is told, by a file that is read whole and by one that is waited for.
static void bars_of_another_name_are_told(void **state) {
    (void)state;
    put_named("gold.csv", "GOLD");
    put_named("other.csv", "GOLD.m");
    put_text("run.yaml", "data: {set: gold.npz, windows: {fast: 12}}\nmodel: {kind: mlp, widths: '8'}\n"
                         "train: {epochs: 1, batch_size: 128}\nrun: {dir: gold}\nsignal: {threshold: 0.34}\n");
    assert_int_equal(RUN("import", "gold.csv", "-o", "gold.npz", "-q"), 0);
    assert_int_equal(RUN("train", "run.yaml", "-q", "--device", "cpu"), 0);
    complains(RUN("live", "gold", "--feed", "replay:gold.csv", "-q", "data.label.up=3"),
        "data\\.label\\.up: has no effect on a session: .*; leave it out");
    complains(RUN("live", "gold", "--feed", "replay:other.csv", "-q"),
        ".*none of the bars are wanted: they are of GOLD\\.m, and those of GOLD are wanted; .*");
    char line[300];
    snprintf(line, sizeof line, "%s live gold --feed - --state g.db < other.csv > out 2> err", TRADEWIND_BINARY);
    assert_int_equal(WEXITSTATUS(system(line)), 0);
    assert_int_equal(kept_number("g.db", "SELECT count(*) FROM events WHERE kind = 'unwanted'"), 1);
    matches("out", "bars of GOLD\\.m are passed over: GOLD is wanted, and none has come yet; names must be equal");
    snprintf(line, sizeof line, "cat gold.csv other.csv | %s live gold --feed - --state h.db > out 2> err",
        TRADEWIND_BINARY);
    assert_int_equal(WEXITSTATUS(system(line)), 0);
    assert_int_equal(kept_number("h.db", "SELECT count(*) FROM events WHERE kind = 'unwanted'"), 0);
    assert_true(kept_number("h.db", "SELECT count(*) FROM decisions") > 0);
}

static int run_lines(const char *command) {
    char line[600];
    snprintf(line, sizeof line, "%s %s > out 2> err", TRADEWIND_BINARY, command);
    return WEXITSTATUS(system(line));
}

// Bars that no name tells apart from those of the training: a replay warns and is a backtest, a feed is not traded on
// unless its rule says so.
static void prices_of_another_instrument_are_told(void **state) {
    (void)state;
    static const char told[] =
        "SELECT count(*) FROM events WHERE kind = 'instrument' AND text LIKE 'the price is %, those "
        "of the training are from %: unless the price went so far, these are bars of another%'";
    bar *all = walk_bars(N, SPAN, 5);
    for (bar *b = all; b < all + N; b++) {
        b->open *= 1e-3;
        b->high *= 1e-3;
        b->low *= 1e-3;
        b->close *= 1e-3;
    }
    put_bars("other.csv", all, 0, N);
    free(all);
    train("mlp", "kind: mlp, widths: '8'", barrier, "");
    assert_int_equal(
        RUN("backtest", "mlp", "--bars", "other.csv", "--trades", "bt.csv", "-q", "signal.threshold=0.2"), 0);
    assert_int_equal(run_lines("live mlp --feed replay:other.csv --history none --trades lv.csv --state r.db "
                               "signal.threshold=0.2"),
        0);
    same_bytes("bt.csv", "lv.csv");
    matches("err", "instrument [^\n]*note: the price is ");
    assert_int_equal(kept_number("r.db", told), 1);
    static const char feed[] =
        "live mlp --feed - --history none live.late=none live.stale=none live.outside_share=none "
        "signal.threshold=0.2 --state %s.db live.answer.instrument=%s < other.csv";
    for (int k = 0; k < 2; k++) {
        char line[300], state_of[8];
        const char *answer = k ? "note" : "flat";
        snprintf(line, sizeof line, feed, answer, answer);
        snprintf(state_of, sizeof state_of, "%s.db", answer);
        assert_int_equal(run_lines(line), 0);
        matches("out", "\ninstrument [^\n]*: the price is ");
        assert_int_equal(kept_number(state_of, told), 1);
        assert_int_equal(kept_number(state_of, "SELECT count(*) > 0 FROM intents"), k);
    }
}

// A newer run that has passed takes over; one that has not does not.
static void a_newer_model_takes_over(void **state) {
    (void)state;
    train("models/a", "kind: mlp, widths: '8'", barrier, "");
    train("models/b", "kind: mlp, widths: '8'", barrier, ", seed: 7");
    train("models/c", "kind: mlp, widths: '8'", forecast, ""); // the newest, and it does not fit
    for (int k = 0; k < 3; k++) {
        struct timeval made[2] = {{1700000000 + k, 0}, {1700000000 + k, 0}};
        const char *const weights[] = {
            "models/a/best.safetensors", "models/b/best.safetensors", "models/c/best.safetensors"};
        assert_int_equal(utimes(weights[k], made), 0);
    }
    assert_int_equal(REPLAY("models/a", "--history", "none", "--state", "a.db"), 0);
    assert_int_equal(REPLAY("models/b", "--history", "none", "--state", "b.db", "signal.threshold=0.2"), 0);
    assert_int_equal(REPLAY("models/a", "--history", "none", "--state", "same.db", "--model-dir", "models"), 0);
    kept_same("a.db", "same.db");
    static const char passed[] = "{\"version\": 1, \"parts\": {\"test\": {\"scores\": [{\"verdict\": \"better\"}]}}}";
    assert_int_equal(RUN("backtest", "models/b", "-q", "signal.threshold=0.2"), 0);
    assert_int_equal(RUN("backtest", "models/c", "-q", "signal.threshold=0.0001"), 0);
    put_text("models/b/evaluation.json", passed);
    put_text("models/c/evaluation.json", passed);
    assert_int_equal(REPLAY("models/a", "--history", "none", "--state", "new.db", "--model-dir", "models"), 0);
    char *is = kept_rows("new.db", answers), *want = kept_rows("b.db", answers);
    assert_string_equal(is, want);
    free(is);
    free(want);
    assert_int_equal(kept_number("new.db", "SELECT count(*) FROM events WHERE kind = 'model'"), 1);
    assert_int_equal(kept_number("new.db", "SELECT text LIKE '%models/b' FROM words WHERE key = 'run'"), 1);
}

int main(void) {
    program_use(TRADEWIND_BINARY);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_replay_is_a_backtest, setup, support_leave),
        cmocka_unit_test_setup_teardown(so_is_one_of_an_ensemble, setup, support_leave),
        cmocka_unit_test_setup_teardown(the_history_may_end_anywhere, setup, support_leave),
        cmocka_unit_test_setup_teardown(the_runs_data_are_the_history, setup, support_leave),
        cmocka_unit_test_setup_teardown(a_session_goes_on, setup, support_leave),
        cmocka_unit_test_setup_teardown(lines_are_bars_too, setup, support_leave),
        cmocka_unit_test_setup_teardown(bars_of_a_growing_file_warm_up, setup, support_leave),
        cmocka_unit_test_setup_teardown(late_bars_are_told_a_few_times, setup, support_leave),
        cmocka_unit_test_setup_teardown(intents_are_lines, setup, support_leave),
        cmocka_unit_test_setup_teardown(it_is_stopped_and_cleared, setup, support_leave),
        cmocka_unit_test_setup_teardown(a_kill_switch_knows_a_state, setup, support_leave),
        cmocka_unit_test_setup_teardown(a_watcher_sees_it, setup, support_leave),
        cmocka_unit_test_setup_teardown(several_are_traded_at_once, setup, support_leave),
        cmocka_unit_test_setup_teardown(a_newer_model_takes_over, setup, support_leave),
        cmocka_unit_test_setup_teardown(mistakes_are_told, setup, support_leave),
        cmocka_unit_test_setup_teardown(prices_of_another_instrument_are_told, setup, support_leave),
        cmocka_unit_test_setup_teardown(bars_of_another_name_are_told, setup, support_leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
