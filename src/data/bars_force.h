// Checks that refuse bars, and those of them that the user overrules.
#ifndef TRADEWIND_DATA_BARS_FORCE_H
#define TRADEWIND_DATA_BARS_FORCE_H

#include "base/err.h"

// Bits of a set of checks.
typedef enum {
    BARS_FORCE_THIN = 1 << 0,      // bars are missing everywhere (bars_survey.c, bars_prices.c)
    BARS_FORCE_SLIPS = 1 << 1,     // a bar with its decimal point in another place (bars_prices.c)
    BARS_FORCE_SPIKES = 1 << 2,    // a bar far off its neighbours
    BARS_FORCE_SPLITS = 1 << 3,    // prices before and after a split
    BARS_FORCE_LEVELS = 1 << 4,    // prices of two levels: two instruments in one file
    BARS_FORCE_COLUMNS = 1 << 5,   // open and close swapped
    BARS_FORCE_CONFLICTS = 1 << 6, // many rows with the stamp of another row, and other figures
    BARS_FORCE_AGREE = 1 << 7,     // closes of two files differ at the same moment (agree.h)
    BARS_FORCE_STALE = 1 << 8,     // a coarser file that most samples would see out of date (agree.h)
    BARS_FORCE_FUTURE = 1 << 9,    // bars that open after their file was written (bars_survey.c)
} bars_force;

enum { BARS_FORCES = 10 };

// The word of one check, by its bit: "thin".
const char *bars_force_name(bars_force check);

// Reads words with commas between them, "thin,agree", and adds their bits to `*set`. ERR_INPUT where one is none.
bool bars_force_read(const char *text, unsigned *set, err *e);

// The words of a set, with ", " between them. Returns `buf`.
char *bars_force_text(char *buf, size_t n, unsigned set);

// Refuses what `check` found: false with "WHY; REMEDY, or keep it with --force WORD" as ERR_INPUT, unless the check is
// in `force`: then notes it in `*forced`.
bool bars_force_refuse(unsigned force, bars_force check, unsigned *forced, err *e, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));

#endif
