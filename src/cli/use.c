#include "cli/use.h"

#include "cli/ask.h"

bool use_open(trained *t, const cli_options *o, err *e) {
    if (o->words < 1) return err_input(e, "no run given; name its directory");
    trained_options ask = {.run = o->word[0],
        .overrides = o->word + 1,
        .override_count = o->words - 1,
        .data = cli_given(o, "--data"),
        .part = cli_given(o, "--test") ? "future" : cli_given(o, "--part"),
        .version = TRADEWIND_VERSION};
    return ask_devices(o, &ask.devices, e) && trained_open(t, &ask, e);
}
