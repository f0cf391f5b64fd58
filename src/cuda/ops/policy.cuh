// Policies over choices on the card: a row's softmax, of scores of any type.
#ifndef TRADEWIND_CUDA_OPS_POLICY_CUH
#define TRADEWIND_CUDA_OPS_POLICY_CUH

#include "cuda/ops/cross_entropy.cuh"

// Softmax of scores first .. first + K - 1.
CUDA_FN softmax policy_softmax(view z, int64_t first, int K) {
    switch (z.type) {
    case DTYPE_BF16: return softmax_of((const __nv_bfloat16 *)z.data + first, K);
    case DTYPE_F16: return softmax_of((const __half *)z.data + first, K);
    default: return softmax_of((const float *)z.data + first, K);
    }
}

#endif
