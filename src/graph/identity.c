#include "graph/identity.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Adds a part behind a comma, or the first without one.
__attribute__((format(printf, 3, 4))) static void add(char *text, size_t room, const char *fmt, ...) {
    size_t used = strlen(text);
    va_list args;
    va_start(args, fmt);
    if (used && used + 2 < room) used += (size_t)snprintf(text + used, room - used, ", ");
    if (used < room) vsnprintf(text + used, room - used, fmt, args);
    va_end(args);
}

static void add_hardware(const device_identity *i, char *text, size_t room) {
    if (i->name[0]) add(text, room, "%s", i->name);
    if (i->card[0]) add(text, room, "%s", i->card);
    if (i->isa[0]) add(text, room, "%s", i->isa);
    if (i->arch) add(text, room, "sm_%d", i->arch);
    if (i->ptx) add(text, room, "kernels from compute_%d PTX", i->ptx);
    if (i->note[0]) add(text, room, "%s", i->note);
}

static void add_threads(const device_identity *i, char *text, size_t room) {
    if (i->threads) add(text, room, "%d thread%s", i->threads, i->threads == 1 ? "" : "s");
}

static void add_driver(const device_identity *i, char *text, size_t room) {
    int major = i->cuda / 1000, minor = i->cuda % 1000 / 10;
    if (i->driver[0]) add(text, room, "driver %s", i->driver);
    if (i->cuda) add(text, room, "%sCUDA %d.%d", i->driver[0] ? "" : "driver for ", major, minor);
}

void identity_text(const device_identity *i, char *text, size_t room) {
    text[0] = 0;
    add_hardware(i, text, room);
    add_driver(i, text, room);
    if (i->total) add(text, room, "%.1f of %.1f GB free", (double)i->free / 0x1p30, (double)i->total / 0x1p30);
    add_threads(i, text, room);
    size_t used = strlen(text);
    if (i->products[0]) snprintf(text + used, room - used, "; products by %s", i->products);
}

void identity_hardware(const device_identity *i, char *text, size_t room) {
    text[0] = 0;
    add_hardware(i, text, room);
    add_threads(i, text, room);
}

void identity_driver(const device_identity *i, char *text, size_t room) {
    text[0] = 0;
    add_driver(i, text, room);
    if (!text[0]) snprintf(text, room, "none");
}

void identity_plan(const device_identity *i, char *text, size_t room) {
    text[0] = 0;
    add_hardware(i, text, room);
    add_driver(i, text, room);
}

// Reading

// The parts of a line, apart at ", ".
typedef struct {
    char text[IDENTITY_ROOM];
    char *part[16];
    int parts, at;
} line;

static void cut(line *l, const char *text) {
    snprintf(l->text, sizeof l->text, "%s", text);
    l->text[strcspn(l->text, ";")] = 0; // behind it stand libraries that were open when the line was written
    l->parts = l->at = 0;
    for (char *from = l->text, *comma; from && l->parts < 16; from = comma ? comma + 2 : NULL) {
        comma = strstr(from, ", ");
        if (comma) *comma = 0;
        l->part[l->parts++] = from;
    }
}

// Takes the next part where it begins like this; the rest of it, or NULL.
static const char *take(line *l, const char *begins) {
    size_t n = strlen(begins);
    if (l->at == l->parts || strncmp(l->part[l->at], begins, n) != 0) return NULL;
    return l->part[l->at++] + n;
}

static void take_text(char *to, size_t room, const char *from) {
    if (from) snprintf(to, room, "%s", from);
}

static void take_cuda(line *l, device_identity *i, const char *begins) {
    const char *version = take(l, begins);
    int major, minor;
    if (version && sscanf(version, "%d.%d", &major, &minor) == 2) i->cuda = major * 1000 + minor * 10;
}

static void take_card(line *l, device_identity *i) {
    const char *number;
    if (l->at < l->parts && strncmp(l->part[l->at], "sm_", 3) != 0) take_text(i->card, sizeof i->card, take(l, ""));
    if ((number = take(l, "sm_"))) i->arch = atoi(number);
    if ((number = take(l, "kernels from compute_"))) i->ptx = atoi(number);
    take_cuda(l, i, "driver for CUDA ");
    take_text(i->driver, sizeof i->driver, take(l, "driver "));
    if (!i->cuda) take_cuda(l, i, "CUDA ");
}

void identity_read(device_identity *i, const char *text) {
    line l;
    char again[IDENTITY_ROOM];
    *i = (device_identity){0};
    cut(&l, text);
    take_text(i->name, sizeof i->name, take(&l, ""));
    if (strcmp(i->name, "cuda") == 0)
        take_card(&l, i);
    else
        take_text(i->isa, sizeof i->isa, take(&l, ""));
    identity_plan(i, again, sizeof again);
    if (strncmp(text, again, strlen(again)) == 0 && strchr(";", text[strlen(again)])) return;
    *i = (device_identity){0};
    snprintf(i->note, sizeof i->note, "%s", text);
}

bool identity_same(const device_identity *a, const device_identity *b) {
    char x[IDENTITY_ROOM] = "", y[IDENTITY_ROOM] = "";
    add_hardware(a, x, sizeof x);
    add_hardware(b, y, sizeof y);
    return strcmp(x, y) == 0;
}
