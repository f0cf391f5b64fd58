// Lengths of time as people write them: a number of moments, hours to weeks, calendar months, or a date.
//
// A moment is all samples of one time: of one instrument these are samples, which are bars. Months and years are those
// of the calendar in UTC.
#ifndef TRADEWIND_DATA_EXTENT_H
#define TRADEWIND_DATA_EXTENT_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

typedef enum {
    EXTENT_MOMENTS, // 2000
    EXTENT_SECONDS, // 12h, 180d, 4w
    EXTENT_MONTHS,  // 24M, 2y
    EXTENT_DATE,    // 2019-01-01: midnight UTC, as seconds since 1970
} extent_unit;

typedef struct {
    extent_unit unit;
    int64_t count;
} extent;

enum { EXTENT_TEXT_ROOM = 32 };

// Reads one; ERR_INPUT says what can be written.
bool extent_read(const char *text, extent *x, err *e);

// As extent_read reads it, in the largest unit that it is whole in. Returns `text`.
char *extent_text(char text[EXTENT_TEXT_ROOM], extent x);

// A moment so many calendar months later, or earlier; on the month's last day where it has no such day.
int64_t extent_months_on(int64_t time, int64_t months);

#endif
