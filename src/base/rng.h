// Random numbers from counters: Philox4x32 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011).
//
// There is no state to save, share or advance: the same key and counter give the same 128 bits on every device, in any
// order, on any number of threads. Everything random in tradewind is a pure function of (seed, purpose, position).
// This header is compiled by C and by nvcc.
#ifndef TRADEWIND_BASE_RNG_H
#define TRADEWIND_BASE_RNG_H

#include <stdint.h>

#ifdef __CUDACC__
#define RNG_FN static __host__ __device__ inline
#else
#define RNG_FN static inline
#endif

#ifdef __CUDA_ARCH__
#define RNG_CLZ(x) __clzll((long long)(x))
#else
#define RNG_CLZ(x) __builtin_clzll(x)
#endif

typedef struct {
    uint32_t v[4];
} rng_block;

// Who draws: the high half of the third counter word, so that no two purposes ever share bits under one seed.
enum {
    RNG_DROPOUT = 1,
    RNG_SHUFFLE = 2,
    RNG_INIT = 3,
    RNG_SYNTHETIC = 4,
    RNG_TEST = 5,
    RNG_BOOTSTRAP = 6,
    RNG_CONTROL = 7,
    RNG_CHECK = 8,
    RNG_ENVIRONMENT = 9,
    RNG_ACTION = 10
};

// With so many rounds. Of those that pass the authors' tests 7 is the least, and 10 is what they advise.
RNG_FN rng_block rng_philox_rounds(int rounds, uint64_t key, uint32_t c0, uint32_t c1, uint32_t c2, uint32_t c3) {
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    for (int round = 0; round < rounds; round++) {
        uint64_t a = (uint64_t)0xD2511F53u * c0, b = (uint64_t)0xCD9E8D57u * c2;
        c0 = (uint32_t)(b >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)b;
        c2 = (uint32_t)(a >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)a;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    rng_block out = {{c0, c1, c2, c3}};
    return out;
}

RNG_FN rng_block rng_philox(uint64_t key, uint32_t c0, uint32_t c1, uint32_t c2, uint32_t c3) {
    return rng_philox_rounds(10, key, c0, c1, c2, c3);
}

// A number in [0, 1) with 24 bits, exact in fp32.
RNG_FN float rng_unit(uint32_t bits) {
    return (float)(bits >> 8) * 0x1p-24f;
}

// 32 bits, every one of which depends on all bits of x: two multiplications, the constants those of Ettinger's search
// for hashes of low bias.
RNG_FN uint32_t rng_mix(uint32_t x) {
    x = (x ^ x >> 16) * 0x21F0AAADu;
    x = (x ^ x >> 15) * 0x735A2D97u;
    return x ^ x >> 15;
}

// Position `at` of a pseudo-random permutation of 0..count-1, chosen by `key` and `round`: a six-round Feistel network
// over the next power of two, walked until it lands below `count`. No index array; fewer than two walks on average. One
// Philox block keys the rounds, whose own function is short: a card's step waits for it. Where the number of bits is
// odd the halves differ by one bit and change places every round.
RNG_FN uint64_t rng_permute(uint64_t key, uint32_t round, uint64_t at, uint64_t count) {
    rng_block keys = rng_philox(key, round, 0, (uint32_t)RNG_SHUFFLE << 16, 0);
    uint32_t bits = count > 4 ? 64 - (uint32_t)RNG_CLZ(count - 1) : 2;
    uint32_t low = bits / 2, high = bits - low;
    do {
        uint32_t left = (uint32_t)(at >> low), right = (uint32_t)(at & (((uint64_t)1 << low) - 1)), width = high;
        for (uint32_t i = 0; i < 6; i++) {
            uint32_t f = rng_mix(right + keys.v[i & 3] + (i >> 2) * 0x9E3779B9u);
            uint32_t next = left ^ (f & (uint32_t)(((uint64_t)1 << width) - 1));
            left = right;
            right = next;
            width = bits - width;
        }
        at = ((uint64_t)left << low) | right;
    } while (at >= count);
    return at;
}

#endif
