#include "task/ensemble.h"

#include "base/err.h"

#include <math.h>
#include <stdlib.h>

void ensemble_mean(const float *const *member, int members, int64_t n, float *out) {
    CHECK(members > 0, "an ensemble of none");
    for (int64_t i = 0; i < n; i++) {
        double sum = 0;
        for (int m = 0; m < members; m++) sum += (double)member[m][i];
        out[i] = (float)(sum / members);
    }
}

// Puts value number `count` in its place among the sorted ones before it.
static void insert(float *sorted, int count, float value) {
    int at = count;
    for (; at > 0 && sorted[at - 1] > value; at--) sorted[at] = sorted[at - 1];
    sorted[at] = value;
}

void ensemble_median(const float *const *member, int members, int64_t n, float *out) {
    CHECK(members > 0, "an ensemble of none");
    float *sorted = malloc((size_t)members * sizeof *sorted);
    NEED(sorted, "out of memory for an ensemble of %d", members);
    for (int64_t i = 0; i < n; i++) {
        float bad = 0;
        for (int m = 0; m < members; m++) {
            if (isnan(member[m][i])) bad = member[m][i];
            insert(sorted, m, member[m][i]);
        }
        float low = sorted[(members - 1) / 2], high = sorted[members / 2];
        out[i] = isnan(bad) ? bad : (float)(((double)low + (double)high) / 2);
    }
    free(sorted);
}
