// A model knows its inputs: data that are not those of its training are refused in words, from outside.
#include "cli/program.h"
#include "data/npz.h"
#include "data/walk.h"
#include "run/safetensors.h"
#include "run/weights.h"
#include "support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define IMPORT(out, features) RUN("import", "bars.csv", "-o", out, "--features", features, "-q")

static void put_trained(void) {
    walk_put("bars.csv", 1500, 300, 1);
    assert_int_equal(IMPORT("a.npz", "fast=body,rsi_14,natr_14"), 0);
    put_text("run.yaml", "data: {set: a.npz, windows: {fast: 8}}\nmodel: {hidden: {fast: 4}}\n"
                         "train: {epochs: 1, batch_size: 128}\nrun: {dir: made}\n");
    assert_int_equal(RUN("train", "run.yaml", "-q"), 0);
}

static void weights_carry_their_contract(void **state) {
    (void)state;
    err e = {0};
    put_trained();
    static const char *const files[] = {"made/best.safetensors", "made/last.safetensors"};
    for (int i = 0; i < 2; i++) {
        safetensors *s = safetensors_open(files[i], &e);
        support_ok(s != NULL, &e);
        const char *text = safetensors_metadata(s, "tradewind.contract");
        assert_non_null(text);
        assert_non_null(strstr(text, "\"columns\":[\"body\",\"rsi_14\",\"natr_14\"]"));
        assert_non_null(strstr(text, "\"classes\":[\"DOWN\",\"NEUTRAL\",\"UP\"]"));
        assert_non_null(strstr(text, "\"label\":{\"kind\":\"direction\",\"horizon\":1,"));
        assert_non_null(strstr(text, "\"span\":300,\"window\":8,"));
        assert_non_null(strstr(text, "\"scaler\":\"standard\""));
        safetensors_close(s);
        assert_int_equal(RUN("inspect", files[i]), 0);
        matches(
            "out", "\n  stream fast: bars of 5 min, 8 steps of body,rsi_14,natr_14\n  classes DOWN,NEUTRAL,UP, kind");
    }
}

static void other_columns_are_refused(void **state) {
    (void)state;
    put_trained();
    assert_int_equal(IMPORT("swapped.npz", "fast=body,natr_14,rsi_14"), 0);
    assert_int_equal(IMPORT("other.npz", "fast=body,rsi_14,log_return_1"), 0);
    complains(RUN("evaluate", "made", "--data", "swapped.npz"),
        "made/best\\.safetensors: columns of fast differ: column 2 is rsi_14 in the weights and natr_14 in "
        "swapped\\.npz; import with --features fast=body,rsi_14,natr_14");
    complains(RUN("predict", "made", "--data", "other.npz", "-o", "p.csv"),
        ".*: column 3 is natr_14 in the weights and log_return_1 in other\\.npz; .*");
    assert_int_not_equal(access("p.csv", F_OK), 0);
    complains(RUN("train", "run.yaml", "--resume", "data.set=swapped.npz"),
        "made/last\\.safetensors: columns of fast differ: column 2 is rsi_14 in the weights and natr_14 in .*");
    complains(RUN("train", "run.yaml", "data.set=swapped.npz", "run.dir=next", "train.init_from=made/best.safetensors"),
        "made/best\\.safetensors: columns of fast differ: column 2 .*");
    complains(RUN("evaluate", "made", "data.windows.fast=9"),
        ".*: windows of fast: 8 in the weights, 9 described; set data\\.windows\\.fast=8");
}

static void other_labels_are_refused(void **state) {
    (void)state;
    put_trained();
    assert_int_equal(
        RUN("import", "bars.csv", "-o", "far.npz", "--features", "fast=body,rsi_14,natr_14", "--horizon=5", "-q"), 0);
    complains(RUN("evaluate", "made", "--data", "far.npz"),
        ".*: labels differ: horizon is 1 in the weights and 5 in far\\.npz; use data with the same labels");
    // Other labels may be meant where weights are only begun with; that is told.
    assert_int_equal(
        RUN("train", "run.yaml", "data.set=far.npz", "run.dir=next", "train.init_from=made/best.safetensors"), 0);
    matches("out", "\nwarning +train\\.init_from made/best\\.safetensors: labels differ: horizon is 1 in the weights");
}

static void changed_data_are_named(void **state) {
    (void)state;
    put_trained();
    assert_int_equal(system("head -n 1401 bars.csv >short && mv short bars.csv"), 0);
    assert_int_equal(IMPORT("a.npz", "fast=body,rsi_14,natr_14"), 0);
    complains(RUN("train", "made/config.yaml", "--resume", "train.epochs=2"),
        "made/last\\.safetensors: was made of other data: a\\.npz is of other bars: bars\\.csv has 1,400 bars, had "
        "1,500; its last sample is of "
        "20[0-9: -]+, was of 20[0-9: -]+; go on with the file as it was, or begin a new run");
}

// A part of data that grew, or other data, may hold samples that were trained on.
static void samples_of_training_are_told(void **state) {
    (void)state;
    put_trained();
    assert_int_equal(RUN("evaluate", "made"), 0);
    assert_false(file_holds("out", "warning "));
    assert_int_equal(RUN("evaluate", "made", "--json"), 0);
    assert_true(number("trained_on") == 0);
    assert_int_equal(RUN("evaluate", "made", "--part", "train"), 0);
    assert_false(file_holds("out", "warning "));
    assert_int_equal(system("head -n 1251 bars.csv >short.csv"), 0);
    assert_int_equal(RUN("import", "short.csv", "-o", "short.npz", "--features", "fast=body,rsi_14,natr_14", "-q"), 0);
    assert_int_equal(RUN("evaluate", "made", "data.set=short.npz"), 0);
    matches("out", "\ndata +short\\.npz, [^\n]+\nwarning +([0-9]+) of these [0-9]+ samples lie in the "
                   "time that the model was trained on [(]to 20[0-9]{2}-[0-9: -]+[)]\naccuracy ");
    assert_int_equal(RUN("evaluate", "made", "--data", "short.npz", "--json"), 0);
    assert_true(number("trained_on") == number("samples"));
    assert_int_equal(RUN("predict", "made", "--data", "short.npz", "-o", "p.csv"), 0);
    matches("out", "\nwarning +[0-9]+ of these [0-9]+ samples lie in the time ");
    matches("out", "\nnote +[0-9]+ newer bars? ha(s|ve) no label; --latest answers for (it|them)\n");
    assert_int_equal(RUN("predict", "made", "--part", "validation", "-o", "p.csv"), 0);
    assert_false(file_holds("out", "newer"));
}

// Validation stands in for a test that is not there.
static void a_missing_test_is_told(void **state) {
    (void)state;
    put_trained();
    assert_int_equal(RUN("train", "run.yaml", "data.split.validation=0.3", "data.split.train=0.7", "-q"), 0);
    assert_int_equal(RUN("evaluate", "made"), 0);
    matches("out", "\ndata [^\n]+ samples [(]there is no test part; validation chose the best epoch[)]\n");
    assert_int_equal(RUN("evaluate", "made", "--part", "validation"), 0);
    assert_false(file_holds("out", "no test part"));
}

// A run on bar files is used on a dataset.
static void runs_on_bars_take_sets(void **state) {
    (void)state;
    put_trained();
    put_text("run.yaml",
        "data: {bars: {fast: bars.csv}, features: {fast: [body, rsi_14, natr_14]}, windows: {fast: 8}}\n"
        "model: {hidden: {fast: 4}}\ntrain: {epochs: 1, batch_size: 128}\nrun: {dir: bars}\n");
    assert_int_equal(RUN("train", "run.yaml", "-q"), 0);
    assert_int_equal(RUN("evaluate", "bars", "--data", "a.npz", "--json"), 0);
    assert_true(number("samples") > 400);
    complains(RUN("train", "a.npz"), "a\\.npz: is a dataset; name it as data\\.set in a description");
}

// Labels that reach over the end of the training part are told where the description lets them.
static void shared_labels_are_told(void **state) {
    (void)state;
    put_trained();
    assert_int_equal(
        RUN("import", "bars.csv", "-o", "far.npz", "--features", "fast=body,rsi_14,natr_14", "--horizon=5", "-q"), 0);
#define FAR "run.yaml", "data.set=far.npz", "data.split.embargo=0"
    assert_int_equal(RUN("plan", FAR, "data.split.purge=0"), 0);
    matches(
        "out", "\nwarning +labels of training samples reach [5-6] samples into validation; leave data\\.split\\.purge");
    assert_int_equal(RUN("train", FAR, "data.split.purge=0", "run.dir=far", "--json"), 0);
    matches("out", "[{]\"warning\": ?\"labels of training samples reach ");
    assert_int_equal(RUN("plan", FAR), 0);
    assert_false(file_holds("out", "labels of training"));
    assert_int_equal(RUN("evaluate", "far"), 0);
}

// Targets around 40 that follow the first of the vector's numbers, without or with a stream.
static void put_targets(const char *path, const char *stream, int64_t samples) {
    enum { SAMPLES = 400, V = 2, T = 3 };
    static float vector[SAMPLES * V], x[SAMPLES * T * V], target[SAMPLES];
    dice d = {.seed = 5};
    npz_writer w;
    err e = {0};
    for (int i = 0; i < SAMPLES * V; i++) vector[i] = dice_unit(&d);
    for (int i = 0; i < SAMPLES * T * V; i++) x[i] = dice_unit(&d);
    for (int i = 0; i < SAMPLES; i++) target[i] = 40 + 8 * vector[i * V];
    bool ok = npz_writer_open(&w, path, &e) &&
              npz_writer_array(&w, "x_strategy", NPY_F32, 2, (int64_t[]){samples, V}, vector, &e) &&
              (!stream || npz_writer_array(&w, stream, NPY_F32, 3, (int64_t[]){samples, T, V}, x, &e)) &&
              npz_writer_array(&w, "targets", NPY_F32, 2, (int64_t[]){samples, 1}, target, &e);
    support_ok(ok && npz_writer_commit(&w, &e), &e);
}

// Weights that were changed by hand: a note is set, or left out (NULL), and a tensor filled with a number.
static void rewrite(const char *path, const char *key, const char *value, const char *tensor, float fill) {
    enum { MOST = 64 };
    static float number[1 << 16];
    safetensors_entry entry[MOST];
    safetensors_note note[MOST];
    err e = {0};
    int notes = 0;
    safetensors *s = safetensors_open(path, &e);
    support_ok(s != NULL, &e);
    assert_true(safetensors_count(s) < MOST && safetensors_notes(s) < MOST);
    for (int i = 0; i < safetensors_count(s); i++) {
        entry[i] = *safetensors_at(s, i);
        if (!tensor || strcmp(entry[i].name, tensor) != 0) continue;
        assert_true(entry[i].type == SAFE_F32 && entry[i].bytes <= sizeof number);
        for (size_t k = 0; k < entry[i].bytes / sizeof fill; k++) number[k] = fill;
        entry[i].data = number;
    }
    for (int i = 0; i < safetensors_notes(s); i++) {
        const char *is = safetensors_note_at(s, i).key;
        bool own = strcmp(is, "weights") == 0 || strcmp(is, "sum") == 0; // of weights_write
        if (!own && (!key || strcmp(is, key) != 0)) note[notes++] = safetensors_note_at(s, i);
    }
    if (key && value) note[notes++] = (safetensors_note){key, value};
    support_ok(weights_write("changed", entry, safetensors_count(s), note, notes, &e), &e);
    safetensors_close(s);
    assert_int_equal(rename("changed", path), 0);
}

// A name of one of the weights' tensors that ends like this.
static void tensor_named(const char *path, const char *end, char name[128]) {
    err e = {0};
    safetensors *s = safetensors_open(path, &e);
    support_ok(s != NULL, &e);
    name[0] = 0;
    for (int i = 0; i < safetensors_count(s); i++) {
        const char *is = safetensors_at(s, i)->name;
        if (strlen(is) > strlen(end) && strcmp(is + strlen(is) - strlen(end), end) == 0) snprintf(name, 128, "%s", is);
    }
    safetensors_close(s);
    assert_true(name[0]);
}

static void answers_must_be_finite(void **state) {
    (void)state;
    static const char weights[] = "made/best.safetensors";
    char name[128];
    put_trained();
    tensor_named(weights, "bias", name);
    rewrite(weights, NULL, NULL, name, NAN);
    assert_int_equal(RUN("predict", "made", "--latest", "1"), 1);
    is_empty("out");
    matches(
        "err", "^tradewind: made/best\\.safetensors: 1 of 1 answers are not finite; the weights are damaged or div");
    assert_int_equal(RUN("predict", "made", "-o", "p.csv"), 1);
    assert_int_not_equal(access("p.csv", F_OK), 0);
    assert_int_equal(RUN("evaluate", "made"), 1);
    is_empty("out");
    matches("err", "^tradewind: [^\n]* ([0-9]+) of \\1 answers are not finite; ");
}

static void inspect_tells_a_damaged_contract(void **state) {
    (void)state;
    put_trained();
    rewrite("made/best.safetensors", "tradewind.contract", "{}", NULL, 0);
    assert_int_equal(RUN("inspect", "made/best.safetensors"), 0);
    matches("out", "\n  damaged: made/best\\.safetensors: tradewind\\.contract among its metadata cannot be read; ");
}

static void shares_are_checked(void **state) {
    (void)state;
    static const char weights[] = "made/best.safetensors";
    static const char *const wrong[] = {"nan 0.5 0.5", "0.5 0.5", "0.5 0.5 0.5", "-1 1 1", "0.2 0.3 0.5 0", "inf 0 0"};
    put_trained();
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        rewrite(weights, "class_shares", wrong[i], NULL, 0);
        complains(RUN("evaluate", "made"),
            "made/best\\.safetensors: class_shares among its metadata cannot be; the file is damaged");
    }
    rewrite(weights, "class_shares", "0.25 0.25 0.5", NULL, 0);
    assert_int_equal(RUN("evaluate", "made"), 0);
    matches("out", "\ntrivial +majority class UP: ");
}

static void every_member_is_checked(void **state) {
    (void)state;
    put_trained();
    assert_int_equal(RUN("train", "run.yaml", "train.ensemble=2", "run.dir=both", "-q"), 0);
    assert_int_equal(RUN("evaluate", "both"), 0);
    assert_int_equal(system("cp both/member_2/best.safetensors kept"), 0);
    rewrite("both/member_2/best.safetensors", NULL, NULL, "scaler.fast.mean", 0.5f);
    complains(RUN("evaluate", "both"), "both/member_2/best\\.safetensors: has other scales than member 1; .*");
    assert_int_equal(IMPORT("swapped.npz", "fast=body,natr_14,rsi_14"), 0);
    assert_int_equal(RUN("train", "run.yaml", "data.set=swapped.npz", "run.dir=swapped", "-q"), 0);
    assert_int_equal(system("cp swapped/best.safetensors both/member_2/"), 0);
    complains(RUN("predict", "both", "-o", "p.csv"), "both/member_2/best\\.safetensors: columns of fast differ: .*");
    // Neither the mean nor the median hides a member that answers NaN.
    char name[128];
    assert_int_equal(system("mv kept both/member_2/best.safetensors"), 0);
    tensor_named("both/member_2/best.safetensors", "bias", name);
    rewrite("both/member_2/best.safetensors", NULL, NULL, name, NAN);
    assert_int_equal(RUN("predict", "both", "-o", "p.csv"), 1);
    matches("err", "^tradewind: both/member_2/best\\.safetensors: [0-9]+ of [0-9]+ answers are not finite; ");
}

// Data that fit and may not be meant

static void other_clocks_and_instruments_are_told(void **state) {
    (void)state;
    put_trained();
#define GOLD "--features", "fast=body,rsi_14,natr_14", "-q"
    assert_int_equal(RUN("import", "bars.csv", "-o", "mt5.npz", "--tz", "mt5", GOLD), 0);
    assert_int_equal(RUN("import", "bars.csv", "-o", "utc.npz", "--tz", "UTC", GOLD), 0);
    assert_int_equal(RUN("evaluate", "made", "--data", "mt5.npz", "--json"), 0);
    matches("out",
        "\"warnings\": ?\\[\"mt5\\.npz was read with zone mt5, the data of the training with the default zone: ");
    assert_int_equal(RUN("predict", "made", "--data", "mt5.npz", "-o", "p.csv"), 0);
    matches(
        "out", "\nwarning +mt5\\.npz was read with zone mt5, the data of the training with the default zone: unless ");
    assert_int_equal(RUN("evaluate", "made", "--data", "utc.npz"), 0);
    assert_false(file_holds("out", "zone"));
    assert_int_equal(RUN("import", "--symbol", "XAUUSD", "bars.csv", "-o", "xau.npz", GOLD), 0);
    assert_int_equal(RUN("import", "--symbol", "EURUSD", "bars.csv", "-o", "eur.npz", GOLD), 0);
    assert_int_equal(RUN("train", "run.yaml", "data.set=xau.npz", "run.dir=xau", "-q"), 0);
    assert_int_equal(RUN("evaluate", "xau", "--data", "eur.npz"), 0);
    matches("out", "\nwarning +not trained on EURUSD of eur\\.npz, but on XAUUSD\n");
    assert_int_equal(RUN("evaluate", "xau", "--data", "xau.npz"), 0);
    assert_false(file_holds("out", "not trained on"));
#undef GOLD
}

// A model that is told the symbol answers for some of its instruments, as it does for all of them together.
static void some_instruments_are_answered(void **state) {
    (void)state;
#define GOLD "--features", "fast=body,rsi_14,natr_14", "-q"
    put_trained();
    walk_put("other.csv", 1500, 300, 2);
    assert_int_equal(
        RUN("import", "--symbol", "EUR", "bars.csv", "--symbol", "XAU", "other.csv", "-o", "two.npz", GOLD), 0);
    assert_int_equal(RUN("import", "--symbol", "XAU", "other.csv", "-o", "xau.npz", GOLD), 0);
    assert_int_equal(RUN("import", "--symbol", "GBP", "other.csv", "-o", "gbp.npz", GOLD), 0);
    assert_int_equal(RUN("train", "run.yaml", "data.set=two.npz", "model.symbol=true", "run.dir=two", "-q"), 0);
    assert_int_equal(RUN("predict", "two", "--data", "two.npz", "--latest", "1"), 0);
    char *both = slurp("out"), *xau = strstr(both, "XAU ");
    assert_non_null(xau);
    assert_int_equal(RUN("predict", "two", "--data", "xau.npz", "--latest", "1"), 0);
    char *alone = slurp("out"), *at = strstr(alone, "XAU ");
    assert_non_null(at);
    assert_memory_equal(at, xau, strcspn(xau, "\n"));
    free(both);
    free(alone);
    complains(
        RUN("evaluate", "two", "--data", "gbp.npz"), ".*: was trained on EUR,XAU; gbp\\.npz holds GBP; use data .*");
#undef GOLD
}

// A dot parts the keys of a description, so that a symbol with one comes from import.
static void symbols_with_dots_have_a_way(void **state) {
    (void)state;
    put_text("run.yaml", "data: {bars: {XAUUSD.m: {fast: bars.csv}}}\nrun: {dir: made}\n");
    complains(RUN("plan", "run.yaml"), ".*data\\.bars: a key has a dot in it; .*`import --symbol`[)]");
    put_text("run.yaml", "data: {windows: {fast: 3}}\n");
    complains(RUN("plan", "run.yaml", "data.bars.XAU.pro.fast=a.csv"),
        ".*data\\.bars\\.XAU\\.pro: must be text, .*; for symbols with a dot, `import --symbol` and data\\.set");
    walk_put("bars.csv", 1500, 300, 1);
    put_text("run.yaml", "data: {bars: {EUR/USD: {fast: bars.csv}, 'XAU#': {fast: bars.csv}}}\nrun: {dir: made}\n");
    assert_int_equal(RUN("plan", "run.yaml"), 0);
}

// A whole set is not split, so that one sample is enough.
static void few_samples_are_answered(void **state) {
    (void)state;
    put_targets("v.npz", NULL, 400);
    put_text("run.yaml", "data: {set: v.npz, scale: none}\nmodel: {kind: mlp, widths: 8}\n"
                         "train: {epochs: 1, batch_size: 32, loss: mse}\nrun: {dir: made}\n");
    assert_int_equal(RUN("train", "run.yaml", "-q"), 0);
    for (int n = 1; n <= 4; n *= 2) {
        put_targets("few.npz", NULL, n);
        assert_int_equal(RUN("predict", "made", "--data", "few.npz", "-o", "p.csv", "-q"), 0);
        assert_int_equal(RUN("evaluate", "made", "--data", "few.npz", "--json"), 0);
        assert_true(number("samples") == n);
    }
}

// Scores of the training mean are of the training, whatever the data.
static void the_training_mean_is_that_of_training(void **state) {
    (void)state;
    put_targets("v.npz", NULL, 400);
    put_text("run.yaml", "data: {set: v.npz, scale: none}\nmodel: {kind: mlp, widths: 8}\n"
                         "train: {epochs: 1, batch_size: 32, loss: mse}\nrun: {dir: made}\n");
    assert_int_equal(RUN("train", "run.yaml", "-q"), 0);
    rewrite("made/best.safetensors", "target_mean", "1040", NULL, 0);
    put_targets("few.npz", NULL, 100);
    assert_int_equal(RUN("evaluate", "made", "--data", "few.npz"), 0);
    matches("out", "training mean: RMSE (99|100)[0-9]");
    rewrite("made/best.safetensors", "target_mean", "inf", NULL, 0);
    complains(RUN("evaluate", "made"), ".*: target_mean among its metadata cannot be; the file is damaged");
    rewrite("made/best.safetensors", "target_mean", NULL, NULL, 0);
    assert_int_equal(RUN("evaluate", "made"), 0);
}

// Scales

static void other_scales_are_refused(void **state) {
    (void)state;
    put_trained();
    complains(RUN("evaluate", "made", "data.scale=none"),
        "made/best\\.safetensors: was trained with scaler standard, data\\.scale is none; set data\\.scale=standard");
    complains(RUN("predict", "made", "-o", "p.csv", "data.scale=none"), ".*: was trained with scaler standard, .*");
    assert_int_equal(RUN("evaluate", "made", "data.scale=standard"), 0);
    complains(RUN("train", "run.yaml", "--resume", "data.scale=none"), ".*data\\.scale.*");
    assert_int_equal(
        RUN("train", "run.yaml", "data.scale=none", "run.dir=next", "train.init_from=made/best.safetensors"), 0);
    matches("out", "\nwarning +train\\.init_from made/best\\.safetensors: was trained with scaler standard, data");
    complains(RUN("evaluate", "next", "data.scale=standard"), ".*: was trained with scaler none, data\\.scale is .*");
}

// Every instrument on its own scale: data without a symbol have none.
static void own_scales_need_a_symbol(void **state) {
    (void)state;
    put_trained();
    walk_put("other.csv", 1500, 300, 2);
    assert_int_equal(RUN("import", "--symbol", "EUR", "bars.csv", "--symbol", "XAU", "other.csv", "-o", "two.npz",
                         "--features", "fast=body,rsi_14,natr_14", "-q"),
        0);
    assert_int_equal(RUN("train", "run.yaml", "data.set=two.npz", "data.scale=own", "run.dir=two", "-q"), 0);
    assert_int_equal(RUN("evaluate", "two"), 0);
    complains(RUN("evaluate", "two", "--data", "a.npz"), "two/best\\.safetensors: was trained on EUR,XAU, each on its "
                                                         "own scale, and a\\.npz holds one instrument without "
                                                         "a symbol; import it with --symbol NAME");
    complains(RUN("evaluate", "two", "data.scale=standard"), ".*: was trained with scaler own, data\\.scale is .*");
    assert_int_equal(
        RUN("import", "--symbol", "XAU", "other.csv", "-o", "xau.npz", "--features", "fast=body,rsi_14,natr_14", "-q"),
        0);
    assert_int_equal(RUN("evaluate", "two", "--data", "xau.npz"), 0);
}

static void vectors_alone_keep_the_scale_of_targets(void **state) {
    (void)state;
    put_targets("v.npz", NULL, 400);
    put_text("run.yaml", "data: {set: v.npz, scale: standard}\nmodel: {kind: mlp, widths: 8}\n"
                         "train: {epochs: 3, batch_size: 32, loss: mse, metric: rmse}\nrun: {dir: made}\n");
    assert_int_equal(RUN("train", "run.yaml", "--json"), 0);
    double rmse = number("validation_best");
    assert_true(rmse < 10);
    assert_int_equal(RUN("evaluate", "made", "--part", "validation", "--json"), 0);
    assert_float_equal(number("rmse"), rmse, 1e-4 * rmse);
    rewrite("made/best.safetensors", "tradewind.contract", NULL, NULL, 0); // an earlier program's
    assert_int_equal(RUN("evaluate", "made", "--part", "validation", "--json"), 0);
    assert_float_equal(number("rmse"), rmse, 1e-4 * rmse);
}

// Weights name the scale of targets so.
static void no_stream_is_called_target(void **state) {
    (void)state;
    put_targets("t.npz", "x_target", 400);
    complains(RUN("import", "t.npz", "-o", "set.npz"),
        "t\\.npz: \"target\" cannot name a stream; use up to 31 letters, digits, _ and -, and not target");
    assert_int_equal(RUN("import", "t.npz", "-o", "set.npz", "--names", "past=x_target", "-q"), 0);
    walk_put("bars.csv", 1500, 300, 1);
    put_text("run.yaml", "data: {bars: {target: bars.csv}}\nrun: {dir: made}\n");
    complains(RUN("train", "run.yaml"), ".*\"target\" cannot name a stream; .*");
}

#define ENTERED(test) cmocka_unit_test_setup_teardown(test, support_enter, support_leave)

int main(void) {
    program_use(TRADEWIND_BINARY);
    const struct CMUnitTest tests[] = {
        ENTERED(weights_carry_their_contract),
        ENTERED(other_columns_are_refused),
        ENTERED(other_labels_are_refused),
        ENTERED(changed_data_are_named),
        ENTERED(samples_of_training_are_told),
        ENTERED(a_missing_test_is_told),
        ENTERED(runs_on_bars_take_sets),
        ENTERED(shared_labels_are_told),
        ENTERED(answers_must_be_finite),
        ENTERED(inspect_tells_a_damaged_contract),
        ENTERED(shares_are_checked),
        ENTERED(every_member_is_checked),
        ENTERED(other_clocks_and_instruments_are_told),
        ENTERED(some_instruments_are_answered),
        ENTERED(symbols_with_dots_have_a_way),
        ENTERED(few_samples_are_answered),
        ENTERED(the_training_mean_is_that_of_training),
        ENTERED(other_scales_are_refused),
        ENTERED(own_scales_need_a_symbol),
        ENTERED(vectors_alone_keep_the_scale_of_targets),
        ENTERED(no_stream_is_called_target),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
