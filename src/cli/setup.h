// From a run description to a job on a queue: what train and plan have in common.
#ifndef TRADEWIND_CLI_SETUP_H
#define TRADEWIND_CLI_SETUP_H

#include "base/config.h"
#include "cli/cli.h"
#include "task/chosen.h"
#include "train/choose.h"
#include "train/job.h"
#include "train/settings.h"
#include "train/wisdom.h"

typedef struct {
    config *config;
    settings described; // as the description has them
    settings settings;  // with the planner's choice: residency, micro-batch, accumulation, what is computed again
    dataset *data;
    split split;
    model_spec model;
    int64_t window[STREAMS_MOST];
    scaler *scaler;  // NULL: none
    job job, other;  // of the way that was chosen; of the other place of the data, or none
    chooser chooser; // points to them
    const device *device;
    queue *queue;
    budget budget; // before there was a slab
    choice choice; // what the description leaves open
    precision precision;
    products_by products;
    int threads;         // that the CPU was given by tuning; 0: not
    bool untuned;        // what was tuned is not asked for
    wisdom_answer tuned; // what is known of the batch
    int64_t parts;       // micro-batches that the run which goes on has; 0: open
    bool tuned_way;      // the choice is what was tuned
    bool trained;        // weights are to be used, not trained
    const chosen *like;  // a plan whose batch, split and tuning are kept where they are open; or NULL
    char *told;          // what the bar files' report says and -q and --json leave out, or NULL
    err no_card;         // why the CPU stands in for a card, or an empty text
    double made, opened; // when the data were made and the queue was opened, as clock_seconds has it
} setup;

// It must stay where it is until it is closed.
//
// Reads the description (the first word) and its overrides (the others), makes the data, builds the graph and opens the
// queue. On failure everything is undone.
bool setup_open(setup *s, const cli_options *o, err *e);

// The same, split into micro-batches as a plan of the same description has it, whatever is free now.
bool setup_open_like(setup *s, const cli_options *o, const chosen *plan, err *e);
// The same without what was tuned: the planner alone chooses, for a batch of BATCH_USUAL where that is open.
bool setup_open_untuned(setup *s, const cli_options *o, err *e);

// The same for weights that are trained: what the model gives can be read (job_keep_logits). With `ends` the samples
// are the ends of a panel's series (build_ends), and all parts of the split are all of them.
bool setup_open_trained(setup *s, const cli_options *o, bool ends, err *e);

// A dataset from import or an .npz of windows, mapped.
dataset *setup_open_file(const char *path, err *e);

// The description alone, and what it says; to be closed too.
bool setup_describe(setup *s, const cli_options *o, err *e);
void setup_close(setup *s);

// The chosen plan of a setup that is open.
void setup_chosen(const setup *s, chosen *c);

// What tuning holds for, of a setup that is open.
void setup_key(const setup *s, wisdom_key *k);

// Where the batch and its way come from, or why they do not come from what was tuned, in a line; false where there is
// nothing to say.
bool setup_tuned(const setup *s, char *line, size_t room);

// Puts the batch of an open setup into another description that leaves it open, so that both say the same.
bool setup_settle(const setup *s, const setup *open, err *e);

// The job with its data on the device or from the host, in a precision that the device computes, with what stands in
// for that should it overflow; to be given back by job_done.
void setup_job(const setup *s, job *j, residency r, precision p);

// The plan's memory, and whether it is there and within the limit; ERR_RUN with the figures where it is not.
exec_memory setup_memory(const setup *s);
bool setup_fits(const setup *s, err *e);

// The same and what is needed beside it.
demand setup_demand(const setup *s);

// Bytes of the loader's ring; 0 where the data are on the device.
size_t setup_ring(const setup *s);

// The lines that say what will run.
void setup_print(const setup *s, FILE *out);

#endif
