// tradewind doctor: what this machine can do. Rates are measured with the program's own operators, so they are what
// training on that device can hope for.
#include "base/clock.h"
#include "base/json.h"
#include "base/pool.h"
#include "cli/ask.h"
#include "cli/cards.h"
#include "cli/cli.h"
#include "cpu/cpu.h"
#include "graph/dtype.h"
#include "graph/identity.h"
#include "graph/solo.h"
#include "ops/ops.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void processor_name(char *name, size_t room) {
    char line[512];
    snprintf(name, room, "unknown processor");
    FILE *f = fopen("/proc/cpuinfo", "r");
    NEED(f || errno != ENOMEM, "out of memory to read the processor's name");
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

enum { ROWS = 8192, REPEATS = 5, PRECISIONS = PRECISION_FP16 + 1 };

// The measured work: a chain of products of ROWS x width values, or, with no layers, a scaled copy. A card needs more
// to do than a processor, and more than its caches hold.
typedef struct {
    int64_t width;
    int layers;
    precision precision;
    const float *x;
} trial;

static graph *trial_graph(const trial *t) {
    graph *g = graph_new();
    tensor x = graph_constant(g, "x", DTYPE_F32, shape2(ROWS, t->width), t->x);
    if (!t->layers) x = op_axpby(g, x, TENSOR_NONE, 0.5f, 0);
    for (int i = 0; i < t->layers; i++) {
        char name[16];
        snprintf(name, sizeof name, "w%d", i);
        init even = {INIT_UNIFORM, (float)sqrt(3.0 / (double)t->width)}; // results as large as inputs
        tensor w = graph_parameter(g, name, shape2(t->width, t->width), even);
        x = op_linear(g, x, w, TENSOR_NONE, ACT_NONE);
    }
    graph_keep(g, x);
    dtype_assign(g, t->precision);
    return g;
}

// Products of zeros are faster than others: they take less power.
static bool fill_weights(solo *x, graph *g, err *e) {
    if (!graph_parameters(g)) return true;
    float *weights = malloc((size_t)graph_slab_elements(g) * sizeof *weights);
    if (!weights) return err_run(e, "out of memory for a measurement");
    graph_initial(g, 1, weights);
    bool ok = solo_write(x, graph_slab(g, SLAB_WEIGHTS), weights, e);
    free(weights);
    return ok;
}

// Seconds of the fastest of a few runs.
static bool fastest(const device *d, queue *q, const trial *t, double *seconds, err *e) {
    graph *g = trial_graph(t);
    graph_slab(g, SLAB_WEIGHTS);
    solo *x = solo_new(d, q, g, &(solo_options){.rows = 1, .inference = true}, e);
    bool ok = x && fill_weights(x, g, e);
    *seconds = 1e30;
    for (int i = 0; ok && i < REPEATS; i++) {
        double began = clock_seconds();
        ok = solo_play(x, PASS_EVALUATE, e) && d->sync(q, e);
        double took = clock_seconds() - began;
        *seconds = took < *seconds ? took : *seconds;
    }
    solo_free(x);
    graph_free(g);
    return ok;
}

typedef struct {
    char processor[256], device[IDENTITY_ROOM];
    char products[96];               // kernels of large products, where the device names them
    double copy, to_card, from_card; // GB/s
    double matmul[PRECISIONS];       // GFLOP/s; 0 where the device does not compute in it
    device_memory memory;
    bool counted; // whether the card's monitor gave `memory`
    bool card;
    err no_card;          // why, where the CPU stands in
    const device *plugin; // for cards, or NULL
} findings;

// Between the host's memory, as it is, and the card's.
static bool time_moves(const device *d, queue *q, float *x, size_t bytes, findings *f, err *e) {
    void *there = d->allocate(q, bytes, e);
    bool ok = there != NULL;
    for (int i = 0; ok && i < REPEATS; i++) {
        double began = clock_seconds();
        ok = d->write(q, there, x, bytes, e) && d->sync(q, e);
        double between = clock_seconds();
        ok = ok && d->read(q, x, there, bytes, e);
        double to = (double)bytes / (between - began) / 1e9, from = (double)bytes / (clock_seconds() - between) / 1e9;
        f->to_card = to > f->to_card ? to : f->to_card;
        f->from_card = from > f->from_card ? from : f->from_card;
    }
    if (there) d->release(q, there, bytes);
    return ok;
}

static bool time_device(const device *d, queue *q, findings *f, err *e) {
    trial t = {.width = f->card ? 4096 : 1024, .precision = PRECISION_FP32};
    double seconds = 1, values = (double)ROWS * (double)t.width;
    float *x = malloc((size_t)values * sizeof *x);
    if (!x) return err_run(e, "out of memory for a measurement");
    for (int64_t i = 0; i < (int64_t)values; i++) x[i] = (float)(i % 97 - 48) * 0.02f;
    t.x = x;
    bool ok = fastest(d, q, &t, &seconds, e);
    f->copy = 2 * values * sizeof(float) / seconds / 1e9;
    t.layers = f->card ? 4 : 1;
    for (int p = 0; ok && p < PRECISIONS; p++) {
        t.precision = (precision)p;
        if (!d->computes(q, t.precision)) continue;
        ok = fastest(d, q, &t, &seconds, e);
        f->matmul[p] = 2 * values * (double)t.width * t.layers / seconds / 1e9;
    }
    ok = ok && (!f->card || time_moves(d, q, x, (size_t)values * sizeof *x, f, e));
    free(x);
    return ok;
}

// After the measurements: a card finds what computes large products when it first has some.
static void describe_device(const device *d, const queue *q, findings *f) {
    device_identity i;
    d->identify(q, &i);
    snprintf(f->products, sizeof f->products, "%s", i.products);
    i.products[0] = 0;
    identity_text(&i, f->device, sizeof f->device);
}

static bool examine(const cli_options *o, findings *f, err *e) {
    const device *d;
    queue *q;
    task_devices from;
    processor_name(f->processor, sizeof f->processor);
    if (!ask_devices(o, &from, e) || !task_open_queue(&from, &d, &q, &f->no_card, e)) return false;
    f->plugin = from.card;
    f->card = !d->host_memory;
    f->counted = d->memory(q, &f->memory);
    bool ok = time_device(d, q, f, e);
    describe_device(d, q, f);
    d->close(q);
    if (!f->card && !f->no_card.text[0])
        err_run(&f->no_card, strcmp(o->device, "cpu") == 0 ? "not looked for: --device cpu"
                                                           : "the plug-in for cards is not beside the program");
    return ok;
}

static void print_card(const findings *f) {
    if (f->products[0]) printf("  products %s\n", f->products);
    printf("  moves    %.1f GB/s from the host, %.1f GB/s to it\n", f->to_card, f->from_card);
    if (f->counted)
        printf("  memory   %.1f MB, of which %.1f MB are in use; a bare context takes %.1f MB\n",
            (double)f->memory.total / 1e6, (double)f->memory.used / 1e6, (double)f->memory.base / 1e6);
    else
        printf("  memory   not known: the card's monitor (libnvidia-ml.so.1) was not found\n");
}

static void print_matmul(const findings *f) {
    printf("  matmul  ");
    for (int p = 0; p < PRECISIONS; p++)
        if (f->matmul[p] > 0)
            printf("%s %.*f %s in %s", p ? "," : "", f->card ? 1 : 0, f->card ? f->matmul[p] / 1e3 : f->matmul[p],
                f->card ? "TFLOP/s" : "GFLOP/s", precision_name((precision)p));
    putchar('\n');
}

static void print_text(const findings *f) {
    printf("tradewind %s\n\n", TRADEWIND_VERSION);
    printf("processor  %s, %d of %ld usable\n", f->processor, pool_processors(), sysconf(_SC_NPROCESSORS_ONLN));
    printf("memory     %.1f GB\n", memory_gb());
    printf("kernels   ");
    for (const char *const *isa = cpu_instruction_sets(); *isa; isa++) printf(" %s", *isa);
    printf("\ndevice     %s\n", f->device);
    printf("  copy     %.1f GB/s, read and written\n", f->copy);
    print_matmul(f);
    if (f->card)
        print_card(f);
    else
        printf("card       %s\n", f->no_card.text);
    cards_print(f->plugin, stdout);
}

static json_t *json_findings(const findings *f) {
    json_t *rates = json_object();
    for (int p = 0; p < PRECISIONS; p++)
        if (f->matmul[p] > 0) json_object_set_new(rates, precision_name((precision)p), json_number(f->matmul[p] / 1e3));
    json_t *line = json_pack("{s:s, s:s, s:i, s:o, s:s, s:s, s:o, s:o, s:o, s:b, s:s?}", "version", TRADEWIND_VERSION,
        "processor", f->processor, "processors", pool_processors(), "memory_gb", json_number(memory_gb()), "kernels",
        cpu_instruction_sets()[0], "device", f->device, "copy_gb_per_s", json_number(f->copy), "matmul_gflop_per_s",
        json_number(f->matmul[PRECISION_FP32]), "matmul_tflop_per_s", rates, "cuda", f->card, "no_card",
        f->card ? NULL : f->no_card.text);
    if (line) cards_json(f->plugin, line);
    if (!line || !f->card) return line;
    if (f->products[0]) json_object_set_new(line, "products", json_string(f->products));
    json_object_set_new(line, "host_to_card_gb_per_s", json_number(f->to_card));
    json_object_set_new(line, "card_to_host_gb_per_s", json_number(f->from_card));
    if (!f->counted) return line;
    json_object_set_new(line, "card_bytes", json_integer((json_int_t)f->memory.total));
    json_object_set_new(line, "card_used_bytes", json_integer((json_int_t)f->memory.used));
    json_object_set_new(line, "context_bytes", json_integer((json_int_t)f->memory.base));
    return line;
}

static bool run(const cli_options *o, err *e) {
    findings f = {0};
    if (!examine(o, &f, e)) return false;
    if (o->json)
        json_line(stdout, json_findings(&f));
    else
        print_text(&f);
    return true;
}

const cli_command cli_doctor = {
    "doctor", "", "what this machine can do, with measured rates", NULL, NULL, NULL, 0, run, NULL, NULL};
