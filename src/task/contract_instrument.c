// Instruments that no symbol tells apart: their prices, and the names of their files.
#include "base/term.h"
#include "task/contract.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SYMBOL_ROOM = 32 };

static const char doubt[] = "unless the price went so far, these are bars of another instrument or in other units";

// Prices

// Place of an instrument among those of the weights: one without a name is the only one. -1: not known.
static int64_t place_of(const contract *weights, const char *symbol) {
    int64_t count = (int64_t)json_array_size(weights->prices);
    if (!symbol || !weights->symbols.names) return count == 1 ? 0 : -1;
    for (int64_t i = 0; i < count && i < weights->symbols.count; i++)
        if (strcmp(json_string_value(json_array_get(weights->symbols.names, (size_t)i)), symbol) == 0) return i;
    return -1;
}

// The range of prices in training; false where it is not known.
static bool range_of(const contract *weights, const char *symbol, double *low, double *high) {
    int64_t at = place_of(weights, symbol);
    const json_t *pair = at < 0 ? NULL : json_array_get(weights->prices, (size_t)at);
    *low = json_number_value(json_array_get(pair, 0));
    *high = json_number_value(json_array_get(pair, 1));
    return *low > 0 && *high >= *low;
}

bool contract_price_is_odd(const contract *weights, const char *symbol, double price) {
    double low, high;
    return range_of(weights, symbol, &low, &high) &&
           !(price * CONTRACT_PRICE_TIMES >= low && price <= high * CONTRACT_PRICE_TIMES);
}

bool contract_price_differs(const contract *weights, const char *symbol, double price, char *text, size_t room) {
    double low, high;
    if (!contract_price_is_odd(weights, symbol, price) || !range_of(weights, symbol, &low, &high)) return false;
    snprintf(text, room, "the price is %.6g, those of the training are from %.6g to %.6g: %s", price, low, high, doubt);
    return true;
}

static const char *name_of(const dataset *d, int64_t series) {
    return d->panel ? d->panel_names[series] : NULL;
}

// Prices at samples of one instrument: how many, how many of them odd, their range.
typedef struct {
    int64_t samples, odd;
    double low, high;
} seen_prices;

// A price of 0 is not known yet, as of an instrument of a live board before its first bar.
static void look(seen_prices *of, const contract *weights, const char *symbol, double price) {
    if (price <= 0) return;
    if (!of->samples || price < of->low) of->low = price;
    if (!of->samples || price > of->high) of->high = price;
    of->samples++;
    of->odd += contract_price_is_odd(weights, symbol, price);
}

bool contract_prices_differ(
    const contract *weights, const dataset *data, const split_part *samples, char *text, size_t room) {
    int64_t series = dataset_series(data), k = 0;
    double low, high;
    if (!weights->prices || !data->price) return false;
    seen_prices *seen = calloc((size_t)series, sizeof *seen);
    NEED(seen, "out of memory for prices");
    for (int64_t i = 0; i < samples->count; i++) {
        int64_t at = part_sample(samples, i), of = data->panel ? dataset_panel_of(data, at) : 0;
        look(&seen[of], weights, name_of(data, of), (double)data->price[at]);
    }
    while (k < series && 2 * seen[k].odd <= seen[k].samples) k++;
    bool differ = k < series && range_of(weights, name_of(data, k), &low, &high);
    if (differ) {
        const char *name = name_of(data, k);
        snprintf(text, room, "prices of %.100s%s%s are from %.6g to %.6g, those of the training from %.6g to %.6g: %s",
            data->name, name ? ", " : "", name ? name : "", seen[k].low, seen[k].high, low, high, doubt);
        term_one_line(text);
    }
    free(seen);
    return differ;
}

// Names of files

// True where a frame as terminals write it, M5 or Daily, stands here, up to the next '_' or '.'.
static bool is_frame(const char *at) {
    static const char *const frames[] = {"M1", "M2", "M3", "M4", "M5", "M6", "M10", "M12", "M15", "M20", "M30", "H1",
        "H2", "H3", "H4", "H6", "H8", "H12", "D1", "W1", "MN1", "Daily", "Weekly", "Monthly"};
    size_t length = strcspn(at, "_.");
    for (size_t i = 0; i < sizeof frames / sizeof *frames; i++)
        if (strlen(frames[i]) == length && strncmp(frames[i], at, length) == 0) return true;
    return false;
}

// The symbol in the name of a file; false where it has none.
static bool symbol_of(const char *path, char symbol[SYMBOL_ROOM]) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *end = strchr(name, '_');
    if (!end || end == name || end - name >= SYMBOL_ROOM || !is_frame(end + 1)) return false;
    snprintf(symbol, SYMBOL_ROOM, "%.*s", (int)(end - name), name);
    return true;
}

static const char *file_of(const contract *c, size_t i) {
    return json_string_value(json_object_get(json_array_get(c->sources, i), "file"));
}

// True where one of the contract's files is of this symbol.
static bool has_symbol(const contract *c, const char *symbol) {
    char other[SYMBOL_ROOM];
    for (size_t i = 0; i < json_array_size(c->sources); i++)
        if (file_of(c, i) && symbol_of(file_of(c, i), other) && strcmp(symbol, other) == 0) return true;
    return false;
}

// The first file of a contract whose name has a symbol; NULL where none has.
static const char *first_named(const contract *c, char symbol[SYMBOL_ROOM]) {
    for (size_t i = 0; i < json_array_size(c->sources); i++)
        if (file_of(c, i) && symbol_of(file_of(c, i), symbol)) return file_of(c, i);
    return NULL;
}

bool contract_files_differ(const contract *was, const contract *is, char *text, size_t room) {
    char trained[SYMBOL_ROOM], given[SYMBOL_ROOM];
    const char *old = first_named(was, trained), *file = first_named(is, given);
    if (!old || !file || has_symbol(was, given)) return false;
    snprintf(text, room, "%.100s is of %s by its name, and the run was trained on %s", file, given, trained);
    term_one_line(text);
    return true;
}
