// The recurrence for hidden sizes beyond a block's warps: step by step, products of the whole batch and a cell between
// them. Launches grow with the length of the sequence; the products are large enough to pay for them.
//
// Kept for backward, in the operand's type: the h that each step starts from, and the c that it ends with, [D][T][B][H]
// each.
#include "cuda/lstm/lstm.cuh"
#include "cuda/product/gemm.cuh"

// Arguments of a cell; `in` and `out` are h of two steps.
struct cell_args {
    lstm_args a;
    int d, i, element_type;
    float *z, *c, *dh, *dc; // [B][4H], [B][H]; c runs along
    view h_in, h_out;       // [B][H]
    view kept_c;            // [T][B][H] of the direction, or nothing
};

static size_t up64(size_t n) {
    return (n + 63) / 64 * 64;
}

static size_t state_bytes(const lstm_plan *p) {
    return up64((size_t)(p->a.B * p->a.H) * sizeof(float));
}

// Scratch: z, c and dc, dh, two h; and room for the parts of products.
static size_t parts_bytes(const lstm_plan *p) {
    const lstm_args *a = &p->a;
    int math = p->math;
    size_t need[] = {gemm_scratch(math, a->B, 4 * a->H, a->I), gemm_scratch(math, a->B, 4 * a->H, a->H),
        gemm_scratch(math, a->B, a->H, 4 * a->H)};
    size_t most = 0;
    for (size_t n : need) most = n > most ? n : most;
    return up64(most);
}

size_t lstm_large_scratch(const lstm_plan *p) {
    return 4 * state_bytes(p) + 4 * state_bytes(p) + parts_bytes(p);
}

size_t lstm_large_reserve(const lstm_plan *p) {
    const lstm_args *a = &p->a;
    return 2 * up64((size_t)(a->D * a->T * a->B * a->H) * p->element);
}

// dz as [D][T][B][4H]; the h that was kept.
void lstm_large_rows(lstm_args *a) {
    a->dz_rows = rows_at{(int64_t)ROWS * 4 * a->H, a->B * 4 * a->H, 4 * a->H};
    a->h_rows = rows_at{(int64_t)ROWS * a->H, a->B * a->H, a->H};
    a->dz_direction = a->T * a->B * 4 * a->H;
    a->h_direction = a->T * a->B * a->H;
}

static int type_of(const lstm_plan *p) {
    return p->math == MATH_BF16 ? DTYPE_BF16 : p->math == MATH_F16 ? DTYPE_F16 : DTYPE_F32;
}

CUDA_FN float sigmoid(float z) {
    return 1 / (1 + expf(-z));
}

CUDA_FN bool reset_at(const lstm_args &a, int64_t b, int t) {
    return a.reset.data && view_load(a.reset, b * a.T + t) != 0;
}

CUDA_FN int64_t state_at(const lstm_args &a, int d, int64_t b, int u) {
    return (b * a.D + d) * a.H + u;
}

// h of the first step's operand, and c.
static __global__ void start_kernel(cell_args k) {
    const lstm_args &a = k.a;
    FOR_EACH(n, a.B * a.H) {
        int64_t b = n / a.H, at = state_at(a, k.d, b, (int)(n % a.H));
        bool given = a.h0.data && !reset_at(a, b, time_of(a, k.d, 0));
        view_store(k.h_out, n, given ? view_load(a.h0, at) : 0.0f);
        k.c[n] = given ? view_load(a.c0, at) : 0.0f;
    }
}

static __global__ void cell_kernel(cell_args k) {
    const lstm_args &a = k.a;
    int t = time_of(a, k.d, k.i), H = a.H;
    bool last = k.i + 1 == a.T;
    FOR_EACH(n, a.B * H) {
        int64_t b = n / H;
        int u = (int)(n % H);
        const float *z = k.z + b * 4 * H + u;
        float c = sigmoid(z[H]) * k.c[n] + sigmoid(z[0]) * tanhf(z[2 * H]), h = sigmoid(z[3 * H]) * tanhf(c);
        if (k.kept_c.data) view_store(k.kept_c, (int64_t)k.i * a.B * H + n, c);
        if (a.states.data) view_store(a.states, ((b * a.T + t) * a.D + k.d) * H + u, h);
        if (last) {
            view_store(a.h_last, state_at(a, k.d, b, u), h);
            view_store(a.c_last, state_at(a, k.d, b, u), c);
        } else {
            bool reset = reset_at(a, b, time_of(a, k.d, k.i + 1));
            k.c[n] = reset ? 0.0f : c;
            view_store(k.h_out, n, reset ? 0.0f : h);
        }
    }
}

// dz of a step to its rows of a.dz; dc becomes that of the step before.
static __global__ void cell_back_kernel(cell_args k) {
    const lstm_args &a = k.a;
    int t = time_of(a, k.d, k.i), H = a.H;
    bool last = k.i + 1 == a.T;
    view dz = {a.dz, k.element_type, false};
    FOR_EACH(n, a.B * H) {
        int64_t b = n / H, row = ((int64_t)k.d * a.T + t) * a.B + b, at = state_at(a, k.d, b, (int)(n % H));
        int u = (int)(n % H);
        bool cut_after = !last && reset_at(a, b, time_of(a, k.d, k.i + 1)), cut_before = reset_at(a, b, t);
        float dh = last ? (a.dh_last.data ? view_load(a.dh_last, at) : 0.0f) : cut_after ? 0.0f : k.dh[n];
        float dc = last ? (a.dc_last.data ? view_load(a.dc_last, at) : 0.0f) : cut_after ? 0.0f : k.dc[n];
        if (a.dstates.data) dh += view_load(a.dstates, ((b * a.T + t) * a.D + k.d) * H + u);
        float c = view_load(k.kept_c, (int64_t)k.i * a.B * H + n), before = 0;
        if (k.i > 0) before = view_load(k.kept_c, (int64_t)(k.i - 1) * a.B * H + n);
        if (k.i == 0 && a.c0.data) before = view_load(a.c0, at);
        if (cut_before) before = 0;
        const float *z = k.z + b * 4 * H + u;
        float in = sigmoid(z[0]), f = sigmoid(z[H]), g = tanhf(z[2 * H]), o = sigmoid(z[3 * H]), th = tanhf(c);
        float cell = dc + dh * o * (1 - th * th);
        view_store(dz, row * 4 * H + u, cell * g * in * (1 - in));
        view_store(dz, row * 4 * H + H + u, cell * before * f * (1 - f));
        view_store(dz, row * 4 * H + 2 * H + u, cell * in * (1 - g * g));
        view_store(dz, row * 4 * H + 3 * H + u, dh * th * o * (1 - o));
        k.dc[n] = cell * f;
    }
}

static __global__ void finish_kernel(cell_args k) {
    const lstm_args &a = k.a;
    FOR_EACH(n, a.B * a.H) {
        int64_t b = n / a.H, at = state_at(a, k.d, b, (int)(n % a.H));
        bool cut = reset_at(a, b, time_of(a, k.d, 0));
        if (a.dh0.data) view_put(a.dh0, at, cut ? 0.0f : k.dh[n]);
        if (a.dc0.data) view_put(a.dc0, at, cut ? 0.0f : k.dc[n]);
    }
}

// z = x_t w_ih' + h w_hh' + both biases.
static void gates(const call *c, const lstm_plan *p, const cell_args *k, float *parts) {
    const lstm_args *a = &p->a;
    int t = k->d ? a->T - 1 - k->i : k->i;
    size_t element = dtype_bytes((dtype)a->x.type);
    view x = {(char *)a->x.data + (size_t)t * a->I * element, a->x.type, false}, z = {k->z, DTYPE_F32, false};
    view ih = {(void *)a->w_ih[k->d], DTYPE_F32, false}, hh = {(void *)a->w_hh[k->d], DTYPE_F32, false};
    gemm_finish f = {z, {(void *)a->b_ih[k->d], DTYPE_F32, false}, NULL, ACT_NONE};
    gemm_product(c, p->math,
        gemm_args{{x, (int64_t)a->T * a->I, 1, false}, {ih, a->I, 1, false}, a->B, 4 * a->H, a->I, 1}, f, parts);
    f.out.add = true;
    f.bias.data = (void *)a->b_hh[k->d];
    gemm_product(
        c, p->math, gemm_args{{k->h_in, a->H, 1, false}, {hh, a->H, 1, false}, a->B, 4 * a->H, a->H, 1}, f, parts);
}

// Where things lie in scratch and reserve, for a direction.
struct places {
    float *z, *c, *dh, *parts;
    char *h[2], *kept_h, *kept_c;
};

static places places_of(const lstm_plan *p, char *room, int d) {
    size_t one = state_bytes(p), all = (size_t)(d * p->a.T) * p->a.B * p->a.H * p->element;
    places at = {(float *)room, (float *)(room + 4 * one), (float *)(room + 5 * one), (float *)(room + 8 * one),
        {room + 6 * one, room + 7 * one}, p->a.kept_h ? p->a.kept_h + all : NULL,
        p->a.kept_c ? p->a.kept_c + all : NULL};
    return at;
}

static view h_of(const lstm_plan *p, const places *at, int i) {
    size_t step = (size_t)(p->a.B * p->a.H) * p->element;
    return view{at->kept_h ? at->kept_h + i * step : at->h[i & 1], type_of(p), false};
}

static cell_args cell_of(const lstm_plan *p, const places *at, int d) {
    cell_args k = {};
    k.a = p->a;
    k.d = d;
    k.element_type = type_of(p);
    k.z = at->z;
    k.kept_c = view{at->kept_c, type_of(p), false};
    return k;
}

void lstm_large_forward(const call *c, const lstm_plan *p, char *room) {
    const lstm_args *a = &p->a;
    unsigned blocks = blocks_for(a->B * a->H, 256);
    for (int d = 0; d < a->D; d++) {
        places at = places_of(p, room, d);
        cell_args k = cell_of(p, &at, d);
        k.c = at.c;
        k.h_out = h_of(p, &at, 0);
        LAUNCH(c, start_kernel, blocks, 256, 0, k);
        for (k.i = 0; k.i < a->T; k.i++) {
            k.h_in = k.h_out;
            k.h_out = h_of(p, &at, k.i + 1 < a->T ? k.i + 1 : 0);
            gates(c, p, &k, at.parts);
            LAUNCH(c, cell_kernel, blocks, 256, 0, k);
        }
    }
}

void lstm_large_backward(const call *c, const lstm_plan *p, char *room) {
    const lstm_args *a = &p->a;
    unsigned blocks = blocks_for(a->B * a->H, 256);
    for (int d = 0; d < a->D; d++) {
        places at = places_of(p, room, d);
        cell_args k = cell_of(p, &at, d);
        k.dc = at.c;
        k.dh = at.dh;
        view hh = {(void *)a->w_hh[d], DTYPE_F32, false};
        gemm_finish f = {{k.dh, DTYPE_F32, false}, {}, NULL, ACT_NONE};
        for (k.i = a->T - 1; k.i >= 0; k.i--) {
            int64_t t = d ? a->T - 1 - k.i : k.i, row = ((int64_t)d * a->T + t) * a->B;
            k.h_in = h_of(p, &at, k.i);
            gates(c, p, &k, at.parts);
            LAUNCH(c, cell_back_kernel, blocks, 256, 0, k);
            view dz = {a->dz + row * 4 * a->H * p->element, type_of(p), false};
            gemm_product(c, p->math, gemm_args{{dz, 4 * a->H, 1, false}, {hh, 1, a->H, false}, a->B, a->H, 4 * a->H, 1},
                f, at.parts);
        }
        if (a->dh0.data || a->dc0.data) LAUNCH(c, finish_kernel, blocks, 256, 0, k);
    }
}
