#include "task/describe.h"

#include "base/file.h"
#include "base/text.h"
#include "data/sources.h"
#include "run/run.h"
#include "train/agent_keys.h"
#include "train/names.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool task_set(config *c, const char *path, const char *value, err *e) {
    char *assignment = NULL;
    NEED(asprintf(&assignment, "%s=%s", path, value) >= 0, "out of memory for a key");
    bool ok = config_override(c, assignment, e);
    free(assignment);
    return ok;
}

static bool set_all(config *c, const task_change *list, err *e) {
    bool ok = true;
    for (int i = 0; ok && i < CHANGES_MOST && list[i].path; i++) ok = task_set(c, list[i].path, list[i].value, e);
    return ok;
}

// Inputs

typedef struct {
    const config *from;
    config *to; // gets other paths
    const char **list;
    int count;
} inputs;

// The path of an input that a key names; NULL where the key is of another kind.
static const char *input_at(const config *c, const char *path) {
    if (!settings_is_path(path) || strcmp(path, "run.dir") == 0) return NULL;
    const char *value = config_text(c, path);
    bool made_up = value && strcmp(path, "data.set") == 0 && strcmp(value, "synthetic") == 0;
    return value && *value && strcmp(value, "-") != 0 && !made_up ? value : NULL;
}

static void list_input(void *arg, const char *path) {
    inputs *in = arg;
    const char *value = input_at(in->from, path);
    if (value && in->count < TASK_INPUTS_MOST) in->list[in->count++] = value;
}

int task_inputs(const config *c, const char *list[TASK_INPUTS_MOST]) {
    inputs in = {.from = c, .list = list};
    config_each(c, list_input, &in);
    return in.count;
}

static void make_absolute(void *arg, const char *path) {
    inputs *in = arg;
    const char *value = input_at(in->from, path);
    errno = 0;
    char *here = value && *value != '/' ? getcwd(NULL, 0) : NULL, *whole = NULL;
    NEED(here || errno != ENOMEM, "out of memory for a path");
    if (!here) return;
    while (strncmp(value, "./", 2) == 0) value += 2;
    NEED(asprintf(&whole, "%s/%s", here, value) >= 0, "out of memory for a path");
    config_replace(in->to, path, whole);
    free(whole);
    free(here);
}

// Takes data from the folder that the environment names.
static void find_data(void *arg, const char *path) {
    inputs *in = arg;
    const char *value = input_at(in->from, path);
    char *found = value ? file_of_data(value) : NULL;
    if (found && strcmp(found, value) != 0) config_replace(in->to, path, found);
    free(found);
}

// A run's own description

// Takes a path that lies below the working directory from there, as people have named it.
static void make_relative(void *arg, const char *path) {
    inputs *in = arg;
    const char *value = input_at(in->from, path);
    errno = 0;
    char *here = value ? getcwd(NULL, 0) : NULL;
    NEED(here || errno != ENOMEM, "out of memory for a path");
    size_t n = here ? strlen(here) : 0;
    if (n && strncmp(value, here, n) == 0 && value[n] == '/') config_replace(in->to, path, value + n + 1);
    free(here);
}

char *task_run_described(const task_description *d) {
    static const char name[] = "config.yaml";
    const char *slash = strrchr(d->file, '/');
    if (d->text || strcmp(slash ? slash + 1 : d->file, name) != 0) return NULL;
    char *dir = slash ? strndup(d->file, (size_t)(slash - d->file) + (slash == d->file)) : strdup(".");
    NEED(dir, "out of memory for a path");
    if (run_was_in(dir)) return dir;
    free(dir);
    return NULL;
}

// Sets run.dir to the directory of a run whose own description this is: its files may have been copied or moved.
static bool stay_in_run(config *c, const task_description *d, err *e) {
    char *dir = task_run_described(d);
    bool ok = !dir || task_set(c, "run.dir", dir, e);
    inputs in = {.from = c, .to = c};
    if (dir) config_each(c, make_relative, &in);
    free(dir);
    return ok;
}

static bool rename_keys(config *c, err *e) {
    size_t count;
    const config_name *names = names_all(&count);
    return config_rename(c, names, count, e);
}

// Files that people name in place of a description.
static bool is_description(const char *file, err *e) {
    struct stat st;
    source_kind kind;
    err unused;
    if (stat(file, &st) != 0) return true; // reading it says why
    if (S_ISDIR(st.st_mode) && run_was_in(file))
        return err_input(e, "%s: is a run's directory; its description is %s/config.yaml", file, file);
    if (!S_ISREG(st.st_mode) || !source_kind_of(file, &kind, &unused)) return true;
    if (kind == SOURCE_ARRAYS) return err_input(e, "%s: is a dataset; name it as data.set in a description", file);
    if (!strcasestr(file, ".csv")) return true; // a description's text is no other kind
    if (kind == SOURCE_PANEL)
        return err_input(
            e, "%s: is a panel of series, not a description; import it, and name the set as data.set", file);
    return err_input(
        e, "%s: is a file of bars, not a description; name it in one as data.bars: {fast: %s}", file, file);
}

void task_change_behind(task_description *d, const char *path, const char *value) {
    int n = 0;
    while (n < CHANGES_MOST && d->after[n].path) n++;
    CHECK(n < CHANGES_MOST, "more than %d changes behind a description", CHANGES_MOST);
    d->after[n] = (task_change){path, value};
}

config *task_describe(const task_description *d, settings *s, err *e) {
    if (!d->text && !is_description(d->file, e)) return NULL;
    config *c = d->text ? config_read(d->file, d->text, strlen(d->text), settings_keys(), settings_key_count(), e)
                        : config_load(d->file, settings_keys(), settings_key_count(), e);
    bool ok = c && rename_keys(c, e) && stay_in_run(c, d, e) && set_all(c, d->before, e);
    for (int i = 0; ok && i < d->override_count; i++) ok = config_override(c, d->overrides[i], e) && rename_keys(c, e);
    if (ok && d->seed) ok = task_set(c, "train.seed", d->seed, e);
    ok = ok && set_all(c, d->after, e) && agent_complete(c, e) && config_check(c, e);
    inputs in = {.from = c, .to = c};
    if (ok) config_each(c, find_data, &in);
    ok = ok && settings_read(c, s, e);
    if (ok) return c;
    config_free(c);
    return NULL;
}

// Text

static char *write_text(const config *c, err *e) {
    text_out t;
    text_open(&t);
    bool ok = config_write(c, t.out);
    char *text = text_close(&t);
    if (ok && text) return text;
    free(text);
    err_run(e, "out of memory for the description");
    return NULL;
}

char *task_description_text(const config *c, err *e) {
    inputs in = {.from = c, .to = config_filled(c)};
    config_each(c, make_absolute, &in);
    char *text = write_text(in.to, e);
    config_free(in.to);
    return text;
}

char *task_description_complete(const char *text) {
    err why = {0};
    config *c = config_read("config.yaml", text, strlen(text), settings_keys(), settings_key_count(), &why);
    char *whole = c && config_check(c, &why) ? write_text(c, &why) : NULL;
    config_free(c);
    if (!whole && why.kind != ERR_RUN) whole = strdup(text);
    NEED(whole, "out of memory for the description");
    return whole;
}
