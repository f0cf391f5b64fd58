#include "watch/panel.h"

#include <poll.h>
#include <stdlib.h>
#include <unistd.h>
#include <wchar.h>

#include <curses.h>

struct panel {
    SCREEN *screen;
    bool colours;
};

// https://no-color.org
static void choose_colours(panel *p) {
    static const short colours[] = {COLOR_CYAN, COLOR_YELLOW, COLOR_GREEN, COLOR_YELLOW, COLOR_RED};
    const char *none = getenv("NO_COLOR");
    p->colours = has_colors() && !(none && none[0]);
    if (!p->colours) return;
    start_color();
    bool own = use_default_colors() == OK;
    for (short i = 0; i < (short)(sizeof colours / sizeof *colours); i++)
        init_pair((short)(i + 1), colours[i], own ? -1 : COLOR_BLACK);
}

// A screen without it, as TERM=dumb names it, would be one line over the other.
static bool moves_cursor(void) {
    const char *how = tigetstr("cup");
    return how && how != (const char *)-1;
}

panel *panel_open(err *e) {
    const char *kind = getenv("TERM");
    panel *p = calloc(1, sizeof *p);
    NEED(p, "out of memory for a screen");
    p->screen = newterm(NULL, stdout, stdin);
    if (!p->screen || !moves_cursor()) {
        if (p->screen) endwin();
        if (p->screen) delscreen(p->screen);
        free(p);
        err_run(e, "the terminal (TERM=%s) cannot be drawn on; --once prints a frame", kind ? kind : "");
        return NULL;
    }
    cbreak();
    noecho();
    nodelay(stdscr, TRUE);
    keypad(stdscr, TRUE);
    set_escdelay(50);
    curs_set(0);
    choose_colours(p);
    return p;
}

void panel_close(panel *p) {
    if (!p) return;
    endwin();
    delscreen(p->screen);
    free(p);
}

void panel_size(int *rows, int *columns) {
    getmaxyx(stdscr, *rows, *columns);
}

static attr_t attributes_of(const panel *p, style s, short *pair) {
    static const attr_t plain[STYLES] = {[STYLE_DIM] = A_DIM,
        [STYLE_BOLD] = A_BOLD,
        [STYLE_BAR] = A_REVERSE,
        [STYLE_FAIR] = A_BOLD,
        [STYLE_POOR] = A_BOLD | A_UNDERLINE};
    static const short pairs[STYLES] = {
        [STYLE_FIRST] = 1, [STYLE_SECOND] = 2, [STYLE_GOOD] = 3, [STYLE_FAIR] = 4, [STYLE_POOR] = 5};
    *pair = p->colours ? pairs[s] : 0;
    return *pair ? A_NORMAL : plain[s];
}

static void show_cell(const panel *p, int row, int column, const cell *c) {
    cchar_t out;
    wchar_t text[2] = {(wchar_t)c->rune, 0};
    short pair;
    attr_t attributes = attributes_of(p, c->style, &pair);
    if (c->rune && setcchar(&out, text, attributes, pair, NULL) == OK) mvadd_wch(row, column, &out);
}

void panel_show(const panel *p, const cells *g) {
    erase();
    for (int row = 0; row < g->rows; row++)
        for (int column = 0; column < g->columns; column++)
            show_cell(p, row, column, &g->cell[row * g->columns + column]);
    refresh();
}

void panel_again(void) {
    clearok(stdscr, TRUE);
}

bool panel_wait(int milliseconds) {
    struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
    return poll(&in, 1, milliseconds) <= 0 || !(in.revents & (POLLHUP | POLLERR | POLLNVAL));
}

int panel_key(void) {
    int key = getch();
    switch (key) {
    case ERR: return PANEL_NONE;
    case KEY_UP: return PANEL_UP;
    case KEY_DOWN: return PANEL_DOWN;
    case KEY_LEFT: return PANEL_LEFT;
    case KEY_RIGHT: return PANEL_RIGHT;
    case KEY_BTAB: return PANEL_BACK_TAB;
    case KEY_RESIZE: return PANEL_RESIZED;
    default: return key < 0x100 ? key : PANEL_OTHER;
    }
}
