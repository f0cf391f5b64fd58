// The recurrence both ways, multiplying in fp16. A file for each way of multiplying: a card loads only those it uses.
#include "cuda/lstm/lstm_backward.cuh"
#include "cuda/lstm/lstm_forward.cuh"

void lstm_forward_f16(const call *c, const lstm_plan *p) {
    choose_forward<MATH_F16>(c, p);
}

void lstm_backward_f16(const call *c, const lstm_plan *p) {
    choose_backward<MATH_F16>(c, p);
}
