// Flips: one bit of a file that is read back is another. The file is refused, or passed over with a line, or the bit
// has no effect: predictions, weights after --resume, figures of inspect and runs and the tuned batch are what they
// were. No flip is believed.
//
// Readers are called in this process; whatever they accept is tried with the program itself, whose result is compared.
// TRADEWIND_FLIPS is the number of flips over all kinds of files, 450 where it is not set; TRADEWIND_FLIPS_ONLY names
// the one kind whose share is tried.
#include "base/file.h"
#include "cli/program.h"
#include "cpu/cpu.h"
#include "data/npz.h"
#include "data/walk.h"
#include "live/kept.h"
#include "run/checkpoint.h"
#include "run/db.h"
#include "run/results.h"
#include "run/same.h"
#include "run/weights.h"
#include "support.h"
#include "task/members.h"
#include "task/source.h"
#include "train/wisdom.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

typedef enum { REFUSED, TOLD, NO_EFFECT, OUTCOMES } outcome;

// A kind of file, and how it is read once a bit of it is flipped.
typedef struct kind {
    const char *name, *path;
    outcome (*read)(const struct kind *k, int64_t nth);
    const char *stem; // of its run's names
    results_kind document;
} kind;

static void shell(const char *fmt, ...) {
    char line[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    if (system(line) != 0) fail_msg("%s", line);
}

static void names(const char *text, const char *word) {
    if (!strstr(text, word)) fail_msg("does not name %s: %s", word, text);
}

// A reader's refusal names the file and blames nobody but it.
static outcome refuse(const kind *k, const err *e) {
    assert_int_equal(e->kind, ERR_INPUT);
    names(e->text, k->path);
    return REFUSED;
}

// Weights

static outcome read_weights(const kind *k, int64_t nth) {
    err e;
    (void)nth;
    safetensors *s = weights_open(k->path, &e);
    if (!s) return refuse(k, &e);
    safetensors_close(s);
    assert_int_equal(RUN("predict", "used", "-o", "p.csv", "--part=all", "--device=cpu", "-q"), 0);
    same_bytes("p.csv", "whole.csv");
    return NO_EFFECT;
}

// The weights of an agent play as they did.
static outcome read_agent(const kind *k, int64_t nth) {
    err e;
    (void)nth;
    safetensors *s = weights_open(k->path, &e);
    if (!s) return refuse(k, &e);
    safetensors_close(s);
    assert_int_equal(RUN("evaluate", "played", "--json", "--device=cpu"), 0);
    same_bytes("out", "whole.played");
    return NO_EFFECT;
}

// Checkpoints

typedef struct {
    int count;
    char text[1024];
} complaints;

static void damaged(void *arg, const char *why) {
    complaints *c = arg;
    c->count++;
    snprintf(c->text, sizeof c->text, "%s", why);
}

// The run goes on, on its own set or on `set`, and ends as the one that was never stopped.
static void resume(const char *stem, const char *set) {
    char description[64], whole[64], data[64];
    snprintf(description, sizeof description, "%s.yaml", stem);
    snprintf(whole, sizeof whole, "whole_%s", stem);
    snprintf(data, sizeof data, "data.set=%s", set ? set : "");
    if (RUN("train", description, "--resume", "--device=cpu", "-q", set ? data : NULL) != 0) matches("err", "^$");
    same_runs(whole, "made");
}

// Beside the copy is an earlier checkpoint, which is taken in its place.
static outcome read_checkpoint(const kind *k, int64_t nth) {
    err e;
    char *path, dir[64];
    complaints c = {0};
    (void)nth;
    snprintf(dir, sizeof dir, "%.*s", (int)(strrchr(k->path, '/') - k->path), k->path);
    safetensors *s = checkpoint_newest(dir, damaged, &c, &path, &e);
    support_ok(s != NULL, &e);
    bool taken = strcmp(path, k->path) == 0;
    safetensors_close(s);
    free(path);
    if (!taken) {
        assert_int_equal(c.count, 1);
        names(c.text, k->path);
        return TOLD;
    }
    shell("rm -rf made && cp -r %s made", dir);
    resume(k->stem, NULL);
    return NO_EFFECT;
}

// Sets

static outcome read_set(const kind *k, int64_t nth) {
    err e;
    (void)nth;
    dataset *d = source_open_file(k->path, &e);
    bool ok = d && source_check(d, &(task_listener){0}, &e);
    dataset_free(d);
    if (!ok) return refuse(k, &e);
    shell("rm -rf made && cp -r half_%s made", k->stem);
    resume(k->stem, k->path);
    return NO_EFFECT;
}

// run.db

// All that inspect shows as JSON but whether it is checked, which the caller frees.
static char *figures(bool *checked) {
    json_t *all = last_line();
    *checked = json_is_true(json_object_get(all, "checked"));
    json_object_del(all, "checked");
    char *text = json_dumps(all, JSON_SORT_KEYS);
    json_decref(all);
    assert_non_null(text);
    return text;
}

static void same_figures(const char *command, const char *want, bool *checked) {
    assert_int_equal(RUN(command, "shown", "--json"), 0);
    char *is = figures(checked);
    if (strcmp(is, want) != 0) fail_msg("%s shows\n%s\nin place of\n%s", command, is, want);
    free(is);
}

static char *inspected, *listed; // of the file as it was

static outcome read_db(const kind *k, int64_t nth) {
    bool checked;
    shell("rm -f %s-wal %s-shm", k->path, k->path);
    if (nth % 16 == 0) { // a run needs no run.db to go on
        shell("rm -rf made && cp -r half_bars made && cp %s made/run.db", k->path);
        if (RUN("train", "bars.yaml", "--resume", "--device=cpu", "-q") != 0) {
            matches("err", "^tradewind: .*made/run.db: was written by a newer tradewind ");
        } else {
            same_files("whole_bars/last.safetensors", "made/last.safetensors");
            same_bytes("whole_bars/best.safetensors", "made/best.safetensors");
        }
    }
    int status = RUN("inspect", "shown", "--json");
    if (status != 0) {
        complains(status, ".*shown/run.db.*");
        assert_int_equal(RUN("runs", "shown", "--json"), 0);
        matches("out", "\"status\":\"unreadable\"");
        return REFUSED;
    }
    same_figures("inspect", inspected, &checked);
    same_figures("runs", listed, &checked);
    return checked ? NO_EFFECT : TOLD;
}

static void put_shown(void) {
    bool checked;
    assert_int_equal(RUN("inspect", "shown", "--json"), 0);
    inspected = figures(&checked);
    assert_true(checked);
    assert_int_equal(RUN("runs", "shown", "--json"), 0);
    listed = figures(&checked);
    assert_true(checked);
}

// Tuning

static wisdom_key key;
static wisdom_answer tuned; // of the file as it was

static outcome read_wisdom(const kind *k, int64_t nth) {
    wisdom_answer a = wisdom_find(&key, 0);
    (void)k;
    (void)nth;
    if (a.state != WISDOM_FOUND) {
        assert_true(a.line[0]);
        return TOLD;
    }
    assert_memory_equal(&a.entry, &tuned.entry, sizeof a.entry);
    assert_true(a.winner == tuned.winner && strcmp(a.when, tuned.when) == 0);
    return NO_EFFECT;
}

static char *put_wisdom(void) {
    static const wisdom_entry list[] = {{.batch = 512, .micro = 512, .parts = 1, .samples_per_s = 123456.789},
        {.batch = 4096, .micro = 1024, .parts = 4, .precision = PRECISION_BF16, .samples_per_s = 1.25e6}};
    err e;
    rig r;
    device_identity device;
    rig_open(&r, &cpu_device, 1, "model.kind=mlp model.widths=6");
    r.device->identify(r.queue, &device);
    wisdom_key_make(&key, &(wisdom_about){.version = "1",
                              .device = &device,
                              .described = &r.settings,
                              .model = &r.model,
                              .data = r.data,
                              .split = &r.split,
                              .window = r.window});
    rig_close(&r);
    setenv("TRADEWIND_WISDOM", "wisdom", 1);
    support_ok(wisdom_keep(&key, list, 2, 1, &e), &e);
    tuned = wisdom_find(&key, 0);
    assert_true(tuned.state == WISDOM_FOUND && tuned.entry.batch == 4096);
    return wisdom_path(&key, &e);
}

// Documents of results, and descriptions

static json_t *documents[RESULTS_KINDS]; // of the files as they were

// Its content is as before; keys that no reader knows may be more.
static outcome read_document(const kind *k, int64_t nth) {
    err e;
    json_t *is, *value;
    const char *key;
    (void)nth;
    if (!results_read("judged", k->document, &is, &e)) return refuse(k, &e);
    json_object_foreach(documents[k->document], key, value) {
        if (!json_equal(value, json_object_get(is, key))) fail_msg("another %s is believed", key);
    }
    json_decref(is);
    return NO_EFFECT;
}

// A description that has changed since is refused or told, or means the same.
static outcome read_description(const kind *k, int64_t nth) {
    (void)nth;
    int status = RUN("predict", "judged", "-o", "p.csv", "--device=cpu");
    if (status != 0) {
        complains(status, ".*");
        return REFUSED;
    }
    if (file_holds("out", k->path)) return TOLD;
    same_bytes("p.csv", "judged.csv");
    return NO_EFFECT;
}

// The same of an agent in an environment without data.
static outcome read_agent_description(const kind *k, int64_t nth) {
    (void)nth;
    int status = RUN("evaluate", "player", "--json", "--device=cpu");
    if (status != 0) {
        complains(status, ".*");
        return REFUSED;
    }
    if (file_holds("out", k->path)) return TOLD;
    same_bytes("out", "whole.player");
    return NO_EFFECT;
}

// The same of an ensemble, whose description says how many members there are.
static outcome read_team(const kind *k, int64_t nth) {
    (void)nth;
    int status = RUN("predict", "team", "-o", "p.csv", "--device=cpu");
    if (status != 0) {
        complains(status, ".*");
        return REFUSED;
    }
    if (file_holds("out", k->path)) return TOLD;
    same_bytes("p.csv", "team.csv");
    return NO_EFFECT;
}

// A plan is refused, or the run goes on as it did.
static outcome read_plan(const kind *k, int64_t nth) {
    err e;
    chosen c;
    bool there;
    char dir[64];
    (void)nth;
    snprintf(dir, sizeof dir, "%.*s", (int)(strrchr(k->path, '/') - k->path), k->path);
    if (!members_plan(dir, &c, &there, &e)) return refuse(k, &e);
    shell("rm -rf made && cp -r %s made", dir);
    resume(k->stem, NULL);
    return NO_EFFECT;
}

// Live sessions

static char *kept; // by a session that went on from the state as it was

// The state is flipped between two sessions: the second refuses it, or ends with the same rows.
static outcome read_state(const kind *k, int64_t nth) {
    (void)nth;
    shell("rm -f now.db* && cp %s now.db", k->path);
    int status = RUN("live", "traded", "--feed", "replay:late.csv", "--state", "now.db", "--device=cpu", "-q");
    if (status != 0) {
        matches("err", "^tradewind: now.db: [^\n]+\n$");
        int looks = RUN("live", "--status", "now.db");
        if (looks == 0) fail_msg("a session refuses the state, and its figures are shown");
        return REFUSED;
    }
    char *is = kept_text("now.db");
    if (strcmp(is, kept) != 0) fail_msg("another session follows");
    free(is);
    return NO_EFFECT;
}

static void put_state(void) {
    shell("cp -r judged traded && rm traded/walk.json && head -n 640 bars.csv >past.csv");
    shell("(head -n 1 bars.csv && sed -n 641,680p bars.csv) >early.csv");
    shell("(head -n 1 bars.csv && sed -n 681,701p bars.csv) >late.csv");
    if (RUN("live", "traded", "--feed", "replay:early.csv", "--history", "past.csv", "--state", "live.db",
            "--device=cpu", "-q") != 0)
        matches("err", "^$");
    shell("cp live.db now.db");
    if (RUN("live", "traded", "--feed", "replay:late.csv", "--state", "now.db", "--device=cpu", "-q") != 0)
        matches("err", "^$");
    kept = kept_text("now.db");
}

// The folder of `put_documents` holds a walk too, which is one more document.
static void put_documents(void) {
    err e;
    shell("cp -r whole_bars judged");
    assert_int_equal(RUN("evaluate", "judged", "--device=cpu", "-q"), 0);
    assert_int_equal(RUN("backtest", "judged", "--device=cpu", "-q"), 0);
    assert_int_equal(RUN("predict", "judged", "-o", "judged.csv", "--device=cpu"), 0);
    assert_int_equal(RUN("walk", "bars.yaml", "walk.train=120", "walk.validation=40", "walk.test=80", "walk.jobs=1",
                         "run.dir=walked", "train.epochs=1", "--device=cpu", "-q"),
        0);
    shell("cp walked/walk.json judged");
    for (int k = 0; k < RESULTS_KINDS; k++) {
        support_ok(results_read("judged", (results_kind)k, &documents[k], &e), &e);
        assert_non_null(documents[k]);
    }
}

// Inputs

// Windows as numpy would save them.
static void put_windows(void) {
    enum { N = 240, T = 6, C = 3, V = 4 };
    static float x[N][T][C], v[N][V];
    static int32_t y[N];
    err e;
    npz_writer w;
    dice d = {.seed = 5};
    for (int i = 0; i < N; i++) {
        for (int k = 0; k < T * C; k++) x[i][k / C][k % C] = dice_unit(&d);
        for (int k = 0; k < V; k++) v[i][k] = k < 2 ? (float)dice_below(&d, 3) - 1 : dice_unit(&d);
        y[i] = x[i][T - 1][0] + x[i][T - 1][1] > 0;
    }
    support_ok(npz_writer_open(&w, "windows.npz", &e), &e);
    bool ok = npz_writer_array(&w, "x_fast", NPY_F32, 3, (int64_t[]){N, T, C}, x, &e) &&
              npz_writer_array(&w, "x_vector", NPY_F32, 2, (int64_t[]){N, V}, v, &e) &&
              npz_writer_array(&w, "labels", NPY_I32, 1, (int64_t[]){N}, y, &e) && npz_writer_commit(&w, &e);
    support_ok(ok, &e);
}

// A run on a set that was stopped after its first epoch, and one that was never stopped.
static void put_runs(const char *stem) {
    char description[64], half[64], text[512];
    snprintf(description, sizeof description, "%s.yaml", stem);
    snprintf(half, sizeof half, "run.dir=half_%s", stem);
    snprintf(text, sizeof text,
        "data: {set: %s.npz, windows: {fast: 6}, scale: standard, split: {embargo: 0}}\n"
        "model: {kind: mlp, widths: 6}\n"
        "train: {epochs: 2, batch_size: 64, checkpoint_minutes: 1.0e-9, checkpoint_every: 1, keep_checkpoints: 0,"
        " patience: 9}\n"
        "run: {dir: made}\n"
        "gpu_optimization: {memory_monitoring: %s}\n",
        stem, strcmp(stem, "bars") == 0 ? "true" : "false");
    put_text(description, text);
    if (RUN("train", description, "--device=cpu", "-q") != 0) matches("err", "^$");
    shell("mv made whole_%s", stem);
    assert_int_equal(RUN("train", description, half, "train.epochs=1", "--device=cpu", "-q"), 0);
}

// An agent's runs, and a run of it that has ended, to be played.
static void put_agent(void) {
    put_text("agent.yaml",
        "agent: {env: cartpole, n_envs: 2, n_steps: 16, batch_size: 16, n_epochs: 2, total_timesteps: 96,\n"
        "  evaluate_every: 1, evaluate_episodes: 2, limit: 20, normalize_observation: true}\n"
        "model: {widths: 6}\n"
        "train: {checkpoint_minutes: 1.0e-9, checkpoint_every: 1, keep_checkpoints: 0}\n"
        "run: {dir: made}\n"
        "gpu_optimization: {memory_monitoring: false}\n");
    if (RUN("train", "agent.yaml", "--device=cpu", "-q") != 0) matches("err", "^$");
    shell("mv made whole_agent && cp -r whole_agent played");
    assert_int_equal(
        RUN("train", "agent.yaml", "run.dir=half_agent", "agent.total_timesteps=64", "--device=cpu", "-q"), 0);
    assert_int_equal(RUN("evaluate", "played", "--json", "--device=cpu"), 0);
    shell("mv out whole.played");
}

// An agent and an ensemble whose descriptions are flipped, and what they do as they were.
static void put_players(void) {
    shell("cp -r played player");
    assert_int_equal(RUN("evaluate", "player", "--json", "--device=cpu"), 0);
    shell("mv out whole.player");
    assert_int_equal(
        RUN("train", "bars.yaml", "run.dir=team", "train.ensemble=3", "train.epochs=1", "--device=cpu", "-q"), 0);
    assert_int_equal(RUN("predict", "team", "-o", "team.csv", "--device=cpu", "-q"), 0);
}

// A directory with two checkpoints of a run: one to flip, and an earlier one beside it.
static void put_checkpoint(const char *dir, const char *from, const char *name, const char *beside) {
    shell("cp -r %s %s && cd %s && ls last.safetensors checkpoint_* | grep -vx -e '%s' -e '%s' | xargs rm -f", from,
        dir, dir, name, beside);
}

// Rows of all that is shown, and pages that are free, as a run that went on leaves them.
static void put_rows(const char *path) {
    db *d = db_open(path);
    db_event(d, 3, "precision", "fp16 gives way to bf16");
    db_sample(d, &(db_sample_row){.time = 1, .memory_used = 1e9, .memory_total = 2e9, .utilisation = 50, .power = 9});
    for (uint64_t i = 1; i <= 120; i++) db_steps(d, &(db_steps_row){.step = 1000000 + i, .epoch = 2, .steps = 1});
    db_sync(d);
    db_rewind(d, 1000000, 3, false);
    db_close(d);
}

static void put_inputs(char newest[64]) {
    walk_put("bars.csv", 700, 300, 1);
    assert_int_equal(
        RUN("import", "bars.csv", "-o", "bars.npz", "-q", "--no-vector", "--features=fast=log_return_1,body,rsi_14"),
        0);
    put_windows();
    assert_int_equal(RUN("import", "windows.npz", "-o", "compact.npz", "--types=compact", "-q"), 0);
    put_runs("bars");
    put_runs("windows");
    put_runs("compact");
    shell("cp -r whole_bars used && cp -r whole_bars shown");
    assert_int_equal(RUN("predict", "used", "-o", "whole.csv", "--part=all", "--device=cpu", "-q"), 0);
    shell("cd half_bars && ls -v checkpoint_step_* | sed -n '1p;$p' | tr '\\n' ' ' > ../ends");
    char *ends = slurp("ends"), oldest[64];
    assert_int_equal(sscanf(ends, "%63s %63s", oldest, newest), 2);
    free(ends);
    put_checkpoint("of_last", "half_bars", "last.safetensors", oldest);
    put_checkpoint("of_epoch", "half_bars", "checkpoint_epoch_1.safetensors", oldest);
    put_checkpoint("of_step", "half_bars", newest, oldest);
    put_rows("shown/run.db");
    put_shown();
    put_agent();
    put_players();
    put_checkpoint("of_agent", "half_agent", "last.safetensors", "checkpoint_epoch_1.safetensors");
    put_documents();
    put_state();
    shell("cp -r half_bars planned && cp -r half_agent planned_agent");
}

// Flipping

static char now[128];

// A failure is one of the last flip.
static int leave(void **state) {
    print_message("last flip: %s\n", now);
    return support_leave(state);
}

static void flip(const kind *k, int64_t count, dice *d, int64_t total[OUTCOMES]) {
    size_t bytes;
    err e;
    unsigned char *data = (unsigned char *)file_read(k->path, 1 << 24, &bytes, &e);
    support_ok(data != NULL, &e);
    for (int64_t i = 0; i < count; i++) {
        size_t at = (size_t)dice_below(d, bytes);
        int bit = (int)dice_below(d, 8);
        data[at] ^= (unsigned char)(1 << bit);
        support_put(k->path, data, bytes);
        snprintf(now, sizeof now, "%s, byte %zu, bit %d", k->name, at, bit);
        total[k->read(k, i)]++;
        data[at] ^= (unsigned char)(1 << bit);
    }
    support_put(k->path, data, bytes);
    free(data);
}

static void no_flip_is_believed(void **state) {
    (void)state;
    const char *given = getenv("TRADEWIND_FLIPS"), *only = getenv("TRADEWIND_FLIPS_ONLY");
    int64_t all = given ? atoll(given) : 450;
    char newest[64], step[128];
    put_inputs(newest);
    snprintf(step, sizeof step, "of_step/%s", newest);
    char *wisdom = put_wisdom();
    const kind kinds[] = {
        {"best weights", "used/best.safetensors", read_weights, .stem = "bars"},
        {"last checkpoint", "of_last/last.safetensors", read_checkpoint, .stem = "bars"},
        {"checkpoint of an epoch", "of_epoch/checkpoint_epoch_1.safetensors", read_checkpoint, .stem = "bars"},
        {"checkpoint of a step", step, read_checkpoint, .stem = "bars"},
        {"an agent's weights", "played/best.safetensors", read_agent, .stem = "agent"},
        {"an agent's checkpoint", "of_agent/last.safetensors", read_checkpoint, .stem = "agent"},
        {"set of bars", "bars.npz", read_set, .stem = "bars"},
        {"windows", "windows.npz", read_set, .stem = "windows"},
        {"compact set", "compact.npz", read_set, .stem = "compact"},
        {"run.db", "shown/run.db", read_db, .stem = "bars"},
        {"tuning", wisdom, read_wisdom, .stem = "bars"},
        {"description", "judged/config.yaml", read_description, .stem = "bars"},
        {"an agent's description", "player/config.yaml", read_agent_description, .stem = "agent"},
        {"an ensemble's description", "team/config.yaml", read_team, .stem = "bars"},
        {"plan", "planned/plan.yaml", read_plan, .stem = "bars"},
        {"an agent's plan", "planned_agent/plan.yaml", read_plan, .stem = "agent"},
        {"state of a session", "live.db", read_state, .stem = "bars"},
        {"evaluation.json", "judged/evaluation.json", read_document, .document = RESULTS_EVALUATION},
        {"backtest.json", "judged/backtest.json", read_document, .document = RESULTS_BACKTEST},
        {"signal.json", "judged/signal.json", read_document, .document = RESULTS_SIGNAL},
        {"walk.json", "judged/walk.json", read_document, .document = RESULTS_WALK},
    };
    const int64_t count = sizeof kinds / sizeof *kinds;
    dice d = {.seed = 11};
    for (int64_t i = 0; i < count; i++) {
        if (only && strcmp(only, kinds[i].name) != 0) continue;
        int64_t total[OUTCOMES] = {0}, n = all * (i + 1) / count - all * i / count;
        flip(&kinds[i], n, &d, total);
        print_message("%-24s %6lld flips: %lld refused, %lld told, %lld without effect\n", kinds[i].name, (long long)n,
            (long long)total[REFUSED], (long long)total[TOLD], (long long)total[NO_EFFECT]);
        assert_true(n < 20 || total[REFUSED] + total[TOLD] > 0);
    }
    free(wisdom);
    free(inspected);
    free(listed);
    free(kept);
    for (int k = 0; k < RESULTS_KINDS; k++) json_decref(documents[k]);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(no_flip_is_believed, support_enter, leave)};
    program_use(TRADEWIND_BINARY);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
