#include "fault/kinds.h"

#include "cli/program.h"
#include "data/walk.h"
#include "fault/stem.h"
#include "fault/trees.h"
#include "run/same.h"
#include "support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define CLOCK "500" // microseconds: a second of `tune` is 2,000 readings

void kinds_shell(const char *line) {
    if (system(line) != 0) fail_msg("%s", line);
}

// Results

// Weights, rows, description and plan of two runs' directories.
static void same_in(const char *a, const char *b) {
    static const char *const files[] = {"config.yaml", "plan.yaml"};
    char x[128], y[128];
    same_runs(a, b);
    for (int i = 0; i < 2; i++) {
        snprintf(x, sizeof x, "%s/%s", a, files[i]);
        snprintf(y, sizeof y, "%s/%s", b, files[i]);
        same_bytes(x, y);
    }
}

static void same_run(void) {
    same_in("whole", "made");
}

// The earlier run is whole where it is, and so is the new one.
static void same_and_aside(void) {
    same_run();
    if (access("made.1", F_OK) == 0 && !trees_equal("half", "made.1", "lock")) fail_msg("made.1 is not what half is");
}

static void same_members(void) {
    same_bytes("whole/config.yaml", "made/config.yaml");
    same_in("whole/member_1", "made/member_1");
    same_in("whole/member_2", "made/member_2");
}

static void same_set(void) {
    same_bytes("whole", "set.npz");
}

static void same_answers(void) {
    same_bytes("whole", "p.csv");
}

static void same_folds(void) {
    same_bytes("whole/walk.json", "made/walk.json");
    same_bytes("whole/config.yaml", "made/config.yaml");
    same_in("whole/fold_01", "made/fold_01");
    same_in("whole/fold_02", "made/fold_02");
}

static void same_seeds(void) {
    same_bytes("whole/walk.json", "made/walk.json");
    same_in("whole/fold_02/member_1", "made/fold_02/member_1");
    same_in("whole/fold_02/member_2", "made/fold_02/member_2");
}

static void same_evaluation(void) {
    same_bytes("whole", "first/evaluation.json");
}

static void same_models(void) {
    same_in("whole/a", "made/a");
    same_in("whole/b", "made/b");
}

static void same_backtest(void) {
    static const char *const files[] = {"signal.json", "backtest.json", "trades.csv"};
    char x[64], y[64];
    for (int i = 0; i < 3; i++) {
        snprintf(x, sizeof x, "whole/%s", files[i]);
        snprintf(y, sizeof y, "made/%s", files[i]);
        same_bytes(x, y);
    }
}

static void same_page(void) {
    same_bytes("whole", "page.html");
}

static void same_trades(void) {
    same_bytes("whole", "trades.csv");
}

// Whoever looks at a run changes nothing there.
static void same_run_and_text(void) {
    same_bytes("whole", "out");
    if (!trees_equal("judged", "watched", NULL)) fail_msg("watched has changed");
}

static void same_gathered(void) {
    same_bytes("whole/walk.json", "made/walk.json");
}

static void same_text(void) {
    same_bytes("whole", "out");
}

// Rates and times are measured anew.
static void same_but_figures(void) {
    kinds_shell("for f in whole out; do sed -E 's/[0-9.,]+/N/g; s/ +/ /g' $f >$f.plain; done");
    same_bytes("whole.plain", "out.plain");
}

// Rates are measured anew; the way that was kept is the only one that was tried, and plan finds it.
static void same_wisdom(void) {
    kinds_shell("test $(ls wisdom | grep -c 'json$') = 1");
    kinds_shell("for d in whole wisdom; do sed -E '/samples_per_s|noise_scale/d' $d/*.json >$d.plain; done");
    same_bytes("whole.plain", "wisdom.plain");
}

const kind kinds[] = {
    {"train", "made*", NULL, {"train", "run.yaml"}, "--resume", "made", same_run, true, "", "trivial: "},
    {"resume", "made*", "half made", {"train", "run.yaml", "--resume"}, NULL, "made", same_run, true, "", "trivial: "},
    {"anew", "made*", "half made", {"train", "run.yaml"}, "--resume", "made", same_and_aside, true, NULL, "trivial: "},
    {"ensemble", "made*", NULL, {"train", "run.yaml", "train.ensemble=2"}, "--resume", "made", same_members, true, "",
        "ensemble: 2"},
    {"agent", "made*", NULL, {"train", "agent.yaml"}, "--resume", "made", same_run, true, NULL, "environment: "},
    {"market", "made*", NULL, {"train", "market.yaml"}, "--resume", "made", same_run, true, NULL, "environment: "},
    {"models", "made*", NULL, {"train", "a.yaml", "b.yaml"}, "--resume", "made", same_models, true, NULL, "trivial: "},
    {"tune", "wisdom", NULL, {"tune", "run.yaml", "--batches=64", "--seconds=1"}, NULL, "wisdom", same_wisdom, true, "",
        NULL},
    {"import", "set.npz", NULL, {"import", "bars.csv", "-o", "set.npz", "--frames=1h"}, NULL, "set.npz", same_set, true,
        NULL, NULL},
    {"append", "set.npz", "old.npz set.npz", {"import", "--append", "set.npz", "bars.csv"}, NULL, "set.npz", same_set,
        true, NULL, NULL},
    {"predict", "p.csv", NULL, {"predict", "first", "-o", "p.csv"}, NULL, "p.csv", same_answers, true, "", NULL},
    {"team", "p.csv", NULL, {"predict", "team", "-o", "p.csv"}, NULL, "p.csv", same_answers, true, NULL, NULL},
    {"evaluate", "first/evaluation.json first/predictions_*", NULL, {"evaluate", "first"}, NULL,
        "first/evaluation.json", same_evaluation, true, "", NULL},
    {"walk", "made*", NULL, {"walk", "run.yaml", "walk.train=120", "walk.validation=40", "walk.test=80", "walk.jobs=1"},
        "--resume", "made", same_folds, true, NULL, "scheme: rolling"},
    {"seeds", "made*", NULL,
        {"walk", "run.yaml", "walk.train=120", "walk.validation=40", "walk.test=80", "walk.jobs=1", "walk.folds=1",
            "train.ensemble=2", "train.epochs=1"},
        "--resume", "made", same_seeds, true, NULL, "scheme: rolling"},
    {"agents", "made*", NULL, {"walk", "trade.yaml"}, "--resume", "made", same_folds, true, NULL, "scheme: rolling"},
    {"gather", "made", "folds made", {"walk", "folds.yaml", "--gather"}, NULL, "made", same_gathered, true, NULL,
        "\"parts\": {"},
    {"backtest", "made", "first made", {"backtest", "made", "--trades", "made/trades.csv"}, NULL, "made", same_backtest,
        true, "", NULL},
    {"live", "live.db* trades.csv", NULL,
        {"live", "judged", "--feed", "replay:new.csv", "--history", "past.csv", "--state", "live.db", "--trades",
            "trades.csv"},
        NULL, "trades.csv", same_trades, true, NULL, NULL},
    {"watch", "watched", "judged watched", {"watch", "judged", "--json"}, NULL, "out", same_run_and_text, false, NULL,
        NULL},
    {"report", "page*", NULL, {"report", "judged", "-o", "page.html"}, NULL, "page.html", same_page, true, NULL, NULL},
    {"sweep", NULL, NULL, {"backtest", "first", "--sweep", "signal.threshold=0.35,0.4"}, NULL, "out", same_text, false,
        NULL, NULL},
    {"play", NULL, NULL, {"evaluate", "player"}, NULL, "out", same_text, false, NULL, NULL},
    {"inspect", NULL, NULL, {"inspect", "first"}, NULL, "out", same_text, false, NULL, NULL},
    {"inspect set", NULL, NULL, {"inspect", "train.npz"}, NULL, "out", same_but_figures, false, NULL, NULL},
    {"plan", NULL, NULL, {"plan", "run.yaml"}, NULL, "out", same_but_figures, false, "", NULL},
    {"runs", "made*", NULL, {"runs", "."}, NULL, "out", same_text, false, NULL, NULL},
    {"doctor", NULL, NULL, {"doctor"}, NULL, "out", same_but_figures, false, "idle", NULL},
};
const int kinds_count = sizeof kinds / sizeof *kinds;

// Commands

// `words` gets the command's, ended by NULL; its card is set.
static void list_words(const kind *k, bool card, bool again, const char **words) {
    int n = 0;
    setenv("FAKE_CARD", card && k->card ? k->card : "", 1);
    for (; k->words[n]; n++) words[n] = k->words[n];
    words[n++] = card ? "--device=auto" : "--device=cpu";
    words[n++] = "--threads=1";
    bool begun = access("made/config.yaml", F_OK) == 0 || access("made/a/config.yaml", F_OK) == 0;
    if (again && k->again && begun) words[n++] = k->again;
    words[n] = NULL;
}

const char *kinds_real_card(void) {
    return getenv("TRADEWIND_CARD");
}

pid_t fault_start(const char *const *words, const fault *f, const char *mark) {
    char number[32];
    snprintf(number, sizeof number, "%lld", (long long)(f ? f->at : 0));
    setenv("FAULT_CALL", f ? f->call : "", 1);
    setenv("FAULT_HOW", f ? f->how : "fail", 1);
    setenv("FAULT_AT", number, 1);
    setenv("FAULT_COUNT", "count", 1);
    setenv("FAULT_CLOCK", CLOCK, 1);
    if (mark) setenv("FAULT_MARK", mark, 1);
    if (f && !f->at) setenv("FAULT_PLACES", "places", 1);
    if (!kinds_real_card()) setenv("LD_PRELOAD", FAULT_SHIM, 1);
    unlink("count");
    pid_t child = program_start("out", words);
    unsetenv("LD_PRELOAD");
    unsetenv("FAULT_MARK");
    unsetenv("FAULT_PLACES");
    return child;
}

static pid_t start_with(const kind *k, bool card, bool again, const fault *f) {
    const char *words[KIND_WORDS + 4];
    list_words(k, card, again, words);
    return fault_start(words, f, k->mark);
}

// The kind whose inputs lie in place as they were put; NULL: nobody's.
static const kind *placed;

void kind_put(const kind *k) {
    char from[64], to[64];
    if (k->clear && placed != k) trees_remove(k->clear);
    if (k->copy && placed != k) {
        assert_int_equal(sscanf(k->copy, "%63s %63s", from, to), 2);
        trees_copy(from, to);
    }
    placed = NULL;
}

static int run_fault(const kind *k, bool card, const fault *f) {
    const char *words[KIND_WORDS + 4];
    int status = 0;
    list_words(k, card, false, words);
    if (strcmp(f->call, "alloc") == 0 && stem_grow(words, f, k->mark, &status)) return status;
    if (status) kind_put(k);
    return stem_run(words, f, k->mark);
}

int kind_run_anew(const kind *k, bool card, const fault *f) {
    int status;
    kind_put(k);
    assert_true(waitpid(start_with(k, card, false, f), &status, 0) > 0);
    return status;
}

int kind_run(const kind *k, bool card, const fault *f) {
    if (!f || !f->at) return kind_run_anew(k, card, f);
    kind_put(k);
    int status = run_fault(k, card, f);
    if (kind_changed())
        stem_fell();
    else
        placed = k;
    return status;
}

pid_t kind_start(const kind *k, bool card) {
    return start_with(k, card, false, NULL);
}

// By a fork; without the shim, in which a stem waits, by a command of its own.
void kind_go_on(const kind *k, bool card) {
    const char *words[KIND_WORDS + 4];
    placed = NULL;
    stem_fell();
    list_words(k, card, true, words);
    int status = kinds_real_card() ? program_finish(start_with(k, card, true, NULL)) : stem_run(words, NULL, k->mark);
    if (status != 0) is_empty("err");
    k->check();
}

void kind_calls(int64_t *all, int64_t *opening) {
    char *text = slurp("count"), *rest;
    *all = strtoll(text, &rest, 10);
    *opening = strtoll(rest, NULL, 10);
    free(text);
}

bool *kind_places(int64_t all) {
    bool *first = calloc((size_t)all + 1, sizeof *first);
    FILE *f = fopen("places", "r");
    assert_true(first && f);
    for (long long at; fscanf(f, "%lld", &at) == 1;) {
        assert_true(at > 0 && at <= all);
        first[at] = true;
    }
    fclose(f);
    return first;
}

// The next line of a text that is a note, up to its end; NULL: there is none.
static const char *next_note(const char *at, size_t *length) {
    while (*at && strncmp(at, "note ", 5) != 0) {
        at += strcspn(at, "\n");
        at += *at == '\n';
    }
    *length = strcspn(at, "\n");
    return *at ? at : NULL;
}

static bool same_notes(const char *a, const char *b) {
    char *x = slurp(a), *y = slurp(b);
    const char *i = x, *j = y;
    size_t m, n;
    bool same = true;
    while (same && i) {
        i = next_note(i, &m);
        j = next_note(j, &n);
        same = i && j ? m == n && strncmp(i, j, n) == 0 : !i && !j;
        if (i) i += m;
        if (j) j += n;
    }
    free(x);
    free(y);
    return same;
}

bool kind_told(void) {
    return file_holds("err", "\n") || !same_notes("out", "whole.out");
}

bool kind_changed(void) {
    long long all, opening, changes = 1;
    FILE *f = fopen("count", "r");
    if (!f) return true;
    bool counted = fscanf(f, "%lld %lld %lld", &all, &opening, &changes) == 3;
    fclose(f);
    return !counted || changes > 0;
}

void kind_whole(const kind *k, bool card) {
    char line[128];
    if (kind_run(k, card, NULL) != 0) is_empty("err");
    snprintf(line, sizeof line, "rm -rf whole && cp -r %s whole && cp out whole.out", k->left);
    kinds_shell(line);
}

// Inputs

// By the shim's clock: its checkpoints are the same wherever it is made.
static void train_as(const char *dir, const char *epochs, const char *device) {
    const char *const words[] = {"train", "run.yaml", "--threads=1", "-q", dir, epochs, device, NULL};
    assert_int_equal(program_finish(fault_start(words, NULL, NULL)), 0);
}

static void put_descriptions(void) {
    put_text("run.yaml",
        "data: {set: train.npz, windows: {fast: 8, slow: 4}, split: {embargo: 10}}\n"
        "model: {kind: mlp, widths: 6}\n"
        "train: {epochs: 2, batch_size: 64, checkpoint_minutes: 0.0001, checkpoint_every: 1, patience: 9}\n"
        "run: {dir: made}\n"
        "gpu_optimization: {memory_monitoring: false}\n");
    kinds_shell("sed -e 's/epochs: 2/epochs: 1/' -e 's/made/made\\/a/' run.yaml >a.yaml");
    kinds_shell("sed -e 's/widths: 6/widths: 5/' -e 's/made\\/a/made\\/b/' a.yaml >b.yaml");
    kinds_shell("(cat run.yaml && echo 'walk: {train: 120, validation: 40, test: 80, jobs: 1}') >folds.yaml");
    put_text("agent.yaml",
        "agent: {env: cartpole, n_envs: 2, n_steps: 16, batch_size: 16, n_epochs: 2, total_timesteps: 96,\n"
        "  evaluate_every: 1, evaluate_episodes: 2, limit: 20, normalize_observation: true}\n"
        "model: {widths: 6}\n"
        "train: {checkpoint_minutes: 0.0001, checkpoint_every: 2}\n"
        "run: {dir: made}\n"
        "gpu_optimization: {memory_monitoring: false}\n");
    put_text("trade.yaml",
        "data: {set: train.npz}\n"
        "agent: {env: market, n_envs: 2, n_steps: 16, batch_size: 16, n_epochs: 1, total_timesteps: 64,\n"
        "  evaluate_every: 1, limit: 20, normalize_reward: true}\n"
        "model: {widths: 6}\n"
        "train: {checkpoint_minutes: 0.0001, checkpoint_every: 1}\n"
        "walk: {train: 120, validation: 40, test: 80, jobs: 1}\n"
        "run: {dir: made}\n"
        "gpu_optimization: {memory_monitoring: false}\n");
    kinds_shell("grep -v walk: trade.yaml >market.yaml");
}

// Directories of commands that need more than a run: judged, with all that report draws; folds, those of a walk that
// are not gathered; player, an agent's; team, an ensemble's.
static void put_used(const char *device) {
    kinds_shell("cp -r first judged");
    assert_int_equal(RUN("evaluate", "judged", "--threads=1", "-q", device), 0);
    assert_int_equal(RUN("backtest", "judged", "--threads=1", "-q", device), 0);
    assert_int_equal(RUN("walk", "folds.yaml", "--threads=1", "-q", "run.dir=folds", "--device=cpu"), 0);
    assert_int_equal(RUN("train", "agent.yaml", "--threads=1", "-q", "run.dir=player", "--device=cpu"), 0);
    assert_int_equal(
        RUN("train", "run.yaml", "--threads=1", "-q", "run.dir=team", "train.ensemble=2", "--device=cpu"), 0);
    kinds_shell("rm folds/walk.json");
}

static void put_program(void) {
    const char *folder = kinds_real_card();
    char program[4096], plugin[4096];
    snprintf(program, sizeof program, "%s/tradewind", folder ? folder : "");
    snprintf(plugin, sizeof plugin, "%s/tradewind-cuda.so", folder ? folder : "");
    program_copy(folder ? program : TRADEWIND_BINARY, folder ? plugin : FAKE_CARD_THIS);
}

void kinds_enter(bool card) {
    const char *device = card ? "--device=cuda" : "--device=cpu";
    put_program();
    put_descriptions();
    walk_put("bars.csv", 3000, 300, 1);
    placed = NULL;
    stem_leave();
    kinds_shell("rm -rf first half judged folds player team && head -n 2900 bars.csv >cut.csv");
    kinds_shell("head -n 2940 bars.csv >past.csv && (head -n 1 bars.csv && tail -n 60 bars.csv | head -n 24) >new.csv");
    assert_int_equal(RUN("import", "bars.csv", "-o", "train.npz", "--frames=1h", "-q"), 0);
    assert_int_equal(RUN("import", "cut.csv", "-o", "old.npz", "--frames=1h", "-q"), 0);
    train_as("run.dir=first", "train.epochs=2", device);
    train_as("run.dir=half", "train.epochs=1", device);
    put_used(device);
}
