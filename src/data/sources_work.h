// Shared by the files of sources, and private to them.
#ifndef TRADEWIND_DATA_SOURCES_WORK_H
#define TRADEWIND_DATA_SOURCES_WORK_H

#include "data/frame.h"
#include "data/sources.h"

// The instrument of a symbol, the frame of a span; -1 where there is none.
int sources_series(const sources *s, const char *symbol);
int sources_frame(const sources *s, int64_t span);

// Makes coarser bars of an instrument's finest ones, from the file that is named.
bool sources_make(sources *s, build_bars_of *to, const frame_source *from, const char *file, int64_t span, err *e);

bool sources_no_memory(const sources *s, err *e);

#endif
