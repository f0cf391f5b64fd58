#include "train/choose.h"

#include "base/err.h"
#include "ops/ops.h"

// What a device does and what starting costs there.
typedef struct {
    double products, bytes, copied; // a second
    double call, step;              // seconds of one; steps are those of a sequence, one after the other
    int64_t rows_least;
} rates;

// What an H200 reached in the timed cases of bench/results, and its bus; a processor of a few cores.
static rates rates_of(const chooser *c, precision p) {
    if (c->host_memory) return (rates){.products = 3e10, .bytes = 1e10, .copied = 5e9, .call = 5e-6, .rows_least = 32};
    rates r = {.products = 2e13, .bytes = 4e12, .copied = 2.5e10, .call = 2e-6, .step = 1e-6, .rows_least = 256};
    if (p == PRECISION_TF32) r.products = 4e13;
    if (p == PRECISION_BF16 || p == PRECISION_FP16) r.products = 1e14;
    if (p == PRECISION_BF16 || p == PRECISION_FP16) r.step = 2e-7;
    return r;
}

static job *job_of(const chooser *c, bool host) {
    return host ? c->far : c->near;
}

// The guess

// What a row of a micro-batch costs; calls and steps are of all rows.
typedef struct {
    double products, bytes, calls, steps;
} load;

static double row_bytes(const graph *g, tensor t) {
    const tensor_info *i = t.id ? graph_info(g, t) : NULL;
    if (!i || (i->role != ROLE_ACTIVATION && i->role != ROLE_STATE)) return 0;
    return (double)shape_count(shape_resolve(i->shape, 1)) * (double)dtype_bytes(i->type);
}

static void add_node(load *to, const graph *g, const node *n, double times) {
    shape x = n->inputs && n->input[0].id ? shape_resolve(graph_info(g, n->input[0])->shape, 1) : shape1(1);
    double rows = (double)shape_count(x) / (double)shape_last(x), bytes = 0;
    for (int i = 0; i < n->inputs; i++) {
        const tensor_info *t = n->input[i].id ? graph_info(g, n->input[i]) : NULL;
        if (t && t->role == ROLE_PARAMETER) to->products += times * rows * (double)shape_count(t->shape);
        bytes += row_bytes(g, n->input[i]);
    }
    for (int i = 0; i < n->outputs; i++) bytes += row_bytes(g, n->output[i]);
    double passes = times < 3 ? times : 2;
    to->bytes += times * bytes;
    to->calls += passes;
    if (n->op == OP_lstm) to->steps += passes * (double)x.dim[1];
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
    for (int i = 0; i < j->feeds; i++) sum += row_bytes(j->g, j->feed[i].state);
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
    double each = c->host_memory ? computed + fed : computed > fed ? computed : fed;
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

exec_memory choose_memory(const chooser *c, const way *w) {
    settings s = choose_apply(c, w);
    return job_memory(job_of(c, w->host), &s, c->kernels, c->host_memory);
}

size_t choose_copies(const graph *g) {
    size_t copies = 3 + (size_t)graph_uses_slab(g, SLAB_MOMENT1) + (size_t)graph_uses_slab(g, SLAB_MOMENT2);
    return copies * (size_t)graph_slab_elements(g) * sizeof(float);
}

demand choose_demand(const chooser *c, const way *w) {
    const job *j = job_of(c, w->host);
    settings s = choose_apply(c, w);
    loader_options o = job_loader(j, &s, !c->host_memory);
    demand n = {.slab = choose_memory(c, w).total, .copies = choose_copies(j->g)};
    if (w->host) n.ring = loader_measure(j->data, &o);
    return n;
}

// The search

enum { PARTS_ROOM = 256 }; // all up to 8, then at least a quarter more each time, to 10^13: 140

typedef struct {
    const chooser *c;
    const budget *b;
    int64_t parts[PARTS_ROOM]; // rising
    int count;
    int low, high;     // segments computed again: at least, at most
    double most[2];    // seconds of what is offered, by place
    size_t least_need; // of choice.least
    bool any;          // choice.least is there
    choice found;
} search;

static way way_of(const search *s, bool host, int i, int again) {
    const settings *d = s->c->settings;
    way w = {.host = host, .parts = s->parts[i], .again = again};
    w.batch = d->batch_size * d->accumulation / w.parts;
    w.seconds = choose_seconds(s->c, &w);
    return w;
}

static bool fits(search *s, const way *w, demand *n) {
    *n = choose_demand(s->c, w);
    s->found.looks++;
    return budget_takes(s->b, n);
}

static bool is_in(search *s, bool host, int i, int again) {
    demand unused;
    way w = way_of(s, host, i, again);
    return fits(s, &w, &unused);
}

// The faster of two plans stays, the first of equals.
static void offer(search *s, way w) {
    if (s->found.fits && w.seconds >= s->found.best.seconds) return;
    s->found.best = w;
    s->found.fits = true;
}

// The most segments computed again that are still fast enough; below `low` where none are.
static int again_most(const search *s, bool host, int i) {
    int low = s->low - 1, high = s->high;
    while (low < high) {
        int middle = (low + high + 1) / 2;
        if (way_of(s, host, i, middle).seconds <= s->most[host])
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

// Splits that are fast enough: so many, from the first on, as time rises with the parts.
static int offered(const search *s, bool host) {
    int n = 0;
    while (n < s->count && way_of(s, host, n, s->low).seconds <= s->most[host]) n++;
    return n;
}

// The ways that take the least memory: the most parts, and fewer ones where more can be computed again. True where one
// of them fits.
static bool look_at_least(search *s, bool host, int n) {
    bool any = false;
    for (int i = n - 1, most = s->low - 1; i >= 0 && most < s->high; i--) {
        int again = again_most(s, host, i);
        if (again <= most) continue;
        most = again;
        way w = way_of(s, host, i, again);
        demand d;
        bool in = fits(s, &w, &d);
        if (in) offer(s, w);
        any |= in;
        size_t need = budget_need(s->b, &d);
        if (s->any && need >= s->least_need) continue;
        s->any = true;
        s->least_need = need;
        s->found.least = w;
    }
    return any;
}

// The first split that fits with as little computed again as may be, or (`more`) as much; n where none does.
static int first_split(search *s, bool host, int n, bool more) {
    int low = 0, high = n;
    while (low < high) {
        int middle = (low + high) / 2;
        if (is_in(s, host, middle, more ? again_most(s, host, middle) : s->low))
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

// The fewest segments computed again, at most `high`, with which a split fits; -1 where it does not.
static int first_again(search *s, bool host, int i, int high) {
    int low = s->low, most = high;
    while (low < high) {
        int middle = (low + high) / 2;
        if (is_in(s, host, i, middle))
            high = middle;
        else
            low = middle + 1;
    }
    return low < most || is_in(s, host, i, most) ? low : -1;
}

// Memory falls with the parts and with what is computed again. So: the first split that fits by itself; of those before
// it, as long as they could be faster, the fewest segments.
static void look_at_place(search *s, bool host) {
    int n = offered(s, host);
    if (!n || !look_at_least(s, host, n)) return;
    if (s->found.fits && way_of(s, host, 0, s->low).seconds >= s->found.best.seconds) return;
    int whole = first_split(s, host, n, false);
    if (whole < n) offer(s, way_of(s, host, whole, s->low));
    if (s->low == s->high) return;
    for (int i = first_split(s, host, whole, true); i < whole; i++) {
        if (way_of(s, host, i, s->low + 1).seconds >= s->found.best.seconds) break;
        int again = first_again(s, host, i, again_most(s, host, i));
        if (again >= 0) offer(s, way_of(s, host, i, again));
    }
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

static void set_range(search *s) {
    const job *j = s->c->near ? s->c->near : s->c->far;
    int segments = graph_segments(j->g), asked = s->c->settings->recompute;
    s->low = asked == RECOMPUTE_AUTO ? 0 : asked;
    s->high = asked == RECOMPUTE_AUTO ? (segments ? segments - 1 : 0) : asked;
}

// Without a limit a plan is judged by the fastest of its place. Under one, by the fastest of all that the device has
// the room for: data that are larger than a card are streamed with any limit.
static void set_pace(search *s) {
    const chooser *c = s->c;
    way near = c->near ? way_of(s, false, 0, s->low) : (way){0}, far = c->far ? way_of(s, true, 0, s->low) : (way){0};
    bool limited = s->b->limited || s->b->host_limit;
    bool room = c->near && (!c->far || choose_memory(c, &near).constants <= s->b->free);
    s->found.looks += c->near && c->far;
    s->found.fastest = room && (!c->far || near.seconds <= far.seconds) ? near : far;
    s->most[0] = 2 * (limited ? s->found.fastest.seconds : near.seconds);
    s->most[1] = 2 * (limited ? s->found.fastest.seconds : far.seconds);
}

choice choose_way(const chooser *c, const budget *b) {
    search s = {.c = c, .b = b};
    list_parts(&s);
    set_range(&s);
    set_pace(&s);
    if (c->near) look_at_place(&s, false);
    if (c->far) look_at_place(&s, true);
    CHECK(s.any, "no plan of a job was looked at");
    if (!s.found.fits) s.found.best = s.found.least;
    return s.found;
}

int choose_again_most(const chooser *c) {
    search s = {.c = c};
    set_range(&s);
    return s.high;
}

int choose_others(const chooser *c, const budget *b, const way *chosen, way *list, int room) {
    enum { SPLITS = 6 };
    search s = {.c = c, .b = b};
    int count = 0, at = 0;
    list_parts(&s);
    set_range(&s);
    set_pace(&s);
    while (at < s.count && s.parts[at] < chosen->parts) at++;
    for (int host = 0; host < 2; host++) {
        int n = job_of(c, host) ? offered(&s, host) : 0, end = at + 2 < n ? at + 2 : n;
        for (int i = end > SPLITS ? end - SPLITS : 0; i < end && count + 3 <= room; i++) {
            int high = again_most(&s, host, i);
            bool own = chosen->host == host && i == at && chosen->again > s.low && chosen->again < high;
            list[count++] = way_of(&s, host, i, s.low);
            if (own) list[count++] = *chosen;
            if (high > s.low) list[count++] = way_of(&s, host, i, high);
        }
    }
    return count;
}

int64_t choose_largest(const chooser *c, const budget *b, bool host, bool again) {
    enum { MOST = 10000000 };
    search s = {.c = c, .b = b};
    set_range(&s);
    way w = {.host = host, .parts = 1, .again = again ? s.high : s.low};
    int64_t low = 0, high = MOST + 1; // low fits, high does not
    demand unused;
    for (int64_t step = 1; low + 1 < high;) {
        int64_t middle = low + step < high && step ? low + step : low + (high - low) / 2;
        w.batch = middle;
        if (fits(&s, &w, &unused)) {
            low = middle;
            step *= 2;
        } else {
            high = middle;
            step = 0;
        }
    }
    return low;
}
