#include "task/output.h"

#include "data/npz.h"
#include "data/set.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { HEADER_MOST = 1 << 16 }; // bytes of a .csv's first line that are looked at

const char output_mark[] = "tradewind_answers";

// Kinds, known by what is in the file

static bool has_entry(const char *path, const char *name) {
    npz z;
    err unused;
    if (!npz_open(&z, path, &unused)) return false;
    bool has = npz_find(&z, name) != NULL;
    npz_close(&z);
    return has;
}

static bool is_set(const char *path) {
    return has_entry(path, set_mark);
}

// The comma behind a header's cell, or its end. A cell may be quoted.
static const char *cell_end(const char *at) {
    if (*at == '"')
        for (at++; *at; at++)
            if (*at == '"' && *++at != '"') break;
    return at + strcspn(at, ",");
}

static void pass(const char **at) {
    const char *end = cell_end(*at);
    *at = *end ? end + 1 : end;
}

// Passes a cell of this name; false where the next one has another.
static bool take(const char **at, const char *name) {
    size_t n = strlen(name);
    if ((size_t)(cell_end(*at) - *at) != n || memcmp(*at, name, n) != 0) return false;
    pass(at);
    return true;
}

// Passes NAME_1, NAME_2 and so on; how many there are.
static int take_numbered(const char **at, const char *name) {
    char cell[64];
    for (int n = 0;; n++) {
        snprintf(cell, sizeof cell, "%s_%d", name, n + 1);
        if (!take(at, cell)) return n;
    }
}

// Passes cells that begin like this, to the end of the header; how many there are, 0 where others are among them.
static int take_rest(const char **at, const char *begin) {
    int n = 0;
    for (; **at; pass(at), n++)
        if (strncmp(*at + (**at == '"'), begin, strlen(begin)) != 0) return 0;
    return n;
}

// The columns that tell rows apart: the sample's number, its bar or time, its series.
static bool take_place(const char **at) {
    bool sample = take(at, "sample"), bar = take(at, "open_time");
    if (bar && !(take(at, "close_time") && take(at, "close"))) return false;
    bool time = !bar && take(at, "time"), series = take(at, "symbol") || take(at, "series");
    return sample || bar || time || series;
}

// True for the headers that predict writes (cli/answers.c) and no others.
static bool is_answers_header(const char *at) {
    if (!take_place(&at)) return false;
    bool label = take(&at, "label");
    if (take(&at, "prediction")) return take_rest(&at, "p_") > 1;
    int targets = take_numbered(&at, "target"), forecasts = take_numbered(&at, "forecast");
    if (label) return false;
    if (forecasts) return !*at && (!targets || targets == forecasts);
    return take_rest(&at, "q0.") > 1;
}

static bool is_answers_csv(const char *path) {
    char header[HEADER_MOST];
    FILE *f = fopen(path, "r");
    if (!f) return false;
    bool is = fgets(header, sizeof header, f) != NULL;
    fclose(f);
    header[is ? strcspn(header, "\n") : 0] = 0;
    return is && is_answers_header(header);
}

static bool is_answers(const char *path) {
    return has_entry(path, output_mark) || is_answers_csv(path);
}

static const struct {
    bool (*is)(const char *path);
    const char *name;
} kinds[] = {
    [OUTPUT_SET] = {is_set, "a dataset of tradewind"}, [OUTPUT_ANSWERS] = {is_answers, "an output of predict"}};

bool output_may_replace(const char *path, output_kind kind, const char *const *inputs, int count, err *e) {
    struct stat is, in;
    if (stat(path, &is) != 0) return true;
    for (int i = 0; i < count; i++)
        if (stat(inputs[i], &in) == 0 && in.st_ino == is.st_ino && in.st_dev == is.st_dev)
            return err_input(e, "%s: is both input and output; name another output", path);
    if (!S_ISREG(is.st_mode) || is.st_size == 0 || kinds[kind].is(path)) return true; // writing refuses what is no file
    return err_input(
        e, "%s: is there and is not %s; name another output, or move the file away", path, kinds[kind].name);
}
