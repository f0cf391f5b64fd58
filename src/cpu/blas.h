// The system's BLAS, single-threaded inside our pool.
#ifndef TRADEWIND_CPU_BLAS_H
#define TRADEWIND_CPU_BLAS_H

#include "base/pool.h"

// Keeps the BLAS from starting threads of its own and has every thread of the pool call it once, so that its working
// buffers exist before a step is timed or its allocations are counted.
void blas_prepare(pool *p);

// The library's name, version and the kernels it chose.
const char *blas_describe(void);

// C[m, n] = op(A) op(B) + beta * C, row-major, leading dimensions in elements.
void blas_gemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const float *a, int64_t lda, const float *b,
    int64_t ldb, float beta, float *c, int64_t ldc);

#endif
