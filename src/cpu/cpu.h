// The CPU device. Its kernels are the plain ones of ops/, except the few that are written for speed here; both are
// compiled for several instruction sets, and a queue uses the best that its processor has.
#ifndef TRADEWIND_CPU_CPU_H
#define TRADEWIND_CPU_CPU_H

#include "graph/device.h"

// fp32 with the fast kernels.
extern const device cpu_device;

// The plain kernels alone: in fp32 (what fast kernels are measured against), and in double (what everything is checked
// against, together with dtype_assign(PRECISION_FP64)).
extern const device cpu_plain_device;
extern const device cpu_double_device;

// Instruction sets that this program has kernels for and this processor can run, best first, ended by NULL.
const char *const *cpu_instruction_sets(void);

#endif
