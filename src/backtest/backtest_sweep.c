// Anyone's signals with many settings of the account: files are read once, every setting is replayed.
#include "backtest/backtest.h"
#include "train/signal_keys.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    const signals *signals;
    quotes quotes;        // with spreads where one of the settings needs them
    account_terms *terms; // [settings]
    int64_t trials;       // SIGNAL_AUTO: the settings
} job;

static bool from_file(const account_terms *t) {
    return t->spread.measure == ACCOUNT_FROM_FILE;
}

static bool play(void *arg, int64_t k, sweep_play *to, err *e) {
    const job *m = arg;
    account_rules rules;
    signals_orders orders = {0};
    to->terms = m->terms[k];
    to->quotes = m->quotes;
    if (!from_file(&to->terms)) to->quotes.spread = NULL;
    bool ok = account_rules_make(&rules, &to->terms, to->quotes.point, e) &&
              signals_place(&orders, m->signals, &to->quotes, &rules, e) &&
              replay_init(&to->replay, &to->quotes, &to->terms, &rules, orders.count, e) &&
              replay_orders(&to->replay, &orders, e);
    signals_orders_done(&orders);
    return ok;
}

// Keys that are of the bars or of the counting have one value for all settings.
static bool check_keys(const grid *g, err *e) {
    for (int i = 0; i < g->axes; i++) {
        const char *key = g->axis[i].key;
        if (strncmp(key, "account.", 8) != 0 || strcmp(key, "account.point") == 0)
            return err_input(e, "--sweep %s: has one value for all settings; sweep keys of account", key);
    }
    return true;
}

static bool read_settings(job *m, const backtest_options *o, const grid *g, err *e) {
    config_key table[BACKTEST_KEYS_MOST];
    config *c = backtest_keys(table, o, e);
    bool ok = c != NULL;
    m->terms = calloc((size_t)g->settings, sizeof *m->terms);
    NEED(m->terms, "out of memory for %lld settings", (long long)g->settings);
    for (int64_t k = 0; ok && k < g->settings; k++)
        ok = grid_apply(g, k, c, e) && account_terms_read(c, &m->terms[k], e);
    if (ok) m->trials = report_trials(c);
    config_free(c);
    return ok;
}

bool backtest_sweep(sweep *s, const backtest_options *o, const grid *g, pool *p, err *e) {
    job m = {0};
    signals table = {0};
    bool spreads = false, ok = check_keys(g, e) && read_settings(&m, o, g, e) && signals_read(&table, o->signals, e);
    for (int64_t k = 0; ok && k < g->settings; k++) spreads |= from_file(&m.terms[k]);
    ok = ok && quotes_read(&m.quotes, o->bars, m.terms[0].point, spreads, e);
    m.signals = &table;
    double trials = (double)(m.trials == SIGNAL_AUTO ? g->settings : m.trials);
    ok = ok && sweep_make(s, g->settings, trials, play, &m, p, e);
    if (ok) {
        s->trials_given = m.trials != SIGNAL_AUTO;
        s->bars = m.quotes.count;
        s->from = m.quotes.time[0];
        s->to = m.quotes.time[m.quotes.count - 1];
    }
    quotes_done(&m.quotes);
    signals_done(&table);
    free(m.terms);
    return ok;
}
