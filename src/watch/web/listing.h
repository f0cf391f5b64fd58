// Runs below a directory: runs, walks with their folds, ensembles with their members.
#ifndef TRADEWIND_WATCH_WEB_LISTING_H
#define TRADEWIND_WATCH_WEB_LISTING_H

#include <stdbool.h>

typedef struct {
    char *dir;  // as it is opened
    char *name; // from the directory that was looked through; its own name where it is that itself
    int parent; // the walk or ensemble that it is of; -1: none
} listed_run;

typedef struct {
    listed_run *run;
    int count;
    bool full; // there are more than LISTING_MOST
} listing;

enum { LISTING_MOST = 5000 };

// Runs in the order of their names, parts behind what they are of.
listing listing_make(const char *dir);
void listing_done(listing *l);

#endif
