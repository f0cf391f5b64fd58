// A training job: the whole graph of a step, from drawing samples to the optimizer, and the tensors that the trainer
// talks to.
//
// A job tells classes or forecasts targets (settings_forecasts). A forecast may be made relative to the level of its
// window (settings_levels): window and targets are then divided by it before the model and the loss see them, and what
// the model gives is multiplied with it again. Targets of bars are scaled by the scaler's target_scale (data/target.h)
// in the same places. Metrics are in the data's units, and so is the loss that is told, by `unit`; the loss of closes
// of bars, and train.huber_delta with it, is of y / close.
//
// Samples come in one of two ways. On the device: the graph draws, takes and windows from constants. From the host:
// inputs are states that are fed before every micro-batch, from a loader (train/batches.h). The model's nodes have
// the same numbers either way and whatever the columns' types, so that the same samples give the same bits.
#ifndef TRADEWIND_TRAIN_JOB_H
#define TRADEWIND_TRAIN_JOB_H

#include "data/dataset.h"
#include "data/loader.h"
#include "graph/dtype.h"
#include "graph/feed.h"
#include "train/settings.h"

// Tensors of a micro-batch.
typedef struct {
    tensor x[STREAMS_MOST], vector, weight;
    tensor label, target; // one of the two
    tensor price;         // where targets are scaled by it
} job_inputs;

enum { JOB_FEEDS_MOST = STREAMS_MOST + 4 };

// Metrics of a forecast: tallies of absolute and squared errors, sMAPE / 100, and MASE by the naive forecast's
// error within the window.
enum { FORECAST_MAE, FORECAST_MSE, FORECAST_SMAPE, FORECAST_MASE, FORECAST_METRICS };

typedef struct job {
    graph *g;
    precision precision;
    tensor logits; // what the model gives: scores, or forecasts before their level
    tensor totals, clip;
    tensor confusion;                // of classes; none where the job forecasts
    tensor forecast;                 // [B, quantiles * horizon] in the data's units; none for classes
    tensor metric[FORECAST_METRICS]; // of the forecast nearest to the median; none for classes; MASE of a series only
    tensor seed;                     // the root gradient, [2]: the loss scale and 0
    lr_schedule schedule;            // of the learning rate: schedule_rate (ops/schedule.h) gives an update's
    float *class_weight;             // [classes] or NULL
    double unit;                     // of the loss, in the data's units, or y / close; 1 where targets are not scaled
    bool forecasts;                  // targets, not classes
    bool host;                       // batches come from the host
    job_inputs input;                // states; none where the data are on the device
    feed_input feed[JOB_FEEDS_MOST]; // the same, as they lie in a loader's block
    int feeds;
    size_t feed_bytes;
    int64_t window[STREAMS_MOST];
    const dataset *data;
    const scaler *scaler; // or NULL
    struct job *fallback; // the same job in another precision, for fp16 that overflows (train/fallback.h); or NULL
} job;

// Builds the graph for a dataset, which must outlive it, as must the scaler (NULL: none). `window` gives the length of
// each stream's window. RESIDENCY_AUTO has the data on the device.
void job_init(job *j, const dataset *d, const split *sp, const settings *s, const model_spec *m, const int64_t *window,
    const scaler *sc, precision p);
void job_done(job *j);

// Builds the same job once more, in the precision to fall back to. Arguments as for job_init.
void job_add_fallback(job *j, const dataset *d, const split *sp, const settings *s, const model_spec *m,
    const int64_t *window, const scaler *sc, precision p);

// Lays inputs that come from the host out anew, for another micro-batch (settings.batch_size); job_init does it too.
// The graph has no batch size of its own, and its schedule counts effective batches.
void job_split(job *j, const settings *s);

// Holds what the model gives until the end of a micro-batch, for trainer_predict; before the job is executed.
void job_keep_logits(job *j);

// Who computes its large products from here on (settings.products at first), for jobs that are not being executed.
void job_multiply_by(job *j, products_by p);

// Updates in an epoch, and in a run that nothing stops early; samples that such a run takes.
int64_t job_updates(const split *sp, const settings *s);
int64_t job_all_updates(const split *sp, const settings *s);
int64_t job_all_samples(const split *sp, const settings *s);

// Threads that gather batches where data.num_workers leaves them open.
int job_workers(bool card);

// The loader of a job whose batches come from the host, for a device that keeps `card` memory of its own: it holds the
// batches that are being copied there.
loader_options job_loader(const job *j, const settings *s, bool card);

#endif
