// attention both ways, multiplying in bf16. A file for each way of multiplying: a card loads only those it uses.
#include "cuda/attention/attention_launch.cuh"

void attention_forward_bf16(const call *c, const attention_plan *p) {
    choose_forward<MATH_BF16>(c, p);
}

void attention_backward_bf16(const call *c, const attention_plan *p) {
    choose_backward<MATH_BF16>(c, p);
}
