#include "task/agent_evaluation.h"

#include "backtest/judge.h"
#include "data/when.h"
#include "task/evaluation.h"

#include <math.h>
#include <stdlib.h>

static bool judge_account(agent_evaluation *v, int64_t k, const trained_agent *t, err *e) {
    backtested *b = &v->account[k];
    judge_options how = {.trials = 1, .brief = true};
    if (!agent_backtest_run(b, t, &v->answers.pass, k, &v->idle[k])) {
        if (v->idle[k].kind == ERR_INPUT && b->replay.equity) return judge(&b->replay, &b->terms, &how, &b->stats, e);
        *e = v->idle[k];
        return false;
    }
    return judge(&b->replay, &b->terms, &how, &b->stats, e);
}

bool agent_evaluation_make(agent_evaluation *v, trained_agent *t, err *e) {
    *v = (agent_evaluation){0};
    if (!agent_answers_make(&v->answers, t, 0, e)) return false;
    int64_t n = v->answers.pass.runs;
    v->score = agent_pass_score(&v->answers.pass);
    v->account = calloc((size_t)n, sizeof *v->account);
    v->idle = calloc((size_t)n, sizeof *v->idle);
    if (!v->account || !v->idle) return err_run(e, "out of memory for %lld accounts", (long long)n);
    v->count = n;
    bool ok = true;
    for (int64_t k = 0; ok && k < n; k++) ok = judge_account(v, k, t, e);
    return ok;
}

void agent_evaluation_done(agent_evaluation *v) {
    for (int64_t k = 0; k < v->count; k++) backtest_run_done(&v->account[k]);
    free(v->account);
    free(v->idle);
    agent_answers_done(&v->answers);
    *v = (agent_evaluation){0};
}

double agent_evaluation_figure(const agent_evaluation *v, stat_name k) {
    double sum = 0;
    int64_t n = 0;
    for (int64_t i = 0; i < v->count; i++) {
        double x = v->account[i].stats.of[k].value;
        if (isnan(x)) continue;
        sum += x;
        n++;
    }
    return k == STAT_TRADES ? sum : n ? sum / (double)n : NAN;
}

// The document

static json_t *metrics_json(const agent_evaluation *v) {
    static const struct {
        const char *name;
        stat_name of;
    } figures[] = {{"return", STAT_RETURN}, {"hold_return", STAT_HOLD_RETURN}, {"drawdown", STAT_DRAWDOWN},
        {"hold_drawdown", STAT_HOLD_DRAWDOWN}, {"exposure", STAT_EXPOSURE}, {"trades", STAT_TRADES}};
    json_t *all = json_pack("{s:o}", "mean_reward", json_number(v->score.mean));
    if (v->count > 1) json_object_set_new(all, "std_reward", json_number(v->score.deviation));
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
        json_object_set_new(all, figures[i].name, json_number(agent_evaluation_figure(v, figures[i].of)));
    return all;
}

static json_t *account_json(const backtested *b) {
    assumptions none = {0};
    json_t *doc = document_make(&none, &b->replay, &b->stats), *to = json_object();
    json_object_set_new(to, "symbol", json_string(b->market.symbol));
    json_object_set(to, "statistics", json_object_get(doc, "statistics"));
    json_object_set(to, "equity", json_object_get(doc, "equity"));
    json_decref(doc);
    return to;
}

json_t *agent_evaluation_json(const agent_evaluation *v) {
    const agent_answers *a = &v->answers;
    char from[32], to[32];
    json_t *accounts = json_array();
    for (int64_t k = 0; k < v->count; k++) json_array_append_new(accounts, account_json(&v->account[k]));
    return json_pack("{s:I, s:s, s:s, s:o, s:o}", "samples", (json_int_t)a->count, "from",
        when_text(from, sizeof from, a->item[0].bar.time), "to",
        when_text(to, sizeof to, a->item[a->count - 1].bar.time), "metrics", metrics_json(v), "accounts", accounts);
}

bool agent_evaluation_store(const agent_evaluation *v, const char *dir, err *e) {
    return evaluation_store_part(agent_evaluation_json(v), dir, v->answers.t->task.world.part, e);
}
