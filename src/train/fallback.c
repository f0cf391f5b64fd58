#include "train/fallback.h"

fallback_verdict fallback_judge(precision p, double in_a_row, bool other) {
    if (p != PRECISION_FP16 || in_a_row < FALLBACK_OVERFLOWS) return FALLBACK_STAY;
    return other ? FALLBACK_CHANGE : FALLBACK_END;
}

int64_t fallback_ahead(int64_t steps) {
    return FALLBACK_LOOK - steps % FALLBACK_LOOK;
}

precision fallback_of(bool computes_bf16) {
    return computes_bf16 ? PRECISION_BF16 : PRECISION_FP32;
}
