#include "train/settings.h"

#include "data/set.h"
#include "env/account_terms.h"
#include "graph/dtype.h"
#include "run/hook.h"
#include "train/agent_keys.h"
#include "train/live_keys.h"
#include "train/signal_keys.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Short for the marks of a row. Names of data files may change where a run goes on: the plan compares the data
// themselves (task/chosen.h).
enum { FIXED = KEY_FIXED, FREE = KEY_FREE, TUNED = KEY_TUNED, UNTUNED = KEY_UNTUNED, PATH = KEY_PATH };

static const config_key data_keys[] = {
    {"data.set", CONFIG_TEXT, "synthetic", 0, 0, NULL,
        "what to train on: synthetic (the built-in market), a dataset from import, or an .npz of windows",
        FREE | TUNED | PATH},
    {"data.synthetic.bars", CONFIG_INT, "100000", 1000, 5e7, NULL, "five-minute bars in the synthetic market",
        FIXED | TUNED},
    {"data.synthetic.seed", CONFIG_INT, "7", 0, 1e15, NULL, "which synthetic market", FIXED | UNTUNED},
    {"data.synthetic.strength", CONFIG_REAL, "1.5", 0, 100, NULL, "planted signal against noise", FIXED | UNTUNED},
    {"data.bars.*", CONFIG_TEXT, NULL, 0, 0, NULL,
        "in place of a set: bar files by stream, as {fast: FILE}; the finest is the clock", FREE | TUNED | PATH},
    {"data.bars.*.*", CONFIG_TEXT, NULL, 0, 0, NULL,
        "the same of several instruments: by symbol, then by stream; for symbols with a dot, `import --symbol` and "
        "data.set",
        FREE | TUNED | PATH},
    {"data.frames", CONFIG_LIST, NULL, 0, 0, NULL, "bars: coarser streams made of the finest, such as 1h",
        FIXED | TUNED},
    {"data.features.*", CONFIG_LIST, NULL, 0, 0, NULL,
        "bars: features, by stream (doc/features.md; default: the usual)", FIXED | TUNED},
    {"data.vector", CONFIG_BOOL, "true", 0, 0, NULL, "bars: with the vector of 32 strategies", FIXED | TUNED},
    {"data.types", CONFIG_CHOICE, "f32", 0, 0, "f32|compact", "bars: compact holds the vector as i8 and f16",
        FIXED | TUNED},
    {"data.tz", CONFIG_TEXT, NULL, 0, 0, NULL, "bars: the files' clock, such as mt5, EST, +2 (default UTC)",
        FIXED | UNTUNED},
    {"data.date_order", CONFIG_CHOICE, "auto", 0, 0, "auto|dmy|mdy|ymd",
        "bars: order of dates such as 03/04/2024; auto: as the file's numbers show", FIXED | UNTUNED},
    {"data.columns", CONFIG_TEXT, NULL, 0, 0, NULL, "bars: which column is which, such as time=Date,close=Price",
        FIXED | UNTUNED},
    {"data.keep_coarse", CONFIG_BOOL, "false", 0, 0, NULL, "bars: keep stretches of coarser ones", FIXED | UNTUNED},
    {"data.keep_filled", CONFIG_BOOL, "false", 0, 0, NULL, "bars: keep Dukascopy's flat ones of closed hours",
        FIXED | UNTUNED},
    {"data.force", CONFIG_LIST, NULL, 0, 0, NULL,
        "bars: take them although these checks refuse them (thin, splits, agree, ...: doc/data.md)", FIXED | UNTUNED},
    {"data.label.kind", CONFIG_CHOICE, "direction", 0, 0, "direction|barrier|forecast", "bars: what is to be predicted",
        FIXED | TUNED},
    {"data.label.horizon", CONFIG_INT, "auto", 1, LABEL_BARS_MOST, "auto", "bars ahead (direction 1, forecast 12)",
        FIXED | TUNED},
    {"data.label.band", CONFIG_REAL, "0.5", 0, 1e6, NULL, "direction: moves within it are NEUTRAL", FIXED | UNTUNED},
    {"data.label.volatility", CONFIG_INT, "100", 0, LABEL_BARS_MOST, NULL,
        "bars of the volatility that band, up and down are multiples of; 0: they are returns", FIXED | UNTUNED},
    {"data.label.classes", CONFIG_INT, "3", 3, 5, NULL, "direction: 3, or 5 with strong moves apart", FIXED | TUNED},
    {"data.label.strong", CONFIG_REAL, "2", 1, 1e6, NULL, "direction: bands that make a move strong", FIXED | UNTUNED},
    {"data.label.up", CONFIG_REAL, "2", ABOVE_0, 1e6, NULL, "barrier: distance of the upper one", FIXED | UNTUNED},
    {"data.label.down", CONFIG_REAL, "2", ABOVE_0, 1e6, NULL, "barrier: distance of the lower one", FIXED | UNTUNED},
    {"data.label.limit", CONFIG_INT, "24", 1, LABEL_BARS_MOST, NULL, "barrier: bars until time is up", FIXED | UNTUNED},
    {"data.label.timeout", CONFIG_CHOICE, "neutral", 0, 0, "neutral|sign",
        "barrier: label when the time limit is reached first: neutral, or the sign of the return", FIXED | UNTUNED},
    {"data.label.side", CONFIG_CHOICE, "long", 0, 0, "long|short",
        "barrier: whose stop counts where a bar touches both", FIXED | UNTUNED},
    {"data.label.value", CONFIG_CHOICE, "path", 0, 0, "close|step|path",
        "forecast: closes, log returns bar by bar, or log returns since the sample", FIXED | TUNED},
    {"data.windows.*", CONFIG_INT, NULL, 1, 100000, NULL,
        "bars in a stream's window, by stream (50 for the first, 20 for others; a set of windows has its own)",
        FIXED | TUNED},
    {"data.scale", CONFIG_CHOICE, "auto", 0, 0, "auto|none|standard|own",
        "standard: streams' columns less their mean, by their deviation; own: each instrument by its own; auto: "
        "standard "
        "where the data are raw",
        FIXED | TUNED},
    {"data.level", CONFIG_CHOICE, "auto", 0, 0, "auto|none|mean",
        "forecasts: mean divides a window and its targets by the window's mean size; auto: for series by themselves",
        FIXED | TUNED},
    {"data.residency", CONFIG_CHOICE, "auto", 0, 0, "auto|device|host",
        "where the data lie: all on the device, or on the host, whose threads gather batches", FREE | TUNED},
    {"data.num_workers", CONFIG_INT, "auto", 0, 256, "auto",
        "threads that gather batches on the host (auto: 2; for a card, one per processor but one)", FREE | UNTUNED},
    {"data.prefetch_factor", CONFIG_INT, "4", 1, 1000, NULL, "batches that they gather ahead", FREE | UNTUNED},
    {"data.split.train", CONFIG_REAL, "0.70", ABOVE_0, 1, NULL,
        "share of the samples, the earliest; not of a panel, which holds samples out itself", FIXED | TUNED},
    {"data.split.validation", CONFIG_REAL, "0.15", ABOVE_0, 1, NULL, "share after those; what is left is for a test",
        FIXED | UNTUNED},
    {"data.split.purge", CONFIG_INT, "auto", 0, 1e9, "auto|windows",
        "moments left out between parts; auto: as far as labels reach; windows: and no window looks back",
        FIXED | UNTUNED},
    {"data.split.embargo", CONFIG_INT, "50", 0, 1e9, NULL,
        "further moments left out between the parts: as many bars, of all instruments", FIXED | UNTUNED},
};

static const char metric_choices[] = "auto"
#define METRIC(name, ...) "|" #name
#include "train/metric.def"
#undef METRIC
    ;

static const config_key train_keys[] = {
    {"train.batch_size", CONFIG_INT, "512", 1, 1e7, "auto",
        "samples in a micro-batch, unless the planner splits it; auto: the effective batch that tune found, else 512",
        FIXED | UNTUNED},
    {"train.epochs", CONFIG_INT, "8", 1, 1e6, NULL, "passes over the training samples, at most", FREE | UNTUNED},
    {"train.steps", CONFIG_INT, "auto", 1, 1e15, "auto",
        "updates, at most: the epoch that they end in is cut short (auto: as many as the epochs have)",
        FIXED | UNTUNED},
    {"train.patience", CONFIG_INT, "auto", 1, 1e6, "auto",
        "epochs without a better metric before stopping, of an agent evaluations; auto: 4, of an agent all",
        FREE | UNTUNED},
    {"train.metric", CONFIG_CHOICE, "auto", 0, 0, metric_choices,
        "what decides which epoch is best, on validation; auto: mcc for classes, smape for series, mae for others",
        FIXED | UNTUNED},
};

static const config_key schedule_keys[] = {
    {"train.schedule.kind", CONFIG_CHOICE, "constant", 0, 0,
        "constant|cosine|linear|step|exponential|one_cycle|plateau", "how the learning rate goes", FIXED | UNTUNED},
    {"train.schedule.warmup", CONFIG_INT, "0", 0, 1e12, NULL, "updates in which the rate rises to its full height",
        FIXED | UNTUNED},
    {"train.schedule.start", CONFIG_REAL, "0.01", 0, 1, NULL, "share of the rate at which the warm-up starts",
        FIXED | UNTUNED},
    {"train.schedule.end", CONFIG_REAL, "0", 0, 1, NULL, "cosine, linear: share of the rate at the end",
        FIXED | UNTUNED},
    {"train.schedule.total", CONFIG_INT, "auto", 1, 1e12, "auto",
        "cosine, linear, one_cycle: updates until the end, warm-up included; auto: those of all epochs",
        FIXED | UNTUNED},
    {"train.schedule.every", CONFIG_INT, "auto", 1, 1e12, "auto",
        "step, exponential: updates after which the rate has been multiplied by gamma; auto: those of an epoch",
        FIXED | UNTUNED},
    {"train.schedule.gamma", CONFIG_REAL, "auto", ABOVE_0, 1, "auto", "step (auto: 0.1), exponential (auto: 0.95)",
        FIXED | UNTUNED},
    {"train.schedule.rise", CONFIG_REAL, "0.3", 0, 1, NULL, "one_cycle: share of the updates in which the rate rises",
        FIXED | UNTUNED},
    {"train.schedule.divide", CONFIG_REAL, "25", 1, 1e9, NULL, "one_cycle: the first rate is the largest divided by it",
        FIXED | UNTUNED},
    {"train.schedule.divide_by", CONFIG_REAL, "1.0e4", 1, 1e12, NULL,
        "one_cycle: the last rate is the first divided by it", FIXED | UNTUNED},
    {"train.schedule.factor", CONFIG_REAL, "0.1", ABOVE_0, 0.999999, NULL, "plateau: what a fall multiplies by",
        FIXED | UNTUNED},
    {"train.schedule.patience", CONFIG_INT, "2", 0, 1e6, NULL, "plateau: epochs without a better metric before a fall",
        FIXED | UNTUNED},
    {"train.schedule.threshold", CONFIG_REAL, "1.0e-4", 0, 1, NULL,
        "plateau: smallest relative improvement that counts", FIXED | UNTUNED},
    {"train.schedule.least", CONFIG_REAL, "0", 0, 100, NULL, "plateau: the lowest rate", FIXED | UNTUNED},
};

static const config_key run_keys[] = {
    {"train.season", CONFIG_INT, "1", 1, 100000, NULL,
        "series: steps of a season, for mase and the naive forecasts (24 for hourly series)", FIXED | UNTUNED},
    {"train.clip_norm", CONFIG_REAL, "1.0", 0, 1e9, NULL, "largest norm of the gradient; 0 for no limit",
        FIXED | TUNED},
    {"train.class_weights", CONFIG_CHOICE, "none", 0, 0, "none|balanced", "balanced: rare classes weigh more",
        FIXED | UNTUNED},
    {"train.label_smoothing", CONFIG_REAL, "0", 0, 0.95, NULL, "share of a label spread over all classes",
        FIXED | UNTUNED},
    {"train.ensemble", CONFIG_INT, "1", 1, 1000, NULL,
        "members trained one after another, with seeds from train.seed on, and used together", FIXED | UNTUNED},
    {"train.seed", CONFIG_INT, "1", 0, 1e15, NULL, "of initial weights, shuffling and dropout", FIXED | UNTUNED},
    {"gpu_optimization.use_mixed_precision", CONFIG_BOOL, "true", 0, 0, "bf16|fp16|tf32",
        "16-bit products on a card: true for the best it has; the CPU computes in fp32", FIXED | TUNED},
    {"gpu_optimization.fp16_fallback", CONFIG_BOOL, "true", 0, 0, NULL,
        "fp16 that overflows goes on in bf16 or fp32, for whose plan memory is reserved; false: such a run ends",
        FIXED | UNTUNED},
    {"gpu_optimization.max_memory_gb", CONFIG_REAL, NULL, ABOVE_0, 1e6, NULL,
        "hard limit of a card's memory, in 2^30 bytes, for all that its monitor counts: context, data, everything",
        FREE | TUNED},
    {"gpu_optimization.memory_fraction", CONFIG_REAL, NULL, ABOVE_0, 1, NULL,
        "the same limit as a share of the card's memory, such as 0.8", FREE | TUNED},
    {"gpu_optimization.max_host_memory_gb", CONFIG_REAL, NULL, ABOVE_0, 1e6, NULL,
        "limit of the host's memory, in 2^30 bytes; on the CPU: of all but mapped files; on a card: of batches and "
        "copies",
        FREE | TUNED},
    {"gpu_optimization.gradient_accumulation_steps", CONFIG_INT, "1", 1, 1e6, "auto",
        "micro-batches of train.batch_size in a step; auto: one batch_size a step, split as memory demands",
        FIXED | UNTUNED},
    {"gpu_optimization.dynamic_batch_sizing", CONFIG_BOOL, "false", 0, 0, NULL,
        "the planner splits the effective batch, batch_size x gradient_accumulation_steps, into micro-batches",
        FIXED | UNTUNED},
    {"gpu_optimization.recompute", CONFIG_INT, "auto", 0, 1000, "auto|off",
        "layers or blocks whose activations are recomputed for backward; auto: as few as the memory demands",
        FREE | TUNED},
    {"gpu_optimization.products", CONFIG_CHOICE, "auto", 0, 0, "auto|own|library",
        "large products on a card: own kernels, with which every plan of fp32 has the same bits; cuBLASLt wherever it "
        "can; auto: what was tuned, else by size",
        FIXED | TUNED},
    {"gpu_optimization.target_utilization", CONFIG_REAL, "85", 1, 100, NULL,
        "tune: percent of the best rate that the smallest batch to be taken must reach", FREE | UNTUNED},
    {"gpu_optimization.memory_monitoring", CONFIG_BOOL, "true", 0, 0, NULL,
        "samples of memory, utilisation, temperature, power and clocks in run.db, and warnings at 90 % of the memory",
        FREE | UNTUNED},
    {"gpu_optimization.monitoring_interval", CONFIG_REAL, "1", 0.01, 3600, NULL, "seconds from one sample to the next",
        FREE | UNTUNED},
    {"run.dir", CONFIG_TEXT, "runs/last", 0, 0, NULL, "where results go", FREE | UNTUNED | PATH},
    {"run.tags", CONFIG_LIST, NULL, 0, 0, NULL, "words by which `runs --filter tag=WORD` finds the run",
        FREE | UNTUNED},
    {"run.device", CONFIG_CHOICE, "auto", 0, 0, "auto|cpu|cuda|cuda:N",
        "where to train, unless --device says; auto: the card where there is one", FREE | UNTUNED},
    {"train.checkpoint_every", CONFIG_INT, "50", 1, 1e6, NULL, "epochs from one checkpoint to the next",
        FREE | UNTUNED},
    {"train.checkpoint_minutes", CONFIG_REAL, "5", 0, 1e6, NULL, "and minutes; 0 for epochs alone", FREE | UNTUNED},
    {"train.keep_checkpoints", CONFIG_INT, "3", 0, 1e6, NULL, "newest ones kept, of each kind; 0 keeps all",
        FREE | UNTUNED},
    {"train.init_from", CONFIG_TEXT, NULL, 0, 0, NULL, "weights to start from: FILE.safetensors",
        FREE | UNTUNED | PATH},
    {"on_event.command", CONFIG_TEXT, NULL, 0, 0, NULL,
        "a command of the shell that gets events of the run as JSON on its standard input (doc/watch.md)",
        FREE | UNTUNED},
    {"on_event.events", CONFIG_LIST, NULL, 0, 0, NULL, "which: finished, failed, best, memory, stop (all unless given)",
        FREE | UNTUNED},
};

// All keys in one table, in the order in which people read them.

enum { KEYS_MOST = 256 };

static struct {
    config_key key[KEYS_MOST];
    size_t count;
} all;

static void join(const config_key *keys, size_t count) {
    CHECK(all.count + count <= KEYS_MOST, "more than %d keys", KEYS_MOST);
    for (size_t i = 0; i < count; i++) all.key[all.count++] = keys[i];
}

static void join_all(void) {
    size_t count;
    join(data_keys, sizeof data_keys / sizeof *data_keys);
    const config_key *keys = model_common_keys(&count);
    join(keys, count);
    for (int k = 0; k < MODEL_COUNT; k++) {
        keys = model_keys((model_kind)k, &count);
        join(keys, count);
    }
    join(train_keys, sizeof train_keys / sizeof *train_keys);
    keys = optimizer_common_keys(&count);
    join(keys, count);
    for (int k = 0; k < OPTIMIZER_COUNT; k++) {
        keys = optimizer_keys((optimizer_kind)k, &count);
        join(keys, count);
    }
    join(schedule_keys, sizeof schedule_keys / sizeof *schedule_keys);
    keys = loss_common_keys(&count);
    join(keys, count);
    for (int k = 0; k < LOSS_COUNT; k++) {
        keys = loss_keys((loss_kind)k, &count);
        join(keys, count);
    }
    join(run_keys, sizeof run_keys / sizeof *run_keys);
    keys = account_keys(&count);
    join(keys, count);
    keys = signal_keys(&count);
    join(keys, count);
    keys = report_keys(&count);
    join(keys, count);
    keys = walk_keys(&count);
    join(keys, count);
    keys = live_keys(&count);
    join(keys, count);
    keys = agent_keys(&count);
    join(keys, count);
}

const config_key *settings_keys(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, join_all);
    return all.key;
}

size_t settings_key_count(void) {
    settings_keys();
    return all.count;
}

bool settings_may_change(const char *path) {
    const config_key *k = config_row(settings_keys(), settings_key_count(), path);
    return k && k->marks & KEY_FREE;
}

bool settings_is_path(const char *path) {
    const config_key *k = config_row(settings_keys(), settings_key_count(), path);
    return k && k->marks & KEY_PATH;
}

static void read_data(const config *c, settings *s) {
    s->set = config_text(c, "data.set");
    s->synthetic.bars = config_int(c, "data.synthetic.bars");
    s->synthetic.seed = (uint64_t)config_int(c, "data.synthetic.seed");
    s->synthetic.strength = config_real(c, "data.synthetic.strength");
    s->split.train = config_real(c, "data.split.train");
    s->split.validation = config_real(c, "data.split.validation");
    s->split.embargo = config_int(c, "data.split.embargo");
    if (config_is(c, "data.split.purge", "auto"))
        s->split.purge = PURGE_LABELS;
    else if (config_is(c, "data.split.purge", "windows"))
        s->split.purge = PURGE_WINDOWS;
    else
        s->split.purge = config_int(c, "data.split.purge");
}

static void read_bars(const config *c, settings *s) {
    build_options *b = &s->build;
    *b = build_defaults;
    s->bars.tz = config_text(c, "data.tz");
    s->bars.columns = config_text(c, "data.columns");
    when_order_read(config_text(c, "data.date_order"), &s->bars.date_order);
    s->bars.keep_coarse = config_bool(c, "data.keep_coarse");
    s->bars.keep_filled = config_bool(c, "data.keep_filled");
    b->vector = config_bool(c, "data.vector");
    b->compact = config_is(c, "data.types", "compact");
    b->label = config_is(c, "data.label.kind", "barrier") ? BUILD_BARRIER : BUILD_DIRECTION;
    if (config_is(c, "data.label.kind", "forecast")) b->label = BUILD_FORECAST;
    if (!config_is(c, "data.label.horizon", "auto"))
        b->horizon = b->direction.horizon = config_int(c, "data.label.horizon");
    b->direction.band = config_real(c, "data.label.band");
    b->direction.volatility_bars = b->barrier.volatility_bars = config_int(c, "data.label.volatility");
    b->direction.classes = (int)config_int(c, "data.label.classes");
    b->direction.strong = config_real(c, "data.label.strong");
    b->barrier.up = config_real(c, "data.label.up");
    b->barrier.down = config_real(c, "data.label.down");
    b->barrier.limit = config_int(c, "data.label.limit");
    b->barrier.timeout = config_is(c, "data.label.timeout", "sign") ? LABEL_TIMEOUT_SIGN : LABEL_TIMEOUT_NEUTRAL;
    b->barrier.side = config_is(c, "data.label.side", "short") ? -1 : 1;
    b->value = config_is(c, "data.label.value", "path") ? LABEL_PATH : LABEL_CLOSE;
    if (config_is(c, "data.label.value", "step")) b->value = LABEL_STEP;
}

static void read_loading(const config *c, settings *s) {
    s->scale = config_is(c, "data.scale", "standard") ? SCALE_DATA : SCALE_RAW_DATA;
    if (config_is(c, "data.scale", "none")) s->scale = SCALE_NO_DATA;
    if (config_is(c, "data.scale", "own")) s->scale = SCALE_OWN_DATA;
    s->residency = config_is(c, "data.residency", "host") ? RESIDENCY_HOST : RESIDENCY_AUTO;
    if (config_is(c, "data.residency", "device")) s->residency = RESIDENCY_DEVICE;
    s->workers = config_is(c, "data.num_workers", "auto") ? -1 : (int)config_int(c, "data.num_workers");
    s->prefetch = (int)config_int(c, "data.prefetch_factor");
}

bool settings_scales(const settings *s, const dataset *d) {
    return s->scale == SCALE_DATA || s->scale == SCALE_OWN_DATA || (s->scale == SCALE_RAW_DATA && d->raw);
}

bool settings_forecasts(const settings *s, const dataset *d) {
    return !loss_at(loss_for(&s->loss, d->label != NULL))->classes;
}

// True if the data are one series whose next values are the targets. A column of bars is a feature.
static bool is_series(const dataset *d) {
    return d->streams == 1 && d->stream[0].series.width == 1 && !d->price;
}

unsigned settings_task(const settings *s, const dataset *d) {
    if (!settings_forecasts(s, d)) return METRIC_CLASSES;
    return is_series(d) ? METRIC_SERIES : METRIC_FORECASTS;
}

int settings_median(const settings *s) {
    int best = 0;
    for (int i = 1; i < s->quantiles.count; i++)
        if (fabsf(s->quantiles.level[i] - 0.5f) < fabsf(s->quantiles.level[best] - 0.5f)) best = i;
    return best;
}

bool settings_levels(const settings *s, const dataset *d) {
    if (!settings_forecasts(s, d) || !is_series(d) || s->level == LEVEL_OFF) return false;
    return s->level == LEVEL_ON || !settings_scales(s, d);
}

static int64_t int_or_0(const config *c, const char *path) {
    return config_is(c, path, "auto") ? 0 : config_int(c, path);
}

static bool read_schedule(const config *c, settings *s, err *e) {
    rate_options *r = &s->rate;
    for (int k = 0; k < RATE_KINDS; k++)
        if (config_is(c, "train.schedule.kind", rate_name((rate_kind)k))) r->kind = (rate_kind)k;
    r->warmup = config_int(c, "train.schedule.warmup");
    r->start = config_real(c, "train.schedule.start");
    r->end = config_real(c, "train.schedule.end");
    r->total = int_or_0(c, "train.schedule.total");
    r->every = int_or_0(c, "train.schedule.every");
    r->gamma = r->kind == RATE_EXPONENTIAL ? 0.95 : 0.1;
    if (!config_is(c, "train.schedule.gamma", "auto")) r->gamma = config_real(c, "train.schedule.gamma");
    r->rise = config_real(c, "train.schedule.rise");
    r->divide = config_real(c, "train.schedule.divide");
    r->divide_by = config_real(c, "train.schedule.divide_by");
    r->plateau.factor = config_real(c, "train.schedule.factor");
    r->plateau.patience = config_int(c, "train.schedule.patience");
    r->plateau.threshold = config_real(c, "train.schedule.threshold");
    r->plateau.least = config_real(c, "train.schedule.least");
    if (r->kind == RATE_ONE_CYCLE && r->warmup > 0)
        return config_fail(c, "train.schedule.warmup", e, "one_cycle rises by itself; use train.schedule.rise");
    if (r->total && r->total <= r->warmup)
        return config_fail(c, "train.schedule.warmup", e, "is as long as the schedule; lower it or raise total");
    return true;
}

const char *settings_loss(const settings *s, const dataset *d) {
    return loss_name(loss_for(&s->loss, d->label != NULL));
}

static bool read_loss(const config *c, settings *s, err *e) {
    s->level = config_is(c, "data.level", "mean") ? LEVEL_ON : LEVEL_AUTO;
    if (config_is(c, "data.level", "none")) s->level = LEVEL_OFF;
    s->season = config_int(c, "train.season");
    if (!loss_read(c, &s->loss, e)) return false;
    s->quantiles = loss_levels(&s->loss);
    return true;
}

static void read_precision(const config *c, settings *s) {
    static const char key[] = "gpu_optimization.use_mixed_precision";
    static const precision words[] = {PRECISION_BF16, PRECISION_FP16, PRECISION_TF32};
    s->fp16_fallback = config_bool(c, "gpu_optimization.fp16_fallback");
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (!config_is(c, key, precision_name(words[i]))) continue;
        s->precision = words[i];
        return;
    }
    s->precision_open = config_bool(c, key);
    s->precision = PRECISION_FP32;
}

static const char *const products_words[] = {"auto", "own", "library"};

const char *settings_products_name(products_by p) {
    return products_words[p];
}

bool settings_products_find(const char *name, products_by *p) {
    for (int i = PRODUCTS_AUTO; i <= PRODUCTS_LIBRARY; i++) {
        if (strcmp(name, products_words[i]) != 0) continue;
        *p = (products_by)i;
        return true;
    }
    return false;
}

static bool read_split(const config *c, settings *s, err *e) {
    static const char parts[] = "gpu_optimization.gradient_accumulation_steps", again[] = "gpu_optimization.recompute";
    bool open = config_is(c, parts, "auto");
    s->batch_open = config_is(c, "train.batch_size", "auto");
    s->batch_size = s->batch_open ? BATCH_USUAL : config_int(c, "train.batch_size");
    s->accumulation = open ? 1 : config_int(c, parts);
    s->split_open = s->batch_open || open || config_bool(c, "gpu_optimization.dynamic_batch_sizing");
    s->target_utilization = config_real(c, "gpu_optimization.target_utilization");
    s->recompute = RECOMPUTE_AUTO;
    if (config_is(c, again, "off")) s->recompute = 0;
    if (!config_is(c, again, "off") && !config_is(c, again, "auto")) s->recompute = (int)config_int(c, again);
    s->again = s->recompute == RECOMPUTE_AUTO ? 0 : s->recompute;
    if (!s->batch_open || s->accumulation == 1) return true;
    return config_fail(c, parts, e, "train.batch_size: auto is the whole step's; leave this out, or say auto");
}

static bool read_force(const config *c, settings *s, err *e) {
    err why = {0};
    for (size_t i = 0; i < config_items(c, "data.force"); i++)
        if (!bars_force_read(config_item(c, "data.force", i), &s->bars.force, &why))
            return config_fail(c, "data.force", e, "%s", why.text);
    return true;
}

static bool read_limit(const config *c, settings *s, err *e) {
    static const char host[] = "gpu_optimization.max_host_memory_gb";
    static const char gb[] = "gpu_optimization.max_memory_gb", fraction[] = "gpu_optimization.memory_fraction";
    if (config_has(c, gb)) s->max_memory = config_real(c, gb) * 0x1p30;
    if (config_has(c, fraction)) s->memory_fraction = config_real(c, fraction);
    if (config_has(c, host)) s->max_host_memory = config_real(c, host) * 0x1p30;
    if (config_bool(c, "gpu_optimization.memory_monitoring"))
        s->monitor_every = config_real(c, "gpu_optimization.monitoring_interval");
    if (!config_has(c, gb) || !config_has(c, fraction)) return true;
    return config_fail(c, fraction, e, "max_memory_gb is given too; leave one of them out");
}

static bool read_events(const config *c, settings *s, err *e) {
    static const char path[] = "on_event.events";
    hook_event k;
    s->events = (1u << HOOK_EVENTS) - 1;
    if (!config_given(c, path)) return true;
    if (!s->on_event) return config_fail(c, path, e, "there is no on_event.command that could be told");
    s->events = 0;
    for (size_t i = 0; i < config_items(c, path); i++) {
        const char *word = config_item(c, path, i);
        if (!hook_event_find(word, &k))
            return config_fail(
                c, path, e, "%.40s: unknown event; finished, failed, best, memory and stop are known", word);
        s->events |= 1u << k;
    }
    return true;
}

bool settings_read(const config *c, settings *s, err *e) {
    *s = (settings){0};
    read_data(c, s);
    read_bars(c, s);
    read_loading(c, s);
    read_precision(c, s);
    settings_products_find(config_text(c, "gpu_optimization.products"), &s->products);
    s->epochs = config_int(c, "train.epochs");
    s->steps = int_or_0(c, "train.steps");
    s->patience = int_or_0(c, "train.patience");
    if (!s->patience && !agent_given(c)) s->patience = PATIENCE_USUAL;
    s->ensemble = (int)config_int(c, "train.ensemble");
    s->seed = (uint64_t)config_int(c, "train.seed");
    s->max_norm = (float)config_real(c, "train.clip_norm");
    s->lr = config_real(c, "train.optimizer.lr");
    s->class_weights = config_is(c, "train.class_weights", "balanced");
    s->dir = config_text(c, "run.dir");
    s->checkpoint_every = config_int(c, "train.checkpoint_every");
    s->checkpoint_minutes = config_real(c, "train.checkpoint_minutes");
    s->keep_checkpoints = config_int(c, "train.keep_checkpoints");
    s->on_event = config_text(c, "on_event.command");
    s->init_from = config_text(c, "train.init_from");
    if (!read_force(c, s, e) || !read_split(c, s, e) || !read_limit(c, s, e) || !optimizer_read(c, &s->optimizer, e) ||
        !read_schedule(c, s, e))
        return false;
    if (s->split.train + s->split.validation > 1)
        return config_fail(c, "data.split.train", e, "train and validation add up to more than 1; lower one of them");
    if (!s->dir[0]) return config_fail(c, "run.dir", e, "is empty; name a directory");
    return read_loss(c, s, e) && walk_read(c, &s->walk, e) && read_events(c, s, e);
}

const metric *settings_metric(const config *c, unsigned task, err *e) {
    static const char key[] = "train.metric";
    if (config_is(c, key, "auto")) return metric_usual(task);
    const metric *m = metric_find(config_text(c, key));
    CHECK(m, "no metric named %s", config_text(c, key));
    if (m->tasks & task) return m;
    char use[160] = "";
    for (int i = 0; metric_at(i); i++) {
        size_t n = strlen(use);
        if (metric_at(i)->tasks & task) snprintf(use + n, sizeof use - n, "%s%s", n ? ", " : "", metric_at(i)->name);
    }
    config_fail(c, key, e, "%s is for %s; use one of %s", m->name,
        m->tasks & METRIC_CLASSES     ? "classes"
        : m->tasks & METRIC_FORECASTS ? "forecasts"
                                      : "forecasts of series",
        use);
    return NULL;
}

static const char *stream_names(const dataset *d, char *text, size_t room) {
    size_t at = 0;
    text[0] = 0;
    for (int i = 0; i < d->streams && at < room; i++)
        at += (size_t)snprintf(text + at, room - at, "%s%s", i ? ", " : "", d->stream[i].name);
    return text;
}

static bool has_stream(const dataset *d, const char *name) {
    for (int k = 0; k < d->streams; k++)
        if (strcmp(name, d->stream[k].name) == 0) return true;
    return false;
}

// A description may speak of usual streams that the data at hand have not; any other name is a slip.
static bool is_usual(const char *name) {
    for (int k = 0; k < FRAMES_MOST; k++)
        if (strcmp(name, build_stream_names[k]) == 0) return true;
    return false;
}

static bool check_streams(const config *c, const dataset *d, const char *section, err *e) {
    char names[256];
    for (size_t i = 0; i < config_count(c, section); i++) {
        const char *name = config_child(c, section, i);
        char path[160];
        snprintf(path, sizeof path, "%s.%s", section, name);
        if (!has_stream(d, name) && !is_usual(name))
            return config_fail(c, path, e, "the data has no such stream; it has %s; name one of them or remove the key",
                stream_names(d, names, sizeof names));
    }
    return true;
}

static int64_t by_stream(const config *c, const char *section, const char *name, int64_t otherwise) {
    char path[160];
    snprintf(path, sizeof path, "%s.%s", section, name);
    return config_has(c, path) ? config_int(c, path) : otherwise;
}

bool settings_windows(const config *c, const dataset *d, int64_t window[STREAMS_MOST], err *e) {
    model_kind kind = model_find(config_text(c, "model.kind"));
    int64_t most = model_steps_most(kind);
    for (int i = 0; i < d->streams; i++) {
        char path[160];
        window[i] = by_stream(c, "data.windows", d->stream[i].name, set_window(d, i));
        snprintf(path, sizeof path, "data.windows.%s", d->stream[i].name);
        if (most && window[i] > most)
            return config_fail(c, path, e, "a %s takes %lld steps at most", model_name(kind), (long long)most);
        if (!d->window[i] || window[i] <= d->window[i]) continue;
        return config_fail(
            c, path, e, "the set was made of windows of %lld steps; use no more", (long long)d->window[i]);
    }
    return check_streams(c, d, "data.windows", e);
}

// Outputs of the model, as loss and data ask for them.
static bool read_outputs(const config *c, const dataset *d, model_data *m, err *e) {
    settings s = {0};
    if (!read_loss(c, &s, e)) return false;
    bool forecasts = settings_forecasts(&s, d);
    if (!forecasts && !d->label) return config_fail(c, "train.loss", e, "is for classes; the data have only targets");
    if (forecasts && !d->target) return config_fail(c, "train.loss", e, "is for forecasts; the data have no targets");
    if (forecasts && config_is(c, "train.class_weights", "balanced"))
        return config_fail(c, "train.class_weights", e, "weighs classes, and this run forecasts; leave it out");
    if (forecasts && config_real(c, "train.label_smoothing") > 0)
        return config_fail(c, "train.label_smoothing", e, "is of classes, and this run forecasts; leave it out");
    if (forecasts && s.level == LEVEL_ON && !is_series(d))
        return config_fail(c, "data.level", e, "is of one series alone; these data have more");
    loss_kind chosen = loss_for(&s.loss, !forecasts);
    if (loss_at(chosen)->naive && !is_series(d))
        return config_fail(
            c, "train.loss", e, "%s needs one series, whose naive forecast it is measured by", loss_name(chosen));
    m->classes = forecasts ? 0 : d->classes;
    m->horizon = forecasts ? d->target_width : 0;
    m->quantiles = s.quantiles.count ? s.quantiles.count : 1;
    return true;
}

bool settings_model(const config *c, const dataset *d, model_spec *m, err *e) {
    model_data about = {.streams = d->streams, .series = is_series(d)};
    for (int i = 0; i < d->streams; i++) about.stream[i] = d->stream[i].name;
    return check_streams(c, d, "model.hidden", e) && read_outputs(c, d, &about, e) && model_read(c, &about, m, e);
}
