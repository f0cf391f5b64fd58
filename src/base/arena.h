// An arena: many small allocations that live and die together. It holds descriptions (graphs, plans, configurations),
// never tensor data. Memory comes zeroed and aligned to 16 bytes; nothing is freed singly. Running out of memory for
// such descriptions stops the program: there is nothing useful to plan without them.
#ifndef TRADEWIND_BASE_ARENA_H
#define TRADEWIND_BASE_ARENA_H

#include <stddef.h>

typedef struct arena {
    struct arena_chunk *chunks;
} arena;

void arena_init(arena *a);
void arena_done(arena *a);

// `bytes` zeroed bytes; valid until arena_done. Zero bytes give a valid pointer.
void *arena_take(arena *a, size_t bytes);

// `count` items of `size` bytes, with the product checked for overflow.
void *arena_array(arena *a, size_t count, size_t size);

// A copy of a string; a formatted string.
char *arena_text(arena *a, const char *text);
char *arena_format(arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
