#include "cuda/rows/rows.h"

#include "base/err.h"
#include "cuda/rows/rows_chain.h"
#include "cuda/rows/rows_fold.h"
#include "cuda/rows/rows_head.h"
#include "cuda/rows/rows_open.h"
#include "ops/ops.h"
#include "ops/random.h"

#include <string.h>

// A linear layer joins a row kernel where each multiprocessor reads at most so many bytes of its weights: 6 us from the
// second-level cache. Beyond that a product in tiles of both dimensions, which reads them once for 64 rows on all
// multiprocessors, is faster than what a launch costs.
enum { WEIGHT_BYTES = 640 * 1024 };

enum { TILES_ONE = 264 }; // tiles of 16 rows up to which a block takes one

enum { WIDE = 256 }; // columns of a product that give half the warps of a block four tiles each

int rows_tiles(int64_t rows) {
    int64_t tiles = (rows + ROWS_TILE - 1) / ROWS_TILE;
    return tiles <= TILES_ONE ? 1 : 2;
}

void rows_begin(rows_compiler *r, const kernel *const *table, int64_t rows, rows_card card) {
    *r = (rows_compiler){.table = table, .limit = card.limit, .wide = card.wide, .heads = true};
    r->multiprocessors = card.multiprocessors;
    r->made.rows = rows;
    r->made.tiles = rows_tiles(rows);
    r->made.low = DTYPE_F32;
}

// Claims: what memory the row kernel touches, and how

static bool same(const rows_claim *a, const rows_claim *b) {
    return a->begin == b->begin && a->end == b->end && a->type == b->type && a->rows == b->rows && a->last == b->last;
}

// Two tensors of a row kernel may share memory where neither is written. What both are is one tensor: in order within a
// block, unless it must stay until after the row kernel.
static bool agree(const rows_claim *old, const rows_claim *now) {
    if (old->end <= now->begin || now->end <= old->begin || !(old->written || now->written)) return true;
    return same(old, now) && (now->rows || now->last) && !(old->held && now->written);
}

static bool claim(rows_compiler *r, rows_claim now) {
    if (now.begin == now.end) return true;
    if (r->claims == ROWS_CLAIMS) return false;
    for (int i = 0; i < r->claims; i++)
        if (!agree(&r->claim[i], &now)) return false;
    r->claim[r->claims++] = now;
    return true;
}

// A tensor over the rows. A type that is not the row kernel's becomes its own, once.
static bool claim_rows(rows_compiler *r, const operand *o, bool written, bool held) {
    if (!o->data || o->shape.rank != 2 || o->shape.dim[0] != r->made.rows) return false;
    if (operand_width(o) < 1 || operand_width(o) > ROWS_WIDTH) return false; // wider ones would fit no slot
    if (o->type != DTYPE_F32 && r->made.low == DTYPE_F32 && !r->full) r->made.low = o->type;
    if (o->type != DTYPE_F32 && (int)o->type != r->made.low) return false;
    if (o->type != DTYPE_F32 && o->type != DTYPE_BF16 && o->type != DTYPE_F16) return false;
    size_t bytes = (size_t)operand_count(o) * dtype_bytes(o->type);
    return claim(r,
        (rows_claim){o->data, (const char *)o->data + bytes, o->type, .rows = true, .written = written, .held = held});
}

static bool claim_bytes(rows_compiler *r, const void *at, size_t bytes, bool written) {
    if (!at || !bytes) return true;
    return claim(r, (rows_claim){at, (const char *)at + bytes, -1, .written = written});
}

static bool claim_whole(rows_compiler *r, const operand *o, bool written) {
    return claim_bytes(r, o->data, o->data ? (size_t)operand_count(o) * dtype_bytes(o->type) : 0, written);
}

static bool claim_last(rows_compiler *r, const operand *o) {
    size_t bytes = (size_t)operand_count(o) * dtype_bytes(o->type);
    return claim(r, (rows_claim){o->data, (const char *)o->data + bytes, -1, .written = true, .last = true});
}

static size_t scratch_of(const rows_compiler *r, const call *c) {
    const kernel *k = r->table[c->op];
    return c->scratch && k->scratch ? k->scratch(c) : 0;
}

static bool is_float(const operand *o) {
    return o->type == DTYPE_F32;
}

// Slots

static rows_slot *slot_find(rows_compiler *r, const void *home, int type) {
    for (int i = 0; i < r->slots; i++) {
        rows_slot *s = &r->slot[i];
        if (s->home != home || s->type != type) continue;
        s->used = r->now;
        return s;
    }
    return NULL;
}

static void slot_drop(rows_compiler *r, int i) {
    r->slot[i] = r->slot[--r->slots];
}

static bool slot_drop_oldest(rows_compiler *r) {
    int oldest = -1;
    for (int i = 0; i < r->slots; i++)
        if (r->slot[i].used != r->now && (oldest < 0 || r->slot[i].used < r->slot[oldest].used)) oldest = i;
    if (oldest >= 0) slot_drop(r, oldest);
    return oldest >= 0;
}

// The lowest offset at which so many bytes meet no slot, or -1.
static int slot_gap(const rows_compiler *r, int bytes) {
    int at = 0;
    for (bool moved = true; moved;) {
        moved = false;
        for (int i = 0; i < r->slots; i++) {
            const rows_slot *s = &r->slot[i];
            if (s->offset + s->bytes <= at || at + bytes <= s->offset) continue;
            at = s->offset + s->bytes;
            moved = true;
        }
    }
    return at + bytes <= r->limit ? at : -1;
}

// A new slot, for which the ones that were used longest ago make room. NULL where what this instruction uses leaves
// none.
static rows_slot *slot_take(rows_compiler *r, const void *home, int type, int64_t width) {
    int bytes = r->made.tiles * ROWS_TILE * rows_ld((int)width) * (int)dtype_bytes((dtype)type), at;
    if (bytes > r->limit) return NULL;
    while ((at = slot_gap(r, bytes)) < 0 || r->slots == ROWS_SLOTS)
        if (!slot_drop_oldest(r)) return NULL;
    if (at + bytes > r->made.room) r->made.room = at + bytes;
    r->slot[r->slots] = (rows_slot){home, type, at, bytes, r->now};
    return &r->slot[r->slots++];
}

// Tiles

static rows_tile tile_at(const operand *o, const rows_slot *s) {
    int width = (int)operand_width(o), slot_type = s ? s->type : (int)o->type;
    return (rows_tile){.data = o->data,
        .slot = s ? s->offset : -1,
        .width = width,
        .home_row = (uint32_t)width * (uint32_t)dtype_bytes(o->type),
        .slot_row = (uint32_t)rows_ld(width) * (uint32_t)dtype_bytes((dtype)slot_type),
        .type = (uint8_t)o->type,
        .slot_type = (uint8_t)slot_type};
}

static const rows_tile no_tile = {.slot = -1};

// Something that is read where it lies.
static rows_tile tile_read(rows_compiler *r, const operand *o) {
    return o->data ? tile_at(o, slot_find(r, o->data, o->type)) : no_tile;
}

// A result. With `whole`, every column is written and a slot is made for it; otherwise the one it has is used.
static rows_tile tile_write(rows_compiler *r, const operand *o, bool whole) {
    for (int i = r->slots - 1; i >= 0; i--)
        if (r->slot[i].home == o->data && r->slot[i].type != (int)o->type) slot_drop(r, i);
    rows_slot *s = slot_find(r, o->data, o->type);
    bool resident = s != NULL;
    if (!s && whole) s = slot_take(r, o->data, o->type, operand_width(o));
    rows_tile t = tile_at(o, s);
    t.add = !o->add ? ROWS_OVERWRITE : resident ? ROWS_ADD_SLOT : ROWS_ADD_HOME;
    return t;
}

// Instructions

static rows_instr *emit(rows_compiler *r, rows_op op) {
    if (r->made.count + r->tails == ROWS_MOST) return NULL;
    rows_instr *i = op >= ROWS_LOSS_ADD ? &r->tail[r->tails++] : &r->made.code[r->made.count++];
    *i = (rows_instr){.a = no_tile, .b = no_tile, .to = no_tile, .op = (uint8_t)op};
    r->now++;
    return i;
}

// `o` as an operand of products: in a slot, in the row kernel's type.
static bool load(rows_compiler *r, const operand *o, rows_tile *t) {
    int type = r->made.low;
    rows_slot *s = slot_find(r, o->data, type);
    if (s) {
        *t = tile_at(o, s);
        return true;
    }
    rows_instr *i = emit(r, ROWS_LOAD);
    if (!i) return false;
    i->a = tile_read(r, o);
    s = slot_take(r, o->data, type, operand_width(o));
    if (!s) return false;
    *t = i->to = tile_at(o, s);
    i->to.data = NULL;
    i->to.type = (uint8_t)type;
    return true;
}

bool rows_weights_wide(int64_t I, int64_t O, int64_t rounds) {
    return rounds * I * O * (int64_t)sizeof(float) > WEIGHT_BYTES;
}

static bool is_wide(const rows_compiler *r, int64_t I, int64_t O) {
    return rows_weights_wide(I, O, (rows_blocks(r->made.rows) + r->multiprocessors - 1) / r->multiprocessors);
}

// True if the row kernel multiplies as this layer does.
static bool math_fits(rows_compiler *r, const call *c) {
    dtype t = c->out[0].type;
    if (t == DTYPE_F32 && r->made.low != DTYPE_F32) return false;
    r->full |= t == DTYPE_F32;
    r->made.tf32 = c->tf32;
    return is_float(&c->in[1]) && is_float(&c->in[2]);
}

size_t rows_pack_bytes(const rows_pack *p, int low) {
    int columns = rows_columns(p);
    size_t groups = (size_t)((p->N + columns - 1) / columns), runs = (size_t)((p->K + ROWS_TERMS - 1) / ROWS_TERMS);
    return groups * runs * (size_t)columns * ROWS_TERMS * dtype_bytes((dtype)low);
}

size_t rows_pack_room(const rows_pack *p, int low) {
    size_t columns = (size_t)((p->N + rows_columns(p) - 1) / rows_columns(p)) * (size_t)rows_columns(p);
    return rows_pack_bytes(p, low) + (p->bias ? (columns * sizeof(float) + 255) / 256 * 256 : 0);
}

// How a product reads its weights w and stores its results `to`: wide ones with four tiles of 8 columns to a warp,
// of which a lane holds 8 columns side by side, others with one tile and 2 columns.
static void lay_product(rows_compiler *r, rows_instr *i, const operand *w, const operand *to) {
    int64_t width = operand_width(to);
    rows_pack *p = &r->pack[r->packs++];
    i->flag = r->wide && width >= WIDE && width % (2 * ROWS_WIDE) == 0;
    r->made.wide |= i->flag;
    *p = (rows_pack){.weights = w->data,
        .bias = i->p[1],
        .offset = (uint32_t)r->packed,
        .K = i->a.width,
        .N = (int32_t)width,
        .back = i->op == ROWS_LINEAR_BACK,
        .wide = i->flag,
        .instr = (uint8_t)(i - r->made.code)};
    r->packed += rows_pack_room(p, r->made.low);
    int run = i->flag ? 2 * ROWS_WIDE : 2;
    size_t bytes = (size_t)run * dtype_bytes(to->type);
    i->to.vectors = width % run == 0 && (uintptr_t)to->data % (bytes < 16 ? bytes : 16) == 0;
}

static bool add_linear(rows_compiler *r, const call *c) {
    activation act = ((const linear_attr *)c->attr)->act;
    rows_tile a;
    bool kept = act == ACT_GELU && c->reserve; // its sums, for which a row kernel has no place
    if (kept || is_wide(r, operand_width(&c->in[0]), operand_width(&c->out[0])) || !math_fits(r, c)) return false;
    if (!claim_rows(r, &c->in[0], false, false) || !claim_whole(r, &c->in[1], false) ||
        !claim_whole(r, &c->in[2], false) || !claim_rows(r, &c->out[0], true, false))
        return false;
    if (!load(r, &c->in[0], &a)) return false;
    rows_instr *i = emit(r, ROWS_LINEAR);
    if (!i) return false;
    slot_find(r, c->in[0].data, r->made.low);
    i->a = a;
    i->to = tile_write(r, &c->out[0], true);
    i->p[1] = c->in[2].data;
    i->act = (uint8_t)act;
    lay_product(r, i, &c->in[1], &c->out[0]);
    return true;
}

// dz, and what is kept of it: in the call's scratch, or dy itself where the activation has no slope.
static bool add_slope(rows_compiler *r, const call *c, operand *dz) {
    activation act = ((const linear_attr *)c->attr)->act;
    *dz = c->dout[0];
    if (act == ACT_NONE) return claim_rows(r, dz, false, true);
    *dz = c->out[0];
    dz->data = c->scratch;
    dz->add = false;
    if (!claim_rows(r, &c->dout[0], false, false) || !claim_rows(r, &c->out[0], false, false) ||
        !claim_rows(r, dz, true, true))
        return false;
    rows_instr *i = emit(r, ROWS_SLOPE);
    if (!i) return false;
    i->a = tile_read(r, &c->dout[0]);
    i->b = tile_read(r, &c->out[0]);
    i->to = tile_write(r, dz, true);
    i->act = (uint8_t)act;
    return true;
}

// The parts of the weights' gradients lie behind dz in the call's scratch, which the launch after the row kernel
// writes.
static bool hold_weights(rows_compiler *r, const call *c, size_t scratch) {
    const operand *out = &c->out[0];
    bool none = ((const linear_attr *)c->attr)->act == ACT_NONE;
    size_t dz = none ? 0 : (size_t)operand_count(out) * dtype_bytes(out->type);
    if (!c->din[1].data && !c->din[2].data) return true;
    if (r->weights == ROWS_WEIGHTS || !claim_rows(r, &c->in[0], false, true)) return false;
    if (!claim_whole(r, &c->din[1], true) || !claim_whole(r, &c->din[2], true)) return false;
    r->weight[r->weights++] = c;
    return scratch <= dz || claim_bytes(r, (const char *)c->scratch + dz, scratch - dz, true);
}

static bool add_linear_back(rows_compiler *r, const call *c) {
    operand dz;
    rows_tile a;
    if (((const linear_attr *)c->attr)->act == ACT_GELU || !c->dout[0].data || !math_fits(r, c)) return false;
    if (c->din[0].data && is_wide(r, operand_width(&c->in[0]), operand_width(&c->out[0]))) return false;
    if (!add_slope(r, c, &dz) || !hold_weights(r, c, scratch_of(r, c))) return false;
    if (!c->din[0].data) return true;
    if (!claim_whole(r, &c->in[1], false) || !claim_rows(r, &c->din[0], true, false)) return false;
    if (!load(r, &dz, &a)) return false;
    rows_instr *i = emit(r, ROWS_LINEAR_BACK);
    if (!i) return false;
    slot_find(r, dz.data, r->made.low);
    i->a = a;
    i->to = tile_write(r, &c->din[0], true);
    lay_product(r, i, &c->in[1], &c->din[0]);
    return true;
}

static bool add_dropout(rows_compiler *r, const call *c) {
    float p = ((const dropout_attr *)c->attr)->probability;
    const operand *from = c->backward ? &c->dout[0] : &c->in[0], *to = c->backward ? &c->din[0] : &c->out[0];
    if (!claim_rows(r, from, false, false) || !claim_rows(r, to, true, false)) return false;
    rows_instr *i = emit(r, ROWS_DROPOUT);
    if (!i) return false;
    i->a = tile_read(r, from);
    i->to = tile_write(r, to, true);
    i->node = c->node;
    i->least = random_threshold(p);
    i->x = (float)random_scale(p);
    i->flag = c->training;
    r->made.step = c->step;
    return true;
}

// n columns of `from`, times x, to n columns of `to`.
typedef struct {
    int64_t from, to, n;
    float x;
} columns;

static bool add_copy(rows_compiler *r, const operand *from, const operand *to, columns k, bool whole) {
    rows_instr *i = emit(r, ROWS_COPY);
    if (!i) return false;
    i->a = tile_read(r, from);
    i->to = tile_write(r, to, whole);
    i->a.column = (int32_t)k.from;
    i->to.column = (int32_t)k.to;
    i->n = (int32_t)k.n;
    i->x = k.x;
    return true;
}

static bool add_concat(rows_compiler *r, const call *c) {
    int64_t at = 0;
    for (int k = 0; k < c->inputs; k++)
        if (!claim_rows(r, &c->in[k], false, false)) return false;
    if (!claim_rows(r, &c->out[0], true, false)) return false;
    for (int k = 0; k < c->inputs; k++) {
        int64_t n = operand_width(&c->in[k]);
        if (!add_copy(r, &c->in[k], &c->out[0], (columns){0, at, n, 1}, k == 0)) return false;
        at += n;
    }
    return true;
}

static bool add_concat_back(rows_compiler *r, const call *c) {
    int64_t at = 0;
    if (!claim_rows(r, &c->dout[0], false, false)) return false;
    for (int k = 0; k < c->inputs; k++) {
        int64_t n = operand_width(&c->in[k]);
        if (c->din[k].data && !claim_rows(r, &c->din[k], true, false)) return false;
        if (c->din[k].data && !add_copy(r, &c->dout[0], &c->din[k], (columns){at, 0, n, 1}, true)) return false;
        at += n;
    }
    return true;
}

static bool add_slice(rows_compiler *r, const call *c) {
    const slice_attr *s = c->attr;
    if (!c->backward) {
        if (!claim_rows(r, &c->in[0], false, false) || !claim_rows(r, &c->out[0], true, false)) return false;
        return add_copy(r, &c->in[0], &c->out[0], (columns){s->begin, 0, s->end - s->begin, 1}, true);
    }
    if (!claim_rows(r, &c->dout[0], false, false) || !claim_rows(r, &c->din[0], true, false)) return false;
    rows_instr *i = emit(r, ROWS_SLICE_BACK);
    if (!i) return false;
    i->a = tile_read(r, &c->dout[0]);
    i->to = tile_write(r, &c->din[0], true);
    i->a.column = (int32_t)-s->begin;
    return true;
}

static bool add_axpby(rows_compiler *r, const call *c) {
    const axpby_attr *k = c->attr;
    if (!claim_rows(r, &c->in[0], false, false) || !claim_rows(r, &c->out[0], true, false)) return false;
    if (c->in[1].data && !claim_rows(r, &c->in[1], false, false)) return false;
    rows_instr *i = emit(r, ROWS_AXPBY);
    if (!i) return false;
    i->a = tile_read(r, &c->in[0]);
    i->b = tile_read(r, &c->in[1]);
    i->to = tile_write(r, &c->out[0], true);
    i->x = k->a;
    i->y = k->b;
    return true;
}

static bool add_axpby_back(rows_compiler *r, const call *c) {
    const axpby_attr *k = c->attr;
    if (!claim_rows(r, &c->dout[0], false, false)) return false;
    for (int j = 0; j < 2; j++) {
        const operand *to = &c->din[j];
        columns all = {0, 0, operand_width(&c->dout[0]), j ? k->b : k->a};
        if (j >= c->inputs || !to->data) continue;
        if (!claim_rows(r, to, true, false) || !add_copy(r, &c->dout[0], to, all, true)) return false;
    }
    return true;
}

// Inputs that both losses read besides the first one.
static bool loss_reads(rows_compiler *r, const call *c, rows_instr *i) {
    bool pointwise = c->op != OP_cross_entropy;
    if (!claim_whole(r, &c->in[2], false) || !is_float(&c->in[2])) return false;
    i->p[1] = c->in[2].data;
    i->flag = c->op == OP_mse;
    if (pointwise) {
        i->b = tile_read(r, &c->in[1]);
        return claim_rows(r, &c->in[1], false, false);
    }
    i->p[0] = c->in[1].data;
    i->p[2] = c->in[3].data;
    i->x = ((const cross_entropy_attr *)c->attr)->smoothing;
    return claim_whole(r, &c->in[1], false) && claim_whole(r, &c->in[3], false) && is_float(&c->in[3]);
}

static bool add_loss(rows_compiler *r, const call *c) {
    if (!claim_rows(r, &c->in[0], false, false) || !is_float(&c->out[0])) return false;
    if (!claim_bytes(r, c->scratch, scratch_of(r, c), true) || !claim_last(r, &c->out[0])) return false;
    rows_instr *i = emit(r, c->op == OP_cross_entropy ? ROWS_CROSS_ENTROPY : ROWS_POINTWISE);
    if (!i || !loss_reads(r, c, i)) return false;
    i->a = tile_read(r, &c->in[0]);
    i->to.data = c->scratch;
    i = emit(r, ROWS_LOSS_ADD);
    if (!i) return false;
    i->a.data = c->scratch;
    i->to.data = c->out[0].data;
    return true;
}

static bool add_loss_back(rows_compiler *r, const call *c) {
    bool pointwise = c->op != OP_cross_entropy;
    if (!claim_rows(r, &c->in[0], false, false) || !claim_rows(r, &c->din[0], true, false)) return false;
    if (!c->dout[0].data || !is_float(&c->dout[0]) || !claim_whole(r, &c->dout[0], false)) return false;
    rows_instr *i = emit(r, pointwise ? ROWS_POINTWISE_BACK : ROWS_CROSS_ENTROPY_BACK);
    if (!i || !loss_reads(r, c, i)) return false;
    i->a = tile_read(r, &c->in[0]);
    i->to = tile_write(r, &c->din[0], true);
    if (pointwise) {
        i->p[0] = c->dout[0].data;
    } else {
        i->b.data = c->dout[0].data;
    }
    return true;
}

static bool add_confusion(rows_compiler *r, const call *c) {
    if (!claim_rows(r, &c->in[0], false, false) || !is_float(&c->in[2])) return false;
    if (!claim_whole(r, &c->in[1], false) || !claim_whole(r, &c->in[2], false) || !claim_whole(r, &c->out[0], true))
        return false;
    rows_instr *i = emit(r, ROWS_CONFUSION);
    if (!i) return false;
    i->a = tile_read(r, &c->in[0]);
    i->p[0] = c->in[1].data;
    i->p[1] = c->in[2].data;
    i->to.data = c->out[0].data;
    return true;
}

// A tally belongs to a loss of this row kernel, whose sum is formed behind it.
static bool add_tally(rows_compiler *r, const call *c) {
    rows_instr *loss = NULL;
    for (int k = 0; k < r->tails; k++)
        if (r->tail[k].op == ROWS_LOSS_ADD && r->tail[k].to.data == c->in[0].data) loss = &r->tail[k];
    if (!loss || loss->p[0] || !claim_last(r, &c->out[0])) return false;
    loss->p[0] = c->out[0].data;
    loss->flag = c->first;
    return true;
}

static bool add_advance(rows_compiler *r, const call *c) {
    if (!((const advance_attr *)c->attr)->after_micro || c->batch > INT32_MAX || !r->made.count) return false;
    rows_instr *i = emit(r, ROWS_ADVANCE);
    if (!i) return false;
    i->n = (int32_t)c->batch;
    r->made.step = c->step;
    r->closed = true;
    return true;
}

static bool add_forward(rows_compiler *r, const call *c) {
    switch (c->op) {
    case OP_linear: return add_linear(r, c);
    case OP_dropout: return add_dropout(r, c);
    case OP_concat: return add_concat(r, c);
    case OP_slice: return add_slice(r, c);
    case OP_axpby: return add_axpby(r, c);
    case OP_cross_entropy:
    case OP_mse:
    case OP_mae: return add_loss(r, c);
    case OP_confusion: return add_confusion(r, c);
    case OP_tally: return add_tally(r, c);
    case OP_advance: return add_advance(r, c);
    default: return false;
    }
}

static bool add_backward(rows_compiler *r, const call *c) {
    switch (c->op) {
    case OP_linear: return add_linear_back(r, c);
    case OP_dropout: return add_dropout(r, c);
    case OP_concat: return add_concat_back(r, c);
    case OP_slice: return add_slice(r, c);
    case OP_axpby: return add_axpby_back(r, c);
    case OP_cross_entropy:
    case OP_mse:
    case OP_mae: return add_loss_back(r, c);
    default: return false;
    }
}

int64_t rows_of(const call *c) {
    if (c->op == OP_draw || c->op == OP_take || c->op == OP_window || !c->inputs || c->in[0].shape.rank != 2) return 0;
    return c->in[0].shape.dim[0] <= INT32_MAX ? c->in[0].shape.dim[0] : 0;
}

bool rows_add(rows_compiler *r, const call *c) {
    rows_compiler before = *r;
    if (!r->closed && (c->backward ? add_backward(r, c) : add_forward(r, c))) return true;
    *r = before;
    return false;
}

// The result has no slot: nothing of the row kernel reads it. So a product before it can go on with it.
static bool add_slope_after(rows_compiler *r, const call *c) {
    const operand *dy = &c->dout[0], *y = &c->out[0];
    activation act = ((const linear_attr *)c->attr)->act;
    const rows_instr *last = r->made.count ? &r->made.code[r->made.count - 1] : NULL;
    if (r->closed || !last || (last->op != ROWS_LINEAR_BACK && last->op != ROWS_DROPOUT)) return false;
    if (act != ACT_RELU || last->to.data != dy->data || last->to.type != dy->type || y->type != dy->type) return false;
    if (!claim_rows(r, dy, true, false) || !claim_rows(r, y, false, false)) return false;
    if (operand_width(dy) != last->to.width || operand_width(y) != last->to.width) return false;
    rows_instr *i = emit(r, ROWS_SLOPE);
    if (!i) return false;
    i->a = tile_read(r, dy);
    i->b = tile_read(r, y);
    i->to = tile_at(dy, NULL);
    i->act = (uint8_t)act;
    for (int k = r->slots - 1; k >= 0; k--)
        if (r->slot[k].home == dy->data) slot_drop(r, k);
    return true;
}

bool rows_add_slope(rows_compiler *r, const call *c) {
    rows_compiler before = *r;
    if (add_slope_after(r, c)) return true;
    *r = before;
    return false;
}

void rows_over(rows_compiler *r, const operand *o, bool over) {
    for (int i = 0; i < r->claims; i++) {
        rows_claim *c = &r->claim[i];
        if (c->begin != o->data) continue;
        c->over |= over;
        c->wanted |= !over;
    }
}

// True if fours of a tile's columns are words. Slots and their rows are aligned.
static bool words_at(const rows_tile *t, bool home) {
    size_t word = 4 * dtype_bytes((dtype)t->type);
    return t->column % 4 == 0 && (!home || ((uintptr_t)t->data % word == 0 && t->home_row % word == 0));
}

static bool words_of(const rows_instr *i) {
    bool a = words_at(&i->a, i->a.slot < 0), b = !i->b.data || words_at(&i->b, i->b.slot < 0);
    bool whole = i->op == ROWS_COPY || i->a.width % 4 == 0;
    return i->n % 4 == 0 && whole && a && b && words_at(&i->to, i->to.data);
}

// True if a tile is loaded as it lies, in units of 16 bytes; a slot's rows begin at multiples of that.
static bool is_plain(const rows_instr *i) {
    size_t row = (size_t)i->a.width * dtype_bytes((dtype)i->a.type);
    return i->op == ROWS_LOAD && i->a.slot < 0 && !i->to.data && i->a.type == i->to.slot_type && !i->a.column &&
           !i->to.column && row % 16 == 0 && i->a.home_row % 16 == 0 && (uintptr_t)i->a.data % 16 == 0;
}

// True if a tile is of the row kernel's type wherever it lies, in units of 16 bytes.
static bool is_plain_tile(const row_kernel *p, const rows_tile *t, bool home) {
    if (t->type != p->low || (t->slot >= 0 && t->slot_type != p->low) || t->column) return false;
    return !home || (t->home_row % 16 == 0 && (uintptr_t)t->data % 16 == 0);
}

static bool is_plain_slope(const row_kernel *p, const rows_instr *i) {
    size_t row = (size_t)i->n * dtype_bytes((dtype)p->low);
    if (i->op != ROWS_SLOPE || i->act != ACT_RELU) return false;
    return row % 16 == 0 && i->to.add == ROWS_OVERWRITE && i->a.width == i->n && i->b.width == i->n &&
           is_plain_tile(p, &i->a, i->a.slot < 0) && is_plain_tile(p, &i->b, i->b.slot < 0) &&
           is_plain_tile(p, &i->to, i->to.data);
}

// How the threads of a block share out columns. With at most 32 rows of ROWS_WIDTH cells, the nth cell's row is exactly
// n * inverse / 2^31.
static void lay_cells(const row_kernel *p, rows_instr *i) {
    bool loss = i->op == ROWS_CROSS_ENTROPY_BACK;
    if (loss) i->n = i->to.width;
    i->vectors = !loss && words_of(i);
    i->cells = (uint32_t)i->n / (i->vectors ? 4 : 1);
    if (is_plain(i) || is_plain_slope(p, i)) {
        i->vectors = ROWS_PLAIN;
        i->cells = (uint32_t)i->a.width * (uint32_t)dtype_bytes((dtype)i->a.type) / 16;
    }
    i->inverse = i->cells ? ((1u << 31) + i->cells - 1) / i->cells : 0;
}

static bool has_cells(const rows_instr *i) {
    return rows_is_map(i) || i->op == ROWS_CROSS_ENTROPY_BACK;
}

void rows_place(rows_compiler *r, void *at) {
    for (int i = 0; i < r->packs; i++) {
        const rows_pack *p = &r->pack[i];
        rows_instr *to = &r->made.code[p->instr];
        to->p[0] = (char *)at + p->offset;
        if (p->bias) to->p[1] = (char *)at + p->offset + rows_pack_bytes(p, r->made.low);
    }
}

// Blocks that are alone on their multiprocessor have room for weights, which then come while the product before is
// under way: each product loads those of the next one that fit.
static void bring_weights(rows_compiler *r) {
    row_kernel *p = &r->made;
    rows_instr *before = NULL;
    if (!p->wide || p->tiles > 1) return;
    for (int i = 0; i < r->packs; i++) {
        rows_instr *product = &p->code[r->pack[i].instr];
        int bytes = (int)rows_pack_bytes(&r->pack[i], p->low);
        if (before && p->room + bytes <= r->limit) {
            before->n = (int32_t)(product - before);
            product->b.slot = p->room;
            product->cells = (uint32_t)bytes / 16;
            p->room += bytes;
        }
        before = product;
    }
}

void rows_end(rows_compiler *r) {
    row_kernel *p = &r->made;
    rows_fold(r);
    p->body = p->count;
    rows_open_losses(p);
    rows_chain(p);
    rows_trim(r);
    for (int i = 0; i < p->body; i++)
        if (has_cells(&p->code[i])) lay_cells(p, &p->code[i]);
    rows_open_maps(p);
    rows_lay_head(r);
    bring_weights(r);
    for (int i = 0; i < r->tails; i++)
        if (r->tail[i].op == ROWS_LOSS_ADD) r->tail[i].n = (int32_t)rows_blocks(p->rows);
    memcpy(p->code + p->count, r->tail, (size_t)r->tails * sizeof *r->tail);
    p->count += r->tails;
}
