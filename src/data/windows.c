#include "data/windows.h"

#include "data/label.h"
#include "data/set.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

// Finding

static bool is_table(const npz_entry *n, int rank) {
    return n->kind == NPZ_ARRAY && n->header.rank == rank && npy_converts(n->header.type, NPY_F32);
}

static bool add_stream(windows *w, const npz *z, const char *name, const npz_entry *n, err *e) {
    if (w->streams == STREAMS_MOST)
        return err_input(
            e, "%s: more than %d streams; import with --names skip=ARRAY to leave some out", z->path, STREAMS_MOST);
    if (!set_name_ok(name))
        return err_input(e, "%s: \"%.40s\" cannot name a stream; use up to %d letters, digits, _ and -, and not target",
            z->path, name, SET_NAME_MOST);
    for (int i = 0; i < w->streams; i++)
        if (!strcmp(w->name[i], name)) return err_input(e, "%s: two streams are named %s; rename one", z->path, name);
    w->name[w->streams] = name;
    w->stream[w->streams++] = n;
    return true;
}

static bool is_list(const npz_entry *n) {
    return n->kind == NPZ_ARRAY || n->kind == NPZ_TEXT;
}

static bool is_used(const windows *w, const npz_entry *n) {
    for (int i = 0; i < w->streams; i++)
        if (w->stream[i] == n) return true;
    for (int i = 0; i < w->skips; i++)
        if (w->skip[i] == n) return true;
    return n == w->vector || n == w->label || n == w->target || n == w->time;
}

// The first that is there and has no other role.
static const npz_entry *first_of(const windows *w, const npz *z, const char *const *names, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const npz_entry *n = npz_find(z, names[i]);
        if (n && is_list(n) && !is_used(w, n)) return n;
    }
    return NULL;
}

static const char *shape_text(const npy_header *h, char *out, size_t room) {
    size_t at = (size_t)snprintf(out, room, "[");
    for (int i = 0; i < h->rank && at < room; i++)
        at += (size_t)snprintf(out + at, room - at, "%s%" PRId64, i ? ", " : "", h->dim[i]);
    if (at < room) snprintf(out + at, room - at, "]");
    return out;
}

// x_NAME that nobody gave a role: a stream or the vector, by its shape.
static bool find_x(windows *w, const npz *z, const npz_entry *n, bool vector_given, err *e) {
    char shape[256];
    for (int i = 0; i < w->streams; i++)
        if (w->given[i] && !strcmp(w->name[i], n->name + 2)) return true;
    if (is_table(n, 3)) return add_stream(w, z, n->name + 2, n, e);
    if (!is_table(n, 2))
        return err_input(e,
            "%s: %s is %s of %s, neither [samples, steps, columns] nor [samples, columns] of numbers; change it, or "
            "import with --names skip=%s",
            z->path, n->name, shape_text(&n->header, shape, sizeof shape),
            n->kind == NPZ_OTHER ? "a type that is not read" : npy_type_name(n->header.type), n->name);
    if (vector_given) return true;
    if (w->vector)
        return err_input(e, "%s: %s and %s could both be the vector; import with --names vector=ARRAY", z->path,
            w->vector->name, n->name);
    w->vector = n;
    return true;
}

// Finds the remaining arrays by their names.
static bool find_usual(windows *w, const npz *z, err *e) {
    static const char *const label[] = {"labels", "label", "y"}, *const target[] = {"targets", "target"},
                             *const time[] = {"time", "times", "timestamps"};
    bool vector_given = w->vector != NULL;
    for (int64_t i = 0; i < z->entries; i++) {
        const npz_entry *n = &z->entry[i];
        if (strncmp(n->name, "x_", 2) != 0 || n->kind == NPZ_PICKLE || is_used(w, n)) continue;
        if (!find_x(w, z, n, vector_given, e)) return false;
    }
    if (!w->label) w->label = first_of(w, z, label, sizeof label / sizeof *label);
    if (!w->target) w->target = first_of(w, z, target, sizeof target / sizeof *target);
    if (!w->time) w->time = first_of(w, z, time, sizeof time / sizeof *time);
    return true;
}

// One "role=array".
static bool find_named(windows *w, const npz *z, const char *role, const char *array, err *e) {
    const npz_entry *n = !strcmp(role, "skip") ? npz_find(z, array) : npz_want(z, array, e);
    const struct {
        const char *role;
        const npz_entry **to;
    } lists[] = {{"label", &w->label}, {"labels", &w->label}, {"target", &w->target}, {"time", &w->time},
        {"vector", &w->vector}};
    if (!strcmp(role, "skip")) {
        if (!n || w->skips == WINDOWS_SKIPS_MOST)
            return err_input(
                e, "%s: --names skip=%s: %s", z->path, array, n ? "one too many" : "there is no such array");
        w->skip[w->skips++] = n;
        return true;
    }
    if (!n) return false;
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        if (strcmp(role, lists[i].role) != 0) continue;
        *lists[i].to = n;
        return true;
    }
    if (!is_table(n, 3))
        return err_input(
            e, "%s: %s is to be stream %s, but it is not [samples, steps, columns] of numbers", z->path, array, role);
    if (!add_stream(w, z, role, n, e)) return false;
    w->given[w->streams - 1] = true;
    return true;
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

bool windows_uses(const windows *w, const npz_entry *n) {
    for (int i = 0; i < w->skips; i++)
        if (w->skip[i] == n) return false;
    return is_used(w, n);
}

// Shapes

enum { ROLES_MOST = STREAMS_MOST + 4 };

// All arrays must have as many samples as most of them have; the first that has not is to blame.
static bool count_samples(windows *w, const npz *z, err *e) {
    const npz_entry *all[ROLES_MOST] = {w->vector, w->label, w->target, w->time}, *most = NULL;
    int most_votes = 0;
    for (int i = 0; i < w->streams; i++) all[4 + i] = w->stream[i];
    for (int i = ROLES_MOST; i-- > 0;) {
        int votes = 0;
        for (int k = 0; all[i] && k < ROLES_MOST; k++)
            votes += all[k] && all[k]->header.dim[0] == all[i]->header.dim[0];
        if (votes <= most_votes) continue;
        most_votes = votes;
        most = all[i];
    }
    CHECK(most, "windows without arrays");
    w->samples = most->header.dim[0];
    for (int i = 0; i < ROLES_MOST; i++)
        if (all[i] && all[i]->header.dim[0] != w->samples)
            return err_input(e, "%s: %s has %" PRId64 " samples and %s has %" PRId64 "; all must have the same",
                z->path, all[i]->name, all[i]->header.dim[0], most->name, w->samples);
    if (w->samples >= 1 && w->samples <= INT32_MAX) return true;
    return err_input(e, "%s: %" PRId64 " samples; 1 to %d can be used", z->path, w->samples, INT32_MAX);
}

static bool check_rank(const npz *z, const npz_entry *n, int least, int most, const char *what, err *e) {
    if (!n || (n->kind == NPZ_ARRAY && n->header.rank >= least && n->header.rank <= most &&
                  npy_converts(n->header.type, NPY_F32)))
        return true;
    return err_input(e, "%s: %s cannot be the %s: it has %d dimensions of type %s", z->path, n->name, what,
        n->header.rank, npy_type_name(n->header.type));
}

// True if a missing array is there as a pickle: an entry of this name or, where it ends with _, of this beginning.
static bool is_pickled(const npz *z, const char *name, err *e) {
    size_t n = strlen(name);
    for (int64_t i = 0; i < z->entries; i++) {
        const npz_entry *x = &z->entry[i];
        bool meant = name[n - 1] == '_' ? !strncmp(x->name, name, n) : !strcmp(x->name, name);
        if (meant && x->kind == NPZ_PICKLE) return !npz_want(z, x->name, e);
    }
    return false;
}

// Refuses files without inputs, or without labels and targets.
static bool check_there(const windows *w, const npz *z, err *e) {
    if (!w->streams && !w->vector && is_pickled(z, "x_", e)) return false;
    if (!w->label && !w->target && is_pickled(z, "labels", e)) return false;
    if (!w->streams && !w->vector)
        return err_input(e,
            "%s: holds no windows: no array x_NAME of [samples, steps, columns]; import with --names "
            "fast=ARRAY,label=ARRAY to say which arrays are what",
            z->path);
    if (!w->label && !w->target)
        return err_input(
            e, "%s: holds no array named labels, label, y or targets; import with --names label=ARRAY", z->path);
    return true;
}

static bool check_shapes(windows *w, const npz *z, err *e) {
    bool text = w->label && w->label->kind == NPZ_TEXT && w->label->header.rank == 1;
    if (!check_there(w, z, e)) return false;
    if (!check_rank(z, w->vector, 2, 2, "vector", e) || (!text && !check_rank(z, w->label, 1, 1, "labels", e)) ||
        !check_rank(z, w->target, 1, 2, "targets", e) || !check_rank(z, w->time, 1, 1, "times", e))
        return false;
    for (int i = 0; i < w->streams; i++) {
        const npy_header *h = &w->stream[i]->header;
        if (h->dim[1] < 1 || h->dim[2] < 1 || h->dim[1] > 100000 || h->dim[2] > 65536)
            return err_input(e, "%s: %s has windows of %" PRId64 " steps of %" PRId64 " columns, which cannot be used",
                z->path, w->stream[i]->name, h->dim[1], h->dim[2]);
    }
    if (w->vector && (w->vector->header.dim[1] < 1 || w->vector->header.dim[1] > 65536))
        return err_input(e, "%s: %s has %" PRId64 " columns, which cannot be used", z->path, w->vector->name,
            w->vector->header.dim[1]);
    return count_samples(w, z, e);
}

bool windows_find(windows *w, const npz *z, const char *names, arena *a, err *e) {
    *w = (windows){0};
    if (names && !find_all_named(w, z, names, a, e)) return false;
    return find_usual(w, z, e) && check_shapes(w, z, e);
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

// Strings

// The order that names of directions have.
static int way_of(const char *text) {
    static const char *const ways[] = {"STRONG_DOWN", "DOWN", "NEUTRAL", "UP", "STRONG_UP"};
    for (int k = 0; k < 5; k++)
        if (!strcasecmp(text, ways[k])) return k;
    return -1;
}

static int by_letters(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int by_text(const void *a, const void *b) {
    const char *x = *(const char *const *)a, *y = *(const char *const *)b;
    int i = way_of(x), k = way_of(y);
    return i >= 0 && k >= 0 && i != k ? i - k : strcmp(x, y);
}

// The different strings: directions from down to up, where all are such, others by their letters.
static int distinct_texts(const char *const *text, int64_t count, const char **found) {
    int n = 0;
    for (int64_t i = 0; i < count && n <= SET_CLASSES_MOST; i++) {
        int k = 0;
        while (k < n && strcmp(found[k], text[i]) != 0) k++;
        if (k == n) found[n++] = text[i];
    }
    bool ways = true;
    for (int k = 0; k < n; k++) ways &= way_of(found[k]) >= 0;
    qsort(found, (size_t)n, sizeof *found, ways ? by_text : by_letters);
    return n;
}

// Strings as whole numbers that rise with their order; directions as 0..4. Their names stay in `a`.
static bool read_texts(
    const windows *w, const npz *z, bool three, int64_t *value, const char **found, arena *a, err *e) {
    err why = {0};
    const char *const *text = npz_read_text(z, w->label, a, &why);
    if (!text && why.kind == ERR_INPUT) return err_input(e, "%s; save the labels as whole numbers", why.text);
    if (!text) return err_run(e, "%s", why.text);
    int n = distinct_texts(text, w->samples, found);
    for (int64_t i = 0; n <= SET_CLASSES_MOST && i < w->samples; i++) {
        int way = way_of(text[i]), k = 0;
        if (three && way < 0)
            return err_input(e, "%s: --classes 3: label \"%.40s\" is none of STRONG_DOWN, DOWN, NEUTRAL, UP, STRONG_UP",
                z->path, text[i]);
        while (strcmp(found[k], text[i]) != 0) k++;
        value[i] = three ? way : k;
    }
    for (int64_t i = 0; n > SET_CLASSES_MOST && i < w->samples; i++) value[i] = i;
    return true;
}

static bool read_numbers(const windows *w, const npz *z, int64_t *value, err *e) {
    err why = {0};
    npy_type type = w->label->header.type;
    if (npz_read(z, w->label, NULL, NPY_I64, value, &why)) return true;
    if (why.kind == ERR_INPUT && (type == NPY_F16 || type == NPY_F32 || type == NPY_F64))
        return err_input(e, "%s; values to forecast are taken with import --names target=%s", why.text, w->label->name);
    *e = why;
    return false;
}

int windows_labels(const windows *w, const npz *z, bool three, int32_t *label, const char ***names, arena *a, err *e) {
    static const char *const ways[] = {"DOWN", "NEUTRAL", "UP"};
    CHECK(w->samples > 0, "labels of no samples");
    const char *text[SET_CLASSES_MOST + 1];
    int64_t found[SET_CLASSES_MOST + 1], *value = calloc((size_t)w->samples, sizeof *value);
    int n = 0, classes = 0;
    bool words = w->label->kind == NPZ_TEXT;
    if (!value) err_run(e, "%s: no memory for %" PRId64 " labels", z->path, w->samples);
    if (!value || !(words ? read_texts(w, z, three, value, text, a, e) : read_numbers(w, z, value, e))) goto done;
    n = distinct(value, w->samples, found);
    if (n < 2 || n > SET_CLASSES_MOST) {
        err_input(e, "%s: %s has %s different values; labels are 2 to %d classes", z->path, w->label->name,
            n < 2 ? "less than 2" : "too many", SET_CLASSES_MOST);
        goto done;
    }
    classes = three ? to_three(w, z, value, found, n, label, e) : to_classes(w, value, found, n, label);
    *names = arena_array(a, (size_t)classes, sizeof **names);
    for (int k = 0; k < classes; k++)
        (*names)[k] = three ? ways[k] : words ? text[k] : arena_format(a, "%" PRId64, found[k]);
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

bool windows_not_finite(const npz *z, const npz_entry *n, int64_t at, err *e) {
    const npy_header *h = &n->header;
    char place[96];
    int64_t row = at / h->dim[h->rank - 1], column = at % h->dim[h->rank - 1];
    snprintf(place, sizeof place, "%" PRId64 ", %" PRId64, row, column);
    if (h->rank == 3)
        snprintf(place, sizeof place, "%" PRId64 ", %" PRId64 ", %" PRId64, row / h->dim[1], row % h->dim[1], column);
    if (h->rank == 1) snprintf(place, sizeof place, "%" PRId64, at);
    return err_input(e, "%s: %s[%s] is not a finite number of f32; clean the data first", z->path, n->name, place);
}

// By their bits and in blocks, so that the look costs little more than reading the file.
static bool all_finite(const npz *z, const npz_entry *n, const float *x, err *e) {
    enum { BLOCK = 1 << 14 };
    for (int64_t at = 0, step; at < n->header.count; at += step) {
        step = n->header.count - at < BLOCK ? n->header.count - at : BLOCK;
        uint32_t bits, odd = 0;
        for (int64_t i = at; i < at + step; i++) {
            memcpy(&bits, &x[i], sizeof bits);
            odd |= (bits & 0x7f800000u) == 0x7f800000u;
        }
        for (int64_t i = at; odd && i < at + step; i++)
            if (!isfinite(x[i])) return windows_not_finite(z, n, i, e);
    }
    return true;
}

static const void *lying(const npz *z, const npz_entry *n, err *e) {
    const npy_header *h = &n->header;
    const void *data = npz_data(z, n);
    bool plain = data && h->type == NPY_F32 && !h->swapped && !h->fortran && (uintptr_t)data % sizeof(float) == 0;
    if (plain) return all_finite(z, n, data, e) ? data : NULL;
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
    d->counted = !w->time;
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
    d->sum = npz_sum(&o->npz);
    d->arrays = &o->npz;
    d->horizon = 1;
    bool ok = open_streams(d, &o->npz, &w, &at, e) && open_rest(d, o, &w, &at, e) && dataset_check(d, path, e);
    if (ok) return d;
    dataset_free(d);
    return NULL;
}
