#include "task/agent_play.h"

#include "base/err.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void agent_pass_done(agent_pass *p) {
    free(p->run);
    free(p->bar);
    *p = (agent_pass){0};
}

// Stretches that are played side by side, a row of the actor each.
typedef struct {
    const agent_world *world;
    actor *actor;
    env_data data;
    env_shape shape;
    int64_t words, rows;
    int64_t first, count; // stretches under way
    int64_t *state;       // [rows, words]
    float *seen, *action, *chance;
    bool *begins, *asked, *over;
    env_result *result;
} stage;

static void stage_done(stage *s) {
    free(s->state);
    free(s->seen);
    free(s->action);
    free(s->chance);
    free(s->begins);
    free(s->asked);
    free(s->over);
    free(s->result);
}

static bool stage_init(stage *s, const agent_world *w, actor *a, err *e) {
    *s = (stage){
        .world = w, .actor = a, .shape = env_shape_of(&w->env), .words = env_words(&w->env), .rows = actor_rows(a)};
    for (int k = 0; k < w->parts; k++) s->data.part[k] = w->part[k].data;
    s->data.rows = w->part[MARKET_BARS].shape.dim[0];
    size_t n = (size_t)s->rows;
    s->state = calloc(n * (size_t)s->words, sizeof *s->state);
    s->seen = calloc(n * (size_t)s->shape.observation, sizeof *s->seen);
    s->action = calloc(n * (size_t)s->shape.action, sizeof *s->action);
    s->chance = calloc(n * PLAY_CHOICES, sizeof *s->chance);
    s->begins = calloc(n, sizeof *s->begins);
    s->asked = calloc(n, sizeof *s->asked);
    s->over = calloc(n, sizeof *s->over);
    s->result = calloc(n, sizeof *s->result);
    if (s->state && s->seen && s->action && s->chance && s->begins && s->asked && s->over && s->result) return true;
    stage_done(s);
    return err_run(e, "out of memory for %lld stretches", (long long)s->rows);
}

static const market_state *state_of(const stage *s, int64_t i) {
    return (const market_state *)((const env_head *)(s->state + i * s->words) + 1);
}

// Notes what was seen and decided in row `i`, behind the bars that its run has.
static void note(const stage *s, int64_t i, agent_pass *p) {
    const market_settings *k = &s->world->env.market;
    const market_state *m = state_of(s, i);
    const float *action = s->action + i * s->shape.action;
    play_run *run = &p->run[s->first + i];
    play_bar *b = &p->bar[run->first + run->count++];
    account_order o;
    double share;
    *b = (play_bar){.row = m->row, .units = m->books.units, .equity = m->equity};
    for (int c = 0; c < s->shape.action; c++) b->action[c] = action[c];
    for (int c = 0; c < s->shape.choices; c++) b->chance[c] = s->chance[i * PLAY_CHOICES + c];
    if (run->ruined) {
        b->orders = m->books.units != 0;
        return;
    }
    b->side = market_side(k, action, &share);
    b->orders = market_order(k, &s->data, m, action, &o);
    b->order = b->orders ? o.units : m->books.units;
}

// The step of every row that is under way; how many still are.
static int64_t take(stage *s, agent_pass *p) {
    int64_t left = 0;
    for (int64_t i = 0; i < s->count; i++) {
        play_run *run = &p->run[s->first + i];
        if (s->over[i]) continue;
        env_take_rows(&s->world->env, &s->data, s->state + i * s->words, s->action + i * s->shape.action, &s->result[i],
            s->seen + i * s->shape.observation, 0, 1);
        run->reward = s->result[i].total;
        run->ruined = s->result[i].end == ENV_TERMINATED;
        s->over[i] = s->result[i].end != ENV_GOES_ON;
        left += !s->over[i];
    }
    return left;
}

// Observations of the rows that are under way; an episode that ended has left its last one.
static void see(stage *s) {
    for (int64_t i = 0; i < s->count; i++) {
        env_dice at = {.moment = (uint64_t)(s->first + i)}; // the moment of a beginning is the number of its stretch
        if (s->over[i]) continue;
        env_see_rows(&s->world->env, &s->data, at, s->state + i * s->words, s->seen + i * s->shape.observation, 0, 1);
    }
}

static void begin(stage *s, int64_t first, int64_t count) {
    s->first = first;
    s->count = count < s->rows ? count : s->rows;
    memset(s->state, 0, (size_t)(s->rows * s->words) * sizeof *s->state);
    for (int64_t i = 0; i < s->rows; i++) {
        s->begins[i] = true;
        s->asked[i] = i < s->count;
        s->over[i] = i >= s->count;
    }
}

// Plays the stretches that were begun to their ends, where the last observation is answered too.
static bool play(stage *s, agent_pass *p, err *e) {
    for (int64_t left = s->count;; left = take(s, p)) {
        see(s);
        if (!actor_ask(s->actor, s->seen, s->begins, s->action, s->shape.choices ? s->chance : NULL, e)) return false;
        for (int64_t i = 0; i < s->rows; i++) {
            if (s->asked[i]) note(s, i, p);
            s->asked[i] = !s->over[i];
            s->begins[i] = false;
        }
        if (!left) return true;
    }
}

static bool take_memory(agent_pass *p, const agent_world *w, err *e) {
    const market_stretch *all = w->part[MARKET_STRETCHES].data;
    p->runs = w->env.market.stretches;
    p->run = calloc((size_t)p->runs, sizeof *p->run);
    if (!p->run) return err_run(e, "out of memory for %lld stretches", (long long)p->runs);
    for (int64_t k = 0; k < p->runs; k++) {
        p->run[k] = (play_run){.first = p->bars, .stretch = k};
        p->bars += all[k].end - all[k].first;
    }
    p->bar = calloc((size_t)p->bars, sizeof *p->bar);
    return p->bar || err_run(e, "out of memory for a pass over %lld bars", (long long)p->bars);
}

// Puts books that are there already into an episode that begins.
static void take_over(stage *s, const market_state *from) {
    market_state *m = (market_state *)((env_head *)s->state + 1);
    see(s);
    market_state there = *from;
    there.row = m->row;
    there.end = m->end;
    there.rules = m->rules;
    *m = there;
}

bool agent_play_on(agent_pass *p, actor *a, const agent_world *w, const market_state *from, market_state *to, err *e) {
    CHECK(w->env.kind == ENV_market && w->env.market.from_first && w->env.market.stretches == 1, "one stretch");
    *p = (agent_pass){0};
    stage s;
    if (!stage_init(&s, w, a, e)) return false;
    bool ok = take_memory(p, w, e);
    begin(&s, 0, 1);
    if (ok && from) take_over(&s, from);
    ok = ok && play(&s, p, e);
    *to = *state_of(&s, 0);
    stage_done(&s);
    if (!ok) agent_pass_done(p);
    return ok;
}

bool agent_play(agent_pass *p, actor *a, const agent_world *w, err *e) {
    const env_settings *env = &w->env;
    CHECK(env->kind == ENV_market && env->market.from_first && !env->limit, "a pass over an environment of episodes");
    *p = (agent_pass){0};
    stage s;
    if (!stage_init(&s, w, a, e)) return false;
    bool ok = take_memory(p, w, e);
    for (int64_t k = 0; ok && k < p->runs; k += s.count) {
        begin(&s, k, p->runs - k);
        ok = play(&s, p, e);
    }
    stage_done(&s);
    if (!ok) agent_pass_done(p);
    return ok;
}

// Rewards are rounded to fp32, as a device hands them out.
agent_score agent_pass_score(const agent_pass *p) {
    agent_score s = {.episodes = p->runs};
    double n = (double)p->runs, square = 0;
    for (int64_t k = 0; k < p->runs; k++) {
        s.mean += (double)(float)p->run[k].reward / n;
        s.length += (double)(p->run[k].count - 1) / n;
    }
    for (int64_t k = 0; k < p->runs; k++) {
        double d = (double)(float)p->run[k].reward - s.mean;
        square += d * d;
    }
    s.deviation = sqrt(square / n);
    return s;
}
