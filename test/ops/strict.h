// A device that holds operators to their traits in ops.def.
//
// It is another device whose calls see the step record only where the operator's traits say so: other calls get no
// address, so that a kernel that looks there all the same faults. Where kernels read the host's memory, calls run one
// by one, and a call that changes what it may only read is an error of `play`.
#ifndef TRADEWIND_TEST_OPS_STRICT_H
#define TRADEWIND_TEST_OPS_STRICT_H

#include "graph/device.h"

// `inner`, held to the traits. One at a time: what was recorded before goes on with its own device.
const device *strict_device(const device *inner);

#endif
