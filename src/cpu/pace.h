// The pace of a call that is played again and again: shared out to the pool's threads, or done by one.
//
// Waking threads and waiting for the last of them takes the same time for any call. Where a call itself takes no
// longer, sharing it out loses. How long either takes depends on the machine and on what else runs there, so it is
// seen, not guessed: some plays of a call are timed, shared and alone in turns, and from then on it is done the faster
// way. It is looked at anew after many plays, as other programs come and go. A call that takes long, beside which
// waking counts for nothing, is shared without a look at the other way. Results do not depend on any of it, as work is
// cut by sizes alone.
#ifndef TRADEWIND_CPU_PACE_H
#define TRADEWIND_CPU_PACE_H

#include <stdbool.h>

// All zero: nothing is known yet.
typedef struct {
    float shared, alone; // shortest times of this look, in seconds
    int plays;           // of this look, and then since it
    bool settled, one;   // settled: `one` says how it is done
} pace;

// True where the next play is to be shared out.
bool pace_shares(const pace *p);

// True where the next play is to be timed.
bool pace_looks(const pace *p);

// A play has ended, and took so long if it was timed.
void pace_played(pace *p, double seconds);

#endif
