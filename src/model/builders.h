// The build function of each model, for model.c alone.
#ifndef TRADEWIND_MODEL_BUILDERS_H
#define TRADEWIND_MODEL_BUILDERS_H

#include "model/model.h"

#define MODEL(kind, layout) tensor model_build_##kind(graph *g, const model_spec *s);
#include "model/model.def"
#undef MODEL

#endif
