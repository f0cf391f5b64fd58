// Models that may replace the one of a session: runs in a directory that are trained to their end and have passed.
//
// A run has passed when its evaluation of the test part, made after its weights, says that it is better than the best
// trivial answer, and when `backtest` has kept the rule for exactly these weights, whose positions earned on validation
// what they cost, where the threshold was fitted.
#ifndef TRADEWIND_LIVE_CANDIDATE_H
#define TRADEWIND_LIVE_CANDIDATE_H

#include "task/rule_file.h"

typedef struct {
    char *run;    // directory, which candidate_done frees
    int64_t made; // when the weights were written
} candidate;

// The newest run below `dir` that has passed and whose weights are newer than `after`; false where there is none. Those
// of `refused`, an object of directories with when their weights were made, are passed over.
bool candidate_find(candidate *c, const char *dir, int64_t after, const json_t *refused);
void candidate_done(candidate *c);

// When the best weights of a run were written; 0 where there are none.
int64_t candidate_made(const char *run);

// True where a run may take over; else `why` says what it lacks.
bool candidate_has_passed(const char *run, char *why, size_t room);

#endif
