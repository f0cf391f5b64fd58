#include "run/checkpoint.h"

#include "base/file.h"
#include "base/format.h"
#include "run/sum.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FILES_MOST = 65536 };

static const char ending[] = ".safetensors";
static const char *const stems[CHECKPOINT_KINDS] = {"checkpoint_epoch_", "checkpoint_step_", "last"};

// Names

char *checkpoint_path(const char *dir, checkpoint_kind kind, uint64_t number) {
    size_t room = strlen(dir) + 64;
    char *path = malloc(room);
    NEED(path, "out of memory for a path");
    if (kind == CHECKPOINT_LAST)
        snprintf(path, room, "%s/%s%s", dir, stems[kind], ending);
    else
        snprintf(path, room, "%s/%s%" PRIu64 "%s", dir, stems[kind], number, ending);
    return path;
}

bool checkpoint_named(const char *name, checkpoint_kind *kind, uint64_t *number) {
    for (int k = 0; k < CHECKPOINT_KINDS; k++) {
        size_t n = strlen(stems[k]);
        if (strncmp(name, stems[k], n) != 0) continue;
        char *end = (char *)(uintptr_t)name + n;
        *number = 0;
        if (k != CHECKPOINT_LAST) {
            if (*end < '0' || *end > '9') continue;
            errno = 0;
            *number = strtoull(end, &end, 10);
            if (errno) continue;
        }
        *kind = (checkpoint_kind)k;
        if (strcmp(end, ending) == 0) return true;
    }
    return false;
}

// Writing

bool checkpoint_write(const char *path, uint64_t step, const safetensors_entry *entries, int count,
    const safetensors_note *notes, int note_count, err *e) {
    safetensors_note all[SUM_NOTES_MOST];
    char version[16], steps[32], sum[SUM_ROOM];
    int n = 0;
    CHECK(note_count + 3 <= SUM_NOTES_MOST, "%d notes", note_count);
    snprintf(version, sizeof version, "%d", CHECKPOINT_VERSION);
    snprintf(steps, sizeof steps, "%" PRIu64, step);
    for (; n < note_count; n++) all[n] = notes[n];
    all[n++] = (safetensors_note){"checkpoint", version};
    all[n++] = (safetensors_note){"step", steps};
    all[n] = sum_note(all, n, entries, count, sum);
    n++;
    return safetensors_write(path, entries, count, all, n, e);
}

// Reading

bool checkpoint_known(const safetensors *s, const char *path, err *e) {
    const char *version = safetensors_metadata(s, "checkpoint");
    return !version || format_known(path, format_number(version), CHECKPOINT_VERSION, e);
}

static bool is_checkpoint(const safetensors *s, const char *path, err *e) {
    const char *version = safetensors_metadata(s, "checkpoint");
    if (!version || !safetensors_metadata(s, "step") || !safetensors_metadata(s, "sum"))
        return err_input(e, "%s: holds weights, but is no checkpoint of a run", path);
    if (!format_number(version)) return err_input(e, "%s: says nothing of its format; the file is damaged", path);
    return checkpoint_known(s, path, e);
}

safetensors *checkpoint_open(const char *path, err *e) {
    safetensors *s = safetensors_open(path, e);
    if (s && is_checkpoint(s, path, e) && sum_holds(s, path, e)) return s;
    safetensors_close(s);
    return NULL;
}

uint64_t checkpoint_step(const safetensors *s) {
    return strtoull(safetensors_metadata(s, "step"), NULL, 10);
}

// A directory's checkpoints

typedef struct {
    char *path;
    checkpoint_kind kind;
    uint64_t number; // of its name
    uint64_t step;
} found;

typedef struct {
    found *file;
    int count;
} listing;

static void listing_done(listing *l) {
    for (int i = 0; i < l->count; i++) free(l->file[i].path);
    free(l->file);
}

static void add_file(listing *l, const char *dir, const char *name) {
    found f = {0};
    if (l->count == FILES_MOST || !checkpoint_named(name, &f.kind, &f.number)) return;
    size_t room = strlen(dir) + strlen(name) + 2;
    l->file = realloc(l->file, (size_t)(l->count + 1) * sizeof *l->file);
    f.path = malloc(room);
    NEED(l->file && f.path, "out of memory for a list of files");
    snprintf(f.path, room, "%s/%s", dir, name);
    l->file[l->count++] = f;
}

static bool list_files(const char *dir, listing *l, err *e) {
    *l = (listing){0};
    DIR *d = opendir(dir);
    if (!d) return file_fail(e, dir, "cannot be read", errno);
    for (const struct dirent *each; (each = readdir(d));) add_file(l, dir, each->d_name);
    closedir(d);
    return true;
}

static int by_step_falling(const void *a, const void *b) {
    const found *x = a, *y = b;
    if (x->step != y->step) return x->step < y->step ? 1 : -1;
    return strcmp(x->path, y->path);
}

static int by_number_falling(const void *a, const void *b) {
    uint64_t x = ((const found *)a)->number, y = ((const found *)b)->number;
    return x < y ? 1 : x > y ? -1 : 0;
}

// A file that cannot be read now, for want of memory or descriptors, is not damaged: to pass it over would lose steps.
static bool is_readable(const err *why, err *e) {
    if (why->kind == ERR_RUN) *e = *why;
    return why->kind != ERR_RUN;
}

// Keeps the files whose head can be read, with their steps. False where one cannot be read now, or is of a newer
// format: going on from another would lose the steps that it holds.
static bool read_heads(listing *l, void (*damaged)(void *arg, const char *why), void *arg, err *e) {
    int kept = 0;
    bool ok = true;
    for (int i = 0; i < l->count; i++) {
        err why;
        safetensors *s = safetensors_open(l->file[i].path, &why);
        ok = ok && (!s || checkpoint_known(s, l->file[i].path, e));
        if (s && is_checkpoint(s, l->file[i].path, &why)) {
            l->file[i].step = checkpoint_step(s);
            l->file[kept++] = l->file[i];
        } else {
            ok = ok && is_readable(&why, e);
            if (ok && damaged) damaged(arg, why.text);
            free(l->file[i].path);
        }
        safetensors_close(s);
    }
    l->count = kept;
    return ok;
}

bool checkpoint_any(const char *dir) {
    listing l;
    err unused;
    bool has = list_files(dir, &l, &unused) && l.count;
    listing_done(&l);
    return has;
}

safetensors *checkpoint_newest(
    const char *dir, void (*damaged)(void *arg, const char *why), void *arg, char **path, err *e) {
    listing l;
    safetensors *s = NULL;
    *path = NULL;
    if (!list_files(dir, &l, e)) return NULL;
    bool ok = read_heads(&l, damaged, arg, e);
    if (ok && l.count) qsort(l.file, (size_t)l.count, sizeof *l.file, by_step_falling);
    for (int i = 0; ok && i < l.count && !s; i++) {
        err why;
        s = checkpoint_open(l.file[i].path, &why);
        ok = s || is_readable(&why, e);
        if (!s && ok && damaged) damaged(arg, why.text);
        if (!s) continue;
        *path = l.file[i].path;
        l.file[i].path = NULL;
    }
    listing_done(&l);
    if (ok && !s) err_input(e, "%s: has no whole checkpoint to go on from; leave --resume out to begin anew", dir);
    return s;
}

void checkpoint_rotate(const char *dir, checkpoint_kind kind, int64_t keep) {
    listing l;
    err unused;
    if (!keep || !list_files(dir, &l, &unused)) return;
    if (l.count) qsort(l.file, (size_t)l.count, sizeof *l.file, by_number_falling);
    for (int i = 0; i < l.count; i++)
        if (l.file[i].kind == kind && keep-- <= 0) unlink(l.file[i].path);
    listing_done(&l);
}
