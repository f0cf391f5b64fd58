// A run description with everything that changes it, as structs: read, complete and checked.
#ifndef TRADEWIND_TASK_DESCRIBE_H
#define TRADEWIND_TASK_DESCRIBE_H

#include "base/config.h"
#include "train/settings.h"

enum { CHANGES_MOST = 8 };

// A value for a key.
typedef struct {
    const char *path, *value;
} task_change;

// The description's texts must outlive what is made of it.
typedef struct {
    const char *file;                 // YAML; with `text` only the name of that in messages
    const char *text;                 // the description itself, or NULL: the file has it
    task_change before[CHANGES_MOST]; // set before the user's overrides, which win; up to the first without a path
    const char *const *overrides;     // of the user: "train.epochs=4"
    int override_count;
    const char *seed;                // for train.seed, or NULL
    task_change after[CHANGES_MOST]; // set behind all of these
} task_description;

// Adds a change behind all others; a later one of the same key wins.
void task_change_behind(task_description *d, const char *path, const char *value);

// Reads the file, changes it, checks it and fills `s`, which points into the config. The config.yaml of a run's own
// directory means that directory, wherever it has been copied to, unless the user overrides run.dir. NULL on failure.
config *task_describe(const task_description *d, settings *s, err *e);

// The directory of the run whose own config.yaml a description is, which the caller frees; NULL for any other.
char *task_run_described(const task_description *d);

// Sets a key; config_check says whether it fits.
bool task_set(config *c, const char *path, const char *value, err *e);

// The description, complete, as config.yaml has it; the caller frees it. Paths of data and of weights to start from are
// absolute, so that they hold from any directory. NULL on failure.
char *task_description_text(const config *c, err *e);

// A description that an earlier program wrote, with the keys that it did not know as they usually are; the caller frees
// it. A text that cannot be read is copied.
char *task_description_complete(const char *text);

// Bar files of a description, and all files that it reads.
enum { TASK_FILES_MOST = 1024, TASK_INPUTS_MOST = TASK_FILES_MOST + 8 };

// The files that a description reads: data and weights to start from. At most TASK_INPUTS_MOST; their number.
int task_inputs(const config *c, const char *list[TASK_INPUTS_MOST]);

#endif
