// Folds of two futures: what the task that trains them fits, and the weights that it ends with.
#include "base/stop.h"
#include "task/agent.h"
#include "task/fit.h"
#include "task/walk_check_work.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EPOCHS = 2 }; // a leak into the weights shows after one step; two epochs have two validations

// The moment before the first of the samples from `first` on.
static bool moment_before(const dataset *d, int64_t first, int64_t *t) {
    if (first < 1 || !d->time) return false;
    *t = d->time[first - 1];
    return true;
}

bool fold_chosen_by(const dataset *d, const split *s, int64_t *t) {
    int64_t test = part_first(&s->test);
    return part_end(&s->train) <= test && part_end(&s->validation) <= test && moment_before(d, test, t);
}

bool fold_trained_by(const dataset *d, const split *s, int64_t *t) {
    int64_t first = s->validation.count ? part_first(&s->validation) : part_first(&s->test);
    if (part_first(&s->test) < first) first = part_first(&s->test);
    return part_end(&s->train) <= first && moment_before(d, first, t);
}

// One fold on one dataset.
typedef struct {
    char number[24], epochs[24];
    task model;
    agent_task agent;
    const task *task; // of either: its data, parts and scale
    bool open, agents;
    float *weight; // [weights]
    int64_t weights;
} trial;

static bool trial_open(trial *x, const task_options *o, dataset *d, const scheme_fold *f, err *e) {
    task_options as = *o;
    *x = (trial){0};
    as.data = d;
    as.listener = (task_listener){0};
    snprintf(x->number, sizeof x->number, "%lld", (long long)f->number + 1);
    snprintf(x->epochs, sizeof x->epochs, "%d", EPOCHS);
    task_change_behind(&as.description, "walk.fold", x->number);
    task_change_behind(&as.description, "train.epochs", x->epochs);
    if (!agent_described(&as, &x->agents, e)) return false;
    x->task = x->agents ? &x->agent.world.task : &x->model;
    x->open = x->agents ? agent_task_open(&x->agent, &as, NULL, e) : task_open(&x->model, &as, e);
    return x->open;
}

static void trial_close(trial *x) {
    free(x->weight);
    if (x->open && x->agents) agent_task_close(&x->agent);
    if (x->open && !x->agents) task_close(&x->model);
    *x = (trial){0};
}

static bool on_step(void *arg, int64_t epoch, int64_t done, int64_t total) {
    (void)arg, (void)epoch, (void)done, (void)total;
    err unused;
    return stop_go_on(&unused);
}

static void on_epoch(void *arg, const epoch_report *r) {
    (void)arg, (void)r;
}

static bool begin_weights(const task *t, trainer *tr, err *e) {
    if (!fit_judge_by(t, tr, e)) return false;
    if (!t->settings.init_from) return true;
    contract *is = task_contract(t);
    bool ok = fit_begin_from(t, tr, is, NULL, e);
    contract_free(is);
    return ok;
}

static bool take_memory(trial *x, const graph *g, err *e) {
    x->weights = graph_slab_elements(g);
    x->weight = malloc((size_t)x->weights * sizeof *x->weight);
    return x->weight || err_run(e, "no memory for %lld weights", (long long)x->weights);
}

// Iterations with an evaluation each, which choose the best weights.
static bool train_agent(trial *x, err *e) {
    agent_report report;
    agent_score score;
    double best = -INFINITY;
    agent *a = agent_task_agent(&x->agent, e);
    bool ok = a && take_memory(x, agent_graph(a), e);
    for (int i = 0; ok && i < EPOCHS; i++) {
        ok = stop_go_on(e) && agent_iterate(a, &report, e) && agent_evaluate(a, &score, e);
        if (!ok || !(score.mean > best)) continue;
        best = score.mean;
        ok = agent_keep(a, e);
    }
    ok = ok && agent_back(a, e) && agent_weights(a, x->weight, e);
    agent_free(a);
    return ok;
}

static bool train_model(trial *x, err *e) {
    const task *t = x->task;
    train_result result;
    watcher w = {.on_step = on_step, .on_epoch = on_epoch};
    if (!take_memory(x, t->job.g, e)) return false;
    trainer *tr = task_trainer(t, e);
    bool ok = tr && begin_weights(t, tr, e) && trainer_run(tr, &w, &result, e) && stop_go_on(e);
    ok = ok && program_read(engine_evaluation(trainer_engine(tr)), graph_slab(t->job.g, SLAB_WEIGHTS), x->weight, e);
    if (tr) trainer_free(tr);
    return ok;
}

static bool trial_train(trial *x, err *e) {
    return x->agents ? train_agent(x, e) : train_model(x, e);
}

// Comparison

static void same_floats(
    check_result *r, const float *a, const float *b, int64_t count, int64_t fold, const char *what) {
    if (!a != !b) {
        check_fail(r, "fold %lld: %s are there or not", (long long)fold, what);
        return;
    }
    if (!a) return;
    check_count(r, count);
    for (int64_t i = 0; i < count; i++)
        if (memcmp(&a[i], &b[i], sizeof *a) != 0)
            check_fail(r, "fold %lld: number %lld of %lld of the %s: %g is now %g", (long long)fold, (long long)i + 1,
                (long long)count, what, (double)a[i], (double)b[i]);
}

static bool same_samples(check_result *r, const split_part *a, const split_part *b, int64_t fold) {
    check_count(r, 1);
    bool same = a->count == b->count && a->spans == b->spans;
    for (int i = 0; same && i < a->spans; i++)
        same = a->span[i].first == b->span[i].first && a->span[i].count == b->span[i].count;
    if (!same)
        check_fail(r, "fold %lld: training samples: %lld in %d spans are now %lld in %d", (long long)fold,
            (long long)a->count, a->spans, (long long)b->count, b->spans);
    return same;
}

// Labels of the training samples, which both have.
static void same_labels(check_result *r, const dataset *a, const dataset *b, const split_part *p, int64_t fold) {
    size_t bytes = (size_t)a->target_width * sizeof *a->target;
    check_count(r, p->count);
    for (int64_t k = 0; k < p->count; k++) {
        int64_t i = part_sample(p, k);
        bool same = (!a->label || a->label[i] == b->label[i]) &&
                    (!bytes || memcmp(a->target + i * a->target_width, b->target + i * a->target_width, bytes) == 0);
        if (!same) check_fail(r, "fold %lld: label of training sample %lld", (long long)fold, (long long)k + 1);
    }
}

static void same_scales(check_result *r, const task *a, const task *b, int64_t fold) {
    const scaler *x = a->scaler, *y = b->scaler;
    char what[80];
    if (same_samples(r, &a->split.train, &b->split.train, fold))
        same_labels(r, a->data, b->data, &a->split.train, fold);
    same_floats(r, a->job.class_weight, b->job.class_weight, a->data->classes, fold, "class weights");
    for (int i = 0; x && y && i < x->streams; i++) {
        snprintf(what, sizeof what, "means of stream %.40s", a->data->stream[i].name);
        same_floats(r, x->mean[i], y->mean[i], x->series * x->width[i], fold, what);
        snprintf(what, sizeof what, "deviations of stream %.40s", a->data->stream[i].name);
        same_floats(r, x->std[i], y->std[i], x->series * x->width[i], fold, what);
    }
    if (x && y) {
        const float one[] = {x->target.mean, x->target.std}, other[] = {y->target.mean, y->target.std};
        same_floats(r, one, other, 2, fold, "scale of targets");
    }
}

// One fold, on all data and on others.
typedef struct {
    const task_options *o;
    const history *h; // or NULL
    const scheme_fold *f;
    trial whole;
    int64_t trained, chosen; // moments, where there is a history
} pair;

// The data with another future behind what a rule is about: training, or training and validation.
static dataset *other_data(const pair *p, check_rule rule, future f, err *e) {
    bool both = rule == CHECK_WEIGHTS;
    const task *t = p->whole.task;
    if (p->h) return history_build(p->h, both ? p->chosen : p->trained, f, e);
    return unseen_altered(t->options.data, &p->f->parts, both, t->window, f, e);
}

// Opens the fold on the data with another future. A fold that cannot be made there is a failure of the rule.
static bool open_other(const pair *p, check_rule rule, future f, trial *x, dataset **d, check_report *r, err *e) {
    err why;
    *x = (trial){0};
    *d = other_data(p, rule, f, &why);
    if (*d && trial_open(x, p->o, *d, p->f, &why)) return true;
    if (why.kind != ERR_INPUT) {
        *e = why;
        return false;
    }
    check_count(&r->rule[rule], 1);
    check_fail(&r->rule[rule], "fold %lld: it cannot be made any more: %.150s", (long long)p->f->number + 1, why.text);
    return true;
}

static bool compare(const pair *p, check_rule rule, future f, check_report *r, err *e) {
    trial other;
    dataset *d;
    int64_t number = p->f->number + 1;
    bool ok = open_other(p, rule, f, &other, &d, r, e), open = other.open;
    if (ok && open && rule == CHECK_SCALES) same_scales(&r->rule[rule], p->whole.task, other.task, number);
    if (ok && open && rule == CHECK_WEIGHTS) {
        ok = trial_train(&other, e);
        CHECK(p->whole.weights == other.weights, "weights of one description differ in number");
        if (ok) same_floats(&r->rule[rule], p->whole.weight, other.weight, other.weights, number, "weights");
    }
    trial_close(&other);
    dataset_free(d);
    return ok;
}

bool fold_same(const task_options *o, const history *h, dataset *whole, const scheme_fold *f, bool train,
    check_report *r, err *e) {
    pair p = {.o = o, .h = h, .f = f};
    bool scaled = !h || fold_trained_by(whole, &f->parts, &p.trained), ok = true;
    train = train && (!h || fold_chosen_by(whole, &f->parts, &p.chosen));
    if (!scaled && !train) return true;
    if (!trial_open(&p.whole, o, whole, f, e)) return false;
    if (train) ok = trial_train(&p.whole, e);
    for (int k = FUTURE_UP; ok && k <= FUTURE_DOWN; k++) {
        if (scaled) ok = compare(&p, CHECK_SCALES, (future)k, r, e);
        if (ok && train) ok = compare(&p, CHECK_WEIGHTS, (future)k, r, e);
    }
    trial_close(&p.whole);
    r->folds += scaled;
    r->trained += train;
    r->epochs = EPOCHS;
    return ok;
}
