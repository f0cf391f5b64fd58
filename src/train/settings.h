// A run description as typed values. The table of keys parses, checks, documents and writes them; it is joined from the
// rows in settings.c and those of models, optimizers, losses, the account and the signal.
#ifndef TRADEWIND_TRAIN_SETTINGS_H
#define TRADEWIND_TRAIN_SETTINGS_H

#include "base/config.h"
#include "data/bars.h"
#include "data/build.h"
#include "data/dataset.h"
#include "data/split.h"
#include "data/synthetic.h"
#include "model/model.h"
#include "train/loss.h"
#include "train/metric.h"
#include "train/optimizer.h"
#include "train/schedule.h"
#include "train/walk_keys.h"

// Which data are scaled: where they are raw, none, all.
typedef enum { SCALE_RAW_DATA, SCALE_NO_DATA, SCALE_DATA, SCALE_OWN_DATA } data_scale;

enum { RECOMPUTE_AUTO = -1 };

// The effective batch where the description says neither which nor `auto`, or `auto` and nothing was tuned.
enum { BATCH_USUAL = 512 };

// Epochs without a better metric before a model's run stops, where the description does not say.
enum { PATIENCE_USUAL = 4 };

// Where the data lie while training: whichever fits, on the device, on the host.
typedef enum { RESIDENCY_AUTO, RESIDENCY_DEVICE, RESIDENCY_HOST } residency;

// Division of windows and targets by the window's level: where the data are a series, never, always.
typedef enum { LEVEL_AUTO, LEVEL_OFF, LEVEL_ON } level_use;

typedef struct {
    // data
    const char *set; // "synthetic", or a file; not looked at where data.bars is given
    synthetic_options synthetic;
    bars_options bars; // how bar files are read and what is made of them
    build_options build;
    split_options split;
    data_scale scale;
    level_use level;
    residency residency;
    int workers, prefetch; // of the loader, where data stay on the host; -1 workers: as many as suit the device
    // a card's memory: bytes, or a share of what it has; 0: not given. At most one of them is
    double max_memory, memory_fraction;
    double max_host_memory;    // bytes; 0: not given
    double target_utilization; // tune: percent of the best rate that a batch must reach
    bool batch_open;           // the effective batch is what tune found (train/wisdom.h), or BATCH_USUAL
    bool split_open;           // how the effective batch is split is for the planner to choose (train/choose.h)
    int recompute;             // segments that are recomputed, or RECOMPUTE_AUTO: as the planner chooses
    products_by products;      // who computes large products on a card
    double monitor_every;      // seconds from one sample to the next; 0: no monitor
    // train
    int64_t batch_size;       // rows of a micro-batch
    int64_t accumulation;     // micro-batches in a step; the product of the two is the effective batch
    int again;                // segments that are recomputed in the backward pass
    int64_t epochs, patience; // patience 0: none, of an agent
    int64_t steps;            // updates at most; 0: as many as the epochs have
    int ensemble;             // members; each is trained as a run of its own
    uint64_t seed;
    optimizer_settings optimizer;
    double lr;
    rate_options rate;   // the optimizer's schedule is made of it when the job is built
    precision precision; // what the description asks for
    bool precision_open; // or leaves open: what was tuned, else bf16, fp16 or fp32, the first that the device computes
    bool fp16_fallback;  // fp16 that overflows gives way to another precision, whose plan is reserved
    float max_norm;
    bool class_weights;
    loss_settings loss;
    quantile_settings quantiles; // levels of the forecasts of a step; none: there is one forecast
    int64_t season;              // steps, for mase and the naive forecasts
    walk_settings walk;
    // run
    const char *dir;
    int64_t checkpoint_every; // epochs
    double checkpoint_minutes;
    int64_t keep_checkpoints;
    const char *init_from; // NULL: initial weights by the seed
    const char *on_event;  // the command that is told events (run/hook.h), or NULL
    unsigned events;       // which, as bits
} settings;

// The table of all keys. From any thread.
const config_key *settings_keys(void);
size_t settings_key_count(void);

// True if a key may change where a run goes on (KEY_FREE). False for a path that is none.
bool settings_may_change(const char *path);

// True if a key's value is the path of a file or a directory (KEY_PATH).
bool settings_is_path(const char *path);

// The words of gpu_optimization.products. False where there is none such.
const char *settings_products_name(products_by p);
bool settings_products_find(const char *name, products_by *p);

// Fills `s` from a description that config_check has passed; `c` must outlive it.
bool settings_read(const config *c, settings *s, err *e);

// The metric that decides which epoch is best: METRIC_CLASSES, METRIC_FORECASTS or METRIC_SERIES (train/metric.h) says
// what the data are for. NULL where train.metric does not fit them.
const metric *settings_metric(const config *c, unsigned task, err *e);

// True if streams of this dataset are to be scaled.
bool settings_scales(const settings *s, const dataset *d);

// True if a run on this dataset forecasts targets, rather than classes; true if it divides windows and targets by the
// window's level.
bool settings_forecasts(const settings *s, const dataset *d);
bool settings_levels(const settings *s, const dataset *d);

// The name of what is minimised on this dataset.
const char *settings_loss(const settings *s, const dataset *d);

// The thing that a run predicts: METRIC_CLASSES and so on.
unsigned settings_task(const settings *s, const dataset *d);

// Which of the forecasts of a step stands for all: that of the quantile nearest to the median.
int settings_median(const settings *s);

// The windows' lengths and the model's shape, which need to know the data. `window[i]` is that of stream i.
bool settings_windows(const config *c, const dataset *d, int64_t window[STREAMS_MOST], err *e);
bool settings_model(const config *c, const dataset *d, model_spec *m, err *e);

#endif
