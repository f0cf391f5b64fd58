// Losses: each is a row in loss.def and a record in a file of its own, train/loss_NAME.c, around the operator that
// computes it. A missing record is a link error.
#ifndef TRADEWIND_TRAIN_LOSS_H
#define TRADEWIND_TRAIN_LOSS_H

#include "base/config.h"
#include "ops/ops.h"

enum { LOSS_OWN_BYTES = 80 };

typedef enum {
    LOSS_AUTO = -1, // the usual one, of classes where the data have labels, else of forecasts
#define LOSS(name) LOSS_##name,
#include "train/loss.def"
#undef LOSS
    LOSS_COUNT
} loss_kind;

// Settings of a description: which loss, and those of every loss's own keys, which its file alone reads.
typedef struct {
    loss_kind kind;
    float smoothing; // of labels
    unsigned char own[LOSS_COUNT][LOSS_OWN_BYTES];
} loss_settings;

typedef struct {
    tensor y;                    // [B, classes] or [B, quantiles * horizon]
    tensor label, target;        // one of the two: [B], [B, horizon]
    tensor weight, class_weight; // [B]; [classes] or none
    tensor naive;                // [B] where the loss is measured by it, else none
    float smoothing;
    float unit; // a unit of `y` and `target` in the data's units, for closes of bars as shares of the close; 1 where
                // they are not scaled
} loss_inputs;

// Own settings are passed as the bytes that `read` has filled, LOSS_OWN_BYTES of them, zeros at first.
typedef struct {
    bool classes;           // of classes; otherwise of forecasts
    int degree;             // of the targets' unit in the loss: 1 distances, 2 squares; 0: it has none, and is computed
                            // of forecasts and targets in the data's units
    bool naive;             // measured by the naive forecast's error within the window: of one series alone
    const config_key *keys; // that no other loss has
    size_t key_count;
    bool (*read)(const config *c, void *own, err *e); // NULL where it has no keys; checks them whichever is chosen
    quantile_settings (*levels)(const void *own);     // of the forecasts of a step; NULL: one forecast
    tensor (*add)(graph *g, const loss_inputs *in, const void *own);
} loss;

#define LOSS(name) extern const loss loss_##name;
#include "train/loss.def"
#undef LOSS

// The key that chooses, and those of one loss: rows for a table of keys.
const config_key *loss_common_keys(size_t *count);
const config_key *loss_keys(loss_kind k, size_t *count);

// Fills `s` from a description that config_check has passed. False where a loss's keys are not sound.
bool loss_read(const config *c, loss_settings *s, err *e);

// The loss that is minimised: as described, or the usual one, cross_entropy of classes and mae of forecasts.
loss_kind loss_for(const loss_settings *s, bool classes);
const loss *loss_at(loss_kind k);
const char *loss_name(loss_kind k);

// Levels of the forecasts of a step; none where there is one forecast.
quantile_settings loss_levels(const loss_settings *s);

// Adds the loss of that kind to a graph.
tensor loss_add(const loss_settings *s, loss_kind k, graph *g, const loss_inputs *in);

#endif
