// attention on the CPU: one head of one sample at a time, in blocks of queries whose scores stay in cache.
//
// Keys and values are copied, padding as 0, with steps innermost: in the products that give scores and their gradients
// lanes are keys, in the others they are the head's columns. Queries are scaled as they are copied, and so are the
// gradients that come in by what dropout divides by, so that dropout itself only clears. Forward keeps two numbers a
// query; backward computes scores again. Where attention is causal, a block leaves out the keys behind its last query.
//
// Heads are shared out in pieces that depend on the sizes only; a head is computed by one thread, so results are the
// same for any number of them. Steps and columns are padded with zeros to whole vectors.
#include "cpu/keep.h"
#include "cpu/tile.h"
#include "ops/op.h"

#include <math.h>

enum { PIECES = 64, BLOCK = 64, BLOCK_CAUSAL = 32 };
enum { QUERIES, KEYS, VALUES }; // parts of a step

// Statistics of a query: the largest score, and 1 / the sum of exp(score - largest); 0 for a query without any key.
typedef struct {
    float top, part;
} softmax;

typedef struct {
    const call *c;
    const attention_settings *a;
    int64_t T, d, D, Tp, dp; // p: in whole vectors
    int64_t lds, block;      // a row of scores; queries in a block
    bool drops;
    // The head in work
    int64_t b, h;
    const float *qkv; // its queries
    softmax *kept;    // [T], or NULL
    keep random;
    // The block in work
    int64_t first, rows; // queries
    int64_t keys, width; // that they see; the same in whole vectors
    int64_t bit;         // in `bits`, of the block's first query and first key
    // Scratch
    float *k_steps, *v_steps; // [d][Tp]
    float *lines;             // [T][dp]: values in forward, keys in backward
    float *q, *dy;            // [block][dp]
    float *y;                 // [block][dp]: y, or dq
    float *dk, *dv;           // [T][dp]
    float *s, *ds;            // [block][lds]: scores, then probabilities; their gradients
    int32_t *live;            // [Tp]: -1 for a key, 0 for padding
    uint8_t *bits;            // what dropout keeps of the block
} work;

static int64_t up(int64_t n, int64_t to) {
    return (n + to - 1) / to * to;
}

static work work_of(const call *c) {
    const attention_settings *a = c->attr;
    shape s = c->in[0].shape;
    work w = {.c = c, .a = a, .T = s.dim[1], .D = s.dim[2] / 3, .d = s.dim[2] / 3 / a->heads};
    w.Tp = up(w.T, VEC);
    w.dp = up(w.d, VEC);
    w.lds = w.Tp + (w.Tp / VEC % 2 ? 0 : VEC); // an odd number of vectors: rows spread over all sets of the cache
    int64_t most = a->causal ? BLOCK_CAUSAL : BLOCK, blocks = (w.T + most - 1) / most;
    w.block = a->causal ? most : (w.T + blocks - 1) / blocks;
    w.drops = c->training && a->dropout > 0;
    return w;
}

// The parts of a piece's scratch in turn; returns their size in floats. `room` may be NULL.
static int64_t lay_out(work *w, float *room) {
    int64_t block = w->block + TILE_TALL, T = w->T + TILE_TALL, at = 0;
    float **part[] = {&w->k_steps, &w->v_steps, &w->lines, &w->q, &w->dy, &w->y, &w->dk, &w->dv, &w->s, &w->ds};
    int64_t size[] = {w->d * w->Tp, w->d * w->Tp, w->T * w->dp, block * w->dp, block * w->dp, block * w->dp, T * w->dp,
        T * w->dp, block * w->lds, block * w->lds};
    for (size_t i = 0; i < sizeof size / sizeof *size; i++) {
        if (room) *part[i] = room + at;
        at += up(size[i], 16);
    }
    if (room) w->live = (int32_t *)(room + at);
    at += up(w->Tp, 16);
    if (room) w->bits = (uint8_t *)(room + at);
    return at + up((int64_t)keep_room(w->block * w->T + VEC + 7) / 4 + 1, 16);
}

// Copies

static const float *step_of(const work *w, int64_t t, int part) {
    return w->qkv + t * 3 * w->D + part * w->D;
}

static void copy_line(const work *w, const float *from, float scale, float *to) {
    for (int64_t i = 0; i < w->d; i += VEC) vec_store_some(to + i, vec_load_some(from + i, w->d - i) * scale, w->d - i);
}

// Keys or values line by line; the lines of padding are never read.
static void copy_lines(const work *w, int part) {
    for (int64_t t = 0; t < w->T; t++) {
        float *to = w->lines + t * w->dp;
        if (w->live[t]) {
            copy_line(w, step_of(w, t, part), 1, to);
        } else {
            memset(to, 0, (size_t)w->dp * sizeof *to);
        }
    }
}

// The lines with steps innermost.
static void turn_lines(const work *w, float *to) {
    for (int64_t i = 0; i < w->d; i++)
        for (int64_t t = 0; t < w->T; t++) to[i * w->Tp + t] = w->lines[t * w->dp + i];
}

static void enter_head(work *w, int64_t item) {
    const float *mask = w->c->in[1].data;
    w->b = item / w->a->heads;
    w->h = item % w->a->heads;
    w->qkv = (const float *)w->c->in[0].data + w->b * w->T * 3 * w->D + w->h * w->d;
    w->kept = w->c->reserve ? (softmax *)w->c->reserve + item * w->T : NULL;
    if (w->drops) w->random = keep_of(w->c, w->b, w->a->dropout);
    for (int64_t t = 0; t < w->T; t++) w->live[t] = !mask || mask[w->b * w->T + t] != 0 ? -1 : 0;
    if (w->c->backward) {
        copy_lines(w, VALUES);
        turn_lines(w, w->v_steps);
    }
    copy_lines(w, KEYS);
    turn_lines(w, w->k_steps);
    if (!w->c->backward) copy_lines(w, VALUES);
}

// Enters a block: its queries, what they score, and what dropout keeps of them.
static void enter_block(work *w, int64_t first) {
    w->first = first;
    w->rows = w->T - first < w->block ? w->T - first : w->block;
    w->keys = w->a->causal ? first + w->rows : w->T;
    w->width = up(w->keys, VEC);
    for (int64_t r = 0; r < w->rows; r++)
        copy_line(w, step_of(w, first + r, QUERIES), (float)(1 / sqrt((double)w->d)), w->q + r * w->dp);
    tile_multiply(w->rows, w->width, w->d, (tile_matrix){w->q, w->dp, 1}, w->k_steps, w->Tp, false, w->s, w->lds);
    if (!w->drops) return;
    int64_t element = (w->h * w->T + first) * w->T;
    w->bit = element % RANDOM_OCTET;
    keep_fill(&w->random, element / RANDOM_OCTET, w->bit + w->rows * w->T, w->bits);
}

// The lanes from key j on that the block's query r sees.
VEC_FN veci sees(const work *w, int64_t r, int64_t j) {
    veci live = (veci)vec_load((const float *)(w->live + j));
    return w->a->causal ? live & vec_below(w->first + r + 1 - j) : live;
}

VEC_FN vec dropped(const work *w, int64_t r, int64_t j, vec p) {
    return w->drops ? vec_where(keep_read(w->bits, w->bit + r * w->T + j), p) : p;
}

// Forward

// Scores of query r become exp(score - largest), dropped out.
static softmax forward_row(const work *w, int64_t r) {
    float *s = w->s + r * w->lds;
    vec top = vec_all(-INFINITY), sum = {0};
    for (int64_t j = 0; j < w->width; j += VEC)
        top = vec_larger(vec_choose(sees(w, r, j), vec_load(s + j), vec_all(-INFINITY)), top);
    softmax m = {vec_largest(top), 0};
    for (int64_t j = 0; j < w->width; j += VEC) {
        vec e = vec_where(sees(w, r, j), vec_exp(vec_load(s + j) - m.top));
        sum += e;
        vec_store(s + j, dropped(w, r, j, e));
    }
    float total = vec_sum(sum);
    m.part = total != 0 ? 1 / total : 0; // a NaN stays one
    return m;
}

static void forward_block(const work *w) {
    float part[BLOCK], *y = (float *)w->c->out[0].data + (w->b * w->T + w->first) * w->D + w->h * w->d;
    for (int64_t r = 0; r < w->rows; r++) {
        softmax m = forward_row(w, r);
        if (w->kept) w->kept[w->first + r] = m;
        part[r] = w->drops ? m.part * w->random.scale : m.part;
    }
    tile_multiply(w->rows, w->dp, w->keys, (tile_matrix){w->s, w->lds, 1}, w->lines, w->dp, false, w->y, w->dp);
    for (int64_t r = 0; r < w->rows; r++) copy_line(w, w->y + r * w->dp, part[r], y + r * w->D);
}

// Backward

// Scores of query r become probabilities, dropped out; what reaches the probabilities becomes what reaches the scores.
static void backward_row(const work *w, int64_t r) {
    float *s = w->s + r * w->lds, *ds = w->ds + r * w->lds;
    softmax m = w->kept[w->first + r];
    vec sum = {0};
    for (int64_t j = 0; j < w->width; j += VEC) {
        vec p = vec_where(sees(w, r, j), vec_exp(vec_load(s + j) - m.top) * m.part);
        vec dp = dropped(w, r, j, vec_load(ds + j));
        sum += p * dp;
        vec_store(s + j, p);
        vec_store(ds + j, dp);
    }
    float mean = vec_sum(sum);
    for (int64_t j = 0; j < w->width; j += VEC) {
        vec p = vec_load(s + j);
        vec_store(ds + j, p * (vec_load(ds + j) - mean));
        vec_store(s + j, dropped(w, r, j, p));
    }
}

// A line of dq, dk or dv to its place.
static void put_line(const work *w, int64_t t, int part, const float *from, float scale) {
    const operand *to = &w->c->din[0];
    float *at = (float *)to->data + (w->b * w->T + t) * 3 * w->D + part * w->D + w->h * w->d;
    for (int64_t i = 0; i < w->d; i += VEC) vec_put_some(at + i, vec_load(from + i) * scale, w->d - i, to->add);
}

static void backward_block(const work *w) {
    const float *dy = (const float *)w->c->dout[0].data + (w->b * w->T + w->first) * w->D + w->h * w->d;
    int64_t keys = w->width < w->T ? w->width : w->T;
    for (int64_t r = 0; r < w->rows; r++)
        copy_line(w, dy + r * w->D, w->drops ? w->random.scale : 1, w->dy + r * w->dp);
    tile_multiply(w->rows, w->width, w->d, (tile_matrix){w->dy, w->dp, 1}, w->v_steps, w->Tp, false, w->ds, w->lds);
    for (int64_t r = 0; r < w->rows; r++) backward_row(w, r);
    tile_multiply(keys, w->dp, w->rows, (tile_matrix){w->s, 1, w->lds}, w->dy, w->dp, true, w->dv, w->dp);
    tile_multiply(keys, w->dp, w->rows, (tile_matrix){w->ds, 1, w->lds}, w->q, w->dp, true, w->dk, w->dp);
    tile_multiply(w->rows, w->dp, w->keys, (tile_matrix){w->ds, w->lds, 1}, w->lines, w->dp, false, w->y, w->dp);
    for (int64_t r = 0; r < w->rows; r++)
        put_line(w, w->first + r, QUERIES, w->y + r * w->dp, (float)(1 / sqrt((double)w->d)));
}

static void backward_head(work *w) {
    size_t bytes = (size_t)(w->T * w->dp) * sizeof(float);
    memset(w->dk, 0, bytes);
    memset(w->dv, 0, bytes);
    for (int64_t i = 0; i < w->T; i += w->block) {
        enter_block(w, i);
        backward_block(w);
    }
    for (int64_t t = 0; t < w->T; t++) {
        put_line(w, t, KEYS, w->dk + t * w->dp, 1);
        put_line(w, t, VALUES, w->dv + t * w->dp, 1);
    }
}

static void forward_head(work *w) {
    for (int64_t i = 0; i < w->T; i += w->block) {
        enter_block(w, i);
        forward_block(w);
    }
}

static int64_t heads_of(const call *c) {
    return c->in[0].shape.dim[0] * ((const attention_settings *)c->attr)->heads;
}

// Padding is zero from here on: only what lies before it is written.
static void pieces(const call *c, int64_t begin, int64_t end) {
    work w = work_of(c);
    int64_t items = heads_of(c), room = lay_out(&w, NULL);
    for (int64_t piece = begin; piece < end; piece++) {
        float *mine = (float *)c->scratch + piece * room;
        memset(mine, 0, (size_t)room * sizeof *mine);
        lay_out(&w, mine);
        for (int64_t i = piece * items / PIECES; i < (piece + 1) * items / PIECES; i++) {
            enter_head(&w, i);
            c->backward ? backward_head(&w) : forward_head(&w);
        }
    }
}

static void run(const call *c) {
    op_for(c, PIECES, 16384, pieces);
}

static size_t scratch(const call *c) {
    work w = work_of(c);
    return (size_t)(PIECES * lay_out(&w, NULL)) * sizeof(float);
}

static size_t reserve(const call *c) {
    return (size_t)(heads_of(c) * c->in[0].shape.dim[1]) * sizeof(softmax);
}

const kernel KERNEL(cpu_attention) = {run, run, scratch, reserve};
