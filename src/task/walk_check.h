// Leaks of a walk, looked for by experiment: what follows a moment is cut off or altered, everything is made anew, and
// nothing that was known at that moment may be another.
//
// Bars of the description's files, or those that a set keeps, are built again for moments chosen by rule: ends and
// middles of the parts of folds, and moments within gaps of the bars, the shortest and the longest. Each moment is
// looked at three times: with the bars up to it alone, and with a future far above and one far below. Samples are
// found by time and symbol, never by place. Parts, scales and weights are those of the task that trains the fold.
//
// Cleaning of bar files as they are read is not part of it: bars are cut where the reader has left them.
#ifndef TRADEWIND_TASK_WALK_CHECK_H
#define TRADEWIND_TASK_WALK_CHECK_H

#include "task/open.h"

typedef enum {
    CHECK_INPUTS,  // features, vector, price and volatility at or before a moment stay, whatever follows
    CHECK_LABELS,  // labels known by then stay, and all others change with their future
    CHECK_SAMPLES, // a sample is there, and has its label, whatever follows
    CHECK_PARTS,   // labels and windows of training and validation stay clear of what they are tested on
    CHECK_SCALES,  // training samples of a fold, their labels, scales and class weights stay, whatever follows them
    CHECK_WEIGHTS, // weights of a fold stay to the bit, whatever follows its validation
    CHECK_RULES
} check_rule;

enum { CHECK_TEXT = 240 };

typedef struct {
    int64_t compared, failed;
    char first[CHECK_TEXT]; // the first failure; "" where there is none
    char why[CHECK_TEXT];   // the reason why the rule cannot be tested; "" where it was
} check_result;

typedef struct {
    check_result rule[CHECK_RULES];
    int64_t moments;         // looked at
    int64_t folds, of;       // whose scales were compared, and all of the walk
    int64_t trained, epochs; // folds that were trained with each future, and for how long; iterations of agents
    bool agents;             // folds are agents
} check_report;

// A rule in a word ("inputs") and in a sentence.
const char *check_name(check_rule r);
const char *check_text(check_rule r);

// True where a comparison failed.
bool check_found(const check_report *r);

// Checks the walk of a description; nothing is written. `all`: scales of every fold are compared and every fold is
// trained, not the first alone. TASK_WALK_STEP tells how far it is and may ask for a stop, which is ERR_RUN. False
// where the check itself fails; leaks are in the report.
bool task_walk_check(const task_options *o, bool all, check_report *r, err *e);

#endif
