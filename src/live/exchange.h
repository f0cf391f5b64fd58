// Documents that tradewind and a MetaTrader 5 expert advisor exchange: small files of text, replaced whole.
//
//     tradewind-KIND 1            what it is, and the number of the format
//     epoch 1789000000123         when its writer began: milliseconds since 1970
//     seq 17                      grows with each document of a writer
//     KEY VALUE ...               one a line
//     crc 0123abcd                CRC-32 (that of zip) of every byte before this line
//
// A document whose sum does not fit is torn: it is read again later. doc/live_metatrader.md has the protocol.
#ifndef TRADEWIND_LIVE_EXCHANGE_H
#define TRADEWIND_LIVE_EXCHANGE_H

#include "data/bars_text.h"
#include "live/feed.h"

enum { EXCHANGE_MOST = 1 << 20, EXCHANGE_KIND = 16 };

typedef struct {
    int64_t epoch, seq;
    text rest; // the lines between seq and crc
} exchange_head;

// Reads the frame of a document of a kind ("bars"). False where it is torn or none, with the reason.
bool exchange_open(exchange_head *h, const char *kind, const char *bytes, size_t size, err *e);

// The next line of `rest` as a key and what follows it. False at the end. Blank lines are passed over.
bool exchange_line(text *rest, text *key, text *value);

bool exchange_is(text t, const char *word);

// A whole number of the value's first word; false where it is none.
bool exchange_whole(text value, int64_t *v);

// A bars document: everything before its rows. `rows` begins with their header.
typedef struct {
    exchange_head head;
    char symbol[BARS_SYMBOL_ROOM];
    int64_t span;
    text rows;
} exchange_bars;

bool exchange_bars_open(exchange_bars *b, const char *bytes, size_t size, err *e);

// An advisor's status document.
typedef struct {
    exchange_head head;
    bool has_clock;
    int64_t clock; // seconds that the server's clock is ahead of UTC
    bool demo;
    int64_t applied;       // id of the newest target position that it has seen
    int64_t refused;       // the greatest id that it refused; 0: none
    char refused_text[96]; // its symbol and why
} exchange_status;

bool exchange_status_open(exchange_status *s, const char *bytes, size_t size, err *e);

// The document of target positions; the caller frees it.
char *exchange_targets(int64_t epoch, int64_t seq, int64_t now, const feed_target *t, int count, size_t *size);

#endif
