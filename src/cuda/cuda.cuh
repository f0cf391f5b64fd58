// Common parts of the CUDA device: the queue, checked launches, and elements of any floating-point type.
//
// Kernels are written in the style of C; templates appear for element types and tile sizes only. Every launch goes
// through LAUNCH, which notes a failure under the operator's name. Sums are formed in a fixed order: no float atomics.
#ifndef TRADEWIND_CUDA_CUDA_CUH
#define TRADEWIND_CUDA_CUDA_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

extern "C" {
#include "base/err.h"
#include "graph/device.h"
#include "ops/attr.h"
}

// A way in for batches from the host.
struct queue_lane {
    cudaStream_t stream;
    cudaEvent_t arrived; // its last copy is done
    cudaEvent_t left;    // what reads that copy is done
};

struct queue {
    cudaStream_t stream;
    queue_lane lane[LANES];
    int fed;               // the lane of the last feed
    cudaEvent_t paced[2];  // the host runs ahead of the card by two of these at most
    uint64_t ahead, paces; // groups launched since the last pace; paces
    int id;
    size_t shared_most; // bytes of shared memory that a block may have
    int multiprocessors;
    int arch;              // of the loaded kernels: 90 for sm_90, 75 where they come from compute_75 PTX
    bool hopper;           // the loaded kernels have all of sm_90a's instructions
    card_switches wish;    // as it was opened with; the name of a library is its own
    bool lost;             // an error after which nothing works any more in this process: the rest is left to its end
    struct nvml *monitor;  // the card's, or NULL
    bool alone;            // no other queue of the process was open when it recorded last
    bool early;            // launches may begin before the one before them ends
    bool shared_out;       // but for the first and the last of a step, they may not
    struct room *room;     // of the program that is being recorded (cuda/device/room.cuh)
    struct blaslt *blaslt; // for large products, or NULL
    device_identity identity; // without products
    char failed[256];         // the first failure of this queue, or ""
};

#define LAUNCH(c, kernel, grid, block, shared, ...)                                                                    \
    do {                                                                                                               \
        kernel<<<(grid), (block), (shared), (c)->queue->stream>>>(__VA_ARGS__);                                        \
        cuda_launched(c);                                                                                              \
    } while (0)

// The same for a kernel that calls cuda_begin before it touches what another launch writes: it may be put on the card
// while what comes before it in the stream is still running, and waits there. (From sm_90 on, if the queue
// has it so.)
#define LAUNCH_EARLY(c, kernel, grid, block, shared, ...)                                                              \
    do {                                                                                                               \
        cudaLaunchAttribute early_;                                                                                    \
        cudaLaunchConfig_t config_ = cuda_early((c), &early_, (grid), (block), (shared));                              \
        cudaLaunchKernelEx(&config_, kernel, __VA_ARGS__);                                                             \
        cuda_launched(c);                                                                                              \
    } while (0)

// Lets a kernel be launched with so many bytes of dynamic shared memory. That limit belongs to the process and only
// grows, since another queue may be about to launch the kernel with more.
void cuda_allow_shared(const void *kernel, size_t bytes);

cudaLaunchConfig_t cuda_early(const call *c, cudaLaunchAttribute *early, dim3 grid, dim3 block, size_t shared);

void cuda_launched(const call *c);

// Notes that a call cannot be launched on this card, and why.
void cuda_refused(const call *c, const char *why);

// A tensor as a kernel sees it.
struct view {
    void *data;
    int type;
    bool add;
};

static inline view view_of(const operand *o) {
    return view{o->data, (int)o->type, o->add};
}

#define CUDA_FN static __device__ __forceinline__

// First statement of a kernel of LAUNCH_EARLY: lets the next one be put on the card, and waits until all that the
// kernel depends on is done and visible.
CUDA_FN void cuda_begin() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

CUDA_FN float view_load(view v, int64_t i) {
    switch (v.type) {
    case DTYPE_BF16: return __bfloat162float(((const __nv_bfloat16 *)v.data)[i]);
    case DTYPE_F16: return __half2float(((const __half *)v.data)[i]);
    case DTYPE_I8: return (float)((const signed char *)v.data)[i];
    default: return ((const float *)v.data)[i];
    }
}

CUDA_FN void view_store(view v, int64_t i, float value) {
    switch (v.type) {
    case DTYPE_BF16: ((__nv_bfloat16 *)v.data)[i] = __float2bfloat16(value); return;
    case DTYPE_F16: ((__half *)v.data)[i] = __float2half(value); return;
    default: ((float *)v.data)[i] = value; return;
    }
}

// A gradient's destination takes `value`, overwriting or adding as the graph decided.
CUDA_FN void view_put(view v, int64_t i, float value) {
    view_store(v, i, v.add ? view_load(v, i) + value : value);
}

// The same as calls, for places that run seldom: the choice of a type is not compiled into each of them.
static __device__ __noinline__ float view_load_call(view v, int64_t i) {
    return view_load(v, i);
}

static __device__ __noinline__ void view_put_call(view v, int64_t i, float value) {
    view_put(v, i, value);
}

// Elements whose type is known where the kernel is compiled.
CUDA_FN void convert(float *to, float v) {
    *to = v;
}
CUDA_FN void convert(__nv_bfloat16 *to, float v) {
    *to = __float2bfloat16(v);
}
CUDA_FN void convert(__half *to, float v) {
    *to = __float2half(v);
}
CUDA_FN float widen(float v) {
    return v;
}
CUDA_FN float widen(__nv_bfloat16 v) {
    return __bfloat162float(v);
}
CUDA_FN float widen(__half v) {
    return __half2float(v);
}

static inline unsigned blocks_for(int64_t items, int threads) {
    int64_t n = (items + threads - 1) / threads;
    return (unsigned)(n < 1 ? 1 : n > 65535 * 16 ? 65535 * 16 : n);
}

#define FOR_EACH(i, n)                                                                                                 \
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < (n); i += (int64_t)gridDim.x * blockDim.x)

// Over four neighbouring lanes, each of which gets it; a NaN is not the largest of them unless all are.
CUDA_FN float quad_sum(float v) {
    v += __shfl_xor_sync(0xFFFFFFFFu, v, 1);
    return v + __shfl_xor_sync(0xFFFFFFFFu, v, 2);
}

CUDA_FN float quad_max(float v) {
    v = fmaxf(v, __shfl_xor_sync(0xFFFFFFFFu, v, 1));
    return fmaxf(v, __shfl_xor_sync(0xFFFFFFFFu, v, 2));
}

// The sum over a block of up to 1024 threads, in a fixed order; every thread gets it. `room` holds 32 values.
template <typename T> static __device__ T block_sum(T v, T *room) {
    for (int d = 16; d; d >>= 1) v += __shfl_xor_sync(0xFFFFFFFFu, v, d);
    __syncthreads();
    if (threadIdx.x % 32 == 0) room[threadIdx.x / 32] = v;
    __syncthreads();
    v = threadIdx.x % 32 < (blockDim.x + 31) / 32 ? room[threadIdx.x % 32] : T(0);
    for (int d = 16; d; d >>= 1) v += __shfl_xor_sync(0xFFFFFFFFu, v, d);
    return v;
}

#endif
