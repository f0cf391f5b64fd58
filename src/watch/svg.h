// A figure as SVG text: shapes and words with classes, which the style of the page or of the file colours.
//
// Coordinates are pixels with one decimal from the top left corner. Every text is escaped. A figure has a title and a
// description for those who hear it, and role="img".
#ifndef TRADEWIND_WATCH_SVG_H
#define TRADEWIND_WATCH_SVG_H

#include "base/text.h"

typedef struct {
    text_out shapes;
    FILE *out; // of the shapes
    int width, height;
    const char *name, *title;
    char about[512];
} svg;

typedef enum { SVG_START, SVG_MIDDLE, SVG_END } svg_anchor;

typedef struct {
    double x, y;
} svg_point;

// Colours and patterns of the classes, in light and dark; for the head of a page, and in every file.
extern const char svg_style[];

// `name` is unique among the figures of a page that have one width. Texts must live until svg_close. The height may be
// set until then.
void svg_open(svg *s, const char *name, int width, int height, const char *title);

// Sets the description.
void svg_describe(svg *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

// The figure inside a page, and as a file of its own. The caller frees the text. svg_close gives the rest back.
char *svg_inline(svg *s);
char *svg_file(svg *s);
void svg_close(svg *s);

void svg_line(svg *s, const char *class, svg_point a, svg_point b);
void svg_rect(svg *s, const char *class, double x, double y, double width, double height);

// Shades up to here leave words upon them legible, in light and dark.
#define SVG_SHADE_MOST 0.5

// The same with a share of its opacity.
void svg_shade(svg *s, const char *class, double x, double y, double width, double height, double opacity);

void svg_circle(svg *s, const char *class, svg_point at, double radius);

// A triangle that points up or down.
void svg_triangle(svg *s, const char *class, svg_point at, double size, int up);

// A path through points; a gap where one is NaN. Nothing for fewer than one point.
void svg_path(svg *s, const char *class, const svg_point *at, int count);

// The area between two lists of points of one length.
void svg_area(svg *s, const char *class, const svg_point *top, const svg_point *bottom, int count);

// Words of at most `most` characters; 0: all.
void svg_words(svg *s, const char *class, svg_anchor anchor, svg_point at, const char *text, int most);

#endif
