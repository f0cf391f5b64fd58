// Text on its way into HTML or SVG: whatever a file's names hold, it stays text.
#ifndef TRADEWIND_WATCH_MARKUP_H
#define TRADEWIND_WATCH_MARKUP_H

#include <stdio.h>

// Writes a text with & < > " ' as entities. Control characters other than newline and tab, and bytes that are no UTF-8,
// are written as U+FFFD.
void markup_text(FILE *out, const char *text);

// The same for at most `most` characters, with an ellipsis in place of the rest.
void markup_short(FILE *out, const char *text, int most);

#endif
