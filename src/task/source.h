// The data that a description names: bar files, a file of samples, or the synthetic market.
#ifndef TRADEWIND_TASK_SOURCE_H
#define TRADEWIND_TASK_SOURCE_H

#include "task/event.h"
#include "train/settings.h"

// Makes or maps them, and reports bar files as they were read (TASK_BARS). NULL on failure, with the user's mistake put
// behind its place in the description.
dataset *source_open(const config *c, const settings *s, const task_listener *l, err *e);

// Reads a set's bytes against their CRC-32, where they are no more than this: for answers that somebody acts on. Sets
// are mapped and tables read where they lie, so that damage is not noticed otherwise. `checked`: they were not too
// many.
enum { SOURCE_CHECKED_MOST = 1 << 30 };
bool source_check(const config *c, const settings *s, bool *checked, err *e);

// A dataset from import or an .npz of windows, mapped.
dataset *source_open_file(const char *path, err *e);

#endif
