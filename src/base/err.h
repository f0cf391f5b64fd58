// Errors: the world's mistakes travel up as `false` with one line of text; the programmer's stop the program.
//
// A function that can fail for reasons outside the program returns bool (or NULL) and fills an `err`. Only cli/ prints
// it. The kind decides the exit status: ERR_INPUT (the user's input is wrong) is 2, ERR_RUN (the run failed) is 1.
#ifndef TRADEWIND_BASE_ERR_H
#define TRADEWIND_BASE_ERR_H

#include <stdbool.h>
#include <stddef.h>

typedef enum { ERR_NONE, ERR_INPUT, ERR_RUN } err_kind;

typedef struct {
    err_kind kind;
    char text[1024]; // one line of printable characters, no program name
} err;

// Fill `e` (which may be NULL) and return false, so that a caller can write `return err_input(e, ...)`. The text says
// what is wrong, then what to do: "bars.csv:12: close is empty; remove the row or fill it".
bool err_input(err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
bool err_run(err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

// A programmer's mistake: always compiled in, prints the place and the message, aborts.
#define CHECK(cond, ...)                                                                                               \
    do {                                                                                                               \
        if (!(cond)) err_abort(__FILE__, __LINE__, #cond, __VA_ARGS__);                                                \
    } while (0)

void err_abort(const char *file, int line, const char *cond, const char *fmt, ...)
    __attribute__((noreturn, format(printf, 4, 5)));

#endif
