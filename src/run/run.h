// The run's directory: who may write to it, its log, and the files that say what runs.
//
// One process trains in a directory at a time; the file `lock` is held as long as it does. Files:
//   config.yaml          the description, complete
//   plan.yaml            what follows from it and the machine: device, precision, batch, samples
//   training_log.txt     a line an event
//   run.db               numbers of steps and epochs (run/db.h)
//   best.safetensors     the best epoch's weights
//   last.safetensors, checkpoint_*.safetensors   (run/checkpoint.h)
//   memory.json          the memory plan, block by block (run/results.h)
//   evaluation.json, backtest.json, walk.json   what commands found out later (run/results.h)
//   predictions_PART.npz answers to a part, as evaluate got them
//   report.html, report/ a page and its figures
//   member_1/ and so on  runs of an ensemble, whose directory this is then
//   fold_01/ and so on   runs of a walk, likewise
// An earlier run in DIR is set aside as DIR.1, DIR.2 and so on (run/aside.h); no file of a run is ever removed for
// another.
#ifndef TRADEWIND_RUN_RUN_H
#define TRADEWIND_RUN_RUN_H

#include "base/err.h"
#include "base/log.h"
#include "run/db.h"

typedef struct run run;

// Opens a directory for a run that begins: makes it, and sets an earlier run aside with all that lies there. ERR_RUN
// where another process trains in it or in a member; ERR_INPUT where files have such names that no run has written.
// NULL on failure.
run *run_begin(const char *dir, err *e);

// Opens a directory for a run that goes on. ERR_INPUT where there is no run, or where a newer version has
// written run.db.
run *run_resume(const char *dir, err *e);
void run_close(run *r);

const char *run_dir(const run *r);
log_file *run_log(run *r);
db *run_db(run *r);

// Where the earlier run of the directory is now; NULL where there was none.
const char *run_earlier(const run *r);

// "DIR/NAME", which the caller frees; slashes at the end of DIR are one.
char *run_path(const char *dir, const char *name);

// Makes the directory of runs that several processes share, none of which holds it, with its description. ERR_INPUT
// where files have such names that no run has written.
bool run_describe(const char *dir, const char *config, err *e);

// A text file of a directory, such as config.yaml, which the caller frees; NULL where it is not there, or is no text.
// False where the reading of it fails.
bool run_read(const char *dir, const char *name, char **text, err *e);

// The same of config.yaml or plan.yaml; `changed` where it is not as it was written.
bool run_read_summed(const char *dir, const char *name, char **text, bool *changed, err *e);

// The text as run_read has it; NULL also where the reading fails.
char *run_text(const char *dir, const char *name);

// Puts the run's description in place, whole, as config.yaml, and its plan as plan.yaml; the last line is a comment
// with the sum of those above.
bool run_put_description(const run *r, const char *config, err *e);
bool run_put_plan(const run *r, const char *plan, err *e);

// True where a run's config.yaml or plan.yaml is not as it was written, by that sum. Without that line, which a user
// may remove, it is taken as it is.
bool run_text_changed(const char *file);

// True where a run has written into a directory, by files that runs alone leave.
bool run_was_in(const char *dir);

// True where a run that begins in a directory would move this file with the earlier run's.
bool run_moves(const char *dir, const char *path);

// True where a run was in a directory and has no checkpoint there; whether it has saved its best weights.
bool run_has_no_checkpoint(const char *dir);
bool run_has_weights(const char *dir);

// True for the names of directories that belong to the run above them: its members and folds, also those set aside, and
// "earlier", where earlier versions moved files.
bool run_owns(const char *name);

// Calls `use` with the directory of every fold of a walk that has begun, in no order. False where the directory cannot
// be listed; one that is not there has no folds.
bool run_each_fold(const char *walk, void (*use)(void *arg, const char *dir), void *arg, err *e);

// True if a path is a directory that a run has been in; true if a process trains there now.
bool run_is(const char *path);
bool run_is_locked(const char *dir);

// The status of a run as its run.db has it, but "killed" where that says running and nobody trains there.
const char *run_status(const char *dir, const db_summary *s);

#endif
