// Texts that are printed into memory. open_memstream is not for that: where its buffer cannot grow, glibc leaves out
// what was just printed, goes on, and tells nobody.
#ifndef TRADEWIND_BASE_TEXT_H
#define TRADEWIND_BASE_TEXT_H

#include <stdbool.h>
#include <stdio.h>

// A text that grows. It stays where it is from text_open to text_close.
typedef struct {
    FILE *out; // to print to
    char *text;
    size_t bytes, room;
    bool failed;
} text_out;

// Where there is no memory the program ends (NEED).
void text_open(text_out *t);

// The whole text, with a 0 behind its `bytes`, which the caller frees; NULL where memory was short at any time.
char *text_close(text_out *t);

#endif
