// SQLite reads an image through a file system of its own (a VFS), which knows one file without locks, whose pages come
// from the database or its log.
#include "run/image.h"

#include "base/file.h"
#include "run/wal.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { DB_HEAD = 100, COUNTER = 24, PAGE_SIZE = 16, VERSIONS = 18, PAGES_MOST = 1 << 28 };

// Changes within a tick of the clock that stamps files leave one stamp.
static const double STAMP_SECONDS = 0.05;

static const char mark[16] = "SQLite format 3";

// Marks by which two states of a file differ.
typedef struct {
    bool there;
    dev_t device;
    ino_t inode;
    off_t size;
    struct timespec changed;
} stamp;

struct image {
    char *path, *log_path, *journal_path;
    char name[32]; // of the VFS
    sqlite3_vfs vfs;
    sqlite3 *file;
    int db, log;      // descriptors, -1: none
    stamp at, log_at; // of the image
    bool whole;       // the last image was
    unsigned char first[DB_HEAD];
    uint32_t page_bytes, pages, taken;
    wal wal;
    int count;
};

// Stamps

static stamp stamp_of(const struct stat *st) {
    return (stamp){true, st->st_dev, st->st_ino, st->st_size, st->st_mtim};
}

static stamp stamp_path(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) ? stamp_of(&st) : (stamp){0};
}

static bool same_file(stamp a, stamp b) {
    return a.there == b.there && a.device == b.device && a.inode == b.inode;
}

static bool same_state(stamp a, stamp b) {
    return same_file(a, b) && a.size == b.size && a.changed.tv_sec == b.changed.tv_sec &&
           a.changed.tv_nsec == b.changed.tv_nsec;
}

static bool is_fresh(stamp s) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    double age = (double)(now.tv_sec - s.changed.tv_sec) + 1e-9 * (double)(now.tv_nsec - s.changed.tv_nsec);
    return age >= 0 && age < STAMP_SECONDS;
}

// Pages

static bool read_at(int file, void *to, size_t bytes, int64_t at) {
    return pread(file, to, bytes, at) == (ssize_t)bytes;
}

// SQLite is shown a database without a log, whose counter changes with every image, so that it keeps no old page.
static void show_head(const image *m, unsigned char *to, int bytes, int64_t at) {
    for (int i = 0; i < bytes; i++) {
        int64_t k = at + i;
        if (k == VERSIONS || k == VERSIONS + 1) to[i] = 1;
        if (k >= COUNTER && k < COUNTER + 4) to[i] = (unsigned char)(m->taken >> (8 * (COUNTER + 3 - k)));
    }
}

static bool read_piece(const image *m, unsigned char *to, int bytes, int64_t at) {
    int64_t page = at / m->page_bytes, within = at % m->page_bytes, place = wal_place(&m->wal, (uint32_t)page);
    bool ok = place >= 0 ? read_at(m->log, to, (size_t)bytes, place + within) : read_at(m->db, to, (size_t)bytes, at);
    if (ok && at < DB_HEAD) show_head(m, to, bytes, at);
    return ok;
}

// The VFS

typedef struct {
    sqlite3_file base;
    image *of;
} shown;

static int show_close(sqlite3_file *f) {
    (void)f;
    return SQLITE_OK;
}

static int show_read(sqlite3_file *f, void *to, int bytes, sqlite3_int64 at) {
    const image *m = ((const shown *)f)->of;
    unsigned char *out = to;
    while (bytes > 0) {
        int64_t rest = m->page_bytes - at % m->page_bytes;
        int n = bytes < rest ? bytes : (int)rest;
        if (at / m->page_bytes >= m->pages) {
            memset(out, 0, (size_t)bytes);
            return SQLITE_IOERR_SHORT_READ;
        }
        if (!read_piece(m, out, n, at)) return SQLITE_IOERR_READ;
        out += n;
        at += n;
        bytes -= n;
    }
    return SQLITE_OK;
}

static int show_write(sqlite3_file *f, const void *from, int bytes, sqlite3_int64 at) {
    (void)f;
    (void)from;
    (void)bytes;
    (void)at;
    return SQLITE_READONLY;
}

static int show_truncate(sqlite3_file *f, sqlite3_int64 size) {
    (void)f;
    (void)size;
    return SQLITE_READONLY;
}

static int show_size(sqlite3_file *f, sqlite3_int64 *size) {
    const image *m = ((const shown *)f)->of;
    *size = (sqlite3_int64)m->pages * m->page_bytes;
    return SQLITE_OK;
}

static int show_lock(sqlite3_file *f, int kind) {
    (void)f;
    (void)kind;
    return SQLITE_OK;
}

static int show_reserved(sqlite3_file *f, int *is) {
    (void)f;
    *is = 0;
    return SQLITE_OK;
}

static int show_control(sqlite3_file *f, int what, void *arg) {
    (void)f;
    (void)what;
    (void)arg;
    return SQLITE_NOTFOUND;
}

static int show_characteristics(sqlite3_file *f) {
    (void)f;
    return 0;
}

static int open_shown(sqlite3_vfs *v, const char *path, sqlite3_file *f, int flags, int *out) {
    static const sqlite3_io_methods methods = {.iVersion = 1,
        .xClose = show_close,
        .xRead = show_read,
        .xWrite = show_write,
        .xTruncate = show_truncate,
        .xSync = show_lock,
        .xFileSize = show_size,
        .xLock = show_lock,
        .xUnlock = show_lock,
        .xCheckReservedLock = show_reserved,
        .xFileControl = show_control,
        .xSectorSize = show_characteristics,
        .xDeviceCharacteristics = show_characteristics};
    (void)path;
    f->pMethods = NULL;
    if (!(flags & SQLITE_OPEN_MAIN_DB)) return SQLITE_CANTOPEN;
    ((shown *)f)->of = v->pAppData;
    f->pMethods = &methods;
    if (out) *out = flags;
    return SQLITE_OK;
}

// There is no journal beside an image.
static int access_shown(sqlite3_vfs *v, const char *path, int flags, int *is) {
    (void)v;
    (void)path;
    (void)flags;
    *is = 0;
    return SQLITE_OK;
}

static int name_shown(sqlite3_vfs *v, const char *name, int room, char *to) {
    (void)v;
    snprintf(to, (size_t)room, "%s", name);
    return SQLITE_OK;
}

static void make_vfs(image *m) {
    sqlite3_vfs *usual = sqlite3_vfs_find(NULL);
    NEED(usual, "out of memory for a database");
    snprintf(m->name, sizeof m->name, "image-%p", (void *)m);
    m->vfs = *usual;
    m->vfs.iVersion = 1;
    m->vfs.szOsFile = sizeof(shown);
    m->vfs.pNext = NULL;
    m->vfs.zName = m->name;
    m->vfs.pAppData = m;
    m->vfs.xOpen = open_shown;
    m->vfs.xAccess = access_shown;
    m->vfs.xFullPathname = name_shown;
    NEED(sqlite3_vfs_register(&m->vfs, 0) == SQLITE_OK, "out of memory for a database");
}

// Files

static void close_files(image *m) {
    sqlite3_close(m->file);
    m->file = NULL;
    if (m->db >= 0) close(m->db);
    if (m->log >= 0) close(m->log);
    m->db = m->log = -1;
    m->whole = false;
    wal_clear(&m->wal);
}

static char *beside(const char *path, const char *ending) {
    char *text;
    NEED(asprintf(&text, "%s%s", path, ending) >= 0, "out of memory for a path");
    return text;
}

image *image_new(const char *path) {
    image *m = calloc(1, sizeof *m);
    NEED(m, "out of memory for a database");
    m->path = beside(path, "");
    m->log_path = beside(path, "-wal");
    m->journal_path = beside(path, "-journal");
    m->db = m->log = -1;
    make_vfs(m);
    return m;
}

void image_free(image *m) {
    if (!m) return;
    close_files(m);
    sqlite3_vfs_unregister(&m->vfs);
    wal_done(&m->wal);
    free(m->path);
    free(m->log_path);
    free(m->journal_path);
    free(m);
}

image_news image_look(image *m) {
    stamp at = stamp_path(m->path);
    if (!at.there) return IMAGE_GONE;
    bool same = m->whole && same_state(at, m->at) && same_state(stamp_path(m->log_path), m->log_at);
    return same ? IMAGE_SAME : IMAGE_CHANGED;
}

// Opens what the path names now. A log of another database than this one has other salts, or is removed with it.
static bool open_files(image *m, stamp at, err *e) {
    if (m->db < 0 || !same_file(at, m->at)) {
        close_files(m);
        m->db = open(m->path, O_RDONLY | O_CLOEXEC);
        if (m->db < 0) return file_fail(e, m->path, "cannot be read", errno);
        m->count++;
    }
    if (m->log < 0 || !same_file(m->log_at, stamp_path(m->log_path))) {
        if (m->log >= 0) close(m->log);
        wal_clear(&m->wal);
        m->log = open(m->log_path, O_RDONLY | O_CLOEXEC);
        if (m->log < 0 && errno != ENOENT) return file_fail(e, m->log_path, "cannot be read", errno);
    }
    return true;
}

// The stamp of an open file; none where there is no file.
static stamp stamp_open(int file) {
    struct stat st;
    return file >= 0 && fstat(file, &st) == 0 ? stamp_of(&st) : (stamp){0};
}

// Pages of the database without its log. A file of no database has no size of pages.
static bool read_head(image *m, err *e) {
    memset(m->first, 0, sizeof m->first);
    if (!read_at(m->db, m->first, sizeof m->first, 0) && !m->wal.page_bytes)
        return err_input(e, "%s: is not the database of a run: it is empty or cut short", m->path);
    uint32_t size = (uint32_t)m->first[PAGE_SIZE] << 8 | m->first[PAGE_SIZE + 1];
    if (size == 1) size = 65536;
    if (m->wal.page_bytes) size = m->wal.page_bytes;
    if (memcmp(m->first, mark, sizeof mark) != 0 || size < 512 || (size & (size - 1)))
        return err_input(e, "%s: is not the database of a run", m->path);
    m->page_bytes = size;
    m->pages = m->wal.pages ? m->wal.pages : (uint32_t)(m->at.size / size);
    return true;
}

// Pages that files of these sizes can have at most.
static uint32_t pages_most(const image *m) {
    int64_t n = (m->at.size + m->log_at.size) / 512 + 1;
    return n < PAGES_MOST ? (uint32_t)n : PAGES_MOST;
}

static bool open_shown_file(image *m, err *e) {
    if (m->file) return true;
    int rc = sqlite3_open_v2(m->path, &m->file, SQLITE_OPEN_READONLY, m->name);
    NEED(m->file, "out of memory for a database");
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(m->file,
            "PRAGMA temp_store = MEMORY; PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON", NULL, NULL, NULL);
    NEED(rc != SQLITE_NOMEM, "out of memory for a database");
    return rc == SQLITE_OK || err_input(e, "%s: cannot be read: %s", m->path, sqlite3_errmsg(m->file));
}

// The database is stamped before its log is scanned: what a checkpoint has moved by then was committed in the log.
image_state image_take(image *m, err *e) {
    m->whole = false;
    stamp at = stamp_path(m->path);
    if (!at.there) return err_input(e, "%s: there is none", m->path) ? IMAGE_TAKEN : IMAGE_BAD;
    if (!open_files(m, at, e)) return IMAGE_BAD;
    m->at = stamp_open(m->db);
    if (is_fresh(m->at) || access(m->journal_path, F_OK) == 0) return IMAGE_MOVING;
    m->log_at = stamp_open(m->log);
    if (m->log >= 0 && !wal_scan(&m->wal, m->log, pages_most(m))) return IMAGE_MOVING;
    m->taken++;
    if (!read_head(m, e) || !open_shown_file(m, e)) return IMAGE_BAD;
    return IMAGE_TAKEN;
}

// The counter in the database's head changes with transactions that no log takes. Where the path has another file by
// now, its log may have been taken for this one's.
bool image_whole(image *m) {
    unsigned char first[DB_HEAD] = {0};
    (void)read_at(m->db, first, sizeof first, 0);
    m->whole = same_state(stamp_path(m->path), m->at) && same_state(stamp_open(m->db), m->at) &&
               memcmp(first, m->first, sizeof first) == 0 && wal_holds(&m->wal, m->log) &&
               access(m->journal_path, F_OK) != 0;
    return m->whole;
}

sqlite3 *image_file(image *m) {
    return m->file;
}

static double seconds_of(stamp s) {
    return (double)s.changed.tv_sec + 1e-9 * (double)s.changed.tv_nsec;
}

double image_written(const image *m) {
    return fmax(seconds_of(m->at), seconds_of(m->log_at));
}

int image_count(const image *m) {
    return m->count;
}
