// JSON, on top of jansson: strict reading of text from outside, and one object a line for --json.
#ifndef TRADEWIND_BASE_JSON_H
#define TRADEWIND_BASE_JSON_H

#include "base/err.h"

#include <jansson.h>
#include <stddef.h>
#include <stdio.h>

// Values need memory in places that cannot tell of a failure: from now on the program ends where there is none (NEED).
void json_begin(void);

// Parses an object or an array with nothing but white space after it. Refused as ERR_INPUT: syntax errors, duplicate
// keys, NULs, invalid UTF-8, nesting of more than 64. The text of `e` starts with line and column; the caller knows the
// file. NULL on failure, otherwise a new reference.
json_t *json_read(const char *text, size_t bytes, err *e);

// Prints `object` on one line, keys in the order they were added, numbers with 13 digits, and flushes. Takes over the
// reference, also on failure. False when `object` is NULL (its making ran out of memory) or `out` takes no more.
bool json_line(FILE *out, json_t *object);

// Adds all that `from` has to `to`. Takes over the reference to `from`; where one of them is NULL (its making ran out
// of memory) `to` stays as it is.
void json_join(json_t *to, json_t *from);

// A number, or null where `v` is not finite, which JSON cannot say.
json_t *json_number(double v);

// A whole number of bytes, or null where it is not known: NAN.
json_t *json_bytes(double bytes);

// A text from outside, in which bytes that are no UTF-8 become "?"; null for NULL.
json_t *json_text(const char *text);

#endif
