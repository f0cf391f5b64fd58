// Actions of a trained agent at the bars of a part, each with its place in the data, and as a file.
//
// They are those of a greedy pass (task/agent_play.h), in order of (close, instrument); of `latest` the newest bars of
// each instrument, at the end of the pass that leads up to them.
#ifndef TRADEWIND_TASK_AGENT_ANSWERS_H
#define TRADEWIND_TASK_AGENT_ANSWERS_H

#include "task/agent_use.h"

typedef struct {
    const trained_agent *t;
    const dataset *data;
    agent_pass pass;
    data_notes notes; // those of the run, whose samples are the bars that are answered
    bool numbers;     // actions are a direction and a size
    int64_t count;
    struct agent_answer {
        const play_bar *is;
        bar bar;
        int64_t series;
        double lots;  // held at the close, below 0 when short
        double share; // of a full position that is asked for
    } * item;         // [count]
} agent_answers;

// Names of the choices, in the order of their probabilities: short, flat, long.
extern const char *const agent_choice_names[PLAY_CHOICES];

// Plays the pass. `latest`: so many of the newest bars of each instrument; 0: all. On failure `a` is empty.
bool agent_answers_make(agent_answers *a, trained_agent *t, int64_t latest, err *e);

// True where the bar of an answer closed in the time that the agent was trained on, as far as that is known.
bool agent_answers_trained_on(const agent_answers *a, int64_t i);

// Safe to call twice.
void agent_answers_done(agent_answers *a);

// Writes the answers as an .npz. The file appears whole or not at all.
bool agent_answers_write_npz(const agent_answers *a, const char *path, err *e);

#endif
