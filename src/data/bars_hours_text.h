// Hours of a week in words: "Mon-Thu 01:00-23:55, Fri 01:00-21:55; closed inside: Wed 14:00-14:55".
#ifndef TRADEWIND_DATA_BARS_HOURS_TEXT_H
#define TRADEWIND_DATA_BARS_HOURS_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// `open` is [7][slots], Monday first. Times are those at which bars of `span` seconds open. Sets `*pattern` where hours
// look like a hole rather than a market's: closed on some weekdays at a time at which others are open before and after
// it, or four times a day and more at equal distances. Returns `buf`, which ends in "..." where it is too short.
char *bars_hours_text(char *buf, size_t n, const bool *open, int64_t slots, int64_t span, bool *pattern);

#endif
