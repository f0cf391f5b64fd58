// Rows of test_ops that are about agents: how they act, what is kept of it, and what is learnt from that.
#ifndef TRADEWIND_TEST_OPS_AGENTS_H
#define TRADEWIND_TEST_OPS_AGENTS_H

#include "ops/row.h"

extern const row agents_act_rows[], agents_worlds_rows[], agents_rollout_rows[], agents_update_rows[];
extern const int agents_act_count, agents_worlds_count, agents_rollout_count, agents_update_count;

#endif
