#include "watch/screen_live.h"

#include <math.h>
#include <string.h>

enum { BOOKS_MOST = 6, EVENTS_MOST = 2, INTENTS_MOST = 2 };

static int count_of(const json_t *live, const char *part, int most) {
    size_t n = json_array_size(json_object_get(live, part));
    return n < (size_t)most ? (int)n : most;
}

int screen_live_rows(const json_t *live) {
    if (!live) return 0;
    return 1 + count_of(live, "books", BOOKS_MOST) + count_of(live, "events", EVENTS_MOST) +
           count_of(live, "intents", INTENTS_MOST);
}

static const char *text_at(const json_t *row, const char *key) {
    const char *text = json_string_value(json_object_get(row, key));
    return text ? text : "";
}

static double number_at(const json_t *row, const char *key) {
    return json_number_value(json_object_get(row, key));
}

// "long 25.9", "flat"
static void position_text(char *text, size_t room, double position) {
    if (position == 0)
        snprintf(text, room, "flat");
    else
        snprintf(text, room, "%s %.6g", position > 0 ? "long" : "short", fabs(position));
}

static void draw_head(cells *g, area a, const json_t *live) {
    const json_t *running = json_object_get(live, "running"), *books = json_object_get(live, "books");
    int n = 10, all = count_of(live, "books", 1 << 20);
    cells_text(g, a.row, a.column, n, STYLE_BOLD, "live");
    if (json_object_get(live, "why")) {
        cells_text(g, a.row, a.column + n, a.columns - n, STYLE_POOR, text_at(live, "why"));
        return;
    }
    const char *runs = json_is_true(running) ? "a session runs" : json_is_false(running) ? "no session runs" : "";
    n += cells_format(g, a.row, a.column + n, a.columns - n, STYLE_PLAIN, "%s%s", runs, *runs ? ", " : "");
    n += cells_format(g, a.row, a.column + n, a.columns - n, STYLE_PLAIN, "newest bar %.16s UTC",
        text_at(json_array_get(books, 0), "bar"));
    if (all > BOOKS_MOST)
        cells_format(g, a.row, a.column + n, a.columns - n, STYLE_DIM, ", %d of %d instruments", BOOKS_MOST, all);
}

static void draw_book(cells *g, area a, int row, const json_t *book) {
    char position[48], from[48] = "";
    double units = number_at(book, "position"), stop = number_at(book, "stop"), target = number_at(book, "target");
    const char *symbol = text_at(book, "symbol");
    position_text(position, sizeof position, units);
    if (units != 0) snprintf(from, sizeof from, " at %.8g", number_at(book, "entry_price"));
    cells_text(g, row, a.column, 9, STYLE_PLAIN, *symbol ? symbol : "position");
    int n = 10;
    n += cells_format(g, row, a.column + n, a.columns - n,
        units == 0  ? STYLE_PLAIN
        : units > 0 ? STYLE_FIRST
                    : STYLE_SECOND,
        "%s%s", position, from);
    if (stop != 0 && units != 0) n += cells_format(g, row, a.column + n, a.columns - n, STYLE_DIM, ", stop %.8g", stop);
    if (target != 0 && units != 0)
        n += cells_format(g, row, a.column + n, a.columns - n, STYLE_DIM, ", target %.8g", target);
    cells_format(g, row, a.column + n, a.columns - n, STYLE_PLAIN, "  equity %.2f, %.0f trades",
        number_at(book, "equity"), number_at(book, "trades"));
}

static void draw_intent(cells *g, area a, int row, const json_t *intent) {
    char position[48];
    position_text(position, sizeof position, number_at(intent, "position"));
    cells_format(g, row, a.column, a.columns, STYLE_DIM, "intent    %.16s %s%s%s, %s", text_at(intent, "decided"),
        text_at(intent, "symbol"), *text_at(intent, "symbol") ? " " : "", position, text_at(intent, "status"));
}

static void draw_event(cells *g, area a, int row, const json_t *event) {
    const char *answer = text_at(event, "answer"), *symbol = text_at(event, "symbol");
    style as = strcmp(answer, "stop") == 0 ? STYLE_POOR : strcmp(answer, "note") == 0 ? STYLE_DIM : STYLE_FAIR;
    cells_format(g, row, a.column, a.columns, as, "event     %.16s %s%s%s, %s: %s", text_at(event, "at"), symbol,
        *symbol ? " " : "", text_at(event, "kind"), answer, text_at(event, "text"));
}

static int draw_rows(cells *g, area a, int row, const json_t *rows, int most,
    void (*draw)(cells *g, area a, int row, const json_t *each)) {
    for (int i = 0; i < most && i < (int)json_array_size(rows) && row < a.row + a.rows; i++)
        draw(g, a, row++, json_array_get(rows, (size_t)i));
    return row;
}

void screen_live(cells *g, area a, const json_t *live) {
    if (!live || a.rows < 1) return;
    draw_head(g, a, live);
    int row = draw_rows(g, a, a.row + 1, json_object_get(live, "books"), BOOKS_MOST, draw_book);
    row = draw_rows(g, a, row, json_object_get(live, "events"), EVENTS_MOST, draw_event);
    draw_rows(g, a, row, json_object_get(live, "intents"), INTENTS_MOST, draw_intent);
}
