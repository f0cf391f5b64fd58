// A block takes 32 rows and 16 columns of the result; its warps share out the sum, 32 terms at a time, and their parts
// are added in order. Terms of a sum may come in any order as long as both operands have the same: a lane's eight
// neighbouring terms are one load, and feed two products.
#include "cuda/product/few.cuh"

#include "cuda/ops/activation.cuh"
#include "cuda/product/mma.cuh"

enum { FEW_ROWS = 32, FEW_COLUMNS = 16, FEW_WARPS = 8, FEW_THREADS = 32 * FEW_WARPS, FEW_STEP = 32 };

struct few_args {
    view x, w, bias, y;
    int64_t I;
    int rows, O, act;
};

// Eight terms from k on of a row of an operand, in the product's type; zeros beyond its end.
template <int MATH> CUDA_FN uint4 few_fetch(const view &v, int64_t row, int64_t I, int64_t k, bool there) {
    uint4 r = make_uint4(0, 0, 0, 0);
    float f[8];
    if (!there || k >= I) return r;
    if (I % 8 == 0 && v.type != DTYPE_F32) return *(const uint4 *)((const uint16_t *)v.data + row * I + k);
    if (I % 8 == 0) {
        const float4 *from = (const float4 *)((const float *)v.data + row * I + k);
        *(float4 *)f = from[0];
        *(float4 *)(f + 4) = from[1];
    } else {
#pragma unroll
        for (int e = 0; e < 8; e++) f[e] = k + e < I ? view_load(v, row * I + k + e) : 0.0f;
    }
    r.x = pair_word<MATH>(f[0], f[1]), r.y = pair_word<MATH>(f[2], f[3]);
    r.z = pair_word<MATH>(f[4], f[5]), r.w = pair_word<MATH>(f[6], f[7]);
    return r;
}

template <int MATH> CUDA_FN void few_multiply(float acc[2][2][4], const uint4 a[4], const uint4 b[2]) {
#pragma unroll
    for (int m = 0; m < 2; m++) {
        frag_a low = {{a[2 * m].x, a[2 * m + 1].x, a[2 * m].y, a[2 * m + 1].y}};
        frag_a high = {{a[2 * m].z, a[2 * m + 1].z, a[2 * m].w, a[2 * m + 1].w}};
#pragma unroll
        for (int n = 0; n < 2; n++) {
            mma<MATH>(acc[m][n], low, frag_b{{b[n].x, b[n].y}});
            mma<MATH>(acc[m][n], high, frag_b{{b[n].z, b[n].w}});
        }
    }
}

// A warp's part of the sums.
template <int MATH> CUDA_FN void few_sum(const few_args &p, int row, int column, float acc[2][2][4]) {
    int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll 4
    for (int64_t k = threadIdx.x / 32 * FEW_STEP; k < p.I; k += FEW_WARPS * FEW_STEP) {
        uint4 a[4], b[2];
#pragma unroll
        for (int i = 0; i < 4; i++)
            a[i] = few_fetch<MATH>(p.x, row + 8 * i + g, p.I, k + 8 * t, row + 8 * i + g < p.rows);
#pragma unroll
        for (int i = 0; i < 2; i++)
            b[i] = few_fetch<MATH>(p.w, column + 8 * i + g, p.I, k + 8 * t, column + 8 * i + g < p.O);
        few_multiply<MATH>(acc, a, b);
    }
}

template <int MATH>
static __global__ void __launch_bounds__(FEW_THREADS) few_kernel(const __grid_constant__ few_args p) {
    __shared__ float part[FEW_WARPS][FEW_ROWS][FEW_COLUMNS];
    float acc[2][2][4] = {};
    int row = blockIdx.y * FEW_ROWS, column = blockIdx.x * FEW_COLUMNS, lane = threadIdx.x % 32;
    cuda_begin();
    few_sum<MATH>(p, row, column, acc);
#pragma unroll
    for (int i = 0; i < 16; i++)
        part[threadIdx.x / 32][i / 8 * 16 + i % 4 / 2 * 8 + lane / 4][i / 4 % 2 * 8 + lane % 4 * 2 + i % 2] =
            acc[i / 8][i / 4 % 2][i % 4];
    __syncthreads();
    for (int i = threadIdx.x; i < FEW_ROWS * FEW_COLUMNS; i += FEW_THREADS) {
        int r = i / FEW_COLUMNS, c = i % FEW_COLUMNS;
        float sum = 0;
#pragma unroll
        for (int w = 0; w < FEW_WARPS; w++) sum += part[w][r][c];
        if (row + r >= p.rows || column + c >= p.O) continue;
        if (p.bias.data) sum += view_load(p.bias, column + c);
        view_store(p.y, (int64_t)(row + r) * p.O + column + c, activate(p.act, sum));
    }
}

// A parameter, from its copy in 16 bits where there is one of this type.
static view weights_of(const operand *o, dtype type) {
    return o->low && o->low_type == type ? view{o->low, (int)type, false} : view_of(o);
}

void few_launch(const call *c) {
    int64_t rows = operand_rows(&c->out[0]), O = operand_width(&c->out[0]);
    dtype type = c->out[0].type;
    few_args a = {view_of(&c->in[0]), weights_of(&c->in[1], type), view_of(&c->in[2]), view_of(&c->out[0]),
        operand_width(&c->in[0]), (int)rows, (int)O, (int)((const linear_attr *)c->attr)->act};
    dim3 grid((unsigned)((O + FEW_COLUMNS - 1) / FEW_COLUMNS), (unsigned)((rows + FEW_ROWS - 1) / FEW_ROWS));
    if (type == DTYPE_BF16) {
        LAUNCH_EARLY(c, few_kernel<MATH_BF16>, grid, FEW_THREADS, 0, a);
    } else {
        LAUNCH_EARLY(c, few_kernel<MATH_F16>, grid, FEW_THREADS, 0, a);
    }
}
