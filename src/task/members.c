#include "task/members.h"

#include "run/checkpoint.h"
#include "run/outline.h"
#include "task/describe.h"
#include "task/records.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool members_of(const char *dir, int *members, err *e) {
    char *text;
    *members = 0;
    if (!run_read(dir, "config.yaml", &text, e)) return false;
    char *value = text ? outline_value(text, "train.ensemble") : NULL;
    char *walk = text ? outline_value(text, "walk.scheme") : NULL,
         *fold = walk ? outline_value(text, "walk.fold") : NULL;
    int n = value && (!walk || fold) ? atoi(value) : 0; // of a walk each fold is an ensemble
    free(value);
    free(walk);
    free(fold);
    free(text);
    *members = n > 1 && n <= MEMBERS_MOST ? n : 0;
    return true;
}

char *members_dir(const char *dir, int k) {
    char name[32];
    snprintf(name, sizeof name, "member_%d", k);
    return run_path(dir, name);
}

// The description of a directory, which the caller frees; NULL where there is none. False where it cannot be read.
static bool description_of(const char *dir, char **whole, err *e) {
    char *text;
    *whole = NULL;
    if (!run_read(dir, "config.yaml", &text, e)) return false;
    if (text) *whole = task_description_complete(text);
    free(text);
    return true;
}

static void pass_over(void *arg, const char *why) {
    (void)arg;
    (void)why;
}

bool members_begun(const char *dir, err *e) {
    *e = (err){0};
    char *path = NULL;
    safetensors *f = run_is(dir) ? checkpoint_newest(dir, pass_over, NULL, &path, e) : NULL;
    bool there = f != NULL;
    if (f) safetensors_close(f);
    free(path);
    return there;
}

// Without a plan a run goes on by that of its checkpoint.
static bool read_plan(const char *dir, chosen *c, bool *there, err *e) {
    char *text;
    bool changed, ok = run_read_summed(dir, "plan.yaml", &text, &changed, e);
    *there = text != NULL;
    if (text && (changed || !chosen_read(c, text)))
        ok = err_input(e, "%s/plan.yaml: is not as it was written; put it back from a copy, or remove it", dir);
    free(text);
    return ok;
}

bool members_plan(const char *dir, chosen *c, bool *there, err *e) {
    char *first = members_dir(dir, 1);
    bool ok = read_plan(dir, c, there, e) && (*there || read_plan(first, c, there, e));
    free(first);
    return ok;
}

// `ended`: its run.db says that it is done. A run.db that is lost or damaged says nothing.
static bool has_ended(const char *dir, bool *ended, err *e) {
    db_summary sum;
    err why = {0};
    char *path = run_path(dir, "run.db");
    db_reader *db = db_reader_open(path, &why);
    *ended = db && db_read(db, &sum, &why) && strcmp(sum.status, "done") == 0;
    db_reader_close(db);
    free(path);
    if (why.kind == ERR_RUN) *e = why;
    return why.kind != ERR_RUN;
}

bool members_done(const char *dir, const char *config, const chosen *plan, bool *done, err *e) {
    chosen planned; // compares the data, wherever they lie
    bool planned_there = false, ended = false;
    char differs[64], *was = NULL, *weights = run_path(dir, "best.safetensors");
    bool ok = description_of(dir, &was, e) && read_plan(dir, &planned, &planned_there, e) && has_ended(dir, &ended, e);
    *done = ok && was && planned_there && ended && access(weights, F_OK) == 0 &&
            outline_compare(was, config, settings_is_path, differs, sizeof differs) == 0 &&
            chosen_differs(&planned, plan, differs, sizeof differs) == 0;
    free(weights);
    free(was);
    return ok;
}

bool members_same(const char *dir, const char *config, const chosen *plan, err *e) {
    char differs[700], *was;
    chosen planned;
    bool there = false;
    const char *of = NULL;
    if (!description_of(dir, &was, e)) return false;
    bool ok = !plan || read_plan(dir, &planned, &there, e);
    if (was && records_differ(was, config, differs, sizeof differs))
        of = "description";
    else if (ok && there && chosen_differs(&planned, plan, differs, sizeof differs))
        of = "plan";
    free(was);
    return of ? err_input(
                    e, "%s: was made under another %s: %s; put that back, or train without --resume", dir, of, differs)
              : ok;
}

static bool may_differ(const char *path) {
    static const char *const common[] = {"train.epochs", "train.patience", "agent.total_timesteps", "walk.folds"};
    for (size_t i = 0; i < sizeof common / sizeof *common; i++)
        if (strcmp(path, common[i]) == 0) return false;
    return true;
}

bool members_alike(const char *dir, const char *config, err *e) {
    char differs[300], *was;
    if (!description_of(dir, &was, e)) return false;
    bool differ = was && outline_compare(was, config, may_differ, differs, sizeof differs);
    free(was);
    return !differ || err_input(e,
                          "%s: was made under another description: %s; shards have the same one: put that back, or "
                          "change it for all folds by --resume without --shard",
                          dir, differs);
}
