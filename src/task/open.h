// A task: a description, its data, the chosen plan and a queue on a device, ready to be trained, used, tuned or shown.
#ifndef TRADEWIND_TASK_OPEN_H
#define TRADEWIND_TASK_OPEN_H

#include "task/chosen.h"
#include "task/contract.h"
#include "task/describe.h"
#include "task/devices.h"
#include "task/event.h"
#include "train/choose.h"
#include "train/job.h"
#include "train/predictor.h"
#include "train/skill.h"
#include "train/trainer.h"
#include "train/wisdom.h"

// Memory of a device that several tasks share: a space with room for each of them, and the data, which lie there once.
typedef struct {
    space *space;
    store *data;
} task_place;

// Everything that a task is opened by. Texts and plan must outlive it.
typedef struct {
    task_description description;
    task_devices devices;
    const char *version; // of the program: what was tuned holds for one
    bool resume;         // the run in run.dir goes on: its batch and split stay
    bool restart;        // it goes on from its beginning, as it has no checkpoint; where it has weights it is set aside
    bool repeats;        // with `restart`: what was there is of this very description, so that its weights are replaced
    bool untuned;        // what was tuned is not asked for: the planner alone chooses, for BATCH_USUAL where it is open
    bool trained;        // weights are to be used, not trained: what the model gives can be read (job_keep_logits)
    const safetensors *saved; // these weights, whose scales and contract hold; NULL: none
    const char *saved_path;
    bool ends;      // samples are the ends of a panel's series, and every part of the split is all of them
    int64_t latest; // samples are so many of each instrument's newest bars, as with `ends`; 0: not
    dataset *data;  // in place of the description's: the caller's, which outlives the task; or NULL
    const split
        *parts;   // in place of those that the description asks for, which the caller has made of these data; or NULL
    bool whole;   // every part of the split is all samples
    bool checked; // the caller has opened the same set before and checked its bytes
    const chosen *like; // a plan whose batch, split and tuning are kept where they are open, whatever is free; or NULL
    const task_place *place;           // memory that was taken for it beforehand; or NULL
    const struct agent_market *market; // an agent's arrays of `data`, which outlive the task; NULL: it makes its own
    task_listener listener;
} task_options;

typedef struct task {
    task_options options;
    config *config;
    settings described; // as the description has them
    settings settings;  // with the planner's choice: residency, micro-batch, accumulation, recompute
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
    choice choice; // among what the description leaves open
    precision precision;
    products_by products;
    int threads;         // that the CPU was given by tuning; 0: not
    wisdom_answer tuned; // known about the batch
    int64_t parts;       // micro-batches of the run which goes on; 0: open
    bool tuned_way;      // the choice is what was tuned
    bool unchecked;      // the set is too large for the memory to be read against its sums before it is used
    err no_card;         // why the CPU stands in for a card, or an empty text
    double made, opened; // when the data were made and the queue was opened, as clock_seconds has it
} task;

// The task must stay where it is until it is closed.
//
// Reads the description, makes the data, opens a device and chooses a plan. On failure everything is undone.
bool task_open(task *t, const task_options *o, err *e);

// The description alone; to be closed too.
bool task_describe_run(task *t, const task_options *o, err *e);

// The description, its data, their split and scale, without a device; to be closed too. On failure everything is
// undone.
bool task_open_data(task *t, const task_options *o, err *e);

void task_close(task *t);

// The chosen plan of a task that is open.
void task_chosen(const task *t, chosen *c);

// The data of a task, of which no more need be there, as a plan has them.
void task_chosen_data(const task *t, chosen *c);

// The contract of what it trains or uses; the caller frees it.
contract *task_contract(const task *t);

// The key that tuning is kept under.
void task_key(const task *t, wisdom_key *k);

// Where the batch and its way come from, or why they do not come from what was tuned, in a line; false where there is
// nothing to say.
bool task_tuned_line(const task *t, char *line, size_t room);

// Puts the batch of an open task into another description that leaves it open, so that both say the same.
bool task_settle(const task *t, const task *open, err *e);

// A job with its data on the device or from the host, in a precision that the device computes, with what stands in for
// that should it overflow; to be given back by job_done.
void task_job(const task *t, job *j, residency r, precision p);

// A trainer of the chosen plan; a predictor of a task whose weights are trained.
trainer *task_trainer(const task *t, err *e);
predictor *task_predictor(const task *t, err *e);

// Sets what a comparison with trivial answers takes from a task: its kind, the season, the mean of the targets.
void task_skill_input(const task *t, skill_input *in);

// The plan's memory, and whether it is there and within the limit; ERR_RUN with the figures where it is not.
engine_memory task_memory(const task *t);
bool task_fits(const task *t, err *e);

// The plan's memory and what is needed beside it.
demand task_demand(const task *t);

// The loader of batches from the host, and the bytes of its ring; 0 where the data are on the device.
loader_options task_loading(const task *t);
size_t task_ring(const task *t);

#endif
