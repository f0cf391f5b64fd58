// Comparisons with trivial answers (train/skill.h) as text.
#ifndef TRADEWIND_CLI_SKILL_H
#define TRADEWIND_CLI_SKILL_H

#include "train/skill.h"

#include <stdio.h>

// Scores, trivial scores and skill with their intervals, a line a metric; a table by instrument where there are
// several; and what the intervals mean, in words.
void skill_print(const skill_table *t, const dataset *d, FILE *out);

#endif
