// The marks of the table of keys: every row has one of each pair, and what they say of tuning is what the key of a
// tuning shows.
#include "support.h"
#include "train/settings.h"
#include "train/wisdom.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static bool is_one_of(unsigned marks, unsigned a, unsigned b) {
    return (marks & (a | b)) == a || (marks & (a | b)) == b;
}

static void every_row_is_marked(void **state) {
    (void)state;
    for (size_t i = 0; i < settings_key_count(); i++) {
        const config_key *k = &settings_keys()[i];
        bool whole = is_one_of(k->marks, KEY_FIXED, KEY_FREE) && is_one_of(k->marks, KEY_TUNED, KEY_UNTUNED);
        if (!whole) fail_msg("%s has not one of each pair of marks", k->path);
    }
    assert_true(settings_may_change("train.epochs"));
    assert_false(settings_may_change("train.seed"));
    assert_false(settings_may_change("model.hidden.fast"));
    assert_false(settings_may_change("no.such.key"));
}

// The market of a description, made once where it is the usual one.
static const dataset *market(const settings *s) {
    static dataset *usual, *other;
    err e;
    bool is_usual = s->synthetic.bars == 2000 && s->synthetic.seed == 7 && s->synthetic.strength == 1.5;
    if (!usual) usual = synthetic_new(&(synthetic_options){.bars = 2000, .seed = 7, .strength = 1.5}, &e);
    if (is_usual) return usual;
    dataset_free(other);
    return other = synthetic_new(&s->synthetic, &e);
}

// The key of a tuning of the synthetic market under two assignments; false where no run can be so.
static bool key_of(const char *base, const char *change, wisdom_key *k) {
    static const char start[] = "data: {synthetic: {bars: 2000}}\n";
    err e;
    settings s;
    model_spec m;
    split parts;
    int64_t window[STREAMS_MOST];
    static const device_identity card = {.name = "cuda", .card = "A"};
    config *c = config_read("test", start, sizeof start - 1, settings_keys(), settings_key_count(), &e);
    bool ok = c && config_override(c, base, &e) && (!change[0] || config_override(c, change, &e));
    ok = ok && config_check(c, &e) && settings_read(c, &s, &e) && strcmp(s.set, "synthetic") == 0;
    const dataset *d = ok && s.synthetic.bars < 100000 ? market(&s) : NULL;
    ok = d && settings_windows(c, d, window, &e) && settings_model(c, d, &m, &e) &&
         split_make(d, window, &s.split, &parts, &e) && parts.train.count > 0;
    if (ok)
        wisdom_key_make(k, &(wisdom_about){.version = "1",
                               .device = &card,
                               .card = true,
                               .described = &s,
                               .model = &m,
                               .data = d,
                               .split = &parts,
                               .window = window});
    config_free(c);
    return ok;
}

static bool same_key(const wisdom_key *a, const wisdom_key *b) {
    bool same = a->fields == b->fields;
    for (int i = 0; same && i < a->fields; i++) same = strcmp(a->field[i].value, b->field[i].value) == 0;
    return same;
}

static const char *const bases[] = {"model.kind=lstm", "model.kind=mlp", "model.kind=transformer", "model.kind=nbeats"};
enum { BASES = sizeof bases / sizeof *bases };

// True where a value of a key changes the key of a tuning, in any kind of model.
static bool shows(const config_key *row, const char *value) {
    static wisdom_key usual[BASES], other;
    static bool made;
    char change[320];
    size_t n = strlen(row->path);
    bool wild = row->path[n - 1] == '*', shown = false;
    for (int i = 0; !made && i < BASES; i++) assert_true(key_of(bases[i], "", &usual[i]));
    made = true;
    snprintf(change, sizeof change, "%.*s%s=%s", (int)(wild ? n - 1 : n), row->path, wild ? "fast" : "", value);
    for (int i = 0; !shown && i < BASES; i++) shown = key_of(bases[i], change, &other) && !same_key(&usual[i], &other);
    return shown;
}

// True where one of a row's words does, or a number or text that many keys take; what does not fit is passed over.
static bool any_shows(const config_key *row) {
    static const char *const values[] = {
        "0", "1", "2", "0.5", "3", "16", "1500", "true", "false", "off", "generic,generic", "16-8", "elsewhere"};
    char words[256];
    bool shown = false;
    snprintf(words, sizeof words, "%s", row->choices ? row->choices : "");
    char *rest = NULL;
    for (char *word = strtok_r(words, "|", &rest); word && !shown; word = strtok_r(NULL, "|", &rest))
        shown = shows(row, word);
    for (size_t i = 0; !shown && i < sizeof values / sizeof *values; i++) shown = shows(row, values[i]);
    return shown;
}

// Keys that change data which the synthetic market is not: files, features, labels and targets.
static bool needs_other_data(const char *path) {
    static const char *const of[] = {"data.set", "data.bars.*", "data.bars.*.*", "data.frames", "data.features.*",
        "data.vector", "data.types", "data.label.kind", "data.label.horizon", "data.label.classes", "data.label.value",
        "data.level", "train.quantiles", "model.symbol"};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        if (strcmp(path, of[i]) == 0) return true;
    return false;
}

static void marks_of_tuning_are_true(void **state) {
    (void)state;
    for (size_t i = 0; i < settings_key_count(); i++) {
        const config_key *k = &settings_keys()[i];
        bool tuned = k->marks & KEY_TUNED, shown = any_shows(k);
        if (shown && !tuned) fail_msg("%s changes the key of a tuning, but is marked KEY_UNTUNED", k->path);
        if (!shown && tuned && !needs_other_data(k->path))
            fail_msg("%s is marked KEY_TUNED, but changes no key of a tuning", k->path);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_is_marked),
        cmocka_unit_test(marks_of_tuning_are_true),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
