// Files that commit 7a0ccf0 wrote (test/run/old_7a0ccf0; its make.sh tells how): its runs are taken up by --resume and
// end with the weights that it gives them itself, bit for bit (an LSTM's to rounding), and its dataset is read.
#include "cli/program.h"
#include "data/set.h"
#include "run/fingerprint.h"
#include "run/same.h"
#include "support.h"

#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define OLD TEST_DIR "/run/old_7a0ccf0/"

#define RESUME(name)                                                                                                   \
    RUN("train", name "/config.yaml", "--resume", "--isa=avx2", "--device=cpu", "run.dir=" name,                       \
        "train.checkpoint_minutes=0")

static void need_avx2(void) {
    put_small_run();
    if (RUN("plan", "run.yaml", "--isa=avx2", "--device=cpu") == 0) return;
    matches("err", "--isa avx2: not one of the kernels that this processor can run");
    print_message("skipped: this processor has no AVX2\n");
    skip();
}

static int64_t count(const char *db_path, const char *query) {
    sqlite3 *db;
    sqlite3_stmt *st;
    assert_int_equal(sqlite3_open(db_path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, query, -1, &st, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(st), SQLITE_ROW);
    int64_t n = sqlite3_column_int64(st, 0);
    sqlite3_finalize(st);
    sqlite3_close(db);
    return n;
}

// The optimizer's moments at the end, as that commit leaves them.
static void same_moments(const char *last, uint64_t moment1, uint64_t moment2) {
    uint64_t is[] = {fingerprint(last, "moment1."), fingerprint(last, "moment2.")};
    if (is[0] != moment1 || is[1] != moment2) fail_msg("moments have %#" PRIx64 ", %#" PRIx64, is[0], is[1]);
}

static void an_mlp_goes_on(void **state) {
    (void)state;
    need_avx2();
    assert_int_equal(system("cp -r " OLD "mlp ."), 0);
    assert_int_equal(RESUME("mlp"), 0);
    matches("out", "\nresume +from mlp/checkpoint_step_600\\.safetensors: step 600, in epoch 2 after 5344 samples\n");
    matches("out", "\nbest +epoch 3, ");
    same_files(OLD "mlp.end", "mlp/best.safetensors");
    same_moments("mlp/last.safetensors", 0x9d40ef1f84e658dc, 0xfc95d2d494cfd345);
    assert_int_equal(count("mlp/run.db", "SELECT count(*) FROM epochs"), 3);
    assert_int_equal(count("mlp/run.db", "SELECT count(*) FROM run WHERE status = 'done'"), 1);
}

// Weights of two files, which may differ by rounding.
static void near_weights(const char *a, const char *b) {
    err e;
    safetensors *x = safetensors_open(a, &e), *y = safetensors_open(b, &e);
    support_ok(x && y, &e);
    for (int i = 0; i < safetensors_count(x); i++) {
        const safetensors_entry *s = safetensors_at(x, i), *t = safetensors_find(y, s->name);
        if (!t || s->bytes != t->bytes || s->type != SAFE_F32) fail_msg("%s: not in both", s->name);
        for (size_t k = 0; k < s->bytes / sizeof(float); k++) {
            float v, w;
            memcpy(&v, (const char *)s->data + k * sizeof v, sizeof v);
            memcpy(&w, (const char *)t->data + k * sizeof w, sizeof w);
            if (!(fabsf(v - w) <= 1e-6f)) fail_msg("%s[%zu] is %g and %g", s->name, k, (double)v, (double)w);
        }
    }
    safetensors_close(x);
    safetensors_close(y);
}

// That commit's gates used an estimate of reciprocals, whose bits were those of one maker's processors. So the weights
// are its own to rounding: 9e-8 was seen, and one step more or less moves them by 1.7e-3. The moments' bits are of
// today's gates.
static void an_lstm_goes_on(void **state) {
    (void)state;
    need_avx2();
    assert_int_equal(system("cp -r " OLD "lstm ."), 0);
    assert_int_equal(RESUME("lstm"), 0);
    matches("out", "\nresume +from lstm/checkpoint_step_70\\.safetensors: step 70, in epoch 2 after 1792 samples\n");
    matches("out", "\nbest +epoch 3, ");
    near_weights(OLD "lstm.end", "lstm/best.safetensors");
    same_moments("lstm/last.safetensors", 0x3df36e74b77c3b3b, 0xf8bae7b3e1dd969e);
}

// Its weights and its run.db, which say nothing of a format or an earlier one, are read as they are.
static void a_run_is_looked_at(void **state) {
    (void)state;
    assert_int_equal(system("cp -r " OLD "mlp ."), 0);
    assert_int_equal(RUN("inspect", "mlp"), 0);
    matches("out", "^run +mlp: ");
    matches("out", "\nepochs +1, ");
    assert_int_equal(RUN("inspect", "mlp/checkpoint_step_600.safetensors"), 0);
    matches("out", "^mlp/checkpoint_step_600\\.safetensors: checkpoint, whole, ");
    assert_int_equal(RUN("evaluate", "mlp", "--device=cpu", "--json"), 0);
    assert_true(number("accuracy") > 0.5);
}

static void a_dataset_is_read(void **state) {
    (void)state;
    err e = {0};
    dataset *d = set_open(OLD "series.npz", &e);
    support_ok(d != NULL, &e);
    assert_int_equal(d->panel, 4);
    assert_int_equal(d->target_width, 2);
    assert_true(d->samples > 0 && d->stream[0].series.rows == 48);
    dataset_free(d);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, support_enter, support_leave)
    const struct CMUnitTest tests[] = {
        TEST(an_mlp_goes_on),
        TEST(an_lstm_goes_on),
        TEST(a_run_is_looked_at),
        TEST(a_dataset_is_read),
    };
    program_use(TRADEWIND_BINARY);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
