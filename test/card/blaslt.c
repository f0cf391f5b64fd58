// A stand-in for cuBLASLt, for the card in software: the functions that cuda/product/blaslt.cu looks up, with products
// as sums in double. It is in the plug-in itself, to which
// a link by the library's name leads (CMakeLists.txt).
#include "card/runtime.h"

#include "base/half.h"

#include <cublasLt.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define VISIBLE __attribute__((visibility("default")))

// The library's opaque types.
typedef struct {
    cublasComputeType_t compute;
    cublasOperation_t turn_a, turn_b;
    uint32_t end;
    int32_t bias_type;
    const void *bias;
} product;

typedef struct {
    cudaDataType_t type;
    uint64_t rows, columns;
    int64_t lead; // elements from one column to the next
    int32_t batch;
    int64_t next;
} matrix;

typedef struct {
    product p;
    matrix a, b, to;
    const void *from_a, *from_b, *from_c;
    void *into, *room;
    size_t room_bytes;
    float alpha, beta;
} job;

VISIBLE cublasStatus_t cublasLtCreate(cublasLtHandle_t *to) {
    *to = malloc(1);
    return CUBLAS_STATUS_SUCCESS;
}

VISIBLE cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
    free(handle);
    return CUBLAS_STATUS_SUCCESS;
}

VISIBLE size_t cublasLtGetVersion(void) {
    return 130000;
}

VISIBLE cublasStatus_t cublasLtMatmulDescCreate(
    cublasLtMatmulDesc_t *to, cublasComputeType_t compute, cudaDataType_t scale) {
    product *p = calloc(1, sizeof *p);
    (void)scale;
    p->compute = compute;
    *to = (cublasLtMatmulDesc_t)(void *)p;
    return CUBLAS_STATUS_SUCCESS;
}

VISIBLE cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t of) {
    free(of);
    return CUBLAS_STATUS_SUCCESS;
}

// True if the value has the attribute's size, and was taken.
static cublasStatus_t put(void *to, size_t room, const void *from, size_t bytes) {
    if (bytes != room) return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(to, from, bytes);
    return CUBLAS_STATUS_SUCCESS;
}

VISIBLE cublasStatus_t cublasLtMatmulDescSetAttribute(
    cublasLtMatmulDesc_t of, cublasLtMatmulDescAttributes_t which, const void *value, size_t bytes) {
    product *p = (product *)(void *)of;
    switch (which) {
    case CUBLASLT_MATMUL_DESC_TRANSA: return put(&p->turn_a, sizeof p->turn_a, value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB: return put(&p->turn_b, sizeof p->turn_b, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE: return put(&p->end, sizeof p->end, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE: return put(&p->bias_type, sizeof p->bias_type, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER: return put(&p->bias, sizeof p->bias, value, bytes);
    default: return CUBLAS_STATUS_NOT_SUPPORTED;
    }
}

VISIBLE cublasStatus_t cublasLtMatrixLayoutCreate(
    cublasLtMatrixLayout_t *to, cudaDataType type, uint64_t rows, uint64_t columns, int64_t lead) {
    matrix *m = calloc(1, sizeof *m);
    *m = (matrix){.type = type, .rows = rows, .columns = columns, .lead = lead, .batch = 1};
    *to = (cublasLtMatrixLayout_t)(void *)m;
    return CUBLAS_STATUS_SUCCESS;
}

VISIBLE cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t of) {
    free(of);
    return CUBLAS_STATUS_SUCCESS;
}

VISIBLE cublasStatus_t cublasLtMatrixLayoutSetAttribute(
    cublasLtMatrixLayout_t of, cublasLtMatrixLayoutAttribute_t which, const void *value, size_t bytes) {
    matrix *m = (matrix *)(void *)of;
    switch (which) {
    case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT: return put(&m->batch, sizeof m->batch, value, bytes);
    case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET: return put(&m->next, sizeof m->next, value, bytes);
    default: return CUBLAS_STATUS_NOT_SUPPORTED;
    }
}

VISIBLE cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *to) {
    *to = malloc(1);
    return CUBLAS_STATUS_SUCCESS;
}

VISIBLE cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t of) {
    free(of);
    return CUBLAS_STATUS_SUCCESS;
}

VISIBLE cublasStatus_t cublasLtMatmulPreferenceSetAttribute(
    cublasLtMatmulPreference_t of, cublasLtMatmulPreferenceAttributes_t which, const void *value, size_t bytes) {
    (void)of, (void)which, (void)value, (void)bytes;
    return CUBLAS_STATUS_SUCCESS;
}

VISIBLE cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t of,
    cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
    cublasLtMatmulPreference_t wish, int most, cublasLtMatmulHeuristicResult_t *result, int *count) {
    (void)handle, (void)of, (void)a, (void)b, (void)c, (void)d, (void)wish, (void)most;
    memset(result, 0, sizeof *result);
    result->state = CUBLAS_STATUS_SUCCESS;
    *count = 1;
    return CUBLAS_STATUS_SUCCESS;
}

// Products

static float element(const void *at, cudaDataType_t type, int64_t i) {
    uint16_t low;
    uint32_t bits;
    float v;
    if (type == CUDA_R_32F) return ((const float *)at)[i];
    memcpy(&low, (const char *)at + 2 * i, sizeof low);
    if (type == CUDA_R_16F) return half_widen(low);
    bits = (uint32_t)low << 16;
    memcpy(&v, &bits, sizeof v);
    return v;
}

static void put_element(void *at, cudaDataType_t type, int64_t i, float v) {
    uint32_t bits;
    uint16_t low;
    memcpy(&bits, &v, sizeof bits);
    if (type == CUDA_R_32F) {
        ((float *)at)[i] = v;
        return;
    }
    low = type == CUDA_R_16F ? half_narrow(v) : v != v ? 0x7FFF : (uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
    memcpy((char *)at + 2 * i, &low, sizeof low);
}

static float as_tf32(float v) {
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    if ((bits & 0x7F800000u) == 0x7F800000u) return v; // infinite, or no number
    bits = (bits + 0x1000) & ~0x1FFFu;
    memcpy(&v, &bits, sizeof v);
    return v;
}

// A matrix as [rows][k] of the product, in double; tf32 rounds it.
static double *spread(
    const job *j, const matrix *m, const void *from, int64_t first, int64_t rows, int64_t k, bool turned) {
    double *to = malloc(sizeof *to * (size_t)(rows * k));
    bool cut = j->p.compute == CUBLAS_COMPUTE_32F_FAST_TF32;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0; i < k; i++) {
            float v = element(from, m->type, first + (turned ? i + r * m->lead : r + i * m->lead));
            to[r * k + i] = (double)(cut ? as_tf32(v) : v);
        }
    return to;
}

// A sum of products, for low operands rounded as often as this card's tensor cores round it, so that the library
// and own kernels come out with the same bits, as they nearly do on a card.
static double sum_of(const double *a, const double *b, int64_t k, bool low) {
    enum { TERMS = 16 };
    double sum = 0;
    for (int64_t i = 0; i < k; i++) {
        sum += a[i] * b[i];
        if (low && i % TERMS == TERMS - 1) sum = (double)(float)sum;
    }
    return sum;
}

static float finish(const product *p, double sum, int64_t row) {
    float v = (float)sum;
    if (p->end == CUBLASLT_EPILOGUE_BIAS || p->end == CUBLASLT_EPILOGUE_RELU_BIAS)
        v += element(p->bias, (cudaDataType_t)p->bias_type, row);
    if (p->end == CUBLASLT_EPILOGUE_RELU || p->end == CUBLASLT_EPILOGUE_RELU_BIAS) v = v < 0 ? 0 : v;
    return v;
}

static void multiply_one(const job *j, int number) {
    int64_t m = (int64_t)j->to.rows, n = (int64_t)j->to.columns,
            k = (int64_t)(j->p.turn_a == CUBLAS_OP_N ? j->a.columns : j->a.rows);
    double *a = spread(j, &j->a, j->from_a, number * j->a.next, m, k, j->p.turn_a != CUBLAS_OP_N);
    double *b = spread(j, &j->b, j->from_b, number * j->b.next, n, k, j->p.turn_b == CUBLAS_OP_N);
    for (int64_t c = 0; c < n; c++)
        for (int64_t r = 0; r < m; r++) {
            int64_t at = number * j->to.next + r + c * j->to.lead;
            double sum = (double)j->alpha * sum_of(a + r * k, b + c * k, k, j->a.type != CUDA_R_32F);
            if (j->beta != 0) sum += (double)j->beta * (double)element(j->from_c, j->to.type, at);
            put_element(j->into, j->to.type, at, finish(&j->p, sum, r));
        }
    free(a);
    free(b);
}

static void multiply(const void *work) {
    const job *j = work;
    memset(j->room, 0xFF, j->room_bytes < 64 ? j->room_bytes : 64); // it is the library's: what was there is gone
    for (int i = 0; i < j->to.batch; i++) multiply_one(j, i);
}

// True if all of a matrix lies in memory of the card's.
static bool lies_well(const matrix *m, const void *at) {
    size_t bytes = m->type == CUDA_R_32F ? 4 : 2;
    int64_t last = (m->batch - 1) * m->next + (int64_t)(m->columns - 1) * m->lead + (int64_t)m->rows;
    return runtime_owns(at, (size_t)last * bytes);
}

VISIBLE cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t of, const void *alpha,
    const void *a, cublasLtMatrixLayout_t layout_a, const void *b, cublasLtMatrixLayout_t layout_b, const void *beta,
    const void *c, cublasLtMatrixLayout_t layout_c, void *d, cublasLtMatrixLayout_t layout_d,
    const cublasLtMatmulAlgo_t *algorithm, void *room, size_t room_bytes, cudaStream_t stream) {
    job j = {.p = *(product *)(void *)of, .from_a = a, .from_b = b, .from_c = c, .into = d};
    j.room = room, j.room_bytes = room_bytes;
    (void)handle, (void)layout_c, (void)algorithm;
    j.a = *(matrix *)(void *)layout_a, j.b = *(matrix *)(void *)layout_b, j.to = *(matrix *)(void *)layout_d;
    memcpy(&j.alpha, alpha, sizeof j.alpha);
    memcpy(&j.beta, beta, sizeof j.beta);
    bool biased = j.p.end == CUBLASLT_EPILOGUE_BIAS || j.p.end == CUBLASLT_EPILOGUE_RELU_BIAS;
    if (!biased && j.p.end != CUBLASLT_EPILOGUE_DEFAULT && j.p.end != CUBLASLT_EPILOGUE_RELU)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    if (biased && !runtime_owns(j.p.bias, j.to.rows * (j.p.bias_type == CUDA_R_32F ? 4 : 2)))
        return CUBLAS_STATUS_INVALID_VALUE;
    if (c != d || !lies_well(&j.a, a) || !lies_well(&j.b, b) || !lies_well(&j.to, d) || !runtime_owns(room, room_bytes))
        return CUBLAS_STATUS_INVALID_VALUE;
    return runtime_submit(stream, "cublasLtMatmul", multiply, &j, sizeof j) == cudaSuccess
               ? CUBLAS_STATUS_SUCCESS
               : CUBLAS_STATUS_EXECUTION_FAILED;
}
