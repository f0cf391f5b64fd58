// Checkpoint files: whole or refused, the newest whole one found, the oldest removed, and a disk that takes no more.
#include "run/checkpoint.h"

#include "run/weights.h"
#include "support.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

// A file that cannot be opened now: the system's call, in the place of the C library's, has no descriptor for it.
static const char *unopened;

int open(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    mode_t mode = flags & O_CREAT ? (mode_t)va_arg(rest, unsigned) : 0;
    va_end(rest);
    if (!unopened || !strstr(path, unopened)) return openat(AT_FDCWD, path, flags, mode);
    errno = EMFILE;
    return -1;
}

static const float numbers[6] = {1, 2, 3, 4, 5, 6};
static const safetensors_note notes[] = {{"format", "pt"}, {"config", "a: 1\nb: \"two\"\n"}};

static bool put(const char *path, uint64_t step, err *e) {
    safetensors_entry t[2] = {{.name = "w", .type = SAFE_F32, .rank = 2, .dim = {2, 3}, .data = numbers, .bytes = 24},
        {.name = "none", .type = SAFE_F32, .rank = 1, .dim = {0}, .data = numbers, .bytes = 0}};
    return checkpoint_write(path, step, t, 2, notes, 2, e);
}

static void put_one(checkpoint_kind kind, uint64_t number, uint64_t step) {
    err e;
    char *path = checkpoint_path(".", kind, number);
    support_ok(put(path, step, &e), &e);
    free(path);
}

static unsigned char *bytes_of(const char *path, size_t *n) {
    struct stat st;
    FILE *f = fopen(path, "r");
    assert_true(f && !stat(path, &st));
    unsigned char *data = malloc((size_t)st.st_size);
    assert_non_null(data);
    *n = fread(data, 1, (size_t)st.st_size, f);
    assert_int_equal(*n, st.st_size);
    fclose(f);
    return data;
}

typedef struct {
    int count;
    char text[1024];
} complaints;

static void damaged(void *arg, const char *why) {
    complaints *c = arg;
    c->count++;
    snprintf(c->text, sizeof c->text, "%s", why);
}

// The steps of the newest whole one; 0 where there is none.
static uint64_t newest(complaints *c) {
    err e;
    char *path;
    *c = (complaints){0};
    safetensors *s = checkpoint_newest(".", damaged, c, &path, &e);
    uint64_t step = s ? checkpoint_step(s) : 0;
    safetensors_close(s);
    free(path);
    return step;
}

static void comes_back_as_written(void **state) {
    (void)state;
    err e;
    support_ok(put("last.safetensors", 77, &e), &e);
    safetensors *s = checkpoint_open("last.safetensors", &e);
    support_ok(s != NULL, &e);
    assert_int_equal(checkpoint_step(s), 77);
    assert_string_equal(safetensors_metadata(s, "config"), notes[1].value);
    const safetensors_entry *t = safetensors_find(s, "w");
    assert_non_null(t);
    assert_memory_equal(t->data, numbers, sizeof numbers);
    safetensors_close(s);
}

static void names_are_read(void **state) {
    (void)state;
    checkpoint_kind kind;
    uint64_t n;
    assert_true(checkpoint_named("checkpoint_epoch_50.safetensors", &kind, &n));
    assert_true(kind == CHECKPOINT_EPOCH && n == 50);
    assert_true(checkpoint_named("checkpoint_step_18446744073709551615.safetensors", &kind, &n));
    assert_true(kind == CHECKPOINT_STEP && n == UINT64_MAX);
    assert_true(checkpoint_named("last.safetensors", &kind, &n) && kind == CHECKPOINT_LAST);
    static const char *const others[] = {"best.safetensors", "last.safetensors.4.0.tmp", "last", "lastly.safetensors",
        "checkpoint_epoch_.safetensors", "checkpoint_epoch_-1.safetensors", "checkpoint_epoch_5",
        "checkpoint_step_18446744073709551616.safetensors", "checkpoint_step_5.safetensors.old"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) assert_false(checkpoint_named(others[i], &kind, &n));
}

// Cut at every length and with any one byte changed: refused, and the one before it is used.
static void damage_is_found(void **state) {
    (void)state;
    err e;
    complaints c;
    size_t n;
    put_one(CHECKPOINT_EPOCH, 2, 20);
    put_one(CHECKPOINT_STEP, 30, 30);
    assert_int_equal(newest(&c), 30);
    assert_int_equal(c.count, 0);
    unsigned char *data = bytes_of("checkpoint_step_30.safetensors", &n);
    for (size_t cut = 0; cut < n; cut++) {
        support_put("checkpoint_step_30.safetensors", data, cut);
        assert_null(checkpoint_open("checkpoint_step_30.safetensors", &e));
        assert_int_equal(e.kind, ERR_INPUT);
        assert_int_equal(newest(&c), 20);
        assert_int_equal(c.count, 1);
        assert_non_null(strstr(c.text, "checkpoint_step_30.safetensors: "));
    }
    for (size_t i = n - sizeof numbers; i < n; i++) {
        data[i] ^= 1;
        support_put("checkpoint_step_30.safetensors", data, n);
        assert_int_equal(newest(&c), 20);
        assert_int_equal(c.count, 1);
        data[i] ^= 1;
    }
    free(data);
}

// True where a file of weights is as `put_weights` wrote it.
static bool is_same(const safetensors *s) {
    const safetensors_entry *t = safetensors_find(s, "w");
    const char *config = safetensors_metadata(s, "config");
    return safetensors_count(s) == 1 && t && t->type == SAFE_F32 && t->rank == 2 && t->dim[0] == 2 && t->dim[1] == 3 &&
           memcmp(t->data, numbers, sizeof numbers) == 0 && config && strcmp(config, notes[1].value) == 0;
}

// Any one bit of a file of weights or of a checkpoint: refused, or without effect.
static void every_flipped_bit_is_found(void **state) {
    (void)state;
    err e;
    size_t n;
    int passed = 0;
    safetensors_entry t = {.name = "w", .type = SAFE_F32, .rank = 2, .dim = {2, 3}, .data = numbers, .bytes = 24};
    support_ok(weights_write("w", &t, 1, notes, 2, &e), &e);
    support_ok(checkpoint_write("c", 7, &t, 1, notes, 2, &e), &e);
    for (int k = 0; k < 2; k++) {
        const char *path = k ? "c" : "w";
        unsigned char *data = bytes_of(path, &n);
        for (size_t bit = 0; bit < 8 * n; bit++) {
            data[bit / 8] ^= (unsigned char)(1 << bit % 8);
            support_put("flipped", data, n);
            safetensors *s = k ? checkpoint_open("flipped", &e) : weights_open("flipped", &e);
            if (s && !is_same(s)) fail_msg("%s: bit %zu is believed", path, bit);
            if (!s) assert_int_equal(e.kind, ERR_INPUT);
            passed += s != NULL;
            safetensors_close(s);
            data[bit / 8] ^= (unsigned char)(1 << bit % 8);
        }
        free(data);
    }
    assert_true(passed < 100); // spaces behind the header, say, and the note by which weights are known as ours
}

// Two tensors of one shape whose names changed places: every number is as it was, and yet another tensor's.
static void swapped_names_are_found(void **state) {
    (void)state;
    err e;
    complaints c;
    size_t n;
    safetensors_entry t[2] = {{.name = "up", .type = SAFE_F32, .rank = 1, .dim = {3}, .data = numbers, .bytes = 12},
        {.name = "it", .type = SAFE_F32, .rank = 1, .dim = {3}, .data = numbers + 3, .bytes = 12}};
    support_ok(checkpoint_write("last.safetensors", 30, t, 2, notes, 2, &e), &e);
    put_one(CHECKPOINT_EPOCH, 2, 20);
    assert_int_equal(newest(&c), 30);
    unsigned char *data = bytes_of("last.safetensors", &n), *up = memmem(data, n, "\"up\":", 5),
                  *it = memmem(data, n, "\"it\":", 5);
    assert_true(up && it);
    memcpy(up, "\"it\"", 4);
    memcpy(it, "\"up\"", 4);
    support_put("last.safetensors", data, n);
    free(data);
    assert_null(checkpoint_open("last.safetensors", &e));
    assert_int_equal(e.kind, ERR_INPUT);
    assert_int_equal(newest(&c), 20);
    assert_int_equal(c.count, 1);
    assert_non_null(strstr(c.text, "last.safetensors: its sum does not fit its bytes"));
}

static void other_files_are_no_checkpoints(void **state) {
    (void)state;
    err e;
    complaints c;
    safetensors_entry t = {.name = "w", .type = SAFE_F32, .rank = 1, .dim = {6}, .data = numbers, .bytes = 24};
    assert_int_equal(newest(&c), 0);
    assert_true(safetensors_write("last.safetensors", &t, 1, notes, 1, &e));
    assert_int_equal(newest(&c), 0);
    assert_int_equal(c.count, 1);
    assert_non_null(strstr(c.text, "no checkpoint"));
    char *path;
    assert_null(checkpoint_newest("missing", damaged, &c, &path, &e));
    assert_non_null(strstr(e.text, "missing: "));
}

static void the_newest_is_that_with_most_steps(void **state) {
    (void)state;
    complaints c;
    put_one(CHECKPOINT_EPOCH, 9, 90);
    put_one(CHECKPOINT_STEP, 123, 123);
    put_one(CHECKPOINT_LAST, 0, 77);
    assert_int_equal(newest(&c), 123);
    put_one(CHECKPOINT_LAST, 0, 124);
    assert_int_equal(newest(&c), 124);
}

static void old_ones_are_removed(void **state) {
    (void)state;
    for (uint64_t i = 1; i <= 12; i++) put_one(CHECKPOINT_EPOCH, i, 10 * i);
    put_one(CHECKPOINT_STEP, 5, 5);
    checkpoint_rotate(".", CHECKPOINT_EPOCH, 0);
    assert_int_equal(access("checkpoint_epoch_1.safetensors", F_OK), 0);
    checkpoint_rotate(".", CHECKPOINT_EPOCH, 2);
    assert_int_equal(access("checkpoint_step_5.safetensors", F_OK), 0);
    for (uint64_t i = 1; i <= 12; i++) {
        char *path = checkpoint_path(".", CHECKPOINT_EPOCH, i);
        assert_int_equal(access(path, F_OK) == 0, i > 10);
        free(path);
    }
    checkpoint_rotate("missing", CHECKPOINT_EPOCH, 2);
    put_one(CHECKPOINT_STEP, 6, 6);
    checkpoint_rotate(".", CHECKPOINT_STEP, 1);
    assert_int_equal(system("test \"$(echo *)\" = 'checkpoint_epoch_11.safetensors checkpoint_epoch_12.safetensors "
                            "checkpoint_step_6.safetensors'"),
        0);
}

// Where it cannot be opened now, the newest is not passed over for an older one: that would lose steps.
static void what_cannot_be_opened_is_not_damaged(void **state) {
    (void)state;
    err e;
    complaints c = {0};
    char *path;
    put_one(CHECKPOINT_EPOCH, 2, 20);
    put_one(CHECKPOINT_STEP, 30, 30);
    unopened = "checkpoint_step_30";
    safetensors *s = checkpoint_newest(".", damaged, &c, &path, &e);
    unopened = NULL;
    assert_null(s);
    assert_int_equal(e.kind, ERR_RUN);
    assert_non_null(strstr(e.text, "checkpoint_step_30.safetensors: "));
    assert_int_equal(c.count, 0);
    assert_int_equal(newest(&c), 30);
}

// A disk that takes no more than some bytes: the file that is there stays as it is, and nothing else is left.
static void a_full_disk_leaves_the_old_one(void **state) {
    (void)state;
    put_one(CHECKPOINT_LAST, 0, 1);
    struct stat st;
    assert_int_equal(stat("last.safetensors", &st), 0);
    for (rlim_t room = 0; room < (rlim_t)st.st_size; room += 37) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (!child) {
            err e;
            signal(SIGXFSZ, SIG_IGN);
            setrlimit(RLIMIT_FSIZE, &(struct rlimit){room, room});
            bool ok = put("last.safetensors", 2, &e);
            _exit(!ok && e.kind == ERR_RUN && strstr(e.text, "last.safetensors: ") ? 0 : 1);
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
        complaints c;
        assert_int_equal(newest(&c), 1);
        assert_int_equal(system("test \"$(ls)\" = last.safetensors"), 0);
    }
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, support_enter, support_leave)
    const struct CMUnitTest tests[] = {
        TEST(comes_back_as_written),
        TEST(names_are_read),
        TEST(damage_is_found),
        TEST(every_flipped_bit_is_found),
        TEST(swapped_names_are_found),
        TEST(other_files_are_no_checkpoints),
        TEST(the_newest_is_that_with_most_steps),
        TEST(old_ones_are_removed),
        TEST(what_cannot_be_opened_is_not_damaged),
        TEST(a_full_disk_leaves_the_old_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
