// Environments on a device: every one of env/env.def under random actions, to the bit as env/batch.h has it on the
// host: observations, rewards, ends, totals, steps, last observations and the states themselves. What an agent sees and
// earns must not depend on the device, or runs on two of them could not be compared.
//
// On a card these are a million actions in each environment, once with and once without launches that calls share.
#include "env/batch.h"
#include "env/exchange.h"
#include "ops/agents.h"
#include "ops/stand.h"
#include "support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { FEW = 64, FEW_STEPS = 60, MANY = 4096, MANY_STEPS = 256, LIMIT = 24 };
enum { SEEN, REWARD, END, LAST, TOTAL, STEPS, FIGURES };

static const char *const figure_names[FIGURES] = {"observation", "reward", "end", "last observation", "total", "steps"};

// Worlds on a device, and beside them the same ones on the host.
typedef struct {
    agent_world of;
    env_attr settings;
    env_data data;
    env_shape shape;
    int64_t count, words, columns[FIGURES];
    tensor state, action, figure[FIGURES];
    int64_t *own, *read; // states [count, words]: of the host; as the device has them
    float *want[FIGURES];
    double *is, *act; // room for a figure as it is read; actions
    env_result *result;
    dice dice;
    int64_t ends[3], cut_short, fills, nights, overflows; // seen on the host
} worlds;

static void *zeros(int64_t count, size_t each) {
    void *v = calloc((size_t)count + 1, each);
    assert_non_null(v);
    return v;
}

static void worlds_init(worlds *w, const agent_world *of, int64_t count, uint32_t stream) {
    *w = (worlds){.of = *of, .settings = {of->env, stream}, .count = count, .dice = {.seed = 3}};
    w->shape = env_shape_of(&of->env);
    w->words = env_words(&of->env);
    for (int k = 0; k < of->parts; k++) w->data.part[k] = of->part[k].data;
    if (of->parts) w->data.rows = of->part[0].shape.dim[0];
    for (int k = 0; k < FIGURES; k++) w->columns[k] = k == SEEN || k == LAST ? w->shape.observation : 1;
    for (int k = 0; k < FIGURES; k++) w->want[k] = zeros(count * w->columns[k], sizeof(float));
    w->own = zeros(count * w->words, sizeof *w->own);
    w->read = zeros(count * w->words, sizeof *w->read);
    w->is = zeros(count * w->shape.observation, sizeof *w->is);
    w->act = zeros(count * w->shape.action, sizeof *w->act);
    w->result = zeros(count, sizeof *w->result);
}

static void worlds_done(worlds *w) {
    for (int k = 0; k < FIGURES; k++) free(w->want[k]);
    free(w->own);
    free(w->read);
    free(w->is);
    free(w->act);
    free(w->result);
}

static graph *worlds_graph(worlds *w, const place *p) {
    static const int result[FIGURES] = {
        0, ENV_TAKE_REWARD, ENV_TAKE_END, ENV_TAKE_LAST, ENV_TAKE_TOTAL, ENV_TAKE_STEPS};
    graph *g = graph_new();
    tensor part[ENV_PARTS_MOST];
    for (int k = 0; k < w->of.parts; k++) {
        const agent_part *of = &w->of.part[k];
        part[k] = graph_constant(g, of->name, of->type, of->shape, of->data);
    }
    w->state = graph_state(g, "worlds", DTYPE_I64, shape2(w->count, w->words));
    w->action = graph_state(g, "action", DTYPE_F32, shape2(w->count, w->shape.action));
    w->figure[SEEN] = op_env_see(g, w->state, part, w->of.parts, w->settings);
    tensor reward = op_env_take(g, w->state, w->action, part, w->of.parts, w->settings);
    for (int k = REWARD; k < FIGURES; k++) w->figure[k] = graph_sibling(g, reward, result[k]);
    for (int k = 0; k < FIGURES; k++) graph_keep(g, w->figure[k]);
    dtype_assign(g, p->precision);
    return g;
}

// The host's step

static int64_t *state_at(const worlds *w, int64_t i) {
    return w->own + i * w->words;
}

static market_state *market_at(int64_t *state) {
    return (market_state *)((env_head *)state + 1);
}

static void draw_actions(worlds *w) {
    for (int64_t i = 0; i < w->count * w->shape.action; i++)
        w->act[i] = w->shape.choices ? (double)dice_below(&w->dice, (uint64_t)w->shape.choices)
                                     : 2.5 * (double)dice_unit(&w->dice);
}

// Counts the events of world i, whose position had this size before.
static void count_events(worlds *w, int64_t i, int64_t units) {
    const env_result *r = &w->result[i];
    w->ends[r->end]++;
    w->cut_short += r->end == ENV_TRUNCATED && r->steps != w->of.env.limit;
    if (w->of.env.kind != ENV_market) return;
    const account *books = &market_at(state_at(w, i))->books;
    w->fills += books->units != units;
    w->nights += books->swap != 0;
    w->overflows += books->state == ACCOUNT_OVERFLOW;
}

static void host_step(worlds *w, env_dice first) {
    memset(w->want[LAST], 0, (size_t)(w->count * w->columns[LAST]) * sizeof(float));
    for (int64_t i = 0; i < w->count; i++) {
        float action[ENV_ACTION_MOST];
        env_see_rows(&w->of.env, &w->data, first, w->own, w->want[SEEN], i, i + 1);
        int64_t units = w->of.env.kind == ENV_market ? market_at(state_at(w, i))->books.units : 0;
        for (int k = 0; k < w->shape.action; k++) action[k] = (float)w->act[i * w->shape.action + k];
        float *last = w->want[LAST] + i * w->columns[LAST];
        env_take_rows(&w->of.env, &w->data, state_at(w, i), action, &w->result[i], last, 0, 1);
        w->want[REWARD][i] = (float)w->result[i].reward;
        w->want[END][i] = (float)w->result[i].end;
        w->want[TOTAL][i] = (float)w->result[i].total;
        w->want[STEPS][i] = (float)w->result[i].steps;
        count_events(w, i, units);
    }
}

// Comparing

// Reads a figure as fp32, which a device of doubles has without a loss too.
static const float *figure_of(worlds *w, stand *s, int k, int64_t n) {
    err e;
    float *narrow = (float *)w->is;
    trial_ok(solo_peek(s->x, w->figure[k], false, w->is, &e), &e);
    for (int64_t i = 0; graph_info(s->g, w->figure[k])->type == DTYPE_F64 && i < n; i++) {
        double wide;
        memcpy(&wide, (const char *)w->is + (size_t)i * sizeof wide, sizeof wide);
        float v = (float)wide;
        assert_true((double)v == wide);
        memcpy((char *)narrow + (size_t)i * sizeof v, &v, sizeof v);
    }
    return narrow;
}

static void compare_figure(worlds *w, stand *s, int k, int64_t t) {
    int64_t n = w->count * w->columns[k];
    const float *is = figure_of(w, s, k, n);
    for (int64_t i = 0; i < n; i++)
        if (memcmp(&is[i], &w->want[k][i], sizeof *is) != 0)
            fail_msg("%s on %s in %s, step %lld, world %lld: %s %lld is %a, not %a", env_name(w->of.env.kind),
                s->p->device->name, precision_name(s->p->precision), (long long)t, (long long)(i / w->columns[k]),
                figure_names[k], (long long)(i % w->columns[k]), (double)is[i], (double)w->want[k][i]);
}

// Bytes behind the last field of the books are nobody's: a copy of a struct need not take them along.
static void clear_padding(const worlds *w, int64_t *state) {
    const size_t fields = offsetof(account, entered) + sizeof(bool);
    if (w->of.env.kind == ENV_market) memset((char *)&market_at(state)->books + fields, 0, sizeof(account) - fields);
}

static void compare_states(worlds *w, stand *s, int64_t t) {
    err e;
    trial_ok(solo_read(s->x, w->state, w->read, &e), &e);
    for (int64_t i = 0; i < w->count; i++) {
        int64_t *own = state_at(w, i), *is = w->read + i * w->words;
        clear_padding(w, own);
        clear_padding(w, is);
        for (int64_t k = 0; k < w->words; k++)
            if (is[k] != own[k])
                fail_msg("%s on %s in %s, step %lld, world %lld: word %lld of the state is %llx, not %llx",
                    env_name(w->of.env.kind), s->p->device->name, precision_name(s->p->precision), (long long)t,
                    (long long)i, (long long)k, (unsigned long long)is[k], (unsigned long long)own[k]);
    }
}

// All that can happen has happened.
static void check_events(const worlds *w) {
    const env_settings *s = &w->of.env;
    assert_true(w->ends[ENV_TRUNCATED] > 0);
    assert_true((w->ends[ENV_TERMINATED] > 0) == (s->kind != ENV_pendulum));
    if (s->kind != ENV_market) return;
    assert_true(w->cut_short > 0);
    assert_true(!s->limit || w->ends[ENV_TRUNCATED] > w->cut_short);
    assert_true(w->overflows > 0 && w->ends[ENV_TERMINATED] > w->overflows); // the others are ruin
    assert_true(w->fills > w->count && (w->nights > 0) != s->market.day_close);
}

static void check_size(const place *p, const agent_world *of, int64_t count, int64_t steps) {
    const uint64_t seed = 11, position = 5000000000u; // moments of more than 32 bits
    const uint32_t stream = 2;
    worlds w;
    worlds_init(&w, of, count, stream);
    stand s = stand_open(p, worlds_graph(&w, p), (solo_options){.rows = count, .inference = true, .guard = 64});
    for (int64_t t = 0; t < steps; t++) {
        uint64_t row = (uint64_t)(t * count);
        draw_actions(&w);
        stand_put(&s, w.action, w.act, count * w.shape.action);
        stand_seek(&s, seed, position, row);
        stand_play(&s, PASS_EVALUATE);
        host_step(&w, (env_dice){seed, position + row, stream});
        for (int k = 0; k < FIGURES; k++) compare_figure(&w, &s, k, t);
        compare_states(&w, &s, t);
    }
    check_events(&w);
    stand_close(&s);
    worlds_done(&w);
}

// Environments compute alike in every precision, so a card is asked for a million actions in fp32 alone, and not under
// a slow checker.
static void check_worlds(const place *p, const agent_world *of) {
    place alone = *p;
    bool card = !p->device->host_memory, many = p->precision == PRECISION_FP32 && trial_size_most() == INT64_MAX;
    alone.card.no_fuse = true;
    check_size(p, of, FEW, FEW_STEPS);
    if (card) check_size(&alone, of, FEW, FEW_STEPS);
    if (card && many) check_size(p, of, MANY, MANY_STEPS);
    if (card && many) check_size(&alone, of, MANY, MANY_STEPS);
}

static void check_plain(const place *p) {
    for (int k = 0; k < ENV_COUNT; k++)
        if (k != ENV_market) check_worlds(p, &(agent_world){.env = {.kind = (env_kind)k, .limit = LIMIT}});
}

// In double precision a graph's features would be doubles, which no environment reads.
static void check_markets(const place *p, bool continuous) {
    if (stand_wide(p)) return;
    exchange *x = calloc(1, sizeof *x);
    assert_non_null(x);
    exchange_init(x);
    for (int k = 0; k <= MARKET_SHAPED + 1; k++) {
        bool first = k > MARKET_SHAPED; // as evaluations pass over a part
        agent_world w = {.env = {.limit = first ? 0 : LIMIT}};
        exchange_world(x, &w);
        w.env.market.continuous = continuous;
        w.env.market.reward = first ? MARKET_LOG : k;
        w.env.market.from_first = first;
        w.env.market.day_close = k == MARKET_SHARPE;
        check_worlds(p, &w);
    }
    free(x);
}

static void check_choices(const place *p) {
    check_markets(p, false);
}

static void check_numbers(const place *p) {
    check_markets(p, true);
}

const row agents_worlds_rows[] = {
    {OP_env_see, "env_see and env_take of every environment without data", NULL, check_plain, false},
    {OP_env_take, "env_see and env_take of markets with choices", NULL, check_choices, false},
    {OP_env_take, "env_see and env_take of markets with numbers", NULL, check_numbers, false},
};
const int agents_worlds_count = sizeof agents_worlds_rows / sizeof *agents_worlds_rows;
