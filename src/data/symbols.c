#include "data/symbols.h"

#include <stdio.h>
#include <string.h>

enum { NAME_ROOM = 48, BYTES_MOST = 1 << 30 };

static void name_columns(
    const dataset *from, const char *const *names, int64_t count, const char **columns, char (*text)[NAME_ROOM]) {
    int64_t width = from->vector.width;
    for (int64_t c = 0; c < width; c++) columns[c] = from->vector.columns ? from->vector.columns[c] : "";
    for (int64_t k = 0; k < count; k++) {
        snprintf(text[k], sizeof text[k], "symbol_%.39s", names[k]);
        columns[width + k] = text[k];
    }
}

// The place of a series' name among the names; -1 where it is none of them.
static int64_t place_of(const char *name, const char *const *names, int64_t count) {
    for (int64_t k = 0; k < count; k++)
        if (strcmp(names[k], name) == 0) return k;
    return -1;
}

// True where the dataset can have the columns.
static bool check(const dataset *from, const char *const *names, int64_t count, err *e) {
    if (!from->panel || from->vector.parts >= PARTS_MOST)
        return err_input(e, "%s holds one instrument without a symbol; leave model.symbol out", from->name);
    for (int64_t k = 0; k < from->panel; k++)
        if (place_of(from->panel_names[k], names, count) < 0)
            return err_input(
                e, "%s holds %s, which is no symbol of the model; leave it out", from->name, from->panel_names[k]);
    if (dataset_all(from) <= BYTES_MOST / count) return true;
    return err_input(e,
        "%s: a column of the vector for each of %lld symbols takes %.3g GB, more than 1; leave model.symbol out or use "
        "fewer instruments",
        from->name, (long long)count, (double)dataset_all(from) * (double)count / BYTES_MOST);
}

dataset *symbols_new(dataset *from, const char *const *names, int64_t count, bool keeps, err *e) {
    if (!names) {
        names = from->panel_names;
        count = from->panel;
    }
    if (!check(from, names, count, e)) {
        if (keeps) dataset_free(from);
        return NULL;
    }
    int64_t all = dataset_all(from), width = from->vector.width + count;
    size_t at = 0, bytes = dataset_room(all * count, 1) + dataset_room(width, sizeof(char *)) +
                           dataset_room(count, NAME_ROOM) + dataset_room(from->panel, sizeof(int64_t));
    dataset *d = dataset_view(from, keeps, bytes, e);
    if (!d) return NULL;
    int8_t *is = dataset_take(d, &at, all * count, 1);
    const char **columns = dataset_take(d, &at, width, sizeof *columns);
    name_columns(from, names, count, columns, dataset_take(d, &at, count, NAME_ROOM));
    int64_t *place = dataset_take(d, &at, from->panel, sizeof *place);
    for (int64_t k = 0; k < from->panel; k++) place[k] = place_of(from->panel_names[k], names, count);
    for (int64_t i = 0; i < all; i++) is[i * count + place[dataset_panel_of(from, i)]] = 1;
    d->vector.rows = all;
    table_add(&d->vector, COLUMN_I8, count, is);
    d->vector.columns = columns;
    return d;
}
