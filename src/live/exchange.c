#include "live/exchange.h"

#include "base/text.h"
#include "data/bars_number.h"
#include "data/bars_rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { CRC_LINE = 12 }; // "crc 0123abcd"

static text word_of(text *t) {
    size_t n = 0, blanks = 0;
    while (n < t->size && t->at[n] != ' ') n++;
    while (n + blanks < t->size && t->at[n + blanks] == ' ') blanks++;
    text word = {t->at, n};
    t->at += n + blanks;
    t->size -= n + blanks;
    return word;
}

bool exchange_is(text t, const char *word) {
    return t.size == strlen(word) && !memcmp(t.at, word, t.size);
}

bool exchange_whole(text value, int64_t *v) {
    text word = word_of(&value);
    bool negative = word.size && *word.at == '-';
    *v = 0;
    if (word.size < 1 + (size_t)negative || word.size > 18 + (size_t)negative) return false;
    for (size_t i = negative; i < word.size; i++) {
        if (word.at[i] < '0' || word.at[i] > '9') return false;
        *v = *v * 10 + (word.at[i] - '0');
    }
    if (negative) *v = -*v;
    return true;
}

bool exchange_line(text *rest, text *key, text *value) {
    text line;
    do {
        if (!bars_text_line(rest, &line)) return false;
    } while (!line.size);
    *key = word_of(&line);
    *value = line;
    return true;
}

// Where the line of the sum begins; false where the last line is none.
static bool find_sum(const char *bytes, size_t size, size_t *at, uint32_t *sum) {
    while (size && (bytes[size - 1] == '\n' || bytes[size - 1] == '\r')) size--;
    if (size < CRC_LINE || memcmp(bytes + size - CRC_LINE, "crc ", 4) != 0) return false;
    *at = size - CRC_LINE;
    if (*at && bytes[*at - 1] != '\n') return false;
    *sum = 0;
    for (const char *c = bytes + *at + 4; c < bytes + size; c++) {
        int digit = *c >= '0' && *c <= '9' ? *c - '0' : *c >= 'a' && *c <= 'f' ? *c - 'a' + 10 : -1;
        if (digit < 0) return false;
        *sum = *sum << 4 | (uint32_t)digit;
    }
    return true;
}

bool exchange_open(exchange_head *h, const char *kind, const char *bytes, size_t size, err *e) {
    size_t end;
    uint32_t sum;
    text key, value, rest;
    char mark[EXCHANGE_KIND + 16];
    snprintf(mark, sizeof mark, "tradewind-%s", kind);
    *h = (exchange_head){0};
    if (size > EXCHANGE_MOST) return err_input(e, "has more than %d bytes", EXCHANGE_MOST);
    if (!find_sum(bytes, size, &end, &sum)) return err_input(e, "has no sum at its end");
    if (crc32(0, (const unsigned char *)bytes, (unsigned)end) != sum) return err_input(e, "its sum is wrong");
    rest = (text){bytes, end};
    int64_t format;
    if (!exchange_line(&rest, &key, &value) || !exchange_is(key, mark) || !exchange_whole(value, &format))
        return err_input(e, "does not begin with %s", mark);
    if (format != 1) return err_input(e, "is of format %lld, this program reads 1", (long long)format);
    if (!exchange_line(&rest, &key, &value) || !exchange_is(key, "epoch") || !exchange_whole(value, &h->epoch))
        return err_input(e, "has no epoch");
    if (!exchange_line(&rest, &key, &value) || !exchange_is(key, "seq") || !exchange_whole(value, &h->seq))
        return err_input(e, "has no seq");
    h->rest = rest;
    return true;
}

static bool take_symbol(text value, char *symbol) {
    if (!value.size || !bars_symbol_ok(value)) return false;
    memcpy(symbol, value.at, value.size);
    symbol[value.size] = 0;
    return true;
}

bool exchange_bars_open(exchange_bars *b, const char *bytes, size_t size, err *e) {
    text key, value;
    *b = (exchange_bars){.span = 0};
    if (!exchange_open(&b->head, "bars", bytes, size, e)) return false;
    text rest = b->head.rest;
    while (exchange_line(&rest, &key, &value)) {
        if (exchange_is(key, "symbol") && !take_symbol(value, b->symbol)) return err_input(e, "its symbol is no name");
        if (exchange_is(key, "span") && (!exchange_whole(value, &b->span) || b->span < 1 || b->span > 366 * WHEN_DAY))
            return err_input(e, "its span is none");
        if (exchange_is(key, "rows")) break;
    }
    b->rows = rest;
    return (*b->symbol && b->span) || err_input(e, "has no symbol or no span");
}

static void take_refusal(exchange_status *s, text value) {
    int64_t id;
    if (!exchange_whole(value, &id) || id <= s->refused) return;
    word_of(&value);
    s->refused = id;
    bars_text_show(s->refused_text, sizeof s->refused_text, value);
}

bool exchange_status_open(exchange_status *s, const char *bytes, size_t size, err *e) {
    text key, value;
    *s = (exchange_status){.applied = 0};
    if (!exchange_open(&s->head, "advisor", bytes, size, e)) return false;
    text rest = s->head.rest;
    while (exchange_line(&rest, &key, &value)) {
        if (exchange_is(key, "clock")) s->has_clock = exchange_whole(value, &s->clock);
        if (exchange_is(key, "account")) s->demo = exchange_is(value, "demo");
        if (exchange_is(key, "applied") && !exchange_whole(value, &s->applied)) s->applied = 0;
        if (exchange_is(key, "refused")) take_refusal(s, value);
    }
    return true;
}

char *exchange_targets(int64_t epoch, int64_t seq, int64_t now, const feed_target *t, int count, size_t *size) {
    text_out to;
    text_open(&to);
    FILE *f = to.out;
    fprintf(f, "tradewind-targets 1\nepoch %lld\nseq %lld\nwritten %lld\n", (long long)epoch, (long long)seq,
        (long long)now);
    for (int i = 0; i < count; i++)
        fprintf(f, "target %lld %s %.8f %.10g %.10g %lld %lld\n", (long long)t[i].id, t[i].symbol, t[i].lots, t[i].stop,
            t[i].target, (long long)t[i].decided, (long long)t[i].until);
    NEED(!fflush(f) && !to.failed, "no memory for target positions");
    fprintf(f, "crc %08x\n", (unsigned)crc32(0, (const unsigned char *)to.text, (unsigned)to.bytes));
    char *text = text_close(&to);
    NEED(text, "no memory for target positions");
    *size = to.bytes;
    return text;
}
