// tradewind plan: what would run, and a table of the memory it takes; runs nothing.
#include "base/json.h"
#include "cli/cli.h"
#include "cli/setup.h"
#include "graph/exec.h"

#include <stdio.h>

static json_t *bytes_or_null(bool known, size_t bytes) {
    return known ? json_integer((json_int_t)bytes) : json_null();
}

static void print_json(const setup *s, const plan *p) {
    exec_memory m = setup_memory(s);
    const budget *b = &s->budget;
    json_t *line = json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "model",
        model_name(s->model.kind), "device", s->device->name, "batch", (json_int_t)s->settings.batch_size,
        "accumulation", (json_int_t)s->settings.accumulation, "parameters",
        (json_int_t)graph_parameter_values(s->job.g), "slab_bytes", (json_int_t)m.total, "activation_bytes",
        (json_int_t)m.activations, "alive_bytes", (json_int_t)m.floor, "weight_bytes", (json_int_t)m.weights,
        "dataset_bytes", (json_int_t)dataset_bytes(s->data), "blocks", (json_int_t)p->blocks);
    json_t *rest = json_pack("{s:s, s:I, s:I, s:o, s:o}", "residency", s->job.host ? "host" : "device", "staging_bytes",
        (json_int_t)m.staging, "ring_bytes", (json_int_t)setup_ring(s), "base_bytes",
        bytes_or_null(b->counted, b->base), "limit_bytes", bytes_or_null(b->limited, b->limit));
    if (line) json_object_update(line, rest);
    json_decref(rest);
    json_line(stdout, line);
}

static bool run(const cli_options *o, err *e) {
    setup s;
    if (!setup_open(&s, o, e)) return false;
    arena a;
    arena_init(&a);
    plan_options options = {.batch = s.settings.batch_size, .training = true};
    const plan *p = plan_make(s.job.g, s.device->kernels(s.queue), &options, &a);
    if (o->json) {
        print_json(&s, p);
    } else {
        setup_print(&s, stdout);
        putchar('\n');
        plan_print(p, s.job.g, stdout);
    }
    arena_done(&a);
    setup_close(&s);
    return true;
}

const cli_command cli_plan = {"plan", "CONFIG [key=value...]", "what would run, and the memory it takes; runs nothing",
    NULL, NULL, "--seed", WORDS_MOST, run, NULL, NULL};
