#include "train/walk_keys.h"

enum { FIXED = KEY_FIXED | KEY_UNTUNED, FREE = KEY_FREE | KEY_UNTUNED };

static const config_key keys[] = {
    {"walk", CONFIG_MAP, NULL, 0, 0, NULL, "folds that go forward in time, for tradewind walk (doc/walk.md)", FIXED},
    {"walk.scheme", CONFIG_CHOICE, "rolling", 0, 0, "rolling|expanding|cpcv",
        "how folds lie: training of one length, training from the beginning, or every choice of test groups", FIXED},
    {"walk.train", CONFIG_TEXT, "24M", 0, 0, NULL,
        "length of training: bars (2000), a time (180d, 24M), or the date at which that of the first fold ends", FIXED},
    {"walk.validation", CONFIG_TEXT, "3M", 0, 0, NULL, "length of validation, behind training: bars or a time", FIXED},
    {"walk.test", CONFIG_TEXT, "3M", 0, 0, NULL, "length of a test, behind validation: bars or a time", FIXED},
    {"walk.step", CONFIG_TEXT, "auto", 0, 0, NULL, "from one fold to the next: bars or a time; auto: that of the test",
        FIXED},
    {"walk.purge", CONFIG_INT, "auto", 0, 1e9, "auto|windows",
        "moments left out between parts; auto: as far as labels reach, windows: as far as labels and windows reach",
        FIXED},
    {"walk.embargo", CONFIG_TEXT, "0", 0, 0, NULL, "further moments, or a time, left out there", FIXED},
    {"walk.folds", CONFIG_INT, "all", 1, 1e6, "all", "newest folds that are kept; not for cpcv", FREE},
    {"walk.groups", CONFIG_INT, "6", 2, SCHEME_GROUPS_MOST, NULL, "cpcv: groups of equal length", FIXED},
    {"walk.test_groups", CONFIG_INT, "2", 1, SCHEME_GROUPS_MOST - 1, NULL, "cpcv: groups that a fold tests", FIXED},
    {"walk.start", CONFIG_CHOICE, "cold", 0, 0, "cold|warm",
        "a fold's first weights: drawn anew, or those of the fold before", FIXED},
    {"walk.jobs", CONFIG_INT, "auto", 1, 1000, "auto", "folds that run side by side; auto: as many as fit", FREE},
    {"walk.importance", CONFIG_BOOL, "false", 0, 0, NULL,
        "importance of columns is measured on each fold's validation, an evaluation a column", FREE},
    {"walk.fold", CONFIG_INT, NULL, 1, SCHEME_NUMBER_MOST, NULL,
        "train: the fold of this number as a run of its own, as walk trains it", FIXED},
};

const config_key *walk_keys(size_t *count) {
    *count = sizeof keys / sizeof *keys;
    return keys;
}

enum { MAY_BE_0 = 1, MAY_BE_DATE = 2 };

static bool read_span(const config *c, const char *path, unsigned may, extent *x, err *e) {
    err why;
    if (!extent_read(config_text(c, path), x, &why)) return config_fail(c, path, e, "%s", why.text);
    if (x->unit == EXTENT_DATE && !(may & MAY_BE_DATE))
        return config_fail(c, path, e, "a date is no length; write bars (500) or a time (90d, 3M)");
    if (x->count < 1 && x->unit != EXTENT_DATE && !(may & MAY_BE_0))
        return config_fail(c, path, e, "the span must be above 0");
    return true;
}

static bool read_spans(const config *c, scheme *s, err *e) {
    if (!config_is(c, "walk.step", "auto") && !read_span(c, "walk.step", 0, &s->step, e)) return false;
    return read_span(c, "walk.train", MAY_BE_DATE, &s->train, e) &&
           read_span(c, "walk.validation", 0, &s->validation, e) && read_span(c, "walk.test", 0, &s->test, e) &&
           read_span(c, "walk.embargo", MAY_BE_0, &s->embargo, e);
}

bool walk_read(const config *c, walk_settings *w, err *e) {
    scheme *s = &w->scheme;
    *w = (walk_settings){.warm = config_is(c, "walk.start", "warm"), .importance = config_bool(c, "walk.importance")};
    if (!config_is(c, "walk.jobs", "auto")) w->jobs = (int)config_int(c, "walk.jobs");
    if (config_has(c, "walk.fold")) w->fold = config_int(c, "walk.fold");
    if (config_is(c, "walk.scheme", "expanding")) s->kind = SCHEME_EXPANDING;
    if (config_is(c, "walk.scheme", "cpcv")) s->kind = SCHEME_CPCV;
    s->purge = config_is(c, "walk.purge", "auto")      ? PURGE_LABELS
               : config_is(c, "walk.purge", "windows") ? PURGE_WINDOWS
                                                       : config_int(c, "walk.purge");
    if (!config_is(c, "walk.folds", "all")) s->folds = config_int(c, "walk.folds");
    s->groups = (int)config_int(c, "walk.groups");
    s->tests = (int)config_int(c, "walk.test_groups");
    if (s->tests >= s->groups)
        return config_fail(
            c, "walk.test_groups", e, "%d of %d groups leave none to train on; use fewer", s->tests, s->groups);
    if (s->kind == SCHEME_CPCV && w->warm)
        return config_fail(c, "walk.start", e, "folds of cpcv have no order of time; use cold");
    return read_spans(c, s, e);
}

bool walk_given(const config *c) {
    return config_given(c, "walk");
}

bool walk_split(const walk_settings *w, const dataset *d, const int64_t *window, split *s, err *e) {
    scheme as = w->scheme;
    scheme_folds all;
    bool combines = as.kind == SCHEME_CPCV;
    as.folds = 0;
    as.only = combines ? 0 : w->fold;
    as.window = window;
    if (!scheme_make(d, &as, &all, e)) return false;
    const scheme_fold *f = !combines ? all.fold : w->fold <= all.count ? &all.fold[w->fold - 1] : NULL;
    bool ok = f && !f->why[0];
    if (ok) *s = f->parts;
    if (!f) err_input(e, "there is no fold %lld; these data have %lld", (long long)w->fold, (long long)all.count);
    if (f && !ok) err_input(e, "fold %lld: %s", (long long)w->fold, f->why);
    scheme_done(&all);
    return ok;
}
