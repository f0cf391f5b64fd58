#include "data/fold.h"

#include <stdlib.h>
#include <string.h>

struct fold {
    int64_t steps;
    size_t row_bytes;
    fold_sink *sink;
    void *arg;
    fold_sums sums;
    int32_t run;         // the first row of the run
    unsigned char *last; // the window before the next call's first
};

fold *fold_new(int64_t steps, size_t row_bytes, fold_sink *sink, void *arg, err *e) {
    size_t bytes;
    CHECK(steps > 0 && row_bytes > 0, "windows of %lld rows of %zu bytes", (long long)steps, row_bytes);
    fold *f = calloc(1, sizeof *f);
    if (!f || __builtin_mul_overflow((size_t)steps, row_bytes, &bytes) || !(f->last = malloc(bytes))) {
        free(f);
        err_run(e, "no memory for a window of %lld rows of %zu bytes", (long long)steps, row_bytes);
        return NULL;
    }
    f->steps = steps;
    f->row_bytes = row_bytes;
    f->sink = sink;
    f->arg = arg;
    return f;
}

void fold_free(fold *f) {
    if (!f) return;
    free(f->last);
    free(f);
}

// By how many rows `window` is ahead of `before`; `steps` where they share none.
static int64_t shift_of(const fold *f, const unsigned char *before, const unsigned char *window) {
    for (int64_t k = 0; k < f->steps; k++) {
        const unsigned char *from = before + (size_t)k * f->row_bytes;
        // The first row nearly always decides, also in a window that has nothing in common with the one before.
        if (memcmp(from, window, f->row_bytes) != 0) continue;
        if (!memcmp(from, window, (size_t)(f->steps - k) * f->row_bytes)) return k;
    }
    return f->steps;
}

bool fold_push(fold *f, const void *windows, int64_t count, int32_t *row, int32_t *first, err *e) {
    size_t bytes = (size_t)f->steps * f->row_bytes;
    const unsigned char *before = f->last, *window = windows;
    for (int64_t i = 0; i < count; i++, before = window, window += bytes) {
        int64_t added = f->sums.samples ? shift_of(f, before, window) : f->steps;
        if (added > INT32_MAX - f->sums.rows)
            return err_input(e, "the windows fold into more than %d rows; split the set", INT32_MAX);
        if (added == f->steps) {
            f->run = (int32_t)f->sums.rows;
            f->sums.runs++;
        }
        if (added && !f->sink(f->arg, window + (size_t)(f->steps - added) * f->row_bytes, added, e)) return false;
        f->sums.rows += added;
        f->sums.samples++;
        row[i] = (int32_t)(f->sums.rows - 1);
        first[i] = f->run;
    }
    if (count > 0) memcpy(f->last, before, bytes);
    return true;
}

fold_sums fold_so_far(const fold *f) {
    return f->sums;
}
