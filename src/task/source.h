// The data that a description names: bar files, a file of samples, or the synthetic market.
#ifndef TRADEWIND_TASK_SOURCE_H
#define TRADEWIND_TASK_SOURCE_H

#include "task/event.h"
#include "train/settings.h"

// Makes or maps them, and reports bar files as they were read (TASK_BARS). NULL on failure, with the user's mistake put
// behind its place in the description.
dataset *source_open(const config *c, const settings *s, const task_listener *l, err *e);

// A dataset from import or an .npz of windows, mapped.
dataset *source_open_file(const char *path, err *e);

#endif
