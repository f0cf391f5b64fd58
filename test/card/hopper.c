// Hopper's instructions for matrix products: the copy engine that moves bricks of a matrix, barriers in shared memory
// that tell of them, and products by four warps together. A brick arrives at once, or, with
// TRADEWIND_CARD_ORDER=backwards, when somebody asks for its barrier: what does not wait for it finds what was there
// before.
#include "card/hopper.h"

#include "card/runtime.h"

#include "base/half.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BOX = 64, BOX_BYTES = BOX * BOX * 2, RUN_BYTES = 16 };

// The content of a CUtensorMap here.
typedef struct {
    uint32_t magic;
    uint8_t *data;
    uint64_t width, rows, pitch; // elements, rows, bytes
} matrix_map;

enum { MAGIC = 0x4D41544D };

CUresult hopper_encode(CUtensorMap *to, CUtensorMapDataType type, cuuint32_t rank, void *data, const cuuint64_t *sizes,
    const cuuint64_t *pitch, const cuuint32_t *box, const cuuint32_t *steps, CUtensorMapInterleave interleave,
    CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
    matrix_map m = {MAGIC, data, sizes[0], sizes[1], pitch[0]};
    bool low = type == CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 || type == CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
    (void)promotion;
    if (!low || rank != 2 || box[0] != BOX || box[1] != BOX || steps[0] != 1 || steps[1] != 1 ||
        interleave != CU_TENSOR_MAP_INTERLEAVE_NONE || swizzle != CU_TENSOR_MAP_SWIZZLE_128B ||
        fill != CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE || (uintptr_t)data % RUN_BYTES || pitch[0] % RUN_BYTES)
        return CUDA_ERROR_INVALID_VALUE;
    memset(to, 0, sizeof *to);
    memcpy(to, &m, sizeof m);
    return CUDA_SUCCESS;
}

static uint32_t word_of(const warp *w, const insn *i, int at, int lane) {
    return ((const uint32_t *)(w->now->rows + (size_t)i->op[at] * ROW))[lane];
}

// A place in shared memory by an operand.
static uint8_t *shared_at(warp *w, const insn *i, int at, int lane, int bytes) {
    insn reach = *i;
    reach.space = SPACE_SHARED, reach.size = bytes, reach.count = 1;
    return grid_reach(w, &reach, lane, at);
}

static matrix_map map_of(warp *w, const insn *i, int at, int lane) {
    insn reach = *i;
    matrix_map m;
    reach.space = SPACE_GENERIC, reach.imm = 0, reach.size = 64, reach.count = 1;
    memcpy(&m, grid_reach(w, &reach, lane, at), sizeof m);
    if (m.magic != MAGIC) grid_fault(w, GRID_BAD_ADDRESS, lane, "no description of a matrix");
    if (!runtime_owns(m.data, (m.rows - 1) * m.pitch + 2 * m.width))
        grid_fault(w, GRID_BAD_ADDRESS, lane, "a matrix outside the card's memory");
    return m;
}

// Barriers: eight bytes of shared memory.

typedef struct {
    uint16_t count, pending;
    int32_t state; // twice the bytes that are still expected, and the phase's parity
} barrier;

static void check_phase(barrier *b) {
    if (b->pending || b->state >> 1) return;
    b->pending = b->count;
    b->state ^= 1;
}

#define EACH(lane)                                                                                                     \
    for (int lane = 0; lane < WARP; lane++)                                                                            \
        if (mask >> lane & 1)

void hopper_barrier_init(warp *w, const insn *i, uint32_t mask) {
    EACH(l) {
        barrier *b = (barrier *)(void *)shared_at(w, i, 0, l, sizeof *b);
        uint16_t count = (uint16_t)word_of(w, i, 1, l);
        *b = (barrier){count, count, 0};
    }
}

static void arrive(warp *w, barrier *b, int lane, int32_t bytes) {
    if (b->pending == 0) grid_fault(w, GRID_TRAP, lane, "more arrivals than a barrier was made for");
    b->state += 2 * bytes;
    b->pending--;
    check_phase(b);
}

void hopper_arrive(warp *w, const insn *i, uint32_t mask) {
    EACH(l) arrive(w, (barrier *)(void *)shared_at(w, i, 1, l, sizeof(barrier)), l, 0);
}

void hopper_arrive_expecting(warp *w, const insn *i, uint32_t mask) {
    EACH(l) {
        arrive(w, (barrier *)(void *)shared_at(w, i, 1, l, sizeof(barrier)), l, (int32_t)word_of(w, i, 2, l));
    }
}

// Bricks

// Runs of 16 bytes are swapped by the low bits of the row, which bits 7 to 9 of the address are.
static uint32_t swapped(uint32_t at) {
    return at ^ (at >> 7 & 7) << 4;
}

typedef struct {
    matrix_map from;
    int x, y;
    uint8_t *shared; // of the block
    uint32_t to, barrier;
} brick;

static void bring(const brick *b) {
    barrier *told = (barrier *)(void *)(b->shared + b->barrier);
    for (int r = 0; r < BOX; r++)
        for (int c = 0; c < BOX; c++) {
            int64_t x = b->x + c, y = b->y + r;
            bool inside = x >= 0 && y >= 0 && x < (int64_t)b->from.width && y < (int64_t)b->from.rows;
            uint16_t v = 0;
            if (inside) memcpy(&v, b->from.data + (uint64_t)y * b->from.pitch + (uint64_t)x * 2, sizeof v);
            memcpy(b->shared + swapped(b->to + (uint32_t)(r * BOX + c) * 2), &v, sizeof v);
        }
    told->state -= 2 * BOX_BYTES;
    check_phase(told);
}

// Bricks that are under way, of the block that runs: few at a time.
static brick *under_way;
static int under_way_count;

// Brings the bricks of one barrier, or all: ANY.
enum { ANY = UINT16_MAX << 4 };

static void bring_told(const uint8_t *shared, uint32_t barrier) {
    int left = 0;
    for (int k = 0; k < under_way_count; k++) {
        if (under_way[k].shared == shared && (barrier == ANY || under_way[k].barrier == barrier))
            bring(&under_way[k]);
        else
            under_way[left++] = under_way[k];
    }
    under_way_count = left;
}

int hopper_left(const uint8_t *shared) {
    int left = 0, all = under_way_count;
    for (int k = 0; k < all; k++)
        if (under_way[k].shared != shared) under_way[left++] = under_way[k];
    under_way_count = left;
    return all - left;
}

static void check_brick(warp *w, uint32_t at, int lane) {
    if (at % 1024) grid_fault(w, GRID_MISALIGNED, lane, "a brick does not begin at a multiple of 1024");
    if (!grid_in_shared(w, at, BOX_BYTES)) grid_fault(w, GRID_BAD_ADDRESS, lane, "a brick outside shared memory");
}

void hopper_load(warp *w, const insn *i, uint32_t mask) {
    uint8_t *shared = (uint8_t *)(uintptr_t)grid_base(w, SPACE_SHARED, 0);
    EACH(l) {
        brick b = {map_of(w, i, 1, l), (int)word_of(w, i, 2, l), (int)word_of(w, i, 3, l), shared, word_of(w, i, 0, l),
            word_of(w, i, 4, l)};
        check_brick(w, b.to, l);
        shared_at(w, i, 4, l, sizeof(barrier));
        under_way = realloc(under_way, sizeof b * (size_t)(under_way_count + 1));
        under_way[under_way_count++] = b;
    }
    if (!grid_goes_backwards()) bring_told(shared, ANY);
}

void hopper_try_wait(warp *w, const insn *i, uint32_t mask) {
    uint32_t *past = (uint32_t *)(w->now->rows + (size_t)i->op[0] * ROW);
    const uint8_t *shared = (const uint8_t *)(uintptr_t)grid_base(w, SPACE_SHARED, 0);
    EACH(l) {
        bring_told(shared, word_of(w, i, 1, l));
        const barrier *b = (const barrier *)(void *)shared_at(w, i, 1, l, sizeof *b);
        uint32_t is = (uint32_t)((b->state & 1) != (int32_t)(word_of(w, i, 2, l) & 1));
        *past = (*past & ~(1u << l)) | is << l;
    }
}

void hopper_store(warp *w, const insn *i, uint32_t mask) {
    const uint8_t *shared = (const uint8_t *)(uintptr_t)grid_base(w, SPACE_SHARED, 0);
    EACH(l) {
        matrix_map m = map_of(w, i, 0, l);
        int left = (int)word_of(w, i, 1, l), top = (int)word_of(w, i, 2, l);
        uint32_t from = word_of(w, i, 3, l);
        check_brick(w, from, l);
        for (int r = 0; r < BOX; r++)
            for (int c = 0; c < BOX; c++) {
                int64_t x = left + c, y = top + r;
                if (x < 0 || y < 0 || x >= (int64_t)m.width || y >= (int64_t)m.rows) continue;
                memcpy(m.data + (uint64_t)y * m.pitch + (uint64_t)x * 2,
                    shared + swapped(from + (uint32_t)(r * BOX + c) * 2), 2);
            }
    }
}

// Products

enum { DEPTH = 16, HEIGHT = 16 }; // of the sum in one product; rows of a warp

// An operand: bricks of which the sum runs along the rows, or, `turned`, down the columns.
typedef struct {
    uint32_t at, between, rows;
    bool turned;
} operand_place;

static operand_place place_of(uint64_t description, bool turned) {
    return (operand_place){(uint32_t)(description & 0x3FFF) << 4, (uint32_t)(description >> 16 & 0x3FFF) << 4,
        (uint32_t)(description >> 32 & 0x3FFF) << 4, turned};
}

static float operand_at(warp *w, const operand_place *p, int n, int k, bool half) {
    const uint8_t *shared = (const uint8_t *)(uintptr_t)grid_base(w, SPACE_SHARED, 0);
    int strip = p->turned ? k : n;
    uint32_t at = p->at + (uint32_t)(strip / 8) * p->rows + (uint32_t)(strip % 8) * 128, bits;
    at += p->turned ? (uint32_t)(n / BOX) * p->between + (uint32_t)(n % BOX) * 2 : (uint32_t)k * 2;
    uint16_t v;
    float wide;
    if (!grid_in_shared(w, swapped(at), sizeof v))
        grid_fault(w, GRID_BAD_ADDRESS, 0, "an operand outside shared memory");
    memcpy(&v, shared + swapped(at), sizeof v);
    if (half) return half_widen(v);
    bits = (uint32_t)v << 16;
    memcpy(&wide, &bits, sizeof wide);
    return wide;
}

// Operands: descriptions of A and B, whether to add, whether A and B are turned; the sums are `more`.
static void multiply(warp *w, const insn *i, bool half) {
    const uint8_t *rows = w->now->rows;
    uint64_t first_word = *(const uint64_t *)(rows + (size_t)i->op[0] * ROW),
             second_word = *(const uint64_t *)(rows + (size_t)i->op[1] * ROW);
    operand_place a = place_of(first_word, word_of(w, i, 3, 0) != 0),
                  b = place_of(second_word, word_of(w, i, 4, 0) != 0);
    if (first_word >> 62 != 1 || second_word >> 62 != 1) grid_fault(w, GRID_BAD_ADDRESS, 0, "bricks of another kind");
    bool add = word_of(w, i, 2, 0) & 1;
    int first = grid_warp_number(w) % 4 * HEIGHT, columns = i->count * 2;
    float left[HEIGHT][DEPTH], right[256][DEPTH];
    for (int k = 0; k < DEPTH; k++) {
        for (int r = 0; r < HEIGHT; r++) left[r][k] = operand_at(w, &a, first + r, k, half);
        for (int c = 0; c < columns; c++) right[c][k] = operand_at(w, &b, c, k, half);
    }
    for (int s = 0; s < i->count; s++) {
        float *to = (float *)(void *)(w->now->rows + (size_t)i->more[s] * ROW);
        for (int l = 0; l < WARP; l++) {
            int r = l / 4 + s / 2 % 2 * 8, c = s / 4 * 8 + l % 4 * 2 + s % 2;
            double sum = add ? (double)to[l] : 0;
            for (int k = 0; k < DEPTH; k++) sum += (double)left[r][k] * (double)right[c][k];
            to[l] = (float)sum;
        }
    }
}

void hopper_multiply_bf16(warp *w, const insn *i, uint32_t mask) {
    (void)mask;
    multiply(w, i, false);
}

void hopper_multiply_f16(warp *w, const insn *i, uint32_t mask) {
    (void)mask;
    multiply(w, i, true);
}
