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

#endif
