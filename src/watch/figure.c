#include "watch/figure.h"

static const figure *const all[] = {
#define FIGURE(name) &figure_##name,
#include "watch/figures.def"
#undef FIGURE
};

const figure *figure_at(int i) {
    return i >= 0 && i < (int)(sizeof all / sizeof *all) ? all[i] : NULL;
}
