// Greedy passes of a trained agent over stretches of a market: what it sees, decides and owns at every close.
//
// A pass begins with the cash at the first bar of its stretch and ends with the last one; an agent sees its account, so
// an answer depends on the books of the pass that it is given in. The environment is stepped on the host, to the bits
// that it has on any device. Orders, replayed over the same bars (backtest/replay.h), give the same equity at every
// close, up to that of the last bar, where a backtest closes what is open.
#ifndef TRADEWIND_TASK_AGENT_PLAY_H
#define TRADEWIND_TASK_AGENT_PLAY_H

#include "env/batch.h"
#include "rl/actor.h"
#include "rl/agent.h"

enum { PLAY_CHOICES = 3 };

// A closed bar of a pass, and what was decided at its close.
typedef struct {
    int64_t row;                // of the market's bars
    int64_t units;              // held at the close, below 0 when short
    int64_t equity;             // at the close
    float action[2];            // the choice; or direction and size
    float chance[PLAY_CHOICES]; // of short, flat and long; where actions are choices
    int side;                   // that the action asks for: -1, 0, 1
    bool orders;                // the position is to change at the next open
    int64_t order;              // units to have then
} play_bar;

// Bars first .. first + count - 1 of a pass are those of one stretch.
typedef struct {
    int64_t first, count;
    int64_t stretch; // its number
    double reward;   // of all its steps
    bool ruined;     // it ended before its stretch: at ruin, or with an amount that no account can hold
} play_run;

typedef struct {
    int64_t runs, bars;
    play_run *run; // [runs] one a stretch
    play_bar *bar; // [bars]
} agent_pass;

// Plays every stretch of a world of the environment `market`, whose episodes begin with the first bar and have no limit
// of steps (agent_data_open makes one of a part). An agent that is ruined is asked no more: its last bar orders what is
// open to be closed. ERR_RUN where an answer is not finite. On failure `p` is empty.
bool agent_play(agent_pass *p, actor *a, const agent_world *w, err *e);

// Plays the only stretch of a world with books that are there already (`from`, NULL: with the cash), and says what is
// there at its end; both may be one place. Equity and books are those of the close of the first bar.
bool agent_play_on(agent_pass *p, actor *a, const agent_world *w, const market_state *from, market_state *to, err *e);

// Safe to call twice.
void agent_pass_done(agent_pass *p);

// The score of the pass, as agent_evaluate has it.
agent_score agent_pass_score(const agent_pass *p);

#endif
