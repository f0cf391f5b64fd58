// A run's figures as an event file of TensorBoard beside its run.db, by a reader of its own: the run has no part in it.
//
// Tags are the names of run.db: "validation/mcc", "steps/loss", "device/utilisation". Steps are the run's steps, also
// of an epoch's metrics; samples of the device, which have no step, are numbered by the seconds since the run began.
#ifndef TRADEWIND_WATCH_BOARD_H
#define TRADEWIND_WATCH_BOARD_H

#include "base/err.h"

#include <stdint.h>

typedef struct board board;

// ERR_INPUT where the directory has no run.db that can be read. The file is made then, in place of an earlier one of
// the same run.
board *board_open(const char *dir, err *e);
void board_close(board *b);

// Writes what has come. `*running`: the run goes on, so that more may come.
bool board_go_on(board *b, bool *running, err *e);

// The file, and values written so far.
const char *board_path(const board *b);
int64_t board_values(const board *b);

#endif
