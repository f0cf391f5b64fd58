// The contract of a model: written as metadata, read back, and compared in words.
#include "task/contract.h"

#include "data/when.h"
#include "support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char *const fast_names[] = {"log_return_1", "body", "rsi_14"}, *const slow_names[] = {"body"};
static const char *const moved_names[] = {"log_return_1", "rsi_14", "body"};
static const char *const three[] = {"DOWN", "NEUTRAL", "UP"}, *const two[] = {"DOWN", "UP"};
static const char *const other_three[] = {"SELL", "HOLD", "BUY"};
static const char *const symbols[] = {"EURUSD", "XAUUSD"};

// A set of two streams; only the facts that a contract holds.
static dataset plain_set(void) {
    dataset d = {.name = "gold.npz", .samples = 1000, .streams = 2, .span = {300, 3600}, .classes = 3};
    d.stream[0] = (stream){.name = "fast", .series = {.width = 3, .columns = fast_names}};
    d.stream[1] = (stream){.name = "slow", .series = {.width = 1, .columns = slow_names}};
    d.vector.width = 64;
    d.class_names = three;
    return d;
}

static contract *contract_of(const dataset *d, int64_t fast, int64_t slow) {
    const int64_t window[STREAMS_MOST] = {fast, slow};
    return contract_make(
        &(contract_facts){.data = d, .window = window, .forecasts = d->target_width > 0, .version = "9.9"});
}

// Difference between a plain set and this one; NULL where there is none. The text lives until the next call.
static const char *difference(const dataset *is, int64_t fast, int64_t slow, unsigned parts) {
    static char text[900];
    dataset d = plain_set();
    contract *a = contract_of(&d, 50, 20), *b = contract_of(is, fast, slow);
    bool differ = contract_differs(a, b, parts, text, sizeof text);
    contract_free(a);
    contract_free(b);
    return differ ? text : NULL;
}

static void is_in_the_metadata(void **state) {
    (void)state;
    err e = {0};
    dataset d = plain_set();
    d.about = json_pack(
        "{s:s, s:[], s:{s:s, s:i}}", "made_of", "bars", "sources", "label", "kind", "direction", "horizon", 1);
    d.panel = 2;
    d.panel_names = symbols;
    contract *c = contract_of(&d, 50, 20), *read = NULL;
    char *text = contract_text(c);
    const safetensors_note note = {contract_key, text};
    support_ok(safetensors_write("w", NULL, 0, &note, 1, &e), &e);
    safetensors *s = safetensors_open("w", &e);
    support_ok(s && contract_read(&read, s, "w", &e), &e);
    assert_string_equal(read->version, "9.9");
    assert_int_equal(read->streams, 2);
    assert_int_equal(read->stream[1].span, 3600);
    assert_int_equal(read->stream[1].window, 20);
    assert_int_equal(read->vector.count, 64);
    assert_null(read->vector.names);
    assert_string_equal(read->scaler, "none");
    assert_string_equal(json_string_value(json_array_get(read->symbols.names, 1)), "XAUUSD");
    char line[256];
    assert_string_equal(contract_stream_line(read, 0, line, sizeof line),
        "stream fast: bars of 5 min, 50 steps of log_return_1,body,rsi_14");
    assert_string_equal(
        contract_answers_line(read, line, sizeof line), "classes DOWN,NEUTRAL,UP, kind direction, horizon 1");
    char *again = contract_text(read);
    assert_string_equal(text, again);
    free(text);
    free(again);
    contract_free(read);
    contract_free(c);
    safetensors_close(s);
    json_decref(d.about);
}

static void files_without_one_and_damaged_ones(void **state) {
    (void)state;
    err e = {0};
    contract *read = (contract *)&e;
    support_ok(safetensors_write("w", NULL, 0, NULL, 0, &e), &e);
    safetensors *s = safetensors_open("w", &e);
    assert_true(contract_read(&read, s, "w", &e));
    assert_null(read);
    safetensors_close(s);
    static const char *const damaged[] = {
        "{", "[]", "{}", "{\"version\":\"1\",\"scaler\":\"none\",\"streams\":[{\"name\":\"f\",\"columns\":[1]}]}"};
    for (size_t i = 0; i < sizeof damaged / sizeof *damaged; i++) {
        const safetensors_note note = {contract_key, damaged[i]};
        support_ok(safetensors_write("w", NULL, 0, &note, 1, &e), &e);
        s = safetensors_open("w", &e);
        assert_false(contract_read(&read, s, "w", &e));
        assert_string_equal(e.text, "w: tradewind.contract among its metadata cannot be read; the file is damaged");
        safetensors_close(s);
    }
}

static void columns_are_compared_by_name_and_order(void **state) {
    (void)state;
    dataset d = plain_set();
    assert_null(difference(&d, 50, 20, CONTRACT_ALL));
    d.stream[0].series.columns = moved_names;
    assert_string_equal(difference(&d, 50, 20, CONTRACT_ALL),
        "columns of fast differ: column 2 is body in the weights and rsi_14 in gold.npz; import with --features "
        "fast=log_return_1,body,rsi_14");
    d.name = "bars";
    assert_non_null(strstr(difference(&d, 50, 20, CONTRACT_ALL), "; set data.features.fast=log_return_1,body,rsi_14"));
    d.stream[0].series.columns = NULL;
    assert_null(difference(&d, 50, 20, CONTRACT_ALL));
    d.stream[0].series.width = 2;
    assert_non_null(strstr(difference(&d, 50, 20, CONTRACT_ALL), "columns of fast: 3 in the weights, 2 in bars"));
    d = plain_set();
    d.vector.width = 0;
    assert_string_equal(difference(&d, 50, 20, CONTRACT_ALL),
        "the vector: there in the weights, none in gold.npz; import without --no-vector");
    d = plain_set();
    d.streams = 1;
    assert_string_equal(difference(&d, 50, 20, CONTRACT_ALL),
        "streams fast,slow in the weights, fast in gold.npz; give the same files or frames");
}

static void advice_fits_the_data(void **state) {
    (void)state;
    static char name[200][24];
    const char *many[200];
    char text[900], line[8192];
    dataset was = plain_set(), is = plain_set();
    for (int i = 0; i < 200; i++) {
        snprintf(name[i], sizeof name[i], "log_return_%d", i);
        many[i] = name[i];
    }
    was.stream[0].series.width = 200;
    was.stream[0].series.columns = many;
    contract *a = contract_of(&was, 50, 20), *b = contract_of(&is, 50, 20);
    assert_true(contract_differs(a, b, CONTRACT_ALL, text, sizeof text));
    assert_string_equal(text, "columns of fast differ: column 1 is log_return_0 in the weights and log_return_1 in "
                              "gold.npz; import with --features fast=LIST, which `tradewind inspect` of the weights "
                              "prints");
    assert_non_null(strstr(contract_stream_line(a, 0, line, sizeof line), "log_return_198,log_return_199"));
    contract_free(a);
    contract_free(b);
    is.name = "bars";
    is.vector.width = 0;
    assert_string_equal(
        difference(&is, 50, 20, CONTRACT_ALL), "the vector: there in the weights, none in bars; set data.vector=true");
}

static void doubtful_data_are_told(void **state) {
    (void)state;
    char text[400];
    dataset was = plain_set(), is = plain_set();
    was.about = json_pack("{s:s, s:{s:n}}", "made_of", "bars", "reading", "tz");
    is.about = json_pack("{s:s, s:{s:s}}", "made_of", "bars", "reading", "tz", "mt5");
    was.panel = is.panel = 1;
    was.panel_names = symbols + 1;
    is.panel_names = symbols;
    contract *a = contract_of(&was, 50, 20), *b = contract_of(&is, 50, 20);
    assert_false(contract_differs(a, b, CONTRACT_ALL, text, sizeof text));
    assert_true(contract_zones_differ(a, b, text, sizeof text));
    assert_string_equal(text, "gold.npz was read with zone mt5, the data of the training with the default zone: unless "
                              "the clocks of the files differ so, features of the time of day are shifted");
    assert_true(contract_symbols_differ(a, b, text, sizeof text));
    assert_string_equal(text, "not trained on EURUSD of gold.npz, but on XAUUSD");
    assert_false(contract_zones_differ(a, a, text, sizeof text) || contract_symbols_differ(b, b, text, sizeof text));
    contract_free(a);
    contract_free(b);
    json_decref(was.about);
    json_decref(is.about);
}

// Prices tell instruments apart where names do not: a fourth of the lowest and four times the highest are the limits.
static void odd_prices_are_told(void **state) {
    (void)state;
    const int64_t window[STREAMS_MOST] = {50, 20};
    float gold[] = {1200, 1800, 2000, 9000}, euro[] = {1.1f, 1.2f, 1.3f, 1.2f}, risen[] = {1900, 7990, 8010, 7000};
    split_part train = part_of((span){0, 3}), all = part_of((span){0, 4});
    char text[400];
    dataset d = plain_set();
    d.samples = 4;
    d.price = gold;
    d.about = json_pack("{s:s}", "made_of", "bars");
    contract *c = contract_make(&(contract_facts){.data = &d, .window = window, .train = &train});
    assert_false(contract_price_is_odd(c, NULL, 300) || contract_price_is_odd(c, NULL, 8000));
    assert_true(contract_price_is_odd(c, NULL, 299.9) && contract_price_is_odd(c, NULL, 8000.1));
    assert_true(contract_price_is_odd(c, NULL, NAN));
    assert_false(contract_prices_differ(c, &d, &all, text, sizeof text));
    d.price = risen;
    assert_false(contract_prices_differ(c, &d, &all, text, sizeof text));
    d.price = euro;
    assert_true(contract_prices_differ(c, &d, &all, text, sizeof text));
    assert_string_equal(text, "prices of gold.npz are from 1.1 to 1.3, those of the training from 1200 to 2000: unless "
                              "the price went so far, these are bars of another instrument or in other units");
    assert_false(contract_price_differs(c, NULL, 300, text, sizeof text));
    assert_true(contract_price_differs(c, NULL, 1.1, text, sizeof text));
    assert_string_equal(text, "the price is 1.1, those of the training are from 1200 to 2000: unless the price went so "
                              "far, these are bars of another instrument or in other units");
    contract_free(c);
    c = contract_of(&d, 50, 20); // weights of before, which say nothing of prices
    assert_false(contract_price_is_odd(c, NULL, 1) || contract_prices_differ(c, &d, &all, text, sizeof text));
    contract_free(c);
    json_decref(d.about);
}

// Each instrument has its own range, and one that the weights do not know has none.
static void prices_are_of_an_instrument(void **state) {
    (void)state;
    const int64_t window[STREAMS_MOST] = {50, 20}, first[] = {0, 2, 4};
    const int32_t row[] = {0, 2, 1, 3};
    static const char *const turned[] = {"XAUUSD", "EURUSD"};
    float price[] = {1.1f, 1900, 1.2f, 2000};
    split_part all = part_of((span){0, 4});
    char text[400];
    dataset d = plain_set();
    d.samples = 4;
    d.price = price;
    d.panel = 2;
    d.panel_names = symbols;
    d.panel_first = first;
    d.stream[0].row = row;
    d.about = json_pack("{s:s}", "made_of", "bars");
    contract *c = contract_make(&(contract_facts){.data = &d, .window = window, .train = &all});
    assert_false(contract_price_is_odd(c, "EURUSD", 1.3) || contract_price_is_odd(c, "XAUUSD", 1500));
    assert_true(contract_price_is_odd(c, "EURUSD", 1900) && contract_price_is_odd(c, "XAUUSD", 1.1));
    assert_false(contract_price_is_odd(c, "GBPUSD", 1e6) || contract_price_is_odd(c, NULL, 1e6));
    assert_false(contract_prices_differ(c, &d, &all, text, sizeof text));
    d.panel_names = turned;
    assert_true(contract_prices_differ(c, &d, &all, text, sizeof text));
    assert_non_null(
        strstr(text, "prices of gold.npz, XAUUSD are from 1.1 to 1.2, those of the training from 1900 to "));
    contract_free(c);
    json_decref(d.about);
}

static contract *of_file(const char *file) {
    dataset d = plain_set();
    d.about = json_pack("{s:s, s:[{s:s}]}", "made_of", "bars", "sources", "file", file);
    contract *c = contract_of(&d, 50, 20);
    json_decref(d.about);
    return c;
}

static void files_of_other_instruments_are_told(void **state) {
    (void)state;
    static const struct {
        const char *was, *is;
        bool differ;
    } all[] = {{"XAUUSD_H1.csv", "in/EURUSD_H1.csv", true}, {"a_b/XAUUSD_H1.csv", "XAUUSD_M5_201801020000.csv", false},
        {"XAUUSD_H1.csv", "XAUEUR_MN1_2018.csv", true}, {"gold.csv", "EURUSD_H1.csv", false},
        {"XAUUSD_H1.csv", "EURUSD_hourly.csv", false}, {"XAUUSD_H1.csv", "_H1.csv", false},
        {"XAUUSD_H1.csv", "new_bars.csv", false}};
    char text[400];
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        contract *a = of_file(all[i].was), *b = of_file(all[i].is);
        assert_int_equal(contract_files_differ(a, b, text, sizeof text), all[i].differ);
        if (!i)
            assert_string_equal(text, "in/EURUSD_H1.csv is of EURUSD by its name, and the run was trained on XAUUSD");
        contract_free(a);
        contract_free(b);
    }
}

static void all_else_is_compared_too(void **state) {
    (void)state;
    dataset d = plain_set();
    assert_string_equal(difference(&d, 40, 20, CONTRACT_ALL),
        "windows of fast: 50 in the weights, 40 described; set data.windows.fast=50");
    assert_string_equal(difference(&d, 50, 30, CONTRACT_ALL),
        "windows of slow: 20 in the weights, 30 described; set data.windows.slow=20");
    assert_null(difference(&d, 40, 20, CONTRACT_ALL & ~CONTRACT_WINDOWS));
    d.span[1] = 900;
    assert_string_equal(difference(&d, 50, 20, CONTRACT_ALL),
        "bars of slow: 1 h in the weights, 15 min in gold.npz; give bars of the same span");
    d.span[1] = 14400;
    assert_string_equal(difference(&d, 50, 20, CONTRACT_ALL),
        "bars of slow: 1 h in the weights, 4 h in gold.npz; give bars of the same span");
    d = plain_set();
    d.class_names = other_three;
    assert_string_equal(difference(&d, 50, 20, CONTRACT_ALL),
        "classes DOWN,NEUTRAL,UP in the weights, SELL,HOLD,BUY in gold.npz; use data with the same labels");
    d = plain_set();
    d.classes = 2;
    d.class_names = two;
    assert_string_equal(difference(&d, 50, 20, CONTRACT_ALL),
        "classes DOWN,NEUTRAL,UP in the weights, DOWN,UP in gold.npz; use data with the same labels");
    d.target_width = 12;
    assert_non_null(strstr(difference(&d, 50, 20, CONTRACT_ALL), "the weights tell classes and gold.npz is to be"));
}

static void scalers_are_compared(void **state) {
    (void)state;
    static const char *const scales[] = {NULL, "standard", "own"};
    const int64_t window[STREAMS_MOST] = {50, 20};
    char text[900];
    dataset d = plain_set();
    d.about = json_pack("{s:s}", "made_of", "bars");
    d.panel = 2;
    d.panel_names = symbols;
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 3; k++) {
            contract *a = contract_make(&(contract_facts){.data = &d, .window = window, .scale = scales[i]});
            contract *b = contract_make(&(contract_facts){.data = &d, .window = window, .scale = scales[k]});
            assert_int_equal(contract_differs(a, b, CONTRACT_ALL, text, sizeof text), i != k);
            if (i != k) assert_non_null(strstr(text, "was trained with scaler "));
            contract_free(a);
            contract_free(b);
        }
    json_decref(d.about);
}

// The time that weights were trained on ends with the last label, not with the last sample.
static void the_time_of_training_is_that_of_labels(void **state) {
    (void)state;
    const int64_t window[STREAMS_MOST] = {50, 20};
    int64_t time[] = {WHEN_DAY, 2 * WHEN_DAY, 3 * WHEN_DAY, 4 * WHEN_DAY, 5 * WHEN_DAY};
    int64_t end[] = {9 * WHEN_DAY, 6 * WHEN_DAY, 7 * WHEN_DAY, 5 * WHEN_DAY, 20 * WHEN_DAY};
    split_part train = part_of((span){1, 1});
    part_add(&train, (span){3, 1});
    dataset d = plain_set();
    d.samples = 5;
    d.time = time;
    for (int ends = 0; ends < 2; ends++) {
        d.end = ends ? end : NULL;
        contract *c = contract_make(&(contract_facts){.data = &d, .window = window, .train = &train});
        assert_string_equal(c->trained_from, "1970-01-03");
        assert_string_equal(c->trained_to, ends ? "1970-01-07" : "1970-01-05");
        contract_free(c);
    }
}

static void labels_are_compared_by_their_settings(void **state) {
    (void)state;
    char text[900];
    dataset was = plain_set(), is = plain_set();
    was.about = json_pack("{s:s, s:{s:s, s:f}}", "made_of", "bars", "label", "kind", "direction", "band", 0.5);
    is.about = json_pack("{s:s, s:{s:s, s:f}}", "made_of", "bars", "label", "kind", "direction", "band", 0.7);
    contract *a = contract_of(&was, 50, 20), *b = contract_of(&is, 50, 20);
    assert_true(contract_differs(a, b, CONTRACT_ALL, text, sizeof text));
    assert_string_equal(
        text, "labels differ: band is 0.5 in the weights and 0.7 in gold.npz; use data with the same labels");
    assert_false(contract_differs(a, b, CONTRACT_ALL & ~CONTRACT_LABEL, text, sizeof text));
    contract_free(a);
    contract_free(b);
    json_decref(was.about);
    json_decref(is.about);
}

static void changed_data_are_told(void **state) {
    (void)state;
    char text[900];
    int64_t early[] = {WHEN_DAY, 2 * WHEN_DAY}, late[] = {WHEN_DAY, 3 * WHEN_DAY};
    dataset was = plain_set(), is = plain_set();
    was.samples = is.samples = 2;
    was.time = early;
    is.time = late;
    contract *a = contract_of(&was, 50, 20), *b = contract_of(&is, 50, 20);
    assert_false(contract_data_differ(a, a, text, sizeof text));
    assert_true(contract_data_differ(a, b, text, sizeof text));
    assert_string_equal(text, "gold.npz has changed: its last sample is of 1970-01-04, was of 1970-01-03");
    contract_free(b);
    is.samples = 1;
    b = contract_of(&is, 50, 20);
    assert_true(contract_data_differ(a, b, text, sizeof text));
    assert_string_equal(text, "gold.npz has 1 samples, had 2; its last sample is of 1970-01-02, was of 1970-01-03");
    contract_free(a);
    contract_free(b);
}

#define ENTERED(test) cmocka_unit_test_setup_teardown(test, support_enter, support_leave)

int main(void) {
    const struct CMUnitTest tests[] = {
        ENTERED(is_in_the_metadata),
        ENTERED(files_without_one_and_damaged_ones),
        cmocka_unit_test(columns_are_compared_by_name_and_order),
        cmocka_unit_test(advice_fits_the_data),
        cmocka_unit_test(doubtful_data_are_told),
        cmocka_unit_test(odd_prices_are_told),
        cmocka_unit_test(prices_are_of_an_instrument),
        cmocka_unit_test(files_of_other_instruments_are_told),
        cmocka_unit_test(all_else_is_compared_too),
        cmocka_unit_test(scalers_are_compared),
        cmocka_unit_test(the_time_of_training_is_that_of_labels),
        cmocka_unit_test(labels_are_compared_by_their_settings),
        cmocka_unit_test(changed_data_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
