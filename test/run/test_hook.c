// The command of on_event: it is told what happens, and whatever it does, nobody waits for it.
#include "run/hook.h"

#include "cli/program.h"
#include "support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { ALL = (1u << HOOK_EVENTS) - 1 };

static hook *of(const char *command, double seconds) {
    return hook_new(&(hook_options){.command = command, .events = ALL, .dir = ".", .seconds = seconds});
}

// Ends a hook; its failure, or empty.
static const char *ended(hook *h) {
    static char why[256];
    why[0] = 0;
    hook_finish(h);
    hook_tick(h, why, sizeof why);
    hook_free(h);
    return why;
}

static void events_come_as_json_in_their_order(void **state) {
    (void)state;
    hook *h = of("cat >>got; echo >>got", 0);
    for (int i = 1; i <= 5; i++) hook_tell(h, HOOK_BEST, "it's \"best\"", json_pack("{s:i}", "epoch", i));
    hook_tell(h, HOOK_FINISHED, "done", NULL);
    assert_string_equal(ended(h), "");
    FILE *f = fopen("got", "r");
    char line[1024];
    for (int i = 1; i <= 6; i++) {
        err e;
        assert_non_null(fgets(line, sizeof line, f));
        json_t *each = json_read(line, strlen(line), &e);
        support_ok(each != NULL, &e);
        assert_string_equal(json_string_value(json_object_get(each, "event")), i < 6 ? "best" : "finished");
        assert_true(json_integer_value(json_object_get(each, "time")) > 1000000000);
        assert_int_equal(json_string_value(json_object_get(each, "run"))[0], '/');
        if (i < 6) assert_int_equal(json_integer_value(json_object_get(each, "epoch")), i);
        json_decref(each);
    }
    fclose(f);
}

static void only_what_was_asked_for_is_told(void **state) {
    (void)state;
    assert_null(hook_new(&(hook_options){.command = NULL, .events = ALL, .dir = "."}));
    assert_null(hook_new(&(hook_options){.command = "", .events = ALL, .dir = "."}));
    hook_tell(NULL, HOOK_BEST, "", json_object());
    assert_false(hook_tick(NULL, NULL, 0));
    hook *h = hook_new(&(hook_options){.command = "cat >>got", .events = 1u << HOOK_FAILED, .dir = "."});
    hook_tell(h, HOOK_BEST, "", json_object());
    assert_string_equal(ended(h), "");
    assert_int_not_equal(access("got", F_OK), 0);
}

// Nothing is waited for: a call takes no longer than starting a program does, on a machine of any speed.
static void a_command_that_hangs_is_killed(void **state) {
    (void)state;
    double before = support_seconds();
    hook *h = of("echo $$ >pid; sleep 1000 & sleep 1000", 0.3);
    hook_tell(h, HOOK_BEST, "", NULL);
    hook_tell(h, HOOK_BEST, "", NULL);
    char why[256];
    while (!hook_tick(h, why, sizeof why)) usleep(10000);
    assert_non_null(strstr(why, "was killed after"));
    hook_free(h); // the second one hangs too
    assert_true(support_seconds() - before < 500);
}

static void a_command_that_ignores_all_ends(void **state) {
    (void)state;
    hook *h = of("trap '' TERM INT HUP; while :; do sleep 1; done", 0.2);
    hook_tell(h, HOOK_STOP, "", NULL);
    assert_non_null(strstr(ended(h), "was killed after"));
}

static void failures_are_told(void **state) {
    (void)state;
    hook *h = of("echo no good >&2; exit 3", 0);
    hook_tell(h, HOOK_BEST, "", NULL);
    assert_string_equal(ended(h), "on_event: the command ended with status 3; see on_event.log");
    assert_true(file_holds("on_event.log", "no good"));
    h = of("/nowhere/at/all", 0);
    hook_tell(h, HOOK_BEST, "", NULL);
    assert_non_null(strstr(ended(h), "was not found"));
    h = of("kill -9 $$", 0);
    hook_tell(h, HOOK_BEST, "", NULL);
    assert_non_null(strstr(ended(h), "signal 9"));
}

static void a_command_may_read_nothing(void **state) {
    (void)state;
    char *text = malloc(1 << 20);
    memset(text, 'x', (1 << 20) - 1);
    text[(1 << 20) - 1] = 0;
    hook *h = of("exec <&-; exit 0", 0);
    for (int i = 0; i < 10; i++) hook_tell(h, HOOK_FAILED, text, NULL); // longer than a pipe holds: it is cut
    assert_string_equal(ended(h), "");
    free(text);
}

static void a_flood_drops_the_oldest(void **state) {
    (void)state;
    hook *h = of("sleep 1000", 0.2);
    char why[256] = "";
    for (int i = 0; i < 100; i++) hook_tell(h, HOOK_MEMORY, "", NULL);
    assert_true(hook_tick(h, why, sizeof why));
    assert_non_null(strstr(why, "too slow; 35 events were dropped"));
    hook_free(h);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(events_come_as_json_in_their_order, support_enter, support_leave),
        cmocka_unit_test_setup_teardown(only_what_was_asked_for_is_told, support_enter, support_leave),
        cmocka_unit_test_setup_teardown(a_command_that_hangs_is_killed, support_enter, support_leave),
        cmocka_unit_test_setup_teardown(a_command_that_ignores_all_ends, support_enter, support_leave),
        cmocka_unit_test_setup_teardown(failures_are_told, support_enter, support_leave),
        cmocka_unit_test_setup_teardown(a_command_may_read_nothing, support_enter, support_leave),
        cmocka_unit_test_setup_teardown(a_flood_drops_the_oldest, support_enter, support_leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
