#include "watch/tfevents.h"

#include "base/file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TAG_MOST = 200, EVENT_MOST = TAG_MOST + 80 };

struct tfevents {
    FILE *file;
    char *path;
    int failed; // errno of the first write that failed
};

// Sums

uint32_t tfevents_crc32c(const void *data, size_t bytes) {
    const unsigned char *at = data;
    uint32_t sum = ~0u;
    for (size_t i = 0; i < bytes; i++) {
        sum ^= at[i];
        for (int k = 0; k < 8; k++) sum = sum >> 1 ^ (sum & 1 ? 0x82f63b78u : 0);
    }
    return ~sum;
}

static uint32_t masked(const void *data, size_t bytes) {
    uint32_t sum = tfevents_crc32c(data, bytes);
    return (sum >> 15 | sum << 17) + 0xa282ead8u;
}

// Protocol buffers: fields are a tag (number * 8 + wire type) and a value.

typedef struct {
    unsigned char byte[EVENT_MOST];
    size_t used;
} message;

static void put_bytes(message *m, const void *data, size_t bytes) {
    CHECK(m->used + bytes <= sizeof m->byte, "an event of more than %d bytes", EVENT_MOST);
    memcpy(m->byte + m->used, data, bytes);
    m->used += bytes;
}

static void put_varint(message *m, uint64_t v) {
    do {
        unsigned char low = (unsigned char)((v & 0x7f) | (v > 0x7f ? 0x80 : 0));
        put_bytes(m, &low, 1);
        v >>= 7;
    } while (v);
}

// The bytes of a number, the lowest first, as protocol buffers and records have them.
static void put_fixed(message *m, uint64_t v, int bytes) {
    for (int i = 0; i < bytes; i++) {
        unsigned char low = (unsigned char)(v >> 8 * i);
        put_bytes(m, &low, 1);
    }
}

static void put_double(message *m, int field, double v) {
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    put_varint(m, (uint64_t)field << 3 | 1);
    put_fixed(m, bits, 8);
}

static void put_part(message *m, int field, const void *data, size_t bytes) {
    put_varint(m, (uint64_t)field << 3 | 2);
    put_varint(m, bytes);
    put_bytes(m, data, bytes);
}

// Records

static void write_all(tfevents *t, const void *data, size_t bytes) {
    if (!t->failed && fwrite(data, 1, bytes, t->file) != bytes) t->failed = errno ? errno : EIO;
}

static void write_record(tfevents *t, const message *m) {
    message head = {.used = 0}, foot = {.used = 0};
    put_fixed(&head, m->used, 8);
    put_fixed(&head, masked(head.byte, 8), 4);
    put_fixed(&foot, masked(m->byte, m->used), 4);
    write_all(t, head.byte, head.used);
    write_all(t, m->byte, m->used);
    write_all(t, foot.byte, foot.used);
}

tfevents *tfevents_open(const char *path, double time, err *e) {
    static const char format[] = "brain.Event:2";
    tfevents *t = calloc(1, sizeof *t);
    NEED(t && (t->path = strdup(path)), "out of memory for an event file");
    t->file = fopen(path, "wbe");
    if (!t->file) {
        file_fail(e, path, "cannot be written", errno);
        tfevents_close(t);
        return NULL;
    }
    message m = {.used = 0};
    put_double(&m, 1, time);
    put_part(&m, 3, format, sizeof format - 1);
    write_record(t, &m);
    return t;
}

void tfevents_scalar(tfevents *t, double time, int64_t step, const char *tag, double value) {
    message v = {.used = 0}, summary = {.used = 0}, m = {.used = 0};
    float number = (float)value;
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    put_part(&v, 1, tag, strnlen(tag, TAG_MOST));
    put_varint(&v, 2 << 3 | 5);
    put_fixed(&v, bits, 4);
    put_part(&summary, 1, v.byte, v.used);
    put_double(&m, 1, time);
    put_varint(&m, 2 << 3);
    put_varint(&m, (uint64_t)step);
    put_part(&m, 5, summary.byte, summary.used);
    write_record(t, &m);
}

bool tfevents_flush(tfevents *t, err *e) {
    if (!t->failed && fflush(t->file) != 0) t->failed = errno;
    return !t->failed || file_fail(e, t->path, "cannot be written", t->failed);
}

void tfevents_close(tfevents *t) {
    if (!t) return;
    if (t->file) fclose(t->file);
    free(t->path);
    free(t);
}
