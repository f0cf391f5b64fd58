// Operations, for the lanes of a warp that a mask names. Floating-point operations are those of this processor:
// approximate ones of a card (ex2, tanh, rcp) are exact to rounding here.
#include "card/grid.h"
#include "card/hopper.h"

#include "base/half.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint8_t u8;
typedef int8_t s8;
typedef uint16_t u16;
typedef int16_t s16;
typedef uint32_t u32;
typedef int32_t s32;
typedef uint64_t u64;
typedef int64_t s64;
typedef float f32;
typedef double f64;
typedef __int128 s128;
typedef unsigned __int128 u128;

// Values of up to 32 bits lie in words, of which narrower ones are the low bits.
#define ROW_AT(n)        (w->now->rows + (size_t)i->op[n] * ROW)
#define GET_u8(p, l)     ((u8)((const u32 *)(p))[l])
#define GET_s8(p, l)     ((s8)((const u32 *)(p))[l])
#define GET_u16(p, l)    ((u16)((const u32 *)(p))[l])
#define GET_s16(p, l)    ((s16)((const u32 *)(p))[l])
#define GET_u32(p, l)    (((const u32 *)(p))[l])
#define GET_s32(p, l)    (((const s32 *)(p))[l])
#define GET_u64(p, l)    (((const u64 *)(p))[l])
#define GET_s64(p, l)    (((const s64 *)(p))[l])
#define GET_f32(p, l)    (((const f32 *)(p))[l])
#define GET_f64(p, l)    (((const f64 *)(p))[l])
#define PUT_u16(p, l, v) (((u32 *)(p))[l] = (u16)(v))
#define PUT_s16(p, l, v) (((u32 *)(p))[l] = (u16)(v))
#define PUT_u32(p, l, v) (((u32 *)(p))[l] = (u32)(v))
#define PUT_s32(p, l, v) (((s32 *)(p))[l] = (s32)(v))
#define PUT_u64(p, l, v) (((u64 *)(p))[l] = (u64)(v))
#define PUT_s64(p, l, v) (((s64 *)(p))[l] = (s64)(v))
#define PUT_f32(p, l, v) (((f32 *)(p))[l] = (v))
#define PUT_f64(p, l, v) (((f64 *)(p))[l] = (v))

// The whole warp is the usual case, which the compiler makes vectors of.
#define EACH_LANE(...)                                                                                                 \
    do {                                                                                                               \
        if (mask == UINT32_MAX) {                                                                                      \
            for (int l = 0; l < WARP; l++) {                                                                           \
                __VA_ARGS__                                                                                            \
            }                                                                                                          \
        } else {                                                                                                       \
            for (int l = 0; l < WARP; l++)                                                                             \
                if (mask >> l & 1) {                                                                                   \
                    __VA_ARGS__                                                                                        \
                }                                                                                                      \
        }                                                                                                              \
    } while (0)

#define UNARY(name, D, A, value)                                                                                       \
    static void name(warp *w, const insn *i, uint32_t mask) {                                                          \
        uint8_t *to = ROW_AT(0);                                                                                       \
        const uint8_t *pa = ROW_AT(1);                                                                                 \
        EACH_LANE(A a = GET_##A(pa, l); PUT_##D(to, l, (value)););                                                     \
    }
#define BINARY(name, D, A, B, value)                                                                                   \
    static void name(warp *w, const insn *i, uint32_t mask) {                                                          \
        uint8_t *to = ROW_AT(0);                                                                                       \
        const uint8_t *pa = ROW_AT(1), *pb = ROW_AT(2);                                                                \
        EACH_LANE(A a = GET_##A(pa, l); B b = GET_##B(pb, l); PUT_##D(to, l, (value)););                               \
    }
#define TERNARY(name, D, A, B, C, value)                                                                               \
    static void name(warp *w, const insn *i, uint32_t mask) {                                                          \
        uint8_t *to = ROW_AT(0);                                                                                       \
        const uint8_t *pa = ROW_AT(1), *pb = ROW_AT(2), *pc = ROW_AT(3);                                               \
        EACH_LANE(A a = GET_##A(pa, l); B b = GET_##B(pb, l); C c = GET_##C(pc, l); PUT_##D(to, l, (value)););         \
    }

#define EACH_INTEGER(X) X(u16) X(s16) X(u32) X(s32) X(u64) X(s64)

#define MOVES(T) UNARY(mov_##T, T, T, a)
MOVES(u16);
MOVES(u32);
MOVES(u64);
MOVES(f32);
MOVES(f64);

// Sums wrap around.
#define SUMS(T)                                                                                                        \
    BINARY(add_##T, T, T, T, (T)((u64)a + (u64)b))                                                                     \
    BINARY(sub_##T, T, T, T, (T)((u64)a - (u64)b))                                                                     \
    BINARY(mul_##T, T, T, T, (T)((u64)a * (u64)b))                                                                     \
    TERNARY(mad_##T, T, T, T, T, (T)((u64)a * (u64)b + (u64)c))                                                        \
    BINARY(min_##T, T, T, T, a < b ? a : b)                                                                            \
    BINARY(max_##T, T, T, T, a > b ? a : b)                                                                            \
    UNARY(neg_##T, T, T, (T)(0 - (u64)a))
EACH_INTEGER(SUMS);

// The least number by -1 wraps around, too.
#define QUOTIENTS(T)                                                                                                   \
    BINARY(div_##T, T, T, T, b ? (T)(a / b) : (T)-1)                                                                   \
    BINARY(rem_##T, T, T, T, b ? (T)(a % b) : a)
#define SIGNED_QUOTIENTS(T)                                                                                            \
    BINARY(div_##T, T, T, T, b == -1 ? (T)(0 - (u64)a) : b ? (T)(a / b) : (T)-1)                                       \
    BINARY(rem_##T, T, T, T, b == -1 ? 0 : b ? (T)(a % b) : a)
QUOTIENTS(u16);
QUOTIENTS(u32);
QUOTIENTS(u64);
SIGNED_QUOTIENTS(s16);
SIGNED_QUOTIENTS(s32);
SIGNED_QUOTIENTS(s64);

UNARY(abs_s32, s32, s32, a < 0 ? (s32)(0 - (u32)a) : a);
UNARY(abs_s64, s64, s64, a < 0 ? (s64)(0 - (u64)a) : a);

#define FLOATS(T, S)                                                                                                   \
    BINARY(add_##T, T, T, T, a + b)                                                                                    \
    BINARY(sub_##T, T, T, T, a - b)                                                                                    \
    BINARY(mul_##T, T, T, T, a *b)                                                                                     \
    BINARY(div_##T, T, T, T, a / b)                                                                                    \
    BINARY(min_##T, T, T, T, fmin##S(a, b))                                                                            \
    BINARY(max_##T, T, T, T, fmax##S(a, b))                                                                            \
    BINARY(copysign_##T, T, T, T, copysign##S(b, a))                                                                   \
    UNARY(neg_##T, T, T, -a)                                                                                           \
    UNARY(abs_##T, T, T, fabs##S(a))                                                                                   \
    UNARY(sqrt_##T, T, T, sqrt##S(a))                                                                                  \
    UNARY(rsqrt_##T, T, T, 1 / sqrt##S(a))                                                                             \
    UNARY(rcp_##T, T, T, 1 / a)                                                                                        \
    TERNARY(fma_##T, T, T, T, T, fma##S(a, b, c))
FLOATS(f32, f);
FLOATS(f64, );

// A NaN wins.
BINARY(min_nan_f32, f32, f32, f32, isnan(a) || isnan(b) ? NAN : fminf(a, b));
BINARY(max_nan_f32, f32, f32, f32, isnan(a) || isnan(b) ? NAN : fmaxf(a, b));
UNARY(ex2_f32, f32, f32, exp2f(a));
UNARY(lg2_f32, f32, f32, log2f(a));
UNARY(tanh_f32, f32, f32, tanhf(a));
UNARY(sin_f32, f32, f32, sinf(a));
UNARY(cos_f32, f32, f32, cosf(a));

// a b + c, rounded down.
static f32 fma_down(f32 a, f32 b, f32 c) {
    f64 whole = (f64)a * b, sum = whole + c; // the product is exact, the sum's error is found below
    f32 r = (f32)sum;
    f64 part = sum - whole, lost = (whole - (sum - part)) + (c - part);
    if ((f64)r > sum || ((f64)r == sum && lost < 0)) r = nextafterf(r, -INFINITY);
    return r;
}
TERNARY(fma_rm_f32, f32, f32, f32, f32, fma_down(a, b, c));

#define BITS(T)                                                                                                        \
    BINARY(and_##T, T, T, T, a &b)                                                                                     \
    BINARY(or_##T, T, T, T, a | b)                                                                                     \
    BINARY(xor_##T, T, T, T, a ^ b)                                                                                    \
    UNARY(not_##T, T, T, ~a)                                                                                           \
    BINARY(shl_##T, T, T, u32, b >= 8 * sizeof(T) ? 0 : (T)(a << b))                                                   \
    BINARY(shr_##T, T, T, u32, b >= 8 * sizeof(T) ? 0 : (T)(a >> b))
BITS(u16);
BITS(u32);
BITS(u64);
BINARY(shr_s16, s16, s16, u32, (s16)(a >> (b > 15 ? 15 : b)));
BINARY(shr_s32, s32, s32, u32, a >> (b > 31 ? 31 : b));
BINARY(shr_s64, s64, s64, u32, a >> (b > 63 ? 63 : b));
BINARY(mul_wide_u16, u32, u16, u16, (u32)a *b);
BINARY(mul_wide_s16, s32, s16, s16, (s32)a *b);
BINARY(mul_wide_u32, u64, u32, u32, (u64)a *b);
BINARY(mul_wide_s32, s64, s32, s32, (s64)a *b);
TERNARY(mad_wide_u16, u32, u16, u16, u32, (u32)a *b + c);
TERNARY(mad_wide_u32, u64, u32, u32, u64, (u64)a *b + c);
TERNARY(mad_wide_s32, s64, s32, s32, s64, (s64)((u64)((s64)a *b) + (u64)c));
BINARY(mul_hi_u32, u32, u32, u32, (u64)a *b >> 32);
BINARY(mul_hi_s32, s32, s32, s32, (s64)a *b >> 32);
BINARY(mul_hi_u64, u64, u64, u64, (u64)((u128)a *b >> 64));
BINARY(mul_hi_s64, s64, s64, s64, (s64)((s128)a *b >> 64));
TERNARY(mad_hi_u32, u32, u32, u32, u32, (u32)((u64)a *b >> 32) + c);

// Sums with a carry in and out, which each lane has one bit of. x - y is x + ~y + 1, with the carry of that.
#define CARRIES(name, T, WIDE, in, out, minus, first)                                                                  \
    static void name(warp *w, const insn *i, uint32_t mask) {                                                          \
        uint8_t *to = ROW_AT(0);                                                                                       \
        const uint8_t *pa = ROW_AT(1), *pb = ROW_AT(2), *pc = ROW_AT(i->count > 3 ? 3 : 2);                            \
        for (int l = 0; l < WARP; l++) {                                                                               \
            if (!(mask >> l & 1)) continue;                                                                            \
            u32 bit = 1u << l;                                                                                         \
            T a = GET_##T(pa, l), b = GET_##T(pb, l), c = GET_##T(pc, l), x, y;                                        \
            WIDE carry = in ? (w->now->carry & bit) != 0 : minus, sum;                                                 \
            (void)a, (void)b, (void)c;                                                                                 \
            first;                                                                                                     \
            if (minus) y = (T)~y;                                                                                      \
            sum = (WIDE)x + y + carry;                                                                                 \
            if (out) w->now->carry = (w->now->carry & ~bit) | (sum >> (8 * sizeof(T)) & 1 ? bit : 0);                  \
            PUT_##T(to, l, (T)sum);                                                                                    \
        }                                                                                                              \
    }
#define CARRY_SET(T, WIDE)                                                                                             \
    CARRIES(add_cc_##T, T, WIDE, 0, 1, 0, (x = a, y = b))                                                              \
    CARRIES(addc_##T, T, WIDE, 1, 0, 0, (x = a, y = b))                                                                \
    CARRIES(addc_cc_##T, T, WIDE, 1, 1, 0, (x = a, y = b))                                                             \
    CARRIES(sub_cc_##T, T, WIDE, 0, 1, 1, (x = a, y = b))                                                              \
    CARRIES(subc_##T, T, WIDE, 1, 0, 1, (x = a, y = b))                                                                \
    CARRIES(subc_cc_##T, T, WIDE, 1, 1, 1, (x = a, y = b))                                                             \
    CARRIES(mad_lo_cc_##T, T, WIDE, 0, 1, 0, (x = (T)((WIDE)a * b), y = c))                                            \
    CARRIES(madc_lo_cc_##T, T, WIDE, 1, 1, 0, (x = (T)((WIDE)a * b), y = c))                                           \
    CARRIES(madc_lo_##T, T, WIDE, 1, 0, 0, (x = (T)((WIDE)a * b), y = c))                                              \
    CARRIES(mad_hi_cc_##T, T, WIDE, 0, 1, 0, (x = (T)((WIDE)a * b >> 8 * sizeof(T)), y = c))                           \
    CARRIES(madc_hi_cc_##T, T, WIDE, 1, 1, 0, (x = (T)((WIDE)a * b >> 8 * sizeof(T)), y = c))                          \
    CARRIES(madc_hi_##T, T, WIDE, 1, 0, 0, (x = (T)((WIDE)a * b >> 8 * sizeof(T)), y = c))
CARRY_SET(u32, u64);
CARRY_SET(u64, u128);

// Bits

static u32 reverse(u32 v) {
    u32 r = 0;
    for (int k = 0; k < 32; k++) r |= (v >> k & 1) << (31 - k);
    return r;
}

static u32 permute(u32 a, u32 b, u32 which) {
    u64 all = (u64)b << 32 | a;
    u32 r = 0;
    for (int k = 0; k < 4; k++) {
        u32 n = which >> 4 * k & 15, byte = all >> 8 * (n & 7) & 255;
        if (n & 8) byte = byte & 128 ? 255 : 0;
        r |= byte << 8 * k;
    }
    return r;
}

UNARY(brev_u32, u32, u32, reverse(a));
UNARY(popc_u32, u32, u32, (u32)__builtin_popcount(a));
UNARY(popc_u64, u32, u64, (u32)__builtin_popcountll(a));
UNARY(clz_u32, u32, u32, a ? (u32)__builtin_clz(a) : 32);
UNARY(clz_u64, u32, u64, a ? (u32)__builtin_clzll(a) : 64);
UNARY(bfind_shift_u32, u32, u32, a ? (u32)__builtin_clz(a) : UINT32_MAX);
TERNARY(prmt_u32, u32, u32, u32, u32, permute(a, b, c));
TERNARY(shf_left, u32, u32, u32, u32, (u32)(((u64)b << 32 | a) << (c & 31) >> 32));
TERNARY(shf_right, u32, u32, u32, u32, (u32)(((u64)b << 32 | a) >> (c & 31)));

#define INSERTS(T)                                                                                                     \
    static void bfi_##T(warp *w, const insn *i, uint32_t mask) {                                                       \
        uint8_t *to = ROW_AT(0);                                                                                       \
        const uint8_t *pa = ROW_AT(1), *pb = ROW_AT(2), *at = ROW_AT(3), *length = ROW_AT(4);                          \
        EACH_LANE(u32 n = GET_u32(length, l) & 255; u32 p = GET_u32(at, l) & 255;                                      \
                  T ones = n >= 8 * sizeof(T) ? (T) ~(T)0 : ((T)1 << n) - 1; T m = p >= 8 * sizeof(T) ? 0 : ones << p; \
                  PUT_##T(to, l, (GET_##T(pb, l) & ~m) | (p >= 8 * sizeof(T) ? 0 : GET_##T(pa, l) << p & m)););        \
    }
INSERTS(u32);
INSERTS(u64);

// Predicates

static void put_mask(uint8_t *to, u32 value, u32 mask) {
    *(u32 *)to = (*(u32 *)to & ~mask) | (value & mask);
}

#define ON_MASKS(name, value)                                                                                          \
    static void name(warp *w, const insn *i, uint32_t mask) {                                                          \
        u32 a = *(u32 *)ROW_AT(1), b = *(u32 *)ROW_AT(i->count > 2 ? 2 : 1);                                           \
        (void)b;                                                                                                       \
        put_mask(ROW_AT(0), value, mask);                                                                              \
    }
ON_MASKS(mov_pred, a);
ON_MASKS(not_pred, ~a);
ON_MASKS(and_pred, a &b);
ON_MASKS(or_pred, a | b);
ON_MASKS(xor_pred, a ^ b);

#define SELECTS(T)                                                                                                     \
    static void selp_##T(warp *w, const insn *i, uint32_t mask) {                                                      \
        uint8_t *to = ROW_AT(0);                                                                                       \
        const uint8_t *pa = ROW_AT(1), *pb = ROW_AT(2);                                                                \
        u32 which = *(const u32 *)ROW_AT(3);                                                                           \
        EACH_LANE(T a = GET_##T(pa, l); T b = GET_##T(pb, l); PUT_##T(to, l, which >> l & 1 ? a : b););                \
    }
SELECTS(u16);
SELECTS(u32);
SELECTS(u64);

enum {
    CMP_EQ,
    CMP_NE,
    CMP_LT,
    CMP_LE,
    CMP_GT,
    CMP_GE,
    CMP_EQU,
    CMP_NEU,
    CMP_LTU,
    CMP_LEU,
    CMP_GTU,
    CMP_GEU,
    CMP_NUM,
    CMP_NAN
};

#define COMPARE(test)                                                                                                  \
    for (int l = 0; l < WARP; l++) r |= (u32)(test) << l;                                                              \
    break
#define COMPARES(T, unordered)                                                                                         \
    static void setp_##T(warp *w, const insn *i, uint32_t mask) {                                                      \
        const uint8_t *pa = ROW_AT(1), *pb = ROW_AT(2);                                                                \
        u32 r = 0;                                                                                                     \
        switch (i->imm) {                                                                                              \
        case CMP_EQ: COMPARE(GET_##T(pa, l) == GET_##T(pb, l));                                                        \
        case CMP_NE: COMPARE(GET_##T(pa, l) != GET_##T(pb, l) && !(unordered));                                        \
        case CMP_LT: COMPARE(GET_##T(pa, l) < GET_##T(pb, l));                                                         \
        case CMP_LE: COMPARE(GET_##T(pa, l) <= GET_##T(pb, l));                                                        \
        case CMP_GT: COMPARE(GET_##T(pa, l) > GET_##T(pb, l));                                                         \
        case CMP_GE: COMPARE(GET_##T(pa, l) >= GET_##T(pb, l));                                                        \
        case CMP_EQU: COMPARE(GET_##T(pa, l) == GET_##T(pb, l) || (unordered));                                        \
        case CMP_NEU: COMPARE(GET_##T(pa, l) != GET_##T(pb, l));                                                       \
        case CMP_LTU: COMPARE(!(GET_##T(pa, l) >= GET_##T(pb, l)));                                                    \
        case CMP_LEU: COMPARE(!(GET_##T(pa, l) > GET_##T(pb, l)));                                                     \
        case CMP_GTU: COMPARE(!(GET_##T(pa, l) <= GET_##T(pb, l)));                                                    \
        case CMP_GEU: COMPARE(!(GET_##T(pa, l) < GET_##T(pb, l)));                                                     \
        case CMP_NUM: COMPARE(!(unordered));                                                                           \
        default: COMPARE(unordered);                                                                                   \
        }                                                                                                              \
        put_mask(ROW_AT(0), r, mask);                                                                                  \
    }
#define COMPARES_INTEGER(T) COMPARES(T, 0)
EACH_INTEGER(COMPARES_INTEGER);
COMPARES(f32, isnan(GET_f32(pa, l)) || isnan(GET_f32(pb, l)));
COMPARES(f64, isnan(GET_f64(pa, l)) || isnan(GET_f64(pb, l)));

operation *lanes_compare(const char *type, const char *how, insn *i) {
    static const char *const kinds[] = {
        "eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"};
    static const struct {
        const char *type;
        operation *run;
    } table[] = {{"u16", setp_u16}, {"b16", setp_u16}, {"s16", setp_s16}, {"u32", setp_u32}, {"b32", setp_u32},
        {"s32", setp_s32}, {"u64", setp_u64}, {"b64", setp_u64}, {"s64", setp_s64}, {"f32", setp_f32},
        {"f64", setp_f64}};
    i->imm = -1;
    for (int k = 0; k < (int)(sizeof kinds / sizeof *kinds); k++)
        if (strcmp(how, kinds[k]) == 0) i->imm = k;
    for (size_t k = 0; i->imm >= 0 && k < sizeof table / sizeof *table; k++)
        if (strcmp(type, table[k].type) == 0) return table[k].run;
    fprintf(stderr, "card: the comparison %s.%s is not known\n", how, type);
    abort();
}

// Memory

// An element of 1, 2, 4 or 8 bytes: copies of a known size are single instructions.
#define FETCH(T)                                                                                                       \
    {                                                                                                                  \
        T v;                                                                                                           \
        memcpy(&v, at, sizeof v);                                                                                      \
        return (u64)v;                                                                                                 \
    }
static inline u64 fetch(const uint8_t *at, int size, bool is_signed) {
    if (is_signed) switch (size) {
        case 1: FETCH(s8)
        case 2: FETCH(s16)
        case 4: FETCH(s32)
        default: FETCH(s64)
        }
    switch (size) {
    case 1: FETCH(u8)
    case 2: FETCH(u16)
    case 4: FETCH(u32)
    default: FETCH(u64)
    }
}

static inline void deposit(uint8_t *at, u64 v, int size) {
    switch (size) {
    case 1: memcpy(at, &v, 1); return;
    case 2: memcpy(at, &v, 2); return;
    case 4: memcpy(at, &v, 4); return;
    default: memcpy(at, &v, 8);
    }
}

void lanes_load(warp *w, const insn *i, uint32_t mask) {
    for (int l = 0; l < WARP; l++) {
        if (!(mask >> l & 1)) continue;
        const uint8_t *from = grid_reach(w, i, l, i->count);
        for (int k = 0; k < i->count; k++, from += i->size) {
            u64 v = fetch(from, i->size, i->is_signed);
            if (i->bytes[k] == 8)
                PUT_u64(ROW_AT(k), l, v);
            else
                PUT_u32(ROW_AT(k), l, v);
        }
    }
}

void lanes_store(warp *w, const insn *i, uint32_t mask) {
    for (int l = 0; l < WARP; l++) {
        if (!(mask >> l & 1)) continue;
        uint8_t *to = grid_reach(w, i, l, 0);
        for (int k = 1; k <= i->count; k++, to += i->size) {
            u64 v = i->bytes[k] == 8 ? GET_u64(ROW_AT(k), l) : GET_u32(ROW_AT(k), l);
            deposit(to, v, i->size);
        }
    }
}

static void atom_add_u32(warp *w, const insn *i, uint32_t mask) {
    for (int l = 0; l < WARP; l++) {
        if (!(mask >> l & 1)) continue;
        u32 *at = grid_reach(w, i, l, 1), was = *at;
        *at = was + GET_u32(ROW_AT(2), l);
        PUT_u32(ROW_AT(0), l, was);
    }
}

static void atom_add_u64(warp *w, const insn *i, uint32_t mask) {
    for (int l = 0; l < WARP; l++) {
        if (!(mask >> l & 1)) continue;
        u64 *at = grid_reach(w, i, l, 1), was = *at;
        *at = was + GET_u64(ROW_AT(2), l);
        PUT_u64(ROW_AT(0), l, was);
    }
}

// Generic addresses are those of this process; a space's begin at 0.
static void to_generic(warp *w, const insn *i, uint32_t mask) {
    EACH_LANE(PUT_s64(ROW_AT(0), l, GET_s64(ROW_AT(1), l) + grid_base(w, i->space, l)););
}

static void from_generic(warp *w, const insn *i, uint32_t mask) {
    EACH_LANE(PUT_s64(ROW_AT(0), l, GET_s64(ROW_AT(1), l) - grid_base(w, i->space, l)););
}

operation *lanes_reach(bool generic) {
    return generic ? to_generic : from_generic;
}

static void nothing(warp *w, const insn *i, uint32_t mask) {
    (void)w, (void)i, (void)mask;
}

// Asynchronous copies are done as late as they may be, when their group is waited for.

void lanes_copy(warp *w, const insn *i, uint32_t mask) {
    insn to = *i, from = *i;
    to.space = SPACE_SHARED, to.imm = i->target;
    from.space = SPACE_GLOBAL;
    for (int l = 0; l < WARP; l++) {
        if (!(mask >> l & 1)) continue;
        int bytes = (int)GET_u32(ROW_AT(2), l), have = (int)GET_u32(ROW_AT(3), l);
        pending_copy c = {.bytes = bytes, .filled = have};
        if ((bytes != 4 && bytes != 8 && bytes != 16) || have < 0 || have > bytes)
            grid_fault(w, GRID_TRAP, l, "a copy of no size that there is");
        to.size = bytes, to.count = 1;
        from.size = 1, from.count = have;
        c.to = grid_reach(w, &to, l, 0);
        if (have > 0) c.from = grid_reach(w, &from, l, 1);
        if ((uintptr_t)c.from % (uintptr_t)bytes) grid_fault(w, GRID_MISALIGNED, l, "a misaligned address");
        if ((w->copy_count & (w->copy_count - 1)) == 0)
            w->copies = realloc(w->copies, sizeof c * (size_t)(w->copy_count ? 2 * w->copy_count : 1));
        w->copies[w->copy_count++] = c;
    }
}

static void copy_commit(warp *w, const insn *i, uint32_t mask) {
    (void)i, (void)mask;
    if (w->group_count == 64) grid_fault(w, GRID_TRAP, 0, "64 groups of copies are under way");
    w->groups[w->group_count++] = w->copy_count;
}

// Until at most `left` groups are under way.
static void finish_copies(warp *w, int left) {
    int groups = w->group_count - left, copies;
    if (groups <= 0) return;
    copies = w->groups[groups - 1];
    for (int k = 0; k < copies; k++) {
        const pending_copy *c = &w->copies[k];
        memset(c->to, 0, (size_t)c->bytes);
        if (c->filled > 0) memcpy(c->to, c->from, (size_t)c->filled);
    }
    memmove(w->copies, w->copies + copies, sizeof *w->copies * (size_t)(w->copy_count - copies));
    pending_copy *rest = malloc(sizeof *rest * (size_t)(w->copy_count > 0 ? 2 * w->copy_count : 1));
    w->copy_count -= copies;
    memcpy(rest, w->copies, sizeof *rest * (size_t)w->copy_count);
    free(w->copies);
    w->copies = rest;
    for (int k = 0; k < left; k++) w->groups[k] = w->groups[groups + k] - copies;
    w->group_count = left;
}

static void copy_wait(warp *w, const insn *i, uint32_t mask) {
    (void)mask;
    finish_copies(w, (int)GET_u32(ROW_AT(0), 0));
}

static void copy_wait_all(warp *w, const insn *i, uint32_t mask) {
    copy_commit(w, i, mask);
    finish_copies(w, 0);
}

// A register and its parts

static void pack(warp *w, const insn *i, uint32_t mask) {
    EACH_LANE(u64 v = 0; for (int k = 0; k < i->count; k++) {
        u64 part = GET_u32(ROW_AT(k + 1), l);
        if (i->size < 4) part &= (1u << 8 * i->size) - 1;
        v |= part << 8 * i->size * k;
    } if (i->bytes[0] == 8) PUT_u64(ROW_AT(0), l, v);
              else PUT_u32(ROW_AT(0), l, v););
}

static void unpack(warp *w, const insn *i, uint32_t mask) {
    EACH_LANE(u64 v = i->bytes[i->count] == 8 ? GET_u64(ROW_AT(i->count), l) : GET_u32(ROW_AT(i->count), l);
              for (int k = 0; k < i->count; k++) {
                  u64 part = v >> 8 * i->size * k;
                  PUT_u32(ROW_AT(k), l, i->size < 4 ? part & ((1u << 8 * i->size) - 1) : part);
              });
}

operation *lanes_pack(bool into) {
    return into ? pack : unpack;
}

// Conversions

#define FROM_INTEGER(D, S)                                                                                             \
    static void cvt_##D##_##S(warp *w, const insn *i, uint32_t mask) {                                                 \
        uint8_t *to = ROW_AT(0);                                                                                       \
        const uint8_t *from = ROW_AT(1);                                                                               \
        bool wide = i->bytes[0] == 8, from_wide = i->bytes[1] == 8; /* a register may be wider than what is read */    \
        EACH_LANE(D v = (D)(from_wide ? (S)GET_u64(from, l) : GET_##S(from, l)); if (wide) PUT_s64(to, l, (s64)v);     \
                  else PUT_s32(to, l, (s32)v););                                                                       \
    }
#define FROM_EACH_INTEGER(D)                                                                                           \
    FROM_INTEGER(D, u8)                                                                                                \
    FROM_INTEGER(D, s8)                                                                                                \
    FROM_INTEGER(D, u16)                                                                                               \
    FROM_INTEGER(D, s16) FROM_INTEGER(D, u32) FROM_INTEGER(D, s32) FROM_INTEGER(D, u64) FROM_INTEGER(D, s64)
FROM_EACH_INTEGER(u8);
FROM_EACH_INTEGER(s8);
FROM_EACH_INTEGER(u16);
FROM_EACH_INTEGER(s16);
FROM_EACH_INTEGER(u32);
FROM_EACH_INTEGER(s32);
FROM_EACH_INTEGER(u64);
FROM_EACH_INTEGER(s64);

#define FLOAT_OF(S) UNARY(cvt_f32_##S, f32, S, (f32)a) UNARY(cvt_f64_##S, f64, S, (f64)a)
FLOAT_OF(u8);
FLOAT_OF(s8);
FLOAT_OF(u16);
FLOAT_OF(s16);
FLOAT_OF(u32);
FLOAT_OF(s32);
FLOAT_OF(u64);
FLOAT_OF(s64);
UNARY(cvt_f32_f32, f32, f32, a);
UNARY(cvt_f32_f64, f32, f64, (f32)a);
UNARY(cvt_f64_f32, f64, f32, (f64)a);

static f64 rounded(f64 v, s64 how) {
    return how == 'z' ? trunc(v) : how == 'm' ? floor(v) : how == 'p' ? ceil(v) : nearbyint(v);
}

// To an integer, at the nearest end of its range where the value is beyond. A NaN becomes 0 from 32 to 32 bits, else
// the highest bit alone.
#define TO_INTEGER(D, S, least, most)                                                                                  \
    static D D##_of_##S(S v, s64 how) {                                                                                \
        f64 whole = rounded((f64)v, how);                                                                              \
        if (isnan(v)) return sizeof(S) == 4 && sizeof(D) == 4 ? 0 : (D)((u64)1 << (8 * sizeof(D) - 1));                \
        return whole <= (f64)(least) ? (least) : whole >= (f64)(most) ? (most) : (D)whole;                             \
    }                                                                                                                  \
    UNARY(cvt_##D##_##S, D, S, D##_of_##S(a, i->imm))
#define TO_EACH_INTEGER(S)                                                                                             \
    TO_INTEGER(s32, S, INT32_MIN, INT32_MAX)                                                                           \
    TO_INTEGER(u32, S, 0, UINT32_MAX) TO_INTEGER(s64, S, INT64_MIN, INT64_MAX) TO_INTEGER(u64, S, 0, UINT64_MAX)
TO_EACH_INTEGER(f32);
TO_EACH_INTEGER(f64);

static void cvt_whole_f32(warp *w, const insn *i, uint32_t mask) {
    EACH_LANE(PUT_f32(ROW_AT(0), l, (f32)rounded((f64)GET_f32(ROW_AT(1), l), i->imm)););
}

UNARY(cvt_sat_f32, f32, f32, isnan(a) || a < 0 ? 0 : a > 1 ? 1 : a);

static u32 bits_of(f32 v) {
    u32 bits;
    memcpy(&bits, &v, sizeof bits);
    return bits;
}

static u16 bf16_of(f32 v) {
    u32 bits = bits_of(v);
    return isnan(v) ? 0x7FFF : (u16)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

static u32 tf32_of(f32 v) {
    u32 bits = bits_of(v);
    return isnan(v) ? 0x7FFFE000u : isinf(v) ? bits : (bits + 0x1000) & ~0x1FFFu;
}

UNARY(cvt_f32_f16, f32, u16, half_widen(a));

static f32 widen_bf16(u16 v) {
    u32 bits = (u32)v << 16;
    f32 r;
    memcpy(&r, &bits, sizeof r);
    return r;
}

UNARY(cvt_f32_bf16, f32, u16, widen_bf16(a));
UNARY(cvt_f16_f32, u16, f32, half_narrow(a));
UNARY(cvt_bf16_f32, u16, f32, bf16_of(a));
UNARY(cvt_tf32_f32, u32, f32, tf32_of(a));
BINARY(cvt_f16x2_f32, u32, f32, f32, (u32)half_narrow(a) << 16 | half_narrow(b));
BINARY(cvt_bf16x2_f32, u32, f32, f32, (u32)bf16_of(a) << 16 | bf16_of(b));

operation *lanes_convert(const char *to, const char *from, const char *rounding, bool saturated) {
#define PAIR(D, S)                                                                                                     \
    { #D, #S, cvt_##D##_##S }
#define ROW_OF(D)                                                                                                      \
    PAIR(D, u8), PAIR(D, s8), PAIR(D, u16), PAIR(D, s16), PAIR(D, u32), PAIR(D, s32), PAIR(D, u64), PAIR(D, s64)
    static const struct {
        const char *to, *from;
        operation *run;
    } table[] = {ROW_OF(u8), ROW_OF(s8), ROW_OF(u16), ROW_OF(s16), ROW_OF(u32), ROW_OF(s32), ROW_OF(u64), ROW_OF(s64),
        ROW_OF(f32), ROW_OF(f64), PAIR(f32, f64), PAIR(f64, f32), PAIR(s32, f32), PAIR(u32, f32), PAIR(s64, f32),
        PAIR(u64, f32), PAIR(s32, f64), PAIR(u32, f64), PAIR(s64, f64), PAIR(u64, f64), PAIR(f32, f16), PAIR(f32, bf16),
        PAIR(f16, f32), PAIR(bf16, f32), PAIR(tf32, f32), PAIR(f16x2, f32), PAIR(bf16x2, f32)};
    if (strcmp(to, "f32") == 0 && strcmp(from, "f32") == 0)
        return saturated ? cvt_sat_f32 : rounding[0] && rounding[1] && rounding[2] == 'i' ? cvt_whole_f32 : cvt_f32_f32;
    for (size_t k = 0; k < sizeof table / sizeof *table; k++)
        if (strcmp(to, table[k].to) == 0 && strcmp(from, table[k].from) == 0) return table[k].run;
    fprintf(stderr, "card: the conversion %s of %s is not known\n", to, from);
    abort();
}

// Between the lanes of a warp

// shfl: the lane that each takes from, within segments.
static void shuffle(warp *w, const insn *i, uint32_t mask, int kind) {
    const u32 *from = (const u32 *)ROW_AT(2);
    u32 value[WARP], inside = 0;
    for (int l = 0; l < WARP; l++) {
        u32 b = GET_u32(ROW_AT(3), l) & 31, c = GET_u32(ROW_AT(4), l), segment = c >> 8 & 31, clamp = c & 31;
        int most = (int)((u32)l & segment) | (int)(clamp & ~segment), least = (int)((u32)l & segment);
        int j = kind == 'u'   ? l - (int)b
                : kind == 'd' ? l + (int)b
                : kind == 'b' ? l ^ (int)b
                              : least | (int)(b & ~segment);
        bool in = kind == 'u' ? j >= most : j <= most;
        if (!in) j = l;
        inside |= (u32)in << l;
        value[l] = from[j];
    }
    uint8_t *to = ROW_AT(0);
    EACH_LANE(PUT_u32(to, l, value[l]););
    put_mask(ROW_AT(1), inside, mask);
}

static void shfl_up(warp *w, const insn *i, uint32_t mask) {
    shuffle(w, i, mask, 'u');
}
static void shfl_down(warp *w, const insn *i, uint32_t mask) {
    shuffle(w, i, mask, 'd');
}
static void shfl_bfly(warp *w, const insn *i, uint32_t mask) {
    shuffle(w, i, mask, 'b');
}
static void shfl_idx(warp *w, const insn *i, uint32_t mask) {
    shuffle(w, i, mask, 'i');
}

static u32 votes(warp *w, const insn *i, uint32_t mask) {
    u32 v = *(const u32 *)ROW_AT(1);
    return (i->is_not ? ~v : v) & mask;
}

static void vote_ballot(warp *w, const insn *i, uint32_t mask) {
    u32 v = votes(w, i, mask);
    EACH_LANE(PUT_u32(ROW_AT(0), l, v););
}
static void vote_all(warp *w, const insn *i, uint32_t mask) {
    put_mask(ROW_AT(0), votes(w, i, mask) == mask ? UINT32_MAX : 0, mask);
}
static void vote_any(warp *w, const insn *i, uint32_t mask) {
    put_mask(ROW_AT(0), votes(w, i, mask) ? UINT32_MAX : 0, mask);
}

static void match_any(warp *w, const insn *i, uint32_t mask) {
    u32 a[WARP];
    memcpy(a, ROW_AT(1), sizeof a);
    for (int l = 0; l < WARP; l++) {
        u32 same = 0;
        for (int k = 0; k < WARP; k++) same |= (u32)(mask >> k & 1 && a[k] == a[l]) << k;
        if (mask >> l & 1) PUT_u32(ROW_AT(0), l, same);
    }
}

// Products of tensor cores. Lane l has rows l/4 and l/4 + 8 of the first operand and of the result, and column l/4 of
// the second.

typedef struct {
    f32 a[16][16], b[16][8], c[16][8];
} tile;

static void tile_sums(const warp *w, const insn *i, tile *t, int at) {
    for (int l = 0; l < WARP; l++)
        for (int k = 0; k < 4; k++) t->c[l / 4 + k / 2 * 8][l % 4 * 2 + k % 2] = GET_f32(ROW_AT(at + k), l);
}

// A sum is rounded once a product: in what order a card adds its terms is not known.
static void tile_multiply(warp *w, const insn *i, const tile *t, int K) {
    for (int l = 0; l < WARP; l++)
        for (int k = 0; k < 4; k++) {
            int row = l / 4 + k / 2 * 8, column = l % 4 * 2 + k % 2;
            f64 sum = (f64)t->c[row][column];
            for (int j = 0; j < K; j++) sum += (f64)t->a[row][j] * (f64)t->b[j][column];
            PUT_f32(ROW_AT(k), l, (f32)sum);
        }
}

static f32 cut_tf32(u32 bits) {
    f32 v;
    bits &= ~0x1FFFu;
    memcpy(&v, &bits, sizeof v);
    return v;
}

static void mma_tf32(warp *w, const insn *i, uint32_t mask) {
    tile t;
    (void)mask;
    for (int l = 0; l < WARP; l++) {
        for (int k = 0; k < 4; k++) t.a[l / 4 + k % 2 * 8][l % 4 + k / 2 * 4] = cut_tf32(GET_u32(ROW_AT(4 + k), l));
        for (int k = 0; k < 2; k++) t.b[l % 4 + k * 4][l / 4] = cut_tf32(GET_u32(ROW_AT(8 + k), l));
    }
    tile_sums(w, i, &t, 10);
    tile_multiply(w, i, &t, 8);
}

static void mma_low(warp *w, const insn *i, int K, f32 (*widen)(u16)) {
    int words = K / 4, b = 4 + words; // of A in a lane; where B begins
    tile t;
    for (int l = 0; l < WARP; l++)
        for (int e = 0; e < 2; e++) {
            for (int k = 0; k < words; k++)
                t.a[l / 4 + k % 2 * 8][l % 4 * 2 + e + k / 2 * 8] = widen((u16)(GET_u32(ROW_AT(4 + k), l) >> 16 * e));
            for (int k = 0; k < words / 2; k++)
                t.b[l % 4 * 2 + e + k * 8][l / 4] = widen((u16)(GET_u32(ROW_AT(b + k), l) >> 16 * e));
        }
    tile_sums(w, i, &t, b + words / 2);
    tile_multiply(w, i, &t, K);
}

static void mma_bf16_16(warp *w, const insn *i, uint32_t mask) {
    (void)mask;
    mma_low(w, i, 16, widen_bf16);
}
static void mma_f16_16(warp *w, const insn *i, uint32_t mask) {
    (void)mask;
    mma_low(w, i, 16, half_widen);
}
static void mma_f16_8(warp *w, const insn *i, uint32_t mask) {
    (void)mask;
    mma_low(w, i, 8, half_widen);
}

// Four 8 x 8 matrices of 16 bits, whose rows lie where lanes 0 to 7, 8 to 15, ... say.
static void load_matrices(warp *w, const insn *i, bool turned) {
    u16 m[4][8][8];
    for (int l = 0; l < WARP; l++) memcpy(m[l / 8][l % 8], grid_reach(w, i, l, 4), 16);
    for (int k = 0; k < 4; k++)
        for (int l = 0; l < WARP; l++) {
            int a = l / 4, b = l % 4 * 2;
            u32 low = turned ? m[k][b][a] : m[k][a][b], high = turned ? m[k][b + 1][a] : m[k][a][b + 1];
            PUT_u32(ROW_AT(k), l, high << 16 | low);
        }
}

static void ldmatrix(warp *w, const insn *i, uint32_t mask) {
    (void)mask;
    load_matrices(w, i, false);
}
static void ldmatrix_turned(warp *w, const insn *i, uint32_t mask) {
    (void)mask;
    load_matrices(w, i, true);
}

static void movmatrix(warp *w, const insn *i, uint32_t mask) {
    u16 m[8][8];
    (void)mask;
    for (int l = 0; l < WARP; l++)
        for (int e = 0; e < 2; e++) m[l / 4][l % 4 * 2 + e] = (u16)(GET_u32(ROW_AT(1), l) >> 16 * e);
    for (int l = 0; l < WARP; l++) PUT_u32(ROW_AT(0), l, (u32)m[l % 4 * 2 + 1][l / 4] << 16 | m[l % 4 * 2][l / 4]);
}

// The table. Names leave out what changes nothing here: how a result is rounded where that is to the nearest, what is
// flushed to zero, and that an approximation will do.

static const lanes_row rows[] = {
    {"mov.u16", mov_u16, "ww", PLAIN},
    {"mov.b16", mov_u16, "ww", PLAIN},
    {"mov.u32", mov_u32, "ww", PLAIN},
    {"mov.b32", mov_u32, "ww", PLAIN},
    {"mov.s32", mov_u32, "ww", PLAIN},
    {"mov.f32", mov_f32, "ww", PLAIN},
    {"mov.u64", mov_u64, "dd", PLAIN},
    {"mov.b64", mov_u64, "dd", PLAIN},
    {"mov.f64", mov_f64, "dd", PLAIN},
    {"mov.pred", mov_pred, "pp", PLAIN},
    {"not.pred", not_pred, "pp", PLAIN},
    {"and.pred", and_pred, "ppp", PLAIN},
    {"or.pred", or_pred, "ppp", PLAIN},
    {"xor.pred", xor_pred, "ppp", PLAIN},
    {"selp.b16", selp_u16, "wwwp", PLAIN},
    {"selp.u16", selp_u16, "wwwp", PLAIN},
    {"selp.b32", selp_u32, "wwwp", PLAIN},
    {"selp.u32", selp_u32, "wwwp", PLAIN},
    {"selp.s32", selp_u32, "wwwp", PLAIN},
    {"selp.f32", selp_u32, "wwwp", PLAIN},
    {"selp.b64", selp_u64, "dddp", PLAIN},
    {"selp.u64", selp_u64, "dddp", PLAIN},
    {"selp.f64", selp_u64, "dddp", PLAIN},
#define WHOLE_ROWS(T, W, V)                                                                                            \
    {"add." #T, add_##T, W W W, PLAIN}, {"sub." #T, sub_##T, W W W, PLAIN}, {"mul.lo." #T, mul_##T, W W W, PLAIN},     \
        {"mad.lo." #T, mad_##T, W W W W, PLAIN}, {"div." #T, div_##T, W W W, PLAIN},                                   \
        {"rem." #T, rem_##T, W W W, PLAIN}, {"min." #T, min_##T, W W W, PLAIN}, {"max." #T, max_##T, W W W, PLAIN},    \
        {"neg." #T, neg_##T, W W, PLAIN}, {                                                                            \
        "shr." #T, shr_##T, W W "w", PLAIN                                                                             \
    }
    {"abs.s32", abs_s32, "ww", PLAIN},
    {"abs.s64", abs_s64, "dd", PLAIN},
    WHOLE_ROWS(u16, "w", 16),
    WHOLE_ROWS(s16, "w", 16),
    WHOLE_ROWS(u32, "w", 32),
    WHOLE_ROWS(s32, "w", 32),
    WHOLE_ROWS(u64, "d", 64),
    WHOLE_ROWS(s64, "d", 64),
#define BIT_ROWS(B, T, W)                                                                                              \
    {"and." #B, and_##T, W W W, PLAIN}, {"or." #B, or_##T, W W W, PLAIN}, {"xor." #B, xor_##T, W W W, PLAIN},          \
        {"not." #B, not_##T, W W, PLAIN}, {"shl." #B, shl_##T, W W "w", PLAIN}, {                                      \
        "shr." #B, shr_##T, W W "w", PLAIN                                                                             \
    }
    BIT_ROWS(b16, u16, "w"),
    BIT_ROWS(b32, u32, "w"),
    BIT_ROWS(b64, u64, "d"),
#define FLOAT_ROWS(T, W)                                                                                               \
    {"add." #T, add_##T, W W W, PLAIN}, {"sub." #T, sub_##T, W W W, PLAIN}, {"mul." #T, mul_##T, W W W, PLAIN},        \
        {"div." #T, div_##T, W W W, PLAIN}, {"min." #T, min_##T, W W W, PLAIN}, {"max." #T, max_##T, W W W, PLAIN},    \
        {"copysign." #T, copysign_##T, W W W, PLAIN}, {"neg." #T, neg_##T, W W, PLAIN},                                \
        {"abs." #T, abs_##T, W W, PLAIN}, {"sqrt." #T, sqrt_##T, W W, PLAIN}, {"rsqrt." #T, rsqrt_##T, W W, PLAIN},    \
        {"rcp." #T, rcp_##T, W W, PLAIN}, {                                                                            \
        "fma." #T, fma_##T, W W W W, PLAIN                                                                             \
    }
    FLOAT_ROWS(f32, "w"),
    FLOAT_ROWS(f64, "d"),
    {"fma.rm.f32", fma_rm_f32, "wwww", PLAIN},
    {"min.NaN.f32", min_nan_f32, "www", PLAIN},
    {"max.NaN.f32", max_nan_f32, "www", PLAIN},
    {"ex2.f32", ex2_f32, "ww", PLAIN},
    {"lg2.f32", lg2_f32, "ww", PLAIN},
    {"tanh.f32", tanh_f32, "ww", PLAIN},
    {"sin.f32", sin_f32, "ww", PLAIN},
    {"cos.f32", cos_f32, "ww", PLAIN},
    {"mul.wide.u16", mul_wide_u16, "www", PLAIN},
    {"mul.wide.s16", mul_wide_s16, "www", PLAIN},
    {"mul.wide.u32", mul_wide_u32, "dww", PLAIN},
    {"mul.wide.s32", mul_wide_s32, "dww", PLAIN},
    {"mad.wide.u16", mad_wide_u16, "wwww", PLAIN},
    {"mad.wide.u32", mad_wide_u32, "dwwd", PLAIN},
    {"mad.wide.s32", mad_wide_s32, "dwwd", PLAIN},
    {"mul.hi.u32", mul_hi_u32, "www", PLAIN},
    {"mul.hi.s32", mul_hi_s32, "www", PLAIN},
    {"mul.hi.u64", mul_hi_u64, "ddd", PLAIN},
    {"mul.hi.s64", mul_hi_s64, "ddd", PLAIN},
    {"mad.hi.u32", mad_hi_u32, "wwww", PLAIN},
#define CARRY_ROWS(T, U, W)                                                                                            \
    {"add.cc." #T, add_cc_##U, W W W, PLAIN}, {"addc." #T, addc_##U, W W W, PLAIN},                                    \
        {"addc.cc." #T, addc_cc_##U, W W W, PLAIN}, {"sub.cc." #T, sub_cc_##U, W W W, PLAIN},                          \
        {"subc." #T, subc_##U, W W W, PLAIN}, {"subc.cc." #T, subc_cc_##U, W W W, PLAIN},                              \
        {"mad.lo.cc." #T, mad_lo_cc_##U, W W W W, PLAIN}, {"madc.lo.cc." #T, madc_lo_cc_##U, W W W W, PLAIN},          \
        {"madc.lo." #T, madc_lo_##U, W W W W, PLAIN}, {"mad.hi.cc." #T, mad_hi_cc_##U, W W W W, PLAIN},                \
        {"madc.hi.cc." #T, madc_hi_cc_##U, W W W W, PLAIN}, {                                                          \
        "madc.hi." #T, madc_hi_##U, W W W W, PLAIN                                                                     \
    }
    CARRY_ROWS(u32, u32, "w"),
    CARRY_ROWS(s32, u32, "w"),
    CARRY_ROWS(u64, u64, "d"),
    CARRY_ROWS(s64, u64, "d"),
    {"brev.b32", brev_u32, "ww", PLAIN},
    {"popc.b32", popc_u32, "ww", PLAIN},
    {"popc.b64", popc_u64, "wd", PLAIN},
    {"clz.b32", clz_u32, "ww", PLAIN},
    {"clz.b64", clz_u64, "wd", PLAIN},
    {"bfind.shiftamt.u32", bfind_shift_u32, "ww", PLAIN},
    {"prmt.b32", prmt_u32, "wwww", PLAIN},
    {"shf.l.wrap.b32", shf_left, "wwww", PLAIN},
    {"shf.r.wrap.b32", shf_right, "wwww", PLAIN},
    {"bfi.b32", bfi_u32, "wwwww", PLAIN},
    {"bfi.b64", bfi_u64, "dddww", PLAIN},
    {"atom.add.u32", atom_add_u32, "www", PLAIN},
    {"atom.add.u64", atom_add_u64, "ddd", PLAIN},
    {"cp.async.commit_group", copy_commit, "", PLAIN},
    {"cp.async.wait_group", copy_wait, "w", PLAIN},
    {"cp.async.wait_all", copy_wait_all, "", PLAIN},
    {"membar.gl", nothing, "", PLAIN},
    {"membar.cta", nothing, "", PLAIN},
    {"fence.acq_rel.gpu", nothing, "", PLAIN},
    {"griddepcontrol.wait", nothing, "", PLAIN},
    {"griddepcontrol.launch_dependents", nothing, "", PLAIN},
    {"prefetch.global.L2", nothing, "d", PLAIN},
    {"bar.sync", nothing, "ww", BARRIER},
    {"bar.warp.sync", nothing, "w", CONVERGENT},
    {"shfl.sync.up.b32", shfl_up, "wpwwww", CONVERGENT},
    {"shfl.sync.down.b32", shfl_down, "wpwwww", CONVERGENT},
    {"shfl.sync.bfly.b32", shfl_bfly, "wpwwww", CONVERGENT},
    {"shfl.sync.idx.b32", shfl_idx, "wpwwww", CONVERGENT},
    {"vote.sync.ballot.b32", vote_ballot, "wpw", CONVERGENT},
    {"vote.sync.all.pred", vote_all, "ppw", CONVERGENT},
    {"vote.sync.any.pred", vote_any, "ppw", CONVERGENT},
    {"match.any.sync.b32", match_any, "www", CONVERGENT},
    {"mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", mma_tf32, "wwwwwwwwwwwwww", CONVERGENT},
    {"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", mma_bf16_16, "wwwwwwwwwwwwww", CONVERGENT},
    {"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", mma_f16_16, "wwwwwwwwwwwwww", CONVERGENT},
    {"mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32", mma_f16_8, "wwwwwwwwwww", CONVERGENT},
    {"mbarrier.init.shared::cta.b64", hopper_barrier_init, "ww", PLAIN},
    {"mbarrier.arrive.shared::cta.b64", hopper_arrive, "dw", PLAIN},
    {"mbarrier.arrive.expect_tx.shared::cta.b64", hopper_arrive_expecting, "dww", PLAIN},
    {"mbarrier.try_wait.parity.shared::cta.b64", hopper_try_wait, "pww", POLL},
    {"fence.mbarrier_init.release.cluster", nothing, "", PLAIN},
    {"fence.proxy.async.shared::cta", nothing, "", PLAIN},
    {"prefetch.tensormap", nothing, "d", PLAIN},
    {"cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes", hopper_load, "wdwww", PLAIN},
    {"cp.async.bulk.tensor.2d.global.shared::cta.bulk_group", hopper_store, "dwww", PLAIN},
    {"cp.async.bulk.prefetch.tensor.2d.L2.global.tile", nothing, "dww", PLAIN},
    {"cp.async.bulk.commit_group", nothing, "", PLAIN},
    {"cp.async.bulk.wait_group.read", nothing, "w", PLAIN},
    {"wgmma.fence.sync.aligned", nothing, "", CONVERGENT},
    {"wgmma.commit_group.sync.aligned", nothing, "", CONVERGENT},
    {"wgmma.wait_group.sync.aligned", nothing, "w", CONVERGENT},
    {"wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16", hopper_multiply_bf16, "ddpww", CONVERGENT},
    {"wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16", hopper_multiply_f16, "ddpww", CONVERGENT},
    {"wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16", hopper_multiply_bf16, "ddpww", CONVERGENT},
    {"wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16", hopper_multiply_f16, "ddpww", CONVERGENT},
    {"wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16", hopper_multiply_bf16, "ddpww", CONVERGENT},
    {"wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16", hopper_multiply_f16, "ddpww", CONVERGENT},
    {"ldmatrix.sync.aligned.m8n8.x4.shared.b16", ldmatrix, "wwwww", CONVERGENT},
    {"ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16", ldmatrix_turned, "wwwww", CONVERGENT},
    {"movmatrix.sync.aligned.m8n8.trans.b16", movmatrix, "ww", CONVERGENT},
};

// Leaves out parts of a name that change nothing.
static void plain_name(const char *name, char *to, size_t room) {
    static const char *const parts[] = {".rn", ".ftz", ".approx", ".full"};
    snprintf(to, room, "%s", name);
    for (size_t k = 0; k < sizeof parts / sizeof *parts; k++) {
        size_t n = strlen(parts[k]);
        char *at = strstr(to, parts[k]);
        if (at && (at[n] == '.' || at[n] == '\0')) memmove(at, at + n, strlen(at + n) + 1);
    }
}

const lanes_row *lanes_find(const char *name) {
    char plain[96];
    plain_name(name, plain, sizeof plain);
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        if (strcmp(rows[k].name, plain) == 0) return &rows[k];
    return NULL;
}
