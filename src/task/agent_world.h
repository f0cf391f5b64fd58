// The world of an agent that trades: a description's data, their parts by time, and what environments read of them.
// Other environments have no data.
#ifndef TRADEWIND_TASK_AGENT_WORLD_H
#define TRADEWIND_TASK_AGENT_WORLD_H

#include "task/agent_market.h"
#include "task/open.h"

typedef struct {
    bool open;
    task task; // description, data, split and scale
    agent_market market;
    agent_stretches train, test;
    char idle[240];   // an instrument that the account can never trade, in words; "": none
    const char *part; // that evaluations trade: "validation", "test", "all", "every", "latest" or "live"
} agent_data;

// Opens the data where the environment is `market`, and puts them into the settings: rollouts trade the training part,
// evaluations pass over another one from its first bar to its last, each instrument by itself. `part` is its name, or
// NULL for validation. Others are of weights that are used (task_options.trained), which have no rollouts: of whole
// data "all" samples; "every" bar, labelled or not; the "latest" of these, from the first that closed after the time
// that the weights were trained on; and "live", where bars come one by one (task/agent_window.h). ERR_INPUT where a
// part is too short. On failure everything is undone.
bool agent_data_open(agent_data *d, const task_options *o, const char *part, agent_settings *s, err *e);
void agent_data_close(agent_data *d);

// Gives settings the number of stretches that other parts of the same data have: what memory depends on, and nothing to
// play in. Settings stay as they are where there are no data, or a part has no stretch.
void agent_data_resize(const agent_data *d, const split *parts, agent_settings *s);

// Bytes of its own arrays on the host.
size_t agent_data_bytes(const agent_data *d);

#endif
