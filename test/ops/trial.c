// How a trial is built, run on a device, and compared.
#include "ops/trial.h"

#include "base/rng.h"
#include "cpu/cpu.h"
#include "graph/dtype.h"
#include "graph/grad.h"
#include "graph/identity.h"
#include "graph/plugin.h"
#include "ops/strict.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { GUARD = 64 };

#ifdef TEST_CUDA

static card_switches switches;

void trial_switch(card_switches s) {
    switches = s;
}

// The card in all four precisions. Tolerances, of the largest magnitude in a tensor: fp32 as on the CPU; otherwise
// operands are rounded to 11 (tf32, fp16) or 8 (bf16) bits before products, and what an operator passes on is rounded
// again, over up to five dependent steps in these rows: 8 units of the last place. Precisions that the card or its
// kernels do not have are named once and left out.
static int find_places(place *p) {
    bool found;
    err e;
    int count = 0;
    const device *card = plugin_open("tradewind-cuda.so", &found, &e);
    trial_ok(card != NULL, &e);
    queue *q = card->open(&(queue_options){0}, &e);
    trial_ok(q != NULL, &e);
    const place all[] = {{card, NULL, PRECISION_FP32, 1e-5, {0}}, {card, NULL, PRECISION_TF32, 8 * 0x1p-11, {0}},
        {card, NULL, PRECISION_BF16, 8 * 0x1p-8, {0}}, {card, NULL, PRECISION_FP16, 8 * 0x1p-11, {0}}};
    char where[IDENTITY_ROOM];
    device_identity is;
    card->identify(q, &is);
    identity_text(&is, where, sizeof where);
    print_message("on %s\n", where);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (card->computes(q, all[i].precision)) {
            p[count++] = all[i];
        } else {
            print_message(
                "SKIPPED: all rows in %s, which these kernels do not compute\n", precision_name(all[i].precision));
        }
    }
    card->close(q);
    return count;
}

int trial_places(place *p) {
    static place places[PLACES_MOST];
    static int count;
    if (!count) count = find_places(places);
    memcpy(p, places, sizeof places);
    for (int i = 0; i < count; i++) p[i].card = switches;
    return count;
}

#else

int trial_places(place *p) {
    int n = 0;
    p[n++] = (place){&cpu_plain_device, NULL, PRECISION_FP32, 1e-5, {0}};
    for (const char *const *isa = cpu_instruction_sets(); *isa; isa++)
        p[n++] = (place){&cpu_device, *isa, PRECISION_FP32, 1e-5, {0}};
    return n;
}

#endif

// Trials

void *trial_memory(trial *t, size_t bytes) {
    assert_true(t->owns < 16);
    void *p = calloc(1, bytes ? bytes : 1);
    assert_non_null(p);
    return t->owned[t->owns++] = p;
}

float trial_random(trial *t) {
    uint64_t i = t->draws++;
    rng_block r = rng_philox(99, (uint32_t)(i >> 2), (uint32_t)t->n, (uint32_t)RNG_TEST << 16, 0);
    return 2 * rng_unit(r.v[i & 3]) - 1;
}

tensor trial_weight(trial *t, shape s, float bound) {
    char name[32];
    snprintf(name, sizeof name, "p%d", graph_parameters(t->g));
    return graph_parameter(t->g, name, s, (init){INIT_UNIFORM, bound});
}

tensor trial_input(trial *t, shape s, float bound) {
    t->offsets[graph_parameters(t->g)] = t->offset;
    return trial_weight(t, s, bound);
}

tensor trial_grid(trial *t, shape s) {
    t->grid[graph_parameters(t->g)] = true;
    return trial_weight(t, s, 1);
}

tensor trial_grid_bias(trial *t, shape s) {
    t->offsets[graph_parameters(t->g)] = 1.0f / 128;
    return trial_grid(t, s);
}

tensor trial_floats(trial *t, shape s, float low, float high) {
    int64_t n = shape_count(s);
    float *v = trial_memory(t, (size_t)n * sizeof *v);
    for (int64_t i = 0; i < n; i++) v[i] = low + (high - low) * (0.5f * trial_random(t) + 0.5f);
    return graph_constant(t->g, "floats", DTYPE_F32, s, v);
}

tensor trial_integers(trial *t, shape s, int low, int high) {
    int64_t n = shape_count(s);
    int32_t *v = trial_memory(t, (size_t)n * sizeof *v);
    for (int64_t i = 0; i < n; i++) v[i] = low + (int32_t)((float)(high - low) * (0.5f * trial_random(t) + 0.5f));
    return graph_constant(t->g, "integers", DTYPE_I32, s, v);
}

tensor trial_row_weights(trial *t) {
    float *w = trial_memory(t, (size_t)t->n * sizeof *w);
    for (int64_t i = 0; i < t->n; i++) w[i] = i % 5 == 4 ? 0 : 0.5f + 0.25f * trial_random(t);
    return graph_constant(t->g, "weight", DTYPE_F32, shape1(t->n), w);
}

// Running a trial

typedef struct {
    int64_t outputs, elements;
    double *out, *gradient; // [outputs], [slab elements]
} result;

typedef struct {
    const place *p;
    queue *q;
    solo *x;
    tensor root, seed;
} bench;

static void fill_values(trial *t) {
    t->values = calloc((size_t)graph_slab_elements(t->g) + 1, sizeof *t->values);
    assert_non_null(t->values);
    for (int i = 0; i < graph_parameters(t->g); i++) {
        const tensor_info *p = graph_info(t->g, graph_parameter_at(t->g, i));
        for (int64_t k = 0; k < shape_count(p->shape); k++) {
            float v = trial_random(t) * p->init.bound;
            t->values[p->offset + k] = (t->grid[i] ? rintf(8 * v) / 8 : v) + t->offsets[i];
        }
    }
}

void trial_ok(bool ok, const err *e) {
    if (!ok) fail_msg("%s", e->text);
}

static bench bench_open(trial *t, const place *p, int threads, size_t guard, tensor (*build)(trial *)) {
    err e;
    bench b = {.p = p};
    t->g = graph_new();
    b.root = build(t);
    graph_keep(t->g, b.root);
    dtype_assign(t->g, p->precision);
    b.seed = grad_build(t->g, b.root);
    fill_values(t);
    b.q = p->device->open(&(queue_options){.threads = threads, .isa = p->isa, .card = p->card}, &e);
    trial_ok(b.q != NULL, &e);
    b.x = solo_new(strict_device(p->device), b.q, t->g, &(solo_options){.rows = 1, .guard = guard}, &e);
    trial_ok(b.x != NULL, &e);
    solo_step s = {.seed = 5, .update = 3, .row = 2};
    trial_ok(solo_step_write(b.x, &s, &e), &e);
    return b;
}

static void bench_close(trial *t, bench *b) {
    solo_free(b->x);
    b->p->device->close(b->q);
    graph_free(t->g);
    free(t->values);
    for (int i = 0; i < t->owns; i++) free(t->owned[i]);
}

// Elements of any floating-point type, to and from double.

static double half_value(uint16_t bits) {
    int exponent = bits >> 10 & 31, fraction = bits & 1023;
    double v = exponent == 31 ? (fraction ? (double)NAN : (double)INFINITY)
               : exponent     ? ldexp(1024 + fraction, exponent - 25)
                              : ldexp(fraction, -24);
    return bits >> 15 ? -v : v;
}

static double brain_value(uint16_t bits) {
    uint32_t wide = (uint32_t)bits << 16;
    float v;
    memcpy(&v, &wide, sizeof v);
    return (double)v;
}

double trial_value(dtype type, const void *v, int64_t i) {
    switch (type) {
    case DTYPE_F64: return ((const double *)v)[i];
    case DTYPE_F16: return half_value(((const uint16_t *)v)[i]);
    case DTYPE_BF16: return brain_value(((const uint16_t *)v)[i]);
    default: return (double)((const float *)v)[i];
    }
}

// The 16-bit value nearest to v, by search: positive values rise with their bits.
static uint16_t nearest16(double (*value)(uint16_t), double v) {
    uint16_t low = 0, high = 0x7C00;
    while (high - low > 1) {
        uint16_t middle = (uint16_t)((low + high) / 2);
        value(middle) <= fabs(v) ? (low = middle) : (high = middle);
    }
    if (value(high) - fabs(v) < fabs(v) - value(low)) low = high;
    return (uint16_t)(low | (v < 0 ? 0x8000 : 0));
}

static void set_value(dtype type, void *to, int64_t i, double v) {
    if (type == DTYPE_F64) {
        ((double *)to)[i] = v;
    } else if (type == DTYPE_F32) {
        ((float *)to)[i] = (float)v;
    } else {
        ((uint16_t *)to)[i] = isnan(v) ? 0x7FFF : nearest16(type == DTYPE_F16 ? half_value : brain_value, v);
    }
}

// Writes n values to a floating-point tensor, in its type.
static void put(const trial *t, const bench *b, tensor to, const double *v, int64_t n) {
    err e;
    dtype type = graph_info(t->g, to)->type;
    void *raw = malloc((size_t)(n + 1) * sizeof(double));
    assert_non_null(raw);
    for (int64_t i = 0; i < n; i++) set_value(type, raw, i, v[i]);
    trial_ok(solo_write(b->x, to, raw, &e), &e);
    free(raw);
}

static double *get(const trial *t, const bench *b, tensor of, bool kept) {
    err e;
    const tensor_info *info = graph_info(t->g, of);
    int64_t n = shape_count(info->shape);
    double *v = malloc((size_t)(n + 1) * sizeof *v);
    assert_non_null(v);
    trial_ok(kept ? solo_peek(b->x, of, true, v, &e) : solo_read(b->x, of, v, &e), &e);
    for (int64_t i = n - 1; i >= 0; i--) v[i] = trial_value(info->type, v, i);
    return v;
}

static double cotangent(int64_t i) {
    rng_block r = rng_philox(7, (uint32_t)i, 0, (uint32_t)RNG_TEST << 16, 1);
    return (double)(2 * rng_unit(r.v[0]) - 1);
}

static double gradient_before(int64_t i) {
    return (double)(float)(0.25 * cotangent(i + 100000));
}

static void put_weights(const trial *t, const bench *b, int64_t changed, double by) {
    int64_t n = graph_slab_elements(t->g);
    double *v = malloc((size_t)n * sizeof *v);
    assert_non_null(v);
    for (int64_t i = 0; i < n; i++) v[i] = (double)t->values[i] + (i == changed ? by : 0);
    put(t, b, graph_slab(t->g, SLAB_WEIGHTS), v, n);
    free(v);
}

// The loss's second element, its normaliser, gets no cotangent, as in training.
static bool is_loss(const trial *t, tensor root) {
    shape s = graph_info(t->g, root)->shape;
    return s.rank == 1 && s.dim[0] == 2;
}

static void put_cotangent(const trial *t, const bench *b) {
    int64_t n = shape_count(graph_info(t->g, b->root)->shape);
    double *v = malloc((size_t)n * sizeof *v);
    assert_non_null(v);
    for (int64_t i = 0; i < n; i++) v[i] = is_loss(t, b->root) ? (i == 0 ? 0.75 : 0) : (double)(float)cotangent(i);
    put(t, b, b->seed, v, n);
    free(v);
}

static void put_gradients(const trial *t, const bench *b, bool random) {
    int64_t n = graph_slab_elements(t->g);
    double *v = malloc((size_t)n * sizeof *v);
    assert_non_null(v);
    for (int64_t i = 0; i < n; i++) v[i] = random ? gradient_before(i) : (double)NAN;
    put(t, b, graph_slab(t->g, SLAB_GRADIENTS), v, n);
    free(v);
}

// One pass over poisoned memory: into gradients of NaN (PASS_FIRST), or added to random ones (PASS_NEXT), which are
// then taken away again.
static result run_once(trial *t, const bench *b, pass part) {
    err e;
    put_weights(t, b, -1, 0);
    put_cotangent(t, b);
    put_gradients(t, b, part == PASS_NEXT);
    trial_ok(solo_poison(b->x, 0xFF, true, &e), &e);
    trial_ok(solo_play(b->x, part, &e), &e);
    trial_ok(b->p->device->sync(b->q, &e), &e);
    trial_ok(solo_guards_whole(b->x, true, &e), &e);
    result r = {shape_count(graph_info(t->g, b->root)->shape), graph_slab_elements(t->g), NULL, NULL};
    r.out = get(t, b, b->root, true);
    r.gradient = get(t, b, graph_slab(t->g, SLAB_GRADIENTS), false);
    for (int64_t i = 0; part == PASS_NEXT && i < r.elements; i++) r.gradient[i] -= gradient_before(i);
    return r;
}

static void result_free(result *r) {
    free(r->out);
    free(r->gradient);
}

static double dot_cotangent(const trial *t, const bench *b, const double *out) {
    double sum = 0;
    int64_t n = shape_count(graph_info(t->g, b->root)->shape);
    if (is_loss(t, b->root)) return 0.75 * out[0];
    for (int64_t i = 0; i < n; i++) sum += out[i] * (double)(float)cotangent(i);
    return sum;
}

static double value_at(trial *t, const bench *b, int64_t element, double by) {
    err e;
    put_weights(t, b, element, by);
    trial_ok(solo_play(b->x, PASS_FIRST, &e), &e);
    double *out = get(t, b, b->root, true), v = dot_cotangent(t, b, out);
    free(out);
    return v;
}

static double largest(const double *v, int64_t n) {
    double most = 0;
    for (int64_t i = 0; i < n; i++) most = fabs(v[i]) > most ? fabs(v[i]) : most;
    return most;
}

// Central differences at a few elements of every parameter.
static void check_differences(trial *t, const bench *b, const result *r, const char *name) {
    for (int i = 0; i < graph_parameters(t->g); i++) {
        const tensor_info *p = graph_info(t->g, graph_parameter_at(t->g, i));
        int64_t n = shape_count(p->shape), stride = n > 12 ? n / 5 : 1;
        double scale = largest(r->gradient + p->offset, n);
        for (int64_t k = 0; k < n; k += stride) {
            double h = 1e-5 * (1 + fabs((double)t->values[p->offset + k]) * 1e-2), at = r->gradient[p->offset + k];
            double d = (value_at(t, b, p->offset + k, h) - value_at(t, b, p->offset + k, -h)) / (2 * h);
            if (!(fabs(d - at) <= 1e-6 * (1 + scale)))
                fail_msg("%s, size %lld, %s[%lld]: differences give %.10g, backward %.10g", name, (long long)t->n,
                    p->name, (long long)k, d, at);
        }
    }
}

typedef struct {
    double share, floor; // of the largest magnitude, and absolute
} limit;

// fp32 sums of products err by a few rounding errors of the largest terms, not of the result: the tolerance is scaled
// by the largest magnitude in the tensor.
static void check_close(const char *name, const char *what, const trial *t, const double *a, const double *ref,
    int64_t n, limit tolerance) {
    double scale = largest(ref, n);
    for (int64_t i = 0; i < n; i++)
        if (!(fabs(a[i] - ref[i]) <= tolerance.share * scale + tolerance.floor))
            fail_msg("%s, size %lld, %s[%lld]: %.9g instead of %.9g", name, (long long)t->n, what, (long long)i, a[i],
                ref[i]);
}

// A sum over samples errs by its terms, which may cancel in one parameter's gradient and not in another's. In fp32 the
// tolerance covers that; with rounded operands the error is measured against the largest gradient of the trial.
static void check_result(const char *name, trial *t, const result *a, const result *ref, limit tolerance) {
    check_close(name, "output", t, a->out, ref->out, ref->outputs, tolerance);
    if (tolerance.share > 1e-4) tolerance.floor += tolerance.share * largest(ref->gradient, ref->elements);
    for (int i = 0; i < graph_parameters(t->g); i++) {
        const tensor_info *p = graph_info(t->g, graph_parameter_at(t->g, i));
        check_close(
            name, p->name, t, a->gradient + p->offset, ref->gradient + p->offset, shape_count(p->shape), tolerance);
    }
}

static void check_same_bits(const char *name, trial *t, const result *a, const result *b) {
    if (memcmp(a->out, b->out, (size_t)a->outputs * sizeof *a->out) != 0)
        fail_msg("%s, size %lld: outputs differ between equal runs", name, (long long)t->n);
    for (int i = 0; i < graph_parameters(t->g); i++) {
        const tensor_info *p = graph_info(t->g, graph_parameter_at(t->g, i));
        if (memcmp(a->gradient + p->offset, b->gradient + p->offset, (size_t)shape_count(p->shape) * sizeof(double)))
            fail_msg("%s, size %lld: gradients of %s differ between equal runs", name, (long long)t->n, p->name);
    }
}

static trial trial_of(int64_t n, float offset) {
    return (trial){.n = n, .offset = offset};
}

static const place double_place = {&cpu_double_device, NULL, PRECISION_FP64, 1e-12, {0}};

static result reference(const char *name, tensor (*build)(trial *), int64_t n, float offset) {
    trial t = trial_of(n, offset);
    bench b = bench_open(&t, &double_place, 1, GUARD, build);
    result r = run_once(&t, &b, PASS_FIRST), added = run_once(&t, &b, PASS_NEXT);
    check_result(name, &t, &added, &r, (limit){1e-12, 1e-14});
    if (offset == 0) check_differences(&t, &b, &r, name);
    result_free(&added);
    bench_close(&t, &b);
    return r;
}

static void compare(
    const char *name, tensor (*build)(trial *), int64_t n, float offset, const place *p, const result *ref) {
    trial t = trial_of(n, offset);
    bench b = bench_open(&t, p, 1, GUARD, build);
    result first = run_once(&t, &b, PASS_FIRST), again = run_once(&t, &b, PASS_FIRST),
           added = run_once(&t, &b, PASS_NEXT);
    check_result(name, &t, &first, ref, (limit){p->tolerance, p->tolerance * 1e-3});
    check_result(name, &t, &added, ref, (limit){p->tolerance, p->tolerance * 1e-2}); // rounding of the values added to
    check_same_bits(name, &t, &first, &again);
    bench_close(&t, &b);
    // The same with shared memory and several threads: a tensor that backward needs and the plan gave away shows here.
    trial many = trial_of(n, offset);
    b = bench_open(&many, p, 3, 0, build);
    result threads = run_once(&many, &b, PASS_FIRST);
    check_same_bits(name, &many, &first, &threads);
    bench_close(&many, &b);
    result_free(&first);
    result_free(&again);
    result_free(&added);
    result_free(&threads);
}

int64_t trial_size_most(void) {
    const char *text = getenv("TRADEWIND_TEST_SIZE");
    return text && atoll(text) > 0 ? atoll(text) : INT64_MAX;
}

void trial_check_gradient(const char *name, tensor (*build)(trial *), float offset) {
    static const int64_t sizes[] = {1, 7, 33, 257};
    place p[PLACES_MOST];
    int count = trial_places(p);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes && sizes[i] <= trial_size_most(); i++) {
        result ref = reference(name, build, sizes[i], offset);
        for (int k = 0; k < count; k++) {
            char where[256];
            snprintf(where, sizeof where, "%s on %s %s %s", name, p[k].device->name, p[k].isa ? p[k].isa : "",
                precision_name(p[k].precision));
            compare(where, build, sizes[i], offset, &p[k], &ref);
        }
        result_free(&ref);
    }
}
