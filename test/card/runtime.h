// The card in software, for libraries that compute on it.
#ifndef TRADEWIND_TEST_CARD_RUNTIME_H
#define TRADEWIND_TEST_CARD_RUNTIME_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>

// True if these bytes are memory of the card's.
bool runtime_owns(const void *at, size_t bytes);

// Has the stream do `run` with a copy of what is at `with`, or records that.
cudaError_t runtime_submit(
    cudaStream_t stream, const char *name, void (*run)(const void *with), const void *with, size_t bytes);

#endif
