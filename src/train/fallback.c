#include "train/fallback.h"

fallback_verdict fallback_judge(precision p, double in_a_row, bool other) {
    if (p != PRECISION_FP16 || in_a_row < FALLBACK_OVERFLOWS) return FALLBACK_STAY;
    return other ? FALLBACK_CHANGE : FALLBACK_END;
}

bool fallback_looks(int64_t steps, int together) {
    int64_t each = together > 0 ? together : 1, every = each < FALLBACK_LOOK ? FALLBACK_LOOK / each * each : each;
    return steps % every == 0;
}

precision fallback_of(bool computes_bf16) {
    return computes_bf16 ? PRECISION_BF16 : PRECISION_FP32;
}
