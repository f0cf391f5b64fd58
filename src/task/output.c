#include "task/output.h"

#include "data/npz.h"
#include "data/set.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { HEADER_MOST = 1 << 16 }; // bytes of a .csv's first line that are looked at

// Kinds, known by what is in the file

static bool has_entries(const char *path, const char *const *names, int count) {
    npz z;
    err unused;
    if (!npz_open(&z, path, &unused)) return false;
    bool has = true;
    for (int i = 0; has && i < count; i++) has = npz_find(&z, names[i]) != NULL;
    npz_close(&z);
    return has;
}

static bool is_set(const char *path) {
    const char *const mark = set_mark;
    return has_entries(path, &mark, 1);
}

// True where a column of a header begins with this.
static bool has_column(const char *header, const char *begin) {
    size_t n = strlen(begin);
    for (const char *at = header; at; at = strchr(at, ','), at = at ? at + 1 : NULL)
        if (strncmp(at, begin, n) == 0) return true;
    return false;
}

static bool is_answers_csv(const char *path) {
    char header[HEADER_MOST];
    FILE *f = fopen(path, "r");
    if (!f) return false;
    bool is = fgets(header, sizeof header, f) && ((has_column(header, "prediction") && has_column(header, "p_")) ||
                                                     has_column(header, "forecast_1") || has_column(header, "q0."));
    fclose(f);
    return is;
}

static bool is_answers(const char *path) {
    static const char *const classes[] = {"probability", "prediction"}, *const forecasts[] = {"forecast"};
    return (has_entries(path, classes, 2) || has_entries(path, forecasts, 1) || is_answers_csv(path)) && !is_set(path);
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
