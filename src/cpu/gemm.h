// Matrix products for the CPU's kernels: C (+)= A B, where B was packed into panels of up to 4 vectors of columns.
//
// A is read in place with any strides, since its elements are broadcast; only B is packed, once per call, and its
// panels are padded with zeros to whole vectors. An item is a piece of rows times a panel; items touch disjoint parts
// of C and depend on the sizes alone, so the result does not depend on who computes them. The work inside an item is
// blocked so that a panel's rows stay in the second cache level.
//
// Why not a BLAS: the OpenBLAS of current distributions falls back to SSE3 kernels on processors that are newer than it
// (measured on a 2023 Xeon: 4 times slower than this), and it allocates inside calls.
#ifndef TRADEWIND_CPU_GEMM_H
#define TRADEWIND_CPU_GEMM_H

#include "cpu/tile.h"

enum { GEMM_PANEL = 4 * VEC, GEMM_PIECE = 96, GEMM_DEPTH = 512 };

// Packing asks for lines of 16 numbers before it reads them: so many rows ahead, since the processor does not foresee
// pieces of rows. Weights and inputs come from memory once a call, and waiting took most of the time of packing.
enum { GEMM_LINE = 16, GEMM_AHEAD = 32 };

typedef struct {
    int64_t m, n, k;
    const float *a;
    int64_t a_row, a_step; // element (i, k) of A is a[i * a_row + k * a_step]
    const float *b;        // packed
    float *c;
    int64_t ldc;
    bool add;
} gemm;

// The part of C that an item computed: rows and columns.
typedef struct {
    int64_t row, rows, column, columns;
} gemm_part;

static inline int64_t gemm_panels(int64_t n) {
    return (n + GEMM_PANEL - 1) / GEMM_PANEL;
}

// Vectors in the panel that starts at `column`: 4, or as many as the rest needs (never 3).
static inline int gemm_vectors(int64_t n, int64_t column) {
    int64_t v = (n - column + VEC - 1) / VEC;
    return v >= 3 ? 4 : (int)v;
}

static inline size_t gemm_packed_bytes(int64_t k, int64_t n) {
    return (size_t)(gemm_panels(n) * GEMM_PANEL * k) * sizeof(float);
}

// Packs one panel of B, whose rows are `stride` apart, to its place in `to`.
static inline void gemm_pack(const float *b, int64_t stride, int64_t k, int64_t n, int64_t panel, float *to) {
    int64_t column = panel * GEMM_PANEL, width = gemm_vectors(n, column) * VEC;
    int64_t have = n - column < width ? n - column : width;
    to += column * k;
    for (int64_t i = 0; i < k; i++) {
        const float *from = b + i * stride + column;
        for (int64_t j = 0; j < have; j += GEMM_LINE) __builtin_prefetch(from + GEMM_AHEAD * stride + j, 0, 2);
        for (int64_t j = 0; j < have; j++) to[i * width + j] = from[j];
        for (int64_t j = have; j < width; j++) to[i * width + j] = 0;
    }
}

// The same where b holds B's columns, `stride` apart. A vector's worth of columns is read side by side, a line of each
// at a time, while the lines of the next columns are fetched.
static inline void gemm_pack_transposed(
    const float *b, int64_t stride, int64_t k, int64_t n, int64_t panel, float *to) {
    int64_t column = panel * GEMM_PANEL, width = gemm_vectors(n, column) * VEC;
    to += column * k;
    for (int64_t v = 0; v < width; v += VEC) {
        const float *from = b + (column + v) * stride;
        int64_t have = n - column - v < VEC ? n - column - v : VEC;
        float buffer[VEC][GEMM_LINE] = {0};
        for (int64_t i = 0; i < k; i += GEMM_LINE) {
            int64_t rows = k - i < GEMM_LINE ? k - i : GEMM_LINE;
            for (int64_t j = 0; j < have; j++) {
                __builtin_prefetch(from + (j + VEC) * stride + i, 0, 2);
                for (int64_t r = 0; r < rows; r++) buffer[j][r] = from[j * stride + i + r];
            }
            for (int64_t r = 0; r < rows; r++)
                for (int64_t j = 0; j < VEC; j++) to[(i + r) * width + v + j] = buffer[j][r];
        }
    }
}

static inline int64_t gemm_items(const gemm *g) {
    return (g->m + GEMM_PIECE - 1) / GEMM_PIECE * gemm_panels(g->n);
}

static inline int gemm_tile_height(int vectors) {
    return vectors == 4 ? TILE_ROWS : TILE_TALL;
}

// One tile of `rows` x `vectors` into memory with room for whole vectors.
static inline void gemm_tile(
    int rows, int vectors, bool add, const tile_rows *t, const float *b, int64_t depth, float *c, int64_t ldc) {
    int64_t ldb = vectors * VEC;
    if (vectors == 4) {
        tile_wide(rows, add, t, b, ldb, depth, c, ldc);
    } else if (rows == TILE_TALL && vectors == 2) {
        tile_update(TILE_TALL, 2, add, t, b, ldb, depth, c, ldc);
    } else if (rows == TILE_TALL) {
        tile_update(TILE_TALL, 1, add, t, b, ldb, depth, c, ldc);
    } else {
        for (int r = 0; r < rows; r++)
            for (int v = 0; v < vectors; v++) {
                tile_rows one = {.a = {t->a[r]}, .step = t->step};
                tile_update(1, 1, add, &one, b + v * VEC, ldb, depth, c + r * ldc + v * VEC, ldc);
            }
    }
}

// The same where C has no room for whole vectors: through a buffer.
static inline void gemm_edge_tile(int rows, int vectors, int64_t columns, bool add, const tile_rows *t, const float *b,
    int64_t depth, float *c, int64_t ldc) {
    float buffer[TILE_TALL * GEMM_PANEL];
    for (int r = 0; add && r < rows; r++)
        for (int64_t j = 0; j < vectors * VEC; j++) buffer[r * GEMM_PANEL + j] = j < columns ? c[r * ldc + j] : 0;
    gemm_tile(rows, vectors, add, t, b, depth, buffer, GEMM_PANEL);
    for (int r = 0; r < rows; r++) memcpy(c + r * ldc, buffer + r * GEMM_PANEL, (size_t)columns * sizeof *c);
}

static inline gemm_part gemm_run(const gemm *g, int64_t item) {
    int64_t panels = gemm_panels(g->n), column = item % panels * GEMM_PANEL, row = item / panels * GEMM_PIECE;
    int vectors = gemm_vectors(g->n, column), height = gemm_tile_height(vectors);
    gemm_part part = {row, g->m - row < GEMM_PIECE ? g->m - row : GEMM_PIECE, column, vectors * VEC};
    if (g->n - column < part.columns) part.columns = g->n - column;
    const float *panel = g->b + column * g->k;
    for (int64_t k = 0; k < g->k; k += GEMM_DEPTH) {
        int64_t depth = g->k - k < GEMM_DEPTH ? g->k - k : GEMM_DEPTH;
        for (int64_t i = 0; i < part.rows; i += height) {
            int rows = (int)(part.rows - i < height ? part.rows - i : height);
            tile_rows t = {.step = g->a_step};
            for (int r = 0; r < rows; r++) t.a[r] = g->a + (row + i + r) * g->a_row + k * g->a_step;
            float *c = g->c + (row + i) * g->ldc + column;
            bool add = g->add || k > 0;
            if (part.columns == vectors * VEC) {
                gemm_tile(rows, vectors, add, &t, panel + k * vectors * VEC, depth, c, g->ldc);
            } else {
                gemm_edge_tile(rows, vectors, part.columns, add, &t, panel + k * vectors * VEC, depth, c, g->ldc);
            }
        }
    }
    return part;
}

#endif
