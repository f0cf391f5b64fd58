// Decimal numbers as bar files write them, read exactly: the double is the one that strtod gives.
#ifndef TRADEWIND_DATA_BARS_NUMBER_H
#define TRADEWIND_DATA_BARS_NUMBER_H

#include <stdbool.h>
#include <stddef.h>

typedef enum {
    NUMBER_OK,
    NUMBER_MISSING, // empty, null, nan, n/a, none or -
    NUMBER_BAD,     // no number, an infinity, or beyond a double
} number_kind;

// Reads a number of exactly `n` bytes: sign, digits, a point, an exponent. Nothing else, no hexadecimal. The bytes need
// no terminator.
number_kind bars_number(const char *text, size_t n, double *v);

// The same for numbers written for people: $1,843.20, and with a letter 1.23K, 4.5M, 2.1B. Commas must part groups of
// three digits; one comma without a point is a group only where the text is `english`, as it may be a decimal comma.
// Letters K, M, B and T are read where `lettered`.
number_kind bars_number_dressed(const char *text, size_t n, bool english, bool lettered, double *v);

#endif
