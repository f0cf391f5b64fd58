// A card that is lost in the middle of a command, or whose memory another process takes: the command ends with status 1
// and one line, or goes on; run again on a sound card it ends in what an undisturbed one leaves. The card is
// cli/fake_card.c, whose n-th call of a kind fails.
//
// Runs in: test-long
#include "cli/program.h"
#include "fault/kinds.h"
#include "support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static const char *const calls[] = {
    "allocate", "write", "read", "fill", "pin", "feed", "fed", "record", "play", "sync"};
enum { CALLS = sizeof calls / sizeof *calls };

typedef struct {
    int tried, failed, passed;
} tally;

// False where the command makes fewer such calls.
static bool try_fault(const kind *k, const char *call, int at, const char *how, tally *t) {
    char which[64];
    snprintf(which, sizeof which, "%s %d %s", call, at, how);
    unlink("struck");
    setenv("FAKE_CARD_FAILS", which, 1);
    int status = kind_run(k, true, NULL);
    unsetenv("FAKE_CARD_FAILS");
    if (access("struck", F_OK) != 0) return false;
    if (!WIFEXITED(status) || WEXITSTATUS(status) > 1) fail_msg("%s: %s: ended with %d", k->name, which, status);
    if (WEXITSTATUS(status) == 1) matches("err", "^tradewind: [^\n]+\n$");
    t->tried++;
    t->failed += WEXITSTATUS(status) == 1;
    t->passed += WEXITSTATUS(status) == 0;
    kind_go_on(k, true);
    return true;
}

// Calls one by one at first, then ever further apart.
static void try_kind(const kind *k) {
    tally t = {0};
    kind_whole(k, true);
    for (int c = 0; c < CALLS; c++)
        for (int at = 1; try_fault(k, calls[c], at, "lost", &t) && try_fault(k, calls[c], at, "full", &t);)
            at += 1 + at / 2;
    print_message(
        "%-10s %4d faults: %d ended with status 1, %d without effect\n", k->name, t.tried, t.failed, t.passed);
    assert_true(t.failed > 0);
}

static void a_card_that_fails_costs_nothing(void **state) {
    (void)state;
    if (support_sanitized()) skip();
    kinds_enter(true);
    for (int i = 0; i < kinds_count; i++)
        if (kinds[i].card && kinds[i].writes) try_kind(&kinds[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_card_that_fails_costs_nothing, support_enter, support_leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
