#include "graph/arch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    int arch;
    char suffix; // 'a', 'f' or 0
    bool machine_code, ptx;
} target;

// The next target of a list; false at its end.
static bool next(const char **built, target *t) {
    char *end;
    size_t length = *built ? strcspn(*built, ":") : 0;
    if (!length) return false;
    *t = (target){.arch = (int)strtol(*built, &end, 10)};
    if (*end == 'a' || *end == 'f') t->suffix = *end++;
    size_t rest = length - (size_t)(end - *built);
    t->machine_code = rest == 0 || strncmp(end, "-real", rest) == 0;
    t->ptx = rest == 0 || strncmp(end, "-virtual", rest) == 0;
    *built += length + ((*built)[length] == ':');
    return true;
}

// True if a card has all that the target's code asks for.
static bool reaches(const target *t, int card) {
    if (t->suffix == 'a') return t->arch == card;
    return t->arch <= card && (t->suffix != 'f' || t->arch / 10 == card / 10);
}

arch_kernels arch_kernels_of(const char *built, int card) {
    target t;
    int code = 0, ptx = 0;
    while (next(&built, &t)) {
        if (!reaches(&t, card)) continue;
        if (t.machine_code && t.arch / 10 == card / 10 && t.arch > code) code = t.arch;
        if (t.ptx && t.arch > ptx) ptx = t.arch;
    }
    return (arch_kernels){code ? code : ptx, !code && ptx};
}

int arch_newest(const char *built) {
    target t;
    int newest = 0;
    while (next(&built, &t))
        if (t.machine_code && t.arch > newest) newest = t.arch;
    return newest;
}

// The targets of one kind, with commas.
static int list(const char *built, bool ptx, char *text, size_t room) {
    target t;
    int count = 0;
    size_t used = 0;
    text[0] = 0;
    while (next(&built, &t)) {
        if (!(ptx ? t.ptx : t.machine_code) || used >= room) continue;
        used += (size_t)snprintf(text + used, room - used, "%s%s_%d%.1s", count ? ", " : "", ptx ? "compute" : "sm",
            t.arch, t.suffix ? (char[]){t.suffix, 0} : "");
        count++;
    }
    return count;
}

void arch_text(const char *built, char *text, size_t room) {
    char code[128], ptx[128];
    int codes = list(built, false, code, sizeof code), others = list(built, true, ptx, sizeof ptx);
    snprintf(text, room, "%s%s%s%s%s", code, codes && others ? ", and for others" : "", others && codes ? " " : "",
        others ? "from PTX of " : "", ptx);
}
