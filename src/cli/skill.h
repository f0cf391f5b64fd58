// Comparisons with trivial answers (train/skill.h), as text and as JSON.
#ifndef TRADEWIND_CLI_SKILL_H
#define TRADEWIND_CLI_SKILL_H

#include "base/json.h"
#include "train/skill.h"

// Scores, trivial scores and skill with their intervals, a line a metric; a table by instrument where there are
// several; and what the intervals mean, in words.
void skill_print(const skill_table *t, const dataset *d, FILE *out);

// The same as an object: "scores", "trivial", "bootstrap" and, by instrument, "symbols".
json_t *skill_json(const skill_table *t);

// Scores of the trivial answers alone: {"zero": {"rmse": ...}}.
json_t *skill_trivial_json(const skill_table *t);

#endif
