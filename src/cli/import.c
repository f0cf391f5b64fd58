// tradewind import: bars, windows or a panel of series to a dataset file.
#include "base/clock.h"
#include "base/json.h"
#include "base/term.h"
#include "cli/cli.h"
#include "data/append.h"
#include "data/feature.h"
#include "data/panel.h"
#include "data/set.h"
#include "data/sources.h"
#include "data/when.h"
#include "data/windows.h"
#include "task/output.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HISTORY = 1, PANEL_HORIZON = 1, WINDOWS_HORIZON = 1 };

typedef struct {
    const cli_options *o;
    const char *out;
    int files, features;
    const char *file[WORDS_MOST];
    int place[WORDS_MOST];                      // words before each file
    const char *append;                         // the dataset that bars are added to, or NULL
    const char *feature[WORDS_MOST + OWN_MOST]; // "fast=a,b"
    build_options build;
    bars_options bars;
    int64_t horizon, history, recent, classes; // 0: not given
    arena arena;
    progress bar;
} job;

// Options

static bool read_real(const char *name, const char *text, double *value, err *e) {
    char *end;
    errno = 0;
    *value = strtod(text, &end);
    if (!errno && end != text && !*end && *value >= 0 && *value <= 1e6) return true;
    return err_input(e, "%s %.40s: must be a number from 0 to 1000000", name, text);
}

static bool read_count(const char *name, const char *text, int64_t least, int64_t *value, err *e) {
    char *end;
    errno = 0;
    long long v = strtoll(text, &end, 10);
    *value = v;
    if (!errno && end != text && !*end && v >= least && v <= LABEL_BARS_MOST) return true;
    return err_input(e, "%s %.40s: must be an integer from %lld to %d", name, text, (long long)least, LABEL_BARS_MOST);
}

// One of the words of "a|b|c", as its number.
static bool read_word(const char *name, const char *text, const char *words, int *value, err *e) {
    size_t n = strlen(text);
    *value = 0;
    for (const char *at = words; n;) {
        size_t length = strcspn(at, "|");
        if (length == n && strncmp(at, text, n) == 0) return true;
        if (!at[length]) break;
        at += length + 1;
        ++*value;
    }
    return err_input(e, "%s %.40s: must be one of %s", name, text, words);
}

static bool read_numbers(job *j, err *e) {
    build_options *b = &j->build;
    const struct {
        const char *name;
        double *to;
    } reals[] = {{"--band", &b->direction.band}, {"--strong", &b->direction.strong}, {"--up", &b->barrier.up},
        {"--down", &b->barrier.down}};
    const struct {
        const char *name;
        int64_t least, *to;
    } counts[] = {{"--horizon", 1, &j->horizon}, {"--limit", 1, &b->barrier.limit}, {"--history", 1, &j->history},
        {"--recent", 1, &j->recent}, {"--volatility", 0, &b->direction.volatility_bars}, {"--classes", 3, &j->classes}};
    for (size_t i = 0; i < sizeof reals / sizeof *reals; i++) {
        const char *text = cli_given(j->o, reals[i].name);
        if (text && !read_real(reals[i].name, text, reals[i].to, e)) return false;
    }
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        const char *text = cli_given(j->o, counts[i].name);
        if (text && !read_count(counts[i].name, text, counts[i].least, counts[i].to, e)) return false;
    }
    if (j->classes && j->classes != 3 && j->classes != 5)
        return err_input(e, "--classes %lld: must be 3 or 5", (long long)j->classes);
    b->barrier.volatility_bars = b->direction.volatility_bars;
    if (j->horizon) b->direction.horizon = b->horizon = j->horizon;
    if (j->classes) b->direction.classes = (int)j->classes;
    return true;
}

static bool read_words(job *j, err *e) {
    build_options *b = &j->build;
    const struct {
        const char *name, *words;
    } choices[] = {{"--label", "direction|barrier|forecast"}, {"--types", "f32|compact"}, {"--side", "long|short"},
        {"--timeout", "neutral|sign"}, {"--value", "close|step|path"}};
    int chosen[] = {BUILD_DIRECTION, 0, 0, LABEL_TIMEOUT_NEUTRAL, LABEL_PATH};
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
        const char *text = cli_given(j->o, choices[i].name);
        if (text && !read_word(choices[i].name, text, choices[i].words, &chosen[i], e)) return false;
    }
    b->label = (build_label)chosen[0];
    b->compact = chosen[1] == 1;
    b->barrier.side = chosen[2] ? -1 : 1;
    b->barrier.timeout = (label_timeout)chosen[3];
    b->value = (label_value)chosen[4];
    b->vector = !cli_given(j->o, "--no-vector");
    j->bars.tz = cli_given(j->o, "--tz");
    j->bars.columns = cli_given(j->o, "--columns");
    const char *order = cli_given(j->o, "--date-order");
    if (order && !when_order_read(order, &j->bars.date_order))
        return err_input(e, "--date-order: \"%.40s\" is no order of dates; write dmy, mdy or ymd", order);
    j->bars.keep_coarse = cli_given(j->o, "--keep-coarse") != NULL;
    j->bars.keep_filled = cli_given(j->o, "--keep-filled") != NULL;
    const char *force = cli_given(j->o, "--force");
    err why = {0};
    return !force || bars_force_read(force, &j->bars.force, &why) || err_input(e, "--force: %s", why.text);
}

// Words are files, but for further lists of features: --features fast=a,b slow=c.
static void read_arguments(job *j) {
    for (int i = 0; i < j->o->owns; i++)
        if (strncmp(j->o->own[i].name, "--features", 10) == 0) j->feature[j->features++] = j->o->own[i].value;
    bool any = j->features > 0;
    for (int i = 0; i < j->o->words; i++) {
        const char *word = j->o->word[i];
        if (any && strchr(word, '=') && access(word, F_OK) != 0)
            j->feature[j->features++] = word;
        else {
            j->place[j->files] = i;
            j->file[j->files++] = word;
        }
    }
}

static bool read_options(job *j, err *e) {
    j->build = build_defaults;
    read_arguments(j);
    if (j->files < 1) return err_input(e, "no file given; name bar files, an .npz of windows or a panel");
    j->append = cli_given(j->o, "--append");
    j->out = cli_given(j->o, "-o --output");
    if (!j->out) j->out = j->append;
    if (!j->out || !*j->out) return err_input(e, "no output given; add -o SET.npz");
    for (int i = 0; i < j->o->owns; i++)
        if (!strcmp(j->o->own[i].name, "--symbol") && j->o->own[i].before > j->place[j->files - 1])
            return err_input(
                e, "--symbol %.40s: stands behind the last file; put it before its files", j->o->own[i].value);
    if (!output_may_replace(j->out, OUTPUT_SET, j->file, j->files, e)) return false;
    return read_numbers(j, e) && read_words(j, e);
}

// What an option can mean: of which kinds of files, and of which labels of bars.
enum { OF_DIRECTION = 1, OF_BARRIER = 2, OF_FORECAST = 4, OF_BARS = 7, OF_WINDOWS = 8, OF_PANEL = 16 };

static bool means_something(const job *j, source_kind kind, err *e) {
    static const struct {
        const char *name;
        int of;
    } all[] = {{"--types", OF_BARS | OF_WINDOWS}, {"--horizon", OF_DIRECTION | OF_FORECAST | OF_WINDOWS | OF_PANEL},
        {"--tz", OF_BARS}, {"--date-order", OF_BARS}, {"--columns", OF_BARS}, {"--frames", OF_BARS},
        {"--features", OF_BARS}, {"--no-vector", OF_BARS}, {"--label", OF_BARS}, {"--band", OF_DIRECTION},
        {"--volatility", OF_DIRECTION | OF_BARRIER}, {"--classes", OF_DIRECTION | OF_WINDOWS},
        {"--strong", OF_DIRECTION}, {"--up", OF_BARRIER}, {"--down", OF_BARRIER}, {"--limit", OF_BARRIER},
        {"--timeout", OF_BARRIER}, {"--side", OF_BARRIER}, {"--value", OF_FORECAST}, {"--keep-coarse", OF_BARS},
        {"--keep-filled", OF_BARS}, {"--force", OF_BARS}, {"--symbol", OF_BARS}, {"--names", OF_WINDOWS},
        {"--history", OF_PANEL}, {"--recent", OF_PANEL}};
    static const char *const labels[] = {"labels of direction", "labels of barriers", "forecasts"};
    int here = kind == SOURCE_ARRAYS ? OF_WINDOWS : kind == SOURCE_PANEL ? OF_PANEL : 1 << j->build.label;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (!cli_given(j->o, all[i].name) || all[i].of & here) continue;
        bool other_label = all[i].of & OF_BARS && here & OF_BARS;
        return err_input(e, "%s: means nothing to %s; leave it out%s", all[i].name,
            here == OF_WINDOWS ? "windows"
            : here == OF_PANEL ? "a panel"
            : other_label      ? labels[j->build.label]
                               : "bars",
            other_label ? ", or choose another --label" : "");
    }
    if (cli_given(j->o, "--strong") && j->classes != 5)
        return err_input(e, "--strong: means nothing to 3 classes; add --classes 5");
    if (here == OF_WINDOWS && j->classes == 5)
        return err_input(e, "--classes 5: windows keep the classes of their labels; leave it out, or join 5 with 3");
    return true;
}

// "a,b" to words.
static int split_list(job *j, const char *text, const char **to, int most) {
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

static bool set_features(job *j, sources *s, err *e) {
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

// What is told

static bool says(const job *j) {
    return !j->o->json && !j->o->quiet;
}

// What the user should know also with --json and -q.
__attribute__((format(printf, 3, 4))) static void warn(const job *j, const char *label, const char *fmt, ...) {
    char text[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (j->o->json)
        json_line(stdout, json_pack("{s:s, s:s}", "warning", label, "text", text));
    else if (j->o->quiet)
        fprintf(stderr, "tradewind: %s: %s\n", label, text);
    else
        printf("%-9s %s\n", label, text);
}

static const char *count_text(char text[32], int64_t n) {
    term_count(text, 32, (double)n);
    return text;
}

// "1 bar", "2,310 bars".
static const char *count_of(char text[48], int64_t n, const char *what) {
    char count[32];
    snprintf(text, 48, "%s %s%s", count_text(count, n), what, n == 1 ? "" : "s");
    return text;
}

// A model that always answers the one class would seem to be right.
static void warn_of_classes(const job *j, const dataset *d, const int64_t *count) {
    for (int k = 0; k < d->classes; k++)
        if ((double)count[k] > 0.99 * (double)d->samples)
            warn(j, "unequal", "%.1f %% of the samples are %s; %s", 100 * (double)count[k] / (double)d->samples,
                d->class_names[k],
                j->build.label == BUILD_DIRECTION ? "are --band and --volatility right?" : "is that meant?");
}

static void print_classes(const char *const *names, const int64_t *count, int classes, int64_t samples) {
    if (!classes) return;
    printf("classes  ");
    for (int k = 0; k < classes && k < 12; k++) {
        char n[32];
        term_count(n, sizeof n, (double)count[k]);
        printf("%s %s %s (%.1f %%)", k ? "," : "", names[k], n, 100 * (double)count[k] / (double)samples);
    }
    puts(classes > 12 ? ", ..." : "");
}

static json_t *classes_json(const char *const *names, const int64_t *count, int classes) {
    json_t *all = json_object();
    for (int k = 0; k < classes; k++) json_object_set_new(all, names[k], json_integer((json_int_t)count[k]));
    return all;
}

static json_t *stream_names(const dataset *d) {
    json_t *all = json_array();
    for (int i = 0; i < d->streams; i++) json_array_append_new(all, json_string(d->stream[i].name));
    return all;
}

// The summary of a dataset that has been written, read back from the file. `made` is what else --json tells, or NULL;
// it is taken over.
static bool summarise(const job *j, json_t *made, err *e) {
    struct stat st = {0};
    char from[32] = "", to[32] = "", n[32];
    int64_t count[SET_CLASSES_MOST] = {0};
    dataset *d = set_open(j->out, e);
    if (!d) {
        json_decref(made);
        return false;
    }
    stat(j->out, &st);
    for (int64_t i = 0; d->label && i < d->samples; i++) count[d->label[i]]++;
    if (d->time) when_text(from, sizeof from, d->time[0]);
    if (d->time) when_text(to, sizeof to, d->time[d->samples - 1]);
    double seconds = clock_seconds() - j->o->started;
    warn_of_classes(j, d, count);
    if (j->o->json) {
        json_t *all = json_pack("{s:s, s:I, s:i, s:o, s:s?, s:s?, s:o, s:I, s:I, s:o, s:O?}", "set", j->out, "samples",
            (json_int_t)d->samples, "streams", d->streams, "stream_names", stream_names(d), "first",
            d->time ? from : NULL, "last", d->time ? to : NULL, "classes",
            classes_json(d->class_names, count, d->classes), "targets", (json_int_t)d->target_width, "bytes",
            (json_int_t)st.st_size, "seconds", json_number(seconds), "about", d->about);
        if (all && made) json_object_update(all, made);
        json_line(stdout, all);
    } else if (!j->o->quiet) {
        term_count(n, sizeof n, (double)d->samples);
        printf("samples   %s", n);
        if (d->time) printf(", %s to %s UTC", from, to);
        putchar('\n');
        print_classes(d->class_names, count, d->classes, d->samples);
        if (d->target) printf("targets   %lld a sample\n", (long long)d->target_width);
        printf("written   %s, %.1f MB, in %.2f s\n", j->out, (double)st.st_size / 1e6, seconds);
    }
    json_decref(made);
    dataset_free(d);
    return true;
}

static json_t *sources_json(const job *j, const char *made_of) {
    json_t *files = json_array();
    for (int i = 0; i < j->files; i++) json_array_append_new(files, json_string(j->file[i]));
    return json_pack("{s:s, s:o}", "made_of", made_of, "sources", files);
}

// Bars

static void tell_files(const job *j, const sources *s) {
    for (int i = 0; i < s->files; i++) {
        if (says(j)) bars_report_print(stdout, s->file[i].path, &s->file[i].bars);
        if (j->o->json) json_line(stdout, bars_report_json(s->file[i].path, &s->file[i].bars));
    }
}

// The open of the last bar that a set has of an instrument and a frame.
static int64_t last_open(const dataset *old, int series, int frame) {
    const bar_table *t = &old->stream[frame].bars;
    return t->time[2 * t->start[series + 1] - 2];
}

// One line for every series of bars.
static void tell_streams(const job *j, const sources *s, const dataset *old) {
    char n[48], span[32], when[32];
    for (int k = 0; k < s->build.series && says(j); k++)
        for (int i = 0; i < s->build.frames; i++) {
            const build_bars_of *x = &s->build.of[k].frame[i];
            printf("stream    %s%s%-8s %s of %s", s->build.of[k].symbol, s->build.of[k].symbol[0] ? " " : "",
                s->build.frame[i].name, count_of(n, x->count, old ? "new bar" : "bar"),
                when_span_text(span, sizeof span, s->build.frame[i].span));
            if (old) printf(" behind %s UTC", when_text(when, sizeof when, last_open(old, k, i)));
            printf(" (%s)\n", x->file);
        }
}

// Files that do not reach back to the last bars of the set that they are added to.
static void tell_holes(const job *j, const sources *s, const dataset *old) {
    char from[32], to[32];
    for (int k = 0; k < s->build.series * s->build.frames; k++) {
        const build_series *x = &s->build.of[k / s->build.frames];
        const build_bars_of *new = &x->frame[k % s->build.frames];
        const bar_table *t = &old->stream[k % s->build.frames].bars;
        int64_t end = t->time[2 * t->start[k / s->build.frames + 1] - 1];
        bool apart = false; // the first of its file is new
        for (int i = 0; i < s->files && new->count; i++) apart |= new->bar == s->file[i].bars.bar;
        if (apart && new->bar->time > end)
            warn(j, "hole", "%s%sno bars from %s to %s UTC; was the market closed?", x->symbol,
                x->symbol[0] ? ": " : "", when_text(from, sizeof from, end), when_text(to, sizeof to, new->bar->time));
    }
}

static void tell_build(const job *j, const sources *s, const dataset *old, const build_report *r) {
    char n[48], m[48], words[128];
    tell_streams(j, s, old);
    if (says(j)) {
        printf("left out  %s bars at the beginning to warm up\n", count_text(n, r->warm_up));
        printf("newest    %s without a label yet; `predict --latest` answers for %s",
            count_of(m, r->unlabelled_end, "bar"), r->unlabelled_end == 1 ? "it" : "them");
        if (r->unlabelled > r->unlabelled_end)
            printf("; %s more never get%s one", count_of(n, r->unlabelled - r->unlabelled_end, "bar"),
                r->unlabelled - r->unlabelled_end == 1 ? "s" : "");
        putchar('\n');
    }
    for (int i = 0; i < s->build.frames; i++)
        if (r->stale[i])
            warn(j, "stale", "%s samples see a bar of %s that is over 4 days old; do the files cover the same time?",
                count_text(n, r->stale[i]), s->build.frame[i].name);
    if (s->forced) warn(j, "forced", "kept although refused: %s", bars_force_text(words, sizeof words, s->forced));
    if (j->build.label != BUILD_BARRIER || !says(j)) return;
    printf("barriers  %s samples up, ", count_text(n, r->barrier.up));
    printf("%s down, %s at the time limit; ", count_text(n, r->barrier.down), count_text(m, r->barrier.timeout));
    printf("%s by a bar that touched both (the stop is taken)\n", count_text(n, r->barrier.both));
}

static json_t *build_json(const job *j, const sources *s, const build_report *r) {
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

static bool write_bars(job *j, sources *s, const dataset *old, build_report *r, err *e) {
    dataset *d = build_bars(&s->build, &j->build, old, r, e);
    if (!d) return false;
    json_t *about = old ? append_about(old, d, s->forced) : sources_about(s, &j->build, &j->bars);
    bool ok = about ? set_write(d, about, j->out, e) : err_input(e, "a file's name is not UTF-8; rename the file");
    json_decref(about);
    dataset_free(d);
    return ok;
}

// The files, each with the symbol that was given last before it.
static void list_files(const job *j, source_ask *ask) {
    for (int i = 0; i < j->files; i++) {
        ask[i] = (source_ask){.path = j->file[i]};
        for (int k = 0; k < j->o->owns; k++)
            if (!strcmp(j->o->own[k].name, "--symbol") && j->o->own[k].before <= j->place[i])
                ask[i].symbol = j->o->own[k].value;
    }
}

static bool finish_bars(job *j, sources *s, const dataset *old, err *e) {
    build_report r;
    json_t *made = NULL;
    bool ok = write_bars(j, s, old, &r, e);
    if (ok) {
        tell_files(j, s);
        if (old) tell_holes(j, s, old);
        tell_build(j, s, old, &r);
        made = build_json(j, s, &r);
    }
    return ok && summarise(j, made, e);
}

static bool import_bars(job *j, err *e) {
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
static bool append_means(const job *j, err *e) {
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
static void tell_nothing(const job *j, const sources *s, const dataset *old) {
    char when[32];
    for (int f = 0; f < s->files; f++) {
        int k = 0, i = 0;
        while (strcmp(s->build.of[k].symbol, s->file[f].symbol) != 0) k++;
        while (s->build.frame[i].span != s->file[f].bars.span) i++;
        when_text(when, sizeof when, last_open(old, k, i));
        bool open = s->file[f].bars.report.last_bar == BARS_OPEN_WHEN_WRITTEN;
        if (says(j))
            printf("nothing newer than %s UTC in %s%s\n", when, s->file[f].path,
                open ? ", but for a bar that was not over when the file was written" : "");
        if (j->o->json)
            json_line(stdout, json_pack("{s:s, s:s, s:i, s:s}", "set", j->out, "file", s->file[f].path, "new_bars", 0,
                                  "behind", when));
    }
}

static bool append_bars(job *j, err *e) {
    source_ask ask[WORDS_MOST];
    sources s;
    if (!append_means(j, e)) return false;
    dataset *old = set_open(j->append, e);
    if (!old || !npz_check(set_arrays(old), e) || !append_options(old, &j->build, &j->bars, e)) {
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
        sources_done(&s);
    }
    dataset_free(old);
    return ok;
}

// Windows

static bool on_progress(void *arg, double done, double total) {
    job *j = arg;
    if (done < total) progress_at(&j->bar, done / 1e6, "MB read");
    return !cli_interrupted();
}

static void tell_windows(const job *j, const npz *z, const windows_report *r) {
    for (int64_t i = 0; i < z->entries; i++) {
        const char *name = z->entry[i].name;
        bool pickle = z->entry[i].kind == NPZ_PICKLE;
        if (windows_uses(&r->found, &z->entry[i])) continue;
        if (says(j)) printf("skipped   %s%s\n", name, pickle ? ": a pickle, which is never loaded" : "");
        if (j->o->json)
            json_line(stdout, json_pack("{s:s, s:s}", "skipped", name, "why", pickle ? "pickle" : "unused"));
    }
    for (int i = 0; i < r->found.streams && says(j); i++) {
        const npy_header *h = &r->found.stream[i]->header;
        char n[32], m[32];
        term_count(n, sizeof n, (double)h->dim[0]);
        term_count(m, sizeof m, (double)r->fold[i].rows);
        printf("stream    %-8s %s windows of %lld steps, %lld columns: %s rows in %lld run%s (%s)\n", r->found.name[i],
            n, (long long)h->dim[1], (long long)h->dim[2], m, (long long)r->fold[i].runs,
            r->fold[i].runs == 1 ? "" : "s", r->found.stream[i]->name);
    }
    if (r->found.vector && says(j))
        printf("vector    %lld columns (%s)\n", (long long)r->found.vector->header.dim[1], r->found.vector->name);
    if (!j->horizon && says(j))
        printf("labels    taken to be known %d step later; --horizon says otherwise\n", WINDOWS_HORIZON);
}

static double array_bytes(const npz *z) {
    double bytes = 0;
    for (int64_t i = 0; i < z->entries; i++)
        if (z->entry[i].header.bytes > 0) bytes += (double)z->entry[i].header.bytes;
    return bytes;
}

static bool import_arrays(job *j, err *e) {
    npz z;
    windows_report r;
    windows_options o = {.names = cli_given(j->o, "--names"),
        .to_three = j->classes == 3,
        .compact = j->build.compact,
        .horizon = j->horizon ? j->horizon : WINDOWS_HORIZON,
        .on_progress = on_progress,
        .arg = j};
    if (j->files > 1) return err_input(e, "%s: is imported by itself; leave the other files out", j->file[0]);
    if (!npz_open(&z, j->file[0], e)) return false;
    bool ok = !npz_find(&z, set_mark) || err_input(e, "%s: is a dataset already; train on it", z.path);
    json_t *about = sources_json(j, "windows");
    if (ok && !about) ok = err_input(e, "the file's name is not UTF-8; rename the file");
    progress_init(&j->bar, stderr, "importing", array_bytes(&z) / 1e6, j->o->quiet || j->o->json);
    ok = ok && windows_import(&z, &o, about, j->out, &r, &j->arena, e);
    progress_done(&j->bar);
    json_decref(about);
    if (ok) tell_windows(j, &z, &r);
    npz_close(&z);
    return ok && summarise(j, NULL, e);
}

// Panels

static void tell_panel(const job *j, const panel *p, int64_t horizon, int64_t held) {
    int64_t values = p->offset[p->series];
    char a[32], b[32], c[32];
    if (says(j))
        printf("%s: panel\n  series     %s with %s values; the last %lld values of %s series are held out\n",
            j->file[0], count_text(a, p->series), count_text(b, values), (long long)horizon, count_text(c, held));
    if (j->o->json)
        json_line(stdout, json_pack("{s:s, s:s, s:I, s:I, s:I}", "file", j->file[0], "format", "panel", "series",
                              (json_int_t)p->series, "values", (json_int_t)values, "held_out", (json_int_t)held));
}

static bool import_panel(job *j, err *e) {
    panel p;
    build_panel_options o = {j->horizon ? j->horizon : PANEL_HORIZON, j->history ? j->history : HISTORY, j->recent};
    if (j->files > 1) return err_input(e, "%s: is imported by itself; leave the other files out", j->file[0]);
    if (!j->horizon)
        return err_input(e, "%s: is a panel of series; say how many values to forecast with --horizon N", j->file[0]);
    if (!panel_read(&p, j->file[0], e)) return false;
    dataset *d = build_panel(&p, j->file[0], &o, e);
    json_t *about = sources_json(j, "panel");
    bool ok = d && about;
    if (d && !about) err_input(e, "the file's name is not UTF-8; rename the file");
    if (ok) {
        json_object_set_new(about, "held_out", json_integer((json_int_t)d->held));
        json_object_set_new(about, "series", json_integer((json_int_t)p.series));
        json_object_set_new(about, "horizon", json_integer((json_int_t)o.horizon));
        json_object_set_new(about, "history", json_integer((json_int_t)o.history));
        json_object_set_new(about, "recent", json_integer((json_int_t)o.recent));
        ok = set_write(d, about, j->out, e);
    }
    if (ok) tell_panel(j, &p, o.horizon, d->held);
    json_decref(about);
    dataset_free(d);
    panel_done(&p);
    return ok && summarise(j, NULL, e);
}

static bool run(const cli_options *o, err *e) {
    job j = {.o = o};
    source_kind kind;
    arena_init(&j.arena);
    cli_watch_signals();
    bool ok = read_options(&j, e) && source_kind_of(j.file[0], &kind, e) && means_something(&j, kind, e);
    ok = ok && (j.append                   ? append_bars(&j, e)
                   : kind == SOURCE_ARRAYS ? import_arrays(&j, e)
                   : kind == SOURCE_PANEL  ? import_panel(&j, e)
                                           : import_bars(&j, e));
    arena_done(&j.arena);
    return ok;
}

const cli_command cli_import = {"import", "FILE... -o SET.npz | --append SET.npz FILE...",
    "bars, windows or series to a dataset; reports what is odd",
    "What a FILE holds is recognised from its content:\n"
    "  bars      one file or several of different spans (MetaTrader, Binance, Yahoo, Dukascopy, HistData, pandas, or "
    "an\n"
    "            .npy of MetaTrader's rates); the finest are the samples' clock, streams are named fast, slow, "
    "slower,\n"
    "            slowest\n"
    "  windows   an .npz with arrays x_NAME of [samples, steps, columns], x_NAME of [samples, columns], labels\n"
    "  panel     a CSV with one series a row, its name first (M4)\n"
    "\noptions:\n"
    "  -o, --output FILE   the dataset to write (required, but for --append)\n"
    "  --append SET        adds the bars of the files that are newer than SET's: these alone are read and computed, "
    "bars "
    "that\n"
    "                      had no label get theirs. SET becomes what importing all bars gives, to the byte, in place "
    "or as "
    "-o\n"
    "  --types f32|compact compact: the vector as i8 signals and f16 strengths (default f32)\n"
    "  --horizon N         bars, steps or values until the label is known (default 1; forecast 12; required of a "
    "panel)\n"
    "of bars:\n"
    "  --symbol NAME       the instrument of the files behind it: --symbol XAUUSD M5.csv H1.csv --symbol EURUSD ...; "
    "or "
    "a\n"
    "                      column of the file names it. Each becomes a series of its own\n"
    "  --tz ZONE           the files' clock: UTC, mt5, EST, +2, Europe/Berlin (default UTC)\n"
    "  --date-order ORDER  dmy, mdy or ymd: how to read dates such as 03/04/2024 (default: as the file's numbers "
    "show)\n"
    "  --columns LIST      which column is which: time=Date,close=Price; also date, open, high, low, volume, spread,\n"
    "                      symbol. Columns of files without a header by number, from 1\n"
    "  --frames 5m,1h      coarser streams, made of the finest bars; up to 1d, and 1w, 1mo\n"
    "  --features S=a,b    features of stream S, from doc/features.md; further ones may follow: slow=c,d\n"
    "  --no-vector         leave the vector of 32 strategies out\n"
    "  --label KIND        direction (default), barrier or forecast\n"
    "  --band X            direction: moves within X are NEUTRAL, in units of volatility (default 0.5)\n"
    "  --volatility N      bars that volatility is taken over; 0: bands and barriers are plain returns (default 100)\n"
    "  --classes 3|5       direction: 5 tells moves beyond --strong bands (default 2) apart; windows: 3 joins 5 "
    "classes\n"
    "  --up X --down X     barrier: distances, in units of volatility (default 2)\n"
    "  --limit N           barrier: bars until it times out (default 24), as --timeout neutral|sign; --side "
    "long|short\n"
    "  --value V           forecast: path (log returns since the sample, default), step (bar by bar) or close\n"
    "  --keep-coarse       keep stretches of coarser bars\n"
    "  --keep-filled       keep Dukascopy's flat bars of closed hours\n"
    "  --force LIST        import although these checks refuse it: thin, slips, spikes, splits, levels, columns,\n"
    "                      conflicts, agree, stale, future (doc/data.md); what they found is recorded in the set\n"
    "of windows:\n"
    "  --names LIST        what is not named x_NAME, labels, targets or time: fast=ARRAY,vector=ARRAY,label=ARRAY,\n"
    "                      target=ARRAY,time=ARRAY; skip=ARRAY leaves one out\n"
    "of a panel:\n"
    "  --history N         values that a sample has seen at least (default 1)\n"
    "  --recent N          train on targets among the last N values before those only (default: all)\n"
    "  The last --horizon values of every series are held out: they are what training is validated on, whatever\n"
    "  data.split says. All values and the names are in the set; evaluate --test and predict --part future use them.\n"
    "\nWith an error no file is written. doc/data.md has the rules and what is in the file.\n",
    NULL, NULL, WORDS_MOST, run,
    "-o --output --append --symbol --types --horizon --tz --date-order --columns --frames --features --label --band "
    "--volatility --classes --strong --up --down --limit --timeout --side --value --force --names --history --recent",
    "--no-vector --keep-coarse --keep-filled"};
