#include "cli/checking.h"

#include "base/json.h"
#include "base/term.h"
#include "cli/ask.h"
#include "task/walk_check.h"

#include <stdio.h>
#include <string.h>

static bool on_event(void *arg, const task_event *e) {
    progress *bar = arg;
    if (e->kind == TASK_WALK_STEP) progress_at(bar, 1000 * e->share, "%.0f %%", 100 * e->share);
    return !cli_interrupted();
}

static int64_t count_all(const check_report *r) {
    int64_t n = 0;
    for (int i = 0; i < CHECK_RULES; i++) n += r->rule[i].compared;
    return n;
}

// "inputs, scales": the rules that failed, or those that could not be tested.
static int list_rules(const check_report *r, bool failed, char *text, size_t room) {
    int n = 0;
    text[0] = 0;
    for (int i = 0; i < CHECK_RULES; i++) {
        if (failed ? !r->rule[i].failed : !r->rule[i].why[0]) continue;
        size_t at = strlen(text);
        snprintf(text + at, room - at, "%s%s", n++ ? ", " : "", check_name((check_rule)i));
    }
    return n;
}

static void print_report(const check_report *r) {
    char compared[32], failed[32];
    printf("%lld moment%s; scales of %lld of %lld folds; %lld trained with three futures, %lld %s each\n",
        (long long)r->moments, term_s(r->moments), (long long)r->folds, (long long)r->of, (long long)r->trained,
        (long long)r->epochs, r->agents ? "iterations" : "epochs");
    printf("%-8s  %15s  %12s\n", "rule", "compared", "failed");
    for (int i = 0; i < CHECK_RULES; i++) {
        const check_result *x = &r->rule[i];
        term_count(compared, sizeof compared, (double)x->compared);
        term_count(failed, sizeof failed, (double)x->failed);
        printf("%-8s  %15s  %12s  %s\n", check_name((check_rule)i), x->why[0] ? "-" : compared,
            x->why[0] ? "-" : failed, check_text((check_rule)i));
        if (x->failed) printf("%-8s  first: %s\n", "", x->first);
        if (x->why[0]) printf("%-8s  not tested: %s\n", "", x->why);
    }
}

static json_t *report_json(const check_report *r) {
    json_t *all = json_object();
    for (int i = 0; i < CHECK_RULES; i++) {
        const check_result *x = &r->rule[i];
        json_object_set_new(all, check_name((check_rule)i),
            json_pack("{s:b, s:I, s:I, s:s, s:s}", "tested", !x->why[0], "compared", (json_int_t)x->compared, "failed",
                (json_int_t)x->failed, "first", x->first, "reason", x->why));
    }
    return json_pack("{s:b, s:I, s:I, s:I, s:I, s:o}", "leak", check_found(r), "comparisons", (json_int_t)count_all(r),
        "moments", (json_int_t)r->moments, "folds", (json_int_t)r->folds, "trained", (json_int_t)r->trained, "rules",
        all);
}

static void print_end(const check_report *r) {
    char compared[32], untested[128];
    term_count(compared, sizeof compared, (double)count_all(r));
    printf("no leak found: %s comparisons", compared);
    if (list_rules(r, false, untested, sizeof untested)) printf("; not tested: %s", untested);
    printf("\n");
}

bool checking_run(const cli_options *o, err *e) {
    task_options ask;
    check_report r;
    progress bar;
    char failed[128];
    const char *folds = cli_given(o, "--folds");
    if (folds && strcmp(folds, "all") != 0 && strcmp(folds, "first") != 0)
        return err_input(e, "--folds %.40s: must be first or all", folds);
    if (!ask_task(o, &ask, e)) return false;
    progress_init(&bar, stderr, "checking", 1000, o->quiet || o->json);
    ask.listener = (task_listener){on_event, &bar};
    cli_watch_signals();
    bool ok = task_walk_check(&ask, folds && strcmp(folds, "all") == 0, &r, e);
    progress_done(&bar);
    if (!ok) return false;
    if (o->json)
        json_line(stdout, report_json(&r));
    else if (!o->quiet)
        print_report(&r);
    if (check_found(&r)) {
        list_rules(&r, true, failed, sizeof failed);
        return err_run(e, "leak found: %s", failed);
    }
    if (!o->json && !o->quiet) print_end(&r);
    return true;
}
