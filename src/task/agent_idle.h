// Instruments of an agent's market that its account can never trade: a full position is below the lot step, or margin
// and costs are above the cash, at every price of the training part. An agent would learn nothing there.
#ifndef TRADEWIND_TASK_AGENT_IDLE_H
#define TRADEWIND_TASK_AGENT_IDLE_H

#include "task/agent_market.h"

// ERR_INPUT where no instrument of these stretches can be traded with positions of `size` (market_settings). `note`
// gets a line about those that cannot where others can, else an empty text.
bool agent_idle_check(
    const agent_market *m, const agent_stretches *p, const dataset *d, double size, char *note, size_t room, err *e);

#endif
