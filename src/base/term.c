#include "base/term.h"

#include "base/clock.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static const double TTY_EVERY = 0.1, PLAIN_EVERY = 10.0;
static const double SAMPLE_EVERY = 0.05; // shorter steps say more about the clock than about the rate
static const double SMOOTH = 5.0;        // seconds after which a change of rate shows by two thirds

enum { BAR_LEAST = 5, BAR_MOST = 30 };

bool term_is_tty(FILE *f) {
    int fd = fileno(f);
    return fd >= 0 && isatty(fd);
}

void term_count(char *buf, size_t n, double v) {
    if (!n) return;
    if (!isfinite(v) || fabs(v) > 1e15) {
        snprintf(buf, n, "%.3g", v);
        return;
    }
    char digits[24], out[40];
    int count = snprintf(digits, sizeof digits, "%.0f", fabs(v));
    size_t used = 0;
    if (v < 0 && strcmp(digits, "0") != 0) out[used++] = '-';
    for (int i = 0; i < count; i++) {
        if (i && (count - i) % 3 == 0) out[used++] = ',';
        out[used++] = digits[i];
    }
    out[used] = 0;
    snprintf(buf, n, "%s", out);
}

const char *term_s(int64_t n) {
    return n == 1 ? "" : "s";
}

void term_one_line(char *text) {
    for (unsigned char *c = (unsigned char *)text; *c; c++)
        if (*c < ' ' || *c == 0x7f) *c = ' ';
}

static size_t term_width(FILE *f) {
    struct winsize size;
    bool known = !ioctl(fileno(f), TIOCGWINSZ, &size) && size.ws_col;
    return known ? size.ws_col : 80;
}

// Bytes of `text` that fill at most `columns`, taking each character as one column and cutting none in half.
static size_t text_fit(const char *text, size_t columns) {
    size_t i = 0;
    while (text[i] && columns--) {
        i++;
        while (((unsigned char)text[i] & 0xC0) == 0x80) i++;
    }
    return i;
}

static size_t text_columns(const char *text) {
    size_t n = 0;
    for (; *text; text++) n += ((unsigned char)*text & 0xC0) != 0x80;
    return n;
}

void progress_init(progress *p, FILE *out, const char *title, double total, bool quiet) {
    const char *kind = getenv("TERM");
    *p = (progress){.out = out, .total = total > 0 ? total : 0, .quiet = quiet};
    snprintf(p->title, sizeof p->title, "%s", title);
    term_one_line(p->title);
    p->tty = term_is_tty(out) && !(kind && !strcmp(kind, "dumb"));
    p->at = clock_seconds();
    p->next = p->tty ? p->at : p->at + PLAIN_EVERY;
}

static void rate_update(progress *p, double now, double done) {
    double passed = now - p->at, steps = done - p->done;
    if (steps < 0 || !p->begun) { // the count began, or began anew
        p->begun = true;
        p->at = now;
        p->done = done;
        return;
    }
    if (passed < SAMPLE_EVERY || steps == 0) return;
    double rate = steps / passed;
    p->rate = p->rate > 0 ? p->rate + (1 - exp(-passed / SMOOTH)) * (rate - p->rate) : rate;
    p->at = now;
    p->done = done;
}

void term_eta(char *buf, size_t n, double seconds) {
    if (!(seconds < 1000 * 3600.0)) {
        snprintf(buf, n, "--:--");
        return;
    }
    long s = (long)ceil(seconds);
    if (s >= 3600)
        snprintf(buf, n, "%ld:%02ld:%02ld", s / 3600, s / 60 % 60, s % 60);
    else
        snprintf(buf, n, "%ld:%02ld", s / 60, s % 60);
}

// Text behind the bar: "42 %  18,300/s  ETA 0:12  ".
static void figures_text(const progress *p, double done, char *buf, size_t n) {
    char rate[40] = "", count[40], eta[24];
    if (p->rate >= 10) {
        term_count(count, sizeof count, p->rate);
        snprintf(rate, sizeof rate, "%.32s/s  ", count);
    } else if (p->rate > 0) {
        snprintf(rate, sizeof rate, "%.2g/s  ", p->rate);
    }
    if (p->total <= 0) {
        term_count(count, sizeof count, done);
        snprintf(buf, n, "%s  %s", count, rate);
        return;
    }
    double share = fmin(fmax(done / p->total, 0), 1);
    term_eta(eta, sizeof eta, share >= 1 ? 0 : p->rate > 0 ? (p->total - done) / p->rate : INFINITY);
    snprintf(buf, n, "%.0f %%  %sETA %s  ", floor(100 * share), rate, eta);
}

// The whole line. On a terminal it fits, and the bar takes what the rest leaves, or goes when that is too little.
static void line_text(progress *p, double done, const char *tail) {
    // The last column stays free: filling it makes some terminals wrap.
    size_t columns = p->tty ? term_width(p->out) - 1 : sizeof p->text - 1;
    char figures[160], bar[BAR_MOST + 4] = "";
    figures_text(p, done, figures, sizeof figures);
    size_t rest = text_columns(p->title) + 1 + text_columns(figures) + text_columns(tail);
    if (p->tty && p->total > 0 && rest + BAR_LEAST + 3 <= columns) {
        size_t width = columns - rest - 3;
        if (width > BAR_MOST) width = BAR_MOST;
        size_t full = (size_t)(fmin(fmax(done / p->total, 0), 1) * (double)width);
        bar[0] = '[';
        memset(bar + 1, '#', full);
        memset(bar + 1 + full, '-', width - full);
        memcpy(bar + 1 + width, "] ", 3);
    }
    snprintf(p->text, sizeof p->text, "%s %s%s%s", p->title, bar, figures, tail);
    size_t end = text_fit(p->text, columns);
    while (end && p->text[end - 1] == ' ') end--;
    p->text[end] = 0;
}

void progress_at(progress *p, double done, const char *fmt, ...) {
    double now = clock_seconds();
    rate_update(p, now, done);
    if (p->quiet || now < p->next) return;
    char tail[256];
    va_list args;
    va_start(args, fmt);
    vsnprintf(tail, sizeof tail, fmt, args);
    va_end(args);
    term_one_line(tail);
    line_text(p, done, tail);
    fprintf(p->out, p->tty ? "\r%s\033[K" : "%s\n", p->text);
    fflush(p->out);
    p->next = now + (p->tty ? TTY_EVERY : PLAIN_EVERY);
}

void progress_line(progress *p, const char *fmt, ...) {
    if (p->quiet) return;
    va_list args;
    va_start(args, fmt);
    if (p->tty) fputs("\r\033[K", p->out);
    vfprintf(p->out, fmt, args);
    va_end(args);
    fputc('\n', p->out);
    if (p->tty) fputs(p->text, p->out);
    fflush(p->out);
}

void progress_done(progress *p) {
    if (!p->quiet && p->tty && p->text[0]) {
        fputs("\r\033[K", p->out);
        fflush(p->out);
    }
    p->text[0] = 0;
}
