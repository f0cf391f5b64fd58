// The CPU's promise: a run under gpu_optimization.max_host_memory_gb never has more anonymous memory than that, and
// what `plan` says it takes is what it takes. The process is watched from outside, as an operator would.
//
// Runs in: test-long
#include "cli/program.h"
#include "support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum { WORDS = 20 };

// A process's anonymous memory now; 0 where the system does not say.
static double anonymous_of(pid_t child) {
    char path[64], line[256];
    double kb = 0;
    snprintf(path, sizeof path, "/proc/%d/status", (int)child);
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f)) sscanf(line, "RssAnon: %lf kB", &kb);
    if (f) fclose(f);
    return kb * 1024;
}

// Runs the program to its end and gives the most that was seen, every half millisecond.
static double watched(const char *const *words) {
    pid_t child = program_start("out", words);
    double most = 0;
    int status;
    pid_t ended;
    while (!(ended = waitpid(child, &status, WNOHANG))) {
        double now = anonymous_of(child);
        if (now > most) most = now;
        nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
    }
    assert_int_equal(ended, child);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        char *text = slurp("err");
        fail_msg("ended with %d: %s", status, text);
    }
    return most;
}

// "run.yaml", what the case adds, the limit and the rest; NULL ends it.
static void fill(const char **words, const char *command, const char *const *more, const char *limit) {
    int n = 0;
    words[n++] = command;
    words[n++] = "run.yaml";
    words[n++] = "--device=cpu";
    words[n++] = "gpu_optimization.dynamic_batch_sizing=true";
    words[n++] = limit;
    for (int i = 0; more[i]; i++) words[n++] = more[i];
    if (strcmp(command, "plan") == 0) words[n++] = "--json";
    words[n] = NULL;
    assert_true(n < WORDS);
}

static const struct {
    const char *name;
    double limit; // GB
    const char *words[8];
} cases[] = {
    {"lstm", 0.25, {"train.batch_size=4096"}},
    {"lstm, streamed", 0.25, {"train.batch_size=4096", "data.residency=host"}},
    {"transformer", 0.3, {"train.batch_size=1024", "model.kind=transformer", "model.hidden.fast=64", "model.heads=4"}},
    {"nbeats", 0.4, {"train.batch_size=2048", "model.kind=nbeats", "model.blocks=8", "model.width=256"}},
    {"mlp of many weights", 0.5, {"train.batch_size=1024", "model.kind=mlp", "model.widths=2048-2048"}},
};

// The prediction may be off by 2 % or 32 MB, whichever is more.
static void check_case(size_t i) {
    char limit[80];
    const char *words[WORDS + 1];
    snprintf(limit, sizeof limit, "gpu_optimization.max_host_memory_gb=%.2f", cases[i].limit);
    fill(words, "plan", cases[i].words, limit);
    assert_int_equal(program_finish(program_start("out", words)), 0);
    json_t *v = last_line();
    double predicted = json_number_value(json_object_get(json_object_get(v, "memory"), "total"));
    json_int_t parts = json_integer_value(json_object_get(json_object_get(v, "choice"), "accumulation"));
    assert_true(json_is_true(json_object_get(v, "fits")));
    json_decref(v);
    fill(words, "train", cases[i].words, limit);
    double most = watched(words), slack = 0.02 * predicted > 32e6 ? 0.02 * predicted : 32e6;
    print_message("%s: %d micro-batches, %.1f MB predicted, %.1f MB taken, limit %.1f MB\n", cases[i].name, (int)parts,
        predicted / 1e6, most / 1e6, cases[i].limit * 0x1p30 / 1e6);
    assert_true(most > 0 && most <= cases[i].limit * 0x1p30);
    assert_true(predicted - most < slack && most - predicted < slack);
}

static void a_limit_of_the_host_is_kept(void **state) {
    (void)state;
    if (support_sanitized()) skip(); // a sanitizer's own memory is counted with the program's
    put_text("run.yaml", "data:\n  synthetic: {bars: 20000}\ntrain:\n  epochs: 1\n  steps: 3\nrun:\n  dir: made\n");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) check_case(i);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_limit_of_the_host_is_kept, support_enter, support_leave),
    };
    program_use(TRADEWIND_BINARY);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
