// Any bytes as a file of what was tuned: no crash, a reason of one line where it is not taken, and what is taken is a
// way that a step can be run in.
#include "train/wisdom.h"

#include <math.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const wisdom_key k = {.fields = 2, .field = {{"build", true, "1"}, {"device", false, "a card"}}};
    for (int64_t batch = 0; batch <= 512; batch += 512) {
        wisdom_answer a = wisdom_read((const char *)data, size, "file", &k, batch);
        const wisdom_entry *w = &a.entry;
        CHECK(!strpbrk(a.line, "\n\r\t"), "a line of several: %s", a.line);
        CHECK(a.state == WISDOM_FOUND || batch || *a.line, "not taken, and no reason");
        if (a.state != WISDOM_FOUND) continue;
        CHECK(!batch || w->batch == batch, "another batch");
        CHECK(w->micro > 0 && w->parts > 0 && w->micro * w->parts == w->batch, "no way to run a batch");
        CHECK(w->again >= 0 && w->precision < PRECISION_FP64 && isfinite(w->samples_per_s), "a value out of range");
        CHECK(w->products <= PRODUCTS_LIBRARY && w->threads >= 0 && w->threads <= 1024, "no way to compute");
        CHECK(strlen(a.when) == 10, "no day: %s", a.when);
    }
    return 0;
}
