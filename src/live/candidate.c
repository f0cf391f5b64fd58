#include "live/candidate.h"

#include "run/db.h"
#include "run/results.h"
#include "run/run.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int64_t written(const char *run, const char *name) {
    char *path = run_path(run, name);
    struct stat st;
    int64_t when = stat(path, &st) == 0 ? (int64_t)st.st_mtime : 0;
    free(path);
    return when;
}

int64_t candidate_made(const char *run) {
    int64_t one = written(run, "best.safetensors");
    return one ? one : written(run, "member_1/best.safetensors");
}

static bool has_ended(const char *run) {
    char *path = run_path(run, "run.db");
    db_summary sum;
    err unused;
    db_reader *r = db_reader_open(path, &unused);
    bool ended = r && db_read(r, &sum, &unused) && strcmp(sum.status, "done") == 0;
    db_reader_close(r);
    free(path);
    return ended;
}

static bool is_better(const char *run) {
    json_t *doc = NULL;
    err unused;
    if (!results_read(run, RESULTS_EVALUATION, &doc, &unused) || !doc) return false;
    // The first score is that of the loss that was trained for.
    json_t *first = json_array_get(results_get(doc, "parts.test.scores"), 0);
    const char *verdict = json_string_value(json_object_get(first, "verdict"));
    bool better = verdict && strcmp(verdict, "better") == 0;
    json_decref(doc);
    return better && written(run, results_name(RESULTS_EVALUATION)) >= candidate_made(run);
}

static bool has_rule(const char *run) {
    rule_record r;
    bool there;
    err unused;
    return rule_read(run, &r, &there, &unused) && there && (!r.was_fitted || r.fitted.result > 0);
}

bool candidate_has_passed(const char *run, char *why, size_t room) {
    const char *lacks = !candidate_made(run) || !has_ended(run) ? "is not trained to its end"
                        : !is_better(run)                       ? "has no evaluation of its weights that is better "
                                                                  "than a trivial answer"
                        : !has_rule(run) ? "has no rule of a backtest for its weights that earned its costs"
                                         : NULL;
    snprintf(why, room, "%s", lacks ? lacks : "");
    return !lacks;
}

bool candidate_find(candidate *c, const char *dir, int64_t after, const json_t *refused) {
    DIR *d = opendir(dir);
    char why[128];
    *c = (candidate){.made = after};
    for (const struct dirent *each; d && (each = readdir(d));) {
        char *run = each->d_name[0] == '.' ? NULL : run_path(dir, each->d_name);
        int64_t made = run && run_was_in(run) ? candidate_made(run) : 0;
        if (made && json_integer_value(json_object_get(refused, run)) == made) made = 0;
        if (made > c->made && candidate_has_passed(run, why, sizeof why)) {
            free(c->run);
            c->run = run;
            c->made = made;
            run = NULL;
        }
        free(run);
    }
    if (d) closedir(d);
    return c->run != NULL;
}

void candidate_done(candidate *c) {
    free(c->run);
    *c = (candidate){0};
}
