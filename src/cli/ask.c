#include "cli/ask.h"

#include "cli/absent.h"
#include "cli/switches.h"
#include "cpu/cpu.h"
#include "graph/device_name.h"
#include "graph/plugin.h"

#include <string.h>

bool ask_devices(const cli_options *o, task_devices *d, err *e) {
    device_name name;
    bool found;
    err why = {0};
    if (!device_name_read(&name, o->device))
        return err_input(e, "--device %s: unknown device; use cuda, cuda:N, cpu or auto", o->device);
    bool any = name.kind == DEVICE_AUTO, card = name.kind == DEVICE_CUDA;
    *d = (task_devices){.options = {.threads = o->threads, .isa = o->isa, .number = name.number}};
    if (!card) d->host = &cpu_device;
    d->open = any;
    if (!any && !card) return true;
    if (!switches_read(&d->options.card, e)) return false;
    d->card = plugin_open("tradewind-cuda.so", &found, &why);
    if (d->card) return true;
    if (card && !found)
        return err_run(e, "the plug-in tradewind-cuda.so is not beside the program; build it with `make CUDA=ON`");
    if (found) *(card ? e : &d->no_card) = why;
    return !card;
}

bool ask_queue(const cli_options *o, const device **d, queue **q, err *why, err *e) {
    task_devices from;
    return ask_devices(o, &from, e) && task_open_queue(&from, d, q, why, e);
}

// A card that is not here, where one is asked for, or the devices.
static bool find_devices(const cli_options *o, task_devices *d, err *e) {
    const char *memory = cli_given(o, "--device-memory"), *arch = cli_given(o, "--arch");
    if (!memory && arch) return err_input(e, "--arch is of a card that is not here; give --device-memory too");
    if (!memory) return ask_devices(o, d, e);
    *d = (task_devices){.card = absent_card(memory, arch, e)};
    return d->card != NULL;
}

bool ask_task(const cli_options *o, task_options *to, err *e) {
    *to = (task_options){.version = TRADEWIND_VERSION, .resume = cli_given(o, "--resume") != NULL};
    if (o->words < 1) return err_input(e, "no run description given; try examples/quickstart.yaml");
    to->description = (task_description){
        .file = o->word[0], .overrides = o->word + 1, .override_count = o->words - 1, .seed = o->seed};
    return find_devices(o, &to->devices, e);
}
