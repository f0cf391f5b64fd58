#include "train/choose.h"

#include "base/err.h"
#include "ops/ops.h"
#include "train/predictor.h"
#include "train/trainer.h"

// A device's rates, and the cost of starting work there.
typedef struct {
    double products, bytes, copied; // a second
    double call, step;              // seconds of one; steps are those of a sequence, one after the other
    int64_t rows_least;
} rates;

// Rates of an H200 in the timed cases of bench/results, and of its bus; of a processor of a few cores.
static rates rates_of(const chooser *c, precision p) {
    if (c->device->host_memory)
        return (rates){.products = 3e10, .bytes = 1e10, .copied = 5e9, .call = 5e-6, .rows_least = 32};
    rates r = {.products = 2e13, .bytes = 4e12, .copied = 2.5e10, .call = 3e-6, .step = 1e-6, .rows_least = 256};
    if (p == PRECISION_TF32) r.products = 4e13;
    if (p == PRECISION_BF16 || p == PRECISION_FP16) r.products = 1.4e14;
    if (p == PRECISION_BF16 || p == PRECISION_FP16) r.step = 2e-7;
    return r;
}

static job *job_of(const chooser *c, bool host) {
    return host ? c->far : c->near;
}

// The guess

// Cost of one row of a micro-batch; calls and steps are those of all rows.
typedef struct {
    double products, bytes, calls, steps;
} load;

static double row_bytes(const graph *g, tensor t) {
    const tensor_info *i = t.id ? graph_info(g, t) : NULL;
    if (!i || (i->role != ROLE_ACTIVATION && i->role != ROLE_STATE)) return 0;
    return (double)shape_count(shape_resolve(i->shape, 1)) * (double)dtype_bytes(i->type);
}

static void add_node(load *to, const graph *g, const node *n, double times) {
    double bytes = 0;
    for (int i = 0; i < n->inputs; i++) bytes += row_bytes(g, n->input[i]);
    for (int i = 0; i < n->outputs; i++) bytes += row_bytes(g, n->output[i]);
    double passes = times < 3 ? times : 2;
    to->products += times * graph_products(g, n, 1);
    to->bytes += times * bytes;
    to->calls += passes;
    if (op_traits((op)n->op) & BY_STEPS) to->steps += passes * (double)graph_info(g, n->input[0])->shape.dim[1];
}

// Backward has two products for each of forward.
static load load_of(const graph *g, int again) {
    load l = {0};
    for (int i = 0; i < graph_nodes(g); i++) {
        const node *n = graph_node(g, i);
        if (n->phase != PHASE_FORWARD) continue;
        add_node(&l, g, n, n->backward ? 3 : 1);
        if (n->segment && n->segment <= again) add_node(&l, g, n, 1);
    }
    return l;
}

static double fed_bytes(const job *j) {
    double sum = 0;
    for (int i = 1; i <= graph_tensors(j->g); i++)
        if (shape_is_batch(graph_info(j->g, (tensor){i})->shape) && graph_info(j->g, (tensor){i})->role == ROLE_STATE)
            sum += row_bytes(j->g, (tensor){i});
    return sum;
}

// Gathering on the device is counted for batches from the host too: they are never the faster way by that alone.
double choose_seconds(const chooser *c, const way *w) {
    const job *j = job_of(c, w->host);
    rates r = rates_of(c, j->precision);
    load l = load_of(c->near ? c->near->g : j->g, w->again);
    double rows = (double)(w->batch > r.rows_least ? w->batch : r.rows_least);
    double computed = rows * (l.products / r.products + l.bytes / r.bytes) + l.calls * r.call + l.steps * r.step;
    double fed = fed_bytes(j) * (double)w->batch / r.copied;
    double each = c->device->host_memory ? computed + fed : computed > fed ? computed : fed;
    double update = 16 * (double)graph_slab_elements(j->g) / r.bytes;
    return (double)w->parts * each + update;
}

// The memory

settings choose_apply(const chooser *c, const way *w) {
    settings s = *c->settings;
    s.residency = w->host ? RESIDENCY_HOST : RESIDENCY_DEVICE;
    s.batch_size = w->batch;
    s.accumulation = w->parts;
    s.again = w->again;
    job_split(job_of(c, w->host), &s);
    return s;
}

engine_memory choose_memory(const chooser *c, const way *w) {
    settings s = choose_apply(c, w);
    return trainer_memory(job_of(c, w->host), c->split, &s, c->device, c->queue);
}

size_t choose_weights(const graph *g) {
    return (size_t)graph_slab_elements(g) * sizeof(float);
}

size_t choose_copies(const graph *g) {
    size_t copies = 2 + (size_t)graph_uses_slab(g, SLAB_MOMENT1) + (size_t)graph_uses_slab(g, SLAB_MOMENT2);
    return copies * choose_weights(g);
}

// N-BEATS of 30 blocks on an H200 took some 20 kB a call more than a job of few calls, beside the tables in the space.
size_t choose_recorded(const graph *g, int again, bool training) {
    size_t calls = training ? (size_t)load_of(g, again).calls : (size_t)graph_nodes(g);
    return calls * (24 << 10);
}

static demand demand_with(const chooser *c, const way *w, const engine_memory *m) {
    const job *j = job_of(c, w->host);
    settings s = choose_apply(c, w);
    loader_options o = job_loader(j, &s, !c->device->host_memory);
    demand n = {.slab = m->total, .copies = choose_copies(j->g)};
    if (!c->device->host_memory) n.recorded = choose_recorded(j->g, w->again, true);
    if (w->host) n.ring = loader_measure(j->data, &o);
    return n;
}

demand choose_demand(const chooser *c, const way *w) {
    engine_memory m = choose_memory(c, w);
    return demand_with(c, w, &m);
}

// The search
//
// Time rises with the parts of a split and with the segments recomputed. Memory does not always fall with them:
// recomputing may take more than it saves where the peak lies elsewhere, and small blocks are kept longer than large
// ones (graph/plan.h), so that a smaller micro-batch may take more than a larger one. So every amount of recomputation
// is looked at by itself. Within one amount, fewer parts take more memory, except for small blocks, whose share is at
// most an eighth and 4 MB of the plan. So a split's memory, less that share and a margin for how blocks happen to lie,
// is a lower bound for every split with fewer parts.

enum {
    PARTS_ROOM = 160, // all up to 8, then at least a quarter more each time, to 10^13: 140
    AGAIN_ROOM = 9,   // amounts recomputed: all of so many, or so many spread over them
};

// A way, as far as it was looked at.
typedef struct {
    bool timed, measured;
    double seconds;
    demand demand;
    size_t need, floor; // bytes, as budget_need has them; those that no split with fewer parts is below
} looked;

typedef struct {
    const chooser *c;
    const budget *b;
    int64_t parts[PARTS_ROOM]; // rising
    int count;
    int again[AGAIN_ROOM]; // segments recomputed, rising
    int agains;
    double most[2]; // seconds of what is offered, by place
    way least;      // takes the least memory, so many bytes
    size_t least_need;
    bool any; // there is one
    choice found;
    looked way[2][AGAIN_ROOM][PARTS_ROOM];
} search;

static way way_of(search *s, bool host, int i, int k) {
    const settings *d = s->c->settings;
    looked *l = &s->way[host][k][i];
    way w = {.host = host, .parts = s->parts[i], .again = s->again[k]};
    w.batch = d->batch_size * d->accumulation / w.parts;
    if (!l->timed) l->seconds = choose_seconds(s->c, &w);
    l->timed = true;
    w.seconds = l->seconds;
    return w;
}

static const looked *look(search *s, bool host, int i, int k) {
    looked *l = &s->way[host][k][i];
    way w = way_of(s, host, i, k);
    if (l->measured) return l;
    engine_memory m = choose_memory(s->c, &w);
    size_t planned = m.activations + m.fallback;
    size_t extra = planned / 5 + (4 << 20);
    l->demand = demand_with(s->c, &w, &m);
    l->need = budget_need(s->b, &l->demand);
    l->floor = l->need > extra ? l->need - extra : 0;
    l->measured = true;
    s->found.looks++;
    return l;
}

// Splits that are fast enough: so many, from the first on.
static int offered(search *s, bool host, int k) {
    int n = 0;
    while (n < s->count && way_of(s, host, n, k).seconds <= s->most[host]) n++;
    return n;
}

// The faster of two that take the same stays.
static void note_least(search *s, const way *w, size_t need) {
    bool less = !s->any || need < s->least_need;
    if (!less && (need > s->least_need || w->seconds >= s->least.seconds)) return;
    s->any = true;
    s->least_need = need;
    s->least = *w;
}

// The way that takes the least memory, among those with so much recomputed and what was found before.
static void look_among(search *s, bool host, int k) {
    for (int i = offered(s, host, k) - 1; i >= 0; i--) {
        const looked *l = look(s, host, i, k);
        if (s->any && l->floor > s->least_need) return;
        way w = way_of(s, host, i, k);
        note_least(s, &w, l->need);
    }
}

// From the most recomputed on: it is most often there, and the rest then needs few looks.
static way least(search *s) {
    for (int host = 0; host < 2; host++)
        for (int k = s->agains - 1; job_of(s->c, host) && k >= 0; k--) look_among(s, host, k);
    CHECK(s->any, "no plan of a job was looked at");
    return s->least;
}

// True if a split is so far from fitting that none with fewer parts fits. Fewer parts mean no smaller batches on the
// host.
static bool is_far(search *s, bool host, int i, int k) {
    const looked *l = look(s, host, i, k);
    demand beside = {.ring = l->demand.ring, .copies = l->demand.copies};
    return l->floor > s->b->slab || !budget_takes(s->b, &beside);
}

// The first split that fits with so much recomputed, if that is faster than what was found before; the first of
// equals stays.
static void look_for_best(search *s, bool host, int k) {
    int low = 0, end = offered(s, host, k);
    while (s->found.fits && end > 0 && way_of(s, host, end - 1, k).seconds >= s->found.best.seconds) end--;
    if (!end || is_far(s, host, end - 1, k)) return;
    for (int high = end; low < high;) {
        int middle = (low + high) / 2;
        if (is_far(s, host, middle, k))
            low = middle + 1;
        else
            high = middle;
    }
    while (low < end && !budget_takes(s->b, &look(s, host, low, k)->demand)) low++;
    if (low == end) return;
    s->found.best = way_of(s, host, low, k);
    s->found.fits = true;
}

// One that is hardly more than the one before it is left out.
static void add_parts(search *s, int64_t parts) {
    int64_t before = s->count ? s->parts[s->count - 1] : 0;
    if (s->count && (parts <= before || (before >= 8 && parts < before + before / 4))) return;
    CHECK(s->count < PARTS_ROOM, "more than %d splits", PARTS_ROOM);
    s->parts[s->count++] = parts;
}

// Divisors of the effective batch, rising.
static void list_parts(search *s) {
    const settings *d = s->c->settings;
    int64_t effective = d->batch_size * d->accumulation, k = 1;
    if (s->c->parts || !d->split_open) {
        add_parts(s, s->c->parts ? s->c->parts : d->accumulation);
        return;
    }
    for (; k * k <= effective; k++)
        if (effective % k == 0) add_parts(s, k);
    for (; k > 0; k--)
        if (effective % k == 0) add_parts(s, effective / k);
}

// Segments recomputed: as many as the description says; or from none to all but one, which is computed at once.
static void list_again(search *s) {
    const job *j = s->c->near ? s->c->near : s->c->far;
    int segments = graph_segments(j->g), asked = s->c->settings->recompute;
    int most = segments > 1 ? segments - 1 : 0, steps = most < AGAIN_ROOM ? most : AGAIN_ROOM - 1;
    if (asked != RECOMPUTE_AUTO) {
        s->again[s->agains++] = asked;
        return;
    }
    s->again[s->agains++] = 0;
    for (int k = 1; k <= steps; k++) s->again[s->agains++] = most * k / steps;
}

// Without a limit a plan is judged by the fastest of its place. Under one, by the fastest of all that the device has
// the room for: data that are larger than a card are streamed with any limit.
static void set_pace(search *s) {
    const chooser *c = s->c;
    way near = c->near ? way_of(s, false, 0, 0) : (way){0}, far = c->far ? way_of(s, true, 0, 0) : (way){0};
    bool limited = s->b->limited || s->b->host_limit;
    bool room = c->near && (!c->far || choose_memory(c, &near).data <= s->b->free);
    s->found.looks += c->near && c->far;
    s->found.fastest = room && (!c->far || near.seconds <= far.seconds) ? near : far;
    s->most[0] = 2 * (limited ? s->found.fastest.seconds : near.seconds);
    s->most[1] = 2 * (limited ? s->found.fastest.seconds : far.seconds);
}

static void search_init(search *s, const chooser *c, const budget *b) {
    *s = (search){.c = c, .b = b};
    list_parts(s);
    list_again(s);
    set_pace(s);
}

choice choose_way(const chooser *c, const budget *b) {
    search s;
    search_init(&s, c, b);
    for (int host = 0; host < 2; host++)
        for (int k = 0; job_of(c, host) && k < s.agains; k++) look_for_best(&s, host, k);
    if (!s.found.fits) s.found.best = least(&s);
    return s.found;
}

static bool rows_fit(const chooser *c, const budget *b, const way *w) {
    const job *j = job_of(c, w->host);
    settings s = choose_apply(c, w);
    loader_options o = job_loader(j, &s, !c->device->host_memory);
    demand n = {.slab = predictor_memory(j, &s, c->device, c->queue).total, .copies = choose_weights(j->g)};
    if (!c->device->host_memory) n.recorded = choose_recorded(j->g, 0, false);
    if (w->host) n.ring = loader_measure(j->data, &o);
    return budget_takes(b, &n);
}

choice choose_rows(const chooser *c, const budget *b) {
    choice found = {0};
    for (int64_t rows = c->settings->batch_size;; rows /= 2)
        for (int host = 0; host < 2; host++) {
            if (!job_of(c, host)) continue;
            found.best = (way){.host = host, .batch = rows, .parts = 1};
            found.looks++;
            found.fits = rows_fit(c, b, &found.best);
            if (found.fits || (rows == 1 && (host || !c->far))) return found;
        }
}

way choose_least(const chooser *c, const budget *b) {
    search s;
    budget limited = *b; // what a limit takes is asked, also where none is set
    limited.limited = true;
    search_init(&s, c, &limited);
    return least(&s);
}

bool choose_same_way(const way *a, const way *b) {
    return a->host == b->host && a->parts == b->parts && a->again == b->again;
}

int choose_again_most(const chooser *c) {
    search s = {.c = c};
    list_again(&s);
    return s.again[s.agains - 1];
}

// The last amount recomputed with which a split is offered, which it is with the first.
static int last_again(search *s, bool host, int i) {
    int k = s->agains - 1;
    while (k > 0 && way_of(s, host, i, k).seconds > s->most[host]) k--;
    return k;
}

int choose_others(const chooser *c, const budget *b, const way *chosen, way *list, int room) {
    enum { SPLITS = 6 };
    search s;
    int count = 0, at = 0;
    search_init(&s, c, b);
    while (at < s.count && s.parts[at] < chosen->parts) at++;
    for (int host = 0; host < 2; host++) {
        int n = job_of(c, host) ? offered(&s, host, 0) : 0, end = at + 2 < n ? at + 2 : n;
        for (int i = end > SPLITS ? end - SPLITS : 0; i < end && count + 3 <= room; i++) {
            int last = last_again(&s, host, i);
            bool own = chosen->host == host && i == at && chosen->again > s.again[0] && chosen->again < s.again[last];
            list[count++] = way_of(&s, host, i, 0);
            if (own) list[count++] = *chosen;
            if (last) list[count++] = way_of(&s, host, i, last);
        }
    }
    return count;
}

int64_t choose_largest(const chooser *c, const budget *b, bool host, bool again) {
    enum { MOST = 10000000 };
    search s = {.c = c, .b = b};
    list_again(&s);
    way w = {.host = host, .parts = 1, .again = s.again[again ? s.agains - 1 : 0]};
    int64_t low = 0, high = MOST + 1; // low fits, high does not
    for (int64_t step = 1; low + 1 < high;) {
        int64_t middle = low + step < high && step ? low + step : low + (high - low) / 2;
        w.batch = middle;
        demand n = choose_demand(c, &w);
        if (budget_takes(b, &n)) {
            low = middle;
            step *= 2;
        } else {
            high = middle;
            step = 0;
        }
    }
    return low;
}
