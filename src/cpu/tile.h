// The inner loops of small matrix products whose operands stay in the first cache levels: `rows` x `vectors`
// accumulators live in registers while k runs. Element k of row r is a[r][k * step]; row k of the other operand starts
// at b + k * ldb. Whatever the layout of `a`, its elements are broadcast, so transposed operands cost nothing.
//
// TILE_ROWS x 4 vectors and TILE_TALL x 2 vectors are what the variant's registers hold.
#ifndef TRADEWIND_CPU_TILE_H
#define TRADEWIND_CPU_TILE_H

#include "cpu/vec.h"

#if defined(__AVX512F__)
enum { TILE_ROWS = 6, TILE_TALL = 8 };
#else
enum { TILE_ROWS = 2, TILE_TALL = 4 };
#endif

#define TILE_UNROLL _Pragma("GCC unroll 8")

typedef struct {
    const float *a[TILE_TALL];
    int64_t step;
} tile_rows;

VEC_FN void tile_product(
    int rows, int vectors, vec acc[][4], const tile_rows *a, const float *b, int64_t ldb, int64_t count) {
    for (int64_t k = 0; k < count; k++) {
        vec column[4];
        TILE_UNROLL for (int v = 0; v < vectors; v++) column[v] = vec_load(b + k * ldb + v * VEC);
        TILE_UNROLL for (int r = 0; r < rows; r++) {
            float x = a->a[r][k * a->step];
            TILE_UNROLL for (int v = 0; v < vectors; v++) acc[r][v] += x * column[v];
        }
    }
}

// c[rows][vectors] (+)= a b, accumulators taken from and returned to memory.
VEC_FN void tile_update(int rows, int vectors, bool add, const tile_rows *a, const float *b, int64_t ldb, int64_t count,
    float *c, int64_t ldc) {
    vec acc[TILE_TALL][4];
    TILE_UNROLL for (int r = 0; r < rows; r++) TILE_UNROLL for (int v = 0; v < vectors; v++) acc[r][v] =
        add ? vec_load(c + r * ldc + v * VEC) : vec_all(0);
    tile_product(rows, vectors, acc, a, b, ldb, count);
    TILE_UNROLL for (int r = 0; r < rows; r++) TILE_UNROLL for (int v = 0; v < vectors; v++)
        vec_store(c + r * ldc + v * VEC, acc[r][v]);
}

// c[m][4 * VEC] (+)= a b for any m up to TILE_ROWS.
static inline void tile_wide(
    int m, bool add, const tile_rows *a, const float *b, int64_t ldb, int64_t count, float *c, int64_t ldc) {
    switch (m) {
    case 1: tile_update(1, 4, add, a, b, ldb, count, c, ldc); return;
    case 2: tile_update(2, 4, add, a, b, ldb, count, c, ldc); return;
#if defined(__AVX512F__)
    case 3: tile_update(3, 4, add, a, b, ldb, count, c, ldc); return;
    case 4: tile_update(4, 4, add, a, b, ldb, count, c, ldc); return;
    case 5: tile_update(5, 4, add, a, b, ldb, count, c, ldc); return;
    case 6: tile_update(6, 4, add, a, b, ldb, count, c, ldc); return;
#endif
    }
}

// Element (r, k) is at[r * row + k * step].
typedef struct {
    const float *at;
    int64_t row, step;
} tile_matrix;

// Rows of a tile from `first` on; those past the last repeat it.
static inline tile_rows tile_rows_of(tile_matrix a, int64_t first, int64_t rows, int height) {
    tile_rows t = {.step = a.step};
    for (int r = 0; r < height; r++) t.a[r] = a.at + (first + r < rows ? first + r : rows - 1) * a.row;
    return t;
}

// c[rows][width] (+)= a b, `width` in whole vectors. All tiles have their full height, so c has room for TILE_TALL more
// rows, whose values mean nothing. With `add` they are untouched where `rows` is a multiple of TILE_TALL.
static inline void tile_multiply(int64_t rows, int64_t width, int64_t count, tile_matrix a, const float *b, int64_t ldb,
    bool add, float *c, int64_t ldc) {
    int64_t v = 0;
    for (; !add && v + 4 * VEC <= width; v += 4 * VEC)
        for (int64_t r = 0; r < rows; r += TILE_ROWS) {
            tile_rows t = tile_rows_of(a, r, rows, TILE_ROWS);
            tile_update(TILE_ROWS, 4, false, &t, b + v, ldb, count, c + r * ldc + v, ldc);
        }
    for (; v + 2 * VEC <= width; v += 2 * VEC)
        for (int64_t r = 0; r < rows; r += TILE_TALL) {
            tile_rows t = tile_rows_of(a, r, rows, TILE_TALL);
            tile_update(TILE_TALL, 2, add, &t, b + v, ldb, count, c + r * ldc + v, ldc);
        }
    for (int64_t r = 0; v < width && r < rows; r += TILE_TALL) {
        tile_rows t = tile_rows_of(a, r, rows, TILE_TALL);
        tile_update(TILE_TALL, 1, add, &t, b + v, ldb, count, c + r * ldc + v, ldc);
    }
}

#endif
