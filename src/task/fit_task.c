// Training as asked for: a run or an ensemble, begun or gone on with.
#include "run/checkpoint.h"
#include "run/run.h"
#include "task/fit.h"
#include "task/members.h"

#include <stdio.h>
#include <stdlib.h>

// A run that begins moves files of the run before it away; none of them may be its input.
static bool keeps_inputs(const task *t, err *e) {
    const char *list[TASK_INPUTS_MOST];
    int n = task_inputs(t->config, list);
    for (int i = 0; i < n; i++)
        if (run_replaces(t->settings.dir, list[i]))
            return config_fail(t->config, "run.dir", e,
                "%s is an input, and the run that begins here would replace it; choose another run.dir", list[i]);
    return true;
}

// True where a run that was killed before its first checkpoint is to go on: it begins anew. What an even earlier run
// has left is not passed over.
static bool has_nothing_yet(const char *dir) {
    char *earlier = run_path(dir, "earlier");
    bool none = run_is(dir) && !members_of(dir) && !checkpoint_any(dir) && !checkpoint_any(earlier);
    free(earlier);
    return none;
}

static void tell_anew(const task_options *o, const char *dir) {
    char line[700];
    snprintf(line, sizeof line, "%.500s has no checkpoint yet: the run begins anew", dir);
    task_tell(&o->listener, &(task_event){.kind = TASK_RESUME, .line = line});
}

bool task_fit(const task_options *o, err *e) {
    task described;
    task_options as = *o;
    bool stopped = false;
    if (!task_describe_run(&described, o, e)) return false;
    bool several = described.settings.ensemble > 1;
    if (o->resume && !several && has_nothing_yet(described.settings.dir)) {
        as.resume = false;
        tell_anew(o, described.settings.dir);
    }
    bool ok = as.resume || keeps_inputs(&described, e);
    if (ok) ok = several ? fit_ensemble(&as, &described, e) : fit_run(&as, NULL, &stopped, e);
    task_close(&described);
    return ok;
}
