#include "run/weights.h"

#include "base/format.h"
#include "run/checkpoint.h"
#include "run/run.h"
#include "run/sum.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

enum { NOTES_MOST = 16 };

bool weights_write(const char *path, const safetensors_entry *entries, int count, const safetensors_note *notes,
    int note_count, err *e) {
    safetensors_note all[NOTES_MOST];
    char version[16], sum[SUM_ROOM];
    int n = 0;
    CHECK(note_count + 2 <= NOTES_MOST, "%d notes", note_count);
    snprintf(version, sizeof version, "%d", WEIGHTS_VERSION);
    for (; n < note_count; n++) all[n] = notes[n];
    all[n++] = (safetensors_note){"weights", version};
    all[n] = sum_note(all, n, entries, count, sum);
    n++;
    return safetensors_write(path, entries, count, all, n, e);
}

// Weights of the second format have a sum.
static bool is_known(const safetensors *s, const char *path, err *e) {
    const char *version = safetensors_metadata(s, "weights");
    int number = version ? format_number(version) : 0;
    if (!checkpoint_known(s, path, e) || (version && !format_known(path, number, WEIGHTS_VERSION, e))) return false;
    if (number >= 2 && !safetensors_metadata(s, "sum"))
        return err_input(e,
            "%s: its sum is missing; the file is damaged: copy it again from where it is whole, or make it anew", path);
    // A file of others may have a note of that name.
    return !(version || safetensors_metadata(s, "checkpoint")) || sum_holds(s, path, e);
}

safetensors *weights_open(const char *path, err *e) {
    safetensors *s = safetensors_open(path, e);
    if (s && is_known(s, path, e)) return s;
    safetensors_close(s);
    return NULL;
}

// The sum of a file as the text of its note; "" where there is none.
static bool sum_of(const char *dir, char *to, size_t room, err *e) {
    err why = {0};
    char *path = run_path(dir, "best.safetensors");
    bool there = access(path, F_OK) == 0;
    safetensors *f = there ? safetensors_open(path, &why) : NULL;
    const char *sum = f ? safetensors_metadata(f, "sum") : NULL;
    snprintf(to, room, "%s", sum ? sum : "");
    safetensors_close(f);
    free(path);
    return why.kind != ERR_RUN || err_run(e, "%s", why.text);
}

bool weights_identity(const char *dir, char text[WEIGHTS_IDENTITY_ROOM], err *e) {
    char sum[WEIGHTS_IDENTITY_ROOM], name[32];
    unsigned long all = 0;
    if (!sum_of(dir, text, WEIGHTS_IDENTITY_ROOM, e)) return false;
    if (text[0]) return true;
    for (int k = 1;; k++) {
        snprintf(name, sizeof name, "member_%d", k);
        char *member = run_path(dir, name);
        bool ok = sum_of(member, sum, sizeof sum, e);
        free(member);
        if (!ok) return false;
        if (!sum[0]) return true;
        all = crc32(all, (const unsigned char *)sum, (unsigned)strlen(sum) + 1);
        snprintf(text, WEIGHTS_IDENTITY_ROOM, "%d:%08lx", k, all);
    }
}
