#include "cli/cli.h"
static bool run(const cli_options *o, err *e) {
    (void)o;
    return err_run(e, "soon");
}
const cli_command cli_bench = {"bench", "[CASE...]", "timed cases", 0, run};
