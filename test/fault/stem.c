#include "fault/stem.h"

#include "fault/shim_stem.h"
#include "support.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { STEMS = 2, KEY_MOST = 512 };

// One for a command as it is, one for the same with the word that goes on.
typedef struct {
    char key[KEY_MOST]; // empty: none
    pid_t process;
    int orders, answers;
    int64_t trunk; // call up to which its trunk has gone; 0: none
    int64_t reach; // no trunk reaches this call of `call`
    char call[12];
} stem;

static stem stems[STEMS];
static int oldest;

static void end(stem *s) {
    if (!s->key[0]) return;
    close(s->orders);
    close(s->answers);
    waitpid(s->process, NULL, 0);
    s->key[0] = 0;
}

void stem_leave(void) {
    for (int i = 0; i < STEMS; i++) end(&stems[i]);
}

static void make_key(char key[KEY_MOST], const char *const *words, const char *mark) {
    size_t n = (size_t)snprintf(key, KEY_MOST, "%s|%s", getenv("FAKE_CARD"), mark ? mark : "");
    for (int i = 0; words[i]; i++) {
        assert_true(n < KEY_MOST);
        n += (size_t)snprintf(key + n, KEY_MOST - n, " %s", words[i]);
    }
    assert_true(n < KEY_MOST);
}

static void begin(stem *s, const char *const *words, const char *mark) {
    int orders[2], answers[2];
    char ends[32];
    assert_int_equal(pipe2(orders, O_CLOEXEC) | pipe2(answers, O_CLOEXEC), 0);
    fcntl(orders[0], F_SETFD, 0);
    fcntl(answers[1], F_SETFD, 0);
    snprintf(ends, sizeof ends, "%d %d", orders[0], answers[1]);
    setenv("FAULT_STEM", ends, 1);
    setenv("LD_BIND_NOW", "1", 1);
    s->process = fault_start(words, NULL, mark);
    unsetenv("LD_BIND_NOW");
    unsetenv("FAULT_STEM");
    close(orders[0]);
    close(answers[1]);
    s->orders = orders[1];
    s->answers = answers[0];
    s->trunk = s->reach = 0;
}

static stem *find(const char *const *words, const char *mark) {
    char key[KEY_MOST];
    make_key(key, words, mark);
    for (int i = 0; i < STEMS; i++)
        if (strcmp(stems[i].key, key) == 0) return &stems[i];
    stem *s = &stems[oldest];
    oldest = (oldest + 1) % STEMS;
    end(s);
    begin(s, words, mark);
    memcpy(s->key, key, KEY_MOST);
    return s;
}

static void order(stem *s, stem_act act, const fault *f) {
    stem_order o = {.act = act, .at = f ? f->at : 0};
    snprintf(o.call, sizeof o.call, "%s", f ? f->call : "");
    snprintf(o.how, sizeof o.how, "%s", f ? f->how : "fail");
    assert_int_equal(write(s->orders, &o, sizeof o), sizeof o);
}

static stem_answer take_answer(stem *s) {
    stem_answer a;
    if (read(s->answers, &a, sizeof a) != (ssize_t)sizeof a) fail_msg("a stem has ended: %s", s->key);
    return a;
}

static void fell(stem *s) {
    if (!s->trunk) return;
    s->trunk = 0;
    order(s, STEM_FELL, NULL);
    assert_false(take_answer(s).branch);
}

void stem_fell(void) {
    for (int i = 0; i < STEMS; i++)
        if (stems[i].key[0]) fell(&stems[i]);
}

int stem_run(const char *const *words, const fault *f, const char *mark) {
    stem *s = find(words, mark);
    fell(s);
    unlink("count");
    order(s, STEM_RUN, f);
    return take_answer(s).status;
}

bool stem_grow(const char *const *words, const fault *f, const char *mark, int *status) {
    stem *s = find(words, mark);
    if (strcmp(s->call, f->call) != 0) {
        snprintf(s->call, sizeof s->call, "%s", f->call);
        s->reach = INT64_MAX;
    }
    if (f->at >= s->reach) return false;
    if (f->at <= s->trunk) fell(s);
    unlink("count");
    order(s, STEM_GROW, f);
    stem_answer a = take_answer(s);
    s->trunk = a.branch ? f->at : 0;
    if (!a.branch) s->reach = f->at;
    *status = a.branch || a.status ? a.status : -1;
    return a.branch;
}
