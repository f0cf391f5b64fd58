#include "env/plain.h"

#include "env/account_terms.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

int64_t fixed(double v) {
    int64_t to;
    assert_true(account_fixed(v, &to));
    return to;
}

account_rules plain_rules(void) {
    return (account_rules){.cash = fixed(10000),
        .commission_units = ACCOUNT_ONE,
        .leverage = ACCOUNT_ONE,
        .contract = ACCOUNT_ONE,
        .entry_stop = true,
        .shorts = true};
}
