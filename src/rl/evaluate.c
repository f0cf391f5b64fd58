// Greedy episodes of an agent, and the weights that scored best.
#include "base/clock.h"
#include "base/err.h"
#include "rl/undo.h"

#include <math.h>
#include <stdlib.h>

enum { STEPS_MOST = 10000000 };

// Takes the scores of environments whose first episode ends with this step; how many have ended in all.
static int64_t take_ended(const agent *a, double *total, double *length, bool *over) {
    const float *end = a->test_row, *rewards = end + a->s.tests, *steps = rewards + a->s.tests;
    int64_t ended = 0;
    for (int64_t i = 0; i < a->s.tests; i++) {
        if (!over[i] && end[i] != ENV_GOES_ON) {
            total[i] = (double)rewards[i];
            length[i] = (double)steps[i];
            over[i] = true;
        }
        ended += over[i];
    }
    return ended;
}

static bool play_step(agent *a, err *e) {
    const agent_graphs *g = &a->graph[GRAPH_TEST];
    program *p = a->program[GRAPH_TEST];
    float *to = a->test_row;
    return program_play(p, PASS_EVALUATE, e) && program_peek(p, g->end, to, e) &&
           program_peek(p, g->total, to + a->s.tests, e) && program_peek(p, g->length, to + 2 * a->s.tests, e);
}

static void sum_up(const agent *a, const double *total, const double *length, agent_score *s) {
    double n = (double)a->s.tests, square = 0;
    *s = (agent_score){.episodes = a->s.tests};
    for (int64_t i = 0; i < a->s.tests; i++) {
        s->mean += total[i] / n;
        s->length += length[i] / n;
    }
    for (int64_t i = 0; i < a->s.tests; i++) square += (total[i] - s->mean) * (total[i] - s->mean);
    s->deviation = sqrt(square / n);
}

// Environments begin anew, and so does what the policy remembers of them.
static bool forget(agent *a, err *e) {
    program *p = a->program[GRAPH_TEST];
    const agent_graphs *g = &a->graph[GRAPH_TEST];
    const tensor all[] = {g->state, g->memory.h, g->memory.c, g->memory.reset};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].id && !program_clear(p, all[i], e)) return false;
    return true;
}

bool agent_evaluate(agent *a, agent_score *s, err *e) {
    int64_t n = a->s.tests, ended = 0;
    a->stopped = false;
    double *total = calloc((size_t)n * 2, sizeof *total);
    bool *over = calloc((size_t)n, sizeof *over);
    step_cursor c = {.spans = 1};
    step_progress p = {.seed = a->s.seed, .update = a->updates};
    bool ok = (total && over) || err_run(e, "out of memory for %lld episodes", (long long)n);
    ok = ok && forget(a, e) && program_seek(a->program[GRAPH_TEST], &c, e) && store_progress_write(a->store, &p, e);
    double began = clock_seconds();
    for (int64_t i = 0; ok && ended < n && i < STEPS_MOST; i++) {
        ok = play_step(a, e);
        if (ok) ended = take_ended(a, total, total + n, over);
        ok = ok && agent_asks(a, (double)(1 + a->s.epochs));
    }
    a->seconds += clock_seconds() - began;
    if (ok && ended < n) ok = err_run(e, "an episode has not ended after %d steps; set agent.limit", STEPS_MOST);
    if (ok) sum_up(a, total, total + n, s);
    free(total);
    free(over);
    if (!a->stopped) return ok;
    *s = (agent_score){.stopped = true};
    return agent_undo(a, e);
}

bool agent_weights(agent *a, float *to, err *e) {
    return program_read(a->program[GRAPH_MINIBATCH], graph_slab(a->graph[GRAPH_MINIBATCH].g, SLAB_WEIGHTS), to, e);
}

// Moments that belong to the weights, out of their programs or back into them.
static bool move_moments(agent *a, bool back, err *e) {
    agent_state list[AGENT_STATES_MOST];
    int n = agent_moments(a, list);
    char *at = a->best_moments;
    bool ok = true;
    for (int i = 0; ok && i < n; at += agent_state_bytes(a, list[i++])) {
        program *p = a->program[list[i].graph];
        ok = back ? program_write(p, list[i].t, at, e) : program_read(p, list[i].t, at, e);
    }
    return ok;
}

bool agent_keep(agent *a, err *e) {
    a->has_best = agent_weights(a, a->best, e) && move_moments(a, false, e);
    return a->has_best;
}

bool agent_back(agent *a, err *e) {
    graph *g = a->graph[GRAPH_MINIBATCH].g;
    if (!a->has_best) return true;
    return program_write(a->program[GRAPH_MINIBATCH], graph_slab(g, SLAB_WEIGHTS), a->best, e) &&
           move_moments(a, true, e);
}
