// Events: everything that a task tells while it is carried out.
//
// They are delivered by the thread that called the task, one at a time, in an order that does not depend on timing but
// for steps, samples of the monitor and checkpoints by the clock. What an event points to lives as long as the call.
#ifndef TRADEWIND_TASK_EVENT_H
#define TRADEWIND_TASK_EVENT_H

#include "data/scheme.h"
#include "data/sources.h"
#include "rl/agent.h"
#include "run/db.h"
#include "train/skill.h"
#include "train/trainer.h"
#include "train/tune.h"

struct task;
struct agent_task;

typedef enum {
    TASK_BARS,           // bar files were read
    TASK_CHECK,          // a set is read against its sums, and that takes a while: `line`
    TASK_ENSEMBLE_BEGIN, // before the first member
    TASK_MEMBER,         // the next member of an ensemble begins, or is passed over
    TASK_RESUME,         // something about the checkpoint that a run goes on from: `line`
    TASK_BEGIN,          // all is ready for the first step
    TASK_KEYS,           // keys are to be told (task/keys.h), once for a run or an ensemble
    TASK_STEP,           // returning false asks the run to stop behind a checkpoint
    TASK_EPOCH,
    TASK_PRECISION, // a precision gave way to another
    TASK_WARNING,   // from the monitor, or about weights to begin from, classes, or the place of a run: `line`
    TASK_CHECKPOINT,
    TASK_DONE,          // a run has ended or was stopped, and has not failed
    TASK_ENSEMBLE_DONE, // all members have, or one was stopped
    TASK_MODEL,         // the next of several models begins, or is passed over; returning false asks for a stop
    TASK_MODELS_DONE,   // all of them have been trained and tested, or one was stopped
    TASK_LOST,          // some records of a run could not be written: `line`. The run itself is whole
    TASK_TUNING,        // returning false stops
    TASK_WALK_BEGIN,    // folds are made and planned; the task is the first one's, where they are models
    TASK_WALK_EARLIER,  // the walk that was in the directory has another name now
    TASK_WALK_STEP,     // some of all folds is done; returning false asks for a stop
    TASK_FOLD,          // a fold has ended, in their order; where it failed `line` is the reason
    TASK_WALK_TEST,     // the test of a fold begins; returning false asks for a stop
    TASK_WALK_STOPPED,  // as was asked for
    TASK_WALK_DONE,     // all folds were tested
    TASK_AGENT_BEGIN,   // an agent is ready for its first iteration; keys are to be told
    TASK_ACTING,        // some of an agent's long iteration is done; returning false gives it up and stops the run
    TASK_ITERATION,     // of an agent; returning false asks the run to stop behind a checkpoint
    TASK_AGENT_DONE,    // an agent's run has ended or was stopped, and has not failed
} task_event_kind;

typedef struct {
    const char *dir;
    const char *earlier; // where the earlier run of the directory is now, or NULL
    int number, of;
    uint64_t seed;
    bool already; // the member is passed over, as it is trained
    bool stopped;
} task_member_event;

typedef struct {
    const plan *plan;           // of a step's memory
    const graph *graph;         // that it is of
    const char *card;           // memory that a card counts, in a line; NULL on the CPU
    const char *earlier;        // where the earlier run of the directory is now, or NULL
    const char *dir;            // of the run
    double all_samples;         // of all epochs
    const skill_table *trivial; // scores of trivial answers on the validation samples; `line` tells them
} task_begin_event;

typedef struct {
    int64_t epoch, done, total; // samples of the epoch
} task_step_event;

typedef struct {
    const char *path;
    uint64_t update; // steps taken
} task_checkpoint_event;

typedef struct {
    const train_result *result;
    const char *weights;   // path of the best ones
    const char *resume_in; // directory whose config.yaml goes on: the run's, or its ensemble's
    const metric *metric;  // by which an epoch is best
    double best_possible;  // MCC of the best possible classifier; NaN: not known
    double ready, begun;   // when all was ready and when the first step was done, as clock_seconds has it; 0: no step
    bool epochs_fixed;     // a larger train.epochs would not go on
    size_t slab;           // bytes
    db_gauges seen;        // by the monitor
    const char *monitor;   // the same as a line; NULL: no samples
} task_done_event;

typedef struct {
    const struct agent_task *agent; // the first one's; NULL: folds are models
    const scheme_folds *folds;
    int works;   // that this process trains
    int seeds;   // of each fold
    int jobs;    // runs at once
    int threads; // of each
} task_walk_event;

typedef struct {
    int64_t number;
    const char *dir;
    const train_result *result; // NULL where it failed; of an agent epochs are its iterations
    const metric *metric;       // by which an epoch is best; NULL: an iteration of an agent, by its mean reward
    bool already;               // it was trained before
} task_fold_event;

typedef struct {
    const char *dir;
    json_t *doc; // walk.json
} task_tested_event;

// Events of an agent's run.
typedef struct {
    const struct agent_task *task;
    const graph *graph;  // of a minibatch,
    const plan *plan;    // and its memory
    int64_t iterations;  // of the whole run
    const char *card;    // as in task_begin_event
    const char *earlier; // likewise
    const char *dir;     // of the run
} task_agent_event;

typedef struct {
    const struct agent_task *task;
    const agent_report *report;
    int64_t total;            // steps of the whole run
    const agent_score *score; // of an evaluation; NULL: there was none
    bool best;                // the evaluation is the best so far
    double fps;               // steps of all environments a second since this process began, evaluations included
} task_iteration_event;

typedef struct {
    const struct agent_task *task;
    int64_t iterations, timesteps; // done
    int64_t best_iteration;        // 0: none was evaluated
    double best;                   // its mean reward
    bool interrupted, stopped_early;
    bool was_over;         // the run had ended before
    bool length_fixed;     // a larger agent.total_timesteps would not go on
    const char *weights;   // path of the best ones
    const char *resume_in; // directory whose config.yaml goes on
    size_t slab;           // bytes
    double seconds;        // of the iterations of this process, evaluations included
    int64_t steps;         // of the environments in that time
    db_gauges seen;        // by the monitor
    const char *monitor;   // the same as a line; NULL: no samples
} task_agent_done_event;

typedef struct {
    const char *file, *dir; // description and directory
    int number, of;
    bool already; // the model is passed over, as it is trained
} task_model_event;

typedef struct {
    task_event_kind kind;
    const struct task *task; // NULL before it is open, and for events of an ensemble
    const char *line;        // for people, as the run's log has it; NULL where an event has none
    union {
        struct {
            const sources *from;
            const build_report *report;
        } bars;
        task_member_event member; // ENSEMBLE_BEGIN, MEMBER, ENSEMBLE_DONE, WALK_EARLIER, WALK_STOPPED
        task_begin_event begin;
        task_step_event step;
        const epoch_report *epoch;
        const change_report *change;
        task_checkpoint_event checkpoint;
        task_done_event done;
        struct {
            const tune_row *at; // being measured; NULL: the gradient noise scale
            double share;       // of all that is to do, from 0 to 1
        } tuning;
        task_walk_event walk;
        double share; // WALK_STEP: of all folds, from 0 to 1
        double steps; // ACTING: of all environments so far, a share of the iteration's included
        task_fold_event fold;
        task_tested_event tested;
        task_model_event model;
        json_t *table; // MODELS_DONE (task/models.h)
        task_agent_event agent;
        task_iteration_event iteration;
        task_agent_done_event agent_done;
    };
} task_event;

// Receives events; on_event may be NULL.
typedef struct {
    bool (*on_event)(void *arg, const task_event *e);
    void *arg;
} task_listener;

static inline bool task_tell(const task_listener *l, const task_event *e) {
    return !l->on_event || l->on_event(l->arg, e);
}

#endif
