#include "rl/undo.h"

#include "base/err.h"

#include <stdlib.h>

struct agent_undo {
    int64_t iteration, passes;
    uint64_t updates;
    episodes episodes;
    char *bytes; // slabs, then states
};

static const slab_kind slabs[] = {SLAB_WEIGHTS, SLAB_MOMENT1, SLAB_MOMENT2};
enum { SLABS = sizeof slabs / sizeof *slabs };

// Moves a tensor; returns the place behind it.
static char *move(agent *a, int graph, tensor t, size_t bytes, char *at, bool back, bool *ok, err *e) {
    program *p = a->program[graph];
    *ok = *ok && (back ? program_write(p, t, at, e) : program_read(p, t, at, e));
    return at + bytes;
}

static bool move_all(agent *a, bool back, err *e) {
    graph *g = a->graph[GRAPH_MINIBATCH].g;
    size_t slab = (size_t)graph_slab_elements(g) * sizeof(float);
    agent_state state[AGENT_STATES_MOST];
    int n = agent_states(a, state);
    char *at = a->undo->bytes;
    bool ok = true;
    for (int i = 0; i < SLABS; i++) at = move(a, GRAPH_MINIBATCH, graph_slab(g, slabs[i]), slab, at, back, &ok, e);
    for (int i = 0; i < n; i++)
        at = move(a, state[i].graph, state[i].t, agent_state_bytes(a, state[i]), at, back, &ok, e);
    return ok;
}

static size_t bytes_of(const agent *a) {
    agent_state state[AGENT_STATES_MOST];
    int n = agent_states(a, state);
    size_t bytes = SLABS * (size_t)graph_slab_elements(a->graph[GRAPH_MINIBATCH].g) * sizeof(float);
    for (int i = 0; i < n; i++) bytes += agent_state_bytes(a, state[i]);
    return bytes;
}

bool agent_undo_take(agent *a, err *e) {
    agent_undo_drop(a);
    a->undo = calloc(1, sizeof *a->undo);
    char *bytes = malloc(bytes_of(a));
    if (!a->undo || !bytes) {
        free(bytes);
        free(a->undo);
        a->undo = NULL;
        return err_run(e, "out of memory for an agent before its iteration");
    }
    *a->undo = (struct agent_undo){a->iteration, a->passes, a->updates, a->episodes, bytes};
    return move_all(a, false, e);
}

bool agent_undo(agent *a, err *e) {
    const struct agent_undo *u = a->undo;
    CHECK(u, "nothing to go back to");
    a->iteration = u->iteration;
    a->passes = u->passes;
    a->updates = u->updates;
    a->episodes = u->episodes;
    bool ok = move_all(a, true, e);
    agent_undo_drop(a);
    return ok;
}

void agent_undo_drop(agent *a) {
    if (a->undo) free(a->undo->bytes);
    free(a->undo);
    a->undo = NULL;
}
