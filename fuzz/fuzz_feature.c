// Names of features, and bars of any bits: whatever a list accepts gives finite columns, and the rules of the strategy
// vector answer within their bounds. Bytes up to the first NUL are a name; the rest are bars.
#include "data/feature.h"
#include "data/strategy.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void push_all(feature_list *l, strategy *s, const uint8_t *data, size_t size) {
    bar b;
    float row[1], strength[STRATEGIES];
    int8_t signal[STRATEGIES];
    for (; size >= sizeof b; data += sizeof b, size -= sizeof b) {
        memcpy(&b, data, sizeof b);
        feature_list_push(l, &b, row);
        if (!isfinite(row[0])) abort();
        // Rules answer once 199 bars have passed: each bar comes several times.
        for (int i = 0; i < 8; i++) strategy_push(s, &b, signal, strength);
        for (int i = 0; i < STRATEGIES; i++)
            if (!(strength[i] >= 0 && strength[i] <= 1) || signal[i] < -1 || signal[i] > 1) abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const uint8_t *end = size ? memchr(data, 0, size) : NULL;
    err e;
    if (!end) return 0;
    const char *spec = (const char *)data;
    feature_list *l = feature_list_new(&spec, 1, 300, &e);
    strategy *s = l ? strategy_new(300, &e) : NULL;
    if (s) push_all(l, s, end + 1, size - (size_t)(end + 1 - data));
    strategy_free(s);
    feature_list_free(l);
    return 0;
}
