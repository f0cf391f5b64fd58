#include "model/model.h"

#include "base/err.h"
#include "model/builders.h"

#include <string.h>

static const struct {
    const char *name;
    window_layout layout;
    tensor (*build)(graph *, const model_spec *);
} models[] = {
#define MODEL(kind, layout) {#kind, layout, model_build_##kind},
#include "model/model.def"
#undef MODEL
};

tensor model_build(graph *g, const model_spec *s) {
    CHECK((unsigned)s->kind < MODEL_COUNT, "model %d", (int)s->kind);
    return models[s->kind].build(g, s);
}

int64_t model_outputs(const model_spec *s) {
    return s->classes ? s->classes : s->horizon * (s->quantiles ? s->quantiles : 1);
}

model_kind model_find(const char *name) {
    int k = 0;
    while (k < MODEL_COUNT && strcmp(models[k].name, name) != 0) k++;
    return (model_kind)k;
}

const char *model_name(model_kind k) {
    return models[k].name;
}

window_layout model_layout(model_kind k) {
    return models[k].layout;
}
