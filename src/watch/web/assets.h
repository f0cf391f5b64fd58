// The parts of the page, as they are in the program: files of src/watch/web/page/ and uPlot, put there by
// tools/embed.cmake when the program is built.
#ifndef TRADEWIND_WATCH_WEB_ASSETS_H
#define TRADEWIND_WATCH_WEB_ASSETS_H

#include <stddef.h>

typedef struct {
    const char *name, *tag; // tag: changes with the content
    const unsigned char *data;
    size_t bytes;
} asset;

// Ends with an entry without a name. Without uPlot, which comes from npm, there is no page: `assets_whole` is false.
extern const asset assets[];
extern const int assets_whole;

#endif
