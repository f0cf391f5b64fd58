// CUDA's runtime, as far as the plug-in calls it, over a card in software: memory of the card is memory of this
// process, a stream does at once what it is given, and a recording is played in an order that its dependencies allow,
// the one it was recorded in or, with TRADEWIND_CARD_ORDER=backwards, the opposite: what is not ordered must not need
// to be.
//
// Kernels are the PTX that nvcc has put into the plug-in, read when the first of a file is launched.
// TRADEWIND_CARD_LOG=FILE: every launch, a line each.
#include "card/runtime.h"

#include "card/grid.h"
#include "card/hopper.h"

#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MULTIPROCESSORS = 132, SHARED_MOST = 227 << 10, SHARED_USUAL = 48 << 10 };
static const size_t card_memory = (size_t)4 << 30;

static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static __thread cudaError_t last_error;
static cudaError_t lasting; // after a fault every call fails, as on a card

static cudaError_t say(cudaError_t status) {
    if (status == cudaSuccess) status = lasting;
    if (status != cudaSuccess) last_error = status;
    return status;
}

// Modules and kernels

typedef struct {
    const char *text;
    size_t length;
    module *m; // NULL until it is used
} binary;

typedef struct {
    const void *host; // the function that stands for it in the host's code
    binary *in;
    char *name;
    function *f;
    size_t shared_most;
} entry;

typedef struct {
    const void *host;
    binary *in;
    char *name;
} variable;

static entry *entries;
static variable *variables;
static int entry_count, variable_count;

#pragma GCC diagnostic ignored "-Wmissing-prototypes" // nvcc declares what its stubs call in a header for C++ alone

// The head of a fat binary, and of each image in it (as nvcc 13 writes them; not compressed).
typedef struct {
    uint32_t magic;
    uint16_t version, head;
    uint64_t bytes;
} fat_head;

typedef struct {
    uint16_t kind, version;
    uint32_t head;
    uint64_t bytes;
} image_head;

enum { FAT_MAGIC = (int)0xBA55ED50, IMAGE_PTX = 1 };

void **__cudaRegisterFatBinary(void *wrapper) {
    const struct {
        int magic, version;
        const uint8_t *data;
    } *w = wrapper;
    const fat_head *head = (const fat_head *)w->data;
    binary *b = calloc(1, sizeof *b);
    if ((int)head->magic != FAT_MAGIC) abort();
    for (const uint8_t *at = w->data + head->head; at < w->data + head->head + head->bytes;) {
        const image_head *i = (const image_head *)at;
        if (i->kind == IMAGE_PTX) {
            b->text = (const char *)at + i->head;
            b->length = i->bytes;
        }
        at += i->head + i->bytes;
    }
    return (void **)b;
}

void __cudaRegisterFatBinaryEnd(void **handle) {
    (void)handle;
}

void __cudaUnregisterFatBinary(void **handle) {
    (void)handle;
}

void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name, int limit, void *tid,
    void *bid, void *block, void *grid, int *size) {
    (void)device, (void)limit, (void)tid, (void)bid, (void)block, (void)grid, (void)size;
    entries = realloc(entries, sizeof *entries * (size_t)(entry_count + 1));
    entries[entry_count++] = (entry){host, (binary *)handle, strdup(name), NULL, SHARED_USUAL};
}

void __cudaRegisterVar(
    void **handle, char *host, char *device, const char *name, int external, size_t bytes, int constant, int global) {
    (void)device, (void)external, (void)bytes, (void)constant, (void)global;
    variables = realloc(variables, sizeof *variables * (size_t)(variable_count + 1));
    variables[variable_count++] = (variable){host, (binary *)handle, strdup(name)};
}

static module *module_of(binary *b) {
    if (!b->m && b->text) b->m = ptx_read(b->text, b->length);
    return b->m;
}

static entry *entry_of(const void *host) {
    for (int i = 0; i < entry_count; i++)
        if (entries[i].host == host || (const void *)entries[i].name == host) return &entries[i];
    return NULL;
}

static function *function_of(entry *e) {
    module *m = module_of(e->in);
    if (!e->f && m) e->f = ptx_function(m, e->name);
    return e->f;
}

// A kernel's handle is its name, which entry_of finds again.
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *host) {
    const entry *e = entry_of(host);
    if (!e) return say(cudaErrorInvalidDeviceFunction);
    *kernel = (cudaKernel_t)(void *)e->name;
    return cudaSuccess;
}

// Memory: pieces of this process, of which kernels may touch no other.

typedef struct {
    uint8_t *at;
    size_t bytes;
    bool pinned;
} piece;

static piece *pieces;
static int piece_count;
static size_t taken;

static bool owns(const void *at, size_t bytes) {
    const uint8_t *p = at;
    for (int i = 0; i < piece_count; i++)
        if (p >= pieces[i].at && p + bytes <= pieces[i].at + pieces[i].bytes) return true;
    return false;
}

bool runtime_owns(const void *at, size_t bytes) {
    pthread_mutex_lock(&lock);
    bool is = owns(at, bytes);
    pthread_mutex_unlock(&lock);
    return is;
}

// False for bytes that begin in a piece and end beyond it.
static bool ends_well(const void *at, size_t bytes) {
    return !runtime_owns(at, 1) || runtime_owns(at, bytes);
}

static cudaError_t take(void **to, size_t bytes, bool pinned) {
    size_t room = (bytes + 511) / 512 * 512;
    pthread_mutex_lock(&lock);
    uint8_t *p = pinned || taken + room <= card_memory ? aligned_alloc(512, room ? room : 512) : NULL;
    if (p) {
        pieces = realloc(pieces, sizeof *pieces * (size_t)(piece_count + 1));
        pieces[piece_count++] = (piece){p, bytes, pinned};
        if (!pinned) taken += room;
        if (!pinned) memset(p, 0xFF, room ? room : 512); // what is read before it is written shows as NaN
    }
    pthread_mutex_unlock(&lock);
    *to = p;
    return say(p ? cudaSuccess : cudaErrorMemoryAllocation);
}

static cudaError_t give_back(void *p) {
    pthread_mutex_lock(&lock);
    for (int i = 0; i < piece_count; i++) {
        if (pieces[i].at != p) continue;
        if (!pieces[i].pinned) taken -= (pieces[i].bytes + 511) / 512 * 512;
        free(p);
        pieces[i] = pieces[--piece_count];
        p = NULL;
    }
    pthread_mutex_unlock(&lock);
    return say(p ? cudaErrorInvalidValue : cudaSuccess);
}

cudaError_t cudaMalloc(void **to, size_t bytes) {
    return take(to, bytes, false);
}

cudaError_t cudaHostAlloc(void **to, size_t bytes, unsigned flags) {
    (void)flags;
    return take(to, bytes, true);
}

cudaError_t cudaFree(void *p) {
    return give_back(p);
}

cudaError_t cudaFreeHost(void *p) {
    return give_back(p);
}

cudaError_t cudaMemGetInfo(size_t *left, size_t *total) {
    *total = card_memory;
    *left = card_memory - taken;
    return say(cudaSuccess);
}

cudaError_t cudaMemcpyFromSymbol(void *to, const void *host, size_t bytes, size_t offset, enum cudaMemcpyKind kind) {
    (void)kind;
    for (int i = 0; i < variable_count; i++) {
        if (variables[i].host != host) continue;
        const symbol *s = ptx_symbol(module_of(variables[i].in), variables[i].name);
        if (!s || offset + bytes > (size_t)s->bytes) break;
        memcpy(to, (const uint8_t *)(uintptr_t)s->at + offset, bytes);
        return say(cudaSuccess);
    }
    return say(cudaErrorInvalidSymbol);
}

// Work, done at once or put into a recording

typedef enum { WORK_LAUNCH, WORK_COPY, WORK_FILL, WORK_OTHER } work_kind;

typedef struct {
    work_kind kind;
    entry *kernel;
    extent3 grid, block;
    size_t shared;
    uint8_t *args;
    const char *name; // of WORK_OTHER, which runs with `args`
    void (*run)(const void *);
    void *to;
    const void *from;
    int byte;
    size_t bytes;
    int *after; // nodes of the recording that come before
    int after_count;
} work;

struct CUgraph_st {
    work *nodes;
    int count;
};

typedef struct {
    int *node;
    int count;
} node_set;

struct CUstream_st {
    struct CUgraph_st *graph; // that is being recorded, or NULL
    node_set last;            // what the next node comes after
    struct CUstream_st *next;
};

struct CUevent_st {
    struct CUgraph_st *graph;
    node_set last;
};

static struct CUstream_st *streams;

static void set_add(node_set *to, const node_set *from) {
    for (int i = 0; i < from->count; i++) {
        bool there = false;
        for (int k = 0; k < to->count; k++) there |= to->node[k] == from->node[i];
        if (there) continue;
        to->node = realloc(to->node, sizeof *to->node * (size_t)(to->count + 1));
        to->node[to->count++] = from->node[i];
    }
}

static void set_clear(node_set *s) {
    free(s->node);
    *s = (node_set){NULL, 0};
}

static cudaError_t error_of(grid_end end) {
    switch (end) {
    case GRID_DONE: return cudaSuccess;
    case GRID_BAD_ADDRESS: return cudaErrorIllegalAddress;
    case GRID_MISALIGNED: return cudaErrorMisalignedAddress;
    case GRID_STUCK: return cudaErrorLaunchTimeout;
    default: return cudaErrorLaunchFailure;
    }
}

static void log_work(const work *w) {
    static FILE *file;
    const char *path = getenv("TRADEWIND_CARD_LOG");
    if (!path) return;
    if (!file) file = fopen(path, "a");
    if (!file) return;
    if (w->kind == WORK_OTHER)
        fprintf(file, "%s\n", w->name);
    else
        fprintf(file, "%s %u,%u,%u %u,%u,%u %zu\n", w->kernel->name, w->grid.x, w->grid.y, w->grid.z, w->block.x,
            w->block.y, w->block.z, w->shared);
    fflush(file);
}

static cudaError_t do_work(const work *w) {
    if (lasting != cudaSuccess) return lasting;
    switch (w->kind) {
    case WORK_COPY: memmove(w->to, w->from, w->bytes); return cudaSuccess;
    case WORK_FILL: memset(w->to, w->byte, w->bytes); return cudaSuccess;
    default: break;
    }
    log_work(w);
    if (w->kind == WORK_OTHER) {
        w->run(w->args);
        return cudaSuccess;
    }
    grid_call c = {w->kernel->f, w->grid, w->block, w->shared, w->args, owns};
    return lasting = error_of(grid_run(&c));
}

static void free_work(work *w) {
    free(w->args);
    free(w->after);
}

// Does it, or records it where the stream is recording.
static cudaError_t submit(cudaStream_t stream, work *w) {
    pthread_mutex_lock(&lock);
    cudaError_t status = cudaSuccess;
    struct CUgraph_st *g = stream ? stream->graph : NULL;
    if (!g) {
        status = do_work(w);
        free_work(w);
    } else {
        w->after = malloc(sizeof *w->after * (size_t)(stream->last.count + 1));
        w->after_count = stream->last.count;
        if (w->after_count) memcpy(w->after, stream->last.node, sizeof *w->after * (size_t)w->after_count);
        g->nodes = realloc(g->nodes, sizeof *g->nodes * (size_t)(g->count + 1));
        g->nodes[g->count] = *w;
        set_clear(&stream->last);
        set_add(&stream->last, &(node_set){&(int){g->count}, 1});
        g->count++;
    }
    pthread_mutex_unlock(&lock);
    return say(status);
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream) {
    (void)kind;
    if (!ends_well(to, bytes) || !ends_well(from, bytes)) return say(cudaErrorInvalidValue);
    return submit(stream, &(work){.kind = WORK_COPY, .to = to, .from = from, .bytes = bytes});
}

cudaError_t cudaMemsetAsync(void *to, int byte, size_t bytes, cudaStream_t stream) {
    if (!runtime_owns(to, bytes)) return say(cudaErrorInvalidValue);
    return submit(stream, &(work){.kind = WORK_FILL, .to = to, .byte = byte, .bytes = bytes});
}

cudaError_t runtime_submit(
    cudaStream_t stream, const char *name, void (*run)(const void *with), const void *with, size_t bytes) {
    work w = {.kind = WORK_OTHER, .name = name, .run = run, .args = malloc(bytes)};
    memcpy(w.args, with, bytes);
    return submit(stream, &w);
}

// Launches

static __thread struct {
    dim3 grid, block;
    size_t shared;
    cudaStream_t stream;
} configured;

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, struct CUstream_st *stream) {
    configured.grid = grid, configured.block = block, configured.shared = shared, configured.stream = stream;
    return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream) {
    *grid = configured.grid, *block = configured.block, *shared = configured.shared;
    *(cudaStream_t *)stream = configured.stream;
    return cudaSuccess;
}

static cudaError_t launch(entry *e, dim3 grid, dim3 block, void **args, size_t shared, cudaStream_t stream) {
    pthread_mutex_lock(&lock);
    function *f = e ? function_of(e) : NULL;
    pthread_mutex_unlock(&lock);
    if (!f) return say(cudaErrorInvalidDeviceFunction);
    uint64_t threads = (uint64_t)block.x * block.y * block.z;
    if (!grid.x || !grid.y || !grid.z || !threads || threads > 1024 || grid.y > 65535 || grid.z > 65535)
        return say(cudaErrorInvalidConfiguration);
    if (shared > e->shared_most || shared + (size_t)f->shared_bytes > SHARED_MOST) return say(cudaErrorInvalidValue);
    if (f->max_threads && threads > (uint64_t)f->max_threads) return say(cudaErrorLaunchOutOfResources);
    work w = {.kind = WORK_LAUNCH, .kernel = e, .shared = shared, .grid = {grid.x, grid.y, grid.z}};
    w.block = (extent3){block.x, block.y, block.z};
    w.args = aligned_alloc(64, ((size_t)f->args_bytes + 64) / 64 * 64);
    for (int i = 0; i < f->param_count; i++) memcpy(w.args + f->params[i].at, args[i], (size_t)f->params[i].bytes);
    return submit(stream, &w);
}

cudaError_t __cudaLaunchKernel(
    cudaKernel_t kernel, dim3 grid, dim3 block, void **args, size_t shared, cudaStream_t stream) {
    return launch(entry_of((const void *)kernel), grid, block, args, shared, stream);
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *c, const void *host, void **args) {
    return launch(entry_of(host), c->gridDim, c->blockDim, args, c->dynamicSmemBytes, c->stream);
}

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *a, const void *host) {
    entry *e = entry_of(host);
    pthread_mutex_lock(&lock);
    const function *f = e ? function_of(e) : NULL;
    pthread_mutex_unlock(&lock);
    if (!f) return say(cudaErrorNoKernelImageForDevice);
    *a = (struct cudaFuncAttributes){.ptxVersion = f->of->target, .binaryVersion = f->of->target};
    a->maxDynamicSharedSizeBytes = (int)e->shared_most;
    a->maxThreadsPerBlock = f->max_threads ? f->max_threads : 1024;
    return say(cudaSuccess);
}

cudaError_t cudaFuncSetAttribute(const void *host, enum cudaFuncAttribute which, int value) {
    entry *e = entry_of(host);
    if (!e || which != cudaFuncAttributeMaxDynamicSharedMemorySize || value > SHARED_MOST)
        return say(cudaErrorInvalidValue);
    e->shared_most = (size_t)value;
    return say(cudaSuccess);
}

// Streams and events

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *to, unsigned flags, int priority) {
    (void)flags, (void)priority;
    struct CUstream_st *s = calloc(1, sizeof *s);
    pthread_mutex_lock(&lock);
    s->next = streams;
    streams = s;
    pthread_mutex_unlock(&lock);
    *to = s;
    return say(cudaSuccess);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *to, unsigned flags) {
    return cudaStreamCreateWithPriority(to, flags, 0);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    pthread_mutex_lock(&lock);
    for (struct CUstream_st **s = &streams; *s; s = &(*s)->next)
        if (*s == stream) {
            *s = stream->next;
            break;
        }
    set_clear(&stream->last);
    free(stream);
    pthread_mutex_unlock(&lock);
    return say(cudaSuccess);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
    return say(stream && stream->graph ? cudaErrorStreamCaptureUnsupported : cudaSuccess);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *to, unsigned flags) {
    (void)flags;
    *to = calloc(1, sizeof **to);
    return say(cudaSuccess);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
    set_clear(&event->last);
    free(event);
    return say(cudaSuccess);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    pthread_mutex_lock(&lock);
    set_clear(&event->last);
    event->graph = stream ? stream->graph : NULL;
    if (event->graph) set_add(&event->last, &stream->last);
    pthread_mutex_unlock(&lock);
    return say(cudaSuccess);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
    (void)flags;
    pthread_mutex_lock(&lock);
    cudaError_t status =
        stream->graph && event->graph && stream->graph != event->graph ? cudaErrorStreamCaptureMerge : cudaSuccess;
    if (event->graph && status == cudaSuccess) {
        stream->graph = event->graph;
        set_add(&stream->last, &event->last);
    }
    pthread_mutex_unlock(&lock);
    return say(status);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
    (void)event;
    return say(cudaSuccess);
}

// Recordings

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode) {
    (void)mode;
    if (stream->graph) return say(cudaErrorIllegalState);
    stream->graph = calloc(1, sizeof *stream->graph);
    set_clear(&stream->last);
    return say(cudaSuccess);
}

// Marks the nodes that come before those of a set, and these.
static void mark(const struct CUgraph_st *g, const node_set *last, bool *marked) {
    for (int i = 0; i < last->count; i++) marked[last->node[i]] = true;
    for (int i = g->count - 1; i >= 0; i--)
        for (int k = 0; marked[i] && k < g->nodes[i].after_count; k++) marked[g->nodes[i].after[k]] = true;
}

// Every node must come before what the stream does next.
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *to) {
    struct CUgraph_st *g = stream->graph;
    cudaError_t status = cudaSuccess;
    if (!g) return say(cudaErrorIllegalState);
    pthread_mutex_lock(&lock);
    bool *joined = calloc((size_t)g->count + 1, sizeof *joined);
    mark(g, &stream->last, joined);
    for (int i = 0; i < g->count; i++)
        if (!joined[i]) status = cudaErrorStreamCaptureUnjoined;
    free(joined);
    for (struct CUstream_st *s = streams; s; s = s->next) {
        if (s->graph != g) continue;
        s->graph = NULL;
        set_clear(&s->last);
    }
    pthread_mutex_unlock(&lock);
    *to = g;
    return say(status);
}

// A recording that is played owns the nodes.
struct CUgraphExec_st {
    struct CUgraph_st graph;
    int *order;
};

// An order in which each node comes after those it depends on: as recorded, or the latest that can be next.
static void find_order(struct CUgraphExec_st *e) {
    const struct CUgraph_st *g = &e->graph;
    bool *done = calloc((size_t)g->count + 1, sizeof *done), backwards = grid_goes_backwards();
    e->order = malloc(sizeof *e->order * (size_t)(g->count + 1));
    for (int n = 0; n < g->count; n++) {
        int next = -1;
        for (int i = 0; i < g->count; i++) {
            bool ready = !done[i];
            for (int k = 0; ready && k < g->nodes[i].after_count; k++) ready = done[g->nodes[i].after[k]];
            if (ready && (next < 0 || backwards)) next = i;
        }
        done[next] = true;
        e->order[n] = next;
    }
    free(done);
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *to, cudaGraph_t graph, unsigned long long flags) {
    (void)flags;
    struct CUgraphExec_st *e = calloc(1, sizeof *e);
    e->graph = *graph;
    *graph = (struct CUgraph_st){NULL, 0};
    find_order(e);
    *to = e;
    return say(cudaSuccess);
}

static void free_nodes(struct CUgraph_st *g) {
    for (int i = 0; i < g->count; i++) free_work(&g->nodes[i]);
    free(g->nodes);
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
    free_nodes(graph);
    free(graph);
    return say(cudaSuccess);
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t e) {
    free_nodes(&e->graph);
    free(e->order);
    free(e);
    return say(cudaSuccess);
}

cudaError_t cudaGraphUpload(cudaGraphExec_t e, cudaStream_t stream) {
    (void)e, (void)stream;
    return say(cudaSuccess);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t e, cudaStream_t stream) {
    (void)stream;
    cudaError_t status = cudaSuccess;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < e->graph.count && status == cudaSuccess; i++) status = do_work(&e->graph.nodes[e->order[i]]);
    pthread_mutex_unlock(&lock);
    return say(status);
}

// The card

cudaError_t cudaGetDeviceCount(int *count) {
    *count = 1;
    return say(cudaSuccess);
}

cudaError_t cudaSetDevice(int number) {
    return say(number == 0 ? cudaSuccess : cudaErrorInvalidDevice);
}

cudaError_t cudaDriverGetVersion(int *version) {
    *version = CUDART_VERSION;
    return say(cudaSuccess);
}

cudaError_t cudaDeviceGetPCIBusId(char *to, int room, int number) {
    (void)number;
    snprintf(to, (size_t)room, "software");
    return say(cudaSuccess);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
    *least = 0, *greatest = -5;
    return say(cudaSuccess);
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *p, int number) {
    memset(p, 0, sizeof *p);
    if (number != 0) return say(cudaErrorInvalidDevice);
    snprintf(p->name, sizeof p->name, "a card in software");
    p->totalGlobalMem = card_memory;
    p->major = 9; // of the card; its kernels are what the plug-in was built for
    p->multiProcessorCount = MULTIPROCESSORS;
    p->sharedMemPerBlockOptin = SHARED_MOST;
    return say(cudaSuccess);
}

cudaError_t cudaGetLastError(void) {
    cudaError_t status = last_error;
    last_error = cudaSuccess;
    return status;
}

const char *cudaGetErrorName(cudaError_t status) {
    static __thread char name[32];
    snprintf(name, sizeof name, "cudaError %d", (int)status);
    return name;
}

const char *cudaGetErrorString(cudaError_t status) {
    switch (status) {
    case cudaSuccess: return "no error";
    case cudaErrorMemoryAllocation: return "out of memory";
    case cudaErrorIllegalAddress: return "an illegal memory access was encountered";
    case cudaErrorMisalignedAddress: return "misaligned address";
    case cudaErrorInvalidValue: return "invalid argument";
    case cudaErrorInvalidConfiguration: return "invalid configuration argument";
    case cudaErrorLaunchOutOfResources: return "too many resources requested for launch";
    default: return cudaGetErrorName(status);
    }
}

cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **to, unsigned version, unsigned long long flags,
    enum cudaDriverEntryPointQueryResult *result) {
    (void)version, (void)flags;
    __typeof__(hopper_encode) *encode = hopper_encode;
    bool known = strcmp(name, "cuTensorMapEncodeTiled") == 0;
    *to = NULL;
    if (known) memcpy(to, &encode, sizeof *to);
    *result = known ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
    return say(cudaSuccess);
}

cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode) {
    (void)mode;
    return say(cudaSuccess);
}
