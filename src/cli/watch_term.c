#include "cli/watch_term.h"

#include "base/term.h"
#include "watch/screen.h"
#include "watch/terminal.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ROWS = 24, COLUMNS = 80, ROWS_MOST = 200, COLUMNS_MOST = 500 };

// A size by its variable, else by the terminal, else the usual one.
static int size_of(const char *name, int of_terminal, int usual, int least, int most) {
    const char *text = getenv(name);
    int n = text ? atoi(text) : 0;
    if (n < 1) n = of_terminal > 0 ? of_terminal : usual;
    return n < least ? least : n > most ? most : n;
}

static bool print_once(const terminal_options *t, err *e) {
    struct winsize size = {0};
    (void)ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
    return terminal_print(t, size_of("LINES", size.ws_row, ROWS, SCREEN_ROWS_LEAST, ROWS_MOST),
        size_of("COLUMNS", size.ws_col, COLUMNS, SCREEN_COLUMNS_LEAST, COLUMNS_MOST), e);
}

bool watch_term(const cli_options *o, err *e) {
    static const char *const usual[] = {"runs"};
    terminal_options t = {o->words ? (const char *const *)o->word : usual, o->words ? o->words : 1};
    struct stat st;
    for (int i = 0; i < t.dirs; i++)
        if (stat(t.dir[i], &st) == 0 && !S_ISDIR(st.st_mode))
            return err_input(e, "%s: is not a directory; name a run's", t.dir[i]);
    if (t.dirs == 1 && stat(t.dir[0], &st) != 0 && (o->json || cli_given(o, "--once")))
        return err_input(e, "%s: there is no such directory", t.dir[0]);
    if (o->json) return terminal_json(&t, e);
    if (cli_given(o, "--once")) return print_once(&t, e);
    if (!term_is_tty(stdout) || !term_is_tty(stdin))
        return err_input(e, "there is no terminal to draw on; --once prints a frame, --json figures");
    cli_watch_signals();
    return terminal_watch(&t, e);
}
