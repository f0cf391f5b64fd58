#include "data/align.h"

#include "base/err.h"

void align_rows(const int64_t *fast, int64_t fast_count, const int64_t *slow, int64_t slow_count, int32_t *row) {
    CHECK(slow_count >= 0 && slow_count <= INT32_MAX, "%lld slow bars", (long long)slow_count);
    int64_t next = 0;
    for (int64_t t = 0; t < fast_count; t++) {
        while (next < slow_count && slow[next] <= fast[t]) next++;
        row[t] = (int32_t)(next - 1);
    }
}
