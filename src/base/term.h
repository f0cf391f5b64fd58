// Progress of a long job, for people: one redrawn line on a terminal, a plain line now and then elsewhere.
//
// Only cli/ and what it calls for display use this. Plain ASCII, no colours. Output errors are ignored: a closed pipe
// must not stop a job. Not for several threads at once.
#ifndef TRADEWIND_BASE_TERM_H
#define TRADEWIND_BASE_TERM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

bool term_is_tty(FILE *f);

// Writes `v`, rounded, with thousands: 343,000. Not finite or beyond 10^15 it is written as %.3g has it.
void term_count(char *buf, size_t n, double v);

// A time to wait, rounded up: 0:12, 1:02:03; "--:--" where it is not known.
void term_eta(char *buf, size_t n, double seconds);

// The ending of a noun after a number: "" after 1, else "s".
const char *term_s(int64_t n);

// Puts a space in place of each control character, so that text from outside stays on its line.
void term_one_line(char *text);

// In the caller's memory; its fields are private.
typedef struct {
    FILE *out;
    char title[64];
    double total;
    bool quiet, tty;
    double next;     // when the line may be written again
    double at, done; // the last sample of the rate
    double rate;     // smoothed, a second; 0 until known
    bool begun;      // what was done before the first call was not done in this time
    char text[512];  // the line on the terminal; empty when none is
} progress;

// A job of `total` steps; 0 or less when unknown (no bar, no ETA). `quiet` prints nothing, ever. `out` is a terminal
// where it is one and TERM is not "dumb".
void progress_init(progress *p, FILE *out, const char *title, double total, bool quiet);

// `done` steps are done; the format adds what else to show. Cheap to call for every step: it writes at most ten times a
// second to a terminal, every ten seconds elsewhere.
void progress_at(progress *p, double done, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

// A line that stays, above the bar. The text has no newline.
void progress_line(progress *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

// Clears the bar. Safe to call twice.
void progress_done(progress *p);

#endif
