// A stretch of memory that launches may touch.
#ifndef TRADEWIND_CUDA_JOIN_RANGE_CUH
#define TRADEWIND_CUDA_JOIN_RANGE_CUH

struct range {
    const char *begin, *end;
    bool written;
};

#endif
