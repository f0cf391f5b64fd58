#include "backtest/backtest.h"

#include "backtest/judge.h"
#include "train/signal_keys.h"

#include <string.h>

void backtest_done(backtest *b) {
    replay_done(&b->replay);
    signals_orders_done(&b->orders);
    signals_done(&b->signals);
    quotes_done(&b->quotes);
}

// The rows of the account and of the report in one table.
static size_t join_keys(config_key to[BACKTEST_KEYS_MOST]) {
    size_t accounts, reports;
    const config_key *account = account_keys(&accounts), *report = report_keys(&reports);
    CHECK(accounts + reports <= BACKTEST_KEYS_MOST, "more than %d keys", BACKTEST_KEYS_MOST);
    memcpy(to, account, accounts * sizeof *to);
    memcpy(to + accounts, report, reports * sizeof *to);
    return accounts + reports;
}

config *backtest_keys(config_key table[BACKTEST_KEYS_MOST], const backtest_options *o, err *e) {
    config *c = config_read("account", "", 0, table, join_keys(table), e);
    bool ok = c != NULL;
    for (int i = 0; ok && i < o->override_count; i++) ok = config_override(c, o->overrides[i], e);
    if (ok && config_check(c, e)) return c;
    config_free(c);
    return NULL;
}

static bool read_keys(backtest *b, const backtest_options *o, err *e) {
    config_key table[BACKTEST_KEYS_MOST];
    config *c = backtest_keys(table, o, e);
    bool ok = c && account_terms_read(c, &b->terms, e);
    if (ok) b->trials = report_trials(c) == SIGNAL_AUTO ? 1 : report_trials(c);
    config_free(c);
    return ok;
}

bool backtest_open(backtest *b, const backtest_options *o, err *e) {
    *b = (backtest){0};
    bool ok = read_keys(b, o, e) && signals_read(&b->signals, o->signals, e) &&
              quotes_read(&b->quotes, o->bars, b->terms.point, b->terms.spread.measure == ACCOUNT_FROM_FILE, e) &&
              account_rules_make(&b->rules, &b->terms, b->quotes.point, e) &&
              signals_place(&b->orders, &b->signals, &b->quotes, &b->rules, e) &&
              replay_init(&b->replay, &b->quotes, &b->terms, &b->rules, b->orders.count, e);
    if (!ok) backtest_done(b);
    return ok;
}

bool backtest_run(backtest *b, const backtest_options *o, err *e) {
    if (!backtest_open(b, o, e)) return false;
    judge_options how = {.trials = (double)b->trials};
    if (replay_orders(&b->replay, &b->orders, e) && judge(&b->replay, &b->terms, &how, &b->stats, e)) return true;
    backtest_done(b);
    return false;
}
