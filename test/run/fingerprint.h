// Fingerprints of files of tensors: numbers that change where a tensor's name, its shape or a bit of it does. Neither
// the order of the tensors nor the notes count, so that a file of another version may have the same.
#ifndef TRADEWIND_TEST_RUN_FINGERPRINT_H
#define TRADEWIND_TEST_RUN_FINGERPRINT_H

#include <stdint.h>

// Tensors whose names begin with a prefix ("moment1."); with an empty one, the weights: those whose names begin with
// none of a checkpoint's prefixes. The file must have some. The time that a run took does not count.
uint64_t fingerprint(const char *path, const char *prefix);

#endif
