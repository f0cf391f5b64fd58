// A strip: a curve of any length in bounded memory, of which no extreme is lost.
//
// It is a list of cells, each the lowest and the highest of so many values that follow each other, at their own places.
// Once there are STRIP_CELLS of them, neighbours are joined two by two, and from then on a cell stands for twice as
// many values. What is drawn of a window is made of whole cells, so a peak is there at every zoom.
#ifndef TRADEWIND_WATCH_STRIP_H
#define TRADEWIND_WATCH_STRIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { STRIP_CELLS = 16384 };

typedef struct {
    double x, y;
} strip_point;

typedef struct {
    strip_point low, high;
    int64_t key; // of its first value: the row that it was in
} strip_cell;

// To be made by {0} and given back by strip_done.
typedef struct {
    strip_cell *cell;
    int cells, room;
    int64_t each, open; // values of a whole cell; of the last one, 0 where that is whole
    int64_t count;      // values, and those that are not finite and so are in no cell
    int64_t missing;
    int64_t last_key;
    strip_point last;
} strip;

void strip_done(strip *s);

// Adds a value behind all others. Their x and their keys must not fall.
void strip_add(strip *s, int64_t key, double x, double y);

size_t strip_bytes(const strip *s);

// Draws a window as at most 2 * points + 4 points in the order of x: the lowest and the highest of each stretch, and
// its neighbours on both sides. Gives their number.
int strip_draw(const strip *s, double from, double to, int points, strip_point *out);

// True where a window has so few cells that its values themselves would show more: `first` and `last` are the keys
// between which they lie.
bool strip_is_coarse(const strip *s, double from, double to, int points, int64_t *first, int64_t *last);

#endif
