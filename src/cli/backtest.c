// tradewind backtest: trades, costs and statistics of a trained run or of anyone's signals on bars.
#include "backtest/backtest.h"

#include "backtest/trades.h"
#include "base/term.h"
#include "cli/ask.h"
#include "cli/backtest_file.h"
#include "cli/backtest_folds.h"
#include "cli/backtest_paths.h"
#include "cli/backtest_sweep.h"
#include "cli/backtest_tell.h"
#include "run/command.h"
#include "run/results.h"
#include "task/agent_backtest.h"
#include "task/output.h"
#include "task/walk.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { SHOWN = 40 };

// The backtest that is asked for, by the options and a file.
typedef struct {
    backtest_file file;
    const char *run, *signals, *bars, *data, *part, *symbol, *trades;
} asked;

static const char *either(const char *a, const char *b) {
    return a ? a : b;
}

static bool check(const asked *a, err *e) {
    if (a->run && a->signals) return err_input(e, "--signals: a run makes its own signals; leave one of them out");
    if (!a->run && !a->signals)
        return err_input(e, "no run and no signals given; name a run's directory, or --signals FILE");
    if (a->signals && !a->bars)
        return err_input(e, "no bars given; name the file that the signals were made on with --bars FILE");
    if (a->signals && (a->part || a->symbol || a->data))
        return err_input(e, "--part, --symbol and --data are of a run, and signals are given; leave them out");
    if (a->signals && strcmp(a->signals, "-") == 0 && strcmp(a->bars, "-") == 0)
        return err_input(e, "--signals - and --bars - both read standard input; name a file for one of them");
    return true;
}

static bool ask(asked *a, const cli_options *o, err *e) {
    int first = o->words && !strchr(o->word[0], '=');
    *a = (asked){0};
    if (!backtest_file_read(&a->file, cli_given(o, "--config"), o->word + first, o->words - first, e)) return false;
    const backtest_file *f = &a->file;
    const char *signals = cli_given(o, "--signals"), *run = first ? o->word[0] : NULL;
    bool chosen = run || signals; // the command's choice between both is not the file's
    a->run = chosen ? run : f->run;
    a->signals = chosen ? signals : f->signals;
    a->bars = either(cli_given(o, "--bars"), f->bars);
    a->data = cli_given(o, "--data");
    a->part = either(cli_given(o, "--part"), f->part);
    a->symbol = either(cli_given(o, "--symbol"), f->symbol);
    a->trades = either(cli_given(o, "--trades"), f->trades);
    return check(a, e);
}

static bool write_trades(const asked *a, const replay *p, err *e) {
    return !a->trades || trades_write(a->trades, p, e);
}

static void add_bars(assumptions *to, const char *name, const quotes *q, const char *how) {
    char n[SHOWN], first[SHOWN], last[SHOWN];
    term_count(n, sizeof n, (double)q->count);
    assumptions_add(to, "bars", "%s: %s from %s to %s%s", name, n, when_text(first, sizeof first, q->time[0]),
        when_text(last, sizeof last, q->time[q->count - 1]), how);
}

// Documents that were kept in the directory: the backtest, and the rule of a run.
typedef enum { KEPT_NONE, KEPT_OTHERS, KEPT_BACKTEST, KEPT_BOTH } kept; // OTHERS: not, as the part is not the test

static void tell_files(const asked *a, kept k, const cli_options *o) {
    if (o->json || o->quiet) return;
    if (a->trades || k) putchar('\n');
    if (a->trades) printf("trades    %s\n", a->trades);
    if (k == KEPT_OTHERS)
        printf("not kept  %s/%s is of the test part, which nothing was fitted on\n", a->run,
            results_name(RESULTS_BACKTEST));
    if (k < KEPT_BACKTEST) return;
    printf("stored    %s/%s", a->run, results_name(RESULTS_BACKTEST));
    if (k == KEPT_BOTH) printf(", %s/%s", a->run, results_name(RESULTS_SIGNAL));
    char *report = command_line("report", a->run, "");
    printf("; `%s` draws %s\n", report, k == KEPT_BOTH ? "them" : "it");
    free(report);
}

// Signals

static void add_odd(assumptions *to, const signals_orders *o) {
    char crossed[160] = "", small[160] = "";
    if (o->crossed)
        snprintf(crossed, sizeof crossed,
            "%lld position%s with a stop above or a target below the close (the other way round when short)",
            (long long)o->crossed, term_s(o->crossed));
    if (o->small)
        snprintf(small, sizeof small, "%lld position%s below account.lot_step, which open%s nothing",
            (long long)o->small, term_s(o->small), o->small == 1 ? "s" : "");
    if (o->crossed || o->small)
        assumptions_add(to, "note", "%s%s%s", crossed, o->crossed && o->small ? "; " : "", small);
}

static void add_signals(assumptions *to, const backtest *b, const char *name) {
    char n[SHOWN], outside[96] = "", late[96] = "";
    term_count(n, sizeof n, (double)b->orders.count);
    if (b->orders.outside)
        snprintf(outside, sizeof outside, ", %lld ignored outside the bars", (long long)b->orders.outside);
    if (b->orders.late)
        snprintf(
            late, sizeof late, ", %lld ignored at the last bar, which has no next open", (long long)b->orders.late);
    assumptions_add(to, "signals", "%s: %s used%s%s", name, n, outside, late);
    add_odd(to, &b->orders);
}

static void tell_signals_json(const asked *a, const backtest *b, const backtest_told *told) {
    json_t *line = json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:I}", "bars_file", a->bars, "signals_file", a->signals,
        "signals_used", (json_int_t)b->orders.count, "signals_outside", (json_int_t)b->orders.outside, "signals_late",
        (json_int_t)b->orders.late, "signals_crossed", (json_int_t)b->orders.crossed, "signals_small",
        (json_int_t)b->orders.small);
    json_join(line, backtest_tell_json(told));
    json_line(stdout, line);
}

static bool test_signals(const asked *a, const cli_options *o, err *e) {
    backtest_options options = {a->signals, a->bars, a->file.word, a->file.words};
    const char *const inputs[] = {a->signals, a->bars};
    assumptions lines = {0};
    backtest b;
    if (a->trades && !output_may_replace(a->trades, OUTPUT_TRADES, inputs, 2, e)) return false;
    if (!backtest_run(&b, &options, e)) return false;
    add_bars(&lines, a->bars, &b.quotes, ", row by row as they are");
    add_signals(&lines, &b, a->signals);
    assumptions_of_replay(&lines, &b.terms, &b.replay);
    backtest_told told = {&lines, &b.terms, &b.replay, &b.stats};
    bool ok = write_trades(a, &b.replay, e);
    if (ok && o->json) tell_signals_json(a, &b, &told);
    if (ok && !o->json) backtest_tell(&told, o);
    if (ok) tell_files(a, KEPT_NONE, o);
    backtest_done(&b);
    return ok;
}

// A run

static void add_rule(assumptions *to, const rule_record *r) {
    char text[400], from[SHOWN], until[SHOWN];
    assumptions_add(to, "signal", "%s", decide_text(&r->rule, text, sizeof text));
    if (!r->was_fitted) return;
    const follow_fitted *f = &r->fitted;
    assumptions_add(to, "fitted", "threshold %.6g on validation, %s to %s: result %.2f after costs in %lld trade%s%s",
        f->threshold, when_text(from, sizeof from, f->from), when_text(until, sizeof until, f->to), f->result,
        (long long)f->trades, term_s(f->trades),
        f->result > 0 ? "" : "; no threshold earned its costs there, so that this rule is not expected to");
}

// Lines before the rule: bars, answers, warnings. `tests` names what was answered.
static void add_answers(assumptions *to, const asked *a, const backtested *b, const char *tests) {
    char name[400], n[SHOWN];
    snprintf(name, sizeof name, "%s%s%s", b->data, b->market.symbol[0] ? ", " : "", b->market.symbol);
    add_bars(to, name, &b->quotes, a->bars ? ", row by row as they are" : "");
    term_count(n, sizeof n, (double)b->scores);
    assumptions_add(to, "answers", "%s of %s, %s", n, a->run, tests);
    for (int i = 0; i < b->warnings; i++) assumptions_add(to, "warning", "%s", b->warning[i]);
    if (b->unused[0]) assumptions_add(to, "unused", "%s", b->unused);
    if (b->trained_on > 0)
        assumptions_add(
            to, "warning", "%lld samples lie in the time that the model was trained on", (long long)b->trained_on);
}

// Lines behind the rule: the account and its replay, trials.
static void add_account(assumptions *to, const backtested *b) {
    assumptions_of_replay(to, &b->terms, &b->replay);
    assumptions_add(to, "trials", "%lld, %s", (long long)b->trials,
        b->trials_given ? "as report.trials says" : "distinct descriptions of runs beside this one on the same data");
    if (b->compared)
        assumptions_add(to, "overfit", "measured among %lld of them, whose kept backtests are of the same days",
            (long long)b->compared);
}

// Bars that a fitted threshold knows.
static void add_known(assumptions *to, const backtested *b) {
    const follow_fitted *f = &b->rule.fitted;
    int64_t known = 0;
    if (!b->rule.was_fitted) return;
    for (int64_t i = 0; i < b->quotes.count; i++) known += b->quotes.time[i] >= f->from && b->quotes.time[i] <= f->to;
    if (strcmp(b->part, "validation") == 0)
        assumptions_add(to, "warning", "the threshold was fitted on this very part, which also chose the best epoch");
    else if (known)
        assumptions_add(to, "warning", "%lld of these %lld bars lie in the time that the threshold was fitted on",
            (long long)known, (long long)b->quotes.count);
}

// An agent decides by what it sees, its account included.
static void add_actions(assumptions *to, const backtested *b) {
    const market_settings *m = &b->market_of_agent;
    char when[SHOWN];
    assumptions_add(to, "agent",
        "greedy, %s, with %g of the equity in a full position; from the first bar on with the "
        "books of this account, which it sees",
        m->continuous ? "a direction and a size" : "short, flat or long", m->size);
    if (b->ruined_at)
        assumptions_add(to, "ruin",
            "at the close of the bar of %s equity had fallen to %g of the cash (agent.ruin): "
            "from there on the agent trades no more",
            when_text(when, sizeof when, b->ruined_at), m->ruin);
}

static void add_agent(assumptions *to, const asked *a, const backtested *b) {
    char part[SHOWN];
    snprintf(part, sizeof part, "part %s", b->part);
    add_answers(to, a, b, part);
    add_actions(to, b);
    add_account(to, b);
}

static void add_run(assumptions *to, const asked *a, const backtested *b) {
    char part[SHOWN];
    snprintf(part, sizeof part, "part %s", b->part);
    add_answers(to, a, b, part);
    add_known(to, b);
    add_rule(to, &b->rule);
    add_account(to, b);
}

static json_t *rule_json(const rule_record *r) {
    const decide_rule *x = &r->rule;
    json_t *all = json_pack("{s:f, s:s, s:I, s:f, s:f, s:s, s:f, s:b}", "threshold", x->threshold, "exit",
        signal_exit_name(x->exit), "hold", (json_int_t)x->hold, "stop", x->up.stop, "target", x->up.target, "sizing",
        signal_sizing_name(x->sizing), "size", x->size, "fitted", r->was_fitted);
    if (r->was_fitted) json_object_set_new(all, "validation_result", json_number(r->fitted.result));
    return all;
}

static json_t *run_json(const asked *a, const backtested *b) {
    return json_pack("{s:s, s:s, s:s, s:s, s:I, s:I}", "run", a->run, "data", b->data, "part", b->part, "symbol",
        b->market.symbol, "predictions", (json_int_t)b->scores, "orders", (json_int_t)b->orders.count);
}

static bool is_directory(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

// A backtest that cannot be written into the directory is no failure of the backtest.
static void note_lost(const cli_options *o, const err *why) {
    fprintf(o->json || o->quiet ? stderr : stdout, "%snot stored: %s\n",
        o->json || o->quiet ? "tradewind: " : "note      ", why->text);
}

static kept keep_run(const asked *a, const backtested *b, const assumptions *lines, const cli_options *o) {
    err why = {0};
    if (!is_directory(a->run)) return KEPT_NONE;
    if (strcmp(b->part, "test") != 0) return KEPT_OTHERS;
    if (backtest_run_store(b, lines, a->run, &why)) return b->agent ? KEPT_BACKTEST : KEPT_BOTH;
    note_lost(o, &why);
    return KEPT_NONE;
}

static kept keep_walk(const asked *a, const backtested_walk *w, const assumptions *lines, const cli_options *o) {
    err why = {0};
    if (backtest_walk_store(w, lines, a->run, &why)) return KEPT_BACKTEST;
    note_lost(o, &why);
    return KEPT_NONE;
}

// Prints the backtest; takes over `line`, the head of what --json prints.
static void tell(json_t *line, const asked *a, const backtest_told *told, kept k, const cli_options *o) {
    json_object_set_new(line, "stored", json_boolean(k >= KEPT_BACKTEST));
    json_join(line, backtest_tell_json(told));
    if (o->json)
        json_line(stdout, line);
    else
        json_decref(line);
    if (!o->json) backtest_tell(told, o);
    tell_files(a, k, o);
}

static bool has_place(const asked *a, err *e) {
    const char *const inputs[] = {a->run, a->bars ? a->bars : a->run, a->data ? a->data : a->run};
    return !a->trades || output_may_replace(a->trades, OUTPUT_TRADES, inputs, 3, e);
}

static backtest_run_options options_of(const asked *a) {
    return (backtest_run_options){.run = {.run = a->run,
                                      .overrides = a->file.word,
                                      .override_count = a->file.words,
                                      .data = a->data,
                                      .part = a->part,
                                      .version = TRADEWIND_VERSION},
        .bars = a->bars,
        .symbol = a->symbol};
}

static bool test_run(const asked *a, const cli_options *o, err *e) {
    backtest_run_options as = options_of(a);
    backtested b;
    assumptions lines = {0};
    bool agent = trained_is_agent(a->run);
    if (!has_place(a, e) || !ask_devices(o, &as.run.devices, e)) return false;
    if (!(agent ? agent_backtest_make : backtest_run_make)(&b, &as, e)) return false;
    (agent ? add_agent : add_run)(&lines, a, &b);
    backtest_told told = {&lines, &b.terms, &b.replay, &b.stats};
    bool ok = write_trades(a, &b.replay, e);
    if (ok) {
        json_t *line = run_json(a, &b);
        if (!agent) json_object_set_new(line, "signal", rule_json(&b.rule));
        tell(line, a, &told, keep_run(a, &b, &lines, o), o);
    }
    backtest_run_done(&b);
    return ok;
}

// A walk

static void add_walk(assumptions *to, const asked *a, const backtested_walk *w) {
    char tests[96];
    snprintf(tests, sizeof tests, "tests of %lld %s%s%s", (long long)w->traded, w->paths ? "group" : "fold",
        term_s(w->traded), w->paths ? ", lines below are of path 1" : "");
    if (w->paths) backtest_paths_add(to, w);
    add_answers(to, a, &w->all, tests);
    backtest_folds_add(to, w);
    if (w->all.agent) add_actions(to, &w->all);
    add_account(to, &w->all);
}

static json_t *folds_json(const backtested_walk *w) {
    json_t *all = json_array();
    for (int64_t i = 0; i < w->count; i++) {
        const backtest_fold *f = &w->fold[i];
        json_t *one = json_pack("{s:I}", "number", (json_int_t)f->number);
        if (f->why[0])
            json_object_set_new(one, "missing", json_string(f->why));
        else if (!w->all.agent)
            json_object_set_new(one, "signal", rule_json(&f->rule));
        json_array_append_new(all, one);
    }
    return all;
}

static void tell_paths(const asked *a, const backtested_walk *w, const assumptions *lines, const cli_options *o) {
    kept k = keep_walk(a, w, lines, o);
    if (!o->json) backtest_paths_tell(w, lines, o);
    tell_files(a, k, o);
    if (!o->json) return;
    json_t *line = run_json(a, &w->all);
    json_object_set_new(line, "stored", json_boolean(k >= KEPT_BACKTEST));
    json_join(line, backtest_paths_json(w));
    json_line(stdout, line);
}

static bool test_walk(const asked *a, const cli_options *o, err *e) {
    backtest_run_options as = options_of(a);
    backtested_walk w;
    assumptions lines = {0};
    if (!has_place(a, e) || !ask_devices(o, &as.run.devices, e) || !backtest_walk_make(&w, &as, e)) return false;
    add_walk(&lines, a, &w);
    backtest_told told = {&lines, &w.all.terms, &w.all.replay, &w.all.stats};
    bool ok = w.paths && a->trades ? err_input(e, "--trades: every path of cpcv has its own; leave it out")
                                   : write_trades(a, &w.all.replay, e);
    if (ok && w.paths) tell_paths(a, &w, &lines, o);
    if (ok && !w.paths) {
        json_t *line = run_json(a, &w.all);
        json_object_set_new(line, "folds", folds_json(&w));
        tell(line, a, &told, keep_walk(a, &w, &lines, o), o);
    }
    backtest_walk_done(&w);
    return ok;
}

// Many settings

static bool test_settings(const asked *a, const cli_options *o, err *e) {
    if (a->run && trained_is_agent(a->run))
        return err_input(e, "--sweep: the run is of an agent, whose actions are not a rule to be set; leave it out");
    if (a->trades) return err_input(e, "--trades: a sweep has many lists of trades; write those of one setting");
    bool walk = false;
    if (a->run && !walk_is(a->run, &walk, e)) return false;
    if (walk)
        return err_input(e,
            "%s: a walk is traded on the tests of its folds, and settings are not chosen by tests; sweep a fold",
            a->run);
    backtest_swept w = {.run = options_of(a), .signals = a->signals, .bars = a->bars};
    return backtest_sweep_tell(&w, o, e);
}

static bool test_one(const asked *a, const cli_options *o, err *e) {
    if (!a->run) return test_signals(a, o, e);
    bool walk;
    if (!walk_is(a->run, &walk, e)) return false;
    return walk ? test_walk(a, o, e) : test_run(a, o, e);
}

static bool run(const cli_options *o, err *e) {
    asked a;
    bool ok = ask(&a, o, e) && (backtest_sweeps(o) ? test_settings(&a, o, e) : test_one(&a, o, e));
    backtest_file_done(&a.file);
    return ok;
}

static void print_keys(void) {
    printf("\nkeys (doc/backtest.md has the rules):\n");
    backtest_file_help();
}

const cli_command cli_backtest = {"backtest", "RUN | WALK | --signals FILE --bars FILE",
    "trades, costs and statistics of a trained run, a walk or anyone's signals",
    "A run answers for its test part; a rule (signal.*) makes positions of the answers, and they are traded on the "
    "bars\n"
    "that its set keeps. What is decided at a bar's close fills at the open of the next bar. A threshold that is not "
    "given\nis fitted on validation. The rule is kept in RUN/signal.json, the backtest in RUN/backtest.json; report "
    "draws "
    "it.\n"
    "An agent's run is traded by its own actions, without a rule: its greedy pass over the part.\n"
    "A walk is traded in one account over the tests of its folds, each by its own fold's weights and threshold, and "
    "kept "
    "in\nWALK/backtest.json. Of a walk with walk.scheme: cpcv every path is traded in an account of its own, and a "
    "table "
    "has the\nstatistics of each and how far they lie apart.\n"
    "  --part PART         train, validation, test or all (default: the test where there is one)\n"
    "  --bars FILE         the set is made of this file as the run's was, and its rows, as they are, are traded: every "
    "bar\n                      with enough past\n"
    "  --data SET          another set than the run's, whole\n"
    "  --symbol NAME       which of several instruments; one account trades one of them\n"
    "Signals of anyone are a table with the columns time, position, stop and target, stop and target empty or missing "
    "for\nnone. A signal's time is the open of the bar at whose close it was decided; it fills at the open of the next "
    "bar,\nwhere the old position is closed and the new one opened. The same position again changes stop and target "
    "alone.\n"
    "  --signals FILE      the signals\n"
    "  --bars FILE         the bars, in any format that import reads; row by row as they are: nothing is left out\n"
    "Both:\n"
    "  --trades FILE       writes the trades as CSV: position, times, prices, result, commission, swap, reason\n"
    "  --config FILE       a description in YAML: run, or signals and bars; part, symbol, trades; account, signal, "
    "report\n"
    "  --sweep KEY=VALUES  every combination of values A,B,C or FROM:TO:STEP of several keys, as a table with the "
    "highest\n                      Sharpe on top; a run's on its validation part unless --part says otherwise. "
    "Settings\n                      count as trials, and the probability of overfitting is printed\n"
    "Further words set keys: account.cash=10000 account.spread=2pt signal.threshold=0.5. -v prints definitions.\n",
    print_keys, NULL, WORDS_MOST, run, "--signals --bars --trades --part --data --symbol --config --sweep", NULL};
