#include "train/wisdom.h"

#include "base/file.h"
#include "base/format.h"
#include "base/json.h"
#include "base/term.h"
#include "graph/dtype.h"
#include "graph/identity.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

enum {
    FORMAT = 1,
    FILE_MOST = 1 << 16,
    BATCH_MOST = 10000000,
    THREADS_MOST = 1024, // as --threads
    SUM_ROOM = 16,
};

#define KIND "tradewind wisdom"

// Largest difference between two measured rates of one way, as a share.
#define SAME_RATE 0.05

// The key

__attribute__((format(printf, 2, 3))) static void append(char text[WISDOM_ROOM], const char *fmt, ...) {
    size_t used = strlen(text);
    va_list args;
    va_start(args, fmt);
    vsnprintf(text + used, WISDOM_ROOM - used, fmt, args);
    va_end(args);
}

static char *add_field(wisdom_key *k, const char *name, bool condition) {
    CHECK(k->fields < WISDOM_FIELDS, "more than %d fields of a key", WISDOM_FIELDS);
    wisdom_field *f = &k->field[k->fields++];
    f->name = name;
    f->condition = condition;
    f->value[0] = 0;
    return f->value;
}

// Drivers come and go on the same card.
static void add_device(wisdom_key *k, const device_identity *device) {
    identity_hardware(device, add_field(k, "device", false), WISDOM_ROOM);
    identity_driver(device, add_field(k, "driver", true), WISDOM_ROOM);
}

static void add_model(wisdom_key *k, const model_spec *m) {
    model_describe(m, add_field(k, "model", false), WISDOM_ROOM);
}

static void append_table(char *to, const table *t) {
    append(to, "%" PRId64, t->width);
    for (int i = 0; i < t->parts; i++) append(to, "%s%s", i ? "+" : " ", column_name(t->part[i].type));
}

static void add_streams(wisdom_key *k, const wisdom_about *a) {
    const dataset *d = a->data;
    char *to = add_field(k, "streams", false);
    for (int i = 0; i < d->streams; i++) {
        append(to, "%s%" PRId64 " x ", i ? ", " : "", a->window[i]);
        append_table(to, &d->stream[i].series);
    }
    append(to, "; vector ");
    append_table(to, &d->vector);
}

static void add_loss(wisdom_key *k, const wisdom_about *a) {
    const settings *s = a->described;
    char *to = add_field(k, "loss", false);
    append(to, "%s%s%s", settings_loss(s, a->data), settings_levels(s, a->data) ? ", by level" : "",
        settings_scales(s, a->data) ? ", scaled" : "");
    to = add_field(k, "optimizer", false);
    append(to, "%s%s", optimizer_name(s->optimizer.kind), s->max_norm > 0 ? ", clipped" : "");
}

// Adds the parts of a way that the description fixes, and the limits that a way has to keep.
static void add_described(wisdom_key *k, const settings *s, bool card) {
    static const char *const places[] = {"auto", "device", "host"};
    append(add_field(k, "precision", false), "%s", s->precision_open ? "open" : precision_name(s->precision));
    if (card && s->products != PRODUCTS_AUTO)
        append(add_field(k, "products", false), "%s", settings_products_name(s->products));
    append(add_field(k, "residency", false), "%s", places[s->residency]);
    char *to = add_field(k, "recompute", false);
    s->recompute == RECOMPUTE_AUTO ? append(to, "auto") : append(to, "%d", s->recompute);
    to = add_field(k, "limit", false);
    if (card && s->max_memory > 0) append(to, "%.0f bytes", s->max_memory);
    if (card && s->memory_fraction > 0) append(to, "%.6g of the card", s->memory_fraction);
    if (!to[0]) append(to, "none");
    if (s->max_host_memory > 0) append(to, ", %.0f bytes of the host", s->max_host_memory);
}

// Text from files and drivers may be anything; JSON takes UTF-8 only.
static void make_plain(char *text) {
    for (; *text; text++)
        if (*text < ' ' || *text > '~') *text = '?';
}

static const char *last_part(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

// To a power of two: a set that grows by the day is the same for a long time.
static void add_samples(wisdom_key *k, int64_t training) {
    int64_t least = 1;
    while (least <= training / 2) least *= 2;
    append(add_field(k, "samples", true), "%" PRId64 " or more for training, less than %" PRId64, least, 2 * least);
}

void wisdom_key_make(wisdom_key *k, const wisdom_about *a) {
    k->fields = 0;
    append(add_field(k, "build", true), "%s, %.16s", a->version, PLUGIN_HASH);
    add_device(k, a->device);
    add_model(k, a->model);
    add_streams(k, a);
    add_loss(k, a);
    add_described(k, a->described, a->card);
    append(add_field(k, "data", false), "%s", last_part(a->data->name));
    add_samples(k, a->split->train.count);
    for (int i = 0; i < k->fields; i++) make_plain(k->field[i].value);
}

// The file

// FNV-1a, of all that names a file.
static uint64_t hash_of(const wisdom_key *k) {
    uint64_t h = 14695981039346656037u;
    for (int i = 0; i < k->fields; i++)
        for (const char *at = k->field[i].value; !k->field[i].condition; at++) {
            h = (h ^ (unsigned char)*at) * 1099511628211u;
            if (!*at) break;
        }
    return h;
}

static const char *value_of(const wisdom_key *k, const char *name) {
    for (int i = 0; i < k->fields; i++)
        if (strcmp(k->field[i].name, name) == 0) return k->field[i].value;
    return "";
}

// Letters and digits of a text up to `most`, with one - for whatever is between them.
static void add_words(char *to, const char *text, size_t length, size_t most) {
    size_t at = strlen(to), end = at + most;
    for (size_t i = 0; i < length && at < end; i++) {
        char c = text[i];
        bool word = (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z');
        if (word || (at && to[at - 1] != '-')) to[at++] = word ? c : '-';
    }
    to[at] = 0;
}

// Where all the files are, which the caller frees; NULL where nothing says where.
static char *folder(err *e) {
    const char *own = getenv("TRADEWIND_WISDOM"), *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    char *path = NULL;
    int n = -1;
    if (own && *own)
        n = asprintf(&path, "%s", own);
    else if (cache && *cache == '/')
        n = asprintf(&path, "%s/tradewind/wisdom", cache);
    else if (home && *home)
        n = asprintf(&path, "%s/.cache/tradewind/wisdom", home);
    else {
        err_input(e, "no folder for what was tuned; set TRADEWIND_WISDOM to one");
        return NULL;
    }
    NEED(n >= 0, "out of memory for a path");
    return path;
}

bool wisdom_ready(err *e) {
    char *in = folder(e);
    bool ok = in && file_make_dirs(in, e);
    if (ok && access(in, W_OK | X_OK) != 0)
        ok = err_input(e, "%s: nothing can be written there; set TRADEWIND_WISDOM to another folder", in);
    free(in);
    return ok;
}

char *wisdom_path(const wisdom_key *k, err *e) {
    const char *model = value_of(k, "model"), *device = value_of(k, "device");
    char stem[96] = "", *in = folder(e), *path = NULL;
    if (!in) return NULL;
    add_words(stem, model, strcspn(model, ","), 24);
    add_words(stem, "-", 1, 1);
    add_words(stem, device, strlen(device), 48);
    int n = asprintf(&path, "%s/%s-%016" PRIx64 ".json", in, stem, hash_of(k));
    NEED(n >= 0, "out of memory for a path");
    free(in);
    return path;
}

// The CRC-32 of all that a file says but the sum itself, in any order and with any spaces.
static const char *sum_of(json_t *all, char text[SUM_ROOM]) {
    json_t *rest = json_copy(all);
    json_object_del(rest, "sum");
    char *plain = json_dumps(rest, JSON_COMPACT | JSON_SORT_KEYS | JSON_REAL_PRECISION(17));
    NEED(plain, "out of memory for what was tuned");
    snprintf(text, SUM_ROOM, "%08lx", crc32_z(0, (const unsigned char *)plain, strlen(plain)));
    free(plain);
    json_decref(rest);
    return text;
}

// Writing

static json_t *key_object(const wisdom_key *k) {
    json_t *all = json_object();
    for (int i = 0; i < k->fields; i++) json_object_set_new(all, k->field[i].name, json_string(k->field[i].value));
    return all;
}

static json_t *entry_object(const wisdom_entry *w) {
    return json_pack("{s:I, s:I, s:I, s:i, s:s, s:s, s:s, s:i, s:f, s:f}", "batch", (json_int_t)w->batch, "micro_batch",
        (json_int_t)w->micro, "accumulation", (json_int_t)w->parts, "again", w->again, "residency",
        w->host ? "host" : "device", "precision", precision_name(w->precision), "products",
        settings_products_name(w->products), "threads", w->threads, "samples_per_s", w->samples_per_s, "noise_scale",
        w->noise_scale);
}

static char *text_of(const wisdom_key *k, const wisdom_entry *list, int count, int winner) {
    char when[16], sum[SUM_ROOM];
    time_t now = time(NULL);
    struct tm day;
    strftime(when, sizeof when, "%Y-%m-%d", gmtime_r(&now, &day));
    json_t *entries = json_array();
    for (int i = 0; i < count; i++) json_array_append_new(entries, entry_object(&list[i]));
    json_t *all = json_pack("{s:s, s:i, s:s, s:s, s:o, s:I, s:o}", "kind", KIND, "format", FORMAT, "sum", "", "when",
        when, "key", key_object(k), "winner", (json_int_t)list[winner].batch, "entries", entries);
    NEED(all, "out of memory for what was tuned");
    json_object_set_new(all, "sum", json_string(sum_of(all, sum)));
    char *text = json_dumps(all, JSON_INDENT(2) | JSON_REAL_PRECISION(17));
    NEED(text, "out of memory for what was tuned");
    json_decref(all);
    return text;
}

static bool write_text(const char *path, const char *text, err *e) {
    file_writer w;
    char *in = strdup(path), *slash = in ? strrchr(in, '/') : NULL;
    NEED(in, "out of memory for a path");
    CHECK(slash, "a path without a folder");
    *slash = 0;
    bool ok = file_make_dirs(in, e) && file_writer_open(&w, path, e);
    free(in);
    if (!ok) return false;
    ok = file_writer_write(&w, text, strlen(text), e) && file_writer_write(&w, "\n", 1, e) && file_writer_commit(&w, e);
    file_writer_abandon(&w);
    return ok;
}

static bool is_sound(const wisdom_entry *w) {
    return w->batch >= 1 && w->batch <= BATCH_MOST && w->parts >= 1 && w->parts <= w->batch &&
           w->batch % w->parts == 0 && w->micro == w->batch / w->parts && w->again >= 0 &&
           w->again <= MODEL_SEGMENTS_MOST && w->threads >= 0 && w->threads <= THREADS_MOST &&
           isfinite(w->samples_per_s) && w->samples_per_s > 0 && isfinite(w->noise_scale) && w->noise_scale >= 0;
}

static const wisdom_entry *entry_of(const wisdom_entry *list, int count, int64_t batch) {
    for (int i = 0; i < count; i++)
        if (list[i].batch == batch) return &list[i];
    return NULL;
}

bool wisdom_keep(const wisdom_key *k, const wisdom_entry *list, int count, int winner, err *e) {
    CHECK(
        count > 0 && count <= WISDOM_ENTRIES_MOST && winner >= 0 && winner < count, "%d of %d entries", winner, count);
    for (int i = 0; i < count; i++)
        CHECK(is_sound(&list[i]) && !entry_of(list, i, list[i].batch), "entry %d is no way to run a batch", i);
    char *path = wisdom_path(k, e);
    if (!path) return false;
    char *text = text_of(k, list, count, winner);
    bool ok = write_text(path, text, e);
    free(text);
    free(path);
    return ok;
}

// Reading

// Files of tunings that measured neither have no products and no threads.
static bool read_entry(json_t *from, wisdom_entry *to) {
    json_int_t batch, micro, parts, again, threads = 0;
    const char *place, *exact, *products = "auto";
    if (json_unpack(from, "{s:I, s:I, s:I, s:I, s:s, s:s, s?s, s?I, s:F, s:F}", "batch", &batch, "micro_batch", &micro,
            "accumulation", &parts, "again", &again, "residency", &place, "precision", &exact, "products", &products,
            "threads", &threads, "samples_per_s", &to->samples_per_s, "noise_scale", &to->noise_scale) != 0)
        return false;
    to->threads = threads >= 0 && threads <= THREADS_MOST ? (int)threads : -1;
    to->batch = batch;
    to->micro = micro;
    to->parts = parts;
    to->again = again >= 0 && again <= MODEL_SEGMENTS_MOST ? (int)again : -1;
    to->host = strcmp(place, "host") == 0;
    return (to->host || strcmp(place, "device") == 0) && precision_find(exact, &to->precision) &&
           settings_products_find(products, &to->products) && is_sound(to);
}

// Their number; -1 where one is not sound.
static int read_entries(json_t *from, wisdom_entry *list) {
    size_t count = json_array_size(from);
    if (count < 1 || count > WISDOM_ENTRIES_MOST) return -1;
    for (size_t i = 0; i < count; i++)
        if (!read_entry(json_array_get(from, i), &list[i]) || entry_of(list, (int)i, list[i].batch)) return -1;
    return (int)count;
}

static bool is_day(const char *text) {
    static const char form[] = "0000-00-00";
    for (size_t i = 0; i < sizeof form; i++)
        if (form[i] == '0' ? text[i] < '0' || text[i] > '9' : text[i] != form[i]) return false;
    return true;
}

__attribute__((format(printf, 2, 3))) static void put_line(char line[WISDOM_LINE], const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    vsnprintf(line, WISDOM_LINE, fmt, args);
    va_end(args);
    term_one_line(line);
}

// True if a file was made for the key; otherwise the line names the first field that differs.
static bool is_same(const wisdom_key *k, json_t *was, char line[WISDOM_LINE]) {
    for (int i = 0; i < k->fields; i++) {
        const wisdom_field *f = &k->field[i];
        const char *value = json_string_value(json_object_get(was, f->name));
        if (value && strcmp(value, f->value) == 0) continue;
        if (strcmp(f->name, "build") == 0)
            put_line(line, "tuned by another build; run tradewind tune again");
        else
            put_line(line, "tuned for another %s: %.110s, now %.110s; run tradewind tune again",
                strcmp(f->name, "samples") == 0 ? "number of samples" : f->name, value ? value : "not given", f->value);
        return false;
    }
    return true;
}

// Files of earlier programs have no sum.
static bool is_whole(json_t *all) {
    const json_t *kept = json_object_get(all, "sum");
    char sum[SUM_ROOM];
    return !kept || (json_is_string(kept) && strcmp(json_string_value(kept), sum_of(all, sum)) == 0);
}

// Takes a text of wisdom_keep apart; false if it is none.
static bool read_file(
    json_t *all, const char **when, json_t **key, json_int_t *winner, wisdom_entry *list, int *count) {
    const char *kind;
    json_int_t format;
    json_t *entries;
    if (json_unpack(all, "{s:s, s:I, s:s, s:o, s:I, s:o}", "kind", &kind, "format", &format, "when", when, "key", key,
            "winner", winner, "entries", &entries) != 0)
        return false;
    if (strcmp(kind, KIND) != 0 || format != FORMAT || !is_day(*when) || !json_is_object(*key) || !is_whole(all))
        return false;
    *count = read_entries(entries, list);
    return *count > 0 && entry_of(list, *count, *winner);
}

// Formats that follow may hold anything beside these two.
static bool is_known(const json_t *all, const char *path, err *e) {
    const char *kind = json_string_value(json_object_get(all, "kind"));
    json_int_t format = json_integer_value(json_object_get(all, "format"));
    return !kind || strcmp(kind, KIND) != 0 || format_known(path, format, FORMAT, e);
}

wisdom_answer wisdom_read(const char *text, size_t bytes, const char *path, const wisdom_key *k, int64_t batch) {
    wisdom_answer a = {.state = WISDOM_NONE};
    wisdom_entry list[WISDOM_ENTRIES_MOST];
    const char *when;
    int count;
    json_int_t winner;
    err newer;
    json_t *key, *all = json_read(text, bytes, NULL);
    if (!is_known(all, path, &newer)) {
        put_line(a.line, "%.300s", newer.text);
    } else if (!all || !read_file(all, &when, &key, &winner, list, &count)) {
        put_line(a.line, "%.200s: is damaged or not of tradewind tune, and not used; run that again", path);
    } else if (!is_same(k, key, a.line)) {
        a.state = WISDOM_REFUSED;
    } else {
        const wisdom_entry *found = entry_of(list, count, batch ? batch : winner);
        if (found) a.entry = *found;
        a.state = found ? WISDOM_FOUND : WISDOM_NONE;
        a.winner = found && found->batch == winner;
        snprintf(a.when, sizeof a.when, "%s", when);
    }
    json_decref(all);
    return a;
}

wisdom_answer wisdom_find(const wisdom_key *k, int64_t batch) {
    wisdom_answer a = {.state = WISDOM_NONE};
    err why;
    size_t bytes;
    char *path = wisdom_path(k, NULL);
    if (!path || access(path, F_OK) != 0) {
        free(path);
        return a;
    }
    char *text = file_read(path, FILE_MOST, &bytes, &why);
    if (text)
        a = wisdom_read(text, bytes, path, k, batch);
    else
        put_line(a.line, "%.300s", why.text);
    free(text);
    free(path);
    return a;
}

int wisdom_list(const wisdom_key *k, wisdom_entry *list, char when[16]) {
    char *path = wisdom_path(k, NULL), line[WISDOM_LINE];
    const char *day;
    int count = 0;
    size_t bytes;
    json_int_t winner;
    err unused;
    char *text = path && access(path, F_OK) == 0 ? file_read(path, FILE_MOST, &bytes, &unused) : NULL;
    json_t *key, *all = text ? json_read(text, bytes, NULL) : NULL;
    bool ok = all && read_file(all, &day, &key, &winner, list, &count) && is_same(k, key, line);
    if (ok) snprintf(when, 16, "%s", day);
    json_decref(all);
    free(text);
    free(path);
    return ok ? count : 0;
}

// Joining

static bool is_computed_alike(const wisdom_entry *a, const wisdom_entry *b) {
    return a->parts == b->parts && a->again == b->again && a->host == b->host && a->precision == b->precision &&
           a->products == b->products && a->threads == b->threads;
}

bool wisdom_join(wisdom_entry *list, int *count, const wisdom_entry *earlier, int earlier_count) {
    int n = *count, others = 0;
    for (int i = 0; i < earlier_count; i++) {
        const wisdom_entry *was = &earlier[i], *is = entry_of(list, n, was->batch);
        others += !is;
        if (is && is_computed_alike(is, was) && fabs(is->samples_per_s / was->samples_per_s - 1) > SAME_RATE)
            return false;
    }
    if (n + others > WISDOM_ENTRIES_MOST) return false;
    for (int i = 0; i < earlier_count; i++) {
        const wisdom_entry *was = &earlier[i];
        int at = 0;
        while (at < n && list[at].batch != was->batch) at++;
        if (at == n) list[(*count)++] = *was;
        if (at < n && was->samples_per_s > list[at].samples_per_s) list[at] = *was;
    }
    return true;
}

// Use

bool wisdom_suits(const wisdom_entry *w, const chooser *c, const budget *b, way *to, char *why, size_t room) {
    const settings *s = c->settings;
    const job *j = w->host ? c->far : c->near;
    *to = (way){.host = w->host, .batch = w->micro, .parts = w->parts, .again = w->again};
    int64_t fixed = c->parts ? c->parts : s->split_open ? w->parts : s->accumulation;
    if (w->batch != s->batch_size * s->accumulation)
        snprintf(why, room, "a step has %lld samples", (long long)(s->batch_size * s->accumulation));
    else if (w->parts != fixed)
        snprintf(why, room, "the description or the run has %lld micro-batches in a step", (long long)fixed);
    else if (!j)
        snprintf(why, room, "the data are to be %s", w->host ? "on the device" : "on the host");
    else if (s->recompute != RECOMPUTE_AUTO && s->recompute != w->again)
        snprintf(why, room, "gpu_optimization.recompute says otherwise");
    else if (w->again > choose_again_most(c))
        snprintf(why, room, "the planner never recomputes so many layers or blocks");
    else {
        demand n = choose_demand(c, to);
        to->seconds = choose_seconds(c, to);
        if (budget_takes(b, &n)) return true;
        snprintf(why, room, "it does not fit into the memory now");
    }
    return false;
}
