// Optimizers: each is a row in optimizer.def and a record in a file of its own, train/optimizer_NAME.c, around the
// operator that takes the step. A missing record is a link error. Slabs (moments) follow from the operator's node.
#ifndef TRADEWIND_TRAIN_OPTIMIZER_H
#define TRADEWIND_TRAIN_OPTIMIZER_H

#include "base/config.h"
#include "ops/ops.h"

enum { OPTIMIZER_OWN_BYTES = 64 };

typedef enum {
#define OPTIMIZER(name) OPTIMIZER_##name,
#include "train/optimizer.def"
#undef OPTIMIZER
    OPTIMIZER_COUNT
} optimizer_kind;

// Settings of a description: common to all, and those of the optimizer's own keys, which its file alone reads.
typedef struct {
    optimizer_kind kind;
    float weight_decay;
    decay_scope decay;
    unsigned char own[OPTIMIZER_OWN_BYTES];
} optimizer_settings;

typedef struct {
    const config_key *keys; // that no other optimizer has
    size_t key_count;
    bool (*read)(const config *c, optimizer_settings *s, err *e); // fills `own` (optimizer_set)
    void (*add)(const optimizer_settings *s, graph *g, tensor clip, const lr_schedule *schedule);
} optimizer;

#define OPTIMIZER(name) extern const optimizer optimizer_##name;
#include "train/optimizer.def"
#undef OPTIMIZER

// The keys of all optimizers, and of one: rows for a table of keys.
const config_key *optimizer_common_keys(size_t *count);
const config_key *optimizer_keys(optimizer_kind k, size_t *count);

// True where an optimizer reads a key of one of them: its own, or of one that reads its settings alike.
bool optimizer_reads(optimizer_kind k, const char *path);

// Fills `s` from a description that config_check has passed. False where keys contradict each other.
bool optimizer_read(const config *c, optimizer_settings *s, err *e);

// Adds the step to a graph, behind `clip`.
void optimizer_add(const optimizer_settings *s, graph *g, tensor clip, const lr_schedule *schedule);

const char *optimizer_name(optimizer_kind k);

// Copies an optimizer's own settings in and out.
void optimizer_set(optimizer_settings *s, const void *own, size_t bytes);
void optimizer_get(const optimizer_settings *s, void *own, size_t bytes);

#endif
