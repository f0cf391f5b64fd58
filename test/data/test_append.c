// Sets that go on: whatever the instruments, labels and the places at which the files were cut, adding the rest gives
// the bytes of importing all of it; and nothing of a sample that is known by then moves when the future changes.
#include "data/append.h"
#include "data/frame.h"
#include "data/latest.h"
#include "data/set.h"
#include "data/sources.h"
#include "data/walk.h"
#include "support.h"

#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

enum { N = 1400, SPAN = 300, SLOW = 3600, SYMBOLS = 3 };

static const char *const symbols[SYMBOLS] = {"AAA", "BBB", "CCC"};
static const char *const few_fast[] = {"log_return_1", "rsi_5", "volatility_10"}, *const few_slow[] = {
                                                                                      "return", "natr_5"};

// Bars of some instruments, which end at different times.
typedef struct {
    int count;
    bool slow; // with hours from a file of their own
    bar *fast[SYMBOLS], *hours[SYMBOLS];
    int64_t hour_count[SYMBOLS];
} market;

static market market_new(int count, bool slow, uint64_t seed) {
    market m = {.count = count, .slow = slow};
    err e = {0};
    for (int k = 0; k < count; k++) {
        m.fast[k] = walk_bars(N, SPAN, seed + (uint64_t)k);
        frame_source from = {m.fast[k], N, SPAN, false};
        support_ok(frame_make(&from, SLOW, "walk", &m.hours[k], &m.hour_count[k], &e), &e);
    }
    return m;
}

static void market_free(market *m) {
    for (int k = 0; k < m->count; k++) {
        free(m->fast[k]);
        free(m->hours[k]);
    }
}

static const char *file_of(char path[64], int k, bool slow) {
    snprintf(path, 64, "%s_%s.csv", symbols[k], slow ? "h1" : "m5");
    return path;
}

static void put(const char *path, const bar *bars, int64_t count) {
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs("time,open,high,low,close,tick_volume,spread\n", f);
    for (const bar *b = bars; b < bars + count; b++)
        fprintf(f, "%" PRId64 ",%.9g,%.9g,%.9g,%.9g,%.0f,%.0f\n", b->time, b->open, b->high, b->low, b->close,
            b->volume, b->spread);
    fclose(f);
}

// Writes what each file had when an instrument's fast bars were `cut` and its hours `hours` long.
static void put_files(const market *m, const int64_t *cut, const int64_t *hours) {
    char path[64];
    for (int k = 0; k < m->count; k++) {
        put(file_of(path, k, false), m->fast[k], cut[k]);
        if (m->slow) put(file_of(path, k, true), m->hours[k], hours[k]);
    }
}

static int list_files(const market *m, source_ask *ask, char (*path)[64]) {
    int n = 0;
    for (int k = 0; k < m->count; k++)
        for (int slow = 0; slow <= m->slow; slow++, n++)
            ask[n] = (source_ask){file_of(path[n], k, slow), m->count > 1 ? symbols[k] : NULL, NULL};
    return n;
}

static bars_options reading = {.written = INT64_MAX, .force = BARS_FORCE_THIN};

static void import_all(const market *m, const build_options *o, const char *out) {
    source_ask ask[2 * SYMBOLS];
    char path[2 * SYMBOLS][64];
    const char *const frames[] = {"1h"};
    sources s;
    err e = {0};
    int n = list_files(m, ask, path);
    support_ok(sources_read(&s, ask, n, &reading, frames, !m->slow, &e), &e);
    for (int i = 0; i < 2; i++) {
        s.build.frame[i].features = i ? few_slow : few_fast;
        s.build.frame[i].feature_count = i ? 2 : 3;
    }
    dataset *d = build_bars(&s.build, o, NULL, NULL, &e);
    support_ok(d && dataset_check(d, "built", &e), &e);
    json_t *about = sources_about(&s, o, &reading);
    support_ok(set_write(d, about, out, &e), &e);
    json_decref(about);
    dataset_free(d);
    sources_done(&s);
}

static void append_all(const market *m, const char *set, const char *out) {
    source_ask ask[2 * SYMBOLS];
    char path[2 * SYMBOLS][64];
    sources s;
    err e = {0};
    build_options o;
    bars_options how = reading;
    dataset *old = set_open(set, &e);
    support_ok(old != NULL, &e);
    support_ok(append_options(old, &o, &how, &e), &e);
    support_ok(sources_follow(&s, old, ask, list_files(m, ask, path), &how, &e), &e);
    dataset *d = build_bars(&s.build, &o, old, NULL, &e);
    support_ok(d && dataset_check(d, "appended", &e), &e);
    json_t *about = append_about(old, d, s.forced);
    support_ok(set_write(d, about, out, &e), &e);
    json_decref(about);
    dataset_free(d);
    sources_done(&s);
    dataset_free(old);
}

static void same_files(const char *a, const char *b) {
    size_t bytes[2];
    char *data[2];
    for (int i = 0; i < 2; i++) {
        FILE *f = fopen(i ? b : a, "rb");
        assert_non_null(f);
        fseek(f, 0, SEEK_END);
        bytes[i] = (size_t)ftell(f);
        rewind(f);
        data[i] = malloc(bytes[i]);
        assert_non_null(data[i]);
        assert_int_equal(fread(data[i], 1, bytes[i], f), bytes[i]);
        fclose(f);
    }
    assert_int_equal(bytes[0], bytes[1]);
    assert_memory_equal(data[0], data[1], bytes[0]);
    free(data[0]);
    free(data[1]);
}

static build_options options_of(int trial) {
    build_options o = build_defaults;
    o.label = (build_label)(trial % 3);
    o.direction.horizon = 1 + trial % 5;
    o.direction.volatility_bars = trial % 4 ? 20 : 0;
    o.direction.band = 0.3;
    o.barrier.volatility_bars = 20;
    o.barrier.limit = 9;
    o.horizon = 4;
    o.value = (label_value)(trial / 3 % 3);
    o.vector = trial % 2 == 0;
    o.compact = trial % 4 == 2;
    return o;
}

static void adding_is_importing_all(void **state) {
    (void)state;
    dice d = {.seed = 71};
    int trials = support_sanitized() ? 8 : 30;
    for (int trial = 0; trial < trials; trial++) {
        build_options o = options_of(trial);
        market m = market_new(1 + trial % SYMBOLS, trial % 2, 80 + (uint64_t)trial);
        int64_t cut[SYMBOLS], hours[SYMBOLS], least = o.vector ? 900 : 600;
        for (int k = 0; k < m.count; k++) {
            // Some files end in the middle, some with all, and hours behind or before the fast bars.
            cut[k] = trial % 5 == 4 && k ? N : least + (int64_t)dice_below(&d, (uint64_t)(N - least));
            hours[k] = m.hour_count[k] / 2 + (int64_t)dice_below(&d, (uint64_t)(m.hour_count[k] / 2));
        }
        put_files(&m, cut, hours);
        import_all(&m, &o, "part.npz");
        for (int k = 0; k < m.count; k++) cut[k] += (int64_t)dice_below(&d, (uint64_t)(N - cut[k]) + 1);
        put_files(&m, cut, hours);
        append_all(&m, "part.npz", "more.npz"); // in two steps, the first of which may add nothing
        for (int k = 0; k < m.count; k++) {
            cut[k] = N;
            hours[k] = m.hour_count[k];
        }
        put_files(&m, cut, hours);
        append_all(&m, "more.npz", "more.npz");
        import_all(&m, &o, "whole.npz");
        same_files("more.npz", "whole.npz");
        market_free(&m);
    }
}

// Files as users have them: a date and a time in columns of their own, clocks behind UTC, instruments one behind the
// other, a block out of place at the end.
typedef enum { DATE_AND_TIME, BEHIND_UTC, GROUPED, OUT_OF_PLACE, KINDS } file_kind;

static void print_rows(FILE *f, file_kind kind, const char *symbol, const bar *bars, int64_t from, int64_t to) {
    for (const bar *b = bars + from; b < bars + to; b++) {
        time_t moment = (time_t)(b->time - (kind == BEHIND_UTC ? 5 * 3600 : 0));
        struct tm parts;
        char when[32];
        gmtime_r(&moment, &parts);
        strftime(when, sizeof when, kind == DATE_AND_TIME ? "%Y.%m.%d\t%H:%M:%S" : "%Y-%m-%d %H:%M:%S", &parts);
        if (kind == GROUPED) fprintf(f, "%s,", symbol);
        fprintf(f, kind == DATE_AND_TIME ? "%s\t%.9g\t%.9g\t%.9g\t%.9g\t%.0f\n" : "%s,%.9g,%.9g,%.9g,%.9g,%.0f\n", when,
            b->open, b->high, b->low, b->close, b->volume);
    }
}

static void put_kind(const char *path, file_kind kind, bar *const *bars, int64_t count) {
    static const char *const heads[KINDS] = {"<DATE>\t<TIME>\t<OPEN>\t<HIGH>\t<LOW>\t<CLOSE>\t<TICKVOL>",
        "time,open,high,low,close,volume", "symbol,time,open,high,low,close,volume", "time,open,high,low,close,volume"};
    int64_t first = kind == OUT_OF_PLACE ? 20 : 0, late = kind == OUT_OF_PLACE ? 60 : 0;
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fprintf(f, "%s\n", heads[kind]);
    for (int k = 0; k <= (kind == GROUPED); k++) {
        print_rows(f, kind, symbols[k], bars[k], 0, first);
        print_rows(f, kind, symbols[k], bars[k], late, count);
        print_rows(f, kind, symbols[k], bars[k], first, late);
    }
    fclose(f);
}

static void make_kind(file_kind kind, const char *old_set, const char *out) {
    bars_options how = {.written = INT64_MAX, .force = BARS_FORCE_THIN, .tz = kind == BEHIND_UTC ? "EST" : NULL};
    source_ask ask = {"bars.csv", NULL, NULL};
    build_options o = options_of(1);
    sources s;
    err e = {0};
    dataset *old = old_set ? set_open(old_set, &e) : NULL;
    if (old) support_ok(append_options(old, &o, &how, &e), &e);
    support_ok(old ? sources_follow(&s, old, &ask, 1, &how, &e) : sources_read(&s, &ask, 1, &how, NULL, 0, &e), &e);
    if (!old) s.build.frame[0].features = few_fast;
    if (!old) s.build.frame[0].feature_count = 3;
    dataset *d = build_bars(&s.build, &o, old, NULL, &e);
    support_ok(d != NULL, &e);
    json_t *about = old ? append_about(old, d, s.forced) : sources_about(&s, &o, &how);
    support_ok(set_write(d, about, out, &e), &e);
    json_decref(about);
    dataset_free(d);
    sources_done(&s);
    dataset_free(old);
}

static void every_kind_of_file_is_followed(void **state) {
    (void)state;
    enum { MINUTES = 3 * N };
    static const int64_t cuts[] = {700, 1500, 2000, 3700};
    bar *bars[2] = {walk_bars(MINUTES, 60, 85), walk_bars(MINUTES, 60, 86)};
    for (int i = 0; i < 4 * KINDS; i++) {
        file_kind kind = (file_kind)(i / 4);
        put_kind("bars.csv", kind, bars, cuts[i % 4]);
        make_kind(kind, NULL, "part.npz");
        put_kind("bars.csv", kind, bars, MINUTES);
        make_kind(kind, "part.npz", "more.npz");
        make_kind(kind, NULL, "whole.npz");
        same_files("more.npz", "whole.npz");
    }
    free(bars[0]);
    free(bars[1]);
}

// Bars that are not the set's own are refused.
static void other_bars_are_refused(void **state) {
    (void)state;
    market m = market_new(2, true, 90);
    build_options o = options_of(3), got;
    bars_options how = reading;
    source_ask ask[2 * SYMBOLS];
    char path[2 * SYMBOLS][64], *last;
    sources s;
    err e = {0};
    int64_t cut[] = {1000, 1000}, hours[] = {80, 80};
    put_files(&m, cut, hours);
    import_all(&m, &o, "set.npz");
    dataset *old = set_open("set.npz", &e);
    support_ok(old && append_options(old, &got, &how, &e), &e);
    int n = list_files(&m, ask, path);
    m.fast[0][999].close *= 1.0001;
    m.fast[0][999].high = m.fast[0][999].close * 1.01;
    put(path[0], m.fast[0], N);
    assert_false(sources_follow(&s, old, ask, n, &how, &e));
    assert_non_null(strstr(e.text, "differs from the one in set.npz (close "));
    assert_non_null(strstr(e.text, ": was that one saved before it was over?; import all bars anew"));
    ask[0].symbol = "ZZZ";
    assert_false(sources_follow(&s, old, ask, 1, &how, &e));
    assert_non_null(strstr(e.text, "ZZZ is not in set.npz"));
    ask[0].symbol = NULL;
    assert_false(sources_follow(&s, old, ask, 1, &how, &e));
    assert_non_null(strstr(e.text, "say which instrument of set.npz it is: --symbol NAME"));
    // Bars of another level that do not reach back, and bars that reach back and lack the last one.
    bar *far = malloc(200 * sizeof *far);
    assert_non_null(far);
    memcpy(far, m.fast[0] + 1100, 200 * sizeof *far);
    for (int i = 0; i < 200; i++) far[i].open *= 3, far[i].high *= 3, far[i].low *= 3, far[i].close *= 3;
    put(path[0], far, 200);
    ask[0].symbol = symbols[0];
    assert_false(sources_follow(&s, old, ask, 1, &how, &e));
    assert_non_null(strstr(e.text, "times the set's last, as after a split of 1:3"));
    free(far);
    memmove(m.fast[0] + 999, m.fast[0] + 1000, 300 * sizeof *m.fast[0]);
    put(path[0], m.fast[0], 1299);
    assert_false(sources_follow(&s, old, ask, 1, &how, &e));
    assert_non_null(strstr(e.text, "the last one in set.npz; import all bars anew"));
    walk_put("m15.csv", 300, 900, 5);
    ask[0] = (source_ask){"m15.csv", symbols[0], NULL};
    assert_false(sources_follow(&s, old, ask, 1, &how, &e));
    assert_non_null(last = strstr(e.text, "is not made of such files"));
    dataset_free(old);
    market_free(&m);
}

// The newest file of a set of one instrument: every bar in it that the set has, or should have, is looked at.
static void refuses(const dataset *old, const bar *bars, int64_t count, unsigned force, const char *text) {
    bars_options how = {.written = INT64_MAX, .force = force};
    sources s;
    err e = {0};
    put("new.csv", bars, count);
    bool ok = sources_follow(&s, old, &(source_ask){"new.csv", NULL, NULL}, 1, &how, &e);
    if (ok && text) fail_msg("no refusal with \"%s\"", text);
    if (text && !strstr(e.text, text)) fail_msg("\"%s\" is not in \"%s\"", text, e.text);
    if (!text) support_ok(ok, &e);
    if (ok) sources_done(&s);
}

static void known_bars_are_compared(void **state) {
    (void)state;
    enum { KNOWN = 1000 };
    market m = market_new(1, false, 93);
    build_options o = options_of(1);
    err e = {0};
    int64_t cut[] = {KNOWN}, hours[] = {0};
    bar *b = m.fast[0], *kept = malloc(N * sizeof *kept);
    assert_non_null(kept);
    memcpy(kept, b, N * sizeof *b);
    put_files(&m, cut, hours);
    import_all(&m, &o, "set.npz");
    dataset *old = set_open("set.npz", &e);
    support_ok(old != NULL, &e);
    refuses(old, b, N, 0, NULL);
    // Older bars that changed, also where nothing is newer; the dataset's stay where that is overruled.
    b[KNOWN - 50].volume += 1;
    b[KNOWN - 40].close = b[KNOWN - 40].low;
    refuses(old, b, N, 0, "new.csv: 2 of its bars differ from those in set.npz, of ");
    refuses(old, b, KNOWN, 0, "; import all bars anew, or keep it with --force conflicts");
    refuses(old, b, N, BARS_FORCE_CONFLICTS, NULL);
    for (int i = 0; i < N; i++) b[i].open /= 1500, b[i].high /= 1500, b[i].low /= 1500, b[i].close /= 1500;
    refuses(old, b, N, 0, " (is it another instrument?); give the set's own bars");
    refuses(old, b, KNOWN, BARS_FORCE_CONFLICTS, " (is it another instrument?)");
    // A file with nothing for the set: it ended before the set began.
    for (int i = 0; i < N; i++) b[i].time -= 30 * 86400;
    refuses(old, b, 200, 0, ", none of its newest bars is in set.npz, and none is newer; is it the right file?");
    dataset_free(old);
    // A set with a hole lacks bars of the file.
    memcpy(b, kept, N * sizeof *b);
    memmove(b + 950, b + 980, (N - 980) * sizeof *b);
    put_files(&m, cut, hours);
    import_all(&m, &o, "set.npz");
    support_ok((old = set_open("set.npz", &e)) != NULL, &e);
    refuses(old, b, N - 30, 0, NULL);
    refuses(old, kept, N, 0, "new.csv: has 30 bars that set.npz lacks, from 2024-01-");
    refuses(old, kept, N, BARS_FORCE_THIN, NULL);
    dataset_free(old);
    free(kept);
    market_free(&m);
}

static void scale(bar *b, int64_t count, double by) {
    for (int64_t i = 0; i < count; i++) b[i].open *= by, b[i].high *= by, b[i].low *= by, b[i].close *= by;
}

// Prices of new bars are judged with the dataset's before them, however few are new and wherever their file begins.
static void added_prices_are_judged(void **state) {
    (void)state;
    enum { KNOWN = 1000 };
    static const int64_t counts[] = {1, 3, 24, 100, 300}, reach[] = {0, 1, 64};
    market m = market_new(1, false, 93);
    build_options o = options_of(1);
    err e = {0};
    int64_t cut[] = {KNOWN}, hours[] = {0};
    bar *b = m.fast[0], kept[N];
    memcpy(kept, b, sizeof kept);
    put_files(&m, cut, hours);
    import_all(&m, &o, "set.npz");
    dataset *old = set_open("set.npz", &e);
    support_ok(old != NULL, &e);
    for (int i = 0; i < 15; i++) {
        int64_t n = counts[i % 5], before = reach[i / 5];
        bar *from = b + KNOWN - before;
        refuses(old, from, before + n, 0, NULL);
        scale(b + KNOWN, n, 0.5001);
        refuses(old, from, before + n, 0, " times the set's last, as after a split of 2:1, or news; use adjusted ");
        refuses(old, from, before + n, BARS_FORCE_SPLITS, NULL);
        memcpy(b, kept, sizeof kept);
        scale(b + KNOWN, n, 2. / 3);
        refuses(old, from, before + n, 0, "as after a split of 3:2");
        memcpy(b, kept, sizeof kept);
        scale(b + KNOWN, n, 1.72);
        refuses(
            old, from, before + n, 0, "the set's last (is it another instrument, or was there news?); give its own");
        memcpy(b, kept, sizeof kept);
        scale(b + KNOWN + n - 1, 1, 10);
        refuses(old, from, before + n, 0, "decimal point is in the wrong place");
        refuses(old, from, before + n, BARS_FORCE_SLIPS, NULL);
        memcpy(b, kept, sizeof kept);
    }
    // A wick is noted.
    bars_options how = {.written = INT64_MAX};
    sources s;
    b[KNOWN + 1].high *= 3;
    put("new.csv", b + KNOWN, 2);
    support_ok(sources_follow(&s, old, &(source_ask){"new.csv", NULL, NULL}, 1, &how, &e), &e);
    const bars_report *r = &s.file[0].bars.report;
    assert_int_equal(r->tally[BARS_WICK].count, 1);
    assert_int_equal(r->wick_line, 3);
    assert_true(r->wick > 2.9 && r->wick < 3.1);
    sources_done(&s);
    dataset_free(old);
    market_free(&m);
}

// Coarser bars that are added agree with the finest ones, also where there are few of them.
static void added_frames_agree(void **state) {
    (void)state;
    enum { MANY = 4000, KNOWN = 250 };
    market m = {.count = 1, .slow = true, .fast = {walk_bars(MANY, SPAN, 94)}};
    build_options o = options_of(1);
    bars_options how = {.written = INT64_MAX};
    source_ask ask[2];
    char path[2][64];
    sources s;
    err e = {0};
    frame_source from = {m.fast[0], MANY, SPAN, false};
    support_ok(frame_make(&from, SLOW, "walk", &m.hours[0], &m.hour_count[0], &e), &e);
    int64_t cut[] = {0}, hours[] = {KNOWN}, count = m.hour_count[0];
    while (m.fast[0][cut[0]].end <= m.hours[0][KNOWN - 1].end) cut[0]++;
    put_files(&m, cut, hours);
    import_all(&m, &o, "set.npz");
    dataset *old = set_open("set.npz", &e);
    support_ok(old != NULL, &e);
    int n = list_files(&m, ask, path);
    put(path[0], m.fast[0], MANY);
    for (int few = 0; few < 3; few++) {
        static const char *const why[] = {"its closes fit those of AAA_m5.csv when it is moved by -2 h; ",
            "newest closes are not those of AAA_m5.csv, ", "its newest 5 closes are not those of AAA_m5.csv; "};
        int64_t fresh = few == 0 ? count - hours[0] : few == 1 ? 15 : 5;
        bar *late = malloc((size_t)fresh * sizeof *late);
        assert_non_null(late);
        memcpy(late, m.hours[0] + hours[0], (size_t)fresh * sizeof *late);
        put(path[1], late, fresh);
        support_ok(sources_follow(&s, old, ask, n, &how, &e), &e);
        sources_done(&s);
        for (int i = 0; i < fresh; i++) late[i].time += 2 * SLOW;
        put(path[1], late, fresh);
        assert_false(sources_follow(&s, old, ask, n, &how, &e));
        if (!strstr(e.text, why[few])) fail_msg("\"%s\" is not in \"%s\"", why[few], e.text);
        how.force = BARS_FORCE_AGREE;
        support_ok(sources_follow(&s, old, ask, n, &how, &e), &e);
        assert_int_equal(s.forced, BARS_FORCE_AGREE);
        sources_done(&s);
        how.force = 0;
        free(late);
    }
    dataset_free(old);
    market_free(&m);
}

// A bar that was not over when its file was written is left out, and comes with the next file.
static void unfinished_bars_come_later(void **state) {
    (void)state;
    enum { KNOWN = 1000 };
    market m = market_new(1, false, 98);
    build_options o = options_of(1);
    int64_t cut[] = {KNOWN}, hours[] = {0};
    bar *b = m.fast[0], whole = b[KNOWN - 1];
    b[KNOWN - 1].close = b[KNOWN - 1].high = b[KNOWN - 1].low = b[KNOWN - 1].open;
    reading.written = b[KNOWN - 1].time + 10;
    put_files(&m, cut, hours);
    import_all(&m, &o, "part.npz");
    b[KNOWN - 1] = whole;
    cut[0] = N;
    reading.written = INT64_MAX;
    put_files(&m, cut, hours);
    append_all(&m, "part.npz", "more.npz");
    import_all(&m, &o, "whole.npz");
    same_files("more.npz", "whole.npz");
    market_free(&m);
}

// The newest moment of the coarser stream that is late, and only that.
static void late_streams_are_told(void **state) {
    (void)state;
    market m = market_new(1, true, 99);
    build_options o = options_of(1);
    err e = {0};
    char text[192];
    for (int64_t short_of = 0; short_of < 3; short_of++) {
        int64_t cut[] = {N - 1}, hours[] = {0};
        while (hours[0] < m.hour_count[0] && m.hours[0][hours[0]].end <= m.fast[0][N - 2].end) hours[0]++;
        hours[0] -= short_of;
        put_files(&m, cut, hours);
        import_all(&m, &o, "set.npz");
        dataset *d = set_open("set.npz", &e);
        support_ok(d != NULL, &e);
        assert_false(latest_is_late(d, 0, 0, text, sizeof text));
        assert_int_equal(latest_is_late(d, 0, 1, text, sizeof text), short_of > 0);
        if (short_of) assert_non_null(strstr(text, "slow: newest bar closed 2024-01-"));
        if (short_of) assert_non_null(strstr(text, " h before the newest fast bar"));
        dataset_free(d);
    }
    market_free(&m);
}

// Frames that are made, up to months.

static void make_frames(const char *old_set, const char *out) {
    static const char *const frames[] = {"1d", "1w", "1mo"}, *const feature[] = {"return"};
    bars_options how = reading;
    build_options o = options_of(1);
    source_ask ask = {"bars.csv", NULL, NULL};
    sources s;
    err e = {0};
    dataset *old = old_set ? set_open(old_set, &e) : NULL;
    if (old) support_ok(append_options(old, &o, &how, &e), &e);
    support_ok(old ? sources_follow(&s, old, &ask, 1, &how, &e) : sources_read(&s, &ask, 1, &how, frames, 3, &e), &e);
    for (int i = 0; !old && i < s.build.frames; i++) {
        s.build.frame[i].features = feature;
        s.build.frame[i].feature_count = 1;
    }
    dataset *d = build_bars(&s.build, &o, old, NULL, &e);
    support_ok(d && dataset_check(d, "built", &e), &e);
    json_t *about = old ? append_about(old, d, s.forced) : sources_about(&s, &o, &how);
    support_ok(set_write(d, about, out, &e), &e);
    char text[192];
    for (int i = 0; i < d->streams; i++) assert_false(latest_is_late(d, 0, i, text, sizeof text));
    json_decref(about);
    dataset_free(d);
    sources_done(&s);
    dataset_free(old);
}

static void days_weeks_and_months_go_on(void **state) {
    (void)state;
    enum { HOURS = 3500 };
    bar *b = walk_bars(HOURS, SLOW, 96);
    dice d = {.seed = 72};
    for (int trial = 0; trial < 8; trial++) {
        int64_t cut = 2200 + (int64_t)dice_below(&d, 700), more = cut + 1 + (int64_t)dice_below(&d, HOURS - 2900);
        if (trial == 0)                                        // the last bar of a month is the first that is added
            for (cut = 2200; b[cut].time < 1714521600;) cut++; // 2024-05-01
        put("bars.csv", b, cut - (trial == 0));
        make_frames(NULL, "part.npz");
        put("bars.csv", b, trial == 0 ? cut : more);
        make_frames("part.npz", "more.npz");
        put("bars.csv", b, HOURS);
        make_frames("more.npz", "more.npz");
        make_frames(NULL, "whole.npz");
        same_files("more.npz", "whole.npz");
    }
    free(b);
}

// The future

// Bars turned upside down around a price, so that they go on from it another way.
static void turn_over(bar *b, int64_t count, double around) {
    double by = around * around;
    for (int64_t i = 0; i < count; i++) {
        double high = by / b[i].low;
        b[i].open = by / b[i].open;
        b[i].low = by / b[i].high;
        b[i].high = high;
        b[i].close = by / b[i].close;
        b[i].volume += 7;
    }
}

// Samples of two sets that were known by a moment: rows, vector and price are the same, and labels that were known too.
static void same_past(const dataset *a, const dataset *b, int64_t moment) {
    float x[512], y[512];
    int64_t compared = 0;
    for (int64_t i = 0; i < a->samples && a->time[i] <= moment; i++, compared++) {
        assert_int_equal(a->time[i], b->time[i]);
        assert_true(a->price[i] == b->price[i]);
        if (a->end[i] <= moment) assert_int_equal(a->label[i], b->label[i]);
        for (int k = 0; k < a->streams; k++) {
            const stream *s = &a->stream[k], *t = &b->stream[k];
            assert_int_equal(s->row[i], t->row[i]);
            table_read(&s->series, s->row[i], 1, x);
            table_read(&t->series, t->row[i], 1, y);
            assert_memory_equal(x, y, (size_t)s->series.width * sizeof *x);
        }
        if (!a->vector.width) continue;
        table_read(&a->vector, i, 1, x);
        table_read(&b->vector, i, 1, y);
        assert_memory_equal(x, y, (size_t)a->vector.width * sizeof *x);
    }
    assert_true(compared > 50);
}

static void the_future_moves_nothing(void **state) {
    (void)state;
    enum { KNOWN = 1100 };
    for (int trial = 0; trial < 4; trial++) {
        market m = market_new(1, false, 101 + (uint64_t)trial);
        build_options o = options_of(6 * trial); // directions, with the vector
        err e = {0};
        int64_t cut[] = {KNOWN + 17 * trial}, hours[] = {0}, known = cut[0];
        put_files(&m, cut, hours);
        import_all(&m, &o, "part.npz");
        cut[0] = N;
        put_files(&m, cut, hours);
        append_all(&m, "part.npz", "one.npz");
        turn_over(m.fast[0] + known, N - known, m.fast[0][known - 1].close);
        put_files(&m, cut, hours);
        append_all(&m, "part.npz", "other.npz");
        dataset *a = set_open("one.npz", &e), *b = set_open("other.npz", &e);
        support_ok(a && b, &e);
        same_past(a, b, m.fast[0][known - 1].end);
        bar last = dataset_bar(&a->stream[0].bars, N - 1), turned = dataset_bar(&b->stream[0].bars, N - 1);
        assert_true(last.close != turned.close);
        dataset_free(a);
        dataset_free(b);
        market_free(&m);
    }
}

// Sets that contradict themselves

// Goes on from a set, as far as it is believed.
static bool goes_on(const market *m, const dataset *old) {
    source_ask ask[2 * SYMBOLS];
    char path[2 * SYMBOLS][64];
    build_options o;
    bars_options how = reading;
    sources s;
    err e = {0};
    if (!append_options(old, &o, &how, &e)) return false;
    if (!sources_follow(&s, old, ask, list_files(m, ask, path), &how, &e)) return false;
    dataset *d = build_bars(&s.build, &o, old, NULL, &e);
    bool ok = d != NULL;
    dataset_free(d);
    sources_done(&s);
    return ok;
}

static void damaged_sets_are_refused(void **state) {
    (void)state;
    market m = market_new(2, true, 91);
    build_options o = options_of(6); // directions, a compact vector
    err e = {0};
    int64_t cut[] = {1000, 1000}, hours[] = {80, 80};
    put_files(&m, cut, hours);
    import_all(&m, &o, "set.npz");
    cut[0] = cut[1] = N;
    put_files(&m, cut, hours);
    dataset *old = set_open("set.npz", &e);
    support_ok(old && goes_on(&m, old), &e);
    const char *const names[] = {"BBB", "AAA"};
    int64_t times[2 * N];
    memcpy(times, old->stream[1].bars.time, sizeof *times * 2 * (size_t)old->stream[1].bars.count);
    times[7] = INT64_MAX;
    dataset x[11];
    for (int i = 0; i < 11; i++) x[i] = *old;
    x[0].streams = 5;
    x[1].span[1] = x[1].span[0];
    x[2].panel_names = names;
    x[3].stream[1].series.columns = NULL;
    x[4].stream[1].series.part[0].type = COLUMN_F16;
    x[5].vector.parts = 1;
    x[6].label = NULL;
    x[7].volatility = NULL;
    x[8].end = NULL;
    x[9].stream[1].bars.time = times;
    x[10].states--;
    for (int i = 0; i < 11; i++) assert_false(goes_on(&m, &x[i]));
    // Some are no dataset at all.
    int64_t other[] = {0, 1, old->stream[0].series.rows}, none[] = {0, 0, old->stream[1].bars.count};
    for (int i = 0; i < 3; i++) x[i] = *old;
    x[0].panel_first = other;
    x[1].stream[1].bars.count = 0;
    x[2].stream[1].bars.start = none;
    support_ok(dataset_check(old, "set.npz", &e), &e);
    for (int i = 0; i < 3; i++) assert_false(dataset_check(&x[i], "set.npz", &e));
    dataset_free(old);
    market_free(&m);
}

// Checks that a set says were overruled are overruled for what follows.
static void overruled_checks_come_back(void **state) {
    (void)state;
    unsigned all = (1u << BARS_FORCES) - 1;
    market m = market_new(1, false, 91);
    build_options o = options_of(1);
    char words[256];
    err e = {0};
    int64_t cut[] = {N}, hours[] = {0};
    put_files(&m, cut, hours);
    import_all(&m, &o, "set.npz");
    for (int i = 0; i <= BARS_FORCES; i++) {
        unsigned want = i < BARS_FORCES ? 1u << i : all;
        bars_options how = {0};
        dataset *old = set_open("set.npz", &e);
        support_ok(old != NULL, &e);
        json_object_set_new(old->about, "forced", json_string(bars_force_text(words, sizeof words, want)));
        support_ok(append_options(old, &o, &how, &e), &e);
        assert_int_equal(how.force, want);
        dataset_free(old);
    }
    market_free(&m);
}

// Whatever the numbers of a state are, nothing outside of it is touched.
static void damaged_states_are_harmless(void **state) {
    (void)state;
    static const double wrong[] = {-1, 1, 5, 10, 20, 100, 1e9, 1e300, NAN};
    market m = market_new(1, false, 92);
    build_options o = options_of(1);
    err e = {0};
    int64_t cut[] = {N - 80}, hours[] = {0};
    put_files(&m, cut, hours);
    import_all(&m, &o, "set.npz");
    cut[0] = N;
    put_files(&m, cut, hours);
    dataset *old = set_open("set.npz", &e);
    support_ok(old != NULL, &e);
    double *numbers = malloc((size_t)old->states * sizeof *numbers);
    assert_non_null(numbers);
    dataset x = *old;
    x.state = numbers;
    for (int64_t i = 0; i < old->states; i++) {
        memcpy(numbers, old->state, (size_t)old->states * sizeof *numbers);
        numbers[i] = wrong[i % 9];
        goes_on(&m, &x);
    }
    for (int k = 0; k < 9; k++) {
        for (int64_t i = 0; i < old->states; i++) numbers[i] = wrong[k];
        goes_on(&m, &x);
    }
    free(numbers);
    dataset_free(old);
    market_free(&m);
}

// Samples of several instruments

static void samples_are_in_order_of_close_and_symbol(void **state) {
    (void)state;
    market m = market_new(SYMBOLS, false, 95);
    build_options o = options_of(0);
    err e = {0};
    int64_t cut[] = {N, N - 200, N - 50}, hours[] = {0, 0, 0};
    put_files(&m, cut, hours);
    import_all(&m, &o, "set.npz");
    dataset *d = set_open("set.npz", &e);
    support_ok(d != NULL, &e);
    assert_int_equal(d->panel, SYMBOLS);
    for (int64_t i = 0; i < dataset_all(d); i++) {
        int64_t series = dataset_panel_of(d, i), at = dataset_bar_of(d, i);
        const stream *s = &d->stream[0];
        bar b = dataset_bar(&s->bars, at);
        assert_int_equal(b.end, d->time[i]);
        assert_true(d->price[i] == (float)b.close);
        assert_int_equal(s->first[i], s->start[series]);
        // The bar is one of its own instrument.
        assert_int_equal(b.time, m.fast[series][at - s->bars.start[series]].time);
        for (int k = 1; k < d->streams; k++) {
            assert_int_equal(d->stream[k].first[i], d->stream[k].start[series]);
            assert_true(d->stream[k].row[i] < d->stream[k].start[series + 1]);
        }
        if (!i || i == d->samples) continue;
        int64_t before = dataset_panel_of(d, i - 1);
        assert_true(d->time[i - 1] < d->time[i] || (d->time[i - 1] == d->time[i] && before < series));
    }
    dataset_free(d);
    market_free(&m);
}

// The newest bars

static void newest_bars_are_a_view(void **state) {
    (void)state;
    market m = market_new(2, false, 97);
    build_options o = options_of(1);
    err e = {0};
    int64_t cut[] = {N, N - 100}, hours[] = {0, 0};
    put_files(&m, cut, hours);
    import_all(&m, &o, "set.npz");
    dataset *whole = set_open("set.npz", &e), *d = latest_new(set_open("set.npz", &e), 12, &e);
    support_ok(whole && d, &e);
    assert_int_equal(d->samples, 24);
    assert_int_equal(d->unlabelled, 0);
    int64_t unknown = 0;
    for (int64_t i = 0; i < d->samples; i++) {
        int64_t k = 0;
        while (whole->time[k] != d->time[i] || dataset_panel_of(whole, k) != dataset_panel_of(d, i)) k++;
        assert_int_equal(d->known[i], k < whole->samples);
        if (d->known[i]) assert_int_equal(d->label[i], whole->label[k]);
        unknown += !d->known[i];
        for (int s = 0; s < d->streams; s++) assert_int_equal(d->stream[s].row[i], whole->stream[s].row[k]);
        assert_true(i == 0 || d->time[i] >= d->time[i - 1]);
    }
    assert_int_equal(unknown, whole->unlabelled);
    // Many samples may claim the newest bar.
    int32_t *row = malloc((size_t)dataset_all(whole) * sizeof *row);
    assert_non_null(row);
    for (int64_t i = 0; i < dataset_all(whole); i++) row[i] = (int32_t)whole->stream[0].series.rows - 1;
    dataset *claims = dataset_view(whole, false, 0, &e);
    support_ok(claims != NULL, &e);
    claims->stream[0].row = row;
    dataset_free(d);
    d = latest_new(claims, 1, &e);
    support_ok(d != NULL, &e);
    assert_int_equal(d->samples, dataset_all(whole));
    dataset_free(d);
    free(row);
    dataset_free(whole);
    market_free(&m);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, support_enter, support_leave)
    const struct CMUnitTest tests[] = {
        TEST(adding_is_importing_all),
        TEST(every_kind_of_file_is_followed),
        TEST(other_bars_are_refused),
        TEST(known_bars_are_compared),
        TEST(added_prices_are_judged),
        TEST(added_frames_agree),
        TEST(unfinished_bars_come_later),
        TEST(late_streams_are_told),
        TEST(days_weeks_and_months_go_on),
        TEST(the_future_moves_nothing),
        TEST(damaged_sets_are_refused),
        TEST(overruled_checks_come_back),
        TEST(damaged_states_are_harmless),
        TEST(samples_are_in_order_of_close_and_symbol),
        TEST(newest_bars_are_a_view),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
