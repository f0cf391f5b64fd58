// tradewind evaluate of an agent: greedy episodes, or the pass over a part of a market with its accounts.
#include "base/term.h"
#include "cli/agent_commands.h"
#include "cli/ask.h"
#include "cli/keep.h"
#include "cli/use.h"
#include "data/when.h"
#include "run/command.h"
#include "run/results.h"
#include "run/run.h"
#include "task/agent_evaluation.h"
#include "task/output.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

// Accounts

static const struct {
    const char *title;
    stat_name of;
    int width;
} columns[] = {{"return", STAT_RETURN, 10}, {"hold", STAT_HOLD_RETURN, 10}, {"drawdown", STAT_DRAWDOWN, 10},
    {"hold", STAT_HOLD_DRAWDOWN, 10}, {"Sharpe", STAT_SHARPE, 8}, {"hold", STAT_HOLD_SHARPE, 8},
    {"exposure", STAT_EXPOSURE, 10}, {"trades", STAT_TRADES, 8}, {"win rate", STAT_WIN_RATE, 10},
    {"costs", STAT_COSTS, 12}, {"final equity", STAT_EQUITY_FINAL, 14}};
enum { COLUMNS = sizeof columns / sizeof *columns, NAME = 10 };

static void print_account(const backtested *b) {
    char figure[160];
    printf("%-*.*s", NAME, NAME - 1, b->market.symbol[0] ? b->market.symbol : "account");
    for (int i = 0; i < COLUMNS; i++) {
        bool has = !b->stats.of[columns[i].of].why;
        printf("%*s", columns[i].width, has ? stats_figure(&b->stats, columns[i].of, figure, sizeof figure) : "-");
    }
    putchar('\n');
}

// Accounts with an order that the cash did not cover, or that ended in ruin.
static void print_troubles(const agent_evaluation *v) {
    char when[32];
    for (int64_t k = 0; k < v->count; k++) {
        const backtested *b = &v->account[k];
        const char *symbol = b->market.symbol, *sep = symbol[0] ? ": " : "";
        const replay_refusals *r = &b->replay.refused;
        if (b->ruined_at)
            printf("ruin      %s%sat the close of the bar of %s equity had fallen to %g of the cash (agent.ruin)\n",
                symbol, sep, when_text(when, sizeof when, b->ruined_at), b->market_of_agent.ruin);
        if (v->idle[k].kind == ERR_INPUT)
            printf("warning   %s%s%s\n", symbol, sep, v->idle[k].text);
        else if (r->no_margin + r->costs_above)
            printf("note      %s%s%lld order%s refused, as the cash did not cover margin and costs\n", symbol, sep,
                (long long)(r->no_margin + r->costs_above), r->no_margin + r->costs_above == 1 ? " was" : "s were");
    }
}

static void print_accounts(const agent_evaluation *v, const cli_options *o) {
    print_troubles(v);
    if (o->quiet) return;
    printf("\n%-*s", NAME, "");
    for (int i = 0; i < COLUMNS; i++) printf("%*s", columns[i].width, columns[i].title);
    putchar('\n');
    for (int64_t k = 0; k < v->count; k++) print_account(&v->account[k]);
    char *backtest = command_line("backtest", o->word[0], "");
    printf("\n`hold` is buy-and-hold, without costs; `%s` has all statistics, intervals and trades\n", backtest);
    free(backtest);
}

// One pass over a part for every instrument.
static void print_traded(const agent_evaluation *v, const trained_agent *t, const cli_options *o) {
    const agent_score *s = &v->score;
    const agent_stretches *of = &t->task.world.test;
    bool log = t->task.agent.test.env.market.reward == MARKET_LOG;
    printf("weights   %s\npart      %s, %lld stretch%s of %lld steps in all, greedy, from the first bar on\n",
        t->weights, t->task.world.part, (long long)s->episodes, s->episodes == 1 ? "" : "es", (long long)of->orders);
    use_warn(&v->answers.notes, v->answers.count, stdout);
    printf("reward    %.6f", s->mean);
    if (s->episodes > 1) printf(", deviation %.6f", s->deviation);
    if (log) printf(": a return of %+.2f %% after costs", 100 * expm1(s->mean));
    putchar('\n');
    print_accounts(v, o);
}

static json_t *accounts_json(const agent_evaluation *v) {
    json_t *all = json_array();
    for (int64_t k = 0; k < v->count; k++) {
        const backtested *b = &v->account[k];
        json_t *one = json_pack("{s:s, s:b}", "symbol", b->market.symbol, "ruined", b->ruined_at != 0);
        json_join(one, stats_json(&b->stats));
        if (v->idle[k].kind == ERR_INPUT) json_object_set_new(one, "idle", json_string(v->idle[k].text));
        json_array_append_new(all, one);
    }
    return all;
}

// The score of any agent; the caller gives it back.
static json_t *score_json(const trained_agent *t, const agent_score *s) {
    return json_pack("{s:s, s:s, s:s?, s:I, s:o, s:o, s:o, s:I}", "weights", t->weights, "environment",
        agent_task_env(&t->task), "part", t->task.world.open ? t->task.world.part : NULL, "episodes",
        (json_int_t)s->episodes, "mean_reward", json_number(s->mean), "std_reward", json_number(s->deviation),
        "mean_ep_length", json_number(s->length), "limit", (json_int_t)t->task.agent.test.env.limit);
}

static void print_json(const agent_evaluation *v, const trained_agent *t, const kept *k) {
    json_t *line = score_json(t, &v->score);
    use_add_json(&v->answers.notes, line);
    json_object_set_new(line, "accounts", accounts_json(v));
    json_object_set_new(line, "stored", keep_json(k));
    json_line(stdout, line);
}

// The directory

static bool store_answers(const agent_evaluation *v, const char *path, err *e) {
    return output_may_replace(path, OUTPUT_ANSWERS, NULL, 0, e) && agent_answers_write_npz(&v->answers, path, e);
}

static void keep(kept *k, const cli_options *o, const agent_evaluation *v, const char *part) {
    const char *dir = o->word[0];
    char name[64];
    *k = (kept){0};
    if (!keep_wanted(o, part)) return;
    keep_note(k, agent_evaluation_store(v, dir, &k->why), run_path(dir, results_name(RESULTS_EVALUATION)));
    if (!k->files) return;
    snprintf(name, sizeof name, "predictions_%s.npz", part);
    char *path = run_path(dir, name);
    keep_note(k, store_answers(v, path, &k->why), path);
}

// The command

static bool evaluate_market(trained_agent *t, const cli_options *o, err *e) {
    agent_evaluation v;
    kept k = {0};
    bool ok = agent_evaluation_make(&v, t, e);
    if (ok) keep(&k, o, &v, t->task.world.part);
    if (ok && o->json) print_json(&v, t, &k);
    if (ok && !o->json) print_traded(&v, t, o);
    if (ok) keep_tell(&k, o);
    keep_done(&k);
    agent_evaluation_done(&v);
    return ok;
}

static bool evaluate_episodes(trained_agent *t, const cli_options *o, err *e) {
    agent_score s;
    if (!agent_evaluate(t->agent, &s, e)) return false;
    if (o->json) {
        json_t *line = score_json(t, &s);
        use_add_json(&t->notes, line);
        json_line(stdout, line);
        return true;
    }
    printf("weights   %s\nepisodes  %lld in %s, greedy, of %d steps at most\n", t->weights, (long long)s.episodes,
        agent_task_env(&t->task), t->task.agent.test.env.limit);
    use_warn(&t->notes, 0, stdout);
    printf("reward    %.4f, deviation %.4f\nlength    %.1f\n", s.mean, s.deviation, s.length);
    return true;
}

// Options that choose data.
static bool takes_options(const cli_options *o, err *e) {
    static const char *const of_models[] = {"--test", "--importance"};
    for (size_t i = 0; i < sizeof of_models / sizeof *of_models; i++)
        if (cli_given(o, of_models[i]))
            return err_input(e, "%s: the run is of an agent, which has none; leave it out", of_models[i]);
    return true;
}

bool agent_evaluate_command(const cli_options *o, err *e) {
    trained_agent t;
    trained_options ask = {.run = o->word[0],
        .overrides = o->word + 1,
        .override_count = o->words - 1,
        .part = cli_given(o, "--part"),
        .data = cli_given(o, "--data"),
        .version = TRADEWIND_VERSION};
    if (!takes_options(o, e) || !ask_devices(o, &ask.devices, e) || !trained_agent_open(&t, &ask, e)) return false;
    use_tell_agent(&t.task, o);
    bool ok = t.actor ? evaluate_market(&t, o, e) : evaluate_episodes(&t, o, e);
    trained_agent_close(&t);
    return ok;
}
