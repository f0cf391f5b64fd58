// Documents of the MetaTrader exchange from bytes. The first byte chooses the kind, and whether the sum is made right,
// so that what is behind it is reached.
#include "live/exchange.h"
#include "live/row_reader.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_rows(const exchange_bars *b) {
    static const feed_options o = {.bars = {.tz = "mt5"}};
    feed_raw raw;
    text rest = b->rows, line;
    static row_reader *r;
    if (!r) r = row_reader_new(&o, "fuzz", "GOLD", 300, NULL);
    CHECK(r, "no reader");
    for (int64_t number = 1; bars_text_line(&rest, &line); number++)
        if (row_reader_take(r, line, number, &raw) && raw.event.kind == FEED_BAR)
            CHECK(raw.event.bar.end > raw.event.bar.time, "a bar of no length");
    row_reader_reset(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    exchange_head h;
    exchange_bars b;
    exchange_status s;
    err e = {0};
    if (size < 1) return 0;
    char *text = malloc(size + 16);
    size_t n = size - 1;
    memcpy(text, data + 1, n);
    if (data[0] & 4)
        n += (size_t)sprintf(text + n, "crc %08x\n", (unsigned)crc32(0, (const unsigned char *)text, (unsigned)n));
    bool ok;
    if ((data[0] & 3) == 0) {
        ok = exchange_bars_open(&b, text, n, &e);
        if (ok) CHECK(b.symbol[0] && strlen(b.symbol) < sizeof b.symbol && b.span > 0, "no symbol");
        if (ok) read_rows(&b);
    } else if ((data[0] & 3) == 1) {
        ok = exchange_status_open(&s, text, n, &e);
        if (ok) CHECK(memchr(s.refused_text, 0, sizeof s.refused_text), "a reason without an end");
    } else {
        ok = exchange_open(&h, "targets", text, n, &e);
    }
    CHECK(ok || (e.kind == ERR_INPUT && e.text[0]), "no reason");
    free(text);
    return 0;
}
