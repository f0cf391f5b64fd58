#include "cli/setup.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/pool.h"
#include "base/term.h"
#include "cli/absent.h"
#include "data/set.h"
#include "data/sources.h"
#include "data/windows.h"
#include "graph/dtype.h"
#include "graph/exec.h"
#include "graph/identity.h"
#include "run/outline.h"
#include "run/run.h"
#include "train/fallback.h"
#include "train/trainer.h"

#include <stdlib.h>
#include <string.h>

// Puts the effective batch into a description that leaves it open: what is written of it no longer does.
static bool put_batch(config *c, int64_t batch, err *e) {
    char assignment[64];
    snprintf(assignment, sizeof assignment, "train.batch_size=%lld", (long long)batch);
    return config_override(c, assignment, e) &&
           config_override(c, "gpu_optimization.gradient_accumulation_steps=auto", e);
}

static bool settle(setup *s, int64_t batch, err *e) {
    s->described.batch_size = batch;
    s->settings.batch_size = batch;
    return put_batch(s->config, batch, e);
}

bool setup_settle(const setup *s, const setup *open, err *e) {
    return !s->described.batch_open || put_batch(s->config, open->described.batch_size, e);
}

// A text of a directory, which the caller frees; NULL where it cannot be read.
static char *text_there(const char *dir, const char *name) {
    err unused;
    size_t bytes;
    char *path = run_path(dir, name), *text = file_read(path, 1 << 20, &bytes, &unused);
    free(path);
    return text;
}

// A whole number of a text; 0 where it has none such above 0 and up to 10^7.
static int64_t number_in(const char *text, const char *path) {
    char *value = outline_value(text, path);
    long long n = value ? strtoll(value, NULL, 10) : 0;
    free(value);
    return n > 0 && n <= 10000000 ? n : 0;
}

// A run that goes on has the batch that it began with.
static bool keep_batch(setup *s, err *e) {
    char *text = text_there(s->described.dir, "config.yaml");
    int64_t batch = text ? number_in(text, "train.batch_size") : 0;
    free(text);
    return !batch || settle(s, batch, e);
}

static bool read_description(setup *s, const cli_options *o, err *e) {
    if (o->words < 1) return err_input(e, "no run description given; try examples/quickstart.yaml");
    s->config = config_load(o->word[0], settings_keys, settings_key_count, e);
    if (!s->config) return false;
    for (int i = 1; i < o->words; i++)
        if (!config_override(s->config, o->word[i], e)) return false;
    if (o->seed) {
        char assignment[64];
        snprintf(assignment, sizeof assignment, "train.seed=%.40s", o->seed);
        if (!config_override(s->config, assignment, e)) return false;
    }
    if (!config_check(s->config, e) || !settings_read(s->config, &s->described, e)) return false;
    // Tuning looks at all splits, as train.batch_size: auto would.
    if (s->untuned) s->described.split_open = true;
    s->settings = s->described;
    return !s->described.batch_open || !cli_given(o, "--resume") || keep_batch(s, e);
}

// Data

// Puts the user's mistake behind its place in the description.
static bool blame(const setup *s, const char *key, const err *why, err *e) {
    if (why->kind == ERR_INPUT) return config_fail(s->config, key, e, "%s", why->text);
    *e = *why;
    return false;
}

static bool set_features(const setup *s, sources *from, err *e) {
    for (size_t i = 0; i < config_count(s->config, "data.features"); i++) {
        const char *name = config_child(s->config, "data.features", i);
        build_stream *to = NULL;
        char path[160];
        snprintf(path, sizeof path, "data.features.%s", name);
        for (int k = 0; k < from->streams; k++)
            if (strcmp(from->stream[k].name, name) == 0) to = &from->stream[k];
        if (!to) return config_fail(s->config, path, e, "the data has no such stream; data.bars names them");
        int n = (int)config_items(s->config, path);
        const char **list = arena_array(&from->arena, (size_t)n + 1, sizeof *list);
        for (int k = 0; k < n; k++) list[k] = config_item(s->config, path, (size_t)k);
        to->features = list;
        to->feature_count = n;
    }
    return true;
}

// What the files hold, in a line and its warnings, or all of it with -v. A report that finds no memory is left out.
static void tell_bars(setup *s, const cli_options *o, const sources *from, const build_report *r) {
    size_t bytes;
    FILE *out = o->quiet || o->json ? NULL : open_memstream(&s->told, &bytes);
    if (!out) return;
    for (int i = 0; i < from->files; i++)
        (o->verbose ? bars_report_print : bars_report_brief)(out, from->file[i].path, &from->file[i].bars);
    for (int i = 0; i < from->streams; i++)
        if (r->stale[i])
            fprintf(out, "stale     %lld samples see a bar of %s that is over 4 days old\n", (long long)r->stale[i],
                from->stream[i].name);
    fclose(out);
}

static dataset *from_bars(setup *s, const cli_options *o, err *e) {
    const char *path[BUILD_STREAMS_MOST], *name[BUILD_STREAMS_MOST], *frame[BUILD_STREAMS_MOST];
    size_t files = config_count(s->config, "data.bars"), frames = config_items(s->config, "data.frames");
    char key[160];
    sources from;
    if (files + frames > BUILD_STREAMS_MOST) {
        config_fail(s->config, "data.bars", e, "%zu streams; use up to %d", files + frames, BUILD_STREAMS_MOST);
        return NULL;
    }
    for (size_t i = 0; i < files; i++) {
        name[i] = config_child(s->config, "data.bars", i);
        snprintf(key, sizeof key, "data.bars.%s", name[i]);
        path[i] = config_text(s->config, key);
    }
    for (size_t i = 0; i < frames; i++) frame[i] = config_item(s->config, "data.frames", i);
    err why = {0};
    dataset *d = NULL;
    if (!sources_read(&from, path, name, (int)files, &s->settings.bars, frame, (int)frames, &why)) {
        blame(s, "data.bars", &why, e);
        return NULL;
    }
    if (set_features(s, &from, e)) {
        build_report r;
        d = build_bars(from.stream, from.streams, &s->settings.build, &r, &why);
        if (!d) blame(s, "data.bars", &why, e);
        if (d) tell_bars(s, o, &from, &r);
    }
    sources_done(&from);
    return d;
}

dataset *setup_open_file(const char *path, err *e) {
    npz z;
    source_kind kind;
    if (!source_kind_of(path, &kind, e)) return NULL;
    if (kind != SOURCE_ARRAYS) {
        err_input(
            e, "%s: is not an .npz; make a dataset of it with `tradewind import`, or name bars as data.bars", path);
        return NULL;
    }
    if (!npz_open(&z, path, e)) return NULL;
    bool made = npz_find(&z, set_mark) != NULL;
    npz_close(&z);
    return made ? set_open(path, e) : windows_open(path, e);
}

static dataset *from_file(const setup *s, err *e) {
    err why = {0};
    dataset *d = setup_open_file(s->settings.set, &why);
    if (!d) blame(s, "data.set", &why, e);
    return d;
}

static bool open_data(setup *s, const cli_options *o, err *e) {
    bool bars = config_count(s->config, "data.bars") > 0, made_up = strcmp(s->settings.set, "synthetic") == 0;
    if (bars && !made_up) return config_fail(s->config, "data.set", e, "data.bars is given too; leave one of them out");
    s->data = bars ? from_bars(s, o, e) : made_up ? synthetic_new(&s->settings.synthetic, e) : from_file(s, e);
    if (!s->data) return false;
    if (s->data->classes <= CLASSES_MOST) return true;
    return config_fail(
        s->config, bars ? "data.bars" : "data.set", e, "has labels of more than %d classes; join some", CLASSES_MOST);
}

static bool make_split(setup *s, bool ends, err *e) {
    err why;
    span all = {0, s->data->samples};
    s->split = (split){.train = all, .validation = all, .test = all};
    if (ends || split_make(s->data, s->window, &s->settings.split, &s->split, &why)) return true;
    return config_fail(s->config, "data.split", e, "%s", why.text);
}

static bool make_data(setup *s, const cli_options *o, bool ends, err *e) {
    if (!open_data(s, o, e) || (ends && !(s->data = build_ends(s->data, e)))) return false;
    if (!settings_windows(s->config, s->data, s->window, e) || !settings_model(s->config, s->data, &s->model, e))
        return false;
    if (!make_split(s, ends, e)) return false;
    if (!settings_scales(&s->settings, s->data)) return true;
    s->scaler = scaler_fit(s->data, s->split.train, s->window, e);
    return s->scaler != NULL;
}

// What the description asks for, or what was tuned, or the first of bf16, fp16 and fp32 that the device computes.
static bool choose_precision(setup *s, err *e) {
    bool tuned = s->tuned.state == WISDOM_FOUND;
    const precision order[] = {
        tuned ? s->tuned.entry.precision : PRECISION_BF16, PRECISION_BF16, PRECISION_FP16, PRECISION_FP32};
    s->precision = s->settings.precision;
    for (size_t i = 0; s->settings.precision_open && i < sizeof order / sizeof *order; i++) {
        s->precision = order[i];
        if (s->device->computes(s->queue, order[i])) break;
    }
    if (s->device->computes(s->queue, s->precision)) return true;
    return config_fail(s->config, "gpu_optimization.use_mixed_precision", e,
        "%s cannot compute in %s; use true or false", s->device->name, precision_name(s->precision));
}

// What the description says, or what was tuned where it says nothing. The CPU has no choice.
static void choose_products(setup *s) {
    bool tuned = s->described.products == PRODUCTS_AUTO && s->tuned.state == WISDOM_FOUND;
    s->products = tuned ? s->tuned.entry.products : s->described.products;
    if (s->device->host_memory) s->products = PRODUCTS_AUTO;
}

exec_memory setup_memory(const setup *s) {
    return job_memory(&s->job, &s->settings, s->device->kernels(s->queue), s->device->host_memory);
}

static loader_options loading(const setup *s) {
    return job_loader(&s->job, &s->settings, !s->device->host_memory);
}

size_t setup_ring(const setup *s) {
    loader_options from = loading(s);
    return s->job.host ? loader_measure(s->data, &from) : 0;
}

demand setup_demand(const setup *s) {
    demand n = {.slab = setup_memory(s).total, .ring = setup_ring(s), .copies = choose_copies(s->job.g)};
    if (!s->device->host_memory) n.recorded = choose_recorded(s->job.g, s->settings.again);
    return n;
}

bool setup_fits(const setup *s, err *e) {
    demand n = setup_demand(s);
    return budget_fits(&s->budget, &n, s->device->name, e);
}

void setup_chosen(const setup *s, chosen *c) {
    const dataset *d = s->data;
    *c = (chosen){.precision = s->precision,
        .micro = s->settings.batch_size,
        .parts = s->settings.accumulation,
        .again = s->settings.again,
        .host = s->job.host,
        .threads = s->threads,
        .products = s->products,
        .parameters = graph_parameter_values(s->job.g),
        .summed = d->sum != 0,
        .data_sum = d->sum,
        .samples = d->samples,
        .train = s->split.train,
        .validation = s->split.validation,
        .labelled = d->label != NULL,
        .aimed = d->target != NULL};
    s->device->identify(s->queue, &c->device);
    bool follows = s->tuned.state == WISDOM_FOUND && !(s->tuned.entry.samples_per_s > 0); // a run that goes on
    if (s->tuned_way || follows) snprintf(c->tuned, sizeof c->tuned, "%s", s->tuned.when);
    if (d->label) c->labels = chosen_hash(d->label, (size_t)d->samples * sizeof *d->label);
    if (d->target) c->targets = chosen_hash(d->target, (size_t)(d->samples * d->target_width) * sizeof *d->target);
}

void setup_key(const setup *s, wisdom_key *k) {
    device_identity device;
    s->device->identify(s->queue, &device);
    wisdom_key_make(k, &(wisdom_about){.version = TRADEWIND_VERSION,
                           .device = &device,
                           .card = !s->device->host_memory,
                           .described = &s->described,
                           .model = &s->model,
                           .data = s->data,
                           .split = &s->split,
                           .window = s->window});
}

void setup_job(const setup *s, job *j, residency r, precision p) {
    settings as = s->described;
    as.residency = r;
    as.products = s->products;
    job_init(j, s->data, &s->split, &as, &s->model, s->window, s->scaler, p);
    if (p == PRECISION_FP16) {
        precision other = fallback_of(s->device->computes(s->queue, PRECISION_BF16));
        job_add_fallback(j, s->data, &s->split, &as, &s->model, s->window, s->scaler, other);
    }
    if (s->trained && !j->forecasts) job_keep_logits(j);
}

static bool read_plan(const char *dir, const char *name, chosen *c) {
    char *text = text_there(dir, name);
    bool ok = text && chosen_read(c, text);
    free(text);
    return ok;
}

// The plan that is followed: the one that was given, or that of the run that goes on or whose weights are used. False
// where there is none.
static bool plan_there(const setup *s, const cli_options *o, chosen *c) {
    if (s->like) {
        *c = *s->like;
        return true;
    }
    if (s->trained) {
        const char *slash = strrchr(o->word[0], '/');
        char *dir = slash ? strndup(o->word[0], (size_t)(slash - o->word[0])) : strdup(".");
        CHECK(dir, "out of memory for a path");
        bool there = read_plan(dir, "plan.yaml", c);
        free(dir);
        return there;
    }
    if (!cli_given(o, "--resume")) return false;
    return read_plan(s->described.dir, "plan.yaml", c) || read_plan(s->described.dir, "member_1/plan.yaml", c);
}

// The micro-batches that a run has which goes on; 0 where they are none of this batch's.
static int64_t parts_of(const setup *s, const chosen *plan) {
    return s->described.batch_size * s->described.accumulation % plan->parts == 0 ? plan->parts : 0;
}

// What was tuned when a plan was made: it holds as long as the plan does.
static void follow_tuned(setup *s, const chosen *plan) {
    if (!plan->tuned[0]) return;
    s->tuned = (wisdom_answer){.state = WISDOM_FOUND,
        .entry = {.batch = plan->micro * plan->parts,
            .micro = plan->micro,
            .parts = plan->parts,
            .again = plan->again,
            .threads = plan->threads,
            .host = plan->host,
            .precision = plan->precision,
            .products = plan->products}};
    snprintf(s->tuned.when, sizeof s->tuned.when, "%s", plan->tuned);
}

// Asks what was tuned. A split that the description fixes is no way of another.
static void ask_wisdom(setup *s) {
    const settings *d = &s->described;
    wisdom_key k;
    setup_key(s, &k);
    s->tuned = wisdom_find(&k, d->batch_open ? 0 : d->batch_size * d->accumulation);
    const wisdom_entry *w = &s->tuned.entry;
    char *line = s->tuned.line;
    if (s->tuned.state == WISDOM_NONE && d->batch_open && !line[0])
        snprintf(line, WISDOM_LINE, "nothing for this model, data and device; run tradewind tune");
    if (s->tuned.state != WISDOM_FOUND || d->split_open || w->parts == d->accumulation) return;
    s->tuned.state = WISDOM_REFUSED;
    snprintf(line, WISDOM_LINE,
        "%s: %lld x %lld rows, but the description fixes %lld x %lld; set gpu_optimization.dynamic_batch_sizing",
        s->tuned.when, (long long)w->parts, (long long)w->micro, (long long)d->accumulation, (long long)d->batch_size);
}

// The batch and the way that a plan or tuning has, before the planner chooses the rest.
static bool take_tuned(setup *s, const cli_options *o, err *e) {
    chosen plan;
    bool resume = cli_given(o, "--resume") != NULL, planned = plan_there(s, o, &plan);
    int64_t batch = BATCH_USUAL;
    s->tuned = (wisdom_answer){0};
    if (planned)
        follow_tuned(s, &plan);
    else if (!s->untuned && !s->trained && !resume)
        ask_wisdom(s);
    if (s->like) batch = plan.micro * plan.parts;
    if (!s->like && s->tuned.state == WISDOM_FOUND) batch = s->tuned.entry.batch;
    bool ok = !s->described.batch_open || resume || settle(s, batch, e);
    s->parts = ok && planned && !s->trained && s->described.split_open ? parts_of(s, &plan) : 0;
    return ok;
}

// Opens the CPU anew with the fewer threads that were tuned for training, where the user names none. They change no
// bit.
static bool take_threads(setup *s, const cli_options *o, err *e) {
    int threads = s->tuned.state == WISDOM_FOUND ? s->tuned.entry.threads : 0;
    if (o->threads || s->trained || !s->device->host_memory || threads >= pool_processors()) threads = 0;
    if (threads == s->threads) return true;
    s->device->close(s->queue);
    s->queue = s->device->open(&(queue_options){.threads = threads, .isa = o->isa}, e);
    s->threads = threads;
    return s->queue != NULL;
}

// What was tuned stands in place of the planner's choice, as long as it fits.
static void prefer_tuned(setup *s) {
    const wisdom_entry *w = &s->tuned.entry;
    char why[160];
    way tuned;
    s->tuned_way = false;
    if (s->tuned.state != WISDOM_FOUND) return;
    s->tuned_way = wisdom_suits(w, &s->chooser, &s->budget, &tuned, why, sizeof why);
    if (s->tuned_way) {
        s->choice.best = tuned;
        s->choice.fits = true;
    } else {
        snprintf(s->tuned.line, sizeof s->tuned.line, "%s: %lld x %lld rows, but %s; the planner chose", s->tuned.when,
            (long long)w->parts, (long long)w->micro, why);
    }
}

// "1.21 M samples/s then".
static const char *rate_then(const wisdom_entry *w, char *text, size_t room) {
    char count[32];
    term_count(count, sizeof count, w->samples_per_s);
    if (w->samples_per_s >= 1e6)
        snprintf(text, room, "%.2f M samples/s then", w->samples_per_s / 1e6);
    else if (w->samples_per_s > 0)
        snprintf(text, room, "%s samples/s then", count);
    else
        snprintf(text, room, "as the run has it");
    return text;
}

bool setup_tuned(const setup *s, char *line, size_t room) {
    const wisdom_answer *a = &s->tuned;
    char rate[64], until[64] = "", by[64] = "";
    if (a->entry.products != PRODUCTS_AUTO)
        snprintf(by, sizeof by, "products: %s, ", settings_products_name(a->entry.products));
    if (s->threads) snprintf(by, sizeof by, "%d thread%s, ", s->threads, s->threads > 1 ? "s" : "");
    if (s->described.batch_open && a->state != WISDOM_FOUND)
        snprintf(until, sizeof until, "; until then %d samples a step", BATCH_USUAL);
    if (s->tuned_way)
        snprintf(line, room, "%s: %lld x %lld rows, %s%s", a->when, (long long)a->entry.parts,
            (long long)a->entry.micro, by, rate_then(&a->entry, rate, sizeof rate));
    else
        snprintf(line, room, "%s%s", a->line, until);
    return s->tuned_way || a->line[0];
}

// Chooses among the ways that the description leaves open.
static void take_choice(setup *s) {
    residency r = s->described.residency;
    bool card = !s->device->host_memory;
    job near = {0}, far = {0};
    if (r != RESIDENCY_HOST) setup_job(s, &near, RESIDENCY_DEVICE, s->precision);
    if (r == RESIDENCY_HOST || (r == RESIDENCY_AUTO && card)) setup_job(s, &far, RESIDENCY_HOST, s->precision);
    s->chooser = (chooser){.near = near.g ? &near : NULL,
        .far = far.g ? &far : NULL,
        .settings = &s->described,
        .parts = s->parts,
        .kernels = s->device->kernels(s->queue),
        .host_memory = s->device->host_memory};
    s->choice = choose_way(&s->chooser, &s->budget);
    prefer_tuned(s);
    s->settings = choose_apply(&s->chooser, &s->choice.best);
    bool host = s->choice.best.host;
    s->job = host ? far : near;
    s->other = host ? near : far;
    job *other = s->other.g ? &s->other : NULL;
    s->chooser.near = host ? other : &s->job;
    s->chooser.far = host ? &s->job : other;
}

static void drop_jobs(setup *s) {
    if (s->job.g) job_done(&s->job);
    if (s->other.g) job_done(&s->other);
    s->job = s->other = (job){0};
}

static bool open_device(setup *s, const cli_options *o, err *why, err *e) {
    const char *memory = cli_given(o, "--device-memory"), *arch = cli_given(o, "--arch");
    if (!memory && arch) return err_input(e, "--arch is of a card that is not here; give --device-memory too");
    if (!memory) return cli_open_queue(o, &s->device, &s->queue, why, e);
    s->device = &absent_device;
    s->queue = absent_open(memory, arch, e);
    return s->queue != NULL;
}

// Where the tuned way does not fit now, its precision, products and threads are not taken either: others may need less
// memory. A run that goes on keeps those that it has.
static bool gives_up_tuned(setup *s) {
    bool found = s->tuned.state == WISDOM_FOUND && s->tuned.entry.samples_per_s > 0;
    bool took = s->described.precision_open || s->tuned.entry.products != PRODUCTS_AUTO || s->threads;
    if (!found || s->tuned_way || !took) return false;
    s->tuned.entry.precision = PRECISION_BF16;
    s->tuned.entry.products = PRODUCTS_AUTO;
    s->tuned.entry.threads = 0;
    drop_jobs(s);
    return true;
}

static bool choose_computing(setup *s, err *e) {
    choose_products(s);
    return choose_precision(s, e);
}

static bool make_budget(setup *s, err *e) {
    return budget_make(&s->budget, s->config, &s->described, s->device, s->queue, e);
}

static bool build(setup *s, const cli_options *o, err *why, err *e) {
    if (!open_device(s, o, why, e) || !take_tuned(s, o, e) || !take_threads(s, o, e)) return false;
    if (!choose_computing(s, e)) return false;
    if (!make_budget(s, e)) return false;
    take_choice(s);
    if (gives_up_tuned(s) && (!take_threads(s, o, e) || !choose_computing(s, e) || !make_budget(s, e))) return false;
    if (!s->job.g) take_choice(s);
    int segments = graph_segments(s->job.g);
    if (s->described.recompute <= segments) return true;
    return config_fail(s->config, "gpu_optimization.recompute", e,
        "this model has %d layers or blocks that can be computed again; use no more, or auto", segments);
}

// Where `auto` chose a card whose memory others hold, the CPU computes. A plan that is larger than the whole card or
// the limit is left to be refused: waiting for the others would not help; and so is one in a precision that the
// description demands and the CPU has not.
static bool leave_full_card(setup *s, const cli_options *o, err *e) {
    device_memory m;
    err full, unused;
    if (strcmp(o->device, "auto") != 0 || s->device->host_memory || setup_fits(s, &full)) return true;
    demand n = setup_demand(s);
    if (budget_is_low(&s->budget, &n) || (!s->described.precision_open && s->precision != PRECISION_FP32)) return true;
    if (s->device->memory(s->queue, &m) && n.slab + m.base > m.total) return true;
    s->no_card = full;
    drop_jobs(s);
    s->device->close(s->queue);
    s->queue = NULL;
    cli_options cpu = *o;
    cpu.device = "cpu";
    return build(s, &cpu, &unused, e);
}

bool setup_describe(setup *s, const cli_options *o, err *e) {
    *s = (setup){0};
    if (read_description(s, o, e)) return true;
    setup_close(s);
    return false;
}

static bool open_all(setup *s, const cli_options *o, bool ends, err *e) {
    bool ok = read_description(s, o, e) && make_data(s, o, ends, e);
    s->made = clock_seconds();
    ok = ok && build(s, o, &s->no_card, e) && leave_full_card(s, o, e);
    s->opened = clock_seconds();
    if (!ok) setup_close(s);
    return ok;
}

bool setup_open(setup *s, const cli_options *o, err *e) {
    return setup_open_like(s, o, NULL, e);
}

bool setup_open_like(setup *s, const cli_options *o, const chosen *plan, err *e) {
    *s = (setup){.like = plan};
    return open_all(s, o, false, e);
}

bool setup_open_untuned(setup *s, const cli_options *o, err *e) {
    *s = (setup){.untuned = true};
    return open_all(s, o, false, e);
}

bool setup_open_trained(setup *s, const cli_options *o, bool ends, err *e) {
    *s = (setup){.trained = true};
    return open_all(s, o, ends, e);
}

void setup_close(setup *s) {
    drop_jobs(s);
    if (s->queue) s->device->close(s->queue);
    scaler_free(s->scaler);
    dataset_free(s->data);
    config_free(s->config);
    free(s->told);
}

static void print_count(FILE *out, const char *before, double n, const char *after) {
    char text[32];
    term_count(text, sizeof text, n);
    fprintf(out, "%s%s%s", before, text, after);
}

static void print_data(const setup *s, FILE *out) {
    print_count(out, "data      ", (double)s->split.train.count, " training and ");
    print_count(out, "", (double)s->split.validation.count, " validation samples");
    fprintf(out, " (%s, ", s->data->name);
    if (s->data->held) {
        fprintf(out, "which holds the last %lld values of each series out", (long long)s->data->target_width);
    } else {
        fprintf(out, "%lld left out between parts", (long long)s->split.dropped);
        print_count(out, ", ", (double)s->split.test.count, " kept for a test");
    }
    fprintf(out, "), %.1f MB%s", (double)dataset_bytes(s->data) / 1e6, s->scaler ? ", scaled" : "");
    fprintf(out, "%s\n", s->device->host_memory ? "" : s->job.host ? ", streamed from the host" : ", on the card");
    settings_print_unused(s->config, s->data, out);
}

// What a card's monitor will count, or the system for the process, and the limit.
static void print_limit(const setup *s, FILE *out) {
    const budget *b = &s->budget;
    char others[128];
    demand n = setup_demand(s);
    if (b->host && (s->described.max_memory > 0 || s->described.memory_fraction > 0))
        fprintf(
            out, "note      the limit of a card does not count on the CPU; gpu_optimization.max_host_memory_gb does\n");
    if (b->host && !b->limited) return;
    if (b->limited)
        fprintf(out, "limit     %.1f MB (%.2f GB)", (double)b->limit / 1e6, (double)b->limit / 0x1p30);
    else
        fprintf(out, "limit     none");
    if (b->counted)
        fprintf(out, "; base %.1f MB, %s %.1f MB and %.1f MB beside them are %.1f MB", (double)b->base / 1e6,
            b->host ? "plan" : "slab", (double)budget_planned(b, &n) / 1e6, (double)budget_beside(b, &n) / 1e6,
            (double)budget_least(b, &n) / 1e6);
    fputc('\n', out);
    if (budget_is_shared(b, others, sizeof others)) fprintf(out, "others    %s\n", others);
}

static void print_memory(const setup *s, FILE *out) {
    exec_memory m = setup_memory(s);
    err e;
    fprintf(out, "memory    %.1f MB in one slab: weights %.1f, gradients %.1f, moments %.1f, activations %.1f",
        (double)m.total / 1e6, (double)m.weights / 1e6, (double)m.gradients / 1e6, (double)m.moments / 1e6,
        (double)m.activations / 1e6);
    if (m.constants) fprintf(out, ", data %.1f", (double)m.constants / 1e6);
    if (m.staging) fprintf(out, ", staging %.1f", (double)m.staging / 1e6);
    fputc('\n', out);
    print_limit(s, out);
    int workers = loading(s).workers;
    if (s->job.host)
        fprintf(out, "loader    %d thread%s on the host, %d batches ahead, %.1f MB%s\n", workers,
            workers == 1 ? "" : "s", s->settings.prefetch, (double)setup_ring(s) / 1e6,
            s->device->host_memory ? "" : " pinned");
    if (!setup_fits(s, &e)) fprintf(out, "          does not fit: %s\n", e.text);
}

void setup_print(const setup *s, FILE *out) {
    char device[IDENTITY_ROOM], line[WISDOM_LINE + 16];
    device_identity is;
    s->device->identify(s->queue, &is);
    identity_text(&is, device, sizeof device);
    fprintf(out, "device    %s\n", device);
    if (s->no_card.text[0]) fprintf(out, "          no card: %s\n", s->no_card.text);
    if (s->told) fputs(s->told, out);
    print_data(s, out);
    fprintf(out, "model     %s", model_name(s->model.kind));
    print_count(out, ", ", (double)graph_parameter_values(s->job.g), " parameters");
    fprintf(out, ", %s", precision_name(s->precision));
    if (s->job.fallback) fprintf(out, " (%s should that overflow)", precision_name(s->job.fallback->precision));
    fputc('\n', out);
    if (s->job.forecasts) {
        print_count(out, "forecast  ", (double)s->data->target_width, " values");
        if (s->model.quantiles > 1) fprintf(out, ", %lld quantiles of each", (long long)s->model.quantiles);
        fputs(settings_levels(&s->settings, s->data) ? ", relative to the mean size of the window\n" : "\n", out);
    }
    int64_t parts = s->settings.accumulation;
    print_count(out, "batch     ", (double)(s->settings.batch_size * parts), " samples a step");
    if (parts > 1) print_count(out, ", in ", (double)parts, " micro-batches");
    if (s->settings.again)
        fprintf(out, ", %d %s computed again", s->settings.again,
            s->settings.again == 1 ? "layer or block" : "layers or blocks");
    if (s->settings.batch_size > s->split.train.count) fputs(", more than there are for training", out);
    fputc('\n', out);
    if (setup_tuned(s, line, sizeof line)) fprintf(out, "tuned     %s\n", line);
    print_memory(s, out);
}
