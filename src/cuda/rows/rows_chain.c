#include "cuda/rows/rows_chain.h"

#include "cuda/rows/rows_fold.h"
#include "ops/ops.h"

// True if the n columns of a tile that an instruction has are runs of a product's columns, and words of the tile.
static bool runs_of(const rows_instr *product, const rows_tile *t, int n, bool home) {
    int run = product->flag ? 2 * ROWS_WIDE : 2;
    size_t bytes = (size_t)run * dtype_bytes((dtype)t->type), word = bytes < 16 ? bytes : 16;
    if (t->column < 0 || t->column + n > t->width || t->column % run || n % run) return false;
    return !home || ((uintptr_t)t->data % word == 0 && t->home_row % word == 0);
}

// The instruction of the product and those that are chained to it that wrote a tile last, or NULL.
static const rows_instr *writer_of(const rows_instr *product, const rows_instr *next, const rows_tile *t) {
    for (const rows_instr *i = next - 1; i >= product; i--)
        if (t->data && i->to.data == t->data) return i;
    return NULL;
}

static bool chains_kind(const rows_instr *i) {
    return i->op == ROWS_DROPOUT || i->op == ROWS_COPY || i->op == ROWS_AXPBY ||
           (i->op == ROWS_SLOPE && i->act != ACT_GELU);
}

// True if warps can write the tile of `next` while others are still at the product or at what is chained to it.
static bool chains_writes(const row_kernel *p, const rows_instr *product, const rows_instr *next,
    const rows_instr *source, const rows_tile *other) {
    if (rows_slots_meet(p, &next->to, &product->a) || rows_slots_meet(p, &next->to, other)) return false;
    bool whole = rows_writes_all(next) && rows_writes_all(source);
    for (const rows_instr *i = product; i < next; i++) {
        bool one = next->to.data == i->to.data, meets = rows_slots_meet(p, &next->to, &i->to);
        if ((one || meets) && !(i == source && whole && !meets) && !rows_columns_apart(i, next)) return false;
        if (i > product && (rows_slots_meet(p, &next->to, &i->b) || (i->b.data && i->b.data == next->to.data)))
            return false;
    }
    return other->data != next->to.data || !other->data || (rows_writes_all(next) && other->column == 0);
}

// True if an instruction can go on with results of a product while other warps are still at the product: it takes what
// the product or the one before it has in registers, reads nothing that they write, and takes no slot that anything
// before it uses. Returns how it takes it, or -1.
static int chains(const row_kernel *p, const rows_instr *product, const rows_instr *next) {
    const rows_instr *a = writer_of(product, next, &next->a), *b = writer_of(product, next, &next->b);
    const rows_instr *source = a ? a : b;
    const rows_tile *taken = a ? &next->a : &next->b, *other = a ? &next->b : &next->a;
    if (!chains_kind(next) || !source || (a && b) || (b && next->op != ROWS_AXPBY)) return -1;
    if (source != next - 1 && (source != product || product->flag)) return -1;
    if (!rows_writes_all(source)) return -1;
    if (taken->type != source->to.type || !runs_of(product, taken, next->n, false)) return -1;
    if (!runs_of(product, &next->to, next->n, next->to.data)) return -1;
    if (other->data && !runs_of(product, other, next->n, other->slot < 0)) return -1;
    if (!chains_writes(p, product, next, source, other)) return -1;
    return (source == product ? ROWS_OF_PRODUCT : 0) | (a ? 0 : ROWS_AS_SECOND);
}

// A result that goes on in registers and then takes the same place is not written before that.
static void pass_on(rows_instr *product, rows_instr *next) {
    rows_instr *source = next->takes & ROWS_OF_PRODUCT ? product : next - 1;
    if (source->to.data != next->to.data || source->to.add != ROWS_OVERWRITE) return;
    source->to.data = NULL;
    source->to.slot = -1;
}

// True if a home is as it was before the row kernel when instruction i comes.
static bool is_early(const row_kernel *p, const rows_instr *i, const void *home) {
    for (const rows_instr *before = p->code; before < i; before++)
        if (before->to.data == home) return false;
    return true;
}

// The operand taken from registers becomes its a, which it does not read.
static void chain_to(const row_kernel *p, rows_instr *product, rows_instr *next, int takes) {
    rows_tile taken = takes & ROWS_AS_SECOND ? next->b : next->a;
    if (takes & ROWS_AS_SECOND) next->b = next->a;
    next->a = taken;
    next->a.data = NULL;
    next->a.slot = -1;
    next->takes = (uint8_t)takes;
    bool reads = next->b.data && next->b.slot < 0 && takes & ROWS_OF_PRODUCT;
    if (reads && is_early(p, next, next->b.data)) next->takes |= ROWS_EARLY;
    product->chain++;
    pass_on(product, next);
}

void rows_chain(row_kernel *p) {
    for (int i = 0; i < p->body; i += 1 + p->code[i].chain) {
        rows_instr *product = &p->code[i], *next;
        bool is = product->op == ROWS_LINEAR || product->op == ROWS_LINEAR_BACK;
        if (is && product->to.add == ROWS_ADD_HOME && product->to.vectors && is_early(p, product, product->to.data))
            product->takes = ROWS_EARLY;
        while (is && product->to.vectors && (next = product + 1 + product->chain) < p->code + p->body) {
            int takes = chains(p, product, next);
            if (takes < 0) break;
            chain_to(p, product, next, takes);
        }
    }
}
