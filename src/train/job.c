#include "train/job.h"

#include "base/err.h"
#include "graph/grad.h"

#include <stdlib.h>

static tensor column(graph *g, const char *name, const int32_t *data, int64_t n, tensor index) {
    return op_take(g, graph_constant(g, name, DTYPE_I32, shape1(n), data), index);
}

// The sample's window of a stream.
static tensor stream_input(
    graph *g, const dataset *d, const stream *s, tensor index, int64_t length, window_layout layout) {
    tensor series = graph_constant(g, s->name, DTYPE_F32, shape2(s->rows, s->features), s->series);
    tensor row = column(g, "row", s->row, d->samples, index), first = column(g, "first", s->first, d->samples, index);
    return op_window(g, series, row, first, length, layout, SCALE_NONE);
}

static tensor vector_input(graph *g, const dataset *d, tensor index) {
    if (!d->width) return TENSOR_NONE;
    return op_take(g, graph_constant(g, "vector", DTYPE_F32, shape2(d->samples, d->width), d->vector), index);
}

// n / (K * count of the class), over the training samples.
static float *balanced_weights(const dataset *d, span train) {
    float *w = calloc((size_t)d->classes, sizeof *w);
    int64_t *count = calloc((size_t)d->classes, sizeof *count);
    CHECK(w && count, "out of memory for %d class weights", d->classes);
    for (int64_t i = train.first; i < train.first + train.count; i++) {
        CHECK(d->label[i] >= 0 && d->label[i] < d->classes, "label %d of %d classes", (int)d->label[i], d->classes);
        count[d->label[i]]++;
    }
    for (int k = 0; k < d->classes; k++)
        w[k] = count[k] ? (float)((double)train.count / ((double)d->classes * (double)count[k])) : 0;
    free(count);
    return w;
}

static void add_optimizer(job *j, const settings *s) {
    j->clip = op_clip(j->g, j->totals, j->seed, s->max_norm, j->precision == PRECISION_FP16);
    if (s->optimizer == OPTIMIZER_SGD) {
        op_sgd(j->g, j->clip, s->sgd);
    } else {
        op_adamw(j->g, j->clip, s->adamw);
    }
    op_advance(j->g, PHASE_UPDATE);
}

void job_init(job *j, const dataset *d, const split *sp, const settings *s, const model_spec *m, const int64_t *window,
    precision p) {
    *j = (job){.g = graph_new(), .precision = p};
    graph *g = j->g;
    model_spec spec = *m;
    tensor index = op_draw(g, BATCH), weight = graph_sibling(g, index, 1);
    for (int i = 0; i < d->streams; i++)
        spec.stream[i].x = stream_input(g, d, &d->stream[i], index, window[i], model_layout(m->kind));
    spec.vector = vector_input(g, d, index);
    tensor label = column(g, "label", d->label, d->samples, index), balance = TENSOR_NONE;
    if (s->class_weights) {
        j->class_weight = balanced_weights(d, sp->train);
        balance = graph_constant(g, "class weights", DTYPE_F32, shape1(d->classes), j->class_weight);
    }
    j->logits = model_build(g, &spec);
    tensor loss = op_cross_entropy(g, j->logits, label, weight, balance, s->smoothing);
    j->totals = op_tally(g, loss);
    j->confusion = op_confusion(g, j->logits, label, weight);
    op_advance(g, PHASE_AFTER);
    dtype_assign(g, p);
    j->seed = grad_build(g, loss);
    add_optimizer(j, s);
}

void job_done(job *j) {
    graph_free(j->g);
    free(j->class_weight);
}
