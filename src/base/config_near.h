// The nearest of several texts to the one that the user wrote, near enough to be taken for a slip.
#ifndef TRADEWIND_BASE_CONFIG_NEAR_H
#define TRADEWIND_BASE_CONFIG_NEAR_H

#include <stddef.h>

typedef struct {
    const char *want;
    const char *path, *end; // what to suggest; NULL while nothing is near
    size_t distance;        // less than this is nearer
} nearest;

nearest nearest_to(const char *want);

// Compares with `part`, which ends `path` or, where they are the same, is all of it. Long texts are never near.
void nearest_try(nearest *n, const char *path, const char *part, size_t len);

#endif
