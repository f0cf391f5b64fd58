// Amounts and rules of accounts, for tests.
#ifndef TRADEWIND_TEST_ENV_PLAIN_H
#define TRADEWIND_TEST_ENV_PLAIN_H

#include "env/account.h"

// A number as a whole number of 1e-8.
int64_t fixed(double v);

// 10,000 of cash without costs, leverage 1, whole lots of one unit.
account_rules plain_rules(void);

#endif
