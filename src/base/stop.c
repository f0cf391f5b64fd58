#include "base/stop.h"

#include <signal.h>

static volatile sig_atomic_t asked;

void stop_ask(void) {
    asked = 1;
}

bool stop_asked(void) {
    return asked;
}

bool stop_go_on(err *e) {
    return !asked || err_run(e, "stopped; nothing was written");
}
