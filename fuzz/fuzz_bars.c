// Bar files from bytes. The first two bytes choose the options; the rest is the file.
#include "data/bars.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// Promises of bars.h on rows that are taken as they are.
static void check_as_is(const bars *b) {
    CHECK(b->report.rows == b->count && !b->span, "%lld rows", (long long)b->report.rows);
    for (int64_t i = 0; i < b->count; i++) {
        const bar *x = &b->bar[i];
        CHECK(!i || x->time >= x[-1].time, "bar %lld is out of order", (long long)i);
        CHECK(x->open > 0 && x->high > 0 && x->low > 0 && x->close > 0, "bar %lld: a price", (long long)i);
    }
}

// Promises of bars.h on every other result.
static void check(const bars *b, const bars_options *o) {
    int64_t left_out = 0;
    for (bars_finding f = 0; f < BARS_FINDINGS; f++)
        if (bars_left_out(f)) left_out += b->report.tally[f].count;
    CHECK(b->report.rows == b->count + left_out, "%lld rows", (long long)b->report.rows);
    CHECK(strlen(b->symbol) < sizeof b->symbol, "a symbol without an end");
    CHECK(b->count >= (o->span_count ? 1 : 2) && b->span > 0, "%lld bars", (long long)b->count);
    for (int64_t i = 0; i < b->count; i++) {
        const bar *x = &b->bar[i];
        CHECK(!i || x->time > x[-1].time, "bar %lld is out of order", (long long)i);
        CHECK(x->end > x->time && (!i || x->end >= x[-1].end), "bar %lld ends before the one before it", (long long)i);
        CHECK(x->low > 0 && x->low <= x->open && x->low <= x->close, "bar %lld: low", (long long)i);
        CHECK(x->high >= x->open && x->high >= x->close && isfinite(x->high), "bar %lld: high", (long long)i);
        CHECK(x->volume >= 0 && isfinite(x->volume), "bar %lld: volume", (long long)i);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const zones[] = {
        NULL, "mt5", "EST", "+05:30", "Europe/Berlin", "Australia/Lord_Howe", "-11", "GMT"};
    static const char *const columns[] = {
        NULL, "high=low,low=high", "time=date,close=price", "time=1,open=2,high=4,low=3,close=5", "symbol=note"};
    static const int64_t spans[] = {300, WHEN_HOUR, 300, WHEN_MONTH};
    if (size < 2) return 0;
    int more = (data[1] >> 2) / 5, known = data[0] >> 6;
    bars_options o = {.tz = zones[data[0] & 7],
        .keep_coarse = data[0] & 8,
        .keep_filled = data[0] & 16,
        .written = data[0] & 32 ? 1704164400 : 0,
        .date_order = (when_order)(data[1] & 3),
        .columns = columns[(data[1] >> 2) % 5],
        .from = more & 1 ? 1704164400 : 0,
        .as_is = more & 8,
        .force = more & 2   ? (1u << BARS_FORCES) - 1
                 : more & 4 ? BARS_FORCE_LEVELS | BARS_FORCE_SPLITS
                            : 0,
        .spans = known ? spans + known - 1 : NULL,
        .span_count = known ? 2 : 0};
    bars_list all;
    err e = {0};
    if (bars_parse_list(&all, "fuzz", (const char *)data + 2, size - 2, &o, &e)) {
        for (int i = 0; i < all.count; i++) {
            if (o.as_is)
                check_as_is(&all.item[i]);
            else
                check(&all.item[i], &o);
            CHECK(!i || strcmp(all.item[i - 1].symbol, all.item[i].symbol) < 0, "symbol %d is out of order", i);
            json_decref(bars_report_json("fuzz", &all.item[i]));
        }
    } else {
        CHECK(e.kind == ERR_INPUT && e.text[0], "an error of kind %d", e.kind);
    }
    bars_list_done(&all);
    return 0;
}
