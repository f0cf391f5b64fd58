// The text of a bar file: its encoding, its lines, its cells.
#ifndef TRADEWIND_DATA_BARS_TEXT_H
#define TRADEWIND_DATA_BARS_TEXT_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

// Bytes of some text that somebody else owns; not terminated.
typedef struct {
    const char *at;
    size_t size;
} text;

// Takes a UTF-8 mark off, or turns UTF-16 (with a mark, or plain from its zero bytes) into bytes, with '?' for what is
// not ASCII. `*owned` is then the memory behind `t`, which the caller frees. Other text comes back as it is; archives
// and binary formats that people confuse with it are refused by name.
bool bars_text_decode(text *t, const char *name, char **owned, err *e);

// The next line of `rest`, without its end (LF or CR LF) and without blanks around it. False at the end. Blank lines
// come out empty.
bool bars_text_line(text *rest, text *line);

// The next cell of a line, without blanks and quotes around it; `*more` says whether a separator followed. The line
// moves on behind it. Quotes inside a quoted cell are not supported.
text bars_text_cell(text *line, char separator, bool *more);

// Copies a cell for a message: cut to what fits, control characters as spaces, and '?' for what is not UTF-8, as in
// files of older encodings: JSON and terminals take no other. Returns `buf`.
char *bars_text_show(char *buf, size_t n, text t);

// Puts a column's name into the form in which names are compared: lower-case letters and digits only, so that <TICKVOL>
// is tickvol and "Adj Close" adjclose. Longer names are cut.
void bars_text_name(char *buf, size_t n, text t);

#endif
