#include "cuda/rows/rows_open.h"

#include "cuda/rows/rows_fold.h"

// A loss or a metric reads rows and writes none: what follows it can run beside it, on another warp, as long as that is
// of their kind or their gradient, and writes nothing that those before it still read.
enum { LAST_WARP = 7 };

static bool only_reads(int op) {
    return op == ROWS_CROSS_ENTROPY || op == ROWS_POINTWISE || op == ROWS_CONFUSION;
}

static bool reads(const row_kernel *p, const rows_instr *i, const rows_tile *written) {
    if (!written->data) return false;
    return rows_slots_meet(p, written, &i->a) || rows_slots_meet(p, written, &i->b) || written->data == i->a.data ||
           written->data == i->b.data;
}

static bool opens(const row_kernel *p, const rows_instr *first, const rows_instr *next) {
    bool back = next->op == ROWS_CROSS_ENTROPY_BACK || next->op == ROWS_POINTWISE_BACK;
    if (only_reads(next->op)) return true;
    for (const rows_instr *i = first; back && i < next; i++) back = !reads(p, i, &next->to);
    return back;
}

void rows_open_losses(row_kernel *p) {
    rows_instr *first = p->code; // of those that run side by side
    for (int i = 0; i + 1 < p->body; i++) {
        rows_instr *now = &p->code[i], *next = now + 1;
        if (!now->warp) first = now;
        if (!only_reads(now->op) || now->warp == LAST_WARP || !opens(p, first, next)) continue;
        now->open = 1;
        next->warp = (uint8_t)(now->warp + 1);
    }
}

// Instructions element by element that follow each other need no barrier between them where a thread meets only what it
// has read and written itself: tiles apart from each other, or the same cells of one.
static bool same_cells(const rows_instr *i, const rows_tile *x, const rows_instr *j, const rows_tile *y) {
    return i->cells == j->cells && i->vectors == j->vectors && i->warp == j->warp && x->column == y->column;
}

// True if a tile of i and one of j, of which at least one is written, are so.
static bool tiles_agree(
    const row_kernel *p, const rows_instr *i, const rows_tile *x, const rows_instr *j, const rows_tile *y) {
    bool home = x->data && x->data == y->data, slots = rows_slots_meet(p, x, y);
    if (!home && !slots) return true;
    bool one = x->slot == y->slot && x->slot_row == y->slot_row && x->slot_type == y->slot_type;
    return (!slots || one) && same_cells(i, x, j, y);
}

// A plain load copies at any time up to the next barrier: until then not even its own thread may touch source or
// target.
static bool load_is_under_way(const row_kernel *p, const rows_instr *i, const rows_instr *j) {
    return i->op == ROWS_LOAD && i->vectors == ROWS_PLAIN &&
           (rows_slots_meet(p, &i->to, &j->a) || rows_slots_meet(p, &i->to, &j->b) ||
               rows_slots_meet(p, &i->to, &j->to) || (j->to.data && j->to.data == i->a.data));
}

static bool maps_agree(const row_kernel *p, const rows_instr *i, const rows_instr *j) {
    if (load_is_under_way(p, i, j)) return false;
    return tiles_agree(p, i, &i->to, j, &j->a) && tiles_agree(p, i, &i->to, j, &j->b) &&
           (rows_columns_apart(i, j) || tiles_agree(p, i, &i->to, j, &j->to)) && tiles_agree(p, i, &i->a, j, &j->to) &&
           tiles_agree(p, i, &i->b, j, &j->to);
}

static bool map_opens(const row_kernel *p, const rows_instr *first, const rows_instr *next) {
    bool opens = rows_is_map(next);
    for (const rows_instr *i = first; opens && i < next; i++) opens = rows_is_map(i) && maps_agree(p, i, next);
    return opens;
}

// Small ones that have nothing to do with each other begin with different warps; what has keeps to the same.
static void share_warps(const row_kernel *p, const rows_instr *first, rows_instr *next) {
    enum { WARPS = LAST_WARP + 1, LANES_OF_WARP = 32 };
    const rows_instr *tied = NULL;
    int used = 0;
    for (const rows_instr *i = first; i < next; i++) {
        int warps = ((int)i->cells * p->tiles * ROWS_TILE + LANES_OF_WARP - 1) / LANES_OF_WARP;
        if (!rows_is_map(i) || !rows_is_map(next)) return;
        if (!rows_is_free_of(p, next, i)) tied = i;
        used += warps < WARPS ? warps : WARPS;
    }
    next->warp = tied ? tied->warp : (uint8_t)(used % WARPS);
}

void rows_open_maps(row_kernel *p) {
    int first = 0; // since the last barrier
    for (int i = 0, next; i < p->body; i = next) {
        rows_instr *now = &p->code[i];
        next = i + 1 + now->chain;
        if (now->open) continue;
        if (next < p->body) share_warps(p, &p->code[first], &p->code[next]);
        if (next < p->body && map_opens(p, &p->code[first], &p->code[next])) {
            now->open = 1;
        } else {
            first = next;
        }
    }
}
