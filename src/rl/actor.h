// Answers of a trained policy to observations that the caller has: greedy, a batch of rows at a time.
//
// An actor is the policy alone, without value, rollouts and environments, in the memory that it takes; observations are
// normalised as they were in training. A policy with a memory remembers what each row has seen, from call to call, and
// a row's episode begins anew where the caller says so.
#ifndef TRADEWIND_RL_ACTOR_H
#define TRADEWIND_RL_ACTOR_H

#include "rl/agent.h"

typedef struct actor actor;

// Describes the actor and takes its memory; its weights are zero until actor_load. Of the settings those of the nets
// count, and the shape of the environment. NULL on failure.
actor *actor_new(const agent_place *at, const agent_settings *s, const model_spec *policy, int64_t rows, err *e);
void actor_free(actor *a);

// Bytes that it takes, without a device's memory.
size_t actor_measure(const agent_place *at, const agent_settings *s, const model_spec *policy, int64_t rows);

// Takes the policy of a file of weights or of a checkpoint.
bool actor_load(actor *a, const char *path, err *e);

// Adds another actor of the same nets and rows, which is `a`'s from here on: `a` answers for both, and for those added
// before, with the mean of their probabilities, of which it takes the likeliest choice, or the mean of their numbers.
// Each remembers for itself. False without memory; `other` is freed then.
bool actor_join(actor *a, actor *other, err *e);

int64_t actor_rows(const actor *a);

// Answers `observation` [rows, columns]. `begins` [rows] says whose episode begins with this observation; NULL: no
// one's. `action` gets [rows, columns of an action]; `chance` the probabilities of choices [rows, choices], or is NULL.
// Every row is answered, also one that the caller does not mind. ERR_RUN where an answer is not finite.
bool actor_ask(actor *a, const float *observation, const bool *begins, float *action, float *chance, err *e);

// The same; answers are given as they are, finite or not.
bool actor_ask_any(actor *a, const float *observation, const bool *begins, float *action, float *chance, err *e);

// Numbers that a row remembers from call to call, for all members; 0 of a policy without a memory.
int64_t actor_memory(const actor *a);

// Reads what all rows remember, [rows, actor_memory]; puts it back, so that they go on from there.
bool actor_take_memory(actor *a, float *to, err *e);
bool actor_put_memory(actor *a, const float *from, err *e);

#endif
