#include "live/newest.h"

#include "run/run.h"
#include "task/walk.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

// Folds are numbered in order of their tests; names of more digits are newer.
static bool is_newer(const char *a, const char *b) {
    size_t m = strlen(a), n = strlen(b);
    return m != n ? m > n : strcmp(a, b) > 0;
}

static bool is_trained(const char *dir) {
    char *weights = run_path(dir, "best.safetensors"), *db = run_path(dir, "run.db");
    struct stat st;
    db_summary sum;
    err unused;
    bool is = stat(weights, &st) == 0;
    db_reader *r = is ? db_reader_open(db, &unused) : NULL;
    if (r && db_read(r, &sum, &unused)) is = strcmp(sum.status, "done") == 0;
    db_reader_close(r);
    free(db);
    free(weights);
    return is;
}

static void look_at(void *arg, const char *dir) {
    char **newest = arg;
    if (!is_trained(dir) || (*newest && !is_newer(dir, *newest))) return;
    free(*newest);
    *newest = strdup(dir);
    NEED(*newest, "out of memory for a path");
}

char *live_newest(const char *word, err *e) {
    char *newest = NULL;
    bool walk;
    if (!walk_is(word, &walk, e)) return NULL;
    if (!walk) {
        newest = strdup(word);
        NEED(newest, "out of memory for a path");
        return newest;
    }
    bool listed = run_each_fold(word, look_at, &newest, e);
    if (listed && !newest)
        err_input(
            e, "%s: no fold of this walk is trained; go on with `tradewind walk %s/config.yaml --resume`", word, word);
    return newest;
}
