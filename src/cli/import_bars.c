// Bar files to a set, and bars added to one.
#include "base/file.h"
#include "cli/import_job.h"
#include "data/append.h"
#include "data/feature.h"
#include "data/set.h"
#include "data/when.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// "a,b" to words.
static int split_list(import_job *j, const char *text, const char **to, int most) {
    char *rest = NULL, *copy = arena_text(&j->arena, text);
    int n = 0;
    for (char *word = strtok_r(copy, ",", &rest); word && n < most; word = strtok_r(NULL, ",", &rest)) to[n++] = word;
    return n;
}

static frame_spec *frame_named(sources *s, const char *name, size_t n) {
    for (int i = 0; i < s->build.frames; i++)
        if (strlen(s->build.frame[i].name) == n && memcmp(s->build.frame[i].name, name, n) == 0)
            return &s->build.frame[i];
    return NULL;
}

static bool set_features(import_job *j, sources *s, err *e) {
    for (int i = 0; i < j->features; i++) {
        const char *text = j->feature[i], *equals = strchr(text, '=');
        frame_spec *to = equals ? frame_named(s, text, (size_t)(equals - text)) : NULL;
        if (!equals) return err_input(e, "--features %.60s: write STREAM=a,b such as fast=rsi_14,body", text);
        if (!to)
            return err_input(e, "--features %.60s: no such stream; the streams are %s%s%s", text,
                s->build.frame[0].name, s->build.frames > 1 ? " to " : "",
                s->build.frames > 1 ? s->build.frame[s->build.frames - 1].name : "");
        const char **list = arena_array(&j->arena, FEATURE_LIST_MOST, sizeof *list);
        to->feature_count = split_list(j, equals + 1, list, FEATURE_LIST_MOST);
        to->features = list;
    }
    return true;
}

static void tell_files(const import_job *j, const sources *s) {
    for (int i = 0; i < s->files; i++) {
        if (import_says(j)) bars_report_print(stdout, s->file[i].path, &s->file[i].bars);
        if (j->o->json) json_line(stdout, bars_report_json(s->file[i].path, &s->file[i].bars));
    }
}

// The open of the last bar that a set has of an instrument and a frame.
static int64_t last_open(const dataset *old, int series, int frame) {
    const bar_table *t = &old->stream[frame].bars;
    return t->time[2 * t->start[series + 1] - 2];
}

// One line for every series of bars.
static void tell_streams(const import_job *j, const sources *s, const dataset *old) {
    char n[48], span[32], when[32];
    for (int k = 0; k < s->build.series && import_says(j); k++)
        for (int i = 0; i < s->build.frames; i++) {
            const build_bars_of *x = &s->build.of[k].frame[i];
            printf("stream    %s%s%-8s %s of %s", s->build.of[k].symbol, s->build.of[k].symbol[0] ? " " : "",
                s->build.frame[i].name, import_count_of(n, x->count, old ? "new bar" : "bar"),
                when_span_text(span, sizeof span, s->build.frame[i].span));
            if (old) printf(" behind %s UTC", when_text(when, sizeof when, last_open(old, k, i)));
            printf(" (%s)\n", x->file);
        }
}

// Files that do not reach back to the last bars of the set that they are added to, but for closed hours; where hours
// are not known, any of them.
static void tell_holes(const import_job *j, const sources *s, const dataset *old) {
    char from[32], to[32], n[32];
    for (int k = 0; k < s->build.series * s->build.frames; k++) {
        const build_series *x = &s->build.of[k / s->build.frames];
        const build_bars_of *new = &x->frame[k % s->build.frames];
        const bar_table *t = &old->stream[k % s->build.frames].bars;
        int64_t end = t->time[2 * t->start[k / s->build.frames + 1] - 1];
        const bars_report *r = NULL; // of a file whose first bar is new
        for (int i = 0; i < s->files && new->count; i++)
            if (new->bar == s->file[i].bars.bar) r = &s->file[i].bars.report;
        if (!r || new->bar->time <= end || (r->hours[0][0] && !r->missing_first)) continue;
        import_warn(j, "hole", "%s%sno bars from %s to %s UTC%s%s%s; was the market closed?", x->symbol,
            x->symbol[0] ? ": " : "", when_text(from, sizeof from, end), when_text(to, sizeof to, new->bar->time),
            r->missing_first ? ", with " : "", r->missing_first ? import_count(n, r->missing_first) : "",
            r->missing_first ? " missing in open hours" : "");
    }
}

static void tell_build(const import_job *j, const sources *s, const dataset *old, const build_report *r) {
    char n[48], m[48], words[128];
    tell_streams(j, s, old);
    if (import_says(j)) {
        printf("left out  %s bars at the beginning to warm up\n", import_count(n, r->warm_up));
        printf("newest    %s without a label yet; `predict --latest` answers for %s",
            import_count_of(m, r->unlabelled_end, "bar"), r->unlabelled_end == 1 ? "it" : "them");
        if (r->unlabelled > r->unlabelled_end)
            printf("; %s more never get%s one", import_count_of(n, r->unlabelled - r->unlabelled_end, "bar"),
                r->unlabelled - r->unlabelled_end == 1 ? "s" : "");
        putchar('\n');
    }
    for (int i = 0; i < s->build.frames; i++)
        if (r->stale[i])
            import_warn(j, "stale",
                "%s samples see a bar of %s that is over 4 days old; do the files cover the same time?",
                import_count(n, r->stale[i]), s->build.frame[i].name);
    if (s->forced)
        import_warn(j, "forced", "kept although refused: %s", bars_force_text(words, sizeof words, s->forced));
    if (j->build.label != BUILD_BARRIER || !import_says(j)) return;
    printf("barriers  %s samples up, ", import_count(n, r->barrier.up));
    printf("%s down, %s at the time limit; ", import_count(n, r->barrier.down), import_count(m, r->barrier.timeout));
    printf("%s by a bar that touched both (the stop is taken)\n", import_count(n, r->barrier.both));
}

static json_t *build_json(const import_job *j, const sources *s, const build_report *r) {
    json_t *stale = json_object(), *all = json_pack("{s:{s:I, s:I}}", "left_out", "warm_up", (json_int_t)r->warm_up,
                                       "unlabelled", (json_int_t)r->unlabelled);
    for (int i = 0; i < s->build.frames; i++)
        if (r->stale[i]) json_object_set_new(stale, s->build.frame[i].name, json_integer((json_int_t)r->stale[i]));
    json_object_set_new(all, "stale", stale);
    if (j->build.label == BUILD_BARRIER)
        json_object_set_new(all, "barriers",
            json_pack("{s:I, s:I, s:I, s:I, s:I}", "up", (json_int_t)r->barrier.up, "down", (json_int_t)r->barrier.down,
                "timeout", (json_int_t)r->barrier.timeout, "both", (json_int_t)r->barrier.both, "gap",
                (json_int_t)r->barrier.gap));
    return all;
}

static bool write_bars(import_job *j, sources *s, const dataset *old, build_report *r, err *e) {
    dataset *d = build_bars(&s->build, &j->build, old, r, e);
    if (!d) return false;
    json_t *about = old ? append_about(old, d, s->forced) : sources_about(s, &j->build, &j->bars);
    bool ok = about ? set_write(d, about, j->out, e) : err_input(e, "a file's name is not UTF-8; rename the file");
    json_decref(about);
    dataset_free(d);
    return ok;
}

// The files, each with the symbol that was given last before it.
static void list_files(const import_job *j, source_ask *ask) {
    for (int i = 0; i < j->files; i++) {
        ask[i] = (source_ask){.path = j->file[i]};
        for (int k = 0; k < j->o->owns; k++)
            if (!strcmp(j->o->own[k].name, "--symbol") && j->o->own[k].before <= j->place[i])
                ask[i].symbol = j->o->own[k].value;
    }
}

static bool finish_bars(import_job *j, sources *s, const dataset *old, err *e) {
    build_report r;
    json_t *made = NULL;
    bool ok = write_bars(j, s, old, &r, e);
    if (ok) {
        tell_files(j, s);
        if (old) tell_holes(j, s, old);
        tell_build(j, s, old, &r);
        made = build_json(j, s, &r);
    }
    return ok && import_summarise(j, made, e);
}

bool import_bars(import_job *j, err *e) {
    const char *frames[FRAMES_MOST], *list = cli_given(j->o, "--frames");
    int n = list ? split_list(j, list, frames, FRAMES_MOST) : 0;
    source_ask ask[WORDS_MOST];
    sources s;
    list_files(j, ask);
    if (!sources_read(&s, ask, j->files, &j->bars, frames, n, e)) return false;
    bool ok = set_features(j, &s, e) && finish_bars(j, &s, NULL, e);
    sources_done(&s);
    return ok;
}

// Labels, features and the reading of files are the set's.
static bool append_means(const import_job *j, err *e) {
    static const char *const known[] = {"--append", "--symbol", "-o", "--output", "--force"};
    for (int i = 0; i < j->o->owns; i++) {
        bool ok = false;
        for (size_t k = 0; k < sizeof known / sizeof *known; k++)
            ok |= strncmp(j->o->own[i].name, known[k], strlen(known[k])) == 0;
        if (!ok)
            return err_input(e, "%.40s: means nothing with --append; %s says how its bars are read and labelled",
                j->o->own[i].name, j->append);
    }
    return true;
}

static bool any_new(const sources *s) {
    bool any = false;
    for (int k = 0; k < s->build.series * s->build.frames; k++)
        any |= s->build.of[k / s->build.frames].frame[k % s->build.frames].count > 0;
    return any;
}

// Files that have nothing for the set.
static void tell_nothing(const import_job *j, const sources *s, const dataset *old) {
    char when[32];
    for (int f = 0; f < s->files; f++) {
        int k = 0, i = 0;
        while (strcmp(s->build.of[k].symbol, s->file[f].symbol) != 0) k++;
        while (s->build.frame[i].span != s->file[f].bars.span) i++;
        when_text(when, sizeof when, last_open(old, k, i));
        bool open = s->file[f].bars.report.last_bar == BARS_OPEN_WHEN_WRITTEN;
        if (import_says(j))
            printf("nothing newer than %s UTC in %s%s\n", when, s->file[f].path,
                open ? ", but for a bar that was not over when the file was written" : "");
        if (j->o->json)
            json_line(stdout, json_pack("{s:s, s:s, s:i, s:s}", "set", j->out, "file", s->file[f].path, "new_bars", 0,
                                  "behind", when));
    }
    import_warn_late(j, old);
}

// Files with a header alone.
static void tell_empty(const import_job *j, const sources *s) {
    for (int i = 0; i < j->files; i++) {
        const char *name = strcmp(j->file[i], "-") ? j->file[i] : "stdin";
        bool any = false;
        for (int k = 0; k < s->files; k++) any |= strcmp(s->file[k].path, name) == 0;
        if (any) continue;
        if (import_says(j)) printf("nothing newer in %s, which has a header but no rows\n", name);
        if (j->o->json) json_line(stdout, json_pack("{s:s, s:s, s:i}", "set", j->out, "file", name, "new_bars", 0));
    }
}

static void tell_wait(void *arg) {
    const import_job *j = arg;
    if (import_says(j)) printf("waits     another import --append has %s\n", j->append);
    fflush(stdout);
}

static bool append_locked(import_job *j, err *e) {
    source_ask ask[WORDS_MOST];
    sources s;
    dataset *old = set_open(j->append, e);
    if (!old || !npz_check(old->arrays, NULL, NULL, e) || !append_options(old, &j->build, &j->bars, e)) {
        dataset_free(old);
        return false;
    }
    list_files(j, ask);
    bool ok = sources_follow(&s, old, ask, j->files, &j->bars, e);
    if (ok) {
        if (any_new(&s) || strcmp(j->out, j->append) != 0)
            ok = finish_bars(j, &s, old, e);
        else
            tell_nothing(j, &s, old);
        if (ok) tell_empty(j, &s);
        sources_done(&s);
    }
    dataset_free(old);
    return ok;
}

// Two appends at once: the second adds to what the first one made.
bool import_append(import_job *j, err *e) {
    if (!append_means(j, e)) return false;
    int lock = file_lock(j->append, tell_wait, j, e);
    if (lock < 0) return false;
    bool ok = append_locked(j, e);
    close(lock);
    return ok;
}
