#include "data/align.h"

#include "base/err.h"

void align_rows(const bar *fast, int64_t fast_count, int64_t fast_span, const bar *slow, int64_t slow_count,
    int64_t slow_span, int32_t *row) {
    CHECK(fast_span > 0 && slow_span > 0, "spans %lld and %lld", (long long)fast_span, (long long)slow_span);
    CHECK(slow_count >= 0 && slow_count <= INT32_MAX, "%lld slow bars", (long long)slow_count);
    int64_t lead = fast_span - slow_span, next = 0;
    for (int64_t t = 0; t < fast_count; t++) {
        while (next < slow_count && slow[next].time <= fast[t].time + lead) next++;
        row[t] = (int32_t)(next - 1);
    }
}
