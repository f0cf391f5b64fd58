// Sine, cosine, logarithm and root for environments, with the same bits on every device: sums, products, divisions and
// square roots of doubles alone, each rounded by itself. Errors are below 2e-16 of the result's size or of 1, for
// angles within 1e5.
#ifndef TRADEWIND_ENV_MATHS_H
#define TRADEWIND_ENV_MATHS_H

#include "env/env.h"

#include <math.h>
#include <string.h>

// Series around 0, for |x| up to pi / 4.
ENV_FN double maths_sin_near(double x) {
    double z = x * x, s = 1.0 / 355687428096000.0; // 1 / 17!
    s = s * z - 1.0 / 1307674368000.0;
    s = s * z + 1.0 / 6227020800.0;
    s = s * z - 1.0 / 39916800.0;
    s = s * z + 1.0 / 362880.0;
    s = s * z - 1.0 / 5040.0;
    s = s * z + 1.0 / 120.0;
    s = s * z - 1.0 / 6.0;
    return x + x * (z * s);
}

ENV_FN double maths_cos_near(double x) {
    double z = x * x, s = 1.0 / 20922789888000.0; // 1 / 16!
    s = s * z - 1.0 / 87178291200.0;
    s = s * z + 1.0 / 479001600.0;
    s = s * z - 1.0 / 3628800.0;
    s = s * z + 1.0 / 40320.0;
    s = s * z - 1.0 / 720.0;
    s = s * z + 1.0 / 24.0;
    return 1.0 - (0.5 * z - z * z * s);
}

// x less the nearest multiple of pi / 2, whose number modulo 4 goes to `quarter`. pi / 2 is taken off in three pieces,
// the first two short enough for exact products.
ENV_FN double maths_reduce(double x, int *quarter) {
    double n = x * 0.63661977236758134308; // 2 / pi
    int64_t k = (int64_t)(n < 0 ? n - 0.5 : n + 0.5);
    double m = (double)k;
    *quarter = (int)(k & 3);
    return ((x - m * 0x1.921fb5p+0) - m * 0x1.110b46p-26) - m * 0x1.1a62633145c07p-54;
}

ENV_FN double maths_sin(double x) {
    int q;
    double r = maths_reduce(x, &q), v = q & 1 ? maths_cos_near(r) : maths_sin_near(r);
    return q & 2 ? -v : v;
}

ENV_FN double maths_cos(double x) {
    int q;
    double r = maths_reduce(x, &q), v = q & 1 ? maths_sin_near(r) : maths_cos_near(r);
    return q == 1 || q == 2 ? -v : v;
}

// The natural logarithm of a normal number above 0: of 2^e m it is e log 2 + 2 atanh((m - 1) / (m + 1)).
ENV_FN double maths_log(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    int e = (int)(bits >> 52) - 1023;
    bits = (bits & 0xFFFFFFFFFFFFFu) | (uint64_t)1023 << 52;
    double m;
    memcpy(&m, &bits, sizeof m);
    if (m > 1.4142135623730951) {
        m *= 0.5;
        e++;
    }
    double s = (m - 1.0) / (m + 1.0), z = s * s, sum = 1.0 / 21.0;
    for (int k = 19; k >= 3; k -= 2) sum = sum * z + 1.0 / (double)k;
    return (double)e * 0x1.62e42fefap-1 + ((double)e * 0x1.cf79abc9e3b39p-40 + (2.0 * s + 2.0 * s * (z * sum)));
}

// The square root of a number not below 0, which IEEE 754 has rounded correctly everywhere.
ENV_FN double maths_sqrt(double x) {
    return sqrt(x);
}

#endif
