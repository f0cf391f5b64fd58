// tradewind import: bars, windows or a panel of series to a dataset file.
#include "cli/import_job.h"
#include "data/panel.h"
#include "data/set.h"
#include "data/windows.h"
#include "task/output.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HISTORY = 1, PANEL_HORIZON = 1, WINDOWS_HORIZON = 1 };

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

static bool read_numbers(import_job *j, err *e) {
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

static bool read_words(import_job *j, err *e) {
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
static void read_arguments(import_job *j) {
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

// A new dataset ends in .npz, so that nobody takes it for text; one that is added to in place keeps its name.
static bool ends_as_set(const import_job *j, err *e) {
    size_t n = strlen(j->out);
    if (j->out == j->append || (n > 4 && strcmp(j->out + n - 4, ".npz") == 0)) return true;
    return err_input(e, "-o %s: a dataset is an .npz; name it so that it ends in .npz", j->out);
}

// A set that a link names is written where it lies.
static bool follow_link(import_job *j, err *e) {
    struct stat st;
    if (lstat(j->out, &st) != 0 || !S_ISLNK(st.st_mode)) return true;
    char *target = realpath(j->out, NULL);
    if (!target) return err_input(e, "%s: is a link that leads nowhere; name the set itself", j->out);
    bool same = j->out == j->append;
    j->out = arena_text(&j->arena, target);
    if (same) j->append = j->out;
    free(target);
    return true;
}

static bool read_options(import_job *j, err *e) {
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
    if (!follow_link(j, e)) return false;
    if (!output_may_replace(j->out, OUTPUT_SET, j->file, j->files, e) || !ends_as_set(j, e)) return false;
    return read_numbers(j, e) && read_words(j, e);
}

// Kinds of files, and of labels of bars, that an option has a meaning for.
enum { OF_DIRECTION = 1, OF_BARRIER = 2, OF_FORECAST = 4, OF_BARS = 7, OF_WINDOWS = 8, OF_PANEL = 16 };

static bool means_something(const import_job *j, source_kind kind, err *e) {
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

static json_t *sources_json(const import_job *j, const char *made_of) {
    json_t *files = json_array();
    for (int i = 0; i < j->files; i++) json_array_append_new(files, json_string(j->file[i]));
    return json_pack("{s:s, s:o}", "made_of", made_of, "sources", files);
}

// Windows

static bool on_progress(void *arg, double done, double total) {
    import_job *j = arg;
    if (done < total) progress_at(&j->bar, done / 1e6, "MB read");
    return !cli_interrupted();
}

static void tell_windows(const import_job *j, const npz *z, const windows_report *r) {
    for (int64_t i = 0; i < z->entries; i++) {
        const char *name = z->entry[i].name;
        bool pickle = z->entry[i].kind == NPZ_PICKLE;
        if (windows_uses(&r->found, &z->entry[i])) continue;
        if (import_says(j)) printf("skipped   %s%s\n", name, pickle ? ": a pickle, which is never loaded" : "");
        if (j->o->json)
            json_line(stdout, json_pack("{s:s, s:s}", "skipped", name, "why", pickle ? "pickle" : "unused"));
    }
    for (int i = 0; i < r->found.streams && import_says(j); i++) {
        const npy_header *h = &r->found.stream[i]->header;
        char n[32], m[32];
        term_count(n, sizeof n, (double)h->dim[0]);
        term_count(m, sizeof m, (double)r->fold[i].rows);
        printf("stream    %-8s %s windows of %lld steps, %lld columns: %s rows in %lld run%s (%s)\n", r->found.name[i],
            n, (long long)h->dim[1], (long long)h->dim[2], m, (long long)r->fold[i].runs,
            r->fold[i].runs == 1 ? "" : "s", r->found.stream[i]->name);
    }
    if (r->found.vector && import_says(j))
        printf("vector    %lld columns (%s)\n", (long long)r->found.vector->header.dim[1], r->found.vector->name);
    if (!j->horizon && import_says(j))
        printf("labels    taken to be known %d step later; --horizon says otherwise\n", WINDOWS_HORIZON);
}

static double array_bytes(const npz *z) {
    double bytes = 0;
    for (int64_t i = 0; i < z->entries; i++)
        if (z->entry[i].header.bytes > 0) bytes += (double)z->entry[i].header.bytes;
    return bytes;
}

static bool import_arrays(import_job *j, err *e) {
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
    return ok && import_summarise(j, NULL, e);
}

// Panels

static void tell_panel(const import_job *j, const panel *p, int64_t horizon, int64_t held) {
    int64_t values = p->offset[p->series];
    char a[32], b[32], c[32];
    if (import_says(j))
        printf("%s: panel\n  series     %s with %s values; the last %lld values of %s series are held out\n",
            j->file[0], import_count(a, p->series), import_count(b, values), (long long)horizon, import_count(c, held));
    if (j->o->json)
        json_line(stdout, json_pack("{s:s, s:s, s:I, s:I, s:I}", "file", j->file[0], "format", "panel", "series",
                              (json_int_t)p->series, "values", (json_int_t)values, "held_out", (json_int_t)held));
}

static bool import_panel(import_job *j, err *e) {
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
    return ok && import_summarise(j, NULL, e);
}

static bool run(const cli_options *o, err *e) {
    import_job j = {.o = o};
    source_kind kind;
    arena_init(&j.arena);
    cli_watch_signals();
    bool ok = read_options(&j, e) && source_kind_of(j.file[0], &kind, e) && means_something(&j, kind, e);
    ok = ok && (j.append                   ? import_append(&j, e)
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
    "  -o, --output FILE   the dataset to write, an .npz (required, but for --append)\n"
    "  --append SET        adds the bars of the files that are newer than SET's: these alone are read and computed, "
    "bars "
    "that\n"
    "                      had no label get theirs. SET becomes what importing all bars gives, to the byte, in place "
    "or as "
    "-o.\n"
    "                      Older bars that are read must be SET's own: see doc/data.md\n"
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
