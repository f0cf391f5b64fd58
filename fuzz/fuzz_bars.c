// Bar files from bytes. The first byte chooses the options; the rest is the file.
#include "data/bars.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// What bars.h promises of every result.
static void check(const bars *b) {
    int64_t left_out = 0;
    for (bars_finding f = 0; f < BARS_FINDINGS; f++)
        if (bars_left_out(f)) left_out += b->report.tally[f].count;
    CHECK(b->report.rows == b->count + left_out, "%lld rows", (long long)b->report.rows);
    CHECK(b->count >= 2 && b->span > 0, "%lld bars", (long long)b->count);
    for (int64_t i = 0; i < b->count; i++) {
        const bar *x = &b->bar[i];
        CHECK(!i || x->time > x[-1].time, "bar %lld is out of order", (long long)i);
        CHECK(x->low > 0 && x->low <= x->open && x->low <= x->close, "bar %lld: low", (long long)i);
        CHECK(x->high >= x->open && x->high >= x->close && isfinite(x->high), "bar %lld: high", (long long)i);
        CHECK(x->volume >= 0 && isfinite(x->volume), "bar %lld: volume", (long long)i);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const zones[] = {
        NULL, "mt5", "EST", "+05:30", "Europe/Berlin", "Australia/Lord_Howe", "-11", "GMT"};
    if (!size) return 0;
    bars_options o = {.tz = zones[data[0] & 7],
        .keep_coarse = data[0] & 8,
        .keep_filled = data[0] & 16,
        .written = data[0] & 32 ? 1704164400 : 0};
    bars b;
    err e = {0};
    if (bars_parse(&b, "fuzz", (const char *)data + 1, size - 1, &o, &e)) {
        check(&b);
        json_decref(bars_report_json("fuzz", &b));
    } else {
        CHECK(e.kind == ERR_INPUT && e.text[0], "an error of kind %d", e.kind);
    }
    bars_done(&b);
    return 0;
}
