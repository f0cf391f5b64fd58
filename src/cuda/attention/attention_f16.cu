// attention both ways, multiplying in fp16. A file for each way of multiplying: a card loads only those it uses.
#include "cuda/attention/attention_launch.cuh"

void attention_forward_f16(const call *c, const attention_plan *p) {
    choose_forward<MATH_F16>(c, p);
}

void attention_backward_f16(const call *c, const attention_plan *p) {
    choose_backward<MATH_F16>(c, p);
}
