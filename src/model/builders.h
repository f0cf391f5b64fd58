// The build function of each model, for model.c alone, and what several of them share.
#ifndef TRADEWIND_MODEL_BUILDERS_H
#define TRADEWIND_MODEL_BUILDERS_H

#include "model/model.h"

#define MODEL(kind, layout) tensor model_build_##kind(graph *g, const model_spec *s);
#include "model/model.def"
#undef MODEL

// Joins what became of the streams with a projection of the vector, and puts a head on it.
//   vector:  strat = Linear, ReLU, Dropout                         -> [B, projection]
//   head:    Linear, ReLU, Dropout, Linear, or Linear alone        -> [B, outputs]
tensor model_fuse(graph *g, const model_spec *s, const tensor *streams, int count);

// The head alone.
tensor model_head(graph *g, const model_spec *s, tensor x);

#endif
