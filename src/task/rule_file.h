// The rule that makes positions of a run's predictions, as signal.json in the run's directory keeps it.
#ifndef TRADEWIND_TASK_RULE_FILE_H
#define TRADEWIND_TASK_RULE_FILE_H

#include "backtest/follow.h"
#include "base/json.h"
#include "run/weights.h"
#include "task/trained.h"

typedef struct {
    decide_rule rule;
    bool was_fitted;
    follow_fitted fitted;                // threshold, where it was
    char symbol[64];                     // instrument that the rule was made for; "" where the data have one
    char weights[WEIGHTS_IDENTITY_ROOM]; // that it was made for
} rule_record;

// A rule as JSON, and back; false where a value is missing or out of its range.
json_t *rule_to_json(const rule_record *r);
bool rule_from_json(json_t *from, rule_record *r);

// Replaces the file. The same rule gives the same bytes.
bool rule_write(const char *dir, const rule_record *r, err *e);

// Reads the file; `*there` is false where there is none, or where it was made for other weights than those there now.
// ERR_INPUT where it is damaged.
bool rule_read(const char *dir, rule_record *r, bool *there, err *e);

// The rule for the answers of opened weights, as far as sides go: by the description's threshold where it is a number,
// else as the directory of a run or ensemble keeps it, for its best weights. `*there` is false where there is none.
bool rule_of(const trained *t, rule_record *r, bool *there, err *e);

#endif
