// The model of a session, and another one in its place.
#include "live/session_work.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void session_close_model(session *s) {
    if (s->model) live_model_close(s->model);
    free(s->model);
    free(s->answer);
    s->model = NULL;
    s->answer = NULL;
}

bool session_open_model(session *s, const trained_options *run, err *e) {
    live_model *m = calloc(1, sizeof *m);
    NEED(m, "out of memory for a model");
    float *answer = NULL;
    bool ok = live_model_open(m, &(model_options){*run, s->board}, e);
    if (ok && !(answer = calloc((size_t)m->width, sizeof *answer))) ok = err_run(e, "no memory for an answer");
    if (!ok) {
        live_model_close(m);
        free(m);
        return false;
    }
    session_close_model(s);
    s->model = m;
    s->answer = answer;
    return true;
}

limits_verdict session_judge_price(session *s, int k, const bar *b) {
    trader *t = &s->trader[k];
    char text[200];
    const char *symbol = t->symbol[0] ? t->symbol : NULL;
    bool other = s->trained_on && contract_price_differs(s->trained_on, symbol, b->close, text, sizeof text);
    return limits_price(&s->limits, &t->limits, b->close, other ? text : NULL);
}

// The rule of a run that takes over. An account is of one instrument, and so is a rule.
static bool read_rule(const session *s, const char *run, rule_record *to, err *e) {
    bool there;
    if (!rule_read(run, to, &there, e)) return false;
    if (!there) return err_input(e, "%s: has no rule for its weights; make it with `tradewind backtest %s`", run, run);
    for (int k = 0; k < s->traders; k++) {
        const trader *t = &s->trader[k];
        if (strcmp(to->symbol, t->symbol) != 0)
            return err_input(e, "%s: its rule is of %s, and %s is traded", run, to->symbol, t->symbol);
        if (to->rule.volatility_bars != t->record.rule.volatility_bars)
            return err_input(e, "%s: measures volatility over %lld bars, and %lld were measured here", run,
                (long long)to->rule.volatility_bars, (long long)t->record.rule.volatility_bars);
    }
    return true;
}

bool session_replace(session *s, const char *run, double now, err *e) {
    rule_record rule;
    contract *on;
    char text[300];
    trained_options as = s->options.run;
    as.run = run;
    s->now = now;
    char weights[WEIGHTS_IDENTITY_ROOM];
    if (!read_rule(s, run, &rule, e) || !weights_identity(run, weights, e) || !trained_contract(run, &on, e))
        return false;
    if (!session_open_model(s, &as, e)) {
        contract_free(on);
        return false;
    }
    contract_free(s->trained_on);
    s->trained_on = on;
    memcpy(s->weights, weights, sizeof weights);
    for (int k = 0; k < s->traders; k++) s->trader[k].record = rule;
    snprintf(text, sizeof text, "%.200s answers from here on", run);
    if (!journal_begin(s->journal, e)) return false;
    session_keep_meaning(s, run);
    session_note(s, -1, INT64_MIN, "model", LIMITS_NOTE, text);
    return session_commit(s, e);
}
