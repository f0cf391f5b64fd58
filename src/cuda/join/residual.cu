#include "cuda/join/residual.cuh"

#include "cuda/device/table.cuh"
#include "cuda/join/life.cuh"

extern "C" {
#include "ops/ops.h"
}

// Matching. One launch reads and writes rows in any order, so what a later call writes must not lie where an earlier
// one reads: at most, where both are of one type, in the very same place, of which a warp reads a row before it writes
// it.

static bool match_forward(const call *drop, const call *sum, residual_args *a) {
    if (drop->op != OP_dropout || drop->backward || !drop->training || sum->op != OP_axpby || sum->backward)
        return false;
    if (sum->in[1].data != drop->out[0].data || !sum->in[0].data || sum->in[0].data == sum->in[1].data) return false;
    if (life_meet(&sum->out[0], &drop->in[0])) return false;
    a->x = view_of(&sum->in[0]);
    a->y = view_of(&drop->in[0]);
    a->z = view_of(&sum->out[0]);
    a->between = view_of(&drop->out[0]);
    return true;
}

static bool match_backward(const call *sum, const call *drop, residual_args *a) {
    if (drop->op != OP_dropout || !drop->backward || sum->op != OP_axpby || !sum->backward) return false;
    if (!sum->din[1].data || sum->din[1].add || sum->din[1].data != drop->dout[0].data) return false;
    if (sum->din[0].data == sum->din[1].data || !sum->dout[0].data || !drop->din[0].data) return false;
    if (life_meet(&drop->din[0], &sum->dout[0])) return false;
    a->x = view_of(&sum->din[0]);
    a->y = view_of(&drop->din[0]);
    a->z = view_of(&sum->dout[0]);
    a->between = view_of(&sum->din[1]);
    a->backward = true;
    return true;
}

// The two calls alone.
static bool match_pair(const call *calls, int count, residual_args *a) {
    *a = residual_args{};
    if (count < 2 || !(match_forward(&calls[0], &calls[1], a) || match_backward(&calls[0], &calls[1], a))) return false;
    const axpby_attr *k = (const axpby_attr *)calls[a->backward ? 0 : 1].attr;
    a->drop = drop_args_of(&calls[a->backward ? 1 : 0]);
    a->a = k->a;
    a->b = k->b;
    if (a->drop.n % OCTET || !a->drop.small) return false;
    const operand *between = a->backward ? &calls[0].din[1] : &calls[0].out[0];
    if (life_over(between, a->backward, calls + 2, count - 2)) a->between.data = NULL;
    return true;
}

static bool apart(const operand *written, const operand *read) {
    return (written->data == read->data && written->type == read->type) || !life_meet(written, read);
}

// A layer norm behind the pair.
static bool match_norm(const call *calls, int count, const residual_args *a) {
    const call *drop = &calls[0], *sum = &calls[1], *norm = &calls[2];
    if (count < 3 || !layernorm_joins(norm) || norm->backward || norm->in[0].data != sum->out[0].data) return false;
    if (a->between.data && life_meet(&norm->out[0], &drop->out[0])) return false;
    return apart(&norm->out[0], &drop->in[0]) && apart(&norm->out[0], &sum->in[0]);
}

// True if what the pair writes is apart from what the layer norm before it reads, and from its sums.
static bool is_apart(const operand *written, const call *norm) {
    return apart(written, &norm->in[0]) && apart(written, &norm->dout[0]) && !life_meet(written, &norm->in[1]) &&
           !life_meet_bytes(written, norm->scratch, cuda_table[norm->op]->scratch(norm));
}

// One before the pair, backward, whose gradient of x is what comes to the sum, whole.
static bool match_norm_backward(const call *calls, int count, residual_args *a) {
    const call *norm = &calls[0], *sum = &calls[1], *drop = &calls[2];
    if (count < 3 || !layernorm_joins(norm) || !norm->backward) return false;
    if (!match_pair(calls + 1, count - 1, a) || !a->backward || sum->dout[0].data != norm->din[0].data) return false;
    if (!is_apart(&sum->din[0], norm) || !is_apart(&drop->din[0], norm)) return false;
    if (a->between.data && !is_apart(&sum->din[1], norm)) return false;
    a->norm = norm;
    a->alone = life_over(&norm->din[0], true, calls + 3, count - 3);
    return true;
}

// A mean over time behind the pair, of what nobody else reads; and one before it, backward. Blocks write what others
// may not have read yet, so nothing that is written shares memory with what is read.

static bool match_mean(const call *calls, int count, const residual_args *a) {
    const call *drop = &calls[0], *sum = &calls[1], *mean = &calls[2];
    if (count < 3 || !mean_time_joins(mean) || mean->backward || mean->in[0].data != sum->out[0].data) return false;
    if (a->between.data || !life_over(&sum->out[0], false, calls + 3, count - 3)) return false;
    return !life_meet(&mean->out[0], &drop->in[0]) && !life_meet(&mean->out[0], &sum->in[0]);
}

static bool is_clear(const operand *written, const call *mean) {
    return !life_meet(written, &mean->dout[0]) && !life_meet(written, &mean->in[1]);
}

static bool match_mean_backward(const call *calls, int count, residual_args *a) {
    const call *mean = &calls[0], *sum = &calls[1], *drop = &calls[2];
    if (count < 3 || !mean_time_joins(mean) || !mean->backward) return false;
    if (!match_pair(calls + 1, count - 1, a) || !a->backward || sum->dout[0].data != mean->din[0].data) return false;
    if (a->between.data || !life_over(&mean->din[0], true, calls + 3, count - 3)) return false;
    return is_clear(&sum->din[0], mean) && is_clear(&drop->din[0], mean);
}

int residual_match(const call *calls, int count, residual_args *a) {
    if (match_norm_backward(calls, count, a)) return 3;
    if (match_mean_backward(calls, count, a)) {
        a->mean = &calls[0];
        return 3;
    }
    if (!match_pair(calls, count, a)) return 0;
    if (!a->backward && match_norm(calls, count, a)) {
        a->norm = &calls[2];
    } else if (!a->backward && match_mean(calls, count, a)) {
        a->mean = &calls[2];
    }
    return a->norm || a->mean ? 3 : 2;
}

// Launches

static __host__ __device__ inline int64_t octets_of(const residual_args &a) {
    return a.drop.rows * (a.drop.n / OCTET);
}

static __global__ void forward_kernel(const __grid_constant__ residual_args a) {
    cuda_begin();
    random_key s = random_key_of(a.drop.at);
    FOR_EACH(k, octets_of(a)) {
        octet x = octet_load<TYPE_ANY>(a.x, k * OCTET), y = octet_load<TYPE_ANY>(a.y, k * OCTET);
        residual_forward<TYPE_ANY, TYPE_ANY>(a, s, k * OCTET, x, y);
    }
}

static __global__ void backward_kernel(const __grid_constant__ residual_args a) {
    cuda_begin();
    random_key s = random_key_of(a.drop.at);
    FOR_EACH(k, octets_of(a))
    residual_backward<TYPE_ANY, TYPE_ANY>(a, s, k * OCTET, octet_load<TYPE_ANY>(a.z, k * OCTET));
}

void residual_launch(const call *c, const residual_args *a) {
    unsigned blocks = blocks_for(octets_of(*a), 256);
    if (a->norm) {
        layernorm_launch_joined(a->norm, a);
    } else if (a->mean) {
        mean_time_launch_joined(a->mean, a);
    } else if (a->backward) {
        LAUNCH_EARLY(c, backward_kernel, blocks, 256, 0, *a);
    } else {
        LAUNCH_EARLY(c, forward_kernel, blocks, 256, 0, *a);
    }
}
