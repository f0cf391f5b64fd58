#include "data/npy.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
enum { OTHER_ORDER = '>', OWN_ORDER = '<' };
#else
enum { OTHER_ORDER = '<', OWN_ORDER = '>' };
#endif

static const struct {
    const char *name, *descr; // descr without the order; NULL where the size varies
    int64_t bytes;            // 0 where it varies
} TYPES[] = {
    [NPY_F16] = {"f16", "f2", 2},
    [NPY_F32] = {"f32", "f4", 4},
    [NPY_F64] = {"f64", "f8", 8},
    [NPY_I8] = {"i8", "i1", 1},
    [NPY_I16] = {"i16", "i2", 2},
    [NPY_I32] = {"i32", "i4", 4},
    [NPY_I64] = {"i64", "i8", 8},
    [NPY_U8] = {"u8", "u1", 1},
    [NPY_U16] = {"u16", "u2", 2},
    [NPY_U32] = {"u32", "u4", 4},
    [NPY_U64] = {"u64", "u8", 8},
    [NPY_BOOL] = {"bool", "b1", 1},
    [NPY_TIME] = {"time", NULL, 8},
    [NPY_TEXT] = {"text", NULL, 0},
    [NPY_BYTES] = {"bytes", NULL, 0},
    [NPY_RECORD] = {"record", NULL, 0},
    [NPY_OBJECT] = {"object", NULL, 0},
    [NPY_OTHER] = {"other", NULL, 0},
};

const char *npy_type_name(npy_type t) {
    return TYPES[t].name;
}

int64_t npy_type_bytes(npy_type t) {
    return TYPES[t].bytes;
}

// UTF-8

int npy_utf8_get(const unsigned char *text, int64_t bytes, uint32_t *character) {
    static const uint32_t LEAST[] = {0, 0, 0x80, 0x800, 0x10000};
    if (bytes <= 0) return 0;
    uint32_t c = text[0];
    int length = c < 0x80 ? 1 : c >> 5 == 6 ? 2 : c >> 4 == 14 ? 3 : c >> 3 == 30 ? 4 : 0;
    if (!length || length > bytes) return 0;
    if (length > 1) c &= 0x7fu >> length;
    for (int i = 1; i < length; i++) {
        if (text[i] >> 6 != 2) return 0;
        c = c << 6 | (text[i] & 0x3f);
    }
    if (c < LEAST[length] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) return 0;
    *character = c;
    return length;
}

int npy_utf8_put(uint32_t c, char out[4]) {
    if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) return 0;
    int length = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (int i = length - 1; i > 0; i--, c >>= 6) out[i] = (char)(0x80 | (c & 0x3f));
    out[0] = (char)(length == 1 ? c : (0xf00u >> length & 0xff) | c);
    return length;
}

// The literal

// The text being read, between `at` and `end`, for the header `h`.
typedef struct {
    const unsigned char *at, *end;
    npy_header *h;
    arena *arena;
    bool latin1; // field names are latin1, otherwise UTF-8
    const char *name;
    err *e;
} literal;

static bool wrong(literal *l, const char *what) {
    return err_input(l->e, "%s: its array header is damaged: %s", l->name, what);
}

static void skip_space(literal *l) {
    while (l->at < l->end && (*l->at == ' ' || *l->at == '\n' || *l->at == '\t' || *l->at == '\r')) l->at++;
}

// Passes the next sign if it is `c`; false if it is not.
static bool take(literal *l, char c) {
    skip_space(l);
    if (l->at >= l->end || *l->at != (unsigned char)c) return false;
    l->at++;
    return true;
}

static bool next_is(literal *l, char c) {
    skip_space(l);
    return l->at < l->end && *l->at == (unsigned char)c;
}

static bool take_word(literal *l, const char *word) {
    skip_space(l);
    size_t n = strlen(word);
    if ((size_t)(l->end - l->at) < n || memcmp(l->at, word, n) != 0) return false;
    l->at += n;
    return true;
}

// A quoted string without escapes: where it lies.
static bool take_string(literal *l, const char **text, size_t *bytes) {
    skip_space(l);
    if (l->at >= l->end || (*l->at != '\'' && *l->at != '"')) return wrong(l, "a string is missing");
    unsigned char quote = *l->at++;
    const unsigned char *from = l->at;
    while (l->at < l->end && *l->at != quote) {
        if (*l->at < ' ' || *l->at == '\\') return wrong(l, "a string has a sign that is not read");
        l->at++;
    }
    if (l->at >= l->end) return wrong(l, "a string does not end");
    *text = (const char *)from;
    *bytes = (size_t)(l->at++ - from);
    return true;
}

// A whole number that is not negative; Python 2 wrote an L behind it.
static bool take_whole(literal *l, int64_t *out) {
    skip_space(l);
    const unsigned char *from = l->at;
    int64_t v = 0;
    for (; l->at < l->end && *l->at >= '0' && *l->at <= '9'; l->at++)
        if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, *l->at - '0', &v))
            return wrong(l, "a dimension is too large");
    if (l->at == from) return wrong(l, "a dimension is not a whole number");
    if (l->at < l->end && *l->at == 'L') l->at++;
    *out = v;
    return true;
}

// A tuple of whole numbers: (), (3,), (3, 4).
static bool take_shape(literal *l, int *rank, int64_t dim[NPY_RANK_MOST]) {
    *rank = 0;
    if (!take(l, '(')) return wrong(l, "the shape is not a tuple");
    bool comma = true;
    while (!take(l, ')')) {
        if (!comma) return wrong(l, "a comma is missing in the shape");
        if (*rank == NPY_RANK_MOST) return wrong(l, "it has more than 32 dimensions");
        if (!take_whole(l, &dim[*rank])) return false;
        ++*rank;
        comma = take(l, ',');
    }
    return *rank != 1 || comma || wrong(l, "the shape is not a tuple");
}

// The product of the dimensions; those that are 0 must not hide an overflow of the others.
static bool count_elements(literal *l, int rank, const int64_t *dim, int64_t *count) {
    int64_t product = 1;
    bool none = false;
    for (int i = 0; i < rank; i++) {
        none |= dim[i] == 0;
        if (dim[i] && __builtin_mul_overflow(product, dim[i], &product)) return wrong(l, "its shape overflows");
    }
    *count = none ? 0 : product;
    return true;
}

// Types

// Digits at `*text`, at most 9 of them; -1 where there are none.
static int64_t digits(const char **text, const char *end) {
    const char *from = *text;
    int64_t v = 0;
    for (; *text < end && **text >= '0' && **text <= '9' && *text - from < 9; ++*text) v = v * 10 + (**text - '0');
    return *text == from ? -1 : v;
}

static npy_type number_type(char letter, int64_t bytes) {
    for (int t = 0; t <= NPY_BOOL; t++)
        if (TYPES[t].descr[0] == letter && TYPES[t].bytes == bytes) return (npy_type)t;
    return NPY_OTHER;
}

// "<f4" and the like. A type that is not known is NPY_OTHER, of the size that its digits say.
static bool read_type(literal *l, const char *text, size_t bytes, npy_field *f, char unit[8]) {
    const char *at = text, *end = text + bytes;
    char order = at < end && strchr("<>|=", *at) ? *at++ : '=';
    if (at >= end) return wrong(l, "a type is empty");
    char letter = *at++;
    int64_t size = digits(&at, end);
    f->swapped = order == OTHER_ORDER;
    f->item = size;
    f->type = NPY_OTHER;
    if (letter == 'O') {
        f->type = NPY_OBJECT;
        f->item = -1;
    } else if (letter == 'U' && size >= 0 && at == end) {
        f->type = NPY_TEXT;
        f->item = 4 * size;
    } else if ((letter == 'S' || letter == 'a') && size >= 0 && at == end) {
        f->type = NPY_BYTES;
    } else if ((letter == 'M' || letter == 'm') && size == 8) {
        f->type = NPY_TIME;
        if (end - at > 2 && end - at < 10 && *at == '[' && end[-1] == ']') memcpy(unit, at + 1, (size_t)(end - at - 2));
    } else if (size > 0 && at == end) {
        f->type = number_type(letter, size);
    }
    if (f->item <= 1) f->swapped = false;
    return true;
}

// A field's name in the arena, as UTF-8.
static bool keep_name(literal *l, const char *text, size_t bytes, npy_field *f) {
    char *name = arena_take(l->arena, 2 * bytes + 1);
    size_t used = 0;
    for (size_t i = 0; i < bytes;) {
        uint32_t c = (unsigned char)text[i];
        int length = l->latin1 ? 1 : npy_utf8_get((const unsigned char *)text + i, (int64_t)(bytes - i), &c);
        if (!length) return wrong(l, "a field's name is not UTF-8");
        used += (size_t)npy_utf8_put(c, name + used);
        i += (size_t)length;
    }
    f->name = name;
    return true;
}

// One ('name', '<f8') or ('name', '<f8', (3,)) of a record. An object among the fields makes the array a pickle. Where
// a field is not understood, `*open` is how many brackets of the list are still open, otherwise 0.
static bool read_field(literal *l, npy_field *f, int *open) {
    const char *text, *type;
    size_t bytes, type_bytes;
    char unit[8];
    int rank;
    int64_t dim[NPY_RANK_MOST], count = 1;
    *open = 2;
    if (!take(l, '(')) return wrong(l, "a field is not a tuple");
    if (next_is(l, '(')) return true;
    if (!take_string(l, &text, &bytes) || !keep_name(l, text, bytes, f)) return false;
    if (!take(l, ',')) return wrong(l, "a field has no type");
    if (next_is(l, '[') || next_is(l, '(')) return true;
    if (!take_string(l, &type, &type_bytes) || !read_type(l, type, type_bytes, f, unit)) return false;
    if (take(l, ',') && !next_is(l, ')')) {
        if (!take_shape(l, &rank, dim) || !count_elements(l, rank, dim, &count)) return false;
        f->type = f->type == NPY_OBJECT ? NPY_OBJECT : NPY_OTHER;
    }
    if (!take(l, ')')) return wrong(l, "a field does not end");
    if (f->type == NPY_OBJECT) l->h->type = NPY_OBJECT;
    bool sized = f->item >= 0 && !__builtin_mul_overflow(f->item, count, &f->item);
    *open = sized || f->type == NPY_OBJECT ? 0 : 1;
    return true;
}

// Passes the rest of a list that is not understood, up to the bracket that ends it.
static bool skip_list(literal *l, int depth) {
    const char *text;
    size_t bytes;
    while (depth) {
        skip_space(l);
        if (l->at >= l->end) return wrong(l, "a list does not end");
        unsigned char c = *l->at;
        if (c == '\'' || c == '"') {
            if (!take_string(l, &text, &bytes)) return false;
            // An object in any depth is a pickle.
            if (bytes >= 2 && bytes <= 3 && text[0] == '|' && text[1] == 'O') l->h->type = NPY_OBJECT;
            continue;
        }
        depth += (c == '(' || c == '[') - (c == ')' || c == ']');
        l->at++;
    }
    return true;
}

// A record: [('time', '<i8'), ('open', '<f8'), ...]. What nests deeper is NPY_OTHER.
static bool read_record(literal *l) {
    npy_header *h = l->h;
    // A field takes at least the 8 signs of ('','u'), so this is never too small.
    npy_field *field = arena_array(l->arena, (size_t)(l->end - l->at) / 8 + 1, sizeof *field);
    int64_t offset = 0;
    int open = 0;
    h->type = NPY_RECORD;
    while (!open && !take(l, ']')) {
        npy_field *f = &field[h->fields];
        if (h->fields && !take(l, ',')) return wrong(l, "a comma is missing between fields");
        if (h->fields && take(l, ']')) break;
        if (!read_field(l, f, &open)) return false;
        f->offset = offset;
        if (!open && f->type != NPY_OBJECT && __builtin_add_overflow(offset, f->item, &offset))
            return wrong(l, "its fields overflow");
        h->fields++;
    }
    if (!skip_list(l, open)) return false;
    if (h->type == NPY_RECORD && (open || offset > NPY_ITEM_MOST)) h->type = NPY_OTHER;
    h->item = h->type == NPY_OBJECT || open ? -1 : offset;
    h->fields = h->type == NPY_RECORD ? h->fields : 0;
    h->field = h->fields ? field : NULL;
    return true;
}

static bool read_descr(literal *l) {
    const char *text;
    size_t bytes;
    npy_field f = {0};
    if (take(l, '[')) return read_record(l);
    if (!take_string(l, &text, &bytes) || !read_type(l, text, bytes, &f, l->h->unit)) return false;
    l->h->type = f.type;
    l->h->swapped = f.swapped;
    l->h->item = f.item;
    return true;
}

static bool read_order(literal *l) {
    l->h->fortran = take_word(l, "True");
    return l->h->fortran || take_word(l, "False") || wrong(l, "fortran_order is neither True nor False");
}

// The dict; `*seen` gets a bit for each of its three keys.
static bool read_dict(literal *l, unsigned *seen) {
    static const char *const KEYS[] = {"descr", "fortran_order", "shape"};
    const char *text = NULL;
    size_t bytes = 0;
    if (!take(l, '{')) return wrong(l, "it is not a dict");
    while (!take(l, '}')) {
        if (*seen && !take(l, ',')) return wrong(l, "a comma is missing");
        if (*seen && take(l, '}')) break;
        if (!take_string(l, &text, &bytes)) return false;
        int key = 0;
        while (key < 3 && (strlen(KEYS[key]) != bytes || memcmp(KEYS[key], text, bytes) != 0)) key++;
        if (key == 3) return wrong(l, "it has an unknown key");
        if (*seen & 1u << key) return wrong(l, "it has a key twice");
        *seen |= 1u << key;
        if (!take(l, ':')) return wrong(l, "a key has no value");
        bool ok = key == 0 ? read_descr(l) : key == 1 ? read_order(l) : take_shape(l, &l->h->rank, l->h->dim);
        if (!ok) return false;
    }
    skip_space(l);
    return l->at == l->end || wrong(l, "something follows it");
}

int64_t npy_head_bytes(const void *data, int64_t bytes, const char *name, err *e) {
    const unsigned char *p = data;
    if (bytes < 10 || memcmp(p, "\x93NUMPY", 6) != 0) {
        err_input(e, "%s: is not a numpy array", name);
        return -1;
    }
    if (p[6] < 1 || p[6] > 3) {
        err_input(e, "%s: is a numpy array of version %d, which is not known; save it with numpy.save", name, p[6]);
        return -1;
    }
    bool wide = p[6] > 1;
    if (wide && bytes < 12) {
        err_input(e, "%s: its array header is cut off", name);
        return -1;
    }
    int64_t length = wide ? (int64_t)p[8] | (int64_t)p[9] << 8 | (int64_t)p[10] << 16 | (int64_t)p[11] << 24
                          : (int64_t)p[8] | (int64_t)p[9] << 8;
    if (length > NPY_HEAD_MOST - 12) {
        err_input(e, "%s: its array header of %" PRId64 " bytes is longer than any array needs", name, length);
        return -1;
    }
    return length + (wide ? 12 : 10);
}

bool npy_parse(npy_header *h, arena *a, const void *data, int64_t bytes, const char *name, err *e) {
    *h = (npy_header){0};
    h->head = npy_head_bytes(data, bytes, name, e);
    if (h->head < 0) return false;
    if (h->head > bytes) return err_input(e, "%s: its array header is cut off", name);
    const unsigned char *p = data;
    literal l = {.at = p + (p[6] > 1 ? 12 : 10), .end = p + h->head, .h = h, .arena = a, .latin1 = p[6] < 3};
    l.name = name;
    l.e = e;
    unsigned seen = 0;
    if (!read_dict(&l, &seen)) return false;
    if (seen != 7) return wrong(&l, "descr, fortran_order or shape is missing");
    if (!count_elements(&l, h->rank, h->dim, &h->count)) return false;
    h->bytes = -1;
    if (h->item >= 0 && __builtin_mul_overflow(h->count, h->item, &h->bytes)) return wrong(&l, "its size overflows");
    int long_dims = 0;
    for (int i = 0; i < h->rank; i++) long_dims += h->dim[i] > 1;
    h->fortran = h->fortran && long_dims > 1 && h->count;
    return true;
}

int64_t npy_format(const npy_header *h, unsigned char out[NPY_WRITE_MOST]) {
    enum { GROWTH = 20, START = 10 };
    char text[NPY_WRITE_MOST], type[32];
    CHECK(h->rank >= 0 && h->rank <= NPY_RANK_MOST, "an array of rank %d", h->rank);
    CHECK(h->type == NPY_TEXT || TYPES[h->type].descr, "an array of type %s cannot be written", TYPES[h->type].name);
    char order = h->item == 1 ? '|' : OWN_ORDER;
    if (h->type == NPY_TEXT)
        snprintf(type, sizeof type, "%cU%" PRId64, order, h->item / 4);
    else
        snprintf(type, sizeof type, "%c%s", order, TYPES[h->type].descr);
    int n = snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': (", type), first = 0;
    for (int i = 0; i < h->rank; i++) {
        int more = snprintf(text + n, sizeof text - (size_t)n, "%" PRId64 "%s", h->dim[i],
            h->rank == 1      ? ","
            : i + 1 < h->rank ? ", "
                              : "");
        if (!i) first = more;
        n += more;
    }
    n += snprintf(text + n, sizeof text - (size_t)n, "), }");
    int64_t total = (START + n + (h->rank ? GROWTH - first + 2 : 0) + 1 + 63) / 64 * 64;
    CHECK(total <= NPY_WRITE_MOST, "an array header of %d bytes", n);
    memset(out, ' ', (size_t)total);
    memcpy(out, "\x93NUMPY\x01\x00", 8);
    out[8] = (unsigned char)((total - START) & 0xff);
    out[9] = (unsigned char)((total - START) >> 8);
    memcpy(out + START, text, (size_t)n);
    out[total - 1] = '\n';
    return total;
}

// Elements

// Numbers of a block: it stays in the nearest cache while it is swapped, widened and narrowed.
enum { BLOCK = 512 };

typedef union {
    unsigned char byte[8 * BLOCK];
    int8_t i8[BLOCK];
    uint8_t u8[BLOCK];
    int16_t i16[BLOCK];
    uint16_t u16[BLOCK];
    int32_t i32[BLOCK];
    uint32_t u32[BLOCK];
    int64_t i64[BLOCK];
    uint64_t u64[BLOCK];
    float f32[BLOCK];
    double f64[BLOCK];
} block;

static void swap_bytes(block *b, int64_t item, int n) {
    if (item == 2)
        for (int i = 0; i < n; i++) b->u16[i] = __builtin_bswap16(b->u16[i]);
    if (item == 4)
        for (int i = 0; i < n; i++) b->u32[i] = __builtin_bswap32(b->u32[i]);
    if (item == 8)
        for (int i = 0; i < n; i++) b->u64[i] = __builtin_bswap64(b->u64[i]);
}

static double half_value(uint16_t bits) {
    uint32_t sign = (uint32_t)(bits >> 15) << 31, exponent = bits >> 10 & 31, fraction = bits & 1023;
    if (!exponent) return (sign ? -0x1p-24 : 0x1p-24) * fraction;
    uint32_t wide = sign | (exponent == 31 ? 255 : exponent + 112) << 23 | fraction << 13;
    float f;
    memcpy(&f, &wide, sizeof f);
    return f;
}

static bool is_float(npy_type t) {
    return t <= NPY_F64;
}

static void widen_floats(npy_type from, const block *b, int n, double *out) {
    if (from == NPY_F16)
        for (int i = 0; i < n; i++) out[i] = half_value(b->u16[i]);
    else if (from == NPY_F32)
        for (int i = 0; i < n; i++) out[i] = (double)b->f32[i];
    else
        for (int i = 0; i < n; i++) out[i] = b->f64[i];
}

// As i64; returns how many fit, which only a u64 may not.
static int widen_whole(npy_type from, const block *b, int n, int64_t *out) {
    switch (from) {
    case NPY_I8:
        for (int i = 0; i < n; i++) out[i] = (int)b->i8[i];
        break;
    case NPY_I16:
        for (int i = 0; i < n; i++) out[i] = b->i16[i];
        break;
    case NPY_I32:
        for (int i = 0; i < n; i++) out[i] = b->i32[i];
        break;
    case NPY_U8:
        for (int i = 0; i < n; i++) out[i] = b->u8[i];
        break;
    case NPY_U16:
        for (int i = 0; i < n; i++) out[i] = b->u16[i];
        break;
    case NPY_U32:
        for (int i = 0; i < n; i++) out[i] = b->u32[i];
        break;
    case NPY_BOOL:
        for (int i = 0; i < n; i++) out[i] = b->u8[i] != 0;
        break;
    case NPY_U64:
        for (int i = 0; i < n; i++) {
            if (b->u64[i] > INT64_MAX) return i;
            out[i] = (int64_t)b->u64[i];
        }
        break;
    default: memcpy(out, b->i64, (size_t)n * sizeof *out);
    }
    return n;
}

static int whole_to(npy_type to, const int64_t *in, int n, char *out) {
    float *f32 = (float *)(void *)out;
    double *f64 = (double *)(void *)out;
    int32_t *i32 = (int32_t *)(void *)out;
    switch (to) {
    case NPY_F32:
        for (int i = 0; i < n; i++) f32[i] = (float)in[i];
        break;
    case NPY_F64:
        for (int i = 0; i < n; i++) f64[i] = (double)in[i];
        break;
    case NPY_I32:
        for (int i = 0; i < n; i++) {
            if (in[i] < INT32_MIN || in[i] > INT32_MAX) return i;
            i32[i] = (int32_t)in[i];
        }
        break;
    default: memcpy(out, in, (size_t)n * sizeof *in);
    }
    return n;
}

static int floats_to(npy_type to, const double *in, int n, char *out) {
    float *f32 = (float *)(void *)out;
    int64_t *i64 = (int64_t *)(void *)out;
    int32_t *i32 = (int32_t *)(void *)out;
    switch (to) {
    case NPY_F32:
        for (int i = 0; i < n; i++) f32[i] = (float)in[i];
        break;
    case NPY_I32:
        for (int i = 0; i < n; i++) {
            if (!(in[i] >= INT32_MIN && in[i] <= INT32_MAX) || (double)(int32_t)in[i] != in[i]) return i;
            i32[i] = (int32_t)in[i];
        }
        break;
    case NPY_I64:
        for (int i = 0; i < n; i++) {
            if (!(in[i] >= -0x1p63 && in[i] < 0x1p63) || (double)(int64_t)in[i] != in[i]) return i;
            i64[i] = (int64_t)in[i];
        }
        break;
    default: memcpy(out, in, (size_t)n * sizeof *in);
    }
    return n;
}

static int convert_block(npy_type from, const block *b, npy_type to, char *out, int n) {
    block wide;
    if (from == to) {
        memcpy(out, b->byte, (size_t)(npy_type_bytes(to) * n));
        return n;
    }
    // A u64 above the largest i64 still is a float.
    if (from == NPY_U64 && is_float(to)) {
        for (int i = 0; i < n; i++) wide.f64[i] = (double)b->u64[i];
        return floats_to(to, wide.f64, n, out);
    }
    if (is_float(from)) {
        widen_floats(from, b, n, wide.f64);
        return floats_to(to, wide.f64, n, out);
    }
    int fit = widen_whole(from, b, n, wide.i64);
    return whole_to(to, wide.i64, fit, out);
}

bool npy_converts(npy_type from, npy_type to) {
    if (!npy_type_bytes(from)) return false;
    return from == to || to == NPY_F32 || to == NPY_F64 || to == NPY_I32 || to == NPY_I64;
}

int64_t npy_convert(npy_type from, bool swapped, const void *in, npy_type to, void *out, int64_t count) {
    CHECK(npy_converts(from, to), "%s elements as %s", npy_type_name(from), npy_type_name(to));
    int64_t item = npy_type_bytes(from), step = npy_type_bytes(to);
    if (from == to && !swapped) {
        if (count) memcpy(out, in, (size_t)(count * item));
        return count;
    }
    for (int64_t at = 0; at < count; at += BLOCK) {
        block b;
        int n = (int)(count - at < BLOCK ? count - at : BLOCK);
        memcpy(b.byte, (const char *)in + at * item, (size_t)(n * item));
        if (swapped) swap_bytes(&b, item, n);
        int done = convert_block(from, &b, to, (char *)out + at * step, n);
        if (done < n) return at + done;
    }
    return count;
}
