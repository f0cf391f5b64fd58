#include "cuda/rows/rows_head.h"

#include "ops/ops.h"

// The instructions of a head; those that may be missing are NULL.
typedef struct {
    const rows_instr *load, *drop, *layer, *loss, *confusion, *loss_back, *back, *drop_back, *slope;
} head_code;

// The instruction at *at, if it is of a kind; *at then moves on.
static const rows_instr *take(const row_kernel *p, int *at, rows_op op) {
    return *at < p->body && p->code[*at].op == op ? &p->code[(*at)++] : NULL;
}

// True if they are those of a head, in order, and no others.
static bool find_code(const row_kernel *p, head_code *s) {
    int at = 0;
    *s = (head_code){0};
    s->drop = take(p, &at, ROWS_DROPOUT);
    if (!s->drop) s->load = take(p, &at, ROWS_LOAD);
    s->layer = take(p, &at, ROWS_LINEAR);
    s->confusion = take(p, &at, ROWS_CONFUSION);
    s->loss = take(p, &at, ROWS_CROSS_ENTROPY);
    if (!s->confusion) s->confusion = take(p, &at, ROWS_CONFUSION);
    s->loss_back = take(p, &at, ROWS_CROSS_ENTROPY_BACK);
    s->back = take(p, &at, ROWS_LINEAR_BACK);
    s->drop_back = take(p, &at, ROWS_DROPOUT);
    s->slope = take(p, &at, ROWS_SLOPE);
    return (s->load || s->drop) && s->layer && s->loss && s->loss_back && s->back && at == p->body;
}

static const rows_tile *source_of(const head_code *s) {
    return s->drop ? &s->drop->a : &s->load->a;
}

// The last result: the gradient of what came first.
static const rows_tile *result_of(const head_code *s) {
    return s->slope ? &s->slope->to : s->drop_back ? &s->drop_back->to : &s->back->to;
}

// True if a tile at home is made of the lanes' runs.
static bool has_runs(const row_kernel *p, const rows_tile *t) {
    return t->slot < 0 && t->data && t->type == p->low && !t->column && (uintptr_t)t->data % 16 == 0;
}

// True if a result is of the row kernel's type, and all of it is new.
static bool is_new(const row_kernel *p, const rows_tile *t) {
    return t->type == p->low && t->add == ROWS_OVERWRITE;
}

// True if dropout is done on the way there and back, by the same draw.
static bool drops_agree(const head_code *s) {
    if (!s->drop || !s->drop_back) return !s->drop && !s->drop_back;
    return s->drop->node == s->drop_back->node && s->drop->flag == s->drop_back->flag &&
           s->drop->least == s->drop_back->least;
}

// True if each goes on with what the one before it has in its slot, and all mean the same rows.
static bool is_one_way(const head_code *s) {
    const rows_instr *first = s->drop ? s->drop : s->load;
    int x = s->layer->a.slot, z = s->layer->to.slot, dz = s->back->a.slot;
    if (x < 0 || z < 0 || dz < 0 || first->to.slot != x || s->loss_back->to.slot != dz) return false;
    if (s->loss->a.slot != z || s->loss_back->a.slot != z || s->loss->x != s->loss_back->x) return false;
    for (int k = 0; k < 3; k++)
        if (s->loss->p[k] != s->loss_back->p[k]) return false;
    return !s->confusion ||
           (s->confusion->a.slot == z && s->confusion->p[0] == s->loss->p[0] && s->confusion->p[1] == s->loss->p[1]);
}

// True if what goes back is chained to the product, so that nobody wants what is in between, which is rounded.
static bool is_chained(const row_kernel *p, const head_code *s) {
    int chain = (s->drop_back != NULL) + (s->slope != NULL);
    bool between = (chain && s->back->to.data) || (s->drop_back && s->slope && s->drop_back->to.data);
    bool rounds = s->back->to.type == p->low && (!s->drop_back || s->drop_back->to.type == p->low);
    return s->back->chain == chain && !between && rounds;
}

static bool has_width(int64_t width, int64_t classes) {
    return classes <= ROWS_HEAD_CLASSES && width % 8 == 0 && width >= ROWS_HEAD_LEAST && width <= ROWS_HEAD_WIDTH;
}

static bool has_sizes(const row_kernel *p, const head_code *s) {
    bool low = p->low == DTYPE_BF16 || p->low == DTYPE_F16;
    return low && p->tiles > 1 && has_width(s->layer->a.width, s->layer->to.width);
}

static bool is_head(const row_kernel *p) {
    head_code s;
    if (!find_code(p, &s) || !has_sizes(p, &s) || !is_one_way(&s) || s.layer->act != ACT_NONE) return false;
    const rows_tile *y = source_of(&s), *dx = result_of(&s), *x = s.drop ? &s.drop->to : NULL;
    if (!has_runs(p, y) || !has_runs(p, dx) || dx->add != ROWS_OVERWRITE || !is_chained(p, &s) || !drops_agree(&s))
        return false;
    if (x && (!is_new(p, x) || (uintptr_t)x->data % 16 || s.drop->a.width != s.layer->a.width)) return false;
    if (s.slope && (s.slope->act != ACT_RELU || s.slope->b.data != y->data)) return false;
    if ((uintptr_t)s.layer->p[0] % 16 || s.layer->p[0] != s.back->p[0]) return false;
    return is_new(p, &s.layer->to) && is_new(p, &s.loss_back->to);
}

// True if nobody reads a home but those who form the gradients of weights.
static bool is_for_weights(const rows_compiler *r, const void *home) {
    bool over = false;
    for (int i = 0; i < r->claims; i++) {
        const rows_claim *c = &r->claim[i];
        if (c->begin != home) continue;
        if (c->wanted) return false;
        over |= c->over;
    }
    return over;
}

// The layer is the head's own: another one may have joined the row kernel, or be the only one that is not frozen.
static void lay_sums(rows_compiler *r) {
    const call *layer = r->weights == 1 ? r->weight[0] : NULL;
    if (!layer || !layer->scratch || !layer->din[1].data) return;
    if (layer->in[1].data != rows_head_of(&r->made).weights) return;
    if (rows_head_parts(r->made.rows) > ROWS_HEAD_PARTS) return;
    r->made.sums = layer->scratch;
    for (int i = 0; i < r->made.body; i++) {
        rows_instr *in = &r->made.code[i];
        bool held = in->op == ROWS_DROPOUT || in->op == ROWS_CROSS_ENTROPY_BACK;
        if (held && in->to.data && in->to.slot >= 0 && is_for_weights(r, in->to.data)) in->to.data = NULL;
    }
}

void rows_lay_head(rows_compiler *r) {
    row_kernel *p = &r->made;
    for (int i = 0; i < r->packs; i++) p->code[r->pack[i].instr].p[0] = r->pack[i].weights;
    p->head = r->heads && is_head(p);
    if (!p->head) return;
    r->packs = 0;
    lay_sums(r);
}

size_t rows_head_scratch(int64_t rows, int64_t width, int64_t classes) {
    int64_t parts = rows_head_parts(rows);
    if (rows_tiles(rows) == 1 || parts > ROWS_HEAD_PARTS || !has_width(width, classes)) return 0;
    return (size_t)(parts * rows_head_part(width, classes)) * sizeof(float);
}

rows_head rows_head_of(const row_kernel *p) {
    head_code s;
    find_code(p, &s);
    rows_head h = {.step = p->step,
        .y = source_of(&s)->data,
        .z = s.layer->to.data,
        .dz = s.loss_back->to.data,
        .dx = result_of(&s)->data,
        .weights = s.layer->p[0],
        .bias = s.layer->p[1],
        .label = s.loss->p[0],
        .weight = s.loss->p[1],
        .class_weight = s.loss->p[2],
        .up = s.loss_back->b.data,
        .loss_parts = s.loss->to.data,
        .confusion = s.confusion ? s.confusion->to.data : NULL,
        .sums = p->sums,
        .width = s.layer->a.width,
        .classes = s.layer->to.width,
        .rows = p->rows,
        .smoothing = s.loss->x,
        .slope = s.slope != NULL};
    if (!s.drop) return h;
    h.x = s.drop->to.data;
    h.drop = s.drop->flag;
    h.node = s.drop->node;
    h.least = s.drop->least;
    h.scale = s.drop->x;
    return h;
}
