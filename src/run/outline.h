// Descriptions compared: what differs between two YAML texts, by path.
//
// It reads what config_write and the makers of plans write: a line a value, sections by two spaces of indent. It is no
// reader of YAML from elsewhere.
#ifndef TRADEWIND_RUN_OUTLINE_H
#define TRADEWIND_RUN_OUTLINE_H

#include <stdbool.h>
#include <stddef.h>

// How many paths of the two differ, those aside for which `skip` (or NULL) is true. `text` gets the first few:
// "train.seed is 2, was 1; train.epochs is 9, was 8".
int outline_compare(const char *was, const char *is, bool (*skip)(const char *path), char *text, size_t room);

// Calls `use` with every path that differs, and its values; NULL: it is not given.
void outline_each_difference(const char *was, const char *is,
    void (*use)(void *arg, const char *path, const char *was, const char *is), void *arg);

// The value of a path, which the caller frees; NULL where there is none.
char *outline_value(const char *text, const char *path);

// True where a section has values.
bool outline_has(const char *text, const char *section);

// The same as a text in `to`, cut to its room, "" where there is none; as a number, NaN where it is none. The outline
// may be NULL.
void outline_put(const char *outline, const char *path, char *to, size_t room);
double outline_number(const char *outline, const char *path);

#endif
