// Runs in: test-long
//
// The terminal view in a real terminal, which tmux is: it draws, resizes, leaves, and gives the terminal back as it
// was.
#include "cli/program.h"
#include "run/db.h"
#include "support.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static db *file;
static int servers; // a new one each time: the one before may still be leaving

// tmux with a server of this test's own.
static int tmux(const char *fmt, ...) {
    char line[2048];
    int n = snprintf(line, sizeof line, "tmux -L tradewind-%ld-%d ", (long)getpid(), servers);
    va_list args;
    va_start(args, fmt);
    vsnprintf(line + n, sizeof line - (size_t)n, fmt, args);
    va_end(args);
    return system(line);
}

static int begin(void **state) {
    if (support_enter(state) != 0) return -1;
    mkdir("run", 0777);
    file = db_open("run/run.db");
    db_run(file, "0.1", "model:\n  kind: lstm\ntrain:\n  epochs: 4\n  metric: mcc\n",
        "device: cpu, avx2\nparameters: 9\n");
    for (int i = 1; i <= 3; i++) {
        const db_metric m[] = {{"validation", "loss", 1.0 / i}, {"validation", "mcc", 0.1 * i}};
        db_epoch(file, &(db_epoch_row){i, (uint64_t)(10 * i), 5, 100, true, NULL}, m, 2);
    }
    db_sync(file);
    return 0;
}

static int end(void **state) {
    tmux("kill-server 2>kill");
    db_close(file);
    return support_leave(state);
}

// Waits until the screen has a text.
static void sees(const char *text) {
    for (int i = 0; i < 600; i++) {
        tmux("capture-pane -p >screen 2>why");
        if (file_holds("screen", text)) return;
        usleep(100000);
    }
    char *screen = slurp("screen");
    fail_msg("no \"%s\" on the screen:\n%s", text, screen);
}

// A shell that keeps the terminal's settings before the view and behind it, and the view's status.
static void start(void) {
    put_text("in_it.sh",
        "stty -g >before\necho shell is here\nLC_ALL=C.UTF-8 sh -c 'echo $$ >pid; exec " TRADEWIND_BINARY
        " watch run'\necho $? >status\nstty -g >after\necho the view has ended\nsleep 1000\n");
    unlink("after");
    servers++;
    assert_int_equal(tmux("-f /dev/null new-session -d -x 100 -y 30 'sh in_it.sh'"), 0);
    sees("epoch 3 of 4");
}

static void has_left(int status) {
    char text[16];
    wait_for("after", ":");
    same_bytes("before", "after");
    snprintf(text, sizeof text, "%d\n", status);
    assert_true(file_holds("status", text));
    sees("the view has ended");
    sees("shell is here"); // the screen of before is back
    tmux("kill-server");
}

static void signal_it(int number) {
    char *text = slurp("pid");
    assert_int_equal(kill((pid_t)atol(text), number), 0);
    free(text);
}

static void it_draws_follows_and_leaves(void **state) {
    (void)state;
    if (system("tmux -V >version 2>&1") != 0) skip();
    start();
    sees("running for");
    sees("\u28c0"); // braille
    tmux("resize-window -x 60 -y 15");
    sees(" q quit  ? help  m metric  +/- zoom");
    tmux("resize-window -x 120 -y 40");
    tmux("send-keys '?'");
    sees("quit; the run goes on");
    tmux("send-keys '?' m");
    sees("loss ");
    const db_metric m[] = {{"validation", "loss", 0.1}, {"validation", "mcc", 0.9}};
    db_epoch(file, &(db_epoch_row){4, 40, 5, 100, true, NULL}, m, 2);
    db_status(file, "done", "");
    db_sync(file);
    sees("epoch 4 of 4"); // it stays when the run ends
    sees("done");
    rename("run", "elsewhere");
    sees("gone: the directory is no longer there");
    tmux("send-keys q");
    has_left(0);
}

static void signals_end_it(void **state) {
    (void)state;
    if (system("tmux -V >version 2>&1") != 0) skip();
    start();
    signal_it(SIGTERM);
    has_left(0);
    start();
    signal_it(SIGINT);
    has_left(0);
}

static void it_goes_with_its_terminal(void **state) {
    (void)state;
    if (system("tmux -V >version 2>&1") != 0) skip();
    start();
    char *text = slurp("pid");
    pid_t pid = (pid_t)atol(text);
    free(text);
    tmux("kill-server");
    for (int i = 0; i < 300 && kill(pid, 0) == 0; i++) usleep(100000);
    assert_int_not_equal(kill(pid, 0), 0);
}

// Lines would lie over each other where the cursor cannot be moved.
static void a_terminal_that_cannot_be_drawn_on_is_refused(void **state) {
    (void)state;
    if (system("tmux -V >version 2>&1") != 0) skip();
    servers++;
    assert_int_equal(tmux("-f /dev/null new-session -d -x 100 -y 30 'TERM=dumb " TRADEWIND_BINARY
                          " watch run; echo status $?; sleep 1000'"),
        0);
    sees("tradewind: the terminal (TERM=dumb) cannot be drawn on; --once prints a frame");
    sees("status 1");
    tmux("kill-server");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(it_draws_follows_and_leaves, begin, end),
        cmocka_unit_test_setup_teardown(signals_end_it, begin, end),
        cmocka_unit_test_setup_teardown(it_goes_with_its_terminal, begin, end),
        cmocka_unit_test_setup_teardown(a_terminal_that_cannot_be_drawn_on_is_refused, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
