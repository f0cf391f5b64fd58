// Linear layers of few inputs over many rows, forward: they move rows rather than multiply. The bits are those of
// cuda/product/gemm.cuh.
//
// A block keeps all weights in shared memory, and each of its warps takes sixteen rows at a time straight from memory
// into the fragments of its products; the next rows are on their way meanwhile. Columns are dealt out to the tensor
// cores' tiles in such an order that a lane ends with eight neighbours, which it stores at once.
#ifndef TRADEWIND_CUDA_PRODUCT_THIN_CUH
#define TRADEWIND_CUDA_PRODUCT_THIN_CUH

#include "cuda/octet.cuh"
#include "cuda/product/gemm.cuh"

enum { THIN_THREADS = 256, THIN_WARPS = THIN_THREADS / 32, THIN_TILE = 16, THIN_STRIP = 32, THIN_BLOCKS_MOST = 1056 };
enum { THIN_ROWS_LEAST = 512, THIN_MOST = 32, THIN_SHARED_MOST = 40 * 1024 };

struct thin_args {
    view x, y;
    const float *weights; // [O][I]
    const float *bias;    // or NULL
    void *kept;           // z, for GELU, in the type of y
    int64_t rows;
    int I, O, act;
};

// DEPTH: inputs, made up to 16 or 32.
template <int MATH, int DEPTH> struct thin_shape {
    typedef typename math_type<MATH>::element E;
    enum { STEPS = DEPTH / math_type<MATH>::K, PITCH = DEPTH + (sizeof(E) == 2 ? 8 : 4), OWN = DEPTH / 2 };
    enum { TYPE = MATH == MATH_BF16 ? DTYPE_BF16 : MATH == MATH_F16 ? DTYPE_F16 : DTYPE_F32 };
};

static __host__ __device__ inline int thin_strips(int64_t O) {
    return (int)((O + THIN_STRIP - 1) / THIN_STRIP);
}

// The column at place p. A strip is four tiles, of which lane t of four gets columns 2t and 2t + 1: for it these are 8t
// and 8t + 1 in the first tile, 8t + 2 and 8t + 3 in the second, and so on.
CUDA_FN int thin_column(int p) {
    return p / THIN_STRIP * THIN_STRIP + p % 8 / 2 * 8 + p % THIN_STRIP / 8 * 2 + p % 2;
}

template <int MATH, int DEPTH>
CUDA_FN void thin_stage(const thin_args &a, typename math_type<MATH>::element *w, float *bias) {
    int places = thin_strips(a.O) * THIN_STRIP;
    for (int i = threadIdx.x; i < places * DEPTH; i += THIN_THREADS) {
        int column = thin_column(i / DEPTH), k = i % DEPTH;
        bool inside = column < a.O && k < a.I;
        convert(&w[i / DEPTH * thin_shape<MATH, DEPTH>::PITCH + place_of_term<MATH>(k)],
            inside ? a.weights[column * a.I + k] : 0.0f);
    }
    for (int i = threadIdx.x; i < places; i += THIN_THREADS) bias[i] = a.bias && i < a.O ? a.bias[i] : 0.0f;
}

// A lane's elements of sixteen rows, in the order of its fragments' words (cuda/product/mma.cuh).
template <int MATH, int DEPTH, bool FULL> CUDA_FN void thin_fetch_as(float *to, const thin_args &a, int64_t tile) {
    const int in_word = math_type<MATH>::K / 8;
#pragma unroll
    for (int n = 0; n < thin_shape<MATH, DEPTH>::OWN; n++) {
        int word = n / in_word, place = word / 2 * (4 * in_word) + threadIdx.x % 4 * in_word + n % in_word;
        int k = term_at_place<MATH>(place);
        int64_t row = tile * THIN_TILE + threadIdx.x % 32 / 4 + word % 2 * 8, at = row * a.I + k;
        to[n] = 0;
        if (row < a.rows && k < a.I) to[n] = FULL ? ((const float *)a.x.data)[at] : view_load(a.x, at);
    }
}

template <int MATH, int DEPTH> CUDA_FN void thin_fetch(float *to, const thin_args &a, int64_t tile) {
    if (a.x.type == DTYPE_F32) {
        thin_fetch_as<MATH, DEPTH, true>(to, a, tile);
    } else {
        thin_fetch_as<MATH, DEPTH, false>(to, a, tile);
    }
}

template <int MATH, int DEPTH> CUDA_FN void thin_fragments(frag_a *to, const float *from) {
#pragma unroll
    for (int w = 0; w < thin_shape<MATH, DEPTH>::STEPS * 4; w++) {
        if constexpr (math_type<MATH>::K == 16) {
            to[w / 4].w[w % 4] = pair_word<MATH>(from[2 * w], from[2 * w + 1]);
        } else {
            to[w / 4].w[w % 4] = __float_as_uint(from[w]);
        }
    }
}

// Ends a lane's part of a strip: eight columns of two rows.
template <int TYPE>
CUDA_FN void thin_finish(const thin_args &a, int64_t tile, int column, const float acc[4][4], const float *bias) {
    if (column >= a.O) return;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        int64_t row = tile * THIN_TILE + threadIdx.x % 32 / 4 + h * 8, at = row * a.O + column;
        octet o;
        if (row >= a.rows) return;
#pragma unroll
        for (int e = 0; e < OCTET; e++) o.v[e] = acc[e / 2][h * 2 + e % 2] + bias[column + e];
        if (a.kept) octet_store<TYPE>(view{a.kept, TYPE, false}, at, o);
        activate_run<OCTET>(a.act, o.v);
        octet_store<TYPE>(a.y, at, o);
    }
}

template <int MATH, int DEPTH>
static __global__ void __launch_bounds__(THIN_THREADS, 3) thin_kernel(const __grid_constant__ thin_args a) {
    typedef thin_shape<MATH, DEPTH> S;
    extern __shared__ __align__(16) unsigned char memory[];
    cuda_begin();
    int strips = thin_strips(a.O);
    typename S::E *w = (typename S::E *)memory;
    float *bias = (float *)(w + strips * THIN_STRIP * S::PITCH), next[S::OWN];
    int64_t tile = (int64_t)blockIdx.x * THIN_WARPS + threadIdx.x / 32, apart = (int64_t)gridDim.x * THIN_WARPS;
    const uint32_t at = shared_address(w);
    thin_fetch<MATH, DEPTH>(next, a, tile);
    thin_stage<MATH, DEPTH>(a, w, bias);
    __syncthreads();
    for (; tile * THIN_TILE < a.rows; tile += apart) {
        frag_a x[S::STEPS];
        thin_fragments<MATH, DEPTH>(x, next);
        thin_fetch<MATH, DEPTH>(next, a, tile + apart);
        for (int strip = 0; strip < strips; strip++) {
            float acc[4][4] = {};
#pragma unroll
            for (int k = 0; k < S::STEPS; k++) {
                frag_b b[4];
#pragma unroll
                for (int j = 0; j < 4; j += 2)
                    gemm_b<MATH>(b + j, at, S::PITCH, true, strip * THIN_STRIP + j * 8, k * math_type<MATH>::K);
#pragma unroll
                for (int j = 0; j < 4; j++) mma<MATH>(acc[j], x[k], b[j]);
            }
            thin_finish<S::TYPE>(a, tile, strip * THIN_STRIP + threadIdx.x % 4 * OCTET, acc, bias);
        }
    }
}

template <int MATH, int DEPTH> static inline size_t thin_shared(int64_t O) {
    typedef thin_shape<MATH, DEPTH> S;
    return (size_t)(thin_strips(O) * THIN_STRIP) * (S::PITCH * sizeof(typename S::E) + sizeof(float));
}

// True if a forward call of linear is computed here, by sizes and types alone.
static inline bool thin_takes(const call *c) {
    int64_t rows = operand_rows(&c->out[0]), I = operand_width(&c->in[0]), O = operand_width(&c->out[0]);
    if (c->in[1].type != DTYPE_F32 || (c->in[2].data && c->in[2].type != DTYPE_F32)) return false;
    return rows >= THIN_ROWS_LEAST && I <= THIN_MOST && O % OCTET == 0 &&
           thin_shared<MATH_F32, THIN_MOST>(O) <= THIN_SHARED_MOST;
}

// Blocks of as many rounds each.
template <int MATH, int DEPTH> static inline void thin_launch_shape(const call *c, const thin_args &a) {
    int64_t blocks = (a.rows + THIN_TILE * THIN_WARPS - 1) / (THIN_TILE * THIN_WARPS);
    int64_t rounds = (blocks + THIN_BLOCKS_MOST - 1) / THIN_BLOCKS_MOST;
    LAUNCH_EARLY(c, (thin_kernel<MATH, DEPTH>), (unsigned)((blocks + rounds - 1) / rounds), THIN_THREADS,
        (thin_shared<MATH, DEPTH>(a.O)), a);
}

template <int MATH> static inline void thin_launch_math(const call *c, const thin_args &a) {
    if (a.I <= THIN_MOST / 2) {
        thin_launch_shape<MATH, THIN_MOST / 2>(c, a);
    } else {
        thin_launch_shape<MATH, THIN_MOST>(c, a);
    }
}

static inline void thin_launch(const call *c, void *kept) {
    thin_args a = {view_of(&c->in[0]), view_of(&c->out[0]), (const float *)c->in[1].data, (const float *)c->in[2].data,
        kept, operand_rows(&c->out[0]), (int)operand_width(&c->in[0]), (int)operand_width(&c->out[0]),
        (int)((const linear_attr *)c->attr)->act};
    switch (math_of(c, c->out[0].type)) {
    case MATH_BF16: thin_launch_math<MATH_BF16>(c, a); break;
    case MATH_F16: thin_launch_math<MATH_F16>(c, a); break;
    case MATH_TF32: thin_launch_math<MATH_TF32>(c, a); break;
    default: thin_launch_math<MATH_F32>(c, a); break;
    }
}

#endif
