#include "base/term.h"

#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static void assert_count(double v, const char *want) {
    char text[64];
    term_count(text, sizeof text, v);
    assert_string_equal(text, want);
}

static void counts(void **state) {
    (void)state;
    assert_count(0, "0");
    assert_count(-0.2, "0");
    assert_count(7, "7");
    assert_count(999.4, "999");
    assert_count(999.6, "1,000");
    assert_count(12345, "12,345");
    assert_count(343000, "343,000");
    assert_count(-1234567, "-1,234,567");
    assert_count(1e15, "1,000,000,000,000,000");
    assert_count(1e18, "1e+18");
    assert_count(INFINITY, "inf");
    char small[4];
    term_count(small, sizeof small, 343000);
    assert_string_equal(small, "343");
    term_count(small, 0, 1);
}

static void one_line(void **state) {
    (void)state;
    char text[] = "a\tb\nc\033[2Jd \xc3\xa9\x7f";
    term_one_line(text);
    assert_string_equal(text, "a b c [2Jd \xc3\xa9 ");
}

// All that was written to a temporary file so far.
static void contents(FILE *f, char *text, size_t room) {
    fflush(f);
    long end = ftell(f);
    rewind(f);
    size_t n = fread(text, 1, room - 1, f);
    text[n] = 0;
    fseek(f, end, SEEK_SET);
}

static void plain_is_rare(void **state) {
    (void)state;
    char text[4096];
    FILE *f = tmpfile();
    assert_non_null(f);
    assert_false(term_is_tty(f));
    progress p;
    progress_init(&p, f, "train", 200, false);
    for (int i = 0; i < 100; i++) progress_at(&p, i, "loss %d", i);
    contents(f, text, sizeof text);
    assert_string_equal(text, "");
    p.next = 0; // as if ten seconds had passed
    p.rate = 8000;
    for (int i = 100; i < 150; i++) progress_at(&p, i, "loss %d", i);
    progress_line(&p, "epoch %d done", 1);
    progress_done(&p);
    progress_done(&p);
    contents(f, text, sizeof text);
    assert_string_equal(text, "train 50 %  8,000/s  ETA 0:01  loss 100\nepoch 1 done\n");
    fclose(f);
}

static void plain_without_total(void **state) {
    (void)state;
    char text[4096];
    FILE *f = tmpfile();
    assert_non_null(f);
    progress p;
    progress_init(&p, f, "import\n", 0, false);
    p.next = 0;
    progress_at(&p, 1234567, "%s", "a\nb");
    p.next = 0;
    p.rate = 2.5;
    progress_at(&p, 1234568, "%s", "");
    contents(f, text, sizeof text);
    assert_string_equal(text, "import  1,234,567  a b\nimport  1,234,568  2.5/s\n");
    fclose(f);
}

static void eta_is_in_hours_minutes_seconds(void **state) {
    (void)state;
    static const struct {
        double total, rate;
        const char *want;
    } rows[] = {{12, 1, "ETA 0:12"}, {600, 1, "ETA 10:00"}, {3723, 1, "ETA 1:02:03"}, {1e12, 1, "ETA --:--"},
        {5, 0, "ETA --:--"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[4096];
        FILE *f = tmpfile();
        assert_non_null(f);
        progress p;
        progress_init(&p, f, "x", rows[i].total, false);
        p.next = 0;
        p.rate = rows[i].rate;
        progress_at(&p, 0, "tail");
        contents(f, text, sizeof text);
        if (!strstr(text, rows[i].want)) fail_msg("%s lacks %s", text, rows[i].want);
        fclose(f);
    }
}

static void quiet_says_nothing(void **state) {
    (void)state;
    char text[4096];
    FILE *f = tmpfile();
    assert_non_null(f);
    progress p;
    progress_init(&p, f, "x", 10, true);
    p.next = 0;
    progress_at(&p, 5, "tail");
    progress_line(&p, "line");
    progress_done(&p);
    contents(f, text, sizeof text);
    assert_string_equal(text, "");
    fclose(f);
}

static void nap(double seconds) {
    struct timespec t = {(time_t)seconds, (long)((seconds - floor(seconds)) * 1e9)};
    nanosleep(&t, NULL);
}

static void rate_follows_the_clock(void **state) {
    (void)state;
    FILE *f = tmpfile();
    assert_non_null(f);
    progress p;
    progress_init(&p, f, "x", 1000, false);
    progress_at(&p, 1, "too soon to tell");
    assert_true(p.rate == 0);
    for (int i = 1; i <= 4; i++) {
        nap(0.06);
        progress_at(&p, 60 * i, "%s", "");
    }
    assert_true(p.rate > 100 && p.rate < 1001);
    progress_at(&p, 0, "anew");
    assert_true(p.rate > 100 && p.done == 0);
    fclose(f);
}

// A terminal of our own: `screen` is the side that shows what is written to `out`.
typedef struct {
    int screen;
    FILE *out;
} pty;

static void pty_open(pty *t, unsigned short columns) {
    t->screen = posix_openpt(O_RDWR | O_NOCTTY);
    if (t->screen < 0) skip();
    assert_int_equal(grantpt(t->screen) | unlockpt(t->screen), 0);
    struct winsize size = {.ws_row = 24, .ws_col = columns};
    int fd = open(ptsname(t->screen), O_RDWR | O_NOCTTY);
    assert_true(fd >= 0);
    struct termios mode;
    assert_int_equal(tcgetattr(fd, &mode), 0);
    cfmakeraw(&mode);
    assert_int_equal(tcsetattr(fd, TCSANOW, &mode), 0);
    assert_int_equal(ioctl(fd, TIOCSWINSZ, &size), 0);
    assert_int_equal(fcntl(t->screen, F_SETFL, O_NONBLOCK), 0);
    t->out = fdopen(fd, "w");
    assert_non_null(t->out);
}

static void pty_read(pty *t, char *text, size_t room) {
    size_t used = 0;
    for (int tries = 0; tries < 20; tries++) {
        ssize_t n = read(t->screen, text + used, room - 1 - used);
        if (n > 0)
            used += (size_t)n;
        else
            nap(0.002);
    }
    text[used] = 0;
}

static void pty_close(pty *t) {
    fclose(t->out);
    close(t->screen);
}

static void terminal_shows_a_bar(void **state) {
    (void)state;
    char text[4096];
    pty t;
    pty_open(&t, 70);
    assert_true(term_is_tty(t.out));
    progress p;
    progress_init(&p, t.out, "train", 1000, false);
    p.rate = 18300;
    progress_at(&p, 420, "loss 0.91 mcc 0.41");
    pty_read(&t, text, sizeof text);
    assert_string_equal(text, "\rtrain [######----------] 42 %  18,300/s  ETA 0:01  loss 0.91 mcc 0.41\033[K");
    progress_line(&p, "epoch %d", 3);
    pty_read(&t, text, sizeof text);
    assert_string_equal(text, "\r\033[Kepoch 3\ntrain [######----------] 42 %  18,300/s  ETA 0:01  loss 0.91 mcc 0.41");
    progress_done(&p);
    progress_done(&p);
    pty_read(&t, text, sizeof text);
    assert_string_equal(text, "\r\033[K");
    pty_close(&t);
}

static void terminal_redraws_ten_times_a_second(void **state) {
    (void)state;
    char text[65536];
    pty t;
    pty_open(&t, 80);
    progress p;
    progress_init(&p, t.out, "x", 1e9, false);
    struct timespec from, to;
    clock_gettime(CLOCK_MONOTONIC, &from);
    for (int i = 0; i < 20000; i++) progress_at(&p, i, "i %d", i);
    clock_gettime(CLOCK_MONOTONIC, &to);
    double passed = (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) * 1e-9;
    pty_read(&t, text, sizeof text);
    int drawn = 0;
    for (const char *c = text; *c; c++) drawn += *c == '\r';
    assert_true(drawn >= 1 && drawn <= 1 + (int)(passed * 10.0) + 1);
    pty_close(&t);
}

static void terminal_line_fits(void **state) {
    (void)state;
    static const unsigned short widths[] = {1, 2, 10, 30, 45, 60, 79, 200, 600, 0};
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
        char text[4096];
        pty t;
        pty_open(&t, widths[i]);
        progress p;
        progress_init(&p, t.out, "na\xc3\xafve", 3, false);
        progress_at(&p, 9, "%s", "a tail of \xc3\xa9\xc3\xa9\xc3\xa9 forty characters or more, I should say");
        pty_read(&t, text, sizeof text);
        size_t n = strlen(text), columns = 0;
        assert_true(n >= 4 && text[0] == '\r');
        assert_string_equal(text + n - 3, "\033[K");
        for (size_t j = 1; j < n - 3; j++) columns += ((unsigned char)text[j] & 0xC0) != 0x80;
        assert_true(columns < (widths[i] ? widths[i] : 80));
        if (widths[i] >= 200) assert_non_null(strstr(text, "[##############################] 100 %  ETA 0:00"));
        pty_close(&t);
    }
}

static void dumb_terminal_gets_plain_lines(void **state) {
    (void)state;
    char text[4096];
    pty t;
    pty_open(&t, 80);
    setenv("TERM", "dumb", 1);
    progress p;
    progress_init(&p, t.out, "x", 4, false);
    progress_at(&p, 1, "%s", "");
    p.next = 0;
    progress_at(&p, 2, "%s", "");
    setenv("TERM", "xterm", 1);
    pty_read(&t, text, sizeof text);
    assert_string_equal(text, "x 50 %  ETA --:--\n");
    pty_close(&t);
}

int main(void) {
    setenv("TERM", "xterm", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts),
        cmocka_unit_test(one_line),
        cmocka_unit_test(plain_is_rare),
        cmocka_unit_test(plain_without_total),
        cmocka_unit_test(eta_is_in_hours_minutes_seconds),
        cmocka_unit_test(quiet_says_nothing),
        cmocka_unit_test(rate_follows_the_clock),
        cmocka_unit_test(terminal_shows_a_bar),
        cmocka_unit_test(terminal_redraws_ten_times_a_second),
        cmocka_unit_test(terminal_line_fits),
        cmocka_unit_test(dumb_terminal_gets_plain_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
