// Shared by tests: failing with an error's text, repeatable choices, a directory of its own for a test, programmer's
// mistakes caught in a child, and a training job made from the keys that users write.
#ifndef TRADEWIND_TEST_SUPPORT_H
#define TRADEWIND_TEST_SUPPORT_H

#include "graph/solo.h"
#include "task/open.h"
#include "train/trainer.h"

// True under a sanitizer: sizes are then smaller and times are not judged.
bool support_sanitized(void);

double support_seconds(void);

// Fails the test with the error's text.
void support_ok(bool ok, const err *e);

// Runs `fn` in a child, which must abort with one line on stderr that contains `text`.
void support_aborts(void (*fn)(void), const char *text);

// cmocka's setup and teardown: the test gets an empty directory as its working directory; *state is its path.
int support_enter(void **state);
int support_leave(void **state);

// Writes a file of exactly these bytes.
void support_put(const char *path, const void *data, size_t bytes);

// Repeatable random choices.
typedef struct {
    uint64_t seed, draws;
} dice;

uint64_t dice_below(dice *d, uint64_t most); // 0..most-1
float dice_unit(dice *d);                    // [-1, 1)

// A model, without tensors, as these keys describe it; the rest are defaults.
model_spec support_model(const char *assignments, const model_data *d);

// A task on a synthetic market: its split, a model and the job's graph, and a queue of a device.
typedef task rig;

// `assignments` are keys of a run description with their values, separated by spaces; the rest are defaults, except
// that the market has 2,000 bars. rig_open computes in fp32, rig_open_in in the precision given.
void rig_open(rig *r, const device *d, int threads, const char *assignments);
void rig_open_in(rig *r, const device *d, int threads, precision p, const char *assignments);

// The same on data that were made already, which the rig then owns; NULL: the synthetic market.
void rig_open_on(rig *r, dataset *data, const device *d, int threads, precision p, const char *assignments);
void rig_close(rig *r);

// A trainer on the rig; and a copy of its weights, which the caller frees.
trainer *rig_trainer(rig *r);
float *rig_weights(rig *r, trainer *t);

// A trainer's lasting tensors and step record, and its passes.
bool support_write(trainer *t, tensor of, const void *from, err *e);
bool support_read(trainer *t, tensor of, void *to, err *e);
bool support_step_write(trainer *t, const solo_step *s, err *e);
bool support_step_read(trainer *t, solo_step *s, err *e);
bool support_play(trainer *t, pass which, err *e);

// Fails unless 19 steps of one micro-batch each leave the same behind, to the bit, whether they are played 8 at a time
// or one by one: weights, gradients, moments, loss scale, what clip keeps, totals, confusion and the step record.
void rig_check_together(rig *r);

// The score of the market's best possible classifier on a part.
double rig_best_mcc(const rig *r, const split_part *samples);

#endif
