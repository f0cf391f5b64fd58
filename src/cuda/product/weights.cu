#include "cuda/product/weights.cuh"

#include "cuda/product/mma.cuh"

extern "C" {
#include "cuda/rows/rows_head.h"
}

// A block of eight warps has a tile of 32 x 32 gradients, or of 64 x 64 where there are rows enough to fill a card with
// those. A warp has a quadrant of 32 x 32 and a slice of the rows; the slices are added in shared memory at the end.
// Rows pass through shared memory in chunks, the next one on its way while the present one is multiplied. db is the
// product of dz with a column of ones.
enum { THREADS = 256, WARPS = THREADS / 32, SIDE = 32, PAD = 8, PART_ROWS = 512, FULL_ROWS = 256 };

// Blocks that a launch of one layer is cut into, if rows suffice, on every card: scratch is planned for their parts
// before a card is known, and they decide the order of sums.
enum { BLOCKS = 264 };

struct weights_operand {
    const void *data; // [rows][width]
    int type, width;
    bool vectors; // four elements are a word that can be loaded at once
};

struct weights_job {
    weights_operand dz, x;
    float *dw, *db;       // or NULL
    bool add_dw, add_db;  // to what is there
    float *sums;          // [parts][O][I], then [parts][O]
    int first, add_first; // block of either launch
    int tiles_m, tiles_n;
    int part, parts, length; // the first part, how many, and their rows
};

struct weights_jobs {
    weights_job job[WEIGHTS_MOST];
    int count, rows;
};

static_assert(sizeof(weights_jobs) <= 4096, "jobs are passed by value");

CUDA_FN void put(float *to, bool add, int64_t i, float v) {
    to[i] = add ? to[i] + v : v;
}

// A block's tile, in units of T x 32, and its rows.
struct weights_place {
    int m0, n0, row, end;
};

// T: tiles of 32 along each side of a block's. Rows of a chunk; elements from row to row in shared memory; groups of
// four of one operand that a thread loads.
template <int MATH, int T> struct weights_shape {
    enum {
        CHUNK = 128 / T,
        PITCH = SIDE * T + PAD,
        GROUPS = CHUNK * SIDE * T / 4 / THREADS,
        SLICES = WARPS / (T * T),
    };
};

struct weights_group {
    uint4 w; // four elements as they lie in memory: 16 bytes, or 8
};

// Where a thread reads an operand: every STEP rows, four elements of its column.
struct weights_reader {
    const char *at;      // in row 0
    int row_bytes, left; // left: elements of the row from its column on
    bool full, vectors;
};

template <int T> CUDA_FN weights_reader reader_of(const weights_operand &o, int c0) {
    int c = c0 + threadIdx.x % (SIDE * T / 4) * 4, size = o.type == DTYPE_F32 ? 4 : 2;
    return weights_reader{(const char *)o.data + (int64_t)c * size, o.width * size, o.width - c, size == 4, o.vectors};
}

CUDA_FN void fetch_vector(uint4 *to, const char *at, bool full) {
    if (full) {
        *to = *(const uint4 *)at;
    } else {
        *(uint2 *)to = *(const uint2 *)at;
    }
}

// Elements one by one, for columns that are no words, of the width of which `left` are left. Those of 4 bytes go out
// together.
CUDA_FN uint4 fetch_full(const char *at, int left) {
    uint32_t w[4];
#pragma unroll
    for (int e = 0; e < 4; e++) w[e] = e < left ? ((const uint32_t *)at)[e] : 0;
    return make_uint4(w[0], w[1], w[2], w[3]);
}

static __device__ __noinline__ uint4 fetch_low(const char *at, int left) {
    uint32_t w[2] = {};
#pragma unroll
    for (int e = 0; e < 4; e++)
        if (e < left) w[e / 2] |= (uint32_t)((const uint16_t *)at)[e] << e % 2 * 16;
    return make_uint4(w[0], w[1], 0, 0);
}

// A thread's share of the rows from `row` on, of which there are `end`. A chunk that is whole is loaded without
// looking.
template <int MATH, int T> CUDA_FN void fetch(weights_group *to, const weights_reader &r, int row, int end) {
    const int across = SIDE * T / 4, down = THREADS / across, groups = weights_shape<MATH, T>::GROUPS;
    const char *at = r.at + (int64_t)(row + (int)threadIdx.x / across) * r.row_bytes;
    int64_t step = (int64_t)down * r.row_bytes;
    if (r.vectors && r.left > 0 && row + weights_shape<MATH, T>::CHUNK <= end) {
        if (r.full) {
#pragma unroll
            for (int i = 0; i < groups; i++) fetch_vector(&to[i].w, at + i * step, true);
        } else {
#pragma unroll
            for (int i = 0; i < groups; i++) fetch_vector(&to[i].w, at + i * step, false);
        }
        return;
    }
    int rows = end - row - (int)threadIdx.x / across; // of its own
    if (r.vectors) {
#pragma unroll
        for (int i = 0; i < groups; i++) {
            to[i].w = make_uint4(0, 0, 0, 0);
            if (i * down < rows && r.left > 0) fetch_vector(&to[i].w, at + i * step, r.full);
        }
    } else if (r.full) {
#pragma unroll
        for (int i = 0; i < groups; i++) to[i].w = fetch_full(at + i * step, i * down < rows ? r.left : 0);
    } else {
#pragma unroll
        for (int i = 0; i < groups; i++) to[i].w = fetch_low(at + i * step, i * down < rows ? r.left : 0);
    }
}

// A chunk's groups to shared memory, in the type of the products.
template <int MATH, int T>
CUDA_FN void stage(typename math_type<MATH>::element *room, const weights_group *from, bool full) {
    typedef typename math_type<MATH>::element E;
    const int across = SIDE * T / 4, down = THREADS / across, pitch = weights_shape<MATH, T>::PITCH;
    E *to = room + threadIdx.x / across * pitch + threadIdx.x % across * 4;
#pragma unroll
    for (int i = 0; i < weights_shape<MATH, T>::GROUPS; i++) {
        const float *v = (const float *)&from[i].w;
        uint2 low = make_uint2(from[i].w.x, from[i].w.y);
        if (sizeof(E) == 2 && full) low = make_uint2(pair_word<MATH>(v[0], v[1]), pair_word<MATH>(v[2], v[3]));
        if (sizeof(E) == 4) *(uint4 *)(to + i * down * pitch) = from[i].w;
        if (sizeof(E) == 2) *(uint2 *)(to + i * down * pitch) = low;
    }
}

// Both operands lie with their rows, the terms of the sum, one after another: fragments come transposed. `at` is term 0
// and column 0 of 16 columns of dz, or of 16 columns of x, which are two tiles of 8.
template <int MATH, int PITCH> CUDA_FN frag_a fragment_dz(const typename math_type<MATH>::element *at) {
    int lane = threadIdx.x % 32;
    frag_a a;
    if constexpr (math_type<MATH>::K == 16) {
        load_matrices_turned(a.w, shared_address(at + (lane / 16 * 8 + lane % 8) * PITCH + lane / 8 % 2 * 8));
    } else {
#pragma unroll
        for (int i = 0; i < 4; i++) a.w[i] = __float_as_uint(at[(lane % 4 + i / 2 * 4) * PITCH + lane / 4 + i % 2 * 8]);
    }
    return a;
}

template <int MATH, int PITCH> CUDA_FN void fragments_x(frag_b b[2], const typename math_type<MATH>::element *at) {
    int lane = threadIdx.x % 32;
    if constexpr (math_type<MATH>::K == 16) {
        uint32_t w[4];
        load_matrices_turned(w, shared_address(at + (lane / 8 % 2 * 8 + lane % 8) * PITCH + lane / 16 * 8));
        b[0] = frag_b{{w[0], w[1]}};
        b[1] = frag_b{{w[2], w[3]}};
    } else {
#pragma unroll
        for (int i = 0; i < 4; i++)
            b[i / 2].w[i % 2] = __float_as_uint(at[(lane % 4 + i % 2 * 4) * PITCH + lane / 4 + i / 2 * 8]);
    }
}

template <int MATH> CUDA_FN frag_b ones() {
    uint32_t one = math_type<MATH>::K == 16 ? pair_word<MATH>(1, 1) : __float_as_uint(1.0f);
    return frag_b{{one, one}};
}

// A warp's quadrant of gradients, and of sums of dz in column 0.
struct weights_sum {
    float dw[2][4][4], db[2][4];
};

// One step of the products: K rows from `dz` and `x` on.
template <int MATH, int PITCH>
CUDA_FN void multiply(weights_sum *s, const typename math_type<MATH>::element *dz,
    const typename math_type<MATH>::element *x, bool bias) {
    frag_a a[2];
    frag_b b[4];
#pragma unroll
    for (int i = 0; i < 2; i++) a[i] = fragment_dz<MATH, PITCH>(dz + i * 16);
#pragma unroll
    for (int j = 0; j < 4; j += 2) fragments_x<MATH, PITCH>(b + j, x + j * 8);
#pragma unroll
    for (int i = 0; i < 2; i++) {
#pragma unroll
        for (int j = 0; j < 4; j++) mma<MATH>(s->dw[i][j], a[i], b[j]);
        if (bias) mma<MATH>(s->db[i], a[i], ones<MATH>());
    }
}

// The block's sum over its rows; every warp has its quadrant's over its slice of each chunk. A chunk is on its way
// while the one before it is multiplied.
template <int MATH, int T>
CUDA_FN void sum_rows(weights_sum *s, const weights_job &j, const weights_place &p, void *memory, bool bias) {
    typedef typename math_type<MATH>::element E;
    typedef weights_shape<MATH, T> S;
    int warp = threadIdx.x / 32, slice = warp / (T * T), qm = warp / T % T, qn = warp % T;
    E *dz = (E *)memory, *x = dz + S::CHUNK * S::PITCH;
    weights_reader rd = reader_of<T>(j.dz, p.m0), rx = reader_of<T>(j.x, p.n0);
    weights_group gd[S::GROUPS], gx[S::GROUPS];
#pragma unroll 1
    for (int row = p.row;; row += S::CHUNK) {
        if (row < p.end) {
            fetch<MATH, T>(gd, rd, row, p.end);
            fetch<MATH, T>(gx, rx, row, p.end);
        }
        if (row > p.row) {
#pragma unroll 1
            for (int k = slice * math_type<MATH>::K; k < S::CHUNK; k += S::SLICES * math_type<MATH>::K)
                multiply<MATH, S::PITCH>(s, dz + k * S::PITCH + qm * SIDE, x + k * S::PITCH + qn * SIDE, bias);
            __syncthreads();
        }
        if (row >= p.end) return;
        stage<MATH, T>(dz, gd, rd.full);
        stage<MATH, T>(x, gx, rx.full);
        __syncthreads();
    }
}

// A warp's sums to shared memory, [slice][row][column].
template <int PITCH> CUDA_FN void spread(const weights_sum &s, float *room, int qm, int qn) {
    int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
    for (int n = 0; n < 2 * 4 * 2; n++) {
        int i = n / 8, c = n / 2 % 4, h = n % 2;
        *(float2 *)(room + (qm * SIDE + i * 16 + h * 8 + g) * PITCH + qn * SIDE + c * 8 + 2 * t) =
            make_float2(s.dw[i][c][2 * h], s.dw[i][c][2 * h + 1]);
    }
}

template <int T, int SLICES>
CUDA_FN void put_products(const weights_job &j, const weights_place &p, int part, const float *room) {
    const int side = SIDE * T, pitch = side + PAD;
    int64_t I = j.x.width, O = j.dz.width;
    for (int n = threadIdx.x; n < side * side; n += THREADS) {
        int64_t row = p.m0 + n / side, column = p.n0 + n % side;
        float sum = 0;
        if (row >= O || column >= I) continue;
#pragma unroll
        for (int s = 0; s < SLICES; s++) sum += room[(s * side + n / side) * pitch + n % side];
        if (j.parts > 1) {
            j.sums[(part * O + row) * I + column] = sum;
        } else if (j.dw) {
            put(j.dw, j.add_dw, row * I + column, sum);
        }
    }
}

template <int T, int SLICES>
CUDA_FN void put_biases(const weights_job &j, const weights_place &p, int part, const float *room) {
    int64_t I = j.x.width, O = j.dz.width, row = p.m0 + threadIdx.x;
    float sum = 0;
    if (threadIdx.x >= SIDE * T || row >= O) return;
#pragma unroll
    for (int s = 0; s < SLICES; s++) sum += room[s * SIDE * T + threadIdx.x];
    if (j.parts > 1) {
        j.sums[j.parts * O * I + part * O + row] = sum;
    } else if (j.db) {
        put(j.db, j.add_db, row, sum);
    }
}

// Blocks of a job: its tiles along x, along dz, and the parts. The first tile along x sums the columns of dz as well.
template <int MATH, int T>
static __global__ void __launch_bounds__(THREADS, 2) weights_kernel(const __grid_constant__ weights_jobs w) {
    typedef weights_shape<MATH, T> S;
    cuda_begin();
    __shared__ __align__(16) float memory[2 * S::CHUNK * S::PITCH]; // a chunk of both operands, then the slices' sums
    __shared__ float biases[WARPS * SIDE];
    static_assert(2 * S::CHUNK >= S::SLICES * SIDE * T, "the slices fit");
    int n = 0;
    while (n + 1 < w.count && (int)blockIdx.x >= w.job[n + 1].first) n++;
    const weights_job &j = w.job[n];
    int b = blockIdx.x - j.first, tile_n = b % j.tiles_n, tile_m = b / j.tiles_n % j.tiles_m;
    int part = b / j.tiles_n / j.tiles_m;
    int row = (j.part + part) * j.length;
    weights_place p = {tile_m * SIDE * T, tile_n * SIDE * T, row, min(w.rows, row + j.length)};
    int warp = threadIdx.x / 32, slice = warp / (T * T), qm = warp / T % T, qn = warp % T, lane = threadIdx.x % 32;
    weights_sum s = {};
    sum_rows<MATH, T>(&s, j, p, memory, tile_n == 0 && qn == 0);
    spread<S::PITCH>(s, memory + slice * SIDE * T * S::PITCH, qm, qn);
    if (qn == 0 && lane % 4 == 0)
        for (int i = 0; i < 4; i++) biases[(slice * T + qm) * SIDE + i * 8 + lane / 4] = s.db[i / 2][i % 2 * 2];
    __syncthreads();
    put_products<T, S::SLICES>(j, p, part, memory);
    if (tile_n == 0) put_biases<T, S::SLICES>(j, p, part, biases);
}

enum { ADD_THREADS = 256 };

static __global__ void weights_add_kernel(const __grid_constant__ weights_jobs w) {
    cuda_begin();
    int n = 0;
    while (n + 1 < w.count && (int)blockIdx.x >= w.job[n + 1].add_first) n++;
    const weights_job &j = w.job[n];
    int64_t O = j.dz.width, products = O * j.x.width;
    int64_t i = (int64_t)(blockIdx.x - j.add_first) * ADD_THREADS + threadIdx.x;
    bool bias = i >= products;
    float *to = bias ? j.db : j.dw;
    if (i >= products + O || !to) return;
    to += bias ? i - products : i;
    const float *from = j.sums + (bias ? j.parts * products + (i - products) : i);
    int64_t apart = bias ? O : products;
    float sum = (bias ? j.add_db : j.add_dw) ? *to : 0;
#pragma unroll 16
    for (int p = 0; p < j.parts; p++) sum += from[p * apart];
    *to = sum;
}

static bool is_plain(const call *c) {
    return ((const linear_attr *)c->attr)->act == ACT_NONE;
}

size_t weights_dz_bytes(const call *c) {
    size_t bytes = (size_t)operand_count(&c->out[0]) * dtype_bytes(c->out[0].type);
    return is_plain(c) ? 0 : (bytes + 63) / 64 * 64;
}

view weights_dz(const call *c) {
    return is_plain(c) ? view_of(&c->dout[0]) : view{c->scratch, (int)c->out[0].type, false};
}

// Tiles of a layer's gradients, of T x 32 a side.
static int64_t tiles_of(int64_t O, int64_t I, int T) {
    return (O + SIDE * T - 1) / (SIDE * T) * ((I + SIDE * T - 1) / (SIDE * T));
}

// How a layer's gradients are cut: the size of tiles, the parts of the rows, and how many of them a launch computes.
struct weights_cut {
    int T, parts, length, at_once;
};

// As many parts as make BLOCKS blocks, and more as long as they take little memory.
static int64_t parts_at_once(int64_t O, int64_t I, int64_t tiles) {
    int64_t filling = (BLOCKS + tiles - 1) / tiles, small = (8 << 20) / (O * (I + 1) * (int64_t)sizeof(float));
    return filling > small ? filling : small;
}

// By sizes alone: BLOCKS blocks, of PART_ROWS rows at least; large tiles where they do. In fp32
// parts are of so many rows always, and so are a part's sums: the same rows have the same gradient in one batch or in
// several that follow each other, as long as these are whole parts.
static weights_cut cut_of(const call *c) {
    int64_t rows = operand_rows(&c->out[0]), I = operand_width(&c->in[0]), O = operand_width(&c->out[0]);
    if (math_of(c, c->out[0].type) == MATH_F32) {
        int T = tiles_of(O, I, 2) >= 4 ? 2 : 1;
        int64_t parts = (rows + FULL_ROWS - 1) / FULL_ROWS, most = parts_at_once(O, I, tiles_of(O, I, T));
        return weights_cut{T, (int)parts, FULL_ROWS, (int)(parts < most ? parts : most)};
    }
    int T = tiles_of(O, I, 2) * (rows / PART_ROWS) >= BLOCKS ? 2 : 1;
    int64_t parts = BLOCKS / tiles_of(O, I, T);
    if (parts > rows / PART_ROWS) parts = rows / PART_ROWS;
    if (parts < 1) parts = 1;
    return weights_cut{T, (int)parts, (int)((rows + parts - 1) / parts), (int)parts};
}

// A head has parts of its own there (cuda/rows/rows_head.h).
size_t weights_scratch(const call *c) {
    int64_t I = operand_width(&c->in[0]), O = operand_width(&c->out[0]), parts = cut_of(c).at_once;
    size_t own = parts > 1 ? (size_t)(parts * O * (I + 1)) * sizeof(float) : 0;
    size_t head = c->out[0].type != DTYPE_F32 && is_plain(c) ? rows_head_scratch(operand_rows(&c->out[0]), I, O) : 0;
    return own > head ? own : head;
}

static weights_operand operand_of(view v, int64_t width, dtype low) {
    CHECK(v.type == DTYPE_F32 || v.type == (int)low, "an operand that is neither fp32 nor of the layer's type");
    size_t word = v.type == DTYPE_F32 ? 16 : 8;
    return weights_operand{v.data, v.type, (int)width, width % 4 == 0 && (uintptr_t)v.data % word == 0};
}

// The nth launch's job of a layer: no parts where the layer has fewer launches.
static weights_job job_of(const call *c, const weights_cut &cut, int launch) {
    int T = cut.T;
    int64_t rows = operand_rows(&c->out[0]), I = operand_width(&c->in[0]), O = operand_width(&c->out[0]);
    CHECK(rows <= INT32_MAX - PART_ROWS, "%lld rows", (long long)rows);
    weights_job j = {};
    j.dz = operand_of(weights_dz(c), O, c->out[0].type);
    j.x = operand_of(view_of(&c->in[0]), I, c->out[0].type);
    CHECK(c->din[1].type == DTYPE_F32 && c->din[2].type == DTYPE_F32, "gradients of weights are fp32");
    j.dw = (float *)c->din[1].data, j.add_dw = c->din[1].add || launch;
    j.db = (float *)c->din[2].data, j.add_db = c->din[2].add || launch;
    j.sums = (float *)((char *)c->scratch + weights_dz_bytes(c));
    j.tiles_m = (int)((O + SIDE * T - 1) / (SIDE * T));
    j.tiles_n = (int)((I + SIDE * T - 1) / (SIDE * T));
    j.part = launch * cut.at_once, j.length = cut.length;
    j.parts = cut.parts - j.part < cut.at_once ? cut.parts - j.part : cut.at_once;
    return j;
}

template <int T> static void launch_products(const call *c, const weights_jobs &w, unsigned blocks) {
    switch (math_of(c, c->out[0].type)) {
    case MATH_BF16: LAUNCH_EARLY(c, (weights_kernel<MATH_BF16, T>), blocks, THREADS, 0, w); break;
    case MATH_F16: LAUNCH_EARLY(c, (weights_kernel<MATH_F16, T>), blocks, THREADS, 0, w); break;
    case MATH_TF32: LAUNCH_EARLY(c, (weights_kernel<MATH_TF32, T>), blocks, THREADS, 0, w); break;
    default: LAUNCH_EARLY(c, (weights_kernel<MATH_F32, T>), blocks, THREADS, 0, w); break;
    }
}

// The layers whose tiles have one size, in one launch for the products and one for what is cut. Returns false where
// there was nothing left to do.
static bool launch_size(const call *const *calls, int count, int T, int launch) {
    weights_jobs w = {}, cut = {};
    int blocks = 0, adds = 0;
    for (int i = 0; i < count; i++) {
        weights_cut how = cut_of(calls[i]);
        if (how.T != T || (int64_t)launch * how.at_once >= how.parts) continue;
        weights_job j = job_of(calls[i], how, launch);
        if (!j.dw && !j.db) continue;
        j.first = blocks;
        j.add_first = adds;
        blocks += j.tiles_m * j.tiles_n * j.parts;
        w.rows = (int)operand_rows(&calls[i]->out[0]);
        w.job[w.count++] = j;
        if (j.parts == 1) continue;
        adds += (int)(((int64_t)j.dz.width * (j.x.width + 1) + ADD_THREADS - 1) / ADD_THREADS);
        cut.job[cut.count++] = j;
    }
    if (!w.count) return false;
    T == 2 ? launch_products<2>(calls[0], w, (unsigned)blocks) : launch_products<1>(calls[0], w, (unsigned)blocks);
    if (cut.count) LAUNCH_EARLY(calls[0], weights_add_kernel, (unsigned)adds, ADD_THREADS, 0, cut);
    return true;
}

void weights_launch(const call *const *calls, int count) {
    CHECK(count <= WEIGHTS_MOST, "the gradients of %d layers at once", count);
    for (int T = 1; T <= 2; T++)
        for (int launch = 0; launch_size(calls, count, T, launch); launch++) continue;
}
