// Vectors of fp32 in the compiler's own notation, as wide as the variant's instruction set, and the functions that the
// recurrent kernel needs of them. VEC is the number of lanes.
//
// exp and its relatives: x = n ln 2 + r with |r| <= ln 2 / 2; a polynomial gives e^r - 1 with a relative error of about
// 1e-7, from which tanh is formed without cancellation near 0. Division is a reciprocal estimate refined to fp32's last
// bit or so, where the processor has one: dividers are several times slower than multipliers.
#ifndef TRADEWIND_CPU_VEC_H
#define TRADEWIND_CPU_VEC_H

#include <stdint.h>
#include <string.h>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

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

// Within [low, high]; a NaN stays one.
VEC_FN vec vec_between(vec x, float low, float high) {
#if defined(__AVX512F__)
    return (vec)_mm512_min_ps(_mm512_set1_ps(high), _mm512_max_ps(_mm512_set1_ps(low), (__m512)x));
#elif defined(__AVX2__)
    return (vec)_mm256_min_ps(_mm256_set1_ps(high), _mm256_max_ps(_mm256_set1_ps(low), (__m256)x));
#else
    veci below = x<low, above = x> high;
    x = (vec)(((veci)vec_all(low) & below) | ((veci)x & ~below));
    return (vec)(((veci)vec_all(high) & above) | ((veci)x & ~above));
#endif
}

// 1 / x for x in the normal range, by an estimate and one Newton step.
VEC_FN vec vec_reciprocal(vec x) {
#if defined(__AVX512F__)
    vec y = (vec)_mm512_rcp14_ps((__m512)x);
    return y + y * (1.0f - x * y);
#elif defined(__AVX2__)
    vec y = (vec)_mm256_rcp_ps((__m256)x);
    return y + y * (1.0f - x * y);
#else
    return 1.0f / x;
#endif
}

// Splits e^x - 1 into 2^n * em + (2^n - 1); returns em, sets *power to 2^n. x within [-87, 87].
VEC_FN vec vec_expm1_parts(vec x, vec *power) {
    const float shift = 12583039.0f; // 1.5 * 2^23 + 127: adding it rounds to an integer and biases it as an exponent
    vec shifted = x * 1.44269504f + shift;
    vec n = shifted - shift;
    vec r = x - n * 0.693145752f;
    r = r - n * 1.42860677e-6f;
    *power = (vec)((veci)shifted << 23);
    vec p = r * (1.0f / 720) + (1.0f / 120);
    p = p * r + (1.0f / 24);
    p = p * r + (1.0f / 6);
    p = p * r + 0.5f;
    return p * (r * r) + r;
}

VEC_FN vec vec_sigmoid(vec x) {
    vec power, em = vec_expm1_parts(vec_between(-x, -87, 87), &power);
    return vec_reciprocal(1.0f + (em * power + power));
}

// tanh x = (e^2x - 1) / (e^2x + 1); beyond |x| = 9 it is 1 to the last bit.
VEC_FN vec vec_tanh(vec x) {
    vec power, em = vec_expm1_parts(vec_between(x + x, -18, 18), &power);
    vec e = em * power + (power - 1.0f);
    return e * vec_reciprocal(e + 2.0f);
}

#endif
