#include "task/output.h"

#include "backtest/trades.h"
#include "base/file.h"
#include "data/npz.h"
#include "data/set.h"
#include "run/results.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { HEADER_MOST = 1 << 16 }; // bytes of a .csv's first line that are looked at

const char output_mark[] = "tradewind_answers";

// Kinds, known by what is in the file

// `why` stays ERR_RUN where the file cannot be read now.
static bool has_entry(const char *path, const char *name, err *why) {
    npz z;
    if (!npz_open(&z, path, why)) return false;
    bool has = npz_find(&z, name) != NULL;
    npz_close(&z);
    return has;
}

static bool is_set(const char *path, err *why) {
    return has_entry(path, set_mark, why);
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

// True for the headers that predict writes (cli/answers.c, cli/agent_predict.c) and no others.
static bool is_answers_header(const char *at) {
    if (!take_place(&at)) return false;
    take(&at, "signal");
    if (take(&at, "action")) return strcmp(at, "p_short,p_flat,p_long,position,equity") == 0;
    if (take(&at, "direction")) return strcmp(at, "size,position,equity") == 0;
    bool label = take(&at, "label");
    if (take(&at, "prediction")) return take_rest(&at, "p_") > 1;
    int targets = take_numbered(&at, "target"), forecasts = take_numbered(&at, "forecast");
    if (label) return false;
    if (forecasts) return !*at && (!targets || targets == forecasts);
    return take_rest(&at, "q0.") > 1;
}

// The first line of a file, without its end; "" where it has none.
static bool read_header(const char *path, char header[HEADER_MOST], err *why) {
    FILE *f = fopen(path, "r");
    if (!f) return file_fail(why, path, "cannot be read", errno);
    bool is = fgets(header, HEADER_MOST, f) != NULL;
    fclose(f);
    header[is ? strcspn(header, "\n") : 0] = 0;
    return true;
}

static bool is_answers_csv(const char *path, err *why) {
    char header[HEADER_MOST];
    return read_header(path, header, why) && is_answers_header(header);
}

static bool is_trades(const char *path, err *why) {
    char header[HEADER_MOST];
    return read_header(path, header, why) && strcmp(header, trades_header) == 0;
}

static bool is_intents(const char *path, err *why) {
    char header[HEADER_MOST];
    static const char first[] = "{\"id\":";
    return read_header(path, header, why) && strncmp(header, first, sizeof first - 1) == 0;
}

static bool is_answers(const char *path, err *why) {
    return has_entry(path, output_mark, why) || (why->kind != ERR_RUN && is_answers_csv(path, why));
}

// By the mark near the head of pages and figures (run/results.h).
static bool is_report(const char *path, err *why) {
    char head[256];
    FILE *f = fopen(path, "r");
    if (!f) return file_fail(why, path, "cannot be read", errno);
    size_t n = fread(head, 1, sizeof head - 1, f);
    fclose(f);
    head[n] = 0;
    return strstr(head, RESULTS_REPORT_MARK) != NULL;
}

static const struct {
    bool (*is)(const char *path, err *why);
    const char *name;
} kinds[] = {[OUTPUT_SET] = {is_set, "a dataset of tradewind"},
    [OUTPUT_ANSWERS] = {is_answers, "an output of predict"},
    [OUTPUT_TRADES] = {is_trades, "a list of trades by backtest"},
    [OUTPUT_REPORT] = {is_report, "a page or figure of report"},
    [OUTPUT_INTENTS] = {is_intents, "a list of intents by live"}};

bool output_may_replace(const char *path, output_kind kind, const char *const *inputs, int count, err *e) {
    struct stat is, in;
    if (stat(path, &is) != 0) return true;
    for (int i = 0; i < count; i++)
        if (stat(inputs[i], &in) == 0 && in.st_ino == is.st_ino && in.st_dev == is.st_dev)
            return err_input(e, "%s: is both input and output; name another output", path);
    err why = {0};
    if (!S_ISREG(is.st_mode) || is.st_size == 0) return true; // writing refuses what is no file
    if (kinds[kind].is(path, &why)) return true;
    if (why.kind == ERR_RUN) return err_run(e, "%s", why.text);
    return err_input(
        e, "%s: is there and is not %s; name another output, or move the file away", path, kinds[kind].name);
}
