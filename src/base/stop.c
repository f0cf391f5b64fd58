#include "base/stop.h"

#include <stdatomic.h>

static atomic_bool asked;

bool stop_ask(void) {
    return !atomic_exchange(&asked, true);
}

bool stop_asked(void) {
    return asked;
}

bool stop_go_on(err *e) {
    return !asked || err_run(e, "stopped; nothing was written");
}
