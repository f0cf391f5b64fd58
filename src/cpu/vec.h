// Vectors of fp32 in the compiler's own notation, as wide as the variant's instruction set, and the functions that the
// kernels need of them. VEC is the number of lanes.
//
// exp and its relatives: x = n ln 2 + r with |r| <= ln 2 / 2; a polynomial gives e^r - 1 with a relative error of about
// 1e-7, from which tanh is formed without cancellation near 0. The normal distribution's tail is e^(-x^2 / 2) times a
// polynomial in 1 / (1 + 0.35 x), fitted for the least relative error, 3e-8, up to x = 14.
//
// Division is the processor's own, which IEEE 754 rounds alike everywhere. Estimates of reciprocals (rcpps, rcp14ps)
// have other bits on processors of other makers, and refined they gain nothing: the reference LSTM takes as long with
// them on an AMD EPYC of 2022.
#ifndef TRADEWIND_CPU_VEC_H
#define TRADEWIND_CPU_VEC_H

#include <stdbool.h>
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

// The first n elements at p and zeros behind them; all VEC where n is larger.
VEC_FN vec vec_load_some(const float *p, int64_t n) {
    if (n >= VEC) return vec_load(p);
    float all[VEC] = {0};
    for (int64_t i = 0; i < n; i++) all[i] = p[i];
    return vec_load(all);
}

VEC_FN void vec_store_some(float *p, vec v, int64_t n) {
    if (n >= VEC) {
        vec_store(p, v);
        return;
    }
    float all[VEC];
    vec_store(all, v);
    for (int64_t i = 0; i < n; i++) p[i] = all[i];
}

// As op_put: a gradient's first n elements are overwritten or added to.
VEC_FN void vec_put_some(float *p, vec v, int64_t n, bool add) {
    vec_store_some(p, add ? vec_load_some(p, n) + v : v, n);
}

// x where the mask is set, 0 elsewhere, even for a NaN.
VEC_FN vec vec_where(veci mask, vec x) {
    return (vec)((veci)x & mask);
}

VEC_FN vec vec_choose(veci mask, vec x, vec otherwise) {
    return (vec)(((veci)x & mask) | ((veci)otherwise & ~mask));
}

// The mask of lanes below n.
VEC_FN veci vec_below(int64_t n) {
    static const float lane[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    return vec_load(lane) < vec_all(n < VEC ? (float)n : (float)VEC);
}

// The mask of lanes whose bit is set.
VEC_FN veci vec_mask(uint32_t bits) {
#if defined(__AVX512F__)
    return (veci)_mm512_movm_epi32((__mmask16)bits);
#else
    veci bit;
    for (int i = 0; i < VEC; i++) bit[i] = 1 << i;
    return (((int32_t)bits - (veci){0}) & bit) != 0;
#endif
}

// The sum of all lanes, in an order that the number of lanes decides.
VEC_FN float vec_sum(vec v) {
#if defined(__AVX512F__)
    return _mm512_reduce_add_ps((__m512)v);
#else
    float lane[VEC];
    vec_store(lane, v);
    for (int half = VEC / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++) lane[i] += lane[i + half];
    return lane[0];
#endif
}

// The larger of each pair; of a NaN and a number the number.
VEC_FN vec vec_larger(vec a, vec b) {
    return vec_choose(a > b, a, b);
}

// The largest of all lanes, none of them a NaN.
VEC_FN float vec_largest(vec v) {
#if defined(__AVX512F__)
    return _mm512_reduce_max_ps((__m512)v);
#else
    float lane[VEC];
    vec_store(lane, v);
    for (int half = VEC / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++) lane[i] = lane[i] > lane[i + half] ? lane[i] : lane[i + half];
    return lane[0];
#endif
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

// e^x, for x below -87 and above 87 as at those.
VEC_FN vec vec_exp(vec x) {
    vec power, em = vec_expm1_parts(vec_between(x, -87, 87), &power);
    return em * power + power;
}

// The normal distribution's cumulative probability up to x, and its density there.
VEC_FN vec vec_normal(vec x, vec *density) {
    vec a = vec_between((vec)((veci)x & INT32_MAX), 0, 14), e = vec_exp(a * a * -0.5f);
    vec t = 1.0f / (a * 0.35f + 1.0f);
    vec p = t * -0.029145939f + 0.143971739f;
    p = p * t - 0.255714339f;
    p = p * t + 0.159174256f;
    p = p * t - 0.0231099f;
    p = p * t + 0.105508031f;
    p = p * t + 0.119832861f;
    p = p * t + 0.139861871f;
    p = p * t + 0.139621404f;
    vec tail = p * t * e;
    *density = e * 0.398942280f;
    return vec_choose(x > 0, 1.0f - tail, tail);
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
