// attention both ways, multiplying in tf32. A file for each way of multiplying: a card loads only those it uses.
#include "cuda/attention/attention_launch.cuh"

void attention_forward_tf32(const call *c, const attention_plan *p) {
    choose_forward<MATH_TF32>(c, p);
}

void attention_backward_tf32(const call *c, const attention_plan *p) {
    choose_backward<MATH_TF32>(c, p);
}
