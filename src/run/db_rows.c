// Rows of run.db over time, for those who draw them.
#include "run/db_file.h"

typedef void use_row(sqlite3_stmt *st, void *arg);

// Calls `use` with each row of a query on one table.
static bool each_row(const char *path, const char *table, const char *query, use_row *use, void *arg, err *e) {
    sqlite3 *file = db_file_open(path, e);
    sqlite3_stmt *st = NULL;
    if (!file) return false;
    bool there = sqlite3_table_column_metadata(file, NULL, table, NULL, NULL, NULL, NULL, NULL, NULL) == SQLITE_OK;
    int rc = there ? sqlite3_prepare_v2(file, query, -1, &st, NULL) : SQLITE_DONE;
    if (rc == SQLITE_OK)
        while ((rc = sqlite3_step(st)) == SQLITE_ROW) use(st, arg);
    bool ok = rc == SQLITE_DONE;
    if (!ok) db_file_fail(file, path, "", e);
    sqlite3_finalize(st);
    sqlite3_close(file);
    return ok;
}

typedef struct {
    void (*use)(void *arg, const db_epoch_row *row);
    void *arg;
} epoch_user;

static void use_epoch(sqlite3_stmt *st, void *arg) {
    const epoch_user *to = arg;
    db_epoch_row row = {.epoch = sqlite3_column_int64(st, 0),
        .step = (uint64_t)sqlite3_column_int64(st, 1),
        .seconds = db_file_real(st, 2),
        .samples_per_s = db_file_real(st, 3),
        .best = sqlite3_column_int(st, 4) != 0,
        .confusion = (const char *)sqlite3_column_text(st, 5)};
    to->use(to->arg, &row);
}

bool db_each_epoch(const char *path, void (*use)(void *arg, const db_epoch_row *row), void *arg, err *e) {
    static const char query[] =
        "SELECT epoch, step, seconds, samples_per_s, best, confusion FROM epochs ORDER BY epoch";
    return each_row(path, "epochs", query, use_epoch, &(epoch_user){use, arg}, e);
}

typedef struct {
    db_use_metric *use;
    void *arg;
} metric_user;

static void use_metric(sqlite3_stmt *st, void *arg) {
    const metric_user *to = arg;
    const char *part = (const char *)sqlite3_column_text(st, 1), *name = (const char *)sqlite3_column_text(st, 2);
    if (part && name) to->use(to->arg, sqlite3_column_int64(st, 0), &(db_metric){part, name, db_file_real(st, 3)});
}

bool db_each_metric(const char *path, db_use_metric *use, void *arg, err *e) {
    static const char query[] = "SELECT epoch, part, name, value FROM metrics ORDER BY epoch, part, name";
    return each_row(path, "metrics", query, use_metric, &(metric_user){use, arg}, e);
}

typedef struct {
    void (*use)(void *arg, const db_steps_row *row);
    void *arg;
} steps_user;

static void use_steps(sqlite3_stmt *st, void *arg) {
    const steps_user *to = arg;
    db_steps_row row = {.step = (uint64_t)sqlite3_column_int64(st, 0),
        .epoch = sqlite3_column_int64(st, 1),
        .done = sqlite3_column_int64(st, 2),
        .steps = sqlite3_column_int64(st, 3),
        .loss_min = db_file_real(st, 4),
        .loss_mean = db_file_real(st, 5),
        .loss_max = db_file_real(st, 6),
        .grad_norm = db_file_real(st, 7),
        .lr = db_file_real(st, 8)};
    to->use(to->arg, &row);
}

bool db_each_steps(const char *path, void (*use)(void *arg, const db_steps_row *row), void *arg, err *e) {
    static const char query[] =
        "SELECT step, epoch, done, steps, loss_min, loss_mean, loss_max, grad_norm, lr FROM steps ORDER BY step";
    return each_row(path, "steps", query, use_steps, &(steps_user){use, arg}, e);
}

typedef struct {
    void (*use)(void *arg, const db_sample_row *row);
    void *arg;
} sample_user;

static void use_sample(sqlite3_stmt *st, void *arg) {
    const sample_user *to = arg;
    db_sample_row row;
    double *const fields[] = {&row.time, &row.memory_used, &row.memory_total, &row.memory_process, &row.memory_others,
        &row.memory_most, &row.processes, &row.utilisation, &row.temperature, &row.power, &row.clock,
        &row.memory_clock};
    for (int i = 0; i < (int)(sizeof fields / sizeof *fields); i++) *fields[i] = db_file_real(st, i);
    to->use(to->arg, &row);
}

bool db_each_sample(const char *path, void (*use)(void *arg, const db_sample_row *row), void *arg, err *e) {
    static const char query[] =
        "SELECT time, memory_used, memory_total, memory_process, memory_others, memory_most, processes, utilisation,"
        " temperature, power, clock, memory_clock FROM samples ORDER BY id";
    return each_row(path, "samples", query, use_sample, &(sample_user){use, arg}, e);
}
