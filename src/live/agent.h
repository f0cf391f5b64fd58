// A trained agent that answers for one bar at a time.
//
// At a close it sees what its environment shows there (env/market.h): the newest bars' features, the account, the time;
// the account is that of the session's books. The policy is greedy, in a program of one row, on the host. What it
// remembers from bar to bar belongs to the instrument, and begins with the first bar that it is asked at. An agent
// whose equity fell to agent.ruin is ruined: it is asked no more, and what it holds is to be closed.
#ifndef TRADEWIND_LIVE_AGENT_H
#define TRADEWIND_LIVE_AGENT_H

#include "live/books.h"
#include "live/model.h"
#include "task/agent_use.h"

typedef struct live_agent live_agent;

typedef struct {
    float number[PLAY_CHOICES]; // [width] probabilities of short, flat and long; or direction and share of a full
                                // position
    int width;
    bool finite; // or nothing else is said, and the bar is not remembered
    int side;    // that the action asks for: -1, 0, 1
    bool orders; // the position is to change
    int64_t units;
} agent_reply;

// NULL on failure; ERR_INPUT where weights and board do not fit (task/contract.h).
live_agent *live_agent_open(const model_options *o, err *e);
void live_agent_close(live_agent *a);

const trained_agent *live_agent_trained(const live_agent *a);

// Takes the row that the board has made of the newest bar, if the instrument has a sample.
void live_agent_push(live_agent *a, int series);

// Bars with a sample that are missing before the first observation.
int64_t live_agent_needs(const live_agent *a, int series);

// The answer at the close of the newest bar, which ended at `end`, after the books have taken it.
bool live_agent_answer(live_agent *a, int series, const books *b, int64_t end, agent_reply *to, err *e);

// True where it remembers bars, and has been asked: bars that nobody can trade are to be asked too.
bool live_agent_remembers(const live_agent *a, int series);

// Ruin up to the close before; and with the equity of the newest one.
bool live_agent_was_ruined(const live_agent *a, int series);
bool live_agent_is_ruined(live_agent *a, int series, const books *b);

// The state of an instrument's observations, live_agent_state bytes.
size_t live_agent_state(const live_agent *a);
void live_agent_save(const live_agent *a, int series, void *to);
bool live_agent_load(live_agent *a, int series, const void *from);

// Memory that follows from answers and books, to be kept with every bar: a block of live_agent_memory bytes. Taking it
// back fails for one of another length or content.
size_t live_agent_memory(const live_agent *a);
void live_agent_keep(const live_agent *a, int series, void *to);
bool live_agent_recall(live_agent *a, int series, const void *from, size_t bytes);

#endif
