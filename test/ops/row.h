// A row of test_ops: one operator, and how it is checked.
#ifndef TRADEWIND_TEST_OPS_ROW_H
#define TRADEWIND_TEST_OPS_ROW_H

#include "ops/trial.h"

typedef struct {
    op op;
    const char *name;
    tensor (*build)(trial *);     // with a gradient
    void (*check)(const place *); // without
    bool offset;                  // also with inputs around 10^4
} row;

#endif
