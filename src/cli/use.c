#include "cli/use.h"

#include "base/term.h"
#include "cli/ask.h"

#include <stdlib.h>

bool use_open(trained *t, const cli_options *o, err *e) {
    if (o->words < 1) return err_input(e, "no run given; name its directory");
    const char *latest = cli_given(o, "--latest");
    char *end;
    long long bars = latest ? strtoll(latest, &end, 10) : 0;
    if (latest && (!*latest || *end || bars < 1 || bars > INT32_MAX))
        return err_input(e, "--latest %.40s: must be a number of bars, 1 or more", latest);
    if (latest && cli_given(o, "--part")) return err_input(e, "--part: --latest is a part already; leave one out");
    trained_options ask = {.run = o->word[0],
        .overrides = o->word + 1,
        .override_count = o->words - 1,
        .data = cli_given(o, "--data"),
        .part = cli_given(o, "--test") ? "future" : cli_given(o, "--part"),
        .latest = bars,
        .version = TRADEWIND_VERSION};
    return ask_devices(o, &ask.devices, e) && trained_open(t, &ask, e);
}

const char *use_part_note(const trained *t) {
    return t->no_test ? " (there is no test part; validation chose the best epoch)" : "";
}

void use_warn(const trained *t, FILE *out) {
    char some[32], all[32];
    for (int i = 0; i < t->warnings; i++) fprintf(out, "warning   %s\n", t->warning[i]);
    if (t->trained_on < 1 || t->trained_same) return;
    term_count(some, sizeof some, (double)t->trained_on);
    term_count(all, sizeof all, (double)t->samples.count);
    fprintf(out, "warning   %s of these %s samples lie in the time that the model was trained on (to %s)\n", some, all,
        t->trained_to);
}

void use_add_json(const trained *t, json_t *to) {
    json_t *all = t->warnings ? json_array() : NULL;
    for (int i = 0; i < t->warnings; i++) json_array_append_new(all, json_string(t->warning[i]));
    if (all) json_object_set_new(to, "warnings", all);
    if (t->trained_on >= 0) json_object_set_new(to, "trained_on", json_integer((json_int_t)t->trained_on));
}
