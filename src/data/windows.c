#include "data/windows.h"

#include "data/label.h"
#include "data/set.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

// Finding

static bool is_table(const npz_entry *n, int rank) {
    return n->kind == NPZ_ARRAY && n->header.rank == rank && npy_converts(n->header.type, NPY_F32);
}

static bool add_stream(windows *w, const npz *z, const char *name, const npz_entry *n, err *e) {
    if (w->streams == STREAMS_MOST)
        return err_input(e, "%s: more than %d streams; name those that are wanted with --names", z->path, STREAMS_MOST);
    if (!set_name_ok(name))
        return err_input(e, "%s: \"%.40s\" cannot name a stream; use up to %d letters, digits, _ and -", z->path, name,
            SET_NAME_MOST);
    for (int i = 0; i < w->streams; i++)
        if (!strcmp(w->name[i], name)) return err_input(e, "%s: two streams are named %s; rename one", z->path, name);
    w->name[w->streams] = name;
    w->stream[w->streams++] = n;
    return true;
}

static const npz_entry *first_of(const npz *z, const char *const *names, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const npz_entry *n = npz_find(z, names[i]);
        if (n && n->kind == NPZ_ARRAY) return n;
    }
    return NULL;
}

static bool find_usual(windows *w, const npz *z, err *e) {
    static const char *const label[] = {"labels", "label", "y"}, *const target[] = {"targets", "target"},
                             *const time[] = {"time", "times", "timestamps"};
    for (int64_t i = 0; i < z->entries; i++) {
        const npz_entry *n = &z->entry[i];
        if (strncmp(n->name, "x_", 2) != 0) continue;
        if (is_table(n, 3) && !add_stream(w, z, n->name + 2, n, e)) return false;
        if (is_table(n, 2) && w->vector)
            return err_input(e, "%s: %s and %s could both be the vector; say which with --names vector=ARRAY,...",
                z->path, w->vector->name, n->name);
        if (is_table(n, 2)) w->vector = n;
    }
    w->label = first_of(z, label, sizeof label / sizeof *label);
    w->target = first_of(z, target, sizeof target / sizeof *target);
    w->time = first_of(z, time, sizeof time / sizeof *time);
    return true;
}

// One "role=array".
static bool find_named(windows *w, const npz *z, const char *role, const char *array, err *e) {
    const npz_entry *n = npz_want(z, array, e);
    if (!n) return false;
    const struct {
        const char *role;
        const npz_entry **to;
    } lists[] = {{"label", &w->label}, {"labels", &w->label}, {"target", &w->target}, {"time", &w->time},
        {"vector", &w->vector}};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        if (strcmp(role, lists[i].role) != 0) continue;
        *lists[i].to = n;
        return true;
    }
    if (!is_table(n, 3))
        return err_input(
            e, "%s: %s is to be stream %s, but it is not [samples, steps, columns] of numbers", z->path, array, role);
    return add_stream(w, z, role, n, e);
}

static bool find_all_named(windows *w, const npz *z, const char *names, arena *a, err *e) {
    char *rest = NULL, *text = arena_text(a, names);
    for (char *item = strtok_r(text, ",", &rest); item; item = strtok_r(NULL, ",", &rest)) {
        char *equals = strchr(item, '=');
        if (!equals || equals == item || !equals[1])
            return err_input(
                e, "--names %s: \"%s\" is not ROLE=ARRAY, such as fast=x_fast or label=labels", names, item);
        *equals = 0;
        if (!find_named(w, z, item, equals + 1, e)) return false;
    }
    return true;
}

// Shapes

static bool same_samples(const windows *w, const npz *z, const npz_entry *n, err *e) {
    if (!n || n->header.dim[0] == w->samples) return true;
    return err_input(e, "%s: %s has %" PRId64 " samples and others %" PRId64 "; all must have the same", z->path,
        n->name, n->header.dim[0], w->samples);
}

static bool check_rank(const npz *z, const npz_entry *n, int least, int most, const char *what, err *e) {
    if (!n || (n->kind == NPZ_ARRAY && n->header.rank >= least && n->header.rank <= most &&
                  npy_converts(n->header.type, NPY_F32)))
        return true;
    return err_input(e, "%s: %s cannot be the %s: it has %d dimensions of type %s", z->path, n->name, what,
        n->header.rank, npy_type_name(n->header.type));
}

// Whether what is missing is there as a pickle: an entry of this name or, where it ends with _, of this beginning.
static bool is_pickled(const npz *z, const char *name, err *e) {
    size_t n = strlen(name);
    for (int64_t i = 0; i < z->entries; i++) {
        const npz_entry *x = &z->entry[i];
        bool meant = name[n - 1] == '_' ? !strncmp(x->name, name, n) : !strcmp(x->name, name);
        if (meant && x->kind == NPZ_PICKLE) return !npz_want(z, x->name, e);
    }
    return false;
}

static bool check_shapes(windows *w, const npz *z, err *e) {
    if (!w->streams && !w->vector && is_pickled(z, "x_", e)) return false;
    if (!w->label && !w->target && is_pickled(z, "labels", e)) return false;
    if (!w->streams && !w->vector)
        return err_input(e,
            "%s: holds no windows: no array x_NAME of [samples, steps, columns]; say which arrays are what with "
            "--names fast=ARRAY,label=ARRAY",
            z->path);
    if (!w->label && !w->target)
        return err_input(e,
            "%s: holds no array named labels; say which arrays are what with --names fast=ARRAY,label=ARRAY", z->path);
    if (!check_rank(z, w->vector, 2, 2, "vector", e) || !check_rank(z, w->label, 1, 1, "labels", e) ||
        !check_rank(z, w->target, 1, 2, "targets", e) || !check_rank(z, w->time, 1, 1, "times", e))
        return false;
    w->samples = (w->label ? w->label : w->target)->header.dim[0];
    if (w->samples < 1 || w->samples > INT32_MAX)
        return err_input(e, "%s: %" PRId64 " samples; 1 to %d can be used", z->path, w->samples, INT32_MAX);
    for (int i = 0; i < w->streams; i++) {
        const npy_header *h = &w->stream[i]->header;
        if (!same_samples(w, z, w->stream[i], e)) return false;
        if (h->dim[1] < 1 || h->dim[2] < 1 || h->dim[1] > 100000 || h->dim[2] > 65536)
            return err_input(e, "%s: %s has windows of %" PRId64 " steps of %" PRId64 " columns, which cannot be used",
                z->path, w->stream[i]->name, h->dim[1], h->dim[2]);
    }
    if (w->vector && (w->vector->header.dim[1] < 1 || w->vector->header.dim[1] > 65536))
        return err_input(e, "%s: %s has %" PRId64 " columns, which cannot be used", z->path, w->vector->name,
            w->vector->header.dim[1]);
    return same_samples(w, z, w->vector, e) && same_samples(w, z, w->target, e) && same_samples(w, z, w->time, e);
}

bool windows_find(windows *w, const npz *z, const char *names, arena *a, err *e) {
    *w = (windows){0};
    if (!(names ? find_all_named(w, z, names, a, e) : find_usual(w, z, e))) return false;
    return check_shapes(w, z, e);
}

// Labels

static int by_value(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

// The values that occur, rising; at most SET_CLASSES_MOST + 1 of them.
static int distinct(const int64_t *value, int64_t count, int64_t *found) {
    int n = 0;
    for (int64_t i = 0; i < count && n <= SET_CLASSES_MOST; i++) {
        int k = 0;
        while (k < n && found[k] != value[i]) k++;
        if (k == n) found[n++] = value[i];
    }
    qsort(found, (size_t)n, sizeof *found, by_value);
    return n;
}

// Values of 5 classes, 0..4 or -2..2, as 0..4; some may not occur.
static bool as_five(const windows *w, const npz *z, const int64_t *found, int n, int64_t *least, err *e) {
    *least = found[0] < 0 ? -2 : 0;
    if (found[0] >= *least && found[n - 1] <= *least + 4) return true;
    return err_input(e, "%s: %s has values from %" PRId64 " to %" PRId64 "; --classes 3 turns 0..4 or -2..2 into three",
        z->path, w->label->name, found[0], found[n - 1]);
}

static int to_three(
    const windows *w, const npz *z, const int64_t *value, const int64_t *found, int n, int32_t *label, err *e) {
    int64_t least;
    if (!as_five(w, z, found, n, &least, e)) return 0;
    for (int64_t i = 0; i < w->samples; i++) label[i] = (int32_t)(value[i] - least);
    label_to_three(label, w->samples);
    return 3;
}

static int to_classes(const windows *w, const int64_t *value, const int64_t *found, int n, int32_t *label) {
    for (int64_t i = 0; i < w->samples; i++) {
        int k = 0;
        while (found[k] != value[i]) k++;
        label[i] = k;
    }
    return n;
}

int windows_labels(const windows *w, const npz *z, bool three, int32_t *label, const char ***names, arena *a, err *e) {
    static const char *const ways[] = {"DOWN", "NEUTRAL", "UP"};
    CHECK(w->samples > 0, "labels of no samples");
    int64_t found[SET_CLASSES_MOST + 1], *value = malloc((size_t)w->samples * sizeof *value);
    int n = 0, classes = 0;
    if (!value) err_run(e, "%s: no memory for %" PRId64 " labels", z->path, w->samples);
    if (!value || !npz_read(z, w->label, NULL, NPY_I64, value, e)) goto done;
    n = distinct(value, w->samples, found);
    if (n < 2 || n > SET_CLASSES_MOST) {
        err_input(e, "%s: %s has %s different values; labels are 2 to %d classes", z->path, w->label->name,
            n < 2 ? "less than 2" : "too many", SET_CLASSES_MOST);
        goto done;
    }
    classes = three ? to_three(w, z, value, found, n, label, e) : to_classes(w, value, found, n, label);
    *names = arena_array(a, (size_t)classes, sizeof **names);
    for (int k = 0; k < classes; k++) (*names)[k] = three ? ways[k] : arena_format(a, "%" PRId64, found[k]);
done:
    free(value);
    return classes;
}

// Times

// Units in a second; negative: seconds in a unit.
static int64_t units_a_second(const npy_header *h, int64_t sample) {
    static const struct {
        const char *unit;
        int64_t a_second;
    } units[] = {{"s", 1}, {"ms", 1000}, {"us", 1000000}, {"ns", 1000000000}, {"m", -60}, {"h", -3600}, {"D", -86400}};
    for (size_t i = 0; h->type == NPY_TIME && i < sizeof units / sizeof *units; i++)
        if (!strcmp(h->unit, units[i].unit)) return units[i].a_second;
    if (h->type == NPY_TIME) return 0;
    // By magnitude, as bar files are read: seconds have up to 11 digits.
    int64_t by = 1;
    for (; by <= 1000000000 && sample / by >= 100000000000; by *= 1000) continue;
    return by <= 1000000000 ? by : 0;
}

static void reach(const windows *w, int64_t horizon, const int64_t *time, int64_t *end) {
    int64_t last = w->samples - 1;
    for (int64_t i = 0; i < w->samples; i++) end[i] = time[horizon < last - i ? i + horizon : last];
}

bool windows_times(const windows *w, const npz *z, int64_t horizon, int64_t *time, int64_t *end, err *e) {
    if (!npz_read(z, w->time, NULL, NPY_I64, time, e)) return false;
    int64_t by = units_a_second(&w->time->header, time[w->samples - 1]);
    if (!by)
        return err_input(
            e, "%s: %s is not in a unit from days to nanoseconds; save it as datetime64[s]", z->path, w->time->name);
    for (int64_t i = 0; i < w->samples; i++) {
        if (by < 0 && __builtin_mul_overflow(time[i], -by, &time[i]))
            return err_input(e, "%s: time %" PRId64 " of %s is out of range", z->path, i, w->time->name);
        if (by > 1) time[i] = time[i] / by - (time[i] % by < 0);
        if (i && time[i] < time[i - 1])
            return err_input(e, "%s: %s[%" PRId64 "] is earlier than the one before it; sort the samples by time",
                z->path, w->time->name, i);
    }
    reach(w, horizon, time, end);
    return true;
}

// Where they lie

typedef struct {
    npz npz;
    arena arena;
} opened;

static void release(void *owner) {
    opened *o = owner;
    arena_done(&o->arena);
    npz_close(&o->npz);
    free(o);
}

static const void *lying(const npz *z, const npz_entry *n, err *e) {
    const npy_header *h = &n->header;
    const void *data = npz_data(z, n);
    bool plain = data && h->type == NPY_F32 && !h->swapped && !h->fortran && (uintptr_t)data % sizeof(float) == 0;
    if (plain) return data;
    err_input(e,
        "%s: %s is not f32, stored and aligned, so it cannot be trained on where it lies; run `tradewind import %s -o "
        "SET.npz` and train on SET.npz",
        z->path, n->name, z->path);
    return NULL;
}

static bool open_streams(dataset *d, const npz *z, const windows *w, size_t *at, err *e) {
    d->streams = w->streams;
    for (int i = 0; i < w->streams; i++) {
        const npy_header *h = &w->stream[i]->header;
        int64_t T = h->dim[1];
        const void *data = lying(z, w->stream[i], e);
        if (!data) return false;
        if (T > INT32_MAX / w->samples)
            return err_input(e, "%s: %s has more than %d rows; import it", z->path, w->stream[i]->name, INT32_MAX);
        int32_t *row = dataset_take(d, at, w->samples, sizeof *row),
                *first = dataset_take(d, at, w->samples, sizeof *row);
        for (int64_t k = 0; k < w->samples; k++) {
            first[k] = (int32_t)(k * T);
            row[k] = (int32_t)(k * T + T - 1);
        }
        d->stream[i] = (stream){.name = w->name[i], .row = row, .first = first};
        d->window[i] = T;
        d->stream[i].series = table_of(COLUMN_F32, w->samples * T, h->dim[2], data);
    }
    return true;
}

static bool open_rest(dataset *d, opened *o, const windows *w, size_t *at, err *e) {
    const npz *z = &o->npz;
    const char **names = NULL;
    if (w->vector) {
        const void *data = lying(z, w->vector, e);
        if (!data) return false;
        d->vector = table_of(COLUMN_F32, w->samples, w->vector->header.dim[1], data);
    }
    if (w->target) {
        d->target = lying(z, w->target, e);
        d->target_width = w->target->header.rank > 1 ? w->target->header.dim[1] : 1;
        if (!d->target) return false;
    }
    int32_t *label = dataset_take(d, at, w->samples, sizeof *label);
    int64_t *time = dataset_take(d, at, w->samples, sizeof *time), *end = dataset_take(d, at, w->samples, sizeof *end);
    if (w->time && !windows_times(w, z, d->horizon, time, end, e)) return false;
    // Each window is a series of its own, so how far labels reach cannot be counted in rows.
    for (int64_t i = 0; !w->time && i < w->samples; i++) end[i] = (time[i] = i) + d->horizon;
    d->time = time;
    d->end = end;
    if (!w->label) return true;
    d->classes = windows_labels(w, z, false, label, &names, &o->arena, e);
    d->label = label;
    d->class_names = names;
    return d->classes > 0;
}

dataset *windows_open(const char *path, err *e) {
    windows w;
    size_t at = 0;
    opened *o = calloc(1, sizeof *o);
    if (!o) err_run(e, "out of memory for a dataset");
    if (!o || !npz_open(&o->npz, path, e)) {
        free(o);
        return NULL;
    }
    arena_init(&o->arena);
    if (!windows_find(&w, &o->npz, NULL, &o->arena, e)) {
        release(o);
        return NULL;
    }
    size_t list = dataset_room(w.samples, sizeof(int32_t));
    dataset *d = dataset_new((size_t)(2 * w.streams + 1) * list + 2 * dataset_room(w.samples, sizeof(int64_t)), e);
    if (!d) {
        release(o);
        return NULL;
    }
    d->owner = o;
    d->release = release;
    d->name = o->npz.path;
    d->samples = w.samples;
    d->horizon = 1;
    bool ok = open_streams(d, &o->npz, &w, &at, e) && open_rest(d, o, &w, &at, e) && dataset_check(d, path, e);
    if (ok) return d;
    dataset_free(d);
    return NULL;
}
