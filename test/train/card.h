// Whole training runs, on the card and beside it: the jobs that are tried there, and one run of one of them.
//
// An epoch of every job has 100 steps or more, so that cards, which take up to 64 steps at once, come by several times
// before it ends. The large ones have products that a card leaves to cuBLASLt (the rule is in cuda/join/large.cu),
// beside others that it does not.
#ifndef TRADEWIND_TEST_TRAIN_CARD_H
#define TRADEWIND_TEST_TRAIN_CARD_H

#include "support.h"

enum { CARD_PRECISIONS = 4, CARD_JOBS = 10 };

extern const precision card_precisions[CARD_PRECISIONS];

typedef struct {
    const char *name, *keys;
    bool waves; // forecasts series; otherwise tells the synthetic market's classes
} card_job;

extern const card_job card_jobs[CARD_JOBS];

// One job of each kind of model, the largest: lstm, mlp, transformer, nbeats.
enum { CARD_KINDS = 4 };
extern const card_job *const card_kinds[CARD_KINDS];

// The card; NULL where there is none, or the test fails.
const device *card_open(err *e);
const device *card_device(void);

// True if the card computes in p; says so where it does not.
bool card_computes(precision p);

// The job on a device. `more` are further keys, which come last.
void card_rig(rig *r, const device *d, precision p, const card_job *j, const char *more);

typedef struct {
    const device *device;
    precision precision;
    const card_job *job;
    const char *more;    // further keys
    const char *from;    // a checkpoint to go on from; NULL: begins
    uint64_t stop_after; // stops at the first chance after so many steps, in the middle of an epoch; 0: never
    const char *to;      // the checkpoint made at the stop or the end; NULL: none
    card_switches card;
} card_run;

// Trains on a queue and an executor of its own. True where the run came to its end; `last` then tells of its last
// epoch.
bool card_train(const card_run *c, epoch_report *last);

// Fails unless two epochs have the same losses and counts, to the bit; `what` and the run are for the message.
void card_same(const char *what, const card_run *c, const epoch_report *a, const epoch_report *b);

#endif
