#include "task/agent_window.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int64_t width_of(const agent_market *m) {
    return (int64_t)m->lagged + m->once;
}

static bool take_memory(agent_market *m, agent_stretches *p, err *e) {
    size_t n = (size_t)m->rows;
    m->bar = calloc(n, sizeof *m->bar);
    m->feature = calloc(n, (size_t)width_of(m) * sizeof *m->feature);
    m->calendar = calloc(n, MARKET_COLUMNS * sizeof *m->calendar);
    m->rules = calloc((size_t)m->instruments, sizeof *m->rules);
    p->item = calloc(1, sizeof *p->item);
    return (m->bar && m->feature && m->calendar && m->rules && p->item) ||
           err_run(e, "no memory for the newest bars of %lld instruments", (long long)m->instruments);
}

bool agent_window_make(agent_market *m, agent_stretches *p, const dataset *d, int32_t lags, const scaler *s,
    const account_terms *t, err *e) {
    *p = (agent_stretches){.name = "newest bars", .count = 1, .orders = 1};
    bool ok = agent_market_begin(m, d, lags, t, e);
    m->instruments = dataset_series(d);
    m->rows = m->instruments * lags;
    ok = ok && take_memory(m, p, e) && agent_market_scale(m, d, s, e);
    if (ok) *p->item = (market_stretch){.end = m->rows};
    if (ok) return true;
    agent_market_done(m);
    agent_stretches_done(p);
    return false;
}

float *agent_window_features(const agent_market *m, int64_t series) {
    return m->feature + series * m->lags * width_of(m);
}

void agent_window_push(agent_market *m, int64_t series, const dataset *d, int64_t sample) {
    int64_t width = width_of(m), older = (m->lags - 1) * width;
    float *all = agent_window_features(m, series);
    memmove(all, all + width, (size_t)older * sizeof *all);
    agent_market_features(d, sample, all + older);
}

int64_t agent_window_row(agent_market *m, int64_t series, int64_t close, int64_t end) {
    int64_t row = (series + 1) * m->lags - 1;
    m->bar[row] = (account_bar){close, close, close, close, 0};
    m->calendar[row * MARKET_COLUMNS + MARKET_CLOCK] = agent_market_clock(end);
    return row;
}
