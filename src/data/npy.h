// The header of a .npy array (versions 1, 2 and 3), and its elements as other types.
//
// The header is a Python dict literal; only what numpy itself writes is understood: three keys in any order, strings,
// True and False, tuples of whole numbers. Nothing is evaluated. Sizes are multiplied with overflow checks, so the
// product of the dimensions that are not 0 always fits. It knows nothing of files.
#ifndef TRADEWIND_DATA_NPY_H
#define TRADEWIND_DATA_NPY_H

#include "base/arena.h"
#include "base/err.h"

#include <stdint.h>

typedef enum {
    NPY_F16,
    NPY_F32,
    NPY_F64,
    NPY_I8,
    NPY_I16,
    NPY_I32,
    NPY_I64,
    NPY_U8,
    NPY_U16,
    NPY_U32,
    NPY_U64,
    NPY_BOOL,
    NPY_TIME,   // datetime64 or timedelta64: an i64 that counts the header's unit
    NPY_TEXT,   // str: UTF-32 padded with NULs
    NPY_BYTES,  // bytes padded with NULs
    NPY_RECORD, // fields by name
    NPY_OBJECT, // a pickle
    NPY_OTHER,  // complex, raw, nested records
} npy_type;

enum {
    NPY_RANK_MOST = 32,
    NPY_HEAD_MOST = 12 + 65536, // the longest header that is read
    NPY_WRITE_MOST = 1024,      // the longest that is written
    NPY_ITEM_MOST = 65536,      // bytes of a record whose fields can be read
};

typedef struct {
    const char *name;
    npy_type type;
    bool swapped;
    int64_t item;   // bytes
    int64_t offset; // in the record
} npy_field;

typedef struct {
    npy_type type;
    bool swapped; // the bytes of an element are in the other order than this machine's
    bool fortran; // the first index runs fastest; false where that makes no difference
    char unit[8]; // of NPY_TIME: "s", "ms", "us", "ns", "D", ...
    int rank;
    int64_t dim[NPY_RANK_MOST];
    int64_t count; // elements
    int64_t item;  // bytes of one; -1 where unknown (NPY_OBJECT, some NPY_OTHER)
    int64_t bytes; // of all; -1 where unknown
    int64_t head;  // bytes before the data
    int fields;
    const npy_field *field; // of NPY_RECORD
} npy_header;

// "f32", "record", ...
const char *npy_type_name(npy_type t);

// Bytes of an element of a number type, NPY_TIME and NPY_BOOL; 0 for others.
int64_t npy_type_bytes(npy_type t);

// How long the header at `data` is with its preamble, from its first 12 bytes (fewer where the file is shorter). -1
// with ERR_INPUT where it is no header or a longer one than NPY_HEAD_MOST. `name` begins the messages.
int64_t npy_head_bytes(const void *data, int64_t bytes, const char *name, err *e);

// Reads the header at `data`. Names of fields are kept in `a`.
bool npy_parse(npy_header *h, arena *a, const void *data, int64_t bytes, const char *name, err *e);

// Writes the header of an array of `h`'s type, item, rank and dimensions and returns its bytes, a multiple of 64 that
// does not depend on the first dimension.
int64_t npy_format(const npy_header *h, unsigned char out[NPY_WRITE_MOST]);

// Copies `count` elements, which may lie unaligned, as another type: to the same type, or from any number, NPY_BOOL or
// NPY_TIME to F32, F64, I32 or I64. Returns how many were copied: fewer than `count` where an element is not a whole
// number of the wanted range and an integer is wanted.
int64_t npy_convert(npy_type from, bool swapped, const void *in, npy_type to, void *out, int64_t count);

// True if npy_convert can convert.
bool npy_converts(npy_type from, npy_type to);

// One character of UTF-8 text of `bytes` bytes: its length, or 0 where it is not valid. And back: up to 4 bytes, 0 for
// what is no character.
int npy_utf8_get(const unsigned char *text, int64_t bytes, uint32_t *character);
int npy_utf8_put(uint32_t character, char out[4]);

#endif
