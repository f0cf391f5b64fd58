// A text picture of a plan: the slab over a micro-batch. Columns are instructions, rows are memory; a cell shows what
// fills most of it.
#ifndef TRADEWIND_CLI_SLAB_H
#define TRADEWIND_CLI_SLAB_H

#include "graph/plan.h"

enum { SLAB_COLUMNS = 64, SLAB_ROWS = 16 };

// Cells: A activation, G gradient, R reserve (kept by a kernel for backward), S scratch, . free. The first row is the
// highest memory. Under each column: f forward, r recomputed, b backward, e the end of a micro-batch.
typedef struct {
    int columns;
    char cell[SLAB_ROWS][SLAB_COLUMNS + 1];
    char phase[SLAB_COLUMNS + 1];
    int peak; // the column in which the most bytes are alive
} slab_picture;

slab_picture slab_draw(const plan *p, const graph *g);
void slab_print(const slab_picture *s, size_t bytes, FILE *out);

#endif
