#include "task/market.h"

#include "backtest/daily.h"
#include "data/volatility.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void market_close(market *m) {
    quotes_done(&m->quotes);
    free(m->at);
    free(m->all.score);
    free(m->all.volatility);
    *m = (market){0};
}

// The instrument

bool market_refuse(const dataset *d, const char *symbol, err *e) {
    char list[400] = "";
    size_t n = 0;
    for (int64_t k = 0; k < d->panel && n < sizeof list; k++)
        n += (size_t)snprintf(list + n, sizeof list - n, "%s%s", k ? ", " : "", d->panel_names[k]);
    if (!symbol)
        return err_input(e,
            "%s: has several instruments, and a backtest has one account for one of them; name it with "
            "--symbol, one of: %s",
            d->name, list);
    return err_input(
        e, "--symbol %s: %s has no such instrument, but: %s", symbol, d->name, d->panel ? list : "one without a name");
}

bool market_choose(market *m, const dataset *d, const char *symbol, err *e) {
    if (!symbol && d->panel > 1) return market_refuse(d, NULL, e);
    for (int64_t k = 0; k < d->panel; k++)
        if (!symbol || strcmp(symbol, d->panel_names[k]) == 0) {
            m->series = k;
            snprintf(m->symbol, sizeof m->symbol, "%s", d->panel_names[k]);
            return true;
        }
    return !symbol || market_refuse(d, symbol, e);
}

bool market_has_bars(const dataset *d, err *e) {
    return (d->streams && d->stream[0].bars.count) ||
           err_input(e, "%s: keeps no bars to trade on; use data that import or data.bars made of bars", d->name);
}

static bool is_traded(market *m, const dataset *d, err *e) {
    m->label = build_defaults;
    if (!market_has_bars(d, e)) return false;
    if (!build_label_read(json_object_get(d->about, "label"), &m->label))
        return err_input(e, "%s: does not say what its labels mean; make it again with import", d->name);
    return true;
}

// Quotes

bool market_quote(quotes *q, const dataset *d, int64_t series, const account_terms *terms, err *e) {
    const bar_table *from = &d->stream[0].bars;
    int64_t first = from->start[series];
    bars b = {.count = from->start[series + 1] - first};
    *q = (quotes){0};
    b.bar = malloc((size_t)b.count * sizeof *b.bar);
    if (!b.bar) return err_run(e, "no memory for %lld bars", (long long)b.count);
    for (int64_t i = 0; i < b.count; i++) {
        b.bar[i] = dataset_bar(from, first + i);
        b.report.has_spread |= b.bar[i].spread > 0;
    }
    bool ok = quotes_init(q, &b, d->name, terms->point, terms->spread.measure == ACCOUNT_FROM_FILE, e);
    free(b.bar);
    return ok;
}

// Row of the last quote of each bar's time.
static bool place_bars(market *m, const dataset *d, const char *file, err *e) {
    int64_t row = 0, found = 0;
    m->at = malloc((size_t)m->bars * sizeof *m->at);
    if (!m->at) return err_run(e, "no memory for %lld bars", (long long)m->bars);
    for (int64_t i = 0; i < m->bars; i++) {
        int64_t time = dataset_bar(&d->stream[0].bars, m->first + i).time;
        while (row + 1 < m->quotes.count && m->quotes.time[row + 1] <= time) row++;
        m->at[i] = m->quotes.time[row] == time ? row : -1;
        found += m->at[i] >= 0;
    }
    return found || err_input(e, "%s: none of its rows is a bar of the run's data; give bars of the same clock", file);
}

static bool quote_rows(market *m, const trained *t, const char *file, const account_terms *terms, err *e) {
    bars_options as_is = t->task.settings.bars;
    bars b;
    as_is.as_is = true;
    if (!bars_read(&b, file, &as_is, e)) return false;
    bool ok = quotes_init(&m->quotes, &b, file, terms->point, terms->spread.measure == ACCOUNT_FROM_FILE, e) &&
              place_bars(m, t->task.data, file, e);
    bars_done(&b);
    return ok;
}

static bool take_memory(market *m, err *e) {
    size_t n = (size_t)m->quotes.count;
    m->all.score = malloc(n * sizeof *m->all.score);
    m->all.volatility = malloc(n * sizeof *m->all.volatility);
    if (!m->all.score || !m->all.volatility) return err_run(e, "no memory for %zu bars", n);
    for (size_t i = 0; i < n; i++) m->all.score[i] = m->all.volatility[i] = NAN;
    return true;
}

bool market_open(market *m, const trained *t, const market_options *o, const account_terms *terms, err *e) {
    const dataset *d = t->task.data;
    *m = (market){0};
    bool ok = is_traded(m, d, e) && market_choose(m, d, o->symbol, e);
    if (ok) {
        const int64_t *start = d->stream[0].bars.start;
        m->first = start[m->series];
        m->bars = start[m->series + 1] - m->first;
        ok = o->rows ? quote_rows(m, t, o->rows, terms, e) : market_quote(&m->quotes, d, m->series, terms, e);
    }
    ok = ok && take_memory(m, e);
    if (!ok) market_close(m);
    return ok;
}

// Row of the quotes for a bar of the data's table; -1 where it is of another series or of no row.
static int64_t row_of(const market *m, int64_t bar) {
    int64_t i = bar - m->first;
    if (i < 0 || i >= m->bars) return -1;
    return m->at ? m->at[i] : i;
}

bool market_measure(market *m, const trained *t, int64_t bars, err *e) {
    volatility *v = volatility_new(bars, e);
    if (!v) return false;
    for (int64_t i = 0; i < m->bars; i++) {
        bar b = dataset_bar(&t->task.data->stream[0].bars, m->first + i);
        double is = volatility_push(v, &b);
        int64_t row = row_of(m, m->first + i);
        if (row >= 0) m->all.volatility[row] = is;
    }
    volatility_free(v);
    return true;
}

// Scores

double market_answer(const trained *t, const build_options *label, const float *answer, double close) {
    const task *k = &t->task;
    if (!k->job.forecasts) return decide_score_classes(answer, k->data->classes);
    int64_t horizon = k->data->target_width;
    return decide_score_forecast(answer + settings_median(&k->settings) * horizon, horizon, label->value, close);
}

static bool place_scores(market *m, const trained *t, const float *answer, int64_t *from, int64_t *to, err *e) {
    int64_t width = inference_width(&t->task.job);
    *from = *to = -1;
    for (int64_t i = 0; i < t->samples.count; i++) {
        int64_t row = row_of(m, dataset_bar_of(t->task.data, part_sample(&t->samples, i)));
        if (row < 0) continue;
        m->all.score[row] = market_answer(t, &m->label, answer + i * width, (double)m->quotes.close[row] / 1e8);
        if (*from < 0 || row < *from) *from = row;
        if (row > *to) *to = row;
    }
    return *from >= 0 || err_input(e, "%s: the part %s has no samples of %s", t->task.data->name, t->part,
                             m->symbol[0] ? m->symbol : "the instrument");
}

bool market_score(market *m, trained *t, const split_part *part, int64_t *from, int64_t *to, err *e) {
    split_part was = t->samples;
    t->samples = *part;
    float *answer = task_predict(t, e);
    bool ok = answer && place_scores(m, t, answer, from, to, e);
    t->samples = was;
    free(answer);
    return ok;
}

double market_bars_a_year(const market *m, int64_t from, int64_t to) {
    double years = daily_years(m->quotes.time[from], m->quotes.time[to]);
    return years > 0 ? rint((double)(to - from) / years) : 1;
}
