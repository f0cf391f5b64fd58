#include "base/format.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

bool format_known(const char *path, int64_t format, int64_t newest, err *e) {
    if (format <= newest) return true;
    return err_input(e,
        "%s: was written by a newer tradewind (format %" PRId64 ", this program reads up to %" PRId64 "); update", path,
        format, newest);
}

int64_t format_number(const char *text) {
    char *end;
    errno = 0;
    long long n = strtoll(text, &end, 10);
    return errno || end == text || *end || n < 0 ? 0 : n;
}
