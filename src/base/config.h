// Run descriptions: one YAML file, checked against a table of keys, overridden from the command line.
//
// The user's values are kept as written, each with its place, so that every complaint reads "FILE:LINE: path: what is
// wrong; what to do" on one line, or starts with the override that is to blame. The order of calls is load, overrides,
// check, then the getters. Of YAML it takes one document of nested maps, single values and lists of single values;
// anchors, aliases, tags, several documents, files of more than 1 MiB and nesting beyond 16 are refused (ERR_INPUT, as
// is all that is wrong with the user's text).
#ifndef TRADEWIND_BASE_CONFIG_H
#define TRADEWIND_BASE_CONFIG_H

#include "base/err.h"

#include <stdint.h>
#include <stdio.h>

typedef enum { CONFIG_INT, CONFIG_REAL, CONFIG_BOOL, CONFIG_TEXT, CONFIG_CHOICE, CONFIG_LIST, CONFIG_MAP } config_type;

// Marks of a row: one of each pair, and KEY_PATH where it fits.
enum {
    KEY_FIXED = 1,   // may not change where a run goes on
    KEY_FREE = 2,    // may: it moves no bit of what was trained so far, nor of what the next step does
    KEY_TUNED = 4,   // what was tuned holds for its value: train/wisdom.h sees it, or its effect on data and model
    KEY_UNTUNED = 8, // what was tuned holds whatever its value is
    KEY_PATH = 16,   // the value is the path of a file or a directory
};

// One row of a table of keys. The sections on the way to a key need no row of their own. A section that means something
// by being there ("agent") has a CONFIG_MAP row without fallback: config_write then leaves it out unless it was given.
// A key may have a row for a single value or a list and rows below it; the user then gives either.
//
// A list is "[a, b]" or lines of "- a": up to 4096 words of up to 255 bytes each. It may be empty, and words may
// repeat. A single value is a list of one, but unquoted it has no comma, since "a, b" without brackets is most likely
// meant as two. Which words make sense is for the caller to say, with config_fail.
typedef struct {
    const char *path; // "train.batch_size"; "model.hidden.*" covers any key one level below model.hidden
    config_type type;
    const char *fallback; // the value when the user gives none, as in a file, unquoted ("a, b" for a list); NULL: none
    double least, most;   // INT, REAL: inclusive, or -INFINITY, INFINITY; a least of 1e-30 or less means "above 0"
    const char *choices; // CHOICE: "adamw|sgd|cuda:N"; INT, REAL, BOOL: words taken in place of a value, such as "auto"
    const char *help;    // one line
    unsigned marks;      // KEY_*, for those who compare descriptions; nothing here looks at them
} config_key;

// The least of a number that must be above 0.
#define ABOVE_0 1e-30

typedef struct config config;

// The row of a table that a path is of, "model.hidden.fast" being of "model.hidden.*"; NULL where there is none.
const config_key *config_row(const config_key *keys, size_t count, const char *path);

// Reads a description; the table must outlive it. Refuses what is not YAML as described above and keys given twice.
// NULL on failure. config_read is the same from memory, with `name` for the file in messages. A row that contradicts
// itself (a fallback out of range) is a programmer's mistake and stops the program.
config *config_load(const char *path, const config_key *keys, size_t count, err *e);
config *config_read(const char *name, const char *text, size_t bytes, const config_key *keys, size_t count, err *e);
void config_free(config *c);

// Sets one value from "train.epochs=4", making the sections that it needs; the text after = is taken as it is. A key of
// the table that takes a list is set from "data.features.fast=a,b" or "=[a, b]", quotes as in a file; "=[]" is the
// empty list. The last one wins. Whether the key exists and the value fits is for config_check to say.
bool config_override(config *c, const char *assignment, err *e);

// Puts another text in place of a single value that was given; messages still blame its place.
void config_replace(config *c, const char *path, const char *text);

// Another name that people have for a key.
typedef struct {
    const char *name; // path, as people write it; no path of the table
    const char *key;  // path of the table; NULL: there is none
    const char *why;  // without a key: why nothing needs it, or what to write instead, for people
    bool refused;     // without a key: something else must be written
} config_name;

// Puts every value that stands under one of these names where its key is; names without a key are taken out. To be
// called after config_load and after each override, which replaces what the file has. ERR_INPUT where a file gives both
// the name and the key, and for a name that is refused.
bool config_rename(config *c, const config_name *names, size_t count, err *e);

// Notes of config_rename: `name` was read as `key`, or is not needed for the reason in `why`.
typedef config_name config_note;

size_t config_notes(const config *c);
const config_note *config_note_at(const config *c, size_t i);

// Every key known, every value of its type and in range. Reports the first that is not, in the order of the file.
bool config_check(const config *c, err *e);

// True if the user gave a value; true if there is one, given or fallback. The path must be in the table, or be a
// section.
bool config_given(const config *c, const char *path);
bool config_has(const config *c, const char *path);

// True where a value that was given is the fallback.
bool config_is_usual(const config *c, const char *path);

// True where the user gave a single value or a list for a key that may also have keys below it.
bool config_given_value(const config *c, const char *path);

// Values, after config_check. The path must be in the table with that type (config_text: TEXT and CHOICE). Numbers and
// booleans must have a value that is not a word; config_text gives NULL where there is none.
int64_t config_int(const config *c, const char *path);
double config_real(const config *c, const char *path);
bool config_bool(const config *c, const char *path);
const char *config_text(const config *c, const char *path);

// The words of a list, in their order: how many, 0 when there is no value, and the i-th.
size_t config_items(const config *c, const char *path);
const char *config_item(const config *c, const char *path, size_t i);

// True if the value is this word: "auto" in place of a number, one of the choices, or a text.
bool config_is(const config *c, const char *path, const char *word);

// The keys that the user gave below a section, in the order of the file: how many (0 when it is a single value or not
// given), and the last part of the i-th one's path.
size_t config_count(const config *c, const char *path);
const char *config_child(const config *c, const char *path, size_t i);

// Calls `use` with the path of every value that the user gave, in the order of the file.
void config_each(const config *c, void (*use)(void *arg, const char *path), void *arg);

// ERR_INPUT "FILE:LINE: path: text" for checks that need more than the table. The line is that of the key or of its
// nearest given parent. Returns false.
bool config_fail(const config *c, const char *path, err *e, const char *fmt, ...) __attribute__((format(printf, 4, 5)));

// A copy with fallbacks filled in, which `c` must outlive; config_free frees it. After config_check.
config *config_filled(const config *c);

// Writes the description, fallbacks filled in, as YAML that config_load reads back to the same values. After
// config_check. False when `out` takes no more.
bool config_write(const config *c, FILE *out);

// Writes a table for people: each key, what it takes, its default and its help.
void config_help(const config_key *keys, size_t count, FILE *out);

#endif
