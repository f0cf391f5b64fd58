#include "rl/actor.h"

#include "base/err.h"
#include "rl/graphs.h"
#include "run/weights.h"
#include "train/gathered.h"
#include "train/inference.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct actor {
    agent_sizes z;
    int64_t rows;
    agent_graphs graph;
    program *program;
    store *store;
    transient transient;
    space *space;  // of its own, or NULL
    space *own;    // inside that or the caller's
    float *begins; // [rows]
    void *score;   // [rows, columns] in the type of the scores
    float *answer; // [rows, columns] of a member; NULL: it is alone
    double *sum;   // [rows, columns] of all
    actor *next;   // that answers with it, or NULL
};

static actor *describe(const agent_place *at, const agent_settings *s, const model_spec *policy, int64_t rows) {
    agent_settings as = *s;
    actor *a = calloc(1, sizeof *a);
    NEED(a, "out of memory for an actor");
    as.tests = a->rows = rows;
    a->z = agent_sizes_of(&as);
    agent_graph_build(&a->graph, GRAPH_ANSWER, &as, policy);
    a->store = store_new(at->device->host_memory);
    store_add(a->store, a->graph.g, STORE_FOR_INFERENCE);
    program_options o = {.graph = a->graph.g, .rows = rows, .passes = PASS_BIT(PASS_EVALUATE)};
    a->program = program_new(at->device, at->queue, &o);
    transient_fit(&a->transient, a->program);
    return a;
}

static size_t measure(const actor *a) {
    return space_aligned(store_bytes(a->store)) + space_aligned(a->transient.bytes) +
           space_aligned(program_own(a->program));
}

size_t actor_measure(const agent_place *at, const agent_settings *s, const model_spec *policy, int64_t rows) {
    actor *a = describe(at, s, policy, rows);
    size_t bytes = measure(a);
    actor_free(a);
    return bytes;
}

static bool place(actor *a, const agent_place *at, err *e) {
    size_t bytes = measure(a);
    if (!at->space && !(a->space = space_new(at->device, at->queue, bytes, e))) return false;
    a->own = space_within(at->space ? at->space : a->space, "an actor", bytes, e);
    program_place in = {.queue = at->queue, .space = a->own, .transient = &a->transient, .store = {a->store}};
    step_cursor c = {.spans = 1};
    return a->own && store_place(a->store, at->queue, a->own, e) && transient_place(&a->transient, a->own, e) &&
           program_ready(a->program, &in, e) && program_seek(a->program, &c, e);
}

actor *actor_new(const agent_place *at, const agent_settings *s, const model_spec *policy, int64_t rows, err *e) {
    CHECK(rows > 0, "an actor of %lld rows", (long long)rows);
    actor *a = describe(at, s, policy, rows);
    a->begins = calloc((size_t)rows, sizeof *a->begins);
    a->score = calloc((size_t)(rows * a->z.actions), sizeof(float));
    bool ok = (a->begins && a->score) || err_run(e, "out of memory for an actor of %lld rows", (long long)rows);
    if (ok && place(a, at, e)) return a;
    actor_free(a);
    return NULL;
}

void actor_free(actor *a) {
    if (!a) return;
    program_free(a->program);
    transient_give(&a->transient);
    store_free(a->store);
    space_free(a->own);
    space_free(a->space);
    graph_free(a->graph.g);
    actor_free(a->next);
    free(a->begins);
    free(a->score);
    free(a->answer);
    free(a->sum);
    free(a);
}

int64_t actor_rows(const actor *a) {
    return a->rows;
}

// Weights

static bool load_weights(actor *a, const safetensors *from, const char *path, err *e) {
    graph *g = a->graph.g;
    float *slab = malloc((size_t)graph_slab_elements(g) * sizeof *slab);
    bool ok = slab || err_run(e, "out of memory for weights");
    ok = ok && gathered_fill(g, from, "", path, slab, e) &&
         program_write(a->program, graph_slab(g, SLAB_WEIGHTS), slab, e);
    free(slab);
    return ok;
}

static bool load_moments(actor *a, const safetensors *from, const char *path, err *e) {
    static const char name[] = "state.observation moments";
    tensor t = a->graph.moments;
    if (!t.id) return true;
    const safetensors_entry *is = safetensors_find(from, name);
    size_t bytes = (size_t)shape_count(graph_info(a->graph.g, t)->shape) * sizeof(double);
    if (!is || is->bytes != bytes) return err_input(e, "%s: %s is missing or of another size", path, name);
    return program_write(a->program, t, is->data, e);
}

bool actor_load(actor *a, const char *path, err *e) {
    safetensors *from = weights_open(path, e);
    bool ok = from && load_weights(a, from, path, e) && load_moments(a, from, path, e);
    safetensors_close(from);
    return ok;
}

// Answers

static bool are_finite(const actor *a, const float *of, int64_t columns, err *e) {
    for (int64_t i = 0; of && i < a->rows * columns; i++)
        if (!isfinite(of[i]))
            return err_run(e, "an answer of the policy is not finite; its weights are damaged or diverged");
    return true;
}

static bool begin_rows(actor *a, const bool *begins, err *e) {
    tensor t = a->graph.memory.reset;
    if (!t.id) return true;
    for (int64_t i = 0; i < a->rows; i++) a->begins[i] = begins && begins[i] ? 1.0f : 0.0f;
    return program_write(a->program, t, a->begins, e);
}

static bool ask(actor *a, const float *observation, const bool *begins, float *action, float *chance, err *e) {
    const agent_graphs *g = &a->graph;
    if (!begin_rows(a, begins, e) || !program_write(a->program, g->seen, observation, e) ||
        !program_play(a->program, PASS_EVALUATE, e) || !program_peek(a->program, g->action, action, e) ||
        !program_peek(a->program, g->score, a->score, e))
        return false;
    int64_t K = a->z.env.choices;
    for (int64_t i = 0; chance && i < a->rows && K; i++)
        inference_softmax(a->score, graph_info(g->g, g->score)->type, i, (int)K, chance + i * K);
    return true;
}

// Members

static int64_t columns_of(const actor *a) {
    return a->z.env.choices ? a->z.env.choices : a->z.env.action;
}

bool actor_join(actor *a, actor *other, err *e) {
    size_t n = (size_t)(a->rows * columns_of(a));
    CHECK(other->rows == a->rows && columns_of(other) == columns_of(a), "actors of other shapes");
    if (!a->answer) a->answer = calloc(n, sizeof *a->answer);
    if (!a->sum) a->sum = calloc(n, sizeof *a->sum);
    if (!a->answer || !a->sum) {
        actor_free(other);
        return err_run(e, "out of memory for the answers of several agents");
    }
    other->next = a->next;
    a->next = other;
    return true;
}

// Asks all members for their probabilities or numbers, and adds these up; `action` is of the last one. Their number, 0
// where one fails.
static int ask_members(actor *a, const float *observation, const bool *begins, float *action, err *e) {
    int64_t n = a->rows * columns_of(a);
    bool choices = a->z.env.choices > 0;
    int members = 0;
    for (int64_t i = 0; i < n; i++) a->sum[i] = 0;
    for (actor *of = a; of; of = of->next, members++) {
        if (!ask(of, observation, begins, action, choices ? a->answer : NULL, e)) return 0;
        for (int64_t i = 0; i < n; i++) a->sum[i] += (double)(choices ? a->answer : action)[i];
    }
    return members;
}

// The likeliest choice of a row, the first one of several.
static float likeliest(const double *sum, int64_t count) {
    int64_t pick = 0;
    for (int64_t k = 1; k < count; k++)
        if (sum[k] > sum[pick]) pick = k;
    return (float)pick;
}

bool actor_ask_any(actor *a, const float *observation, const bool *begins, float *action, float *chance, err *e) {
    if (!a->next) return ask(a, observation, begins, action, chance, e);
    int64_t K = columns_of(a), n = a->rows * K;
    int members = ask_members(a, observation, begins, action, e);
    if (!members) return false;
    float *mean = a->z.env.choices ? chance : action;
    for (int64_t i = 0; mean && i < n; i++) mean[i] = (float)(a->sum[i] / members);
    for (int64_t i = 0; a->z.env.choices && i < a->rows; i++) action[i] = likeliest(a->sum + i * K, K);
    return true;
}

bool actor_ask(actor *a, const float *observation, const bool *begins, float *action, float *chance, err *e) {
    int64_t K = a->z.env.choices;
    return actor_ask_any(a, observation, begins, action, chance, e) && are_finite(a, action, a->z.env.action, e) &&
           are_finite(a, K ? chance : NULL, K, e);
}

// Memory: states of an LSTM, [rows, units] each.

static int64_t units_of(const actor *a) {
    tensor h = a->graph.memory.h;
    return h.id ? shape_count(graph_info(a->graph.g, h)->shape) / a->rows : 0;
}

int64_t actor_memory(const actor *a) {
    int64_t n = 0;
    for (; a; a = a->next) n += 2 * units_of(a);
    return n;
}

// Rows of the caller's, `width` numbers each, have both states of a member side by side: `to` gets them, or `from` has
// them.
static bool move_memory(actor *a, int64_t width, float *to, const float *from, err *e) {
    const tensor state[2] = {a->graph.memory.h, a->graph.memory.c};
    int64_t n = units_of(a);
    size_t bytes = (size_t)n * sizeof(float);
    float *all = malloc((size_t)a->rows * bytes);
    bool ok = all || err_run(e, "out of memory for what an actor remembers");
    for (int k = 0; ok && k < 2; k++) {
        ok = !to || program_read(a->program, state[k], all, e);
        for (int64_t i = 0; ok && i < a->rows; i++) {
            if (to) memcpy(to + i * width + k * n, all + i * n, bytes);
            if (from) memcpy(all + i * n, from + i * width + k * n, bytes);
        }
        ok = ok && (!from || program_write(a->program, state[k], all, e));
    }
    free(all);
    return ok;
}

// Members one behind the other.
static bool move_memories(actor *a, float *to, const float *from, err *e) {
    int64_t width = actor_memory(a), each = 2 * units_of(a), at = 0;
    bool ok = true;
    for (; ok && width && a; a = a->next, at += each)
        ok = move_memory(a, width, to ? to + at : NULL, from ? from + at : NULL, e);
    return ok;
}

bool actor_take_memory(actor *a, float *to, err *e) {
    return move_memories(a, to, NULL, e);
}

bool actor_put_memory(actor *a, const float *from, err *e) {
    return move_memories(a, NULL, from, e);
}
