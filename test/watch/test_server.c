// The server of the page, from outside: what it shows, whom it refuses, and that no client harms another.
#include "watch/web/server.h"

#include "cli/program.h"
#include "run/db.h"
#include "support.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum { ROOM = 1 << 20, SECONDS = 30 };

static server *running;
static int port;
static pthread_t ticker;
static atomic_bool ends;

static void *tick(void *arg) {
    (void)arg;
    while (!ends) {
        server_tick(running);
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    }
    return NULL;
}

static void begin(const server_options *o) {
    err e = {0};
    running = server_start(o, &e);
    support_ok(running != NULL, &e);
    port = atoi(strchr(strchr(server_url(running), ':') + 1, ':') + 1);
    ends = false;
    assert_int_equal(pthread_create(&ticker, NULL, tick, NULL), 0);
}

static void end(void) {
    ends = true;
    pthread_join(ticker, NULL);
    server_stop(running);
    running = NULL;
}

static const server_options plain = {.dir = ".", .version = "0.1"};

// Clients

static int dial(void) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    struct timeval limit = {.tv_sec = SECONDS};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    if (connect(fd, (struct sockaddr *)&to, sizeof to) == 0) return fd;
    close(fd);
    return -1;
}

static void say(int fd, const char *text) {
    size_t n = strlen(text);
    for (size_t at = 0; at < n;) {
        ssize_t put = send(fd, text + at, n - at, MSG_NOSIGNAL);
        if (put <= 0) return;
        at += (size_t)put;
    }
}

// All that the server says until it closes.
static const char *hear(int fd) {
    static char text[ROOM];
    size_t used = 0;
    for (ssize_t n; used < sizeof text - 1 && (n = recv(fd, text + used, sizeof text - 1 - used, 0)) > 0;)
        used += (size_t)n;
    text[used] = 0;
    close(fd);
    return text;
}

// The answer to a request of these lines.
static const char *ask(const char *lines) {
    int fd = dial();
    assert_true(fd >= 0);
    say(fd, lines);
    say(fd, "Connection: close\r\n\r\n");
    return hear(fd);
}

static const char *get(const char *target) {
    char lines[1024];
    snprintf(lines, sizeof lines, "GET %s HTTP/1.1\r\nHost: localhost\r\n", target);
    return ask(lines);
}

static int status_of(const char *answer) {
    return strncmp(answer, "HTTP/1.1 ", 9) == 0 ? atoi(answer + 9) : 0;
}

static void has(const char *answer, const char *text) {
    if (!strstr(answer, text)) fail_msg("no \"%s\" in \"%.600s\"", text, answer);
}

static void gives(const char *target, int status, const char *text) {
    const char *answer = get(target);
    if (status_of(answer) != status) fail_msg("%s: %.200s", target, answer);
    has(answer, text);
}

// Asks until the answer holds a text.
static void becomes(const char *target, const char *text) {
    double until = support_seconds() + SECONDS;
    while (!strstr(get(target), text) && support_seconds() < until)
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    has(get(target), text);
}

// Runs

static void put_epochs(db *d, int64_t from, int64_t to) {
    for (int64_t i = from; i <= to; i++) {
        const db_metric metrics[] = {{"train", "loss", 1.0 / (double)i}, {"validation", "loss", 2.0 / (double)i},
            {"validation", "mcc", 0.01 * (double)i}};
        db_epoch(d, &(db_epoch_row){i, (uint64_t)(10 * i), 0.5, 100, true, "[[7,3],[2,8]]"}, metrics, 3);
        db_steps(
            d, &(db_steps_row){
                   .step = (uint64_t)(10 * i), .epoch = i, .loss_min = 0.5, .loss_mean = 1 + (double)i, .loss_max = 9});
    }
    db_sync(d);
}

static db *put_run(const char *dir, const char *status) {
    static const char config[] = "model:\n  kind: lstm\ntrain:\n  epochs: 20\n  metric: mcc\n"
                                 "gpu_optimization:\n  max_host_memory_gb: 2\n";
    char path[64];
    assert_int_equal(mkdir(dir, 0777), 0);
    snprintf(path, sizeof path, "%s/config.yaml", dir);
    put_text(path, config);
    snprintf(path, sizeof path, "%s/run.db", dir);
    db *d = db_open(path);
    db_run(d, "0.1", config, "device: cpu\n");
    db_event(d, 0, "start", "a, \"quoted\" <b>text</b>");
    put_epochs(d, 1, 5);
    if (status) db_status(d, status, "");
    db_sync(d);
    return d;
}

// The id of a run of the list.
static const char *id_of(const char *name) {
    static char id[17];
    char mark[80];
    const char *list = get("/api/runs");
    snprintf(mark, sizeof mark, "\",\"name\":\"%s\"", name);
    const char *at = strstr(list, mark);
    if (!at) fail_msg("no run %s in %s", name, list);
    snprintf(id, sizeof id, "%.16s", at - 16);
    return id;
}

static const char *of_run(const char *name, const char *rest) {
    static char target[512];
    snprintf(target, sizeof target, "/api/runs/%s%s", id_of(name), rest);
    return target;
}

static void shows_the_page_and_its_documents(void **state) {
    (void)state;
    db_close(put_run("one", "done"));
    begin(&plain);
    const char *page = get("/");
    if (status_of(page) == 200) {
        has(page, "Content-Security-Policy: default-src 'none'; script-src 'self'");
        has(page, "X-Content-Type-Options: nosniff");
        assert_null(strstr(page, "unsafe-inline"));
        gives("/main.js", 200, "text/javascript");
        gives("/uPlot.min.js", 200, "uPlot");
    } else {
        has(page, "503");
        has(page, "install npm");
    }
    becomes("/api/runs", "\"status\":\"done\"");
    gives("/api/runs", 200, "\"spark\":[0.01,0.02");
    gives(of_run("one", ""), 200, "\"main\":\"validation/mcc\"");
    gives(of_run("one", ""), 200, "<b>text</b>");
    gives(of_run("one", ""), 200, "\"limit\":2147483648");
    gives(of_run("one", ""), 200, "Content-Type: application/json");
    gives(of_run("one", "/series?name=validation/mcc&name=none&points=100"), 200,
        "{\"series\":[{\"name\":\"validation/mcc\",\"count\":5,\"missing\":0,\"x\":[1,2,3,4,5],\"y\":[0.01,0.02,0.03,"
        "0.04,0.05]}]}");
    gives(of_run("one", "/series?name=steps%2Floss&from=25&to=35"), 200, "\"x\":[20,30,40]");
    gives("/metrics", 200, "tradewind_run_metric{run=\"one\",part=\"validation\",metric=\"mcc\"} 0.05");
    end();
}

// promtool is of Debian's package prometheus.
static void prometheus_reads_the_metrics(void **state) {
    (void)state;
    db_close(put_run("one", "done"));
    db_close(put_run("two \\ \"quoted\"", NULL));
    begin(&plain);
    becomes("/metrics", "metric=\"mcc\"} 0.05");
    put_text("metrics", strstr(get("/metrics"), "\r\n\r\n") + 4);
    if (system("command -v promtool >/dev/null") == 0)
        assert_int_equal(system("promtool check metrics < metrics"), 0);
    else
        puts("skipped: promtool is not installed");
    end();
}

static void tables_are_csv(void **state) {
    (void)state;
    db_close(put_run("one", "done"));
    sqlite3 *file;
    assert_int_equal(sqlite3_open("one/run.db", &file), SQLITE_OK);
    assert_int_equal(
        sqlite3_exec(file, "CREATE TABLE later (a, b); INSERT INTO later VALUES (1, 'x,\"y\"')", NULL, NULL, NULL),
        SQLITE_OK);
    sqlite3_close(file);
    begin(&plain);
    gives(of_run("one", "/table/epochs.csv"), 200, "epoch,step,finished,seconds,samples_per_s,best,confusion\n1,10,");
    gives(of_run("one", "/table/epochs.csv"), 200, "\"[[7,3],[2,8]]\"");
    gives(of_run("one", "/table/events"), 200, "\"a, \"\"quoted\"\" <b>text</b>\"");
    gives(of_run("one", "/table/later.csv"), 200, "a,b\n1,\"x,\"\"y\"\"\"\n");
    gives(of_run("one", "/table/none.csv"), 422, "it has epochs, events, later");
    gives(of_run("one", "/table/epochs%22.csv"), 404, "");
    gives(of_run("one", "/document/walk.json"), 404, "");
    gives(of_run("one", "/document/config.yaml"), 404, "");
    gives(of_run("one", "/report"), 404, "");
    put_text("one/report.html", "<script>alert(1)</script>");
    gives(of_run("one", "/report"), 404, "");
    end();
}

static void strangers_are_refused(void **state) {
    (void)state;
    db_close(put_run("one", "done"));
    begin(&plain);
    assert_int_equal(status_of(ask("GET / HTTP/1.1\r\nHost: evil.example\r\n")), 403);
    assert_int_equal(status_of(ask("GET /api/runs HTTP/1.1\r\nHost: 192.168.1.1\r\n")), 403);
    assert_int_equal(status_of(ask("GET /api/runs HTTP/1.0\r\n")), 403);
    assert_int_equal(status_of(ask("POST /api/runs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n")), 405);
    assert_int_equal(status_of(ask("DELETE /api/runs HTTP/1.1\r\nHost: localhost\r\n")), 405);
    assert_int_equal(status_of(ask("GET /../../etc/passwd HTTP/1.1\r\nHost: localhost\r\n")), 404);
    assert_int_equal(status_of(ask("GET /api/runs/0000000000000000 HTTP/1.1\r\nHost: localhost\r\n")), 404);
    assert_int_equal(status_of(ask("GET /?a=%00 HTTP/1.1\r\nHost: localhost\r\n")), 400);
    int fd = dial();
    say(fd, "GET /api/runs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000000\r\n\r\nabc");
    assert_int_equal(status_of(hear(fd)), 200); // the answer comes before the body, and ends the connection
    has(ask("HEAD /api/runs HTTP/1.1\r\nHost: localhost\r\n"), "\r\n\r\n");
    end();
}

static void a_token_opens_what_is_not_local(void **state) {
    (void)state;
    char line[256], token[33];
    db_close(put_run("one", "done"));
    server_options o = plain;
    o.bind = "0.0.0.0";
    begin(&o);
    const char *at = strstr(server_url(running), "?token=");
    assert_non_null(at);
    snprintf(token, sizeof token, "%s", at + 7);
    assert_int_equal(strlen(token), 32);
    gives("/", 401, "needs the token");
    gives("/api/runs", 401, "");
    gives("/events", 401, "");
    gives("/metrics", 401, "");
    gives("/?token=00000000000000000000000000000000", 401, "");
    snprintf(line, sizeof line, "/?token=%s", token);
    gives(line, 303, "HttpOnly; SameSite=Strict");
    snprintf(line, sizeof line, "/api/runs?token=%s", token);
    gives(line, 401, "");
    snprintf(
        line, sizeof line, "GET /api/runs HTTP/1.1\r\nHost: 10.1.2.3\r\nCookie: x=1; tradewind_%d=%s\r\n", port, token);
    assert_int_equal(status_of(ask(line)), 200);
    snprintf(line, sizeof line, "GET /metrics HTTP/1.1\r\nHost: 10.1.2.3\r\nAuthorization: Bearer %s\r\n", token);
    assert_int_equal(status_of(ask(line)), 200);
    snprintf(line, sizeof line, "GET /metrics HTTP/1.1\r\nHost: evil.example\r\nAuthorization: Bearer %s\r\n", token);
    assert_int_equal(status_of(ask(line)), 403);
    end();
}

static void huge_requests_end_alone(void **state) {
    (void)state;
    db_close(put_run("one", "done"));
    begin(&plain);
    char *huge = malloc(ROOM);
    assert_non_null(huge);
    memset(huge, 'a', ROOM);
    huge[200000] = 0;
    int fd = dial();
    say(fd, "GET /api/runs HTTP/1.1\r\nHost: localhost\r\nX: ");
    say(fd, huge);
    int status = status_of(hear(fd));
    assert_true(status == 0 || status == 431 || status == 413);
    fd = dial();
    say(fd, "GET /");
    say(fd, huge);
    status = status_of(hear(fd));
    assert_true(status == 0 || status == 414 || status == 431 || status == 413);
    huge[6000] = 0;
    char *lines = malloc(ROOM);
    assert_non_null(lines);
    snprintf(lines, ROOM, "GET /?%s HTTP/1.1\r\nHost: localhost\r\n", huge);
    assert_int_equal(status_of(ask(lines)), 400);
    free(lines);
    free(huge);
    gives("/api/runs", 200, "one");
    end();
}

// More connections than there are places, all of them silent or slow: whoever asks is answered.
static void a_thousand_connections_keep_nobody_away(void **state) {
    (void)state;
    enum { MANY = 1000 };
    static int fd[MANY];
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max < 4096 ? files.rlim_max : 4096;
    setrlimit(RLIMIT_NOFILE, &files);
    db_close(put_run("one", "done"));
    begin(&plain);
    int many = files.rlim_cur < 2048 ? 300 : MANY;
    for (int i = 0; i < many; i++) {
        fd[i] = dial();
        if (fd[i] >= 0 && i % 2) say(fd[i], "GET /api/ru");
    }
    gives("/api/runs", 200, "one");
    for (int i = 0; i < many; i++)
        if (fd[i] >= 0) close(fd[i]);
    gives("/api/runs", 200, "one");
    end();
}

static void one_bad_run_spoils_no_other(void **state) {
    (void)state;
    db_close(put_run("good", "done"));
    db_close(put_run("bad", "done"));
    db_close(put_run("half", "done"));
    db_close(put_run("gone", "done"));
    unlink("bad/run.db-wal");
    put_text("bad/run.db", "this is no database, and long enough to be one of some bytes");
    assert_int_equal(truncate("half/run.db", 5000), 0);
    db_close(put_run("flipped", "done"));
    sqlite3 *file;
    assert_int_equal(sqlite3_open("flipped/run.db", &file), SQLITE_OK);
    assert_int_equal(sqlite3_exec(file, "UPDATE metrics SET value = 9 WHERE epoch = 2", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(file);
    begin(&plain);
    gives("/api/runs", 200, "good");
    becomes(of_run("flipped", ""), "do not fit their sum");
    gives(of_run("flipped", "/series?name=validation/mcc"), 200, "{\"series\":[]}");
    becomes(of_run("bad", ""), "\"trouble\":\"./bad/run.db");
    assert_int_equal(status_of(get(of_run("half", ""))), 200);
    assert_int_equal(status_of(get(of_run("half", "/series?name=validation/mcc"))), 200);
    gives(of_run("bad", "/table/epochs.csv"), 422, "bad/run.db");
    gives(of_run("good", "/series?name=validation/mcc"), 200, "\"count\":5");
    char target[128];
    snprintf(target, sizeof target, "%s", of_run("gone", ""));
    gives(target, 200, "\"epochs\":5");
    assert_int_equal(system("rm -rf gone"), 0);
    assert_true(status_of(get(target)) == 200 || status_of(get(target)) == 404);
    double until = support_seconds() + SECONDS;
    while (strstr(get("/api/runs"), "\"gone\"") && support_seconds() < until)
        nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    gives(target, 404, "no such run");
    gives(of_run("good", ""), 200, "\"epochs\":5");
    end();
}

// Events of the newest stream.
static char events[ROOM];

// Reads events until a text has come; all that came of the stream.
static const char *hear_until(int fd, const char *mark) {
    double until = support_seconds() + SECONDS;
    size_t used = strlen(events);
    for (ssize_t n; !strstr(events, mark) && support_seconds() < until &&
                    (n = recv(fd, events + used, sizeof events - 1 - used, 0)) > 0;)
        events[used += (size_t)n] = 0;
    has(events, mark);
    return events;
}

static int listen_from(const char *last) {
    char lines[256];
    int fd = dial();
    events[0] = 0;
    snprintf(lines, sizeof lines, "GET /events HTTP/1.1\r\nHost: localhost\r\n%s%s%s\r\n",
        last ? "Last-Event-ID: " : "", last ? last : "", last ? "\r\n" : "");
    say(fd, lines);
    return fd;
}

// The id of the last whole event of a text.
static const char *last_id(const char *text) {
    static char id[64];
    const char *last = NULL;
    for (const char *at = text; (at = strstr(at, "id: ")); at++) last = at + 4;
    assert_non_null(last);
    snprintf(id, sizeof id, "%.*s", (int)strcspn(last, "\r\n"), last);
    return id;
}

static void a_live_run_is_told(void **state) {
    (void)state;
    char last[64], target[160];
    db *d = put_run("one", NULL);
    begin(&plain);
    int fd = listen_from(NULL);
    hear_until(fd, "event: reset");
    snprintf(target, sizeof target, "%s", of_run("one", "/series?name=validation/mcc"));
    gives(target, 200, "\"count\":5");
    put_epochs(d, 6, 8);
    snprintf(last, sizeof last, "%s", last_id(hear_until(fd, "\"epoch\":8")));
    becomes(target, "\"count\":8");
    close(fd);
    put_epochs(d, 9, 9);
    fd = listen_from(last); // comes back: what was missed is told, and nothing else
    const char *text = hear_until(fd, "\"epoch\":9");
    assert_null(strstr(text, "reset"));
    assert_null(strstr(text, "\"epoch\":8"));
    close(fd);
    fd = listen_from("0123456789abcdef-3"); // of another server
    hear_until(fd, "event: reset");
    close(fd);
    end();
    db_close(d);
}

// A document that a command leaves behind the end of a run is told to pages that are open.
static void later_documents_are_told(void **state) {
    (void)state;
    db_close(put_run("one", "done"));
    begin(&plain);
    becomes("/api/runs", "\"status\":\"done\"");
    gives(of_run("one", ""), 200, "\"stamps\":{}");
    int fd = listen_from(NULL);
    hear_until(fd, "event: reset");
    put_text("one/backtest.json", "{}");
    hear_until(fd, "event: run");
    char first[64];
    const char *at = strstr(get(of_run("one", "")), "\"stamps\":{\"backtest.json\":\"");
    assert_non_null(at);
    snprintf(first, sizeof first, "%.50s", at);
    events[0] = 0;
    put_text("one/backtest.json", "{ }");
    hear_until(fd, "event: run");
    assert_null(strstr(get(of_run("one", "")), first));
    close(fd);
    end();
}

static void wrong_addresses_are_told(void **state) {
    (void)state;
    err e = {0};
    server_options o = plain;
    o.bind = "gold.example";
    assert_null(server_start(&o, &e));
    has(e.text, "is no address");
    o.bind = NULL;
    o.dir = "missing";
    assert_null(server_start(&o, &e));
    has(e.text, "missing: cannot be read");
    begin(&plain);
    o = plain;
    o.port = port;
    assert_null(server_start(&o, &e));
    has(e.text, "another program listens there");
    end();
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, support_enter, support_leave)

int main(void) {
    const struct CMUnitTest tests[] = {TEST(shows_the_page_and_its_documents), TEST(prometheus_reads_the_metrics),
        TEST(tables_are_csv), TEST(strangers_are_refused), TEST(a_token_opens_what_is_not_local),
        TEST(huge_requests_end_alone), TEST(a_thousand_connections_keep_nobody_away), TEST(one_bad_run_spoils_no_other),
        TEST(a_live_run_is_told), TEST(later_documents_are_told), TEST(wrong_addresses_are_told)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
