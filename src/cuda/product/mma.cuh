// Tensor-core products of one warp, for four ways of multiplying:
//
//   MATH_F32    fp32 operands split into two tf32 halves, three products: fp32's accuracy to about 2^-21
//   MATH_TF32   operands rounded to tf32
//   MATH_BF16   operands in bf16
//   MATH_F16    operands in fp16
//
// Sums are fp32 always. A warp multiplies a 16 x MMA_K tile by MMA_K x 8; as in PTX, lane l holds rows l/4 and l/4 + 8
// and columns 2 (l%4) and 2 (l%4) + 1 of the result. Operands are `element`s: 4-byte words for the first two, 2-byte
// for the others. Cards without a product of a kind (bf16 and tf32 before sm_80) are refused when a queue is opened for
// it.
#ifndef TRADEWIND_CUDA_PRODUCT_MMA_CUH
#define TRADEWIND_CUDA_PRODUCT_MMA_CUH

#include "cuda/cuda.cuh"

enum { MATH_F32, MATH_TF32, MATH_BF16, MATH_F16 };

// The way to multiply for a call: by the type of its low results, or by what the run allows for fp32.
static inline int math_of(const call *c, dtype t) {
    if (t == DTYPE_BF16) return MATH_BF16;
    if (t == DTYPE_F16) return MATH_F16;
    return c->tf32 ? MATH_TF32 : MATH_F32;
}

template <int MATH> struct math_type {
    typedef float element;
    enum { K = 8 };
};
template <> struct math_type<MATH_BF16> {
    typedef __nv_bfloat16 element;
    enum { K = 16 };
};
template <> struct math_type<MATH_F16> {
    typedef __half element;
    enum { K = 16 };
};

CUDA_FN uint32_t tf32_bits(float v) {
#if __CUDA_ARCH__ >= 800
    uint32_t r;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(v));
    return r;
#else
    return __float_as_uint(v);
#endif
}

CUDA_FN void mma_tf32(float c[4], const uint32_t a[4], const uint32_t b[2]) {
#if __CUDA_ARCH__ >= 800
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
    // Without tf32 tensor cores: the same sum by exchanging operands within the warp.
    int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    for (int k = 0; k < 8; k++) {
        int from = k % 4;
        float lo = __uint_as_float(__shfl_sync(0xFFFFFFFFu, k < 4 ? a[0] : a[2], g * 4 + from));
        float hi = __uint_as_float(__shfl_sync(0xFFFFFFFFu, k < 4 ? a[1] : a[3], g * 4 + from));
        float b0 = __uint_as_float(__shfl_sync(0xFFFFFFFFu, k < 4 ? b[0] : b[1], (2 * t) * 4 + from));
        float b1 = __uint_as_float(__shfl_sync(0xFFFFFFFFu, k < 4 ? b[0] : b[1], (2 * t + 1) * 4 + from));
        c[0] += lo * b0;
        c[1] += lo * b1;
        c[2] += hi * b0;
        c[3] += hi * b1;
    }
#endif
}

CUDA_FN void mma_bf16(float c[4], const uint32_t a[4], const uint32_t b[2]) {
#if __CUDA_ARCH__ >= 800
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#endif
}

CUDA_FN void mma_f16(float c[4], const uint32_t a[4], const uint32_t b[2]) {
#if __CUDA_ARCH__ >= 800
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%5},{%6},{%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(b[0]));
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%5},{%6},{%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[2]), "r"(a[3]), "r"(b[1]));
#endif
}

// A lane's share of the two operands, as words. For 2-byte elements word j of A holds columns 2t, 2t+1 (and 8 more) of
// rows g, g+8; for 4-byte elements columns t and t + 4.
struct frag_a {
    uint32_t w[4];
};
struct frag_b {
    uint32_t w[2];
};

// Into a half that is rounded to tf32's 11 bits and the rest, of which the tensor cores drop the last bit if it has 12.
// By sums in fp32, which take fewer cycles than the conversion. What is not finite stays so, and beyond 4e34 nothing
// is.
CUDA_FN void split_tf32(uint32_t bits, uint32_t *big, uint32_t *small) {
    float v = __uint_as_float(bits), half = v;
#if __CUDA_ARCH__ >= 800
    float far = __fmul_rn(v, 8193.0f); // 2^13 + 1
    half = __fsub_rn(far, __fsub_rn(far, v));
#endif
    *big = __float_as_uint(half);
    *small = __float_as_uint(__fsub_rn(v, half));
}

template <int MATH> CUDA_FN void mma(float c[4], const frag_a &a, const frag_b &b) {
    if (MATH == MATH_BF16) {
        mma_bf16(c, a.w, b.w);
    } else if (MATH == MATH_F16) {
        mma_f16(c, a.w, b.w);
#if __CUDA_ARCH__ < 800 // tf32 is refused there, and its unrolled sums would take the compiler minutes
    } else if (MATH == MATH_F32) {
        mma_tf32(c, a.w, b.w); // rounds nothing here
    }
#else
    } else if (MATH == MATH_TF32) {
        uint32_t ra[4], rb[2];
        for (int i = 0; i < 4; i++) ra[i] = tf32_bits(__uint_as_float(a.w[i]));
        for (int i = 0; i < 2; i++) rb[i] = tf32_bits(__uint_as_float(b.w[i]));
        mma_tf32(c, ra, rb);
    } else {
        uint32_t ab[4], as[4], bb[2], bs[2];
        for (int i = 0; i < 4; i++) split_tf32(a.w[i], &ab[i], &as[i]);
        for (int i = 0; i < 2; i++) split_tf32(b.w[i], &bb[i], &bs[i]);
        mma_tf32(c, as, bb);
        mma_tf32(c, ab, bs);
        mma_tf32(c, ab, bb);
    }
#endif
}

// Where a term of a sum lies in shared memory. In fp32 a product comes out with the same bits whoever computes it, and
// of however many rows: each sum has its terms in the order in which row kernels take them
// (cuda/rows/rows_interpret.cuh), who of every 16 have 4t, 4t + 1 and then 4t + 2, 4t + 3 in lane t, where the tensor
// cores want t and t + 4.
template <int MATH> CUDA_FN int place_of_term(int k) {
    if (MATH != MATH_F32) return k;
    return (k & ~15) | (k & 2) << 2 | (k & 1) << 2 | (k >> 2 & 3);
}

template <int MATH> CUDA_FN int term_at_place(int p) {
    if (MATH != MATH_F32) return p;
    return (p & ~15) | (p & 3) << 2 | (p >> 3 & 1) << 1 | (p >> 2 & 1);
}

// Shared memory, addressed in bytes.

CUDA_FN uint32_t shared_address(const void *p) {
    return (uint32_t)__cvta_generic_to_shared(p);
}

CUDA_FN uint32_t shared_word(uint32_t at) {
    uint32_t w;
    asm volatile("ld.shared.b32 %0, [%1];" : "=r"(w) : "r"(at));
    return w;
}

// Four 8 x 8 tiles of 2-byte elements, whose rows lie where lanes 0-7, 8-15, ... say; turned, they come transposed.
CUDA_FN void load_matrices(uint32_t w[4], uint32_t at) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3])
                 : "r"(at));
}

CUDA_FN void load_matrices_turned(uint32_t w[4], uint32_t at) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3])
                 : "r"(at));
}

// Two 2-byte elements as a word.
template <int MATH> CUDA_FN uint32_t pair_word(float a, float b) {
    if (MATH == MATH_F16) {
        __half2 v = __floats2half2_rn(a, b);
        return *(uint32_t *)&v;
    }
    __nv_bfloat162 v = __floats2bfloat162_rn(a, b);
    return *(uint32_t *)&v;
}

#endif
