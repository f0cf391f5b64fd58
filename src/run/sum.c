#include "run/sum.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

static uLong sum_bytes(uLong sum, const void *data, size_t bytes) {
    const unsigned char *at = data;
    while (bytes) {
        uInt n = bytes < 1u << 30 ? (uInt)bytes : 1u << 30;
        sum = crc32(sum, at, n);
        at += n;
        bytes -= n;
    }
    return sum;
}

static uLong sum_text(uLong sum, const char *text) {
    return sum_bytes(sum, text, strlen(text) + 1);
}

static int by_key(const void *a, const void *b) {
    return strcmp(((const safetensors_note *)a)->key, ((const safetensors_note *)b)->key);
}

void sum_of_text(const char *text, char sum[SUM_ROOM]) {
    snprintf(sum, SUM_ROOM, "%08lx", sum_bytes(crc32(0, NULL, 0), text, strlen(text)));
}

// Notes by rising key, then tensors in the file's order, in which empty ones have no place.
static uLong sum_all(safetensors_note *notes, int note_count, const safetensors_entry *entries, int count) {
    uLong sum = crc32(0, NULL, 0);
    if (note_count) qsort(notes, (size_t)note_count, sizeof *notes, by_key);
    for (int i = 0; i < note_count; i++) sum = sum_text(sum_text(sum, notes[i].key), notes[i].value);
    for (int i = 0; i < count; i++) {
        if (!entries[i].bytes) continue;
        sum = sum_bytes(sum_text(sum, entries[i].name), entries[i].data, entries[i].bytes);
    }
    return sum;
}

safetensors_note sum_note(
    safetensors_note *notes, int note_count, const safetensors_entry *entries, int count, char text[SUM_ROOM]) {
    snprintf(text, SUM_ROOM, "%08lx", sum_all(notes, note_count, entries, count));
    return (safetensors_note){"sum", text};
}

bool sum_holds(const safetensors *s, const char *path, err *e) {
    safetensors_note notes[SUM_NOTES_MOST];
    const char *kept = safetensors_metadata(s, "sum");
    char text[SUM_ROOM];
    int n = 0;
    if (!kept) return true;
    for (int i = 0; i < safetensors_notes(s); i++) {
        safetensors_note note = safetensors_note_at(s, i);
        if (strcmp(note.key, "sum") == 0) continue;
        if (n == SUM_NOTES_MOST) return err_input(e, "%s: has more than %d notes; it is damaged", path, SUM_NOTES_MOST);
        notes[n++] = note;
    }
    sum_note(notes, n, safetensors_count(s) ? safetensors_at(s, 0) : NULL, safetensors_count(s), text);
    return strcmp(text, kept) == 0 || err_input(e,
                                          "%s: its sum does not fit its bytes; the file is damaged: copy it again from "
                                          "where it is whole, or make it anew",
                                          path);
}
