// An agent between two iterations, as tensors.
//
// Under the parameters' own names stand the weights. Beside them, in a checkpoint: "moment1.NAME" and "moment2.NAME" of
// the optimizer, "best.NAME" of the best weights, "state.NAME" of what lives across iterations (environments, moments
// of observations and rewards, clip), "agent.counts", "agent.episodes" and "agent.extra", the caller's numbers. Tables
// of a rollout, whose names begin with "rollout ", are made anew and not saved. Beside weights, here and in a
// checkpoint, stand the scales of features, "scaler.STREAM.mean" and "scaler.STREAM.std".
#include "base/err.h"
#include "rl/undo.h"
#include "run/checkpoint.h"
#include "run/weights.h"
#include "train/gathered.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNTS = 5 };

static void begin(gathered *to, const agent *a) {
    gathered_init(to, 4 * graph_parameters(agent_graph(a)) + AGENT_STATES_MOST + 2 * STREAMS_MOST + 8);
}

static bool add_slab(gathered *to, agent *a, slab_kind kind, const char *prefix, err *e) {
    graph *g = a->graph[GRAPH_MINIBATCH].g;
    float *slab = arena_array(&to->arena, (size_t)graph_slab_elements(g), sizeof *slab);
    if (!program_read(a->program[GRAPH_MINIBATCH], graph_slab(g, kind), slab, e)) return false;
    gathered_slab(to, g, prefix, slab);
    return true;
}

static void add_scaler(gathered *to, const agent *a) {
    gathered_scaler(to, a->s.world.scaler, a->s.world.data);
}

static bool is_listed(const agent *a, const agent_state *list, int n, const char *name) {
    for (int i = 0; i < n; i++)
        if (strcmp(graph_info(a->graph[list[i].graph].g, list[i].t)->name, name) == 0) return true;
    return false;
}

static bool is_lasting(const tensor_info *t) {
    return t->role == ROLE_STATE && !shape_is_batch(t->shape) && strncmp(t->name, "rollout ", 8) != 0;
}

int agent_states(const agent *a, agent_state *list) {
    int n = 0;
    for (int k = 0; k < GRAPH_TEST; k++)
        for (int i = 1; a->graph[k].g && i <= graph_tensors(a->graph[k].g); i++) {
            const tensor_info *t = graph_info(a->graph[k].g, (tensor){i});
            if (!is_lasting(t) || is_listed(a, list, n, t->name)) continue;
            CHECK(n < AGENT_STATES_MOST, "more than %d states of an agent", AGENT_STATES_MOST);
            list[n++] = (agent_state){k, {i}};
        }
    return n;
}

size_t agent_state_bytes(const agent *a, agent_state l) {
    const tensor_info *t = graph_info(a->graph[l.graph].g, l.t);
    return (size_t)shape_count(t->shape) * dtype_bytes(t->type);
}

static const char *name_of(const agent *a, agent_state l) {
    return graph_info(a->graph[l.graph].g, l.t)->name;
}

static bool belongs_to_weights(const agent *a, agent_state l) {
    return strcmp(name_of(a, l), "observation moments") == 0 || strcmp(name_of(a, l), "reward moments") == 0;
}

int agent_moments(const agent *a, agent_state *list) {
    int n = agent_states(a, list), kept = 0;
    for (int i = 0; i < n; i++)
        if (belongs_to_weights(a, list[i])) list[kept++] = list[i];
    return kept;
}

size_t agent_moments_bytes(const agent *a) {
    agent_state list[AGENT_STATES_MOST];
    size_t bytes = 0;
    for (int i = 0, n = agent_moments(a, list); i < n; i++) bytes += agent_state_bytes(a, list[i]);
    return bytes;
}

// States of the weights alone, or all.
static int list_states(const agent *a, agent_state *list, bool weights_alone) {
    return weights_alone ? agent_moments(a, list) : agent_states(a, list);
}

static bool add_states(gathered *to, agent *a, bool weights_alone, err *e) {
    agent_state list[AGENT_STATES_MOST];
    int n = list_states(a, list, weights_alone);
    for (int i = 0; i < n; i++) {
        size_t bytes = agent_state_bytes(a, list[i]);
        void *v = arena_take(&to->arena, bytes);
        if (!program_read(a->program[list[i].graph], list[i].t, v, e)) return false;
        const char *name = arena_format(&to->arena, "state.%s", name_of(a, list[i]));
        gathered_add(to, name, SAFE_U8, 1, shape1((int64_t)bytes), v);
    }
    return true;
}

// A state of a file, of the size that the agent's has.
static const void *find_state(
    const agent *a, const safetensors *from, const char *prefix, agent_state l, const char *path, err *e) {
    char name[300];
    snprintf(name, sizeof name, "%s%s", prefix, name_of(a, l));
    const safetensors_entry *t = safetensors_find(from, name);
    if (t && t->bytes == agent_state_bytes(a, l)) return t->data;
    err_input(e, "%s: %s is missing or of another size", path, name);
    return NULL;
}

static bool load_states(agent *a, const safetensors *from, const char *path, bool weights_alone, err *e) {
    agent_state list[AGENT_STATES_MOST];
    int n = list_states(a, list, weights_alone);
    for (int i = 0; i < n; i++) {
        const void *is = find_state(a, from, "state.", list[i], path, e);
        if (!is || !program_write(a->program[list[i].graph], list[i].t, is, e)) return false;
    }
    return true;
}

static bool load_slab(agent *a, const safetensors *from, slab_kind kind, const char *prefix, const char *path, err *e) {
    graph *g = a->graph[GRAPH_MINIBATCH].g;
    float *slab = malloc((size_t)graph_slab_elements(g) * sizeof *slab);
    bool ok = slab || err_run(e, "out of memory for weights");
    ok = ok && gathered_fill(agent_graph(a), from, prefix, path, slab, e) &&
         program_write(a->program[GRAPH_MINIBATCH], graph_slab(g, kind), slab, e);
    free(slab);
    return ok;
}

// Weights

bool agent_save(agent *a, const char *path, const safetensors_note *notes, int note_count, err *e) {
    gathered to;
    agent_undo_drop(a); // memory of the host is counted for one of both
    begin(&to, a);
    add_scaler(&to, a);
    bool ok = add_slab(&to, a, SLAB_WEIGHTS, "", e) && add_states(&to, a, true, e) &&
              weights_write(path, to.entry, to.count, notes, note_count, e);
    arena_done(&to.arena);
    return ok;
}

bool agent_load(agent *a, const char *path, err *e) {
    safetensors *from = weights_open(path, e);
    bool ok = from && load_slab(a, from, SLAB_WEIGHTS, "", path, e) && load_states(a, from, path, true, e);
    safetensors_close(from);
    return ok;
}

// Checkpoints

static void add_standing(gathered *to, const agent *a, const double *extra, int extras) {
    int64_t *count = arena_array(&to->arena, COUNTS, sizeof *count);
    double *kept = arena_array(&to->arena, 2 * EPISODES_KEPT, sizeof *kept),
           *more = arena_array(&to->arena, AGENT_EXTRA_MOST, sizeof *more);
    int64_t now[COUNTS] = {a->iteration, a->passes, (int64_t)a->updates, a->episodes.count, a->has_best};
    CHECK(extras <= AGENT_EXTRA_MOST, "%d numbers beside an agent", extras);
    memcpy(count, now, sizeof now);
    memcpy(kept, a->episodes.total, sizeof a->episodes.total);
    memcpy(kept + EPISODES_KEPT, a->episodes.steps, sizeof a->episodes.steps);
    if (extras) memcpy(more, extra, (size_t)extras * sizeof *extra);
    gathered_add(to, "agent.counts", SAFE_I64, sizeof *count, shape1(COUNTS), count);
    gathered_add(to, "agent.episodes", SAFE_F64, sizeof *kept, shape1(2 * EPISODES_KEPT), kept);
    gathered_add(to, "agent.extra", SAFE_F64, sizeof *more, shape1(AGENT_EXTRA_MOST), more);
}

static void add_best(gathered *to, const agent *a) {
    agent_state list[AGENT_STATES_MOST];
    const char *at = a->best_moments;
    gathered_slab(to, agent_graph(a), "best.", a->best);
    for (int i = 0, n = agent_moments(a, list); i < n; i++) {
        size_t bytes = agent_state_bytes(a, list[i]);
        const char *name = arena_format(&to->arena, "best.%s", name_of(a, list[i]));
        gathered_add(to, name, SAFE_U8, 1, shape1((int64_t)bytes), at);
        at += bytes;
    }
}

static bool load_best(agent *a, const safetensors *from, const char *path, err *e) {
    agent_state list[AGENT_STATES_MOST];
    char *at = a->best_moments;
    if (!a->has_best) return true;
    for (int i = 0, n = agent_moments(a, list); i < n; i++) {
        size_t bytes = agent_state_bytes(a, list[i]);
        const void *is = find_state(a, from, "best.", list[i], path, e);
        if (!is) return false;
        memcpy(at, is, bytes);
        at += bytes;
    }
    return gathered_fill(agent_graph(a), from, "best.", path, a->best, e);
}

bool agent_checkpoint(agent *a, const char *path, const double *extra, int extras, const safetensors_note *notes,
    int note_count, err *e) {
    gathered to;
    begin(&to, a);
    bool ok = add_slab(&to, a, SLAB_WEIGHTS, "", e) && add_slab(&to, a, SLAB_MOMENT1, "moment1.", e) &&
              add_slab(&to, a, SLAB_MOMENT2, "moment2.", e) && add_states(&to, a, false, e);
    if (ok && a->has_best) add_best(&to, a);
    if (ok) add_standing(&to, a, extra, extras);
    add_scaler(&to, a);
    ok = ok && checkpoint_write(path, a->updates, to.entry, to.count, notes, note_count, e);
    arena_done(&to.arena);
    return ok;
}

static bool load_standing(agent *a, const safetensors *from, const char *path, double *extra, int extras, err *e) {
    const safetensors_entry *c = safetensors_find(from, "agent.counts"), *k = safetensors_find(from, "agent.episodes"),
                            *x = safetensors_find(from, "agent.extra");
    int64_t count[COUNTS];
    if (!c || !k || !x || c->bytes != sizeof count || k->bytes != 2 * sizeof a->episodes.total ||
        x->bytes != AGENT_EXTRA_MOST * sizeof *extra)
        return err_input(e, "%s: does not say where the agent stood", path);
    memcpy(count, c->data, sizeof count);
    if (count[0] < 0 || count[1] < 0 || count[2] < 0 || count[3] < 0)
        return err_input(e, "%s: says that it stands at iteration %lld; it is damaged", path, (long long)count[0]);
    a->iteration = count[0];
    a->passes = count[1];
    a->updates = (uint64_t)count[2];
    a->episodes.count = count[3];
    a->has_best = count[4] != 0;
    memcpy(a->episodes.total, k->data, sizeof a->episodes.total);
    memcpy(a->episodes.steps, (const char *)k->data + sizeof a->episodes.total, sizeof a->episodes.steps);
    if (extras) memcpy(extra, x->data, (size_t)extras * sizeof *extra);
    return true;
}

bool agent_restore(agent *a, const safetensors *from, const char *path, double *extra, int extras, err *e) {
    return load_slab(a, from, SLAB_WEIGHTS, "", path, e) && load_slab(a, from, SLAB_MOMENT1, "moment1.", path, e) &&
           load_slab(a, from, SLAB_MOMENT2, "moment2.", path, e) && load_states(a, from, path, false, e) &&
           load_standing(a, from, path, extra, extras, e) && load_best(a, from, path, e);
}
