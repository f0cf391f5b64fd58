#include "rl/ramp.h"

#include <math.h>
#include <stddef.h>

double ramp_at(const ramp *r, double done) {
    const double pi = 3.14159265358979323846;
    switch (r->kind) {
    case RAMP_LINEAR: return r->from + (r->to - r->from) * done;
    case RAMP_EXPONENTIAL: return r->from * pow(r->to / r->from, done);
    case RAMP_COSINE: return r->to + (r->from - r->to) * 0.5 * (1 + cos(pi * done));
    default: return r->from;
    }
}

const char *ramp_name(ramp_kind k) {
    static const char *const names[] = {"constant", "linear", "exponential", "cosine"};
    return k < RAMP_KINDS ? names[k] : NULL;
}
