// Training: one run, of a model or an agent, or an ensemble whose members are runs one after another.
#ifndef TRADEWIND_TASK_FIT_H
#define TRADEWIND_TASK_FIT_H

#include "task/open.h"

// Trains what the description asks for, or goes on with it (`resume`), and leaves everything in run.dir; events say how
// it goes. False where it fails: a run says what it leaves behind.
bool task_fit(const task_options *o, err *e);

// True where a directory holds a run or an ensemble that can go on, be it from its beginning. One of several, such as a
// fold, begins anew where it cannot.
bool fit_can_go_on(const char *dir);

// True where a run goes on in its directory, be it from its beginning; otherwise what is there is set aside.
bool fit_stays(const task_options *o, const char *dir);

// A member of an ensemble, of which a run is one.
typedef struct {
    const char *dir;    // of the ensemble
    int number, of;     // from 1
    const chosen *plan; // of all members
} fit_member;

// True where a run computes as the other members of its ensemble do (NULL: it is none's), after what has happened to
// the machine since; ERR_RUN otherwise.
bool fit_is_alike(const fit_member *member, const chosen *plan, err *e);

// One run, of an ensemble or (NULL) by itself. `stopped`: it was asked to stop and did.
bool fit_run(const task_options *o, const fit_member *member, bool *stopped, err *e);

// Takes the weights of train.init_from. ERR_INPUT where their contract names other columns or classes; other
// differences go to `unlike`, where that is wanted, as a line that the caller frees.
bool fit_begin_from(const task *t, trainer *tr, const contract *is, char **unlike, err *e);

// Sets the metric by which an epoch is best; NULL where train.metric does not fit the data.
const metric *fit_judge_by(const task *t, trainer *tr, err *e);

// All members, one after another.
bool fit_ensemble(const task_options *o, err *e);

// An ensemble whose members the caller trains, some of them at once if he likes: they share its directory, its plan and
// nothing else, so that each has the bits that it has alone.
typedef struct fit_members fit_members;

// Plans the ensemble, and begins its directory or goes on with it. `o` and its listener must outlive it. NULL on
// failure.
fit_members *fit_members_open(const task_options *o, err *e);
int fit_members_count(const fit_members *m);

// Trains a member, from 1, or goes on with it, or passes it over where that has been done. Different members may be
// trained by several threads; each tells its own listener.
bool fit_members_train(const fit_members *m, int number, const task_listener *listener, bool *stopped, err *e);

// Says in run.db how the ensemble has ended: `stopped` before all were trained, or with the reason of a failure
// (NULL: none). `m` may be NULL.
void fit_members_close(fit_members *m, bool stopped, const err *why);

// A description, and options that fit what lies in its directory; ERR_INPUT where they do not go together. The
// description is to be closed.
typedef struct {
    task described;
    task_options options;
} fit_orders;

bool fit_prepare(fit_orders *f, const task_options *o, err *e);

// False where a batch is so far beyond the training samples that most of its memory is never filled: ERR_INPUT. A run
// that goes on keeps its own.
bool fit_batch_suits(const task *t, err *e);

#endif
