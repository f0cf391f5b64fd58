#include "data/synthetic.h"

#include "base/pool.h"
#include "base/rng.h"

#include <math.h>
#include <stdlib.h>

enum {
    SLOW_SPAN = 12,  // fast bars in a slow one
    SLOW_READY = 20, // slow bars before the first sample
    LONG = 24,       // fast bars in the longer average of the signal
    SHORT = 6,
    SIGNALS = SYNTHETIC_VECTOR / 2,
    DAY = 288,
};

static const double BAND = 0.6; // of the noise's standard deviation
static const double PI = 3.14159265358979323846;

// Which random number: each kind of draw has its own stream.
enum { DRAW_NOISE, DRAW_FLOW, DRAW_PART, DRAW_VOLUME, DRAW_WICK, DRAW_SPREAD, DRAW_SIGNAL, DRAW_STRENGTH };

static double uniform(uint64_t seed, int draw, int64_t at, uint32_t lane) {
    rng_block r = rng_philox(seed, (uint32_t)at, lane, (uint32_t)RNG_SYNTHETIC << 16 | (uint32_t)draw, 0);
    return ((double)r.v[0] + 0.5) / 4294967296.0;
}

static double normal(uint64_t seed, int draw, int64_t at) {
    double u = uniform(seed, draw, at, 0), v = uniform(seed, draw, at, 1);
    return sqrt(-2 * log(u)) * cos(2 * PI * v);
}

typedef struct {
    const synthetic_options *o;
    int64_t bars, hours;
    double *flow, *part; // [bars], [hours] first-order autoregressions of unit variance
    double *signal;      // [bars] s, known at the bar's close
    double *ret;         // [bars] returns over sigma
    double *spare;       // [3][bars]
    float *fast, *slow, *vector;
    pool *pool; // NULL: one thread
} market;

// Bars are drawn by their number, so that a block of them can be made by any thread.
enum { BLOCK = 4096 };

typedef struct {
    market *m;
    int64_t count;
    void (*fill)(market *m, int64_t t);
} blocks;

static void fill_block(void *arg, int64_t item, int worker) {
    const blocks *b = arg;
    int64_t end = (item + 1) * BLOCK < b->count ? (item + 1) * BLOCK : b->count;
    (void)worker;
    for (int64_t t = item * BLOCK; t < end; t++) b->fill(b->m, t);
}

static void fill_all(market *m, int64_t count, void (*fill)(market *m, int64_t t)) {
    blocks b = {m, count, fill};
    pool_run(m->pool, (count + BLOCK - 1) / BLOCK, fill_block, &b);
}

// x[t] = keep x[t-1] + sqrt(1 - keep^2) e
static void autoregress(double *x, int64_t n, double keep, uint64_t seed, int draw) {
    for (int64_t t = 0; t < n; t++)
        x[t] = t ? keep * x[t - 1] + sqrt(1 - keep * keep) * normal(seed, draw, t) : normal(seed, draw, t);
}

static double mean_back(const double *x, int64_t at, int64_t n) {
    double sum = 0;
    for (int64_t k = 0; k < n; k++) sum += x[at - k];
    return sum / (double)n;
}

// The last slow bar that has fully closed when fast bar t closes.
static int64_t slow_row(int64_t t) {
    return (t + 1) / SLOW_SPAN - 1;
}

static void standardise(double *x, int64_t first, int64_t n) {
    double sum = 0, square = 0;
    for (int64_t t = first; t < n; t++) sum += x[t];
    double mean = sum / (double)(n - first);
    for (int64_t t = first; t < n; t++) square += (x[t] - mean) * (x[t] - mean);
    double scale = square > 0 ? 1 / sqrt(square / (double)(n - first)) : 0;
    for (int64_t t = first; t < n; t++) x[t] = (x[t] - mean) * scale;
}

// Signal i of the vector: -1, 0 or 1, and a strength where it is not 0.
static void fill_vector(market *m, int64_t t) {
    float *v = m->vector + t * SYNTHETIC_VECTOR;
    for (int i = 0; i < SIGNALS; i++) {
        int64_t at = t * SIGNALS + i;
        double u = uniform(m->o->seed, DRAW_SIGNAL, at, 0);
        v[2 * i] = u < 0.4 ? -1.0f : u < 0.6 ? 0.0f : 1.0f;
        v[2 * i + 1] = v[2 * i] != 0 ? (float)uniform(m->o->seed, DRAW_STRENGTH, at, 0) : 0.0f;
    }
}

static void fill_noise(market *m, int64_t t) {
    m->ret[t] = normal(m->o->seed, DRAW_NOISE, t);
}

static void plant_signal(market *m, int64_t first) {
    double *a = m->spare, *b = a + m->bars, *c = b + m->bars;
    for (int64_t t = first; t < m->bars; t++) {
        const float *v = m->vector + t * SYNTHETIC_VECTOR;
        int64_t hour = slow_row(t);
        a[t] = mean_back(m->flow, t, SHORT) - mean_back(m->flow, t, LONG);
        b[t] = mean_back(m->part, hour, 4) - mean_back(m->part, hour, SLOW_READY);
        c[t] = (double)(v[0] * v[1] + v[2] * v[3]);
    }
    standardise(a, first, m->bars);
    standardise(b, first, m->bars);
    standardise(c, first, m->bars);
    for (int64_t t = first; t < m->bars; t++) m->signal[t] = (a[t] + b[t] + c[t]) / sqrt(3);
}

static double returned(const market *m, int64_t t, int64_t n) {
    double sum = 0;
    for (int64_t k = 0; k < n && k <= t; k++) sum += m->ret[t - k];
    return sum / sqrt((double)n);
}

static double volatility(const double *ret, int64_t t, int64_t n) {
    double sum = 0;
    for (int64_t k = 0; k < n && k <= t; k++) sum += ret[t - k] * ret[t - k];
    return sqrt(sum / (double)n) - 1;
}

// A bar's shape: body, range and wicks in units of sigma; its volume; then looks back over earlier bars.
static void fill_fast(market *m, int64_t t) {
    uint64_t seed = m->o->seed;
    float *x = m->fast + t * SYNTHETIC_FAST;
    double up = -0.3 * log(uniform(seed, DRAW_WICK, t, 0)), down = -0.3 * log(uniform(seed, DRAW_WICK, t, 1));
    double day = 2 * PI * (double)(t % DAY) / DAY;
    double v[SYNTHETIC_FAST] = {m->ret[t], fabs(m->ret[t]) + up + down - 1, up, down, m->flow[t],
        normal(seed, DRAW_VOLUME, t), returned(m, t, 3), returned(m, t, 6), returned(m, t, 12), returned(m, t, 24),
        volatility(m->ret, t, 12), volatility(m->ret, t, 48), uniform(seed, DRAW_SPREAD, t, 0) - 0.5, sin(day),
        cos(day)};
    for (int i = 0; i < SYNTHETIC_FAST; i++) x[i] = (float)v[i];
}

static void fill_slow(market *m, int64_t hour) {
    float *x = m->slow + hour * SYNTHETIC_SLOW;
    int64_t close = (hour + 1) * SLOW_SPAN - 1;
    double high = 0, low = 0, at = 0, day = 2 * PI * (double)(hour % 24) / 24;
    for (int64_t t = close - SLOW_SPAN + 1; t <= close; t++) {
        at += m->ret[t];
        high = at > high ? at : high;
        low = at < low ? at : low;
    }
    double root = sqrt(SLOW_SPAN);
    double v[SYNTHETIC_SLOW] = {at / root, (high - low) / root - 1.5, (high - at) / root, (at - low) / root,
        m->part[hour], volatility(m->ret, close, 48), sin(day), cos(day)};
    for (int i = 0; i < SYNTHETIC_SLOW; i++) x[i] = (float)v[i];
}

static double below(double x) {
    return 0.5 * erfc(-x / sqrt(2));
}

static int32_t class_of(double ret) {
    return ret < -BAND ? 0 : ret > BAND ? 2 : 1;
}

static int32_t best_class(double mean) {
    double down = below(-BAND - mean), up = 1 - below(BAND - mean), neutral = 1 - down - up;
    return down >= neutral && down >= up ? 0 : up > neutral ? 2 : 1;
}

static void fill_samples(dataset *d, const market *m, int64_t first, size_t *at) {
    int32_t *fast = dataset_take(d, at, d->samples, sizeof *fast);
    int32_t *slow = dataset_take(d, at, d->samples, sizeof *slow);
    int32_t *zero = dataset_take(d, at, d->samples, sizeof *zero);
    int32_t *label = dataset_take(d, at, d->samples, sizeof *label);
    int32_t *best = dataset_take(d, at, d->samples, sizeof *best);
    for (int64_t i = 0; i < d->samples; i++) {
        int64_t t = first + i;
        fast[i] = (int32_t)t;
        slow[i] = (int32_t)slow_row(t);
        label[i] = class_of(m->ret[t + 1]);
        best[i] = best_class(m->o->strength * m->signal[t]);
    }
    d->stream[0] = (stream){
        .name = "fast", .series = table_of(COLUMN_F32, m->bars, SYNTHETIC_FAST, m->fast), .row = fast, .first = zero};
    d->stream[1] = (stream){
        .name = "slow", .series = table_of(COLUMN_F32, m->hours, SYNTHETIC_SLOW, m->slow), .row = slow, .first = zero};
    d->streams = 2;
    d->vector = table_of(COLUMN_F32, d->samples, SYNTHETIC_VECTOR, m->vector + first * SYNTHETIC_VECTOR);
    d->label = label;
    d->best = best;
}

static void trade(market *m, int64_t first) {
    autoregress(m->flow, m->bars, 0.9, m->o->seed, DRAW_FLOW);
    autoregress(m->part, m->hours, 0.8, m->o->seed, DRAW_PART);
    fill_all(m, m->bars, fill_vector);
    fill_all(m, m->bars, fill_noise);
    plant_signal(m, first);
    for (int64_t t = first + 1; t < m->bars; t++) m->ret[t] += m->o->strength * m->signal[t - 1];
    fill_all(m, m->bars, fill_fast);
    fill_all(m, m->hours, fill_slow);
}

// Bytes of the dataset: series and vector, five numbers a sample, and room for alignment.
static size_t market_bytes(const market *m) {
    int64_t words = m->bars * (SYNTHETIC_FAST + SYNTHETIC_VECTOR + 5) + m->hours * SYNTHETIC_SLOW;
    return (size_t)words * 4 + 16 * 64;
}

// The generator's scratch, in doubles: flow, signal, returns and three parts of the signal;
// participation.
static bool market_work(market *m, double **work, err *e) {
    size_t values = (size_t)(6 * m->bars + m->hours);
    *work = calloc(values, sizeof **work);
    if (!*work) {
        err_run(e, "not enough memory for a market of %lld bars; use fewer", (long long)m->bars);
        return false;
    }
    m->flow = *work;
    m->signal = m->flow + m->bars;
    m->ret = m->signal + m->bars;
    m->spare = m->ret + m->bars;
    m->part = m->spare + 3 * m->bars;
    return true;
}

dataset *synthetic_new(const synthetic_options *o, err *e) {
    int64_t first = SLOW_SPAN * SLOW_READY - 1;
    if (o->bars <= first + 1 || o->bars > INT32_MAX / SIGNALS) {
        err_input(e, "a synthetic market needs %lld to %d bars, not %lld", (long long)first + 2, INT32_MAX / SIGNALS,
            (long long)o->bars);
        return NULL;
    }
    market m = {.o = o, .bars = o->bars, .hours = o->bars / SLOW_SPAN};
    double *work;
    if (!market_work(&m, &work, e)) return NULL;
    dataset *d = dataset_new(market_bytes(&m), e);
    if (d) {
        size_t at = 0;
        m.fast = dataset_take(d, &at, m.bars * SYNTHETIC_FAST, sizeof *m.fast);
        m.slow = dataset_take(d, &at, m.hours * SYNTHETIC_SLOW, sizeof *m.slow);
        m.vector = dataset_take(d, &at, m.bars * SYNTHETIC_VECTOR, sizeof *m.vector);
        m.pool = pool_new(0, NULL);
        trade(&m, first);
        pool_free(m.pool);
        d->name = "synthetic";
        d->samples = m.bars - first - 1;
        d->classes = 3;
        d->horizon = 1;
        fill_samples(d, &m, first, &at);
    }
    free(work);
    return d;
}
