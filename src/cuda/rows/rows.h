// Row kernels: runs of calls that are local to the rows of a batch (linear, dropout, concat, slice, axpby, losses, and
// what goes back through them), compiled for one launch. This is the compiler; cuda/rows/rows_interpret.cuh runs its
// row kernels.
//
// A block of the launch takes 16 or 32 rows through all instructions. Tiles of tensors lie in slots of shared memory, a
// cache that the compiler manages: while calls are added, every result is also written to its home in memory, exactly
// as the single call would, so a slot can be given up at any time and what comes after the row kernel finds everything
// in its place. An exception is a gradient that goes back to a layer outside, whose slope the row kernel can do
// (rows_add_slope). At the end the row kernel is folded (cuda/rows/rows_fold.h): results of which it is said that
// nobody reads them (rows_over) are not written, and instructions that have become useless are gone.
//
// Instructions that go on with a product's results, column by column, are chained to it: a lane does them to its
// results in registers while other warps are still at the product.
//
// Blocks run in any order, so memory that one block writes may not be anything that another still reads: a call whose
// results overlap a different tensor of the row kernel is refused, and the row kernel is cut there. The same stretch of
// memory with the same type holds the same rows, which one block reads and writes in order. The gradients of weights
// are sums over all rows; they are left to a launch after the row kernel (cuda/product/weights.cuh), until which x and
// dz must stay: they are held. Pure host code, compiled by C and by nvcc; which calls are joined depends on sizes,
// addresses and the card's shared memory.
#ifndef TRADEWIND_CUDA_ROWS_ROWS_H
#define TRADEWIND_CUDA_ROWS_ROWS_H

#include "graph/device.h"

#include <stdalign.h>
#include <stdbool.h>

enum { ROWS_TILE = 16, ROWS_WIDTH = 8191, ROWS_MOST = 30, ROWS_SLOTS = 64, ROWS_CLAIMS = 256, ROWS_WEIGHTS = 16 };

typedef enum {
    ROWS_LOAD,               // a to a slot, as an operand of products
    ROWS_LINEAR,             // to = act(a p0' + p1)
    ROWS_SLOPE,              // to = a * slope of act at b
    ROWS_LINEAR_BACK,        // to = a p0
    ROWS_DROPOUT,            // to = a where kept
    ROWS_COPY,               // n columns of to = x * those of a
    ROWS_SLICE_BACK,         // to = a, 0 outside of it
    ROWS_AXPBY,              // to = x a + y b
    ROWS_CROSS_ENTROPY,      // the block's loss of a; p: label, weight, class weights; to: partial sums
    ROWS_CROSS_ENTROPY_BACK, // b: the gradient of the sum
    ROWS_POINTWISE,          // the block's loss of a - b: squared, or absolute; p1: weight
    ROWS_POINTWISE_BACK,     // p0: the gradient of the sum
    ROWS_CONFUSION,          // p: label, weight; to: counts
    ROWS_LOSS_ADD, // from here on behind the row kernel: to = the sum of n partial sums a, tallied in p0 if there
    ROWS_ADVANCE
} rows_op;

enum {
    ROWS_PLAIN = 2
}; // units of 16 bytes: a load copies them as they lie, ReLU's slope has them of the row kernel's type

// Flags of an instruction that is chained to a product. It takes one operand from registers: its a, whose type and
// column tell what it would have read; b is the operand that is read. ROWS_OF_PRODUCT: it takes the product's results,
// else those of the instruction before it. ROWS_AS_SECOND: they are the second operand of its sum. ROWS_EARLY: no
// instruction of the row kernel writes what it reads at home, so that this can be read before the product.
enum { ROWS_OF_PRODUCT = 1, ROWS_AS_SECOND = 2, ROWS_EARLY = 4 };

typedef enum { ROWS_OVERWRITE, ROWS_ADD_SLOT, ROWS_ADD_HOME } rows_add_from; // where the value that is added to lies

// A tensor [rows, width] of a row kernel. What blocks would have to work out is here already: they run every
// instruction once, so that all they work out costs as much as what it is for.
typedef struct {
    alignas(16) void *data; // its home, or NULL
    int32_t slot;           // bytes from the start of shared memory to its tile, or -1
    int32_t width;
    uint32_t home_row, slot_row; // bytes from row to row
    int32_t column;              // where the first of n columns is; not of products
    uint8_t type, slot_type;
    uint8_t add;     // a rows_add_from
    uint8_t vectors; // products may store a lane's run of columns at once
} rows_tile;

typedef struct {
    rows_tile a, b, to;
    const void *p[3];
    int32_t n;               // columns, element by element; products: how far on is that whose weights it loads, or 0
    uint32_t cells, inverse; // a row's columns, fours of them or units, and 2^31 / cells, rounded up; products whose
                             // weights another one loads, to the slot of b: units of 16 bytes
    uint32_t node, least;    // dropout
    float x, y;
    uint8_t op, act;
    uint8_t flag; // products: ROWS_WIDE tiles of columns to a warp; dropout: on; pointwise: squared; loss: tallied anew
    uint8_t vectors; // element by element: four at a time; or ROWS_PLAIN
    uint8_t open;    // the next instruction need not wait for this one
    uint8_t warp;    // losses and metrics: which warp's rows; element by element: whose cells are the first
    uint8_t chain;   // products: so many instructions that follow are done to their results at once
    uint8_t takes;   // of those, ROWS_OF_PRODUCT and ROWS_AS_SECOND; of them and the product, ROWS_EARLY
} rows_instr;

// The weights of a product as its warps read them: in the type of its operands, a lane's share of every 16 terms side
// by side, the lanes one after another, zeros past the edges (cuda/rows/pack.cuh). Weights [N][K], or with `back`
// [K][N].
typedef struct {
    const float *weights, *bias; // bias may be NULL
    uint32_t offset;             // bytes into the row kernel's packed weights; the bias follows them
    int32_t K, N;
    uint8_t back, wide;
    uint8_t instr; // whose p[0] it becomes, and p[1] the bias
} rows_pack;

// Bytes of shared memory that the kernel takes besides the slots, of row kernels with and without wide products.
enum { ROWS_OWN = 16 * 1024, ROWS_OWN_WIDE = 40 * 1024 };

// The instructions of one launch. Its blocks read the copy on the card.
typedef struct {
    void *on_card;
    step step; // NULLs where no instruction looks at it
    int64_t rows;
    int32_t tiles;       // of 16 rows, per block: 1 or 2
    int32_t body, count; // instructions for every block; and those behind them
    int32_t room;        // bytes of shared memory
    int32_t low;         // the dtype of products' operands
    uint8_t tf32, wide;  // products that are wide occur
    uint8_t head;        // it is run by a kernel of its own (cuda/rows/rows_head.h)
    float *sums;         // of a head: where the parts of what is summed over the rows go, or NULL
    rows_instr code[ROWS_MOST];
} row_kernel;

typedef struct {
    const void *home;
    int type, offset, bytes, used;
} rows_slot;

typedef struct {
    const char *begin, *end;
    int type;
    bool rows, written, held, last; // of the rows; by a block; until after the row kernel; behind it
    bool over, wanted;              // nobody reads it after the row kernel; somebody does
} rows_claim;

typedef struct {
    row_kernel made;
    const kernel *const *table; // asked how much scratch a call has
    int limit, now;             // bytes of shared memory at most; the instruction being written
    int multiprocessors;        // of the card
    int slots, claims, weights;
    bool full, closed; // products in fp32 have been seen; nothing may follow
    bool wide;         // products may be
    bool heads;        // a row kernel may be one (cuda/rows/rows_head.h)
    rows_slot slot[ROWS_SLOTS];
    rows_claim claim[ROWS_CLAIMS];
    const call *weight[ROWS_WEIGHTS]; // backward calls whose weights' gradients are left to do
    rows_instr tail[ROWS_MOST];       // for behind the blocks
    int tails;
    rows_pack pack[ROWS_MOST];
    int packs;
    size_t packed; // bytes
} rows_compiler;

// The rows of a call that a row kernel could hold, or 0.
int64_t rows_of(const call *c);

// How many tiles of 16 rows a block takes: one; from 4,225 rows on, which fill a large card more than twice, two, since
// that reads the weights half as often. By the rows alone: scratch is planned for the blocks before a card is known,
// and they decide the order of sums.
int rows_tiles(int64_t rows);

static inline int64_t rows_blocks(int64_t rows) {
    return (rows + (int64_t)rows_tiles(rows) * ROWS_TILE - 1) / ((int64_t)rows_tiles(rows) * ROWS_TILE);
}

// Elements from row to row of a slot: half of 16 more than the columns, which keeps the rows of a fragment in different
// banks.
#ifdef __CUDACC__
__host__ __device__
#endif
    static inline int
    rows_ld(int width) {
    return (width + 15) / 16 * 16 + 8;
}

// A card as the compiler sees it: bytes of shared memory for the slots, multiprocessors, and whether products may be
// wide, which takes more shared memory besides.
typedef struct {
    int limit, multiprocessors;
    bool wide;
} rows_card;

// A new row kernel for `rows` rows.
void rows_begin(rows_compiler *r, const kernel *const *table, int64_t rows, rows_card card);

// Adds a call, or leaves the row kernel as it is and returns false.
bool rows_add(rows_compiler *r, const call *c);

// Has the row kernel do the slope of a layer that is not of it, whose backward call `c` is: the gradient of the layer's
// result, which the last of the calls gave, becomes that of its sums where it lies. Nobody may want it as it was. For
// ReLU alone, whose gradients that leaves as they are or makes 0. Returns false and leaves the row kernel as it is
// where the last result is another, or there is no room.
bool rows_add_slope(rows_compiler *r, const call *c);

// Says of a result of its calls whether nobody reads it after the row kernel: it need not come home then.
void rows_over(rows_compiler *r, const operand *o, bool over);

// Puts what comes last behind the other instructions. After this the row kernel can be launched, once its weights have
// a place: rows_place makes that r->packed bytes at `at`.
void rows_end(rows_compiler *r);
void rows_place(rows_compiler *r, void *at);

// Tiles of 8 columns that a warp has, of a product that is wide; terms of a run; columns of a warp; bytes of packed
// weights, and with their bias.
enum { ROWS_WIDE = 4, ROWS_TERMS = 16 };
#ifdef __CUDACC__
__host__ __device__
#endif
    static inline int
    rows_columns(const rows_pack *p) {
    return 8 * (p->wide ? ROWS_WIDE : 1);
}

// True if the weights of a layer are too many for row kernels whose blocks fill the card so many times.
bool rows_weights_wide(int64_t I, int64_t O, int64_t rounds);

size_t rows_pack_bytes(const rows_pack *p, int low);
size_t rows_pack_room(const rows_pack *p, int low);

#endif
