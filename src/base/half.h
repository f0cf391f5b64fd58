// Half-precision numbers (IEEE binary16) as 16 bits, for storage: widening is exact, narrowing rounds to nearest even.
#ifndef TRADEWIND_BASE_HALF_H
#define TRADEWIND_BASE_HALF_H

#include <stdint.h>
#include <string.h>

// The exponent is moved by a multiplication, which is right for subnormal numbers too.
static inline float half_widen(uint16_t h) {
    uint32_t magnitude = (uint32_t)(h & 0x7FFF) << 13, sign = (uint32_t)(h & 0x8000) << 16, bits;
    float v;
    memcpy(&v, &magnitude, sizeof v);
    v *= 0x1p112f;
    memcpy(&bits, &v, sizeof bits);
    bits = (h & 0x7C00) == 0x7C00 ? magnitude | 0x7F800000u : bits;
    bits |= sign;
    memcpy(&v, &bits, sizeof v);
    return v;
}

// Beyond 65504 comes infinity; NaN stays NaN.
static inline uint16_t half_narrow(float v) {
    uint32_t bits, magnitude;
    memcpy(&bits, &v, sizeof bits);
    uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    magnitude = bits & 0x7FFFFFFFu;
    if (magnitude > 0x7F800000u) return (uint16_t)(sign | 0x7E00);
    if (magnitude >= 0x477FF000u) return (uint16_t)(sign | 0x7C00); // 65520, half way to what would be next
    if (magnitude >= 0x38800000u) {                                 // 2^-14, the least normal number
        uint32_t even = magnitude >> 13 & 1;
        return (uint16_t)(sign | (magnitude - 0x38000000u + 0xFFF + even) >> 13);
    }
    float small; // adding 0.5 leaves multiples of 2^-24, the spacing of subnormal numbers, in the last bits
    memcpy(&small, &magnitude, sizeof small);
    small += 0.5f;
    memcpy(&magnitude, &small, sizeof magnitude);
    return (uint16_t)(sign | (magnitude - 0x3F000000u));
}

#endif
