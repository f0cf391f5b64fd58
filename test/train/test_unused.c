// Keys without effect, and the names that people bring: every key of the table has its rule, and rules are true.
#include "train/unused.h"

#include "support.h"
#include "train/names.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void every_key_has_a_rule(void **state) {
    (void)state;
    for (size_t i = 0; i < settings_key_count(); i++) {
        char path[160];
        snprintf(path, sizeof path, "%s", settings_keys()[i].path);
        char *star = strchr(path, '*');
        if (star) memcpy(star, "x", 2);
        if (!unused_knows(path)) fail_msg("%s: train/unused.c has no rule for it", path);
    }
    assert_false(unused_knows("no.such.key"));
}

static void names_are_of_keys(void **state) {
    (void)state;
    size_t count;
    const config_name *names = names_all(&count);
    for (size_t i = 0; i < count; i++) {
        if (config_row(settings_keys(), settings_key_count(), names[i].name))
            fail_msg("%s: is a key itself", names[i].name);
        if (names[i].key && !config_row(settings_keys(), settings_key_count(), names[i].key))
            fail_msg("%s: %s is no key", names[i].name, names[i].key);
        assert_true(!names[i].key == !!names[i].why && !(names[i].key && names[i].refused));
        for (size_t k = 0; k < i; k++) assert_string_not_equal(names[i].name, names[k].name);
    }
}

// Models

// True where some value of a key changes the description of a model, which has all that its graph depends on.
static bool changes_model(const char *kind, const char *path) {
    static const char *const values[] = {"0", "1", "2", "16", "0.5", "true", "gelu", "last", "16-8", "generic,trend"};
    const model_data d = {.streams = 1, .stream = {"x"}, .series = true, .classes = 3, .quantiles = 1};
    char usual[512], other[512], base[64];
    snprintf(base, sizeof base, "model.kind=%s", kind);
    model_spec was = support_model(base, &d);
    model_describe(&was, usual, sizeof usual);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        char change[160];
        err e;
        model_spec is;
        config *c = config_read("test", "", 0, settings_keys(), settings_key_count(), &e);
        snprintf(change, sizeof change, "%s=%s", path, values[i]);
        bool ok = config_override(c, base, &e) && config_override(c, change, &e) && config_check(c, &e) &&
                  model_read(c, &d, &is, &e);
        if (ok) model_describe(&is, other, sizeof other);
        config_free(c);
        if (ok && strcmp(usual, other) != 0) return true;
    }
    return false;
}

static void models_read_the_keys_that_they_name(void **state) {
    (void)state;
    for (size_t i = 0; i < settings_key_count(); i++) {
        char path[160];
        snprintf(path, sizeof path, "%s", settings_keys()[i].path);
        if (strncmp(path, "model.", 6) != 0 || strcmp(path, "model.kind") == 0) continue;
        char *star = strchr(path, '*');
        if (star) memcpy(star, "x", 2);
        for (int k = 0; k < MODEL_COUNT; k++) {
            bool reads = model_reads((model_kind)k, path), changes = changes_model(model_name((model_kind)k), path);
            if (reads != changes)
                fail_msg("%s: %s, but %s", path, reads ? "is read" : "is not read", changes ? "matters" : "does not");
        }
    }
}

// Telling

typedef struct {
    char text[2048];
} told;

static void on_unused(void *arg, const char *path, const char *why) {
    told *t = arg;
    size_t used = strlen(t->text);
    snprintf(t->text + used, sizeof t->text - used, "%s: %s\n", path, why);
}

// Lines about a description; on the synthetic market, unless it names a file or bars, whose rows look the same here.
static const char *lines_of(const char *text, bool complete, bool trained) {
    static told t;
    err e = {0};
    settings s;
    model_spec m;
    dataset *d = synthetic_new(&(synthetic_options){.bars = 2000, .seed = 7, .strength = 1}, &e);
    config *c = config_read("test", text, strlen(text), settings_keys(), settings_key_count(), &e);
    support_ok(d && c && config_check(c, &e) && settings_read(c, &s, &e) && settings_model(c, d, &m, &e), &e);
    t.text[0] = 0;
    unused_each(
        &(unused_about){.config = c, .settings = &s, .data = d, .model = &m, .complete = complete, .trained = trained},
        on_unused, &t);
    config_free(c);
    dataset_free(d);
    return t.text;
}

static const char *lines(const char *text, bool complete) {
    return lines_of(text, complete, false);
}

// Keys of the training alone; the loss is told by evaluate, too.
static void keys_of_training_have_no_effect_on_weights(void **state) {
    (void)state;
    static const char text[] = "train: {epochs: 2, optimizer: {lr: 0.1}, class_weights: balanced}\n"
                               "run: {dir: a}\ndata: {windows: {fast: 9}}\n";
    assert_string_equal(lines_of(text, false, false), "");
    assert_string_equal(lines_of(text, false, true),
        "train.epochs: is of training, and these weights are trained\n"
        "train.optimizer.lr: is of training, and these weights are trained\n"
        "run.dir: is of training, and these weights are trained\n");
}

static void keys_without_effect_are_told(void **state) {
    (void)state;
    assert_string_equal(lines("train: {epochs: 2}\nmodel: {hidden: {fast: 3}, layers: 2}\n", false), "");
    assert_string_equal(lines("model: {widths: 16-8, heads: 4, hidden: {slower: 3}}\n", false),
        "model.widths: model.kind lstm does not read it\nmodel.heads: model.kind lstm does not read it\n"
        "model.hidden.slower: the data has no such stream\n");
    assert_string_equal(
        lines("model: {kind: mlp, hidden: 64}\n", false), "model.hidden: model.kind mlp does not read it\n");
    assert_string_equal(lines("data: {set: a.npz, label: {band: 1}, tz: mt5, synthetic: {seed: 3}}\n", false),
        "data.label.band: a.npz has its labels already; import makes others\n"
        "data.tz: is of data.bars, and a.npz is a finished set; import makes another\n"
        "data.synthetic.seed: the data are not the synthetic market\n");
    assert_string_equal(lines("data: {bars: {fast: a.csv}, label: {kind: barrier, band: 1, up: 3}}\n", false),
        "data.label.band: labels of data.label.kind barrier do not read it\n");
    assert_string_equal(lines("data: {bars: {fast: a.csv}, label: {strong: 3}, frames: [1h]}\n", false),
        "data.label.strong: is of data.label.classes 5\n");
    assert_string_equal(
        lines("train: {season: 24, focal_gamma: 3, optimizer: {kind: adam, momentum: 0.5, beta1: 0.8}}\n", false),
        "train.season: the data are not series to be forecast\ntrain.focal_gamma: the loss cross_entropy does not "
        "read it\ntrain.optimizer.momentum: train.optimizer.kind adam does not read it\n");
    assert_string_equal(lines("train: {schedule: {kind: cosine, gamma: 0.5, end: 0.1, start: 0.2}}\n", false),
        "train.schedule.gamma: train.schedule.kind cosine does not read it\n"
        "train.schedule.start: there is no train.schedule.warmup\n");
    assert_string_equal(lines("gpu_optimization: {fp16_fallback: false, products: own, use_mixed_precision: true}\n"
                              "data: {num_workers: 2}\n",
                            false),
        "gpu_optimization.fp16_fallback: is of a card, and the CPU computes\n"
        "gpu_optimization.products: is of a card, and the CPU computes\n"
        "gpu_optimization.use_mixed_precision: the CPU computes in fp32\n"
        "data.num_workers: no threads gather batches: the data lie on the device\n");
}

// config.yaml of a run has every key: those with their usual values are not the user's.
static void usual_values_of_a_completed_description_are_not_told(void **state) {
    (void)state;
    assert_string_equal(lines("model: {widths: 512-256, stacks: [generic], degree: 5}\n", true),
        "model.degree: model.kind lstm does not read it\n");
    assert_non_null(strstr(lines("model: {widths: 512-256}\n", false), "model.widths"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_key_has_a_rule),
        cmocka_unit_test(names_are_of_keys),
        cmocka_unit_test(models_read_the_keys_that_they_name),
        cmocka_unit_test(keys_of_training_have_no_effect_on_weights),
        cmocka_unit_test(keys_without_effect_are_told),
        cmocka_unit_test(usual_values_of_a_completed_description_are_not_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
