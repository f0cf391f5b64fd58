#include "cli/walks.h"

#include "cli/program.h"
#include "run/same.h"
#include "support.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { FOLDS_MOST = 40, MEMBERS_MOST = 4, WORDS_MOST = 16, PATH_ROOM = 160 };

static bool both_there(const char *a, const char *b) {
    assert_int_equal(access(a, F_OK), access(b, F_OK));
    return access(a, F_OK) == 0;
}

static void same_kept(const char *a, const char *b, const char *file) {
    char one[PATH_ROOM], other[PATH_ROOM];
    snprintf(one, sizeof one, "%s/%s", a, file);
    snprintf(other, sizeof other, "%s/%s", b, file);
    if (both_there(one, other)) same_bytes(one, other);
}

// A run, or an ensemble of some.
static void same_fold(const char *a, const char *b) {
    char one[PATH_ROOM], other[PATH_ROOM];
    int members = 0;
    for (int k = 1; k <= MEMBERS_MOST; k++) {
        snprintf(one, sizeof one, "%s/member_%d", a, k);
        snprintf(other, sizeof other, "%s/member_%d", b, k);
        if (!both_there(one, other)) continue;
        same_runs(one, other);
        members++;
    }
    if (!members) same_runs(a, b);
    same_kept(a, b, "evaluation.json");
    same_kept(a, b, "predictions_test.npz");
}

void same_walks(const char *a, const char *b) {
    char one[64], other[64];
    int folds = 0;
    snprintf(one, sizeof one, "%s/walk.json", a);
    snprintf(other, sizeof other, "%s/walk.json", b);
    same_bytes(one, other);
    for (int k = 1; k <= FOLDS_MOST; k++) {
        snprintf(one, sizeof one, "%s/fold_%02d", a, k);
        snprintf(other, sizeof other, "%s/fold_%02d", b, k);
        if (!both_there(one, other)) continue;
        same_fold(one, other);
        folds++;
    }
    assert_true(folds > 0);
}

json_t *walk_document(const char *dir) {
    err e;
    char path[64];
    snprintf(path, sizeof path, "%s/walk.json", dir);
    char *text = slurp(path);
    json_t *doc = json_read(text, strlen(text), &e);
    free(text);
    assert_non_null(doc);
    return doc;
}

int walk_folds_of(const char *dir, const char *status) {
    json_t *doc = walk_document(dir), *fold;
    size_t i;
    int n = 0;
    json_array_foreach(json_object_get(doc, "folds"), i, fold) n +=
        strcmp(json_string_value(json_object_get(fold, "status")), status) == 0;
    json_decref(doc);
    return n;
}

static pid_t start(const char *const *words, const char *dir) {
    const char *all[WORDS_MOST];
    char path[64], place[64];
    int n = 0;
    for (; words[n]; n++) all[n] = words[n];
    assert_true(n + 3 <= WORDS_MOST);
    snprintf(place, sizeof place, "run.dir=%s", dir);
    snprintf(path, sizeof path, "%s/config.yaml", dir);
    all[n++] = place;
    all[n++] = access(path, F_OK) == 0 ? "--resume" : "-v";
    all[n] = NULL;
    return program_start("out", all);
}

int walk_killed(const char *const *words, int kills) {
    int status, killed = 0;
    double began = support_seconds();
    assert_int_equal(program_finish(start(words, "whole")), 0);
    double whole = support_seconds() - began;
    for (int k = 0; k < kills; k++) {
        pid_t child = start(words, "made");
        usleep((useconds_t)(1e6 * whole * (k + 1) / (2 * kills)));
        kill(child, SIGKILL);
        assert_int_equal(waitpid(child, &status, 0), child);
        killed += WIFSIGNALED(status);
    }
    assert_int_equal(program_finish(start(words, "made")), 0);
    same_walks("whole", "made");
    assert_int_equal(program_finish(start(words, "made")), 0); // once more: all is there
    same_walks("whole", "made");
    return killed;
}

static pid_t start_in_made(const char *const *words, const char *option, const char *out) {
    const char *all[WORDS_MOST];
    int n = 0;
    for (; words[n]; n++) all[n] = words[n];
    assert_true(n + 3 <= WORDS_MOST);
    all[n++] = "run.dir=made";
    all[n++] = option;
    all[n] = NULL;
    return program_start(out, all);
}

// True where it was killed before its end.
static bool kill_now(pid_t child) {
    int status;
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status);
}

int walk_shards_killed(const char *const *words, int kills) {
    static const char *const shard[] = {"--shard=1/2", "--shard=2/2"}, *const out[] = {"out", "out2"};
    int killed = 0;
    double began = support_seconds();
    assert_int_equal(program_finish(start(words, "whole")), 0);
    double whole = support_seconds() - began;
    for (int k = 0; k < kills; k++) {
        pid_t child[2];
        for (int i = 0; i < 2; i++) child[i] = start_in_made(words, shard[i], out[i]);
        usleep((useconds_t)(1e6 * whole * (k + 1) / (2 * kills)));
        for (int i = 0; i < 2; i++) killed += kill_now(child[i]);
    }
    for (int i = 0; i < 2; i++) assert_int_equal(program_finish(start_in_made(words, shard[i], out[i])), 0);
    assert_int_equal(program_finish(start_in_made(words, "--gather", "out")), 0);
    same_walks("whole", "made");
    return killed;
}

int walk_kills(int usual) {
    const char *given = getenv("TRADEWIND_WALK_KILLS");
    return given ? atoi(given) : usual;
}
