// Actions drawn on the card: see ops/sample.c. Compiled without contraction wherever it is included.
#ifndef TRADEWIND_CUDA_OPS_SAMPLE_CUH
#define TRADEWIND_CUDA_OPS_SAMPLE_CUH

#include "cuda/ops/policy.cuh"
#include "cuda/ops/team.cuh"
#include "ops/chance.h"
#include "ops/policy.h"

struct sample_args {
    sample_settings s;
    step step;
    view score, std, latent;
    const float *log_std;
    float *action, *log_prob;
    int64_t B, F;
    int A;
};

static inline sample_args sample_args_of(const call *c) {
    int64_t F = c->in[2].data ? c->in[2].shape.dim[1] : 0;
    return sample_args{*(const sample_settings *)c->attr, c->step, view_of(&c->in[0]), view_of(&c->in[1]),
        view_of(&c->in[2]), (const float *)c->in[3].data, (float *)c->out[0].data, (float *)c->out[1].data,
        c->in[0].shape.dim[0], F, (int)c->in[0].shape.dim[1]};
}

// True if a row's noise is a sum that is worth a block of its own.
static inline bool sample_is_wide(const call *c) {
    const sample_settings *s = (const sample_settings *)c->attr;
    return !s->choices && !s->greedy && c->in[2].data;
}

// `held`: the noise stays for some steps.
CUDA_FN chance sample_chance(const sample_args &a, int64_t r, bool held) {
    const step_cursor *at = a.step.cursor;
    int64_t slot = (int64_t)at->row / a.B;
    if (held) slot = slot / a.s.hold * a.s.hold;
    return chance{a.step.progress->seed, at->position + (uint64_t)(slot * a.B + r), a.s.stream};
}

CUDA_FN int sample_likeliest(const sample_args &a, int64_t first) {
    int pick = 0;
    for (int k = 1; k < a.A; k++)
        if (view_load(a.score, first + k) > view_load(a.score, first + pick)) pick = k;
    return pick;
}

CUDA_FN int sample_pick(const sample_args &a, int64_t r, softmax m) {
    int64_t first = r * a.A;
    chance at = sample_chance(a, r, false);
    double u = chance_unit(&at, 0), sum = 0;
    int pick = 0;
    for (; pick < a.A - 1; pick++) {
        sum += exp((double)log_p(m, view_load(a.score, first + pick)));
        if (sum > u) break;
    }
    return pick;
}

CUDA_FN void sample_choose(const sample_args &a, int64_t r) {
    softmax m = policy_softmax(a.score, r * a.A, a.A);
    int pick = a.s.greedy ? sample_likeliest(a, r * a.A) : sample_pick(a, r, m);
    a.action[r] = (float)pick;
    a.log_prob[r] = log_p(m, view_load(a.score, r * a.A + pick));
}

// Action k of a row with this noise; returns its log probability.
CUDA_FN double sample_act(const sample_args &a, int64_t r, int k, double noise) {
    int64_t i = r * a.A + k;
    double mean = (double)view_load(a.score, i);
    float action = (float)(mean + noise);
    a.action[i] = action;
    return policy_log_normal((double)action, mean, (double)view_load(a.std, i));
}

CUDA_FN void sample_numbers(const sample_args &a, int64_t r) {
    chance at = sample_chance(a, r, a.s.hold != 0);
    double all = 0;
    for (int k = 0; k < a.A; k++) {
        double std = (double)view_load(a.std, r * a.A + k);
        all += sample_act(a, r, k, a.s.greedy ? 0 : std * chance_normal(&at, (uint32_t)k));
    }
    a.log_prob[r] = (float)all;
}

// Rows that are not wide.
CUDA_FN void sample_each(const sample_args &a, team t) {
    TEAM_EACH(t, r, a.B) {
        if (a.s.choices)
            sample_choose(a, r);
        else
            sample_numbers(a, r);
    }
}

#endif
