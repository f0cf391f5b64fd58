// A signal for the newest bar, from outside: what `predict --latest` says of bar t from files that end with t is what
// the whole files give, to the bit, for one instrument and for several, imported at once or added bar by bar.
#include "base/file.h"
#include "cli/program.h"
#include "data/frame.h"
#include "data/npz.h"
#include "data/walk.h"
#include "support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { N = 1300, SPAN = 300, CUTS = 4 };

// Files of two instruments, with all bars that open before a moment.
static void put_until(int64_t moment) {
    for (int k = 0; k < 2; k++) {
        bar *bars = walk_bars(N, SPAN, 7 + (uint64_t)k);
        FILE *f = fopen(k ? "b.csv" : "a.csv", "w");
        assert_non_null(f);
        fputs("time,open,high,low,close,tick_volume,spread\n", f);
        for (int i = 0; i < N && bars[i].time < moment; i++)
            fprintf(f, "%lld,%.9g,%.9g,%.9g,%.9g,%.0f,%.0f\n", (long long)bars[i].time, bars[i].open, bars[i].high,
                bars[i].low, bars[i].close, bars[i].volume, bars[i].spread);
        fclose(f);
        free(bars);
    }
}

#define IMPORT(...) RUN("import", __VA_ARGS__, "--features", "slow=return", "--frames", "1h", "-q")
#define ONE         "a.csv"
#define TWO         "--symbol", "AAA", "a.csv", "--symbol", "BBB", "b.csv"

static void put_run(const char *set, const char *dir, const char *more) {
    char text[512];
    snprintf(text, sizeof text,
        "data: {set: %s, windows: {fast: 12, slow: 4}}\nmodel: {kind: lstm, hidden: {fast: 4, slow: 4}%s}\n"
        "train: {epochs: 1, batch_size: 64}\nrun: {dir: %s}\n",
        set, more, dir);
    put_text("run.yaml", text);
}

// The rows of a .csv by their bar and instrument, without the label: what was known at the bar's close.
static bool row_of(const char *text, const char *key, bool named, char *row, size_t room) {
    const char *at = strstr(text, key);
    if (!at) return false;
    snprintf(row, room, "%.*s", (int)strcspn(at, "\n"), at);
    // open_time,close_time,close[,symbol],label,...: the label is the 4th or 5th.
    char *label = row;
    for (int i = 0; i < 3 + named; i++) label = strchr(label, ',') + 1;
    char *rest = strchr(label, ',');
    memmove(label, rest, strlen(rest) + 1);
    return true;
}

// Every row of a short file is in the long one, with the same answer.
static int compare(const char *part, const char *whole, bool named) {
    char *few = slurp(part), *all = slurp(whole), *save = NULL, a[512], b[512];
    int rows = 0;
    char *copy = strdup(few);
    strtok_r(copy, "\n", &save);
    for (char *line; (line = strtok_r(NULL, "\n", &save)); rows++) {
        char key[128];
        const char *end = line;
        for (int i = 0; i < 3 + named; i++) end = strchr(end, ',') + 1;
        snprintf(key, sizeof key, "%.*s", (int)(end - line), line);
        assert_true(row_of(few, key, named, a, sizeof a));
        if (!row_of(all, key, named, b, sizeof b)) fail_msg("%s has no bar %s", whole, key);
        assert_string_equal(a, b);
    }
    free(copy);
    free(few);
    free(all);
    return rows;
}

static const int64_t begin = 1704067200;

static void cut_files_give_the_same_answers(void **state) {
    (void)state;
    const int64_t all = begin + 100 * 86400, cuts[CUTS] = {begin + 4 * 86400 + 35 * 60, begin + 4 * 86400 + 7200,
                                                 begin + 4 * 86400 + 31 * 300, begin + 5 * 86400 - 300};
    put_until(all);
    assert_int_equal(IMPORT(ONE, "-o", "one.npz"), 0);
    assert_int_equal(IMPORT(TWO, "-o", "two.npz"), 0);
    put_run("one.npz", "one", "");
    assert_int_equal(RUN("train", "run.yaml", "-q"), 0);
    put_run("two.npz", "two", ", symbol: true");
    assert_int_equal(RUN("train", "run.yaml", "data.scale=own", "-q"), 0);
    assert_int_equal(RUN("predict", "one", "--latest", "2000", "-o", "one.csv"), 0);
    assert_int_equal(RUN("predict", "two", "--latest", "2000", "-o", "two.csv"), 0);
    for (int i = 0; i < CUTS; i++) {
        put_until(cuts[i]);
        assert_int_equal(IMPORT(ONE, "-o", "cut.npz"), 0);
        assert_int_equal(RUN("predict", "one", "--data", "cut.npz", "--latest", "5", "-o", "cut.csv"), 0);
        assert_int_equal(compare("cut.csv", "one.csv", false), 5);
        assert_int_equal(IMPORT(TWO, "-o", i ? "cut2.npz" : "grown.npz"), 0);
        // The other way: the set of the cut before, and the new bars.
        if (i) assert_int_equal(RUN("import", "--append", "grown.npz", TWO, "-q"), 0);
        if (i) same_bytes("cut2.npz", "grown.npz");
        assert_int_equal(RUN("predict", "two", "--data", "grown.npz", "--latest", "5", "-o", "cut.csv"), 0);
        assert_int_equal(compare("cut.csv", "two.csv", true), 10);
    }
}

// Bars that do not begin where the set ends are added, and the hole is told.
static void holes_are_told(void **state) {
    (void)state;
    put_until(begin + 4 * 86400);
    assert_int_equal(IMPORT(ONE, "-o", "one.npz"), 0);
    put_until(begin + 100 * 86400);
    assert_int_equal(RUN("import", "--append", "one.npz", ONE, "-o", "whole.npz"), 0);
    char *said = slurp("out");
    assert_null(strstr(said, "\nhole "));
    free(said);
    bar *bars = walk_bars(N, SPAN, 7);
    FILE *f = fopen("late.csv", "w");
    assert_non_null(f);
    fputs("time,open,high,low,close,tick_volume,spread\n", f);
    for (const bar *b = bars + N - 40; b < bars + N; b++)
        fprintf(f, "%lld,%.9g,%.9g,%.9g,%.9g,%.0f,%.0f\n", (long long)b->time, b->open, b->high, b->low, b->close,
            b->volume, b->spread);
    fclose(f);
    free(bars);
    assert_int_equal(RUN("import", "--append", "one.npz", "late.csv", "-o", "late.npz"), 0);
    matches("out", "\nhole +no bars from [0-9: -]+ to [0-9: -]+ UTC; was the market closed[?]\n");
}

// A coarser stream that is out of date is told: when bars are added, and beside the answers.
static void late_bars_are_told(void **state) {
    (void)state;
    static const char late[] = "slow: newest bar closed 2024-01-03 12:00 UTC, [0-9.]+ days before the newest fast bar";
    char want[256];
    const int64_t noon = begin + 2 * 86400 + 12 * 3600;
    put_until(begin + 100 * 86400);
    bar *bars = walk_bars(N, SPAN, 7), *hours;
    int64_t count, known = 0;
    err e = {0};
    frame_source from = {bars, N, SPAN, false};
    support_ok(frame_make(&from, 3600, "walk", &hours, &count, &e), &e);
    FILE *f = fopen("h1.csv", "w");
    assert_non_null(f);
    fputs("time,open,high,low,close,tick_volume,spread\n", f);
    for (const bar *b = hours; known < count && b->end <= noon; b++, known++)
        fprintf(f, "%lld,%.9g,%.9g,%.9g,%.9g,%.0f,%.9g\n", (long long)b->time, b->open, b->high, b->low, b->close,
            b->volume, b->spread);
    fclose(f);
    free(bars);
    free(hours);
    put_until(noon + 1800);
    assert_int_equal(RUN("import", "a.csv", "h1.csv", "--features", "slow=return", "-o", "s.npz", "--no-vector"), 0);
    char *said = slurp("out");
    assert_null(strstr(said, "newest bar closed"));
    free(said);
    put_run("s.npz", "run", "");
    assert_int_equal(RUN("train", "run.yaml", "-q"), 0);
    assert_int_equal(RUN("predict", "run", "--latest", "1"), 0);
    matches("out", "^note [^\n]+\nclosed [^\n]+\n$");
    put_until(begin + 100 * 86400);
    assert_int_equal(RUN("import", "--append", "s.npz", "a.csv"), 0);
    snprintf(want, sizeof want, "\nstale +%s\n", late);
    matches("out", want);
    assert_int_equal(RUN("predict", "run", "--data", "s.npz", "--latest", "1"), 0);
    snprintf(want, sizeof want, "^note [^\n]+\nwarning +%s\nclosed [^\n]+\n$", late);
    matches("out", want);
    assert_int_equal(RUN("predict", "run", "--data", "s.npz", "--latest", "1", "-q"), 0);
    snprintf(want, sizeof want, "^tradewind: stale: %s\n$", late);
    matches("err", want);
    snprintf(want, sizeof want, "\"stale\": ?[[]\"%s\"[]]", late);
    assert_int_equal(RUN("predict", "run", "--data", "s.npz", "--latest", "1", "--json"), 0);
    matches("out", want);
    assert_int_equal(RUN("predict", "run", "--data", "s.npz", "--latest", "1", "--json", "-o", "p.csv"), 0);
    matches("out", want);
}

// The last bar has an answer and no label, on the screen too; the others have theirs.
static void the_newest_bar_is_there(void **state) {
    (void)state;
    put_until(begin + 100 * 86400);
    assert_int_equal(IMPORT(TWO, "-o", "two.npz"), 0);
    put_run("two.npz", "two", "");
    assert_int_equal(RUN("train", "run.yaml", "-q"), 0);
    assert_int_equal(RUN("predict", "two", "--latest", "1"), 0);
    matches("out",
        "^note +newest bar closed 2024-0[0-9: -]+ UTC, [0-9]+(,[0-9]+)? days ago\n"
        "AAA  closed 20[0-9: -]+ UTC  close [0-9.]+ +(UP|NEUTRAL|DOWN) +DOWN 0[.][0-9]+  NEUTRAL 0[.][0-9]+  UP "
        "0[.][0-9]+\nBBB  closed [^\n]+\n$");
    assert_int_equal(RUN("predict", "two", "--latest", "2", "--json"), 0);
    matches("err", "^note +newest bar closed 2024[^\n]+ days ago\n$");
    assert_int_equal(RUN("predict", "two", "--latest", "900", "--json"), 0);
    matches("err", "^warning +[0-9]+ of these [0-9,]+ samples lie in the time that the model was trained on [^\n]+\n"
                   "note +newest bar ");
    // Each row says so of itself, the newest do not.
    char *told = slurp("err"), *row = slurp("out");
    int rows_trained = 0;
    for (char *at = row; (at = strstr(at, "\"trained_on\":true")); at++) rows_trained++;
    assert_int_equal(rows_trained, atoi(told + strcspn(told, "0123456789")));
    assert_true(strstr(row, "\"trained_on\":true") < strchr(row, '\n'));
    assert_null(strstr(row + strlen(row) - 400, "trained_on"));
    free(told);
    free(row);
    assert_int_equal(RUN("predict", "two", "--latest", "2", "-q"), 0);
    matches("out", "^AAA ");
    assert_int_equal(RUN("predict", "two", "--latest", "2", "-o", "p.csv"), 0);
    matches("p.csv", "^open_time,close_time,close,symbol,label,prediction,p_DOWN,p_NEUTRAL,p_UP\n"
                     "[^,]+,[^,]+,[0-9.]+,AAA,[A-Z]+,[A-Z]+,[^\n]+\n[^\n]+\n");
    matches("p.csv", ",AAA,,(DOWN|NEUTRAL|UP),");
    matches("p.csv", ",BBB,,(DOWN|NEUTRAL|UP),");
    assert_int_equal(RUN("predict", "two", "--latest", "2", "-o", "p.npz"), 0);
    complains(RUN("predict", "two", "--latest", "0"), "--latest 0: must be a number of bars, 1 or more");
    complains(
        RUN("predict", "two", "--latest", "2", "--part", "test"), "--part: --latest is a part already; leave one out");
    // Forecasts have their targets where these are known.
    assert_int_equal(IMPORT(ONE, "--label", "forecast", "--horizon", "3", "-o", "next.npz"), 0);
    put_run("next.npz", "next", "");
    assert_int_equal(RUN("train", "run.yaml", "-q"), 0);
    assert_int_equal(RUN("predict", "next", "--latest", "4", "--json"), 0);
    matches("out", "^[^\n]+\"target\": ?[[][^]]+[]][^\n]+\n([^\n]+\n){3}$");
    char *rows = slurp("out"), *second = strchr(rows, '\n');
    assert_null(strstr(second, "target"));
    free(rows);
    matches("out", "\"unit\": ?\"log return since the close\"");
    assert_int_equal(RUN("predict", "next", "--latest", "1"), 0);
    matches(
        "out", "^note [^\n]+\nforecast +log return since the close\nclosed [^\n]+ next [^\n]+, in 3 bars [^\n]+\n$");
    assert_int_equal(RUN("train", "run.yaml", "train.loss=quantile", "run.dir=wide", "-q"), 0);
    assert_int_equal(RUN("predict", "wide", "--latest", "1"), 0);
    matches("out", "^note [^\n]+\nforecast +[^\n]+, quantile 0[.]5\nclosed ");
    assert_int_equal(RUN("predict", "wide", "--latest", "1", "--json"), 0);
    matches("out", "\"forecast\": ?[{]\"0[.]1\": ?[[]([^],]+,){2}[^],]+[]], ?\"0[.]5\": ?[[]");
    // Data without bars have no newest one.
    put_small_run();
    assert_int_equal(RUN("train", "run.yaml", "-q"), 0);
    complains(
        RUN("predict", "made", "--latest", "1"), ".*keeps no bars, so none is its newest; the synthetic market .*");
}

// An instrument that ended weeks before the other: its newest bar is no newest one.
static void instruments_that_ended_are_told(void **state) {
    (void)state;
    put_until(begin + 4 * 86400);
    bar *bars = walk_bars(N, SPAN, 8);
    FILE *f = fopen("b.csv", "w");
    assert_non_null(f);
    fputs("time,open,high,low,close,tick_volume,spread\n", f);
    for (const bar *b = bars; b < bars + N; b++)
        fprintf(f, "%lld,%.9g,%.9g,%.9g,%.9g,%.0f,%.0f\n", (long long)b->time + 40 * 86400, b->open, b->high, b->low,
            b->close, b->volume, b->spread);
    fclose(f);
    free(bars);
    assert_int_equal(IMPORT(TWO, "-o", "two.npz"), 0);
    put_run("two.npz", "two", "");
    assert_int_equal(RUN("train", "run.yaml", "-q"), 0);
    assert_int_equal(RUN("predict", "two", "--latest", "1"), 0);
    matches("out", "note +newest bar closed [^\n]+ days ago\n"
                   "note +AAA ends 2024-01-05 00:00 UTC, 4[0-9] days before the newest bar\nAAA ");
    assert_int_equal(RUN("predict", "two", "--latest", "1", "-o", "p.csv"), 0);
    matches("out", "\nnote +newest bar closed [^\n]+ days ago\nnote +AAA ends ");
}

// A set whose bytes have changed gives no answers, though its tables are read where they lie; and neither do its
// scores.
static void damaged_sets_give_no_answers(void **state) {
    static const char *const arrays[] = {"fast.series0", "slow.series0", "time"};
    (void)state;
    put_until(begin + 100 * 86400);
    assert_int_equal(IMPORT(ONE, "-o", "one.npz"), 0);
    put_run("one.npz", "one", "");
    assert_int_equal(RUN("train", "run.yaml", "-q"), 0);
    assert_int_equal(RUN("predict", "one", "--latest", "1"), 0);
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
        npz z;
        err e = {0};
        size_t n;
        char why[160], *all = file_read("one.npz", 1 << 26, &n, &e), *copy = all ? malloc(n) : NULL;
        support_ok(copy && npz_open_memory(&z, "one.npz", all, n, &e), &e);
        memcpy(copy, all, n);
        copy[(const char *)npz_data(&z, npz_find(&z, arrays[i])) - all + 9] ^= 1;
        npz_close(&z);
        support_put("one.npz", copy, n);
        support_put("other.npz", copy, n);
        snprintf(why, sizeof why, ".*%s.* is damaged: its CRC-32 is wrong.*", arrays[i]);
        complains(RUN("predict", "one", "--latest", "1"), why);
        complains(RUN("predict", "one", "-o", "p.csv"), why);
        complains(RUN("evaluate", "one"), why);
        support_put("one.npz", all, n);
        complains(RUN("predict", "one", "--data", "other.npz", "-o", "p.csv"), why);
        free(all);
        free(copy);
    }
    assert_int_equal(RUN("evaluate", "one"), 0);
}

// The same instruments as a description names them.
static void descriptions_name_instruments(void **state) {
    (void)state;
    put_until(begin + 100 * 86400);
    put_text("run.yaml", "data:\n  bars:\n    AAA: {fast: a.csv}\n    BBB: {fast: b.csv}\n  frames: [1h]\n"
                         "  features: {slow: [return]}\n  windows: {fast: 12, slow: 4}\n"
                         "model: {kind: lstm, hidden: {fast: 4, slow: 4}, symbol: true}\n"
                         "train: {epochs: 1, batch_size: 64}\nrun: {dir: described}\n");
    assert_int_equal(RUN("train", "run.yaml", "-q"), 0);
    assert_int_equal(RUN("predict", "described", "--latest", "1"), 0);
    matches("out", "^note [^\n]+\nAAA  closed [^\n]+\nBBB  closed [^\n]+\n$");
    assert_int_equal(RUN("evaluate", "described"), 0);
    matches("out", "\nsymbol +samples [^\n]+\nAAA +[0-9,]+ [^\n]+\nBBB +[0-9,]+ [^\n]+\ntogether +[0-9,]+ ");
    // Weights that know their instruments name them.
    assert_int_equal(IMPORT("--symbol", "AAA", "a.csv", "--symbol", "CCC", "b.csv", "-o", "others.npz"), 0);
    complains(RUN("predict", "described", "--data", "others.npz", "--latest", "1"),
        ".*: was trained on AAA,BBB; others\\.npz holds AAA,CCC; use data of the same instruments");
    assert_int_equal(IMPORT(ONE, "-o", "one.npz"), 0);
    complains(RUN("predict", "described", "--data", "one.npz", "--latest", "1"),
        ".*: was trained on AAA,BBB; one\\.npz holds one instrument without a symbol; import it with --symbol NAME");
    complains(RUN("import", "a.csv", "b.csv", "-o", "s.npz"), ".*--symbol A a.csv --symbol B b.csv");
    complains(RUN("import", "a.csv", "--symbol", "B", "b.csv", "-o", "s.npz"),
        "a.csv: has no symbol, but b.csv is of B; put --symbol NAME before it");
}

// None of too many files is left out in silence.
static void too_many_files_are_refused(void **state) {
    (void)state;
    FILE *f = fopen("run.yaml", "w");
    assert_non_null(f);
    fputs("model: {kind: mlp}\nrun: {dir: many}\ndata:\n  bars:\n", f);
    for (int i = 0; i < 1025; i++) fprintf(f, "    S%d: {fast: none.csv}\n", i);
    fclose(f);
    complains(RUN("train", "run.yaml"), "run.yaml:[0-9]+: data.bars: names 1025 files; use up to 1024, .*");
}

int main(void) {
    program_use(TRADEWIND_BINARY);
#define TEST(name) cmocka_unit_test_setup_teardown(name, support_enter, support_leave)
    const struct CMUnitTest tests[] = {
        TEST(cut_files_give_the_same_answers),
        TEST(holes_are_told),
        TEST(late_bars_are_told),
        TEST(the_newest_bar_is_there),
        TEST(instruments_that_ended_are_told),
        TEST(damaged_sets_give_no_answers),
        TEST(descriptions_name_instruments),
        TEST(too_many_files_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
