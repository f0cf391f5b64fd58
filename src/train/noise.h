// The gradient noise scale: how large a batch has to be before more samples in it stop paying.
//
// A step's gradient is that of all samples, G, and noise that falls with the batch: |g_B|^2 is |G|^2 + tr(S) / B in the
// mean, S being the covariance of one sample's gradient. B_simple = tr(S) / |G|^2 (McCandlish et al. 2018, An Empirical
// Model of Large-Batch Training) is the batch at which both parts are equal: well below it a batch twice as large does
// nearly the work of two steps, well above it that of one. Norms at two batch sizes b < B give both parts without bias:
//   |G|^2 = (B |g_B|^2 - b |g_b|^2) / (B - b)        tr(S) = (|g_b|^2 - |g_B|^2) / (1/b - 1/B)
// It grows while a model learns, so it is measured at more than one place. Dropout is part of the noise. Prints
// nothing.
#ifndef TRADEWIND_TRAIN_NOISE_H
#define TRADEWIND_TRAIN_NOISE_H

#include "train/choose.h"

// Squared norms of gradients of one batch size: how many, their mean and the sum of squared differences from it.
typedef struct {
    int64_t batch, count;
    double mean, square;
} noise_draws;

// Adds one. What is not finite is left out.
void noise_add(noise_draws *d, double squared_norm);

typedef struct {
    bool measured;          // there were draws enough to say anything
    bool known;             // false also where the gradient drowns in the noise
    double scale, error;    // B_simple and its standard error
    double gradient, trace; // |G|^2 and tr(S)
} noise_scale;

// From draws at two batch sizes, the first the smaller.
noise_scale noise_estimate(const noise_draws *small, const noise_draws *large);

enum { NOISE_PLACES_MOST = 2 };

typedef struct {
    const device *device;
    queue *queue;
    const chooser *chooser;
    const dataset *data;
    const split *split;
    way small, large;                        // of the two batch sizes, with parts * batch rows each
    const float *weights[NOISE_PLACES_MOST]; // where to measure: whole slabs of weights
    int places;
    double seconds; // that all of it may take, about
    bool (*go_on)(void *arg);
    void *arg;
} noise_task;

// Measures at every place, at weights that do not move. False with ERR_RUN where the device fails. What was stopped by
// `go_on` is not known.
bool noise_measure(const noise_task *n, noise_scale *scale, err *e);

#endif
