// attention both ways, multiplying in fp32. A file for each way of multiplying: a card loads only those it uses.
#include "cuda/attention/attention_launch.cuh"

void attention_forward_f32(const call *c, const attention_plan *p) {
    choose_forward<MATH_F32>(c, p);
}

void attention_backward_f32(const call *c, const attention_plan *p) {
    choose_backward<MATH_F32>(c, p);
}
