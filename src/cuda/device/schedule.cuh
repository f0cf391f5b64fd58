// Groups of calls side by side: what does not touch the same memory may run at the same time.
#ifndef TRADEWIND_CUDA_DEVICE_SCHEDULE_CUH
#define TRADEWIND_CUDA_DEVICE_SCHEDULE_CUH

#include "cuda/join/fuse.cuh"

// Launches the groups, in order, while the queue's stream is being captured. Groups that neither write what another
// reads nor write the same memory go to different streams; the captured graph then has no edge between them.
void side_by_side(queue *q, const group *groups, int count);

#endif
