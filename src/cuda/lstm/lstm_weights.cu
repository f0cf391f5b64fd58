// The gradients of a recurrent layer's weights and biases where the recurrence has not summed them: dz' [x | h | 1]
// over all samples and steps, from the dz that backward spilled and the h that forward kept.
//
// A block takes 128 rows of the gates, 128 columns of [x | h | 1] and a part of the sum; the parts are added afterwards
// in order (lstm.cu). Eight warps take 16 gates each and all columns.
#include "cuda/lstm/lstm.cuh"

enum { PART_TILES = 4, DEEP = 32, WIDE = 128, LD = WIDE + 8, THREADS = 256, FILLS = DEEP * WIDE / THREADS };

// Blocks that the sum is cut into, if rows suffice, on every card: scratch is planned for their parts before a card is
// known, and they decide the order of sums.
enum { BLOCKS = 264 };

// Where a thread's column of [x | h | 1] comes from, as distances in elements.
struct source {
    const char *at;
    rows_at to;
    int type;     // -1: ones, -2: nothing
    bool by_step; // rows are counted in the order of the sequence, not in that of time
};

static __device__ source source_of(const lstm_args &a, int d, int element_type, int column) {
    if (column < a.I) {
        rows_at x = {(int64_t)ROWS * a.T * a.I, a.I, a.T * a.I};
        return source{(const char *)a.x.data + column * (a.x.type == DTYPE_F32 ? 4 : 2), x, a.x.type, false};
    }
    int bytes = element_type == DTYPE_F32 ? 4 : 2;
    if (column < a.I + a.H)
        return source{a.h_kept + (d * a.h_direction + column - a.I) * bytes, a.h_rows, element_type, !a.h_by_time};
    return source{NULL, {}, column == a.I + a.H ? -1 : -2, false};
}

// Every other of 16 rows from `at` on, zeros past `rows`. The choice of a type stands outside, so that loads go out
// together.
template <typename S> CUDA_FN void source_load(const source &s, const S *at, int rows, float *to) {
    S v[FILLS / 2];
#pragma unroll
    for (int j = 0; j < FILLS / 2; j++) {
        int r = threadIdx.x / WIDE + j * (THREADS / WIDE);
        convert(&v[j], 0.0f);
        if (r < rows) v[j] = at[(int64_t)r * s.to.row];
    }
#pragma unroll
    for (int j = 0; j < FILLS / 2; j++) to[j] = widen(v[j]);
}

CUDA_FN void source_any(const source &s, int64_t at, int rows, float *to) {
    switch (s.type) {
    case DTYPE_F32: source_load(s, (const float *)s.at + at, rows, to); return;
    case DTYPE_BF16: source_load(s, (const __nv_bfloat16 *)s.at + at, rows, to); return;
    case DTYPE_F16: source_load(s, (const __half *)s.at + at, rows, to); return;
    default:
#pragma unroll
        for (int j = 0; j < FILLS / 2; j++) to[j] = s.type == -1 ? 1.0f : 0.0f;
    }
}

// A slice of DEEP rows, two steps of 16 samples: dz's columns and the operand's, each thread one column of both and
// every other row.
template <int MATH> struct slice {
    typename layout<MATH>::E dz[FILLS];
    float x[FILLS];
};

// `pair` counts steps of 16 samples: tile after tile, time after time.
template <int MATH>
CUDA_FN void fetch(slice<MATH> *f, const lstm_args &a, int d, const typename layout<MATH>::E *dz, const source &s,
    int64_t pair, int64_t end) {
#pragma unroll
    for (int half = 0; half < DEEP / ROWS; half++) {
        int64_t p = pair + half, tile = p / a.T;
        int t = (int)(p - tile * a.T), i = s.by_step && d ? a.T - 1 - t : t, first = threadIdx.x / WIDE;
        int64_t from = tile * a.dz_rows.tile + t * a.dz_rows.step, at = tile * s.to.tile + i * s.to.step;
        int rows = p >= end ? 0 : a.B - tile * ROWS < ROWS ? (int)(a.B - tile * ROWS) : (int)ROWS;
#pragma unroll
        for (int j = 0; j < FILLS / 2; j++) {
            int r = first + j * (THREADS / WIDE), k = half * (FILLS / 2) + j;
            convert(&f->dz[k], 0.0f);
            if (r < rows && dz) f->dz[k] = dz[from + (int64_t)r * a.dz_rows.row];
        }
        source_any(s, at, rows, f->x + half * (FILLS / 2));
    }
}

template <int MATH> CUDA_FN void put(const slice<MATH> &f, typename layout<MATH>::E *a, typename layout<MATH>::E *b) {
#pragma unroll
    for (int j = 0; j < FILLS; j++) {
        int at = (threadIdx.x / WIDE + j * (THREADS / WIDE)) * LD + threadIdx.x % WIDE;
        a[at] = f.dz[j];
        convert(&b[at], stored<MATH>(f.x[j]));
    }
}

// The products of a tile: the warp's 16 gates by all columns.
template <int MATH> CUDA_FN void multiply(uint32_t a, uint32_t b, float acc[WIDE / 8][4]) {
    enum { BYTES = layout<MATH>::BYTES, K = layout<MATH>::K };
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4;
#pragma unroll
    for (int k = 0; k < DEEP; k += K) {
        frag_a rows;
        if constexpr (BYTES == 2) {
            uint32_t at = a + ((k + lane / 16 * 8 + lane % 8) * LD + warp * 16 + lane / 8 % 2 * 8) * 2;
            load_matrices_turned(rows.w, at);
        } else {
            uint32_t at = a + ((k + t) * LD + warp * 16 + g) * 4;
            rows = frag_a{
                {shared_word(at), shared_word(at + 32), shared_word(at + 16 * LD), shared_word(at + 16 * LD + 32)}};
        }
#pragma unroll
        for (int n = 0; n < WIDE / 8; n += 2) {
            frag_b lo, hi;
            if constexpr (BYTES == 2) {
                uint32_t at = b + ((k + lane % 16) * LD + n * 8 + lane / 16 * 8) * 2;
                uint32_t both[4];
                load_matrices_turned(both, at);
                lo = frag_b{{both[0], both[1]}};
                hi = frag_b{{both[2], both[3]}};
            } else {
                uint32_t at = b + ((k + t) * LD + n * 8 + g) * 4;
                lo = frag_b{{shared_word(at), shared_word(at + 16 * LD)}};
                hi = frag_b{{shared_word(at + 32), shared_word(at + 16 * LD + 32)}};
            }
            product<MATH>(acc[n], rows, lo);
            product<MATH>(acc[n + 1], rows, hi);
        }
    }
}

// Where a part begins. In fp32 that is at every so many tiles, whatever their number.
template <int MATH> CUDA_FN int64_t part_begin(const lstm_args &a, int64_t part) {
    int64_t pairs = (int64_t)a.tiles * a.T;
    return MATH == MATH_F32 ? min(part * PART_TILES * a.T, pairs) : pairs * part / a.part_count;
}

template <int MATH> static __global__ void __launch_bounds__(THREADS) weights_kernel(lstm_args a, int element_type) {
    typedef typename layout<MATH>::E E;
    __shared__ E sa[DEEP * LD], sb[DEEP * LD];
    const int gates = 4 * a.H, width = a.I + a.H + 1, d = blockIdx.z % a.D, part = blockIdx.z / a.D;
    const int gate = blockIdx.x * WIDE + threadIdx.x % WIDE, column = blockIdx.y * WIDE + threadIdx.x % WIDE;
    const int64_t end = part_begin<MATH>(a, a.first_part + part + 1);
    const E *dz = gate < gates ? (const E *)a.dz + d * a.dz_direction + gate : NULL;
    const source s = source_of(a, d, element_type, column);
    float acc[WIDE / 8][4] = {};
    slice<MATH> next;
    int64_t pair = part_begin<MATH>(a, a.first_part + part);
    fetch<MATH>(&next, a, d, dz, s, pair, end);
    for (; pair < end; pair += DEEP / ROWS) {
        put<MATH>(next, sa, sb);
        __syncthreads();
        if (pair + DEEP / ROWS < end) fetch<MATH>(&next, a, d, dz, s, pair + DEEP / ROWS, end);
        multiply<MATH>(shared_address(sa), shared_address(sb), acc);
        __syncthreads();
    }
    float *to = a.parts + ((int64_t)d * a.part_count + part) * gates * width;
    int lane = threadIdx.x % 32, first = blockIdx.x * WIDE + threadIdx.x / 32 * 16 + lane / 4;
#pragma unroll
    for (int i = 0; i < WIDE / 8; i++)
#pragma unroll
        for (int e = 0; e < 4; e++) {
            int r = first + e / 2 * 8, k = blockIdx.y * WIDE + i * 8 + lane % 4 * 2 + e % 2;
            if (r < gates && k < width) to[(int64_t)r * width + k] = acc[i][e];
        }
}

static int tiles_of(int n) {
    return (n + WIDE - 1) / WIDE;
}

int lstm_weights_filling(const lstm_plan *p) {
    const lstm_args *a = &p->a;
    int blocks = tiles_of(4 * a->H) * tiles_of(a->I + a->H + 1) * a->D;
    return blocks < BLOCKS ? BLOCKS / blocks : 1;
}

// Parts that make BLOCKS blocks, of at least 256 rows: by sizes alone. In fp32, see lstm.cu.
int lstm_weights_parts(const lstm_plan *p) {
    const lstm_args *a = &p->a;
    if (p->math == MATH_F32) return (a->tiles + PART_TILES - 1) / PART_TILES;
    int64_t parts = lstm_weights_filling(p), most = (int64_t)a->tiles * a->T / 16;
    if (parts > most) parts = most;
    return parts < 1 ? 1 : (int)parts;
}

void lstm_weights_launch(const call *c, const lstm_plan *p) {
    const lstm_args *a = &p->a;
    dim3 grid(tiles_of(4 * a->H), tiles_of(a->I + a->H + 1), a->part_count * a->D);
    int type = p->math == MATH_BF16 ? DTYPE_BF16 : p->math == MATH_F16 ? DTYPE_F16 : DTYPE_F32;
#define WEIGHTS(M) LAUNCH(c, weights_kernel<M>, grid, THREADS, 0, *a, type)
    BY_MATH(p->math, WEIGHTS)
}
