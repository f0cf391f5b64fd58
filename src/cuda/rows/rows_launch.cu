// Launches of row kernels, by their way of multiplying, and of the sums that are left when all blocks are through.
#include "cuda/device/room.cuh"
#include "cuda/ops/loss.cuh"
#include "cuda/rows/rows.cuh"

static_assert(sizeof(row_kernel) % sizeof(uint4) == 0, "a row kernel is copied in words");

bool rows_upload(queue *q, row_kernel *p) {
    p->on_card = NULL; // equal row kernels have equal bytes
    p->on_card = (void *)room_put(q, q->room, p, sizeof *p);
    return p->on_card != NULL;
}

void rows_launch(const call *c, const row_kernel *p) {
    if (p->head) {
        rows_launch_head(c, p);
        return;
    }
    switch (p->low) {
    case DTYPE_BF16: rows_launch_bf16(c, p); break;
    case DTYPE_F16: rows_launch_f16(c, p); break;
    default: p->tf32 ? rows_launch_tf32(c, p) : rows_launch_f32(c, p); break;
    }
}

// A loss's sum and normaliser, and what they add to in the tally: thread 0 has the one, thread 1 the other.
CUDA_FN void loss_end(const rows_instr &in) {
    double *total = (double *)in.p[0], step = 0, all = 0;
    int k = threadIdx.x;
    bool tallies = total && k < 2;
    if (tallies) all = total[TALLY_SUM + k];
    if (tallies && !in.flag) step = total[TALLY_STEP_SUM + k];
    loss_sums s = loss_total((const loss_sums *)in.a.data, in.n, (float *)in.to.data);
    double v = (double)(float)(k ? s.norm : s.sum);
    if (!tallies) return;
    total[TALLY_STEP_SUM + k] = step + v;
    total[TALLY_SUM + k] = all + v;
}

// One block.
static __global__ void sums_kernel(const row_kernel *p) {
    for (int i = p->body; i < p->count; i++) {
        if (p->code[i].op == ROWS_LOSS_ADD) loss_end(p->code[i]);
        if (p->code[i].op == ROWS_ADVANCE && threadIdx.x == 0) p->step.cursor->row += (uint64_t)p->code[i].n;
    }
}

// Sums that a warp forms as soon as a block would.
enum { FEW = 128 };

void rows_launch_sums(const call *c, const row_kernel *p) {
    LAUNCH(c, sums_kernel, 1, rows_blocks(p->rows) > FEW ? 256 : 32, 0, (const row_kernel *)p->on_card);
}
