// Inputs on the model's scale: fitted on the training part, or as trained weights carry it.
#ifndef TRADEWIND_TASK_SCALE_H
#define TRADEWIND_TASK_SCALE_H

#include "task/open.h"

// The word of data.scale that weights were trained with: "none", "standard" or "own".
const char *scale_saved(const safetensors *weights);

// Makes the task's scaler, where its inputs are scaled, after its data and split. Where every instrument has its own
// scale, the data become a view on theirs.
bool scale_make(task *t, err *e);

// The word of the task's own scale; before scale_make the one that its description asks for.
const char *scale_name(const task *t);

#endif
