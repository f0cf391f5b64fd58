// The head of a classifier in one pass: see cuda/rows/rows_head.h.
//
// A warp has eight rows, all of which are on their way before the first is used. Of a row a lane has eight columns; of
// the sums for logits, 32 of eight rows and four classes, it has first its columns' share of all and then, after every
// half of the lanes has given the other one half of what it had left, one whole sum: that of row lane / 4 and class
// lane % 4.
extern "C" {
#include "cuda/rows/rows_head.h"
#include "ops/random.h"
}

#include "cuda/ops/activation.cuh"
#include "cuda/ops/cross_entropy.cuh"
#include "cuda/parts.cuh"
#include "cuda/rows/rows.cuh"
#include "cuda/run.cuh"

enum { CLASSES = ROWS_HEAD_CLASSES, HELD = 32 / CLASSES, WARPS = ROWS_HEAD_ROWS / HELD, THREADS = 32 * WARPS };
static_assert((int)ROWS_HEAD_WIDTH == 32 * (int)RUN, "a lane has a run of columns");
static_assert((int)ROWS_HEAD_WIDTH == (int)THREADS, "a thread adds up a column");

// Rows whose loss is summed: those of a block of other row kernels. So many warps have them.
enum { LOSS_TILE = 2 * ROWS_TILE, LOSS_WARPS = LOSS_TILE / HELD };

// A lane's columns of the rows, and which of them dropout has kept: a byte of each row.
template <typename T> struct head_rows {
    run_words<T> x[HELD];
    uint32_t kept[HELD / 4];
};

template <typename T> CUDA_FN float rounded_as(float v) {
    T low;
    convert(&low, v);
    return widen(low);
}

// The weights of a lane's columns, as the products' type has them.
template <typename T, int K> CUDA_FN void fetch_weights(float w[K][RUN], const rows_head &h, int column) {
#pragma unroll
    for (int k = 0; k < K; k++) {
        bool there = k < h.classes && column < h.width;
#pragma unroll
        for (int e = 0; e < RUN; e++) w[k][e] = 0;
        if (there) run_widen(w[k], run_fetch<float>(h.weights, (int64_t)k * h.width + column));
        run_rounded<T>(w[k]);
    }
}

// Dropout of row r of the warp's, as it is stored.
template <typename T>
CUDA_FN void drop_row(const rows_head &h, const random_key &s, head_rows<T> *of, int r, int64_t row, int column) {
    float v[RUN];
    rng_block bits = random_dropout(&s, (uint64_t)row, h.node, (uint32_t)column / RANDOM_OCTET);
    uint32_t kept = 0;
    run_widen(v, of->x[r]);
#pragma unroll
    for (int e = 0; e < RUN; e++) {
        bool keep = random_bits(&bits, e) >= h.least;
        kept |= (uint32_t)keep << e;
        v[e] = keep ? v[e] * h.scale : 0.0f;
    }
    of->kept[r / 4] |= kept << r % 4 * 8;
    run_narrow(&of->x[r], v);
}

template <typename T> CUDA_FN void fetch_rows(const rows_head &h, head_rows<T> *of, int64_t first, int column) {
    *of = head_rows<T>{};
#pragma unroll
    for (int r = 0; r < HELD; r++)
        if (column < h.width && first + r < h.rows) of->x[r] = run_fetch<T>(h.y, (first + r) * h.width + column);
}

template <typename T> CUDA_FN void drop_rows(const rows_head &h, head_rows<T> *of, int64_t first, int column) {
    random_key s = h.drop ? random_key_of(h.step) : random_key{};
#pragma unroll
    for (int r = 0; r < HELD; r++) {
        if (h.drop) drop_row<T>(h, s, of, r, first + r, column);
        if (h.x && column < h.width && first + r < h.rows) run_send<T>(h.x, (first + r) * h.width + column, of->x[r]);
    }
}

// One half of the lanes gives the other what it has of `upper`, and gets of `lower`.
template <int HALF> CUDA_FN float give(float lower, float upper) {
    bool up = threadIdx.x & HALF;
    return (up ? upper : lower) + __shfl_xor_sync(0xFFFFFFFFu, up ? lower : upper, HALF);
}

// Sums of classes beyond K are 0, and nobody's while whole rows are given.
template <int K, int HALF> CUDA_FN void give_half(float *sum) {
#pragma unroll
    for (int i = 0; i < HALF; i++)
        if (HALF < CLASSES || i % CLASSES < K) sum[i] = give<HALF>(sum[i], sum[i + HALF]);
}

template <typename T, int K> CUDA_FN void dot_row(float dot[K], const run_words<T> &x, const float w[K][RUN]) {
    float v[RUN];
    run_widen(v, x);
#pragma unroll
    for (int k = 0; k < K; k++) {
        dot[k] = 0;
#pragma unroll
        for (int e = 0; e < RUN; e++) dot[k] = fmaf(v[e], w[k][e], dot[k]);
    }
}

// That of the lane's row and class.
template <typename T, int K> CUDA_FN float logit(const head_rows<T> &of, const float w[K][RUN]) {
    const int HALF = HELD / 2;
    float sum[HALF * CLASSES] = {};
#pragma unroll
    for (int r = 0; r < HALF; r++) {
        float lower[K], upper[K];
        dot_row<T, K>(lower, of.x[r], w);
        dot_row<T, K>(upper, of.x[r + HALF], w);
#pragma unroll
        for (int k = 0; k < K; k++) sum[r * CLASSES + k] = give<16>(lower[k], upper[k]);
    }
    give_half<K, 8>(sum);
    give_half<K, 4>(sum);
    give_half<K, 2>(sum);
    give_half<K, 1>(sum);
    return sum[0];
}

// Row and class of a lane.
struct head_lane {
    float weight, class_weight; // of the row, of the class; 0 where that is not there
    int label;                  // -1 where the row does not count
    int k;
    bool there;
};

CUDA_FN head_lane lane_of(const rows_head &h, int64_t first) {
    head_lane l = {0, 0, -1, (int)threadIdx.x % CLASSES, false};
    int64_t row = first + threadIdx.x % 32 / CLASSES;
    l.there = row < h.rows && l.k < h.classes;
    int label = row < h.rows ? h.label[row] : -1; // on its way with the weight
    if (row < h.rows) l.weight = h.weight[row];
    if (l.weight != 0) l.label = label;
    if (l.k < h.classes) l.class_weight = h.class_weight ? h.class_weight[l.k] : 1.0f;
    return l;
}

struct head_loss {
    float loss, norm, dz; // loss and norm of the row in the lane of its first class, else 0
};

// As cross_entropy.cuh has it, a lane a logit.
CUDA_FN head_loss loss_of(const rows_head &h, const head_lane &l, float z) {
    bool is = l.k < h.classes, mine = l.k == l.label;
    softmax m = {quad_max(is ? z : -INFINITY), 0};
    m.log_sum = logf(quad_sum(is ? expf(z - m.top) : 0.0f));
    float s = h.smoothing, each = s > 0 ? s / (float)h.classes * l.class_weight : 0;
    float target = each + (mine ? (1 - s) * l.class_weight : 0), total = quad_sum(target);
    float weight = quad_sum(mine ? l.class_weight : 0);
    float p = log_p(m, z), loss = quad_sum(is && (mine || s > 0) ? target * -p : 0.0f);
    if (l.label < 0) return head_loss{0, 0, 0};
    float dz = is ? *h.up * l.weight * (total * expf(p) - target) : 0.0f;
    return head_loss{l.k ? 0 : l.weight * loss, l.k ? 0 : l.weight * weight, dz};
}

// The sums of the loss: of a warp's rows, from `first` on, and then of LOSS_WARPS warps in order. All threads meet
// here.
CUDA_FN void put_loss(const rows_head &h, head_loss l, int64_t first) {
    __shared__ float room[WARPS][2];
    int warp = threadIdx.x / 32;
#pragma unroll
    for (int d = 16; d; d >>= 1) {
        l.loss += __shfl_xor_sync(0xFFFFFFFFu, l.loss, d);
        l.norm += __shfl_xor_sync(0xFFFFFFFFu, l.norm, d);
    }
    if (threadIdx.x % 32 == 0) room[warp][0] = l.loss, room[warp][1] = l.norm;
    __syncthreads();
    if (threadIdx.x % (32 * LOSS_WARPS) || first >= h.rows) return;
    float sum = 0, norm = 0;
    for (int w = 0; w < LOSS_WARPS; w++) sum += room[warp + w][0], norm += room[warp + w][1];
    ((loss_sums *)h.loss_parts)[first / LOSS_TILE] = loss_sums{(double)sum, (double)norm};
}

// The first of a row's largest logits, as `largest` has it: a NaN only where all are.
CUDA_FN void count(const rows_head &h, const head_lane &l, float z) {
    float top = quad_max(l.k < h.classes ? z : NAN);
    unsigned row = threadIdx.x & 31 & ~(CLASSES - 1u);
    unsigned tops = __ballot_sync(0xFFFFFFFFu, l.k < h.classes && (z == top || top != top));
    int best = __ffs(tops >> row & ((1u << CLASSES) - 1)) - 1;
    int cell = l.label >= 0 && l.k == 0 ? l.label * h.classes + best : -1;
    unsigned peers = __match_any_sync(0xFFFFFFFFu, cell);
    if (cell >= 0 && __ffs(peers) - 1 == (int)threadIdx.x % 32)
        atomicAdd((unsigned long long *)h.confusion + cell, (unsigned long long)__popc(peers));
}

template <typename T> CUDA_FN void put_class(const rows_head &h, void *to, const head_lane &l, int64_t first, float v) {
    int64_t i = (first + threadIdx.x % 32 / CLASSES) * h.classes + l.k;
    if (to && l.there) convert((T *)to + i, v);
}

// Back to a lane's columns of row r. What each step takes is rounded as if it were stored.
template <typename T, int K, bool DROPS>
CUDA_FN run_words<T> row_back(
    const rows_head &h, const head_rows<T> &of, const float w[K][RUN], const float dz[K], int r) {
    float d[RUN];
#pragma unroll
    for (int e = 0; e < RUN; e++) {
        d[e] = 0;
#pragma unroll
        for (int k = 0; k < K; k++) d[e] = fmaf(dz[k], w[k][e], d[e]);
    }
    if (DROPS && h.drop) {
        run_rounded<T>(d);
#pragma unroll
        for (int e = 0; e < RUN; e++) d[e] = of.kept[r / 4] >> (r % 4 * 8 + e) & 1 ? d[e] * h.scale : 0.0f;
    }
    if (h.slope) {
        float x[RUN]; // the result below, dropped out: where it is 0 for that reason, so is the gradient
        run_rounded<T>(d);
        run_widen(x, of.x[r]);
        slope_run<RUN>(ACT_RELU, d, x);
    }
    run_words<T> to;
    run_narrow(&to, d);
    return to;
}

// The gradients of the logits of row r of the warp's.
template <int K> CUDA_FN void logits_back(float of_row[K], float dz, int r) {
#pragma unroll
    for (int k = 0; k < K; k++) of_row[k] = __shfl_sync(0xFFFFFFFFu, dz, r * CLASSES + k);
}

// All rows of the warp; `sum` becomes that of each of the lane's columns, as they are stored.
template <typename T, int K, bool DROPS>
CUDA_FN void rows_back(const rows_head &h, const head_rows<T> &of, const float w[K][RUN], float dz, int64_t first,
    int column, float sum[RUN]) {
#pragma unroll
    for (int e = 0; e < RUN; e++) sum[e] = 0;
#pragma unroll
    for (int r = 0; r < HELD; r++) {
        float of_row[K], v[RUN];
        logits_back<K>(of_row, dz, r);
        run_words<T> d = row_back<T, K, DROPS>(h, of, w, of_row, r);
        if (column < h.width && first + r < h.rows) run_send<T>(h.dx, (first + r) * h.width + column, d);
        run_widen(v, d);
#pragma unroll
        for (int e = 0; e < RUN; e++) sum[e] += v[e];
    }
}

// Sums over rows: of the weights' gradients, K planes, and of the columns of dx, one more. Each warp has a place for
// its own in the block's memory; a thread then adds up a column of them, and so the block's part is there.
template <int K> struct head_room {
    float column[WARPS][K + 1][ROWS_HEAD_WIDTH];
    float bias[WARPS][CLASSES];
};

CUDA_FN void put_columns(float *to, const float v[RUN]) {
    *(float4 *)to = make_float4(v[0], v[1], v[2], v[3]);
    *(float4 *)(to + 4) = make_float4(v[4], v[5], v[6], v[7]);
}

template <typename T, int K>
CUDA_FN void put_sums(head_room<K> *room, const head_rows<T> &of, float dz, const float dx[RUN], int column) {
    float sum[K][RUN] = {};
    int warp = threadIdx.x / 32;
#pragma unroll
    for (int r = 0; r < HELD; r++) {
        float of_row[K], v[RUN];
        logits_back<K>(of_row, dz, r);
        run_widen(v, of.x[r]);
#pragma unroll
        for (int n = 0; n < K * RUN; n++) sum[n / RUN][n % RUN] += of_row[n / RUN] * v[n % RUN];
    }
#pragma unroll
    for (int k = 0; k < K; k++) put_columns(&room->column[warp][k][column], sum[k]);
    put_columns(&room->column[warp][K][column], dx);
    for (int d = 16; d >= CLASSES; d >>= 1) dz += __shfl_xor_sync(0xFFFFFFFFu, dz, d);
    if (threadIdx.x % 32 < CLASSES) room->bias[warp][threadIdx.x % 32] = dz;
}

template <int K> CUDA_FN void put_part(const rows_head &h, const head_room<K> &room) {
    int at = threadIdx.x;
    float *part = h.sums + blockIdx.x * rows_head_part(h.width, h.classes), *biases = part + h.classes * h.width;
#pragma unroll
    for (int k = 0; k <= K; k++) {
        float sum = 0;
#pragma unroll
        for (int w = 0; w < WARPS; w++) sum += room.column[w][k][at];
        if (at < h.width && k < h.classes) part[k * h.width + at] = sum;
        if (at < h.width && k == K) biases[h.classes + at] = sum;
    }
    float bias = 0;
    for (int w = 0; w < WARPS && at < h.classes; w++) bias += room.bias[w][at];
    if (at < h.classes) biases[at] = bias;
}

// K: the most classes; DROPS: dropout draws before the layer, or at least its result is wanted.
template <typename T, int K, bool DROPS>
static __global__ void __launch_bounds__(THREADS, 2) head_kernel(const __grid_constant__ rows_head h) {
    __shared__ __align__(16) head_room<K> room;
    int64_t first = (int64_t)blockIdx.x * ROWS_HEAD_ROWS + threadIdx.x / 32 * HELD;
    int column = threadIdx.x % 32 * RUN;
    head_rows<T> of;
    float w[K][RUN], dx[RUN];
    cuda_begin();
    fetch_rows<T>(h, &of, first, column);
    head_lane l = lane_of(h, first);
    fetch_weights<T, K>(w, h, column);
    float bias = h.bias && l.k < h.classes ? h.bias[l.k] : 0.0f;
    if (DROPS) drop_rows<T>(h, &of, first, column);
    float z = rounded_as<T>(logit<T, K>(of, w) + bias);
    head_loss loss = loss_of(h, l, z);
    float dz = rounded_as<T>(loss.dz);
    put_class<T>(h, h.z, l, first, z);
    put_class<T>(h, h.dz, l, first, dz);
    rows_back<T, K, DROPS>(h, of, w, dz, first, column, dx);
    if (h.confusion) count(h, l, z);
    if (h.sums) put_sums<T, K>(&room, of, dz, dx, column);
    put_loss(h, loss, first); // with a barrier
    if (h.sums) put_part<K>(h, room);
}

template <typename T, int K> static void launch(const call *c, const rows_head &h) {
    unsigned blocks = (unsigned)rows_head_parts(h.rows);
    if (h.x || h.drop) {
        LAUNCH_EARLY(c, (head_kernel<T, K, true>), blocks, THREADS, 0, h);
    } else {
        LAUNCH_EARLY(c, (head_kernel<T, K, false>), blocks, THREADS, 0, h);
    }
}

template <typename T> static void launch_any(const call *c, const rows_head &h) {
    h.classes < CLASSES ? launch<T, CLASSES - 1>(c, h) : launch<T, CLASSES>(c, h);
}

void rows_launch_head(const call *c, const row_kernel *p) {
    rows_head h = rows_head_of(p);
    p->low == DTYPE_BF16 ? launch_any<__nv_bfloat16>(c, h) : launch_any<__half>(c, h);
}

// Adding up

struct head_add {
    const float *sums;
    view dw, db, below; // below: the bias' gradient of that layer
    int weights, biases;
    int parts, size; // size: elements of a part
};

static __global__ void head_add_kernel(const __grid_constant__ head_add a) {
    cuda_begin();
    float sum;
    if (!parts_add(a.sums, a.parts, a.size, &sum)) return;
    int i = parts_column();
    if (i < a.weights) {
        view_put(a.dw, i, sum);
    } else if (i < a.weights + a.biases) {
        if (a.db.data) view_put(a.db, i - a.weights, sum);
    } else {
        if (a.below.data) view_put(a.below, i - a.weights - a.biases, sum);
    }
}

void rows_launch_head_sums(const call *c, const call *below) {
    int width = (int)operand_width(&c->in[0]), classes = (int)operand_width(&c->out[0]);
    head_add a = {(const float *)c->scratch, view_of(&c->din[1]), view_of(&c->din[2]),
        below ? view_of(&below->din[2]) : view{}, classes * width, classes,
        (int)rows_head_parts(operand_rows(&c->out[0])), (int)rows_head_part(width, classes)};
    LAUNCH_EARLY(c, head_add_kernel, parts_blocks(a.size), parts_threads(), 0, a);
}
