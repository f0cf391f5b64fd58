#include "cuda/rows/rows_fold.h"

#include <string.h>

// How instructions touch tiles. Homes that overlap and are written are one tensor (rows_add sees to that), so that
// addresses tell.

bool rows_is_map(const rows_instr *i) {
    switch (i->op) {
    case ROWS_LOAD:
    case ROWS_SLOPE:
    case ROWS_DROPOUT:
    case ROWS_COPY:
    case ROWS_SLICE_BACK:
    case ROWS_AXPBY:
    case ROWS_POINTWISE_BACK: return true;
    default: return false;
    }
}

static bool is_product(const rows_instr *i) {
    return i->op == ROWS_LINEAR || i->op == ROWS_LINEAR_BACK;
}

bool rows_slots_meet(const row_kernel *p, const rows_tile *a, const rows_tile *b) {
    int rows = p->tiles * ROWS_TILE;
    if (a->slot < 0 || b->slot < 0) return false;
    return a->slot < b->slot + rows * (int)b->slot_row && b->slot < a->slot + rows * (int)a->slot_row;
}

bool rows_columns_apart(const rows_instr *i, const rows_instr *j) {
    if (i->op != ROWS_COPY || j->op != ROWS_COPY) return false;
    if (i->to.data != j->to.data || i->to.slot != j->to.slot) return false;
    if (i->to.add != ROWS_OVERWRITE || j->to.add != ROWS_OVERWRITE) return false;
    return i->to.column + i->n <= j->to.column || j->to.column + j->n <= i->to.column;
}

bool rows_writes_all(const rows_instr *i) {
    return is_product(i) || (i->to.column == 0 && i->n == i->to.width);
}

// True if two tiles share memory, in a slot or at home.
static bool meet(const row_kernel *p, const rows_tile *a, const rows_tile *b) {
    return (a->data && a->data == b->data) || rows_slots_meet(p, a, b);
}

// True if an instruction stands in the way of one that would write its result before it, or behind it.
static bool is_in_the_way(const row_kernel *p, const rows_instr *i, const rows_instr *writer) {
    if (meet(p, &i->a, &writer->to) || meet(p, &i->b, &writer->to)) return true;
    return meet(p, &i->to, &writer->to) && !rows_columns_apart(i, writer);
}

static bool touches(const row_kernel *p, const rows_instr *i, const rows_tile *t) {
    return meet(p, &i->a, t) || meet(p, &i->b, t) || meet(p, &i->to, t);
}

static bool reads_home(const rows_instr *i, const void *home) {
    return (i->a.slot < 0 && i->a.data == home) || (i->b.slot < 0 && i->b.data == home) ||
           (i->to.add == ROWS_ADD_HOME && i->to.data == home);
}

static bool reads_slot(const rows_instr *i, int slot) {
    return i->a.slot == slot || i->b.slot == slot || (i->to.add == ROWS_ADD_SLOT && i->to.slot == slot);
}

// True if one of the instructions behind the kth reads what that writes, in its slot or at home.
static bool slot_is_read(const row_kernel *p, int k) {
    int slot = p->code[k].to.slot;
    for (int j = k + 1; slot >= 0 && j < p->count; j++)
        if (reads_slot(&p->code[j], slot)) return true;
    return false;
}

static bool home_is_read(const row_kernel *p, int k) {
    const void *home = p->code[k].to.data;
    for (int j = k + 1; home && j < p->count; j++)
        if (reads_home(&p->code[j], home)) return true;
    return false;
}

// True if nobody reads a home after the row kernel.
static bool is_over(const rows_compiler *r, const void *home) {
    bool over = false;
    for (int i = 0; i < r->claims; i++) {
        const rows_claim *c = &r->claim[i];
        if (c->begin != home) continue;
        if (c->held || c->wanted) return false;
        over |= c->over;
    }
    return over;
}

// The last instruction before the kth that writes a home, or -1.
static int writer_before(const row_kernel *p, int k, const void *home) {
    while (--k >= 0 && p->code[k].to.data != home) continue;
    return k;
}

// Changes of the list: packs know instructions by their numbers

static void take_out(rows_compiler *r, int k) {
    row_kernel *p = &r->made;
    p->count--;
    memmove(&p->code[k], &p->code[k + 1], (size_t)(p->count - k) * sizeof *p->code);
    for (int i = 0; i < r->packs; i++)
        if (r->pack[i].instr > k) r->pack[i].instr--;
}

static void move_up(rows_compiler *r, int from, int to) {
    rows_instr *code = r->made.code, moved = code[from];
    memmove(&code[to + 1], &code[to], (size_t)(from - to) * sizeof *code);
    code[to] = moved;
    for (int i = 0; i < r->packs; i++)
        if (r->pack[i].instr >= to && r->pack[i].instr < from) r->pack[i].instr++;
}

// The gradient of a tensor that is cut into slices: zeros with the first slice's in it, to which the others are added.
// Where they leave no column out, each is copied to its place.

typedef struct {
    int at[ROWS_MOST], count;
} slices;

static bool is_apart(const row_kernel *p, const slices *s, const rows_instr *next) {
    for (int i = 0; i < s->count; i++) {
        const rows_tile *a = &p->code[s->at[i]].a, *b = &next->a;
        if (-a->column < -b->column + b->width && -b->column < -a->column + a->width) return false;
    }
    return true;
}

static bool find_slices(const row_kernel *p, int first, slices *s) {
    const rows_tile *to = &p->code[first].to;
    int covered = p->code[first].a.width;
    *s = (slices){{first}, 1};
    for (int j = first + 1; covered < to->width && j < p->count; j++) {
        const rows_instr *next = &p->code[j];
        bool one = next->op == ROWS_SLICE_BACK && next->to.data == to->data && next->to.slot == to->slot &&
                   next->to.add == ROWS_ADD_SLOT && !meet(p, &next->a, to);
        if (!one && touches(p, next, to)) return false;
        if (!one) continue;
        if (!is_apart(p, s, next)) return false;
        s->at[s->count++] = j;
        covered += next->a.width;
    }
    return covered == to->width;
}

static void copy_slices(row_kernel *p) {
    slices s;
    for (int i = 0; i < p->count; i++) {
        if (p->code[i].op != ROWS_SLICE_BACK || p->code[i].to.add != ROWS_OVERWRITE || !find_slices(p, i, &s)) continue;
        for (int k = 0; k < s.count; k++) {
            rows_instr *slice = &p->code[s.at[k]];
            slice->op = ROWS_COPY;
            slice->x = 1;
            slice->n = slice->a.width;
            slice->to.column = -slice->a.column;
            slice->to.add = ROWS_OVERWRITE;
            slice->a.column = 0;
        }
    }
}

// Copies

// True if a copy leaves values as they are and fills its tile.
static bool is_true_copy(const rows_instr *i) {
    return i->op == ROWS_COPY && i->x == 1 && i->to.add == ROWS_OVERWRITE && rows_writes_all(i) &&
           i->a.type == i->to.type && (i->a.slot < 0 || i->a.slot_type == i->a.type);
}

// Has instruction j read `t` where it was copied from, as long as that is still there.
static void read_source(const row_kernel *p, int j, rows_tile *t) {
    const rows_instr *reader = &p->code[j];
    int copy = t->data ? writer_before(p, j, t->data) : -1;
    if (copy < 0 || !is_true_copy(&p->code[copy])) return;
    if (t->column < 0 || t->column + reader->n > t->width) return;
    rows_tile from = p->code[copy].a;
    if (meet(p, &reader->to, &from)) return;
    for (int k = copy + 1; k < j; k++) {
        if (p->code[k].to.data == from.data) return;
        if (rows_slots_meet(p, &p->code[k].to, &from)) from.slot = -1;
    }
    from.column += t->column;
    *t = from;
}

static void read_sources(row_kernel *p) {
    for (int j = 0; j < p->count; j++) {
        if (!rows_is_map(&p->code[j]) || p->code[j].op == ROWS_LOAD) continue;
        read_source(p, j, &p->code[j].a);
        read_source(p, j, &p->code[j].b);
    }
}

// True if instruction i, a copy, may write where j copies its result to: nobody else reads that, nor is anything in the
// way between them.
static bool writes_further(const rows_compiler *r, int i, int j) {
    const row_kernel *p = &r->made;
    const rows_instr *first = &p->code[i], *second = &p->code[j];
    if (second->op != ROWS_COPY || second->x != 1 || second->to.add != ROWS_OVERWRITE) return false;
    if (second->a.column || second->n != second->a.width || second->a.type != second->to.type) return false;
    if (first->op != ROWS_COPY || first->to.add != ROWS_OVERWRITE || !rows_writes_all(first)) return false;
    if (first->n != second->n || first->to.type != second->a.type || !is_over(r, first->to.data)) return false;
    if (meet(p, &first->a, &second->to)) return false;
    for (int k = i + 1; k < p->count; k++) {
        const rows_instr *other = &p->code[k];
        if (k == j) continue;
        if (reads_home(other, first->to.data) || (first->to.slot >= 0 && reads_slot(other, first->to.slot)))
            return false;
        if (k < j && is_in_the_way(p, other, second)) return false;
    }
    return true;
}

static void join_copies(rows_compiler *r) {
    row_kernel *p = &r->made;
    for (int j = 1; j < p->count; j++) {
        int i = p->code[j].op == ROWS_COPY ? writer_before(p, j, p->code[j].a.data) : -1;
        if (i < 0 || !writes_further(r, i, j)) continue;
        p->code[i].to = p->code[j].to;
        take_out(r, j--);
    }
}

static void take_out_unread(rows_compiler *r) {
    row_kernel *p = &r->made;
    for (int k = p->count - 1; k >= 0; k--) {
        const rows_instr *i = &p->code[k];
        if (!rows_is_map(i) || slot_is_read(p, k)) continue;
        if (!i->to.data || (is_over(r, i->to.data) && !home_is_read(p, k))) take_out(r, k);
    }
}

// True if instruction i, whose result j loads as an operand of products, can put it there itself: nobody reads its slot
// but j, and the slot of j is free until then.
static bool loads_itself(const row_kernel *p, int i, int j) {
    const rows_instr *from = &p->code[i], *load = &p->code[j];
    bool kind = rows_is_map(from) || is_product(from);
    if (!kind || from->to.slot < 0 || from->to.slot != load->a.slot || !rows_writes_all(from)) return false;
    if (from->to.type != load->a.type || from->to.add == ROWS_ADD_SLOT || load->a.column) return false;
    if (rows_slots_meet(p, &from->a, &load->to) || rows_slots_meet(p, &from->b, &load->to)) return false;
    for (int k = i + 1; k < p->count; k++) {
        if (k == j) continue;
        if (reads_slot(&p->code[k], from->to.slot)) return false;
        if (k < j && touches(p, &p->code[k], &load->to)) return false;
    }
    return true;
}

static void join_loads(rows_compiler *r) {
    row_kernel *p = &r->made;
    for (int j = 1; j < p->count; j++) {
        const rows_instr *load = &p->code[j];
        int i = load->op == ROWS_LOAD && load->a.slot >= 0 ? writer_before(p, j, load->a.data) : -1;
        if (i < 0 || !loads_itself(p, i, j)) continue;
        rows_tile *to = &p->code[i].to;
        to->slot = load->to.slot;
        to->slot_row = load->to.slot_row;
        to->slot_type = load->to.slot_type;
        take_out(r, j--);
    }
}

// Order: what has nothing to do with a product, nor with what goes on with its results, stands before it

bool rows_is_free_of(const row_kernel *p, const rows_instr *i, const rows_instr *other) {
    return !meet(p, &i->a, &other->to) && !meet(p, &i->b, &other->to) && !is_in_the_way(p, other, i);
}

static bool is_free(const row_kernel *p, const rows_instr *i, int first, int end) {
    for (int k = first; k < end; k++)
        if (!rows_is_free_of(p, i, &p->code[k])) return false;
    return true;
}

static void put_before_products(rows_compiler *r) {
    row_kernel *p = &r->made;
    for (int i = 0, end; i < p->count; i = end) {
        end = i + 1;
        if (!is_product(&p->code[i])) continue;
        for (; end < p->count && rows_is_map(&p->code[end]); end++)
            if (is_free(p, &p->code[end], i, end)) move_up(r, end, i++);
    }
}

void rows_fold(rows_compiler *r) {
    row_kernel *p = &r->made;
    for (int i = 0; i < p->count; i++)
        if (rows_is_map(&p->code[i]) && p->code[i].op != ROWS_COPY) p->code[i].n = p->code[i].to.width;
    copy_slices(p);
    read_sources(p);
    join_copies(r);
    take_out_unread(r);
    join_loads(r);
    put_before_products(r);
}

static int slot_end(const row_kernel *p, const rows_tile *t) {
    return t->slot < 0 ? 0 : t->slot + p->tiles * ROWS_TILE * (int)t->slot_row;
}

void rows_trim(rows_compiler *r) {
    row_kernel *p = &r->made;
    for (int k = p->count - 1; k >= 0; k--) {
        rows_instr *i = &p->code[k];
        if (!rows_is_map(i) && !is_product(i)) continue;
        bool home = i->to.data && i->to.add != ROWS_ADD_HOME, slot = i->to.add != ROWS_ADD_SLOT;
        if (home && is_over(r, i->to.data) && !home_is_read(p, k)) i->to.data = NULL;
        if (slot && !slot_is_read(p, k)) i->to.slot = -1;
    }
    p->room = 0;
    for (int k = 0; k < p->count; k++)
        if (slot_end(p, &p->code[k].to) > p->room) p->room = slot_end(p, &p->code[k].to);
}
