#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static bool fill(err *e, err_kind kind, const char *fmt, va_list args) {
    if (!e) return false;
    e->kind = kind;
    vsnprintf(e->text, sizeof e->text, fmt, args);
    // Text of files may hold what moves a terminal's cursor or ends the line.
    for (char *c = e->text; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f) *c = ' ';
    return false;
}

bool err_input(err *e, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    fill(e, ERR_INPUT, fmt, args);
    va_end(args);
    return false;
}

bool err_run(err *e, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    fill(e, ERR_RUN, fmt, args);
    va_end(args);
    return false;
}

void err_abort(const char *file, int line, const char *cond, const char *fmt, ...) {
    va_list args;
    fprintf(stderr, "tradewind: internal error at %s:%d (%s): ", file, line, cond);
    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);
    fputc('\n', stderr);
    abort();
}
