#include "watch/csv.h"

#include "watch/tail.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

enum { TRIES = 40 };

// Between two looks at a file that moves.
static const struct timespec pause_between = {.tv_nsec = 50000000};

static void put_value(FILE *out, const char *text) {
    if (!text[strcspn(text, ",\"\r\n")]) {
        fputs(text, out);
        return;
    }
    putc('"', out);
    for (; *text; text++) {
        if (*text == '"') putc('"', out);
        putc(*text, out);
    }
    putc('"', out);
}

static bool put_row(void *arg, int columns, const char *const *values) {
    FILE *out = arg;
    for (int i = 0; i < columns; i++) {
        if (i) putc(',', out);
        if (values[i]) put_value(out, values[i]);
    }
    putc('\n', out);
    return !ferror(out);
}

typedef struct {
    const char *asked;
    bool found;
    char list[400];
} finder;

static void find_table(void *arg, const char *name, bool known) {
    finder *f = arg;
    size_t used = strlen(f->list);
    (void)known;
    f->found |= strcmp(f->asked, name) == 0;
    snprintf(f->list + used, sizeof f->list - used, "%s%.60s", used ? ", " : "", name);
}

// One try; false with ERR_NONE where the file moves.
static bool try_once(tail *f, const char *table, FILE *out, err *e) {
    finder names = {.asked = table};
    tail_poll(f);
    const tail_now *now = tail_at(f);
    const char *dir = tail_dir(f);
    if (now->state == TAIL_BROKEN) *e = now->trouble;
    if (now->state == TAIL_BROKEN) return false;
    if (now->state == TAIL_ABSENT) return err_input(e, "%s: has no run.db", dir);
    if (now->state == TAIL_UNREADY || !tail_each_table(f, find_table, &names)) return false;
    if (!names.found) return err_input(e, "%s: has no table %.60s; it has %s", dir, table, names.list);
    return tail_each_row(f, table, put_row, out);
}

bool csv_write(const char *dir, const char *table, FILE *out, err *e) {
    tail *f = tail_open(dir);
    long start = ftell(out);
    bool ok = false;
    *e = (err){0};
    for (int i = 0; i < TRIES && !ok && e->kind == ERR_NONE; i++) {
        if (i) nanosleep(&pause_between, NULL);
        ok = try_once(f, table, out, e);
        bool cut = ok || (fseek(out, start, SEEK_SET) == 0 && ftruncate(fileno(out), start) == 0);
        if (!cut) err_run(e, "the table cannot be written anew");
        if (ok && (fflush(out) != 0 || ferror(out))) ok = err_run(e, "the table cannot be written: is the disk full?");
    }
    if (!ok && e->kind == ERR_NONE) err_run(e, "%s/run.db: cannot be read at this moment; try again", dir);
    tail_close(f);
    return ok;
}
