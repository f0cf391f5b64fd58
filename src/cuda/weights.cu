#include "cuda/weights.cuh"

#include "cuda/gemm.cuh"

struct weights_job {
    gemm_args g;
    view dw, db;
    float *parts;                // [parts][O][I], then [parts][O]
    int first, add_first;        // block of either launch
    int tiles_m, tiles_n;
};

struct weights_jobs {
    weights_job job[WEIGHTS_MOST];
    int count;
};

static_assert(sizeof(weights_jobs) <= 4096, "jobs are passed by value");

CUDA_FN void put_product(const weights_job &j, const gemm_place &p, int part, const float *room) {
    int column = threadIdx.x % GEMM_TILE;
    int64_t to = p.j0 + column;
    if (to >= j.g.n) return;
#pragma unroll 4
    for (int r = threadIdx.x / GEMM_TILE; r < GEMM_TILE; r += GEMM_THREADS / GEMM_TILE) {
        int64_t row = p.i0 + r;
        if (row >= j.g.m) break;
        if (j.g.parts > 1) {
            j.parts[((int64_t)part * j.g.m + row) * j.g.n + to] = room[r * GEMM_LD + column];
        } else if (j.dw.data) {
            view_put(j.dw, row * j.g.n + to, room[r * GEMM_LD + column]);
        }
    }
}

CUDA_FN void put_sums(const weights_job &j, const gemm_place &p, int part, float sum) {
    int64_t row = p.i0 + threadIdx.x;
    if (threadIdx.x >= GEMM_TILE || row >= j.g.m) return;
    if (j.g.parts > 1) {
        j.parts[j.g.parts * j.g.m * j.g.n + part * j.g.m + row] = sum;
    } else if (j.db.data) {
        view_put(j.db, row, sum);
    }
}

// Blocks of a job: its tiles along x, along dz, and the parts. The first tile along x sums the columns of dz as well.
template <int MATH>
static __global__ void __launch_bounds__(GEMM_THREADS) weights_kernel(const __grid_constant__ weights_jobs w) {
    __shared__ float room[GEMM_TILE * GEMM_LD];
    float acc[2][4][4] = {};
    int n = 0;
    while (n + 1 < w.count && (int)blockIdx.x >= w.job[n + 1].first) n++;
    const weights_job &j = w.job[n];
    int b = blockIdx.x - j.first, tile_n = b % j.tiles_n, tile_m = b / j.tiles_n % j.tiles_m;
    int part = b / j.tiles_n / j.tiles_m;
    gemm_place p = gemm_place_of(j.g, tile_m, tile_n, part);
    float sum = gemm_tile<MATH>(j.g, p, acc, room, tile_n == 0);
    gemm_spread(acc, room);
    put_product(j, p, part, room);
    if (tile_n == 0) put_sums(j, p, part, sum);
}

enum { ADD_THREADS = 256 };

static __global__ void weights_add_kernel(const __grid_constant__ weights_jobs w) {
    int n = 0;
    while (n + 1 < w.count && (int)blockIdx.x >= w.job[n + 1].add_first) n++;
    const weights_job &j = w.job[n];
    int64_t i = (int64_t)(blockIdx.x - j.add_first) * ADD_THREADS + threadIdx.x, products = j.g.m * j.g.n;
    bool bias = i >= products;
    view to = bias ? j.db : j.dw;
    if (i >= products + j.g.m || !to.data) return;
    const float *from = j.parts + (bias ? j.g.parts * products + (i - products) : i);
    int64_t apart = bias ? j.g.m : products;
    float sum = 0;
#pragma unroll 8
    for (int p = 0; p < j.g.parts; p++) sum += from[p * apart];
    view_put(to, bias ? i - products : i, sum);
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

size_t weights_scratch(const call *c) {
    int64_t rows = operand_rows(&c->out[0]), I = operand_width(&c->in[0]), O = operand_width(&c->out[0]);
    int parts = gemm_parts(O, I, rows);
    return parts > 1 ? (size_t)(parts * O * (I + 1)) * sizeof(float) : 0;
}

static weights_job job_of(const call *c) {
    int64_t rows = operand_rows(&c->out[0]), I = operand_width(&c->in[0]), O = operand_width(&c->out[0]);
    weights_job j = {};
    int parts = gemm_parts(O, I, rows);
    j.g = gemm_args{{weights_dz(c), 1, O, false}, {view_of(&c->in[0]), 1, I, false}, O, I, rows, parts};
    j.g.a.vectors = gemm_vectors(&j.g.a, O, rows, j.g.parts);
    j.g.b.vectors = gemm_vectors(&j.g.b, I, rows, j.g.parts);
    j.dw = view_of(&c->din[1]);
    j.db = view_of(&c->din[2]);
    j.parts = (float *)((char *)c->scratch + weights_dz_bytes(c));
    j.tiles_m = (int)((O + GEMM_TILE - 1) / GEMM_TILE);
    j.tiles_n = (int)((I + GEMM_TILE - 1) / GEMM_TILE);
    return j;
}

static void launch_products(const call *c, const weights_jobs &w, unsigned blocks) {
    switch (math_of(c, c->out[0].type)) {
    case MATH_BF16: LAUNCH(c, weights_kernel<MATH_BF16>, blocks, GEMM_THREADS, 0, w); break;
    case MATH_F16: LAUNCH(c, weights_kernel<MATH_F16>, blocks, GEMM_THREADS, 0, w); break;
    case MATH_TF32: LAUNCH(c, weights_kernel<MATH_TF32>, blocks, GEMM_THREADS, 0, w); break;
    default: LAUNCH(c, weights_kernel<MATH_F32>, blocks, GEMM_THREADS, 0, w); break;
    }
}

void weights_launch(const call *const *calls, int count) {
    weights_jobs w = {}, cut = {};
    int blocks = 0, adds = 0;
    CHECK(count <= WEIGHTS_MOST, "the gradients of %d layers at once", count);
    for (int i = 0; i < count; i++) {
        weights_job j = job_of(calls[i]);
        if (!j.dw.data && !j.db.data) continue;
        j.first = blocks;
        j.add_first = adds;
        blocks += j.tiles_m * j.tiles_n * j.g.parts;
        w.job[w.count++] = j;
        if (j.g.parts == 1) continue;
        adds += (int)((j.g.m * (j.g.n + 1) + ADD_THREADS - 1) / ADD_THREADS);
        cut.job[cut.count++] = j;
    }
    if (w.count) launch_products(calls[0], w, (unsigned)blocks);
    if (cut.count) LAUNCH(calls[0], weights_add_kernel, (unsigned)adds, ADD_THREADS, 0, cut);
}
