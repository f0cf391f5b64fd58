// Training as asked for: a run or an ensemble, begun or gone on with.
#include "run/run.h"
#include "task/agent_fit.h"
#include "task/fit.h"
#include "task/members.h"
#include "task/walk.h"
#include "train/agent_keys.h"

#include <stdlib.h>

// A run that begins sets the run before it aside, with its directory; neither its inputs nor its description may lie
// there, but for the description that the earlier run itself wrote.
static bool keeps_inputs(const task *t, err *e) {
    const char *list[TASK_INPUTS_MOST + 1];
    const task_description *d = &t->options.description;
    int n = task_inputs(t->config, list);
    char *own = task_run_described(d);
    if (!own && !d->text) list[n++] = d->file;
    free(own);
    for (int i = 0; i < n; i++)
        if (run_moves(t->settings.dir, list[i]))
            return config_fail(t->config, "run.dir", e,
                "%s is an input, and would be set aside with the earlier run that lies there; choose another run.dir",
                list[i]);
    return true;
}

static void note_fold(void *arg, const char *dir) {
    (void)dir;
    *(bool *)arg = true;
}

// False where a walk lies in the directory that a run is to go on in.
static bool is_no_walk(const char *dir, err *e) {
    bool walk = false;
    if (!run_each_fold(dir, note_fold, &walk, e)) return false;
    return !walk || err_input(e, "%s: holds a walk; go on with `tradewind walk %s/config.yaml --resume`", dir, dir);
}

bool fit_can_go_on(const char *dir) {
    err unused;
    int members;
    bool saved =
        !members_of(dir, &members, &unused) || members || run_has_no_checkpoint(dir) || members_begun(dir, &unused);
    return saved && (run_is(dir) || run_was_in(dir));
}

bool fit_stays(const task_options *o, const char *dir) {
    return o->resume || (o->restart && (o->repeats || !run_has_weights(dir)));
}

bool fit_prepare(fit_orders *f, const task_options *o, err *e) {
    task *described = &f->described;
    task_options *as = &f->options;
    *as = *o;
    if (!task_describe_run(described, o, e)) return false;
    bool several = described->settings.ensemble > 1;
    const char *dir = described->settings.dir;
    int members = 0;
    if (o->resume && !several && !members_of(dir, &members, e)) {
        task_close(described);
        return false;
    }
    // An ensemble that was killed before it had a description goes on from its beginning, as a run without checkpoints.
    bool bare = several ? !run_is(dir) && run_was_in(dir) : !members && run_has_no_checkpoint(dir);
    if (o->resume && bare) {
        as->resume = false;
        as->restart = true;
    }
    bool stays = fit_stays(as, dir), ok = stays || keeps_inputs(described, e);
    if (ok && stays) ok = is_no_walk(dir, e);
    if (members) ok = err_input(e, "%s: holds an ensemble of %d; set train.ensemble=%d", dir, members, members);
    if (!ok) task_close(described);
    return ok;
}

bool task_fit(const task_options *o, err *e) {
    fit_orders f;
    bool stopped = false;
    if (!fit_prepare(&f, o, e)) return false;
    bool agent = agent_given(f.described.config), several = f.described.settings.ensemble > 1, ok = true;
    if (!several) ok = (agent ? agent_fit : fit_run)(&f.options, NULL, &stopped, e);
    task_close(&f.described);
    return several ? fit_ensemble(o, e) : ok;
}
