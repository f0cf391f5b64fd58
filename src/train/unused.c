#include "train/unused.h"

#include "base/err.h"
#include "data/set.h"
#include "train/agent_keys.h"

#include <stdio.h>
#include <string.h>

// A reason, or NULL where the key is read. `text` is room for a reason that has names in it.
enum { REASON_ROOM = 160 };
typedef const char *reason(const unused_about *a, const char *path, char text[REASON_ROOM]);

// Data

static bool has_bars(const unused_about *a) {
    return config_count(a->config, "data.bars") > 0;
}

static bool is_made_up(const unused_about *a) {
    return !has_bars(a) && strcmp(a->settings->set, "synthetic") == 0;
}

static reason of_market, of_bars, of_labels, of_stream, of_series, of_split, of_loader;

static const char *of_market(const unused_about *a, const char *path, char text[REASON_ROOM]) {
    (void)path;
    (void)text;
    return is_made_up(a) ? NULL : "the data are not the synthetic market";
}

static const char *of_bars(const unused_about *a, const char *path, char text[REASON_ROOM]) {
    (void)path;
    if (has_bars(a)) return NULL;
    if (is_made_up(a)) return "is of data.bars, and the data are the synthetic market";
    snprintf(text, REASON_ROOM, "is of data.bars, and %.60s is a finished set; import makes another", a->settings->set);
    return text;
}

// Keys of labels by the kinds that read them.
static bool label_reads(const unused_about *a, const char *key) {
    enum { DIRECTION = 1 << BUILD_DIRECTION, BARRIER = 1 << BUILD_BARRIER, FORECAST = 1 << BUILD_FORECAST };
    static const struct {
        const char *key;
        int kinds;
    } all[] = {{"horizon", DIRECTION | FORECAST}, {"band", DIRECTION}, {"volatility", DIRECTION | BARRIER},
        {"classes", DIRECTION}, {"strong", DIRECTION}, {"up", BARRIER}, {"down", BARRIER}, {"limit", BARRIER},
        {"timeout", BARRIER}, {"side", BARRIER}, {"value", FORECAST}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(key, all[i].key) == 0) return all[i].kinds & 1 << a->settings->build.label;
    return true;
}

static const char *of_labels(const unused_about *a, const char *path, char text[REASON_ROOM]) {
    const char *key = strrchr(path, '.') + 1, *kind = config_text(a->config, "data.label.kind");
    if (!has_bars(a) && !is_made_up(a)) {
        snprintf(text, REASON_ROOM, "%.60s has its labels already; import makes others", a->settings->set);
        return text;
    }
    if (!has_bars(a)) return of_bars(a, path, text);
    snprintf(text, REASON_ROOM, "labels of data.label.kind %s do not read it", kind);
    if (!label_reads(a, key)) return text;
    bool strong = strcmp(key, "strong") == 0 && config_int(a->config, "data.label.classes") != 5;
    return strong ? "is of data.label.classes 5" : NULL;
}

static const char *of_stream(const unused_about *a, const char *path, char text[REASON_ROOM]) {
    const char *name = strrchr(path, '.') + 1;
    (void)text;
    for (int i = 0; i < a->data->streams; i++)
        if (strcmp(a->data->stream[i].name, name) == 0) return NULL;
    return "the data has no such stream";
}

static const char *of_series(const unused_about *a, const char *path, char text[REASON_ROOM]) {
    (void)path;
    (void)text;
    return settings_task(a->settings, a->data) == METRIC_SERIES ? NULL : "the data are not series to be forecast";
}

static const char *of_split(const unused_about *a, const char *path, char text[REASON_ROOM]) {
    (void)path;
    (void)text;
    if (a->settings->walk.fold) return "parts of a fold are those of the section walk";
    return a->data->held ? "the set holds its validation samples out itself" : NULL;
}

static const char *of_loader(const unused_about *a, const char *path, char text[REASON_ROOM]) {
    (void)path;
    (void)text;
    return a->host ? NULL : "no threads gather batches: the data lie on the device";
}

// Model

static reason of_model, of_hidden;

// Conditions beyond the kind of the model.
static const char *in_vain(const unused_about *a, const char *path) {
    const char *key = strrchr(path, '.') + 1;
    bool classes = a->model->classes > 0;
    if (agent_given(a->config)) return NULL; // a vector is always there: the account
    if (strcmp(key, "projection") == 0 && !a->data->vector.width) return "the data have no vector to be projected";
    if (strcmp(key, "horizon") == 0 && !classes) return "is of classes; the data say how far to forecast";
    if (a->model->kind != MODEL_nbeats) return NULL;
    if (!classes && (strcmp(key, "head") == 0 || strcmp(key, "dropout") == 0))
        return "nbeats has a head, and dropout in it, for classes alone";
    bool trend = false;
    for (size_t i = 0; i < config_items(a->config, "model.stacks"); i++)
        trend |= strcmp(config_item(a->config, "model.stacks", i), "trend") == 0;
    return strcmp(key, "degree") == 0 && !trend ? "no stack is a trend" : NULL;
}

static const char *of_model(const unused_about *a, const char *path, char text[REASON_ROOM]) {
    snprintf(text, REASON_ROOM, "model.kind %s does not read it", model_name(a->model->kind));
    return model_reads(a->model->kind, path) ? in_vain(a, path) : text;
}

static const char *of_hidden(const unused_about *a, const char *path, char text[REASON_ROOM]) {
    const char *why = of_model(a, "model.hidden", text);
    if (!why && agent_given(a->config))
        return strcmp(path, "model.hidden.bars") == 0 || strcmp(path, "model.hidden") == 0
                   ? NULL
                   : "the stream of an agent is bars";
    return why || strcmp(path, "model.hidden") == 0 ? why : of_stream(a, path, text);
}

// Training

static reason of_optimizer, of_loss, of_schedule, of_monitor, of_card, of_precision, of_tuning;

static const char *of_optimizer(const unused_about *a, const char *path, char text[REASON_ROOM]) {
    optimizer_kind k = a->settings->optimizer.kind;
    snprintf(text, REASON_ROOM, "train.optimizer.kind %s does not read it", optimizer_name(k));
    return optimizer_reads(k, path) ? NULL : text;
}

static const char *of_loss(const unused_about *a, const char *path, char text[REASON_ROOM]) {
    size_t count;
    loss_kind k = loss_for(&a->settings->loss, a->data->label != NULL);
    const config_key *keys = loss_keys(k, &count);
    snprintf(text, REASON_ROOM, "the loss %s does not read it", loss_name(k));
    return config_row(keys, count, path) ? NULL : text;
}

static const char *of_schedule(const unused_about *a, const char *path, char text[REASON_ROOM]) {
    enum {
        COSINE = 1 << RATE_COSINE,
        LINEAR = 1 << RATE_LINEAR,
        STEPS = 1 << RATE_STEP | 1 << RATE_EXPONENTIAL,
        CYCLE = 1 << RATE_ONE_CYCLE,
        PLATEAU = 1 << RATE_PLATEAU
    };
    static const struct {
        const char *key;
        int kinds;
    } all[] = {{"end", COSINE | LINEAR}, {"total", COSINE | LINEAR | CYCLE}, {"every", STEPS}, {"gamma", STEPS},
        {"rise", CYCLE}, {"divide", CYCLE}, {"divide_by", CYCLE}, {"factor", PLATEAU}, {"patience", PLATEAU},
        {"threshold", PLATEAU}, {"least", PLATEAU}, {"start", ~CYCLE}};
    const char *key = strrchr(path, '.') + 1;
    const rate_options *r = &a->settings->rate;
    snprintf(text, REASON_ROOM, "train.schedule.kind %s does not read it", rate_name(r->kind));
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(key, all[i].key) == 0 && !(all[i].kinds & 1 << r->kind)) return text;
    return strcmp(key, "start") == 0 && !r->warmup ? "there is no train.schedule.warmup" : NULL;
}

static const char *of_monitor(const unused_about *a, const char *path, char text[REASON_ROOM]) {
    (void)path;
    (void)text;
    return a->settings->monitor_every > 0 ? NULL : "memory_monitoring is off";
}

static const char *of_card(const unused_about *a, const char *path, char text[REASON_ROOM]) {
    (void)path;
    (void)text;
    return a->card ? NULL : "is of a card, and the CPU computes";
}

static const char *of_precision(const unused_about *a, const char *path, char text[REASON_ROOM]) {
    (void)path;
    (void)text;
    return a->card || !a->settings->precision_open ? NULL : "the CPU computes in fp32";
}

static const char *of_fp16(const unused_about *a, const char *path, char text[REASON_ROOM]) {
    if (!a->card) return of_card(a, path, text);
    return a->fp16 || a->tunes ? NULL : "is of fp16, and the run computes in another precision";
}

static const char *of_tuning(const unused_about *a, const char *path, char text[REASON_ROOM]) {
    (void)path;
    (void)text;
    return a->tunes ? NULL : "is read by tradewind tune alone";
}

static const char *of_walk(const unused_about *a, const char *path, char text[REASON_ROOM]) {
    static const char *const walks[] = {"train", "test", "step", "folds", "start"};
    const char *key = strrchr(path, '.') + 1;
    bool combines = a->settings->walk.scheme.kind == SCHEME_CPCV, of_time = false;
    (void)text;
    if (!a->settings->walk.fold) return "is of folds; tradewind walk makes them, or walk.fold names one";
    for (size_t i = 0; i < sizeof walks / sizeof *walks; i++) of_time |= strcmp(key, walks[i]) == 0;
    if (combines && of_time) return "walk.scheme cpcv does not read it";
    bool groups = strcmp(key, "groups") == 0 || strcmp(key, "test_groups") == 0;
    return groups && !combines ? "is of walk.scheme cpcv" : NULL;
}

// Rules: the first whose path fits. A path that ends with * fits everything that begins like it. Without a function a
// key is always read, or whoever reads it tells by itself.
static const struct {
    const char *path;
    reason *why;
} rules[] = {
    {"data.set", NULL},
    {"data.bars.*", NULL},
    {"data.synthetic.*", of_market},
    {"data.frames", of_bars},
    {"data.features.*", of_bars},
    {"data.vector", of_bars},
    {"data.types", of_bars},
    {"data.tz", of_bars},
    {"data.date_order", of_bars},
    {"data.columns", of_bars},
    {"data.force", of_bars},
    {"data.keep_coarse", of_bars},
    {"data.keep_filled", of_bars},
    {"data.label.*", of_labels},
    {"data.windows.*", of_stream},
    {"data.scale", NULL},
    {"data.level", of_series},
    {"data.residency", NULL},
    {"data.num_workers", of_loader},
    {"data.prefetch_factor", of_loader},
    {"data.split.*", of_split},
    {"model.kind", NULL},
    {"model.symbol", NULL},
    {"model.hidden*", of_hidden},
    {"model.*", of_model},
    {"train.batch_size", NULL},
    {"train.epochs", NULL},
    {"train.steps", NULL},
    {"train.patience", NULL},
    {"train.metric", NULL},
    {"train.optimizer.kind", NULL},
    {"train.optimizer.lr", NULL},
    {"train.optimizer.weight_decay", NULL},
    {"train.optimizer.decay", NULL},
    {"train.optimizer.*", of_optimizer},
    {"train.schedule.*", of_schedule},
    {"train.loss", NULL},
    {"train.focal_gamma", of_loss},
    {"train.huber_delta", of_loss},
    {"train.quantiles", of_loss},
    {"train.season", of_series},
    {"train.clip_norm", NULL},
    {"train.class_weights", NULL},
    {"train.label_smoothing", NULL},
    {"train.ensemble", NULL},
    {"train.seed", NULL},
    {"train.checkpoint_every", NULL},
    {"train.checkpoint_minutes", NULL},
    {"train.keep_checkpoints", NULL},
    {"train.init_from", NULL},
    {"gpu_optimization.use_mixed_precision", of_precision},
    {"gpu_optimization.fp16_fallback", of_fp16},
    {"gpu_optimization.products", of_card},
    {"gpu_optimization.monitoring_interval", of_monitor},
    {"gpu_optimization.max_memory_gb", NULL},
    {"gpu_optimization.memory_fraction", NULL},
    {"gpu_optimization.max_host_memory_gb", NULL},
    {"gpu_optimization.gradient_accumulation_steps", NULL},
    {"gpu_optimization.dynamic_batch_sizing", NULL},
    {"gpu_optimization.recompute", NULL},
    {"gpu_optimization.target_utilization", of_tuning},
    {"gpu_optimization.memory_monitoring", NULL},
    {"agent*", NULL}, // agent_unread knows
    {"walk", NULL},
    {"walk.*", of_walk},
    {"run.dir", NULL},
    {"run.tags", NULL},
    {"on_event.*", NULL},
    {"run.device", NULL},
    {"account.*", NULL},
    {"live*", NULL},
    {"signal.*", NULL},
    {"report.*", NULL},
};
enum { RULES = sizeof rules / sizeof *rules };

static bool fits(const char *rule, const char *path) {
    size_t n = strlen(rule);
    return rule[n - 1] == '*' ? strncmp(rule, path, n - 1) == 0 : strcmp(rule, path) == 0;
}

static int rule_of(const char *path) {
    int i = 0;
    while (i < RULES && !fits(rules[i].path, path)) i++;
    return i;
}

// Keys of the training alone: nothing else follows from them, once there are weights.
static bool is_of_training(const char *path) {
    static const char *const all[] = {"train.epochs", "train.steps", "train.patience", "train.metric",
        "train.optimizer*", "train.schedule*", "train.clip_norm", "train.ensemble", "train.checkpoint_every",
        "train.checkpoint_minutes", "train.keep_checkpoints", "train.init_from", "agent.total_timesteps",
        "agent.n_epochs", "agent.gamma", "agent.gae_lambda", "agent.learning_rate*", "agent.clip_range*",
        "agent.ent_coef*", "agent.target_kl*", "agent.vf_coef", "agent.max_grad_norm", "agent.entropy_bound",
        "agent.value_loss_bound", "agent.normalize_advantage", "agent.normalize_reward", "agent.evaluate_every",
        "run.dir", "run.tags", "on_event.*"};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (fits(all[i], path)) return true;
    return false;
}

bool unused_knows(const char *path) {
    return rule_of(path) < RULES;
}

typedef struct {
    const unused_about *about;
    void (*tell)(void *arg, const char *path, const char *why);
    void *arg;
} teller;

static void look_at(void *arg, const char *path) {
    const teller *t = arg;
    char text[REASON_ROOM];
    int i = rule_of(path);
    CHECK(i < RULES, "%s: it is not known when this key is read", path);
    const unused_about *a = t->about;
    if (a->complete && config_is_usual(a->config, path)) return;
    const char *why = agent_given(a->config) ? agent_unread(a->config, path) : NULL;
    if (!why && a->trained && is_of_training(path)) why = "is of training, and these weights are trained";
    if (!why && rules[i].why) why = rules[i].why(a, path, text);
    if (why) t->tell(t->arg, path, why);
}

void unused_each(const unused_about *a, void (*tell)(void *arg, const char *path, const char *why), void *arg) {
    teller t = {a, tell, arg};
    config_each(a->config, look_at, &t);
}
