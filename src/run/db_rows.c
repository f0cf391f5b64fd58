// Rows of run.db over time, for those who draw them.
#include "run/db_file.h"

typedef void use_row(sqlite3_stmt *st, void *arg);

// Calls `use` with each row of a query on one table.
static bool each_row(db_reader *r, const char *table, const char *query, use_row *use, void *arg, err *e) {
    sqlite3_stmt *st = NULL;
    if (!db_file_has(r, table)) return true;
    bool ok = sqlite3_prepare_v2(r->file, query, -1, &st, NULL) == SQLITE_OK;
    while (ok && db_file_next(st, &ok)) use(st, arg);
    if (!ok) db_file_fail(r->file, r->path, "", e);
    sqlite3_finalize(st);
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

bool db_each_epoch(db_reader *r, void (*use)(void *arg, const db_epoch_row *row), void *arg, err *e) {
    static const char query[] =
        "SELECT epoch, step, seconds, samples_per_s, best, confusion FROM epochs ORDER BY epoch";
    return each_row(r, "epochs", query, use_epoch, &(epoch_user){use, arg}, e);
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

bool db_each_metric(db_reader *r, db_use_metric *use, void *arg, err *e) {
    static const char query[] = "SELECT epoch, part, name, value FROM metrics ORDER BY epoch, part, name";
    return each_row(r, "metrics", query, use_metric, &(metric_user){use, arg}, e);
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

bool db_each_steps(db_reader *r, void (*use)(void *arg, const db_steps_row *row), void *arg, err *e) {
    static const char query[] =
        "SELECT step, epoch, done, steps, loss_min, loss_mean, loss_max, grad_norm, lr FROM steps ORDER BY step";
    return db_file_vouches(r, true, e) && each_row(r, "steps", query, use_steps, &(steps_user){use, arg}, e);
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

bool db_each_sample(db_reader *r, void (*use)(void *arg, const db_sample_row *row), void *arg, err *e) {
    static const char query[] =
        "SELECT time, memory_used, memory_total, memory_process, memory_others, memory_most, processes, utilisation,"
        " temperature, power, clock, memory_clock FROM samples ORDER BY id";
    return each_row(r, "samples", query, use_sample, &(sample_user){use, arg}, e);
}
