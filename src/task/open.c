#include "task/open.h"

#include "base/clock.h"
#include "base/machine.h"
#include "base/pool.h"
#include "data/latest.h"
#include "data/symbols.h"
#include "graph/dtype.h"
#include "graph/identity.h"
#include "task/lines.h"
#include "task/scale.h"
#include "task/source.h"
#include "task/tuned.h"
#include "train/agent_keys.h"
#include "train/fallback.h"
#include "train/trainer.h"

#include <stdlib.h>
#include <string.h>

enum { SYMBOLS_MOST = 1024 }; // of weights that know symbols, as an input

bool task_describe_run(task *t, const task_options *o, err *e) {
    *t = (task){.options = *o};
    t->config = task_describe(&o->description, &t->described, e);
    if (!t->config) return false;
    // Tuning looks at all splits, as train.batch_size: auto would.
    if (o->untuned) t->described.split_open = true;
    t->settings = t->described;
    if (!t->described.batch_open || !o->resume || tuned_keep_batch(t, e)) return true;
    task_close(t);
    return false;
}

// Data

// The split by shares, or that of a fold of a walk.
static bool split_data(const task *t, split *s, err *e) {
    if (t->options.parts) {
        *s = *t->options.parts;
        return true;
    }
    return t->settings.walk.fold ? walk_split(&t->settings.walk, t->data, t->window, s, e)
                                 : split_make(t->data, t->window, &t->settings.split, s, e);
}

static bool make_split(task *t, err *e) {
    err why;
    split_part all = part_of((span){0, t->data->samples});
    t->split = (split){.train = all, .validation = all, .test = all};
    bool whole = t->options.ends || t->options.latest || t->options.whole;
    if (whole || split_data(t, &t->split, &why)) return true;
    if (why.kind == ERR_RUN) *e = why;
    return why.kind != ERR_RUN &&
           config_fail(t->config, t->settings.walk.fold ? "walk" : "data.split", e, "%s", why.text);
}

// Gives the symbols to the model: columns of all that weights know, where the data have no others.
static dataset *add_symbols(const task *t, err *e) {
    const char *names[SYMBOLS_MOST];
    contract *c = NULL;
    bool mine = t->data != t->options.data;
    int64_t count = 0, known = 0;
    err unused; // a damaged contract is told where it is compared
    if (t->options.saved && contract_read(&c, t->options.saved, t->options.saved_path, &unused) && c &&
        c->symbols.names && c->symbols.count <= SYMBOLS_MOST)
        for (; count < c->symbols.count; count++)
            names[count] = json_string_value(json_array_get(c->symbols.names, (size_t)count));
    for (int64_t k = 0; k < t->data->panel; k++)
        for (int64_t i = 0; i < count; i++) known += strcmp(names[i], t->data->panel_names[k]) == 0;
    bool theirs = count && known == t->data->panel;
    dataset *d = symbols_new(t->data, theirs ? names : NULL, theirs ? count : 0, mine, e);
    contract_free(c);
    return d;
}

// Reads a set's bytes against their sums. One that is large for the memory is left alone, as the time to read it would
// be lost, unless a run goes on with it: that needs the bytes it began with.
static bool check_bytes(task *t, err *e) {
    double memory = machine_look("").total;
    err why;
    if (t->options.checked) return true;
    t->unchecked = !t->options.resume && memory > 0 && source_is_large(t->data, memory);
    if (t->unchecked || source_check(t->data, &t->options.listener, &why)) return true;
    if (why.kind == ERR_INPUT) return config_fail(t->config, "data.set", e, "%s", why.text);
    *e = why;
    return false;
}

// The description's own data, as the task sees them.
static bool open_data(task *t, err *e) {
    CHECK(!t->options.data || !(t->options.ends || t->options.latest), "the data are the description's own");
    bool own = !t->options.data;
    t->data = own ? source_open(t->config, &t->settings, &t->options.listener, e) : t->options.data;
    if (t->data && own && !check_bytes(t, e)) return false;
    if (t->data && t->options.ends) t->data = build_ends(t->data, e);
    // Data without symbols for weights that know some are refused by their contract.
    bool named = t->data && (t->data->panel || !t->options.saved);
    if (named && config_bool(t->config, "model.symbol")) t->data = add_symbols(t, e);
    if (t->data && t->options.latest) t->data = latest_new(t->data, t->options.latest, e);
    return t->data != NULL;
}

// Inputs of trained weights by name, before any number of them is seen.
static bool check_inputs(const task *t, err *e) {
    if (!t->options.saved) return true;
    contract *is = task_contract(t);
    unsigned of_labels = agent_given(t->config) ? CONTRACT_CLASSES | CONTRACT_LABEL : 0; // an agent has none
    bool ok = contract_fits(t->options.saved, t->options.saved_path, is, CONTRACT_ALL & ~of_labels, e);
    contract_free(is);
    return ok;
}

static bool make_data(task *t, err *e) {
    return open_data(t, e) && settings_windows(t->config, t->data, t->window, e) &&
           settings_model(t->config, t->data, &t->model, e) && make_split(t, e) && check_inputs(t, e) &&
           scale_make(t, e);
}

// The precision that the description asks for, or that was tuned, or the first of bf16, fp16 and fp32 that the device
// computes.
static bool choose_precision(task *t, err *e) {
    bool tuned = t->tuned.state == WISDOM_FOUND;
    const precision order[] = {
        tuned ? t->tuned.entry.precision : PRECISION_BF16, PRECISION_BF16, PRECISION_FP16, PRECISION_FP32};
    t->precision = t->settings.precision;
    for (size_t i = 0; t->settings.precision_open && i < sizeof order / sizeof *order; i++) {
        t->precision = order[i];
        if (t->device->computes(t->queue, order[i])) break;
    }
    if (t->device->computes(t->queue, t->precision)) return true;
    return config_fail(t->config, "gpu_optimization.use_mixed_precision", e,
        "%s cannot compute in %s; use true or false", t->device->name, precision_name(t->precision));
}

// Products as the description says, or as was tuned where it says nothing. The CPU has no choice.
static void choose_products(task *t) {
    bool tuned = t->described.products == PRODUCTS_AUTO && t->tuned.state == WISDOM_FOUND;
    t->products = tuned ? t->tuned.entry.products : t->described.products;
    if (t->device->host_memory) t->products = PRODUCTS_AUTO;
}

engine_memory task_memory(const task *t) {
    if (t->options.trained) return predictor_memory(&t->job, &t->settings, t->device, t->queue);
    return trainer_memory(&t->job, &t->split, &t->settings, t->device, t->queue);
}

loader_options task_loading(const task *t) {
    return job_loader(&t->job, &t->settings, !t->device->host_memory);
}

size_t task_ring(const task *t) {
    loader_options from = task_loading(t);
    return t->job.host ? loader_measure(t->data, &from) : 0;
}

demand task_demand(const task *t) {
    demand n = {.slab = task_memory(t).total, .ring = task_ring(t), .copies = choose_copies(t->job.g)};
    if (t->options.trained) n.copies = choose_weights(t->job.g);
    if (!t->device->host_memory) n.recorded = choose_recorded(t->job.g, t->settings.again, !t->options.trained);
    return n;
}

bool task_fits(const task *t, err *e) {
    demand n = task_demand(t);
    if (t->options.place) return true;
    return budget_fits(&t->budget, &n, t->device->name, e);
}

// 0 for one span, which first sample and count say all of.
static uint64_t spans_hash(const split_part *p) {
    return p->spans > 1 ? chosen_hash(p->span, (size_t)p->spans * sizeof *p->span) : 0;
}

void task_chosen_data(const task *t, chosen *c) {
    const dataset *d = t->data;
    c->summed = d->sum != 0;
    c->data_sum = d->sum;
    c->samples = d->samples;
    c->train = (span){part_first(&t->split.train), t->split.train.count};
    c->validation = (span){part_first(&t->split.validation), t->split.validation.count};
    c->train_spans = spans_hash(&t->split.train);
    c->validation_spans = spans_hash(&t->split.validation);
    c->labelled = d->label != NULL;
    c->aimed = d->target != NULL;
    if (d->label) c->labels = chosen_hash(d->label, (size_t)d->samples * sizeof *d->label);
    if (d->target) c->targets = chosen_hash(d->target, (size_t)(d->samples * d->target_width) * sizeof *d->target);
}

void task_chosen(const task *t, chosen *c) {
    *c = (chosen){.precision = t->precision,
        .micro = t->settings.batch_size,
        .parts = t->settings.accumulation,
        .again = t->settings.again,
        .host = t->job.host,
        .threads = t->threads,
        .products = t->products,
        .parameters = graph_parameter_values(t->job.g)};
    t->device->identify(t->queue, &c->device);
    bool follows = t->tuned.state == WISDOM_FOUND && !(t->tuned.entry.samples_per_s > 0); // a run that goes on
    if (t->tuned_way || follows) snprintf(c->tuned, sizeof c->tuned, "%s", t->tuned.when);
    task_chosen_data(t, c);
}

contract *task_contract(const task *t) {
    return contract_make(&(contract_facts){.data = t->data,
        .window = t->window,
        .train = &t->split.train,
        .forecasts = settings_forecasts(&t->settings, t->data),
        .scale = scale_name(t),
        .version = t->options.version});
}

void task_job(const task *t, job *j, residency r, precision p) {
    settings as = t->described;
    as.residency = r;
    as.products = t->products;
    job_init(j, t->data, &t->split, &as, &t->model, t->window, t->scaler, p);
    if (p == PRECISION_FP16 && t->described.fp16_fallback) {
        precision other = fallback_of(t->device->computes(t->queue, PRECISION_BF16));
        job_add_fallback(j, t->data, &t->split, &as, &t->model, t->window, t->scaler, other);
    }
    if (t->options.trained && !j->forecasts) job_keep_logits(j);
}

void task_skill_input(const task *t, skill_input *in) {
    bool scaled = t->scaler && target_scales(t->scaler->target), trivial = false;
    trivial_kind list[TRIVIAL_MOST];
    in->task = settings_task(&t->settings, t->data);
    in->season = t->settings.season;
    int n = trivial_list(in->task, t->data, in->season, list);
    for (int k = 0; k < n; k++) trivial |= list[k] == TRIVIAL_MEAN;
    if (trivial) in->mean = scaled ? (double)t->scaler->target.mean : trivial_mean(t->data, &t->split.train);
}

// Opens the CPU anew with the fewer threads that were tuned for training, where the user names none. They change no
// bit.
static bool take_threads(task *t, err *e) {
    int threads = t->tuned.state == WISDOM_FOUND ? t->tuned.entry.threads : 0;
    queue_options o = t->options.devices.options;
    if (o.threads || t->options.trained || !t->device->host_memory || threads >= pool_processors()) threads = 0;
    if (threads == t->threads || t->options.devices.queue) return true;
    t->device->close(t->queue);
    o.threads = t->threads = threads;
    t->queue = t->device->open(&o, e);
    return t->queue != NULL;
}

// Chooses among the ways that the description leaves open.
static void take_choice(task *t) {
    residency r = t->described.residency;
    bool card = !t->device->host_memory;
    job near = {0}, far = {0};
    if (r != RESIDENCY_HOST) task_job(t, &near, RESIDENCY_DEVICE, t->precision);
    if (r == RESIDENCY_HOST || (r == RESIDENCY_AUTO && card)) task_job(t, &far, RESIDENCY_HOST, t->precision);
    t->chooser = (chooser){.near = near.g ? &near : NULL,
        .far = far.g ? &far : NULL,
        .settings = &t->described,
        .parts = t->parts,
        .split = &t->split,
        .device = t->device,
        .queue = t->queue};
    if (t->options.trained) {
        t->choice = choose_rows(&t->chooser, &t->budget);
    } else {
        t->choice = choose_way(&t->chooser, &t->budget);
        tuned_prefer(t);
    }
    t->settings = choose_apply(&t->chooser, &t->choice.best);
    bool host = t->choice.best.host;
    t->job = host ? far : near;
    t->other = host ? near : far;
    job *other = t->other.g ? &t->other : NULL;
    t->chooser.near = host ? other : &t->job;
    t->chooser.far = host ? &t->job : other;
}

static void drop_jobs(task *t) {
    if (t->job.g) job_done(&t->job);
    if (t->other.g) job_done(&t->other);
    t->job = t->other = (job){0};
}

// Where the tuned way does not fit now, its precision, products and threads are not taken either: others may need less
// memory. A run that goes on keeps those that it has.
static bool gives_up_tuned(task *t) {
    bool found = t->tuned.state == WISDOM_FOUND && t->tuned.entry.samples_per_s > 0;
    bool took = t->described.precision_open || t->tuned.entry.products != PRODUCTS_AUTO || t->threads;
    if (!found || t->tuned_way || !took) return false;
    t->tuned.entry.precision = PRECISION_BF16;
    t->tuned.entry.products = PRODUCTS_AUTO;
    t->tuned.entry.threads = 0;
    drop_jobs(t);
    return true;
}

static bool choose_computing(task *t, err *e) {
    choose_products(t);
    return choose_precision(t, e);
}

static bool make_budget(task *t, err *e) {
    return budget_make(&t->budget, t->config, &t->described, t->device, t->queue, e);
}

// On a device that was opened.
static bool build(task *t, err *e) {
    if (!tuned_take(t, e) || !take_threads(t, e)) return false;
    if (!choose_computing(t, e)) return false;
    if (!make_budget(t, e)) return false;
    take_choice(t);
    if (gives_up_tuned(t) && (!take_threads(t, e) || !choose_computing(t, e) || !make_budget(t, e))) return false;
    if (!t->job.g) take_choice(t);
    int segments = graph_segments(t->job.g);
    if (t->described.recompute <= segments) return true;
    return config_fail(t->config, "gpu_optimization.recompute", e,
        "this model has %d %ss that can be recomputed; use no more, or auto", segments, lines_segment(t->model.kind));
}

// Where `auto` chose a card whose memory others hold, the CPU computes. A plan that is larger than the whole card or
// the limit is left to be refused: waiting for the others would not help; and so is one in a precision that the
// description demands and the CPU has not.
static bool leave_full_card(task *t, err *e) {
    const task_devices *from = &t->options.devices;
    device_memory m;
    err full;
    if (!from->host || from->queue || t->device->host_memory || task_fits(t, &full)) return true;
    demand n = task_demand(t);
    if (budget_is_low(&t->budget, &n) || (!t->described.precision_open && t->precision != PRECISION_FP32)) return true;
    if (t->device->memory(t->queue, &m) && n.slab + m.base > m.total) return true;
    t->no_card = full;
    drop_jobs(t);
    t->device->close(t->queue);
    t->device = from->host;
    t->queue = from->host->open(&from->options, e);
    return t->queue && build(t, e);
}

// Weights are used wherever they are.
static bool name_device(task *t, err *e) {
    return t->options.trained || task_name_device(&t->options.devices, t->config, e);
}

static bool is_no_agent(const task *t, err *e) {
    return !agent_given(t->config) || config_fail(t->config, "agent", e,
                                          "this command is not for agents; train, plan, walk, evaluate, predict, "
                                          "backtest, live and report are (doc/agents.md)");
}

bool task_open_data(task *t, const task_options *o, err *e) {
    if (!task_describe_run(t, o, e)) return false;
    if (make_data(t, e)) return true;
    task_close(t);
    return false;
}

bool task_open(task *t, const task_options *o, err *e) {
    if (!task_describe_run(t, o, e)) return false;
    bool ok = is_no_agent(t, e) && name_device(t, e) && make_data(t, e);
    t->made = clock_seconds();
    ok = ok && task_open_queue(&t->options.devices, &t->device, &t->queue, &t->no_card, e) && build(t, e) &&
         leave_full_card(t, e);
    t->opened = clock_seconds();
    if (!ok) task_close(t);
    return ok;
}

void task_close(task *t) {
    drop_jobs(t);
    if (t->queue && t->queue != t->options.devices.queue) t->device->close(t->queue);
    scaler_free(t->scaler);
    if (t->data != t->options.data) dataset_free(t->data);
    config_free(t->config);
}

predictor *task_predictor(const task *t, err *e) {
    predictor_place at = {.device = t->device, .queue = t->queue};
    return predictor_new(&at, &t->job, &t->settings, e);
}

trainer *task_trainer(const task *t, err *e) {
    const task_place *at = t->options.place;
    if (at)
        return trainer_new_in(
            &(trainer_place){t->device, t->queue, at->space, at->data}, &t->job, t->data, &t->split, &t->settings, e);
    return trainer_new(t->device, t->queue, &t->job, t->data, &t->split, &t->settings, e);
}
