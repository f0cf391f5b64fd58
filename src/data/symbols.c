#include "data/symbols.h"

#include <stdio.h>
#include <string.h>

enum { NAME_ROOM = 48, BYTES_MOST = 1 << 30 };

static void name_columns(const dataset *from, const char **columns, char (*text)[NAME_ROOM]) {
    int64_t width = from->vector.width;
    for (int64_t c = 0; c < width; c++) columns[c] = from->vector.columns ? from->vector.columns[c] : "";
    for (int64_t k = 0; k < from->panel; k++) {
        snprintf(text[k], sizeof text[k], "symbol_%.39s", from->panel_names[k]);
        columns[width + k] = text[k];
    }
}

static bool can_have(const dataset *d, err *e) {
    if (d->panel < 1 || d->vector.parts >= PARTS_MOST)
        return err_input(e, "%s holds one instrument without a symbol; leave model.symbol out", d->name);
    if (dataset_all(d) <= BYTES_MOST / d->panel) return true;
    return err_input(e,
        "%s: a column of the vector for each of its %lld symbols takes %.3g GB, more than 1; leave model.symbol out or "
        "use fewer instruments",
        d->name, (long long)d->panel, (double)dataset_all(d) * (double)d->panel / BYTES_MOST);
}

dataset *symbols_new(dataset *from, bool keeps, err *e) {
    if (!can_have(from, e)) {
        if (keeps) dataset_free(from);
        return NULL;
    }
    int64_t all = dataset_all(from), width = from->vector.width + from->panel;
    size_t at = 0, bytes = dataset_room(all * from->panel, 1) + dataset_room(width, sizeof(char *)) +
                           dataset_room(from->panel, NAME_ROOM);
    dataset *d = dataset_view(from, keeps, bytes, e);
    if (!d) return NULL;
    int8_t *is = dataset_take(d, &at, all * from->panel, 1);
    const char **columns = dataset_take(d, &at, width, sizeof *columns);
    name_columns(from, columns, dataset_take(d, &at, from->panel, NAME_ROOM));
    for (int64_t i = 0; i < all; i++) is[i * from->panel + dataset_panel_of(from, i)] = 1;
    d->vector.rows = all;
    table_add(&d->vector, COLUMN_I8, from->panel, is);
    d->vector.columns = columns;
    return d;
}
