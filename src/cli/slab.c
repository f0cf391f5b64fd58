#include "cli/slab.h"

#include <stdlib.h>
#include <string.h>

enum { ACTIVATION, GRADIENT, RESERVE, SCRATCH, KINDS };
static const char letters[] = "AGRS";

static int kind_of(const plan *p, const graph *g, int block) {
    plan_owner w = p->owner[block];
    if (w.kind == OWNER_RESERVE) return RESERVE;
    if (w.kind == OWNER_SCRATCH) return SCRATCH;
    return graph_info(g, (tensor){w.id})->role == ROLE_GRADIENT ? GRADIENT : ACTIVATION;
}

static double overlap(double a, double b, double from, double to) {
    double low = a > from ? a : from, high = b < to ? b : to;
    return high > low ? high - low : 0;
}

// Where a column begins: they share the instructions out evenly.
static double begin_of(const plan *p, const slab_picture *s, int column) {
    return (double)p->instructions * column / s->columns;
}

// The kind that has the largest part of a cell, which is as large as `all`.
static char fullest(const double *part, double all) {
    int best = -1;
    double most = all;
    for (int k = 0; k < KINDS; k++) most -= part[k];
    for (int k = 0; k < KINDS; k++) {
        if (part[k] <= most) continue;
        most = part[k];
        best = k;
    }
    return best < 0 ? '.' : letters[best];
}

static char cell_of(const plan *p, const graph *g, const slab_picture *s, int column, int band) {
    double part[KINDS] = {0}, from = begin_of(p, s, column), to = begin_of(p, s, column + 1);
    double low = (double)p->peak * band / SLAB_ROWS, high = (double)p->peak * (band + 1) / SLAB_ROWS;
    for (int i = 0; i < p->blocks; i++) {
        const plan_block *b = &p->block[i];
        double wide = overlap(b->first, b->last + 1, from, to);
        double tall = overlap((double)b->offset, (double)(b->offset + b->bytes), low, high);
        part[kind_of(p, g, i)] += wide * tall;
    }
    return fullest(part, (to - from) * (high - low));
}

static char phase_of(const plan *p, const graph *g, int at) {
    instruction in = p->list[at];
    if (in.backward) return 'b';
    if (in.again) return 'r';
    return graph_node(g, in.node)->phase == PHASE_AFTER ? 'e' : 'f';
}

static int peak_of(const plan *p) {
    size_t most = 0;
    int best = 0;
    for (int at = 0; at < p->instructions; at++) {
        size_t alive = 0;
        for (int i = 0; i < p->blocks; i++)
            if (p->block[i].first <= at && at <= p->block[i].last) alive += p->block[i].bytes;
        if (alive <= most) continue;
        most = alive;
        best = at;
    }
    return best;
}

slab_picture slab_draw(const plan *p, const graph *g) {
    slab_picture s = {.columns = p->instructions < SLAB_COLUMNS ? p->instructions : SLAB_COLUMNS};
    int peak = peak_of(p);
    for (int c = 0; c < s.columns; c++) {
        for (int row = 0; row < SLAB_ROWS; row++) s.cell[row][c] = cell_of(p, g, &s, c, SLAB_ROWS - 1 - row);
        s.phase[c] = phase_of(p, g, (int)begin_of(p, &s, c));
        if (begin_of(p, &s, c) <= peak) s.peak = c;
    }
    return s;
}

void slab_print(const slab_picture *s, size_t bytes, FILE *out) {
    fprintf(out, "the slab's %.1f MB of planned memory over a micro-batch\n", (double)bytes / 1e6);
    for (int row = 0; row < SLAB_ROWS; row++)
        fprintf(out, "%9.1f %s\n", (double)bytes * (SLAB_ROWS - row) / SLAB_ROWS / 1e6, s->cell[row]);
    fprintf(out, "       MB %s\n%*s^ the most alive\n", s->phase, 10 + s->peak, "");
    fputs("          A activation, G gradient, R kept for backward, S scratch, . free; f forward, r recomputed, "
          "b backward, e end\n",
        out);
}
