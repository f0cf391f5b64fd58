// Directories of walks, compared and read.
#ifndef TRADEWIND_TEST_CLI_WALKS_H
#define TRADEWIND_TEST_CLI_WALKS_H

#include "base/json.h"

// Fails the test unless two walks have the same walk.json and the same folds: runs, or ensembles of them, and of models
// the scores and answers that are kept with them.
void same_walks(const char *a, const char *b);

// walk.json of a directory, which the caller gives back.
json_t *walk_document(const char *dir);

// Its folds whose status is this.
int walk_folds_of(const char *dir, const char *status);

// A walk that is run in the directory `made` and killed `kills` times at moments spread over the time that it takes,
// each time going on, in which it is left to end: it must be the same as the undisturbed one in `whole`. `words` ends
// with NULL. How many of the kills came before its end.
int walk_killed(const char *const *words, int kills);

// The same of two shards that are at work side by side in `made`, both killed so many times, and of what --gather makes
// of theirs. How many of the 2 * `kills` came before a shard's end.
int walk_shards_killed(const char *const *words, int kills);

// Kills of a walk in this test: `usual`, or as many as TRADEWIND_WALK_KILLS says.
int walk_kills(int usual);

#endif
