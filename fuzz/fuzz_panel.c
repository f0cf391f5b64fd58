// Panels: any text is read or refused, and what is read holds its promises.
#include "data/panel.h"

#include <math.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    panel p;
    err e;
    if (panel_parse(&p, "fuzz.csv", (const char *)data, size, &e)) {
        CHECK(p.series > 0 && p.offset[0] == 0, "a panel without series");
        for (int64_t i = 0; i < p.series; i++) CHECK(p.name[i][0] && p.offset[i + 1] > p.offset[i], "an empty series");
        for (int64_t i = 0; i < p.offset[p.series]; i++) CHECK(isfinite(p.value[i]), "a value that is not finite");
    }
    panel_done(&p);
    return 0;
}
