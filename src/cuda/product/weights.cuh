// Gradients of the weights and biases of linear layers: dW = dz' x, db = the column sums of dz.
//
// All layers that are given at once share their launches, one for those with small tiles and one for those with large
// ones. Where a product has too few tiles to fill a card, its rows are cut into parts, by sizes alone, that go to the
// calls' own scratch, and a further launch adds them in order to what is there. In fp32 they are cut always, every so
// many rows; where the parts would take too much memory, in several launches one after the other. No two of the calls
// may have the same gradient.
#ifndef TRADEWIND_CUDA_PRODUCT_WEIGHTS_CUH
#define TRADEWIND_CUDA_PRODUCT_WEIGHTS_CUH

#include "cuda/cuda.cuh"

enum { WEIGHTS_MOST = 16 };

// dz of a linear call's backward: at the start of its scratch, or dy itself where the activation has no slope.
view weights_dz(const call *c);

// Bytes of dz in the scratch, and of what weights_launch needs behind it.
size_t weights_dz_bytes(const call *c);
size_t weights_scratch(const call *c);

// The weights' gradients of backward calls of linear, up to WEIGHTS_MOST of one way of multiplying. dz must be there.
void weights_launch(const call *const *calls, int count);

#endif
