// clip on the card: see ops/clip.c. One launch: blocks, as many as the slab's size says, sum squares; the one that
// finishes last adds their sums in order and leaves the ticket at 0 for the next step.
#include "cuda/cuda.cuh"
#include "ops/clip.h"

enum { BLOCKS_MOST = 1024, THREADS = 256 };

// True if this block is the last of the launch to come here; what the others wrote before is then visible to it.
static __device__ bool is_last(unsigned *ticket) {
    __shared__ bool last;
    if (threadIdx.x == 0) {
        __threadfence();
        last = atomicAdd(ticket, 1u) == gridDim.x - 1;
        __threadfence();
    }
    __syncthreads();
    return last;
}

static __global__ void forward_kernel(const float4 *g, int64_t quads, const double *totals, clip_attr a, double *part,
    double *state, unsigned *ticket, float *scale) {
    __shared__ double room[32];
    double sum = 0;
    FOR_EACH(i, quads) {
        float4 v = g[i];
        double x = (double)v.x, y = (double)v.y, z = (double)v.z, w = (double)v.w;
        sum += (x * x + y * y) + (z * z + w * w);
    }
    sum = block_sum(sum, room);
    if (threadIdx.x == 0) part[blockIdx.x] = sum;
    if (!is_last(ticket)) return;
    sum = 0;
    for (unsigned i = threadIdx.x; i < gridDim.x; i += blockDim.x) sum += __ldcg(&part[i]);
    sum = block_sum(sum, room);
    if (threadIdx.x) return;
    *scale = (float)clip_settle(a, sum, totals[TALLY_STEP_NORM], (double)*scale, state);
    *ticket = 0;
}

static unsigned blocks_of(const call *c) {
    unsigned n = blocks_for(operand_count(&c->in[1]) / 4, THREADS);
    return n < BLOCKS_MOST ? n : (unsigned)BLOCKS_MOST;
}

static void forward(const call *c) {
    int64_t n = operand_count(&c->in[1]);
    double *state = (double *)c->out[0].data;
    CHECK(n % 4 == 0, "a slab of %lld elements", (long long)n);
    LAUNCH(c, forward_kernel, blocks_of(c), THREADS, 0, (const float4 *)c->in[1].data, n / 4,
        (const double *)c->in[0].data, *(const clip_attr *)c->attr, (double *)c->scratch, state,
        (unsigned *)&state[CLIP_TICKET], (float *)c->out[1].data);
}

static size_t scratch(const call *c) {
    return blocks_of(c) * sizeof(double);
}

extern "C" const kernel cuda_clip = {forward, NULL, scratch, NULL};
