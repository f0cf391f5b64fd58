#include "cli/use.h"

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
