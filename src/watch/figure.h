// Figures of a report: what each needs, who draws it, and what to do where it cannot be drawn.
#ifndef TRADEWIND_WATCH_FIGURE_H
#define TRADEWIND_WATCH_FIGURE_H

#include "watch/facts.h"
#include "watch/svg.h"

// Widths in pixels: one that a phone shows legibly, and one for figures that gain by a wide screen.
enum { FIGURE_NARROW = 420, FIGURE_WIDE = 1000, FIGURE_HEIGHT = 300 };

// Runs that a figure is of.
typedef enum { FIGURE_OF_MODELS, FIGURE_OF_AGENTS, FIGURE_OF_ALL } figure_of;

typedef struct {
    const char *name, *title;
    const char *section; // of the page
    bool wide;
    figure_of of;
    bool (*applies)(const facts *f);      // false where the run cannot have it; NULL: always
    bool (*has)(const facts *f);          // what it draws is there
    void (*draw)(const facts *f, svg *s); // sets height and description too
    const char *why;                      // it is missing, where no command makes it; or NULL
    const char *command, *options;        // that makes it, on the run's directory
    const char *of_walk;                  // of a walk instead: words behind `tradewind walk DIR/config.yaml`; or NULL
    const char *note;                     // below the figure; or NULL
} figure;

#define FIGURE(name) extern const figure figure_##name;
#include "watch/figures.def"
#undef FIGURE

// False where the run cannot have a figure.
bool figure_applies(const figure *g, const facts *f);

// All of them; NULL behind the last.
const figure *figure_at(int i);

#endif
