#include "rl/agent.h"

#include "base/clock.h"
#include "base/err.h"
#include "rl/undo.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Description

static bool fail_division(const agent_settings *s, err *e) {
    char split[80] = "";
    if (s->batch != s->micro)
        snprintf(split, sizeof split, ", %lld micro-batches of %lld,", (long long)(s->batch / s->micro),
            (long long)s->micro);
    return err_input(e,
        "agent.batch_size: a rollout of %lld environments x %lld steps is %lld rows, which minibatches of %lld%s do "
        "not divide",
        (long long)s->envs, (long long)s->steps, (long long)(s->envs * s->steps), (long long)s->batch, split);
}

bool agent_check(const agent_settings *s, err *e) {
    env_shape env = env_shape_of(&s->world.env);
    long long rows = (long long)(s->envs * s->steps);
    if (rows > INT32_MAX || s->envs * agent_sizes_of(s).cut > INT32_MAX)
        return err_input(e, "agent.n_steps: a rollout of %lld environments x %lld steps is too long; use fewer",
            (long long)s->envs, (long long)s->steps);
    if (rows % s->batch) return fail_division(s, e);
    if (s->batch % s->micro)
        return err_input(
            e, "agent.batch_size: %lld is not a multiple of %lld", (long long)s->batch, (long long)s->micro);
    if (s->lstm && (s->batch % s->steps || s->micro % s->steps))
        return err_input(e,
            "agent.batch_size: an LSTM learns from whole sequences, so it must be a multiple of agent.n_steps, %lld; "
            "it is %lld",
            (long long)s->steps, (long long)s->batch);
    if (env.choices && s->state_noise)
        return err_input(
            e, "agent.noise: %s has choices, not numbers, as actions; noise is for those", env_name(s->world.env.kind));
    if (s->batch != s->micro && (s->entropy_bound > 0 || s->value_bound > 0))
        return err_input(e,
            "agent.entropy_bound and agent.value_loss_bound are of a whole minibatch, which then cannot be split: "
            "leave gpu_optimization.gradient_accumulation_steps out");
    return true;
}

size_t agent_host_bytes(const agent_settings *s) {
    return AGENT_TABLES * (size_t)(s->envs * s->steps) * sizeof(float);
}

static int64_t rows_of(const agent *a, agent_graph_kind k) {
    return k == GRAPH_MINIBATCH ? a->s.micro / a->z.length : k == GRAPH_TEST ? a->s.tests : a->s.envs;
}

static program_options options(const agent *a, agent_graph_kind k) {
    program_options o = {.graph = a->graph[k].g, .rows = rows_of(a, k), .passes = PASS_BIT(PASS_EVALUATE)};
    if (k == GRAPH_ACT) o.together = program_together(a->at.device, o.graph, o.rows, a->s.steps);
    if (k != GRAPH_MINIBATCH) return o;
    o.passes = PASSES_OF_TRAINING;
    if (a->s.micro == a->s.batch) o.together = program_together(a->at.device, o.graph, o.rows, a->z.rows / a->s.batch);
    return o;
}

static agent *describe(const agent_place *at, const agent_settings *s, const model_spec *policy) {
    agent *a = calloc(1, sizeof *a);
    NEED(a, "out of memory for an agent");
    a->at = *at;
    a->s = *s;
    a->z = agent_sizes_of(s);
    a->store = store_new(at->device->host_memory);
    a->data = at->data ? at->data : store_new(at->device->host_memory);
    for (int k = 0; k < AGENT_GRAPHS; k++) {
        agent_graph_build(&a->graph[k], (agent_graph_kind)k, s, policy);
        if (!a->graph[k].g) continue;
        store_add(a->store, a->graph[k].g, k == GRAPH_MINIBATCH ? STORE_FOR_TRAINING : STORE_FOR_INFERENCE);
        if (!at->data) store_add(a->data, a->graph[k].g, STORE_FOR_DATASET);
        program_options o = options(a, (agent_graph_kind)k);
        a->program[k] = program_new(at->device, at->queue, &o);
        transient_fit(&a->transient, a->program[k]);
    }
    return a;
}

static agent_memory measure(const agent *a) {
    agent_memory m = {.weights = store_bytes_of(a->store, STORE_WEIGHTS),
        .gradients = store_bytes_of(a->store, STORE_GRADIENTS),
        .moments = store_bytes_of(a->store, STORE_MOMENTS),
        .states = store_bytes_of(a->store, STORE_STATES) + store_bytes_of(a->store, STORE_CONSTANTS),
        .activations = a->transient.bytes,
        .data = store_bytes(a->data)};
    for (int k = 0; k < AGENT_GRAPHS; k++)
        if (a->program[k]) m.recordings += space_aligned(program_own(a->program[k]));
    m.own = space_aligned(store_bytes(a->store)) + space_aligned(m.activations) + m.recordings;
    m.total = m.own + space_aligned(m.data);
    return m;
}

agent_memory agent_measure(const agent_place *at, const agent_settings *s, const model_spec *policy) {
    agent *a = describe(at, s, policy);
    agent_memory m = measure(a);
    agent_free(a);
    return m;
}

// Placing

static size_t slab_bytes(const agent *a) {
    return (size_t)graph_slab_elements(agent_graph(a)) * sizeof(float);
}

static tensor weights_slab(const agent *a) {
    return graph_slab(a->graph[GRAPH_MINIBATCH].g, SLAB_WEIGHTS);
}

static bool place(agent *a, err *e) {
    agent_memory m = measure(a);
    size_t bytes = a->at.data ? m.own : m.total;
    if (!a->at.space) a->space = space_new(a->at.device, a->at.queue, bytes, e);
    if (!a->at.space && !a->space) return false;
    a->own = space_within(a->at.space ? a->at.space : a->space, "an agent", bytes, e);
    if (!a->own || !store_place(a->store, a->at.queue, a->own, e)) return false;
    if (!a->at.data && store_bytes(a->data) && !store_place(a->data, a->at.queue, a->own, e)) return false;
    if (!transient_place(&a->transient, a->own, e)) return false;
    program_place at = {
        .queue = a->at.queue, .space = a->own, .transient = &a->transient, .store = {a->store, a->data}};
    for (int k = 0; k < AGENT_GRAPHS; k++)
        if (a->program[k] && !program_ready(a->program[k], &at, e)) return false;
    return true;
}

static bool take_rows(agent *a, err *e) {
    bool ok = true;
    for (int i = 0; i < AGENT_TABLES; i++) ok &= (a->row[i] = malloc((size_t)a->z.rows * sizeof(float))) != NULL;
    a->test_row = malloc((size_t)a->s.tests * 3 * sizeof(float));
    a->best = malloc(slab_bytes(a));
    size_t moments = agent_moments_bytes(a);
    if (moments) ok &= (a->best_moments = calloc(1, moments)) != NULL;
    return (ok && a->test_row && a->best) || err_run(e, "out of memory for an agent's figures");
}

static bool set_initial(agent *a, err *e) {
    program *p = a->program[GRAPH_MINIBATCH];
    const float root[2] = {a->s.precision == PRECISION_FP16 ? LOSS_SCALE_START : 1, 0};
    graph_initial(agent_graph(a), a->s.seed, a->best);
    return program_write(p, weights_slab(a), a->best, e) && program_write(p, a->graph[GRAPH_MINIBATCH].seed, root, e);
}

agent *agent_new(const agent_place *at, const agent_settings *s, const model_spec *policy, err *e) {
    if (!agent_check(s, e)) return NULL;
    agent *a = describe(at, s, policy);
    if (place(a, e) && take_rows(a, e) && set_initial(a, e)) return a;
    agent_free(a);
    return NULL;
}

void agent_free(agent *a) {
    if (!a) return;
    agent_undo_drop(a);
    for (int k = 0; k < AGENT_GRAPHS; k++) program_free(a->program[k]);
    transient_give(&a->transient);
    store_free(a->store);
    if (!a->at.data) store_free(a->data);
    space_free(a->own);
    space_free(a->space);
    for (int k = 0; k < AGENT_GRAPHS; k++)
        if (a->graph[k].g) graph_free(a->graph[k].g);
    for (int i = 0; i < AGENT_TABLES; i++) free(a->row[i]);
    free(a->test_row);
    free(a->best);
    free(a->best_moments);
    free(a);
}

const graph *agent_graph(const agent *a) {
    return a->graph[GRAPH_MINIBATCH].g;
}

const plan *agent_plan(const agent *a) {
    return program_plan(a->program[GRAPH_MINIBATCH]);
}

size_t agent_bytes(const agent *a) {
    return space_bytes(a->own);
}

int64_t agent_iterations(const agent *a) {
    return (a->s.total + a->z.rows - 1) / a->z.rows;
}

int64_t agent_iteration(const agent *a) {
    return a->iteration;
}

bool agent_is_over(const agent *a) {
    return a->iteration >= agent_iterations(a);
}

// The rollout

static bool seek(agent *a, agent_graph_kind k, step_cursor c, err *e) {
    c.spans = 1;
    return program_seek(a->program[k], &c, e);
}

// Plays that a card is given before the host waits for it, so that little is left to do when it is to stop.
enum { PLAYS_AT_ONCE = 256 };

// Steps of a program from one question whether to go on to the next.
static int64_t stride_of(const agent *a, agent_graph_kind k) {
    if (a->at.device->host_memory) return 1;
    int64_t together = options(a, k).together;
    return together ? PLAYS_AT_ONCE / together * together : PLAYS_AT_ONCE;
}

// Waits for a card where the iteration may be given up.
static bool catch_up(agent *a, err *e) {
    return !a->undo || a->at.device->host_memory || a->at.device->sync(a->at.queue, e);
}

// Plays a program so often, unless it is stopped in between. `phase` is what is done of the iteration by then, in
// rollouts and passes: a rollout and each pass count alike.
static bool play(agent *a, agent_graph_kind k, int64_t times, double phase, err *e) {
    int64_t stride = stride_of(a, k);
    for (int64_t done = 0; done < times; done += stride) {
        int64_t n = times - done < stride ? times - done : stride;
        if (!program_play_steps(a->program[k], n, e) || !catch_up(a, e)) return false;
        double share = k == GRAPH_ACT || k == GRAPH_MINIBATCH ? (double)(done + n) / (double)times : 0;
        if (!agent_asks(a, phase + share)) return false;
    }
    return true;
}

// Values of what lies behind the rollout. Environments that begin anew draw as the next rollout's first step would.
static bool look_beyond(agent *a, uint64_t next, err *e) {
    uint64_t row = (uint64_t)(a->z.cut * a->s.envs);
    if (!seek(a, GRAPH_LAST, (step_cursor){.position = next - row, .row = row}, e) || !play(a, GRAPH_LAST, 1, 1, e))
        return false;
    return !a->z.cut || (seek(a, GRAPH_ENDS, (step_cursor){.count = row}, e) && play(a, GRAPH_ENDS, a->z.cut, 1, e));
}

static bool roll_out(agent *a, err *e) {
    uint64_t begin = (uint64_t)(a->iteration * a->z.rows), next = begin + (uint64_t)a->z.rows;
    if (a->program[GRAPH_BEGIN] && !play(a, GRAPH_BEGIN, 1, 0, e)) return false;
    return seek(a, GRAPH_ACT, (step_cursor){.position = begin}, e) && play(a, GRAPH_ACT, a->s.steps, 0, e) &&
           look_beyond(a, next, e) && play(a, GRAPH_ADVANTAGE, 1, 1, e);
}

static bool read_table(agent *a, agent_graph_kind k, tensor t, float *to, err *e) {
    return program_read(a->program[k], t, to, e);
}

// Takes episodes that ended, in the order of their steps and environments.
static bool count_episodes(agent *a, err *e) {
    const agent_graphs *g = &a->graph[GRAPH_ACT];
    if (!read_table(a, GRAPH_ACT, g->table_end, a->row[0], e) ||
        !read_table(a, GRAPH_ACT, g->table_total, a->row[1], e) ||
        !read_table(a, GRAPH_ACT, g->table_length, a->row[2], e))
        return false;
    for (int64_t i = 0; i < a->z.rows; i++)
        if (a->row[0][i] != ENV_GOES_ON) episodes_add(&a->episodes, (double)a->row[1][i], (double)a->row[2][i]);
    return true;
}

static double variance(const float *v, const float *less, int64_t n) {
    double mean = 0, sum = 0;
    for (int64_t i = 0; i < n; i++) mean += ((double)v[i] - (less ? (double)less[i] : 0)) / (double)n;
    for (int64_t i = 0; i < n; i++) {
        double d = (double)v[i] - (less ? (double)less[i] : 0) - mean;
        sum += d * d;
    }
    return sum / (double)n;
}

// Share of the returns' variance that the values explain.
static bool explain(agent *a, double *explained, err *e) {
    if (!read_table(a, GRAPH_ACT, a->graph[GRAPH_ACT].table_value, a->row[0], e) ||
        !read_table(a, GRAPH_ADVANTAGE, a->graph[GRAPH_ADVANTAGE].target, a->row[1], e))
        return false;
    double all = variance(a->row[1], NULL, a->z.rows);
    *explained = all > 0 ? 1 - variance(a->row[1], a->row[0], a->z.rows) / all : NAN;
    return true;
}

// The update

static bool write_knobs(agent *a, agent_report *r, err *e) {
    double done = (double)((a->iteration + 1) * a->z.rows) / (double)a->s.total;
    if (done > 1) done = 1;
    r->learning_rate = ramp_at(&a->s.rate, done);
    r->clip_range = ramp_at(&a->s.clip, done);
    r->entropy_coefficient = ramp_at(&a->s.entropy, done);
    r->target_kl = ramp_at(&a->s.target_kl, done);
    float knob[KNOBS] = {
        (float)r->clip_range, (float)r->entropy_coefficient, (float)a->s.value_clip, (float)r->target_kl};
    step_progress p = {.seed = a->s.seed, .update = a->updates, .lr = (float)r->learning_rate};
    return program_write(a->program[GRAPH_MINIBATCH], a->graph[GRAPH_MINIBATCH].knobs, knob, e) &&
           program_clear(a->program[GRAPH_MINIBATCH], a->graph[GRAPH_MINIBATCH].gate, e) &&
           store_progress_write(a->store, &p, e);
}

// One pass over the rollout, behind `before` others.
static bool pass_over(agent *a, int64_t before, err *e) {
    program *p = a->program[GRAPH_MINIBATCH];
    int64_t steps = a->z.rows / a->s.batch, parts = a->s.batch / a->s.micro;
    step_cursor c = {.count = (uint64_t)a->z.samples, .epoch = (uint32_t)a->passes, .shuffle = 1};
    if (!seek(a, GRAPH_MINIBATCH, c, e)) return false;
    a->passes++;
    a->updates += (uint64_t)steps;
    if (parts == 1) return play(a, GRAPH_MINIBATCH, steps, (double)(1 + before), e);
    for (int64_t i = 0; i < steps; i++) {
        for (int64_t k = 0; k < parts; k++)
            if (!program_play(p, k ? PASS_NEXT : PASS_FIRST, e)) return false;
        if (!program_play(p, PASS_UPDATE, e)) return false;
        if (i % (PLAYS_AT_ONCE / 8) == 0 && !catch_up(a, e)) return false;
        if (!agent_asks(a, (double)(1 + before) + (double)(i + 1) / (double)steps)) return false;
    }
    return true;
}

static bool move_gate(agent *a, double gate[GATE_COUNT], bool write, err *e) {
    program *p = a->program[GRAPH_MINIBATCH];
    tensor t = a->graph[GRAPH_MINIBATCH].gate;
    return write ? program_write(p, t, gate, e) : program_read(p, t, gate, e);
}

static bool update(agent *a, double gate[GATE_COUNT], err *e) {
    for (int64_t k = 0; k < a->s.epochs; k++) {
        if (!pass_over(a, k, e) || !move_gate(a, gate, false, e)) return false;
        if (gate[GATE_STOPPED] != 0 || k + 1 == a->s.epochs) break;
        gate[GATE_EPOCH_KL] = gate[GATE_EPOCH_COUNT] = 0;
        if (!move_gate(a, gate, true, e)) return false;
    }
    return true;
}

static bool read_std(agent *a, agent_report *r, err *e) {
    tensor t = a->graph[GRAPH_MINIBATCH].log_std;
    r->std = NAN;
    if (!t.id) return true;
    int64_t n = shape_count(graph_info(agent_graph(a), t)->shape);
    float *v = malloc((size_t)n * sizeof *v);
    bool ok = v ? program_read(a->program[GRAPH_MINIBATCH], t, v, e) : err_run(e, "out of memory for deviations");
    if (ok) r->std = 0;
    for (int64_t i = 0; ok && i < n; i++) r->std += exp((double)v[i]) / (double)n;
    free(v);
    return ok;
}

static bool fill_report(agent *a, const double gate[GATE_COUNT], agent_report *r, err *e) {
    double clip[CLIP_COUNT], totals[TALLY_COUNT], n = gate[PPO_ROWS] > 0 ? gate[PPO_ROWS] : 1;
    program *p = a->program[GRAPH_MINIBATCH];
    if (!program_read(p, a->graph[GRAPH_MINIBATCH].clip, clip, e) ||
        !program_read(p, a->graph[GRAPH_MINIBATCH].totals, totals, e))
        return false;
    r->policy_gradient_loss = gate[PPO_POLICY] / n;
    r->value_loss = gate[PPO_VALUE_LOSS] / n;
    r->entropy_loss = -gate[PPO_ENTROPY] / n;
    r->clip_fraction = gate[PPO_CLIPPED] / n;
    r->approx_kl = gate[GATE_EPOCH_COUNT] > 0 ? gate[GATE_EPOCH_KL] / gate[GATE_EPOCH_COUNT] : 0;
    r->loss = totals[TALLY_STEP_SUM] / (double)a->s.batch;
    r->kl_stopped = gate[GATE_STOPPED] != 0;
    r->grad_norm = clip[CLIP_NORM] / (r->kl_stopped ? (double)a->s.batch : 1); // a dropped minibatch has no normaliser
    r->skipped = (int64_t)clip[CLIP_NONFINITE];
    r->skipped_last = (int64_t)clip[CLIP_IN_A_ROW];
    r->iteration = a->iteration;
    r->total_timesteps = a->iteration * a->z.rows;
    r->ep_rew_mean = episodes_reward(&a->episodes);
    r->ep_len_mean = episodes_length(&a->episodes);
    r->n_updates = a->passes;
    return read_std(a, r, e);
}

static bool is_sound(const agent *a, const agent_report *r, err *e) {
    if (!isfinite(r->policy_gradient_loss) || !isfinite(r->value_loss) || !isfinite(r->entropy_loss))
        return err_run(e,
            "iteration %lld: the loss is not finite (policy %g, value %g, entropy %g): a reward or an observation is "
            "not a number, or agent.learning_rate is too high",
            (long long)r->iteration, r->policy_gradient_loss, r->value_loss, r->entropy_loss);
    return r->skipped_last < a->z.rows / a->s.batch ||
           err_run(e, "iteration %lld: no gradient of the last %lld minibatches was finite; lower agent.learning_rate",
               (long long)r->iteration, (long long)r->skipped_last);
}

void agent_watch(agent *a, agent_go_on *go_on, void *arg) {
    a->go_on = go_on;
    a->go_on_arg = arg;
    a->seconds = INFINITY; // how long an iteration takes is not known
}

bool agent_asks(agent *a, double phases) {
    double all = (double)(1 + a->s.epochs);
    a->stopped = a->undo && !a->go_on(a->go_on_arg, phases < all ? phases / all : 1);
    return !a->stopped;
}

// Makes it possible to give the iteration up, where that is worth it.
static bool prepare(agent *a, err *e) {
    const double prompt = 0.25; // seconds that one waits for without a thought
    bool wanted = a->go_on && a->seconds >= prompt;
    a->stopped = false;
    if (!wanted) agent_undo_drop(a);
    return !wanted || agent_undo_take(a, e);
}

bool agent_iterate(agent *a, agent_report *r, err *e) {
    double began = clock_seconds(), gate[GATE_COUNT] = {0};
    *r = (agent_report){0};
    bool ok = prepare(a, e) && write_knobs(a, r, e) && roll_out(a, e) && count_episodes(a, e) &&
              explain(a, &r->explained_variance, e);
    double rolled = clock_seconds(); // tables were read, so that the queue is empty
    ok = ok && update(a, gate, e);
    if (a->stopped) {
        r->stopped = true;
        return agent_undo(a, e);
    }
    if (!ok) return false;
    r->rollout = rolled - began;
    r->update = clock_seconds() - rolled;
    a->iteration++;
    if (!fill_report(a, gate, r, e)) return false;
    r->seconds = a->seconds = clock_seconds() - began;
    r->fps = (double)a->z.rows / r->seconds;
    return is_sound(a, r, e);
}
