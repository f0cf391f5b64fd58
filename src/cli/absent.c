#include "cli/absent.h"

#include "cpu/cpu.h"
#include "graph/arch.h"
#include "graph/plugin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Context, kernels and recordings: 552.7 MB of an H200.
enum { BASE_GUESS = 550 * 1000 * 1000 };

struct queue {
    size_t memory;
    int arch;
    arch_kernels kernels; // that it would get
    const device *card;   // the plug-in; NULL: it is not there
    queue *cpu;           // where it is not
};

static queue asked; // the card that absent_card was asked for

static bool read_memory(const char *text, size_t *bytes, err *e) {
    char *end;
    double v = strtod(text, &end);
    double unit = strcmp(end, "GB") == 0 ? 0x1p30 : strcmp(end, "MB") == 0 ? 1e6 : 0;
    if (end == text || !(v * unit >= 1e6) || v * unit > 1e15)
        return err_input(e, "--device-memory %.40s: must be a size such as 8GB or 12000MB", text);
    *bytes = (size_t)(v * unit);
    return true;
}

static bool read_arch(const char *text, int *arch, err *e) {
    char *end = NULL;
    *arch = 0;
    if (!text) return true;
    if (strncmp(text, "sm_", 3) == 0) *arch = (int)strtol(text + 3, &end, 10);
    if (end && end > text + 3 && (!*end || strcmp(end, "a") == 0) && *arch >= ARCH_LEAST && *arch < 1000) return true;
    return err_input(e, "--arch %.40s: must be sm_75 or newer, such as sm_86", text);
}

// Kernels as the plug-in was built; as the card would have them where that is not known. Where no architecture was
// given, the newest that the plug-in has machine code for.
static bool find_kernels(queue *q, err *e) {
    enum { USUAL = 80 };
    char built[256];
    if (!q->arch && q->card && q->card->built) q->arch = arch_newest(q->card->built);
    if (!q->arch) q->arch = USUAL;
    q->kernels = (arch_kernels){q->arch, false};
    if (!q->card || !q->card->built) return true;
    q->kernels = arch_kernels_of(q->card->built, q->arch);
    if (q->kernels.arch) return true;
    arch_text(q->card->built, built, sizeof built);
    return err_run(
        e, "the plug-in has no kernels for sm_%d; it was built for %s (TRADEWIND_CUDA_ARCHITECTURES)", q->arch, built);
}

static queue *open_queue(const queue_options *o, err *e) {
    bool found;
    err unused;
    queue *q = calloc(1, sizeof *q);
    NEED(q, "out of memory for a queue");
    (void)o;
    *q = asked;
    q->card = plugin_open("tradewind-cuda.so", &found, &unused);
    if (!q->card) q->cpu = cpu_device.open(&(queue_options){.threads = 1}, e);
    if ((q->card || q->cpu) && find_kernels(q, e)) return q;
    if (q->cpu) cpu_device.close(q->cpu);
    free(q);
    return NULL;
}

static void close_queue(queue *q) {
    if (q->cpu) cpu_device.close(q->cpu);
    free(q);
}

static const kernel *const *kernels(const queue *q) {
    return q->card ? q->card->kernels(NULL) : cpu_device.kernels(q->cpu);
}

static bool computes(const queue *q, precision p) {
    return p == PRECISION_FP32 || p == PRECISION_FP16 ||
           ((p == PRECISION_BF16 || p == PRECISION_TF32) && q->kernels.arch >= 80);
}

static size_t room_bytes(const queue *q, const call *calls, int count, int recordings) {
    return q->card && q->card->room_bytes ? q->card->room_bytes(NULL, calls, count, recordings) : 0;
}

static void identify(const queue *q, device_identity *i) {
    *i = (device_identity){.arch = q->arch, .ptx = q->kernels.ptx ? q->kernels.arch : 0};
    snprintf(i->card, sizeof i->card, "a card of %.2f GB", (double)q->memory / 0x1p30);
    snprintf(i->note, sizeof i->note, "that is not here (an estimate%s)",
        q->card ? "" : " by the CPU's kernels; install the plug-in");
}

static size_t available(const queue *q) {
    return q->memory > BASE_GUESS ? q->memory - BASE_GUESS : 0;
}

static bool memory(const queue *q, device_memory *m) {
    *m = (device_memory){.source = MEMORY_OF_CARD, .base = BASE_GUESS, .used = BASE_GUESS, .total = q->memory};
    return true;
}

static const device absent = {
    .name = "cuda",
    .open = open_queue,
    .close = close_queue,
    .kernels = kernels,
    .computes = computes,
    .identify = identify,
    .available = available,
    .memory = memory,
    .room_bytes = room_bytes,
};

const device *absent_card(const char *memory, const char *arch, err *e) {
    asked = (queue){0};
    return read_memory(memory, &asked.memory, e) && read_arch(arch, &asked.arch, e) ? &absent : NULL;
}
