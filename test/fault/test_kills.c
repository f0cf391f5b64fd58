// Commands that are killed at random moments, drawn evenly over the time that each takes, and run again: they end in
// what an undisturbed one leaves, bit for bit. TRADEWIND_KILLS is how many are killed in all (48 where it is not set;
// `make kills` kills 1,000), over all kinds of commands that leave something behind. TRADEWIND_TEST_SEED draws others.
// TRADEWIND_KILLS_ONLY names one kind. TRADEWIND_CARD=FOLDER kills those that train on this machine's card
// (tools/gpu.sh kills).
//
// Runs in: test-long
#include "cli/program.h"
#include "fault/kinds.h"
#include "support.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include <cmocka.h>

enum { TIMINGS = 3 };

// Seconds that the undisturbed command takes: the shortest of a few.
static double seconds_of(const kind *k) {
    double least = 1e9;
    for (int i = 0; i < TIMINGS; i++) {
        kind_put(k);
        double began = support_seconds();
        if (program_finish(kind_start(k, kinds_real_card())) != 0) is_empty("err");
        double took = support_seconds() - began;
        least = took < least ? took : least;
    }
    return least;
}

// True where it was killed before its end.
static bool kill_after(const kind *k, double seconds) {
    int status;
    kind_put(k);
    pid_t child = kind_start(k, kinds_real_card());
    nanosleep(&(struct timespec){.tv_sec = (time_t)seconds, .tv_nsec = (long)((seconds - (long)seconds) * 1e9)}, NULL);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFSIGNALED(status)) return true;
    if (WEXITSTATUS(status) != 0) is_empty("err");
    return false;
}

static int kill_kind(const kind *k, int kills, dice *d) {
    int killed = 0;
    kind_whole(k, kinds_real_card());
    double seconds = seconds_of(k);
    for (int i = 0; i < kills; i++) {
        killed += kill_after(k, 0.5 * seconds * (1 + (double)dice_unit(d)));
        kind_go_on(k, kinds_real_card());
    }
    print_message("%-10s %4d kills, %d of them before its end, after 0 to %.0f ms: all the same\n", k->name, kills,
        killed, 1e3 * seconds);
    return killed;
}

// On a card those that train.
static bool is_killed(const kind *k) {
    const char *only = getenv("TRADEWIND_KILLS_ONLY");
    return k->writes && (!kinds_real_card() || k->mark) && (!only || strcmp(only, k->name) == 0);
}

static void killed_commands_lose_nothing(void **state) {
    (void)state;
    const char *given = getenv("TRADEWIND_KILLS"), *seed = getenv("TRADEWIND_TEST_SEED");
    int kills = given ? atoi(given) : 48, writing = 0, killed = 0, turn = 0;
    dice d = {.seed = seed ? strtoull(seed, NULL, 10) : 1};
    if (support_sanitized()) skip();
    kinds_enter(kinds_real_card());
    for (int i = 0; i < kinds_count; i++) writing += is_killed(&kinds[i]);
    for (int i = 0; i < kinds_count; i++) {
        if (!is_killed(&kinds[i])) continue;
        int share = kills * (turn + 1) / writing - kills * turn / writing;
        killed += kill_kind(&kinds[i], share, &d);
        turn++;
    }
    print_message("%d kills, %d of them before the end\n", kills, killed);
    assert_true(killed > kills / 4);
}

// Commands without the shim, as they run on a card of this machine, on the stand-in for one.
static void killed_on_a_card_they_lose_nothing(void **state) {
    (void)state;
    dice d = {.seed = 2};
    if (support_sanitized()) skip();
    if (kinds_real_card()) return;
    kinds_enter(true);
    setenv("TRADEWIND_CARD", "here already", 1);
    kill_kind(&kinds[0], 4, &d);
    unsetenv("TRADEWIND_CARD");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(killed_commands_lose_nothing, support_enter, support_leave),
        cmocka_unit_test_setup_teardown(killed_on_a_card_they_lose_nothing, support_enter, support_leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
