// Which elements dropout keeps: the bits of ops/random.h, KEEP_MANY elements at a time.
//
// A counter of Philox gives the words of four neighbours. Its 32-bit words lie in the low halves of 64-bit lanes, where
// one instruction multiplies them to 64 bits; what is left in the high halves is never read.
#ifndef TRADEWIND_CPU_KEEP_H
#define TRADEWIND_CPU_KEEP_H

#include "cpu/vec.h"
#include "graph/device.h"
#include "ops/random.h"

enum { KEEP_MANY = 2 * VEC, KEEP_BYTES = KEEP_MANY / 8 };

typedef uint64_t keep_lanes __attribute__((vector_size(VEC * 4)));
typedef uint32_t keep_words __attribute__((vector_size(VEC * 4)));

// The random numbers of one row of a batch.
typedef struct {
    uint64_t seed;
    uint32_t row, node, update, least;
    float scale; // of what is kept
} keep;

static inline keep keep_of(const call *c, int64_t row, float probability) {
    const step *s = c->step;
    return (keep){s->seed, (uint32_t)(s->row + (uint64_t)row), (uint32_t)RNG_DROPOUT << 16 | c->node,
        (uint32_t)s->update, random_threshold(probability), (float)(1.0 / (1.0 - (double)probability))};
}

VEC_FN keep_lanes keep_all(uint32_t v) {
    return v - (keep_lanes){0};
}

VEC_FN keep_lanes keep_multiply(keep_lanes a, uint32_t by) {
#if defined(__AVX512F__)
    return (keep_lanes)_mm512_mul_epu32((__m512i)a, _mm512_set1_epi64(by));
#elif defined(__AVX2__)
    return (keep_lanes)_mm256_mul_epu32((__m256i)a, _mm256_set1_epi64x(by));
#else
    return (a & UINT32_MAX) * by;
#endif
}

// The bit of each word: whether it is at or above `least`.
VEC_FN uint32_t keep_compare(keep_words w, uint32_t least) {
#if defined(__AVX512F__)
    return _mm512_cmpge_epu32_mask((__m512i)w, _mm512_set1_epi32((int32_t)least));
#elif defined(__AVX2__)
    keep_words at_least = (keep_words)(w >= least);
    return (uint32_t)_mm256_movemask_ps((__m256)at_least);
#else
    uint32_t bits = 0;
    for (int i = 0; i < VEC; i++) bits |= (uint32_t)(w[i] >= least) << i;
    return bits;
#endif
}

// Pairs of bits move apart: bit 2 i + k goes to 4 i + k.
static inline uint32_t keep_spread(uint32_t x) {
    x = (x | x << 8) & 0x00FF00FF;
    x = (x | x << 4) & 0x0F0F0F0F;
    return (x | x << 2) & 0x33333333;
}

// A bit for each of the KEEP_MANY elements from 4 * quad on.
static inline uint32_t keep_bits(const keep *k, int64_t quad) {
    keep_lanes lane;
    for (int i = 0; i < VEC / 2; i++) lane[i] = (uint64_t)i;
    keep_lanes c0 = lane + keep_all((uint32_t)quad), c1 = keep_all(k->row), c2 = keep_all(k->node),
               c3 = keep_all(k->update), k0 = keep_all((uint32_t)k->seed), k1 = keep_all((uint32_t)(k->seed >> 32));
#pragma GCC unroll 10
    for (int round = 0; round < 10; round++) {
        keep_lanes a = keep_multiply(c0, 0xD2511F53u), b = keep_multiply(c2, 0xCD9E8D57u);
        c0 = (b >> 32) ^ c1 ^ k0;
        c1 = b;
        c2 = (a >> 32) ^ c3 ^ k1;
        c3 = a;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    uint32_t low = keep_compare((keep_words)((c0 & UINT32_MAX) | c1 << 32), k->least);
    uint32_t high = keep_compare((keep_words)((c2 & UINT32_MAX) | c3 << 32), k->least);
    return keep_spread(low) | keep_spread(high) << 2;
}

// Bits of `count` elements from 4 * quad on, one after the other; `to` has room for whole steps of KEEP_MANY, and for 4
// bytes more that keep_read may touch.
static inline void keep_fill(const keep *k, int64_t quad, int64_t count, uint8_t *to) {
    for (int64_t i = 0; i < count; i += KEEP_MANY, to += KEEP_BYTES) {
        uint32_t bits = keep_bits(k, quad + i / 4);
        for (int b = 0; b < KEEP_BYTES; b++) to[b] = (uint8_t)(bits >> 8 * b);
    }
}

static inline size_t keep_room(int64_t count) {
    return (size_t)((count + KEEP_MANY - 1) / KEEP_MANY * KEEP_BYTES) + 4;
}

// The mask of VEC elements from `at` on, of those that keep_fill wrote.
VEC_FN veci keep_read(const uint8_t *bits, int64_t at) {
    const uint8_t *b = bits + at / 8;
    uint32_t four = b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
    return vec_mask(four >> at % 8);
}

#endif
