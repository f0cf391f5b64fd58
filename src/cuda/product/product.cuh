// Matrix products of linear layers on Hopper cards, with what belongs to them done on the way: bias and ReLU forward,
// the slope of a ReLU and the sums of columns behind the gradient of an input, and the weight gradients of several
// layers at once with their biases'.
//
// Operands are bf16 or fp16, sums fp32 and formed in an order that the sizes alone decide. A block computes a tile of
// the result: a warp has the copy engine bring bricks of the operands into a ring (cuda/product/hopper.cuh), one or two
// groups of four warps multiply them. Matrices have rows one after another and begin at multiples of 16 bytes; their
// widths are multiples of 8.
#ifndef TRADEWIND_CUDA_PRODUCT_PRODUCT_CUH
#define TRADEWIND_CUDA_PRODUCT_PRODUCT_CUH

#include "cuda/cuda.cuh"

// The most products in a launch of weight gradients, and the most bytes of room for their shares.
enum { PRODUCT_MOST = 8, PRODUCT_ROOM = 32 << 20 };

// True if the card and the loaded kernels can do all this and the queue wants it.
bool product_can(const queue *q);

// True if the tiles of a result [rows][n] fill the card about once: then these products, which begin while what
// comes before them ends, beat the library's also where they save no pass.
bool product_fills(const queue *q, int64_t rows, int64_t n);

// y [rows][O] = x [rows][I] W [O][I]' + bias [O], which may be NULL, and where it is below 0 that with `relu`.
typedef struct {
    const void *x, *w, *bias;
    void *y;
    int64_t rows, I, O;
    dtype type;
    bool relu;
} product_forward;

void product_launch_forward(const call *c, const product_forward *p);

// dx [rows][I] = dz [rows][O] W [O][I], 0 where `seen` [rows][I], a ReLU's result, is not above 0; and by parts of the
// rows the sums of its columns as they are stored: sums [product_parts][I]. Without `seen` dx is all of it, `sums` may
// be NULL. `alone`: it is of a stack whose weight gradients, beside others of which it runs, leave no room on a
// multiprocessor, so that it may take all of one. Its bits are the same.
typedef struct {
    const void *dz, *w, *seen;
    void *dx;
    float *sums;
    int64_t rows, I, O;
    dtype type;
    bool alone;
} product_input;

int64_t product_parts(int64_t rows, int64_t I);
void product_launch_input(const call *c, const product_input *p);

// dW [O][I] (+)= dz [rows][O]' x [rows][I], and where db has data db [O] (+)= the sum of sums [parts][O]; both are
// fp32.
typedef struct {
    const void *dz, *x;
    view dw, db;
    const float *sums;
    int64_t rows, I, O, parts;
} product_weights;

// Up to PRODUCT_MOST of them, one at least, all of as many rows, in one launch. By sizes and multiprocessors: true if
// the card has their tiles at a time, for two shares where rows are many; how many shares the rows are cut into, 0
// where a launch does not pay; and the bytes of room that these need, where they are more than one. Such a launch
// leaves the shares of every dW there, and another adds them up.
bool product_fits(const queue *q, const product_weights *p, int count);
int product_shares(const queue *q, const product_weights *p, int count);
size_t product_room(const queue *q, const product_weights *p, int count);
void product_launch_weights(const call *c, dtype type, const product_weights *p, int count, void *room);
void product_launch_shares(const call *c, const product_weights *p, int count, const void *room);

#endif
