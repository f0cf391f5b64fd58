// The journal of a session: what is not in it is told apart from what cannot be read.
#include "live/journal.h"

#include "support.h"

#include <fcntl.h>
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include <cmocka.h>

static const account_terms *terms(void) {
    static account_terms t;
    size_t count;
    err e = {0};
    const config_key *keys = account_keys(&count);
    config *c = config_read("test", "", 0, keys, count, &e);
    support_ok(c && account_terms_read(c, &t, &e), &e);
    config_free(c);
    return &t;
}

typedef struct {
    bool has_order, there;
    int64_t time, count;
    account_order order;
    books books;
    journal_intent intent;
    char *word;
} found;

static bool take_books(journal *j, found *to, err *e) {
    return journal_take_books(j, "GOLD", &to->books, &to->time, &to->has_order, &to->order, &to->there, e);
}

static void what_is_not_there_is_no_failure(void **state) {
    (void)state;
    err e = {0};
    found f = {.there = true, .word = "", .intent.id = 1};
    journal *j = journal_open("s.db", false, &e);
    support_ok(j && books_init(&f.books, terms(), 1, "GOLD", &e), &e);
    support_ok(take_books(j, &f, &e), &e);
    support_ok(journal_word(j, "limits:GOLD", &f.word, &e), &e);
    support_ok(journal_newest_intent(j, "GOLD", &f.intent, &e), &e);
    assert_false(f.there || f.word || f.intent.id);
    bar *bars = journal_bars(j, "GOLD", 0, INT64_MIN, 10, &f.count, &e);
    assert_true(bars && !f.count);
    books_trade *trades = journal_trades(j, "GOLD", &f.count, &e);
    assert_true(trades && !f.count);
    free(bars);
    free(trades);
    books_done(&f.books);
    journal_close(j);
}

static void fails(bool is, err *e) {
    assert_false(is);
    assert_non_null(strstr(e->text, "s.db: cannot be read"));
    *e = (err){0};
}

// A state whose rows cannot be read is not a new one: a session would begin a second account.
static void what_cannot_be_read_is_one(void **state) {
    (void)state;
    static const char drop[] = "DROP TABLE words; DROP TABLE books; DROP TABLE intents; DROP TABLE bars;"
                               "DROP TABLE trades; DROP TABLE states";
    err e = {0};
    found f = {0};
    size_t bytes;
    sqlite3 *other;
    journal *j = journal_open("s.db", false, &e);
    support_ok(j && books_init(&f.books, terms(), 1, "GOLD", &e), &e);
    assert_int_equal(sqlite3_open("s.db", &other), SQLITE_OK);
    assert_int_equal(sqlite3_exec(other, drop, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(other);
    fails(take_books(j, &f, &e), &e);
    fails(journal_word(j, "limits:GOLD", &f.word, &e), &e);
    fails(journal_newest_intent(j, "GOLD", &f.intent, &e), &e);
    fails(journal_bars(j, "GOLD", 0, INT64_MIN, 10, &f.count, &e), &e);
    fails(journal_trades(j, "GOLD", &f.count, &e), &e);
    fails(journal_take_state(j, "GOLD", &f.time, &bytes, &e), &e);
    books_done(&f.books);
    journal_close(j);
}

static void put_rows(journal *j) {
    static const bar one = {.time = 900, .end = 1800, .open = 5, .high = 6, .low = 4, .close = 5.5};
    static const float answer[] = {0.25f, 0.75f};
    err e = {0};
    books_trade trade = {.trade = {.units = 3, .result = 7}, .entry = 900, .exit = 1800};
    support_ok(journal_begin(j, &e), &e);
    journal_put_bar(j, "GOLD", 0, &one);
    journal_put_decision(j, &(journal_decision){.symbol = "GOLD", .bar = one, .answer = answer, .width = 2});
    for (int i = 0; i < 2; i++) journal_put_intent(j, &(journal_intent){.symbol = "GOLD", .time = 1800});
    journal_put_trade(j, "GOLD", &trade);
    journal_put_state(j, "GOLD", 1800, "state", 5);
    for (int i = 0; i < 2; i++) journal_put_fill(j, "GOLD", 1800, 5.4 + i, 5.6 + i, 560000000);
    for (int i = 0; i < 2; i++) journal_put_memory(j, "GOLD", 900 + i, "weights", "memory", 6);
    journal_put_event(j, 1, 1800, "GOLD", "stop", "", "as it was");
    for (int i = 0; i < 2; i++) journal_put_word(j, "key", i ? "word" : "replaced");
    support_ok(journal_commit(j, &e), &e);
}

// Rows that are added, replaced and changed by a session are whole; one value that another changes in any table is
// found, by a session and by whoever looks.
static void changed_rows_are_refused(void **state) {
    (void)state;
    static const char *const changes[][2] = {{"words", "UPDATE words SET text = 'wore'"},
        {"bars", "UPDATE bars SET close = close + 1e-9"}, {"decisions", "UPDATE decisions SET answer = '[0.25,0.76]'"},
        {"intents", "UPDATE intents SET status = 'open'"}, {"intents", "DELETE FROM intents WHERE id = 1801"},
        {"trades", "UPDATE trades SET result = 8"}, {"states", "UPDATE states SET state = x'00'"},
        {"fills", "UPDATE fills SET price = price + 1"}, {"memories", "UPDATE memories SET time = time + 1"},
        {"events", "UPDATE events SET text = 'as it is'"}};
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        err e = {0};
        char want[64];
        sqlite3 *other;
        unlink("s.db");
        for (int again = 0; again < 2; again++) {
            journal *j = journal_open("s.db", false, &e);
            support_ok(j != NULL, &e);
            put_rows(j);
            journal_close(j);
        }
        assert_int_equal(sqlite3_open("s.db", &other), SQLITE_OK);
        assert_int_equal(sqlite3_exec(other, changes[i][1], NULL, NULL, NULL), SQLITE_OK);
        sqlite3_close(other);
        snprintf(want, sizeof want, "s.db: the rows of its table %s do not fit", changes[i][0]);
        assert_null(journal_open("s.db", false, &e));
        if (e.kind != ERR_INPUT || !strstr(e.text, want)) fail_msg("%s: %s", changes[i][1], e.text);
        assert_null(journal_read("s.db", &e));
        if (e.kind != ERR_INPUT || !strstr(e.text, want)) fail_msg("%s: %s", changes[i][1], e.text);
    }
}

// A session's lock is seen by readers, each other's are not: theirs is a shared one, as NFS gives no other to a file
// that is open for reading.
static void only_a_session_uses_a_state(void **state) {
    (void)state;
    err e = {0};
    assert_false(journal_is_in_use("s.db"));
    journal *j = journal_open("s.db", false, &e);
    support_ok(j != NULL, &e);
    assert_true(journal_is_in_use("s.db"));
    journal_close(j);
    int reader = open("s.db.lock", O_RDONLY);
    assert_int_equal(flock(reader, LOCK_SH), 0);
    assert_false(journal_is_in_use("s.db"));
    close(reader);
}

// Rows are compared with their sums by a session as it begins, and by readers while there is none: on a network disk a
// session waits for whoever reads.
static void readers_do_not_look_again(void **state) {
    (void)state;
    err e = {0};
    sqlite3 *other;
    journal *j = journal_open("s.db", false, &e);
    support_ok(j != NULL, &e);
    put_rows(j);
    assert_int_equal(sqlite3_open("s.db", &other), SQLITE_OK);
    assert_int_equal(sqlite3_exec(other, "UPDATE words SET text = 'wore'", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(other);
    journal *reader = journal_read("s.db", &e);
    support_ok(reader != NULL, &e);
    journal_close(reader);
    journal_close(j);
    assert_null(journal_read("s.db", &e));
    assert_int_equal(e.kind, ERR_INPUT);
}

// A table that is added later is not to be forgotten.
static void every_table_has_a_sum(void **state) {
    (void)state;
    err e = {0};
    journal *j = journal_open("s.db", false, &e);
    support_ok(j != NULL, &e);
    json_t *bare = journal_rows(j,
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name <> 'sums' AND name NOT IN (SELECT name FROM "
        "sums)",
        NULL, &e);
    support_ok(bare != NULL, &e);
    if (json_array_size(bare)) fail_msg("%s", json_string_value(json_object_get(json_array_get(bare, 0), "name")));
    json_decref(bare);
    journal_close(j);
}

// Ids are the seconds of the close, so that a state that is begun later has larger ones; rising, whatever the closes.
static void ids_rise_from_state_to_state(void **state) {
    (void)state;
    static const int64_t closes[] = {1747100700, 1747100700, 1747101600, 1747100000, 1747102500},
                         ids[] = {1747100700, 1747100701, 1747101600, 1747101601, 1747102500};
    err e = {0};
    journal *j = journal_open("s.db", false, &e);
    support_ok(j && journal_begin(j, &e), &e);
    for (int i = 0; i < 5; i++) {
        journal_intent x = {.symbol = "GOLD", .time = closes[i]};
        assert_int_equal(journal_put_intent(j, &x), ids[i]);
    }
    support_ok(journal_commit(j, &e), &e);
    json_t *open = journal_rows(j, "SELECT id FROM intents WHERE symbol = ?1 AND status = 'open'", "GOLD", &e);
    json_t *rest = journal_rows(j, "SELECT id FROM intents WHERE symbol = ?1 AND status = 'replaced'", "GOLD", &e);
    assert_int_equal(json_array_size(open), 1);
    assert_int_equal(json_array_size(rest), 4);
    json_decref(open);
    json_decref(rest);
    journal_close(j);
}

static void answers_are_not_cut(void **state) {
    (void)state;
    enum { WIDTH = 500 };
    float answer[WIDTH];
    err e = {0};
    for (int i = 0; i < WIDTH; i++) answer[i] = -1.23456789e-30f / (float)(i + 1);
    journal_decision d = {.symbol = "GOLD", .answer = answer, .width = WIDTH};
    journal *j = journal_open("s.db", false, &e);
    support_ok(j && journal_begin(j, &e), &e);
    journal_put_decision(j, &d);
    support_ok(journal_commit(j, &e), &e);
    json_t *rows = journal_rows(j, "SELECT answer FROM decisions", NULL, &e);
    json_t *all = json_loads(json_string_value(json_object_get(json_array_get(rows, 0), "answer")), 0, NULL);
    assert_int_equal(json_array_size(all), WIDTH);
    for (int i = 0; i < WIDTH; i++) assert_true((float)json_number_value(json_array_get(all, (size_t)i)) == answer[i]);
    json_decref(all);
    json_decref(rows);
    journal_close(j);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, support_enter, support_leave)
    const struct CMUnitTest tests[] = {
        TEST(what_is_not_there_is_no_failure),
        TEST(what_cannot_be_read_is_one),
        TEST(changed_rows_are_refused),
        TEST(only_a_session_uses_a_state),
        TEST(readers_do_not_look_again),
        TEST(every_table_has_a_sum),
        TEST(ids_rise_from_state_to_state),
        TEST(answers_are_not_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
