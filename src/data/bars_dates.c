// The order of dates such as 03/04/2024: given, known of the format, or shown by the first date that allows but one.
#include "data/bars_layout.h"

// The stamp of a line.
static text stamp_of(const layout *l, text line) {
    bool more = true;
    for (int i = 0; more && i < l->columns; i++) {
        text cell = bars_text_cell(&line, l->separator, &more);
        if (l->role[i] == ROLE_STAMP || l->role[i] == ROLE_DATE) return cell;
    }
    return (text){"", 0};
}

void bars_dates_find(layout *l, const bars_options *o) {
    l->order = o->date_order;
    if (l->order == WHEN_ORDER_NONE && l->format == FORMAT_NASDAQ) l->order = WHEN_MDY;
    text rest = l->rest, line;
    for (int64_t number = l->lines + 1; l->order == WHEN_ORDER_NONE && bars_text_line(&rest, &line); number++) {
        if (!line.size) continue;
        text cell = stamp_of(l, line);
        if (!when_order_of(cell.at, cell.size, &l->order)) return; // dates of this file need no order
        if (l->order != WHEN_ORDER_NONE) l->order_line = number;
    }
}
