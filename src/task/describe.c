#include "task/describe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool task_set(config *c, const char *path, const char *value, err *e) {
    char *assignment = NULL;
    CHECK(asprintf(&assignment, "%s=%s", path, value) >= 0, "out of memory for a key");
    bool ok = config_override(c, assignment, e);
    free(assignment);
    return ok;
}

static bool set_all(config *c, const task_change *list, err *e) {
    bool ok = true;
    for (int i = 0; ok && i < CHANGES_MOST && list[i].path; i++) ok = task_set(c, list[i].path, list[i].value, e);
    return ok;
}

config *task_describe(const task_description *d, settings *s, err *e) {
    config *c = d->text ? config_read(d->file, d->text, strlen(d->text), settings_keys(), settings_key_count(), e)
                        : config_load(d->file, settings_keys(), settings_key_count(), e);
    bool ok = c && set_all(c, d->before, e);
    for (int i = 0; ok && i < d->override_count; i++) ok = config_override(c, d->overrides[i], e);
    if (ok && d->seed) ok = task_set(c, "train.seed", d->seed, e);
    ok = ok && set_all(c, d->after, e) && config_check(c, e) && settings_read(c, s, e);
    if (ok) return c;
    config_free(c);
    return NULL;
}

char *task_description_text(const config *c, err *e) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *f = open_memstream(&text, &bytes);
    bool ok = f && config_write(c, f);
    if (f) ok = fclose(f) == 0 && ok;
    if (ok) return text;
    free(text);
    err_run(e, "out of memory for the description");
    return NULL;
}
