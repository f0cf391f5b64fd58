// Lines of text as raw events of a feed: rows of any layout that import knows, JSON objects and key=value pairs.
//
// A line that begins with { is a JSON object; one that begins with a name and = is pairs, parted by blanks, commas or
// semicolons, with values in quotes where they hold such. Both are rows of a table whose header are their keys, and are
// read as such a table's rows by data/bars_line.h. Further columns or keys that are understood:
//   - frame, timeframe, span, interval: the bar's span, 5m, M5 or 300 (seconds)
//   - closed, complete, final, x: 0 or false where the bar is not over
//   - bid and ask without an open: a quote
// Memory is bounded by FEED_LINE_MOST.
#ifndef TRADEWIND_LIVE_ROW_READER_H
#define TRADEWIND_LIVE_ROW_READER_H

#include "data/bars_text.h"
#include "live/feed_source.h"

typedef struct row_reader row_reader;

// `name` stands for the source in notes and must outlive the reader. `symbol` is that of rows which name none; `span`
// that of rows which say none, 0: the only one that is wanted. NULL where the options' zone is none (ERR_INPUT).
row_reader *row_reader_new(const feed_options *o, const char *name, const char *symbol, int64_t span, err *e);
void row_reader_free(row_reader *r);

// Another text begins: its first line may be a header.
void row_reader_reset(row_reader *r);

// Changes the span of rows that say none.
void row_reader_span(row_reader *r, int64_t span);

// Reads line `number`. False where it has nothing to tell: blank, a header, a row that import leaves out. Else `raw` is
// a bar, a quote, or a note of what cannot be read; without `received`, `history` and `again`.
bool row_reader_take(row_reader *r, text line, int64_t number, feed_raw *raw);

#endif
