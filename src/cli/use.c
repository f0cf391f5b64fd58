#include "cli/use.h"

#include "base/term.h"
#include "cli/ask.h"
#include "cli/show.h"

#include <stdlib.h>
#include <string.h>

// A run's description is named for its directory at times.
static bool is_run(const char *word, err *e) {
    char *dir = task_run_described(&(task_description){.file = word});
    if (dir) err_input(e, "%s: is the description of a run; name its directory, %s", word, dir);
    bool ok = !dir;
    free(dir);
    return ok;
}

// Beside JSON on stderr.
static FILE *notes_to(const cli_options *o) {
    return o->json ? stderr : stdout;
}

static bool on_event(void *arg, const task_event *e) {
    const cli_options *o = arg;
    if (e->kind == TASK_CHECK && !o->quiet) fprintf(notes_to(o), "check     %s\n", e->line);
    return true;
}

bool use_latest(const cli_options *o, int64_t *bars, err *e) {
    const char *latest = cli_given(o, "--latest");
    char *end;
    *bars = latest ? strtoll(latest, &end, 10) : 0;
    if (latest && (!*latest || *end || *bars < 1 || *bars > INT32_MAX))
        return err_input(e, "--latest %.40s: must be a number of bars, 1 or more", latest);
    return !latest || !cli_given(o, "--part") || err_input(e, "--part: --latest is a part already; leave one out");
}

bool use_open(trained *t, const cli_options *o, err *e) {
    int64_t bars;
    if (o->words < 1) return err_input(e, "no run given; name its directory");
    if (!use_latest(o, &bars, e)) return false;
    trained_options ask = {.run = o->word[0],
        .overrides = o->word + 1,
        .override_count = o->words - 1,
        .data = cli_given(o, "--data"),
        .part = cli_given(o, "--test")         ? "future"
                : cli_given(o, "--importance") ? "validation"
                                               : cli_given(o, "--part"),
        .latest = bars,
        .version = TRADEWIND_VERSION,
        .listener = {on_event, (void *)(uintptr_t)o}};
    return is_run(o->word[0], e) && ask_devices(o, &ask.devices, e) && trained_open(t, &ask, e);
}

typedef struct {
    const task_description *given;
    const config *config;
    FILE *out;
} teller;

// True for an override, by this name of the key or another one.
static bool is_given(const teller *to, const char *key) {
    bool is = task_key_given(to->given, key);
    for (size_t i = 0; i < config_notes(to->config) && !is; i++) {
        const config_note *n = config_note_at(to->config, i);
        is = n->key && strcmp(n->key, key) == 0 && task_key_given(to->given, n->name);
    }
    return is;
}

static void tell_key(void *arg, const told_key *k) {
    const teller *to = arg;
    if (is_given(to, k->key)) show_key(k, to->out);
}

// Overrides in sections that other commands read; the list of these ends with NULL.
static void tell_sections(const teller *to, const char *command, const char *const *unread) {
    char why[64], key[128];
    snprintf(why, sizeof why, "%s does not read it", command);
    for (int i = 0; i < to->given->override_count; i++) {
        const char *word = to->given->overrides[i];
        snprintf(key, sizeof key, "%.*s", (int)strcspn(word, "="), word);
        for (const char *const *each = unread; *each; each++)
            if (strncmp(word, *each, strlen(*each)) == 0) show_key(&(told_key){key, why, true}, to->out);
    }
}

void use_tell(const trained *t, const cli_options *o, const char *command, const char *const *unread) {
    teller to = {&t->task.options.description, t->task.config, notes_to(o)};
    if (o->quiet) return;
    task_each_key(&t->task, tell_key, &to);
    tell_sections(&to, command, unread);
    if (o->verbose) show_unchecked(&t->task, to.out);
}

void use_tell_agent(const agent_task *t, const cli_options *o) {
    teller to = {&t->options.description, t->config, notes_to(o)};
    if (!o->quiet) agent_task_each_key(t, tell_key, &to);
}

const char *use_part_note(const trained *t) {
    return t->no_test ? " (there is no test part; validation chose the best epoch)" : "";
}

void use_warn(const data_notes *n, int64_t samples, FILE *out) {
    char some[32], all[32];
    for (int i = 0; i < n->warnings; i++) fprintf(out, "warning   %s\n", n->warning[i]);
    if (n->trained_on < 1 || n->trained_same) return;
    term_count(some, sizeof some, (double)n->trained_on);
    term_count(all, sizeof all, (double)samples);
    fprintf(out, "warning   %s of these %s samples lie in the time that the model was trained on (to %s)\n", some, all,
        n->trained_to);
}

void use_add_json(const data_notes *n, json_t *to) {
    json_t *all = n->warnings ? json_array() : NULL;
    for (int i = 0; i < n->warnings; i++) json_array_append_new(all, json_string(n->warning[i]));
    if (all) json_object_set_new(to, "warnings", all);
    if (n->trained_on >= 0) json_object_set_new(to, "trained_on", json_integer((json_int_t)n->trained_on));
}
