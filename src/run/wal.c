#include "run/wal.h"

#include "base/err.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAGIC = 0x377f0682, FORMAT = 3007000, PAGE_LEAST = 512, PAGE_MOST = 65536 };

// A frame that was read, but not committed yet.
typedef struct {
    uint32_t *page;
    uint32_t count, room;
} pending;

static uint32_t big32(const unsigned char *p) {
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static uint32_t little32(const unsigned char *p) {
    return (uint32_t)p[3] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[1] << 8 | p[0];
}

static void add_sum(uint32_t sum[2], bool big, const unsigned char *data, size_t bytes) {
    for (size_t i = 0; i < bytes; i += 8) {
        sum[0] += (big ? big32(data + i) : little32(data + i)) + sum[1];
        sum[1] += (big ? big32(data + i + 4) : little32(data + i + 4)) + sum[0];
    }
}

void wal_clear(wal *w) {
    uint32_t *kept = w->frame_of, room = w->room;
    *w = (wal){.frame_of = kept, .room = room};
    if (kept) memset(kept, 0, room * sizeof *kept);
}

void wal_done(wal *w) {
    free(w->frame_of);
    *w = (wal){0};
}

// Reads the head of a log; false where it is none, which a log that was just made is, too.
static bool read_head(wal *w, const unsigned char head[WAL_HEAD]) {
    uint32_t sum[2] = {0, 0}, magic = big32(head), page = big32(head + 8);
    bool big = magic == MAGIC + 1;
    add_sum(sum, big, head, WAL_HEAD - 8);
    bool is = (magic == MAGIC || big) && big32(head + 4) == FORMAT && page >= PAGE_LEAST && page <= PAGE_MOST &&
              !(page & (page - 1)) && sum[0] == big32(head + 24) && sum[1] == big32(head + 28);
    if (!is) return false;
    memcpy(w->head, head, WAL_HEAD);
    memcpy(w->sum, sum, sizeof w->sum);
    w->big_sums = big;
    w->page_bytes = page;
    return true;
}

static bool same_salts(const wal *w, const unsigned char *frame) {
    return memcmp(w->head + 16, frame + 8, 8) == 0;
}

static void add_pending(pending *p, uint32_t page) {
    if (p->count == p->room) {
        p->room = p->room ? 2 * p->room : 64;
        p->page = realloc(p->page, p->room * sizeof *p->page);
        NEED(p->page, "out of memory for a log of run.db");
    }
    p->page[p->count++] = page;
}

static void commit(wal *w, pending *p, uint32_t pages, const uint32_t sum[2]) {
    if (pages > w->room) {
        w->frame_of = realloc(w->frame_of, pages * sizeof *w->frame_of);
        NEED(w->frame_of, "out of memory for the pages of run.db");
        memset(w->frame_of + w->room, 0, (pages - w->room) * sizeof *w->frame_of);
        w->room = pages;
    }
    for (uint32_t i = 0; i < p->count; i++)
        if (p->page[i] <= pages) w->frame_of[p->page[i] - 1] = w->committed + i + 1;
    w->committed += p->count;
    p->count = 0;
    w->pages = pages;
    memcpy(w->sum, sum, sizeof w->sum);
}

static int64_t frame_at(const wal *w, uint32_t frame) {
    return WAL_HEAD + (int64_t)frame * (WAL_FRAME_HEAD + (int64_t)w->page_bytes);
}

// Reads frames behind the committed ones, and takes them over at every commit.
static void scan_frames(wal *w, int file, uint32_t most) {
    size_t bytes = WAL_FRAME_HEAD + (size_t)w->page_bytes;
    unsigned char *frame = malloc(bytes);
    NEED(frame, "out of memory for a page of run.db");
    pending p = {0};
    uint32_t sum[2] = {w->sum[0], w->sum[1]};
    while (pread(file, frame, bytes, frame_at(w, w->committed + p.count)) == (ssize_t)bytes && same_salts(w, frame)) {
        uint32_t page = big32(frame), pages = big32(frame + 4);
        add_sum(sum, w->big_sums, frame, 8);
        add_sum(sum, w->big_sums, frame + WAL_FRAME_HEAD, w->page_bytes);
        if (sum[0] != big32(frame + 16) || sum[1] != big32(frame + 20) || !page || page > most || pages > most) break;
        add_pending(&p, page);
        if (pages) commit(w, &p, pages, sum);
    }
    free(p.page);
    free(frame);
}

bool wal_holds(const wal *w, int file) {
    unsigned char head[WAL_HEAD];
    ssize_t n = file >= 0 ? pread(file, head, sizeof head, 0) : 0;
    if (n < 0) return false;
    if (!w->page_bytes) return n < WAL_HEAD || !read_head(&(wal){0}, head);
    return n == WAL_HEAD && memcmp(head, w->head, sizeof head) == 0;
}

bool wal_scan(wal *w, int file, uint32_t most) {
    unsigned char head[WAL_HEAD];
    ssize_t n = pread(file, head, sizeof head, 0);
    if (n < 0) return false;
    if (n < WAL_HEAD || memcmp(head, w->head, sizeof head) != 0) {
        wal_clear(w);
        if (n < WAL_HEAD || !read_head(w, head)) return true;
    }
    scan_frames(w, file, most);
    return wal_holds(w, file);
}

int64_t wal_place(const wal *w, uint32_t page) {
    uint32_t frame = page < w->room ? w->frame_of[page] : 0;
    return frame ? frame_at(w, frame - 1) + WAL_FRAME_HEAD : -1;
}
