#include "ops/stand.h"

#include "base/rng.h"
#include "cpu/cpu.h"
#include "ops/strict.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

void stand_each(void (*check)(const place *)) {
    place p[PLACES_MOST], wide = {&cpu_double_device, NULL, PRECISION_FP64, 1e-12, {0}};
    int n = trial_places(p);
    check(&wide);
    for (int i = 0; i < n; i++) check(&p[i]);
}

void stand_each_alone(void (*check)(const place *)) {
    place p[PLACES_MOST];
    int n = trial_places(p);
    for (int i = 0; i < n; i++) {
        p[i].card.no_fuse = true;
        if (!p[i].device->host_memory) check(&p[i]);
    }
}

stand stand_open(const place *p, graph *g, solo_options o) {
    err e;
    stand s = {p, p->device->open(&(queue_options){.threads = 2, .isa = p->isa, .card = p->card}, &e), g, NULL, o.rows};
    trial_ok(s.q != NULL, &e);
    s.x = solo_new(strict_device(p->device), s.q, g, &o, &e);
    trial_ok(s.x != NULL, &e);
    return s;
}

void stand_close(stand *s) {
    solo_free(s->x);
    s->p->device->close(s->q);
    graph_free(s->g);
}

void stand_play(stand *s, pass part) {
    err e;
    trial_ok(solo_play(s->x, part, &e) && s->p->device->sync(s->q, &e), &e);
}

bool stand_wide(const place *p) {
    return p->precision == PRECISION_FP64;
}

double stand_number(const stand *s, const void *v, int64_t i) {
    return stand_wide(s->p) ? ((const double *)v)[i] : (double)((const float *)v)[i];
}

void stand_put(stand *s, tensor t, const double *v, int64_t n) {
    err e;
    float *narrow = calloc((size_t)n, sizeof *narrow);
    assert_non_null(narrow);
    for (int64_t i = 0; i < n; i++) narrow[i] = (float)v[i];
    bool wide = graph_info(s->g, t)->type == DTYPE_F64;
    trial_ok(solo_write(s->x, t, wide ? (const void *)v : narrow, &e), &e);
    free(narrow);
}

void stand_get(stand *s, tensor t, double *v) {
    err e;
    const tensor_info *info = graph_info(s->g, t);
    int64_t n = shape_count(shape_resolve(info->shape, s->rows));
    bool kept = info->role == ROLE_ACTIVATION;
    trial_ok(kept ? solo_peek(s->x, t, false, v, &e) : solo_read(s->x, t, v, &e), &e);
    for (int64_t i = n - 1; i >= 0; i--) v[i] = trial_value(info->type, v, i);
}

void stand_seek(stand *s, uint64_t seed, uint64_t position, uint64_t row) {
    err e;
    solo_step at = {.seed = seed, .position = position, .row = row, .count = 1u << 20};
    trial_ok(solo_step_write(s->x, &at, &e), &e);
}

void stand_near(const char *what, int64_t i, double is, double want, double tolerance) {
    if (!(fabs(is - want) <= tolerance)) fail_msg("%s[%lld] is %.12g, not %.12g", what, (long long)i, is, want);
}

double stand_value(int64_t i, uint32_t salt) {
    rng_block r = rng_philox(salt, (uint32_t)i, 0, (uint32_t)RNG_TEST << 16, 2);
    return (double)(2 * rng_unit(r.v[0]) - 1);
}
