#include "train/inference.h"

#include "base/err.h"
#include "base/half.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

_Static_assert((int)PART_SPANS_MOST <= (int)SPANS_MOST, "a cursor holds all spans of a part");

step_cursor inference_cursor(const split_part *p, uint32_t epoch, bool shuffle) {
    step_cursor c = {.count = (uint64_t)p->count, .epoch = epoch, .shuffle = shuffle, .spans = (uint32_t)p->spans};
    uint64_t before = 0;
    for (int i = 0; i < p->spans; i++) {
        c.span[i] = (step_span){(uint64_t)p->span[i].first, before};
        before += (uint64_t)p->span[i].count;
    }
    return c;
}

static bool begin(const inference *i, const split_part *p, err *e) {
    step_cursor c = inference_cursor(p, 0, false);
    return batches_seek(i->batches, &(loader_range){.samples = *p}, e) &&
           program_seek(engine_evaluation(i->engine), &c, e) && inference_clear(i, e);
}

static bool play(const inference *i, err *e) {
    return batches_next(i->batches, e) && program_play(engine_evaluation(i->engine), PASS_EVALUATE, e);
}

// Scores

bool inference_clear(const inference *i, err *e) {
    const job *j = engine_job(i->engine);
    store *s = engine_store(i->engine);
    bool ok = store_clear(s, j->g, j->totals, e) && (!j->confusion.id || store_clear(s, j->g, j->confusion, e));
    for (int k = 0; ok && k < FORECAST_METRICS; k++) ok = !j->metric[k].id || store_clear(s, j->g, j->metric[k], e);
    return ok;
}

static bool read_classes(const inference *i, score *s, err *e) {
    const job *j = engine_job(i->engine);
    int K = j->data->classes;
    if (!store_read(engine_store(i->engine), j->g, j->confusion, s->confusion, e)) return false;
    s->accuracy = metric_accuracy(s->confusion, K);
    s->mcc = metric_mcc(s->confusion, K);
    s->macro_f1 = metric_macro_f1(s->confusion, K);
    return true;
}

static bool read_forecasts(const inference *i, score *s, err *e) {
    const job *j = engine_job(i->engine);
    double sums[FORECAST_METRICS][TALLY_COUNT] = {0};
    for (int k = 0; k < FORECAST_METRICS; k++)
        if (j->metric[k].id && !store_read(engine_store(i->engine), j->g, j->metric[k], sums[k], e)) return false;
    s->errors[ERRORS_WEIGHT] = sums[FORECAST_MAE][TALLY_NORM];
    s->errors[ERRORS_ABSOLUTE] = sums[FORECAST_MAE][TALLY_SUM];
    s->errors[ERRORS_SQUARE] = sums[FORECAST_MSE][TALLY_SUM];
    s->errors[ERRORS_SMAPE] = 100 * sums[FORECAST_SMAPE][TALLY_SUM];
    s->errors[ERRORS_SCALED] = sums[FORECAST_MASE][TALLY_SUM];
    s->errors[ERRORS_SCALED_WEIGHT] = sums[FORECAST_MASE][TALLY_NORM];
    s->mae = metric_mae(s->errors);
    s->rmse = metric_rmse(s->errors);
    s->smape = metric_smape(s->errors);
    s->mase = metric_mase(s->errors);
    return true;
}

bool inference_read(const inference *i, int64_t samples, score *s, err *e) {
    const job *j = engine_job(i->engine);
    double totals[TALLY_COUNT];
    *s = (score){.samples = samples};
    s->accuracy = s->mcc = s->macro_f1 = s->mae = s->rmse = s->smape = s->mase = NAN;
    if (!i->device->sync(i->queue, e) || !store_read(engine_store(i->engine), j->g, j->totals, totals, e)) return false;
    s->loss = totals[TALLY_NORM] > 0 ? j->unit * totals[TALLY_SUM] / totals[TALLY_NORM] : 0;
    return j->forecasts ? read_forecasts(i, s, e) : read_classes(i, s, e);
}

bool inference_score(const inference *i, const split_part *p, score *s, err *e) {
    if (!begin(i, p, e)) return false;
    for (int64_t done = 0; done < p->count; done += i->rows)
        if (!play(i, e)) return false;
    return inference_read(i, p->count, s, e);
}

// Predictions

static float value_at(const void *memory, dtype type, int64_t i) {
    const unsigned char *data = memory;
    float v;
    uint16_t bits;
    if (type == DTYPE_F32) {
        memcpy(&v, data + 4 * i, sizeof v);
        return v;
    }
    memcpy(&bits, data + 2 * i, sizeof bits);
    if (type == DTYPE_F16) return half_widen(bits);
    uint32_t wide = (uint32_t)bits << 16;
    memcpy(&v, &wide, sizeof v);
    return v;
}

void inference_softmax(const void *logits, dtype type, int64_t row, int K, float *to) {
    double most = -INFINITY, sum = 0, e[CLASSES_MOST];
    for (int k = 0; k < K; k++) most = fmax(most, (double)value_at(logits, type, row * K + k));
    for (int k = 0; k < K; k++) sum += e[k] = exp((double)value_at(logits, type, row * K + k) - most);
    for (int k = 0; k < K; k++) to[k] = (float)(e[k] / sum);
}

int64_t inference_width(const job *j) {
    return shape_last(graph_info(j->g, j->logits)->shape);
}

bool inference_predict(const inference *i, const split_part *p, float *out, err *e) {
    const job *j = engine_job(i->engine);
    int64_t K = inference_width(j);
    tensor from = j->forecasts ? j->forecast : j->logits;
    dtype type = graph_info(j->g, from)->type;
    unsigned char *batch = malloc((size_t)i->rows * (size_t)K * dtype_bytes(type));
    bool ok = batch ? begin(i, p, e) : err_run(e, "out of memory for a batch of predictions");
    for (int64_t done = 0; ok && done < p->count; done += i->rows) {
        int64_t rows = p->count - done < i->rows ? p->count - done : i->rows;
        ok = play(i, e) && program_peek(engine_evaluation(i->engine), from, batch, e);
        for (int64_t r = 0; ok && !j->forecasts && r < rows; r++)
            inference_softmax(batch, type, r, (int)K, out + (done + r) * K);
        for (int64_t r = 0; ok && j->forecasts && r < rows * K; r++) out[done * K + r] = value_at(batch, type, r);
    }
    free(batch);
    return ok;
}
