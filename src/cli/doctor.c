// tradewind doctor: what this machine can do.
#include "base/json.h"
#include "base/pool.h"
#include "cli/cli.h"
#include "cpu/blas.h"
#include "cpu/cpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

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

enum { COPY_FLOATS = 4 << 20, SIDE = 512, REPEATS = 5 };

typedef struct {
    float *from, *to;
    int64_t per_item;
} rates;

static void copy_item(void *arg, int64_t item, int worker) {
    rates *r = arg;
    (void)worker;
    memcpy(r->to + item * r->per_item, r->from + item * r->per_item, (size_t)r->per_item * sizeof(float));
}

static void matmul_item(void *arg, int64_t item, int worker) {
    rates *r = arg;
    (void)worker;
    blas_gemm(false, false, SIDE, SIDE, SIDE, r->from, SIDE, r->from, SIDE, 0, r->to + item * SIDE * SIDE, SIDE);
}

// Seconds of the fastest of a few runs.
static double fastest(pool *p, int64_t items, pool_fn *fn, rates *r) {
    double best = 1e30;
    for (int i = 0; i < REPEATS; i++) {
        double t = now();
        pool_run(p, items, fn, r);
        t = now() - t;
        best = t < best ? t : best;
    }
    return best;
}

// Copy in GB/s, read and written; single-precision matrix products in GFLOP/s; all threads together.
static bool measure(pool *p, double *copy, double *matmul, err *e) {
    int64_t threads = pool_threads(p), floats = COPY_FLOATS * threads;
    rates r = {calloc((size_t)floats, sizeof(float)), calloc((size_t)floats, sizeof(float)), COPY_FLOATS};
    bool ok = r.from && r.to;
    if (ok) {
        for (int64_t i = 0; i < floats; i++) r.from[i] = (float)(i % 97) * 0.01f;
        double bytes = 2.0 * (double)floats * sizeof(float);
        *copy = bytes / fastest(p, threads, copy_item, &r) / 1e9;
        *matmul = 2.0 * SIDE * SIDE * SIDE * (double)threads * 4 / fastest(p, threads * 4, matmul_item, &r) / 1e9;
    }
    free(r.from);
    free(r.to);
    return ok ? true : err_run(e, "out of memory for a measurement");
}

static void print_text(const char *name, int threads, const char *blas, double copy, double matmul) {
    printf("tradewind %s\n\n", TRADEWIND_VERSION);
    printf("processor  %s\n", name);
    printf("threads    %d of %ld processors\n", threads, sysconf(_SC_NPROCESSORS_ONLN));
    printf("memory     %.1f GB\n", memory_gb());
    printf("kernels   ");
    for (const char *const *isa = cpu_instruction_sets(); *isa; isa++)
        printf(" %s%s", *isa, isa == cpu_instruction_sets() ? " (used)" : "");
    printf("\nBLAS       %s\n", blas);
    printf("copy       %.1f GB/s, read and written\n", copy);
    printf("matmul     %.0f GFLOP/s in fp32\n", matmul);
    printf("CUDA       not in this build\n");
}

static bool run(const cli_options *o, err *e) {
    char name[256];
    double copy = 0, matmul = 0;
    pool *p = pool_new(o->threads, e);
    if (!p) return false;
    blas_prepare(p);
    processor_name(name, sizeof name);
    bool ok = measure(p, &copy, &matmul, e);
    int threads = pool_threads(p);
    pool_free(p);
    if (!ok) return false;
    if (!o->json) {
        print_text(name, threads, blas_describe(), copy, matmul);
        return true;
    }
    return json_line(stdout,
        json_pack("{s:s, s:s, s:i, s:o, s:s, s:s, s:o, s:o, s:b}", "version", TRADEWIND_VERSION, "processor", name,
            "threads", threads, "memory_gb", json_number(memory_gb()), "kernels", cpu_instruction_sets()[0], "blas",
            blas_describe(), "copy_gb_per_s", json_number(copy), "matmul_gflop_per_s", json_number(matmul), "cuda", 0));
}

const cli_command cli_doctor = {"doctor", "", "what this machine can do, with measured rates", NULL, run};
