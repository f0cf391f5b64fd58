// The kernels of attention for one way of multiplying, chosen and launched: see cuda/attention/attention.cuh.
#ifndef TRADEWIND_CUDA_ATTENTION_ATTENTION_LAUNCH_CUH
#define TRADEWIND_CUDA_ATTENTION_ATTENTION_LAUNCH_CUH

#include "cuda/attention/attention_whole.cuh"

// Tiles of columns of a head: the next that there are kernels for, and with them so many columns of scores at a time
// that a thread's registers hold them.
#define ATTENTION_FORMS(FORM) FORM(2, 8) FORM(4, 8) FORM(8, 4) FORM(16, 4)

// Tiles of keys of a sequence in one piece: all of them, so that only the last two may have columns past the last key.
#define ATTENTION_WHOLE_FORMS(FORM) FORM(3) FORM(5) FORM(7) FORM(8)

#define ATTENTION_LAUNCH(fits, ...)                                                                                    \
    if (fits) {                                                                                                        \
        cuda_allow_shared((const void *)__VA_ARGS__, p->shared);                                                       \
        LAUNCH_EARLY(c, (__VA_ARGS__), p->blocks, p->threads, p->shared, p->a);                                        \
        return;                                                                                                        \
    }
#define FORWARD_FORM(dn, nt)    ATTENTION_LAUNCH(p->a.slot <= dn * 8, forward_kernel<MATH, dn, nt, false>)
#define BACKWARD_FORM(dn, nt)   ATTENTION_LAUNCH(p->a.slot <= dn * 8, backward_kernel<MATH, dn, nt>)
#define WHOLE_FORWARD_FORM(nt)  ATTENTION_LAUNCH(p->whole && p->a.T <= nt * 8, forward_kernel<MATH, 2, nt, true>)
#define WHOLE_BACKWARD_FORM(nt) ATTENTION_LAUNCH(p->whole && p->a.T <= nt * 8, whole_backward_kernel<MATH, nt>)

template <int MATH> static void choose_forward(const call *c, const attention_plan *p) {
    ATTENTION_WHOLE_FORMS(WHOLE_FORWARD_FORM)
    ATTENTION_FORMS(FORWARD_FORM)
}

template <int MATH> static void choose_backward(const call *c, const attention_plan *p) {
    if constexpr (math_type<MATH>::K == 16) {
        ATTENTION_WHOLE_FORMS(WHOLE_BACKWARD_FORM)
    }
    ATTENTION_FORMS(BACKWARD_FORM)
}

#endif
