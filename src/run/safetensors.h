// The safetensors format: named tensors in one file, as PyTorch users exchange weights.
//
// Reading maps the file and believes nothing before it is checked: header length and JSON, types, shapes, and offsets
// that must cover the data without hole or overlap. Writing replaces the file atomically.
#ifndef TRADEWIND_RUN_SAFETENSORS_H
#define TRADEWIND_RUN_SAFETENSORS_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

enum { SAFETENSORS_RANK_MOST = 8 };

typedef enum { SAFE_F32, SAFE_F64, SAFE_F16, SAFE_BF16, SAFE_I8, SAFE_I32, SAFE_I64, SAFE_U8 } safetensors_type;

typedef struct {
    const char *name;
    safetensors_type type;
    int rank;
    int64_t dim[SAFETENSORS_RANK_MOST];
    const void *data; // little-endian, in the mapped file; aligned to the element only where the writer aligned it
    size_t bytes;
} safetensors_entry;

typedef struct safetensors safetensors;

// NULL on failure; every fault is ERR_INPUT and names the file.
safetensors *safetensors_open(const char *path, err *e);
void safetensors_close(safetensors *s);

int safetensors_count(const safetensors *s);
const safetensors_entry *safetensors_at(const safetensors *s, int i);

// NULL where there is none of that name.
const safetensors_entry *safetensors_find(const safetensors *s, const char *name);
const char *safetensors_metadata(const safetensors *s, const char *key);

typedef struct {
    const char *key, *value;
} safetensors_note;

// All of the metadata, in the file's order.
int safetensors_notes(const safetensors *s);
safetensors_note safetensors_note_at(const safetensors *s, int i);

bool safetensors_write(const char *path, const safetensors_entry *entries, int count, const safetensors_note *notes,
    int note_count, err *e);

#endif
