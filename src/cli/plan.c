// tradewind plan: what would run, and a table of the memory it takes; runs nothing.
#include "base/json.h"
#include "cli/cli.h"
#include "cli/setup.h"
#include "graph/exec.h"

#include <stdio.h>

static void print_json(const setup *s, const plan *p) {
    exec_memory m = exec_measure(s->job.g, s->device->kernels(s->queue), s->device->host_memory,
        &(exec_options){.batch = s->settings.batch_size});
    json_line(
        stdout, json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "model", model_name(s->model.kind),
                    "device", s->device->name, "batch", (json_int_t)s->settings.batch_size, "accumulation",
                    (json_int_t)s->settings.accumulation, "parameters", (json_int_t)graph_parameter_values(s->job.g),
                    "slab_bytes", (json_int_t)m.total, "activation_bytes", (json_int_t)m.activations, "alive_bytes",
                    (json_int_t)m.floor, "weight_bytes", (json_int_t)m.weights, "dataset_bytes",
                    (json_int_t)dataset_bytes(s->data), "blocks", (json_int_t)p->blocks));
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
