// Lines of a run that both its log and the terminal show.
#ifndef TRADEWIND_TASK_LINES_H
#define TRADEWIND_TASK_LINES_H

#include "run/db.h"
#include "task/open.h"
#include "train/trainer.h"

enum { LINE_ROOM = 384 };

// Losses, metrics and rate of an epoch.
void lines_epoch(const epoch_report *r, bool forecasts, char *text, size_t room);

// "step 4096, epoch 3: fp16 overflowed in the last 100 steps, which changed nothing; going on in bf16".
void lines_change(const change_report *r, char *text, size_t room);

// Samples of the monitor, of which there is at least one.
void lines_gauges(const db_gauges *g, char *text, size_t room);

// Bytes that a card holds for this process, and what its monitor says to that; false on the CPU.
bool lines_card(const device *d, const queue *q, char *text, size_t room);

// A metric's value: errors of returns are small, so that figures count, not decimals.
const char *lines_value(double v, char *text, size_t room);

// The unit that a model can recompute, in a word: "layer", also where it has none, or "block".
const char *lines_segment(model_kind k);

// A split whose parts share labels; false where they do not.
bool lines_overlap(const task *t, char *text, size_t room);

// Classes that a part of a split has no sample of, though the data have: "classes without a sample: DOWN in training,
// which cannot be learned; DOWN in the test". False where there is none, and for data without classes.
bool lines_classes(const dataset *d, const split *s, char *text, size_t room);

// A run's directory that is on a network file system; false where it is not.
bool lines_network(const char *dir, char *text, size_t room);

// Scores of trivial answers: "zero forecast: RMSE 0.00123, MAE 0.0009".
void lines_trivial(const skill_table *t, const dataset *d, char *text, size_t room);

#endif
