#include "parts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

int parts_run(const char *group, struct CMUnitTest *tests, int count) {
    const char *only = getenv("TRADEWIND_TEST_ONLY"), *part = getenv("TRADEWIND_TEST_PART");
    int first = 0, of = 1, mine = 0;
    if (part && (sscanf(part, "%d/%d", &first, &of) != 2 || first < 0 || first >= of)) {
        fprintf(stderr, "TRADEWIND_TEST_PART=%s: must be I/N with I from 0 to N - 1\n", part);
        return 1;
    }
    for (int i = first; i < count; i += of) tests[mine++] = tests[i];
    if (only) cmocka_set_test_filter(only);
    return mine ? _cmocka_run_group_tests(group, tests, (size_t)mine, NULL, NULL) : 0;
}
