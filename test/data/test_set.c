// Dataset files: what is written is what is mapped, in no time; what is no dataset, of a newer format or damaged is
// refused; windows fold into the same samples.
#include "data/set.h"

#include "base/half.h"
#include "data/loader.h"
#include "data/windows.h"
#include "support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { N = 300, ROWS = 400, SLOW = 50 };

// A dataset with all there can be

typedef struct {
    dataset d;
    float fast[ROWS * 3], target[N * 2], price[N], vector[N * 2];
    int8_t fast8[ROWS * 2], vector8[N * 3];
    uint16_t slow[SLOW * 4];
    int32_t row[2][N], first[2][N], label[N], best[N];
    int64_t time[N], end[N], panel[3];
} market;

static void fill_floats(float *x, size_t n, dice *d) {
    for (size_t i = 0; i < n; i++) x[i] = dice_unit(d);
}

static void market_make(market *m) {
    static const char *const fast[] = {"a", "b", "c", "d", "\xc3\xa9"}, *const classes[] = {"DOWN", "NEUTRAL", "UP"},
                             *const panel[] = {"first", "second"};
    dice d = {.seed = 1};
    *m = (market){0};
    fill_floats(m->fast, ROWS * 3, &d);
    fill_floats(m->target, N * 2, &d);
    fill_floats(m->price, N, &d);
    fill_floats(m->vector, N * 2, &d);
    for (int i = 0; i < ROWS * 2; i++) m->fast8[i] = (int8_t)dice_below(&d, 256);
    for (int i = 0; i < N * 3; i++) m->vector8[i] = (int8_t)(dice_below(&d, 3) - 1);
    for (int i = 0; i < SLOW * 4; i++) m->slow[i] = half_narrow(dice_unit(&d));
    for (int i = 0; i < N; i++) {
        m->row[0][i] = i + ROWS - N;
        m->row[1][i] = i / 6;
        m->label[i] = (int32_t)dice_below(&d, 3);
        m->best[i] = (int32_t)dice_below(&d, 3);
        m->time[i] = 1700000000 + 300 * i;
        m->end[i] = m->time[i] + 300 * (int64_t)dice_below(&d, 9);
    }
    m->d = (dataset){.name = "made up",
        .samples = N,
        .streams = 2,
        .raw = true,
        .classes = 3,
        .label = m->label,
        .class_names = classes,
        .target_width = 2,
        .target = m->target,
        .time = m->time,
        .end = m->end,
        .price = m->price,
        .horizon = 8,
        .best = m->best,
        .window = {20, 0},
        .held = 20,
        .panel = 2,
        .panel_names = panel,
        .panel_first = m->panel};
    m->panel[1] = ROWS / 2;
    m->panel[2] = ROWS;
    m->d.stream[0] = (stream){
        .name = "fast", .series = table_of(COLUMN_F32, ROWS, 3, m->fast), .row = m->row[0], .first = m->first[0]};
    m->d.stream[1] = (stream){
        .name = "slow", .series = table_of(COLUMN_F16, SLOW, 4, m->slow), .row = m->row[1], .first = m->first[1]};
    table_add(&m->d.stream[0].series, COLUMN_I8, 2, m->fast8);
    m->d.stream[0].series.columns = fast;
    m->d.vector = table_of(COLUMN_I8, N, 3, m->vector8);
    table_add(&m->d.vector, COLUMN_F32, 2, m->vector);
}

static void put(const dataset *d, const char *path) {
    err e = {0};
    json_t *about = json_pack("{s:s}", "by", "a test");
    support_ok(set_write(d, about, path, &e), &e);
    json_decref(about);
}

static dataset *get(const char *path) {
    err e = {0};
    dataset *d = set_open(path, &e);
    support_ok(d != NULL, &e);
    return d;
}

static void same_table(const table *a, const table *b) {
    assert_int_equal(a->rows, b->rows);
    assert_int_equal(a->width, b->width);
    assert_int_equal(a->parts, b->parts);
    for (int k = 0; k < a->parts; k++) {
        assert_int_equal(a->part[k].type, b->part[k].type);
        assert_int_equal((uintptr_t)b->part[k].data % 64, 0);
        assert_memory_equal(
            a->part[k].data, b->part[k].data, (size_t)(a->rows * a->part[k].width) * column_bytes(a->part[k].type));
    }
    assert_int_equal(!a->columns, !b->columns);
    for (int64_t c = 0; a->columns && c < a->width; c++) assert_string_equal(a->columns[c], b->columns[c]);
}

static void comes_back_as_it_was(void **state) {
    (void)state;
    market m;
    market_make(&m);
    put(&m.d, "set.npz");
    dataset *d = get("set.npz");
    assert_int_equal(d->samples, N);
    assert_int_equal(d->streams, 2);
    for (int i = 0; i < 2; i++) {
        assert_string_equal(d->stream[i].name, m.d.stream[i].name);
        same_table(&m.d.stream[i].series, &d->stream[i].series);
        assert_memory_equal(d->stream[i].row, m.row[i], sizeof m.row[i]);
        assert_memory_equal(d->stream[i].first, m.first[i], sizeof m.first[i]);
        assert_int_equal(d->window[i], m.d.window[i]);
    }
    same_table(&m.d.vector, &d->vector);
    assert_true(d->raw);
    assert_int_equal(d->classes, 3);
    assert_int_equal(d->horizon, 8);
    assert_int_equal(d->target_width, 2);
    for (int k = 0; k < 3; k++) assert_string_equal(d->class_names[k], m.d.class_names[k]);
    assert_memory_equal(d->label, m.label, sizeof m.label);
    assert_memory_equal(d->best, m.best, sizeof m.best);
    assert_memory_equal(d->target, m.target, sizeof m.target);
    assert_memory_equal(d->price, m.price, sizeof m.price);
    assert_memory_equal(d->time, m.time, sizeof m.time);
    assert_memory_equal(d->end, m.end, sizeof m.end);
    assert_int_equal(d->held, 20);
    assert_int_equal(d->panel, 2);
    assert_string_equal(d->panel_names[1], "second");
    assert_memory_equal(d->panel_first, m.panel, sizeof m.panel);
    for (int64_t i = 0; i < N; i++) assert_int_equal(dataset_panel_of(d, i), m.row[0][i] >= ROWS / 2);
    assert_string_equal(json_string_value(json_object_get(d->about, "by")), "a test");
    dataset_free(d);
}

// The scaler in the file is that of the default training share and windows.
static void holds_its_scaler(void **state) {
    (void)state;
    market m;
    err e = {0};
    float mean[5], std[5];
    market_make(&m);
    put(&m.d, "set.npz");
    dataset *d = get("set.npz");
    split_part train = part_of((span){0, 210});
    scaler *s = scaler_fit(&m.d, &train, (int64_t[]){20, 20}, false, &e);
    const npz *z = d->arrays;
    support_ok(s && npz_read(z, npz_want(z, "fast.mean", &e), NULL, NPY_F32, mean, &e), &e);
    support_ok(npz_read(z, npz_want(z, "fast.std", &e), NULL, NPY_F32, std, &e), &e);
    assert_memory_equal(mean, s->mean[0], sizeof mean);
    assert_memory_equal(std, s->std[0], sizeof std);
    scaler_free(s);
    dataset_free(d);
    m.fast[3 * 150 + 1] = NAN;
    json_t *about = json_object();
    assert_false(set_write(&m.d, about, "bad.npz", &e));
    assert_int_equal(e.kind, ERR_INPUT);
    assert_int_equal(access("bad.npz", F_OK), -1);
    json_decref(about);
}

static void numpy_opens_it(void **state) {
    (void)state;
    market m;
    market_make(&m);
    put(&m.d, "set.npz");
    const char *python = "python3";
    if (system("python3 -c 'import numpy' >numpy.txt 2>&1") != 0) python = "/usr/bin/python3";
    char command[512];
    snprintf(command, sizeof command, "%s -c 'import numpy' >numpy.txt 2>&1", python);
    if (system(command) != 0) skip();
    snprintf(command, sizeof command,
        "%s -c \"import numpy, json; z = numpy.load('set.npz'); "
        "assert z['fast.series0'].shape == (400, 3) and z['fast.series1'].dtype == 'int8'; "
        "assert z['label'].shape == (300,) and list(z['class_names'])[2] == 'UP'; "
        "assert json.loads(str(z['tradewind'][0]))['version'] == 2\"",
        python);
    assert_int_equal(system(command), 0);
}

// Refusals

// Writes the arrays of set.npz to bad.npz, but for one that is left out or replaced.
static void rewrite(const char *without, npy_type type, int rank, const int64_t *dim, const void *data) {
    npz z;
    npz_writer w;
    arena a;
    err e = {0};
    arena_init(&a);
    support_ok(npz_open(&z, "set.npz", &e) && npz_writer_open(&w, "bad.npz", &e), &e);
    for (int64_t i = 0; i < z.entries; i++) {
        const npz_entry *n = &z.entry[i];
        if (!strcmp(n->name, without)) continue;
        if (n->kind == NPZ_TEXT)
            support_ok(npz_writer_text(&w, n->name, npz_read_text(&z, n, &a, &e), n->header.count, &e), &e);
        else
            support_ok(
                npz_writer_array(&w, n->name, n->header.type, n->header.rank, n->header.dim, npz_data(&z, n), &e), &e);
    }
    if (data && type == NPY_TEXT)
        support_ok(npz_writer_text(&w, without, data, dim[0], &e), &e);
    else if (data)
        support_ok(npz_writer_array(&w, without, type, rank, dim, data, &e), &e);
    support_ok(npz_writer_commit(&w, &e), &e);
    npz_close(&z);
    arena_done(&a);
}

static void refused(const char *why) {
    err e = {0};
    dataset *d = set_open("bad.npz", &e);
    if (d) fail_msg("is opened, but %s", why);
    assert_int_equal(e.kind, ERR_INPUT);
    if (!strstr(e.text, why) || strncmp(e.text, "bad.npz: ", 9) != 0) fail_msg("\"%s\" does not say %s", e.text, why);
}

static void refused_without(const char *name, const char *why) {
    rewrite(name, NPY_I32, 0, NULL, NULL);
    refused(why);
}

static void refused_with_mark(const char *text, const char *why) {
    rewrite("tradewind", NPY_TEXT, 1, (int64_t[]){1}, (const char *const[]){text});
    refused(why);
}

static void what_is_no_dataset_is_refused(void **state) {
    (void)state;
    market m;
    market_make(&m);
    put(&m.d, "set.npz");
    refused_without("tradewind", "is not a dataset");
    refused_without("fast.row", "no array fast.row");
    refused_without("fast.series1", "no array fast.series1");
    refused_without("vector0", "no array vector0");
    refused_without("time", "ends but samples no times");
    refused_without("panel_first", "no array panel_first");
    refused_with_mark("no JSON", "is not a dataset's description");
    refused_with_mark("{\"version\": 0}", "is not a dataset's description");
    refused_with_mark("{\"version\": 3}", "was written by a newer tradewind (format 3, this program reads up to 2)");
    refused_with_mark("{\"version\": 1}", "does not list its streams");
    refused_with_mark("{\"version\": 1, \"streams\": [{\"name\": \"../x\", \"parts\": 1}]}", "a stream that cannot be");
    refused_with_mark("{\"version\": 1, \"streams\": [{\"name\": \"fast\", \"parts\": 99}]}", "too many parts");
    refused_with_mark("{\"version\": 1, \"streams\": [], \"classes\": 99}", "number of classes");
    refused_with_mark("{\"version\": 1, \"streams\": [], \"classes\": 2}", "class_names");
    refused_with_mark("{\"version\": 1, \"streams\": [], \"horizon\": -1}", "horizon");
}

static void wrong_arrays_are_refused(void **state) {
    (void)state;
    market m;
    int32_t list[N] = {0};
    market_make(&m);
    put(&m.d, "set.npz");
    list[7] = ROWS;
    rewrite("fast.row", NPY_I32, 1, (int64_t[]){N}, list);
    refused("sample 7 points to rows");
    rewrite("fast.row", NPY_I32, 1, (int64_t[]){N - 1}, list);
    refused("fast.row has another type or shape");
    rewrite("fast.row", NPY_F32, 1, (int64_t[]){N}, list);
    refused("fast.row has another type or shape");
    rewrite("label", NPY_I32, 1, (int64_t[]){N}, list);
    refused("label 400");
    rewrite("vector0", NPY_I32, 2, (int64_t[]){N, 1}, list);
    refused("vector0 is not of type f32, f16 or i8");
    rewrite("vector0", NPY_F32, 2, (int64_t[]){N - 1, 1}, list);
    refused("vector1 has another type or shape");
    rewrite("fast.series0", NPY_F32, 2, (int64_t[]){0, 3}, "");
    refused("fast.series1 has another type or shape");
    rewrite("class_names", NPY_TEXT, 1, (int64_t[]){2}, (const char *const[]){"a", "b"});
    refused("does not name every class");
    rewrite("fast.columns", NPY_TEXT, 1, (int64_t[]){2}, (const char *const[]){"a", "b"});
    refused("does not name every column");
    rewrite("panel_names", NPY_TEXT, 1, (int64_t[]){1}, (const char *const[]){"a"});
    refused("panel_first has another type or shape");
    rewrite("panel_first", NPY_I64, 1, (int64_t[]){3}, (const int64_t[]){0, ROWS + 1, ROWS});
    refused("its series or what is held out of them cannot be");
    rewrite("fast.bar_time", NPY_I64, 2, (int64_t[]){0, 2}, "");
    refused("fast.bar_time has no bars");
    support_put("bad.npz", "time,open\n", 10);
    refused("neither an .npz nor an .npy");
}

// Cut or changed anywhere, a file is refused or opened, and what is opened can be read to its end.
static void damage_is_survived(void **state) {
    (void)state;
    market m;
    struct stat st;
    dice dice = {.seed = 4};
    market_make(&m);
    put(&m.d, "set.npz");
    assert_int_equal(stat("set.npz", &st), 0);
    size_t bytes = (size_t)st.st_size;
    unsigned char *whole = aligned_alloc(64, (bytes + 63) / 64 * 64),
                  *changed = aligned_alloc(64, (bytes + 63) / 64 * 64);
    FILE *f = fopen("set.npz", "rb");
    assert_non_null(f);
    assert_int_equal(fread(whole, 1, bytes, f), bytes);
    fclose(f);
    for (int i = 0; i < 400; i++) {
        err e;
        float row[5];
        memcpy(changed, whole, bytes);
        for (int k = 0; k < 4; k++) changed[dice_below(&dice, bytes)] = (unsigned char)dice_below(&dice, 256);
        size_t n = i % 2 ? bytes : (size_t)dice_below(&dice, bytes);
        dataset *d = set_open_memory("damaged", changed, n, &e);
        for (int64_t r = 0; d && r < d->stream[0].series.rows && d->stream[0].series.width == 5; r++)
            table_read(&d->stream[0].series, r, 1, row);
        for (int64_t r = 0; d && r < d->samples; r++) assert_true(dataset_panel_of(d, r) < d->panel || !d->panel);
        dataset_free(d);
    }
    free(whole);
    free(changed);
}

// The size of the reference job's lists: opening reads them and nothing else.
static void maps_in_no_time(void **state) {
    (void)state;
    enum { MANY = 490000 };
    size_t at = 0;
    err e = {0};
    dataset *d = dataset_new(6 * dataset_room(MANY, 4) + 3 * dataset_room(MANY, 8), &e);
    support_ok(d != NULL, &e);
    float *series = dataset_take(d, &at, MANY, 4);
    int32_t *row = dataset_take(d, &at, MANY, 4), *zero = dataset_take(d, &at, MANY, 4);
    int64_t *time = dataset_take(d, &at, MANY, 8);
    for (int32_t i = 0; i < MANY; i++) time[i] = row[i] = i;
    d->name = "many";
    d->samples = MANY;
    d->streams = 2;
    d->stream[0] = (stream){.name = "fast", .series = table_of(COLUMN_F32, MANY, 1, series), .row = row, .first = zero};
    d->stream[1] = (stream){.name = "slow", .series = table_of(COLUMN_F32, MANY, 1, series), .row = row, .first = zero};
    d->classes = 2;
    d->label = zero;
    d->time = d->end = time;
    put(d, "many.npz");
    dataset_free(d);
    double best = 1;
    for (int i = 0; i < 5; i++) {
        double t = support_seconds();
        d = get("many.npz");
        t = support_seconds() - t;
        best = t < best ? t : best;
        dataset_free(d);
    }
    if (!support_sanitized() && best > 0.010) fail_msg("mapped in %.1f ms", 1e3 * best);
}

// Windows

enum { W = 500, T0 = 12, C0 = 3, T1 = 4, C1 = 2, V = 6 };

typedef struct {
    float fast[W * T0 * C0], slow[W * T1 * C1], vector[W * V];
    int64_t label[W], time[W];
} arrays;

// Windows of series that begin anew after a hole.
static void arrays_make(arrays *a) {
    dice d = {.seed = 9};
    static float fast[(W + T0 + 40) * C0], slow[(W + T1 + 40) * C1];
    fill_floats(fast, sizeof fast / sizeof *fast, &d);
    fill_floats(slow, sizeof slow / sizeof *slow, &d);
    for (int i = 0; i < W; i++) {
        int at = i < 200 ? i : i + 30;
        memcpy(a->fast + i * T0 * C0, fast + at * C0, T0 * C0 * sizeof(float));
        memcpy(a->slow + i * T1 * C1, slow + at / 12 * C1, T1 * C1 * sizeof(float));
        for (int c = 0; c < V; c++) a->vector[i * V + c] = c < 4 ? (float)dice_below(&d, 3) - 1 : fabsf(dice_unit(&d));
        a->label[i] = (int64_t)dice_below(&d, 5) - 2;
        a->time[i] = (1700000000LL + 60 * at) * 1000;
    }
}

static void put_arrays(const arrays *a, const char *path, bool times) {
    npz_writer w;
    err e = {0};
    bool ok = npz_writer_open(&w, path, &e);
    ok = ok && npz_writer_array(&w, "x_fast", NPY_F32, 3, (int64_t[]){W, T0, C0}, a->fast, &e);
    ok = ok && npz_writer_array(&w, "x_slow", NPY_F32, 3, (int64_t[]){W, T1, C1}, a->slow, &e);
    ok = ok && npz_writer_array(&w, "x_strategy", NPY_F32, 2, (int64_t[]){W, V}, a->vector, &e);
    ok = ok && npz_writer_array(&w, "labels", NPY_I64, 1, (int64_t[]){W}, a->label, &e);
    ok = ok && (!times || npz_writer_array(&w, "timestamps", NPY_I64, 1, (int64_t[]){W}, a->time, &e));
    support_ok(ok && npz_writer_commit(&w, &e), &e);
}

static bool import(const char *from, const windows_options *o, const char *to, windows_report *r, err *e) {
    npz z;
    arena a;
    json_t *about = json_object();
    arena_init(&a);
    support_ok(npz_open(&z, from, e), e);
    bool ok = windows_import(&z, o, about, to, r, &a, e);
    json_decref(about);
    arena_done(&a);
    npz_close(&z);
    return ok;
}

// Gathered from the dataset, each window is the one that was given.
static void same_windows(const dataset *d, const arrays *a, float tolerance) {
    err e = {0};
    loader_options o = {.window = {T0, T1}, .batch = W, .prefetch = 1};
    loader_batch b;
    loader *l = loader_new(d, &o, &e);
    support_ok(l != NULL, &e);
    loader_seek(l, &(loader_range){.samples = part_of((span){0, W})});
    assert_true(loader_next(l, &b));
    assert_memory_equal(b.x[0], a->fast, sizeof a->fast);
    assert_memory_equal(b.x[1], a->slow, sizeof a->slow);
    for (int i = 0; i < W * V; i++) assert_true(fabsf(b.vector[i] - a->vector[i]) <= tolerance);
    for (int i = 0; i < W; i++)
        assert_int_equal(b.label[i], d->classes == 5 ? a->label[i] + 2 : (a->label[i] > 0) - (a->label[i] < 0) + 1);
    loader_free(l);
}

static void windows_fold(void **state) {
    (void)state;
    static arrays a;
    windows_report r;
    err e = {0};
    arrays_make(&a);
    put_arrays(&a, "windows.npz", false);
    support_ok(import("windows.npz", &(windows_options){.horizon = 3}, "set.npz", &r, &e), &e);
    assert_int_equal(r.fold[0].runs, 2);
    assert_int_equal(r.fold[0].rows, W + 2 * (T0 - 1));
    dataset *d = get("set.npz");
    same_windows(d, &a, 0);
    assert_int_equal(d->horizon, 3);
    assert_int_equal(d->window[0], T0);
    assert_int_equal(d->window[1], T1);
    assert_false(d->raw);
    assert_string_equal(d->class_names[0], "-2");
    dataset_free(d);
    // In compact types, with three classes and times, and the names spelt out.
    put_arrays(&a, "windows.npz", true);
    windows_options o = {.horizon = 3,
        .compact = true,
        .to_three = true,
        .names = "fast=x_fast,slow=x_slow,vector=x_strategy,label=labels,time=timestamps"};
    support_ok(import("windows.npz", &o, "set.npz", &r, &e), &e);
    d = get("set.npz");
    same_windows(d, &a, 0.001f);
    assert_int_equal(d->classes, 3);
    assert_int_equal(d->vector.parts, 2);
    assert_int_equal(d->vector.part[0].type, COLUMN_I8);
    assert_int_equal(d->vector.part[1].type, COLUMN_F16);
    assert_int_equal(d->time[1], 1700000060);
    assert_int_equal(d->end[0], d->time[3]);
    assert_int_equal(d->end[W - 1], d->time[W - 1]);
    dataset_free(d);
    // A byte holds -128 to 127.
    for (int most = 127; most <= 128; most++) {
        a.vector[3 * V] = (float)most;
        a.vector[4 * V] = -(float)most;
        put_arrays(&a, "windows.npz", true);
        support_ok(import("windows.npz", &o, "set.npz", &r, &e), &e);
        d = get("set.npz");
        same_windows(d, &a, 0.001f);
        assert_int_equal(d->vector.part[0].type, most > 127 ? COLUMN_F16 : COLUMN_I8);
        dataset_free(d);
    }
}

static void windows_are_used_where_they_lie(void **state) {
    (void)state;
    static arrays a;
    err e = {0};
    arrays_make(&a);
    put_arrays(&a, "windows.npz", false);
    dataset *d = windows_open("windows.npz", &e);
    support_ok(d != NULL, &e);
    same_windows(d, &a, 0);
    assert_int_equal(d->window[0], T0);
    dataset_free(d);
    npz_writer w;
    bool ok = npz_writer_open(&w, "wide.npz", &e);
    static const double wide[2 * 2 * 1] = {1, 2, 3, 4};
    ok = ok && npz_writer_array(&w, "x_a", NPY_F64, 3, (int64_t[]){2, 2, 1}, wide, &e);
    ok = ok && npz_writer_array(&w, "y", NPY_I32, 1, (int64_t[]){2}, (int32_t[]){0, 1}, &e);
    support_ok(ok && npz_writer_commit(&w, &e), &e);
    assert_null(windows_open("wide.npz", &e));
    assert_non_null(strstr(e.text, "tradewind import wide.npz"));
    windows_report r;
    support_ok(import("wide.npz", &(windows_options){0}, "set.npz", &r, &e), &e);
}

static void import_fails(const arrays *a, const windows_options *o, const char *why) {
    windows_report r;
    err e = {0};
    put_arrays(a, "windows.npz", true);
    if (import("windows.npz", o, "none.npz", &r, &e)) fail_msg("is imported, but %s", why);
    assert_int_equal(e.kind, ERR_INPUT);
    if (!strstr(e.text, why)) fail_msg("\"%s\" does not say %s", e.text, why);
    assert_int_equal(access("none.npz", F_OK), -1);
}

static void bad_windows_are_refused(void **state) {
    (void)state;
    static arrays a;
    arrays_make(&a);
    a.fast[(37 * T0 + 5) * C0 + 2] = NAN;
    import_fails(&a, &(windows_options){0}, "x_fast[37, 5, 2] is not a finite number");
    arrays_make(&a);
    a.vector[9 * V + 5] = INFINITY;
    import_fails(&a, &(windows_options){0}, "x_strategy[9, 5] is not a finite number");
    import_fails(&a, &(windows_options){.compact = true}, "x_strategy[9, 5] is not a finite number");
    arrays_make(&a);
    a.time[3] = 0;
    import_fails(&a, &(windows_options){0}, "timestamps[3] is earlier");
    arrays_make(&a);
    a.label[7] = 3;
    import_fails(&a, &(windows_options){.to_three = true}, "values from -2 to 3");
    for (int i = 0; i < W; i++) a.label[i] = 4;
    import_fails(&a, &(windows_options){0}, "less than 2 different values");
    for (int i = 0; i < W; i++) a.label[i] = i;
    import_fails(&a, &(windows_options){0}, "too many different values");
    arrays_make(&a);
    import_fails(&a, &(windows_options){.names = "skip=labels"}, "no array named labels");
    import_fails(&a, &(windows_options){.names = "skip=x_fast,skip=x_slow,skip=x_strategy"}, "holds no windows");
    import_fails(&a, &(windows_options){.names = "skip=x_quick"}, "no such array");
    import_fails(&a, &(windows_options){.names = "fast=x_quick,label=labels"}, "no array x_quick");
    import_fails(&a, &(windows_options){.names = "fast,label=labels"}, "is not ROLE=ARRAY");
    import_fails(&a, &(windows_options){.names = "fast=x_strategy,label=labels"}, "not [samples, steps, columns]");
    import_fails(&a, &(windows_options){.names = "fast=x_fast,vector=x_slow,label=labels"}, "cannot be the vector");
}

// Small files, array by array

typedef struct {
    const char *name;
    npy_type type;
    int rank;
    int64_t dim[4];
    const void *data;
} piece;

enum { FEW = 6 };
static const float numbers[FEW * 4] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
static const int8_t classes[FEW] = {0, 1, 2, 0, 1, 2};
#define X_FAST                                                                                                         \
    { "x_fast", NPY_F32, 3, {FEW, 2, 2}, numbers }
#define LABELS                                                                                                         \
    { "labels", NPY_I8, 1, {FEW}, classes }

static void put_pieces(const piece *p, int count, const char *const *label_text) {
    npz_writer w;
    err e = {0};
    bool ok = npz_writer_open(&w, "small.npz", &e);
    for (int i = 0; ok && i < count; i++)
        ok = npz_writer_array(&w, p[i].name, p[i].type, p[i].rank, p[i].dim, p[i].data, &e);
    if (ok && label_text) ok = npz_writer_text(&w, "labels", label_text, FEW, &e);
    support_ok(ok && npz_writer_commit(&w, &e), &e);
}

// Neither imported nor trained on where it lies.
static void small_fails(const char *names, const char *why) {
    windows_report r;
    err e = {0}, f = {0};
    assert_false(import("small.npz", &(windows_options){.names = names, .horizon = 1}, "none.npz", &r, &e));
    if (e.kind != ERR_INPUT || !strstr(e.text, why)) fail_msg("\"%s\" does not say %s", e.text, why);
    if (names) return;
    assert_null(windows_open("small.npz", &f));
    assert_string_equal(f.text, e.text);
}

static void small_imports(const char *names, const char *labels) {
    windows_report r;
    err e = {0};
    char text[256] = "";
    support_ok(import("small.npz", &(windows_options){.names = names, .horizon = 1}, "set.npz", &r, &e), &e);
    dataset *d = set_open("set.npz", &e);
    support_ok(d != NULL, &e);
    for (int k = 0; k < d->classes; k++) snprintf(text + strlen(text), 64, "%s ", d->class_names[k]);
    for (int64_t i = 0; d->label && i < d->samples; i++) snprintf(text + strlen(text), 16, "%d", (int)d->label[i]);
    if (d->target) snprintf(text, sizeof text, "%lld targets", (long long)d->target_width);
    assert_string_equal(text, labels);
    dataset_free(d);
}

static void arrays_that_cannot_be_used_are_named(void **state) {
    (void)state;
    put_pieces((piece[]){X_FAST, LABELS, {"x_more", NPY_F32, 4, {FEW, 2, 1, 1}, numbers}}, 3, NULL);
    small_fails(NULL, "x_more is [6, 2, 1, 1] of f32, neither");
    small_imports("skip=x_more", "0 1 2 012012");
    put_pieces((piece[]){X_FAST, LABELS, {"x_flat", NPY_F32, 1, {FEW}, numbers}}, 3, NULL);
    small_fails(NULL, "x_flat is [6] of f32, neither");
    put_pieces(
        (piece[]){X_FAST, {"x_slow", NPY_F32, 3, {FEW, 2, 1}, numbers}, {"labels", NPY_I8, 1, {FEW - 1}, classes}}, 3,
        NULL);
    small_fails(NULL, "labels has 5 samples and x_slow has 6");
}

static void names_add_to_what_is_known(void **state) {
    (void)state;
    put_pieces((piece[]){X_FAST, {"kind", NPY_I8, 1, {FEW}, classes}}, 2, NULL);
    small_fails(NULL, "no array named labels");
    small_imports("label=kind", "0 1 2 012012");
    static const float y[FEW] = {0.5f, 1, 2, 3, 4, 5};
    put_pieces((piece[]){X_FAST, {"y", NPY_F32, 1, {FEW}, y}}, 2, NULL);
    small_fails(NULL, "--names target=y");
    small_imports("target=y", "1 targets");
    put_pieces((piece[]){X_FAST, LABELS, {"a", NPY_F32, 3, {FEW, 1, 2}, numbers}}, 3, NULL);
    small_imports("fast=a", "0 1 2 012012");
}

static void strings_are_classes(void **state) {
    (void)state;
    piece x = X_FAST;
    put_pieces(&x, 1, (const char *const[]){"UP", "DOWN", "NEUTRAL", "UP", "DOWN", "DOWN"});
    small_imports(NULL, "DOWN NEUTRAL UP 201200");
    put_pieces(&x, 1, (const char *const[]){"sell", "buy", "hold", "sell", "UP", "hold"});
    small_imports(NULL, "UP buy hold sell 312302");
    err e = {0};
    dataset *d = windows_open("small.npz", &e);
    support_ok(d != NULL, &e);
    assert_int_equal(d->classes, 4);
    dataset_free(d);
    put_pieces(&x, 1, (const char *const[]){"a", "a", "a", "a", "a", "a"});
    small_fails(NULL, "less than 2 different values");
}

static void what_lies_there_is_finite(void **state) {
    (void)state;
    float x[FEW * 4] = {0};
    x[3 * 4 + 1] = NAN;
    put_pieces((piece[]){{"x_fast", NPY_F32, 3, {FEW, 2, 2}, x}, LABELS}, 2, NULL);
    small_fails(NULL, "x_fast[3, 0, 1] is not a finite number");
    x[3 * 4 + 1] = -INFINITY;
    put_pieces((piece[]){X_FAST, LABELS, {"x_v", NPY_F32, 2, {FEW, 4}, x}}, 3, NULL);
    small_fails(NULL, "x_v[3, 1] is not a finite number");
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, support_enter, support_leave)
    const struct CMUnitTest tests[] = {
        TEST(comes_back_as_it_was),
        TEST(holds_its_scaler),
        TEST(numpy_opens_it),
        TEST(what_is_no_dataset_is_refused),
        TEST(wrong_arrays_are_refused),
        TEST(damage_is_survived),
        TEST(maps_in_no_time),
        TEST(windows_fold),
        TEST(windows_are_used_where_they_lie),
        TEST(bad_windows_are_refused),
        TEST(arrays_that_cannot_be_used_are_named),
        TEST(names_add_to_what_is_known),
        TEST(strings_are_classes),
        TEST(what_lies_there_is_finite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
