#include "backtest/backtest.h"

void backtest_done(backtest *b) {
    replay_done(&b->replay);
    signals_orders_done(&b->orders);
    signals_done(&b->signals);
    quotes_done(&b->quotes);
}

static bool read_terms(account_terms *t, const backtest_options *o, err *e) {
    size_t count;
    const config_key *keys = account_keys(&count);
    config *c = config_read("account", "", 0, keys, count, e);
    bool ok = c != NULL;
    for (int i = 0; ok && i < o->override_count; i++) ok = config_override(c, o->overrides[i], e);
    ok = ok && config_check(c, e) && account_terms_read(c, t, e);
    config_free(c);
    return ok;
}

bool backtest_open(backtest *b, const backtest_options *o, err *e) {
    *b = (backtest){0};
    bool ok = read_terms(&b->terms, o, e) && signals_read(&b->signals, o->signals, e) &&
              quotes_read(&b->quotes, o->bars, b->terms.point, b->terms.spread.measure == ACCOUNT_FROM_FILE, e) &&
              account_rules_make(&b->rules, &b->terms, b->quotes.point, e) &&
              signals_place(&b->orders, &b->signals, &b->quotes, &b->rules, e) &&
              replay_init(&b->replay, &b->quotes, &b->terms, &b->rules, b->orders.count, e);
    if (!ok) backtest_done(b);
    return ok;
}

bool backtest_run(backtest *b, const backtest_options *o, err *e) {
    if (!backtest_open(b, o, e)) return false;
    if (replay_orders(&b->replay, &b->orders, e)) return true;
    backtest_done(b);
    return false;
}
