// Damaged variants of real files: each is named in the report or refused, by the words of the table. The files
// themselves raise only what is true of them. Prices that real markets have had pass.
#include "data/agree.h"
#include "data/bars.h"
#include "data/when.h"
#include "support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { HOUR = WHEN_HOUR, ROOM = 120000 };

// Bars on their way to a file.
typedef struct {
    bar *bar;
    int64_t count;
} sheet;

static bool open_real(const char *name, bars *b) {
    char path[4096];
    err e = {0};
    const char *folder = getenv("TRADEWIND_DATA");
    snprintf(path, sizeof path, "%s/%s", folder ? folder : TEST_DIR "/../../shared/data", name);
    FILE *f = fopen(path, "rb");
    if (!f) return false;
    fclose(f);
    support_ok(bars_read(b, path, NULL, &e), &e);
    return true;
}

static sheet load(const char *name) {
    bars b;
    assert_true(open_real(name, &b));
    sheet s = {realloc(b.bar, ROOM * sizeof *b.bar), b.count};
    assert_non_null(s.bar);
    return s;
}

static void write_sheet(const sheet *s, const char *path) {
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs("time,open,high,low,close,tick_volume\n", f);
    for (const bar *b = s->bar; b < s->bar + s->count; b++)
        fprintf(
            f, "%lld,%.9g,%.9g,%.9g,%.9g,%.0f\n", (long long)b->time, b->open, b->high, b->low, b->close, b->volume);
    assert_int_equal(fclose(f), 0);
}

// Keeps the bars that a rule keeps.
static void keep(sheet *s, bool (*kept)(const bar *b, int64_t at, void *arg), void *arg) {
    int64_t n = 0;
    for (int64_t i = 0; i < s->count; i++)
        if (kept(&s->bar[i], i, arg)) s->bar[n++] = s->bar[i];
    s->count = n;
}

static void scale(bar *b, double by) {
    b->open *= by;
    b->high *= by;
    b->low *= by;
    b->close *= by;
}

// Damages

typedef struct {
    dice dice;
    int percent; // that are lost
} chance;

static bool by_chance(const bar *b, int64_t at, void *arg) {
    (void)b, (void)at;
    chance *c = arg;
    return (int)dice_below(&c->dice, 100) >= c->percent;
}

static void random_10(sheet *s) {
    keep(s, by_chance, &(chance){{.seed = 3}, 10});
}

static void random_60(sheet *s) {
    keep(s, by_chance, &(chance){{.seed = 3}, 60});
}

static bool one_of(const bar *b, int64_t at, void *arg) {
    (void)b;
    return at % *(int *)arg == 1;
}

static void one_of_2(sheet *s) {
    keep(s, one_of, &(int){2});
}

static void one_of_3(sheet *s) {
    keep(s, one_of, &(int){3});
}

static bool not_twelfth(const bar *b, int64_t at, void *arg) {
    (void)b, (void)arg;
    return at % 12 != 11;
}

static void every_12th(sheet *s) {
    keep(s, not_twelfth, NULL);
}

static bool not_wednesday(const bar *b, int64_t at, void *arg) {
    (void)at, (void)arg;
    return when_weekday(b->time) != 2 || b->time % WHEN_DAY < 14 * HOUR || b->time % WHEN_DAY >= 18 * HOUR;
}

static void wednesdays(sheet *s) {
    keep(s, not_wednesday, NULL);
}

static bool not_minute_30(const bar *b, int64_t at, void *arg) {
    (void)at, (void)arg;
    return b->time / 60 % 60 != 30;
}

static void minute_30(sheet *s) {
    keep(s, not_minute_30, NULL);
}

static void zero_afternoons(sheet *s) {
    for (bar *b = s->bar; b < s->bar + s->count; b++)
        if (b->time % WHEN_DAY >= WHEN_DAY / 2) b->open = b->high = b->low = b->close = 0;
}

static bool not_that_week(const bar *b, int64_t at, void *arg) {
    (void)at, (void)arg;
    int64_t monday = when_day(2025, 9, 8) * WHEN_DAY;
    return b->time < monday || b->time >= monday + WHEN_WEEK;
}

static void middle_week(sheet *s) {
    keep(s, not_that_week, NULL);
}

static void plain_split(sheet *s) {
    for (int64_t i = s->count / 2; i < s->count; i++) scale(&s->bar[i], 0.5);
}

static void reverse_split(sheet *s) {
    for (int64_t i = s->count / 2; i < s->count; i++) scale(&s->bar[i], 10);
}

static void bar_times_100(sheet *s) {
    scale(&s->bar[5000], 100);
}

static void bar_by_10(sheet *s) {
    scale(&s->bar[5000], 0.1);
}

static void close_times_100(sheet *s) {
    s->bar[5000].high = s->bar[5000].close *= 100;
}

static void bars_times_1000(sheet *s) {
    for (int i = 5000; i < 5010; i++) scale(&s->bar[i], 1000);
}

static void high_of_1e12(sheet *s) {
    s->bar[5000].high = 1e12;
}

static void low_of_nothing(sheet *s) {
    s->bar[5000].low = 1e-9;
}

static void append(sheet *s, const char *name) {
    sheet more = load(name);
    assert_true(s->count + more.count <= ROOM);
    memcpy(s->bar + s->count, more.bar, (size_t)more.count * sizeof *more.bar);
    s->count += more.count;
    free(more.bar);
}

static void glued_after(sheet *s) {
    append(s, "XAUUSD_H1.csv");
}

static void glued_same_time(sheet *s) {
    append(s, "XAUUSD_M5.csv");
}

static void glued_between(sheet *s) {
    int64_t n = s->count;
    append(s, "XAUUSD_M5.csv");
    for (int64_t i = n; i < s->count; i++) s->bar[i].time += 150;
}

static void glued_close_level(sheet *s) {
    for (int64_t i = s->count / 2; i < s->count; i++) scale(&s->bar[i], 1.17);
}

static void open_is_close(sheet *s) {
    for (int64_t i = 0; i < s->count; i++) {
        double open = s->bar[i].open;
        s->bar[i].open = s->bar[i].close;
        s->bar[i].close = open;
    }
}

// Makes hours of the bars from..to-1.
static void coarsen(sheet *s, int64_t from, int64_t to) {
    int64_t n = from;
    for (int64_t i = from; i < s->count; i++) {
        bar *b = &s->bar[i], *made = &s->bar[n - 1];
        if (i < to && n > from && made->time == b->time - b->time % HOUR) {
            made->high = fmax(made->high, b->high);
            made->low = fmin(made->low, b->low);
            made->close = b->close;
            continue;
        }
        s->bar[n] = *b;
        if (i < to) s->bar[n].time -= b->time % HOUR;
        n++;
    }
    s->count = n;
}

static int64_t hour_after(const sheet *s, int64_t i) {
    while (s->bar[i].time % HOUR) i++;
    return i;
}

static void coarse_middle(sheet *s) {
    coarsen(s, hour_after(s, 4000), hour_after(s, 5500));
}

static void coarse_12_times(sheet *s) {
    for (int64_t k = 12; k-- > 0;) coarsen(s, hour_after(s, 500 + 750 * k), hour_after(s, 950 + 750 * k));
}

static void coarse_end(sheet *s) {
    coarsen(s, hour_after(s, 8000), s->count);
}

static void block_twice(sheet *s) {
    memcpy(s->bar + s->count, s->bar + 3000, 500 * sizeof *s->bar);
    s->count += 500;
}

static void out_of_order(sheet *s) {
    for (int i = 4000; i < 4100; i++) {
        bar b = s->bar[i];
        s->bar[i] = s->bar[i + 2000];
        s->bar[i + 2000] = b;
    }
}

// Outcomes

// The words on a file: its refusal, or its report.
static char *outcome(const char *path, unsigned force, bool *read, unsigned *forced) {
    bars b;
    err e = {0};
    char *text = NULL;
    size_t size = 0;
    *read = bars_read(&b, path, &(bars_options){.force = force}, &e);
    *forced = b.report.forced;
    if (!*read) {
        assert_int_equal(e.kind, ERR_INPUT);
        return strdup(e.text);
    }
    FILE *out = open_memstream(&text, &size);
    bars_report_print(out, path, &b);
    fclose(out);
    json_t *j = bars_report_json(path, &b);
    assert_non_null(j);
    assert_int_equal(json_array_size(json_object_get(j, "forced")), __builtin_popcount(b.report.forced));
    json_decref(j);
    bars_done(&b);
    return text;
}

static void expect_words(const char *what, const char *text, const char *words) {
    if (!strstr(text, words)) fail_msg("%s: \"%s\" does not say \"%s\"", what, text, words);
}

static void damaged_files_are_named(void **state) {
    (void)state;
    static const struct {
        const char *what, *file;
        void (*damage)(sheet *s);
        unsigned refused; // the check that refuses it; 0: it is read, and the report has the words
        const char *words;
    } cases[] = {
        {"random 10 %", "EURUSD_M5.csv", random_10, 0, "with 1,026 bars missing"},
        {"random 60 %", "EURUSD_M5.csv", random_60, BARS_FORCE_THIN, "rows are missing everywhere"},
        {"random 60 % of hours", "XAUUSD_H1.csv", random_60, BARS_FORCE_THIN, "rows are missing everywhere"},
        {"random 60 % of days", "XAUUSD_D1.csv", random_60, BARS_FORCE_THIN, "rows are missing everywhere"},
        {"1 of 2", "XAUUSD_M15.csv", one_of_2, BARS_FORCE_THIN, "(is it every second row of a file of 15 min?)"},
        {"1 of 3", "XAUUSD_M15.csv", one_of_3, BARS_FORCE_THIN, "(is it a finer file with few of its rows?)"},
        {"1 of 2", "XAUUSD_M5.csv", one_of_2, BARS_FORCE_THIN, "(is it every second row of a file of 5 min?)"},
        {"1 of 2", "EURUSD_M5.csv", one_of_2, BARS_FORCE_THIN, "(is it every second row of a file of 5 min?)"},
        {"1 of 3", "EURUSD_M5.csv", one_of_3, BARS_FORCE_THIN, "(is it a finer file with few of its rows?)"},
        {"1 of 2", "XAUUSD_H1.csv", one_of_2, BARS_FORCE_THIN, "(is it every second row of a file of 1 h?)"},
        {"1 of 2", "EURUSD_hourly_pandas.csv", one_of_2, BARS_FORCE_THIN, "opens do not continue the closes"},
        {"1 of 2", "XAUUSD_H4.csv", one_of_2, BARS_FORCE_THIN, "(is it every second row of a file of 4 h?)"},
        {"every 12th", "XAUUSD_M5.csv", every_12th, 0, "834  with 861 bars missing"},
        {"Wednesday afternoons", "XAUUSD_M15.csv", wednesdays, 0, "closed inside: Wed 14:00-17:45; is that"},
        {"Wednesday afternoons, hours", "XAUUSD_H1.csv", wednesdays, 0, "closed inside: Wed 14:00-17:00; is that"},
        {"minute 30", "EURUSD_M5.csv", minute_30, 0, "closed inside: Mon-Fri 00:30 and every 1 h to 23:30; is that"},
        {"middle week", "EURUSD_M5.csv", middle_week, 0, "the longest is 9.01 days from 2025-09-05"},
        {"afternoons of zeros", "EURUSD_M5.csv", zero_afternoons, BARS_FORCE_THIN,
            "a price is zero or less, the first of 49"},
        {"split", "XAUUSD_D1.csv", plain_split, BARS_FORCE_SPLITS, "split of 2:1, or news; use adjusted prices"},
        {"split in hours", "XAUUSD_H1.csv", plain_split, BARS_FORCE_SPLITS, ":24127: prices from 2022-04-"},
        {"reverse split", "XAUUSD_H1.csv", reverse_split, BARS_FORCE_SPLITS, "split of 1:10"},
        {"bar x 100", "EURUSD_M5.csv", bar_times_100, BARS_FORCE_SLIPS, ":5002: the bar is 100 times"},
        {"bar / 10", "XAUUSD_M15.csv", bar_by_10, BARS_FORCE_SLIPS, ":5002: the bar is 0.1 times"},
        {"close x 100", "EURUSD_M5.csv", close_times_100, BARS_FORCE_SLIPS, ":5002: the close is 100 times"},
        {"bars x 1000", "EURUSD_M5.csv", bars_times_1000, BARS_FORCE_SLIPS, ":5002: prices from here to line 5011"},
        {"high of 1e12", "XAUUSD_M5.csv", high_of_1e12, BARS_FORCE_SPIKES, ":5002: the high is 2."},
        {"low of nothing", "XAUUSD_M5.csv", low_of_nothing, BARS_FORCE_SPIKES, ":5002: the low is "},
        {"one after the other", "EURUSD_hourly_pandas.csv", glued_after, BARS_FORCE_LEVELS,
            ":5002: prices from 2018-03-19"},
        {"at the same time", "EURUSD_M5.csv", glued_same_time, BARS_FORCE_CONFLICTS, "two instruments in one file"},
        {"in between", "EURUSD_M5.csv", glued_between, BARS_FORCE_LEVELS, "two instruments in one file"},
        {"a level near by", "EURUSD_M5.csv", glued_close_level, 0,
            "first in line 5002; the largest to 1.17 times the close, in line 5002"},
        {"open and close swapped", "EURUSD_M5.csv", open_is_close, BARS_FORCE_COLUMNS, "open and close are swapped"},
        {"open and close of days", "XAUUSD_D1.csv", open_is_close, BARS_FORCE_COLUMNS, "open and close are swapped"},
        {"coarse in the middle", "EURUSD_M5.csv", coarse_middle, 0,
            "126  rows from line 4010 on are of 1 h, 2025-09-10 21:00 to 2025-09-18 02:00 UTC: left out"},
        {"coarse 12 times", "EURUSD_M5.csv", coarse_12_times, 0, "and 4 more such stretches: left out"},
        {"coarse at the end", "XAUUSD_M5.csv", coarse_end, 0, "  rows from line 8"},
        {"a block twice", "XAUUSD_M5.csv", block_twice, 0, "500  equal to another row, first in line 3002"},
        {"rows out of order", "XAUUSD_M15.csv", out_of_order, 0, "rows out of place, sorted, first in line"},
    };
    bars probe;
    if (!open_real("XAUUSD_H1.csv", &probe)) skip();
    bars_done(&probe);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sheet s = load(cases[i].file);
        bool read;
        unsigned forced;
        cases[i].damage(&s);
        write_sheet(&s, "damaged.csv");
        char *text = outcome("damaged.csv", 0, &read, &forced);
        expect_words(cases[i].what, text, cases[i].words);
        assert_int_equal(read, cases[i].refused == 0);
        free(text);
        free(s.bar);
        if (read) continue;
        char word[64];
        snprintf(word, sizeof word, "--force %s", bars_force_name(cases[i].refused));
        text = outcome("damaged.csv", 0, &read, &forced);
        expect_words(cases[i].what, text, word);
        free(text);
        // Forced, it is read, and the report says so; a damage may have more than one name.
        text = outcome("damaged.csv", (1u << BARS_FORCES) - 1, &read, &forced);
        assert_true(read && forced & cases[i].refused);
        expect_words(cases[i].what, text, "kept although refused: ");
        free(text);
    }
}

// Kept coarser bars are no gaps, and hide none.
static void kept_stretches_are_no_gaps(void **state) {
    (void)state;
    bars b;
    err e = {0};
    if (!open_real("EURUSD_M5.csv", &b)) skip();
    int64_t missing = b.report.missing;
    bars_done(&b);
    sheet s = load("EURUSD_M5.csv");
    coarse_middle(&s);
    write_sheet(&s, "damaged.csv");
    support_ok(bars_read(&b, "damaged.csv", &(bars_options){.keep_coarse = true}, &e), &e);
    assert_int_equal(b.count, s.count);
    assert_int_equal(b.report.stretches, 1);
    assert_int_equal(b.report.stretch[0].rows, 126);
    assert_int_equal(b.report.stretch[0].span, HOUR);
    assert_int_equal(b.report.tally[BARS_COARSE].count, 0);
    assert_int_equal(b.report.missing, missing);
    bars_done(&b);
    free(s.bar);
}

// Stretches that the report has no room for are left out too, and kept ones are no gaps.
static void every_stretch_is_found(void **state) {
    (void)state;
    bars b;
    err e = {0};
    if (!open_real("EURUSD_M5.csv", &b)) skip();
    int64_t missing = b.report.missing, coarse = 0;
    bars_done(&b);
    sheet s = load("EURUSD_M5.csv");
    coarse_12_times(&s);
    write_sheet(&s, "damaged.csv");
    for (int64_t i = 0; i + 1 < s.count; i++) coarse += s.bar[i + 1].time - s.bar[i].time == HOUR;
    support_ok(bars_read(&b, "damaged.csv", NULL, &e), &e);
    assert_int_equal(b.report.stretches, 12);
    assert_true(coarse > 400 && b.report.tally[BARS_COARSE].count >= coarse);
    for (int64_t i = 0; i + 1 < b.count; i++) assert_true(b.bar[i + 1].time - b.bar[i].time != HOUR);
    bars_done(&b);
    support_ok(bars_read(&b, "damaged.csv", &(bars_options){.keep_coarse = true}, &e), &e);
    assert_int_equal(b.count, s.count);
    assert_true(b.report.missing <= missing);
    bars_done(&b);
    free(s.bar);
}

// Two files that do not belong together; the slow one is damaged.

static void hour_ahead(sheet *s) {
    for (int64_t i = 0; i < s->count; i++) s->bar[i].time += HOUR;
}

static void two_hours_behind(sheet *s) {
    for (int64_t i = 0; i < s->count; i++) s->bar[i].time -= 2 * HOUR;
}

static void as_it_is(sheet *s) {
    (void)s;
}

static bool before_2024(const bar *b, int64_t at, void *arg) {
    (void)at, (void)arg;
    return b->time < when_day(2024, 10, 9) * WHEN_DAY;
}

static void ends_a_year_early(sheet *s) {
    keep(s, before_2024, NULL);
}

static void files_that_do_not_belong_together(void **state) {
    (void)state;
    static const struct {
        const char *what, *fast, *slow;
        void (*damage)(sheet *s);
        unsigned refused;
        const char *words;
    } cases[] = {
        {"an hour ahead", "XAUUSD_M5.csv", "XAUUSD_H1.csv", hour_ahead, BARS_FORCE_AGREE, "moved by -1 h"},
        {"two hours behind", "XAUUSD_M5.csv", "XAUUSD_H1.csv", two_hours_behind, BARS_FORCE_AGREE, "moved by +2 h;"},
        {"hours behind H1", "XAUUSD_H1.csv", "XAUUSD_H4.csv", two_hours_behind, BARS_FORCE_AGREE, "moved by +2 h;"},
        {"gold for euros", "EURUSD_M5.csv", "XAUUSD_H1.csv", as_it_is, BARS_FORCE_AGREE, "files of one instrument"},
        {"a year early", "XAUUSD_M15.csv", "XAUUSD_H1.csv", ends_a_year_early, BARS_FORCE_STALE,
            "100 % of the bars of fast, from 2025-05-09 16:15, see none of it"},
        {"years before", "XAUUSD_M5.csv", "EURUSD_hourly_pandas.csv", as_it_is, BARS_FORCE_STALE, "for the same time"},
    };
    bars probe;
    if (!open_real("XAUUSD_H1.csv", &probe)) skip();
    bars_done(&probe);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bars fast, slow;
        err e = {0};
        agree_report r;
        sheet s = load(cases[i].slow);
        cases[i].damage(&s);
        write_sheet(&s, "slow.csv");
        free(s.bar);
        assert_true(open_real(cases[i].fast, &fast));
        support_ok(bars_read(&slow, "slow.csv", NULL, &e), &e);
        for (unsigned force = 0;; force = cases[i].refused) {
            bool ok = agree_check(&(agree_bars){fast.bar, fast.count, fast.span, "fast"},
                &(agree_bars){slow.bar, slow.count, slow.span, "slow.csv"}, force, &r, &e);
            assert_int_equal(ok, force != 0);
            assert_int_equal(r.forced, force);
            expect_words(cases[i].what, e.text, cases[i].words);
            expect_words(cases[i].what, e.text, bars_force_name(cases[i].refused));
            if (force) break;
        }
        bars_done(&fast);
        bars_done(&slow);
    }
}

static void originals_raise_only_what_is_true(void **state) {
    (void)state;
    static const struct {
        const char *file, *hours, *summer;
        int64_t coarse, flat, weekend, missing;
    } cases[] = {
        {"XAUUSD_M5.csv", "Mon-Fri 01:05-23:45", "", 0, 0, 0, 28},     // Labor Day's early close
        {"XAUUSD_M15.csv", "Mon-Fri 01:00-23:45", "", 0, 0, 0, 46},    // four holidays' early closes
        {"XAUUSD_H1.csv", "Mon-Fri 01:00-23:00", "", 2938, 1, 0, 740}, // holidays of eight years
        {"XAUUSD_H4.csv", "Mon-Fri 00:00-20:00", "", 2889, 1, 0, 161}, // the same
        {"XAUUSD_D1.csv", "Mon-Fri", "", 0, 0, 109, 45},               // Sundays of the early years
        {"EURUSD_M5.csv", "Mon-Fri 00:05-23:50", "", 0, 2, 0, 2},
        {"EURUSD_hourly_pandas.csv", "Mon-Thu 00:00-23:00, Fri 00:00-21:00, Sun 22:00-23:00",
            "Mon-Thu 00:00-23:00, Fri 00:00-20:00, Sun 21:00-23:00", 0, 2, 108, 48}, // Christmas and New Year
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bars b;
        if (!open_real(cases[i].file, &b)) skip();
        const bars_report *p = &b.report;
        assert_string_equal(p->hours[0], cases[i].hours);
        assert_string_equal(p->hours[1], cases[i].summer);
        assert_false(p->hours_pattern);
        assert_int_equal(p->hours_changes, 0);
        assert_int_equal(p->coarse_rows, cases[i].coarse);
        assert_int_equal(p->stretches, 0);
        assert_int_equal(p->tally[BARS_FLAT].count, cases[i].flat);
        assert_int_equal(p->tally[BARS_WEEKEND].count, cases[i].weekend);
        assert_int_equal(p->missing, cases[i].missing);
        assert_int_equal(p->tally[BARS_JUMP].count, 0);
        assert_int_equal(p->forced, 0);
        bars_done(&b);
    }
}

// Prices that markets have had: a walk of days or minutes, and one event in it.

typedef struct {
    const char *what;
    int64_t span;
    double move, tick;            // of a bar; of the price
    double open, high, low, last; // the event's bar, in shares of the close before it
    int jumps;                    // noted
} event;

static void put_walk(sheet *s, const event *v) {
    dice d = {.seed = 8};
    double price = v->tick > 0.00005 ? 100 : 0.0003;
    for (int64_t t = when_day(2009, 1, 1) * WHEN_DAY; s->count < 3000; t += v->span) {
        bar *b = &s->bar[s->count++];
        double to = price * exp(v->move * dice_unit(&d)), more = 1 + v->move * fabsf(dice_unit(&d)) / 2;
        *b =
            (bar){.time = t, .open = price, .close = to, .high = fmax(price, to) * more, .low = fmin(price, to) / more};
        if (s->count == 1500)
            *b = (bar){.time = t,
                .open = price * v->open,
                .high = price * v->high,
                .low = price * v->low,
                .close = price * v->last};
        for (int k = 0; k < 4; k++) {
            double *x = &b->open + k;
            *x = fmax(round(*x / v->tick), 1) * v->tick;
        }
        price = b->close;
    }
}

static void real_crashes_pass(void **state) {
    (void)state;
    static const event events[] = {
        {"19 October 1987, opened at the close before", WHEN_DAY, 0.01, 0.01, 1, 1, 0.77, 0.774, 0},
        {"19 October 1987, opened low", WHEN_DAY, 0.01, 0.01, 0.9, 0.9, 0.77, 0.774, 1},
        {"bitcoin on Binance.US, October 2021", 60, 0.001, 0.01, 1, 1, 0.126, 0.98, 0},
        {"bitcoin, 12 March 2020", WHEN_HOUR, 0.006, 0.01, 1, 1.01, 0.7, 0.75, 0},
        {"the franc, January 2015", 300, 0.0001, 0.0001, 0.98, 0.99, 0.7, 0.85, 0},
        {"a drug refused: half the price overnight", WHEN_DAY, 0.03, 0.01, 0.49, 0.56, 0.42, 0.45, 1},
        {"a drug approved: thrice the price overnight", WHEN_DAY, 0.03, 0.01, 3, 3.8, 2.6, 3.3, 1},
        {"oil, April 2020: a third overnight", WHEN_DAY, 0.02, 0.01, 0.68, 0.7, 0.55, 0.6, 1},
        {"a coin of a few ticks", WHEN_HOUR, 0.3, 0.0001, 1, 1, 1, 1, 0},
        {"gold, a weekend of war", 300, 0.0003, 0.01, 1.03, 1.035, 1.025, 1.03, 0},
    };
    for (size_t i = 0; i < sizeof events / sizeof *events; i++) {
        sheet s = {calloc(ROOM, sizeof(bar)), 0};
        bars b;
        err e = {0};
        put_walk(&s, &events[i]);
        write_sheet(&s, "walk.csv");
        free(s.bar);
        if (!bars_read(&b, "walk.csv", NULL, &e)) fail_msg("%s: %s", events[i].what, e.text);
        if (b.report.tally[BARS_JUMP].count != events[i].jumps)
            fail_msg("%s: %lld jumps", events[i].what, (long long)b.report.tally[BARS_JUMP].count);
        bars_done(&b);
    }
}

// A market that trades in one minute of five has runs of longer steps everywhere, but of no frame.
static void a_thin_market_is_not_coarse(void **state) {
    (void)state;
    dice d = {.seed = 4};
    sheet s = {calloc(ROOM, sizeof(bar)), 0};
    bars b;
    err e = {0};
    for (int64_t t = when_day(2024, 1, 1) * WHEN_DAY; s.count < 20000; t += 60)
        if (!dice_below(&d, 5)) s.bar[s.count++] = (bar){.time = t, .open = 10, .high = 12, .low = 9, .close = 11};
    write_sheet(&s, "thin.csv");
    free(s.bar);
    support_ok(bars_read(&b, "thin.csv", &(bars_options){.force = BARS_FORCE_THIN}, &e), &e);
    assert_int_equal(b.report.forced, BARS_FORCE_THIN);
    assert_int_equal(b.span, 60);
    assert_int_equal(b.count, 20000);
    assert_int_equal(b.report.stretches, 0);
    bars_done(&b);
}

// A market of so many trades in a minute, evenly spread; each is at a walk's price, above or below it by half a spread,
// rounded to a tick.
static void put_trades(sheet *s, int trades, double spread, double tick) {
    dice d = {.seed = 11};
    double price = 100;
    for (int64_t t = when_day(2024, 1, 1) * WHEN_DAY; s->count < 6000; t += 60) {
        bar b = {.time = t, .low = 1e9};
        for (int i = 0; i < 50; i++) {
            price *= exp(0.0002 * dice_unit(&d));
            if ((int)dice_below(&d, 50) >= trades) continue;
            double at = price + (dice_below(&d, 2) ? spread / 2 : -spread / 2);
            b.close = round(at / tick) * tick;
            if (!b.high) b.open = b.close;
            b.high = fmax(b.high, b.close);
            b.low = fmin(b.low, b.close);
        }
        if (b.high > 0) s->bar[s->count++] = b;
    }
}

static void expect_read(const sheet *s, const char *what) {
    bars b;
    err e = {0};
    write_sheet(s, "healthy.csv");
    if (!bars_read(&b, "healthy.csv", NULL, &e)) fail_msg("%s: %s", what, e.text);
    bars_done(&b);
}

// Few trades, prices that bounce between bid and ask, coarse ticks: opens off the closes, but no bars are lost.
static void markets_of_few_trades_pass(void **state) {
    (void)state;
    static const double spreads[] = {0, 0.05, 0.3}, ticks[] = {0.0001, 0.1};
    for (int trades = 5; trades <= 20; trades += trades < 10 ? 1 : 5)
        for (int k = 0; k < 6; k++) {
            char what[64];
            sheet s = {calloc(ROOM, sizeof(bar)), 0};
            put_trades(&s, trades, spreads[k % 3], ticks[k / 3]);
            snprintf(what, sizeof what, "%d trades, spread %g, tick %g", trades, spreads[k % 3], ticks[k / 3]);
            expect_read(&s, what);
            free(s.bar);
        }
}

// Columns that say little: one price for all four, one for open and close, opens that are the close before.
static void poor_columns_pass(void **state) {
    (void)state;
    for (int kind = 0; kind < 3; kind++) {
        sheet s = {calloc(ROOM, sizeof(bar)), 0};
        double before = 100;
        put_trades(&s, 40, 0, 0.0001);
        for (bar *b = s.bar; b < s.bar + s.count; b++) {
            b->open = kind == 2 ? before : b->close;
            b->high = kind ? fmax(b->high, b->open) : b->close;
            b->low = kind ? fmin(b->low, b->open) : b->close;
            before = b->close;
        }
        expect_read(&s, "poor columns");
        free(s.bar);
    }
}

// Frames made of finer bars continue as these do.
static void made_frames_pass(void **state) {
    (void)state;
    static const char *const files[] = {"EURUSD_M5.csv", "XAUUSD_M5.csv", "XAUUSD_M15.csv"};
    bars probe;
    if (!open_real(files[0], &probe)) skip();
    bars_done(&probe);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        sheet s = load(files[i]);
        coarsen(&s, hour_after(&s, 0), s.count);
        expect_read(&s, files[i]);
        free(s.bar);
    }
}

static void words_of_force(void **state) {
    (void)state;
    unsigned set = 0;
    err e = {0};
    char text[128];
    support_ok(bars_force_read("thin,agree", &set, &e), &e);
    support_ok(bars_force_read("splits", &set, &e), &e);
    assert_int_equal(set, BARS_FORCE_THIN | BARS_FORCE_AGREE | BARS_FORCE_SPLITS);
    assert_string_equal(bars_force_text(text, sizeof text, set), "thin, splits, agree");
    assert_string_equal(bars_force_text(text, sizeof text, 0), "");
    static const char *const bad[] = {"", "thin,", "all", "thin splits", "thinn"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_false(bars_force_read(bad[i], &set, &e));
        assert_int_equal(e.kind, ERR_INPUT);
    }
    assert_string_equal(e.text,
        "\"thinn\" is no check; use thin, slips, spikes, splits, levels, columns, conflicts, agree, stale, future");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_of_force),
        cmocka_unit_test_setup_teardown(damaged_files_are_named, support_enter, support_leave),
        cmocka_unit_test_setup_teardown(a_thin_market_is_not_coarse, support_enter, support_leave),
        cmocka_unit_test_setup_teardown(kept_stretches_are_no_gaps, support_enter, support_leave),
        cmocka_unit_test_setup_teardown(every_stretch_is_found, support_enter, support_leave),
        cmocka_unit_test_setup_teardown(files_that_do_not_belong_together, support_enter, support_leave),
        cmocka_unit_test(originals_raise_only_what_is_true),
        cmocka_unit_test_setup_teardown(real_crashes_pass, support_enter, support_leave),
        cmocka_unit_test_setup_teardown(markets_of_few_trades_pass, support_enter, support_leave),
        cmocka_unit_test_setup_teardown(poor_columns_pass, support_enter, support_leave),
        cmocka_unit_test_setup_teardown(made_frames_pass, support_enter, support_leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
