// tradewind doctor: what this machine can do. Rates are measured with the program's own operators, so they are what
// training on that device can hope for.
#include "base/clock.h"
#include "base/json.h"
#include "base/pool.h"
#include "cli/cli.h"
#include "cpu/cpu.h"
#include "graph/dtype.h"
#include "graph/exec.h"
#include "ops/ops.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void processor_name(char *name, size_t room) {
    char line[512];
    snprintf(name, room, "unknown processor");
    FILE *f = fopen("/proc/cpuinfo", "r");
    while (f && fgets(line, sizeof line, f)) {
        char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || !colon) continue;
        line[strcspn(line, "\n")] = 0;
        snprintf(name, room, "%s", colon + 2);
        break;
    }
    if (f) fclose(f);
}

static double memory_gb(void) {
    return (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGE_SIZE) / (1 << 30);
}

enum { ROWS = 8192, WIDTH = 1024, REPEATS = 5 };

// A product, or a scaled copy, of ROWS x WIDTH values.
static graph *measured_graph(bool product, const float *x) {
    graph *g = graph_new();
    tensor in = graph_constant(g, "x", DTYPE_F32, shape2(ROWS, WIDTH), x);
    if (product) {
        tensor w = graph_parameter(g, "w", shape2(WIDTH, WIDTH), (init){INIT_UNIFORM, 1});
        graph_keep(g, op_linear(g, in, w, TENSOR_NONE, ACT_NONE));
    } else {
        graph_keep(g, op_axpby(g, in, TENSOR_NONE, 0.5f, 0));
    }
    dtype_assign(g, PRECISION_FP32);
    return g;
}

// Seconds of the fastest of a few runs.
static bool fastest(const device *d, queue *q, bool product, const float *x, double *seconds, err *e) {
    graph *g = measured_graph(product, x);
    exec *run = exec_new(d, q, g, &(exec_options){.batch = 1, .inference = true}, e);
    bool ok = run != NULL;
    *seconds = 1e30;
    for (int i = 0; ok && i < REPEATS; i++) {
        double t = clock_seconds();
        ok = exec_play(run, EXEC_EVALUATE, e) && d->sync(q, e);
        t = clock_seconds() - t;
        *seconds = t < *seconds ? t : *seconds;
    }
    exec_free(run);
    graph_free(g);
    return ok;
}

typedef struct {
    char processor[256], device[128];
    double copy, matmul; // GB/s, GFLOP/s
    err no_card;         // why, where the CPU stands in
    bool card;
} findings;

static bool examine(const cli_options *o, findings *f, err *e) {
    const device *d;
    queue *q;
    double copy = 1, product = 1, values = (double)ROWS * WIDTH;
    float *x = malloc((size_t)ROWS * WIDTH * sizeof *x);
    if (!x) return err_run(e, "out of memory for a measurement");
    for (int64_t i = 0; i < (int64_t)ROWS * WIDTH; i++) x[i] = (float)(i % 97) * 0.01f;
    bool ok = cli_open_queue(o, &d, &q, &f->no_card, e);
    if (ok) {
        d->describe(q, f->device, sizeof f->device);
        f->card = !d->host_memory;
        ok = fastest(d, q, false, x, &copy, e) && fastest(d, q, true, x, &product, e);
        d->close(q);
    }
    free(x);
    processor_name(f->processor, sizeof f->processor);
    f->copy = 2 * values * sizeof(float) / copy / 1e9;
    f->matmul = 2 * values * WIDTH / product / 1e9;
    return ok;
}

static void print_text(const findings *f) {
    printf("tradewind %s\n\n", TRADEWIND_VERSION);
    printf("processor  %s, %d of %ld usable\n", f->processor, pool_processors(), sysconf(_SC_NPROCESSORS_ONLN));
    printf("memory     %.1f GB\n", memory_gb());
    printf("kernels   ");
    for (const char *const *isa = cpu_instruction_sets(); *isa; isa++) printf(" %s", *isa);
    printf("\ndevice     %s\n", f->device);
    printf("  copy     %.1f GB/s, read and written\n", f->copy);
    printf("  matmul   %.0f GFLOP/s in fp32\n", f->matmul);
    if (!f->card)
        printf("card       %s\n",
            f->no_card.text[0] ? f->no_card.text : "the plug-in for cards is not beside the program");
}

static bool run(const cli_options *o, err *e) {
    findings f = {0};
    if (!examine(o, &f, e)) return false;
    if (!o->json) {
        print_text(&f);
        return true;
    }
    json_line(
        stdout, json_pack("{s:s, s:s, s:i, s:o, s:s, s:s, s:o, s:o, s:b}", "version", TRADEWIND_VERSION, "processor",
                    f.processor, "processors", pool_processors(), "memory_gb", json_number(memory_gb()), "kernels",
                    cpu_instruction_sets()[0], "device", f.device, "copy_gb_per_s", json_number(f.copy),
                    "matmul_gflop_per_s", json_number(f.matmul), "cuda", f.card));
    return true;
}

const cli_command cli_doctor = {
    "doctor", "", "what this machine can do, with measured rates", NULL, NULL, NULL, 0, run};
