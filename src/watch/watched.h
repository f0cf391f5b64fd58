// Runs that are watched together: each with its tail and its story, found in the directories that a user names.
#ifndef TRADEWIND_WATCH_WATCHED_H
#define TRADEWIND_WATCH_WATCHED_H

#include "watch/live_view.h"
#include "watch/story.h"
#include "watch/tail.h"

typedef struct {
    tail *tail;
    tail_cursor cursor;
    story *story;
    bool awaits;     // runs below it, the first of which takes its place
    live_view *live; // the session that trades it; of a walk or an ensemble the whole's
} watched_run;

typedef struct {
    const char *const *dir;
    int dirs;
    watched_run *run;
    int runs;
} watched;

// Directories of runs stand for themselves; of walks and ensembles, for their parts; others for the runs in them, or
// for a run to come where there are none. The names live as long as this.
void watched_open(watched *w, const char *const *dir, int dirs);
void watched_close(watched *w);

// Looks for runs that have begun since; true where there are some. Those that are known keep their places; a directory
// that had no runs yet, or a walk or an ensemble that had no parts, gives its place to the first.
bool watched_look(watched *w);

// Follows one of them; true where something is new.
bool watched_poll(watched_run *r);

#endif
