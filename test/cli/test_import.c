// import and inspect from outside, and training on what they make.
#include "base/file.h"
#include "base/json.h"
#include "cli/program.h"
#include "data/npz.h"
#include "data/set.h"
#include "data/walk.h"
#include "data/when.h"
#include "support.h"

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { BARS = 3000, SPAN = 300 };

enum { SAMPLES = 1500, T = 10, C = 3, V = 4 };

static void put_windows(const char *path) {
    static float series[(SAMPLES + T) * C], x[SAMPLES * T * C], vector[SAMPLES * V];
    static int8_t label[SAMPLES];
    dice d = {.seed = 2};
    npz_writer w;
    err e = {0};
    for (size_t i = 0; i < sizeof series / sizeof *series; i++) series[i] = dice_unit(&d);
    for (size_t i = 0; i < sizeof vector / sizeof *vector; i++) vector[i] = dice_unit(&d);
    for (int i = 0; i < SAMPLES; i++) {
        memcpy(x + i * T * C, series + i * C, T * C * sizeof *x);
        label[i] = (int8_t)((series[(i + T - 1) * C] > 0.3f) - (series[(i + T - 1) * C] < -0.3f));
    }
    bool ok = npz_writer_open(&w, path, &e);
    ok = ok && npz_writer_array(&w, "x_fast", NPY_F32, 3, (int64_t[]){SAMPLES, T, C}, x, &e);
    ok = ok && npz_writer_array(&w, "x_strategy", NPY_F32, 2, (int64_t[]){SAMPLES, V}, vector, &e);
    ok = ok && npz_writer_array(&w, "labels", NPY_I8, 1, (int64_t[]){SAMPLES}, label, &e);
    support_ok(ok && npz_writer_commit(&w, &e), &e);
}

static int files_here(void) {
    int n = 0;
    DIR *d = opendir(".");
    assert_non_null(d);
    for (struct dirent *f; (f = readdir(d));) n += f->d_name[0] != '.' || strlen(f->d_name) > 2;
    closedir(d);
    return n;
}

// A refusal is one line, status 2, and leaves no file, also no temporary one.
#define REFUSED(pattern, ...)                                                                                          \
    do {                                                                                                               \
        put_text("out", ""), put_text("err", "");                                                                      \
        int before = files_here();                                                                                     \
        complains(RUN("import", __VA_ARGS__), pattern);                                                                \
        assert_int_equal(files_here(), before);                                                                        \
    } while (0)

static void same_files(const char *a, const char *b) {
    size_t n, m;
    err e = {0};
    char *x = file_read(a, 1 << 26, &n, &e), *y = file_read(b, 1 << 26, &m, &e);
    support_ok(x && y, &e);
    assert_int_equal(n, m);
    assert_memory_equal(x, y, n);
    free(x);
    free(y);
}

// The tensors of two .safetensors; their metadata may differ, as windows that are not imported have no times.
static void same_tensors(const char *a, const char *b) {
    size_t n, m;
    uint64_t skip, other;
    err e = {0};
    char *x = file_read(a, 1 << 26, &n, &e), *y = file_read(b, 1 << 26, &m, &e);
    support_ok(x && y, &e);
    memcpy(&skip, x, sizeof skip);
    memcpy(&other, y, sizeof other);
    assert_int_equal(n - skip, m - other);
    assert_memory_equal(x + sizeof skip + skip, y + sizeof other + other, n - skip - sizeof skip);
    free(x);
    free(y);
}

// Importing

static void bars_need_no_options(void **state) {
    (void)state;
    walk_put("m5.csv", BARS, SPAN, 1);
    assert_int_equal(RUN("import", "m5.csv", "-o", "set.npz"), 0);
    matches("out", "^m5\\.csv: .*bars of 5 min");
    matches("out", "zone +UTC \\(assumed");
    matches("out", "\nsamples +[0-9],[0-9]+, 20.* UTC\nclasses +DOWN .*NEUTRAL .*UP .*%");
    matches("out", "\nwritten +set\\.npz, .* MB, in .* s\n$");
    is_empty("err");
    assert_int_equal(RUN("inspect", "set.npz"), 0);
    matches("out", "^set\\.npz: dataset, .* MB, mapped in .* ms, scaled");
    matches("out", "\nsteps +usually 5 min");
    matches("out", "\nprice +[^ ]+ ");
    matches("out", "\nmemory .*mapped.* on a card.*host");
    matches("out", "\n +log_return_1 ");
    assert_int_equal(RUN("import", "m5.csv", "-o", "set.npz", "-q"), 0);
    is_empty("out");
    assert_int_equal(RUN("bench", "copy", "--data=set.npz", "--device=cpu", "--no-peer", "--json", "--batch=32"), 0);
    matches(
        "out", "^\\{\"case\":\"copy\",\"variant\":\"pinned\"[^\n]*\n[^\n]*\"file\"[^\n]*\n[^\n]*\"loader\"[^\n]*\n$");
}

static void options_are_taken(void **state) {
    (void)state;
    walk_put("m5.csv", BARS, SPAN, 1);
    assert_int_equal(RUN("import", "m5.csv", "-o", "set.npz", "--frames", "15m,1h", "--features", "fast=rsi_14,body",
                         "slow=return,range", "--features=slower=return", "--label", "barrier", "--limit=12", "--types",
                         "compact", "--tz", "mt5", "--json"),
        0);
    char *text = slurp("out"), *rest = NULL;
    int lines = 0;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest), lines++) {
        err e = {0};
        json_t *v = json_read(line, strlen(line), &e);
        support_ok(v != NULL, &e);
        if (lines) assert_true(json_integer_value(json_object_get(v, "samples")) > 500);
        json_decref(v);
    }
    assert_int_equal(lines, 2);
    free(text);
    err e = {0};
    dataset *d = set_open("set.npz", &e);
    support_ok(d != NULL, &e);
    assert_int_equal(d->streams, 3);
    assert_int_equal(d->stream[0].series.width, 2);
    assert_int_equal(d->vector.parts, 2);
    assert_string_equal(json_string_value(json_object_get(json_object_get(d->about, "label"), "kind")), "barrier");
    dataset_free(d);
    assert_int_equal(RUN("inspect", "set.npz", "--json"), 0);
    matches("out", "\"about\":");
    assert_int_equal(
        RUN("import", "m5.csv", "-o", "set.npz", "--label", "forecast", "--horizon", "6", "--no-vector"), 0);
    assert_int_equal(RUN("inspect", "set.npz"), 0);
    matches("out", "\ntargets +6 a sample");
}

// The walk as sellers write it: dates of people, other names, one symbol.
static void put_for_people(const char *path, const char *order) {
    FILE *f = fopen(path, "w");
    bar *all = walk_bars(BARS, SPAN, 1);
    assert_true(f && all);
    fputs("Day,When,Last Price,Open,Top,Low,Ticker\n", f);
    for (int i = 0; i < BARS; i++) {
        const bar *b = &all[i];
        when_parts p = when_split(b->time);
        fprintf(f, order, p.day, p.month, p.year % 100);
        fprintf(f, ",%d:%02d %s,%.9g,%.9g,%.9g,%.9g,GOLD\n", (p.hour + 11) % 12 + 1, p.minute,
            p.hour < 12 ? "AM" : "PM", b->close, b->open, b->high, b->low);
    }
    assert_int_equal(fclose(f), 0);
    free(all);
}

static void files_of_people_are_imported(void **state) {
    (void)state;
    static const char columns[] = "date=Day,time=When,close=Last Price,high=Top";
    walk_put("m5.csv", BARS, SPAN, 1);
    put_for_people("gold.csv", "%d/%d/%02d");
    assert_int_equal(RUN("import", "m5.csv", "-o", "plain.npz", "--no-vector", "--features", "fast=return"), 0);
    assert_int_equal(RUN("import", "gold.csv", "-o", "set.npz", "--no-vector", "--features", "fast=return",
                         "--date-order", "dmy", "--columns", columns),
        0);
    err e = {0};
    dataset *a = set_open("plain.npz", &e), *b = set_open("set.npz", &e);
    support_ok(a && b, &e);
    assert_int_equal(a->samples, b->samples);
    assert_memory_equal(a->time, b->time, (size_t)a->samples * sizeof *a->time);
    assert_memory_equal(a->price, b->price, (size_t)a->samples * sizeof *a->price);
    dataset_free(a);
    dataset_free(b);
    put_text("run.yaml",
        "data: {bars: {fast: gold.csv}, features: {fast: [return]}, vector: false, windows: {fast: 4}}\n"
        "model: {kind: mlp, widths: 4}\ntrain: {epochs: 1}\n");
    char key[96];
    snprintf(key, sizeof key, "data.columns=%s", columns);
    assert_int_equal(RUN("train", "run.yaml", key, "data.date_order=dmy"), 0);
    complains(
        RUN("train", "run.yaml", key), ".*gold\\.csv:2: date .*--date-order dmy, mdy or ymd \\(data\\.date_order\\)");
    REFUSED("gold\\.csv:1: has no column named high; .*--columns high=NAME.*", "gold.csv", "-o", "s.npz");
    REFUSED("--date-order: \"ddmm\" is no order of dates; .*", "gold.csv", "-o", "s.npz", "--date-order", "ddmm");
    REFUSED("stdin: is empty; .*", "-", "-o", "s.npz");
    // The order that a file shows is kept for bars that go on.
    put_for_people("gold.csv", "%d/%d/20%02d");
    assert_int_equal(
        RUN("import", "gold.csv", "-o", "set.npz", "--no-vector", "--features", "fast=return", "--columns", columns),
        0);
    matches("out", "\n +dates +day, month, year, as line [0-9]+ shows\n");
    support_ok((a = set_open("set.npz", &e)) != NULL, &e);
    const json_t *how = json_object_get(a->about, "reading");
    assert_string_equal(json_string_value(json_object_get(how, "date_order")), "dmy");
    dataset_free(a);
}

static void panels_are_imported(void **state) {
    (void)state;
    put_text("p.csv", "V1,V2,V3,V4,V5,V6,V7,V8,V9\nA,1,2,3,4,5,6,7,8\nB,11,12,13,14,15\n");
    assert_int_equal(RUN("import", "p.csv", "-o", "set.npz", "--horizon", "2"), 0);
    matches("out", "p\\.csv: panel\n +series +2 with 13 values; the last 2 values of 2 series are held out\n");
    assert_int_equal(RUN("import", "p.csv", "-o", "recent.npz", "--horizon", "2", "--recent", "3"), 0);
    matches(
        "out", "\nsamples +5\n"); // one at a distance of 2 and of 3 from the end of A, of 2 of B, and the last of both
    REFUSED("p\\.csv: the last 1 values have no room for 2 targets; .*", "p.csv", "-o", "no.npz", "--horizon=2",
        "--recent=1");
    put_text("run.yaml", "data: {set: set.npz}\nmodel: {kind: mlp, widths: 4}\ntrain: {epochs: 1}\n");
    assert_int_equal(RUN("train", "run.yaml", "data.split.train=0.2"), 0);
    matches("out", "\ndata +5 training and 2 validation samples \\(set\\.npz, which holds the last 2 values of each");
    complains(RUN("train", "run.yaml", "train.loss=focal"), "train\\.loss=focal: .*the data have only targets");
    complains(RUN("train", "run.yaml", "train.metric=mcc"),
        "train\\.metric=mcc: .*mcc is for classes; use one of smape, mase, owa, mae, rmse, loss");
}

static void mistakes_leave_nothing(void **state) {
    (void)state;
    walk_put("m5.csv", BARS, SPAN, 1);
    walk_put("short.csv", 50, SPAN, 1);
    put_text("bad.csv", "time,open,high,low,close\n2024-01-02 00:00:00,1,2,0.5,1\n2024-01-02 00:05:00,1,x,0.5,1\n");
    put_text("p.csv", "V1,V2\nA,1\n");
    put_text("junk", "PK\3\4 and nothing more");
    REFUSED("no file given.*", "-o", "set.npz");
    REFUSED("no output given.*", "m5.csv");
    REFUSED("none\\.csv: .*No such file.*", "none.csv", "-o", "set.npz");
    REFUSED("bad\\.csv:3: .*", "bad.csv", "-o", "set.npz");
    REFUSED("junk: .*", "junk", "-o", "set.npz");
    REFUSED("short\\.csv: 50 bars, but .*", "short.csv", "-o", "set.npz");
    REFUSED("m5\\.csv: has bars of the same span.*", "m5.csv", "m5.csv", "-o", "set.npz");
    REFUSED("p\\.csv: is a panel.*--horizon N", "p.csv", "-o", "set.npz");
    REFUSED("p\\.csv: .*samples.*", "p.csv", "-o", "set.npz", "--horizon", "3");
    REFUSED("p\\.csv: holds a panel.*", "m5.csv", "p.csv", "-o", "set.npz");
    REFUSED("m5\\.csv: is both input and output.*", "m5.csv", "-o", "m5.csv");
    REFUSED("-o out[.]csv: a dataset is an [.]npz; .*", "m5.csv", "-o", "out.csv");
    REFUSED("-o [.]npz: a dataset is an [.]npz; .*", "m5.csv", "-o", ".npz");
    REFUSED("fast: feature rsy is not known; did you mean rsi\\?", "m5.csv", "-o", "set.npz", "--features", "fast=rsy");
    REFUSED("--features slow=rsi: no such stream.*", "m5.csv", "-o", "set.npz", "--features", "slow=rsi");
    REFUSED("--label up: must be one of direction.*", "m5.csv", "-o", "set.npz", "--label", "up");
    REFUSED("--horizon 0: must be an integer from 1.*", "m5.csv", "-o", "set.npz", "--horizon", "0");
    REFUSED("--band x: must be a number.*", "m5.csv", "-o", "set.npz", "--band=x");
    REFUSED("--classes 4: must be 3 or 5", "m5.csv", "-o", "set.npz", "--classes", "4");
    REFUSED("--frames needs a value", "m5.csv", "-o", "set.npz", "--frames");
    REFUSED("--keep-coarse=1: takes no value", "m5.csv", "-o", "set.npz", "--keep-coarse=1");
    REFUSED("\"7x\" is no frame.*", "m5.csv", "-o", "set.npz", "--frames", "7x");
    REFUSED(".*nowhere.*", "m5.csv", "-o", "set.npz", "--tz", "nowhere");
    REFUSED("--fast: not an option of import.*", "m5.csv", "--fast");
    REFUSED("no/where/set\\.npz: .*", "m5.csv", "-o", "no/where/set.npz");
    complains(RUN("inspect", "m5.csv"), "m5\\.csv: is neither .*imported first");
    complains(RUN("inspect"), "no file given.*");
}

// A bar of the walk with its prices a hundredfold.
static void put_slip(const char *path) {
    FILE *f = fopen(path, "w");
    bar *all = walk_bars(BARS, SPAN, 1);
    assert_non_null(f);
    fputs("time,open,high,low,close\n", f);
    for (int i = 0; i < BARS; i++) {
        double by = i == 1000 ? 100 : 1;
        fprintf(f, "%lld,%.9g,%.9g,%.9g,%.9g\n", (long long)all[i].time, by * all[i].open, by * all[i].high,
            by * all[i].low, by * all[i].close);
    }
    assert_int_equal(fclose(f), 0);
    free(all);
}

// A refusal names its word; with that, import and training go on, and the set says what was overruled.
static void checks_are_overruled_by_name(void **state) {
    (void)state;
    put_slip("slip.csv");
    REFUSED("slip\\.csv:1002: the bar is 100 times .*--force slips.*", "slip.csv", "-o", "set.npz");
    REFUSED("slip\\.csv:1002: .*", "slip.csv", "-o", "set.npz", "--force", "thin,splits");
    REFUSED("--force: \"all\" is no check; use thin, .*", "slip.csv", "-o", "set.npz", "--force", "all");
    assert_int_equal(RUN("import", "slip.csv", "-o", "set.npz", "--force", "thin,slips"), 0);
    matches("out", "\n +forced +kept although refused: slips\n");
    matches("out", "\nforced +kept although refused: slips\n");
    assert_int_equal(RUN("import", "slip.csv", "-o", "set.npz", "--force", "slips", "--json"), 0);
    matches("out", "\"about\": *\\{.*\"forced\": *\"slips\"");
    assert_int_equal(RUN("inspect", "set.npz"), 0);
    matches("out", "\nforced +slips: kept although refused\n");
    put_text("run.yaml", "data: {bars: {fast: slip.csv}, windows: {fast: 4}}\nmodel: {kind: mlp, widths: 4}\n"
                         "train: {epochs: 1}\n");
    complains(RUN("train", "run.yaml"), ".*slip\\.csv:1002: the bar is 100 times .*data\\.force.*");
    complains(RUN("train", "run.yaml", "data.force=slipz"), "data\\.force=slipz: .*\"slipz\" is no check; .*");
    assert_int_equal(RUN("train", "run.yaml", "data.force=slips"), 0);
    matches("out", "kept although refused: slips");
}

// Adding

// Writes the bars from..to-1 of some.
static void put_bars(const char *path, const bar *bars, int from, int to) {
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs("time,open,high,low,close,tick_volume,spread\n", f);
    for (const bar *b = bars + from; b < bars + to; b++)
        fprintf(f, "%lld,%.9g,%.9g,%.9g,%.9g,%.0f,%.0f\n", (long long)b->time, b->open, b->high, b->low, b->close,
            b->volume, b->spread);
    assert_int_equal(fclose(f), 0);
}

#define ADD(file) RUN("import", "--append", "set.npz", file)

// One bar is enough, and two with a hole between them: the set knows its span.
static void single_bars_are_added(void **state) {
    (void)state;
    enum { N = 1000 };
    bar *bars = walk_bars(N, WHEN_HOUR, 3);
    put_bars("h1.csv", bars, 0, N - 3);
    assert_int_equal(RUN("import", "h1.csv", "--frames", "4h", "--no-vector", "-o", "set.npz"), 0);
    put_bars("one.csv", bars, N - 3, N - 2);
    assert_int_equal(ADD("one.csv"), 0);
    matches("out", "\nstream +fast +1 new bar of 1 h behind 20[0-9: -]+ UTC \\(one[.]csv\\)\n");
    bars[N - 1].time = bars[N - 2].time + 3 * WHEN_HOUR;
    put_bars("two.csv", bars, N - 2, N);
    assert_int_equal(ADD("two.csv"), 0);
    matches("out", "\nstream +fast +2 new bars of 1 h behind ");
    put_bars("h1.csv", bars, 0, N);
    assert_int_equal(RUN("import", "h1.csv", "--frames", "4h", "--no-vector", "-o", "whole.npz"), 0);
    same_files("set.npz", "whole.npz");
    // Nothing newer leaves the set as it is.
    static const char *const old[] = {"one.csv", "two.csv", "h1.csv"};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(ADD(old[i]), 0);
        matches("out", "^nothing newer than 20[0-9: -]+ UTC in [a-z0-9]+[.]csv\n$");
        same_files("set.npz", "whole.npz");
    }
    // Bars of another span are none of it.
    walk_put("m5.csv", 6 * BARS, SPAN, 3);
    complains(ADD("m5.csv"), "m5[.]csv: has bars of 5 min, and set[.]npz is not made of such files");
    free(bars);
}

// The coarsest of two spans that fits is taken. One bar on the grid of both is of the span that has it or lacks it
// there, or that no other file has; where that leaves both, it is refused.
static void bars_of_two_files_are_told_apart(void **state) {
    (void)state;
    bar *days = walk_bars(40, WHEN_DAY, 3);
    assert_int_equal(days[0].time % WHEN_DAY, 0);
    bar *bars = walk_bars(BARS, SPAN, 3);
    put_bars("m5.csv", bars, 0, BARS);
    put_bars("d1.csv", days, 0, 4);
    assert_int_equal(RUN("import", "m5.csv", "d1.csv", "--no-vector", "--features", "slow=return", "--force",
                         "agree,stale", "-o", "set.npz"),
        0);
    put_bars("new.csv", days, 20, 21);
    complains(ADD("new.csv"), "new[.]csv: one bar does not show which span it has; give the bar before it too");
    put_bars("fast.csv", bars, BARS - 2, BARS);
    assert_int_equal(RUN("import", "--append", "set.npz", "new.csv", "fast.csv", "-o", "other.npz"), 0);
    matches("out", "\nhole .*\nstream +slow +1 new bar of 1 day ");
    put_bars("new.csv", days, 4, 5);
    assert_int_equal(RUN("import", "--append", "set.npz", "new.csv", "-o", "other.npz"), 0);
    matches("out", "\nstream +slow +1 new bar of 1 day ");
    put_bars("new.csv", days, 3, 4);
    assert_int_equal(ADD("new.csv"), 0);
    matches("out", "^nothing newer than 2024-01-04 ");
    put_bars("new.csv", bars, BARS - 2, BARS - 1); // on the grid of five minutes alone
    assert_int_not_equal(bars[BARS - 2].time % 900, 0);
    assert_int_equal(ADD("new.csv"), 0);
    matches("out", "^nothing newer than ");
    days[5].time = days[4].time + 3 * WHEN_DAY;
    put_bars("new.csv", days, 4, 6);
    assert_int_equal(ADD("new.csv"), 0);
    matches("out", "\nstream +slow +2 new bars of 1 day ");
    // A bar at a quarter past is none of hours.
    bar *hours = walk_bars(BARS / 12, WHEN_HOUR, 3), *later = walk_bars(BARS + 12, SPAN, 3);
    int at = BARS;
    while (later[at].time % WHEN_HOUR != 900) at++;
    put_bars("h1.csv", hours, 0, BARS / 12);
    assert_int_equal(RUN("import", "m5.csv", "h1.csv", "--no-vector", "--features", "slow=return", "--force",
                         "agree,stale", "-o", "two.npz"),
        0);
    put_bars("new.csv", later, at, at + 1);
    assert_int_equal(RUN("import", "--append", "two.npz", "new.csv", "-o", "other.npz"), 0);
    matches("out", "\nstream +fast +1 new bar of 5 min ");
    free(hours);
    free(later);
    free(bars);
    free(days);
}

// An old or wrong file is not passed over, a set with a hole is not called whole, and bars that are missing in what is
// added are told by the hours of the set.
static void wrong_files_are_not_added(void **state) {
    (void)state;
    enum { N = 6000, OLD = 5500 };
    bar *bars = walk_bars(N, SPAN, 1);
    put_bars("m5.csv", bars, 0, OLD);
    assert_int_equal(RUN("import", "m5.csv", "-o", "set.npz"), 0);
    put_bars("old.csv", bars, 0, 1000);
    assert_int_equal(ADD("old.csv"), 0);
    matches("out", "^nothing newer than ");
    walk_put("m15.csv", 300, 900, 1);
    complains(ADD("m15.csv"), "m15[.]csv: has bars of 15 min, and set[.]npz is not made of such files");
    walk_put("other.csv", 1000, SPAN, 2);
    complains(ADD("other.csv"), "other[.]csv: [0-9]+ of its bars differ from those in set[.]npz, of [0-9]+ .*");
    dice d = {.seed = 5};
    int kept = OLD + 1;
    for (int i = kept; i < N; i++)
        if (dice_unit(&d) < 0.2f || i == N - 1) bars[kept++] = bars[i];
    put_bars("thin.csv", bars, OLD, kept);
    assert_int_equal(RUN("import", "--append", "set.npz", "thin.csv", "-o", "thin.npz"), 0);
    matches("out", "\n +gaps +[0-9]+  with (1[7-9]|2[0-2])[0-9] bars missing, first before line [0-9]+; ");
    free(bars);
    bars = walk_bars(N, SPAN, 1);
    put_bars("late.csv", bars, OLD + 30, OLD + 60);
    assert_int_equal(ADD("late.csv"), 0);
    matches("out", "\n +gaps +1  with (29|3[0-9]) bars missing, first before line 2; .*\nhole +no bars from ");
    put_bars("m5.csv", bars, 0, N);
    complains(ADD("m5.csv"), "m5[.]csv: has 30 bars that set[.]npz lacks, from [0-9: -]+ to [0-9: -]+; import all bars "
                             "anew, or keep it with --force thin .*");
    free(bars);
}

// A flipped byte is found before it is copied with a sum of its own.
static void damaged_sets_are_not_added_to(void **state) {
    (void)state;
    static const char *const arrays[] = {"vector0", "state", "fast.series0"};
    bar *bars = walk_bars(BARS, SPAN, 1);
    err e = {0};
    put_bars("m5.csv", bars, 0, BARS - 2);
    assert_int_equal(RUN("import", "m5.csv", "-o", "good.npz"), 0);
    put_bars("new.csv", bars, BARS - 2, BARS);
    for (int i = 0; i < 3; i++) {
        npz z;
        char why[128];
        size_t n;
        char *all = file_read("good.npz", 1 << 26, &n, &e);
        support_ok(all && npz_open_memory(&z, "good.npz", all, n, &e), &e);
        size_t at = (size_t)((const char *)npz_data(&z, npz_find(&z, arrays[i])) - all);
        npz_close(&z);
        all[at + 9] ^= 1;
        FILE *f = fopen("set.npz", "wb");
        assert_non_null(f);
        assert_int_equal(fwrite(all, 1, n, f), n);
        fclose(f);
        free(all);
        snprintf(why, sizeof why, "set[.]npz: .*%s.* is damaged: its CRC-32 is wrong.*", arrays[i]);
        complains(ADD("new.csv"), why);
    }
    free(bars);
}

// Two at once are one after the other: nothing is lost, and the second tells that it waits.
static void adding_twice_at_once_adds_both(void **state) {
    (void)state;
    bar *bars[] = {walk_bars(BARS, SPAN, 1), walk_bars(BARS, SPAN, 2)};
    for (int k = 0; k < 2; k++) {
        put_bars(k ? "b.csv" : "a.csv", bars[k], 0, BARS - 9);
        put_bars(k ? "b9.csv" : "a9.csv", bars[k], BARS - 9, BARS);
        free(bars[k]);
    }
    assert_int_equal(
        RUN("import", "--symbol", "A", "a.csv", "--symbol", "B", "b.csv", "--no-vector", "-o", "first.npz"), 0);
    for (int k = 0; k < 2; k++)
        assert_int_equal(RUN("import", "--append", k ? "whole.npz" : "first.npz", "--symbol", k ? "B" : "A",
                             k ? "b9.csv" : "a9.csv", "-o", "whole.npz"),
            0);
    err e = {0};
    for (int trial = 0; trial < 5; trial++) {
        size_t n;
        char *all = file_read("first.npz", 1 << 26, &n, &e);
        support_ok(all != NULL, &e);
        FILE *f = fopen("set.npz", "wb");
        assert_non_null(f);
        assert_int_equal(fwrite(all, 1, n, f), n);
        fclose(f);
        free(all);
        int held = file_lock("set.npz", NULL, NULL, &e);
        support_ok(held >= 0, &e);
        pid_t one = program_start(
            "out_a", (const char *const[]){"import", "--append", "set.npz", "--symbol", "A", "a9.csv", NULL});
        pid_t two = program_start(
            "out_b", (const char *const[]){"import", "--append", "set.npz", "--symbol", "B", "b9.csv", NULL});
        wait_for("out_a", "waits     another import --append has set.npz\n");
        wait_for("out_b", "waits     another import --append has set.npz\n");
        close(held);
        assert_int_equal(program_finish(one), 0);
        assert_int_equal(program_finish(two), 0);
        same_files("set.npz", "whole.npz");
    }
}

// A file with a header alone has nothing newer, and does not keep others away. A night between two files is no hole.
static void empty_files_and_nights_are_no_fault(void **state) {
    (void)state;
    enum { N = 9000 };
    bar *bars = walk_bars(N, SPAN, 1);
    int kept = 0, night = 0;
    for (int i = 0; i < N; i++)
        if (bars[i].time % WHEN_DAY < 12 * WHEN_HOUR) bars[kept++] = bars[i];
    for (int i = kept - 200; !night; i++)
        if (bars[i].time - bars[i - 1].time > WHEN_HOUR) night = i;
    put_bars("m5.csv", bars, 0, night);
    assert_int_equal(RUN("import", "m5.csv", "--no-vector", "-o", "set.npz"), 0);
    put_bars("none.csv", bars, 0, 0);
    assert_int_equal(ADD("none.csv"), 0);
    matches("out", "^nothing newer in none[.]csv, which has a header but no rows\n$");
    assert_int_equal(RUN("import", "--append", "set.npz", "none.csv", "--json"), 0);
    matches("out", "^\\{\"set\": ?\"set.npz\", ?\"file\": ?\"none.csv\", ?\"new_bars\": ?0\\}\n$");
    REFUSED("none[.]csv: has a header but no rows; expected bars", "none.csv", "-o", "x.npz");
    put_bars("new.csv", bars, night, kept);
    assert_int_equal(RUN("import", "--append", "set.npz", "none.csv", "new.csv", "-o", "more.npz"), 0);
    matches("out", "\nnothing newer in none[.]csv, which has a header but no rows\n$");
    char *said = slurp("out");
    assert_null(strstr(said, "\nhole "));
    free(said);
    put_bars("new.csv", bars, night + 2, kept);
    assert_int_equal(RUN("import", "--append", "set.npz", "new.csv", "-o", "more.npz"), 0);
    matches("out",
        "\nhole +no bars from [0-9: -]+ to [0-9: -]+ UTC, with 2 missing in open hours; was the market closed[?]\n");
    free(bars);
}

// A link to a set stays one: the set that it names is the one that grows.
static void linked_sets_grow_in_their_place(void **state) {
    (void)state;
    bar *bars = walk_bars(BARS, SPAN, 1);
    struct stat st;
    put_bars("m5.csv", bars, 0, BARS - 2);
    assert_int_equal(mkdir("there", 0777), 0);
    assert_int_equal(RUN("import", "m5.csv", "-o", "there/real.npz"), 0);
    assert_int_equal(symlink("there/real.npz", "set.npz"), 0);
    put_bars("m5.csv", bars, 0, BARS);
    assert_int_equal(ADD("m5.csv"), 0);
    matches("out", "\nwritten +/[^\n]*/there/real[.]npz, ");
    assert_int_equal(lstat("set.npz", &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_int_equal(RUN("import", "m5.csv", "-o", "whole.npz"), 0);
    same_files("there/real.npz", "whole.npz");
    assert_int_equal(unlink("set.npz"), 0);
    assert_int_equal(symlink("nowhere.npz", "set.npz"), 0);
    complains(ADD("m5.csv"), "set[.]npz: is a link that leads nowhere; name the set itself");
    free(bars);
}

// Only the end of a file is read, and its report says so.
static void ends_of_files_are_told(void **state) {
    (void)state;
    bar *bars = walk_bars(BARS, SPAN, 1);
    put_bars("m5.csv", bars, 0, BARS - 1);
    assert_int_equal(RUN("import", "m5.csv", "-o", "set.npz"), 0);
    put_bars("more.csv", bars, 0, BARS);
    assert_int_equal(ADD("more.csv"), 0);
    matches(
        "out", "^more[.]csv: .*\n +bars +[0-9,]+  of [0-9,]+ rows at the end of the file; those before are known\n");
    matches("out", "\nstream +fast +1 new bar of 5 min behind ");
    free(bars);
}

// Sets when a file was written.
static void written_at(const char *path, int64_t time) {
    struct timespec both[2] = {{.tv_sec = time}, {.tv_sec = time}};
    assert_int_equal(utimensat(AT_FDCWD, path, both, 0), 0);
}

// A bar that was not over is left out and told; several in the future, or one far in it, are refused.
static void unfinished_bars_are_told(void **state) {
    (void)state;
    bar *bars = walk_bars(BARS, SPAN, 1);
    char want[128], last[32];
    put_bars("m5.csv", bars, 0, BARS);
    written_at("m5.csv", bars[BARS - 1].time + 10);
    assert_int_equal(RUN("import", "m5.csv", "-o", "set.npz"), 0);
    snprintf(want, sizeof want, "\n +bars +2,999  of 3,000 rows\n +time +[0-9: -]+ to %s UTC\n",
        when_text(last, sizeof last, bars[BARS - 2].time));
    matches("out", want);
    matches("out", "\n +left out +1  the last bar, which was not over when the file was written\n");
    put_text("run.yaml", "data: {bars: {fast: m5.csv}, windows: {fast: 4}}\nmodel: {kind: mlp, widths: 4}\n"
                         "train: {epochs: 1}\n");
    assert_int_equal(RUN("train", "run.yaml"), 0);
    snprintf(want, sizeof want, "\nbars +m5[.]csv: 2,999 bars of 5 min, [0-9: -]+ to %s UTC; 1 row left out", last);
    matches("out", want);
    matches("out", "\n +left out +1  the last bar, ");
    written_at("m5.csv", bars[BARS - 24].time);
    REFUSED("m5[.]csv:2979: 23 bars open after the file was written, up to 1[.]9[0-9]* h [(]is --tz missing.*--force "
            "future.*",
        "m5.csv", "-o", "more.npz");
    assert_int_equal(RUN("import", "m5.csv", "-o", "set.npz", "--force", "future"), 0);
    matches("out", "\nforced +kept although refused: future\n");
    bars[BARS - 1].time += 3650 * (int64_t)WHEN_DAY;
    put_bars("m5.csv", bars, 0, BARS);
    written_at("m5.csv", bars[BARS - 2].time + SPAN);
    REFUSED("m5[.]csv:3001: 1 bar opens after the file was written, up to 3[.e+0-9]+ days [(].*", "m5.csv", "-o",
        "more.npz");
    bars[BARS - 1].time = bars[BARS - 2].time + SPAN;
    bars[BARS - 1].volume = 1;
    put_bars("m5.csv", bars, 0, BARS);
    assert_int_equal(RUN("import", "m5.csv", "-o", "set.npz"), 0);
    matches("out", "\n +last bar +has hardly any volume and may be unfinished; kept\n");
    free(bars);
}

// Swapped columns, mixed rows and another clock have their own words.
static void odd_files_are_named(void **state) {
    (void)state;
    enum { N = 6000 };
    bar *bars = walk_bars(N, SPAN, 1);
    FILE *f = fopen("swapped.csv", "w"), *m = fopen("mixed.csv", "w");
    assert_true(f && m);
    fputs("time,open,high,low,close\n", f);
    fputs("time,open,high,low,close\n", m);
    for (int i = 0; i < N; i++) {
        const bar *b = &bars[i], *k = &bars[(long)i * (N - 7) % N];
        fprintf(f, "%lld,%.9g,%.9g,%.9g,%.9g\n", (long long)b->time, b->open, b->close, b->low, b->high);
        fprintf(m, "%lld,%.9g,%.9g,%.9g,%.9g\n", (long long)k->time, k->open, k->high, k->low, k->close);
    }
    fclose(f);
    fclose(m);
    free(bars);
    REFUSED(
        "swapped[.]csv:2: high or low does not enclose open and close in 5[0-9]+ of 6000 rows, .* look swapped: .*--"
        "columns.*",
        "swapped.csv", "-o", "set.npz");
    assert_int_equal(RUN("import", "swapped.csv", "--columns", "high=close,close=high", "-o", "set.npz"), 0);
    assert_int_equal(RUN("import", "mixed.csv", "--tz", "mt5", "-o", "set.npz"), 0);
    matches("out", "\n +order +mixed; sorted\n");
    matches("out", "\n +hours +Mon[^\n]+, on the file's clock\n");
}

// A symbol is of the files behind it.
static void symbols_have_files(void **state) {
    (void)state;
    walk_put("m5.csv", BARS, SPAN, 1);
    REFUSED("--symbol XAUUSD: stands behind the last file; put it before its files", "m5.csv", "--symbol", "XAUUSD",
        "-o", "set.npz");
    walk_put("short.csv", BARS - 400, SPAN, 2);
    assert_int_equal(RUN("import", "--symbol", "A", "m5.csv", "--symbol", "B", "short.csv", "-o", "set.npz"), 0);
    assert_int_equal(RUN("inspect", "set.npz"), 0);
    matches("out", "\nsymbols +A 3,000, B 2,600 bars\nnewest +A closed 20[0-9: -]+, B closed 20[0-9: -]+ UTC\n");
}

// An option that would change nothing is a mistake, not a wish that is passed over.
static void options_mean_something(void **state) {
    (void)state;
    walk_put("m5.csv", BARS, SPAN, 1);
    put_text("p.csv", "V1,V2,V3,V4,V5,V6\nA,1,2,3,4,5\n");
    put_windows("windows.npz");
    REFUSED("--band: means nothing to labels of barriers.*", "m5.csv", "-o", "s.npz", "--label", "barrier", "--band=3");
    REFUSED("--horizon: means nothing to labels of b.*", "m5.csv", "-o", "s.npz", "--label=barrier", "--horizon", "5");
    REFUSED("--limit: means nothing to labels of direction.*", "m5.csv", "-o", "s.npz", "--limit", "5");
    REFUSED("--strong: means nothing to 3 classes.*", "m5.csv", "-o", "s.npz", "--strong", "3");
    REFUSED("--names: means nothing to bars.*", "m5.csv", "-o", "s.npz", "--names", "fast=a");
    REFUSED("--tz: means nothing to windows.*", "windows.npz", "-o", "s.npz", "--tz", "mt5");
    REFUSED("--frames: means nothing to windows.*", "windows.npz", "-o", "s.npz", "--frames", "1h");
    REFUSED("--label: means nothing to windows.*", "windows.npz", "-o", "s.npz", "--label", "barrier");
    REFUSED("--classes 5: windows keep.*", "windows.npz", "-o", "s.npz", "--classes", "5");
    REFUSED("--tz: means nothing to a panel.*", "p.csv", "-o", "s.npz", "--tz", "mt5", "--horizon", "1");
    REFUSED("--frames needs a value; the next word is the option -o", "m5.csv", "--frames", "-o", "s.npz");
    REFUSED("--lable=barrier: not an option of import; did you mean --label\\?", "m5.csv", "-o", "s.npz",
        "--lable=barrier");
    assert_int_equal(RUN("import", "m5.csv", "-o", "s.npz", "--tz", "utc", "--volatility", "0", "--band", "0.5"), 0);
    matches("out", "\nunequal +100.0 % of the samples are NEUTRAL; are --band and --volatility right\\?\n");
    assert_int_equal(RUN("inspect", "s.npz"), 0);
    matches("out", "\nlabel +:+  all are NEUTRAL\n");
    matches("out", "\nprice +[^ ]+  [0-9.]+ to [0-9.]+\n");
}

// Bars of the slow file end long before the fast ones: what is warned of is also warned of with -q and --json.
static void warnings_are_never_lost(void **state) {
    (void)state;
    bar *bars = walk_bars(400, 3600, 1);
    walk_put("m5.csv", 6000, SPAN, 1);
    FILE *f = fopen("h1.csv", "w");
    assert_non_null(f);
    fputs("time,open,high,low,close\n", f);
    for (int i = 0; i < 250; i++)
        fprintf(f, "%lld,%.9g,%.9g,%.9g,%.9g\n", (long long)bars[i].time, bars[i].open, bars[i].high, bars[i].low,
            bars[i].close);
    fclose(f);
    free(bars);
    assert_int_equal(
        RUN("import", "m5.csv", "h1.csv", "-o", "s.npz", "--force", "agree,stale", "--label", "barrier"), 0);
    matches("out", "\nstale +[0-9,]+ samples see a bar of slow");
    matches("out", "\nleft out +[0-9,]+ bars at the beginning to warm up");
    assert_int_equal(RUN("import", "m5.csv", "h1.csv", "-o", "s.npz", "--force", "agree,stale", "-q"), 0);
    is_empty("out");
    matches("err", "^tradewind: stale: ");
    assert_int_equal(
        RUN("import", "m5.csv", "h1.csv", "-o", "s.npz", "--force", "agree,stale", "--label", "barrier", "--json"), 0);
    matches("out", "\"warning\": ?\"stale\"");
    matches("out", "\"warning\": ?\"forced\", ?\"text\": ?\"kept although refused: agree\"");
    matches("out", "\"left_out\": ?\\{\"warm_up\": ?[0-9]+");
    matches("out", "\"barriers\": ?\\{\"up\": ?[0-9]+");
    matches("out", "\"stream_names\": ?\\[\"fast\", ?\"slow\"\\]");
    matches("out", "\"span\": ?3600");
    put_text("p.csv", "V1,V2,V3,V4,V5,V6\nA,1,2,3,4,5\n");
    assert_int_equal(RUN("import", "p.csv", "-o", "s.npz", "--horizon", "1", "--json"), 0);
    matches("out", "\"format\": ?\"panel\", ?\"series\": ?1");
}

// Until the program catches SIGINT, as the kernel has it.
static void wait_until_it_watches(pid_t child) {
    char path[64], line[256];
    unsigned long long caught = 0;
    snprintf(path, sizeof path, "/proc/%ld/status", (long)child);
    for (int tries = 0; !(caught >> (SIGINT - 1) & 1) && tries < 5000; tries++, usleep(1000)) {
        FILE *f = fopen(path, "r");
        assert_non_null(f);
        while (fgets(line, sizeof line, f)) sscanf(line, "SigCgt: %llx", &caught);
        fclose(f);
    }
    assert_true(caught >> (SIGINT - 1) & 1);
}

// A signal ends the import of bars and of panels, and nothing is written.
static void signals_are_heard(void **state) {
    (void)state;
    walk_put("m1.csv", 400000, 60, 1);
    FILE *f = fopen("p.csv", "w");
    assert_non_null(f);
    for (int i = 0; i < 40000; i++) {
        fprintf(f, "S%d", i);
        for (int k = 0; k < 60; k++) fprintf(f, ",%d.%d", 100 + k, i % 97);
        fputc('\n', f);
    }
    fclose(f);
    const char *const *runs[] = {(const char *const[]){"import", "m1.csv", "--frames", "15m,1h", "-o", "s.npz", NULL},
        (const char *const[]){"import", "p.csv", "--horizon", "6", "-o", "s.npz", NULL}};
    put_text("out", ""), put_text("err", "");
    int before = files_here();
    for (int i = 0; i < 2; i++) {
        pid_t child = program_start("out", runs[i]);
        wait_until_it_watches(child);
        kill(child, i ? SIGTERM : SIGINT);
        assert_int_equal(program_finish(child), 1);
        matches("err", "^tradewind: stopped; nothing was written\n$");
        is_empty("out");
        assert_int_equal(files_here(), before);
    }
}

// Training

static void put_run(const char *data) {
    char text[512];
    snprintf(text, sizeof text,
        "data: {%s}\nmodel: {hidden: {fast: 4, slow: 4}}\ntrain: {epochs: 1, batch_size: 128}\nrun: {dir: made}\n",
        data);
    put_text("run.yaml", text);
}

// A dataset file and the same bars named in a description train to the same bits.
static void a_file_and_its_bars_are_the_same(void **state) {
    (void)state;
    walk_put("m5.csv", BARS, SPAN, 1);
    assert_int_equal(RUN("import", "m5.csv", "-o", "set.npz", "--frames", "1h"), 0);
    put_run("set: set.npz, windows: {fast: 20, slow: 8}");
    assert_int_equal(RUN("train", "run.yaml", "--device", "cpu"), 0);
    matches("out", "\nweights +made/best\\.safetensors\n");
    assert_int_equal(rename("made/best.safetensors", "kept"), 0);
    put_run("bars: {fast: m5.csv}, frames: [1h], windows: {fast: 20, slow: 8}");
    assert_int_equal(RUN("train", "run.yaml", "--device", "cpu"), 0);
    matches("out", "\nbars +m5\\.csv: 3,000 bars of 5 min, .* rows left out, .* gaps.*; zone UTC \\(assumed\\)\n");
    same_files("made/best.safetensors", "kept");
    assert_int_equal(RUN("train", "run.yaml", "--device", "cpu", "-v"), 0);
    matches("out", "\nm5\\.csv: .*bars of 5 min\n +bars +3,000");
    complains(RUN("train", "run.yaml", "data.windows.fsat=8"),
        "data.windows.fsat=8: .*no such stream; it has fast, slow; .*remove the key");
    put_run("bars: {fast: m5.csv, slow: h1.csv}, windows: {fast: 20, slow: 8}");
    complains(RUN("train", "run.yaml"), "run\\.yaml:1: data\\.bars: h1\\.csv: .*No such file.*; check the path, or set "
                                        "\\$TRADEWIND_DATA to the folder of the file");
    complains(RUN("train", "run.yaml", "data.bars.slow=/nowhere/h1.csv"), ".*/nowhere/h1\\.csv: .*; check the path");
    complains(RUN("train", "run.yaml", "data.set=set.npz"), "data.set=set\\.npz: .*data\\.bars is given too.*");
    put_text("single.yaml", "data: {bars: {fast: m5.csv}}\nmodel: {hidden: {fast: 4}}\n"
                            "train: {epochs: 1, batch_size: 128}\nrun: {dir: from_bars}\n");
    assert_int_equal(RUN("train", "single.yaml", "--device", "cpu"), 0);
    assert_int_equal(RUN("import", "m5.csv", "-o", "one.npz"), 0);
    put_text("one.yaml", "data: {set: one.npz}\nmodel: {hidden: {fast: 4}}\n"
                         "train: {epochs: 1, batch_size: 128}\nrun: {dir: from_file}\n");
    assert_int_equal(RUN("train", "one.yaml", "--device", "cpu"), 0);
    same_files("from_bars/best.safetensors", "from_file/best.safetensors");
    assert_int_equal(RUN("train", "from_bars/config.yaml", "run.dir=again", "--device", "cpu"), 0);
    same_files("from_bars/best.safetensors", "again/best.safetensors");
}

// Folded or not, on the device or gathered by the host: the same bits.
static void folded_and_unfolded_train_alike(void **state) {
    (void)state;
    put_windows("windows.npz");
    assert_int_equal(RUN("import", "windows.npz", "-o", "set.npz"), 0);
    matches("out", "stream +fast +1,500 windows of 10 steps, 3 columns: 1,509 rows in 1 run \\(x_fast\\)");
    matches("out", "classes +-1 .*, 0 .*, 1 ");
    assert_int_equal(RUN("inspect", "windows.npz"), 0);
    matches("out", "3 entries; not a dataset\n +x_fast +f32 +\\[1500, 10, 3\\]");
    put_text("run.yaml", "model: {hidden: {fast: 4}}\ntrain: {epochs: 1, batch_size: 128}\n");
    assert_int_equal(RUN("train", "run.yaml", "--device=cpu", "data.set=set.npz", "run.dir=folded"), 0);
    assert_int_equal(RUN("train", "run.yaml", "--device=cpu", "data.set=windows.npz", "run.dir=lying"), 0);
    assert_int_equal(
        RUN("train", "run.yaml", "--device=cpu", "data.set=set.npz", "run.dir=host", "data.residency=host"), 0);
    same_tensors("folded/best.safetensors", "lying/best.safetensors");
    same_files("folded/best.safetensors", "host/best.safetensors");
    assert_int_equal(RUN("train", "run.yaml", "--device=cpu", "data.set=set.npz", "run.dir=extra",
                         "data.windows.slow=20", "model.hidden.slow=16", "train.batch_size=4000"),
        0);
    matches("out", "\nunused +model\\.hidden\\.slow: .*\nunused +data\\.windows\\.slow: .*no such stream\n");
    matches("out", "\nbatch +4,000 samples a step, more than there are for training\n");
    complains(RUN("train", "run.yaml", "data.set=set.npz", "data.windows.fast=11"),
        "data\\.windows\\.fast=11: .*windows of 10 steps.*");
    complains(RUN("train", "run.yaml", "data.set=none.npz"), "data\\.set=none\\.npz: .*No such file.*, or set .*");
    complains(RUN("train", "run.yaml", "data.set=run.yaml"), "data\\.set=run\\.yaml: .*is not an \\.npz.*");
    assert_int_equal(RUN("import", "windows.npz", "--names", "target=x_strategy", "-o", "both.npz"), 0);
    assert_int_equal(
        RUN("train", "run.yaml", "data.set=both.npz", "train.loss=mae", "model.kind=nbeats", "run.dir=forecast"), 0);
    matches("out", "\nepoch +1  loss [0-9.e-]+  validation loss [0-9.e-]+  MAE [0-9.e-]+  RMSE [0-9.e-]+  sMAPE ");
    complains(RUN("train", "run.yaml", "data.set=both.npz", "train.loss=mae", "train.metric=owa"),
        "train\\.metric=owa: .*owa is for forecasts of series; use one of smape, mae, rmse, loss");
    REFUSED("set\\.npz: is a dataset already.*", "set.npz", "-o", "more.npz");
    REFUSED("windows\\.npz: is imported by itself.*", "windows.npz", "set.npz", "-o", "more.npz");
}

// Real files, where they are

static const char *real(const char *name, char *path, size_t room) {
    const char *folder = getenv("TRADEWIND_DATA");
    snprintf(path, room, "%s/%s", folder ? folder : TEST_DIR "/../../shared/data", name);
    return access(path, R_OK) == 0 ? path : NULL;
}

static void real_files_are_imported(void **state) {
    (void)state;
    static const char *const names[] = {"EURUSD_M5.csv", "EURUSD_hourly_pandas.csv", "XAUUSD_D1.csv", "XAUUSD_H1.csv",
        "XAUUSD_H4.csv", "XAUUSD_M15.csv", "XAUUSD_M5.csv"};
    char path[4096], slow[4096];
    if (!real("XAUUSD_M5.csv", path, sizeof path)) skip();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (!real(names[i], path, sizeof path)) continue;
        assert_int_equal(RUN("import", path, "-o", "set.npz"), 0);
        matches("out", "\nsamples +[0-9]");
    }
    real("XAUUSD_M5.csv", path, sizeof path);
    if (!real("XAUUSD_H1.csv", slow, sizeof slow)) skip();
    assert_int_equal(RUN("import", slow, path, "-o", "gold.npz"), 0);
    put_run("set: gold.npz");
    assert_int_equal(RUN("train", "run.yaml", "--device", "cpu"), 0);
    if (!real("M4-Weekly-train.csv", path, sizeof path)) skip();
    assert_int_equal(RUN("import", path, "-o", "m4.npz", "--horizon", "13"), 0);
    matches("out", "359 with .* the last 13 values of 359 series are held out");
}

// The volume of the last bar is judged by the set's bars where a file is short.
static void an_unfinished_bar_is_seen_in_a_short_file(void **state) {
    (void)state;
    FILE *all = fopen("all.csv", "w"), *more = fopen("more.csv", "w");
    assert_true(all && more);
    dice d = {.seed = 3};
    double close = 100;
    static const char head[] = "time,open,high,low,close,tick_volume\n";
    fputs(head, all), fputs(head, more);
    for (int i = 0; i < 1503; i++) {
        double open = close;
        close *= 1 + 0.001 * (double)dice_unit(&d);
        fprintf(i < 1500 ? all : more, "%d,%.5f,%.5f,%.5f,%.5f,%d\n", 1704067200 + 3600 * i, open,
            (open > close ? open : close) * 1.0001, (open < close ? open : close) * 0.9999, close,
            i == 1502 ? 3 : 1000);
    }
    assert_int_equal(fclose(all) | fclose(more), 0);
    assert_int_equal(RUN("import", "all.csv", "-o", "set.npz", "-q"), 0);
    assert_int_equal(RUN("import", "--append", "set.npz", "more.csv"), 0);
    matches("out", "\n +last bar +has hardly any volume and may be unfinished; kept\n");
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, support_enter, support_leave)
    program_use(TRADEWIND_BINARY);
    const struct CMUnitTest tests[] = {
        TEST(bars_need_no_options),
        TEST(options_are_taken),
        TEST(files_of_people_are_imported),
        TEST(panels_are_imported),
        TEST(mistakes_leave_nothing),
        TEST(checks_are_overruled_by_name),
        TEST(single_bars_are_added),
        TEST(bars_of_two_files_are_told_apart),
        TEST(wrong_files_are_not_added),
        TEST(damaged_sets_are_not_added_to),
        TEST(adding_twice_at_once_adds_both),
        TEST(empty_files_and_nights_are_no_fault),
        TEST(linked_sets_grow_in_their_place),
        TEST(ends_of_files_are_told),
        TEST(unfinished_bars_are_told),
        TEST(odd_files_are_named),
        TEST(symbols_have_files),
        TEST(options_mean_something),
        TEST(warnings_are_never_lost),
        TEST(signals_are_heard),
        TEST(a_file_and_its_bars_are_the_same),
        TEST(folded_and_unfolded_train_alike),
        TEST(real_files_are_imported),
        TEST(an_unfinished_bar_is_seen_in_a_short_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
