// Initial values of parameters, from the seed and the parameter's number alone.
#include "base/err.h"
#include "base/rng.h"
#include "graph/internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// Two uniform numbers to one normal (Box and Muller).
static float normal_of(uint32_t a, uint32_t b) {
    double u = ((double)a + 1) * 0x1p-32, turn = (double)b * 0x1p-32 * 6.283185307179586;
    return (float)(sqrt(-2 * log(u)) * cos(turn));
}

static float normal_at(uint64_t seed, uint32_t index, int64_t i) {
    rng_block r = rng_philox(seed, (uint32_t)(i >> 2), index, (uint32_t)RNG_INIT << 16, 0);
    rng_block more = rng_philox(seed, (uint32_t)(i >> 2), index, (uint32_t)RNG_INIT << 16, 1);
    return normal_of(r.v[i & 3], more.v[i & 3]);
}

// Several sums at once, so that the compiler can use vectors and the bits are those of every machine.
static double dot(const double *a, const double *b, int64_t n) {
    double sum[8] = {0}, all = 0;
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (int k = 0; k < 8; k++) sum[k] += a[i + k] * b[i + k];
    for (; i < n; i++) sum[0] += a[i] * b[i];
    for (int k = 0; k < 8; k++) all += sum[k];
    return all;
}

// Rows of unit length, each at right angles to those before it (Gram and Schmidt, as modified).
static void make_orthogonal(double *v, int64_t rows, int64_t width) {
    for (int64_t r = 0; r < rows; r++) {
        double *own = v + r * width, size = sqrt(dot(own, own, width));
        for (int64_t i = 0; i < width; i++) own[i] /= size;
        for (int64_t k = r + 1; k < rows; k++) {
            double *other = v + k * width, along = dot(own, other, width);
            for (int64_t i = 0; i < width; i++) other[i] -= along * own[i];
        }
    }
}

// A matrix [rows, width] with orthonormal rows, or columns where there are fewer of these, times the gain.
static void fill_orthogonal(const tensor_info *t, uint64_t seed, uint32_t index, float *w) {
    int64_t rows = t->shape.dim[0], width = t->shape.dim[1];
    bool tall = rows > width;
    int64_t count = tall ? width : rows, length = tall ? rows : width;
    double *v = malloc((size_t)(count * length) * sizeof *v);
    NEED(v, "out of memory for initial weights");
    for (int64_t i = 0; i < count * length; i++) v[i] = (double)normal_at(seed, index, i);
    make_orthogonal(v, count, length);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < width; c++)
            w[r * width + c] = (float)((double)t->init.bound * (tall ? v[c * length + r] : v[r * length + c]));
    free(v);
}

static void fill_initial(const tensor_info *t, uint64_t seed, uint32_t index, float *w) {
    if (t->init.kind == INIT_ORTHOGONAL) {
        fill_orthogonal(t, seed, index, w);
        return;
    }
    int64_t n = shape_count(t->shape);
    for (int64_t i = 0; i < n; i++) {
        if (t->init.kind == INIT_ZERO || t->init.kind == INIT_ONE || t->init.kind == INIT_VALUE) {
            w[i] = t->init.kind == INIT_ONE ? 1.0f : t->init.kind == INIT_ZERO ? 0.0f : t->init.bound;
            continue;
        }
        rng_block r = rng_philox(seed, (uint32_t)(i >> 2), index, (uint32_t)RNG_INIT << 16, 0);
        if (t->init.kind == INIT_UNIFORM) w[i] = (2.0f * rng_unit(r.v[i & 3]) - 1.0f) * t->init.bound;
        if (t->init.kind == INIT_NORMAL) w[i] = normal_at(seed, index, i) * t->init.bound;
    }
}

void graph_initial(const graph *g, uint64_t seed, float *weights) {
    memset(weights, 0, (size_t)g->slab_elements * sizeof *weights);
    for (int i = 0; i < g->parameters; i++) {
        const tensor_info *t = g->tensor[g->parameter[i].id];
        fill_initial(t, seed, (uint32_t)i, weights + t->offset);
    }
}
