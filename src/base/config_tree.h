// The user's description: a tree of keys, each with its place, and the messages that blame one. For base/config*.c
// alone.
//
// The tree knows no types: a value is the text as written, or a list of them. Everything in it lives in the arena of
// its config.
#ifndef TRADEWIND_BASE_CONFIG_TREE_H
#define TRADEWIND_BASE_CONFIG_TREE_H

#include "base/arena.h"
#include "base/config.h"

#include <stdarg.h>

enum {
    NODES_MOST = 4096, // keys in all; siblings are compared pairwise
    DEPTH_MOST = 16,
    KEY_MOST = 64,
    ITEMS_MOST = 4096, // in a list
    ITEM_MOST = 255,   // bytes of one
    NOTES_MOST = 64,
    PATH_ROOM = DEPTH_MOST * (KEY_MOST + 1) + 1,
};

typedef enum { NODE_SCALAR, NODE_MAP, NODE_LIST } node_kind;

// A list. The first thing that is wrong with it is kept, since the check, which knows the key, says it better: a key
// that takes no list needs no word about a list's items.
typedef struct {
    const char **item;
    size_t count, room;
    const char *problem; // what is wrong and what to do; NULL: nothing
    size_t line;         // of the problem
} items;

typedef struct node {
    node_kind kind;
    const char *key;
    const char *text;       // of a scalar
    items list;             // of a list
    bool quoted;            // written in quotes, or as a block of text
    size_t line;            // of the key; 0 when an override made it
    const char *assignment; // the override that set it, or NULL
    struct node *first, *last, *next;
} node;

struct config {
    arena memory;
    const char *name;
    const config_key *keys;
    size_t count;
    node *root;
    size_t nodes;
    items *fallbacks; // [count]: those of rows that take a list
    struct {
        config_note note[NOTES_MOST];
        size_t count;
    } notes; // of names that were read as others
};

// An empty description; config_free frees it. The table is kept, not looked at.
config *tree_new(const char *name, const config_key *keys, size_t count);

// The parts of a path such as "train.batch_size": the length of the first, where the next one starts ("" after the
// last), whether the first is this text.
size_t part_length(const char *path);
const char *part_next(const char *path);
bool part_is(const char *path, const char *text, size_t len);

// The fault of a key as a word, and what to do; NULL if it has none.
const char *key_problem(const char *key, size_t len);

// True if an unquoted text means "no value"; true if a node has none.
bool text_is_null(const char *text);
bool node_is_null(const node *n);

node *node_child(const node *parent, const char *key, size_t len);
node *node_add(config *c, node *parent, const char *key, size_t len);

// The node that the user gave for a path, or NULL. `*last`, where wanted, is the deepest given node on the way.
node *node_find(const config *c, const char *path, const node **last);

// The node for a path, made with its sections where missing. NULL when a single value or a list stands in the way, at
// the first `*blocked` bytes of the path.
node *node_make(config *c, const char *path, const char *assignment, size_t *blocked);

// Makes a node a single value or a list, whatever it was.
void node_set(node *n, const char *text, const char *assignment);
void node_set_list(node *n, const items *list, const char *assignment);

// Adds a copy of a text to a list.
void items_add(config *c, items *list, const char *text);

// Reads "a, b" or "[a, b]" as a YAML file has it in brackets. False when that is no list; a list with a problem is one.
bool items_read(config *c, const char *text, items *list);

// ERR_INPUT "PLACE: path: text", or without the path where it is "". Blames node `n`, which may be NULL for the file as
// a whole. Both return false.
bool tree_fail(const config *c, const node *n, const char *path, err *e, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));
bool tree_fail_va(const config *c, const node *n, const char *path, err *e, const char *fmt, va_list args);

#endif
