// An image of a run.db: all of its rows at a moment, for whoever looks on while a run writes.
//
// SQLite's own readers share locks and memory with the writer: they can make it wait, and put files into its directory.
// An image takes no lock, writes nothing and is never waited for: pages come from the file or from its log (run/wal.h),
// and image_whole tells afterwards whether a checkpoint, or another transaction where there is no log, has moved pages
// meanwhile. What was read from an image that is not whole must be thrown away; the next one is soon there.
//
//   image_look   two calls of the system: has anything changed?
//   image_take   an image of now
//   ...          queries on image_file
//   image_whole  was it one moment?
#ifndef TRADEWIND_RUN_IMAGE_H
#define TRADEWIND_RUN_IMAGE_H

#include "base/err.h"

#include <sqlite3.h>

typedef struct image image;

typedef enum {
    IMAGE_SAME,    // nothing has been written since the last image that was whole
    IMAGE_CHANGED, // or there is none yet
    IMAGE_GONE,    // there is no such file
} image_news;

// The file need not be there.
image *image_new(const char *path);
void image_free(image *m);

image_news image_look(image *m);

typedef enum {
    IMAGE_TAKEN,
    IMAGE_MOVING, // pages move at this moment: look again in 50 ms
    IMAGE_BAD,    // it cannot be read, or is no database: `e`
} image_state;

// Takes an image. A file that is another one than before is opened anew: image_count then differs.
image_state image_take(image *m, err *e);

// True where all that was read since image_take is of one moment.
bool image_whole(image *m);

// The image as a database, after IMAGE_TAKEN; it is the same connection until image_count changes.
sqlite3 *image_file(image *m);

// When the files of the last image were written to, in seconds since 1970.
double image_written(const image *m);

// Number of files that were opened under the path.
int image_count(const image *m);

#endif
