// Which elements dropout keeps: the bits of ops/random.h, KEEP_MANY elements at a time.
//
// A counter of Philox gives the bits of eight neighbours. Its 32-bit words lie in the low halves of 64-bit lanes, where
// one instruction multiplies them to 64 bits; what is left in the high halves is never read.
#ifndef TRADEWIND_CPU_KEEP_H
#define TRADEWIND_CPU_KEEP_H

#include "cpu/vec.h"
#include "graph/device.h"
#include "ops/random.h"

enum { KEEP_MANY = 4 * VEC, KEEP_BYTES = KEEP_MANY / 8 };

typedef uint64_t keep_lanes __attribute__((vector_size(VEC * 4)));
typedef uint32_t keep_words __attribute__((vector_size(VEC * 4)));

// The random numbers of one row of a batch.
typedef struct {
    uint64_t seed;
    uint32_t row, node, update, least;
    float scale; // of what is kept
} keep;

static inline keep keep_of(const call *c, int64_t row, float probability) {
    random_key k = random_key_of(c->step);
    return (keep){k.seed, (uint32_t)(k.row + (uint64_t)row), (uint32_t)RNG_DROPOUT << 16 | c->node, (uint32_t)k.update,
        random_threshold(probability), (float)random_scale(probability)};
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

#if defined(__AVX2__)
// The bits of four counters' elements, 0 to 3 of each in `low` and 4 to 7 in `high`. Of two counters the compare leaves
// the four parts in the order 0, 2, 1, 3.
VEC_FN uint32_t keep_compare(__m256i low, __m256i high, uint32_t least) {
    __m256i bound = _mm256_set1_epi16((int16_t)least);
    __m256i a = _mm256_cmpeq_epi16(_mm256_max_epu16(low, bound), low);
    __m256i b = _mm256_cmpeq_epi16(_mm256_max_epu16(high, bound), high);
    uint32_t bits = (uint32_t)_mm256_movemask_epi8(_mm256_packs_epi16(a, b));
    return (bits & 0xF00FF00F) | (bits & 0x00F000F0) << 4 | (bits & 0x0F000F00) >> 4;
}
#endif

// The bits of all counters' elements, 0 to 3 of each in `low` and 4 to 7 in `high`.
VEC_FN uint64_t keep_gather(keep_lanes low, keep_lanes high, uint32_t least) {
#if defined(__AVX512F__)
    uint32_t front = keep_compare(_mm512_castsi512_si256((__m512i)low), _mm512_castsi512_si256((__m512i)high), least);
    uint32_t back =
        keep_compare(_mm512_extracti64x4_epi64((__m512i)low, 1), _mm512_extracti64x4_epi64((__m512i)high, 1), least);
    return front | (uint64_t)back << 32;
#elif defined(__AVX2__)
    return keep_compare((__m256i)low, (__m256i)high, least);
#else
    uint64_t bits = 0;
    for (int i = 0; i < VEC / 2; i++)
        for (int e = 0; e < 4; e++) {
            bits |= (uint64_t)((low[i] >> 16 * e & 0xFFFF) >= least) << (8 * i + e);
            bits |= (uint64_t)((high[i] >> 16 * e & 0xFFFF) >= least) << (8 * i + 4 + e);
        }
    return bits;
#endif
}

// A bit for each of the KEEP_MANY elements from 8 * octet on.
static inline uint64_t keep_bits(const keep *k, int64_t octet) {
    keep_lanes lane;
    for (int i = 0; i < VEC / 2; i++) lane[i] = (uint64_t)i;
    keep_lanes c0 = lane + keep_all((uint32_t)octet), c1 = keep_all(k->row), c2 = keep_all(k->node),
               c3 = keep_all(k->update), k0 = keep_all((uint32_t)k->seed), k1 = keep_all((uint32_t)(k->seed >> 32));
#pragma GCC unroll 7
    for (int round = 0; round < RANDOM_ROUNDS; round++) {
        keep_lanes a = keep_multiply(c0, 0xD2511F53u), b = keep_multiply(c2, 0xCD9E8D57u);
        c0 = (b >> 32) ^ c1 ^ k0;
        c1 = b;
        c2 = (a >> 32) ^ c3 ^ k1;
        c3 = a;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return keep_gather((c0 & UINT32_MAX) | c1 << 32, (c2 & UINT32_MAX) | c3 << 32, k->least);
}

// Bits of `count` elements from 8 * octet on, one after the other; `to` has room for whole steps of KEEP_MANY, and for
// 4 bytes more that keep_read may touch.
static inline void keep_fill(const keep *k, int64_t octet, int64_t count, uint8_t *to) {
    for (int64_t i = 0; i < count; i += KEEP_MANY, to += KEEP_BYTES) {
        uint64_t bits = keep_bits(k, octet + i / RANDOM_OCTET);
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
