// Event files of TensorBoard: scalars, one record each.
//
// A record is the length of its data (8 bytes), a masked CRC-32C of these, the data, and a masked CRC-32C of the data;
// the data are a protocol buffer "Event". The file begins with an event that names the format, "brain.Event:2".
#ifndef TRADEWIND_WATCH_TFEVENTS_H
#define TRADEWIND_WATCH_TFEVENTS_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

typedef struct tfevents tfevents;

// Makes a file, in place of one that is there. NULL on failure.
tfevents *tfevents_open(const char *path, double time, err *e);

// Appends a value. What does not fit any more is told by tfevents_flush.
void tfevents_scalar(tfevents *t, double time, int64_t step, const char *tag, double value);

// True where all that was appended is with the system.
bool tfevents_flush(tfevents *t, err *e);
void tfevents_close(tfevents *t);

// CRC-32C (Castagnoli) of some bytes.
uint32_t tfevents_crc32c(const void *data, size_t bytes);

#endif
