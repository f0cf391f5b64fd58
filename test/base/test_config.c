#include "base/config.h"

#include "base/rng.h"

#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define TINY 1e-30
#define ANY  -INFINITY, INFINITY

static const config_key keys[] = {
    {"data.set", CONFIG_TEXT, NULL, 0, 0, NULL, "a dataset, or synthetic", 0},
    {"data.bars.*", CONFIG_TEXT, NULL, 0, 0, NULL, "a file of bars", 0},
    {"data.features.*", CONFIG_LIST, NULL, 0, 0, NULL, "columns of a branch", 0},
    {"data.symbols", CONFIG_LIST, "XAU, EURUSD", 0, 0, NULL, "what is traded", 0},
    {"data.windows.*", CONFIG_INT, NULL, 1, 100000, NULL, "bars in a window", 0},
    {"data.split.train", CONFIG_REAL, "0.70", TINY, 1, NULL, "share of the samples to train on", 0},
    {"data.split.purge", CONFIG_INT, "auto", 0, INFINITY, "auto", "samples dropped between the parts", 0},
    {"model.kind", CONFIG_CHOICE, "lstm", 0, 0, "mlp|lstm|transformer|nbeats", "which model", 0},
    {"model.hidden", CONFIG_INT, NULL, 1, INFINITY, NULL, "width of every branch", 0},
    {"model.hidden.*", CONFIG_INT, NULL, 1, INFINITY, NULL, "width of a branch", 0},
    {"model.dropout", CONFIG_REAL, "0", 0, 0.99, NULL, "share of values dropped", 0},
    {"train.batch_size", CONFIG_INT, "512", 1, INFINITY, NULL, "samples in a batch", 0},
    {"train.epochs", CONFIG_INT, "8", 1, 1000000, NULL, "passes over the samples", 0},
    {"train.optimizer.kind", CONFIG_CHOICE, "adamw", 0, 0, "adamw|sgd", "which optimizer", 0},
    {"train.optimizer.lr", CONFIG_REAL, "1.0e-3", TINY, INFINITY, NULL, "learning rate", 0},
    {"train.shift", CONFIG_REAL, "-.5", ANY, NULL, NULL, 0},
    {"train.init_from", CONFIG_TEXT, NULL, 0, 0, NULL, "weights to start from", 0},
    {"train.note", CONFIG_TEXT, "", 0, 0, NULL, "kept with the run", 0},
    {"run.dir", CONFIG_TEXT, "runs/latest", 0, 0, NULL, "where the run is kept", 0},
    {"gpu.mixed", CONFIG_BOOL, "true", 0, 0, "bf16|fp16", "16-bit arithmetic", 0},
    {"gpu.monitor", CONFIG_BOOL, "off", 0, 0, NULL, "sample the device", 0},
    {"gpu.limit", CONFIG_REAL, NULL, TINY, INFINITY, NULL, "hard limit in GB", 0},
    {"agent", CONFIG_MAP, NULL, 0, 0, NULL, "trains an agent", 0},
    {"agent.steps", CONFIG_INT, "4096", 1, INFINITY, NULL, "steps in a rollout", 0},
    {"extra", CONFIG_MAP, "{}", 0, 0, NULL, "always there", 0},
};

enum { COUNT = sizeof keys / sizeof *keys };

static const char sample[] = "# a run\n"
                             "data:\n"
                             "  set: synthetic   # a comment\n"
                             "  windows: {slow: 20, fast: 50}\n"
                             "  split: {train: 0.6}\n"
                             "model:\n"
                             "  kind: transformer\n"
                             "  hidden:\n"
                             "    fast: 32\n"
                             "    slow: 16\n"
                             "train:\n"
                             "  epochs: 4\n"
                             "  optimizer: {lr: 1e-4}\n"
                             "  note: \"two\\nlines: \\\"\\u00e9\\\" \\u2028 # no comment\"\n"
                             "gpu:\n"
                             "  mixed: bf16\n"
                             "  monitor: Yes\n";

static const char sample_lists[] = "data:\n"
                                   "  bars: {fast: XAUUSD_M5.csv, slow: XAUUSD_H1.csv}\n"
                                   "  features:\n"
                                   "    fast: [log_return_1, rsi_14, macd_12_26_9]\n"
                                   "    slow:\n"
                                   "      - log_return_1\n"
                                   "      - 'a, \xc3\xa9'   # a comment\n"
                                   "  symbols: []\n";

static config *read_ok(const char *text) {
    err e = {0};
    config *c = config_read("run.yaml", text, strlen(text), keys, COUNT, &e);
    if (!c) fail_msg("refused: %s", e.text);
    return c;
}

static config *check_ok(const char *text) {
    err e = {0};
    config *c = read_ok(text);
    if (!config_check(c, &e)) fail_msg("refused: %s", e.text);
    return c;
}

// The text must be refused, by reading or by checking, with exactly this message.
static void refuse_bytes(const char *text, size_t bytes, const char *want) {
    err e = {0};
    config *c = config_read("run.yaml", text, bytes, keys, COUNT, &e);
    if (c && config_check(c, &e)) fail_msg("accepted: %s", text);
    config_free(c);
    assert_int_equal(e.kind, ERR_INPUT);
    assert_string_equal(e.text, want);
}

static void refuse(const char *text, const char *want) {
    refuse_bytes(text, strlen(text), want);
}

static void given_values(void **state) {
    (void)state;
    config *c = check_ok(sample);
    assert_string_equal(config_text(c, "data.set"), "synthetic");
    assert_int_equal(config_int(c, "data.windows.fast"), 50);
    assert_true(config_real(c, "data.split.train") == 0.6);
    assert_string_equal(config_text(c, "model.kind"), "transformer");
    assert_true(config_is(c, "model.kind", "transformer"));
    assert_int_equal(config_int(c, "train.epochs"), 4);
    assert_true(config_real(c, "train.optimizer.lr") == 1e-4);
    assert_true(config_is(c, "gpu.mixed", "bf16"));
    assert_true(config_bool(c, "gpu.monitor"));
    assert_string_equal(config_text(c, "train.note"), "two\nlines: \"\xc3\xa9\" \xe2\x80\xa8 # no comment");
    config_free(c);
}

static void fallbacks(void **state) {
    (void)state;
    static const char *const empty[] = {"", "# nothing\n", "---\n", "{}", "train:\nmodel: {}\n", "\xef\xbb\xbf"};
    for (size_t i = 0; i < sizeof empty / sizeof *empty; i++) {
        config *c = check_ok(empty[i]);
        assert_int_equal(config_int(c, "train.batch_size"), 512);
        assert_true(config_is(c, "data.split.purge", "auto"));
        assert_true(config_real(c, "train.shift") == -0.5);
        assert_true(config_bool(c, "gpu.mixed"));
        assert_false(config_bool(c, "gpu.monitor"));
        assert_string_equal(config_text(c, "train.note"), "");
        assert_null(config_text(c, "data.set"));
        assert_false(config_is(c, "data.set", "synthetic"));
        assert_true(config_has(c, "run.dir"));
        assert_false(config_given(c, "run.dir"));
        assert_false(config_has(c, "gpu.limit"));
        assert_false(config_has(c, "agent"));
        assert_true(config_has(c, "extra"));
        config_free(c);
    }
}

static void maps_keep_their_order(void **state) {
    (void)state;
    config *c = check_ok(sample);
    assert_int_equal(config_count(c, "data.windows"), 2);
    assert_string_equal(config_child(c, "data.windows", 0), "slow");
    assert_string_equal(config_child(c, "data.windows", 1), "fast");
    assert_int_equal(config_count(c, "agent"), 0);
    assert_true(config_given(c, "data.windows"));
    assert_true(config_given(c, "data.windows.fast"));
    assert_false(config_has(c, "data.windows.other"));
    config_free(c);
    c = check_ok("model: {hidden: 64}\nagent:\n");
    assert_int_equal(config_count(c, "model.hidden"), 0);
    assert_int_equal(config_int(c, "model.hidden"), 64);
    assert_true(config_has(c, "agent"));
    config_free(c);
}

static void numbers(void **state) {
    (void)state;
    static const struct {
        const char *text;
        double want;
    } reals[] = {
        {"1", 1}, {"+1.5", 1.5}, {"1.", 1}, {".5", 0.5}, {"-2e3", -2000}, {"1.0e-3", 1e-3}, {"1E+2", 100}, {"007", 7}};
    static const char *const bad[] = {
        "nan", ".inf", "inf", "1e999", "0x10", "1_000", "1,5", "e5", ".", "1e", "--1", "1 2", "true"};
    char text[64];
    for (size_t i = 0; i < sizeof reals / sizeof *reals; i++) {
        snprintf(text, sizeof text, "train: {shift: %s}", reals[i].text);
        config *c = check_ok(text);
        assert_true(config_real(c, "train.shift") == reals[i].want);
        config_free(c);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        err e = {0};
        snprintf(text, sizeof text, "train:\n  shift: %s", bad[i]);
        config *c = read_ok(text);
        assert_false(config_check(c, &e));
        assert_non_null(strstr(e.text, "run.yaml:2: train.shift: must be a number, not "));
        config_free(c);
    }
    config *c = check_ok("train: {batch_size: 9223372036854775807}");
    assert_true(config_int(c, "train.batch_size") == INT64_MAX);
    config_free(c);
}

static void wrong_values(void **state) {
    (void)state;
    refuse("train:\n  batch_size: 0\n",
        "run.yaml:2: train.batch_size: must be an integer of at least 1, not 0; samples in a batch (default 512)");
    refuse("train:\n  epochs: 2000000\n",
        "run.yaml:2: train.epochs: must be an integer from 1 to 1000000, not 2000000; "
        "passes over the samples (default 8)");
    refuse("train:\n  epochs: 4.0\n",
        "run.yaml:2: train.epochs: must be an integer from 1 to 1000000, not 4.0; write it in digits alone");
    refuse("train:\n  epochs: 1_000\n",
        "run.yaml:2: train.epochs: must be an integer from 1 to 1000000, not 1_000; write it without separators");
    refuse("train:\n  epochs: \"4\"\n",
        "run.yaml:2: train.epochs: must be an integer from 1 to 1000000, not \"4\"; remove the quotes");
    refuse("train:\n  batch_size: 9223372036854775808\n",
        "run.yaml:2: train.batch_size: must be an integer of at least 1, not 9223372036854775808; it does not fit, or "
        "starts with a 0");
    refuse("data: {split: {train: 0.0}}",
        "run.yaml:1: data.split.train: must be a number above 0 and at most 1, not 0.0; "
        "share of the samples to train on (default 0.70)");
    refuse("data: {split: {purge: atuo}}",
        "run.yaml:1: data.split.purge: must be an integer of at least 0 or auto, not atuo; did you mean auto?");
    refuse("gpu:\n  limit: lots\n", "run.yaml:2: gpu.limit: must be a number above 0, not lots; hard limit in GB");
    refuse("gpu:\n  mixed: bf17\n",
        "run.yaml:2: gpu.mixed: must be true, false, bf16 or fp16, not bf17; did you mean bf16?");
    refuse("gpu:\n  monitor: 1\n",
        "run.yaml:2: gpu.monitor: must be true or false, not 1; sample the device (default off)");
    refuse("model:\n  kind: LTSM\n",
        "run.yaml:2: model.kind: must be mlp, lstm, transformer or nbeats, not LTSM; did you mean lstm?");
    refuse("model:\n  kind: ltsm\n",
        "run.yaml:2: model.kind: must be mlp, lstm, transformer or nbeats, not ltsm; did you mean lstm?");
    refuse("train:\n  shift: x\n", "run.yaml:2: train.shift: must be a number, not x; correct it (default -.5)");
    refuse("run:\n  dir:\n", "run.yaml:2: run.dir: must be text, but has no value; where the run is kept (default "
                             "runs/latest)");
    refuse("train:\n  epochs: [1, 2]\n", "run.yaml:2: train.epochs: must be an integer from 1 to 1000000, not a list; "
                                         "passes over the samples (default 8)");
    refuse("train:\n  epochs: {a: 1}\n",
        "run.yaml:2: train.epochs: must be an integer from 1 to 1000000, not a section; "
        "passes over the samples (default 8)");
    refuse("train: fast\n",
        "run.yaml:1: train: must be a section, not fast; train takes batch_size, epochs, optimizer, "
        "shift, init_from, note");
    refuse("data:\n  windows: 50\n",
        "run.yaml:2: data.windows: must be a section, not 50; data.windows takes any name (bars in a window)");
    refuse("run:\n  dir: [\n  a,\n  b]\n",
        "run.yaml:2: run.dir: must be text, not a list; where the run is kept (default "
        "runs/latest)");
}

static void unknown_keys(void **state) {
    (void)state;
    refuse("train:\n  epochs: 4\n  epoch: 4\n", "run.yaml:3: train.epoch: unknown key; did you mean train.epochs?");
    refuse("trian:\n  epochs: 4\n", "run.yaml:1: trian: unknown key; did you mean train?");
    refuse("train:\n  bacth_size: 4\n", "run.yaml:2: train.bacth_size: unknown key; did you mean train.batch_size?");
    refuse("batch_size: 4\n", "run.yaml:1: batch_size: unknown key; did you mean train.batch_size?");
    refuse("EPOCHS: 4\n", "run.yaml:1: EPOCHS: unknown key; did you mean train.epochs?");
    refuse("train:\n  lr: 4\n", "run.yaml:2: train.lr: unknown key; did you mean train.optimizer.lr?");
    refuse("model:\n  optimiser: {}\n", "run.yaml:2: model.optimiser: unknown key; did you mean train.optimizer?");
    refuse("gpu:\n  colour: red\n", "run.yaml:2: gpu.colour: unknown key; gpu takes mixed, monitor, limit");
    refuse("zzzzzz: 1\n",
        "run.yaml:1: zzzzzz: unknown key; the top level takes data, model, train, run, gpu, agent, extra");
    refuse("extra: {a: 1}\n", "run.yaml:1: extra.a: unknown key; extra takes no keys");
    refuse("data: {windows: {fast: {a: 1}}}\n",
        "run.yaml:1: data.windows.fast: must be an integer from 1 to 100000, not a section; bars in a window");
}

static void bad_yaml(void **state) {
    (void)state;
    refuse("train:\n  epochs: 4\n  batch_size: 1\n  epochs: 5\n",
        "run.yaml:4: train.epochs: given twice, first in line 2; remove one");
    refuse("train:\n  epochs: 4\ntrain:\n", "run.yaml:3: train: given twice, first in line 1; remove one");
    refuse("train:\n  epochs: &a 4\n", "run.yaml:2: anchors are not supported; remove the &, or quote the value");
    refuse("train:\n  epochs: *a\n", "run.yaml:2: aliases are not supported; repeat the value, or quote it");
    refuse("train:\n  epochs: !!int 4\n", "run.yaml:2: tags are not supported; remove the !, or quote the value");
    refuse("train: {}\n---\ntrain: {}\n", "run.yaml:2: a second document starts; keep one in a file");
    refuse("# x\n- a\n- b\n", "run.yaml:2: not a map; a run description is lines of KEY: VALUE");
    refuse("hello\n", "run.yaml:1: not a map; a run description is lines of KEY: VALUE");
    refuse("train.epochs: 4\n",
        "run.yaml:1: a key has a dot in it; nest the keys instead (a symbol with a dot: `import --symbol`)");
    refuse("train: {\"\": 4}\n", "run.yaml:1: train: a key is empty; name it");
    refuse("{a: 1}: 4\n", "run.yaml:1: a key is not a single word; write KEY: VALUE");
    refuse("run: {dir: \"a\\0b\"}\n", "run.yaml:1: run.dir: has a NUL in it; remove it");
    refuse("train:\n\tepochs: 4\n", "run.yaml:2: not valid YAML: found character that cannot start any token; indent "
                                    "with spaces, not tabs, and quote values that start with a sign");
    refuse("train:\n  epochs: 4\n bad: 1\n",
        "run.yaml:3: not valid YAML: did not find expected key while parsing a block "
        "mapping that starts in line 1; check indentation, colons and quotes");
    refuse("train: {epochs: 4\n", "run.yaml:2: not valid YAML: did not find expected ',' or '}' while parsing a flow "
                                  "mapping that starts in line 1; check indentation, colons and quotes");
    refuse("train:\n  a: \xff\n",
        "run.yaml:2: not a text file in UTF-8: invalid leading UTF-8 octet; save it as plain text");
    refuse_bytes("train:\0\n", 8,
        "run.yaml:1: not a text file in UTF-8: control characters are not allowed; save it as plain text");
}

static void sizes_are_bounded(void **state) {
    (void)state;
    enum { ROOM = (1 << 20) + 1 };
    static char text[ROOM];
    memset(text, ' ', ROOM);
    refuse_bytes(text, ROOM, "run.yaml: larger than 1 MiB; is it the right file?");
    memset(text, '[', ROOM);
    refuse_bytes(text, ROOM - 1, "run.yaml:1: nested more than 16 deep; is it the right file?");
    size_t used = 0;
    for (int i = 0; i < 5000; i++) used += (size_t)sprintf(text + used, "k%d: 1\n", i);
    refuse_bytes(text, used, "run.yaml:4097: too many keys; is it the right file?");
    used = 0;
    for (int i = 0; i < 17; i++) used += (size_t)sprintf(text + used, "{a: ");
    refuse_bytes(
        text, used, "run.yaml:1: a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a: nested more than 16 deep; is it the right file?");
    used = (size_t)sprintf(text, "train:\n  epochs: ");
    memset(text + used, 'x', 100000);
    refuse_bytes(text, used + 100000,
        "run.yaml:2: train.epochs: must be an integer from 1 to 1000000, not "
        "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...; passes over the samples (default 8)");
    memset(text, 'k', 65);
    memcpy(text + 65, ": 1", 4);
    refuse(text, "run.yaml:1: a key is longer than 64 bytes; shorten it");
}

static void overrides(void **state) {
    (void)state;
    err e = {0};
    config *c = read_ok("train:\n  epochs: 0\ngpu:\n");
    assert_true(config_override(c, "train.epochs=3", &e));
    assert_true(config_override(c, "train.epochs=4", &e));
    assert_true(config_override(c, "gpu.limit=1.5", &e));
    assert_true(config_override(c, "agent.steps=16", &e));
    assert_true(config_override(c, "run.dir=runs/a=b: #c", &e));
    assert_true(config_override(c, "model.hidden.fast=7", &e));
    assert_true(config_check(c, &e));
    assert_int_equal(config_int(c, "train.epochs"), 4);
    assert_true(config_real(c, "gpu.limit") == 1.5);
    assert_true(config_has(c, "agent"));
    assert_string_equal(config_text(c, "run.dir"), "runs/a=b: #c");
    assert_string_equal(config_child(c, "model.hidden", 0), "fast");
    assert_true(config_override(c, "model.hidden=9", &e));
    assert_true(config_check(c, &e));
    assert_int_equal(config_int(c, "model.hidden"), 9);
    config_free(c);
}

// The first of keys that are equally near.
static void the_first_of_the_nearest_is_named(void **state) {
    (void)state;
    static const config_key two[] = {{"rate0", CONFIG_INT, "1", 0, 9, NULL, "the first", 0},
        {"rate1", CONFIG_INT, "1", 0, 9, NULL, "the second", 0}};
    static const char text[] = "rate7: 3\n";
    err e = {0};
    config *c = config_read("run.yaml", text, sizeof text - 1, two, 2, &e);
    assert_non_null(c);
    assert_false(config_check(c, &e));
    assert_string_equal(e.text, "run.yaml:1: rate7: unknown key; did you mean rate0?");
    config_free(c);
}

// Applies one override to a small description; it or the check must refuse it so.
static void refuse_override(const char *assignment, const char *want) {
    err e = {0};
    config *c = read_ok("train:\n  epochs: 5\n");
    if (config_override(c, assignment, &e) && config_check(c, &e)) fail_msg("accepted %s", assignment);
    assert_int_equal(e.kind, ERR_INPUT);
    assert_string_equal(e.text, want);
    config_free(c);
}

static void wrong_overrides(void **state) {
    (void)state;
    refuse_override("train.epochs=0",
        "train.epochs=0: train.epochs: must be an integer from 1 to 1000000, not 0; passes "
        "over the samples (default 8)");
    refuse_override("train.epoch=3", "train.epoch=3: train.epoch: unknown key; did you mean train.epochs?");
    refuse_override("trian.epochs=3", "trian.epochs=3: trian: unknown key; did you mean train?");
    refuse_override("train.epochs", "train.epochs: not an override; write KEY=VALUE, such as train.epochs=4");
    refuse_override("train.epochs=",
        "train.epochs=: train.epochs: must be an integer from 1 to 1000000, but has no value; "
        "passes over the samples (default 8)");
    refuse_override("train.epochs.x=1",
        "train.epochs.x=1: train.epochs: is a single value, so it has no keys below it; "
        "override train.epochs itself");
    refuse_override("=1", "=1: a key is empty; name it");
    refuse_override("train.=1", "train.=1: a key is empty; name it");
    refuse_override(".epochs=1", ".epochs=1: a key is empty; name it");
    refuse_override("train..epochs=1", "train..epochs=1: a key is empty; name it");
    refuse_override("train.epochs=\xff", "train.epochs=\xff: not valid UTF-8; check the spelling");
    refuse_override("run.dir=\xed\xa0\x80", "run.dir=\xed\xa0\x80: not valid UTF-8; check the spelling");
    refuse_override(
        "a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a=1", "a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a=1: the key is too long; check it");
    char longest[1100];
    for (int n = 1040; n <= 1042; n++) { // about as many as there is room for
        err e = {0};
        config *c = read_ok("train:\n  epochs: 5\n");
        memset(longest, 'a', (size_t)n);
        memcpy(longest + n, "=1", 3);
        assert_false(config_override(c, longest, &e) && config_check(c, &e));
        assert_int_equal(strstr(e.text, "the key is too long") != NULL, n > 1040);
        config_free(c);
    }
    refuse_override("train=1", "train=1: train: must be a section, not 1; train takes batch_size, epochs, optimizer, "
                               "shift, init_from, note");
}

static void config_fail_names_the_place(void **state) {
    (void)state;
    err e = {0};
    config *c = check_ok(sample);
    assert_false(config_fail(c, "train.epochs", &e, "too few for %d folds; raise it", 5));
    assert_int_equal(e.kind, ERR_INPUT);
    assert_string_equal(e.text, "run.yaml:12: train.epochs: too few for 5 folds; raise it");
    config_fail(c, "model.hidden.slow", &e, "x");
    assert_string_equal(e.text, "run.yaml:10: model.hidden.slow: x");
    config_fail(c, "train.batch_size", &e, "x");
    assert_string_equal(e.text, "run.yaml:11: train.batch_size: x");
    config_fail(c, "run.dir", &e, "two\nlines");
    assert_string_equal(e.text, "run.yaml: run.dir: two lines");
    assert_true(config_override(c, "run.dir=x", &e));
    config_fail(c, "run.dir", &e, "x");
    assert_string_equal(e.text, "run.dir=x: run.dir: x");
    config_fail(c, "run.dir", NULL, "nobody listens");
    config_free(c);
}

// The description as config_write has it; the caller frees it.
static char *written(const config *c, size_t *bytes) {
    char *text = NULL;
    FILE *f = open_memstream(&text, bytes);
    assert_non_null(f);
    assert_true(config_write(c, f));
    fclose(f);
    return text;
}

static void assert_same_values(const config *a, const config *b) {
    for (size_t i = 0; i < COUNT; i++) {
        const char *path = keys[i].path;
        if (strchr(path, '*')) continue;
        assert_int_equal(config_has(a, path), config_has(b, path));
        if (keys[i].type != CONFIG_TEXT && keys[i].type != CONFIG_CHOICE) continue;
        if (config_text(a, path))
            assert_string_equal(config_text(a, path), config_text(b, path));
        else
            assert_null(config_text(b, path));
    }
    assert_int_equal(config_count(a, "data.windows"), config_count(b, "data.windows"));
    for (size_t i = 0; i < config_count(a, "data.windows"); i++)
        assert_string_equal(config_child(a, "data.windows", i), config_child(b, "data.windows", i));
}

static void assert_same_list(const config *a, const config *b, const char *path) {
    assert_int_equal(config_items(a, path), config_items(b, path));
    for (size_t i = 0; i < config_items(a, path); i++)
        assert_string_equal(config_item(a, path, i), config_item(b, path, i));
}

static void assert_same_lists(const config *a, const config *b) {
    assert_same_list(a, b, "data.symbols");
    assert_int_equal(config_count(a, "data.features"), config_count(b, "data.features"));
    for (size_t i = 0; i < config_count(a, "data.features"); i++) {
        char path[100];
        snprintf(path, sizeof path, "data.features.%s", config_child(a, "data.features", i));
        assert_same_list(a, b, path);
    }
}

// A written description must read back to the same values, and then be written the same.
static void assert_round_trip(const config *c) {
    size_t bytes, bytes_again;
    err e = {0};
    char *text = written(c, &bytes);
    config *again = config_read("again.yaml", text, bytes, keys, COUNT, &e);
    if (!again || !config_check(again, &e)) fail_msg("%s in:\n%s", e.text, text);
    assert_same_values(c, again);
    assert_same_lists(c, again);
    char *text_again = written(again, &bytes_again);
    assert_string_equal(text, text_again);
    free(text_again);
    config_free(again);
    free(text);
}

static void writes_what_it_reads(void **state) {
    (void)state;
    static const char *const dirs[] = {"run.dir= padded ", "run.dir=null x", "run.dir=- a", "run.dir=a\nb\tc\r",
        "run.dir=\"quoted\"", "run.dir=it's", "run.dir=\xe4\xb8\xad\xe6\x96\x87", "run.dir=\xc2\x85\xe2\x80\xa8z",
        "run.dir=\xef\xbb\xbf", "run.dir=\xf0\x9f\x98\x80", "run.dir=...", "run.dir=---", "run.dir=?", "run.dir=*x",
        "run.dir=&x", "run.dir=!x", "run.dir=%x", "run.dir=@x", "run.dir=# x", "run.dir=a: b", "run.dir={}",
        "run.dir=\x01\x1b[2J", "run.dir=\xef\xbf\xbf", "run.dir=true", "run.dir=|"};
    err e = {0};
    config *c = check_ok(sample);
    assert_round_trip(c);
    for (size_t i = 0; i < sizeof dirs / sizeof *dirs; i++) {
        assert_true(config_override(c, dirs[i], &e));
        assert_true(config_check(c, &e));
        assert_round_trip(c);
    }
    config_free(c);
    c = check_ok("agent:\n");
    assert_round_trip(c);
    config_free(c);
}

// The words of a list with a bar between them must be `want`.
static void assert_list(const config *c, const char *path, const char *want) {
    char got[1024] = "";
    size_t used = 0;
    for (size_t i = 0; i < config_items(c, path); i++)
        used += (size_t)snprintf(got + used, sizeof got - used, "%s%s", i ? "|" : "", config_item(c, path, i));
    assert_true(used < sizeof got);
    assert_string_equal(got, want);
}

static void given_lists(void **state) {
    (void)state;
    config *c = check_ok(sample_lists);
    assert_list(c, "data.features.fast", "log_return_1|rsi_14|macd_12_26_9");
    assert_list(c, "data.features.slow", "log_return_1|a, \xc3\xa9");
    assert_int_equal(config_items(c, "data.features.fast"), 3);
    assert_string_equal(config_text(c, "data.bars.slow"), "XAUUSD_H1.csv");
    assert_true(config_given(c, "data.symbols"));
    assert_int_equal(config_items(c, "data.symbols"), 0);
    assert_false(config_has(c, "data.features.other"));
    assert_int_equal(config_items(c, "data.features.other"), 0);
    assert_int_equal(config_count(c, "data.features"), 2);
    config_free(c);
    c = check_ok("");
    assert_list(c, "data.symbols", "XAU|EURUSD");
    assert_true(config_has(c, "data.symbols"));
    assert_false(config_given(c, "data.symbols"));
    config_free(c);
}

static void odd_lists(void **state) {
    (void)state;
    static const struct {
        const char *text, *want;
    } cases[] = {
        {"[a, b,]", "a|b"},
        {"[]", ""},
        {"[ ]", ""},
        {"[a]", "a"},
        {"a", "a"},
        {"a b", "a b"},
        {"'a, b'", "a, b"},
        {"\"\"", ""},
        {"[\"a, b\", 'it''s', \"[x]\", \"\", \"null\"]", "a, b|it's|[x]||null"},
        {"[a b, 1, true, -1.5, 1e3, a:b]", "a b|1|true|-1.5|1e3|a:b"},
        {"[\xc3\xa9t\xc3\xa9, \"\\u4e2d\", \xf0\x9f\x98\x80]", "\xc3\xa9t\xc3\xa9|\xe4\xb8\xad|\xf0\x9f\x98\x80"},
        {"[a,\n    b # one\n    , c]", "a|b|c"},
        {"\n  - a, b\n  - \"- c\"\n  - a", "a, b|- c|a"},
        {"\n  - |\n    two\n    lines\n  - b", "two\nlines\n|b"},
        {"\n  -   a\n", "a"},
    };
    char text[256];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(text, sizeof text, "data:\n  symbols: %s\n", cases[i].text);
        config *c = check_ok(text);
        assert_list(c, "data.symbols", cases[i].want);
        assert_true(config_given(c, "data.symbols"));
        config_free(c);
    }
}

static void wrong_lists(void **state) {
    (void)state;
    refuse(
        "data:\n  symbols: [a,\n    [b]]\n", "run.yaml:3: data.symbols: a list stands in the list; write single words");
    refuse("data:\n  symbols:\n    - a\n    - - b\n",
        "run.yaml:4: data.symbols: a list stands in the list; write single words");
    refuse("data:\n  features:\n    fast:\n    - a\n    - b: 1\n",
        "run.yaml:5: data.features.fast: a section stands in the list; write single words");
    refuse("data:\n  symbols: [a, {}]\n", "run.yaml:2: data.symbols: a section stands in the list; write single words");
    refuse("data:\n  symbols: [a: b]\n", "run.yaml:2: data.symbols: a section stands in the list; write single words");
    refuse("data:\n  symbols: [a,\n   ~]\n",
        "run.yaml:3: data.symbols: a word of the list has no value; remove it, or quote it");
    refuse("data:\n  symbols:\n    -\n    - a\n",
        "run.yaml:3: data.symbols: a word of the list has no value; remove it, or quote it");
    refuse(
        "data:\n  symbols: [\"a\\0b\"]\n", "run.yaml:2: data.symbols: a word of the list has a NUL in it; remove it");
    refuse("data:\n  symbols: [a, *b]\n", "run.yaml:2: aliases are not supported; repeat the value, or quote it");
    refuse("data:\n  symbols: [&a b]\n", "run.yaml:2: anchors are not supported; remove the &, or quote the value");
    refuse("data:\n  symbols: [!!str a]\n", "run.yaml:2: tags are not supported; remove the !, or quote the value");
    refuse("data:\n  symbols: [a,, b]\n",
        "run.yaml:2: not valid YAML: did not find expected node content; check indentation, colons and quotes");
    refuse("data:\n  symbols: [a, b\n",
        "run.yaml:3: not valid YAML: did not find expected ',' or ']' while parsing a flow sequence that starts in "
        "line 2; check indentation, colons and quotes");
    refuse("data:\n  symbols: {a: 1}\n", "run.yaml:2: data.symbols: must be a list of words, not a section; what is "
                                         "traded (default XAU, EURUSD)");
    refuse("data:\n  symbols:\n", "run.yaml:2: data.symbols: must be a list of words, but has no value; what is traded "
                                  "(default XAU, EURUSD)");
    refuse("data:\n  symbols: XAU, EURUSD\n",
        "run.yaml:2: data.symbols: must be a list of words, not XAU, EURUSD; write it in brackets, or in quotes if "
        "it is one word");
    refuse("data:\n  features: {fast: {a: b}}\n",
        "run.yaml:2: data.features.fast: must be a list of words, not a section; columns of a branch");
    refuse("data:\n  features: [a, b]\n",
        "run.yaml:2: data.features: must be a section, not a list; data.features takes any name (columns of a branch)");
    refuse("data:\n  bars: {fast: [a, [b]]}\n", "run.yaml:2: data.bars.fast: must be text, not a list; a file of bars");
    refuse("data:\n  windows:\n    fast:\n    - 5\n",
        "run.yaml:3: data.windows.fast: must be an integer from 1 to 100000, not a list; bars in a window");
}

static void lists_are_bounded(void **state) {
    (void)state;
    enum { ROOM = 1 << 16 };
    static char text[ROOM], word[257];
    size_t used = (size_t)sprintf(text, "data:\n  symbols:\n");
    for (int i = 0; i < 4096; i++) used += (size_t)sprintf(text + used, "  - w%d\n", i);
    config *c = check_ok(text);
    assert_int_equal(config_items(c, "data.symbols"), 4096);
    assert_string_equal(config_item(c, "data.symbols", 4095), "w4095");
    config_free(c);
    for (int i = 4096; i < 5000; i++) used += (size_t)sprintf(text + used, "  - w%d\n", i);
    refuse(text, "run.yaml:4099: data.symbols: the list has more than 4096 words; shorten it");
    memset(word, 'w', 255);
    sprintf(text, "data:\n  symbols: [%s]\n  features: {fast: %s}\n", word, word);
    c = check_ok(text);
    assert_string_equal(config_item(c, "data.symbols", 0), word);
    assert_string_equal(config_item(c, "data.features.fast", 0), word);
    config_free(c);
    memset(word, 'w', 256);
    sprintf(text, "data:\n  symbols: [a,\n    %s]\n", word);
    refuse(text, "run.yaml:3: data.symbols: a word of the list is longer than 255 bytes; shorten it");
    sprintf(text, "data:\n  symbols: %s\n", word);
    refuse(text, "run.yaml:2: data.symbols: must be a list of words, not "
                 "wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww...; a word has at most 255 bytes");
    used = (size_t)sprintf(text, "data:\n  symbols: ");
    for (int i = 0; i < 20; i++) text[used++] = '[';
    refuse_bytes(text, used, "run.yaml:2: data.symbols: nested more than 16 deep; is it the right file?");
}

static void lists_on_the_command_line(void **state) {
    (void)state;
    static const struct {
        const char *text, *want;
    } cases[] = {{"data.symbols=a,b", "a|b"}, {"data.symbols=[a, b]", "a|b"}, {"data.symbols= a , b c ", "a|b c"},
        {"data.symbols= [a, b] ", "a|b"}, {"data.symbols=a", "a"}, {"data.symbols=[]", ""},
        {"data.symbols='a, b', c=d", "a, b|c=d"}, {"data.symbols=[\"\\u00e9,\"]", "\xc3\xa9,"},
        {"data.symbols=a,b,", "a|b"}, {"data.symbols=\"\"", ""}, {"data.symbols=C:\\x,y#z", "C:\\x|y#z"}};
    err e = {0};
    config *c = read_ok("data: {symbols: {a: 1}, features: {fast: [a]}}");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (!config_override(c, cases[i].text, &e) || !config_check(c, &e)) fail_msg("refused: %s", e.text);
        assert_list(c, "data.symbols", cases[i].want);
        assert_round_trip(c);
    }
    assert_true(config_override(c, "data.features.slow=x,y", &e));
    assert_true(config_override(c, "data.features.fast=z", &e));
    assert_true(config_check(c, &e));
    assert_list(c, "data.features.slow", "x|y");
    assert_list(c, "data.features.fast", "z");
    config_free(c);
}

static void wrong_lists_on_the_command_line(void **state) {
    (void)state;
    static const char *const none[] = {"[a, b", "a]", "[a],b", "[a] b", "a,,b", ",a", "*a", "&a b", "!!x a", "a #b",
        "a,#b", "\"a", "[a]\n---\n[b]", "\x01", "%a", "[[[[[[[[[[[[[[[[[["};
    char text[64], want[256];
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        snprintf(text, sizeof text, "data.symbols=%s", none[i]);
        snprintf(
            want, sizeof want, "%s: data.symbols: not a list; write [a, b] or a,b, with quotes around odd words", text);
        for (char *c = want; *c; c++)
            if ((unsigned char)*c < ' ') *c = ' ';
        refuse_override(text, want);
    }
    refuse_override(
        "data.symbols=[a, [b]]", "data.symbols=[a, [b]]: data.symbols: a list stands in the list; write single words");
    refuse_override(
        "data.symbols=a: b", "data.symbols=a: b: data.symbols: a section stands in the list; write single words");
    refuse_override(
        "data.symbols={}", "data.symbols={}: data.symbols: a section stands in the list; write single words");
    refuse_override(
        "data.symbols=a,~", "data.symbols=a,~: data.symbols: a word of the list has no value; remove it, or quote it");
    refuse_override("data.symbols=", "data.symbols=: data.symbols: must be a list of words, but has no value; what is "
                                     "traded (default XAU, EURUSD)");
    refuse_override("data.symbols= ",
        "data.symbols= : data.symbols: must be a list of words, but has no value; what is "
        "traded (default XAU, EURUSD)");
    refuse_override("data.features=a,b", "data.features=a,b: data.features: must be a section, not a,b; data.features "
                                         "takes any name (columns of a branch)");
    refuse_override("train.epochs=[1, 2]",
        "train.epochs=[1, 2]: train.epochs: must be an integer from 1 to 1000000, not [1, 2]; passes over the samples "
        "(default 8)");
    err e = {0};
    config *c = read_ok("data: {symbols: [a]}");
    assert_false(config_override(c, "data.symbols.a=1", &e));
    assert_string_equal(e.text, "data.symbols.a=1: data.symbols: is a list, so it has no keys below it; override "
                                "data.symbols itself");
    assert_false(config_override(c, "data.symbols=[", &e));
    assert_list(c, "data.symbols", "a");
    config_free(c);
}

static void writes_lists_as_it_reads_them(void **state) {
    (void)state;
    size_t bytes;
    config *c = check_ok("data:\n"
                         "  features:\n"
                         "    a: [x, 'y, z', '', 'null', \"~\", \"\\x01\", \"\\u2028\", 'it''s', '- b', '[c]', 1]\n"
                         "    b: [two words,]\n"
                         "    c: one\n"
                         "    d: 'one, two'\n"
                         "    e: []\n");
    assert_round_trip(c);
    char *text = written(c, &bytes);
    assert_non_null(strstr(text, "    a: [x, \"y, z\", \"\", \"null\", \"~\", \"\\x01\", \"\\L\", \"it's\", "
                                 "\"- b\", \"[c]\", 1]\n"
                                 "    b: [\"two words\"]\n"
                                 "    c: one\n"
                                 "    d: \"one, two\"\n"
                                 "    e: []\n"
                                 "  symbols: [XAU, EURUSD]\n"));
    free(text);
    config_free(c);
    c = check_ok(sample_lists);
    assert_round_trip(c);
    config_free(c);
}

static void written_text(void **state) {
    (void)state;
    size_t bytes;
    config *c = check_ok("train: {epochs: 4}\nmodel: {hidden: {b: 1, a: 2}}\n");
    char *text = written(c, &bytes);
    assert_string_equal(text, "train:\n"
                              "  epochs: 4\n"
                              "  batch_size: 512\n"
                              "  optimizer:\n"
                              "    kind: adamw\n"
                              "    lr: 1.0e-3\n"
                              "  shift: -.5\n"
                              "  note: \"\"\n"
                              "model:\n"
                              "  hidden:\n"
                              "    b: 1\n"
                              "    a: 2\n"
                              "  kind: lstm\n"
                              "  dropout: 0\n"
                              "data:\n"
                              "  symbols: [XAU, EURUSD]\n"
                              "  split:\n"
                              "    train: 0.70\n"
                              "    purge: auto\n"
                              "run:\n"
                              "  dir: runs/latest\n"
                              "gpu:\n"
                              "  mixed: true\n"
                              "  monitor: off\n"
                              "extra: {}\n");
    free(text);
    FILE *full = fopen("/dev/full", "w");
    if (full) {
        assert_false(config_write(c, full));
        fclose(full);
    }
    config_free(c);
}

static void loads_files(void **state) {
    (void)state;
    err e = {0};
    assert_null(config_load("missing.yaml", keys, COUNT, &e));
    assert_int_equal(e.kind, ERR_INPUT);
    assert_string_equal(e.text, "missing.yaml: cannot be read: No such file or directory; check the path");
    assert_null(config_load("/", keys, COUNT, &e));
    assert_string_equal(e.text, "/: is a directory; name a file in it");
    const char *base = getenv("TMPDIR");
    char path[4096];
    snprintf(path, sizeof path, "%s/test_config.XXXXXX", base ? base : "/tmp");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, sample, sizeof sample - 1), sizeof sample - 1);
    close(fd);
    config *c = config_load(path, keys, COUNT, &e);
    unlink(path);
    assert_non_null(c);
    assert_true(config_check(c, &e));
    assert_int_equal(config_int(c, "train.epochs"), 4);
    config_free(c);
    config_free(NULL);
}

// Runs a getter in a child, which must abort.
static void assert_aborts(void (*mistake)(const config *c)) {
    config *c = check_ok("");
    pid_t child = fork();
    assert_true(child >= 0);
    if (!child) {
        if (!freopen("/dev/null", "w", stderr)) _exit(1);
        mistake(c);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    config_free(c);
}

static void ask_unknown(const config *c) {
    config_has(c, "train.epoch");
}

static void ask_other_type(const config *c) {
    config_real(c, "train.epochs");
}

static void ask_without_value(const config *c) {
    config_real(c, "gpu.limit");
}

static void ask_number_of_a_word(const config *c) {
    config_int(c, "data.split.purge");
}

static void ask_impossible_word(const config *c) {
    config_is(c, "model.kind", "ltsm");
}

static void use_bad_row(const config *c) {
    (void)c;
    static const config_key bad = {"a", CONFIG_INT, "0", 1, 2, NULL, NULL, 0};
    config_read("x", "", 0, &bad, 1, NULL);
}

static void use_bad_list(const config *c) {
    (void)c;
    static const config_key bad = {"a", CONFIG_LIST, "[a, b", 0, 0, NULL, NULL, 0};
    config_read("x", "", 0, &bad, 1, NULL);
}

static void use_bad_item(const config *c) {
    (void)c;
    static const config_key bad = {"a", CONFIG_LIST, "a, [b]", 0, 0, NULL, NULL, 0};
    config_read("x", "", 0, &bad, 1, NULL);
}

static void ask_list_of_text(const config *c) {
    config_items(c, "run.dir");
}

static void ask_text_of_list(const config *c) {
    config_text(c, "data.symbols");
}

static void ask_past_the_end(const config *c) {
    config_item(c, "data.symbols", 2);
}

static void mistakes_of_the_program_stop_it(void **state) {
    (void)state;
    assert_aborts(ask_unknown);
    assert_aborts(ask_other_type);
    assert_aborts(ask_without_value);
    assert_aborts(ask_number_of_a_word);
    assert_aborts(ask_impossible_word);
    assert_aborts(use_bad_row);
    assert_aborts(use_bad_list);
    assert_aborts(use_bad_item);
    assert_aborts(ask_list_of_text);
    assert_aborts(ask_text_of_list);
    assert_aborts(ask_past_the_end);
}

static void help_has_a_line_for_each_key(void **state) {
    (void)state;
    char *text = NULL;
    size_t bytes;
    FILE *f = open_memstream(&text, &bytes);
    assert_non_null(f);
    config_help(keys, COUNT, f);
    fclose(f);
    int lines = 0;
    for (const char *c = text; *c; c++) lines += *c == '\n';
    assert_int_equal(lines, COUNT);
    assert_non_null(
        strstr(text, "train.batch_size      integer of at least 1             512          samples in a b"));
    assert_non_null(
        strstr(text, "data.symbols          list of words                     XAU, EURUSD  what is traded"));
    assert_non_null(
        strstr(text, "gpu.limit             number above 0                    -            hard limit in GB"));
    assert_non_null(
        strstr(text, "train.note            text                              \"\"           kept with the run"));
    free(text);
}

// Random bits for the fuzz loop, the same in each run.
static uint32_t draw(uint32_t *at, uint32_t below) {
    return rng_philox(2024, (*at)++, 0, (uint32_t)RNG_TEST << 16, 0).v[0] % below;
}

static size_t mutate(char *text, size_t bytes, size_t room, uint32_t *at) {
    static const char *const pieces[] = {":", " ", "\n", "\n  ", "{", "}", "[", "]", ",", "\"", "'", "&a ", "*a",
        "!!x ", "|", ">", "---", "...", "#", "- ", "? ", "%", "\t", "\r", "~", "null", "1e9", "\\u2028", "\xc3\xa9",
        "train:", "epochs: ", "features: ", "- a", "hidden: ", "a: 1", "<<: ", "-", "0", "\xef\xbb\xbf", "\xff"};
    for (uint32_t i = 1 + draw(at, 4); i; i--) {
        size_t pos = bytes ? draw(at, (uint32_t)bytes) : 0, left = bytes - pos;
        size_t cut = draw(at, 3) ? 0 : draw(at, (uint32_t)(left < 12 ? left + 1 : 12));
        const char *piece = pieces[draw(at, sizeof pieces / sizeof *pieces)];
        size_t add = strlen(piece);
        char byte = (char)(draw(at, 16) ? 32 + draw(at, 95) : draw(at, 256));
        switch (draw(at, 4)) {
        case 0: piece = &byte, add = 1; break;
        case 1: add = 0; break;
        default: break;
        }
        if (bytes - cut + add > room) continue;
        char copy[16];
        memcpy(copy, piece, add);
        memmove(text + pos + add, text + pos + cut, left - cut);
        memcpy(text + pos, copy, add);
        bytes = bytes - cut + add;
    }
    return bytes;
}

// Neither crash, leak nor a message of more than one line; what is accepted can be written and read back.
static void survives_mutated_input(void **state) {
    (void)state;
    enum { ROUNDS = 20000, ROOM = 1024 };
    uint32_t at = 0;
    int accepted = 0, read = 0;
    char text[ROOM];
    size_t bytes = 0;
    for (int i = 0; i < ROUNDS; i++) {
        if (i % 8 == 0) memcpy(text, sample, bytes = sizeof sample - 1);
        if (i % 8 == 4) memcpy(text, sample_lists, bytes = sizeof sample_lists - 1);
        bytes = mutate(text, bytes, ROOM, &at);
        char *exact = malloc(bytes ? bytes : 1); // of the exact size, so that reading on is noticed
        assert_non_null(exact);
        memcpy(exact, text, bytes);
        err e = {0};
        config *c = config_read("fuzz.yaml", exact, bytes, keys, COUNT, &e);
        free(exact);
        read += c != NULL;
        if (c && config_check(c, &e)) {
            accepted++;
            assert_round_trip(c);
        } else {
            assert_int_equal(e.kind, ERR_INPUT);
            assert_int_equal(strncmp(e.text, "fuzz.yaml:", 10), 0);
            assert_null(strpbrk(e.text, "\n\r\t"));
        }
        config_free(c);
    }
    assert_true(read > ROUNDS / 20 && accepted > ROUNDS / 50 && accepted < ROUNDS);
}

static void survives_mutated_overrides(void **state) {
    (void)state;
    enum { ROUNDS = 5000, ROOM = 200 };
    static const char *const seeds[] = {"train.epochs=4", "model.hidden.fast=3", "run.dir=a b", "gpu.mixed=bf16",
        "agent.x.y=1", "data.features.fast=[a, 'b, c']", "data.symbols=a,b"};
    uint32_t at = 1u << 30;
    config *c = read_ok(sample);
    for (int i = 0; i < ROUNDS; i++) {
        char text[ROOM + 1];
        const char *seed = seeds[draw(&at, sizeof seeds / sizeof *seeds)];
        size_t bytes = strlen(seed);
        memcpy(text, seed, bytes);
        bytes = mutate(text, bytes, ROOM, &at);
        text[bytes] = 0;
        err e = {0};
        if (!config_override(c, text, &e)) assert_int_equal(e.kind, ERR_INPUT);
        if (config_check(c, &e)) {
            assert_round_trip(c);
        } else { // start again, or the first wrong key would hide all later ones
            config_free(c);
            c = read_ok(sample);
        }
    }
    config_free(c);
}

static const config_name names[] = {{.name = "lr", .key = "train.optimizer.lr"},
    {.name = "train.lr", .key = "train.optimizer.lr"}, {.name = "epochs", .key = "train.epochs"},
    {.name = "width", .key = "model.hidden"}, {.name = "pin_memory", .why = "not needed"},
    {.name = "train.amp", .why = "write a precision", .refused = true}};
enum { NAMES = sizeof names / sizeof *names };

static void other_names(void **state) {
    (void)state;
    err e = {0};
    config *c = read_ok("lr: 0.5\npin_memory: true\ntrain: {lr: 2, epochs: 3}\n");
    assert_false(config_rename(c, names, NAMES, &e));
    assert_string_equal(e.text, "run.yaml:3: train.lr: lr is given too; leave one of them out");
    config_free(c);
    c = read_ok("lr: 0.5\npin_memory: true\nwidth: 8\ntrain: {epochs: 3}\n");
    assert_true(config_rename(c, names, NAMES, &e) && config_check(c, &e));
    assert_true(config_real(c, "train.optimizer.lr") == 0.5 && config_int(c, "model.hidden") == 8);
    assert_true(config_given_value(c, "model.hidden") && !config_given_value(c, "train"));
    assert_int_equal(config_notes(c), 3);
    assert_string_equal(config_note_at(c, 0)->key, "train.optimizer.lr");
    assert_string_equal(config_note_at(c, 2)->why, "not needed");
    assert_round_trip(c);
    // On the command line the last one wins, by whatever name, and is noted once.
    assert_true(config_override(c, "train.lr=0.25", &e) && config_rename(c, names, NAMES, &e));
    assert_true(config_real(c, "train.optimizer.lr") == 0.25);
    assert_true(config_override(c, "lr=0.75", &e) && config_rename(c, names, NAMES, &e));
    assert_true(config_real(c, "train.optimizer.lr") == 0.75);
    assert_true(config_override(c, "epochs=x", &e) && config_rename(c, names, NAMES, &e));
    assert_false(config_check(c, &e));
    assert_non_null(strstr(e.text, "epochs=x: train.epochs: must be an integer"));
    assert_int_equal(config_notes(c), 5);
    config_free(c);
    c = read_ok("train:\n  epochs: 3\n");
    config_replace(c, "train.epochs", "none");
    assert_false(config_check(c, &e));
    assert_non_null(strstr(e.text, "run.yaml:2: train.epochs: must be an integer"));
    config_free(c);
    c = read_ok("lr: 0.5\ntrain: {optimizer: adamw}\n");
    assert_false(config_rename(c, names, NAMES, &e));
    assert_non_null(strstr(e.text, "lr: is read as train.optimizer.lr, but train.optimizer is no section"));
    config_free(c);
    c = read_ok("train:\n  amp: true\n");
    assert_false(config_rename(c, names, NAMES, &e));
    assert_string_equal(e.text, "run.yaml:2: train.amp: has another name here; write a precision");
    config_free(c);
}

static void count_path(void *arg, const char *path) {
    char *all = arg;
    strcat(strcat(all, path), " ");
}

static void given_and_usual(void **state) {
    (void)state;
    char all[256] = "";
    config *c = check_ok("train: {epochs: 8, shift: 1}\ndata: {symbols: [XAU, EURUSD], windows: {a: 1, b: 2}}\n");
    config_each(c, count_path, all);
    assert_string_equal(all, "train.epochs train.shift data.symbols data.windows.a data.windows.b ");
    assert_true(config_is_usual(c, "train.epochs") && config_is_usual(c, "data.symbols"));
    assert_false(config_is_usual(c, "train.shift") || config_is_usual(c, "data.windows.a"));
    config_free(c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(given_values),
        cmocka_unit_test(fallbacks),
        cmocka_unit_test(maps_keep_their_order),
        cmocka_unit_test(numbers),
        cmocka_unit_test(wrong_values),
        cmocka_unit_test(unknown_keys),
        cmocka_unit_test(bad_yaml),
        cmocka_unit_test(sizes_are_bounded),
        cmocka_unit_test(overrides),
        cmocka_unit_test(the_first_of_the_nearest_is_named),
        cmocka_unit_test(wrong_overrides),
        cmocka_unit_test(given_lists),
        cmocka_unit_test(odd_lists),
        cmocka_unit_test(wrong_lists),
        cmocka_unit_test(lists_are_bounded),
        cmocka_unit_test(lists_on_the_command_line),
        cmocka_unit_test(wrong_lists_on_the_command_line),
        cmocka_unit_test(writes_lists_as_it_reads_them),
        cmocka_unit_test(config_fail_names_the_place),
        cmocka_unit_test(writes_what_it_reads),
        cmocka_unit_test(written_text),
        cmocka_unit_test(loads_files),
        cmocka_unit_test(mistakes_of_the_program_stop_it),
        cmocka_unit_test(help_has_a_line_for_each_key),
        cmocka_unit_test(other_names),
        cmocka_unit_test(given_and_usual),
        cmocka_unit_test(survives_mutated_input),
        cmocka_unit_test(survives_mutated_overrides),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
