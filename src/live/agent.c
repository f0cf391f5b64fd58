#include "live/agent.h"

#include "task/agent_window.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

// One instrument.
typedef struct {
    int64_t seen; // rows, at most as many as there are lags
    int32_t begun, ruined;
    float *memory; // between two calls
} seat;

struct live_agent {
    trained_agent trained; // on the board's dataset
    board *board;
    env_data data;
    const env_settings *env;
    env_shape shape;
    int64_t remembered; // numbers
    float *observation, *memory;
    seat *seat; // [instruments]
};

static agent_market *market_of(live_agent *a) {
    return &a->trained.task.world.market;
}

static int64_t window_values(const live_agent *a) {
    const agent_market *m = &a->trained.task.world.market;
    return m->lags * ((int64_t)m->lagged + m->once);
}

// Opening

void live_agent_close(live_agent *a) {
    if (!a) return;
    if (a->board) trained_agent_close(&a->trained);
    free(a->observation);
    free(a->memory);
    free(a->seat);
    free(a);
}

static bool open_trained(live_agent *a, const model_options *o, err *e) {
    const dataset *d = board_data(o->board);
    const split_part all = part_of((span){0, d->samples});
    const split parts = {.train = all, .validation = all, .test = all};
    trained_options as = {.run = o->run.run,
        .overrides = o->run.overrides,
        .override_count = o->run.override_count,
        .live = true,
        .dataset = board_data(o->board),
        .parts = &parts,
        .devices = o->run.devices,
        .version = o->run.version};
    if (!trained_agent_open(&a->trained, &as, e)) return false;
    a->board = o->board;
    return true;
}

static void take_world(live_agent *a) {
    const agent_world *w = &a->trained.task.agent.test;
    a->env = &w->env;
    a->shape = env_shape_of(&w->env);
    for (int k = 0; k < w->parts; k++) a->data.part[k] = w->part[k].data;
    a->data.rows = w->part[MARKET_BARS].shape.dim[0];
    a->remembered = actor_memory(a->trained.actor);
}

static bool take_seats(live_agent *a, err *e) {
    size_t n = (size_t)board_data(a->board)->samples, each = (size_t)a->remembered;
    a->observation = calloc((size_t)a->shape.observation, sizeof *a->observation);
    a->memory = calloc(n * each + 1, sizeof *a->memory);
    a->seat = calloc(n, sizeof *a->seat);
    if (!a->observation || !a->memory || !a->seat) return err_run(e, "no memory for an agent of %zu instruments", n);
    for (size_t k = 0; k < n; k++) a->seat[k].memory = a->memory + k * each;
    return true;
}

live_agent *live_agent_open(const model_options *o, err *e) {
    live_agent *a = calloc(1, sizeof *a);
    NEED(a, "out of memory for an agent");
    bool ok = open_trained(a, o, e);
    if (ok) take_world(a);
    if (ok && take_seats(a, e)) return a;
    live_agent_close(a);
    return NULL;
}

const trained_agent *live_agent_trained(const live_agent *a) {
    return &a->trained;
}

// Bars

void live_agent_push(live_agent *a, int series) {
    const task *t = &a->trained.task.world.task;
    agent_market *m = market_of(a);
    if (!board_ready(a->board, series)) return;
    live_rescale(t, a->board, series);
    agent_window_push(m, series, t->data, series);
    if (a->seat[series].seen < m->lags) a->seat[series].seen++;
}

int64_t live_agent_needs(const live_agent *a, int series) {
    return a->trained.task.world.market.lags - a->seat[series].seen;
}

// Answers

// The environment's state that is observed: that of an episode whose books are the session's.
static market_state stand(live_agent *a, int series, const books *b, int64_t end) {
    agent_market *m = market_of(a);
    int64_t row = agent_window_row(m, series, b->rows.close[1], end);
    m->rules[series] = b->replay.rules;
    return (market_state){
        .books = b->replay.books, .row = row, .end = row + 1, .rules = series, .equity = b->equity, .peak = b->equity};
}

static bool are_finite(const float *of, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        if (!isfinite(of[i])) return false;
    return true;
}

static void read_reply(const live_agent *a, const market_state *m, const float *action, agent_reply *to) {
    const market_settings *k = &a->env->market;
    account_order o;
    double share;
    to->side = market_side(k, action, &share);
    if (k->continuous) to->number[1] = (float)share; // as predict has it
    to->orders = market_order(k, &a->data, m, action, &o);
    to->units = to->orders ? o.units : m->books.units;
}

bool live_agent_answer(live_agent *a, int series, const books *b, int64_t end, agent_reply *to, err *e) {
    seat *s = &a->seat[series];
    actor *of = a->trained.actor;
    bool begins = !s->begun, choices = a->shape.choices > 0;
    float action[PLAY_CHOICES];
    market_state m = stand(a, series, b, end);
    *to = (agent_reply){.width = choices ? PLAY_CHOICES : a->shape.action};
    market_observe(a->env, &a->data, &m, a->observation);
    if (!are_finite(a->observation, a->shape.observation)) return true;
    if (!actor_put_memory(of, s->memory, e) ||
        !actor_ask_any(of, a->observation, &begins, action, choices ? to->number : NULL, e))
        return false;
    if (!choices) memcpy(to->number, action, (size_t)to->width * sizeof *action);
    to->finite = are_finite(to->number, to->width);
    if (!to->finite) return true;
    s->begun = true;
    read_reply(a, &m, action, to);
    return actor_take_memory(of, s->memory, e);
}

bool live_agent_remembers(const live_agent *a, int series) {
    return a->remembered && a->seat[series].begun;
}

bool live_agent_was_ruined(const live_agent *a, int series) {
    return a->seat[series].ruined;
}

bool live_agent_is_ruined(live_agent *a, int series, const books *b) {
    seat *s = &a->seat[series];
    s->ruined |= s->begun && market_is_ruin(&a->env->market, &b->replay.rules, b->equity);
    return s->ruined;
}

// State

size_t live_agent_state(const live_agent *a) {
    return sizeof(int64_t) + (size_t)window_values(a) * sizeof(float);
}

void live_agent_save(const live_agent *a, int series, void *to) {
    memcpy(to, &a->seat[series].seen, sizeof(int64_t));
    memcpy((char *)to + sizeof(int64_t), agent_window_features(&a->trained.task.world.market, series),
        (size_t)window_values(a) * sizeof(float));
}

bool live_agent_load(live_agent *a, int series, const void *from) {
    int64_t seen;
    memcpy(&seen, from, sizeof seen);
    if (seen < 0 || seen > market_of(a)->lags) return false;
    a->seat[series].seen = seen;
    memcpy(agent_window_features(market_of(a), series), (const char *)from + sizeof seen,
        (size_t)window_values(a) * sizeof(float));
    return true;
}

// Memory: two marks, the numbers, a sum.

size_t live_agent_memory(const live_agent *a) {
    return 3 * sizeof(int32_t) + (size_t)a->remembered * sizeof(float);
}

static uint32_t sum_of(const void *block, size_t bytes) {
    return (uint32_t)crc32_z(crc32(0, NULL, 0), block, bytes - sizeof(uint32_t));
}

void live_agent_keep(const live_agent *a, int series, void *to) {
    const seat *s = &a->seat[series];
    const int32_t marks[2] = {s->begun, s->ruined};
    size_t bytes = live_agent_memory(a);
    memcpy(to, marks, sizeof marks);
    memcpy((char *)to + sizeof marks, s->memory, (size_t)a->remembered * sizeof *s->memory);
    uint32_t sum = sum_of(to, bytes);
    memcpy((char *)to + bytes - sizeof sum, &sum, sizeof sum);
}

bool live_agent_recall(live_agent *a, int series, const void *from, size_t bytes) {
    seat *s = &a->seat[series];
    int32_t marks[2];
    uint32_t sum;
    if (bytes != live_agent_memory(a)) return false;
    memcpy(&sum, (const char *)from + bytes - sizeof sum, sizeof sum);
    if (sum != sum_of(from, bytes)) return false;
    memcpy(marks, from, sizeof marks);
    s->begun = marks[0] != 0;
    s->ruined = marks[1] != 0;
    memcpy(s->memory, (const char *)from + sizeof marks, (size_t)a->remembered * sizeof *s->memory);
    return true;
}
