#include "watch/svg.h"

#include "base/err.h"
#include "run/results.h"
#include "watch/markup.h"

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>

// Lines differ by their dashes and dots by their shapes too, so that figures can be read without colours.
const char svg_style[] =
    ":root{--paper:#fff;--ink:#1b1f24;--dim:#57606a;--grid:#d8dee4;--a:#0b62b0;--b:#b84a00;--c:#0a7a55;--d:#8a3d8f}\n"
    "@media (prefers-color-scheme:dark){:root{--paper:#11151a;--ink:#e6edf3;--dim:#9aa5b1;--grid:#30363d;--a:#6cb6ff;"
    "--b:#ff9d5c;--c:#4fd1a1;--d:#d6a1de}}\n"
    "@media "
    "print{:root{--paper:#fff;--ink:#000;--dim:#444;--grid:#ccc;--a:#0b62b0;--b:#b84a00;--c:#0a7a55;--d:#8a3d8f}}\n"
    "svg text{font:13px system-ui,-apple-system,'Segoe UI',Roboto,sans-serif;fill:var(--ink)}\n"
    "svg .dim{fill:var(--dim)}svg .small{font-size:11.5px}svg .strong{font-weight:600}\n"
    "svg .grid{stroke:var(--grid)}svg .axis{stroke:var(--dim)}svg .mark{stroke:var(--dim);stroke-dasharray:2 3}\n"
    "svg .line{fill:none;stroke-width:2;stroke-linejoin:round}\n"
    "svg .la{stroke:var(--a)}svg .lb{stroke:var(--b);stroke-dasharray:7 3}svg .lc{stroke:var(--c);stroke-dasharray:2 3}"
    "svg .ld{stroke:var(--d);stroke-dasharray:9 3 2 3}svg .thin{stroke-width:1.2}\n"
    "svg .fa{fill:var(--a)}svg .fb{fill:var(--b)}svg .fc{fill:var(--c)}svg .fd{fill:var(--d)}"
    "svg .pale{fill-opacity:.22}svg .hollow{fill:var(--paper);stroke-width:1.6}svg "
    ".frame{fill:none;stroke:var(--grid)}\n";

void svg_open(svg *s, const char *name, int width, int height, const char *title) {
    *s = (svg){.width = width, .height = height, .name = name, .title = title};
    text_open(&s->shapes);
    s->out = s->shapes.out;
}

void svg_describe(svg *s, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    vsnprintf(s->about, sizeof s->about, fmt, args);
    va_end(args);
}

static char *whole(svg *s, bool file) {
    text_out t;
    text_open(&t);
    FILE *out = t.out;
    NEED(fflush(s->out) == 0 && !s->shapes.failed, "out of memory for a figure");
    if (file) fprintf(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n" RESULTS_REPORT_MARK "\n");
    fprintf(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\"", s->width, s->height);
    if (file) fprintf(out, " width=\"%d\" height=\"%d\" style=\"background:var(--paper)\"", s->width, s->height);
    fprintf(out, " role=\"img\" aria-labelledby=\"%s-%d-t %s-%d-d\">\n", s->name, s->width, s->name, s->width);
    fprintf(out, "<title id=\"%s-%d-t\">", s->name, s->width);
    markup_text(out, s->title);
    fprintf(out, "</title>\n<desc id=\"%s-%d-d\">", s->name, s->width);
    markup_text(out, s->about);
    fputs("</desc>\n", out);
    if (file) fprintf(out, "<style>\n%s</style>\n", svg_style);
    fwrite(s->shapes.text, 1, s->shapes.bytes, out);
    fputs("</svg>\n", out);
    char *text = text_close(&t);
    NEED(text, "out of memory for a figure");
    return text;
}

char *svg_inline(svg *s) {
    return whole(s, false);
}

char *svg_file(svg *s) {
    return whole(s, true);
}

void svg_close(svg *s) {
    free(text_close(&s->shapes));
}

void svg_line(svg *s, const char *class, svg_point a, svg_point b) {
    fprintf(
        s->out, "<line class=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n", class, a.x, a.y, b.x, b.y);
}

void svg_rect(svg *s, const char *class, double x, double y, double width, double height) {
    fprintf(s->out, "<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>\n", class, x, y, width,
        height);
}

void svg_shade(svg *s, const char *class, double x, double y, double width, double height, double opacity) {
    fprintf(s->out, "<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill-opacity=\"%.2f\"/>\n",
        class, x, y, width, height, opacity);
}

void svg_circle(svg *s, const char *class, svg_point at, double radius) {
    fprintf(s->out, "<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\"/>\n", class, at.x, at.y, radius);
}

void svg_triangle(svg *s, const char *class, svg_point at, double size, int up) {
    double tip = up ? -size : size;
    fprintf(s->out, "<path class=\"%s\" d=\"M%.1f %.1fL%.1f %.1fL%.1f %.1fZ\"/>\n", class, at.x, at.y + tip,
        at.x - size, at.y - tip, at.x + size, at.y - tip);
}

void svg_path(svg *s, const char *class, const svg_point *at, int count) {
    bool drawn = false, any = false;
    for (int i = 0; i < count; i++) {
        bool is = isfinite(at[i].x) && isfinite(at[i].y);
        if (is && !any) fprintf(s->out, "<path class=\"%s\" d=\"", class);
        if (is) fprintf(s->out, "%c%.1f %.1f", drawn ? 'L' : 'M', at[i].x, at[i].y);
        drawn = is;
        any |= is;
    }
    if (any) fputs("\"/>\n", s->out);
}

void svg_area(svg *s, const char *class, const svg_point *top, const svg_point *bottom, int count) {
    if (count < 2) return;
    fprintf(s->out, "<path class=\"%s\" d=\"", class);
    for (int i = 0; i < count; i++) fprintf(s->out, "%c%.1f %.1f", i ? 'L' : 'M', top[i].x, top[i].y);
    for (int i = count - 1; i >= 0; i--) fprintf(s->out, "L%.1f %.1f", bottom[i].x, bottom[i].y);
    fputs("Z\"/>\n", s->out);
}

void svg_words(svg *s, const char *class, svg_anchor anchor, svg_point at, const char *text, int most) {
    static const char *const anchors[] = {"start", "middle", "end"};
    fprintf(s->out, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", class, at.x, at.y, anchors[anchor]);
    if (most)
        markup_short(s->out, text, most);
    else
        markup_text(s->out, text);
    fputs("</text>\n", s->out);
}
