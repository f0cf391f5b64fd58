#include "cuda/product/blaslt.cuh"

#include <cublasLt.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// A kind of product, and how it is computed.
struct blaslt_way {
    blaslt_way *next;
    blaslt_shape shape;
    cublasLtMatmulDesc_t product;
    cublasLtMatrixLayout_t a, b, to;
    cublasLtMatmulAlgo_t algorithm;
    bool found;
};

struct blaslt {
    void *library;
    cublasLtHandle_t handle; // NULL: the library cannot be used
    blaslt_way *ways;
    size_t version;
    bool off; // not wanted
    decltype(&cublasLtCreate) create;
    decltype(&cublasLtDestroy) destroy;
    decltype(&cublasLtGetVersion) get_version;
    decltype(&cublasLtMatmul) matmul;
    decltype(&cublasLtMatmulAlgoGetHeuristic) choose;
    decltype(&cublasLtMatmulDescCreate) product_create;
    decltype(&cublasLtMatmulDescDestroy) product_destroy;
    decltype(&cublasLtMatmulDescSetAttribute) product_set;
    decltype(&cublasLtMatrixLayoutCreate) layout_create;
    decltype(&cublasLtMatrixLayoutDestroy) layout_destroy;
    decltype(&cublasLtMatrixLayoutSetAttribute) layout_set;
    decltype(&cublasLtMatmulPreferenceCreate) wish_create;
    decltype(&cublasLtMatmulPreferenceDestroy) wish_destroy;
    decltype(&cublasLtMatmulPreferenceSetAttribute) wish_set;
};

// Opening

static bool find(const blaslt *l, const char *name, void *function) {
    void *symbol = dlsym(l->library, name);
    memcpy(function, &symbol, sizeof symbol);
    return symbol != NULL;
}

static bool find_all(blaslt *l) {
    return find(l, "cublasLtCreate", &l->create) && find(l, "cublasLtDestroy", &l->destroy) &&
           find(l, "cublasLtGetVersion", &l->get_version) && find(l, "cublasLtMatmul", &l->matmul) &&
           find(l, "cublasLtMatmulAlgoGetHeuristic", &l->choose) &&
           find(l, "cublasLtMatmulDescCreate", &l->product_create) &&
           find(l, "cublasLtMatmulDescDestroy", &l->product_destroy) &&
           find(l, "cublasLtMatmulDescSetAttribute", &l->product_set) &&
           find(l, "cublasLtMatrixLayoutCreate", &l->layout_create) &&
           find(l, "cublasLtMatrixLayoutDestroy", &l->layout_destroy) &&
           find(l, "cublasLtMatrixLayoutSetAttribute", &l->layout_set) &&
           find(l, "cublasLtMatmulPreferenceCreate", &l->wish_create) &&
           find(l, "cublasLtMatmulPreferenceDestroy", &l->wish_destroy) &&
           find(l, "cublasLtMatmulPreferenceSetAttribute", &l->wish_set);
}

// The last name is where toolkits lie that are not on the loader's path.
static void *load(const char *named) {
    static const char *const names[] = {
        "libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so", "/usr/local/cuda/lib64/libcublasLt.so"};
    void *library = named ? dlopen(named, RTLD_NOW | RTLD_LOCAL) : NULL;
    for (size_t i = 0; !named && !library && i < sizeof names / sizeof *names; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    return library;
}

static blaslt *opened(queue *q) {
    const char *wish = q->wish.blaslt;
    if (q->blaslt) return q->blaslt;
    blaslt *l = q->blaslt = (blaslt *)calloc(1, sizeof *l);
    NEED(l, "out of memory for a library's functions");
    l->off = wish && strcmp(wish, "0") == 0;
    if (l->off) return l;
    l->library = load(wish);
    if (!l->library || !find_all(l)) return l;
    l->version = l->get_version();
    if (l->create(&l->handle) != CUBLAS_STATUS_SUCCESS) l->handle = NULL;
    cudaGetLastError();
    return l;
}

// Ways

static cudaDataType_t type_of(dtype t) {
    return t == DTYPE_BF16 ? CUDA_R_16BF : t == DTYPE_F16 ? CUDA_R_16F : CUDA_R_32F;
}

static bool set_next(const blaslt *l, cublasLtMatrixLayout_t of, int64_t elements) {
    return l->layout_set(of, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &elements, sizeof elements) ==
           CUBLAS_STATUS_SUCCESS;
}

// A matrix, or `batch` of them; `row`: elements from one row to the next, 0 where they lie side by side.
static bool layout_make(
    const blaslt *l, cublasLtMatrixLayout_t *to, dtype t, int64_t rows, int64_t columns, int64_t row, int batch) {
    if (!row) row = columns;
    if (l->layout_create(to, type_of(t), (uint64_t)columns, (uint64_t)rows, row) != CUBLAS_STATUS_SUCCESS) return false;
    int32_t count = batch;
    return batch < 2 ||
           (l->layout_set(*to, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count) == CUBLAS_STATUS_SUCCESS &&
               set_next(l, *to, rows * row));
}

// The library thinks in columns: to it our rows are columns, every matrix is turned, and the product is b times a.
static bool describe_product(const blaslt *l, blaslt_way *w) {
    const blaslt_shape *s = &w->shape;
    cublasComputeType_t compute = s->tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    cublasOperation_t first = s->turned_b ? CUBLAS_OP_N : CUBLAS_OP_T, second = s->turned_a ? CUBLAS_OP_T : CUBLAS_OP_N;
    uint32_t end = s->bias ? (s->relu ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_BIAS)
                           : (s->relu ? CUBLASLT_EPILOGUE_RELU : CUBLASLT_EPILOGUE_DEFAULT);
    int32_t bias = type_of(s->to_type);
    const void *somewhere = (const void *)256; // some versions choose nothing while the bias has no address
    if (l->product_create(&w->product, compute, CUDA_R_32F) != CUBLAS_STATUS_SUCCESS) return false;
    int failed = l->product_set(w->product, CUBLASLT_MATMUL_DESC_TRANSA, &first, sizeof first) |
                 l->product_set(w->product, CUBLASLT_MATMUL_DESC_TRANSB, &second, sizeof second) |
                 l->product_set(w->product, CUBLASLT_MATMUL_DESC_EPILOGUE, &end, sizeof end);
    if (s->bias)
        failed |= l->product_set(w->product, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &bias, sizeof bias) |
                  l->product_set(w->product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &somewhere, sizeof somewhere);
    return !failed &&
           layout_make(l, &w->a, s->type, s->turned_a ? s->k : s->m, s->turned_a ? s->m : s->k, s->row_a, s->batch) &&
           layout_make(l, &w->b, s->type, s->turned_b ? s->k : s->n, s->turned_b ? s->n : s->k, s->row_b, s->batch) &&
           layout_make(l, &w->to, s->to_type, s->m, s->n, s->row_to, s->batch);
}

// Sums that are cut may be added from memory alone: the other schemes add in an order, or with a rounding, that is not
// always the same.
static bool choose_algorithm(const blaslt *l, blaslt_way *w) {
    cublasLtMatmulPreference_t wish;
    cublasLtMatmulHeuristicResult_t result = {};
    uint64_t room = BLASLT_ROOM;
    uint32_t reduction = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE, aligned = 16;
    int count = 0;
    if (l->wish_create(&wish) != CUBLAS_STATUS_SUCCESS) return false;
    int failed = l->wish_set(wish, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &room, sizeof room) |
                 l->wish_set(wish, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &reduction, sizeof reduction) |
                 l->wish_set(wish, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &aligned, sizeof aligned) |
                 l->wish_set(wish, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &aligned, sizeof aligned) |
                 l->wish_set(wish, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &aligned, sizeof aligned) |
                 l->wish_set(wish, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &aligned, sizeof aligned);
    if (!failed) failed = l->choose(l->handle, w->product, w->b, w->a, w->to, w->to, wish, 1, &result, &count);
    l->wish_destroy(wish);
    w->algorithm = result.algo;
    return !failed && count == 1 && result.state == CUBLAS_STATUS_SUCCESS && result.workspaceSize <= BLASLT_ROOM;
}

static bool is_same(const blaslt_shape *a, const blaslt_shape *b) {
    return a->m == b->m && a->n == b->n && a->k == b->k && a->type == b->type && a->to_type == b->to_type &&
           a->turned_a == b->turned_a && a->turned_b == b->turned_b && a->tf32 == b->tf32 && a->bias == b->bias &&
           a->relu == b->relu && a->row_a == b->row_a && a->row_b == b->row_b && a->row_to == b->row_to &&
           a->batch == b->batch;
}

// The library loads a kernel at its first use, which a recording forbids unless the mode says that it is no part of it.
static cudaStreamCaptureMode capture_mode(cudaStreamCaptureMode mode) {
    cudaThreadExchangeStreamCaptureMode(&mode);
    return mode;
}

static const blaslt_way *way_of(queue *q, const blaslt_shape *s) {
    blaslt *l = opened(q);
    if (!l->handle) return NULL;
    for (const blaslt_way *w = l->ways; w; w = w->next)
        if (is_same(&w->shape, s)) return w->found ? w : NULL;
    blaslt_way *w = (blaslt_way *)calloc(1, sizeof *w);
    NEED(w, "out of memory for a product's description");
    w->shape = *s;
    w->found = describe_product(l, w) && choose_algorithm(l, w);
    w->next = l->ways;
    l->ways = w;
    return w->found ? w : NULL;
}

bool blaslt_has(queue *q, const blaslt_shape *s) {
    cudaStreamCaptureMode before = capture_mode(cudaStreamCaptureModeRelaxed);
    bool has = way_of(q, s) != NULL;
    capture_mode(before);
    return has;
}

void blaslt_multiply(const call *c, const blaslt_shape *s, const blaslt_data *d, void *room) {
    queue *q = c->queue;
    const blaslt *l = q->blaslt;
    const blaslt_way *w = way_of(q, s);
    const float one = 1, beta = d->add ? 1 : 0;
    CHECK(
        w, "a product of %lld x %lld x %lld that nobody asked for", (long long)s->m, (long long)s->n, (long long)s->k);
    CHECK(((uintptr_t)d->a | (uintptr_t)d->b | (uintptr_t)d->to | (uintptr_t)d->bias | (uintptr_t)room) % 16 == 0,
        "operands of %s are not aligned", c->name);
    cudaStreamCaptureMode before = capture_mode(cudaStreamCaptureModeRelaxed);
    cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
    if (s->bias) status = l->product_set(w->product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &d->bias, sizeof d->bias);
    if (s->batch > 1 &&
        !(set_next(l, w->a, d->next_a) && set_next(l, w->b, d->next_b) && set_next(l, w->to, d->next_to)))
        status = CUBLAS_STATUS_INVALID_VALUE;
    if (status == CUBLAS_STATUS_SUCCESS)
        status = l->matmul(l->handle, w->product, &one, d->b, w->b, d->a, w->a, &beta, d->to, w->to, d->to, w->to,
            &w->algorithm, room, BLASLT_ROOM, q->stream);
    capture_mode(before);
    cuda_launched(c);
    if (status == CUBLAS_STATUS_SUCCESS) return;
    char why[96];
    snprintf(why, sizeof why, "cuBLASLt refuses a product with status %d; TRADEWIND_CUDA=blaslt=0 does without it",
        (int)status);
    cuda_refused(c, why);
}

void blaslt_describe(const queue *q, char *text, size_t room) {
    const blaslt *l = q->blaslt;
    size_t v = l ? l->version : 0;
    text[0] = 0;
    if (!l) return;
    if (l->handle)
        snprintf(text, room, "cuBLASLt %zu.%zu (large), own (small)", v / 10000, v % 10000 / 100);
    else
        snprintf(text, room, "own; %s",
            l->off       ? "cuBLASLt is turned off"
            : l->library ? "libcublasLt.so cannot be used"
                         : "libcublasLt.so not found");
}

// The library stays loaded, for the next queue.
void blaslt_close(queue *q) {
    blaslt *l = q->blaslt;
    if (!l) return;
    for (blaslt_way *w = l->ways, *next; w; w = next) {
        next = w->next;
        if (w->product) l->product_destroy(w->product);
        if (w->a) l->layout_destroy(w->a);
        if (w->b) l->layout_destroy(w->b);
        if (w->to) l->layout_destroy(w->to);
        free(w);
    }
    if (l->handle && !q->lost) l->destroy(l->handle);
    free(l);
    q->blaslt = NULL;
}
