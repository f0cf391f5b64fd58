#include "cpu/pace.h"

// A look is so many plays of either kind, and the next look comes so many plays later. Of a long call the first look is
// one play. Waking takes some millionths of a second on any machine.
enum { LOOKS = 8, BETWEEN = 20000 };
static const double long_call = 2e-4;

// Smallest relative gain by which threads are worth their noise.
static const float gain = 0.2f;

bool pace_shares(const pace *p) {
    return p->settled ? !p->one : p->plays % 2 == 0;
}

bool pace_looks(const pace *p) {
    return !p->settled;
}

static void settle(pace *p, bool one) {
    *p = (pace){.settled = true, .one = one};
}

static void look(pace *p, float seconds) {
    float *best = p->plays % 2 == 0 ? &p->shared : &p->alone;
    if (p->plays < 2 || seconds < *best) *best = seconds;
    p->plays++;
    if (p->shared >= (float)long_call)
        settle(p, false);
    else if (p->plays == 2 * LOOKS)
        settle(p, p->shared > (1 - gain) * p->alone);
}

void pace_played(pace *p, double seconds) {
    if (!p->settled)
        look(p, (float)seconds);
    else if (++p->plays == BETWEEN)
        *p = (pace){0};
}
