#include "cuda/product/product.cuh"

#include "cuda/product/hopper.cuh"

bool product_can(const queue *q) {
    return q->hopper && !q->wish.no_product;
}

// Kinds: how the operands lie, and what is done with the sums.
enum { FORWARD, INPUT, WEIGHTS };

// One product of a launch, [m][n] of a sum over k.
struct job {
    int m, n, k;
    int across; // tiles along n
    int end;    // of its tiles, counted through all jobs, once for each share
    int shares; // of the sum, each of which has tiles of its own
    int parts;
    float *sums;      // INPUT: to; WEIGHTS: from, [parts][m]
    float *shared;    // WEIGHTS: [shares][m][n], to be added up, or NULL where there is one share
    view dw, db;      // WEIGHTS
    const void *bias; // FORWARD: or NULL
    bool relu;        // FORWARD
    bool seen;        // INPUT
};

// map: a and b of each job; then what is seen and the result, except for WEIGHTS.
template <int KIND> struct product_args {
    enum { JOBS = KIND == WEIGHTS ? PRODUCT_MOST : 1, MAPS = KIND == WEIGHTS ? 2 * PRODUCT_MOST : 4 };
    CUtensorMap map[MAPS];
    job jobs[JOBS];
};

// Sizes of a kernel: GROUPS groups of four warps with 64 rows each, N columns, a ring of STAGES slots.
template <int GROUPS_, int N_, int STAGES_, int BLOCKS_> struct size {
    enum {
        GROUPS = GROUPS_,
        M = BRICK * GROUPS,
        N = N_,
        STAGES = STAGES_,
        BLOCKS = BLOCKS_, // on a multiprocessor
        SUMS = N / 2,     // of a thread
        COLUMNS = N / BRICK,
        WORKERS = 128 * GROUPS,
        THREADS = WORKERS + 32,
        SLOT = (GROUPS + COLUMNS) * BRICK_BYTES,
        // A result of 16 bits goes through slots behind those of the operands, by columns of bricks.
        COLUMNS_OF_SLOT = COLUMNS < 2 ? 1 : 2,
        RESULT_SLOTS = COLUMNS / COLUMNS_OF_SLOT,
        ROOM = 4 * GROUPS * N * 4,
        SHARED = STAGES * SLOT + ROOM + 2 * STAGES * 8 + 1024
    };
    static_assert(COLUMNS_OF_SLOT * GROUPS * BRICK_BYTES <= SLOT, "a part of the result fits a slot");
    static_assert(RESULT_SLOTS + 2 <= STAGES, "slots of the result are given back while products run");
    static_assert(N <= WORKERS, "a thread for each column");
};

typedef size<1, 64, 6, 2> small;
typedef size<2, 128, 3, 2> middle;
typedef size<2, 256, 4, 1> wide;

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

// A block's tile and its places in shared memory.
struct block {
    int number; // of its job
    int m, n;   // where its tile begins
    int column; // of tiles
    int share;
    int first, steps; // bricks along the sum
    uint32_t ring, full, empty;
    float *room;
};

template <class S, int KIND> CUDA_FN block block_of(const product_args<KIND> &a, char *shared) {
    block b;
    int tile = blockIdx.x, begin = 0;
    b.number = 0;
    if (KIND == WEIGHTS) {
        while (tile >= a.jobs[b.number].end) begin = a.jobs[b.number++].end;
    }
    const job &j = a.jobs[b.number];
    int tiles = (j.end - begin) / j.shares, bricks = (j.k + BRICK - 1) / BRICK;
    b.share = (tile - begin) / tiles;
    tile = (tile - begin) % tiles;
    b.column = tile % j.across;
    b.m = tile / j.across * S::M;
    b.n = b.column * S::N;
    b.first = bricks * b.share / j.shares;
    b.steps = bricks * (b.share + 1) / j.shares - b.first;
    b.ring = (shared_address(shared) + 1023) / 1024 * 1024;
    b.room = (float *)(shared + (b.ring - shared_address(shared)) + S::STAGES * S::SLOT);
    b.full = b.ring + S::STAGES * S::SLOT + S::ROOM;
    b.empty = b.full + S::STAGES * 8;
    return b;
}

// A place in the ring.
struct place {
    int slot, phase;
};

template <class S> CUDA_FN void place_next(place *p) {
    if (++p->slot < S::STAGES) return;
    p->slot = 0;
    p->phase ^= 1;
}

template <class S, int KIND>
CUDA_FN void load_operands(const product_args<KIND> &a, const block &b, int step, int slot) {
    const CUtensorMap *map = &a.map[2 * b.number];
    uint32_t to = b.ring + slot * S::SLOT, full = b.full + slot * 8;
    int k = (b.first + step) * BRICK;
    barrier_arrive_expecting(full, S::SLOT);
#pragma unroll
    for (int i = 0; i < S::GROUPS; i++, to += BRICK_BYTES)
        brick_load(to, &map[0], KIND == WEIGHTS ? b.m + i * BRICK : k, KIND == WEIGHTS ? k : b.m + i * BRICK, full);
#pragma unroll
    for (int i = 0; i < S::COLUMNS; i++, to += BRICK_BYTES) {
        int n = b.n + i * BRICK;
        brick_load(to, &map[1], KIND == FORWARD ? k : n, KIND == FORWARD ? n : k, full);
    }
}

template <class S, int KIND> CUDA_FN void load_seen(const product_args<KIND> &a, const block &b, int part, int slot) {
    uint32_t to = b.ring + slot * S::SLOT, full = b.full + slot * 8;
    if (KIND != INPUT || !a.jobs[0].seen) {
        barrier_arrive(full);
        return;
    }
    barrier_arrive_expecting(full, S::COLUMNS_OF_SLOT * S::GROUPS * BRICK_BYTES);
#pragma unroll
    for (int i = 0; i < S::COLUMNS_OF_SLOT * S::GROUPS; i++, to += BRICK_BYTES)
        brick_load(to, &a.map[2], b.n + (part * S::COLUMNS_OF_SLOT + i / S::GROUPS) * BRICK,
            b.m + i % S::GROUPS * BRICK, full);
}

// One thread, before what comes before the launch is done: the weights, asked for by the first row of tiles, and what
// is seen, both of which nobody may have touched for long, wait in the cache.
template <class S, int KIND> CUDA_FN void foresee(const product_args<KIND> &a, const block &b) {
    for (int i = 0; KIND != WEIGHTS && b.m == 0 && i < b.steps * S::COLUMNS; i++) {
        int k = i / S::COLUMNS * BRICK, n = b.n + i % S::COLUMNS * BRICK;
        brick_foresee(&a.map[1], KIND == FORWARD ? k : n, KIND == FORWARD ? n : k);
    }
    for (int i = 0; KIND == INPUT && a.jobs[0].seen && i < S::COLUMNS * S::GROUPS; i++)
        brick_foresee(&a.map[2], b.n + i / S::GROUPS * BRICK, b.m + i % S::GROUPS * BRICK);
}

// One thread.
template <class S, int KIND> CUDA_FN void load_all(const product_args<KIND> &a, const block &b) {
    place p = {};
    int behind = KIND == WEIGHTS ? 0 : S::RESULT_SLOTS;
    for (int s = 0; s < b.steps + behind; s++) {
        barrier_wait(b.empty + p.slot * 8, p.phase ^ 1);
        if (s < b.steps)
            load_operands<S>(a, b, s, p.slot);
        else
            load_seen<S>(a, b, s - b.steps, p.slot);
        place_next<S>(&p);
    }
}

// A warp's part of db: the blocks that share rows of the result take turns with its columns, four at a time; eight
// lanes add up the parts of each.
template <class S> CUDA_FN void add_bias(const job &j, const block &b) {
    int lane = threadIdx.x % 32;
    if (!j.db.data || b.share) return;
    for (int q = b.column * 4; q < S::M / 4; q += 4 * j.across) {
        int column = b.m + (q + lane % 4) * 4;
        float sum[4] = {};
        if (column < j.m) {
#pragma unroll 4
            for (int p = lane / 4; p < j.parts; p += 8) {
                float4 v = *(const float4 *)(j.sums + (int64_t)p * j.m + column);
                sum[0] += v.x, sum[1] += v.y, sum[2] += v.z, sum[3] += v.w;
            }
        }
#pragma unroll
        for (int e = 0; e < 4; e++) {
            for (int d = 4; d < 32; d *= 2) sum[e] += __shfl_xor_sync(0xFFFFFFFFu, sum[e], d);
            if (lane < 4 && column < j.m) view_put(j.db, column + e, sum[e]);
        }
    }
}

// The sums of a group's 64 rows. A slot is given back when the products that read it are done, one step later.
template <class S, typename T, int KIND>
CUDA_FN void multiply(const product_args<KIND> &a, const block &b, int group, float (&sum)[S::SUMS], place *p) {
    int lane = threadIdx.x % 32, last = 0;
    for (int s = 0; s < b.steps; s++) {
        uint32_t slot = b.ring + p->slot * S::SLOT;
        barrier_wait(b.full + p->slot * 8, p->phase);
        uint64_t rows = bricks_describe<KIND != WEIGHTS>(slot + group * BRICK_BYTES);
        uint64_t columns = bricks_describe<KIND == FORWARD>(slot + S::GROUPS * BRICK_BYTES);
        products_begin();
#pragma unroll
        for (int k = 0; k < 4; k++)
            multiply_bricks<KIND != WEIGHTS, KIND == FORWARD>(T(), sum, bricks_piece<KIND != WEIGHTS>(rows, k),
                bricks_piece<KIND == FORWARD>(columns, k), s > 0 || k > 0);
        products_end();
        products_wait<1>();
        if (s > 0 && lane == 0) barrier_arrive(b.empty + last * 8);
        last = p->slot;
        place_next<S>(p);
    }
    products_wait<0>();
    products_hold(sum);
}

CUDA_FN __nv_bfloat162 pair_of(__nv_bfloat16, float x, float y) {
    return __floats2bfloat162_rn(x, y);
}
CUDA_FN __half2 pair_of(__half, float x, float y) {
    return __floats2half2_rn(x, y);
}
CUDA_FN float2 widen_pair(__nv_bfloat162 v) {
    return __bfloat1622float2(v);
}
CUDA_FN float2 widen_pair(__half2 v) {
    return __half22float2(v);
}

// Lanes that differ in `BIT` have values of the same 2 HALF columns: each is left with the totals of half of them.
// Returns whether it is the upper.
template <int HALF, int BIT> CUDA_FN int add_half(float (&v)[16], int lane) {
    bool upper = lane & BIT;
#pragma unroll
    for (int i = 0; i < HALF; i++) {
        float keep = upper ? v[i + HALF] : v[i], give = upper ? v[i] : v[i + HALF];
        v[i] = keep + __shfl_xor_sync(0xFFFFFFFFu, give, BIT);
    }
    return upper;
}

// Eight lanes have values of the same 16 columns: each is left with the totals of two, v[0] and v[1]. Returns which
// pair of columns that is.
CUDA_FN int add_lanes(float (&v)[16], int lane) {
    int at = add_half<8, 4>(v, lane) * 4;
    at += add_half<4, 8>(v, lane) * 2;
    return at + add_half<2, 16>(v, lane);
}

// A brick of the result, 64 columns of a group's sums, where what is seen lies.
template <class S, typename T> CUDA_FN void finish_brick(const job &j, char *brick, const float *sum, float *totals) {
    int lane = threadIdx.x % 32, x = lane % 4 * 2, y = threadIdx.x / 32 % 4 * 16 + lane / 4;
    float total[16];
#pragma unroll
    for (int i = 0; i < 8; i++) {
        float2 column = {0, 0};
#pragma unroll
        for (int r = 0; r < 2; r++) {
            auto *at = (decltype(pair_of(T(), 0, 0)) *)(brick + brick_offset(8 * i + x, y + 8 * r));
            float2 d = {sum[4 * i + 2 * r], sum[4 * i + 2 * r + 1]};
            if (j.seen) {
                float2 seen = widen_pair(*at);
                d.x *= seen.x <= 0 ? 0 : 1;
                d.y *= seen.y <= 0 ? 0 : 1;
            }
            *at = pair_of(T(), d.x, d.y);
            d = widen_pair(*at);
            column.x += d.x;
            column.y += d.y;
        }
        total[2 * i] = column.x;
        total[2 * i + 1] = column.y;
    }
    if (!j.sums) return;
    int at = add_lanes(total, lane);
    *(float2 *)(totals + 8 * at + x) = make_float2(total[0], total[1]);
}

// The same forward, where nothing lies.
template <class S, typename T>
CUDA_FN void activate_brick(const job &j, char *brick, const float *sum, const float *bias) {
    int lane = threadIdx.x % 32, x = lane % 4 * 2, y = threadIdx.x / 32 % 4 * 16 + lane / 4;
#pragma unroll
    for (int i = 0; i < 8; i++) {
        float2 add = *(const float2 *)(bias + 8 * i + x);
#pragma unroll
        for (int r = 0; r < 2; r++) {
            float2 z = {sum[4 * i + 2 * r] + add.x, sum[4 * i + 2 * r + 1] + add.y};
            if (j.relu) z = make_float2(z.x < 0 ? 0 : z.x, z.y < 0 ? 0 : z.y);
            *(decltype(pair_of(T(), 0, 0)) *)(brick + brick_offset(8 * i + x, y + 8 * r)) = pair_of(T(), z.x, z.y);
        }
    }
}

// The biases of the tile's columns, for activate_brick.
template <class S, typename T> CUDA_FN void load_bias(const job &j, const block &b) {
    int t = threadIdx.x;
    if (t < S::N) b.room[t] = j.bias && b.n + t < j.n ? widen(((const T *)j.bias)[b.n + t]) : 0.0f;
    threads_meet(3, S::WORKERS);
}

// A group's result of 16 bits: to slots of the ring, and from there to memory.
template <class S, typename T, int KIND>
CUDA_FN void put_bricks(
    const product_args<KIND> &a, const block &b, int group, const float (&sum)[S::SUMS], place p, char *ring) {
    const job &j = a.jobs[0];
    int warp = threadIdx.x / 32, slots[S::RESULT_SLOTS];
#pragma unroll
    for (int i = 0; i < S::COLUMNS; i++) {
        if (i % S::COLUMNS_OF_SLOT == 0) {
            barrier_wait(b.full + p.slot * 8, p.phase);
            slots[i / S::COLUMNS_OF_SLOT] = p.slot * S::SLOT + group * BRICK_BYTES;
            place_next<S>(&p);
        }
        char *brick = ring + slots[i / S::COLUMNS_OF_SLOT] + i % S::COLUMNS_OF_SLOT * S::GROUPS * BRICK_BYTES;
        if (KIND == FORWARD)
            activate_brick<S, T>(j, brick, sum + 32 * i, b.room + i * BRICK);
        else
            finish_brick<S, T>(j, brick, sum + 32 * i, b.room + warp * S::N + i * BRICK);
    }
    bricks_show();
    threads_meet(1 + group, 128);
    if (threadIdx.x % 128 || b.m + group * BRICK >= j.m) return;
#pragma unroll
    for (int i = 0; i < S::COLUMNS; i++)
        if (b.n + i * BRICK < j.n)
            brick_store(&a.map[3], b.n + i * BRICK, b.m + group * BRICK,
                b.ring + slots[i / S::COLUMNS_OF_SLOT] + i % S::COLUMNS_OF_SLOT * S::GROUPS * BRICK_BYTES);
    bricks_leave();
}

// The totals of the tile's columns, from those of the warps.
template <class S> CUDA_FN void put_totals(const job &j, const block &b) {
    int t = threadIdx.x;
    threads_meet(3, S::WORKERS);
    if (t >= S::N || b.n + t >= j.n || b.m >= j.m) return;
    float total = 0;
#pragma unroll
    for (int w = 0; w < 4 * S::GROUPS; w++) total += b.room[w * S::N + t];
    j.sums[(int64_t)(b.m / S::M) * j.n + b.n + t] = total;
}

// A group's result of 32 bits, or its share of it: four lanes fill 32 bytes of a row.
template <class S> CUDA_FN void put_sums(const job &j, const block &b, int group, const float (&sum)[S::SUMS]) {
    int lane = threadIdx.x % 32, y = b.m + group * BRICK + threadIdx.x / 32 % 4 * 16 + lane / 4;
    float *result = j.shared ? j.shared + (int64_t)b.share * j.m * j.n : (float *)j.dw.data;
    bool add = !j.shared && j.dw.add;
#pragma unroll
    for (int i = 0; i < S::SUMS / 2; i++) {
        int row = y + i % 2 * 8, column = b.n + i / 2 * 8 + lane % 4 * 2;
        if (row >= j.m || column >= j.n) continue;
        float2 *to = (float2 *)(result + (int64_t)row * j.n + column), v = {sum[2 * i], sum[2 * i + 1]};
        if (add) v = make_float2(to->x + v.x, to->y + v.y);
        *to = v;
    }
}

template <class S, typename T, int KIND> CUDA_FN void work(const product_args<KIND> &a, const block &b, char *ring) {
    const job &j = a.jobs[b.number];
    int group = __shfl_sync(0xFFFFFFFFu, threadIdx.x / 128, 0);
    float sum[S::SUMS];
    place p = {};
    if (KIND == FORWARD) load_bias<S, T>(j, b);
    multiply<S, T>(a, b, group, sum, &p);
    if (KIND == WEIGHTS) {
        put_sums<S>(j, b, group, sum);
        return;
    }
    put_bricks<S, T>(a, b, group, sum, p, ring);
    if (KIND == INPUT && j.sums) put_totals<S>(j, b);
}

// Before the barriers are used.
template <class S> CUDA_FN void begin(const block &b, const CUtensorMap *map) {
    if (threadIdx.x == 0) {
        brick_announce(&map[0]);
        brick_announce(&map[1]);
        for (int i = 0; i < S::STAGES; i++) {
            barrier_init(b.full + i * 8, 1);
            barrier_init(b.empty + i * 8, 4 * S::GROUPS);
        }
        barriers_show();
    }
    __syncthreads();
}

#endif

template <class S, typename T, int KIND>
static __global__ void __launch_bounds__(S::THREADS, S::BLOCKS)
    product_kernel(const __grid_constant__ product_args<KIND> a) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    extern __shared__ char shared[];
    block b = block_of<S>(a, shared);
    bool works = __shfl_sync(0xFFFFFFFFu, threadIdx.x / 128, 0) < S::GROUPS;
    begin<S>(b, &a.map[2 * b.number]);
    if (threadIdx.x == S::WORKERS) foresee<S>(a, b);
    __syncwarp();
    cuda_begin();
    if (works)
        work<S, T>(a, b, (char *)b.room - S::STAGES * S::SLOT);
    else if (threadIdx.x == S::WORKERS)
        load_all<S>(a, b);
    __syncwarp();
    if (KIND == WEIGHTS && !works) add_bias<S>(a.jobs[b.number], b);
#else
    __trap(); // nothing must be left unwritten unnoticed, should a queue take kernels for sm_90a that are not
#endif
}

static int64_t count_of(int64_t n, int64_t tile) {
    return (n + tile - 1) / tile;
}

// Tiles from which on the larger ones are taken, on every card: they decide the parts of sums, for which scratch is
// planned before a card is known.
enum { TILES_LEAST = 96 };

// Tiles of the two smaller sizes that a card has at a time, and of the widest.
static int64_t tiles_most(const queue *q) {
    return 2 * (int64_t)q->multiprocessors;
}

static int64_t wide_most(const queue *q) {
    return q->multiprocessors;
}

// True if there are enough of the larger tiles.
static bool is_middle(int64_t rows, int64_t n) {
    return count_of(rows, middle::M) * count_of(n, middle::N) >= TILES_LEAST;
}

// True if the widest tiles fill the card once: a second round would wait for the first one's end.
static bool is_wide(const queue *q, int64_t rows, int64_t n) {
    int64_t tiles = count_of(rows, wide::M) * count_of(n, wide::N);
    return tiles >= wide_most(q) * 5 / 6 && tiles <= wide_most(q);
}

bool product_fills(const queue *q, int64_t rows, int64_t n) {
    int64_t tiles = count_of(rows, middle::M) * count_of(n, middle::N), least = tiles_most(q) * 3 / 4;
    if (tiles < TILES_LEAST) tiles = count_of(rows, small::M) * count_of(n, small::N), least = TILES_LEAST;
    return tiles >= least && tiles <= tiles_most(q);
}

// Launches

typedef decltype(&cuTensorMapEncodeTiled) map_encode;

static map_encode find_encode(void) {
    void *function = NULL;
    cudaDriverEntryPointQueryResult result;
    if (cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &result) !=
            cudaSuccess ||
        result != cudaDriverEntryPointSuccess)
        return NULL;
    return (map_encode)function;
}

// A matrix of 16-bit elements as bricks.
static bool map_make(CUtensorMap *map, const void *data, int64_t rows, int64_t width, dtype type) {
    static const map_encode encode = find_encode();
    cuuint64_t sizes[2] = {(cuuint64_t)width, (cuuint64_t)rows}, pitch[1] = {(cuuint64_t)width * 2};
    cuuint32_t brick[2] = {BRICK, BRICK}, steps[2] = {1, 1};
    CUtensorMapDataType element =
        type == DTYPE_BF16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 : CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
    return encode && encode(map, element, 2, (void *)data, sizes, pitch, brick, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                         CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                         CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

// Launches jobs whose m, n, k and shares are set.
template <class S, typename T, int KIND> static void launch(const call *c, product_args<KIND> *a, int jobs) {
    int64_t end = 0;
    for (int i = 0; i < jobs; i++) {
        job *j = &a->jobs[i];
        j->across = (int)count_of(j->n, S::N);
        end += j->across * count_of(j->m, S::M) * j->shares;
        j->end = (int)end;
    }
    cuda_allow_shared((const void *)product_kernel<S, T, KIND>, (size_t)S::SHARED);
    LAUNCH_EARLY(c, (product_kernel<S, T, KIND>), (unsigned)end, S::THREADS, S::SHARED, *a);
}

template <class S, int KIND> static void launch_typed(const call *c, product_args<KIND> *a, int jobs, dtype type) {
    type == DTYPE_BF16 ? launch<S, __nv_bfloat16>(c, a, jobs) : launch<S, __half>(c, a, jobs);
}

static const char no_map[] =
    "the driver cannot describe a matrix to the card's copy engine; TRADEWIND_CUDA=product=0 does "
    "without it";

void product_launch_forward(const call *c, const product_forward *p) {
    product_args<FORWARD> a = {};
    job *j = &a.jobs[0];
    j->m = (int)p->rows, j->n = (int)p->O, j->k = (int)p->I, j->shares = 1;
    j->bias = p->bias;
    j->relu = p->relu;
    if (!map_make(&a.map[0], p->x, p->rows, p->I, p->type) || !map_make(&a.map[1], p->w, p->O, p->I, p->type) ||
        !map_make(&a.map[3], p->y, p->rows, p->O, p->type)) {
        cuda_refused(c, no_map);
        return;
    }
    is_middle(p->rows, p->O) ? launch_typed<middle>(c, &a, 1, p->type) : launch_typed<small>(c, &a, 1, p->type);
}

static_assert((int)wide::M == (int)middle::M, "wide tiles have the middle ones' parts of the rows, and so their bits");

int64_t product_parts(int64_t rows, int64_t I) {
    return count_of(rows, is_middle(rows, I) ? (int)middle::M : (int)small::M);
}

void product_launch_input(const call *c, const product_input *p) {
    product_args<INPUT> a = {};
    job *j = &a.jobs[0];
    j->m = (int)p->rows, j->n = (int)p->I, j->k = (int)p->O, j->shares = 1;
    j->sums = p->sums;
    j->seen = p->seen != NULL;
    if (!map_make(&a.map[0], p->dz, p->rows, p->O, p->type) || !map_make(&a.map[1], p->w, p->O, p->I, p->type) ||
        (p->seen && !map_make(&a.map[2], p->seen, p->rows, p->I, p->type)) ||
        !map_make(&a.map[3], p->dx, p->rows, p->I, p->type)) {
        cuda_refused(c, no_map);
        return;
    }
    if (p->alone && is_wide(c->queue, p->rows, p->I))
        launch_typed<wide>(c, &a, 1, p->type);
    else
        is_middle(p->rows, p->I) ? launch_typed<middle>(c, &a, 1, p->type) : launch_typed<small>(c, &a, 1, p->type);
}

// Weight gradients

// Up to WHOLE_ROWS a block adds up all rows, for a small tile. From SHARED_LEAST to SHARED_MOST rows blocks with wide
// tiles, which read less, take shares of them, as many as the card has such blocks at a time; adding up more shares
// than some costs more than is gained. Otherwise the library's products one after the other are faster.
enum { WHOLE_ROWS = 2048, SHARED_LEAST = 4096, SHARED_MOST = 8192, SHARES_MOST = 8 };
enum { ROOM_RESULTS = PRODUCT_ROOM / (int)sizeof(float) };

template <class S> static int64_t tiles_of(const product_weights *p, int count) {
    int64_t tiles = 0;
    for (int i = 0; i < count; i++) tiles += count_of(p[i].O, S::M) * count_of(p[i].I, S::N);
    return tiles;
}

static int64_t results_of(const product_weights *p, int count) {
    int64_t results = 0;
    for (int i = 0; i < count; i++) results += p[i].O * p[i].I;
    return results;
}

bool product_fits(const queue *q, const product_weights *p, int count) {
    if (p[0].rows <= WHOLE_ROWS) return tiles_of<small>(p, count) <= tiles_most(q);
    return 2 * tiles_of<wide>(p, count) <= wide_most(q) && 2 * results_of(p, count) <= ROOM_RESULTS;
}

int product_shares(const queue *q, const product_weights *p, int count) {
    if (p[0].rows <= WHOLE_ROWS) return 1;
    int64_t shares = wide_most(q) / tiles_of<wide>(p, count), most = ROOM_RESULTS / results_of(p, count);
    if (p[0].rows < SHARED_LEAST || p[0].rows > SHARED_MOST || shares > SHARES_MOST) return 0;
    return (int)(shares < most ? shares : most);
}

size_t product_room(const queue *q, const product_weights *p, int count) {
    int shares = product_shares(q, p, count);
    return shares > 1 ? (size_t)(shares * results_of(p, count)) * sizeof(float) : 0;
}

void product_launch_weights(const call *c, dtype type, const product_weights *p, int count, void *room) {
    product_args<WEIGHTS> a = {};
    int shares = product_shares(c->queue, p, count);
    float *shared = shares > 1 ? (float *)room : NULL;
    CHECK(count >= 1 && count <= PRODUCT_MOST && shares >= 1, "%d products in a launch, %d shares", count, shares);
    for (int i = 0; i < count; i++) {
        job *j = &a.jobs[i];
        j->m = (int)p[i].O, j->n = (int)p[i].I, j->k = (int)p[i].rows, j->shares = shares;
        j->dw = p[i].dw;
        j->db = p[i].db;
        j->sums = (float *)p[i].sums;
        j->parts = (int)p[i].parts;
        j->shared = shared;
        if (shared) shared += shares * p[i].O * p[i].I;
        if (!map_make(&a.map[2 * i], p[i].dz, p[i].rows, p[i].O, type) ||
            !map_make(&a.map[2 * i + 1], p[i].x, p[i].rows, p[i].I, type)) {
            cuda_refused(c, no_map);
            return;
        }
    }
    shares > 1 ? launch_typed<wide>(c, &a, count, type) : launch_typed<small>(c, &a, count, type);
}

// The shares of the gradients of weights

struct shares_args {
    struct {
        const float *from;
        view dw;
        int64_t count, end; // of results by fours: its own, and of all up to it
    } jobs[PRODUCT_MOST];
    int shares;
};

// A thread adds up the shares of four results, in order.
static __global__ void shares_kernel(const __grid_constant__ shares_args a) {
    cuda_begin();
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    int number = 0;
    while (number < PRODUCT_MOST && i >= a.jobs[number].end) number++;
    if (number == PRODUCT_MOST) return;
    const auto &j = a.jobs[number];
    i -= j.end - j.count;
    float4 *to = (float4 *)j.dw.data + i, sum = {};
#pragma unroll 4
    for (int s = 0; s < a.shares; s++) {
        float4 v = ((const float4 *)j.from)[s * j.count + i];
        sum = make_float4(sum.x + v.x, sum.y + v.y, sum.z + v.z, sum.w + v.w);
    }
    if (j.dw.add) sum = make_float4(to->x + sum.x, to->y + sum.y, to->z + sum.z, to->w + sum.w);
    *to = sum;
}

void product_launch_shares(const call *c, const product_weights *p, int count, const void *room) {
    enum { THREADS = 256 };
    shares_args a = {};
    const float *from = (const float *)room;
    int64_t end = 0;
    a.shares = product_shares(c->queue, p, count);
    for (int i = 0; i < PRODUCT_MOST; i++) {
        int64_t fours = i < count ? p[i].O * p[i].I / 4 : 0;
        end += fours;
        if (fours) a.jobs[i].from = from, a.jobs[i].dw = p[i].dw;
        a.jobs[i].count = fours;
        a.jobs[i].end = end;
        from += a.shares * fours * 4;
    }
    LAUNCH_EARLY(c, shares_kernel, blocks_for(end, THREADS), THREADS, 0, a);
}
