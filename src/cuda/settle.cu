#include "cuda/settle.cuh"

#include "cuda/adamw.cuh"

extern "C" {
#include "ops/clip.h"
#include "ops/ops.h"
}

// A thread keeps HELD groups of four elements in registers; slabs that have more are read again for the rest.
enum { THREADS = 256, HELD = 3 };

CUDA_FN double squares(float4 g) {
    double x = (double)g.x, y = (double)g.y, z = (double)g.z, w = (double)g.w;
    return (x * x + y * y) + (z * z + w * w);
}

// The last block to arrive settles the step; the others wait until it has.
CUDA_FN void meet(const settle_args &a, double sum, double *room) {
    __shared__ unsigned last;
    unsigned met = 0;
    if (threadIdx.x == 0) {
        met = *(volatile unsigned *)&a.meeting[1];
        a.part[blockIdx.x] = sum;
        __threadfence();
        last = atomicAdd(&a.meeting[0], 1u) == gridDim.x - 1;
        __threadfence();
    }
    __syncthreads();
    if (last) {
        sum = 0;
        for (unsigned i = threadIdx.x; i < gridDim.x; i += THREADS) sum += __ldcg(&a.part[i]);
        sum = block_sum(sum, room);
        if (threadIdx.x) return;
        *a.scale = (float)clip_settle(a.clip, sum, a.totals[TALLY_STEP_NORM], (double)*a.scale, a.state);
        if (a.advanced) {
            a.advanced->update++;
            a.advanced->position += a.advanced->row;
            a.advanced->row = 0;
        }
        a.meeting[0] = 0;
        __threadfence();
        *(volatile unsigned *)&a.meeting[1] = met + 1;
    } else if (threadIdx.x == 0) {
        while (*(volatile unsigned *)&a.meeting[1] == met) {}
        __threadfence();
    }
}

static __global__ void __launch_bounds__(THREADS) settle_kernel(const __grid_constant__ settle_args a) {
    __shared__ double room[32];
    int64_t first = (int64_t)blockIdx.x * THREADS + threadIdx.x, stride = (int64_t)gridDim.x * THREADS;
    float4 g[HELD];
    adamw_quad q[HELD];
    double sum = 0;
    float lr = a.step->lr;
#pragma unroll
    for (int k = 0; k < HELD; k++) {
        int64_t i = first + k * stride;
        g[k] = i < a.quads ? a.g[i] : make_float4(0, 0, 0, 0);
    }
#pragma unroll
    for (int k = 0; k < HELD; k++) {
        int64_t i = first + k * stride;
        if (i < a.quads) q[k] = adamw_quad{a.w[i], a.m[i], a.v[i]};
    }
#pragma unroll
    for (int k = 0; k < HELD; k++) sum += squares(g[k]);
#pragma unroll 4
    for (int64_t i = first + HELD * stride; i < a.quads; i += stride) sum += squares(a.g[i]);
    meet(a, block_sum(sum, room), room);
    __syncthreads();
    adamw_rates r = adamw_rates_of(lr, __ldcg(&a.state[CLIP_FACTOR]), __ldcg(&a.state[CLIP_TAKEN]), a.adamw,
        adamw_decay{a.log1, a.log2});
#pragma unroll
    for (int k = 0; k < HELD; k++) {
        int64_t i = first + k * stride;
        if (i >= a.quads) return;
        adamw_step(q[k], g[k], r, a.adamw);
        a.w[i] = q[k].w, a.m[i] = q[k].m, a.v[i] = q[k].v;
    }
#pragma unroll 2
    for (int64_t i = first + HELD * stride; i < a.quads; i += stride) {
        adamw_quad e = {a.w[i], a.m[i], a.v[i]};
        adamw_step(e, a.g[i], r, a.adamw);
        a.w[i] = e.w, a.m[i] = e.m, a.v[i] = e.v;
    }
}

// Every block a multiprocessor of its own at most, and no more than the slab keeps busy: clip's scratch holds a sum for
// each of those.
static int blocks_of(int64_t quads) {
    int card = 0, most = 1;
    cudaGetDevice(&card);
    cudaDeviceGetAttribute(&most, cudaDevAttrMultiProcessorCount, card);
    int64_t wanted = (quads + THREADS - 1) / THREADS;
    return (int)(wanted < most ? wanted : most);
}

int settle_match(const call *calls, int count, settle_args *a, unsigned *meeting) {
    const call *clip = &calls[0], *adamw = &calls[1];
    if (count < 2 || clip->op != OP_clip || adamw->op != OP_adamw) return 0;
    if (adamw->in[0].data != clip->out[0].data || adamw->in[2].data != clip->in[1].data) return 0;
    int64_t n = operand_count(&clip->in[1]);
    if (n % 4) return 0;
    const adamw_settings *s = (const adamw_settings *)adamw->attr;
    adamw_decay d = adamw_decay_of(s);
    bool advances = count > 2 && calls[2].op == OP_advance && !((const advance_attr *)calls[2].attr)->after_micro;
    *a = settle_args{};
    a->g = (const float4 *)clip->in[1].data;
    a->w = (float4 *)adamw->in[1].data;
    a->m = (float4 *)adamw->in[3].data;
    a->v = (float4 *)adamw->in[4].data;
    a->quads = n / 4;
    a->totals = (const double *)clip->in[0].data;
    a->state = (double *)clip->out[0].data;
    a->part = (double *)clip->scratch;
    a->scale = (float *)clip->out[1].data;
    a->clip = *(const clip_attr *)clip->attr;
    a->adamw = *s;
    a->log1 = d.log1, a->log2 = d.log2;
    a->step = adamw->step;
    a->advanced = advances ? calls[2].step_written : NULL;
    a->meeting = meeting;
    a->blocks = blocks_of(a->quads);
    return advances ? 3 : 2;
}

void settle_launch(const call *c, const settle_args *a) {
    LAUNCH(c, settle_kernel, (unsigned)a->blocks, THREADS, 0, *a);
}
