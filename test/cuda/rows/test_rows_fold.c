// Results of row kernels (cuda/rows/rows.h), on the host: random lists of calls as one row kernel each give what they
// give call by call, to the bit, in whatever order the threads of a block run between two barriers. Needs no card.
//
// The interpreter reads row kernels as cuda/rows/rows_interpret.cuh does: cells of maps by thread, runs of a product's
// columns by lane, which go on to all that is chained to it before the next lane begins. Slots hold no number at first,
// and addresses of vectors are checked.
#include "base/half.h"
#include "base/rng.h"
#include "cuda/rows/rows.h"
#include "ops/ops.h"
#include "ops/random.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ROWS = 21, THREADS = 256, ROOM = 160 * 1024, TENSORS = 20, CALLS = 14, OPERANDS = 3, LISTS = 200, JOINTS = 16 };
enum { MULTIPROCESSORS = 100 };

typedef struct {
    int64_t width;
    dtype type;
    char *data;
} tensor_at;

typedef struct {
    call calls[CALLS];
    operand operands[CALLS][4 * OPERANDS];
    union {
        linear_attr linear;
        slice_attr slice;
        axpby_attr axpby;
        dropout_attr dropout;
    } attr[CALLS];
    int count;
    tensor_at tensor[TENSORS];
    char *memory, *first, *after; // at the start; after the calls one by one
    size_t bytes;
    float *weights; // of all layers: a layer has as many of them as it needs
    uint32_t seed, drawn;
    int near;     // so many tensors are chosen first
    int recent;   // what the last call wrote, which others like to read
    int products; // of x and dz, what a launch behind the row kernel reads of them
    double product[2 * CALLS];
} list;

static const kernel none;
static const kernel *table[OP_COUNT];
static step_progress training = {.seed = 5, .update = 3};
static step_cursor samples = {.row = 7};

static uint32_t draw(list *l, uint32_t below) {
    rng_block r = rng_philox(l->seed, l->drawn++, 0, (uint32_t)RNG_TEST << 16, 9);
    return r.v[0] % below;
}

// Elements

static float element_read(const char *at, int type) {
    uint16_t half;
    float v;
    if (type == DTYPE_F32) {
        memcpy(&v, at, sizeof v);
        return v;
    }
    memcpy(&half, at, sizeof half);
    return half_widen(half);
}

static void element_write(char *at, int type, float v) {
    uint16_t half = half_narrow(v);
    if (type == DTYPE_F32) {
        memcpy(at, &v, sizeof v);
    } else {
        memcpy(at, &half, sizeof half);
    }
}

// The interpreter

typedef struct {
    const char *memory, *before; // of all tensors, and what it was before the row kernel
    char *room;
    int row, rows;
    bool backwards; // threads and lanes run from the last to the first
} block;

static char *home_at(const block *k, const rows_tile *t, int row, int column) {
    return (char *)t->data + (size_t)(k->row + row) * t->home_row + (size_t)column * dtype_bytes((dtype)t->type);
}

static char *slot_at(const block *k, const rows_tile *t, int row, int column) {
    assert_true(column >= 0 && column < t->width);
    return k->room + t->slot + (size_t)row * t->slot_row + (size_t)column * dtype_bytes((dtype)t->slot_type);
}

// n elements side by side are a vector.
static void assert_aligned(const char *at, int type, int n) {
    size_t bytes = (size_t)n * dtype_bytes((dtype)type);
    assert_int_equal((uintptr_t)at % (bytes < 16 ? bytes : 16), 0);
}

static float tile_read(const block *k, const rows_tile *t, int row, int column, int n) {
    char *at = t->slot >= 0 ? slot_at(k, t, row, column) : home_at(k, t, row, column);
    int type = t->slot >= 0 ? t->slot_type : t->type;
    if (n) assert_aligned(at, type, n);
    return element_read(at, type);
}

// Writes v, or adds it, and returns what is there then; n: it is the first of as many.
static float tile_put(const block *k, const rows_tile *t, int row, int column, float v, int n) {
    if (t->add == ROWS_ADD_SLOT) v += element_read(slot_at(k, t, row, column), t->slot_type);
    if (t->add == ROWS_ADD_HOME) v += element_read(home_at(k, t, row, column), t->type);
    if (t->data) element_write(home_at(k, t, row, column), t->type, v);
    if (t->slot >= 0) element_write(slot_at(k, t, row, column), t->slot_type, v);
    if (t->data && n) assert_aligned(home_at(k, t, row, column), t->type, n);
    if (t->slot >= 0 && n) assert_aligned(slot_at(k, t, row, column), t->slot_type, n);
    return v;
}

static float slope(int act, float y) {
    return act == ACT_RELU ? (y <= 0 ? 0.0f : 1.0f) : act == ACT_TANH ? 1 - y * y : 1;
}

// The result of column `column` of an instruction's own from its two operands.
static float combine(const block *k, const rows_instr *i, int row, int column, float a, float b) {
    switch (i->op) {
    case ROWS_SLOPE: return a * slope(i->act, b);
    case ROWS_COPY:
    case ROWS_AXPBY: return i->x * a + i->y * b;
    case ROWS_DROPOUT: {
        random_key key = random_key_of((step){&training, &samples});
        rng_block bits = random_dropout(&key, (uint64_t)(k->row + row), i->node, (uint32_t)column / RANDOM_OCTET);
        if (!i->flag) return a;
        return random_bits(&bits, column % RANDOM_OCTET) >= i->least ? a * i->x : 0;
    }
    default: return a;
    }
}

static void map_cell(const block *k, const rows_instr *i, int cell) {
    int unit = i->vectors == ROWS_PLAIN ? 16 / (int)dtype_bytes((dtype)i->a.type) : i->vectors ? 4 : 1;
    int row = cell / (int)i->cells, first = cell % (int)i->cells * unit;
    float a[8] = {0}, b[8] = {0};
    if (row >= k->rows) return;
    for (int e = 0; e < unit; e++) {
        int from = first + e + i->a.column, n = e ? 0 : unit;
        if (from >= 0 && from < i->a.width) a[e] = tile_read(k, &i->a, row, from, n);
        if (i->b.data) b[e] = tile_read(k, &i->b, row, first + e + i->b.column, n);
    }
    for (int e = 0; e < unit; e++) {
        float v = combine(k, i, row, first + e, a[e], b[e]);
        tile_put(k, &i->to, row, first + e + i->to.column, v, e ? 0 : unit);
    }
}

// A thread's cells of instructions without a barrier between them.
static void maps_run(const block *k, const rows_instr *first, int count) {
    for (int n = 0; n < THREADS; n++) {
        int thread = k->backwards ? THREADS - 1 - n : n;
        for (const rows_instr *i = first; i < first + count; i++)
            for (int cell = (thread + THREADS - 32 * i->warp) % THREADS; cell < k->rows * (int)i->cells;
                 cell += THREADS)
                map_cell(k, i, cell);
    }
}

static const rows_pack *pack_of(const rows_compiler *r, int instr) {
    for (int i = 0; i < r->packs; i++)
        if (r->pack[i].instr == instr) return &r->pack[i];
    fail_msg("instruction %d has no weights", instr);
    return NULL;
}

static float product_at(const block *k, const rows_instr *i, const rows_pack *w, int row, int column) {
    float sum = w->bias ? w->bias[column] : 0;
    for (int t = 0; t < w->K; t++)
        sum += tile_read(k, &i->a, row, t, 0) * w->weights[w->back ? t * w->N + column : column * w->K + t];
    return i->act == ACT_RELU && sum < 0 ? 0 : i->act == ACT_TANH ? tanhf(sum) : sum;
}

// The part of a lane's run that is chained to a product.
static void chain_run(const block *k, const rows_instr *product, int row, int first, int run, const float *results) {
    float v[8] = {0};
    int at = first;
    for (const rows_instr *i = product + 1; i <= product + product->chain; i++) {
        if (i->takes & ROWS_OF_PRODUCT) at = first;
        int own = at - i->a.column;
        bool out = at < 0 || own < 0 || own >= i->n;
        for (int e = 0; e < run && i->takes & ROWS_OF_PRODUCT; e++) v[e] = results[e];
        at = -1;
        if (out) continue;
        for (int e = 0; e < run; e++) {
            rows_tile from = i->b;
            if (i->takes & ROWS_EARLY) from.data = (char *)k->before + ((const char *)from.data - k->memory);
            float other = from.data ? tile_read(k, &from, row, own + e + from.column, e ? 0 : run) : 0;
            char rounded[4];
            element_write(rounded, i->a.type, v[e]);
            v[e] = element_read(rounded, i->a.type);
            bool second = i->takes & ROWS_AS_SECOND;
            v[e] = combine(k, i, row, own + e, second ? other : v[e], second ? v[e] : other);
        }
        at = i->to.column + own;
        for (int e = 0; e < run; e++) v[e] = tile_put(k, &i->to, row, at + e, v[e], e ? 0 : run);
    }
}

static void product_run(const block *k, const rows_instr *i, const rows_pack *w) {
    int run = i->flag ? 2 * ROWS_WIDE : 2, across = (i->to.width + run - 1) / run, lanes = k->rows * across;
    for (int n = 0; n < lanes; n++) {
        int lane = k->backwards ? lanes - 1 - n : n, row = lane / across, first = lane % across * run;
        float v[8] = {0};
        for (int e = 0; e < run && first + e < i->to.width; e++) v[e] = product_at(k, i, w, row, first + e);
        for (int e = 0; e < run && first + e < i->to.width; e++) {
            rows_tile to = i->to, old = i->to;
            if (i->takes & ROWS_EARLY) {
                assert_true(to.add == ROWS_ADD_HOME && to.vectors);
                old.data = (char *)k->before + ((const char *)old.data - k->memory);
                v[e] += element_read(home_at(k, &old, row, first + e), old.type);
                to.add = ROWS_OVERWRITE;
            }
            v[e] = tile_put(k, &to, row, first + e, v[e], e || !to.vectors ? 0 : run);
        }
        assert_true(!i->chain || i->to.vectors);
        chain_run(k, i, row, first, run, v);
    }
}

static void made_run(const list *l, const rows_compiler *r, bool backwards) {
    const row_kernel *p = &r->made;
    char *before = aligned_alloc(64, l->bytes);
    block k = {l->memory, before, aligned_alloc(64, ROOM), 0, 0, backwards};
    assert_true(k.room && before);
    memcpy(before, l->memory, l->bytes);
    for (k.row = 0; k.row < ROWS; k.row += p->tiles * ROWS_TILE) {
        k.rows = ROWS - k.row < p->tiles * ROWS_TILE ? ROWS - k.row : p->tiles * ROWS_TILE;
        memset(k.room, 0xFF, ROOM); // no numbers
        for (int i = 0, next; i < p->body; i = next) {
            const rows_instr *in = &p->code[i];
            next = i + 1 + in->chain;
            if (in->op == ROWS_LINEAR || in->op == ROWS_LINEAR_BACK) {
                product_run(&k, in, pack_of(r, i));
                continue;
            }
            while (next < p->body && p->code[next - 1].open) next++;
            maps_run(&k, in, next - i);
        }
    }
    free(k.room);
    free(before);
}

// Lists of calls

static operand operand_of(list *l, int i) {
    const tensor_at *t = &l->tensor[i];
    return (operand){.data = t->data, .type = t->type, .shape = shape2(ROWS, t->width)};
}

// A tensor of a width, or of any; of the low type, if that is asked for. -1: there is none.
static int pick(list *l, int64_t width, bool low) {
    int first = draw(l, 2) ? l->recent : (int)draw(l, (uint32_t)l->near);
    for (int n = 0; n < TENSORS; n++) {
        const tensor_at *t = &l->tensor[(first + n) % TENSORS];
        if ((!width || t->width == width) && (!low || t->type != DTYPE_F32)) return (first + n) % TENSORS;
    }
    return -1;
}

static bool pick_to(list *l, operand *to, int64_t width, bool low) {
    int i = pick(l, width, low);
    if (i >= 0) *to = operand_of(l, i);
    return i >= 0;
}

static bool make_linear(list *l, call *c) {
    int64_t width[2];
    if (!pick_to(l, &c->in[0], 0, false) || !pick_to(l, &c->out[0], 0, true)) return false;
    width[0] = operand_width(&c->in[0]), width[1] = operand_width(&c->out[0]);
    l->attr[l->count].linear = (linear_attr){draw(l, 2) ? ACT_RELU : ACT_NONE};
    c->op = OP_linear;
    c->inputs = 3;
    c->in[1] = (operand){.data = l->weights, .shape = shape2(width[1], width[0])};
    if (draw(l, 2)) c->in[2] = (operand){.data = l->weights + 7, .shape = shape1(width[1])};
    if (!c->backward) return true;
    int dz = pick(l, width[1], true);
    if (!pick_to(l, &c->dout[0], width[1], true) || dz < 0) return false;
    c->scratch = l->tensor[dz].data;
    if (draw(l, 4) && !pick_to(l, &c->din[0], width[0], false)) return false;
    c->din[0].add = draw(l, 3) == 0;
    if (draw(l, 2)) c->din[1] = (operand){.data = (char *)l->weights - 64 * (1 + l->count), .shape = shape1(16)};
    return true;
}

// No model has a layer that writes what it reads.
static bool is_a_layer(const call *c) {
    const void *at[] = {c->in[0].data, c->out[0].data, c->din[0].data, c->dout[0].data, c->scratch};
    for (int i = 0; i < 5; i++)
        for (int k = 0; k < i; k++)
            if (at[i] && at[i] == at[k]) return false;
    return true;
}

static bool make_slice(list *l, call *c) {
    operand wide, part;
    if (!pick_to(l, &wide, 0, false) || !pick_to(l, &part, 0, false)) return false;
    int64_t more = operand_width(&wide) - operand_width(&part);
    if (more < 0) return false;
    int64_t begin = draw(l, 2) ? more : (int64_t)draw(l, (uint32_t)more + 1) / 4 * 4;
    l->attr[l->count].slice = (slice_attr){begin, begin + operand_width(&part)};
    c->op = OP_slice;
    c->inputs = 1;
    c->in[0] = c->din[0] = wide;
    c->out[0] = c->dout[0] = part;
    c->din[0].add = draw(l, 2);
    return true;
}

static bool make_axpby(list *l, call *c) {
    static const float factors[] = {1, -1, 1, 0.3f};
    int64_t width = l->tensor[draw(l, TENSORS)].width;
    l->attr[l->count].axpby = (axpby_attr){factors[draw(l, 4)], factors[draw(l, 4)]};
    c->op = OP_axpby;
    c->inputs = 2;
    for (int k = 0; k < 2; k++)
        if (!pick_to(l, &c->in[k], width, false) || !pick_to(l, &c->din[k], width, false)) return false;
    if (draw(l, 4) == 0) c->din[draw(l, 2)].data = NULL;
    for (int k = 0; k < 2; k++) c->din[k].add = draw(l, 3) == 0;
    return pick_to(l, &c->out[0], width, false) && pick_to(l, &c->dout[0], width, false);
}

static bool make_concat(list *l, call *c) {
    int64_t width = 0;
    c->op = OP_concat;
    c->inputs = 2;
    for (int k = 0; k < 2; k++) {
        if (!pick_to(l, &c->in[k], 0, false)) return false;
        c->din[k] = c->in[k];
        c->din[k].add = draw(l, 3) == 0;
        width += operand_width(&c->in[k]);
    }
    return pick_to(l, &c->out[0], width, false) && pick_to(l, &c->dout[0], width, false);
}

static bool make_dropout(list *l, call *c) {
    int64_t width = l->tensor[draw(l, TENSORS)].width;
    l->attr[l->count].dropout = (dropout_attr){0.25f};
    c->op = OP_dropout;
    c->inputs = 1;
    c->node = (uint32_t)l->count;
    c->training = draw(l, 2);
    if (!pick_to(l, &c->in[0], width, false) || !pick_to(l, &c->out[0], width, false)) return false;
    c->din[0] = c->out[0];
    c->dout[0] = c->in[0];
    return true;
}

static call *call_clear(list *l, bool backward) {
    operand *o = l->operands[l->count];
    call *c = &l->calls[l->count];
    memset(o, 0, sizeof l->operands[0]);
    *c = (call){.attr = &l->attr[l->count],
        .backward = backward,
        .training = true,
        .outputs = 1,
        .in = o,
        .din = o + OPERANDS,
        .out = o + 2 * OPERANDS,
        .dout = o + 3 * OPERANDS,
        .batch = ROWS,
        .step = {&training, &samples}};
    return c;
}

static bool make_call(list *l) {
    static bool (*const makes[])(list *, call *) = {
        make_linear, make_slice, make_axpby, make_slice, make_linear, make_concat, make_dropout};
    call *c = call_clear(l, draw(l, 2));
    if (!makes[draw(l, sizeof makes / sizeof *makes)](l, c) || (c->op == OP_linear && !is_a_layer(c))) return false;
    const char *to = c->backward ? c->din[0].data : c->out[0].data;
    for (int i = 0; i < TENSORS && draw(l, 3); i++)
        if (l->tensor[i].data == to) l->recent = i;
    return true;
}

static void fill(char *at, const tensor_at *t, uint32_t what) {
    for (int64_t i = 0; i < ROWS * t->width; i++) {
        rng_block r = rng_philox(77, (uint32_t)i, what, (uint32_t)RNG_TEST << 16, 1);
        element_write(at + (size_t)i * dtype_bytes(t->type), (int)t->type, 2 * rng_unit(r.v[0]) - 1);
    }
}

static void lay_tensors(list *l, uint32_t low) {
    static const int64_t widths[] = {
        72, 60, 12, 12, 60, 72, 60, 12, 20, 80, 5, 60, 12, 72, 260, 272, 260, 260, 272, 24};
    size_t at = 0;
    for (int i = 0; i < TENSORS; i++) {
        tensor_at *t = &l->tensor[i];
        t->width = widths[i];
        t->type = draw(l, 2) && !(low >> i & 1) ? DTYPE_F32 : DTYPE_F16;
        t->data = (char *)at; // for now
        at += ((size_t)(ROWS * t->width) * dtype_bytes(t->type) + 63) / 64 * 64 + (draw(l, 8) ? 0 : 2 << draw(l, 3));
        at = (at + 1) / 2 * 2;
        if (i + 1 < TENSORS) at = draw(l, 6) ? (at + 63) / 64 * 64 : (at + 3) / 4 * 4;
    }
    l->bytes = (at + 63) / 64 * 64 + 64;
    l->memory = aligned_alloc(64, l->bytes);
    l->first = malloc(l->bytes);
    l->after = malloc(l->bytes);
    assert_true(l->memory && l->first && l->after);
    memset(l->memory, 0, l->bytes);
    for (int i = 0; i < TENSORS; i++) {
        l->tensor[i].data = l->memory + (size_t)l->tensor[i].data;
        fill(l->tensor[i].data, &l->tensor[i], (uint32_t)i);
    }
    memcpy(l->first, l->memory, l->bytes);
}

// The joint between two blocks of an N-BEATS: a layer, its result in two slices, of which one is taken from what is
// left of the input and one added to a forecast, and the next block's first layer; and back through it.

enum { X, BACK, FORE, SUM, REST, THETA, REST_NEXT, SUM_NEXT, BACK_TOO = 11, SCRATCH = 13, FIRST, WIDE, DY, DZ, DX };

static call *call_new(list *l, int op, bool backward, int inputs) {
    call *c = call_clear(l, backward);
    c->op = op;
    c->inputs = inputs;
    l->count++;
    return c;
}

static call *layer(list *l, int x, int y, activation act, bool backward) {
    l->attr[l->count].linear = (linear_attr){act};
    call *c = call_new(l, OP_linear, backward, 3);
    c->in[0] = operand_of(l, x);
    c->out[0] = operand_of(l, y);
    c->in[1] = (operand){.data = l->weights, .shape = shape2(operand_width(&c->out[0]), operand_width(&c->in[0]))};
    return c;
}

static call *slice(list *l, int whole, int part, int64_t begin, bool backward) {
    l->attr[l->count].slice = (slice_attr){begin, begin + l->tensor[part].width};
    call *c = call_new(l, OP_slice, backward, 1);
    c->in[0] = c->din[0] = operand_of(l, whole);
    c->out[0] = c->dout[0] = operand_of(l, part);
    return c;
}

static call *axpby(list *l, int a, int b, int to, float factor, bool backward) {
    l->attr[l->count].axpby = (axpby_attr){1, factor};
    call *c = call_new(l, OP_axpby, backward, 2);
    c->in[0] = c->din[0] = operand_of(l, a);
    c->in[1] = c->din[1] = operand_of(l, b);
    c->out[0] = c->dout[0] = operand_of(l, to);
    return c;
}

static void joint(list *l) {
    layer(l, WIDE, THETA, ACT_NONE, false);
    slice(l, THETA, FORE, 60, false);
    axpby(l, SUM, FORE, SUM_NEXT, 1, false);
    slice(l, THETA, BACK, 0, false);
    axpby(l, REST, BACK, REST_NEXT, -1, false);
    layer(l, REST_NEXT, FIRST, ACT_RELU, false);
}

static void joint_back(list *l) {
    call *c = layer(l, REST_NEXT, FIRST, ACT_RELU, true);
    c->dout[0] = operand_of(l, DY);
    c->scratch = l->tensor[DZ].data;
    c->din[0] = operand_of(l, REST);
    c->din[0].add = draw(l, 2);
    c->din[1] = (operand){.data = (char *)l->weights - 64, .shape = shape1(16)};
    axpby(l, BACK, BACK_TOO, REST, -1, true);
    slice(l, THETA, BACK_TOO, 0, true);
    axpby(l, SUM, SUM_NEXT, FORE, 1, true);
    slice(l, THETA, SUM_NEXT, 60, true)->din[0].add = true;
    c = layer(l, WIDE, X, ACT_NONE, true);
    c->dout[0] = operand_of(l, THETA);
    c->scratch = l->tensor[SCRATCH].data;
    c->din[0] = operand_of(l, DX);
}

typedef enum { RANDOM, JOINT, JOINT_BACK } list_kind;

static list *list_new(uint32_t seed, float *weights, list_kind kind) {
    list *l = calloc(1, sizeof *l);
    assert_non_null(l);
    for (int i = 0; i < OP_COUNT; i++) table[i] = &none;
    l->seed = seed;
    l->weights = weights;
    l->near = seed % 3 ? 8 : TENSORS;
    lay_tensors(l, kind == RANDOM ? 0 : 1 << X | 1 << THETA | 1 << SCRATCH | 1 << FIRST | 1 << DY | 1 << DZ);
    if (kind == JOINT) joint(l);
    if (kind == JOINT_BACK) joint_back(l);
    while (l->count < CALLS)
        if (make_call(l)) l->count++;
    return l;
}

static void list_free(list *l) {
    free(l->memory);
    free(l->first);
    free(l->after);
    free(l);
}

// Lives

static bool is_at(const operand *o, int count, const void *data) {
    for (int i = 0; i < count; i++)
        if (o[i].data == data) return true;
    return false;
}

// True if a call reads a tensor, as far as its operator does.
static bool call_reads(const call *c, const void *data) {
    for (int k = 0; c->backward && k < c->inputs; k++)
        if (c->din[k].data == data && c->din[k].add) return true;
    if (c->backward && is_at(c->dout, 1, data)) return true;
    if (c->backward && c->op != OP_linear) return false;
    return is_at(c->in, c->inputs, data) || (c->backward && is_at(c->out, 1, data));
}

static bool call_writes(const call *c, const void *data) {
    bool kept = c->op == OP_linear && c->backward && ((const linear_attr *)c->attr)->act != ACT_NONE;
    return is_at(c->backward ? c->din : c->out, c->backward ? c->inputs : 1, data) || (kept && c->scratch == data);
}

static bool is_over(const list *l, int from, const void *data) {
    for (int i = from; i < l->count; i++) {
        if (call_reads(&l->calls[i], data)) return false;
        if (call_writes(&l->calls[i], data)) return true;
    }
    return false;
}

// Row kernels

// Tensors read by the gradients of weights, which come behind a row kernel.
static void note_weights(list *l, const rows_compiler *r) {
    for (int i = 0; i < r->weights; i++) {
        const call *c = r->weight[i];
        bool plain = ((const linear_attr *)c->attr)->act == ACT_NONE;
        const operand *dy = &c->dout[0], *x = &c->in[0];
        const char *dz = plain ? dy->data : c->scratch;
        double sum = 0;
        for (int64_t k = 0; k < operand_count(dy); k++)
            sum += (double)(k + 1) * element_read(dz + (size_t)k * dtype_bytes(dy->type), (int)dy->type);
        for (int64_t k = 0; k < operand_count(x); k++)
            sum +=
                (double)(k + 1) * element_read((const char *)x->data + (size_t)k * dtype_bytes(x->type), (int)x->type);
        assert_true(l->products < 2 * CALLS);
        l->product[l->products++] = sum;
    }
}

typedef struct {
    int most;                         // calls in a row kernel
    int limit;                        // bytes of shared memory
    bool wide, lives, backwards, two; // tiles a block
} way;

// Does the calls from `first` on that one row kernel takes, and returns how many; 0: not even the first.
static int run_some(list *l, int first, const way *w, int *saved) {
    rows_compiler *r = malloc(sizeof *r);
    assert_non_null(r);
    int n = 0;
    rows_begin(r, table, ROWS, (rows_card){w->limit, MULTIPROCESSORS, w->wide});
    if (w->two) r->made.tiles = 2;
    while (n < w->most && first + n < l->count && rows_add(r, &l->calls[first + n])) n++;
    for (int i = first; w->lives && i < first + n; i++) {
        const call *c = &l->calls[i];
        for (int k = 0; k < (c->backward ? c->inputs : 1); k++) {
            const operand *o = c->backward ? &c->din[k] : &c->out[k];
            if (o->data) rows_over(r, o, is_over(l, first + n, o->data));
        }
    }
    int before = r->made.count;
    rows_end(r);
    *saved += before - r->made.count;
    for (int i = 0; i < r->made.count; i++) *saved += r->made.code[i].chain;
    assert_true(r->made.room <= ROOM);
    made_run(l, r, w->backwards);
    note_weights(l, r);
    free(r);
    return n;
}

// Values that are the same, or both no number.
static void assert_same(const list *l, const tensor_at *t, const char *wanted) {
    for (int64_t i = 0; i < ROWS * t->width; i++) {
        size_t at = (size_t)i * dtype_bytes(t->type);
        float a = element_read(t->data + at, (int)t->type), b = element_read(wanted + at, (int)t->type);
        if (a == b || (isnan(a) && isnan(b))) continue;
        fail_msg("list %u, tensor %d: row %lld, column %lld of %lld: %g, not %g", l->seed, (int)(t - l->tensor),
            (long long)(i / t->width), (long long)(i % t->width), (long long)t->width, (double)a, (double)b);
    }
}

// Runs all calls from the start, and returns how many instructions that saved.
static int run_list(list *l, const way *w) {
    int saved = 0;
    memcpy(l->memory, l->first, l->bytes);
    l->products = 0;
    for (int at = 0, n; at < l->count; at += n ? n : 1) {
        n = run_some(l, at, w, &saved);
        if (!n) run_some(l, at, &(way){.most = 1, .limit = ROOM, .wide = w->wide}, &saved);
    }
    return saved;
}

static int compare_list(list *l, const way *w) {
    double alone[2 * CALLS];
    int wanted = l->products;
    memcpy(alone, l->product, sizeof alone);
    int saved = run_list(l, w);
    for (int i = 0; i < TENSORS; i++) assert_same(l, &l->tensor[i], l->after + (l->tensor[i].data - l->memory));
    assert_int_equal(l->products, wanted);
    for (int i = 0; i < wanted; i++)
        if (l->product[i] != alone[i] && !isnan(alone[i])) fail_msg("list %u: what weights read", l->seed);
    memcpy(l->product, alone, sizeof alone);
    return saved;
}

// Random weights, with room before them for addresses of their gradients.
static float *weights_new(void) {
    enum { MOST = 300 * 300, FRONT = 16 * (CALLS + 1) };
    float *w = malloc((FRONT + MOST) * sizeof *w);
    assert_non_null(w);
    for (int i = 0; i < FRONT + MOST; i++)
        w[i] = 0.25f * (rng_unit(rng_philox(3, (uint32_t)i, 0, (uint32_t)RNG_TEST << 16, 2).v[0]) - 0.5f);
    return w + FRONT;
}

static void weights_free(float *w) {
    free(w - 16 * (CALLS + 1));
}

static int check_list(list *l, bool wide) {
    int saved = 0;
    const way ways[] = {{CALLS, ROOM, wide, false, false, false}, {CALLS, ROOM, wide, true, false, false},
        {CALLS, ROOM, wide, true, true, false}, {CALLS, ROOM, wide, true, true, true},
        {CALLS, 9 * 1024, wide, true, false, false}, {3, 20 * 1024, wide, true, true, false}};
    run_list(l, &(way){.most = 1, .limit = ROOM, .wide = wide}); // call by call
    memcpy(l->after, l->memory, l->bytes);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) saved += compare_list(l, &ways[i]);
    return saved;
}

static int check_lists(list_kind kind, uint32_t lists) {
    float *weights = weights_new();
    int saved = 0;
    for (uint32_t seed = 0; seed < lists; seed++) {
        list *l = list_new(seed, weights, kind);
        saved += check_list(l, seed % 2);
        list_free(l);
    }
    weights_free(weights);
    return saved;
}

static void test_random_lists(void **state) {
    (void)state;
    assert_true(check_lists(RANDOM, LISTS) > LISTS);
}

// Nearly all work of a joint is done by its products, or by nobody.
static void test_joints(void **state) {
    (void)state;
    assert_true(check_lists(JOINT, JOINTS) > 6 * 2 * JOINTS);
    assert_true(check_lists(JOINT_BACK, JOINTS) > 6 * 2 * JOINTS);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_lists),
        cmocka_unit_test(test_joints),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
