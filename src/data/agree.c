#include "data/agree.h"

#include "data/median.h"
#include "data/when.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { SAMPLES = 512, LEAST = 20, STEP = 900, FARTHEST = 14 * WHEN_HOUR, STALE = 4 * WHEN_DAY };

// A moment at which the files are compared.
typedef struct {
    int64_t open, end; // of the slow bar
    int64_t summer;    // what New York's clock is ahead of its winter's, seconds
    double close;
    double apart; // from the fast close, as it stands; negative: no fast bar there
} sample;

typedef struct {
    const bar *fast;
    int64_t fast_count;
    sample sample[SAMPLES];
    int count;
    double usual;     // range of a fast bar, as a logarithm
    double tolerance; // of closes that agree
} comparison;

// The logarithm of slow close / fast close where the last fast bar in the slow one closes. False where none is inside,
// or the fast file does not reach over its end.
static bool compare(const comparison *c, int64_t open, int64_t end, double close, double *ratio) {
    int64_t low = 0, high = c->fast_count;
    if (end > c->fast[high - 1].end || end < c->fast[0].end) return false;
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (c->fast[middle].end <= end)
            low = middle;
        else
            high = middle;
    }
    if (c->fast[low].time < open) return false;
    *ratio = log(close / c->fast[low].close);
    return true;
}

static double usual_range(const bar *b, int64_t count) {
    double range[SAMPLES];
    int n = 0;
    for (int64_t i = 0, by = count / SAMPLES + 1; i < count; i += by)
        if (b[i].high > b[i].low) range[n++] = log(b[i].high / b[i].low);
    return median(range, (size_t)n);
}

static double usual_move(const bar *b, int64_t count) {
    double move[SAMPLES];
    int n = 0;
    for (int64_t i = 1, by = count / SAMPLES + 1; i < count; i += by)
        if (b[i].close != b[i - 1].close) move[n++] = fabs(log(b[i].close / b[i - 1].close));
    return median(move, (size_t)n);
}

// Slow bars near the time of the fast ones, evenly.
static void take_samples(comparison *c, const bar *slow, int64_t slow_count, const when_zone *new_york) {
    int64_t from = c->fast[0].time - FARTHEST, to = c->fast[c->fast_count - 1].end + FARTHEST, first = 0;
    while (first < slow_count && slow[first].end < from) first++;
    int64_t last = slow_count;
    while (last > first && slow[last - 1].end > to) last--;
    size_t hint = 0;
    for (int64_t i = first, by = (last - first) / SAMPLES + 1; i < last; i += by) {
        const bar *b = &slow[i];
        sample *s = &c->sample[c->count++];
        // The mt5 clock is New York's and seven hours: two ahead of UTC in winter.
        *s = (sample){.open = b->time, .end = b->end, .close = b->close, .apart = -1};
        s->summer = when_local(new_york, b->end, &hint) - b->end - 2 * WHEN_HOUR;
    }
}

// The distance of closes that files of this pair keep to, but for rare ones.
static double usual_distance(const comparison *c) {
    double apart[SAMPLES];
    int n = 0;
    for (int i = 0; i < c->count; i++)
        if (c->sample[i].apart >= 0) apart[n++] = c->sample[i].apart;
    qsort(apart, (size_t)n, sizeof *apart, median_order);
    return n ? apart[(int)(0.9 * n)] : 0;
}

// Newest moments that are far off the usual distance: among the last LEAST, and all until some in a row agree.
static void compare_newest(const comparison *c, const bar *slow, int64_t slow_count, agree_report *r) {
    enum { FAR = 3, CALM = 5 };
    int64_t recent = c->fast_count < SAMPLES ? c->fast_count : SAMPLES;
    double ratio, range = usual_range(c->fast + c->fast_count - recent, recent);
    double tolerance = fmax(FAR * usual_distance(c), range / 20);
    int n = 0, calm = 0;
    for (int64_t i = slow_count; i-- > 0 && (n < LEAST || calm < CALM);) {
        if (!compare(c, slow[i].time, slow[i].end, slow[i].close, &ratio)) continue;
        calm++;
        if (fabs(ratio) > tolerance) {
            calm = 0;
            r->newest_run += r->newest_run == n && n < LEAST;
            r->newest_off++;
            r->newest += n < LEAST;
            r->newest_from = slow[i].time;
        }
        n++;
    }
}

// The files as they stand. Returns whether so many closes are equal or nearly so that no shift needs to be tried.
static bool compare_plain(comparison *c, agree_report *r) {
    double ratio[SAMPLES];
    int near = 0, agreed = 0, n = 0;
    for (int i = 0; i < c->count; i++) {
        sample *s = &c->sample[i];
        if (!compare(c, s->open, s->end, s->close, &ratio[n])) continue;
        s->apart = fabs(ratio[n++]);
        agreed += s->apart <= c->tolerance;
        near += s->apart <= c->usual / 20;
    }
    r->compared = n;
    r->agreed = n ? (double)agreed / n : 0;
    r->factor = n ? exp(median(ratio, (size_t)n)) : 0;
    return near >= 0.98 * n;
}

// Mean distance of the closes when the slow file is moved, far ones cut, so that each season counts; negative where the
// shift does not fit clearly better.
static double distance_moved(const comparison *c, int64_t compared, int64_t shift, int summer) {
    double before[SAMPLES], after[SAMPLES], sum = 0, ratio;
    int n = 0, changed = 0, nearer = 0, agreed = 0;
    for (int i = 0; i < c->count; i++) {
        const sample *s = &c->sample[i];
        int64_t by = shift + summer * s->summer;
        if (!compare(c, s->open + by, s->end + by, s->close, &ratio)) continue;
        double now = fabs(ratio);
        n++;
        sum += fmin(now, 8 * c->tolerance);
        agreed += now <= c->tolerance;
        if (s->apart < 0 || s->apart == now) continue;
        nearer += now < s->apart;
        before[changed] = s->apart;
        after[changed++] = now;
    }
    bool enough = changed >= LEAST && 10 * changed >= n && 2 * n >= compared;
    if (!enough || 4 * nearer < 3 * changed || 2 * agreed < n) return -1;
    if (2 * median(after, (size_t)changed) > median(before, (size_t)changed)) return -1;
    return sum / n;
}

// Tries shifts of one step from small to large, plain ones first; of equal ones the first is told.
static void try_shifts(const comparison *c, int64_t step, double *best, agree_report *r) {
    static const int summers[] = {0, -1, 1};
    for (int k = 0; k < 3; k++)
        for (int64_t far = 0; far <= FARTHEST; far += step)
            for (int sign = -1; sign <= 1; sign += 2) {
                double apart = distance_moved(c, r->compared, sign * far, summers[k]);
                if (apart < 0 || apart >= *best) continue;
                *best = apart;
                r->shift = sign * far;
                r->summer = summers[k];
            }
}

// Few clocks differ by parts of an hour: whole ones come first.
static void find_shift(const comparison *c, agree_report *r) {
    double best = INFINITY;
    try_shifts(c, WHEN_HOUR, &best, r);
    try_shifts(c, STEP, &best, r);
}

// The whole hours by which the moments fit clearly better; 0 where they agree as they stand.
static int64_t hours_off(comparison *c) {
    agree_report plain;
    double best = INFINITY;
    int64_t shift = 0;
    if (compare_plain(c, &plain) || plain.compared < LEAST) return 0;
    for (int64_t by = -FARTHEST; by <= FARTHEST; by += WHEN_HOUR) {
        double apart = by ? distance_moved(c, plain.compared, by, 0) : -1;
        if (apart < 0 || apart >= best) continue;
        best = apart;
        shift = by;
    }
    return shift;
}

// The first stretch of the slow file that is on another clock than the rest.
static void find_part(const comparison *all, const agree_bars *slow, const when_zone *new_york, agree_report *r) {
    enum { STRETCH = 64 };
    for (int64_t i = 0; i < slow->count; i += STRETCH) {
        int64_t n = slow->count - i < STRETCH ? slow->count - i : STRETCH;
        comparison c = {.fast = all->fast, .fast_count = all->fast_count};
        c.usual = all->usual;
        c.tolerance = all->tolerance;
        take_samples(&c, slow->bar + i, n, new_york);
        int64_t shift = hours_off(&c);
        if (r->part_shift && shift != r->part_shift) return;
        if (!shift) continue;
        if (!r->part_shift) r->part_from = slow->bar[i].time;
        r->part_shift = shift;
        r->part_to = slow->bar[i + n - 1].time;
    }
}

static char *shift_text(char *buf, size_t n, int64_t shift) {
    char span[32];
    snprintf(buf, n, "%s%s", shift < 0 ? "-" : "+", when_span_text(span, sizeof span, llabs(shift)));
    return buf;
}

static bool judge_newest(
    const agree_report *r, const agree_bars *fast, const agree_bars *slow, unsigned force, unsigned *forced, err *e) {
    char from[32];
    if (2 * r->newest <= LEAST) return true;
    return bars_force_refuse(force, BARS_FORCE_AGREE, forced, e,
        "%s: %d of its newest closes are not those of %s, from %s on, as where bars are saved before they are over or "
        "on another clock; export it anew",
        slow->name, r->newest_off, fast->name, when_text(from, sizeof from, r->newest_from));
}

static bool judge_closes(
    const agree_report *r, const agree_bars *fast, const agree_bars *slow, unsigned force, unsigned *forced, err *e) {
    char by[40], summer[40], more[80] = "";
    if (r->compared < LEAST) return true;
    // A day's close may be that of its main session, hours before the day ends: it is known late, not early.
    if (slow->span >= WHEN_DAY && r->shift < 0) return true;
    if (r->shift || r->summer) {
        if (r->summer)
            snprintf(more, sizeof more, " (%s in New York's summer)",
                shift_text(summer, sizeof summer, r->shift + r->summer * WHEN_HOUR));
        else if (r->shift == -slow->span)
            snprintf(more, sizeof more, ", which is its span: are its bars stamped at their close?");
        return bars_force_refuse(force, BARS_FORCE_AGREE, forced, e,
            "%s: its closes fit those of %s when it is moved by %s%s; export both on one clock, bars stamped at their "
            "open",
            slow->name, fast->name, shift_text(by, sizeof by, r->shift), more);
    }
    if (r->part_shift && !(slow->span >= WHEN_DAY && r->part_shift < 0)) {
        char from[32], to[32];
        return bars_force_refuse(force, BARS_FORCE_AGREE, forced, e,
            "%s: its closes from %s to %s fit those of %s when they are moved by %s: its clock changed; export it "
            "anew, "
            "all on one clock",
            slow->name, when_text(from, sizeof from, r->part_from), when_text(to, sizeof to, r->part_to), fast->name,
            shift_text(by, sizeof by, r->part_shift));
    }
    if (r->agreed >= 0.5) return judge_newest(r, fast, slow, force, forced, e);
    return bars_force_refuse(force, BARS_FORCE_AGREE, forced, e,
        "%s: %.0f %% of its closes agree with those of %s at the same moment, no shift of its clock fits, and they are "
        "%.4g times those; give files of one instrument",
        slow->name, 100 * r->agreed, fast->name, r->factor);
}

static double stale_share(const agree_bars *fast, const agree_bars *slow) {
    int64_t row = -1, seen = 0, stale = 0;
    for (int64_t t = 0; t < fast->count; t++) {
        while (row + 1 < slow->count && slow->bar[row + 1].end <= fast->bar[t].end) row++;
        if (row < 0) continue;
        seen++;
        stale += fast->bar[t].end - slow->bar[row].end > slow->span + STALE;
    }
    return seen ? (double)stale / (double)seen : 1;
}

static bool judge_age(
    const agree_report *r, const agree_bars *fast, const agree_bars *slow, unsigned force, unsigned *forced, err *e) {
    char from[32], to[32], begin[32];
    if (r->stale <= 0.5) return true;
    return bars_force_refuse(force, BARS_FORCE_STALE, forced, e,
        "%s: %.0f %% of the bars of %s, from %s, see none of it that closed within the last 4 days, as it has %s to "
        "%s; export both for the same time",
        slow->name, 100 * r->stale, fast->name, when_text(begin, sizeof begin, fast->bar[0].time),
        when_text(from, sizeof from, slow->bar[0].time), when_text(to, sizeof to, slow->bar[slow->count - 1].time));
}

bool agree_check(const agree_bars *fast, const agree_bars *slow, unsigned force, agree_report *r, err *e) {
    CHECK(fast->count > 0 && slow->count > 0 && slow->span > fast->span, "%lld bars of %lld s and %lld of %lld s",
        (long long)fast->count, (long long)fast->span, (long long)slow->count, (long long)slow->span);
    *r = (agree_report){0};
    when_zone *new_york = when_zone_new("mt5", e);
    if (!new_york) return false;
    comparison c = {.fast = fast->bar, .fast_count = fast->count, .usual = usual_range(fast->bar, fast->count)};
    c.tolerance = fmax(c.usual, usual_move(slow->bar, slow->count) / 2);
    take_samples(&c, slow->bar, slow->count, new_york);
    find_part(&c, slow, new_york, r);
    when_zone_free(new_york);
    if (!compare_plain(&c, r) && r->compared >= LEAST) find_shift(&c, r);
    compare_newest(&c, slow->bar, slow->count, r);
    r->stale = stale_share(fast, slow);
    return judge_closes(r, fast, slow, force, &r->forced, e) && judge_age(r, fast, slow, force, &r->forced, e);
}
