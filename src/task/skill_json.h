// Comparisons with trivial answers (train/skill.h) as JSON.
#ifndef TRADEWIND_TASK_SKILL_JSON_H
#define TRADEWIND_TASK_SKILL_JSON_H

#include "base/json.h"
#include "train/skill.h"

// "better", "no better" or "worse"; "" where nothing can be said.
const char *skill_verdict_name(skill_verdict v);

// All of it as an object: "scores", "trivial", "bootstrap" and, by instrument, "symbols".
json_t *skill_json(const skill_table *t);

// Scores of the trivial answers alone: {"zero": {"rmse": ...}}.
json_t *skill_trivial_json(const skill_table *t);

#endif
