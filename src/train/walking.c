#include "train/walking.h"

static const config_key keys[] = {
    {"walk", CONFIG_MAP, NULL, 0, 0, NULL, "folds that go forward in time, for tradewind walk (doc/walk.md)",
        KEY_FIXED | KEY_UNTUNED},
    {"walk.scheme", CONFIG_CHOICE, "rolling", 0, 0, "rolling|expanding|cpcv",
        "walk: training of one length, or from the beginning on; or combinatorial purged cross-validation",
        KEY_FIXED | KEY_UNTUNED},
    {"walk.train", CONFIG_TEXT, NULL, 0, 0, NULL,
        "walk: length of the training part: bars (20000), 90d, 26w, 18M, 2y, or a date at which the first one ends",
        KEY_FIXED | KEY_UNTUNED},
    {"walk.validation", CONFIG_TEXT, NULL, 0, 0, NULL, "walk: length of the validation part (default: as the test)",
        KEY_FIXED | KEY_UNTUNED},
    {"walk.test", CONFIG_TEXT, NULL, 0, 0, NULL, "walk: length of the test part", KEY_FIXED | KEY_UNTUNED},
    {"walk.step", CONFIG_TEXT, NULL, 0, 0, NULL, "walk: from one fold to the next (default: as the test)",
        KEY_FIXED | KEY_UNTUNED},
    {"walk.folds", CONFIG_INT, "all", 1, SCHEME_FOLDS_MOST, "all", "walk: the newest so many folds",
        KEY_FREE | KEY_UNTUNED},
    {"walk.groups", CONFIG_INT, "6", 2, SCHEME_GROUPS_MOST, NULL, "walk, cpcv: groups that the samples are cut into",
        KEY_FIXED | KEY_UNTUNED},
    {"walk.test_groups", CONFIG_INT, "2", 1, SCHEME_GROUPS_MOST - 1, NULL, "walk, cpcv: groups that a fold tests",
        KEY_FIXED | KEY_UNTUNED},
    {"walk.start", CONFIG_CHOICE, "cold", 0, 0, "cold|warm",
        "walk: folds begin with initial weights, or with those of the fold before, one after another",
        KEY_FIXED | KEY_UNTUNED},
    {"walk.jobs", CONFIG_INT, "auto", 1, 1000, "auto",
        "walk: folds at once (auto: as many as there are processors, and as fit into the memory)",
        KEY_FREE | KEY_UNTUNED},
    {"walk.fold", CONFIG_INT, NULL, 1, SCHEME_FOLDS_MOST, NULL,
        "train: the fold of this number as a run of its own, as walk trains it", KEY_FIXED | KEY_UNTUNED},
};

const config_key *walking_keys(size_t *count) {
    *count = sizeof keys / sizeof *keys;
    return keys;
}

bool walking_given(const config *c) {
    return config_given(c, "walk");
}

// A length of time; as it was where none is given.
static bool read_extent(const config *c, const char *key, extent *x, err *e) {
    err why;
    if (!config_has(c, key) || extent_read(config_text(c, key), x, &why)) return true;
    return config_fail(c, key, e, "%s", why.text);
}

static bool has_length(const config *c, const char *key, extent x, err *e) {
    return x.count > 0 || config_fail(c, key, e, "has no length; give one such as 2000 bars (2000), 90d, 6M or 2y");
}

bool walking_read(const config *c, int64_t purge, int64_t embargo, walking *w, err *e) {
    scheme *s = &w->scheme;
    *w = (walking){.scheme = {.purge = purge, .embargo = {EXTENT_MOMENTS, embargo}}};
    s->kind = config_is(c, "walk.scheme", "cpcv")        ? SCHEME_CPCV
              : config_is(c, "walk.scheme", "expanding") ? SCHEME_EXPANDING
                                                         : SCHEME_ROLLING;
    s->folds = config_is(c, "walk.folds", "all") ? 0 : config_int(c, "walk.folds");
    s->groups = (int)config_int(c, "walk.groups");
    s->tests = (int)config_int(c, "walk.test_groups");
    w->warm = config_is(c, "walk.start", "warm");
    w->jobs = config_is(c, "walk.jobs", "auto") ? 0 : (int)config_int(c, "walk.jobs");
    w->fold = config_has(c, "walk.fold") ? config_int(c, "walk.fold") : 0;
    if (!read_extent(c, "walk.train", &s->train, e) || !read_extent(c, "walk.test", &s->test, e)) return false;
    s->validation = s->test;
    if (!read_extent(c, "walk.validation", &s->validation, e) || !read_extent(c, "walk.step", &s->step, e))
        return false;
    if (!walking_given(c)) return true;
    if (s->kind == SCHEME_CPCV && s->tests >= s->groups)
        return config_fail(c, "walk.test_groups", e, "leaves no group for training; use fewer than walk.groups");
    if (!has_length(c, "walk.validation", s->validation, e)) return false;
    if (s->kind == SCHEME_CPCV) return true;
    return has_length(c, "walk.train", s->train, e) && has_length(c, "walk.test", s->test, e);
}

bool walking_split(const walking *w, const dataset *d, const int64_t *window, split *s, err *e) {
    scheme as = w->scheme;
    scheme_folds all;
    as.folds = 0;
    as.window = window;
    if (!scheme_make(d, &as, &all, e)) return false;
    const scheme_fold *f = w->fold <= all.count ? &all.fold[w->fold - 1] : NULL;
    bool ok = f && !f->why[0];
    if (ok) *s = f->parts;
    if (!f) err_input(e, "there is no fold %lld; these data have %lld", (long long)w->fold, (long long)all.count);
    if (f && !ok) err_input(e, "fold %lld: %s", (long long)w->fold, f->why);
    scheme_done(&all);
    return ok;
}
