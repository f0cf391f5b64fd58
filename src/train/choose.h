// The planner as a chooser: where the data lie, how the effective batch is split and what is recomputed, so that a
// job fits into a budget and takes the least time.
//
// It runs nothing. A plan's memory is what the trainer would take (trainer_memory); its time is a guess by a model that
// is stated here, with one set of rates for all cards, good enough to put plans in order:
//   products   of a micro-batch forward, twice as many backward, and those recomputed, at a rate by device and
//              precision; of fewer rows than `rows_least` they take as long as of so many
//   bytes      that forward reads and writes, three times, and again, at the rate of the device's memory
//   calls      a fixed time each, and for each step of a sequence that an LSTM goes through
//   batches    from the host, at the rate of copies; a card copies while it computes, so the longer of the two counts
//
// A plan that would take more than twice the time of the fastest one without a limit is not offered: a limit that is
// accepted runs at half the rate or better. Where no limit is set that holds for each place of the data by itself: what
// has no room on a card is streamed, however long that takes.
//
// Recomputation is chosen from up to nine amounts, spread over all that there are.
//
// The same arguments give the same choice. A smaller budget never gives a faster plan.
//
// Trained weights take less: choose_rows gives the most rows of a micro-batch, at most those of the description, that
// fit for inference.
#ifndef TRADEWIND_TRAIN_CHOOSE_H
#define TRADEWIND_TRAIN_CHOOSE_H

#include "train/budget.h"
#include "train/engine.h"
#include "train/job.h"

// A way to run a job.
typedef struct {
    bool host;      // batches come from the host
    int64_t batch;  // rows of a micro-batch
    int64_t parts;  // micro-batches in a step
    int again;      // segments that are recomputed
    double seconds; // of a step, guessed
} way;

typedef struct {
    // The job with its data on the device and with batches from the host; NULL where that is not open. Inputs from the
    // host are laid out anew for every way that is looked at (job_split); choose_apply lays them out for the choice.
    job *near, *far;
    const settings *settings; // as the description has them: effective batch, whether the split is open, recompute
    int64_t parts;            // micro-batches that a run which goes on has; 0: open
    const split *split;
    const device *device;
    queue *queue; // of it, or one like it: nothing is allocated there
} chooser;

typedef struct {
    way best;    // what to run; the least (choose_least) where nothing fits
    bool fits;   // whether the budget takes it
    way fastest; // the fastest without a limit
    int looks;   // plans that were measured
} choice;

// True if two ways of one effective batch are the same: place, split and recomputation.
bool choose_same_way(const way *a, const way *b);

// Segments recomputed at most, where the planner chooses or the description says so.
int choose_again_most(const chooser *c);

choice choose_way(const chooser *c, const budget *b);

// The way of inference: the description's micro-batch, or half of it and so on down to one row, with the data on the
// device or from the host; the first that fits.
choice choose_rows(const chooser *c, const budget *b);

// The way that takes the least memory.
way choose_least(const chooser *c, const budget *b);

// Memory that a way takes. Lays the inputs out for it.
demand choose_demand(const chooser *c, const way *w);
engine_memory choose_memory(const chooser *c, const way *w);

// Bytes of the host that copies of the weights take: the trainer holds the best ones, a checkpoint in the making the
// weights and the moments.
size_t choose_copies(const graph *g);

// Bytes of the host that one copy of the weights takes.
size_t choose_weights(const graph *g);

// Bytes of a card that the recordings of steps with so many segments recomputed take: a share for each call.
size_t choose_recorded(const graph *g, int again, bool training);

// The guess, in seconds of a step.
double choose_seconds(const chooser *c, const way *w);

// The settings of a way, and its inputs laid out.
settings choose_apply(const chooser *c, const way *w);

// Ways that the description leaves open, to be shown beside a choice: of each place the splits up to the one behind the
// chosen one, the last few of them, each with as little recomputed as may be and with as much, and the choice
// itself. Their number, at most `room`.
int choose_others(const chooser *c, const budget *b, const way *chosen, way *list, int room);

// The largest effective batch of one micro-batch a step: one that the budget takes and with one row more does not, with
// nothing recomputed or (`again`) with as much as can be; 0 where not even one row fits.
int64_t choose_largest(const chooser *c, const budget *b, bool host, bool again);

#endif
