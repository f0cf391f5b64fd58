// The chosen plan of a run: everything that decides its bits beside its description, and the ways to compute them that
// the planner or tuning chose.
//
// A run's directory keeps it as plan.yaml, and so does every checkpoint. It is read back where a run goes on, where its
// weights are used, and for each member of an ensemble.
#ifndef TRADEWIND_TASK_CHOSEN_H
#define TRADEWIND_TASK_CHOSEN_H

#include "base/err.h"
#include "data/split.h"
#include "graph/device.h"

typedef struct {
    device_identity device;
    precision precision;
    int64_t micro, parts; // rows of a micro-batch, micro-batches in a step
    int again;            // segments that are recomputed in the backward pass
    bool host;            // batches come from the host
    char tuned[16];       // day on which the way was tuned; "" where the planner chose it
    int threads;          // of the CPU, by tuning; 0: not tuned
    products_by products;
    int64_t parameters;
    bool summed; // data_sum is known
    uint32_t data_sum;
    int64_t samples;
    span train, validation;                 // first sample and number of samples
    uint64_t train_spans, validation_spans; // hashes of the spans where a part has several, else 0
    bool labelled, aimed;                   // there are labels, there are targets
    uint64_t labels, targets;               // hashes of them
} chosen;

// plan.yaml, which the caller frees.
char *chosen_write(const chosen *c);

// False where a text is not one of chosen_write's: a value is missing, or one is there that this program does not know.
bool chosen_read(chosen *c, const char *text);

// Number of differences that forbid to go on from one to the other; `text` gets the first few: "precision is bf16, was
// fp32". Where the data lie, what is recomputed, threads, the day of tuning and a card's driver may change.
int chosen_differs(const chosen *was, const chosen *is, char *text, size_t room);

// True where the sets are others: their number of samples, labels, targets or sums; `text` gets the first difference.
bool chosen_set_differs(const chosen *was, const chosen *is, char *text, size_t room);

// True where the samples are others, or their parts; `text` gets the first difference that can be told: "labels are
// others".
bool chosen_data_differ(const chosen *was, const chosen *is, char *text, size_t room);

// Number of all differences.
int chosen_changes(const chosen *was, const chosen *is, char *text, size_t room);

// FNV-1a, for labels and targets.
uint64_t chosen_hash(const void *data, size_t bytes);

#endif
