// A panel of series in the M4 competition's layout: a CSV with one series a row, its name first, then its values.
//
// Cells may be quoted. A first row whose second cell is no number is the header. Series differ in length: empty cells
// (or NA, NaN) at the end of a row are no values; one before a value is an error, and so are a name that comes twice, a
// series without values and a row longer than the header. Values are finite.
#ifndef TRADEWIND_DATA_PANEL_H
#define TRADEWIND_DATA_PANEL_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

// A name and which series has it.
typedef struct {
    const char *name;
    int64_t series;
} panel_place;

typedef struct {
    int64_t series;
    const char *const *name; // [series]
    const int64_t *offset;   // [series + 1] where each begins in `value`
    const double *value;
    const panel_place *order; // [series] by name, for panel_find
    void *memory;             // one block that owns what the pointers point to
} panel;

// ERR_INPUT with "FILE:LINE:" where the file is wrong. On failure `p` is empty.
bool panel_read(panel *p, const char *path, err *e);

// The same of text in memory; `path` is for messages.
bool panel_parse(panel *p, const char *path, const char *text, size_t bytes, err *e);

// Safe to call twice.
void panel_done(panel *p);

// The index of a series; -1 where there is none.
int64_t panel_find(const panel *p, const char *name);

#endif
