#include "watch/cells.h"

#include "base/err.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_MOST = 2048 };

void cells_init(cells *g, int rows, int columns, bool ascii) {
    *g = (cells){.rows = rows, .columns = columns, .ascii = ascii};
    g->cell = calloc((size_t)rows * (size_t)columns + 1, sizeof *g->cell);
    NEED(g->cell, "out of memory for a screen");
    for (int i = 0; i < rows * columns; i++) g->cell[i].rune = ' ';
}

void cells_done(cells *g) {
    free(g->cell);
    *g = (cells){0};
}

void cells_put(cells *g, int row, int column, style s, uint32_t rune) {
    if (row < 0 || row >= g->rows || column < 0 || column >= g->columns) return;
    g->cell[row * g->columns + column] = (cell){rune, s};
}

const char *cells_number(char *text, double v, int digits, int room) {
    while (snprintf(text, 32, "%.*g", digits, v) > room && digits > 1) digits--;
    return text;
}

void cells_fill(cells *g, int row, int column, int count, style s, uint32_t rune) {
    for (int i = 0; i < count; i++) cells_put(g, row, column + i, s, rune);
}

// Text

// The next character of UTF-8; what is none is a '?' of one byte.
static uint32_t next_rune(const char **at) {
    const unsigned char *c = (const unsigned char *)*at;
    int more = c[0] < 0x80 ? 0 : (c[0] & 0xe0) == 0xc0 ? 1 : (c[0] & 0xf0) == 0xe0 ? 2 : (c[0] & 0xf8) == 0xf0 ? 3 : -1;
    static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};
    uint32_t rune = more < 0 ? '?' : more == 0 ? c[0] : c[0] & (0x3fu >> more);
    ++*at;
    for (int i = 1; i <= more; i++) {
        if ((c[i] & 0xc0) != 0x80) return '?';
        rune = rune << 6 | (c[i] & 0x3fu);
    }
    if (more < 0 || rune < least[more] || rune > 0x10ffff || (rune >= 0xd800 && rune < 0xe000)) return '?';
    *at += more;
    return rune < ' ' || (rune >= 0x7f && rune < 0xa0) ? '?' : rune;
}

// Columns of a character on terminals: 2 for scripts and pictures that are wide, 0 for what joins the one before.
static int width_of(uint32_t r) {
    static const uint32_t wide[][2] = {{0x1100, 0x115f}, {0x2e80, 0xa4cf}, {0xac00, 0xd7a3}, {0xf900, 0xfaff},
        {0xfe30, 0xfe6f}, {0xff00, 0xff60}, {0xffe0, 0xffe6}, {0x1f300, 0x1faff}, {0x20000, 0x3fffd}};
    if ((r >= 0x300 && r <= 0x36f) || (r >= 0x200b && r <= 0x200f) || (r >= 0xfe00 && r <= 0xfe0f)) return 0;
    for (size_t i = 0; i < sizeof wide / sizeof *wide; i++)
        if (r >= wide[i][0] && r <= wide[i][1]) return 2;
    return 1;
}

int cells_text(cells *g, int row, int column, int room, style s, const char *text) {
    int used = 0;
    while (*text) {
        uint32_t rune = next_rune(&text);
        if (g->ascii && rune > 0x7e) rune = '?';
        int wide = width_of(rune);
        if (used + wide > room) break;
        if (wide) cells_put(g, row, column + used, s, rune);
        if (wide == 2) cells_put(g, row, column + used + 1, s, 0);
        used += wide;
    }
    return used;
}

int cells_format(cells *g, int row, int column, int room, style s, const char *fmt, ...) {
    char text[TEXT_MOST];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return cells_text(g, row, column, room, s, text);
}

// Writing

int cells_utf8(uint32_t r, char to[4]) {
    if (r < 0x80) return to[0] = (char)r, 1;
    int more = r < 0x800 ? 1 : r < 0x10000 ? 2 : 3;
    static const unsigned char head[] = {0, 0xc0, 0xe0, 0xf0};
    to[0] = (char)(head[more] | r >> (6 * more));
    for (int i = 1; i <= more; i++) to[i] = (char)(0x80 | (r >> (6 * (more - i)) & 0x3f));
    return more + 1;
}

static int columns_used(const cells *g, int row) {
    int n = g->columns;
    while (n && g->cell[row * g->columns + n - 1].rune == ' ') n--;
    return n;
}

void cells_write(const cells *g, FILE *out) {
    int rows = g->rows;
    while (rows && !columns_used(g, rows - 1)) rows--;
    for (int row = 0; row < rows; row++) {
        for (int i = 0, n = columns_used(g, row); i < n; i++) {
            char bytes[4];
            uint32_t rune = g->cell[row * g->columns + i].rune;
            if (rune) fwrite(bytes, 1, (size_t)cells_utf8(rune, bytes), out);
        }
        fputc('\n', out);
    }
}
