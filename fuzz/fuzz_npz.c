// Archives of arrays: any bytes are listed or refused; whatever is listed is read to its end or refused.
#include "data/npz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PIECE = 512, ELEMENTS_MOST = 1 << 16 }; // enough to pass every buffer, and soon done

static void read_elements(const npz *z, const npz_entry *n, const char *field) {
    static const npy_type as[] = {NPY_F32, NPY_F64, NPY_I32, NPY_I64};
    double out[PIECE];
    err e;
    npz_stream *s = npz_stream_open(z, n, field, &e);
    bool ok = s;
    for (int64_t at = 0, left; ok && at < ELEMENTS_MOST && (left = npz_stream_left(s)); at += PIECE)
        ok = npz_stream_read(s, as[n->header.count % 4], out, left < PIECE ? left : PIECE, &e);
    npz_stream_close(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    npz z;
    err e;
    if (!npz_open_memory(&z, "fuzz.npz", data, size, &e)) return 0;
    for (int64_t i = 0; i < z.entries; i++) {
        const npz_entry *n = npz_want(&z, z.entry[i].name, &e);
        if (!n) continue;
        arena a;
        arena_init(&a);
        if (n->kind == NPZ_TEXT) npz_read_text(&z, n, &a, &e);
        if (n->kind == NPZ_ARRAY) read_elements(&z, n, NULL);
        for (int f = 0; f < n->header.fields && f < 4; f++) read_elements(&z, n, n->header.field[f].name);
        arena_done(&a);
    }
    npz_close(&z);
    return 0;
}
