// Agreement of two files of bars: whether a coarser one is of the same instrument and on the same clock.
//
// When a slow bar closes, its close is that of the last fast bar inside it. Feeds differ by a few points, so closes
// agree within the usual range of a fast bar or half the usual move of a slow one, whichever is more. At least half of
// the moments must agree, and no shift of the slow file may fit clearly better: multiples of 15 minutes up to 14 hours,
// each also with an hour more or less in New York's summer, as clocks with daylight saving have it. A shift fits
// clearly better where it brings three of four closes that it changes nearer, and halves their usual distance. Bars of
// a day and more may fit better earlier: their close may be that of a session which ends before the day.
// A clock may have changed within the slow file: each stretch of 64 of its bars is also compared by itself, with shifts
// of whole hours, so that a wrong stretch does not teach what is usual.
// Where files agree, at least half of their newest 20 moments are no farther apart than thrice the distance that nine
// of ten keep, or a twentieth of the usual range of the newest fast bars: bars that were saved before they were over
// are the ones that a prediction sees. With fewer than 20 comparable moments nothing is said.
#ifndef TRADEWIND_DATA_AGREE_H
#define TRADEWIND_DATA_AGREE_H

#include "data/bar.h"
#include "data/bars_force.h"

typedef struct {
    int64_t compared;           // moments: at most 512, evenly over the slow file
    double agreed;              // share of them whose closes agree
    double factor;              // median of slow close / fast close; 0 where nothing was compared
    int64_t shift;              // seconds that make the slow file fit better; 0: none
    int summer;                 // hours more in New York's summer: -1, 0 or 1
    int64_t part_shift;         // seconds that make a stretch of the slow file fit better; 0: none
    int64_t part_from, part_to; // opens of the first and the last bar of that stretch
    double stale;   // share of fast bars whose last closed slow bar is older than its span and 4 days, of those that
                    // have one; 1 where none has
    int newest;     // of the newest 20 moments, those that are far off
    int newest_off; // all of them, back to where 5 in a row agree
    int64_t newest_from; // the open of the first of these
    int newest_run;      // the newest in a row that are far off, at most 20
    unsigned forced;     // checks that found something and were overruled
} agree_report;

// Bars of one file.
typedef struct {
    const bar *bar; // [count] in time order, 1 or more
    int64_t count, span;
    const char *name; // in messages
} agree_bars;

// Compares; the slow bars have the longer span. ERR_INPUT where they do not agree (BARS_FORCE_AGREE in `force`
// overrules that) or over half of the fast bars see a stale slow one (BARS_FORCE_STALE); `r` is filled in any case.
bool agree_check(const agree_bars *fast, const agree_bars *slow, unsigned force, agree_report *r, err *e);

#endif
