// Findings of `tradewind tune`, kept for `train` and `plan`: for each effective batch that was measured the best way to
// run it, and which of them is the winner.
//
// A choice holds for what it was measured on and for nothing else: device, model, shapes, description, data and build.
// All of that is the key, a list of named texts. Some name the file: what a user may well have several of (device,
// model, shapes, limit, set). The others are conditions: build, driver, number of samples. A file whose conditions are
// not those of now is refused, and the first that differs is named.
//
// One JSON file a key, in $TRADEWIND_WISDOM, else $XDG_CACHE_HOME/tradewind/wisdom, else
// $HOME/.cache/tradewind/wisdom, replaced as a whole: two processes may write at once. What is read is from outside: a
// file that is damaged, as its sum tells, of another kind or of a newer format is as none, with a line that says so. A
// run never depends on these files once it has begun: its description and its plan carry what was chosen.
#ifndef TRADEWIND_TRAIN_WISDOM_H
#define TRADEWIND_TRAIN_WISDOM_H

#include "train/choose.h"

enum { WISDOM_FIELDS = 16, WISDOM_ROOM = 640, WISDOM_ENTRIES_MOST = 64, WISDOM_LINE = 400 };

typedef struct {
    const char *name;
    bool condition; // refused where it differs; otherwise a part of the file's name
    char value[WISDOM_ROOM];
} wisdom_field;

// The circumstances that a choice holds for.
typedef struct wisdom_key {
    int fields;
    wisdom_field field[WISDOM_FIELDS];
} wisdom_key;

// The parts of a key.
typedef struct {
    const char *version; // of the program
    const device_identity *device;
    bool card;                 // it has memory of its own, and what the description says of that counts
    const settings *described; // as the description has them
    const model_spec *model;
    const dataset *data;
    const split *split;
    const int64_t *window; // by stream
} wisdom_about;

// A way to run an effective batch, as it was measured.
typedef struct {
    int64_t batch;        // effective: micro * parts, at most 10^7 as train.batch_size
    int64_t micro, parts; // rows of a micro-batch, micro-batches in a step
    int again;            // segments that are recomputed
    bool host;            // batches come from the host
    precision precision;
    products_by products; // where the description leaves that open
    int threads;          // of the CPU, fewer than it has; 0: all, or as the user says
    double samples_per_s;
    double noise_scale; // of the gradient, in samples; 0: not measured
} wisdom_entry;

typedef enum { WISDOM_NONE, WISDOM_REFUSED, WISDOM_FOUND } wisdom_state;

typedef struct {
    wisdom_state state;
    wisdom_entry entry;     // FOUND
    bool winner;            // FOUND: of all batches that were measured
    char when[16];          // FOUND: the day, "2026-11-15", UTC
    char line[WISDOM_LINE]; // REFUSED: what differs, and what to do; NONE: why a file that is there is not used, or ""
} wisdom_answer;

// The effective batch is no part of a key, nor how it is split: both are what is asked for.
void wisdom_key_make(wisdom_key *k, const wisdom_about *a);

// Makes the folder that entries are kept in. False where nothing can be written there.
bool wisdom_ready(err *e);

// Keeps `count` entries, each of another effective batch, of which `winner` is the best, in place of what was there for
// this key. Makes the folder. False where that cannot be written.
bool wisdom_keep(const wisdom_key *k, const wisdom_entry *list, int count, int winner, err *e);

// Looks up an effective batch, or (batch 0) the winner.
wisdom_answer wisdom_find(const wisdom_key *k, int64_t batch);

// All that is kept for a key, at most WISDOM_ENTRIES_MOST, and the day; 0 where there is nothing that may be used.
int wisdom_list(const wisdom_key *k, wisdom_entry *list, char when[16]);

// Adds to `list`, with room for WISDOM_ENTRIES_MOST, what an earlier tuning has beside it: other batches, and of one
// batch the faster entry. False, with the list as it was, where a batch that both computed in the same way has another
// rate now, by more than 5 %: the earlier figures are of another state of the machine; or where all have no room.
bool wisdom_join(wisdom_entry *list, int *count, const wisdom_entry *earlier, int earlier_count);

// wisdom_find on a file's text; `path` is for messages.
wisdom_answer wisdom_read(const char *text, size_t bytes, const char *path, const wisdom_key *k, int64_t batch);

// The file of a key, which the caller frees. NULL, with the reason, where no folder is known.
char *wisdom_path(const wisdom_key *k, err *e);

// True if an entry is one of the ways that the chooser may take, for its effective batch, and fits the budget now; `to`
// is that way. Otherwise `why` says what is in the way. Lays the inputs out for it (choose_apply).
bool wisdom_suits(const wisdom_entry *w, const chooser *c, const budget *b, way *to, char *why, size_t room);

#endif
