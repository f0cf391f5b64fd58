// Which kernel runs a row program: by its way of multiplying.
#include "cuda/rows.cuh"

static_assert(sizeof(rows_program) % sizeof(uint4) == 0, "a program is copied in words");

bool rows_upload(queue *q, rows_program *p) {
    return cudaMalloc(&p->on_card, sizeof *p) == cudaSuccess &&
           cudaMemcpyAsync(p->on_card, p, sizeof *p, cudaMemcpyHostToDevice, q->stream) == cudaSuccess;
}

void rows_remove(rows_program *p) {
    cudaFree(p->on_card);
}

void rows_launch(const call *c, const rows_program *p) {
    switch (p->low) {
    case DTYPE_BF16: rows_launch_bf16(c, p); break;
    case DTYPE_F16: rows_launch_f16(c, p); break;
    default: p->tf32 ? rows_launch_tf32(c, p) : rows_launch_f32(c, p); break;
    }
}
