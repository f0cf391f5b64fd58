#include "graph/device_name.h"

#include <stdlib.h>
#include <string.h>

enum { DIGITS_MOST = 3 };

bool device_name_read(device_name *n, const char *text) {
    static const char numbered[] = "cuda:";
    static const char *const names[] = {"auto", "cpu", "cuda"};
    size_t at = sizeof numbered - 1;
    *n = (device_name){0};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        n->kind = (device_kind)i;
        if (strcmp(text, names[i]) == 0) return true;
    }
    if (strncmp(text, numbered, at) != 0) return false;
    size_t digits = strspn(text + at, "0123456789");
    n->number = digits <= DIGITS_MOST ? atoi(text + at) : 0;
    return digits > 0 && digits <= DIGITS_MOST && !text[at + digits];
}
