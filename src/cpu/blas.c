#include "cpu/blas.h"

#include <cblas.h>

static void warm(void *arg, int64_t item, int worker) {
    float a[16] = {0}, c[16];
    (void)arg;
    (void)item;
    (void)worker;
    blas_gemm(false, false, 4, 4, 4, a, 4, a, 4, 0, c, 4);
}

const char *blas_describe(void) {
    return openblas_get_config();
}

void blas_prepare(pool *p) {
    openblas_set_num_threads(1);
    pool_run(p, pool_threads(p) * (int64_t)8, warm, NULL);
}

void blas_gemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const float *a, int64_t lda, const float *b,
    int64_t ldb, float beta, float *c, int64_t ldc) {
    cblas_sgemm(CblasRowMajor, ta ? CblasTrans : CblasNoTrans, tb ? CblasTrans : CblasNoTrans, (int)m, (int)n, (int)k,
        1.0f, a, (int)lda, b, (int)ldb, beta, c, (int)ldc);
}
