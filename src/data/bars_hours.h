// Hours of a market, as the bars of a file show them, on the file's clock.
//
// A slot is a weekday and a place on the day's grid of spans. It is open where at least half of the weeks have a bar in
// it; weeks without any bar are left aside, so that a hole of months closes nothing. Files under four weeks have too
// few for that: there three quarters of the Mondays, of the Tuesdays to Thursdays, of the Fridays and so on decide.
//
// Where that explains much more, summer and winter are counted apart, by the rules of New York or of Europe: a file in
// UTC shows such a market an hour earlier in summer. Where slots were open in three quarters of the weeks before some
// week and in one of twenty after it, or the other way round, hours changed there; each side, of half a year or more,
// is counted by itself.
#ifndef TRADEWIND_DATA_BARS_HOURS_H
#define TRADEWIND_DATA_BARS_HOURS_H

#include "data/bars_rows.h"

typedef struct bars_hours bars_hours;

// The hours of the rows from `from` on, for spans up to a day; kept stretches of coarser bars say nothing. NULL where
// memory is short, or ERR_INPUT where weeks of so fine a grid over so long a time would take more than 256 MB.
bars_hours *bars_hours_new(const rows *r, size_t from, const when_zone *z, int64_t span, err *e);
void bars_hours_free(bars_hours *h);

// Open slots between the slots of two moments on the file's clock, both not counted. Hours at the end of the rows hold
// for ten years more; where they are not known, none is.
int64_t bars_hours_between(const bars_hours *h, int64_t a, int64_t b);

// Slots between those of two moments that had a bar in any week of such hours; -1 where hours are not known, before the
// first week of the rows and ten years behind the last one.
int64_t bars_hours_ever(const bars_hours *h, int64_t a, int64_t b);

// The largest share of days that have a bar at one time of day: Tuesdays to Thursdays with any bar (of daily files, in
// weeks with any bar), the first and the last week left aside. A market that is open at some time has bars then nearly
// always. 1 where there are fewer than 15 such days.
double bars_hours_fullest(const bars_hours *h);

// Puts the hours as of the last bar into words, and when they changed: see bars_report. Files that touch fewer than
// three weeks get none. False where memory is short.
bool bars_hours_tell(const bars_hours *h, bars_report *p, err *e);

#endif
