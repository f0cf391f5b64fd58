// cuBLASLt, NVIDIA's library of matrix products. It is opened at run time and needed by nothing: where it is missing,
// or the queue's switches turn it off, cuda/product/gemm.cuh computes.
//
// A queue opens it, by the name in its switches or the usual ones, when it first records a product that is large
// (cuda/join/large.cuh), since loading it takes a tenth of a second and some memory. What computes a product is asked
// for once for each kind of product and then kept: equal calls give equal bits. Sums that are cut are added in order,
// in memory of the caller's; nothing is allocated while a step runs, so products can be part of a recording.
#ifndef TRADEWIND_CUDA_PRODUCT_BLASLT_CUH
#define TRADEWIND_CUDA_PRODUCT_BLASLT_CUH

#include "cuda/cuda.cuh"

// Bytes of the library's working memory. NVIDIA recommends this much for Hopper; others need less, but the memory is
// planned before a card is known.
enum { BLASLT_ROOM = 32 << 20 };

// to [m][n] = a [m][k] times b [n][k]'; operands that are `turned` lie as [k][m] and [k][n]. Operands have one type:
// bf16, fp16 or fp32, which may be rounded to tf32.
typedef struct {
    int64_t m, n, k;
    dtype type, to_type;
    bool turned_a, turned_b;
    bool tf32;                                // of fp32
    bool bias, relu;                          // bias: n values of to_type
    int64_t row_a = 0, row_b = 0, row_to = 0; // elements from one row to the next; 0: rows lie side by side
    int batch = 0;                            // number of such products; 0: one
} blaslt_shape;

typedef struct {
    const void *a, *b, *bias;
    void *to;
    bool add;                                    // to what is there
    int64_t next_a = 0, next_b = 0, next_to = 0; // elements from one product of a batch to the next
} blaslt_data;

// True if the library is there and computes such a product; opens it where that has not been tried.
bool blaslt_has(queue *q, const blaslt_shape *s);

// Launches a product that it has. Every row lies at a multiple of 16 bytes; `room` has BLASLT_ROOM bytes.
void blaslt_multiply(const call *c, const blaslt_shape *s, const blaslt_data *d, void *room);

// Name of what computes large products; empty before the first try.
void blaslt_describe(const queue *q, char *text, size_t room);

void blaslt_close(queue *q);

#endif
