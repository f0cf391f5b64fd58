// Bytes that arrive piece by piece, as lines. Text is UTF-8 or, as MetaTrader writes it, UTF-16; the first bytes tell.
//
// A line longer than FEED_LINE_MOST is not kept: it comes out once as LINES_LONG. Memory is in the struct.
#ifndef TRADEWIND_LIVE_LINES_H
#define TRADEWIND_LIVE_LINES_H

#include "data/bars_text.h"
#include "live/feed.h"

enum { LINES_ROOM = 4 * FEED_LINE_MOST };

typedef struct {
    char byte[LINES_ROOM];
    size_t begin, end;    // of what is kept
    bool skips;           // to the end of a line that is too long
    int64_t number;       // of the line that came last
    int encoding;         // private: see lines.c
    unsigned char odd[8]; // bytes of which the encoding is not clear yet, or half a character
    size_t odds;
} lines;

// As at the beginning of a text.
void lines_reset(lines *l);

// Forgets what is kept of a line, to go on at the beginning of another of the same text.
void lines_drop(lines *l);

// Bytes before the next line where a newline was found at `at`: 2 where its second byte follows.
size_t lines_newline(const lines *l);

// Bytes that lines_push takes now without one being lost.
size_t lines_room(const lines *l);

// Takes bytes, lines_room at most.
void lines_push(lines *l, const char *bytes, size_t n);

typedef enum { LINES_NONE, LINES_GOT, LINES_LONG } lines_answer;

// The next whole line, without its end and blanks around it; valid until the next call.
lines_answer lines_next(lines *l, text *line);

// The rest without an end of line, as a line.
lines_answer lines_rest(lines *l, text *line);

#endif
