// New bars checked against those of the dataset that they go on from: bars that both have are the same, the dataset
// lacks none that the file has, and coarser files agree with the finest where old and new bars meet.
#include "data/agree.h"
#include "data/sources_work.h"
#include "data/when.h"

#include <stdlib.h>

bool sources_same_bar(const bar *a, const bar *b) {
    return a->open == b->open && a->high == b->high && a->low == b->low && a->close == b->close &&
           a->volume == b->volume && a->spread == b->spread;
}

// The bars of a file up to the dataset's last one, beside those of the dataset.
typedef struct {
    int64_t both;        // at the same moments
    int64_t differ;      // of these, with other figures
    bar here, there;     // the first of these, of the file and of the dataset
    int64_t lacks;       // bars of the file that the dataset lacks within its own time
    int64_t first, last; // of these
} overlap;

// Rows before the first that both have may be the end of a stretch of coarser bars, which the dataset left out: of them
// only bars a span apart count.
static void note_lacking(overlap *o, const bars *b, int64_t i) {
    int64_t step = i + 1 < b->count ? b->bar[i + 1].time - b->bar[i].time : 0;
    if (!o->both && step >= 2 * b->span) return;
    if (!o->lacks++) o->first = b->bar[i].time;
    o->last = b->bar[i].time;
}

static overlap compare(const bar_table *t, int series, const bars *b, int64_t count) {
    overlap o = {0};
    int64_t row = count ? dataset_bar_from(t, series, b->bar[0].time) : 0, begin = t->time[2 * t->start[series]];
    for (int64_t i = 0; i < count; i++) {
        while (row < t->start[series + 1] && t->time[2 * row] < b->bar[i].time) row++;
        if (b->bar[i].time < begin) continue;
        if (row == t->start[series + 1] || t->time[2 * row] != b->bar[i].time) {
            note_lacking(&o, b, i);
            continue;
        }
        bar there = dataset_bar(t, row);
        o.both++;
        if (sources_same_bar(&b->bar[i], &there)) continue;
        if (o.differ++) continue;
        o.here = b->bar[i];
        o.there = there;
    }
    return o;
}

static bool is_other_level(double a, double b) {
    double factor = a / b;
    return !(factor > 0.5 && factor < 2);
}

// The first figure in which the bars differ: "close 1.5, there 1.6".
static const char *difference(const bar *here, const bar *there, char *text, size_t room) {
    const struct {
        const char *name;
        double here, there;
    } of[] = {{"close", here->close, there->close}, {"open", here->open, there->open},
        {"high", here->high, there->high}, {"low", here->low, there->low}, {"volume", here->volume, there->volume},
        {"spread", here->spread, there->spread}};
    size_t i = 0;
    while (i < 5 && of[i].here == of[i].there) i++;
    snprintf(text, room, "%s %.8g, there %.8g", of[i].name, of[i].here, of[i].there);
    return text;
}

static bool refuse_differing(
    sources *s, const dataset *old, const source_file *f, const overlap *o, bool last, unsigned force, err *e) {
    char when[32], what[80];
    when_text(when, sizeof when, o->there.time);
    difference(&o->here, &o->there, what, sizeof what);
    if (is_other_level(o->here.close, o->there.close))
        return err_input(e,
            "%s: its bar of %s closes at %.8g, the one in %s at %.8g (is it another instrument?); give the set's own "
            "bars",
            f->path, when, o->here.close, old->name, o->there.close);
    if (o->differ == 1)
        return bars_force_refuse(force, BARS_FORCE_CONFLICTS, &s->forced, e,
            "%s: its bar of %s differs from the one in %s (%s)%s; import all bars anew", f->path, when, old->name, what,
            last ? ": was that one saved before it was over?" : "");
    return bars_force_refuse(force, BARS_FORCE_CONFLICTS, &s->forced, e,
        "%s: %lld of its bars differ from those in %s, of %lld that both have, the first of %s (%s); import all bars "
        "anew",
        f->path, (long long)o->differ, old->name, (long long)o->both, when, what);
}

bool sources_check_known(sources *s, const dataset *old, const source_file *f, int series, int frame, int64_t known,
    unsigned force, err *e) {
    const bar_table *t = &old->stream[frame].bars;
    bar last = dataset_bar(t, t->start[series + 1] - 1);
    char from[32], to[32];
    if (!known) return true;
    const bar *newest = &f->bars.bar[known - 1];
    overlap o = compare(t, series, &f->bars, known);
    if (o.differ && !refuse_differing(s, old, f, &o, o.there.time == last.time, force, e)) return false;
    if (known == f->bars.count && !o.both)
        return err_input(e, "%s: ends %s, none of its newest bars is in %s, and none is newer; is it the right file?",
            f->path, when_text(to, sizeof to, newest->time), old->name);
    if (known < f->bars.count && newest->time != last.time)
        return err_input(e, "%s: has no bar of %s, the last one in %s; import all bars anew", f->path,
            when_text(from, sizeof from, last.time), old->name);
    return !o.lacks || bars_force_refuse(force, BARS_FORCE_THIN, &s->forced, e,
                           "%s: has %lld bar%s that %s lacks, from %s to %s; import all bars anew", f->path,
                           (long long)o.lacks, o.lacks == 1 ? "" : "s", old->name,
                           when_text(from, sizeof from, o.first), when_text(to, sizeof to, o.last));
}

// Agreement

// Judges new coarse bars by themselves where they are enough, as old ones that fit would hide a clock that changed;
// then old and new together, and the very newest: of few new ones all are wrong, or none is.
static bool judge_pair(
    sources *s, const agree_bars *fast, const agree_bars *slow, int64_t fresh, unsigned force, err *e) {
    enum { ENOUGH = 20, RUN = 4 };
    agree_report r = {0};
    if (fresh >= ENOUGH) {
        agree_bars newer = {slow->bar + slow->count - fresh, fresh, slow->span, slow->name};
        bool ok = agree_check(fast, &newer, force | BARS_FORCE_STALE, &r, e);
        s->forced |= r.forced & ~(unsigned)BARS_FORCE_STALE;
        if (!ok) return false;
    }
    bool ok = agree_check(fast, slow, force, &r, e);
    s->forced |= r.forced;
    if (!ok || r.compared < ENOUGH || r.newest_run < RUN) return ok;
    return bars_force_refuse(force, BARS_FORCE_AGREE, &s->forced, e,
        "%s: its newest %d closes are not those of %s; export both on one clock, bars stamped at their open and over",
        slow->name, r.newest_run, fast->name);
}

static bool check_pair(sources *s, const dataset *old, int series, int frame, unsigned force, err *e) {
    enum { COARSE = 256 };
    const bar_table *fine = &old->stream[0].bars, *t = &old->stream[frame].bars;
    const build_bars_of *of = s->series[series].frame;
    if (of[frame].made || (!of[0].count && !of[frame].count)) return true;
    int64_t row = t->start[series + 1] - COARSE;
    if (row < t->start[series]) row = t->start[series];
    int64_t from = dataset_bar_from(fine, series, t->time[2 * row]);
    agree_bars fast = {.span = s->build.frame[0].span, .name = of[0].file};
    agree_bars slow = {.span = s->build.frame[frame].span, .name = of[frame].file};
    bar *fasts = sources_newest(fine, series, from, &of[0], &fast.count);
    bar *slows = sources_newest(t, series, row, &of[frame], &slow.count);
    fast.bar = fasts;
    slow.bar = slows;
    bool ok = (fasts && slows) || sources_no_memory(s, e);
    if (ok && fast.count && slow.count) ok = judge_pair(s, &fast, &slow, of[frame].count, force, e);
    free(fasts);
    free(slows);
    return ok;
}

bool sources_check_agreement(sources *s, const dataset *old, unsigned force, err *e) {
    for (int k = 0; k < s->build.series; k++)
        for (int i = 1; i < s->build.frames; i++)
            if (!check_pair(s, old, k, i, force, e)) return false;
    return true;
}
