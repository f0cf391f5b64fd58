// The table of keys: which row a path belongs to, and what a row takes. For base/config*.c alone.
#ifndef TRADEWIND_BASE_CONFIG_KEYS_H
#define TRADEWIND_BASE_CONFIG_KEYS_H

#include "base/config.h"
#include "base/config_words.h"

// A text, read as its row's type.
typedef struct {
    bool word; // one of the choices stands in place of a value
    int64_t i;
    double r;
    bool b;
} value;

// Stops the program when row `at` contradicts itself or an earlier one.
void row_check(const config_key *keys, size_t at);

// The rest of a row's path below the section `path`: "" when it is the row itself, NULL when it lies elsewhere.
const char *row_below(const char *row, const char *path);

// True if the row's path has a star.
bool row_is_wild(const config_key *k);

// The row for a path, a literal one before one with a star; NULL when there is none.
const config_key *row_find(const config *c, const char *path);

// True if keys may stand below a path.
bool row_is_section(const config *c, const char *path);

// Reads a scalar as its row wants it. On failure `*hint` says what to do, or stays as it is.
bool row_parse(const config_key *k, const char *text, bool quoted, value *v, const char **hint);

// Puts a key's type in words: "integer of at least 1 or auto".
void row_put_type(words *w, const config_key *k);

// Walks a list such as "adamw|sgd"; the next word and its length, or NULL at the end.
const char *choice_next(const char **list, size_t *len);

// A choice that ends in ":N" stands for that word with any number of up to three digits: cuda:N for cuda:0.
bool choice_has(const char *list, const char *text);

#endif
