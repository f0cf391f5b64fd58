// The end of an import as it is told, in text and JSON.
#include "base/clock.h"
#include "cli/import_job.h"
#include "data/latest.h"
#include "data/set.h"
#include "data/when.h"

#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>

bool import_says(const import_job *j) {
    return !j->o->json && !j->o->quiet;
}

void import_warn(const import_job *j, const char *label, const char *fmt, ...) {
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

void import_warn_late(const import_job *j, const dataset *d) {
    char text[192];
    for (int64_t k = 0; k < dataset_series(d); k++)
        for (int i = 1; i < d->streams; i++)
            if (latest_is_late(d, k, i, text, sizeof text)) import_warn(j, "stale", "%s", text);
}

const char *import_count(char text[32], int64_t n) {
    term_count(text, 32, (double)n);
    return text;
}

const char *import_count_of(char text[48], int64_t n, const char *what) {
    char count[32];
    snprintf(text, 48, "%s %s%s", import_count(count, n), what, n == 1 ? "" : "s");
    return text;
}

// A model that always answers the one class would seem to be right.
static void warn_of_classes(const import_job *j, const dataset *d, const int64_t *count) {
    for (int k = 0; k < d->classes; k++)
        if ((double)count[k] > 0.99 * (double)d->samples)
            import_warn(j, "unequal", "%.1f %% of the samples are %s; %s", 100 * (double)count[k] / (double)d->samples,
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

bool import_summarise(const import_job *j, json_t *made, err *e) {
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
    import_warn_late(j, d);
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
