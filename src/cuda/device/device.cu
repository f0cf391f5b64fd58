// The CUDA device: queues, memory, and recordings as captured graphs.
//
// Playing launches the graph and returns; the host is held back when it runs more than two paces ahead, so that a
// signal is answered within two recordings, or some hundred launches of small ones. In debug mode
// a recording is a list of groups that are launched one by one with a synchronisation after
// each, and the first failure names its operator.
#include "cuda/cuda.cuh"
#include "cuda/device/nvml.cuh"
#include "cuda/device/room.cuh"
#include "cuda/device/schedule.cuh"
#include "cuda/device/table.cuh"
#include "cuda/join/fuse.cuh"
#include "cuda/product/blaslt.cuh"

extern "C" {
#include "graph/arch.h"
#include "graph/plugin.h"
}

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PACE = 256 }; // groups of calls: a few dozen steps of a small model, or one recording of more

struct recording {
    cudaGraphExec_t graph;
    call *calls; // its own list: fusion may change them
    group *groups;
    int count;
};

static bool ok(cudaError_t status, const char *what, err *e) {
    if (status == cudaSuccess) return true;
    return err_run(e, "cuda: %s: %s", what, cudaGetErrorString(status));
}

// Errors that stay: the context is gone, and with it everything on the card.
static bool stays(cudaError_t status) {
    switch (status) {
    case cudaErrorIllegalAddress:
    case cudaErrorIllegalInstruction:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorMisalignedAddress:
    case cudaErrorHardwareStackError:
    case cudaErrorLaunchFailure:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorDevicesUnavailable:
    case cudaErrorNoDevice:
    case cudaErrorExternalDevice:
    case cudaErrorContextIsDestroyed:
    case cudaErrorUnknown: return true;
    default: return false;
    }
}

// As ok, for what the queue has under way.
static bool works(queue *q, cudaError_t status, const char *what, err *e) {
    if (status == cudaSuccess) return true;
    if (!stays(status)) return ok(status, what, e);
    q->lost = true;
    return err_run(e, "the card was lost while %s: %s (%s); `nvidia-smi` shows whether it is well, then start again",
        what, cudaGetErrorString(status), cudaGetErrorName(status));
}

cudaLaunchConfig_t cuda_early(const call *c, cudaLaunchAttribute *early, dim3 grid, dim3 block, size_t shared) {
    cudaLaunchConfig_t config = {};
    config.gridDim = grid, config.blockDim = block, config.dynamicSmemBytes = shared, config.stream = c->queue->stream;
    early->id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early->val.programmaticStreamSerializationAllowed = 1;
    config.attrs = early;
    bool ends = c->op == OP_draw || c->op == OP_clip;
    config.numAttrs = c->queue->early && (ends || !c->queue->shared_out) ? 1 : 0;
    return config;
}

void cuda_allow_shared(const void *kernel, size_t bytes) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    cudaFuncAttributes now;
    pthread_mutex_lock(&lock);
    if (cudaFuncGetAttributes(&now, kernel) == cudaSuccess && (size_t)now.maxDynamicSharedSizeBytes < bytes)
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
    pthread_mutex_unlock(&lock);
}

void cuda_launched(const call *c) {
    queue *q = c->queue;
    cudaError_t status = cudaGetLastError();
    if (status == cudaSuccess && q->wish.debug) status = cudaStreamSynchronize(q->stream);
    if (status == cudaSuccess || q->failed[0]) return;
    q->lost |= stays(status);
    snprintf(q->failed, sizeof q->failed, "cuda: %s %s (node %u): %s", c->name, c->backward ? "backward" : "forward",
        (unsigned)c->node, cudaGetErrorString(status));
}

void cuda_refused(const call *c, const char *why) {
    queue *q = c->queue;
    if (!q->failed[0]) snprintf(q->failed, sizeof q->failed, "cuda: %s: %s", c->name, why);
}

// CUDA's current card is the thread's own: a call from any thread first makes it the queue's. Every thread begins with
// card 0.
static __thread int current_card;

static void enter(const queue *q) {
    if (current_card != q->id && !q->lost && cudaSetDevice(q->id) == cudaSuccess) current_card = q->id;
}

// Queues

static int open_queues; // of this process

static __global__ void probe_kernel(void) {}

// True if the loaded kernels have all of Hopper's instructions: those built for sm_90a do, those for sm_90 do not.
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
static __device__ int whole_hopper = 1;
#else
static __device__ int whole_hopper = 0;
#endif

// The card's own architecture, or that of the PTX or machine code which stands in for it: kernels have the instructions
// of the lower of the two. What the driver compiled is machine code of the card's own.
static bool find_arch(queue *q, int card, err *e) {
    cudaFuncAttributes a;
    cudaError_t status = cudaFuncGetAttributes(&a, probe_kernel);
    if (status == cudaErrorNoKernelImageForDevice)
        return err_run(e,
            "the plug-in was built for %s and has no kernels for sm_%d; build it with `make` beside the card",
            BUILT_FOR, card);
    if (!ok(status, "loading kernels", e)) return false;
    q->arch = a.ptxVersion > 0 && a.ptxVersion < card ? a.ptxVersion : card;
    if (a.ptxVersion > 0 && a.ptxVersion < a.binaryVersion) q->identity.ptx = a.ptxVersion;
    int whole = 0;
    if (!ok(cudaMemcpyFromSymbol(&whole, whole_hopper, sizeof whole), "loading kernels", e)) return false;
    q->hopper = whole != 0;
    return true;
}

static bool identify_card(queue *q, err *e) {
    cudaDeviceProp p;
    device_identity *i = &q->identity;
    if (!ok(cudaGetDeviceProperties(&p, q->id), "reading the card", e)) return false;
    q->shared_most = p.sharedMemPerBlockOptin;
    q->multiprocessors = p.multiProcessorCount;
    int card = p.major * 10 + p.minor;
    if (card < ARCH_LEAST)
        return err_run(e, "%s is too old: sm_%d (Turing) or newer is needed, it has sm_%d", p.name, ARCH_LEAST, card);
    if (!find_arch(q, card, e)) return false;
    if (!ok(cudaMemGetInfo(&i->free, &i->total), "reading the card's memory", e)) return false;
    snprintf(i->name, sizeof i->name, "cuda");
    snprintf(i->card, sizeof i->card, "%.127s", p.name);
    i->arch = card;
    nvml_driver(q->monitor, i->driver, sizeof i->driver);
    cudaDriverGetVersion(&i->cuda);
    return true;
}

static void lane_close(queue_lane *l) {
    if (l->stream) cudaStreamDestroy(l->stream);
    if (l->arrived) cudaEventDestroy(l->arrived);
    if (l->left) cudaEventDestroy(l->left);
}

static void queue_close(queue *q) {
    if (!q) return;
    enter(q);
    __atomic_fetch_sub(&open_queues, 1, __ATOMIC_SEQ_CST);
    for (int i = 0; !q->lost && i < LANES; i++) lane_close(&q->lane[i]);
    for (int i = 0; !q->lost && i < 2; i++)
        if (q->paced[i]) cudaEventDestroy(q->paced[i]);
    if (!q->lost && q->stream) cudaStreamDestroy(q->stream);
    blaslt_close(q);
    nvml_close(q->monitor);
    free((char *)q->wish.blaslt);
    free(q);
}

// Kernels from PTX are compiled by the driver, which keeps what it made on the disk for the next start. All programs of
// a user share that room: 256 MB with older drivers, where others drive our kernels out, 1 GB with newer ones. It is
// read before the driver is used first.
static void ask_for_cache(void) {
    setenv("CUDA_CACHE_MAXSIZE", "1073741824", 0);
}

// A driver that is new enough, and a card.
static bool find_card(err *e) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const int major = CUDART_VERSION / 1000, minor = CUDART_VERSION % 1000 / 10;
    int driver = 0, cards = 0;
    pthread_once(&once, ask_for_cache);
    if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0)
        return err_run(e, "no NVIDIA driver was found; this build needs one that serves CUDA %d.%d", major, minor);
    if (driver < CUDART_VERSION)
        return err_run(e,
            "the NVIDIA driver is too old: it serves CUDA %d.%d, this build needs %d.%d; update the driver",
            driver / 1000, driver % 1000 / 10, major, minor);
    cudaError_t status = cudaGetDeviceCount(&cards);
    if (status == cudaErrorNoDevice || (status == cudaSuccess && cards == 0))
        return err_run(e, "no NVIDIA card was found");
    return ok(status, "looking for a card", e);
}

// The cards in CUDA's order, which CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER may change.
static int cards(device_identity *list, int most) {
    int count = 0;
    err unused;
    if (!find_card(&unused) || cudaGetDeviceCount(&count) != cudaSuccess) return 0;
    for (int i = 0; i < count && i < most; i++) {
        cudaDeviceProp p;
        list[i] = device_identity{};
        snprintf(list[i].name, sizeof list[i].name, "cuda");
        if (cudaGetDeviceProperties(&p, i) != cudaSuccess) continue;
        snprintf(list[i].card, sizeof list[i].card, "%.127s", p.name);
        list[i].arch = p.major * 10 + p.minor;
        list[i].total = p.totalGlobalMem;
    }
    return count;
}

// Bytes of the card in use before this process opened its first queue.
static size_t used_before;
static bool opened;
static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;

// The monitor is asked before there is a context, so that it can be told what the context takes.
static void watch_card(queue *q) {
    char bus[32];
    size_t total;
    if (cudaDeviceGetPCIBusId(bus, sizeof bus, q->id) == cudaSuccess) q->monitor = nvml_open(bus);
    pthread_mutex_lock(&opening);
    if (!opened) nvml_card(q->monitor, &used_before, &total);
    opened = true;
    pthread_mutex_unlock(&opening);
}

static cudaError_t lane_open(queue_lane *l) {
    cudaError_t status = cudaStreamCreateWithFlags(&l->stream, cudaStreamNonBlocking);
    if (status == cudaSuccess) status = cudaEventCreateWithFlags(&l->arrived, cudaEventDisableTiming);
    if (status == cudaSuccess) status = cudaEventCreateWithFlags(&l->left, cudaEventDisableTiming);
    return status;
}

// The first calls that need memory of the card, beginning with its context.
static bool take_card(queue *q, err *e) {
    int low = 0, high = 0;
    cudaError_t status = cudaSetDevice(q->id);
    if (status == cudaSuccess) current_card = q->id;
    if (status == cudaSuccess) status = cudaDeviceGetStreamPriorityRange(&low, &high);
    if (status == cudaSuccess) status = cudaStreamCreateWithPriority(&q->stream, cudaStreamNonBlocking, high);
    for (int i = 0; status == cudaSuccess && i < 2; i++)
        status = cudaEventCreateWithFlags(&q->paced[i], cudaEventDisableTiming);
    for (int i = 0; status == cudaSuccess && i < LANES; i++) status = lane_open(&q->lane[i]);
    size_t used, total;
    if (status == cudaErrorMemoryAllocation && nvml_card(q->monitor, &used, &total))
        return err_run(e, "the card is full: %.1f of %.1f MB are in use; `nvidia-smi` shows by whom",
            (double)used / 1e6, (double)total / 1e6);
    if (status == cudaErrorMemoryAllocation)
        return err_run(e, "the card is full: it has no room for a context; `nvidia-smi` shows who uses it");
    if (status == cudaErrorDevicesUnavailable)
        return err_run(e, "the card is taken: another program has it for itself; `nvidia-smi` shows which");
    return ok(status, "opening the card", e);
}

// A recording runs on up to eight streams. The driver has eight hardware queues for a process unless it is told
// otherwise before there is a context; with several recordings at a time, launches that are independent would wait for
// each other in them. More of them make the context slower: on an H200 the first queue takes 0.65 s longer with 32 than
// with 8.
static void ask_for_hardware_queues(void) {
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
}

static queue *queue_open(const queue_options *o, err *e) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (o->several) pthread_once(&once, ask_for_hardware_queues);
    if (!find_card(e)) return NULL;
    queue *q = (queue *)calloc(1, sizeof *q);
    if (!q) {
        err_run(e, "out of memory for a queue");
        return NULL;
    }
    __atomic_fetch_add(&open_queues, 1, __ATOMIC_SEQ_CST);
    q->id = o->number;
    q->wish = o->card;
    if (o->card.blaslt) q->wish.blaslt = strdup(o->card.blaslt);
    NEED(!o->card.blaslt || q->wish.blaslt, "out of memory for the name of a library");
    watch_card(q);
    if (take_card(q, e) && identify_card(q, e)) return q;
    queue_close(q);
    return NULL;
}

static const kernel *const *kernels(const queue *q) {
    (void)q;
    return cuda_table;
}

static bool computes(const queue *q, precision p) {
    return p == PRECISION_FP32 || p == PRECISION_FP16 ||
           ((p == PRECISION_TF32 || p == PRECISION_BF16) && q->arch >= 80);
}

static void identify(const queue *q, device_identity *i) {
    *i = q->identity;
    blaslt_describe(q, i->products, sizeof i->products);
}

// Memory

static size_t available(const queue *q) {
    size_t free_bytes = 0, total = 0;
    enter(q);
    cudaMemGetInfo(&free_bytes, &total);
    return free_bytes;
}

// Bytes given out to this process, by all of its queues. The thread of the readings looks at them beside the one that
// allocates.
static size_t given_out;

static size_t slab_of_process(void) {
    return __atomic_load_n(&given_out, __ATOMIC_RELAXED);
}

// Bytes of the card that this process holds, where `used` are in use by all. *source says who counted them; *others is
// the number of other processes, -1 where that is not shown.
static size_t count_mine(const queue *q, size_t used, memory_source *source, int *others) {
    size_t mine = 0;
    *source = MEMORY_OF_PROCESS;
    // A number that is too small is of a stranger with the same number in another namespace.
    if (nvml_process(q->monitor, &mine, others) && mine >= slab_of_process()) return mine;
    *source = MEMORY_OF_CARD;
    *others = -1;
    return used > used_before ? used - used_before : 0;
}

static bool memory(const queue *q, device_memory *m) {
    int others;
    *m = device_memory{MEMORY_OF_PROCESS, slab_of_process(), 0, 0, 0};
    if (!nvml_card(q->monitor, &m->used, &m->total)) return false;
    size_t mine = count_mine(q, m->used, &m->source, &others);
    m->base = mine > m->slab ? mine - m->slab : 0;
    return true;
}

// Asks the card's monitor alone: a call of CUDA from another thread could wait for a step.
static bool readings(const queue *q, device_readings *r) {
    size_t used, total;
    memory_source source;
    int others;
    *r = device_shows_nothing();
    if (!nvml_card(q->monitor, &used, &total)) return false;
    size_t mine = count_mine(q, used, &source, &others);
    nvml_gauges g = nvml_read(q->monitor);
    r->used = (double)used;
    r->total = (double)total;
    r->process = (double)mine;
    r->others = used > mine ? (double)(used - mine) : 0;
    r->processes = others;
    r->utilisation = g.utilisation;
    r->temperature = g.temperature;
    r->power = g.power;
    r->clock = g.clock;
    r->memory_clock = g.memory_clock;
    return true;
}

static void *allocate(queue *q, size_t bytes, err *e) {
    void *p = NULL;
    enter(q);
    if (cudaMalloc(&p, bytes ? bytes : 1) != cudaSuccess) {
        cudaGetLastError();
        size_t free_bytes = 0, total = 0;
        cudaMemGetInfo(&free_bytes, &total);
        err_run(e, "the card has %.1f MB free and the plan needs %.1f MB; use a smaller batch_size",
            (double)free_bytes / 1e6, (double)bytes / 1e6);
        return NULL;
    }
    if (ok(cudaMemsetAsync(p, 0, bytes, q->stream), "clearing the slab", e) &&
        ok(cudaStreamSynchronize(q->stream), "clearing the slab", e)) {
        __atomic_fetch_add(&given_out, bytes, __ATOMIC_RELAXED);
        return p;
    }
    cudaFree(p);
    return NULL;
}

static void release(queue *q, void *slab, size_t bytes) {
    __atomic_fetch_sub(&given_out, bytes, __ATOMIC_RELAXED);
    if (q->lost) return;
    enter(q);
    cudaStreamSynchronize(q->stream);
    cudaFree(slab);
}

static bool sync(queue *q, err *e) {
    if (q->failed[0]) return err_run(e, "%s", q->failed);
    enter(q);
    return works(q, cudaStreamSynchronize(q->stream), "running a step", e);
}

static bool move(queue *q, void *to, const void *from, size_t bytes, err *e) {
    if (!bytes) return true;
    enter(q);
    return works(q, cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, q->stream), "copying", e) && sync(q, e);
}

static bool fill(queue *q, void *to, int byte, size_t bytes, err *e) {
    enter(q);
    return works(q, cudaMemsetAsync(to, byte, bytes, q->stream), "filling", e);
}

static __global__ void narrow_kernel(view to, const float *from, int64_t count) {
    FOR_EACH(i, count) view_store(to, i, from[i]);
}

static bool narrow(queue *q, void *to, dtype type, const float *from, size_t count, err *e) {
    enter(q);
    narrow_kernel<<<blocks_for((int64_t)count, 256), 256, 0, q->stream>>>(
        view{to, (int)type, false}, from, (int64_t)count);
    return works(q, cudaGetLastError(), "converting weights", e);
}

// Feeding: each lane copies in a stream of its own, and events keep its copies and the steps that read them apart. A
// lane may be overwritten when the steps are done that were played before the feed of the next lane, which notes them.

static void *pin(queue *q, size_t bytes) {
    void *p = NULL;
    enter(q);
    if (cudaHostAlloc(&p, bytes ? bytes : 1, cudaHostAllocDefault) == cudaSuccess) return p;
    cudaGetLastError();
    return NULL;
}

static void unpin(queue *q, void *memory, size_t bytes) {
    (void)bytes;
    if (q->lost) return;
    enter(q);
    for (int i = 0; i < LANES; i++) cudaStreamSynchronize(q->lane[i].stream);
    cudaFreeHost(memory);
}

static bool feed(queue *q, int lane, void *to, const void *from, size_t bytes, err *e) {
    static const char what[] = "feeding a batch";
    queue_lane *l = &q->lane[lane];
    cudaEvent_t left = q->lane[q->fed].left;
    q->fed = lane;
    enter(q);
    return works(q, cudaEventRecord(left, q->stream), what, e) &&
           works(q, cudaStreamWaitEvent(l->stream, l->left, 0), what, e) &&
           works(q, cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, l->stream), what, e) &&
           works(q, cudaEventRecord(l->arrived, l->stream), what, e) &&
           works(q, cudaStreamWaitEvent(q->stream, l->arrived, 0), what, e);
}

static bool fed(queue *q, int lane, err *e) {
    enter(q);
    return works(q, cudaEventSynchronize(q->lane[lane].arrived), "feeding a batch", e);
}

// Recordings

static bool capture(queue *q, recording *r, err *e) {
    cudaGraph_t graph = NULL;
    if (!works(q, cudaStreamBeginCapture(q->stream, cudaStreamCaptureModeThreadLocal), "recording", e)) return false;
    side_by_side(q, r->groups, r->count);
    cudaError_t status = cudaStreamEndCapture(q->stream, &graph);
    if (q->failed[0]) {
        if (graph) cudaGraphDestroy(graph);
        return err_run(e, "%s", q->failed);
    }
    if (!works(q, status, "recording", e)) return false;
    status = cudaGraphInstantiate(&r->graph, graph, 0);
    cudaGraphDestroy(graph);
    return works(q, status, "preparing a recording", e) &&
           works(q, cudaGraphUpload(r->graph, q->stream), "preparing a recording", e);
}

static void forget(queue *q, recording *r) {
    if (!r) return;
    enter(q);
    if (!q->lost) cudaStreamSynchronize(q->stream);
    if (!q->lost && r->graph) cudaGraphExecDestroy(r->graph);
    fuse_free(r->groups, r->count);
    free(r->calls);
    free(r);
}

// Decides which launches of these calls may begin before the ones before them end. Small batches leave multiprocessors
// free, which the directions and streams of an LSTM share out among themselves: blocks that wait there would be in
// their way. So they would be in the way of other queues.
static void find_early(queue *q, const call *calls, int count) {
    enum { ROWS_LEAST = 2048 };
    q->early = q->arch >= 90 && q->alone && !q->wish.no_early;
    q->shared_out = false;
    for (int i = 0; i < count; i++) q->shared_out |= calls[i].op == OP_lstm && calls[i].batch < ROWS_LEAST;
}

// The groups of a copy of the calls, which are the program's: it may record them again, or repeat them. Operands stay
// the program's, and as they are.
static bool fuse(queue *q, recording *r, const call *calls, int count) {
    r->calls = (call *)calloc((size_t)count + 1, sizeof *r->calls);
    if (!r->calls) return false;
    for (int i = 0; i < count; i++) {
        r->calls[i] = calls[i];
        r->calls[i].queue = q;
    }
    r->groups = fuse_calls(q, r->calls, count, &r->count);
    return r->groups != NULL;
}

static recording *record(queue *q, room *in, call *calls, int count, err *e) {
    recording *r = (recording *)calloc(1, sizeof *r);
    enter(q);
    q->room = in;
    q->alone = __atomic_load_n(&open_queues, __ATOMIC_SEQ_CST) == 1;
    find_early(q, calls, count);
    if (!r || !fuse(q, r, calls, count)) {
        cudaGetLastError();
        if (in && in->full)
            err_run(e, "cuda: recordings need more than the %zu bytes planned for them; please report this", in->bytes);
        else
            err_run(e, "out of memory for a recording; use a smaller batch_size");
        forget(q, r);
        return NULL;
    }
    if (q->wish.debug || count == 0 || capture(q, r, e)) return r;
    forget(q, r);
    return NULL;
}

// Waits until the host is at most two paces ahead of the card.
static bool keep_pace(queue *q, int groups, err *e) {
    q->ahead += (uint64_t)groups;
    if (q->ahead < PACE) return true;
    q->ahead = 0;
    cudaEvent_t event = q->paced[++q->paces % 2];
    if (q->paces > 2 && !works(q, cudaEventSynchronize(event), "running a step", e)) return false;
    return works(q, cudaEventRecord(event, q->stream), "running a step", e);
}

static bool play(queue *q, recording *r, err *e) {
    enter(q);
    if (q->wish.debug) {
        for (int i = 0; i < r->count; i++) group_launch(&r->groups[i]);
        return sync(q, e);
    }
    if (r->graph && !works(q, cudaGraphLaunch(r->graph, q->stream), "launching a step", e)) return false;
    return keep_pace(q, r->count, e);
}

static const device cuda_device = {"cuda", BUILT_FOR, CUDART_VERSION, cards, false, queue_open, queue_close, kernels,
    computes, identify, available, memory, readings, allocate, release, move, move, fill, narrow, pin, unpin, feed, fed,
    room_bytes, room_open, room_close, record, forget, play, sync};

extern "C" __attribute__((visibility("default"))) const plugin *tradewind_plugin(void) {
    static const plugin p = {PLUGIN_HASH, &cuda_device};
    return &p;
}
