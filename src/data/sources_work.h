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

// The bars of a series from a row on, and those that follow them; the caller frees them. NULL where memory is short.
bar *sources_newest(const bar_table *t, int series, int64_t row, const build_bars_of *newer, int64_t *count);

// Checks the first `known` bars of a file, those up to the dataset's last one of that instrument and frame. ERR_INPUT
// where a bar that both have differs (BARS_FORCE_CONFLICTS overrules that, and the dataset's stays), the dataset lacks
// one within its time (BARS_FORCE_THIN), the file lacks the dataset's last one, or it has nothing that is known or new.
bool sources_check_known(
    sources *s, const dataset *old, const source_file *f, int series, int frame, int64_t known, unsigned force, err *e);

// Checks coarser files, their newest old bars and the new ones, against the finest as agree.h does.
bool sources_check_agreement(sources *s, const dataset *old, unsigned force, err *e);

// True where prices, volume and spread are equal.
bool sources_same_bar(const bar *a, const bar *b);

bool sources_no_memory(const sources *s, err *e);

#endif
