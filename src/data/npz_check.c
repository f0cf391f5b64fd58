// Checking an archive: the CRC-32 of every member's content against the one that the directory names.
//
// Stored members are summed where they lie, in blocks that threads share; the sums of blocks are joined in their order,
// so that the result is that of the whole. Pages of a mapped file are given back once they are summed: a check takes
// no memory of the process, whatever the file's size.
#include "base/pool.h"
#include "base/stop.h"
#include "data/npz.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

enum {
    BLOCK = 4 << 20,
    ROUND = 16,            // blocks between two looks at the time and at a wish to stop
    THREADS_MOST = 8,      // more than this a disk does not feed
    ALONE_MOST = 4 * BLOCK // bytes of a file that are not worth threads
};

typedef struct {
    const npz *npz;
    npz_progress *on_progress;
    void *arg;
    pool *pool; // or NULL
    uint64_t done;
    const unsigned char *from; // of a round
    uint64_t bytes;
    uint32_t sum[ROUND];
} checking;

static bool go_on(checking *c, uint64_t bytes, err *e) {
    c->done += bytes;
    if (c->on_progress) c->on_progress(c->arg, c->done);
    return stop_go_on(e);
}

static uint64_t block_bytes(const checking *c, int64_t block) {
    uint64_t at = (uint64_t)block * BLOCK;
    return c->bytes - at < BLOCK ? c->bytes - at : BLOCK;
}

// Whole pages alone: those at the edges are shared with other blocks.
static void give_back(const npz *z, const unsigned char *from, uint64_t bytes) {
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), first = (uintptr_t)from, last = first + bytes;
    first = (first + page - 1) / page * page;
    last -= last % page;
    if (z->map.data && first < last) (void)madvise((void *)first, last - first, MADV_DONTNEED);
}

static void sum_block(void *arg, int64_t block, int worker) {
    checking *c = arg;
    const unsigned char *from = c->from + block * BLOCK;
    uint64_t bytes = block_bytes(c, block);
    (void)worker;
    c->sum[block] = (uint32_t)crc32_z(0, from, bytes);
    give_back(c->npz, from, bytes);
}

static bool check_stored(checking *c, const npz_entry *n, err *e) {
    const zip_member *m = n->member;
    uint32_t sum = 0;
    for (uint64_t at = 0; at < m->size; at += c->bytes) {
        c->from = c->npz->zip.bytes + m->data + at;
        c->bytes = m->size - at < (uint64_t)ROUND * BLOCK ? m->size - at : (uint64_t)ROUND * BLOCK;
        int64_t blocks = (int64_t)((c->bytes + BLOCK - 1) / BLOCK);
        pool_run(c->pool, blocks, sum_block, c);
        for (int64_t i = 0; i < blocks; i++) sum = (uint32_t)crc32_combine(sum, c->sum[i], (z_off_t)block_bytes(c, i));
        if (!go_on(c, c->bytes, e)) return false;
    }
    return sum == m->crc ||
           err_input(e, "%s: %s is damaged: its CRC-32 is wrong; was it copied whole?", c->npz->path, n->name);
}

static bool check_deflated(checking *c, const npz_entry *n, err *e) {
    zip_stream *s = zip_stream_open(&c->npz->zip, n->member, e);
    unsigned char *block = s ? malloc(BLOCK) : NULL;
    bool ok = block || (s && err_run(e, "%s: no memory to check it", c->npz->path));
    for (uint64_t left, step; ok && (left = zip_stream_left(s)); ok = ok && go_on(c, step, e)) {
        step = left < BLOCK ? left : BLOCK;
        ok = zip_stream_read(s, block, step, e);
    }
    free(block);
    zip_stream_close(s);
    return ok;
}

static bool is_summed(const npz_entry *n) {
    return !n->member->refused && n->member->checked;
}

uint64_t npz_bytes(const npz *z) {
    uint64_t bytes = 0;
    for (int64_t i = 0; i < z->entries; i++) bytes += is_summed(&z->entry[i]) ? z->entry[i].member->size : 0;
    return bytes;
}

bool npz_check(const npz *z, npz_progress *on_progress, void *arg, err *e) {
    checking c = {.npz = z, .on_progress = on_progress, .arg = arg};
    int threads = pool_processors();
    err unused; // one thread will do
    if (npz_bytes(z) > ALONE_MOST) c.pool = pool_new(threads < THREADS_MOST ? threads : THREADS_MOST, &unused);
    bool ok = true;
    for (int64_t i = 0; ok && i < z->entries; i++) {
        const npz_entry *n = &z->entry[i];
        if (is_summed(n)) ok = n->member->deflated ? check_deflated(&c, n, e) : check_stored(&c, n, e);
    }
    pool_free(c.pool);
    return ok;
}
