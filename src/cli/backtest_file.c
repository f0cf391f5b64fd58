#include "cli/backtest_file.h"

#include "base/file.h"
#include "env/account_terms.h"
#include "train/signal_keys.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const config_key own_keys[] = {
    {"run", CONFIG_TEXT, NULL, 0, 0, NULL, "directory of a trained run", KEY_PATH},
    {"signals", CONFIG_TEXT, NULL, 0, 0, NULL, "file of signals, in place of a run", KEY_PATH},
    {"bars", CONFIG_TEXT, NULL, 0, 0, NULL, "file of bars", KEY_PATH},
    {"part", CONFIG_CHOICE, NULL, 0, 0, "train|validation|test|all", "of the run's samples", 0},
    {"symbol", CONFIG_TEXT, NULL, 0, 0, NULL, "of a run with several instruments", 0},
    {"trades", CONFIG_TEXT, NULL, 0, 0, NULL, "file that the trades are written to", KEY_PATH},
};

enum { KEYS_MOST = 64 };

static struct {
    config_key key[KEYS_MOST];
    size_t count, shared; // the first ones are shared with descriptions of runs
} all;

static void join(const config_key *keys, size_t count) {
    CHECK(all.count + count <= KEYS_MOST, "more than %d keys", KEYS_MOST);
    for (size_t i = 0; i < count; i++) all.key[all.count++] = keys[i];
}

static void join_all(void) {
    size_t count;
    const config_key *keys = account_keys(&count);
    join(keys, count);
    keys = signal_keys(&count);
    join(keys, count);
    keys = report_keys(&count);
    join(keys, count);
    all.shared = all.count;
    join(own_keys, sizeof own_keys / sizeof *own_keys);
}

static const config_key *table(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, join_all);
    return all.key;
}

void backtest_file_help(void) {
    const config_key *keys = table();
    config_help(keys, all.shared, stdout);
}

static bool add_word(backtest_file *f, const char *word, err *e) {
    if (f->words == BACKTEST_WORDS_MOST) return err_input(e, "more than %d keys; give fewer", BACKTEST_WORDS_MOST);
    f->word[f->words++] = word;
    return true;
}

static char *input(const config *c, const char *key) {
    const char *path = config_text(c, key);
    return path ? file_of_data(path) : NULL;
}

static char *copied(const char *text) {
    char *copy = text ? strdup(text) : NULL;
    NEED(copy || !text, "out of memory for a path");
    return copy;
}

// The word that stands in place of a number; NULL where there is a number.
static const char *word_of(const config *c, const config_key *row, const char *path) {
    static const char *const words[] = {"auto", "none"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (row->choices && strstr(row->choices, words[i]) && config_is(c, path, words[i])) return words[i];
    return NULL;
}

static void value_text(const config *c, const config_key *row, const char *path, char *text, size_t room) {
    const char *word = row->type == CONFIG_INT || row->type == CONFIG_REAL ? word_of(c, row, path) : NULL;
    if (word)
        snprintf(text, room, "%s", word);
    else if (row->type == CONFIG_BOOL)
        snprintf(text, room, "%s", config_bool(c, path) ? "true" : "false");
    else if (row->type == CONFIG_INT)
        snprintf(text, room, "%lld", (long long)config_int(c, path));
    else if (row->type == CONFIG_REAL)
        snprintf(text, room, "%.17g", config_real(c, path));
    else
        snprintf(text, room, "%s", config_text(c, path));
}

// Values of the keys that are shared with descriptions of runs, as words.
static void take_key(void *arg, const char *path) {
    backtest_file *f = arg;
    const config_key *row = config_row(all.key, all.shared, path);
    char value[128];
    if (!row || f->owned == BACKTEST_WORDS_MOST) return;
    value_text(f->config, row, path, value, sizeof value);
    NEED(asprintf(&f->own[f->owned], "%s=%s", path, value) >= 0, "out of memory for a key");
    f->word[f->words++] = f->own[f->owned++];
}

static bool take_file(backtest_file *f, const char *path, err *e) {
    const config_key *keys = table();
    f->config = config_load(path, keys, all.count, e);
    if (!f->config || !config_check(f->config, e)) return false;
    f->run = copied(config_text(f->config, "run"));
    f->signals = input(f->config, "signals");
    f->bars = input(f->config, "bars");
    f->part = config_text(f->config, "part");
    f->symbol = config_text(f->config, "symbol");
    f->trades = config_text(f->config, "trades");
    config_each(f->config, take_key, f);
    return true;
}

bool backtest_file_read(backtest_file *f, const char *path, const char *const *words, int count, err *e) {
    *f = (backtest_file){0};
    bool ok = !path || take_file(f, path, e);
    for (int i = 0; ok && i < count; i++) ok = add_word(f, words[i], e);
    return ok;
}

void backtest_file_done(backtest_file *f) {
    for (int i = 0; i < f->owned; i++) free(f->own[i]);
    free(f->signals);
    free(f->bars);
    free(f->run);
    config_free(f->config);
    *f = (backtest_file){0};
}
