// A file that grows, is cut, written over, replaced and removed, as bytes say, under a feed that is asked in between:
// bars come in order, and nothing is left open. The first byte chooses the options; then operations follow, each a byte
// for its kind, one for a length and its bytes.
#include "live/feed.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void drain(live_feed *f, int64_t *newest) {
    feed_event ev;
    err e = {0};
    feed_answer a;
    for (int i = 0; i < 4096 && (a = live_feed_next(f, 0, &ev, &e)) != FEED_NOTHING; i++) {
        CHECK(a == FEED_GOT, "answer %d: %s", a, e.text);
        if (ev.kind != FEED_BAR) continue;
        CHECK(ev.bar.time > *newest || !*newest, "bars out of order");
        *newest = ev.bar.time;
    }
}

static void write_at(const char *path, int flags, const uint8_t *data, size_t n, off_t at) {
    int fd = open(path, O_WRONLY | O_CREAT | flags, 0600);
    CHECK(fd >= 0, "%s", path);
    ssize_t put = flags & O_APPEND ? write(fd, data, n) : pwrite(fd, data, n, at);
    CHECK(put == (ssize_t)n, "%s", path);
    close(fd);
}

static void operate(const char *path, unsigned kind, const uint8_t *data, size_t n) {
    char other[96];
    off_t at = n ? data[0] : 0;
    snprintf(other, sizeof other, "%s.new", path);
    kind %= 6;
    if (kind == 0) write_at(path, 0, data, n, at);
    if (kind == 1 && truncate(path, at)) return; // it may not be there
    if (kind == 2) {
        write_at(other, O_TRUNC, data, n, 0);
        CHECK(!rename(other, path), "%s", path);
    }
    if (kind == 3) unlink(path);
    if (kind > 3) write_at(path, O_APPEND, data, n, 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const int64_t spans[] = {300, 3600};
    char path[64];
    int64_t newest = 0;
    err e = {0};
    if (size < 1) return 0;
    snprintf(path, sizeof path, "/dev/shm/fuzz_feed_%ld.csv", (long)getpid());
    write_at(path, O_TRUNC, (const uint8_t *)"time,open,high,low,close\n", 25, 0);
    feed_options o = {.from = path,
        .spans = spans,
        .span_count = 1 + (data[0] & 1),
        .hold = data[0] & 2 ? FEED_HOLD_NONE : FEED_HOLD_NEWEST,
        .clock = data[0] & 4 ? FEED_CLOCK_MACHINE : FEED_CLOCK_BARS,
        .grace = data[0] & 8 ? 1 : 0,
        .poll = 1e-9};
    if (data[0] & 1) o.wanted = (const char *const[]){""}, o.wanted_count = 1;
    live_feed *f = live_feed_open(&o, &e);
    CHECK(f || e.text[0], "no feed and no reason");
    data++;
    size--;
    while (f && size >= 2) {
        unsigned kind = data[0];
        size_t n = data[1] < size - 2 ? data[1] : size - 2;
        operate(path, kind, data + 2, n);
        data += 2 + n;
        size -= 2 + n;
        drain(f, &newest);
    }
    live_feed_close(f);
    unlink(path);
    return 0;
}
