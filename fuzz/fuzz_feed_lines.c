// Lines of a feed from bytes that arrive in pieces, through the reader and the sequencer: bars come in order, with
// figures that can be, and memory does not grow. The first bytes choose the options and the pieces.
#include "data/npy.h"
#include "live/lines.h"
#include "live/row_reader.h"
#include "live/sequence.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { OPTIONS = 3, SEEN_MOST = 64 };

// The newest open of some series.
typedef struct {
    char symbol[BARS_SYMBOL_ROOM];
    int64_t span, time;
} seen;

static void check_bar(const feed_event *ev, seen *all, int *count) {
    const bar *b = &ev->bar;
    CHECK(b->end > b->time && ev->span > 0 && strlen(ev->symbol) < BARS_SYMBOL_ROOM, "a bar of no span");
    CHECK(b->low > 0 && b->low <= b->open && b->low <= b->close && b->high >= b->open && b->high >= b->close &&
              isfinite(b->high) && b->volume >= 0 && isfinite(b->volume) && b->spread >= 0,
        "a bar that cannot be");
    int i = 0;
    while (i < *count && (all[i].span != ev->span || strcmp(all[i].symbol, ev->symbol) != 0)) i++;
    if (i == SEEN_MOST) return;
    if (i == *count) {
        memcpy(all[i].symbol, ev->symbol, sizeof all[i].symbol);
        all[i].span = ev->span;
        ++*count;
    } else {
        CHECK(b->time > all[i].time, "bars out of order");
    }
    all[i].time = b->time;
}

// A note is printed, and kept as JSON: it is one line of UTF-8.
static void check_note(const feed_event *ev) {
    const unsigned char *text = (const unsigned char *)ev->text;
    size_t size = strlen(ev->text);
    uint32_t c;
    CHECK(size && feed_note_key(ev->note), "a note of nothing");
    for (int n; size; text += n, size -= (size_t)n) {
        n = npy_utf8_get(text, (int64_t)size, &c);
        CHECK(n && c >= 32 && (c < 127 || c >= 160), "a note with characters that cannot be shown: %s", ev->text);
    }
}

static void drain(sequence *s, seen *all, int *count) {
    feed_event ev;
    while (sequence_next(s, &ev)) {
        CHECK(memchr(ev.text, 0, sizeof ev.text), "a note without an end");
        if (ev.kind == FEED_BAR) check_bar(&ev, all, count);
        if (ev.kind == FEED_NOTE) check_note(&ev);
        if (ev.kind == FEED_QUOTE) CHECK(ev.bid > 0 && ev.ask >= ev.bid, "quotes that cannot be");
    }
}

static void run(lines *l, row_reader *r, sequence *s, const uint8_t *data, size_t size, size_t piece) {
    seen all[SEEN_MOST];
    int count = 0;
    feed_raw raw;
    text line;
    while (size || l) {
        size_t n = size < piece ? size : piece;
        if (n > lines_room(l)) n = lines_room(l);
        CHECK(n || !size, "no room for a line");
        lines_push(l, (const char *)data, n);
        data += n;
        size -= n;
        for (;;) {
            lines_answer a = lines_next(l, &line);
            if (a == LINES_NONE && !size) a = lines_rest(l, &line);
            if (a == LINES_NONE) break;
            if (a == LINES_GOT && row_reader_take(r, line, l->number, &raw)) {
                sequence_take(s, &raw, 1.8e9);
                drain(s, all, &count);
                if (sequence_tick(s, sequence_due(s))) drain(s, all, &count);
            }
        }
        if (!size) return;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const zones[] = {NULL, "mt5", "EST", "Europe/Berlin"};
    static const char *const columns[] = {
        NULL, "time=t,open=o,high=h,low=l,close=c", "time=1,open=2,high=4,low=3,close=5", "symbol=note"};
    static const int64_t spans[] = {300, WHEN_HOUR, WHEN_DAY, WHEN_MONTH};
    static lines l; // large, and as at the beginning after each run
    if (size < OPTIONS) return 0;
    // Readers are kept: making one takes longer than using it.
    static struct {
        feed_options o;
        row_reader *reader;
    } kept[256];
    unsigned choice = (data[0] & 15u) | (data[1] & 7u) << 4 | (data[1] & 128u);
    feed_options *o = &kept[choice].o;
    *o = (feed_options){.bars = {.tz = zones[data[0] & 3],
                            .columns = columns[data[0] >> 2 & 3],
                            .date_order = (when_order)(data[0] >> 4 & 3)},
        .spans = spans + (data[1] & 3),
        .span_count = data[1] >> 2 & 1,
        .grace = data[1] & 8 ? 5 : 0,
        .late = data[1] & 16 ? 60 : 0,
        .symbol = ""};
    sequence_rules rules = {.options = o, .hold = data[1] & 32, .machine = data[1] & 64};
    err e = {0};
    row_reader *r = kept[choice].reader;
    if (!r) r = kept[choice].reader = row_reader_new(o, "fuzz", "", data[1] & 128 ? 900 : 0, &e);
    CHECK(r, "%s", e.text);
    row_reader_reset(r);
    sequence *s = sequence_new(&rules);
    lines_reset(&l);
    run(&l, r, s, data + OPTIONS, size - OPTIONS, (size_t)data[2] * data[2] + 1);
    CHECK(sequence_series(s) <= FEED_SERIES_MOST, "%d series", sequence_series(s));
    sequence_free(s);
    return 0;
}
