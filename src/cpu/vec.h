// Vectors of fp32 in the compiler's own notation, as wide as the variant's instruction set, and the functions that the
// recurrent kernel needs of them. VEC is the number of lanes.
//
// exp and its relatives: x = n ln 2 + r with |r| <= ln 2 / 2; a polynomial gives e^r - 1 with a relative error of about
// 1e-7, from which tanh is formed without cancellation near 0.
#ifndef TRADEWIND_CPU_VEC_H
#define TRADEWIND_CPU_VEC_H

#include <stdint.h>
#include <string.h>

#if defined(__AVX512F__)
enum { VEC = 16 };
#elif defined(__AVX2__)
enum { VEC = 8 };
#else
enum { VEC = 4 };
#endif

#define VEC_FN static inline __attribute__((always_inline))

typedef float vec __attribute__((vector_size(VEC * 4)));
typedef int32_t veci __attribute__((vector_size(VEC * 4)));
typedef float vec_unaligned __attribute__((vector_size(VEC * 4), aligned(4), may_alias));

VEC_FN vec vec_load(const float *p) {
    return *(const vec_unaligned *)p;
}

VEC_FN void vec_store(float *p, vec v) {
    *(vec_unaligned *)p = v;
}

VEC_FN vec vec_all(float v) {
    return v - (vec){0};
}

// Lane by lane: mask ? a : b, where a mask's lanes are all ones or all zeros.
VEC_FN vec vec_select(veci mask, vec a, vec b) {
    return (vec)(((veci)a & mask) | ((veci)b & ~mask));
}

VEC_FN vec vec_between(vec x, float low, float high) {
    x = vec_select(x < low, vec_all(low), x);
    return vec_select(x > high, vec_all(high), x);
}

// Splits e^x - 1 into 2^n * em + (2^n - 1); returns em, sets *power to 2^n. x within [-87, 87].
VEC_FN vec vec_expm1_parts(vec x, vec *power) {
    const float shift = 12582912.0f; // 1.5 * 2^23: adding it rounds to an integer
    vec shifted = x * 1.44269504f + shift;
    vec n = shifted - shift;
    vec r = x - n * 0.693145752f;
    r = r - n * 1.42860677e-6f;
    veci exponent = ((veci)shifted - (veci)vec_all(shift) + 127) << 23;
    *power = (vec)exponent;
    vec p = r * (1.0f / 5040) + (1.0f / 720);
    p = p * r + (1.0f / 120);
    p = p * r + (1.0f / 24);
    p = p * r + (1.0f / 6);
    p = p * r + 0.5f;
    return p * (r * r) + r;
}

VEC_FN vec vec_sigmoid(vec x) {
    vec power, em = vec_expm1_parts(vec_between(-x, -87, 87), &power);
    return 1.0f / (1.0f + (em * power + power));
}

// tanh x = (e^2x - 1) / (e^2x + 1); beyond |x| = 9 it is 1 to the last bit.
VEC_FN vec vec_tanh(vec x) {
    vec power, em = vec_expm1_parts(vec_between(x + x, -18, 18), &power);
    vec e = em * power + (power - 1.0f);
    return e / (e + 2.0f);
}

#endif
