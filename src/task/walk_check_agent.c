// Observations of an agent in two futures.
//
// The same actions are taken in both, from the first bar on. What the agent sees at a bar, its account included, must
// be the same to the bit as long as the bars are: orders are decided at a close and fill at the next open.
#include "rl/agent_read.h"
#include "task/market.h"
#include "task/walk_check_work.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool sight_fix_point(const config *c, const dataset *d, char text[POINT_ROOM], err *e) {
    account_terms terms;
    quotes q;
    text[0] = 0;
    if (!account_terms_read(c, &terms, e)) return false;
    if (terms.point > 0 || !account_needs_point(&terms)) return true;
    if (dataset_series(d) > 1)
        return config_fail(c, "account.point", e,
            "auto is found in the digits of all prices, those of an altered future too; give it a value for --check");
    if (!market_quote(&q, d, 0, &terms, e)) return false;
    snprintf(text, POINT_ROOM, "%.8f", (double)q.point / 1e8);
    quotes_done(&q);
    return true;
}

bool sight_make(sight *s, const config *c, const dataset *whole, err *e) {
    *s = (sight){.whole = whole};
    return agent_read(c, &s->settings, e) && account_terms_read(c, &s->terms, e) &&
           agent_market_make(&s->market, whole, s->settings.world.env.market.lags, NULL, &s->terms, e);
}

void sight_done(sight *s) {
    agent_market_done(&s->market);
}

// An account that trades one instrument on one of the datasets.
typedef struct {
    env_settings env;
    env_data data;
    market_stretch stretch;
    int64_t *state; // [env_words]
    float *seen;    // [columns of the observation]
} desk;

static void desk_done(desk *d) {
    free(d->state);
    free(d->seen);
}

static bool desk_open(desk *d, const sight *s, const agent_market *m, int64_t series, err *e) {
    int64_t first = m->start[series] + m->lags - 1;
    agent_world w = s->settings.world;
    *d = (desk){.stretch = {first, m->start[series + 1], series, 0}};
    agent_market_world(m, &(agent_stretches){.count = 1, .item = &d->stretch}, &w);
    d->env = w.env;
    d->env.limit = 0;
    d->env.market.from_first = true;
    d->data.rows = m->rows;
    for (int i = 0; i < w.parts; i++) d->data.part[i] = w.part[i].data;
    d->state = calloc((size_t)env_words(&d->env), sizeof *d->state);
    d->seen = calloc((size_t)env_shape_of(&d->env).observation, sizeof *d->seen);
    return (d->state && d->seen) || err_run(e, "no memory for an observation");
}

static void look(desk *d) {
    env_see_rows(&d->env, &d->data, (env_dice){0}, d->state, d->seen, 0, 1);
}

// Goes to the next bar. Where the episode ends, another begins there.
static env_end act(desk *d, const float *action) {
    env_result r;
    env_take_rows(&d->env, &d->data, d->state, action, &r, d->seen, 0, 1);
    return r.end;
}

static void begin_at(desk *d, int64_t row) {
    d->stretch.first = row;
    memset(d->state, 0, (size_t)env_words(&d->env) * sizeof *d->state);
}

// Each side for a few bars, in sizes that differ.
static void choose(const desk *d, int64_t step, float action[2]) {
    static const float sides[] = {2, 1, 0, 2, 0}, directions[] = {1, 0, -1, 1, -1};
    int64_t turn = step / 7;
    action[0] = d->env.market.continuous ? directions[turn % 5] : sides[turn % 5];
    action[1] = 0.1f * (float)(1 + turn % 10);
}

// Comparison

typedef struct {
    const sight *s;
    int64_t t, series;
    future f;
    check_result *result;
} view;

static const char *column_of(const view *v, int64_t at, char text[CHECK_TEXT]) {
    const agent_market *m = &v->s->market;
    const table *t = &v->s->whole->stream[0].series;
    if (at >= (int64_t)m->lags * m->lagged || !t->columns)
        snprintf(text, CHECK_TEXT, "number %lld", (long long)at + 1);
    else
        snprintf(text, CHECK_TEXT, "%.60s (%lld bars back)", t->columns[at % m->lagged],
            (long long)(m->lags - 1 - at / m->lagged));
    return text;
}

static int64_t end_of(const sight *s, int64_t row) {
    return dataset_bar(&s->whole->stream[0].bars, agent_market_bar(&s->market, s->whole, row)).end;
}

static void compare(const view *v, const desk *a, const desk *b, int64_t row) {
    const dataset *d = v->s->whole;
    int64_t width = env_shape_of(&a->env).observation, at = 0;
    char column[CHECK_TEXT], when[32], until[32];
    check_count(v->result, width);
    if (memcmp(a->seen, b->seen, (size_t)width * sizeof *a->seen) == 0) return;
    while (memcmp(&a->seen[at], &b->seen[at], sizeof *a->seen) == 0) at++;
    when_moment_text(when, sizeof when, end_of(v->s, row));
    when_moment_text(until, sizeof until, v->t);
    check_fail(v->result, "%s%s%s UTC: %s of the agent's observation is another, with all bars behind %s UTC %s",
        d->panel ? d->panel_names[v->series] : "", d->panel ? " " : "", when, column_of(v, at, column), until,
        v->f == FUTURE_CUT ? "cut off" : "altered");
}

// Rows of an instrument whose bars had closed by the moment. A bar that was its day's last one only because the others
// are cut off closes a position at its end.
static int64_t rows_known(const view *v) {
    const agent_market *m = &v->s->market;
    int64_t row = m->start[v->series];
    while (row < m->start[v->series + 1] && end_of(v->s, row) <= v->t) row++;
    return row - (m->day_close && v->f == FUTURE_CUT && row > m->start[v->series]);
}

static void go_through(const view *v, desk *a, desk *b) {
    int64_t rows = rows_known(v), first = a->stretch.first, ahead = b->stretch.first - first;
    float action[2];
    for (int64_t row = first; row < rows; row++) {
        look(a);
        look(b);
        compare(v, a, b, row);
        if (row + 1 == rows) return;
        choose(a, row - first, action);
        env_end one = act(a, action), other = act(b, action);
        if (one == ENV_GOES_ON && other == ENV_GOES_ON) continue;
        begin_at(a, row + 1);
        begin_at(b, row + 1 + ahead);
    }
}

// One instrument, whose first sample both have.
static bool same_series(const view *v, const agent_market *there, const roll *other, err *e) {
    desk a, b = {0};
    int64_t at = other->series[v->series];
    if (at < 0) return true;
    bool ok = desk_open(&a, v->s, &v->s->market, v->series, e) && desk_open(&b, v->s, there, at, e);
    if (ok) go_through(v, &a, &b);
    desk_done(&a);
    desk_done(&b);
    return ok;
}

bool sight_same(const sight *s, const roll *other, int64_t t, future f, check_report *r, err *e) {
    agent_market there;
    view v = {.s = s, .t = t, .f = f, .result = &r->rule[CHECK_INPUTS]};
    if (!agent_market_make(&there, other->d, s->market.lags, NULL, &s->terms, e)) return false;
    bool ok = true;
    for (v.series = 0; ok && v.series < s->market.instruments; v.series++) ok = same_series(&v, &there, other, e);
    agent_market_done(&there);
    return ok;
}
