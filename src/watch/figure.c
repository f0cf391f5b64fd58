#include "watch/figure.h"

static const figure *const all[] = {
#define FIGURE(name) &figure_##name,
#include "watch/figures.def"
#undef FIGURE
};

const figure *figure_at(int i) {
    return i >= 0 && i < (int)(sizeof all / sizeof *all) ? all[i] : NULL;
}

bool figure_applies(const figure *g, const facts *f) {
    bool agent = f->agent[0] != 0;
    if (g->of != FIGURE_OF_ALL && agent != (g->of == FIGURE_OF_AGENTS)) return false;
    return !g->applies || g->applies(f);
}
