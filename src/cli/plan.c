// tradewind plan: what would run and why, and a map of the memory it takes; runs nothing.
#include "base/json.h"
#include "base/term.h"
#include "cli/agent_commands.h"
#include "cli/ask.h"
#include "cli/cli.h"
#include "cli/show.h"
#include "cli/slab.h"
#include "graph/dtype.h"
#include "graph/program.h"
#include "run/run.h"
#include "task/lines.h"
#include "train/agent_keys.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OTHERS_MOST = 32, LINES_MOST = 7, REASON_ROOM = WISDOM_LINE + 80, FIGURES_MOST = 18 };

typedef struct {
    const char *name; // for people
    const char *key;  // for --json
    size_t bytes;
    bool known;
    bool sum;    // of figures before it
    bool always; // shown where it is 0 too
} figure;

// A way that was not taken.
typedef struct {
    way way;
    size_t bytes; // of the device, base included where it is known
    bool fits;
} other;

// Everything that is printed, in one form or the other.
typedef struct {
    const task *s;
    const char *bars; // report of bar files, or NULL
    engine_memory memory;
    demand demand;
    program *program; // of the steps
    const plan *plan; // its
    slab_picture picture;
    char why[LINES_MOST][REASON_ROOM];
    int reasons;
    figure figure[FIGURES_MOST];
    int figures;
    int64_t largest[2]; // batches that fit: with nothing recomputed, or as much as can be
    way smallest;       // the way that takes the least,
    size_t least;       // and the limit that it works under
    other other[OTHERS_MOST];
    int others;
} report;

static double mb(size_t bytes) {
    return (double)bytes / 1e6;
}

// Reasons

__attribute__((format(printf, 2, 3))) static void reason(report *r, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    vsnprintf(r->why[r->reasons++], REASON_ROOM, fmt, args);
    va_end(args);
}

static void explain_place(report *r) {
    const task *s = r->s;
    const way *w = &s->choice.best;
    if (s->device->host_memory && !w->host)
        reason(r, "data      read where they lie: the CPU computes in the same memory");
    else if (s->described.residency != RESIDENCY_AUTO)
        reason(r, "data      %s: data.residency says so", w->host ? "streamed from the host" : "on the device");
    else if (s->tuned_way)
        reason(r, "data      %s: tuned", w->host ? "streamed from the host" : "on the card");
    else if (!s->choice.fits)
        reason(r, "data      %s: it takes the least, and that does not fit",
            w->host ? "streamed from the host" : "on the card");
    else if (w->host)
        reason(r, "data      streamed from the host: with them on the card no plan fits that is as fast");
    else
        reason(r, "data      on the card: they fit, and nothing is faster");
}

static void explain_split(report *r) {
    const task *s = r->s;
    const way *w = &s->choice.best;
    long long parts = w->parts, rows = w->batch;
    if (s->chooser.parts)
        reason(r, "split     %lld x %lld rows: the run that goes on has it", parts, rows);
    else if (!s->described.split_open)
        reason(r, "split     %lld x %lld rows: the description's (dynamic_batch_sizing: false)", parts, rows);
    else if (s->tuned_way)
        reason(r, "split     %lld x %lld rows: tuned", parts, rows);
    else if (parts == 1 && s->choice.fits)
        reason(r, "split     1 x %lld rows: the whole batch fits", rows);
    else if (s->choice.fits)
        reason(
            r, "split     %lld x %lld rows: fewer micro-batches do not fit, or only by recomputing more", parts, rows);
    else
        reason(r, "split     %lld x %lld rows: it takes the least, and that does not fit", parts, rows);
}

static void explain_recompute(report *r) {
    const task *s = r->s;
    int n = s->choice.best.again, all = graph_segments(s->job.g);
    const char *each = lines_segment(s->model.kind), *many = all == 1 ? "" : "s", *why = "";
    if (s->described.recompute != RECOMPUTE_AUTO)
        why = ": gpu_optimization.recompute says so";
    else if (s->tuned_way)
        why = ": tuned";
    else if (s->choice.fits)
        why = n ? ": with fewer the split does not fit" : ": all activations fit";
    if (n)
        reason(r, "recompute %d of %d %s%s%s", n, all, each, many, why);
    else
        reason(r, "recompute none of %d %s%s%s", all, each, many, why);
}

static void explain_products(report *r) {
    const task *s = r->s;
    if (s->products == PRODUCTS_AUTO) return;
    bool described = s->described.products != PRODUCTS_AUTO;
    reason(r, "products  %s: %s", settings_products_name(s->products),
        described ? "gpu_optimization.products says so" : "tuned");
}

static void explain_fallback(report *r) {
    const task *s = r->s;
    if (s->precision != PRECISION_FP16) return;
    if (s->job.fallback)
        reason(r, "fallback  %s should fp16 overflow, which takes %.1f MB more (gpu_optimization.fp16_fallback)",
            precision_name(s->job.fallback->precision), mb(r->memory.fallback));
    else
        reason(r, "fallback  none: gpu_optimization.fp16_fallback says so");
}

static void explain(report *r) {
    const choice *c = &r->s->choice;
    char line[WISDOM_LINE + 64];
    if (task_tuned_line(r->s, line, sizeof line)) reason(r, "tuned     %s", line);
    explain_place(r);
    explain_split(r);
    explain_recompute(r);
    explain_products(r);
    explain_fallback(r);
    reason(r, "time      %.2f times that of the fastest plan without a limit, by a guess",
        c->best.seconds / c->fastest.seconds);
}

// Figures

static void add_figure(report *r, figure f) {
    if (f.bytes || f.sum || f.always) r->figure[r->figures++] = f;
}

// The host's memory: on the CPU a part of the total, beside a card not.
static void count_host(report *r) {
    add_figure(r, (figure){"batches on the host", "ring", r->demand.ring, true, false, false});
    add_figure(r, (figure){"copies on the host", "copies", r->demand.copies, true, false, false});
}

static void count_memory(report *r) {
    const engine_memory *m = &r->memory;
    const budget *b = &r->s->budget;
    const figure slab[] = {
        {"base", "base", b->base, b->counted, false, true},
        {"data", "data", m->data, true, false, false},
        {"weights", "weights", m->weights, true, false, false},
        {"gradients", "gradients", m->gradients, true, false, false},
        {"moments", "moments", m->moments, true, false, false},
        {"states", "states", m->states, true, false, false},
        {"staging", "staging", m->staging, true, false, false},
        {"activations", "activations", m->activations, true, false, false},
        {"cursors and tables", "tables", m->recordings, true, false, false},
        {"more for fp16's fallback", "fallback", m->fallback, true, false, r->s->job.fallback != NULL},
        {"slab", "slab", m->total, true, true, false},
    };
    const figure all[] = {
        {"recordings", "recordings", r->demand.recorded, true, false, false},
        {"allowance", "allowance", b->allowance, true, false, false},
        {"total", "total", budget_least(b, &r->demand), b->counted, true, false},
        {"limit", "limit", b->limit, b->limited, false, true},
        {"free", "free", b->free, true, false, true},
    };
    for (size_t i = 0; i < sizeof slab / sizeof *slab; i++) add_figure(r, slab[i]);
    if (b->host) count_host(r);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) add_figure(r, all[i]);
    if (!b->host) count_host(r);
}

// Alternatives

// A way that was tuned may be one that the planner does not look at.
static int add_chosen(const way *chosen, way *list, int count) {
    for (int i = 0; i < count; i++)
        if (choose_same_way(&list[i], chosen)) return count;
    list[count] = *chosen;
    return count + 1;
}

static void count_others(report *r) {
    const task *s = r->s;
    way list[OTHERS_MOST];
    int n = choose_others(&s->chooser, &s->budget, &s->choice.best, list, OTHERS_MOST - 1);
    n = add_chosen(&s->choice.best, list, n);
    for (int i = 0; i < n; i++) {
        demand d = choose_demand(&s->chooser, &list[i]);
        r->other[r->others++] = (other){list[i], budget_least(&s->budget, &d), budget_takes(&s->budget, &d)};
    }
    bool host = s->choice.best.host;
    for (int k = 0; k < 2; k++) r->largest[k] = choose_largest(&s->chooser, &s->budget, host, k);
    r->smallest = choose_least(&s->chooser, &s->budget);
    demand least = choose_demand(&s->chooser, &r->smallest);
    r->least = budget_least(&s->budget, &least);
    choose_apply(&s->chooser, &s->choice.best);
}

static report make_report(const task *s, const char *bars) {
    report r = {.s = s, .bars = bars};
    r.memory = task_memory(s);
    r.demand = task_demand(s);
    program_options o = {.graph = s->job.g,
        .rows = s->settings.batch_size,
        .passes = PASSES_OF_TRAINING,
        .recompute = s->settings.again};
    r.program = program_new(s->device, s->queue, &o);
    r.plan = program_plan(r.program);
    r.picture = slab_draw(r.plan, s->job.g);
    explain(&r);
    count_memory(&r);
    count_others(&r);
    return r;
}

// Text

static void print_figures(const report *r) {
    printf("\nmemory, MB\n");
    for (int i = 0; i < r->figures; i++) {
        const figure *f = &r->figure[i];
        if (f->known)
            printf("%s%-28s %10.1f\n", f->sum ? "= " : "  ", f->name, mb(f->bytes));
        else
            printf("  %-28s %10s\n", f->name, strcmp(f->key, "limit") == 0 ? "none" : "unknown");
    }
}

static void print_bounds(const report *r) {
    char rows[2][32];
    int again = choose_again_most(&r->s->chooser);
    const way *w = &r->smallest;
    for (int k = 0; k < 2; k++) term_count(rows[k], sizeof rows[k], (double)r->largest[k]);
    printf("\nlargest   %s rows in one micro-batch, nothing recomputed", rows[0]);
    if (again && r->s->described.recompute == RECOMPUTE_AUTO)
        printf("; %s with %d %s%s recomputed", rows[1], again, lines_segment(r->s->model.kind), again == 1 ? "" : "s");
    printf("\nsmallest  a limit of %.2f GB works: %lld x %lld rows, %d recomputed, data %s\n", budget_gb(r->least),
        (long long)w->parts, (long long)w->batch, w->again, w->host ? "streamed" : "on the device");
}

static void print_others(const report *r) {
    const way *best = &r->s->choice.best;
    printf("\n%12s %10s %9s  %-9s %10s %6s  %s\n", "micro-batch", "of a step", "recompute", "data", "total MB", "time",
        "");
    for (int i = 0; i < r->others; i++) {
        const other *o = &r->other[i];
        const way *w = &o->way;
        bool taken = choose_same_way(w, best);
        printf("%12lld %10lld %9d  %-9s %10.1f %6.2f  %s\n", (long long)w->batch, (long long)w->parts, w->again,
            w->host ? "streamed" : "device", mb(o->bytes), w->seconds / best->seconds,
            taken     ? "chosen"
            : o->fits ? ""
                      : "does not fit");
    }
}

static void print_text(const report *r) {
    show_task(r->s, r->bars, stdout);
    show_keys(r->s, false, stdout);
    printf("\nchosen\n");
    for (int i = 0; i < r->reasons; i++) printf("  %s\n", r->why[i]);
    print_figures(r);
    putchar('\n');
    slab_print(&r->picture, r->plan->peak, stdout);
    print_bounds(r);
    print_others(r);
    putchar('\n');
    plan_print(r->plan, r->s->job.g, stdout);
}

// JSON

static json_t *way_object(const way *w, double relative) {
    return json_pack("{s:s, s:I, s:I, s:i, s:o}", "residency", w->host ? "host" : "device", "micro_batch",
        (json_int_t)w->batch, "accumulation", (json_int_t)w->parts, "again", w->again, "time", json_number(relative));
}

static json_t *picture_object(const report *r) {
    json_t *rows = json_array();
    for (int i = 0; i < SLAB_ROWS; i++) json_array_append_new(rows, json_string(r->picture.cell[i]));
    return json_pack("{s:o, s:s, s:i, s:I}", "rows", rows, "phases", r->picture.phase, "peak", r->picture.peak, "bytes",
        (json_int_t)r->plan->peak);
}

static json_t *figures_object(const report *r) {
    json_t *all = json_object();
    for (int i = 0; i < r->figures; i++)
        json_object_set_new(all, r->figure[i].key, json_bytes(r->figure[i].known ? (double)r->figure[i].bytes : NAN));
    return all;
}

static json_t *others_array(const report *r) {
    json_t *all = json_array();
    for (int i = 0; i < r->others; i++) {
        json_t *each = way_object(&r->other[i].way, r->other[i].way.seconds / r->s->choice.best.seconds);
        json_object_set_new(each, "total_bytes", json_integer((json_int_t)r->other[i].bytes));
        json_object_set_new(each, "fits", json_boolean(r->other[i].fits));
        json_array_append_new(all, each);
    }
    return all;
}

static json_t *reasons_array(const report *r) {
    json_t *all = json_array();
    for (int i = 0; i < r->reasons; i++) json_array_append_new(all, json_string(r->why[i]));
    return all;
}

// The tuned entry for this batch, or null.
static json_t *tuned_object(const task *s) {
    const wisdom_entry *w = &s->tuned.entry;
    if (s->tuned.state != WISDOM_FOUND) return json_null();
    return json_pack("{s:s, s:I, s:I, s:I, s:s, s:s, s:i, s:f, s:f, s:b, s:b}", "when", s->tuned.when, "batch",
        (json_int_t)w->batch, "micro_batch", (json_int_t)w->micro, "accumulation", (json_int_t)w->parts, "precision",
        precision_name(w->precision), "products", settings_products_name(w->products), "threads", w->threads,
        "samples_per_s", w->samples_per_s, "noise_scale", w->noise_scale, "winner", s->tuned.winner, "used",
        s->tuned_way);
}

static void print_json(const report *r) {
    const task *s = r->s;
    const engine_memory *m = &r->memory;
    const budget *b = &s->budget;
    const choice *c = &s->choice;
    json_t *line = json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "model",
        model_name(s->model.kind), "device", s->device->name, "batch", (json_int_t)s->settings.batch_size,
        "accumulation", (json_int_t)s->settings.accumulation, "parameters",
        (json_int_t)graph_parameter_values(s->job.g), "slab_bytes", (json_int_t)m->total, "activation_bytes",
        (json_int_t)m->activations, "alive_bytes", (json_int_t)m->floor, "weight_bytes", (json_int_t)m->weights,
        "dataset_bytes", (json_int_t)dataset_bytes(s->data), "blocks", (json_int_t)r->plan->blocks);
    json_join(line, json_pack("{s:s, s:I, s:I, s:o, s:o}", "residency", s->job.host ? "host" : "device",
                        "staging_bytes", (json_int_t)m->staging, "ring_bytes", (json_int_t)r->demand.ring, "base_bytes",
                        json_bytes(b->counted ? (double)b->base : NAN), "limit_bytes",
                        json_bytes(b->limited ? (double)b->limit : NAN)));
    json_join(
        line, json_pack("{s:b, s:o, s:o, s:o, s:o, s:o, s:o}", "fits", c->fits, "choice",
                  way_object(&c->best, c->best.seconds / c->fastest.seconds), "why", reasons_array(r), "memory",
                  figures_object(r), "picture", picture_object(r), "smallest",
                  way_object(&r->smallest, r->smallest.seconds / c->fastest.seconds), "alternatives", others_array(r)));
    json_join(line, json_pack("{s:s, s:s, s:o}", "products", settings_products_name(s->products), "precision",
                        precision_name(s->precision), "tuned", tuned_object(s)));
    json_object_set_new(
        line, "fallback", s->job.fallback ? json_string(precision_name(s->job.fallback->precision)) : json_null());
    json_join(line, json_pack("{s:I, s:I, s:I, s:o}", "largest_batch", (json_int_t)r->largest[0], "largest_batch_again",
                        (json_int_t)r->largest[1], "smallest_limit_bytes", (json_int_t)r->least, "smallest_limit_gb",
                        json_number(budget_gb(r->least))));
    show_keys(s, true, stdout);
    show_overlap(s, true, stdout);
    json_line(stdout, line);
}

// Takes the report of bar files.
typedef struct {
    const cli_options *o;
    char *bars;
} view;

static bool on_event(void *arg, const task_event *e) {
    view *v = arg;
    if (e->kind == TASK_BARS && !v->o->quiet && !v->o->json) v->bars = show_bars(e, v->o->verbose);
    return true;
}

static bool show(const task *t, const view *v, err *e) {
    if (t->options.resume && !run_is(t->settings.dir))
        return err_input(e, "%s: there is no run to resume; leave --resume out", t->settings.dir);
    report r = make_report(t, v->bars);
    v->o->json ? print_json(&r) : print_text(&r);
    program_free(r.program);
    return true;
}

static bool run_plan(const cli_options *o, err *e) {
    task t;
    task_options ask;
    view v = {.o = o};
    if (!ask_task(o, &ask, e)) return false;
    ask.listener = (task_listener){on_event, &v};
    if (!task_describe_run(&t, &ask, e)) return false;
    bool agent = agent_given(t.config);
    task_close(&t);
    bool ok = agent ? agent_plan_command(o, &ask, &v.bars, e) : task_open(&t, &ask, e);
    if (ok && !agent) {
        ok = show(&t, &v, e);
        task_close(&t);
    }
    free(v.bars);
    return ok;
}

const cli_command cli_plan = {"plan", "CONFIG [key=value...]",
    "what would run and why, and a map of the memory it takes; runs nothing",
    "It says what the planner chose and why, where the memory goes, the largest batch, the smallest limit that works,\n"
    "and what other plans would take (doc/memory.md).\n"
    "--device-memory 8GB --arch sm_86 plans for a card that is not here (GB: 2^30 bytes). What kernels need, and the\n"
    "precisions that they have there, come from the CUDA plug-in where it is installed; the base is an estimate.\n"
    "--resume plans for the run in run.dir that `tradewind train --resume` would go on with, whose split it keeps.\n",
    NULL, "--seed", WORDS_MOST, run_plan, "--device-memory --arch", "--resume"};
