// A grid of character cells, which a terminal shows and a test compares.
#ifndef TRADEWIND_WATCH_CELLS_H
#define TRADEWIND_WATCH_CELLS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef enum {
    STYLE_PLAIN,
    STYLE_DIM,
    STYLE_BOLD,
    STYLE_BAR, // a line across the screen
    STYLE_FIRST,
    STYLE_SECOND, // of two curves
    STYLE_GOOD,
    STYLE_FAIR,
    STYLE_POOR,
    STYLES
} style;

typedef struct {
    uint32_t rune; // 0: the right half of a wide character
    style style;
} cell;

typedef struct {
    int rows, columns;
    bool ascii; // nothing but ASCII is put
    cell *cell;
} cells;

// A rectangle of cells.
typedef struct {
    int row, column, rows, columns;
} area;

void cells_init(cells *g, int rows, int columns, bool ascii);
void cells_done(cells *g);

// Puts one character; nothing outside of the grid.
void cells_put(cells *g, int row, int column, style s, uint32_t rune);

// Puts a text of UTF-8 into at most `room` columns, and gives how many it took. Control characters and bytes that are
// no text become '?'; so does in ASCII whatever is not.
int cells_text(cells *g, int row, int column, int room, style s, const char *text);
int cells_format(cells *g, int row, int column, int room, style s, const char *fmt, ...)
    __attribute__((format(printf, 6, 7)));

// A number with as many of `digits` digits as fit into `room` columns. Returns `text`, of 32 bytes.
const char *cells_number(char *text, double v, int digits, int room);

// Fills columns with a character.
void cells_fill(cells *g, int row, int column, int count, style s, uint32_t rune);

// Writes the grid as lines of UTF-8 without spaces at their ends, and without empty lines at the end.
void cells_write(const cells *g, FILE *out);

// The bytes of a character in UTF-8; how many.
int cells_utf8(uint32_t rune, char to[4]);

#endif
