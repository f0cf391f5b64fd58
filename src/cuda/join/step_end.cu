#include "cuda/join/step_end.cuh"

#include "cuda/device/room.cuh"
#include "cuda/ops/adamw.cuh"

extern "C" {
#include "ops/clip.h"
#include "ops/ops.h"
}

// A thread keeps HELD groups of four elements in registers; slabs that have more are read again for the rest. Large
// slabs, of which that would be little, have more threads instead, for more bytes on their way.
enum { FEW = 256, HELD_BY_FEW = 3, MANY = 1024, HELD_BY_MANY = 0 };

// One launch; or the first and the second of two. Blocks of one launch ask TRIES times for the sums of others.
enum { WHOLE, POSTS, REST, TRIES = 1 << 16 };

CUDA_FN double squares(float4 g) {
    double x = (double)g.x, y = (double)g.y, z = (double)g.z, w = (double)g.w;
    return (x * x + y * y) + (z * z + w * w);
}

// Half of a sum and the number of its meeting, written and read at once.
CUDA_FN void post(unsigned *at, unsigned half, unsigned number) {
    *(volatile uint64_t *)at = (uint64_t)number << 32 | half;
}

// True if both halves of a sum are those of the meeting.
CUDA_FN bool is_here(uint64_t low, uint64_t high, unsigned number) {
    return (unsigned)(low >> 32) == number && (unsigned)(high >> 32) == number;
}

// Another block's sum of squares, by one warp, as that block forms it (block_squares).
template <int THREADS> CUDA_FN double squares_of(const step_end_args &a, unsigned block) {
    int64_t stride = (int64_t)gridDim.x * THREADS;
    double all = 0;
    for (int warp = 0; warp < THREADS / 32; warp++) {
        double sum = 0;
        for (int64_t i = (int64_t)block * THREADS + warp * 32 + threadIdx.x % 32; i < a.quads; i += stride)
            sum += squares(a.g[i]);
        for (int d = 16; d; d >>= 1) sum += __shfl_xor_sync(0xFFFFFFFFu, sum, d);
        all += sum;
    }
    return all;
}

// A block's halves; those of no block are 0.
CUDA_FN void read_halves(const unsigned *meeting, unsigned block, unsigned number, uint64_t *low, uint64_t *high) {
    const volatile uint64_t *at = (const volatile uint64_t *)(meeting + 4 + 4 * block);
    *low = *high = (uint64_t)number << 32;
    if (block < gridDim.x) *low = at[0], *high = at[1];
}

CUDA_FN double sum_of(uint64_t low, uint64_t high) {
    return __hiloint2double((int)(unsigned)high, (int)(unsigned)low);
}

// A lane's share of the sums, as receive gives it, where some of them are missing: the warp forms these. Seldom called.
template <int THREADS> static __device__ __noinline__ double receive_late(const step_end_args &a, unsigned number) {
    double sum = 0;
    for (unsigned first = 0; first < gridDim.x; first += 32) {
        uint64_t low, high;
        read_halves(a.meeting, first + threadIdx.x, number, &low, &high);
        unsigned missing = __ballot_sync(0xFFFFFFFFu, !is_here(low, high, number));
        double mine = sum_of(low, high);
        for (; missing; missing &= missing - 1) {
            unsigned lane = (unsigned)__ffs((int)missing) - 1;
            double formed = squares_of<THREADS>(a, first + lane);
            if (threadIdx.x == lane) mine = formed;
        }
        sum += mine;
    }
    return sum;
}

// A lane's share of the blocks' sums: every 32nd. All of them are asked for at once, until all are here. The first
// block waits for as long as it takes, the others do not.
template <int THREADS, int PART> CUDA_FN double receive(const step_end_args &a, unsigned number) {
    const int EACH = STEP_END_BLOCKS / 32;
    uint64_t low[EACH], high[EACH];
    bool here = false;
    for (unsigned tries = 0; !here && (blockIdx.x == 0 || tries < TRIES); tries++) {
        here = true;
#pragma unroll
        for (int i = 0; i < EACH; i++) read_halves(a.meeting, threadIdx.x + 32 * i, number, &low[i], &high[i]);
#pragma unroll
        for (int i = 0; i < EACH; i++) here = here && is_here(low[i], high[i], number);
        if (PART == REST) break; // they are: a launch has posted them
    }
    if (PART == WHOLE && !__all_sync(0xFFFFFFFFu, here)) return receive_late<THREADS>(a, number);
    double sum = 0;
#pragma unroll
    for (int i = 0; i < EACH; i++) sum += sum_of(low[i], high[i]);
    return sum;
}

// Tells the other blocks this one's sum, by one thread.
CUDA_FN void announce(const step_end_args &a, double sum, unsigned number) {
    unsigned *mine = a.meeting + 4 + 4 * blockIdx.x;
    __threadfence(); // the first block may now overwrite what this one has read
    post(mine, (unsigned)__double2loint(sum), number);
    post(mine + 2, (unsigned)__double2hiint(sum), number);
}

// The sum over all blocks, the same in each, by one warp.
template <int THREADS, int PART> CUDA_FN double meet(const step_end_args &a, unsigned number) {
    double sum = receive<THREADS, PART>(a, number);
    for (int d = 16; d; d >>= 1) sum += __shfl_xor_sync(0xFFFFFFFFu, sum, d);
    if (blockIdx.x == 0) __threadfence(); // before it overwrites what the others have read
    return sum;
}

// True for one block, by one thread of each: it writes the new state, when all others have read the old one. In one
// launch that is the first block, which has met the others; in the second of two it is the one that reads last.
template <int PART> CUDA_FN bool writes_state(const step_end_args &a) {
    if (PART == WHOLE) return blockIdx.x == 0;
    __threadfence();
    bool last = atomicAdd(a.meeting + 1, 1u) == gridDim.x - 1;
    __threadfence();
    if (last) a.meeting[1] = 0;
    return last;
}

// The block's sum, in its first thread: by warps, then one after another.
template <int THREADS> CUDA_FN double block_squares(double sum, double *room) {
    for (int d = 16; d; d >>= 1) sum += __shfl_xor_sync(0xFFFFFFFFu, sum, d);
    if (threadIdx.x % 32 == 0) room[threadIdx.x / 32] = sum;
    __syncthreads();
    sum = 0;
    for (int i = 0; threadIdx.x == 0 && i < THREADS / 32; i++) sum += room[i];
    return sum;
}

// Values that the step's end depends on besides the gradient, read before the blocks meet, by one thread of each.
struct before {
    double state[CLIP_COUNT], norm;
    uint64_t update;
    float scale, lr;
};

CUDA_FN before read_before(const step_end_args &a) {
    before b;
#pragma unroll
    for (int i = 0; i < CLIP_COUNT; i++) b.state[i] = a.state[i];
    b.norm = a.totals[TALLY_STEP_NORM];
    b.scale = *a.scale;
    b.update = a.step.progress->update;
    b.lr = a.step.progress->lr;
    return b;
}

// The rates of the update; one block puts the new state in place.
CUDA_FN adamw_rates finish(const step_end_args &a, before b, double sum, float lr, unsigned number, bool writes) {
    float scale = (float)clip_settle(a.clip, sum, b.norm, (double)b.scale, b.state);
    if (writes) {
#pragma unroll
        for (int i = 0; i < CLIP_COUNT; i++) a.state[i] = b.state[i];
        *a.scale = scale;
        *(volatile unsigned *)a.meeting = number;
    }
    return adamw_rates_of(lr, b.state[CLIP_FACTOR], b.state[CLIP_TAKEN], a.adamw, adamw_decay{a.log1, a.log2});
}

CUDA_FN void advance(const step_end_args &a) {
    if (!a.advances) return;
    step_cursor *c = a.step.cursor;
    a.step.progress->update++;
    c->position += c->row;
    c->row = 0;
}

// Moments and weights of a large slab pass by the cache, where gradients, which are read twice, are of more use.
template <bool LARGE> CUDA_FN void store(const step_end_args &a, int64_t i, const adamw_quad &q) {
    if constexpr (LARGE) {
        __stcs(&a.w[i], q.w);
        __stcs(&a.m[i], q.m);
        __stcs(&a.v[i], q.v);
    } else {
        a.w[i] = q.w;
        a.m[i] = q.m;
        a.v[i] = q.v;
    }
    if (a.low) a.low[i] = adamw_low(q.w, a.low_f16);
}

template <int THREADS, int HELD, int PART>
static __global__ void __launch_bounds__(THREADS) step_end_kernel(const __grid_constant__ step_end_args a) {
    cuda_begin();
    __shared__ double room[THREADS / 32];
    __shared__ adamw_rates rates;
    int64_t first = (int64_t)blockIdx.x * THREADS + threadIdx.x, stride = (int64_t)gridDim.x * THREADS;
    float4 g[HELD + 1];
    adamw_quad q[HELD + 1];
    bool decays[HELD + 1];
    double sum = 0;
    before b = {};
    unsigned number = 0;
    float lr = 0;
    if (threadIdx.x < 32) number = *(volatile unsigned *)a.meeting + 1;
    if (PART != POSTS && threadIdx.x == 0) b = read_before(a);
#pragma unroll
    for (int k = 0; k < HELD; k++) {
        int64_t i = first + k * stride;
        g[k] = i < a.quads ? a.g[i] : make_float4(0, 0, 0, 0);
    }
#pragma unroll
    for (int k = 0; PART != POSTS && k < HELD; k++) {
        int64_t i = first + k * stride;
        if (i < a.quads) q[k] = adamw_quad{a.w[i], a.m[i], a.v[i]};
        decays[k] = i >= a.quads || quad_decays(a.decays, i);
    }
    if constexpr (PART != REST) {
#pragma unroll
        for (int k = 0; k < HELD; k++) sum += squares(g[k]);
#pragma unroll 4
        for (int64_t i = first + HELD * stride; i < a.quads; i += stride) sum += squares(a.g[i]);
        sum = block_squares<THREADS>(sum, room);
        if (threadIdx.x == 0) announce(a, sum, number);
    }
    if constexpr (PART == POSTS) return;
    if (threadIdx.x == 0) lr = scheduled_rate(a.adamw.schedule, b.lr, b.update); // while the sums are on their way
    __syncwarp();
    if (threadIdx.x < 32) sum = meet<THREADS, PART>(a, number);
    if (threadIdx.x == 0) {
        bool writes = writes_state<PART>(a);
        rates = finish(a, b, sum, lr, number, writes);
        if (writes) advance(a);
    }
    __syncthreads();
    adamw_rates r = rates;
#pragma unroll
    for (int k = 0; k < HELD; k++) {
        int64_t i = first + k * stride;
        if (i >= a.quads) return;
        adamw_step(q[k], g[k], decays[k], r, a.adamw);
        store<HELD == 0>(a, i, q[k]);
    }
    // Backwards: the gradients that were read last are still in the cache.
    int64_t rest = first + HELD * stride, last = rest + (a.quads - 1 - rest) / stride * stride;
#pragma unroll 2
    for (int64_t i = last; i >= rest && rest < a.quads; i -= stride) {
        adamw_quad e = {__ldcs(&a.w[i]), __ldcs(&a.m[i]), __ldcs(&a.v[i])};
        adamw_step(e, a.g[i], quad_decays(a.decays, i), r, a.adamw);
        store<HELD == 0>(a, i, e);
    }
}

static bool is_large(int64_t quads, int blocks) {
    return quads >= (int64_t)blocks * MANY * 4;
}

// Every block a multiprocessor of its own at most, and no more than the slab keeps busy.
static int blocks_of(const queue *q, int64_t quads) {
    int most = q->multiprocessors < STEP_END_BLOCKS ? q->multiprocessors : (int)STEP_END_BLOCKS;
    int64_t wanted = (quads + FEW - 1) / FEW;
    return (int)(wanted < most ? wanted : most);
}

int step_end_match(const call *calls, int count, step_end_args *a) {
    const call *clip = &calls[0], *adamw = &calls[1];
    if (count < 2 || clip->op != OP_clip || adamw->op != OP_adamw) return 0;
    if (adamw->in[ADAMW_CLIP].data != clip->out[0].data || adamw->in[ADAMW_GRADIENTS].data != clip->in[1].data)
        return 0;
    int64_t n = operand_count(&clip->in[1]);
    if (n % 4) return 0;
    const adamw_settings *s = (const adamw_settings *)adamw->attr;
    adamw_decay d = adamw_decay_of(s);
    bool advances = count > 2 && calls[2].op == OP_advance && !((const advance_attr *)calls[2].attr)->after_micro;
    *a = step_end_args{};
    a->g = (const float4 *)clip->in[1].data;
    a->w = (float4 *)adamw->in[ADAMW_WEIGHTS].data;
    a->low = (uint2 *)adamw->in[ADAMW_WEIGHTS].low;
    a->low_f16 = adamw->in[ADAMW_WEIGHTS].low_type == DTYPE_F16;
    a->m = (float4 *)adamw->in[ADAMW_MOMENT1].data;
    a->v = (float4 *)adamw->in[ADAMW_MOMENT2].data;
    a->decays = (const int8_t *)adamw->in[ADAMW_DECAYS].data;
    a->quads = n / 4;
    a->totals = (const double *)clip->in[0].data;
    a->state = (double *)clip->out[0].data;
    a->scale = (float *)clip->out[1].data;
    a->clip = *(const clip_attr *)clip->attr;
    a->adamw = *s;
    a->log1 = d.log1, a->log2 = d.log2;
    a->step = adamw->step;
    a->advances = advances;
    a->meeting = adamw->queue->room->meeting;
    a->apart = !adamw->queue->alone;
    a->blocks = blocks_of(adamw->queue, a->quads);
    return advances ? 3 : 2;
}

template <int THREADS, int HELD> static void launch(const call *c, const step_end_args *a) {
    if (a->apart) {
        LAUNCH_EARLY(c, (step_end_kernel<THREADS, HELD, POSTS>), (unsigned)a->blocks, THREADS, 0, *a);
        LAUNCH_EARLY(c, (step_end_kernel<THREADS, HELD, REST>), (unsigned)a->blocks, THREADS, 0, *a);
    } else {
        LAUNCH_EARLY(c, (step_end_kernel<THREADS, HELD, WHOLE>), (unsigned)a->blocks, THREADS, 0, *a);
    }
}

void step_end_launch(const call *c, const step_end_args *a) {
    is_large(a->quads, a->blocks) ? launch<MANY, HELD_BY_MANY>(c, a) : launch<FEW, HELD_BY_FEW>(c, a);
}
