#include "cli/program.h"

#include "support.h"

#include <fcntl.h>
#include <regex.h>
#include <setjmp.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum { ARGUMENTS_MOST = 24 };

static const char *binary;

void program_use(const char *path) {
    binary = path;
}

static void copy_file(const char *from, const char *to) {
    char block[65536];
    FILE *in = fopen(from, "r"), *out = fopen(to, "w");
    if (!in || !out) fail_msg("%s: cannot be copied to %s", from, to);
    for (size_t n; (n = fread(block, 1, sizeof block, in)) > 0;) assert_int_equal(fwrite(block, 1, n, out), n);
    fclose(in);
    assert_int_equal(fclose(out), 0);
}

void program_copy(const char *path, const char *plugin) {
    copy_file(path, "tradewind");
    assert_int_equal(chmod("tradewind", 0755), 0);
    if (plugin) copy_file(plugin, "tradewind-cuda.so");
    program_use("./tradewind");
}

pid_t program_start(const char *out, const char *const *arguments) {
    const char *argv[ARGUMENTS_MOST + 2] = {binary};
    int n = 0;
    while (arguments[n] && n < ARGUMENTS_MOST) argv[n + 1] = arguments[n], n++;
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&files, 1, out, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    posix_spawn_file_actions_addopen(&files, 2, "err", O_WRONLY | O_CREAT | O_TRUNC, 0666);
    pid_t child;
    setenv("TRADEWIND_WISDOM", "wisdom", 1); // what was tuned on this machine is not the test's
    char *const *changeable = (char *const *)(uintptr_t)argv;
    int rc = posix_spawn(&child, binary, &files, NULL, changeable, environ);
    posix_spawn_file_actions_destroy(&files);
    if (rc) fail_msg("%s: %s", binary, strerror(rc));
    return child;
}

int program_finish(pid_t child) {
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (!WIFEXITED(status)) fail_msg("ended by signal %d", WTERMSIG(status));
    return WEXITSTATUS(status);
}

char *slurp(const char *path) {
    size_t bytes;
    FILE *f = fopen(path, "r");
    if (!f) fail_msg("%s: cannot be read", path);
    char *text = calloc(1, 1 << 18);
    assert_non_null(text);
    bytes = fread(text, 1, (1 << 18) - 1, f);
    text[bytes] = 0;
    fclose(f);
    return text;
}

void matches(const char *path, const char *pattern) {
    regex_t re;
    char *text = slurp(path);
    assert_int_equal(regcomp(&re, pattern, REG_EXTENDED | REG_NOSUB), 0);
    if (regexec(&re, text, 0, NULL, 0) != 0) fail_msg("%s holds \"%s\", not %s", path, text, pattern);
    regfree(&re);
    free(text);
}

bool file_holds(const char *path, const char *text) {
    if (access(path, R_OK) != 0) return false;
    char *all = slurp(path);
    bool found = strstr(all, text) != NULL;
    free(all);
    return found;
}

void same_bytes(const char *a, const char *b) {
    FILE *x = fopen(a, "r"), *y = fopen(b, "r");
    if (!x || !y) fail_msg("%s or %s: cannot be read", a, b);
    int c, d;
    do {
        c = getc(x);
        d = getc(y);
    } while (c == d && c != EOF);
    fclose(x);
    fclose(y);
    if (c != d) fail_msg("%s and %s differ", a, b);
}

void wait_for(const char *path, const char *text) {
    double until = support_seconds() + 120;
    while (!file_holds(path, text) && support_seconds() < until)
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    if (!file_holds(path, text)) fail_msg("%s never held %s", path, text);
}

void is_empty(const char *path) {
    matches(path, "^$");
}

void put_text(const char *path, const char *text) {
    support_put(path, text, strlen(text));
}

json_t *last_line(void) {
    err e = {0};
    char *text = slurp("out"), *rest = NULL, *last = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) last = line;
    assert_non_null(last);
    json_t *v = json_read(last, strlen(last), &e);
    if (!v) fail_msg("%s: %s", last, e.text);
    free(text);
    return v;
}

double number(const char *key) {
    json_t *v = last_line();
    double n = json_number_value(json_object_get(v, key));
    if (!json_is_number(json_object_get(v, key))) fail_msg("no number %s", key);
    json_decref(v);
    return n;
}

void complains(int status, const char *pattern) {
    char whole[512];
    assert_int_equal(status, 2);
    snprintf(whole, sizeof whole, "^tradewind: %s\n$", pattern);
    matches("err", whole);
    char *text = slurp("err");
    assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
    free(text);
    is_empty("out");
}

void put_small_run(void) {
    put_text("run.yaml", "data:\n  synthetic: {bars: 2000}\nmodel:\n  hidden: {fast: 4, slow: 4}\n"
                         "train:\n  epochs: 2\n  batch_size: 128\nrun:\n  dir: made\n");
}
