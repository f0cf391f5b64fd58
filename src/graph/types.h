// Element types and shapes, the vocabulary of graph and devices. Compiled by C and by nvcc.
#ifndef TRADEWIND_GRAPH_TYPES_H
#define TRADEWIND_GRAPH_TYPES_H

#include <stddef.h>
#include <stdint.h>

typedef enum { DTYPE_F32, DTYPE_F64, DTYPE_F16, DTYPE_BF16, DTYPE_I8, DTYPE_I32, DTYPE_I64 } dtype;

static inline size_t dtype_bytes(dtype t) {
    static const unsigned char bytes[] = {4, 8, 2, 2, 1, 4, 8};
    return bytes[t];
}

static inline const char *dtype_name(dtype t) {
    static const char *const names[] = {"f32", "f64", "f16", "bf16", "i8", "i32", "i64"};
    return names[t];
}

static inline int dtype_is_float(dtype t) {
    return t <= DTYPE_BF16;
}

// How a run computes (graph/dtype.h says what each means for a tensor's type).
typedef enum { PRECISION_FP32, PRECISION_TF32, PRECISION_BF16, PRECISION_FP16, PRECISION_FP64 } precision;

// Who computes large products on a card: by the device's own rule, its own kernels alone, a library wherever that can.
typedef enum { PRODUCTS_AUTO, PRODUCTS_OWN, PRODUCTS_LIBRARY } products_by;

enum { RANK_MOST = 4, BATCH = -1 };

// Parameters start at multiples of 64 bytes in an fp32 slab, so that vector loads of a parameter are aligned.
enum { SLAB_ALIGN = 16 };

typedef struct {
    int rank;
    int64_t dim[RANK_MOST]; // BATCH stands for the micro-batch's rows
} shape;

static inline shape shape1(int64_t a) {
    shape s = {1, {a, 0, 0, 0}};
    return s;
}

static inline shape shape2(int64_t a, int64_t b) {
    shape s = {2, {a, b, 0, 0}};
    return s;
}

static inline shape shape3(int64_t a, int64_t b, int64_t c) {
    shape s = {3, {a, b, c, 0}};
    return s;
}

static inline int64_t shape_last(shape s) {
    return s.dim[s.rank - 1];
}

// The shape with BATCH replaced; its number of elements.
static inline shape shape_resolve(shape s, int64_t batch) {
    for (int i = 0; i < s.rank; i++)
        if (s.dim[i] == BATCH) s.dim[i] = batch;
    return s;
}

static inline int64_t shape_count(shape s) {
    int64_t n = 1;
    for (int i = 0; i < s.rank; i++) n *= s.dim[i];
    return n;
}

// True if one of its dimensions is the micro-batch's rows.
static inline int shape_is_batch(shape s) {
    for (int i = 0; i < s.rank; i++)
        if (s.dim[i] == BATCH) return 1;
    return 0;
}

static inline int shape_equal(shape a, shape b) {
    if (a.rank != b.rank) return 0;
    for (int i = 0; i < a.rank; i++)
        if (a.dim[i] != b.dim[i]) return 0;
    return 1;
}

#endif
