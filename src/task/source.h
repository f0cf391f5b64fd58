// The data that a description names: bar files, a file of samples, or the synthetic market.
#ifndef TRADEWIND_TASK_SOURCE_H
#define TRADEWIND_TASK_SOURCE_H

#include "task/event.h"
#include "train/settings.h"

// Makes or maps them, and reports bar files as they were read (TASK_BARS). NULL on failure, with the user's mistake put
// behind its place in the description.
dataset *source_open(const config *c, const settings *s, const task_listener *l, err *e);

// Reads the bar files that it names, with the features of its streams; to be given back by sources_done.
bool source_bars(const config *c, const settings *s, sources *from, err *e);

// True where a set's file has more bytes than half of `memory` bytes, so that a second look reads the disk again.
bool source_is_large(const dataset *d, double memory);

// Reads a set's bytes against their CRC-32: sets are mapped and tables read where they lie, so that damage is not
// noticed otherwise, and a set's identity is that of its bytes only behind it. A check that takes seconds tells how
// many, in the beginning (TASK_CHECK). Data that come from no set pass.
bool source_check(const dataset *d, const task_listener *l, err *e);

// A dataset from import or an .npz of windows, mapped.
dataset *source_open_file(const char *path, err *e);

#endif
