#include "train/noise.h"

#include "base/clock.h"
#include "train/trainer.h"

#include <math.h>

// Draws of a batch size that are enough, and the fewest that tell anything.
enum { DRAWS_MOST = 256, DRAWS_LEAST = 8 };

// A gradient that is known to no better than this share of itself is not told from none.
static const double error_most = 0.5;

// Share of the time that the smaller batches may take: their mean counts for little in the gradient's part.
static const double small_share = 0.25;

void noise_add(noise_draws *d, double squared_norm) {
    if (!isfinite(squared_norm)) return;
    double from = squared_norm - d->mean;
    d->count++;
    d->mean += from / (double)d->count;
    d->square += from * (squared_norm - d->mean);
}

// Variance of the mean.
static double mean_variance(const noise_draws *d) {
    return d->square / (double)(d->count - 1) / (double)d->count;
}

// Errors are those of the two means, carried through to the first order.
noise_scale noise_estimate(const noise_draws *small, const noise_draws *large) {
    noise_scale s = {0};
    double b = (double)small->batch, B = (double)large->batch;
    s.measured = small->count >= DRAWS_LEAST && large->count >= DRAWS_LEAST;
    if (!s.measured || !(b < B)) return s;
    double vb = mean_variance(small), vB = mean_variance(large), inverse = 1 / b - 1 / B;
    s.gradient = (B * large->mean - b * small->mean) / (B - b);
    s.trace = (small->mean - large->mean) / inverse;
    if (!(s.gradient > 0 && s.trace > 0)) return s;
    double of_gradient = (B * B * vB + b * b * vb) / ((B - b) * (B - b)), of_trace = (vb + vB) / (inverse * inverse);
    double of_both = -(B * vB + b * vb) / ((B - b) * inverse);
    double relative =
        of_trace / (s.trace * s.trace) + of_gradient / (s.gradient * s.gradient) - 2 * of_both / (s.trace * s.gradient);
    s.scale = s.trace / s.gradient;
    s.error = s.scale * sqrt(relative);
    s.known = sqrt(of_gradient) < error_most * s.gradient;
    return s;
}

// Measuring

// Draws of one batch size, place after place.
typedef struct {
    const noise_task *n;
    trainer *t;
    noise_draws *draws; // [places]
    int place;
    double until; // when the place's time is over
    double each;  // seconds of a place
    bool stopped;
    bool failed;
    err why;
} drawing;

static bool put_weights(drawing *d, err *e) {
    graph *g = trainer_job(d->t)->g;
    d->until = clock_seconds() + d->each;
    return store_write(engine_store(trainer_engine(d->t)), g, graph_slab(g, SLAB_WEIGHTS), d->n->weights[d->place], e);
}

static bool fail(drawing *d) {
    d->failed = true;
    return false;
}

// The last step of an epoch, which may lack rows, is left out.
static bool on_step(void *arg, int64_t epoch, int64_t done, int64_t total) {
    drawing *d = arg;
    noise_draws *to = &d->draws[d->place];
    const job *j = trainer_job(d->t);
    double clip[CLIP_COUNT];
    (void)epoch;
    if (!store_read(engine_store(trainer_engine(d->t)), j->g, j->clip, clip, &d->why)) return fail(d);
    if (done < total || total % to->batch == 0) noise_add(to, clip[CLIP_NORM] * clip[CLIP_NORM]);
    d->stopped = d->n->go_on && !d->n->go_on(d->n->arg);
    if (d->stopped) return false;
    double until = d->until + (to->count < DRAWS_LEAST ? d->each : 0);
    if (to->count < DRAWS_MOST && clock_seconds() < until) return true;
    if (++d->place == d->n->places) return false;
    return put_weights(d, &d->why) || fail(d);
}

// At a learning rate of 0 no optimizer moves a weight, and AdamW's decay is a part of the rate.
static bool draw(const noise_task *n, const way *w, double seconds, noise_draws *draws, bool *stopped, err *e) {
    settings s = choose_apply(n->chooser, w);
    const job *j = w->host ? n->chooser->far : n->chooser->near;
    split some = *n->split;
    train_result unused;
    s.lr = 0;
    s.steps = 0;
    s.epochs = s.patience = INT32_MAX;
    some.validation = part_of((span){part_first(&some.train), 1});
    for (int k = 0; k < n->places; k++) draws[k] = (noise_draws){.batch = w->batch * w->parts};
    drawing d = {.n = n, .draws = draws, .each = seconds / n->places};
    d.t = trainer_new(n->device, n->queue, j, n->data, &some, &s, e);
    watcher look = {.on_step = on_step, .arg = &d};
    bool ok = d.t && put_weights(&d, e) && trainer_run(d.t, &look, &unused, e);
    if (ok && d.failed) *e = d.why;
    trainer_free(d.t);
    *stopped = d.stopped;
    return ok && !d.failed;
}

bool noise_measure(const noise_task *n, noise_scale *scale, err *e) {
    noise_draws small[NOISE_PLACES_MOST], large[NOISE_PLACES_MOST];
    bool stopped = false;
    for (int k = 0; k < n->places; k++) scale[k] = (noise_scale){0};
    if (!draw(n, &n->small, small_share * n->seconds, small, &stopped, e)) return false;
    if (!stopped && !draw(n, &n->large, (1 - small_share) * n->seconds, large, &stopped, e)) return false;
    for (int k = 0; !stopped && k < n->places; k++) scale[k] = noise_estimate(&small[k], &large[k]);
    return true;
}
