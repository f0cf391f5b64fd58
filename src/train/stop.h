// Early stopping: which epoch was the best so far, and whether it is time to give up.
#ifndef TRADEWIND_TRAIN_STOP_H
#define TRADEWIND_TRAIN_STOP_H

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    int64_t patience;   // epochs without a better one
    bool lower;         // lower is better
    int64_t best_epoch; // 0: none yet
    double best;
    int64_t bad; // epochs since the best one, or since the start
} stop;

// Takes the metric of an epoch that has ended; whether it is the best so far. One that is not finite never is.
bool stop_see(stop *s, int64_t epoch, double value);

bool stop_now(const stop *s);

#endif
