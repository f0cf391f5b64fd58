// tradewind inspect: what a dataset, an .npz, a run or a checkpoint holds, for people and for programs.
#include "base/clock.h"
#include "base/json.h"
#include "base/term.h"
#include "cli/cli.h"
#include "cli/look.h"
#include "data/loader.h"
#include "data/set.h"
#include "data/when.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { ROWS = 1024, SPARK = 64, BATCH_ROWS = 512, AHEAD = 2 };

// Plain archives

static const char *kind_name(const npz_entry *n) {
    static const char *const names[] = {"array", "text", "records", "pickle, never loaded", "not an array"};
    return n->kind == NPZ_OTHER && n->header.head ? "an array of a type that is not read" : names[n->kind];
}

static const char *shape_text(const npy_header *h, char *out, size_t room) {
    size_t at = (size_t)snprintf(out, room, "[");
    for (int i = 0; i < h->rank && at < room; i++)
        at += (size_t)snprintf(out + at, room - at, "%s%lld", i ? ", " : "", (long long)h->dim[i]);
    if (at < room) snprintf(out + at, room - at, "]");
    return out;
}

static const char *size_text(uint64_t bytes, char *out, size_t room) {
    if (bytes < 100000)
        snprintf(out, room, "%llu bytes", (unsigned long long)bytes);
    else
        snprintf(out, room, "%.1f MB", (double)bytes / 1e6);
    return out;
}

static void show_entry(const npz_entry *n, int wide, bool json) {
    char shape[256], size[32];
    bool known = n->kind <= NPZ_RECORDS;
    shape_text(&n->header, shape, sizeof shape);
    if (json) {
        json_line(stdout, json_pack("{s:s, s:s, s:s?, s:s?, s:b, s:I}", "name", n->name, "kind", kind_name(n), "type",
                              known ? npy_type_name(n->header.type) : NULL, "shape", known ? shape : NULL, "deflated",
                              n->member->deflated, "bytes", (json_int_t)n->member->size));
        return;
    }
    printf("  %-*s %-8s %-22s %12s", wide, n->name, known ? npy_type_name(n->header.type) : "", known ? shape : "",
        size_text(n->member->size, size, sizeof size));
    printf("%s%s%s\n", n->member->deflated ? "  deflated" : "", n->kind == NPZ_ARRAY ? "" : "  ",
        n->kind == NPZ_ARRAY ? "" : kind_name(n));
}

static void show_entries(const npz *z, bool json) {
    if (!json) printf("%s: %lld entries; not a dataset\n", z->path, (long long)z->entries);
    int wide = 20;
    for (int64_t i = 0; i < z->entries; i++) {
        size_t length = strlen(z->entry[i].name);
        if (length > (size_t)wide) wide = length < 60 ? (int)length : 60;
    }
    for (int64_t i = 0; i < z->entries; i++) show_entry(&z->entry[i], wide, json);
}

// Columns

typedef struct {
    double least, most, mean, square; // square: sum of squares about the mean
    int64_t not_finite;
} range;

static bool measure_table(const table *t, range *r, err *e) {
    float *rows = malloc((size_t)(ROWS * t->width) * sizeof *rows);
    if (!rows) return err_run(e, "out of memory for %lld columns", (long long)t->width);
    for (int64_t c = 0; c < t->width; c++) r[c] = (range){.least = INFINITY, .most = -INFINITY};
    for (int64_t row = 0, n; row < t->rows; row += n) {
        n = t->rows - row < ROWS ? t->rows - row : ROWS;
        table_read(t, row, n, rows);
        for (int64_t i = 0; i < n * t->width; i++) {
            range *x = &r[i % t->width];
            double v = (double)rows[i], off = v - x->mean;
            if (!isfinite(v)) {
                x->not_finite++;
                continue;
            }
            x->least = fmin(x->least, v);
            x->most = fmax(x->most, v);
            int64_t nth = row + i / t->width + 1 - x->not_finite;
            x->mean += off / (double)nth;
            x->square += off * (v - x->mean);
        }
    }
    free(rows);
    return true;
}

static double deviation(const table *t, const range *r) {
    int64_t n = t->rows - r->not_finite;
    return n > 0 ? sqrt(r->square / (double)n) : 0;
}

static const char *types_text(const table *t, char *out, size_t room) {
    size_t at = 0;
    out[0] = 0;
    for (int k = 0; k < t->parts && at < room; k++)
        at += (size_t)snprintf(out + at, room - at, "%s%lld %s", k ? " + " : "", (long long)t->part[k].width,
            column_name(t->part[k].type));
    return out;
}

static void print_columns(const table *t, const range *r) {
    int wide = 28;
    for (int64_t c = 0; t->columns && c < t->width; c++) {
        size_t length = strlen(t->columns[c]);
        if (length > (size_t)wide) wide = length < 60 ? (int)length : 60;
    }
    printf("  %-*s %12s %12s %12s %12s\n", wide, "column", "min", "mean", "max", "std");
    for (int64_t c = 0; c < t->width; c++) {
        char number[32];
        snprintf(number, sizeof number, "%lld", (long long)c);
        printf("  %-*s %12.5g %12.5g %12.5g %12.5g", wide, t->columns ? t->columns[c] : number, r[c].least, r[c].mean,
            r[c].most, deviation(t, &r[c]));
        if (r[c].not_finite) printf("  %lld not finite", (long long)r[c].not_finite);
        putchar('\n');
    }
}

static json_t *columns_json(const table *t, const range *r) {
    json_t *all = json_array();
    for (int64_t c = 0; c < t->width; c++)
        json_array_append_new(
            all, json_pack("{s:s?, s:o, s:o, s:o, s:o, s:I}", "name", t->columns ? t->columns[c] : NULL, "min",
                     json_number(r[c].least), "mean", json_number(r[c].mean), "max", json_number(r[c].most), "std",
                     json_number(deviation(t, &r[c])), "not_finite", (json_int_t)r[c].not_finite));
    return all;
}

// A table's line and its columns; into `out` where that is not NULL.
static bool show_table(const table *t, const char *name, json_t *out, err *e) {
    char types[160], n[32];
    range *r = calloc((size_t)t->width, sizeof *r);
    if (!r) return err_run(e, "out of memory for %lld columns", (long long)t->width);
    bool ok = measure_table(t, r, e);
    if (ok && out) {
        json_object_set_new(out, name,
            json_pack("{s:I, s:s, s:o}", "rows", (json_int_t)t->rows, "types", types_text(t, types, sizeof types),
                "columns", columns_json(t, r)));
    } else if (ok) {
        term_count(n, sizeof n, (double)t->rows);
        printf("%-9s %s rows of %lld columns (%s)\n", name, n, (long long)t->width, types_text(t, types, sizeof types));
        print_columns(t, r);
    }
    free(r);
    return ok;
}

// Samples

typedef struct {
    int64_t step, gaps, longest, longest_at; // the usual step between samples, and longer ones
} gaps;

static int by_value(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

// The usual step is the median.
static bool find_gaps(const dataset *d, gaps *g, err *e) {
    *g = (gaps){0};
    if (!d->time || d->samples < 2) return true;
    int64_t n = d->samples - 1, *step = malloc((size_t)n * sizeof *step);
    if (!step) return err_run(e, "out of memory for %lld steps", (long long)n);
    for (int64_t i = 0; i < n; i++) step[i] = d->time[i + 1] - d->time[i];
    for (int64_t i = 0; i < n; i++)
        if (step[i] > g->longest) {
            g->longest = step[i];
            g->longest_at = d->time[i];
        }
    qsort(step, (size_t)n, sizeof *step, by_value);
    g->step = step[n / 2];
    for (int64_t i = n; i-- > 0 && step[i] > g->step;) g->gaps++;
    free(step);
    return true;
}

typedef struct {
    double least, most; // of the samples, and of the means that are drawn
    double least_mean, most_mean;
} drawn;

// Means over SPARK stretches of samples, as heights from the least to the most. Where all samples are equal, their
// means are too, whatever the sums were rounded to.
static drawn print_spark(const char *name, const dataset *d, double (*at)(const dataset *d, int64_t i)) {
    static const char heights[] = "_.,-~:=+*#";
    double mean[SPARK], least = INFINITY, most = -INFINITY;
    drawn r = {INFINITY, -INFINITY, 0, 0};
    int n = d->samples < SPARK ? (int)d->samples : SPARK;
    for (int k = 0; k < n; k++) {
        int64_t from = d->samples * k / n, to = d->samples * (k + 1) / n;
        mean[k] = 0;
        for (int64_t i = from; i < to; i++) {
            mean[k] += at(d, i);
            r.least = fmin(r.least, at(d, i));
            r.most = fmax(r.most, at(d, i));
        }
        mean[k] /= (double)(to - from);
        least = fmin(least, mean[k]);
        most = fmax(most, mean[k]);
    }
    for (int k = 0; r.least == r.most && k < n; k++) least = most = mean[k] = r.least;
    r.least_mean = least;
    r.most_mean = most;
    printf("%-9s ", name);
    for (int k = 0; k < n; k++) {
        double place = most > least ? (mean[k] - least) / (most - least) : 0.5;
        bool finite = place >= 0 && place <= 1;
        putchar(finite ? heights[(int)(place * (double)(sizeof heights - 2) + 0.5)] : '?');
    }
    return r;
}

static double price_at(const dataset *d, int64_t i) {
    return (double)d->price[i];
}

static double label_at(const dataset *d, int64_t i) {
    return (double)d->label[i];
}

// Memory

static size_t ring_bytes(const dataset *d) {
    loader_options o = {.batch = BATCH_ROWS, .prefetch = AHEAD, .workers = AHEAD};
    for (int i = 0; i < d->streams; i++) o.window[i] = set_window(d, i);
    return loader_measure(d, &o);
}

static void count_classes(const dataset *d, int64_t *count) {
    for (int64_t i = 0; d->label && i < d->samples; i++) count[d->label[i]]++;
}

static int64_t last_close(const dataset *d, int64_t series) {
    const bar_table *t = &d->stream[0].bars;
    return t->time[2 * t->start[series + 1] - 1];
}

// The last closes of the instruments, where they differ.
static void print_ends(const dataset *d) {
    char when[32];
    bool differ = false;
    for (int64_t k = 1; k < d->panel; k++) differ |= last_close(d, k) != last_close(d, 0);
    for (int64_t k = 0; differ && k < d->panel; k++)
        printf("%s%s closed %s", k ? ", " : "newest    ", d->panel_names[k],
            when_text(when, sizeof when, last_close(d, k)));
    if (differ) puts(" UTC");
}

// The bars that were kept, the instruments, and the newest bars.
static void print_bars(const dataset *d) {
    char a[32], span[32];
    if (!d->streams || !d->stream[0].bars.count) return;
    for (int i = 0; i < d->streams; i++) {
        term_count(a, sizeof a, (double)d->stream[i].bars.count);
        printf("%s%s %s of %s", i ? ", " : "bars      ", a, d->stream[i].name,
            when_span_text(span, sizeof span, d->span[i]));
    }
    term_count(a, sizeof a, (double)d->unlabelled);
    printf("; %s without a label\n", a);
    for (int64_t k = 0; k < d->panel; k++) {
        term_count(a, sizeof a, (double)(d->stream[0].bars.start[k + 1] - d->stream[0].bars.start[k]));
        printf("%s%s %s", k ? ", " : "symbols   ", d->panel_names[k], a);
    }
    if (d->panel) puts(" bars");
    print_ends(d);
}

static void print_samples(const dataset *d, const gaps *g) {
    char a[32], b[32];
    int64_t count[SET_CLASSES_MOST] = {0};
    term_count(a, sizeof a, (double)d->samples);
    printf("samples   %s", a);
    if (d->time)
        printf(", %s to %s UTC", when_text(a, sizeof a, d->time[0]), when_text(b, sizeof b, d->time[d->samples - 1]));
    putchar('\n');
    if (d->time) printf("steps     usually %s; ", when_span_text(a, sizeof a, g->step));
    if (d->time) {
        term_count(b, sizeof b, (double)g->gaps);
        printf("%s longer (nights, weekends, gaps)", b);
        if (g->gaps)
            printf(", the longest %s from %s", when_span_text(a, sizeof a, g->longest),
                when_text(b, sizeof b, g->longest_at));
        putchar('\n');
    }
    count_classes(d, count);
    for (int k = 0; k < d->classes; k++) {
        term_count(b, sizeof b, (double)count[k]);
        printf("%s%s %s (%.1f %%)", k ? ", " : "classes   ", dataset_class_name(d, k, a), b,
            100 * (double)count[k] / (double)d->samples);
    }
    if (d->classes) putchar('\n');
    if (d->target) printf("targets   %lld a sample\n", (long long)d->target_width);
    print_bars(d);
    if (d->price && d->panel < 2) {
        drawn r = print_spark("price", d, price_at);
        printf("  %.7g to %.7g\n", r.least, r.most);
    }
    if (!d->label) return;
    drawn r = print_spark("label", d, label_at);
    if (r.least == r.most)
        printf("  all are %s\n", dataset_class_name(d, (int)r.least, a));
    else
        printf("  mean number of the class (0 is %s, %d is %s): %.3g to %.3g over time\n", dataset_class_name(d, 0, a),
            d->classes - 1, dataset_class_name(d, d->classes - 1, b), r.least_mean, r.most_mean);
}

static bool print_set(const dataset *d, size_t file, double opened, err *e) {
    gaps g;
    if (!find_gaps(d, &g, e)) return false;
    printf("%s: dataset, %.1f MB, mapped in %.1f ms%s\n", d->name, (double)file / 1e6, 1e3 * opened,
        d->raw ? ", scaled when trained on" : "");
    print_samples(d, &g);
    const char *forced = json_string_value(json_object_get(d->about, "forced"));
    if (forced) printf("forced    %s: kept although refused\n", forced);
    double all = (double)dataset_bytes(d) / 1e6;
    printf("memory    %.1f MB mapped on the CPU, none of it copied; %.1f MB on a card; %.1f MB of host memory for "
           "batches of "
           "%d\n",
        all, all, (double)ring_bytes(d) / 1e6, BATCH_ROWS);
    bool ok = true;
    for (int i = 0; ok && i < d->streams; i++) ok = show_table(&d->stream[i].series, d->stream[i].name, NULL, e);
    return ok && (!d->vector.width || show_table(&d->vector, "vector", NULL, e));
}

static bool print_set_json(const dataset *d, size_t file, double opened, err *e) {
    gaps g;
    char a[32], b[32];
    int64_t count[SET_CLASSES_MOST] = {0};
    if (!find_gaps(d, &g, e)) return false;
    json_t *tables = json_object(), *classes = json_object();
    bool ok = true;
    for (int i = 0; ok && i < d->streams; i++) ok = show_table(&d->stream[i].series, d->stream[i].name, tables, e);
    ok = ok && (!d->vector.width || show_table(&d->vector, "vector", tables, e));
    count_classes(d, count);
    for (int k = 0; k < d->classes; k++)
        json_object_set_new(classes, dataset_class_name(d, k, a), json_integer((json_int_t)count[k]));
    json_t *all = json_pack("{s:s, s:I, s:o, s:I, s:s?, s:s?, s:I, s:I, s:I, s:b, s:o, s:I, s:I, s:I, s:o, s:O?}",
        "set", d->name, "file_bytes", (json_int_t)file, "map_ms", json_number(1e3 * opened), "samples",
        (json_int_t)d->samples, "first", d->time ? when_text(a, sizeof a, d->time[0]) : NULL, "last",
        d->time ? when_text(b, sizeof b, d->time[d->samples - 1]) : NULL, "step", (json_int_t)g.step, "gaps",
        (json_int_t)g.gaps, "longest_gap", (json_int_t)g.longest, "raw", d->raw, "classes", classes, "targets",
        (json_int_t)d->target_width, "data_bytes", (json_int_t)dataset_bytes(d), "ring_bytes",
        (json_int_t)ring_bytes(d), "tables", tables, "about", d->about);
    json_t *symbols = json_array();
    for (int64_t k = 0; k < d->panel; k++) json_array_append_new(symbols, json_string(d->panel_names[k]));
    if (all) json_object_set_new(all, "unlabelled", json_integer((json_int_t)d->unlabelled));
    if (all) json_object_set_new(all, "series", symbols);
    if (!ok) {
        json_decref(all);
        return false;
    }
    return json_line(stdout, all) || err_run(e, "out of memory for the summary");
}

static bool is_weights(const char *path) {
    static const char ending[] = ".safetensors";
    size_t n = strlen(path), m = sizeof ending - 1;
    return n > m && strcmp(path + n - m, ending) == 0;
}

static bool run(const cli_options *o, err *e) {
    struct stat st = {0};
    npz z;
    if (o->words < 1) return err_input(e, "no file given; name a dataset, an .npz, a run or a checkpoint");
    if (stat(o->word[0], &st) == 0 && S_ISDIR(st.st_mode)) return look_print_run(o->word[0], o->json, e);
    if (is_weights(o->word[0])) return look_print_weights(o->word[0], o->json, e);
    if (!npz_open(&z, o->word[0], e)) return false;
    bool is_set = npz_find(&z, set_mark) != NULL, ok = npz_check(&z, NULL, NULL, e);
    if (ok && !is_set) show_entries(&z, o->json);
    npz_close(&z);
    if (!ok || !is_set) return ok;
    double before = clock_seconds();
    dataset *d = set_open(o->word[0], e);
    double opened = clock_seconds() - before;
    if (!d) return false;
    stat(o->word[0], &st);
    ok = o->json ? print_set_json(d, (size_t)st.st_size, opened, e) : print_set(d, (size_t)st.st_size, opened, e);
    dataset_free(d);
    return ok;
}

const cli_command cli_inspect = {"inspect", "FILE|RUN", "what a dataset, an .npz, a run or a checkpoint holds",
    "Of a dataset: its samples, classes, steps of time, a line of price and label, the memory it takes, and the range "
    "of\n"
    "every column. Of another .npz or .npy: its arrays. Every byte is checked against the file's sums.\n"
    "Of a run's directory: how it stands, its best epoch, what its monitor saw and its files. Of .safetensors: the\n"
    "weights; of a checkpoint also where it stands, its bytes checked against their sum.\n",
    NULL, NULL, 1, run, NULL, NULL};
