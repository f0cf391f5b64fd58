// The content of a live session's state, for tests: rows of its state as text, so that two sessions can be compared.
#ifndef TRADEWIND_TEST_LIVE_KEPT_H
#define TRADEWIND_TEST_LIVE_KEPT_H

#include <stdint.h>

// All that two sessions on the same bars must have in common: decisions, intents, trades and books, and of the limits'
// state all but clocks. Not: wall clocks, which intents were noted as given. The caller frees it.
char *kept_text(const char *state);

// The rows of a query as lines of text; the caller frees it.
char *kept_rows(const char *state, const char *sql);

// A number of the state; fails the test where it cannot be read.
int64_t kept_number(const char *state, const char *sql);

// Fails the test unless both states have the same.
void kept_same(const char *a, const char *b);

#endif
