// Training as asked for: a run or an ensemble, begun or gone on with.
#include "run/run.h"
#include "task/fit.h"
#include "task/members.h"

// A run that begins sets the run before it aside, with its directory; no input may lie there.
static bool keeps_inputs(const task *t, err *e) {
    const char *list[TASK_INPUTS_MOST];
    int n = task_inputs(t->config, list);
    for (int i = 0; i < n; i++)
        if (run_moves(t->settings.dir, list[i]))
            return config_fail(t->config, "run.dir", e,
                "%s is an input, and would be set aside with the earlier run that lies there; choose another run.dir",
                list[i]);
    return true;
}

bool task_fit(const task_options *o, err *e) {
    task described;
    task_options as = *o;
    bool stopped = false;
    if (!task_describe_run(&described, o, e)) return false;
    bool several = described.settings.ensemble > 1;
    if (o->resume && !several && run_has_nothing_yet(described.settings.dir) && !members_of(described.settings.dir)) {
        as.resume = false;
        as.restart = true;
    }
    bool ok = as.resume || as.restart || keeps_inputs(&described, e);
    if (ok) ok = several ? fit_ensemble(&as, &described, e) : fit_run(&as, NULL, &stopped, e);
    task_close(&described);
    return ok;
}
