// The journal of a session: what is not in it is told apart from what cannot be read.
#include "live/journal.h"

#include "support.h"

#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

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

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, support_enter, support_leave)
    const struct CMUnitTest tests[] = {
        TEST(what_is_not_there_is_no_failure),
        TEST(what_cannot_be_read_is_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
