#include "cuda/join/large.cuh"

#include "cuda/join/life.cuh"
#include "cuda/ops/activation.cuh"
#include "cuda/ops/dropout.cuh"
#include "cuda/parts.cuh"
#include "cuda/product/blaslt.cuh"
#include "cuda/product/product.cuh"
#include "cuda/run.cuh"

extern "C" {
#include "ops/ops.h"
}

// The rule, by sizes and types alone. From 2^27 multiplications on a product keeps a large card busy for longer than a
// launch takes, and sides of 64 fill the tiles that the library multiplies on; below that our own products, which
// convert as they load and join others in one launch, are faster. Rows of multiples of 8 elements lie at multiples of
// 16 bytes, as the card's copy engine wants them. A run may say otherwise: never the library, which in fp32 gives
// every plan the same gradient; or from WANTED_LEAST multiplications on, below which a launch of its own is longer than
// the product.
enum { PRODUCTS_LEAST = 1 << 27, WANTED_LEAST = 1 << 20, SIDE_LEAST = 64, SIDE_STEP = 8 };

struct sizes {
    int64_t rows, I, O;
    dtype type; // of products' operands
    int act;
};

static sizes sizes_of(const call *c) {
    return sizes{operand_rows(&c->out[0]), operand_width(&c->in[0]), operand_width(&c->out[0]), c->out[0].type,
        (int)((const linear_attr *)c->attr)->act};
}

static bool is_side(int64_t n) {
    return n >= SIDE_LEAST && n % SIDE_STEP == 0;
}

// An operand that is of the products' type, or becomes so.
static bool is_source(const operand *o, dtype type) {
    return o->type == type || o->type == DTYPE_F32;
}

// A parameter that is there in the products' type, or a bias that is not there.
static bool is_weight(const operand *o, dtype type) {
    return !o->shape.rank || (o->type == DTYPE_F32 && (type == DTYPE_F32 || o->low_type == type));
}

static bool is_large(const call *c) {
    sizes s = sizes_of(c);
    bool low = s.type == DTYPE_BF16 || s.type == DTYPE_F16;
    int64_t least = c->products == PRODUCTS_LIBRARY ? WANTED_LEAST : PRODUCTS_LEAST;
    if (c->products == PRODUCTS_OWN) return false;
    if (!low && s.type != DTYPE_F32) return false;
    if (!is_source(&c->in[0], s.type) || !is_weight(&c->in[1], s.type) || !is_weight(&c->in[2], s.type)) return false;
    if (c->backward && (!is_source(&c->dout[0], s.type) || !is_source(&c->din[0], s.type))) return false;
    return is_side(s.I) && is_side(s.O) && s.rows >= SIDE_LEAST && s.rows * s.I * s.O >= least;
}

// Products

static blaslt_shape shape_forward(const call *c) {
    sizes s = sizes_of(c);
    return blaslt_shape{
        s.rows, s.O, s.I, s.type, s.type, false, false, c->tf32, c->in[2].shape.rank > 0, s.act == ACT_RELU};
}

static blaslt_shape shape_dx(const call *c) {
    sizes s = sizes_of(c);
    return blaslt_shape{s.rows, s.I, s.O, s.type, c->din[0].type, false, true, c->tf32, false, false};
}

static blaslt_shape shape_dw(const call *c) {
    sizes s = sizes_of(c);
    return blaslt_shape{s.O, s.I, s.rows, s.type, DTYPE_F32, true, true, c->tf32, false, false};
}

// Backward reads what forward has kept: it is taken only where forward was.
bool large_takes(const call *c) {
    if (c->op != OP_linear || !is_large(c)) return false;
    blaslt_shape forward = shape_forward(c);
    if (!blaslt_has(c->queue, &forward)) return false;
    if (!c->backward) return true;
    blaslt_shape dx = shape_dx(c), dw = shape_dw(c);
    return c->dout[0].data && (!c->din[0].data || blaslt_has(c->queue, &dx)) &&
           (!c->din[1].data || blaslt_has(c->queue, &dw));
}

// Memory: reserve holds z where the activation is GELU. All of it lies at multiples of 64 bytes.

struct places {
    void *z, *x, *dz;        // in the products' type
    float *sums;             // [parts][O]
    float *lent;             // [product_parts][I]: those of the layer whose slope this one does
    void *room, *other_room; // the library's, for dx and for dW; or other_room the shares of a stack that ends here
};

static size_t up(size_t bytes) {
    return (bytes + 63) / 64 * 64;
}

static size_t copy_bytes(const operand *o, dtype type) {
    return o->type == type ? 0 : up((size_t)operand_count(o) * dtype_bytes(type));
}

// A parameter in the products' type.
static const void *weights_of(const operand *o, dtype type) {
    return type == DTYPE_F32 ? o->data : o->low;
}

static size_t z_bytes(const call *c) {
    return sizes_of(c).act == ACT_GELU ? up((size_t)operand_count(&c->out[0]) * dtype_bytes(c->out[0].type)) : 0;
}

static char *room_at(const char *p) {
    return (char *)(((uintptr_t)p + 255) / 256 * 256);
}

enum { ROOM_BYTES = BLASLT_ROOM + 256 };

// A block of the slope takes 128 columns of a part of the rows, a thread eight of them of every sixteenth row, some
// rows at a time so that their loads are on their way together. A multiprocessor has BLOCKS_EACH of these blocks.
enum { ACROSS = 16, STRIP = RUN * ACROSS, DOWN = 16, THREADS = ACROSS * DOWN, BLOCKS_EACH = 4, BLOCKS_MOST = 528 };

// How many parts the rows are cut into, of 32 rows at least: by sizes alone, since scratch is planned before a card is
// known and the parts decide the order of sums. BLOCKS_MOST bounds the blocks of a launch on every card.
static int64_t parts_for(int64_t rows, int64_t width) {
    int64_t parts = BLOCKS_MOST / ((width + STRIP - 1) / STRIP);
    if (parts > rows / (DOWN * 2)) parts = rows / (DOWN * 2);
    return parts < 1 ? 1 : parts;
}

static int64_t parts_of(const sizes &s) {
    return parts_for(s.rows, s.O);
}

size_t large_columns_bytes(int64_t rows, int64_t width) {
    return up((size_t)(parts_for(rows, width) * width) * sizeof(float));
}

static size_t sums_bytes(const call *c) {
    sizes s = sizes_of(c);
    return large_columns_bytes(s.rows, s.O);
}

// Our own products do slopes up to so many rows: beyond, the library gains more on them than the slope's pass costs. A
// small layer's slope, which the row kernel does on its way, is worth less.
enum { SLOPED_ROWS = 1 << 15, SMALL_SLOPED_ROWS = 1 << 13 };

// They are added up beside what the next layers do, which therefore write theirs elsewhere: neighbours take turns.
enum { LENT_TURNS = 8 };

static size_t lent_bytes(const call *c) {
    sizes s = sizes_of(c);
    if (s.type == DTYPE_F32 || s.rows > SLOPED_ROWS) return 0;
    return up((size_t)(product_parts(s.rows, s.I) * s.I) * sizeof(float));
}

// dz is dy where the activation has no slope and dy is of the products' type.
static bool has_dz(const call *c) {
    return sizes_of(c).act != ACT_NONE || c->dout[0].type != c->out[0].type;
}

static size_t dz_bytes(const call *c) {
    return has_dz(c) ? up((size_t)operand_count(&c->out[0]) * dtype_bytes(c->out[0].type)) : 0;
}

// True if the slope's pass writes dz.
static bool makes_dz(const call *c, const large_join *d) {
    return has_dz(c) && !d->sloped && !d->ready.slope;
}

// True if the call itself has a bias' gradient to give.
static bool has_bias(const call *c, const large_join *d) {
    return c->backward && c->din[2].data && !d->sloped && !d->ready.bias;
}

// With a dropout, dz takes the place of its result's gradient, which then nobody needs; so it does where somebody else
// has done the slope.
static places places_of(const call *c, const large_join *d) {
    dtype type = c->out[0].type;
    places p = {};
    char *at = (char *)c->scratch;
    if (z_bytes(c)) p.z = c->reserve;
    p.x = at;
    at += copy_bytes(&c->in[0], type);
    if (c->backward) {
        p.dz = makes_dz(c, d) && !d->drop ? at : c->dout[0].data;
        p.sums = (float *)(at + dz_bytes(c));
        at += dz_bytes(c) + sums_bytes(c);
        p.lent = (float *)(at + c->node % LENT_TURNS * lent_bytes(c));
        at += LENT_TURNS * lent_bytes(c);
    }
    p.room = room_at(at);
    p.other_room = room_at(at + ROOM_BYTES);
    return p;
}

size_t large_scratch(const call *c) {
    if (!is_large(c)) return 0;
    size_t x = copy_bytes(&c->in[0], c->out[0].type);
    if (!c->backward) return x + ROOM_BYTES;
    return x + dz_bytes(c) + sums_bytes(c) + LENT_TURNS * lent_bytes(c) + 2 * (size_t)ROOM_BYTES;
}

// True if our own products compute y, and dx: by sizes and types alone.

static bool is_ours(const call *c, int64_t n) {
    enum { LEAST = 256 };
    sizes s = sizes_of(c);
    return s.type != DTYPE_F32 && s.I >= LEAST && s.O >= LEAST && product_can(c->queue) &&
           product_fills(c->queue, s.rows, n);
}

static bool is_y_ours(const call *c) {
    sizes s = sizes_of(c);
    return (s.act == ACT_NONE || s.act == ACT_RELU) && is_ours(c, s.O);
}

static bool is_dx_ours(const call *c, const large_join *d) {
    sizes s = sizes_of(c);
    return d->below || (!c->din[0].add && c->din[0].type == s.type && is_ours(c, s.I));
}

// Conversion of x

static __global__ void narrow_kernel(view from, view to, int64_t runs) {
    cuda_begin();
    FOR_EACH(i, runs) {
        float v[RUN];
        run_load(v, from, i * RUN);
        run_store(to, i * RUN, v);
    }
}

// x in the products' type, copied to `to` where it is of another.
static const void *narrow(const call *c, void *to) {
    const operand *x = &c->in[0];
    dtype type = c->out[0].type;
    int64_t runs = operand_count(x) / RUN;
    if (x->type == type) return x->data;
    LAUNCH_EARLY(c, narrow_kernel, blocks_for(runs, 256), 256, 0, view_of(x), view{to, (int)type, false}, runs);
    return to;
}

// Dropout

// Dropout of a run at i. Values that pass to dropout, or from it, are rounded as if they were stored.
CUDA_FN void drop_run(const drop_args &a, const random_key &s, int64_t i, float v[RUN]) {
    rng_block r = drop_draw(a, s, drop_place_of(a, i));
#pragma unroll
    for (int e = 0; e < RUN; e++) v[e] = drop_one(a, r.v, e, v[e]);
}

static bool joins_forward(const call *c, const call *drop) {
    return !drop->backward && drop->training && c->reserve && drop->in[0].data == c->out[0].data &&
           drop->out[0].type == c->out[0].type;
}

// The gradient that dropout gives is the layer's alone, so that dz can lie there. The slope's sums are written while
// what dropout is given is read: they must not share memory.
static bool joins_backward(const call *c, const call *drop) {
    large_join none = {};
    if (!drop->backward || !drop->dout[0].data || drop->din[0].add || drop->din[0].data != c->dout[0].data)
        return false;
    if (c->dout[0].type != c->out[0].type || drop->dout[0].type != c->out[0].type) return false;
    return !life_meet_bytes(&drop->dout[0], places_of(c, &none).sums, sums_bytes(c));
}

bool large_joins(const call *c, const call *drop, const call *following, int count, large_join *d) {
    *d = large_join{};
    if (drop->op != OP_dropout || sizes_of(c).act != ACT_GELU) return false;
    drop_args a = drop_args_of(drop);
    if (a.n % RUN || !a.small) return false;
    if (!(c->backward ? joins_backward(c, drop) : joins_forward(c, drop))) return false;
    d->drop = drop;
    d->alone = !c->backward && life_over(&c->out[0], false, following, count);
    return true;
}

// Slopes of other layers

// The gradient is the layer's alone: nobody adds to it between the two, and nobody reads it behind them.
bool large_slopes(const call *c, const call *below, const call *following, int count) {
    if (!product_can(c->queue) || !c->backward || !below->backward || below->op != OP_linear) return false;
    sizes s = sizes_of(below);
    if (s.act != ACT_RELU || s.type == DTYPE_F32) return false;
    if (s.rows > (large_takes(below) ? SLOPED_ROWS : SMALL_SLOPED_ROWS)) return false;
    const operand *dx = &c->din[0], *dy = &below->dout[0];
    if (!dx->data || dx->data != dy->data || dx->add || c->in[0].data != below->out[0].data) return false;
    if (c->out[0].type != s.type || dx->type != s.type || dy->type != s.type || c->in[0].type != s.type) return false;
    return life_over(dx, true, following, count);
}

// Weight gradients together

// The weights' and bias' gradients of call i of a stack, each of which does the slope of the next; `ready` is the
// first's.
static product_weights weights_of_stack(const call *c, int i, large_ready ready) {
    large_join join = {};
    join.sloped = i > 0;
    if (i == 0) join.ready = ready;
    sizes s = sizes_of(&c[i]);
    places p = places_of(&c[i], &join);
    const float *sums = i ? places_of(&c[i - 1], &join).lent : p.sums;
    view db = i == 0 && ready.bias ? view{} : view_of(&c[i].din[2]);
    return product_weights{p.dz, c[i].in[0].data, view_of(&c[i].din[1]), db, sums, s.rows, s.I, s.O,
        i ? product_parts(s.rows, s.O) : parts_of(s)};
}

// Weight gradients of the stack that ends with a call.
struct stack_weights {
    product_weights w[PRODUCT_MOST];
};

static stack_weights weights_of_all(const call *c, const large_join *d) {
    stack_weights all;
    for (int i = 0; i < d->together; i++) all.w[i] = weights_of_stack(c + 1 - d->together, i, d->stack_ready);
    return all;
}

static_assert((int)PRODUCT_ROOM <= (int)BLASLT_ROOM, "shares of weight gradients lie where the library would work");

// GELU

CUDA_FN float exp2_fast(float v) {
    float r;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(v));
    return r;
}

// |z|, or FAR where that is less: there the tail and the density are 0 in fp32, and at infinity products with them
// would be no numbers. A NaN stays one.
CUDA_FN float distance(float z) {
    const float FAR = 16;
#if __CUDA_ARCH__ >= 800
    float r;
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(fabsf(z)), "f"(FAR));
    return r;
#else
    return fabsf(z) > FAR ? FAR : fabsf(z);
#endif
}

// The normal distribution beyond a >= 0: its logarithm is nearly a parabola. To 5e-7, and to 4e-5 of itself, far
// beneath what these layers' types round to, in a third of erff's time, which would be more than the memory's.
CUDA_FN float tail(float a) {
    float p = fmaf(fmaf(-1.19014442e-06f, a, 4.94393316e-05f), a, -0.000843074697f);
    p = fmaf(fmaf(fmaf(p, a, 0.00820880849f), a, -0.0534646884f), a, -0.458827704f);
    return exp2_fast(fmaf(fmaf(p, a, -1.15115857f), a, -0.999998868f));
}

CUDA_FN float gelu(float z) {
    float a = distance(z);
    return fmaf(-a, tail(a), fmaxf(z, 0.0f));
}

// Below 0 tail - a * density, above it one minus that.
CUDA_FN float gelu_slope(float z) {
    float a = distance(z), density = exp2_fast(fmaf(-0.72134752f * a, a, -1.32574806f));
    return 0.5f + copysignf(0.5f - fmaf(-a, density, tail(a)), z);
}

// Forward. A thread has two runs at a time, whose loads are on their way together.

enum { ACTIVATE_THREADS = 256, ACTIVATE_EACH = 64 }; // blocks for each multiprocessor, at most

template <typename T> struct two_runs {
    run_words<T> r[2];
    int64_t at[2];
    bool live[2];
};

template <typename T> CUDA_FN two_runs<T> fetch_two(const void *from, int64_t first, int64_t runs) {
    two_runs<T> two;
#pragma unroll
    for (int k = 0; k < 2; k++) {
        int64_t i = first + k * ACTIVATE_THREADS;
        two.live[k] = i < runs;
        two.at[k] = i * RUN;
        if (two.live[k]) two.r[k] = run_fetch<T>(from, two.at[k]);
    }
    return two;
}

#define FOR_TWO_RUNS(i, runs)                                                                                          \
    for (int64_t i = (int64_t)blockIdx.x * 2 * ACTIVATE_THREADS + threadIdx.x; i < (runs);                             \
         i += (int64_t)gridDim.x * 2 * ACTIVATE_THREADS)

// GELU of what is kept, and dropout; y that is NULL is not wanted.
template <typename T>
static __global__ void __launch_bounds__(ACTIVATE_THREADS)
    activate_drop_kernel(const void *z, void *y, void *dropped, const __grid_constant__ drop_args a, int64_t runs) {
    cuda_begin();
    random_key s = random_key_of(a.at);
    FOR_TWO_RUNS(i, runs) {
        two_runs<T> two = fetch_two<T>(z, i, runs);
#pragma unroll
        for (int k = 0; k < 2; k++) {
            if (!two.live[k]) continue;
            float v[RUN];
            run_widen(v, two.r[k]);
#pragma unroll
            for (int e = 0; e < RUN; e++) v[e] = gelu(v[e]);
            run_words<T> stored = run_rounded<T>(v);
            if (y) run_send<T>(y, two.at[k], stored);
            drop_run(a, s, two.at[k], v);
            run_convert<T>(dropped, two.at[k], v);
        }
    }
}

// Activations in place, or from what is kept.
template <typename T, bool GELU>
static __global__ void __launch_bounds__(ACTIVATE_THREADS)
    activate_kernel(const void *z, void *y, int act, int64_t runs) {
    cuda_begin();
    FOR_TWO_RUNS(i, runs) {
        two_runs<T> two = fetch_two<T>(z, i, runs);
#pragma unroll
        for (int k = 0; k < 2; k++) {
            if (!two.live[k]) continue;
            float v[RUN];
            run_widen(v, two.r[k]);
#pragma unroll
            for (int e = 0; GELU && e < RUN; e++) v[e] = gelu(v[e]);
            if (!GELU) activate_run<RUN>(act, v);
            run_convert<T>(y, two.at[k], v);
        }
    }
}

template <typename T> static void activate_launch(const call *c, const void *z, const large_join *d, int64_t runs) {
    unsigned blocks = blocks_for(runs, 2 * ACTIVATE_THREADS),
             most = (unsigned)c->queue->multiprocessors * ACTIVATE_EACH;
    void *y = c->out[0].data;
    int act = sizes_of(c).act;
    if (blocks > most) blocks = most;
    if (d->drop) {
        LAUNCH_EARLY(c, activate_drop_kernel<T>, blocks, ACTIVATE_THREADS, 0, z, d->alone ? NULL : y,
            d->drop->out[0].data, drop_args_of(d->drop), runs);
    } else if (act == ACT_GELU) {
        LAUNCH_EARLY(c, (activate_kernel<T, true>), blocks, ACTIVATE_THREADS, 0, z, y, act, runs);
    } else {
        LAUNCH_EARLY(c, (activate_kernel<T, false>), blocks, ACTIVATE_THREADS, 0, z, y, act, runs);
    }
}

static void forward(const call *c, const large_join *d) {
    sizes s = sizes_of(c);
    places p = places_of(c, d);
    const void *x = narrow(c, p.x), *w = weights_of(&c->in[1], s.type), *bias = weights_of(&c->in[2], s.type);
    void *to = p.z ? p.z : c->out[0].data;
    if (is_y_ours(c)) {
        product_forward own = {x, w, bias, to, s.rows, s.I, s.O, s.type, s.act == ACT_RELU};
        product_launch_forward(c, &own);
        return;
    }
    blaslt_shape shape = shape_forward(c);
    blaslt_data data = {x, w, bias, to, false};
    blaslt_multiply(c, &shape, &data, p.room);
    if (s.act == ACT_NONE || s.act == ACT_RELU) return;
    int64_t runs = s.rows * s.O / RUN;
    switch (s.type) {
    case DTYPE_BF16: activate_launch<__nv_bfloat16>(c, to, d, runs); break;
    case DTYPE_F16: activate_launch<__half>(c, to, d, runs); break;
    default: activate_launch<float>(c, to, d, runs); break;
    }
}

// Backward

struct slope_args {
    const void *dy, *seen; // seen: z for GELU, else y
    void *dz;              // NULL: dy is what is wanted
    int act, width;
    int64_t rows;
    float *sums;    // [parts][width], or NULL
    drop_args drop; // SLOPE_DROPS: dy is dropout's, and goes through it first
};

typedef enum { SLOPE_NONE, SLOPE_GELU, SLOPE_DROPS, SLOPE_OTHER } slope_kind; // GELU's with dropout is SLOPE_DROPS

// Slope of a run at i: d becomes its dz, unrounded.
template <typename T, slope_kind KIND>
CUDA_FN void slope_of(const slope_args &a, const random_key &s, int64_t i, float d[RUN], const run_words<T> &words) {
    float seen[RUN];
    if (KIND == SLOPE_NONE) return;
    run_widen(seen, words);
    if (KIND == SLOPE_OTHER) {
        slope_run<RUN>(a.act, d, seen);
        return;
    }
    if (KIND == SLOPE_DROPS) {
        drop_run(a.drop, s, i, d);
        run_rounded<T>(d);
    }
#pragma unroll
    for (int e = 0; e < RUN; e++) d[e] *= gelu_slope(seen[e]);
}

// T: the products' type, D: dy's.
template <typename T, typename D, slope_kind KIND>
static __global__ void __launch_bounds__(THREADS, BLOCKS_EACH) slope_kernel(const __grid_constant__ slope_args a) {
    cuda_begin();
    const int AT_ONCE = KIND == SLOPE_NONE ? 4 : 2;
    random_key s = KIND == SLOPE_DROPS ? random_key_of(a.drop.at) : random_key{};
    __shared__ float room[DOWN][STRIP];
    int tx = threadIdx.x % ACROSS, ty = threadIdx.x / ACROSS, column = blockIdx.x * STRIP + tx * RUN;
    int64_t row = a.rows * blockIdx.y / gridDim.y + ty, end = a.rows * (blockIdx.y + 1) / gridDim.y;
    float sum[RUN] = {};
    for (; column < a.width && row < end; row += DOWN * AT_ONCE) {
        run_words<D> dy[AT_ONCE] = {};
        run_words<T> seen[AT_ONCE] = {};
#pragma unroll
        for (int r = 0; r < AT_ONCE; r++) {
            int64_t i = (row + r * DOWN) * a.width + column;
            if (row + r * DOWN >= end) continue;
            dy[r] = run_fetch<D>(a.dy, i);
            if (KIND != SLOPE_NONE) seen[r] = run_fetch<T>(a.seen, i);
        }
#pragma unroll
        for (int r = 0; r < AT_ONCE; r++) {
            int64_t i = (row + r * DOWN) * a.width + column;
            float d[RUN];
            if (row + r * DOWN >= end) continue;
            run_widen(d, dy[r]);
            slope_of<T, KIND>(a, s, i, d, seen[r]);
            if (a.dz) run_convert<T>(a.dz, i, d);
#pragma unroll
            for (int e = 0; e < RUN; e++) sum[e] += d[e];
        }
    }
    if (!a.sums) return;
#pragma unroll
    for (int e = 0; e < RUN; e++) room[ty][tx * RUN + e] = sum[e];
    __syncthreads();
    int to = blockIdx.x * STRIP + threadIdx.x;
    if (threadIdx.x >= STRIP || to >= a.width) return;
    float total = 0;
#pragma unroll
    for (int r = 0; r < DOWN; r++) total += room[r][threadIdx.x];
    a.sums[(int64_t)blockIdx.y * a.width + to] = total;
}

static __global__ void bias_kernel(const float *sums, int parts, int width, view db, view also) {
    cuda_begin();
    float sum;
    if (!parts_add(sums, parts, width, &sum)) return;
    if (db.data) view_put(db, parts_column(), sum);
    if (also.data) view_put(also, parts_column(), sum);
}

template <typename T, typename D> static void slope_launch(const call *c, const slope_args &a, dim3 grid) {
    switch (a.act) {
    case ACT_NONE: LAUNCH_EARLY(c, (slope_kernel<T, D, SLOPE_NONE>), grid, THREADS, 0, a); break;
    case ACT_GELU: LAUNCH_EARLY(c, (slope_kernel<T, D, SLOPE_GELU>), grid, THREADS, 0, a); break;
    default: LAUNCH_EARLY(c, (slope_kernel<T, D, SLOPE_OTHER>), grid, THREADS, 0, a); break;
    }
}

template <typename T> static void slope_typed(const call *c, const slope_args &a, const large_join *d, dim3 grid) {
    if (d->drop) {
        LAUNCH_EARLY(c, (slope_kernel<T, T, SLOPE_DROPS>), grid, THREADS, 0, a);
    } else if (c->dout[0].type == c->out[0].type) {
        slope_launch<T, T>(c, a, grid);
    } else {
        slope_launch<T, float>(c, a, grid);
    }
}

static void slope(const call *c, const large_join *d) {
    sizes s = sizes_of(c);
    places p = places_of(c, d);
    slope_args a = {c->dout[0].data, p.z ? p.z : c->out[0].data, makes_dz(c, d) ? p.dz : NULL,
        d->ready.slope ? (int)ACT_NONE : s.act, (int)s.O, s.rows, has_bias(c, d) ? p.sums : NULL, drop_args{}};
    dim3 grid((unsigned)((s.O + STRIP - 1) / STRIP), (unsigned)parts_of(s));
    if (d->drop) {
        a.dy = d->drop->dout[0].data;
        a.drop = drop_args_of(d->drop);
    }
    switch (s.type) {
    case DTYPE_BF16: slope_typed<__nv_bfloat16>(c, a, d, grid); break;
    case DTYPE_F16: slope_typed<__half>(c, a, d, grid); break;
    default: slope_typed<float>(c, a, d, grid); break;
    }
}

static void input_gradient(const call *c, const large_join *d) {
    places p = places_of(c, d);
    blaslt_shape shape = shape_dx(c);
    if (is_dx_ours(c, d)) {
        product_input own = {p.dz, weights_of(&c->in[1], shape.type), d->below ? c->in[0].data : NULL, c->din[0].data,
            d->summed && d->below->din[2].data ? p.lent : NULL, shape.m, shape.n, shape.k, shape.type, d->shared};
        product_launch_input(c, &own);
        return;
    }
    blaslt_data data = {p.dz, weights_of(&c->in[1], shape.type), NULL, c->din[0].data, c->din[0].add};
    blaslt_multiply(c, &shape, &data, p.room);
}

static void bias_gradient(const call *c, const float *sums, int64_t parts) {
    int width = (int)sizes_of(c).O;
    LAUNCH_EARLY(
        c, bias_kernel, parts_blocks(width), parts_threads(), 0, sums, (int)parts, width, view_of(&c->din[2]), view{});
}

void large_columns(
    const call *c, const void *from, dtype type, int64_t rows, int64_t width, float *sums, view to, view also) {
    int64_t parts = parts_for(rows, width);
    dim3 grid((unsigned)((width + STRIP - 1) / STRIP), (unsigned)parts);
    slope_args a = {from, NULL, NULL, ACT_NONE, (int)width, rows, sums, drop_args{}};
    switch (type) {
    case DTYPE_BF16: slope_launch<__nv_bfloat16, __nv_bfloat16>(c, a, grid); break;
    case DTYPE_F16: slope_launch<__half, __half>(c, a, grid); break;
    default: slope_launch<float, float>(c, a, grid); break;
    }
    LAUNCH_EARLY(c, bias_kernel, parts_blocks(width), parts_threads(), 0, sums, (int)parts, (int)width, to, also);
}

static void weights_gradient(const call *c, const large_join *d) {
    places p = places_of(c, d);
    blaslt_shape shape = shape_dw(c);
    if (c->din[1].data) {
        blaslt_data data = {p.dz, narrow(c, p.x), NULL, c->din[1].data, c->din[1].add};
        blaslt_multiply(c, &shape, &data, p.other_room);
    }
    if (has_bias(c, d)) bias_gradient(c, p.sums, parts_of(sizes_of(c)));
}

// Launches the weight gradients of a stack that ends with this call.
static void weights_together(const call *c, const large_join *d) {
    product_launch_weights(c, c->out[0].type, weights_of_all(c, d).w, d->together, places_of(c, d).other_room);
}

static void weights_shares(const call *c, const large_join *d) {
    product_launch_shares(c, weights_of_all(c, d).w, d->together, places_of(c, d).other_room);
}

static void lent_bias(const call *c, const large_join *d) {
    sizes s = sizes_of(d->below);
    bias_gradient(d->below, places_of(c, d).lent, product_parts(s.rows, s.O));
}

// Stages

bool large_has(const call *c, large_stage s, const large_join *d) {
    switch (s) {
    case LARGE_FORWARD: return !c->backward;
    case LARGE_SLOPE: return c->backward && (makes_dz(c, d) || has_bias(c, d));
    case LARGE_INPUT: return c->backward && c->din[0].data;
    case LARGE_TOGETHER: return d->together > 0;
    case LARGE_SHARES: return d->together > 0 && d->shared;
    case LARGE_WEIGHTS: return c->backward && !d->stacked && (c->din[1].data || has_bias(c, d));
    case LARGE_BIAS: return d->summed && d->below->din[2].data && (!d->stacked || d->together);
    default: return false;
    }
}

bool large_is_aside(const call *c, large_stage s, const large_join *d) {
    return s == LARGE_TOGETHER || s == LARGE_SHARES || s == LARGE_WEIGHTS || s == LARGE_BIAS ||
           (s == LARGE_SLOPE && !makes_dz(c, d));
}

void large_launch(const call *c, large_stage s, const large_join *d) {
    switch (s) {
    case LARGE_FORWARD: forward(c, d); break;
    case LARGE_SLOPE: slope(c, d); break;
    case LARGE_INPUT: input_gradient(c, d); break;
    case LARGE_TOGETHER: weights_together(c, d); break;
    case LARGE_SHARES: weights_shares(c, d); break;
    case LARGE_WEIGHTS: weights_gradient(c, d); break;
    default: lent_bias(c, d); break;
    }
}

struct touched {
    range *to;
    int count;
};

static void touch(touched *t, const void *at, size_t bytes, bool written) {
    if (!at || !bytes) return;
    CHECK(t->count < LARGE_RANGES, "a stage of a layer touches too much");
    t->to[t->count++] = range{(const char *)at, (const char *)at + bytes, written};
}

static void touch_step(touched *t, const call *c) {
    touch(t, c->step.progress, sizeof(step_progress), false);
    touch(t, c->step.cursor, sizeof(step_cursor), false);
}

static void touch_operand(touched *t, const operand *o, bool written) {
    touch(t, o->data, (size_t)operand_count(o) * dtype_bytes(o->type), written);
}

static void touch_weights(touched *t, const operand *o) {
    touch_operand(t, o, false);
    touch(t, o->low, (size_t)operand_count(o) * dtype_bytes(o->low_type), false);
}

static void touch_stack(touched *t, const call *c, int i, large_ready ready) {
    product_weights w = weights_of_stack(c, i, ready);
    touch_operand(t, &c[i].in[0], false);
    touch(t, w.dz, (size_t)operand_count(&c[i].out[0]) * dtype_bytes(c[i].out[0].type), false);
    touch_operand(t, &c[i].din[1], true);
    if (!w.db.data) return;
    touch(t, w.sums, (size_t)(w.parts * w.O) * sizeof(float), false);
    touch_operand(t, &c[i].din[2], true);
}

// Stacks

static bool is_of_stack(const call *c) {
    sizes s = sizes_of(c);
    return s.type != DTYPE_F32 && c->in[0].type == s.type && c->din[1].data;
}

static bool shares_parameter(const call *a, const call *b) {
    return life_meet(&a->din[1], &b->din[1]) || life_meet(&a->din[2], &b->din[2]);
}

// True if call i + 1 can be of a stack: what call i writes for it leaves alone what the gradients of those up to i
// read, and none of them adds to the gradient of the same parameter.
static bool keeps_stack(const call *c, int i, large_ready ready) {
    large_join none = {};
    range written[2], read[LARGE_RANGES];
    touched w = {written, 0}, t = {read, 0};
    touch_operand(&w, &c[i].din[0], true);
    touch(&w, places_of(&c[i], &none).lent, lent_bytes(&c[i]), true);
    for (int j = 0; j <= i; j++) {
        if (shares_parameter(&c[j], &c[i + 1])) return false;
        touch_stack(&t, c, j, ready);
    }
    for (int j = 0; j < t.count; j++)
        for (int k = 0; k < w.count; k++)
            if (read[j].begin < written[k].end && written[k].begin < read[j].end) return false;
    return true;
}

// True if the room of the last of n calls leaves alone what the gradients of all read and write: what only a call
// before it reads may have been given up since.
static bool room_is_free(const call *c, int n, const product_weights *w, large_ready ready) {
    large_join none = {};
    range used[LARGE_RANGES];
    touched t = {used, 0};
    const char *room = (const char *)places_of(&c[n - 1], &none).other_room, *end = room + product_room(c->queue, w, n);
    for (int i = 0; i < n; i++) touch_stack(&t, c, i, ready);
    for (int i = 0; i < t.count; i++)
        if (used[i].begin < end && room < used[i].end) return false;
    return true;
}

int large_together(const call *c, int count, large_ready ready, bool *shared) {
    product_weights w[PRODUCT_MOST];
    int n = 0;
    *shared = false;
    if (!c->backward || !product_can(c->queue)) return 0;
    while (n < PRODUCT_MOST && is_of_stack(&c[n])) {
        w[n] = weights_of_stack(c, n, ready);
        if (!product_fits(c->queue, w, n + 1)) break;
        n++;
        if (n == count || !large_takes(&c[n]) || !large_slopes(&c[n - 1], &c[n], &c[n + 1], count - n - 1) ||
            !keeps_stack(c, n - 1, ready))
            break;
    }
    if (n < 2 || !product_shares(c->queue, w, n)) return 0;
    *shared = product_room(c->queue, w, n) > 0;
    return !*shared || room_is_free(c, n, w, ready) ? n : 0;
}

int large_ranges(const call *c, large_stage s, const large_join *d, range *to) {
    places p = places_of(c, d);
    touched t = {to, 0};
    if (d->summed && (s == LARGE_INPUT || s == LARGE_BIAS)) touch(&t, p.lent, lent_bytes(c), s == LARGE_INPUT);
    if (s == LARGE_BIAS) touch_operand(&t, &d->below->din[2], true);
    for (int i = 0; s == LARGE_TOGETHER && i < d->together; i++)
        touch_stack(&t, c + 1 - d->together, i, d->stack_ready);
    for (int i = 0; s == LARGE_SHARES && i < d->together; i++) touch_operand(&t, &c[i + 1 - d->together].din[1], true);
    if (d->shared && (s == LARGE_TOGETHER || s == LARGE_SHARES))
        touch(&t, p.other_room, product_room(c->queue, weights_of_all(c, d).w, d->together), s == LARGE_TOGETHER);
    if (s == LARGE_BIAS || s == LARGE_TOGETHER || s == LARGE_SHARES) return t.count;
    if (d->drop && s == LARGE_FORWARD) touch_operand(&t, &d->drop->out[0], true);
    if (d->drop && s == LARGE_SLOPE) touch_operand(&t, &d->drop->dout[0], false);
    if (d->drop && (s == LARGE_FORWARD || s == LARGE_SLOPE)) touch_step(&t, d->drop);
    if (s == LARGE_FORWARD || s == LARGE_INPUT) {
        touch_weights(&t, &c->in[1]);
        touch_weights(&t, &c->in[2]);
    }
    if (s == LARGE_FORWARD || s == LARGE_WEIGHTS || d->below) touch_operand(&t, &c->in[0], false);
    if (s == LARGE_FORWARD) touch_operand(&t, &c->out[0], true);
    if (s == LARGE_FORWARD) touch(&t, c->scratch, large_scratch(c), true);
    if (s == LARGE_FORWARD || s == LARGE_SLOPE) touch(&t, p.z, z_bytes(c), s == LARGE_FORWARD);
    if (!c->backward) return t.count;
    if (s == LARGE_SLOPE) touch_operand(&t, &c->out[0], false);
    if (s == LARGE_SLOPE || !makes_dz(c, d)) touch_operand(&t, &c->dout[0], false);
    if (makes_dz(c, d)) touch(&t, p.dz, dz_bytes(c), s == LARGE_SLOPE);
    if (s != LARGE_INPUT && has_bias(c, d)) touch(&t, p.sums, sums_bytes(c), s == LARGE_SLOPE);
    if (s == LARGE_INPUT) touch_operand(&t, &c->din[0], true);
    if (s == LARGE_INPUT && !is_dx_ours(c, d)) touch(&t, p.room, BLASLT_ROOM, true);
    if (s != LARGE_WEIGHTS) return t.count;
    touch_operand(&t, &c->din[1], true);
    if (has_bias(c, d)) touch_operand(&t, &c->din[2], true);
    touch(&t, p.x, copy_bytes(&c->in[0], c->out[0].type), true);
    touch(&t, p.other_room, BLASLT_ROOM, true);
    return t.count;
}
