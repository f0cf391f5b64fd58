// Results in a run's directory: written whole, read within bounds; damaged and newer documents are told by name.
#include "run/results.h"

#include "cli/program.h"
#include "support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const char evaluation[] =
    "{\"version\":1,\"parts\":{\"test\":{\"samples\":3,\"from\":null,\"to\":\"2024-01-02\",\"metrics\":{\"mcc\":0.5,"
    "\"loss\":null},\"trivial\":{\"prior\":{\"log_loss\":1}},\"scores\":[{\"metric\":\"mcc\",\"score\":0.5,"
    "\"interval\":[0.1,null],\"verdict\":null}],\"classes\":[\"DOWN\",\"UP\"],\"confusion\":[[1,0],[1,1]],"
    "\"calibration\":[{\"class\":\"UP\",\"bins\":[{\"low\":0,\"high\":0.1,\"count\":0,\"mean\":null,\"share\":null}]}],"
    "\"importance\":[{\"stream\":\"fast\",\"column\":\"rsi_14\",\"metric\":\"mcc\",\"drop\":0.01}],\"later\":{\"x\":[]}"
    "}}}";
static const char backtest[] =
    "{\"version\":1,\"assumptions\":[{\"key\":\"a\",\"text\":\"b\"}],\"statistics\":[{\"key\":\"s\",\"label\":\"S\","
    "\"unit\":\"%\",\"value\":1,\"definition\":\"d\",\"low\":null,\"high\":2,\"hold\":3}],\"equity\":{\"time\":[1,2],"
    "\"equity\":[1,null],\"drawdown\":[0,0],\"hold\":[1,1]},\"monthly\":[{\"month\":\"2024-01\",\"return\":0.01}],"
    "\"trades\":[{\"side\":1,\"entry_time\":1,\"exit_time\":2,\"entry\":1,\"exit\":2,\"result\":1}],"
    "\"price\":{\"time\":[1,2],\"close\":[1,2]}}";
static const char rule[] =
    "{\"version\":1,\"threshold\":0.5,\"exit\":\"horizon\",\"hold\":12,\"long\":{\"stop\":2.0,\"target\":2.0},"
    "\"short\":{\"stop\":2.0,\"target\":2.0},\"unit\":\"volatility\",\"sizing\":\"equity\",\"size\":0.95,"
    "\"volatility_bars\":100,\"bars_a_year\":1547.0,\"symbol\":\"\",\"epoch\":2,"
    "\"fitted\":{\"result\":1.5,\"trades\":9,\"from\":\"a\",\"to\":\"b\"}}";
static const char walk[] =
    "{\"version\":1,\"scheme\":\"rolling\",\"folds\":[{\"number\":1,\"directory\":\"fold_01\",\"train\":[\"a\",\"b\"],"
    "\"validation\":[\"a\",\"b\"],\"test\":[\"a\",\"b\"],\"samples\":[1,2,3],\"metrics\":{\"mcc\":0.1},"
    "\"status\":\"done\",\"reason\":\"\"}],\"metrics\":{\"mcc\":0.1},\"classes\":[\"a\",\"b\"],\"confusion\":[[1,2],[3,"
    "4]]}";

static const char memory[] =
    "{\"version\":1,\"rows\":512,\"instructions\":9,\"peak\":4096,\"blocks\":[{\"name\":\"lstm\",\"kind\":\"reserve\","
    "\"first\":0,\"last\":3,\"offset\":0,\"bytes\":4096}],\"bytes\":{\"data\":1}}";

static const char *const valid[RESULTS_KINDS] = {evaluation, backtest, rule, walk, memory};

static bool read_text(results_kind k, const char *text, size_t bytes, err *e) {
    json_t *doc;
    support_put(results_name(k), text, bytes);
    *e = (err){0};
    bool ok = results_read(".", k, &doc, e);
    assert_true(ok == (doc != NULL));
    json_decref(doc);
    return ok;
}

static void refuses(results_kind k, const char *text, const char *why) {
    err e;
    assert_false(read_text(k, text, strlen(text), &e));
    assert_int_equal(e.kind, ERR_INPUT);
    if (!strstr(e.text, why) || strncmp(e.text, "./", 2) != 0) fail_msg("%s has no %s", e.text, why);
}

static void whole_documents_are_read(void **state) {
    (void)state;
    err e = {0};
    json_t *doc;
    for (int k = 0; k < RESULTS_KINDS; k++) {
        support_ok(results_read(".", (results_kind)k, &doc, &e), &e);
        assert_null(doc);
        support_ok(read_text((results_kind)k, valid[k], strlen(valid[k]), &e), &e);
    }
    support_ok(results_read(".", RESULTS_BACKTEST, &doc, &e), &e);
    assert_int_equal(json_array_size(results_get(doc, "equity.time")), 2);
    assert_null(results_get(doc, "equity.other"));
    assert_null(results_get(doc, "statistics.x"));
    assert_true(isnan(results_number(json_array_get(results_get(doc, "equity.equity"), 1))));
    json_decref(doc);
}

static void damaged_documents_are_told(void **state) {
    (void)state;
    refuses(RESULTS_EVALUATION, "", "evaluation.json: JSON line");
    refuses(RESULTS_EVALUATION, "[1]", "has no version");
    refuses(RESULTS_EVALUATION, "{\"version\":\"1\"}", "has no version");
    refuses(RESULTS_EVALUATION, "{\"version\":2}",
        "was written by a newer tradewind (format 2, this program reads up to 1)");
    refuses(RESULTS_EVALUATION, "{\"version\":1,\"parts\":[]}", "parts: is no object; the file is damaged");
    refuses(RESULTS_EVALUATION, "{\"version\":1,\"parts\":{\"test\":{\"confusion\":[[1,\"x\"]]}}}",
        "parts.test.confusion[0][1]: is no number");
    refuses(RESULTS_EVALUATION, "{\"version\":1,\"parts\":{\"test\":{\"classes\":[null]}}}",
        "parts.test.classes[0]: is no text");
    refuses(RESULTS_BACKTEST, "{\"version\":1,\"equity\":{\"time\":7}}", "equity.time: is no list");
    refuses(RESULTS_BACKTEST, "{\"version\":1,\"trades\":[[]]}", "trades[0]: is no object");
    refuses(RESULTS_SIGNAL, "{\"version\":1,\"long\":{\"stop\":\"2\"}}", "long.stop: is no number");
    refuses(RESULTS_WALK, "{\"version\":1,\"folds\":[{\"status\":1}]}", "folds[0].status: is no text");
    refuses(RESULTS_WALK, "{\"version\":1,\"metrics\":{\"mcc\":1e999}}", "JSON line 1");
}

// Lists beyond the bound, and files beyond it, are refused, not taken.
static void huge_documents_are_refused(void **state) {
    (void)state;
    enum { ELEMENTS = 100001 };
    err e;
    char *text = malloc(2 * ELEMENTS + 64), *at = text;
    assert_non_null(text);
    at += sprintf(at, "{\"version\":1,\"price\":{\"close\":[0");
    for (int i = 1; i < ELEMENTS; i++) at += sprintf(at, ",0");
    sprintf(at, "]}}");
    refuses(RESULTS_BACKTEST, text, "price.close: has more than 100,000 elements");
    free(text);
    support_put("walk.json", "{}", 2);
    assert_int_equal(truncate("walk.json", (off_t)65 << 20), 0);
    json_t *doc;
    assert_false(results_read(".", RESULTS_WALK, &doc, &e));
    assert_int_equal(e.kind, ERR_INPUT);
}

// Whatever a few bytes become, the document is read or refused.
static void mangled_documents_are_read_or_refused(void **state) {
    (void)state;
    static const char bytes[] = "{}[]\",:0-9.eEtn\\\x00\xff";
    dice d = {.seed = 5};
    int read = 0, refused = 0;
    for (int round = 0; round < 1500; round++) {
        results_kind k = (results_kind)(round % RESULTS_KINDS);
        size_t n = strlen(valid[k]);
        char *text = malloc(n + 1);
        assert_non_null(text);
        memcpy(text, valid[k], n + 1);
        for (uint64_t i = 0, hits = 1 + dice_below(&d, 3); i < hits; i++)
            text[dice_below(&d, n)] = bytes[dice_below(&d, sizeof bytes - 1)];
        if (dice_below(&d, 8) == 0) n = dice_below(&d, n);
        err e;
        bool ok = read_text(k, text, n, &e);
        assert_true(ok || e.kind == ERR_INPUT);
        read += ok;
        refused += !ok;
        free(text);
    }
    assert_true(read > 50 && refused > 500);
}

// Every bit of a document that was written: it is refused then, or says the same.
static void every_flipped_bit_is_found(void **state) {
    (void)state;
    err e;
    json_t *was = json_loads(rule, 0, NULL), *is;
    support_ok(results_write(".", RESULTS_SIGNAL, json_incref(was), &e), &e);
    char *text = slurp("signal.json");
    size_t n = strlen(text);
    int refused = 0, same = 0;
    for (size_t i = 0; i < 8 * n; i++) {
        text[i / 8] ^= (char)(1 << i % 8);
        if (read_text(RESULTS_SIGNAL, text, n, &e)) {
            support_ok(results_read(".", RESULTS_SIGNAL, &is, &e), &e);
            const char *key;
            json_t *value;
            json_object_foreach(was, key, value) assert_true(json_equal(value, json_object_get(is, key)));
            json_decref(is);
            same++;
        } else {
            refused++;
        }
        text[i / 8] ^= (char)(1 << i % 8);
    }
    free(text);
    json_decref(was);
    assert_true(refused > 8 * same);
}

static void parts_are_set_one_by_one(void **state) {
    (void)state;
    err e = {0};
    json_t *doc;
    support_ok(results_set(".", RESULTS_EVALUATION, "parts", "test", json_pack("{s:i}", "samples", 1), &e), &e);
    support_ok(results_set(".", RESULTS_EVALUATION, "parts", "validation", json_pack("{s:i}", "samples", 2), &e), &e);
    support_ok(results_set(".", RESULTS_EVALUATION, "parts", "test", json_pack("{s:i}", "samples", 3), &e), &e);
    support_ok(results_read(".", RESULTS_EVALUATION, &doc, &e), &e);
    assert_int_equal(json_integer_value(results_get(doc, "version")), 1);
    assert_true(results_number(results_get(doc, "parts.test.samples")) == 3);
    assert_true(results_number(results_get(doc, "parts.validation.samples")) == 2);
    json_decref(doc);
    // A file that cannot be read is not replaced.
    support_put("evaluation.json", "{", 1);
    assert_false(results_set(".", RESULTS_EVALUATION, "parts", "test", json_object(), &e));
    assert_int_equal(e.kind, ERR_INPUT);
    char text[8] = "";
    FILE *f = fopen("evaluation.json", "r");
    assert_non_null(f);
    assert_int_equal(fread(text, 1, sizeof text, f), 1);
    fclose(f);
    assert_false(results_write("missing", RESULTS_WALK, json_object(), &e));
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, support_enter, support_leave)
    const struct CMUnitTest tests[] = {
        TEST(whole_documents_are_read),
        TEST(damaged_documents_are_told),
        TEST(huge_documents_are_refused),
        TEST(mangled_documents_are_read_or_refused),
        TEST(every_flipped_bit_is_found),
        TEST(parts_are_set_one_by_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
