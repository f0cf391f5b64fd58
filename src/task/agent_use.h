// A trained agent, opened to be used.
#ifndef TRADEWIND_TASK_AGENT_USE_H
#define TRADEWIND_TASK_AGENT_USE_H

#include "task/agent.h"
#include "task/agent_play.h"
#include "task/trained.h"

typedef struct {
    agent_task task;
    agent *agent;       // with the run's weights, in an environment without data; or NULL
    actor *actor;       // with the run's weights, a row for each stretch of the part; NULL without data
    int members;        // of an ensemble, for all of which the actor answers; 0: none
    data_notes notes;   // about data that may not be meant for the weights
    split_part samples; // of the part; the newest bars of `latest`
    char *weights;      // their path; the directory of an ensemble
    char *file;         // the description of the run, or of the first member
} trained_agent;

// True where a word names an agent's run, or a file of weights in one.
bool trained_is_agent(const char *word);

// Opens the run, or the ensemble, that the options name. Of its own data `part` alone is looked at, NULL: test. Other
// data (`data`) are whole; so are the caller's dataset with its parts. `latest` asks for every bar up to the newest one
// (agent_data_open). Features are scaled as they were in training. ERR_INPUT where the run's own data are not those
// that it was trained on, unless for the newest bars. The weights are used on any device, and take no more memory than
// acting needs. On failure everything is undone.
bool trained_agent_open(trained_agent *t, const trained_options *o, err *e);
void trained_agent_close(trained_agent *t);

// The greedy pass over the part of a market (task/agent_play.h).
bool trained_agent_play(trained_agent *t, agent_pass *p, err *e);

// Its score, or that of greedy episodes where the environment has no data.
bool trained_agent_score(trained_agent *t, agent_score *s, err *e);

#endif
