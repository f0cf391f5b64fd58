// A small actor-critic from today's operators: four programs on one store, against a plain computation in double.
//
// Policy and value are a linear layer each. Act gives logits and values of 4 environments; advantage gives reward -
// value over all 4 x 8 rows of a rollout; minibatch takes 16 of these rows, with the loss
//   mean over rows of: advantage * cross entropy(logits, action) + (value - reward)^2 / 2
// and update applies its gradient. Each has a graph of its own, but minibatch and update, which have one together; they
// share the parameters by name.
#include "cpu/cpu.h"
#include "graph/grad.h"
#include "graph/program.h"
#include "ops/ops.h"
#include "support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ENVS = 4, SLOTS = 8, ALL = ENVS * SLOTS, MINI = 16, D = 6, A = 3, ROLLOUTS = 5 };

static const float lr = 0.05f, momentum = 0.9f;

// fp32 rounds each of some 40 operations on the way from a weight to its next value by 6e-8 of values of about 1; ten
// updates with momentum add these up.
static const double tolerance = 1e-5;

// Graphs

typedef struct {
    graph *g;
    tensor observation, logits, value;        // act
    tensor reward, advantage;                 // advantage
    tensor action, weight, one, root, totals; // minibatch
} net;

static tensor layer(graph *g, tensor x, const char *weight, const char *bias, int64_t outputs) {
    init begin = {INIT_UNIFORM, 0.5f};
    tensor w = graph_parameter(g, weight, shape2(outputs, D), begin);
    return op_linear(g, x, w, graph_parameter(g, bias, shape1(outputs), begin), ACT_NONE);
}

static tensor policy(graph *g, tensor x) {
    return layer(g, x, "policy.weight", "policy.bias", A);
}

static tensor value(graph *g, tensor x) {
    return layer(g, x, "value.weight", "value.bias", 1);
}

// The value's parameters come first here and last in the minibatch's graph: the layouts differ.
static net act_net(void) {
    net n = {.g = graph_new()};
    n.observation = graph_state(n.g, "observation", DTYPE_F32, shape2(BATCH, D));
    n.value = value(n.g, n.observation);
    n.logits = policy(n.g, n.observation);
    graph_keep(n.g, n.value);
    graph_keep(n.g, n.logits);
    dtype_assign(n.g, PRECISION_FP32);
    return n;
}

static net advantage_net(void) {
    net n = {.g = graph_new()};
    n.observation = graph_state(n.g, "observation", DTYPE_F32, shape2(BATCH, D));
    n.reward = graph_state(n.g, "reward", DTYPE_F32, shape2(BATCH, 1));
    n.advantage = op_axpby(n.g, n.reward, value(n.g, n.observation), 1, -1);
    graph_keep(n.g, n.advantage);
    dtype_assign(n.g, PRECISION_FP32);
    return n;
}

// The value's loss counts the rows; its normaliser is what the gradient is divided by.
static net minibatch_net(void) {
    net n = {.g = graph_new()};
    graph *g = n.g;
    n.observation = graph_state(g, "observation", DTYPE_F32, shape2(BATCH, D));
    n.reward = graph_state(g, "reward", DTYPE_F32, shape2(BATCH, 1));
    n.action = graph_state(g, "action", DTYPE_I32, shape1(BATCH));
    n.weight = graph_state(g, "advantage", DTYPE_F32, shape1(BATCH));
    n.one = graph_state(g, "one", DTYPE_F32, shape1(BATCH));
    tensor of_policy = op_cross_entropy(g, policy(g, n.observation), n.action, n.weight, TENSOR_NONE, 0);
    tensor of_value = op_mse(g, value(g, n.observation), n.reward, n.one);
    tensor loss = op_axpby(g, of_policy, of_value, 1, 0.5f);
    n.totals = op_tally(g, of_value);
    graph_normaliser(g, n.totals);
    op_advance(g, PHASE_AFTER);
    dtype_assign(g, PRECISION_FP32);
    n.root = grad_build(g, loss);
    op_sgd(g, op_clip(g, n.totals, n.root, 0, false), (sgd_settings){.momentum = momentum});
    op_advance(g, PHASE_UPDATE);
    return n;
}

// The actor: one space, one store, four programs on one queue.

typedef struct {
    queue *q;
    net act_net, advantage_net, minibatch_net;
    program *act, *advantage, *minibatch, *update;
    store *store;
    transient transient;
    space *space;
} actor;

static program *described(actor *a, const net *n, int64_t rows, unsigned passes) {
    program_options o = {.graph = n->g, .rows = rows, .passes = passes};
    program *p = program_new(&cpu_device, a->q, &o);
    transient_fit(&a->transient, p);
    return p;
}

static void ready(actor *a, program *p) {
    err e;
    program_place at = {.queue = a->q, .space = a->space, .transient = &a->transient, .store = {a->store}};
    support_ok(program_ready(p, &at, &e), &e);
}

static void actor_open(actor *a) {
    err e;
    *a = (actor){.act_net = act_net(), .advantage_net = advantage_net(), .minibatch_net = minibatch_net()};
    a->q = cpu_device.open(&(queue_options){.threads = 2}, &e);
    support_ok(a->q != NULL, &e);
    a->act = described(a, &a->act_net, ENVS, PASS_BIT(PASS_EVALUATE));
    a->advantage = described(a, &a->advantage_net, ALL, PASS_BIT(PASS_EVALUATE));
    a->minibatch = described(a, &a->minibatch_net, MINI, PASS_BIT(PASS_FIRST));
    a->update = described(a, &a->minibatch_net, MINI, PASS_BIT(PASS_UPDATE));
    a->store = store_new(true);
    store_add(a->store, a->minibatch_net.g, STORE_FOR_TRAINING);
    store_add(a->store, a->act_net.g, STORE_FOR_INFERENCE);
    store_add(a->store, a->advantage_net.g, STORE_FOR_INFERENCE);
    program *all[] = {a->act, a->advantage, a->minibatch, a->update};
    size_t bytes = space_aligned(store_bytes(a->store)) + space_aligned(a->transient.bytes);
    for (int i = 0; i < 4; i++) bytes += space_aligned(program_own(all[i]));
    a->space = space_new(&cpu_device, a->q, bytes, &e);
    support_ok(
        a->space && store_place(a->store, a->q, a->space, &e) && transient_place(&a->transient, a->space, &e), &e);
    for (int i = 0; i < 4; i++) ready(a, all[i]);
    assert_int_equal(space_used(a->space), space_bytes(a->space)); // predicted to the byte
}

static void actor_close(actor *a) {
    program *all[] = {a->act, a->advantage, a->minibatch, a->update};
    for (int i = 0; i < 4; i++) program_free(all[i]);
    transient_give(&a->transient);
    store_free(a->store);
    space_free(a->space);
    cpu_device.close(a->q);
    graph_free(a->act_net.g);
    graph_free(a->advantage_net.g);
    graph_free(a->minibatch_net.g);
}

// Plainly, in double

typedef struct {
    double w[A][D], b[A], v[D], c; // policy's weights and biases, the value's weights and bias
} weights;

enum { WEIGHTS = sizeof(weights) / sizeof(double) };

static void plain_forward(const weights *w, const float *x, double *logits, double *v) {
    for (int k = 0; k < A; k++) {
        logits[k] = w->b[k];
        for (int i = 0; i < D; i++) logits[k] += w->w[k][i] * (double)x[i];
    }
    *v = w->c;
    for (int i = 0; i < D; i++) *v += w->v[i] * (double)x[i];
}

// Adds a row's gradient.
static void plain_row(const weights *w, weights *g, const float *x, int action, double advantage, double reward) {
    double z[A], v, sum = 0;
    plain_forward(w, x, z, &v);
    for (int k = 0; k < A; k++) sum += exp(z[k]);
    for (int k = 0; k < A; k++) {
        double d = advantage * (exp(z[k]) / sum - (k == action));
        g->b[k] += d;
        for (int i = 0; i < D; i++) g->w[k][i] += d * (double)x[i];
    }
    g->c += v - reward;
    for (int i = 0; i < D; i++) g->v[i] += (v - reward) * (double)x[i];
}

static void plain_update(weights *w, const weights *g, weights *m) {
    double *to = (double *)w, *moment = (double *)m;
    const double *from = (const double *)g;
    for (int i = 0; i < (int)WEIGHTS; i++) {
        moment[i] = (double)momentum * moment[i] + from[i] / MINI;
        to[i] -= (double)lr * moment[i];
    }
}

static void expect(const char *what, int i, double is, double want) {
    if (!(fabs(is - want) <= tolerance)) fail_msg("%s %d is %.9g, not %.9g", what, i, is, want);
}

// Both from the same start

static void read_weights(actor *a, weights *to) {
    err e;
    static const char *const names[] = {"policy.weight", "policy.bias", "value.weight", "value.bias"};
    static const int counts[] = {A * D, A, D, 1};
    double *at = (double *)to;
    const graph *g = a->minibatch_net.g;
    for (int k = 0; k < 4; k++) {
        float values[A * D];
        support_ok(store_read(a->store, g, graph_parameter_named(g, names[k]), values, &e), &e);
        for (int i = 0; i < counts[k]; i++) *at++ = (double)values[i];
    }
}

static void actor_start(actor *a) {
    err e;
    graph *g = a->minibatch_net.g;
    static const float root[2] = {1, 0};
    float *w = malloc((size_t)graph_slab_elements(g) * sizeof *w), ones[MINI];
    assert_non_null(w);
    for (int i = 0; i < MINI; i++) ones[i] = 1;
    graph_initial(g, 9, w);
    support_ok(store_write(a->store, g, graph_slab(g, SLAB_WEIGHTS), w, &e), &e);
    support_ok(store_write(a->store, g, a->minibatch_net.root, root, &e), &e);
    support_ok(store_progress_write(a->store, &(step_progress){.lr = lr}, &e), &e);
    support_ok(program_write(a->minibatch, a->minibatch_net.one, ones, &e), &e);
    free(w);
}

typedef struct {
    float observation[ALL][D], reward[ALL], advantage[ALL];
    int32_t action[ALL];
} rollout;

// One slot of all environments: the action is the likeliest one, the reward depends on it and on what was seen.
static void act(actor *a, const weights *w, rollout *r, int slot, dice *d) {
    err e;
    float logits[ENVS][A], v[ENVS];
    float(*x)[D] = r->observation + (ptrdiff_t)slot * ENVS;
    for (int i = 0; i < ENVS * D; i++) x[i / D][i % D] = dice_unit(d);
    support_ok(program_write(a->act, a->act_net.observation, x, &e), &e);
    support_ok(program_play(a->act, PASS_EVALUATE, &e), &e);
    support_ok(program_peek(a->act, a->act_net.logits, logits, &e), &e);
    support_ok(program_peek(a->act, a->act_net.value, v, &e), &e);
    for (int i = 0; i < ENVS; i++) {
        double want[A], value_of;
        int best = 0, row = slot * ENVS + i;
        plain_forward(w, x[i], want, &value_of);
        expect("value", row, (double)v[i], value_of);
        for (int k = 0; k < A; k++) {
            expect("logit", row * A + k, (double)logits[i][k], want[k]);
            if (logits[i][k] > logits[i][best]) best = k;
        }
        r->action[row] = best;
        r->reward[row] = x[i][best] + 0.5f * x[i][D - 1];
    }
}

static void find_advantage(actor *a, const weights *w, rollout *r) {
    err e;
    support_ok(program_write(a->advantage, a->advantage_net.observation, r->observation, &e), &e);
    support_ok(program_write(a->advantage, a->advantage_net.reward, r->reward, &e), &e);
    support_ok(program_play(a->advantage, PASS_EVALUATE, &e), &e);
    support_ok(program_peek(a->advantage, a->advantage_net.advantage, r->advantage, &e), &e);
    for (int i = 0; i < ALL; i++) {
        double z[A], v;
        plain_forward(w, r->observation[i], z, &v);
        expect("advantage", i, (double)r->advantage[i], (double)r->reward[i] - v);
    }
}

// Rows first .. first + 15 of a rollout, in both ways. What the device found is what both go on from.
static void learn(actor *a, weights *w, weights *m, const rollout *r, int first) {
    err e;
    const net *n = &a->minibatch_net;
    weights g = {0}, is;
    support_ok(program_write(a->minibatch, n->observation, r->observation[first], &e), &e);
    support_ok(program_write(a->minibatch, n->reward, r->reward + first, &e), &e);
    support_ok(program_write(a->minibatch, n->action, r->action + first, &e), &e);
    support_ok(program_write(a->minibatch, n->weight, r->advantage + first, &e), &e);
    support_ok(program_play(a->minibatch, PASS_FIRST, &e) && program_play(a->update, PASS_UPDATE, &e), &e);
    for (int i = first; i < first + MINI; i++)
        plain_row(w, &g, r->observation[i], r->action[i], (double)r->advantage[i], (double)r->reward[i]);
    plain_update(w, &g, m);
    read_weights(a, &is);
    for (int i = 0; i < (int)WEIGHTS; i++) expect("weight", i, ((double *)&is)[i], ((double *)w)[i]);
}

static void an_actor_and_a_critic_learn(void **state) {
    (void)state;
    err e;
    actor a;
    weights w, m = {0}, begin;
    dice d = {.seed = 5};
    step_progress p;
    actor_open(&a);
    actor_start(&a);
    read_weights(&a, &w);
    begin = w;
    for (int k = 0; k < ROLLOUTS; k++) {
        rollout r;
        for (int slot = 0; slot < SLOTS; slot++) act(&a, &w, &r, slot, &d);
        find_advantage(&a, &w, &r);
        for (int first = 0; first < ALL; first += MINI) learn(&a, &w, &m, &r, first);
    }
    double moved = 0;
    for (int i = 0; i < (int)WEIGHTS; i++) moved = fmax(moved, fabs(((double *)&w)[i] - ((double *)&begin)[i]));
    assert_true(moved > 0.1); // far beyond the tolerance
    support_ok(store_progress_read(a.store, &p, &e), &e);
    assert_int_equal(p.update, ROLLOUTS * ALL / MINI);
    actor_close(&a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_actor_and_a_critic_learn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
