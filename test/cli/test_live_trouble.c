// tradewind live in trouble: disks that are full, states that are locked, limits that are reached, bars that come twice
// or otherwise, bars that came while nobody could trade.
#include "cli/program.h"
#include "data/walk.h"
#include "fault/kinds.h"
#include "live/kept.h"
#include "support.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { N = 900, SPAN = 300 };

static const char header[] = "time,open,high,low,close,tick_volume,spread\n";

static void put_bar(FILE *f, const bar *b, double by) {
    fprintf(f, "%lld,%.9g,%.9g,%.9g,%.9g,%.0f,%.0f\n", (long long)b->time, b->open * by, b->high * by, b->low * by,
        b->close * by, b->volume, b->spread);
}

static void put_part(const char *path, int64_t count) {
    bar *all = walk_bars(N, SPAN, 5);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(header, f);
    for (int64_t i = 0; i < count; i++) put_bar(f, &all[i], 1);
    fclose(f);
    free(all);
}

#define WORDS(state, ...)                                                                                              \
    "live", "mlp", "--feed", "replay:b.csv", "-q", "--history", "none", "--state", state, __VA_ARGS__

static int setup(void **state) {
    if (support_enter(state)) return -1;
    program_use(TRADEWIND_BINARY);
    walk_put("train.csv", 1200, SPAN, 4);
    walk_put("b.csv", N, SPAN, 5);
    put_text("run.yaml", "data: {bars: {fast: train.csv}, vector: false, windows: {fast: 8},\n"
                         "  label: {kind: barrier, up: 1, down: 1, limit: 4}, features: {fast: [return, body]}}\n"
                         "model: {kind: mlp, widths: '8'}\ntrain: {epochs: 1, batch_size: 128}\nrun: {dir: mlp}\n"
                         "signal: {threshold: 0.2}\n");
    if (RUN("train", "run.yaml", "-q", "--device", "cpu") != 0) return -1;
    return RUN(WORDS("whole.db", "live.durable=process"));
}

// Writes that fail, one in each start: it says so, and loses nothing.
static void a_full_disk_is_told(void **state) {
    (void)state;
    if (support_sanitized()) skip(); // the shim comes before the sanitizer's library
    int told = 0, status = -1;
    for (int at = 40; at < 4000 && status != 0; at += 271) {
        fault f = {.call = "write", .at = at, .how = "fail"};
        const char *const words[] = {WORDS("k.db", "live.durable=process"), NULL};
        pid_t child = fault_start(words, &f, NULL);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        if (status == 0) break;
        assert_int_equal(WEXITSTATUS(status), 1);
        matches("err", "^tradewind: k\\.db: cannot be [a-z]+: ");
        told++;
    }
    if (status != 0) assert_int_equal(RUN(WORDS("k.db", "live.durable=process")), 0);
    assert_true(told >= 2);
    kept_same("whole.db", "k.db");
}

// Lines of a file that hold a text.
static int lines_with(const char *path, const char *text) {
    char line[512];
    int count = 0;
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f)) count += strstr(line, text) != NULL;
    fclose(f);
    return count;
}

// An intent that the state says was given is in its list behind a power cut too, where the state itself is.
static void intents_outlast_the_power(void **state) {
    (void)state;
    if (support_sanitized()) skip(); // the shim comes before the sanitizer's library
    static const char *const durable[] = {"live.durable=process", "live.durable=power"};
    setenv("FAULT_TRACE", "trace", 1);
    for (int power = 0; power < 2; power++) {
        assert_int_equal(system("rm -f k.db* k.jsonl trace"), 0);
        assert_int_equal(
            program_finish(fault_start(
                (const char *const[]){WORDS("k.db", durable[power], "--exec", "k.jsonl"), NULL}, NULL, NULL)),
            0);
        int lines = lines_with("k.jsonl", "position");
        assert_true(lines > 10);
        assert_int_equal(lines_with("trace", "k.jsonl"), power ? lines : 0);
    }
    unsetenv("FAULT_TRACE");
}

// Files that do not open for once, wherever that is: the place is good, and another name would mend nothing.
static void short_descriptors_are_no_bad_place(void **state) {
    (void)state;
    if (support_sanitized()) skip(); // the shim comes before the sanitizer's library
    int status = -1, told = 0;
    for (int at = 1; at < 30; at++) {
        fault f = {.call = "open", .at = at, .how = "fail"};
        const char *const words[] = {WORDS("k.db", "live.durable=process"), NULL};
        assert_int_equal(system("rm -f k.db*"), 0);
        pid_t child = fault_start(words, &f, NULL);
        assert_int_equal(waitpid(child, &status, 0), child);
        if (!WIFEXITED(status) || WEXITSTATUS(status) > 1) fail_msg("open %d: %s", at, slurp("err"));
        told += file_holds("err", "unable to open database file");
    }
    assert_true(told >= 2);
}

// Positions sent elsewhere are made flat where the session cannot keep books.
static void positions_elsewhere_are_closed(void **state) {
    (void)state;
    if (support_sanitized()) skip(); // the shim comes before the sanitizer's library
    fault f = {.call = "write", .at = 1500, .how = "fail"};
    const char *const words[] = {WORDS("k.db", "--exec", "intents.jsonl"), NULL};
    int status;
    pid_t child = fault_start(words, &f, NULL);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(WEXITSTATUS(status), 1);
    char *text = slurp("intents.jsonl");
    char *last = strrchr(text, '{');
    assert_true(last > text && strstr(last, "\"position\":0.0"));
    last[-1] = 0;
    // A reader that keeps the newest id must not pass over it.
    assert_true(strtoll(last + 6, NULL, 10) > strtoll(strrchr(text, '{') + 6, NULL, 10));
    free(text);
}

#define EXEC_FULL "--exec", "/dev/full"

static int64_t intents_sent(const char *state) {
    return kept_number(state, "SELECT count(*) FROM intents WHERE sent");
}

// An intent that could not be given is given at the next start.
static void a_lost_intent_is_given_again(void **state) {
    (void)state;
    assert_int_equal(RUN(WORDS("k.db", EXEC_FULL)), 1);
    matches("err", "/dev/full: cannot be written");
    assert_int_equal(kept_number("k.db", "SELECT count(*) FROM intents"), 1);
    assert_int_equal(intents_sent("k.db"), 0);
    assert_int_equal(RUN(WORDS("k.db", "--exec", "intents.jsonl")), 0);
    matches("intents.jsonl", "^\\{\"id\":[0-9]+,[^}]*\"repeat\":true\\}\n\\{[^}]*\"repeat\":false");
    kept_same("whole.db", "k.db");
}

// What a program holds that carries out each line whose id is above that of the last one.
static double held_elsewhere(const char *path) {
    char *text = slurp(path), *rest = NULL;
    int64_t newest = 0;
    double held = 0;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        json_t *all = json_loads(line, 0, NULL);
        int64_t id = json_integer_value(json_object_get(all, "id"));
        if (id > newest) held = json_number_value(json_object_get(all, "units"));
        if (id > newest) newest = id;
        json_decref(all);
    }
    free(text);
    return held;
}

// The same where only one line could not be written: nothing that comes behind it passes it by.
static void a_lost_intent_is_not_passed_by(void **state) {
    (void)state;
    if (support_sanitized()) skip(); // the shim comes before the sanitizer's library
    bool lost = false;
    put_part("b.csv", 150);
    for (int at = 300; !lost && at < 1500; at++) {
        fault f = {.call = "write", .at = at, .how = "fail"};
        const char *const words[] = {WORDS("k.db", "--exec", "intents.jsonl"), NULL};
        int status;
        unlink("intents.jsonl");
        unlink("k.db");
        unlink("k.db-wal");
        unlink("k.db-shm");
        pid_t child = fault_start(words, &f, NULL);
        assert_int_equal(waitpid(child, &status, 0), child);
        lost = file_holds("err", "intents.jsonl: cannot be written");
    }
    assert_true(lost);
    put_part("b.csv", 1 + kept_number("k.db", "SELECT count(*) FROM decisions"));
    assert_int_equal(RUN(WORDS("k.db", "--exec", "intents.jsonl")), 0);
    int64_t wanted = kept_number("k.db", "SELECT units FROM intents ORDER BY id DESC LIMIT 1");
    assert_true(held_elsewhere("intents.jsonl") == (double)wanted / 1e8);
}

// Bars up to one at whose close a position is held; they are taken without an executor.
static int64_t put_held(void) {
    int64_t bars = 300;
    do {
        unlink("k.db");
        put_part("b.csv", ++bars);
        assert_int_equal(RUN(WORDS("k.db", "live.durable=process")), 0);
    } while (!kept_number("k.db", "SELECT units <> 0 AND order_units IS NULL FROM books"));
    return bars;
}

// The wish to be flat that comes from no bar, with no bar behind it.
static void a_lost_flat_intent_is_a_failure(void **state) {
    (void)state;
    put_held();
    int64_t sent = intents_sent("k.db");
    assert_int_equal(RUN("live", "--stop", "k.db"), 0);
    assert_int_equal(RUN(WORDS("k.db", EXEC_FULL)), 1);
    matches("err", "/dev/full: cannot be written");
    assert_int_equal(intents_sent("k.db"), sent);
    assert_int_equal(RUN(WORDS("k.db", "--exec", "intents.jsonl")), 0);
    matches("intents.jsonl", "^\\{[^}]*\"position\":0.0,[^}]*\"repeat\":true\\}\n$");
}

// An order that a stop has overtaken is not open for ever.
static void orders_that_are_taken_back_are_replaced(void **state) {
    (void)state;
    int64_t bars = 300;
    do {
        unlink("k.db");
        put_part("b.csv", ++bars);
        assert_int_equal(RUN(WORDS("k.db", "live.durable=process")), 0);
    } while (!kept_number("k.db", "SELECT units = 0 AND order_units <> 0 FROM books"));
    assert_int_equal(RUN("live", "--stop", "k.db"), 0);
    assert_int_equal(RUN(WORDS("k.db", "live.durable=process")), 0);
    assert_int_equal(kept_number("k.db", "SELECT count(*) FROM intents WHERE status = 'open'"), 0);
    assert_int_equal(kept_number("k.db", "SELECT count(*) FROM intents WHERE status = 'replaced'"), 1);
}

// Whatever was told is in the state, also where the disk is full in between.
static void nothing_is_told_that_is_not_kept(void **state) {
    (void)state;
    if (support_sanitized()) skip(); // the shim comes before the sanitizer's library
    put_part("b.csv", 150);
    for (int at = 300; at < 330; at++) {
        fault f = {.call = "write", .at = at, .how = "fail"};
        const char *const words[] = {"live", "mlp", "--feed", "replay:b.csv", "--json", "--history", "none", "--state",
            "k.db", "live.outside_share=0", "live.outside_by=1", NULL};
        int status;
        int64_t told = 0;
        pid_t child = fault_start(words, &f, NULL);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(WEXITSTATUS(status), 1);
        char *text = slurp("out");
        for (const char *to = text; (to = strstr(to, "\"answer\":\"skip\"")); to++) told++;
        assert_true(told > 0);
        assert_int_equal(told, kept_number("k.db", "SELECT count(*) FROM events WHERE answer = 'skip'"));
        free(text);
        unlink("k.db");
        unlink("k.db-wal");
        unlink("k.db-shm");
    }
}

// An advisor that hears nothing goes flat: it is told the targets from the start on, not with the next intent.
static void targets_are_told_at_once(void **state) {
    (void)state;
    assert_int_equal(mkdir("x", 0777), 0);
    pid_t child = program_start("out",
        (const char *const[]){"live", "mlp", "--feed", "mt5:x", "-q", "--history", "none", "--state", "k.db", NULL});
    wait_for("x/targets.txt", "tradewind-targets");
    kill(child, SIGTERM);
    assert_int_equal(program_finish(child), 0);
}

// A wish to stop is in the state, or still to be found beside it.
static void a_wish_to_stop_survives_a_kill(void **state) {
    (void)state;
    if (support_sanitized()) skip(); // the shim comes before the sanitizer's library
    static const char stopped[] = "SELECT count(*) FROM words WHERE key = 'limits:' AND text LIKE '%stopped_by%'";
    int status = -1, kills = 0;
    put_part("b.csv", 3);
    for (int at = 1; status != 0; at++) {
        fault f = {.call = "write", .at = at, .how = "kill"};
        const char *const words[] = {WORDS("k.db", "live.durable=process"), NULL};
        unlink("k.db");
        unlink("k.db-wal");
        unlink("k.db-shm");
        put_text("k.db.stop", "");
        pid_t child = fault_start(words, &f, NULL);
        assert_int_equal(waitpid(child, &status, 0), child);
        if (access("k.db.stop", F_OK) != 0) assert_int_equal(kept_number("k.db", stopped), 1);
        kills += WIFSIGNALED(status);
    }
    assert_true(kills > 5 && access("k.db.stop", F_OK) != 0);
}

// A wish to stop that came while nobody was there is obeyed before the first bar, with a bar left to close at.
static void a_stop_comes_before_the_first_bar(void **state) {
    (void)state;
    put_part("b.csv", 600);
    assert_int_equal(RUN(WORDS("k.db", "live.durable=process")), 0);
    int64_t opened = kept_number("k.db", "SELECT count(*) FROM intents WHERE units != 0");
    assert_int_equal(RUN("live", "--stop", "k.db"), 0);
    put_part("b.csv", N);
    assert_int_equal(RUN(WORDS("k.db", "live.durable=process")), 0);
    assert_int_equal(kept_number("k.db", "SELECT count(*) FROM intents WHERE units != 0"), opened);
    assert_true(kept_number("k.db", "SELECT count(*) FROM decisions") <= 602);
    assert_int_equal(RUN(WORDS("k.db", "live.durable=process", "--clear", "-v")), 0);
}

static void a_state_of_other_settings_says_so(void **state) {
    (void)state;
    static const char notes[] = "SELECT count(*) FROM events WHERE kind = 'rule'";
    put_part("b.csv", 600);
    assert_int_equal(RUN(WORDS("k.db", "live.durable=process")), 0);
    put_part("b.csv", 610);
    assert_int_equal(RUN(WORDS("k.db", "live.durable=process")), 0);
    assert_int_equal(kept_number("k.db", notes), 0);
    assert_int_equal(RUN(WORDS("k.db", "live.durable=process", "account.spread=0.0001")), 0);
    assert_int_equal(kept_number("k.db", notes), 1);
}

static void intents_are_not_put_behind_bars(void **state) {
    (void)state;
    complains(RUN(WORDS("k.db", "--exec", "train.csv")), "train\\.csv: [^\n]*not a list of intents by live; .*");
    put_text("mine.jsonl", "{\"id\":1,\"symbol\":\"\"}\n");
    assert_int_equal(RUN(WORDS("k.db", "--exec", "mine.jsonl")), 0);
    matches("mine.jsonl", "^\\{\"id\":1,\"symbol\":\"\"\\}\n\\{\"id\":[0-9]+,");
}

static void a_locked_state_is_told(void **state) {
    (void)state;
    sqlite3 *db;
    assert_int_equal(RUN(WORDS("k.db", "live.durable=process")), 0);
    assert_int_equal(sqlite3_open("k.db", &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(RUN(WORDS("k.db", "live.durable=process")), 1);
    matches("err", "k\\.db: cannot be written: another program has it locked");
    sqlite3_close(db);
    int fd = open("k.db.lock", O_RDWR);
    assert_int_equal(flock(fd, LOCK_EX), 0);
    assert_int_equal(RUN(WORDS("k.db", "live.durable=process")), 2);
    matches("err", "k\\.db: another session writes to it");
    close(fd);
    assert_int_equal(RUN(WORDS("no/such/k.db", "live.durable=process")), 2);
    matches("err", "no/such/k\\.db");
}

// Runs a line in a place where the folder `closed` cannot be written, also by root; false where the machine lets
// nobody make one.
static bool in_closed_folder(const char *line, int *status) {
    char all[1200];
    enum { NONE = 99 };
    put_text("closed.sh", "mount --bind closed closed && mount -o remount,ro,bind closed || exit 99\n");
    snprintf(all, sizeof all, "echo '%s' >> closed.sh; unshare %s sh -c '. ./closed.sh' > out 2> err", line,
        geteuid() ? "-rm" : "-m");
    int end = system(all);
    *status = WIFEXITED(end) ? WEXITSTATUS(end) : -1;
    return *status != NONE && *status != 127 && !file_holds("err", "unshare");
}

// A state that others write to, from elsewhere, is read under a lock, though nothing can be written here: on a network
// disk a session has no log beside it.
static void a_state_in_use_is_not_read_as_it_lies(void **state) {
    (void)state;
    int status;
    char line[300];
    sqlite3 *db;
    assert_int_equal(system("mkdir closed && cp whole.db closed/k.db"), 0);
    assert_int_equal(sqlite3_open("closed/k.db", &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "PRAGMA journal_mode = DELETE", NULL, NULL, NULL), SQLITE_OK);
    snprintf(line, sizeof line, "%s live --status closed/k.db", TRADEWIND_BINARY);
    if (!in_closed_folder(line, &status)) skip();
    assert_int_equal(status, 0);
    int lock = open("closed/k.db.lock", O_RDWR | O_CREAT, 0666);
    for (int journal = 0; journal < 2; journal++) { // a session that runs; a transaction that was left
        assert_int_equal(flock(lock, journal ? LOCK_UN : LOCK_EX), 0);
        assert_int_equal(sqlite3_exec(db, "BEGIN EXCLUSIVE", NULL, NULL, NULL), SQLITE_OK);
        if (journal) assert_int_equal(sqlite3_exec(db, "DELETE FROM words", NULL, NULL, NULL), SQLITE_OK);
        assert_int_equal(access("closed/k.db-journal", F_OK), journal - 1);
        assert_true(in_closed_folder(line, &status));
        assert_int_equal(status, 1);
        matches("err", "k\\.db: cannot be read: another program has it locked");
        assert_int_equal(sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    }
    sqlite3_close(db);
    close(lock);
}

// The line behind the flat one asks for the position of the books once more, by the first bar that is decided on; ids
// rise, and what follows is in the state.
static void asked_again_once(const char *path) {
    char *text = slurp(path), *rest = NULL;
    long long before = 0;
    int lines = 0, again = 0;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest), lines++) {
        err e;
        json_t *all = json_read(line, strlen(line), &e);
        support_ok(all != NULL, &e);
        long long id = json_integer_value(json_object_get(all, "id"));
        double position = json_number_value(json_object_get(all, "position"));
        assert_true(id > before);
        before = id;
        if (lines == 1) assert_true(position != 0);
        if (lines == 1) again = json_is_true(json_object_get(all, "repeat"));
        if (lines > 1) assert_false(json_is_true(json_object_get(all, "repeat")));
        json_decref(all);
    }
    free(text);
    assert_true(again && lines > 2);
}

// A state on a disk that has become read-only: it is told, what others hold is closed, and nothing is lost.
static void a_read_only_state_is_told(void **state) {
    (void)state;
    int status;
    char line[600];
    int64_t bars = put_held();
    assert_int_equal(system("mkdir closed && mv k.db closed/"), 0);
    snprintf(line, sizeof line, "%s live mlp --feed replay:b.csv -q --history none --state closed/k.db --exec i.jsonl",
        TRADEWIND_BINARY);
    if (!in_closed_folder(line, &status)) skip();
    assert_int_equal(status, 2);
    matches("err", "^tradewind: closed/k\\.db\\.lock: cannot be written: Read-only file system; [^\n]*\n$");
    matches("i.jsonl", "^\\{\"id\":[0-9]+,\"symbol\":\"\",\"position\":0.0,[^\n]*\n$");
    snprintf(line, sizeof line, "%s live --status closed/k.db", TRADEWIND_BINARY);
    assert_true(in_closed_folder(line, &status) && status == 0 && file_holds("out", "no session runs"));
    snprintf(line, sizeof line, "%s live --stop closed/k.db", TRADEWIND_BINARY);
    assert_true(in_closed_folder(line, &status) && status == 2);
    matches("err", "^tradewind: closed/k\\.db\\.stop: cannot be made: Read-only file system[^\n]*\n$");
    snprintf(
        line, sizeof line, "%s live mlp --feed replay:b.csv -q --history none --state closed/new.db", TRADEWIND_BINARY);
    assert_true(in_closed_folder(line, &status) && status == 2);
    walk_put("b.csv", N, SPAN, 5);
    // The books hold what the other program was told to close: the next start says so.
    assert_int_equal(RUN("live", "mlp", "--feed", "replay:b.csv", "--history", "none", "--state", "closed/k.db",
                         "--exec", "i.jsonl"),
        0);
    matches("err", "exec [^\n]* flat: i\\.jsonl ends with a flat position, given when the books could not be written");
    assert_true(bars < N);
    kept_same("whole.db", "closed/k.db");
    asked_again_once("i.jsonl");
}

// The same while a session runs: its open files take no more.
static void a_state_that_becomes_read_only_is_told(void **state) {
    (void)state;
    char line[700];
    int status;
    snprintf(line, sizeof line,
        "(head -n 400 b.csv; while [ ! -e go ]; do sleep 0.02; done; tail -n +401 b.csv) | exec %s live mlp --feed - "
        "-q "
        "--history none --state k.db --exec i.jsonl live.late=none live.stale=none live.max_loss=none "
        "live.max_day_loss=none live.max_exposure=none live.max_orders=none live.outside_share=none 2> err",
        TRADEWIND_BINARY);
    pid_t child = fork();
    if (!child) _exit(WEXITSTATUS(system(line)));
    struct stat st;
    for (int i = 0; i < 3000 && (stat("i.jsonl", &st) != 0 || !st.st_size); i++) usleep(20000);
    bool closed = system("chattr +i k.db k.db-wal 2> /dev/null") == 0;
    assert_int_equal(system("touch go"), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(system("chattr -i k.db k.db-wal 2> /dev/null; true"), 0);
    if (!closed) skip(); // nobody may do so here
    assert_int_equal(WEXITSTATUS(status), 1);
    matches("err", "^tradewind: k\\.db: cannot be written: [^\n]*\n$");
    char *text = slurp("i.jsonl"), *last = strrchr(text, '{');
    assert_true(last > text && strstr(last, "\"position\":0.0"));
    free(text);
    assert_int_equal(RUN(WORDS("k.db", "live.durable=process")), 0);
    kept_same("whole.db", "k.db");
}

// Limits

static void positions_are_cut(void **state) {
    (void)state;
    assert_int_equal(RUN(WORDS("k.db", "live.max_lots=2")), 0);
    assert_int_equal(kept_number("k.db", "SELECT max(abs(units)) FROM trades"), 200000000);
    assert_true(kept_number("k.db", "SELECT count(*) FROM events WHERE kind = 'position' AND answer = 'skip'") > 5);
    assert_true(kept_number("k.db", "SELECT count(*) FROM decisions WHERE kind = 'held' AND why <> ''") > 5);
}

// The day's loss: flat, and nothing is opened before the next day; also where the session was begun anew meanwhile.
static void a_days_loss_ends_the_day(void **state) {
    (void)state;
    static const char opened[] = "SELECT count(*) FROM trades t JOIN events e ON e.kind = 'day_loss' WHERE t.entry > "
                                 "e.time + 600 AND t.entry / 86400 = e.time / 86400";
    const char *const limit = "live.max_day_loss=0.004";
    assert_int_equal(RUN(WORDS("k.db", limit)), 0);
    assert_true(kept_number("k.db", "SELECT count(*) FROM events WHERE kind = 'day_loss' AND answer = 'flat'") > 0);
    assert_int_equal(kept_number("k.db", opened), 0);
    for (int64_t bars = 300; bars <= N; bars += 100) {
        put_part("b.csv", bars);
        assert_int_equal(RUN(WORDS("parts.db", limit)), 0);
    }
    kept_same("k.db", "parts.db");
}

static void the_whole_loss_stops(void **state) {
    (void)state;
    assert_int_equal(RUN(WORDS("k.db", "live.max_loss=0.01")), 1);
    matches("err", "stopped by the limit loss");
    assert_int_equal(kept_number("k.db", "SELECT units FROM books"), 0);
    assert_int_equal(RUN(WORDS("k.db", "live.max_loss=0.01")), 2);
    matches("err", "was stopped");
    assert_int_equal(RUN("live", "--status", "k.db"), 0);
    matches("out", "loss +stop +equity ");
    matches("out", "newest trades\n  symbol +units +entry +exit +result  reason\n");
    matches("out", "books\n  symbol +bar +position +equity +cash [^\n]*\n +[0-9: -]+ 0 +[0-9]+\\.[0-9]{2} ");
    char *text = slurp("out");
    assert_null(strstr(text, " \n"));
    free(text);
}

// A stop that no bar has brought, and no position: the next start knows it.
static void a_stop_of_a_note_is_kept(void **state) {
    (void)state;
    char line[256];
    bar *all = walk_bars(1, SPAN, 5);
    FILE *f = fopen("odd.csv", "w");
    assert_true(all && f);
    fputs(header, f);
    for (int i = 0; i < 2; i++) put_bar(f, all, 1 + 0.01 * i);
    fclose(f);
    free(all);
    snprintf(line, sizeof line,
        "%s live mlp --feed - -q --history none --state k.db live.late=none live.stale=none "
        "live.answer.revised=stop < odd.csv 2>err",
        TRADEWIND_BINARY);
    assert_int_equal(WEXITSTATUS(system(line)), 1);
    matches("err", "stopped by the limit revised");
    assert_int_equal(WEXITSTATUS(system(line)), 2);
    matches("err", "was stopped");
}

static void orders_are_counted(void **state) {
    (void)state;
    // By the feed's clock bars are minutes apart, so that one order a minute is no limit.
    assert_int_equal(RUN(WORDS("k.db", "live.max_orders=1")), 0);
    kept_same("whole.db", "k.db");
}

// Inputs

static void strange_inputs_are_skipped(void **state) {
    (void)state;
    assert_int_equal(RUN(WORDS("k.db", "live.outside_share=0", "live.outside_by=1")), 0);
    assert_true(kept_number("k.db", "SELECT count(*) FROM events WHERE kind = 'outside' AND answer = 'skip'") > 10);
    assert_int_equal(
        kept_number("k.db", "SELECT count(*) FROM intents i JOIN events e ON e.kind = 'outside' AND e.time = i.time - "
                            "300 AND i.units <> 0"),
        0);
}

// Bars

// Every fifth bar comes again, and every seventh with other figures.
static void what_was_decided_stays(void **state) {
    (void)state;
    bar *all = walk_bars(N, SPAN, 5);
    FILE *f = fopen("odd.csv", "w");
    assert_non_null(f);
    fputs(header, f);
    for (int i = 0; i < N; i++) {
        put_bar(f, &all[i], 1);
        if (i % 5 == 0) put_bar(f, &all[i], 1);
        if (i % 7 == 0) put_bar(f, &all[i], 1.01);
    }
    fclose(f);
    free(all);
    char line[512];
    snprintf(line, sizeof line,
        "%s live mlp --feed - -q --history none --state k.db live.late=none live.stale=none live.max_exposure=none "
        "live.max_loss=none live.max_day_loss=none live.max_orders=none live.outside_share=none < odd.csv",
        TRADEWIND_BINARY);
    assert_int_equal(system(line), 0);
    kept_same("whole.db", "k.db");
    assert_int_equal(kept_number("k.db", "SELECT count(*) FROM events WHERE kind = 'revised'"), (N + 6) / 7);
}

// Bars that lay in the file when the session came back are taken without a decision; books and features take them.
static void gaps_are_caught_up(void **state) {
    (void)state;
    put_part("b.csv", 600);
    assert_int_equal(RUN(WORDS("k.db", "live.durable=process")), 0);
    int64_t intents = kept_number("k.db", "SELECT count(*) FROM intents");
    put_part("grown.csv", N);
    pid_t child = program_start("out", (const char *const[]){"live", "mlp", "--feed", "grown.csv", "-q", "--history",
                                           "none", "--state", "k.db", NULL});
    for (int i = 0; i < 1000 && kept_number("k.db", "SELECT count(*) FROM decisions") < N - 1; i++) usleep(20000);
    kill(child, SIGTERM);
    assert_int_equal(program_finish(child), 0);
    int64_t taken = kept_number("k.db", "SELECT count(*) FROM decisions");
    assert_true(taken >= N - 1);
    assert_int_equal(kept_number("k.db", "SELECT count(*) FROM decisions WHERE kind = 'caught_up'"), taken - 600);
    assert_int_equal(kept_number("k.db", "SELECT count(*) FROM intents"), intents);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, support_leave)
    const struct CMUnitTest tests[] = {
        TEST(a_full_disk_is_told),
        TEST(intents_outlast_the_power),
        TEST(short_descriptors_are_no_bad_place),
        TEST(positions_elsewhere_are_closed),
        TEST(a_lost_intent_is_given_again),
        TEST(a_lost_intent_is_not_passed_by),
        TEST(a_lost_flat_intent_is_a_failure),
        TEST(orders_that_are_taken_back_are_replaced),
        TEST(nothing_is_told_that_is_not_kept),
        TEST(targets_are_told_at_once),
        TEST(a_wish_to_stop_survives_a_kill),
        TEST(a_stop_comes_before_the_first_bar),
        TEST(a_state_of_other_settings_says_so),
        TEST(intents_are_not_put_behind_bars),
        TEST(a_read_only_state_is_told),
        TEST(a_state_in_use_is_not_read_as_it_lies),
        TEST(a_state_that_becomes_read_only_is_told),
        TEST(a_locked_state_is_told),
        TEST(positions_are_cut),
        TEST(a_days_loss_ends_the_day),
        TEST(the_whole_loss_stops),
        TEST(a_stop_of_a_note_is_kept),
        TEST(orders_are_counted),
        TEST(strange_inputs_are_skipped),
        TEST(what_was_decided_stays),
        TEST(gaps_are_caught_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
