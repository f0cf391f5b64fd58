#include "live/journal.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/network.h"
#include "run/live_file.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

enum { LOG_MOST = 1000, BUSY_MS = 2000, STEP_MS = 20 };

// Seconds that a session under way waits for a program that has its state locked.
static const double LOCKED_MOST = 30;

static const char schema[] =
    "BEGIN IMMEDIATE;"
    "PRAGMA application_id = 1953983606;"
    "PRAGMA user_version = 1;"
    "CREATE TABLE IF NOT EXISTS words (key TEXT PRIMARY KEY, text TEXT) WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS bars (symbol TEXT, frame INTEGER, time INTEGER, end INTEGER, open REAL, high REAL,"
    "  low REAL, close REAL, volume REAL, spread REAL, PRIMARY KEY (symbol, frame, time)) WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS decisions (symbol TEXT, time INTEGER, end INTEGER, kind TEXT, inputs INTEGER,"
    "  answer TEXT, score REAL, volatility REAL, side INTEGER, units INTEGER, stop INTEGER, target INTEGER,"
    "  changes INTEGER, equity INTEGER, why TEXT, made REAL, PRIMARY KEY (symbol, time)) WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS intents (id INTEGER PRIMARY KEY, symbol TEXT, time INTEGER, until INTEGER,"
    "  units INTEGER, lots INTEGER, stop INTEGER, target INTEGER, price INTEGER, sent INTEGER, status TEXT,"
    "  filled INTEGER);"
    "CREATE INDEX IF NOT EXISTS intents_of ON intents (symbol, id);"
    "CREATE INDEX IF NOT EXISTS intents_open ON intents (symbol) WHERE status = 'open';"
    "CREATE TABLE IF NOT EXISTS trades (id INTEGER PRIMARY KEY, symbol TEXT, units INTEGER, entry INTEGER,"
    "  exit INTEGER, entry_price INTEGER, exit_price INTEGER, result INTEGER, commission INTEGER, swap INTEGER,"
    "  reason TEXT, value INTEGER, traded REAL, cost REAL);"
    "CREATE INDEX IF NOT EXISTS trades_of ON trades (symbol, id);"
    "CREATE TABLE IF NOT EXISTS books (symbol TEXT PRIMARY KEY, time INTEGER, units INTEGER, stop INTEGER,"
    "  target INTEGER, cash INTEGER, equity INTEGER, entry INTEGER, entry_price INTEGER, held INTEGER,"
    "  order_units INTEGER, order_stop INTEGER, order_target INTEGER, numbers BLOB) WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS states (symbol TEXT PRIMARY KEY, time INTEGER, state BLOB);"
    "CREATE TABLE IF NOT EXISTS fills (id INTEGER PRIMARY KEY, symbol TEXT, time INTEGER, bid REAL, ask REAL,"
    "  price INTEGER);"
    "CREATE TABLE IF NOT EXISTS memories (symbol TEXT PRIMARY KEY, time INTEGER, weights TEXT, memory BLOB);"
    "CREATE TABLE IF NOT EXISTS events (id INTEGER PRIMARY KEY, at REAL, time INTEGER, symbol TEXT, kind TEXT,"
    "  answer TEXT, text TEXT);";

typedef enum {
    PUT_BAR,
    PUT_DECISION,
    PUT_REPLACED,
    PUT_INTENT,
    PUT_FILLED,
    PUT_SENT,
    PUT_FILL,
    PUT_TRADE,
    PUT_BOOKS,
    PUT_STATE,
    PUT_MEMORY,
    PUT_EVENT,
    PUT_WORD,
    BEGIN,
    COMMIT,
    STATEMENTS
} statement;

static const char *const text_of[STATEMENTS] = {
    [PUT_BAR] = "INSERT OR REPLACE INTO bars VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
    [PUT_DECISION] = ("INSERT OR REPLACE INTO decisions VALUES"
                      " (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)"),
    [PUT_REPLACED] = "UPDATE intents SET status = 'replaced' WHERE symbol = ?1 AND status = 'open'",
    [PUT_INTENT] =
        ("INSERT INTO intents (id, symbol, time, until, units, lots, stop, target, price, sent, status) VALUES"
         " (max(ifnull((SELECT max(id) FROM intents), 0) + 1, ?2), ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 0, 'open')"),
    [PUT_FILLED] = ("UPDATE intents SET status = ?2, filled = ?3 WHERE id ="
                    " (SELECT max(id) FROM intents WHERE symbol = ?1) AND status = 'open'"),
    [PUT_SENT] = "UPDATE intents SET sent = 1 WHERE id = ?1",
    [PUT_FILL] = ("INSERT OR REPLACE INTO fills VALUES"
                  " ((SELECT max(id) FROM intents WHERE symbol = ?1), ?1, ?2, ?3, ?4, ?5)"),
    [PUT_TRADE] = ("INSERT INTO trades (symbol, units, entry, exit, entry_price, exit_price, result, commission, swap,"
                   " reason, value, traded, cost) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)"),
    [PUT_BOOKS] = ("INSERT OR REPLACE INTO books VALUES"
                   " (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)"),
    [PUT_STATE] = "INSERT OR REPLACE INTO states VALUES (?1, ?2, ?3)",
    [PUT_MEMORY] = "INSERT OR REPLACE INTO memories VALUES (?1, ?2, ?3, ?4)",
    [PUT_EVENT] = "INSERT INTO events (at, time, symbol, kind, answer, text) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    [PUT_WORD] = "INSERT OR REPLACE INTO words VALUES (?1, ?2)",
    [BEGIN] = "BEGIN IMMEDIATE",
    [COMMIT] = "COMMIT",
};

struct journal {
    sqlite3 *file;
    char *path;
    int lock;
    bool open;                      // a transaction
    int waits;                      // pages in the log beside the file
    double patience, locked, since; // seconds: for another's lock; the longest wait for one; and when the newest began
    sqlite3_stmt *statement[STATEMENTS];
    err trouble; // of the transaction
};

const char *decision_kind_name(decision_kind k) {
    static const char *const names[DECISION_KINDS] = {"made", "caught_up", "held", "cold"};
    return names[k];
}

// Failures

// A place that another name mends: no file, or one that nobody may write. SQLite's word of a file beside it that did
// not open says nothing of the place: descriptors may be short.
static bool is_bad_place(const journal *j) {
    struct stat is;
    return journal_is_read_only(j->path) || (stat(j->path, &is) == 0 && !S_ISREG(is.st_mode));
}

static bool fail(journal *j, const char *what, err *e) {
    int code = j->file ? sqlite3_errcode(j->file) : SQLITE_NOMEM;
    const char *why = j->file ? sqlite3_errmsg(j->file) : "out of memory";
    NEED(code != SQLITE_NOMEM, "%s: out of memory", j->path);
    if (code == SQLITE_NOTADB) return err_input(e, "%s: is damaged, or no state of a session: %s", j->path, why);
    if (code == SQLITE_CORRUPT) return err_run(e, "%s: is damaged, or its disk is: %s", j->path, why);
    if ((code == SQLITE_READONLY || code == SQLITE_CANTOPEN || code == SQLITE_PERM) && is_bad_place(j))
        return err_input(e, "%s: %s: %s; name another place with --state", j->path, what, why);
    if (code == SQLITE_BUSY || code == SQLITE_LOCKED)
        return err_run(e, "%s: %s: another program has it locked", j->path, what);
    return err_run(e, "%s: %s: %s", j->path, what, why);
}

// The first failure of a transaction stands for it.
static void note(journal *j, const char *what) {
    if (!j->trouble.kind) fail(j, what, &j->trouble);
}

const char *journal_trouble(const journal *j) {
    return j->trouble.kind ? j->trouble.text : "";
}

// Opening

// A second session would write a second book.
static bool take_lock(journal *j, err *e) {
    char *path = NULL;
    NEED(asprintf(&path, "%s.lock", j->path) >= 0, "out of memory for a path");
    j->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    bool ok = j->lock >= 0 || file_fail(e, path, "cannot be written", errno);
    if (ok && flock(j->lock, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        ok = err_input(e,
            "%s: another session writes to it; stop that one first (tradewind live --stop), or name another --state",
            j->path);
    free(path);
    return ok;
}

// A file without tables is one that may become a state.
static bool is_ours(journal *j, bool may_be_empty, err *e) {
    live_file_state state = live_file_known(j->file, j->path, e);
    if (state == LIVE_FILE_FAILED) return fail(j, "cannot be read", e);
    if (state == LIVE_FILE_EMPTY && !may_be_empty)
        return err_input(e, "%s: is no state of a session: it is empty", j->path);
    return state != LIVE_FILE_FOREIGN;
}

static int on_commit(void *arg, sqlite3 *file, const char *name, int pages) {
    journal *j = arg;
    (void)file;
    (void)name;
    j->waits = pages;
    return SQLITE_OK;
}

void journal_rest(journal *j) {
    if (j->waits < LOG_MOST) return;
    j->waits = 0;
    sqlite3_wal_checkpoint_v2(j->file, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
}

static bool execute(journal *j, const char *sql) {
    return sqlite3_exec(j->file, sql, NULL, NULL, NULL) == SQLITE_OK;
}

// True where SQLite finds its trees whole: what an index leaves out is in no answer, however whole the rows are.
static bool are_trees_whole(journal *j, err *e) {
    sqlite3_stmt *st = NULL;
    bool ok = sqlite3_prepare_v2(j->file, "PRAGMA integrity_check(1)", -1, &st, NULL) == SQLITE_OK &&
              sqlite3_step(st) == SQLITE_ROW;
    const char *says = ok ? (const char *)sqlite3_column_text(st, 0) : NULL;
    if (!says)
        ok = fail(j, "cannot be read", e);
    else if (strcmp(says, "ok") != 0)
        ok = err_input(e, "%s: is damaged: %.200s", j->path, says);
    sqlite3_finalize(st);
    return ok;
}

// True where all that is read back is as it was written, at one moment.
static bool is_whole(journal *j, err *e) {
    if (!execute(j, "BEGIN")) return fail(j, "cannot be read", e);
    bool ok = live_file_vouch(j->file, j->path, e) || (e->kind == ERR_NONE && fail(j, "cannot be read", e));
    ok = ok && are_trees_whole(j, e);
    execute(j, "COMMIT");
    return ok;
}

// Waits for another program's lock, as of a reader on a network disk or a backup; false where it takes too long.
static int wait_for_lock(void *arg, int times) {
    journal *j = arg;
    double now = clock_seconds();
    if (!times) j->since = now;
    j->locked = fmax(j->locked, now - j->since);
    if (now - j->since < j->patience) return sqlite3_sleep(STEP_MS) > 0;
    j->patience = fmin(j->patience, BUSY_MS / 1e3); // whoever gives up does not wait as long again
    return 0;
}

double journal_locked(journal *j) {
    double locked = j->locked;
    j->locked = 0;
    return locked;
}

static bool prepare(journal *j, bool power, err *e) {
    char sql[160];
    snprintf(sql, sizeof sql, "PRAGMA journal_mode = %s; PRAGMA synchronous = %s; PRAGMA temp_store = MEMORY",
        network_of(j->path) ? "DELETE" : "WAL", power ? "FULL" : "NORMAL");
    j->patience = BUSY_MS / 1e3;
    sqlite3_busy_handler(j->file, wait_for_lock, j);
    sqlite3_wal_hook(j->file, on_commit, j);
    if (!is_ours(j, true, e)) return false;
    if (!execute(j, sql) || !execute(j, schema) || !row_sums_keep(j->file, live_file_tables, LIVE_FILE_TABLES) ||
        !execute(j, "COMMIT"))
        return fail(j, "cannot be written", e);
    if (!is_whole(j, e)) return false;
    for (int k = 0; k < STATEMENTS; k++)
        if (sqlite3_prepare_v3(j->file, text_of[k], -1, SQLITE_PREPARE_PERSISTENT, &j->statement[k], NULL) != SQLITE_OK)
            return fail(j, "cannot be read", e);
    j->patience = LOCKED_MOST;
    return true;
}

static journal *make(const char *path) {
    journal *j = calloc(1, sizeof *j);
    NEED(j && (j->path = strdup(path)), "out of memory for a journal");
    j->lock = -1;
    return j;
}

journal *journal_open(const char *path, bool power, err *e) {
    journal *j = make(path);
    bool ok = take_lock(j, e);
    if (ok && sqlite3_open_v2(path, &j->file, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL) != SQLITE_OK)
        ok = fail(j, "cannot be opened", e);
    if (ok && prepare(j, power, e)) return j;
    journal_close(j);
    return NULL;
}

static bool is_there(const char *path, const char *end) {
    char *with = NULL;
    NEED(asprintf(&with, "%s%s", path, end) >= 0, "out of memory for a path");
    bool there = access(with, F_OK) == 0;
    free(with);
    return there;
}

bool journal_is_read_only(const char *path) {
    const char *slash = strrchr(path, '/');
    char *folder = slash ? strndup(path, (size_t)(slash - path + 1)) : strdup(".");
    NEED(folder, "out of memory for a path");
    bool closed = is_there(path, "") && (access(path, W_OK) != 0 || access(folder, W_OK) != 0);
    free(folder);
    return closed;
}

bool journal_is_in_use(const char *path) {
    char *lock = NULL;
    NEED(asprintf(&lock, "%s.lock", path) >= 0, "out of memory for a path");
    int fd = open(lock, O_RDONLY | O_CLOEXEC);
    bool used = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK; // NFS: no LOCK_EX for a reader
    if (fd >= 0) close(fd);
    free(lock);
    return used;
}

// True where nobody writes to the file, and nobody has left a part of what was written beside it.
static bool is_at_rest(const char *path) {
    return !journal_is_in_use(path) && !is_there(path, "-wal") && !is_there(path, "-journal");
}

// Reading makes files beside this one. Where none can be made, and the file is at rest, it is read as it lies, without
// a lock.
static int open_to_read(journal *j) {
    if (!journal_is_read_only(j->path) || !is_at_rest(j->path))
        return sqlite3_open_v2(j->path, &j->file, SQLITE_OPEN_READWRITE, NULL);
    char *uri = malloc(3 * strlen(j->path) + 32), *to = uri;
    NEED(uri, "out of memory for a path");
    to = stpcpy(to, "file:");
    for (const char *c = j->path; *c; c++) to += sprintf(to, strchr("%?#", *c) ? "%%%02x" : "%c", (unsigned char)*c);
    strcpy(to, "?immutable=1");
    int code = sqlite3_open_v2(uri, &j->file, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, NULL);
    free(uri);
    return code;
}

journal *journal_read(const char *path, err *e) {
    journal *j = make(path);
    bool ok = access(path, R_OK) == 0 || file_fail(e, path, "cannot be read", errno);
    if (ok && open_to_read(j) != SQLITE_OK) ok = fail(j, "cannot be opened", e);
    if (ok) sqlite3_busy_timeout(j->file, BUSY_MS);
    // A session has looked whether its state is whole, and would wait for a reader that does so on a network disk.
    if (ok && is_ours(j, false, e) && (journal_is_in_use(path) || is_whole(j, e))) return j;
    journal_close(j);
    return NULL;
}

void journal_close(journal *j) {
    if (!j) return;
    for (int k = 0; k < STATEMENTS; k++) sqlite3_finalize(j->statement[k]);
    sqlite3_close(j->file);
    if (j->lock >= 0) close(j->lock);
    free(j->path);
    free(j);
}

// Transactions

static bool step(journal *j, statement k) {
    sqlite3_stmt *st = j->statement[k];
    int rc = sqlite3_step(st);
    if (rc != SQLITE_DONE) note(j, "cannot be written");
    sqlite3_reset(st);
    sqlite3_clear_bindings(st);
    return rc == SQLITE_DONE;
}

bool journal_begin(journal *j, err *e) {
    CHECK(!j->open, "a transaction in a transaction");
    j->trouble = (err){0};
    j->open = step(j, BEGIN);
    if (!j->open) *e = j->trouble;
    return j->open;
}

void journal_abandon(journal *j) {
    if (j->open && !sqlite3_get_autocommit(j->file)) sqlite3_exec(j->file, "ROLLBACK", NULL, NULL, NULL);
    j->open = false;
}

bool journal_commit(journal *j, err *e) {
    if (!j->trouble.kind && step(j, COMMIT)) {
        j->open = false;
        return true;
    }
    journal_abandon(j);
    *e = j->trouble;
    return false;
}

// Rows. A value is bound in its place, from 1 on.

static void put_text(sqlite3_stmt *st, int at, const char *text) {
    NEED(sqlite3_bind_text(st, at, text, -1, SQLITE_TRANSIENT) == SQLITE_OK, "out of memory for a row of the state");
}

static void put_real(sqlite3_stmt *st, int at, double v) {
    if (isnan(v))
        sqlite3_bind_null(st, at);
    else
        sqlite3_bind_double(st, at, v);
}

static void put_whole(sqlite3_stmt *st, int at, const int64_t *v, int count) {
    for (int i = 0; i < count; i++) sqlite3_bind_int64(st, at + i, v[i]);
}

void journal_put_bar(journal *j, const char *symbol, int frame, const bar *b) {
    sqlite3_stmt *st = j->statement[PUT_BAR];
    const double price[] = {b->open, b->high, b->low, b->close, b->volume, b->spread};
    put_text(st, 1, symbol);
    put_whole(st, 2, (const int64_t[]){frame, b->time, b->end}, 3);
    for (int i = 0; i < 6; i++) sqlite3_bind_double(st, 5 + i, price[i]);
    step(j, PUT_BAR);
}

// The answer as a list of numbers that read back to the same floats.
static void put_answer(sqlite3_stmt *st, int at, const journal_decision *d) {
    enum { EACH = 24 };
    if (!d->width) return;
    char *text = malloc(EACH * (size_t)d->width + 2), *to = text;
    NEED(text, "out of memory for an answer of %lld numbers", (long long)d->width);
    for (int64_t i = 0; i < d->width; i++) to += sprintf(to, "%c%.9g", i ? ',' : '[', (double)d->answer[i]);
    strcpy(to, "]");
    put_text(st, at, text);
    free(text);
}

void journal_put_decision(journal *j, const journal_decision *d) {
    sqlite3_stmt *st = j->statement[PUT_DECISION];
    put_text(st, 1, d->symbol);
    put_whole(st, 2, (const int64_t[]){d->bar.time, d->bar.end}, 2);
    put_text(st, 4, decision_kind_name(d->kind));
    if (d->inputs >= 0) sqlite3_bind_int64(st, 5, d->inputs);
    put_answer(st, 6, d);
    put_real(st, 7, d->score);
    put_real(st, 8, d->volatility);
    put_whole(
        st, 9, (const int64_t[]){d->side, d->order.units, d->order.stop, d->order.target, d->changes, d->equity}, 6);
    if (d->why) put_text(st, 15, d->why);
    sqlite3_bind_double(st, 16, d->made);
    step(j, PUT_DECISION);
}

int64_t journal_put_intent(journal *j, const journal_intent *i) {
    sqlite3_stmt *st = j->statement[PUT_INTENT];
    put_text(j->statement[PUT_REPLACED], 1, i->symbol);
    step(j, PUT_REPLACED);
    put_text(st, 1, i->symbol);
    put_whole(st, 2,
        (const int64_t[]){i->time, i->until, i->order.units, i->lots, i->order.stop, i->order.target, i->price}, 7);
    return step(j, PUT_INTENT) ? sqlite3_last_insert_rowid(j->file) : 0;
}

void journal_put_filled(journal *j, const char *symbol, int64_t bar, bool refused) {
    sqlite3_stmt *st = j->statement[PUT_FILLED];
    put_text(st, 1, symbol);
    put_text(st, 2, refused ? "refused" : "filled");
    sqlite3_bind_int64(st, 3, bar);
    step(j, PUT_FILLED);
}

void journal_put_sent(journal *j, int64_t id) {
    sqlite3_bind_int64(j->statement[PUT_SENT], 1, id);
    step(j, PUT_SENT);
}

void journal_put_fill(journal *j, const char *symbol, int64_t time, double bid, double ask, int64_t price) {
    sqlite3_stmt *st = j->statement[PUT_FILL];
    put_text(st, 1, symbol);
    sqlite3_bind_int64(st, 2, time);
    put_real(st, 3, bid);
    put_real(st, 4, ask);
    sqlite3_bind_int64(st, 5, price);
    step(j, PUT_FILL);
}

void journal_put_trade(journal *j, const char *symbol, const books_trade *t) {
    sqlite3_stmt *st = j->statement[PUT_TRADE];
    const replay_trade *x = &t->trade;
    put_text(st, 1, symbol);
    put_whole(st, 2,
        (const int64_t[]){
            x->units, t->entry, t->exit, x->entry_price, x->exit_price, x->result, x->commission, x->swap},
        8);
    put_text(st, 10, account_reason_name(x->reason));
    sqlite3_bind_int64(st, 11, x->value);
    sqlite3_bind_double(st, 12, x->traded);
    sqlite3_bind_double(st, 13, x->cost);
    step(j, PUT_TRADE);
}

typedef struct {
    int64_t number[BOOKS_NUMBERS];
    int64_t order[4]; // there is one, and it
    int64_t sum;
} kept_books;

static int64_t sum_of(const kept_books *k) {
    return (int64_t)crc32_z(crc32(0, NULL, 0), (const unsigned char *)k, offsetof(kept_books, sum));
}

static int64_t price_of(const account *a, int64_t at) {
    return llabs(at) == ACCOUNT_NEVER ? 0 : a->units < 0 ? -at : at;
}

void journal_put_books(journal *j, const journal_books *b) {
    sqlite3_stmt *st = j->statement[PUT_BOOKS];
    const account *a = &b->now->replay.books;
    const replay_trade *open = &b->now->replay.trade[0];
    kept_books k = {.order = {b->has_order, b->order.units, b->order.stop, b->order.target}};
    books_save(b->now, k.number);
    k.sum = sum_of(&k);
    put_text(st, 1, b->symbol);
    put_whole(st, 2,
        (const int64_t[]){b->time, a->units, price_of(a, a->stop), price_of(a, a->target), a->cash, b->now->equity}, 6);
    if (a->units) put_whole(st, 8, (const int64_t[]){b->now->entry, open->entry_price, b->now->held}, 3);
    if (b->has_order) put_whole(st, 11, k.order + 1, 3);
    NEED(sqlite3_bind_blob(st, 14, &k, sizeof k, SQLITE_TRANSIENT) == SQLITE_OK, "out of memory for the books");
    step(j, PUT_BOOKS);
}

void journal_put_state(journal *j, const char *symbol, int64_t time, const void *state, size_t bytes) {
    sqlite3_stmt *st = j->statement[PUT_STATE];
    put_text(st, 1, symbol);
    sqlite3_bind_int64(st, 2, time);
    NEED(sqlite3_bind_blob64(st, 3, state, bytes, SQLITE_TRANSIENT) == SQLITE_OK, "out of memory for the state");
    step(j, PUT_STATE);
}

void journal_put_memory(
    journal *j, const char *symbol, int64_t time, const char *weights, const void *memory, size_t bytes) {
    sqlite3_stmt *st = j->statement[PUT_MEMORY];
    put_text(st, 1, symbol);
    sqlite3_bind_int64(st, 2, time);
    put_text(st, 3, weights);
    NEED(sqlite3_bind_blob64(st, 4, memory, bytes, SQLITE_TRANSIENT) == SQLITE_OK, "out of memory for a memory");
    step(j, PUT_MEMORY);
}

void journal_put_event(
    journal *j, double at, int64_t time, const char *symbol, const char *kind, const char *answer, const char *text) {
    sqlite3_stmt *st = j->statement[PUT_EVENT];
    sqlite3_bind_double(st, 1, at);
    if (time != INT64_MIN) sqlite3_bind_int64(st, 2, time);
    put_text(st, 3, symbol);
    put_text(st, 4, kind);
    put_text(st, 5, answer);
    put_text(st, 6, text);
    step(j, PUT_EVENT);
}

void journal_put_word(journal *j, const char *key, const char *text) {
    put_text(j->statement[PUT_WORD], 1, key);
    put_text(j->statement[PUT_WORD], 2, text);
    step(j, PUT_WORD);
}

// Reading

static sqlite3_stmt *ask(journal *j, const char *sql, const char *symbol) {
    sqlite3_stmt *st = NULL;
    NEED(sqlite3_prepare_v2(j->file, sql, -1, &st, NULL) != SQLITE_NOMEM, "%s: out of memory", j->path);
    if (st && symbol) put_text(st, 1, symbol);
    return st;
}

static const char *text_at(sqlite3_stmt *st, int column) {
    const char *text = (const char *)sqlite3_column_text(st, column);
    return text ? text : "";
}

// The next row of a question; *there is false behind the last one.
static bool next_row(journal *j, sqlite3_stmt *st, bool *there, err *e) {
    int rc = st ? sqlite3_step(st) : SQLITE_ERROR;
    *there = rc == SQLITE_ROW;
    return *there || rc == SQLITE_DONE || fail(j, "cannot be read", e);
}

bool journal_word(journal *j, const char *key, char **text, err *e) {
    sqlite3_stmt *st = ask(j, "SELECT text FROM words WHERE key = ?1", key);
    bool there, ok = next_row(j, st, &there, e);
    *text = there ? strdup(text_at(st, 0)) : NULL;
    NEED(*text || !there, "out of memory for a word");
    sqlite3_finalize(st);
    return ok;
}

bool journal_take_books(journal *j, const char *symbol, books *now, int64_t *time, bool *has_order,
    account_order *order, bool *there, err *e) {
    sqlite3_stmt *st = ask(j, "SELECT time, numbers FROM books WHERE symbol = ?1", symbol);
    bool ok = next_row(j, st, there, e), whole = false;
    kept_books k;
    if (*there) {
        *time = sqlite3_column_int64(st, 0);
        whole = sqlite3_column_bytes(st, 1) == (int)sizeof k;
        if (whole) memcpy(&k, sqlite3_column_blob(st, 1), sizeof k);
        whole = whole && k.sum == sum_of(&k) && books_load(now, k.number);
    }
    sqlite3_finalize(st);
    if (!*there) return ok;
    if (!whole) return err_input(e, "%s: the books of %s are damaged", j->path, *symbol ? symbol : "the instrument");
    *has_order = k.order[0] != 0;
    *order = (account_order){k.order[1], k.order[2], k.order[3]};
    return true;
}

void *journal_take_state(journal *j, const char *symbol, int64_t *time, size_t *bytes, err *e) {
    sqlite3_stmt *st = ask(j, "SELECT time, state FROM states WHERE symbol = ?1", symbol);
    void *state = NULL;
    bool there, ok = next_row(j, st, &there, e);
    if (there) {
        *time = sqlite3_column_int64(st, 0);
        *bytes = (size_t)sqlite3_column_bytes(st, 1);
        state = malloc(*bytes + 1);
        NEED(state, "out of memory for a state of %zu bytes", *bytes);
        if (*bytes) memcpy(state, sqlite3_column_blob(st, 1), *bytes);
    } else if (ok) {
        err_input(e, "%s: the state of %s is missing", j->path, *symbol ? symbol : "the features");
    }
    sqlite3_finalize(st);
    return state;
}

bool journal_take_memory(
    journal *j, const char *symbol, int64_t time, const char *weights, void **memory, size_t *bytes, err *e) {
    sqlite3_stmt *st = ask(j, "SELECT time, weights, memory FROM memories WHERE symbol = ?1", symbol);
    bool there, ok = next_row(j, st, &there, e);
    *memory = NULL;
    if (there && strcmp(text_at(st, 1), weights) == 0) {
        ok = sqlite3_column_int64(st, 0) == time ||
             err_input(e, "%s: what the agent remembers is of another bar than its books", j->path);
        *bytes = (size_t)sqlite3_column_bytes(st, 2);
        *memory = ok ? malloc(*bytes + 1) : NULL;
        NEED(*memory || !ok, "out of memory for a memory of %zu bytes", *bytes);
        if (ok && *bytes) memcpy(*memory, sqlite3_column_blob(st, 2), *bytes);
    }
    sqlite3_finalize(st);
    return ok;
}

bar *journal_bars(journal *j, const char *symbol, int frame, int64_t after, int64_t most, int64_t *count, err *e) {
    sqlite3_stmt *st = ask(j,
        "SELECT * FROM (SELECT time, end, open, high, low, close, volume, spread FROM bars WHERE symbol = ?1 AND"
        " frame = ?2 AND end > ?3 ORDER BY time DESC LIMIT ?4) ORDER BY time",
        symbol);
    size_t room = 64;
    bar *all = malloc(room * sizeof *all);
    bool there, ok;
    NEED(all, "out of memory for bars");
    *count = 0;
    if (st) put_whole(st, 2, (const int64_t[]){frame, after, most}, 3);
    while ((ok = next_row(j, st, &there, e)) && there) {
        if ((size_t)*count == room) {
            room *= 2;
            all = realloc(all, room * sizeof *all);
            NEED(all, "out of memory for bars");
        }
        all[(*count)++] = (bar){sqlite3_column_int64(st, 0), sqlite3_column_int64(st, 1), sqlite3_column_double(st, 2),
            sqlite3_column_double(st, 3), sqlite3_column_double(st, 4), sqlite3_column_double(st, 5),
            sqlite3_column_double(st, 6), sqlite3_column_double(st, 7)};
    }
    sqlite3_finalize(st);
    if (ok) return all;
    free(all);
    return NULL;
}

static account_reason reason_of(const char *name) {
    int k = 0;
    while (k + 1 < ACCOUNT_REASONS && strcmp(account_reason_name((account_reason)k), name) != 0) k++;
    return (account_reason)k;
}

books_trade *journal_trades(journal *j, const char *symbol, int64_t *count, err *e) {
    sqlite3_stmt *st = ask(j,
        "SELECT units, entry, exit, entry_price, exit_price, result, commission, swap, reason, value, traded, cost"
        " FROM trades WHERE symbol = ?1 ORDER BY id",
        symbol);
    books_trade *all = malloc(sizeof *all);
    size_t room = 1;
    bool there, ok;
    NEED(all, "out of memory for trades");
    *count = 0;
    while ((ok = next_row(j, st, &there, e)) && there) {
        if ((size_t)*count + 1 >= room) all = realloc(all, (room *= 2) * sizeof *all);
        NEED(all, "out of memory for trades");
        all[(*count)++] = (books_trade){.trade = {.units = sqlite3_column_int64(st, 0),
                                            .entry_price = sqlite3_column_int64(st, 3),
                                            .exit_price = sqlite3_column_int64(st, 4),
                                            .result = sqlite3_column_int64(st, 5),
                                            .commission = sqlite3_column_int64(st, 6),
                                            .swap = sqlite3_column_int64(st, 7),
                                            .reason = reason_of(text_at(st, 8)),
                                            .value = sqlite3_column_int64(st, 9),
                                            .traded = sqlite3_column_double(st, 10),
                                            .cost = sqlite3_column_double(st, 11)},
            .entry = sqlite3_column_int64(st, 1),
            .exit = sqlite3_column_int64(st, 2)};
    }
    sqlite3_finalize(st);
    if (ok) return all;
    free(all);
    return NULL;
}

bool journal_newest_intent(journal *j, const char *symbol, journal_intent *to, err *e) {
    sqlite3_stmt *st = ask(j,
        "SELECT id, time, until, units, lots, stop, target, price, sent FROM intents WHERE symbol = ?1"
        " ORDER BY id DESC LIMIT 1",
        symbol);
    bool there, ok = next_row(j, st, &there, e);
    *to = (journal_intent){0};
    if (there) {
        *to = (journal_intent){.id = sqlite3_column_int64(st, 0),
            .time = sqlite3_column_int64(st, 1),
            .until = sqlite3_column_int64(st, 2),
            .order = {sqlite3_column_int64(st, 3), sqlite3_column_int64(st, 5), sqlite3_column_int64(st, 6)},
            .lots = sqlite3_column_int64(st, 4),
            .price = sqlite3_column_int64(st, 7),
            .sent = sqlite3_column_int(st, 8) != 0};
        snprintf(to->symbol, sizeof to->symbol, "%s", symbol);
    }
    sqlite3_finalize(st);
    return ok;
}

static json_t *value_at(sqlite3_stmt *st, int column) {
    switch (sqlite3_column_type(st, column)) {
    case SQLITE_INTEGER: return json_integer(sqlite3_column_int64(st, column));
    case SQLITE_FLOAT: return json_number(sqlite3_column_double(st, column));
    case SQLITE_TEXT: return json_string(text_at(st, column));
    default: return json_null();
    }
}

json_t *journal_rows(journal *j, const char *sql, const char *symbol, err *e) {
    sqlite3_stmt *st = ask(j, sql, symbol);
    json_t *all = json_array();
    bool there, ok;
    while ((ok = next_row(j, st, &there, e)) && there) {
        json_t *row = json_object();
        for (int c = 0; c < sqlite3_column_count(st); c++)
            json_object_set_new(row, sqlite3_column_name(st, c), value_at(st, c));
        json_array_append_new(all, row);
    }
    if (!ok) {
        json_decref(all);
        all = NULL;
    }
    sqlite3_finalize(st);
    return all;
}
