// Linear layers with large products: these go to cuBLASLt (cuda/product/blaslt.cuh) where it is there; whatever else
// the layer does is done here.
//
// The library computes products of operands of one type, with a bias of the result's: weights come from their 16-bit
// copies, x and dy are converted where they are fp32. Its GELU is not ours (it takes tanh for erf), so GELU, tanh and
// sigmoid are a pass of their own over the results; so is the slope, which sums the columns of dz for the bias on its
// way. Where dropout follows GELU, these passes do it too. Where a layer's gradient comes from another large layer
// alone and its activation is ReLU, our own product (cuda/product/product.cuh) does slope and sums as it stores. The
// slope of a small layer is done so too, without sums: its backward is then that of a layer without an activation
// (cuda/join/fuse.cuh). Of a stack of large ones another product computes the gradients of all weights and biases,
// where that pays. Where our own are faster, they compute y and dx too. A call is done in stages, each a group of its
// own (cuda/join/fuse.cuh), so that the gradients of x and of the weights are computed side by side.
#ifndef TRADEWIND_CUDA_JOIN_LARGE_CUH
#define TRADEWIND_CUDA_JOIN_LARGE_CUH

#include "cuda/cuda.cuh"
#include "cuda/join/range.cuh"

typedef enum {
    LARGE_FORWARD,  // y
    LARGE_SLOPE,    // dz, and the sums of its columns by parts
    LARGE_TOGETHER, // the gradients of weights and biases of a stack of calls that ends with this one
    LARGE_INPUT,    // the gradient of x
    LARGE_SHARES,   // where LARGE_TOGETHER leaves those of weights in shares, their sums
    LARGE_WEIGHTS,  // the gradients of weights and bias
    LARGE_BIAS,     // that of the bias of the large layer whose slope LARGE_INPUT has done
    LARGE_STAGES
} large_stage;

enum { LARGE_RANGES = 48 };

// True if a call of any operator, forward or backward, is computed here. Such a layer joins no row kernel, which would
// read its weights once for every 16 or 32 rows.
bool large_takes(const call *c);

// Bytes of scratch that a linear call needs if it is; 0 where its sizes or types rule that out. Asked before there is a
// queue, so that the plan is the same with the library and without it.
size_t large_scratch(const call *c);

// Parts of a call's backward that a row kernel has done: the slope, so that dz lies where dy would; and the bias
// gradient.
struct large_ready {
    bool slope, bias;
};

// Work of its neighbours that a call does too.
struct large_join {
    const call *drop;  // a dropout that its passes do, or NULL
    bool alone;        // forward: nobody else reads what that drops out of, which is not written
    const call *below; // backward: a layer with ReLU, whose dz the gradient of x becomes as it is stored, or NULL
    bool summed;       // backward: that one is taken too, and leaves its bias to this call, which sums the columns
    bool sloped;       // backward: its dz is there, and lies where dy would, and the layer behind it does its bias
    bool stacked;      // backward: the gradients of its weights and bias are computed with others'
    int together;      // backward: by this call, for so many up to it; 0: not by this one
    large_ready stack_ready; // backward: the first of these is so
    bool shared;             // backward: `stacked`, and that is done in shares of the rows
    large_ready ready;       // backward
};

// True if its passes can do a dropout: `drop` is the neighbour of a call that is taken, behind it forward and before it
// backward; the calls that follow both tell who reads what.
bool large_joins(const call *c, const call *drop, const call *following, int count, large_join *d);

// True if a call that is taken can do the slope of `below`, the next call, of a linear layer, large or small, whose y
// is its x.
bool large_slopes(const call *c, const call *below, const call *following, int count);

// How many calls from one on that is taken and whose own slope nobody else does have their weight gradients computed
// together: each does the slope of the next. They are when the last one's dz is there, and nothing that they read is
// written before. 0: none. `shared`: whether in shares of the rows, which LARGE_SHARES then adds up.
int large_together(const call *c, int count, large_ready ready, bool *shared);

// The sums of the columns of [rows][width], a multiple of 8 wide, to one place or two where these have data; `sums` has
// large_columns_bytes.
size_t large_columns_bytes(int64_t rows, int64_t width);
void large_columns(
    const call *c, const void *from, dtype type, int64_t rows, int64_t width, float *sums, view to, view also);

// True if nothing but the end of the step waits for a stage.
bool large_is_aside(const call *c, large_stage s, const large_join *d);

// For calls that are taken: true if the call has a stage; the memory a stage may touch, LARGE_RANGES at most; its
// launches.
bool large_has(const call *c, large_stage s, const large_join *d);
int large_ranges(const call *c, large_stage s, const large_join *d, range *to);
void large_launch(const call *c, large_stage s, const large_join *d);

#endif
