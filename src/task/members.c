#include "task/members.h"

#include "run/checkpoint.h"
#include "run/outline.h"
#include "task/describe.h"
#include "task/records.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int members_of(const char *dir) {
    char *text = run_text(dir, "config.yaml");
    char *value = text ? outline_value(text, "train.ensemble") : NULL;
    char *walk = text ? outline_value(text, "walk.scheme") : NULL,
         *fold = walk ? outline_value(text, "walk.fold") : NULL;
    int n = value && (!walk || fold) ? atoi(value) : 0; // of a walk each fold is an ensemble
    free(value);
    free(walk);
    free(fold);
    free(text);
    return n > 1 && n <= MEMBERS_MOST ? n : 0;
}

char *members_dir(const char *dir, int k) {
    char name[32];
    snprintf(name, sizeof name, "member_%d", k);
    return run_path(dir, name);
}

// The description of a directory, which the caller frees; NULL where it cannot be read.
static char *description_of(const char *dir) {
    char *text = run_text(dir, "config.yaml"), *whole = text ? task_description_complete(text) : NULL;
    free(text);
    return whole;
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

static bool read_plan(const char *dir, chosen *c, bool *there, err *e) {
    char *text;
    bool ok = run_read(dir, "plan.yaml", &text, e);
    *there = text && chosen_read(c, text);
    free(text);
    return ok;
}

// False also where it cannot be read.
static bool plan_of(const char *dir, chosen *c) {
    bool there;
    return read_plan(dir, c, &there, NULL) && there;
}

bool members_plan(const char *dir, chosen *c, bool *there, err *e) {
    char *first = members_dir(dir, 1);
    bool ok = read_plan(dir, c, there, e) && (*there || read_plan(first, c, there, e));
    free(first);
    return ok;
}

bool members_done(const char *dir, const char *config, const chosen *plan) {
    db_summary sum;
    err unused;
    chosen planned; // compares the data, wherever they lie
    char differs[64], *path = run_path(dir, "run.db"), *weights = run_path(dir, "best.safetensors");
    char *was = description_of(dir);
    db_reader *db = db_reader_open(path, &unused);
    bool done = was && plan_of(dir, &planned) && access(weights, F_OK) == 0 && db && db_read(db, &sum, &unused) &&
                strcmp(sum.status, "done") == 0 &&
                outline_compare(was, config, settings_is_path, differs, sizeof differs) == 0 &&
                chosen_differs(&planned, plan, differs, sizeof differs) == 0;
    db_reader_close(db);
    free(path);
    free(weights);
    free(was);
    return done;
}

bool members_same(const char *dir, const char *config, const chosen *plan, err *e) {
    char differs[700], *was = description_of(dir);
    chosen planned;
    const char *of = NULL;
    if (was && records_differ(was, config, differs, sizeof differs))
        of = "description";
    else if (plan && plan_of(dir, &planned) && chosen_differs(&planned, plan, differs, sizeof differs))
        of = "plan";
    free(was);
    return !of || err_input(e, "%s: was made under another %s: %s; put that back, or train without --resume", dir, of,
                      differs);
}
