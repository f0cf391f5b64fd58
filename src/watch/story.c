#include "watch/story.h"

#include "base/json.h"
#include "run/outline.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EPOCHS_MOST = 1 << 20 };

// Making

static void forget(story *s) {
    for (int i = 0; i < s->curves; i++) trace_free(s->curve[i].values);
    trace_free(s->loss);
    trace_free(s->lr);
    trace_free(s->rate);
    for (int i = 0; i < GAUGES; i++) trace_free(s->gauge[i]);
    free(s->losses);
    free(s->rates);
}

static void begin(story *s) {
    *s = (story){.parameters = NAN,
        .epochs = NAN,
        .patience = NAN,
        .batch = NAN,
        .samples = NAN,
        .limit = NAN,
        .asked = {NAN, NAN},
        .timesteps = NAN,
        .first_sample = NAN,
        .step_time = NAN,
        .lr_now = NAN,
        .grad_now = NAN,
        .loss_now = NAN,
        .begun_at = NAN,
        .epoch_seconds = {NAN, NAN, NAN}};
    s->loss = trace_new();
    s->lr = trace_new();
    s->rate = trace_new();
    for (int i = 0; i < GAUGES; i++) {
        s->gauge[i] = trace_new();
        s->most[i] = s->late[i] = NAN;
    }
    double *const now[] = {&s->now.memory_used, &s->now.memory_total, &s->now.memory_process, &s->now.memory_others,
        &s->now.memory_most, &s->now.processes, &s->now.utilisation, &s->now.temperature, &s->now.power, &s->now.clock,
        &s->now.memory_clock};
    for (size_t i = 0; i < sizeof now / sizeof *now; i++) *now[i] = NAN;
}

story *story_new(void) {
    story *s = malloc(sizeof *s);
    NEED(s, "out of memory for a run's story");
    begin(s);
    return s;
}

void story_free(story *s) {
    if (s) forget(s);
    free(s);
}

// The description

static void describe(story *s, const db_now *run) {
    const char *config = run->config ? run->config : "", *plan = run->plan ? run->plan : "";
    char where[16];
    outline_put(config, "model.kind", s->model, sizeof s->model);
    outline_put(config, "agent.env", s->agent, sizeof s->agent);
    outline_put(config, "train.metric", s->metric, sizeof s->metric);
    outline_put(plan, "device", s->device, sizeof s->device);
    outline_put(plan, "precision", s->precision, sizeof s->precision);
    outline_put(plan, "residency", where, sizeof where);
    s->card = strncmp(s->device, "cuda", 4) == 0;
    s->streamed = strcmp(where, "host") == 0;
    s->parameters = outline_number(plan, "parameters");
    s->samples = outline_number(plan, "samples.train");
    s->batch = outline_number(plan, "micro_batch") * outline_number(plan, "accumulation");
    s->epochs = s->agent[0] ? NAN : outline_number(config, "train.epochs");
    s->patience = outline_number(config, "train.patience");
    s->timesteps = s->agent[0] ? outline_number(config, "agent.total_timesteps") : NAN;
    s->asked = verdict_limit_read(config, s->card);
    s->limit = verdict_limit_bytes(&s->asked, s->now.memory_total);
}

// Rows

static bool is_room(int count) {
    return count < EPOCHS_MOST;
}

static void append(double **list, int *count, double v) {
    if (!is_room(*count)) return;
    if ((*count & (*count - 1)) == 0) {
        *list = realloc(*list, (*count ? 2 * (size_t)*count : 1) * sizeof **list);
        NEED(*list, "out of memory for the figures of epochs");
    }
    (*list)[(*count)++] = v;
}

static void take_confusion(story *s, const char *text) {
    err unused;
    json_t *m = text ? json_read(text, strlen(text), &unused) : NULL, *row, *each;
    size_t n = json_array_size(m), i, k;
    bool fits = n >= 2 && n <= STORY_CLASSES_MOST;
    json_array_foreach(m, i, row) fits = fits && json_array_size(row) == n;
    s->classes = fits ? (int)n : 0;
    if (fits)
        json_array_foreach(m, i, row) json_array_foreach(row, k, each) s->confusion[i][k] = json_number_value(each);
    json_decref(m);
}

static void take_epoch(story *s, const db_epoch_news *n) {
    const db_epoch_row *r = &n->row;
    s->epoch = r->epoch;
    s->step = (int64_t)r->step;
    if (r->best) s->best_epoch = r->epoch;
    if (r->best) take_confusion(s, r->confusion);
    if (r->seconds > 0) s->seconds += r->seconds;
    memmove(s->epoch_seconds + 1, s->epoch_seconds, 2 * sizeof *s->epoch_seconds);
    s->epoch_seconds[0] = r->seconds;
    trace_add(s->rate, (double)r->epoch, r->samples_per_s, r->samples_per_s, r->samples_per_s);
    append(&s->rates, &s->rates_count, r->samples_per_s);
    if (s->begun <= s->epoch) s->begun = s->done = 0;
}

static story_curve *find_curve(story *s, const db_metric *m) {
    for (int i = 0; i < s->curves; i++)
        if (strcmp(s->curve[i].part, m->part) == 0 && strcmp(s->curve[i].name, m->name) == 0) return &s->curve[i];
    if (s->curves == STORY_CURVES_MOST) return NULL;
    story_curve *c = &s->curve[s->curves++];
    *c = (story_curve){.values = trace_new(), .best = NAN};
    snprintf(c->part, sizeof c->part, "%s", m->part);
    snprintf(c->name, sizeof c->name, "%s", m->name);
    return c;
}

static void take_metric(story *s, const db_metric_news *n) {
    story_curve *c = find_curve(s, &n->metric);
    if (!c) return;
    c->last = n->metric.value;
    if (n->epoch == s->best_epoch) c->best = n->metric.value;
    trace_add(c->values, (double)n->epoch, c->last, c->last, c->last);
    if (strcmp(c->part, "validation") == 0 && strcmp(c->name, "loss") == 0)
        append(&s->losses, &s->losses_count, c->last);
}

static void take_steps(story *s, const db_steps_news *n) {
    const db_steps_row *r = &n->row;
    trace_add(s->loss, (double)r->step, r->loss_min, r->loss_mean, r->loss_max);
    trace_add(s->lr, (double)r->step, r->lr, r->lr, r->lr);
    s->step = (int64_t)r->step;
    s->lr_now = r->lr;
    s->grad_now = r->grad_norm;
    s->loss_now = r->loss_mean;
    s->step_time = n->time;
    if (r->epoch <= s->epoch) return;
    if (r->epoch != s->begun) s->begun_at = n->time;
    s->begun = r->epoch;
    s->done = r->done;
}

static void take_sample(story *s, const db_sample_row *r) {
    const double v[GAUGES] = {r->memory_process, r->memory_used, r->utilisation, r->temperature, r->power, r->clock};
    if (isnan(s->first_sample)) s->first_sample = r->time;
    int at = (int)(s->samples_seen++ % STORY_LATE),
        held = s->samples_seen < STORY_LATE ? (int)s->samples_seen : STORY_LATE;
    for (int i = 0; i < GAUGES; i++) {
        double sum = 0;
        int count = 0;
        trace_add(s->gauge[i], r->time - s->first_sample, v[i], v[i], v[i]);
        s->most[i] = fmax(s->most[i], v[i]);
        s->ring[i][at] = v[i];
        for (int k = 0; k < held; k++)
            if (isfinite(s->ring[i][k])) sum += s->ring[i][k], count++;
        s->late[i] = count ? sum / count : NAN;
    }
    s->now = *r;
    s->limit = verdict_limit_bytes(&s->asked, r->memory_total);
}

static void take_event(story *s, const db_event_news *n) {
    story_event *e = &s->event[s->events++ % STORY_EVENTS];
    *e = (story_event){.time = n->time};
    snprintf(e->kind, sizeof e->kind, "%s", n->kind ? n->kind : "");
    snprintf(e->text, sizeof e->text, "%s", n->text ? n->text : "");
}

static void take_rows(story *s, const db_news *n) {
    for (int i = 0; i < n->epochs; i++) take_epoch(s, &n->epoch[i]);
    for (int i = 0; i < n->metrics; i++) take_metric(s, &n->metric[i]);
    for (int i = 0; i < n->steps; i++) take_steps(s, &n->steps_row[i]);
    for (int i = 0; i < n->samples; i++) take_sample(s, &n->sample[i]);
    for (int i = 0; i < n->events; i++) take_event(s, &n->event[i]);
}

// Metrics may come later than the epoch that they are of was known to be the best.
bool story_take(story *s, tail *t, tail_cursor *c) {
    tail_rows r;
    bool news = false;
    while (tail_read(t, c, &r)) {
        const db_news *n = r.rows;
        if (r.again) {
            forget(s);
            begin(s);
        }
        if (s->described != c->life) describe(s, &tail_at(t)->run);
        s->described = c->life;
        take_rows(s, n);
        news |= r.again || n->epochs || n->metrics || n->steps || n->samples || n->events;
        if (!r.more) break;
    }
    return news;
}

const story_curve *story_find(const story *s, const char *part, const char *name) {
    for (int i = 0; i < s->curves; i++)
        if (strcmp(s->curve[i].part, part) == 0 && strcmp(s->curve[i].name, name) == 0) return &s->curve[i];
    return NULL;
}

// Progress

// The mean of what is known of the last epochs.
static double late_epoch_seconds(const story *s) {
    double sum = 0;
    int n = 0;
    for (int i = 0; i < 3; i++)
        if (s->epoch_seconds[i] > 0) sum += s->epoch_seconds[i], n++;
    return n ? sum / n : NAN;
}

static story_progress progress_of_agent(const story *s) {
    double last = s->rate->count ? s->rate->mean[s->rate->count - 1] : NAN;
    story_progress p = {(double)s->step / s->timesteps, last, NAN, s->epoch};
    p.left = (s->timesteps - (double)s->step) / last;
    return p;
}

static story_progress progress_of_model(const story *s) {
    double each = late_epoch_seconds(s), part = s->begun && s->samples > 0 ? (double)s->done / s->samples : 0;
    double ended = (double)s->epoch;
    story_progress p = {(ended + part) / s->epochs, NAN, NAN, s->begun ? s->begun : s->epoch};
    double since = s->step_time - s->begun_at;
    if (s->rate->count)
        p.rate = s->rate->mean[s->rate->count - 1];
    else if (since > 0 && s->done > 0)
        p.rate = (double)s->done / since;
    if (isnan(each) && p.rate > 0) each = s->samples / p.rate;
    p.left = (s->epochs - ended - part) * each;
    return p;
}

story_progress story_progress_of(const story *s, const tail_now *now) {
    story_progress p = s->timesteps > 0 ? progress_of_agent(s) : progress_of_model(s);
    bool running = strcmp(now->status, "running") == 0;
    if (strcmp(now->status, "done") == 0 && s->epoch) p.share = 1;
    if (p.share > 1) p.share = 1;
    if (!running || !(p.left >= 0)) p.left = NAN;
    return p;
}

// Verdicts

int story_verdicts(const story *s, verdict out[VERDICTS_MOST]) {
    const story_curve *skipped = story_find(s, "", "steps_skipped");
    if (!skipped) skipped = story_find(s, "train", "steps_skipped");
    double last = late_epoch_seconds(s), steps = s->samples / s->batch;
    verdict_figures f = {.card = s->card,
        .utilisation = s->late[GAUGE_UTILISATION],
        .clock = s->late[GAUGE_CLOCK],
        .clock_most = s->most[GAUGE_CLOCK],
        .temperature = s->late[GAUGE_TEMPERATURE],
        .power = s->late[GAUGE_POWER],
        .power_most = s->most[GAUGE_POWER],
        .process = s->most[GAUGE_PROCESS],
        .limit = s->limit,
        .used = s->most[GAUGE_USED],
        .total = s->now.memory_total,
        .streamed = s->streamed,
        .step_seconds = last / steps,
        .parameters = s->parameters,
        .steps = (double)s->step,
        .skipped = skipped ? skipped->last : NAN,
        .loss = s->losses,
        .losses = s->losses_count,
        .patience = s->patience,
        .rate = s->rates,
        .rates = s->rates_count,
        .seconds = s->seconds,
        .agent = s->agent[0]};
    return verdicts(&f, out);
}
