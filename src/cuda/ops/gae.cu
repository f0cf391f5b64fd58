// gae on the card: see ops/gae.c. A thread an environment. The values of STEPS steps are on their way together, since
// an advantage waits for the one behind it.
#include "cuda/cuda.cuh"

enum { STEPS = 8, THREADS = 32 };

struct gae_args {
    gae_settings s;
    view reward, end, value, beyond;
    float *advantage, *target;
    int64_t N, T, K;
};

// Estimates behind the steps that are still to be done.
struct gae_later {
    float advantage, value;
    int64_t cut; // truncated episodes before
};

CUDA_FN int64_t count_cut(const gae_args &a, int64_t i) {
    int64_t cut = 0;
#pragma unroll 8
    for (int64_t t = 0; t < a.T; t++) cut += view_load(a.end, t * a.N + i) == ENV_TRUNCATED;
    return cut;
}

// Steps last, last - 1, .. as many as there are of STEPS.
CUDA_FN void gae_steps(const gae_args &a, int64_t i, int64_t last, gae_later *later) {
    float reward[STEPS], end[STEPS], value[STEPS];
#pragma unroll
    for (int k = 0; k < STEPS; k++) {
        int64_t at = (last - k < 0 ? 0 : last - k) * a.N + i;
        reward[k] = view_load(a.reward, at);
        end[k] = view_load(a.end, at);
        value[k] = view_load(a.value, at);
    }
#pragma unroll
    for (int k = 0; k < STEPS; k++) {
        if (k > last) break;
        int64_t at = (last - k) * a.N + i;
        float r = reward[k], live = end[k] == ENV_GOES_ON ? 1.0f : 0.0f;
        if (end[k] == ENV_TRUNCATED) r += a.s.gamma * view_load(a.beyond, --later->cut * a.N + i);
        later->advantage =
            r + a.s.gamma * later->value * live - value[k] + a.s.gamma * a.s.lambda * live * later->advantage;
        later->value = value[k];
        a.advantage[at] = later->advantage;
        a.target[at] = later->advantage + later->value;
    }
}

static __global__ void forward_kernel(gae_args a) {
    cuda_begin();
    FOR_EACH(i, a.N) {
        gae_later later = {0, view_load(a.beyond, a.K * a.N + i), count_cut(a, i)};
        for (int64_t last = a.T - 1; last >= 0; last -= STEPS) gae_steps(a, i, last, &later);
    }
}

static void forward(const call *c) {
    int64_t N = c->batch;
    gae_args a = {*(const gae_settings *)c->attr, view_of(&c->in[0]), view_of(&c->in[1]), view_of(&c->in[2]),
        view_of(&c->in[3]), (float *)c->out[0].data, (float *)c->out[1].data, N, operand_count(&c->in[0]) / N,
        operand_count(&c->in[3]) / N - 1};
    LAUNCH_EARLY(c, forward_kernel, blocks_for(N, THREADS), THREADS, 0, a);
}

extern "C" const kernel cuda_gae = {forward, NULL, NULL, NULL};
