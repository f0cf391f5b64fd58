// Row kernels that multiply as MATH_F32 does: a file of its own, because the kernel compiles long.
#include "cuda/rows/rows.cuh"
#include "cuda/rows/rows_interpret.cuh"

void rows_launch_f32(const call *c, const row_kernel *p) {
    rows_start_any<MATH_F32>(c, p);
}
