// The newest bars of each instrument as a market that moves on: for an agent that sees bars as they close.
//
// It has `lags` rows for each instrument, the newest one last, made as task/agent_market.h makes those of whole data,
// so that env/market.h gives the same observations and orders for them, to the bit. Nothing is played in it.
#ifndef TRADEWIND_TASK_AGENT_WINDOW_H
#define TRADEWIND_TASK_AGENT_WINDOW_H

#include "task/agent_market.h"

// Rows of zeros, for the instruments of a dataset, and one stretch, which describes them to an agent. To be given back
// by agent_market_done and agent_stretches_done; on failure both are empty.
bool agent_window_make(agent_market *m, agent_stretches *p, const dataset *d, int32_t lags, const scaler *s,
    const account_terms *t, err *e);

// The features of a sample become the newest row of its instrument, `series`; finite or not.
void agent_window_push(agent_market *m, int64_t series, const dataset *d, int64_t sample);

// The newest row of an instrument, with the close of its bar and the moment of it.
int64_t agent_window_row(agent_market *m, int64_t series, int64_t close, int64_t end);

// Features of an instrument's rows, [lags, lagged + once]: what it goes on from.
float *agent_window_features(const agent_market *m, int64_t series);

#endif
