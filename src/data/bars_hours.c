#include "data/bars_hours.h"

#include "data/bars_hours_text.h"

#include <stdlib.h>
#include <string.h>

enum { DAYS = 7, PERIODS = 8, HALF_YEAR = 26, HANDFUL = 8, SHORT = 4, FULL_LEAST = 15, SEASONS = 2, TELL_LEAST = 2 };
enum { AHEAD = 3660 }; // days behind the rows whose hours are known

// A period ends where hours changed.
struct bars_hours {
    int64_t span, slots, weeks;
    int64_t monday;      // day of the first week's Monday
    int64_t first, last; // cells of the first and the last bar, counted from that Monday
    uint8_t *seen;       // [weeks][DAYS * slots]
    bool *active;        // [weeks]: has a bar
    uint8_t *summer;     // [weeks * DAYS + AHEAD]: bits of bars_seasons
    int periods;
    int64_t bound[PERIODS + 1]; // weeks
    bars_seasons rule;
    int32_t *open, *ever;      // [periods][SEASONS][DAYS][slots + 1]: open slots before each slot of such a day, and
                               // slots that ever had a bar
    int32_t *count, *possible; // [DAYS * slots], while counting
};

static int64_t floor_by(int64_t a, int64_t b) {
    return a / b - (a % b < 0);
}

// Days since 1970-01-01, a Thursday.
static int64_t monday_of(int64_t day) {
    return 7 * floor_by(day + 3, 7) - 3;
}

static int64_t cell_of(const bars_hours *h, int64_t local) {
    int64_t day = floor_by(local, WHEN_DAY);
    return (day - h->monday) * h->slots + (local - day * WHEN_DAY) / h->span;
}

// A day's place in `open` and `ever`.
static int64_t place_of(const bars_hours *h, int period, int season, int64_t weekday) {
    return ((period * SEASONS + season) * DAYS + weekday) * (h->slots + 1);
}

static int season_of(const bars_hours *h, bars_seasons rule, int64_t day) {
    return rule != BARS_SEASONS_NONE && h->summer[day] & rule ? 1 : 0;
}

static bool in_europes_summer(int64_t day) {
    when_parts p = when_split(day * WHEN_DAY);
    if (p.month < 3 || p.month > 10) return false;
    if (p.month > 3 && p.month < 10) return true;
    int64_t last = when_day(p.year, p.month, 31), sunday = last - (when_weekday(last * WHEN_DAY) + 1) % 7;
    return p.month == 3 ? day >= sunday : day < sunday;
}

// Which days are in summer, by both rules.
static bool mark_summers(bars_hours *h, err *e) {
    when_zone *z = when_zone_new("mt5", e); // New York's clock and seven hours
    size_t hint = 0;
    if (!z) return false;
    for (int64_t i = 0; i < h->weeks * DAYS + AHEAD; i++) {
        int64_t noon = (h->monday + i) * WHEN_DAY + WHEN_DAY / 2;
        bool new_york = when_local(z, noon, &hint) - noon == 3 * WHEN_HOUR;
        h->summer[i] = (uint8_t)((new_york ? BARS_SEASONS_NEW_YORK : 0) |
                                 (in_europes_summer(h->monday + i) ? BARS_SEASONS_EUROPE : 0));
    }
    when_zone_free(z);
    return true;
}

static void mark_bars(bars_hours *h, const rows *r, size_t from, const when_zone *z) {
    size_t hint = 0;
    int64_t day = -1, midnight = INT64_MIN; // of the bar before
    for (size_t i = from; i < r->count; i++) {
        if (r->row[i].coarse) continue; // says nothing of hours
        int64_t local = when_local(z, r->row[i].bar.time, &hint);
        if (midnight == INT64_MIN || local < midnight || local - midnight >= WHEN_DAY) {
            midnight = floor_by(local, WHEN_DAY) * WHEN_DAY;
            day = midnight / WHEN_DAY - h->monday;
            if (day < 0 || day >= h->weeks * DAYS) { // an hour shown twice may reach over the ends
                midnight = INT64_MIN;
                continue;
            }
            h->active[day / DAYS] = true;
        }
        h->seen[day * h->slots + (local - midnight) / h->span] = 1;
    }
}

// Counts bars in each slot over the weeks of a period, and how many there could be. A season of -1 is both.
static void count_weeks(const bars_hours *h, int64_t from, int64_t to, bars_seasons rule, int season) {
    memset(h->count, 0, (size_t)(DAYS * h->slots) * sizeof *h->count);
    memset(h->possible, 0, (size_t)(DAYS * h->slots) * sizeof *h->possible);
    for (int64_t day = from * DAYS; day < to * DAYS; day++) {
        if (!h->active[day / DAYS] || (season >= 0 && season_of(h, rule, day) != season)) continue;
        int64_t begin = day * h->slots, first = h->first > begin ? h->first - begin : 0;
        int64_t end = h->last - begin + 1 < h->slots ? h->last - begin + 1 : h->slots;
        int32_t *count = h->count + day % DAYS * h->slots, *possible = h->possible + day % DAYS * h->slots;
        const uint8_t *seen = h->seen + begin;
        for (int64_t i = first; i < end; i++) {
            count[i] += seen[i];
            possible[i]++;
        }
    }
}

// The middle of the week together, as short files need it.
static void pool_middle(const bars_hours *h) {
    for (int64_t i = 0; i < h->slots; i++) {
        int32_t count = 0, possible = 0;
        for (int d = 1; d <= 3; d++) {
            count += h->count[d * h->slots + i];
            possible += h->possible[d * h->slots + i];
        }
        for (int d = 1; d <= 3; d++) {
            h->count[d * h->slots + i] = count;
            h->possible[d * h->slots + i] = possible;
        }
    }
}

// Opens the slots of a period and season; returns bars missing in them.
static int64_t open_slots(const bars_hours *h, int period, int season) {
    int64_t missing = 0;
    for (int d = 0; d < DAYS; d++) {
        int64_t at = place_of(h, period, season, d);
        int32_t *open = h->open + at, *ever = h->ever + at;
        open[0] = ever[0] = 0;
        for (int64_t i = 0; i < h->slots; i++) {
            int32_t count = h->count[d * h->slots + i], possible = h->possible[d * h->slots + i];
            bool is_open = count && (h->weeks < SHORT ? 4 * count >= 3 * possible : 2 * count >= possible);
            open[i + 1] = open[i] + is_open;
            ever[i + 1] = ever[i] + (count > 0);
            if (is_open) missing += possible - count;
        }
    }
    return missing;
}

// Opens slots by a rule of seasons; returns bars missing in them.
static int64_t open_by(const bars_hours *h, bars_seasons rule) {
    int64_t missing = 0;
    for (int g = 0; g < h->periods; g++)
        for (int season = 0; season < SEASONS; season++) {
            count_weeks(h, h->bound[g], h->bound[g + 1], rule, rule == BARS_SEASONS_NONE ? -1 : season);
            if (h->weeks < SHORT) pool_middle(h);
            int64_t here = open_slots(h, g, season);
            missing += rule == BARS_SEASONS_NONE && season ? 0 : here;
        }
    return missing;
}

// Seasons apart where that explains a fifth of what is missing, and more than a handful of bars.
static void choose_seasons(bars_hours *h) {
    int64_t least = open_by(h, BARS_SEASONS_NONE), plain = least;
    h->rule = BARS_SEASONS_NONE;
    for (int rule = BARS_SEASONS_NEW_YORK; rule <= BARS_SEASONS_EUROPE && h->weeks >= HALF_YEAR; rule++) {
        int64_t missing = open_by(h, (bars_seasons)rule);
        if (missing >= least || 5 * missing > 4 * plain || plain - missing < HANDFUL) continue;
        least = missing;
        h->rule = (bars_seasons)rule;
    }
    open_by(h, h->rule);
}

// The week from which on hours are others, within some weeks; 0: none. Slots that tell it add the distance of their
// shares, so that the sum is greatest at the change itself.
static int64_t find_change(const bars_hours *h, int64_t from, int64_t to, int32_t *before) {
    int64_t cells = DAYS * h->slots, weeks = 0, passed = 0, at = 0;
    double best = 0;
    count_weeks(h, from, to, BARS_SEASONS_NONE, -1);
    for (int64_t w = from; w < to; w++) weeks += h->active[w];
    memset(before, 0, (size_t)cells * sizeof *before);
    for (int64_t w = from; w < to && weeks >= 2 * HALF_YEAR; w++) {
        int64_t score = 0, b = passed, a = weeks - passed;
        for (int64_t i = 0; i < cells && b >= HALF_YEAR && a >= HALF_YEAR; i++) {
            int64_t left = before[i], right = h->count[i] - left;
            bool closed = 4 * left >= 3 * b && 20 * right <= a, opened = 4 * right >= 3 * a && 20 * left <= b;
            if (closed || opened) score += llabs(left * a - right * b);
        }
        if (score && (double)score / (double)(a * b) > best) {
            best = (double)score / (double)(a * b);
            at = w;
        }
        passed += h->active[w];
        for (int64_t i = 0; i < cells && h->active[w]; i++) before[i] += h->seen[w * cells + i];
    }
    return at;
}

static void split_periods(bars_hours *h, int32_t *before) {
    h->periods = 1;
    h->bound[0] = 0;
    h->bound[1] = h->weeks;
    for (int g = 0; g < h->periods && h->periods < PERIODS;) {
        int64_t at = find_change(h, h->bound[g], h->bound[g + 1], before);
        if (!at) {
            g++;
            continue;
        }
        memmove(&h->bound[g + 2], &h->bound[g + 1], (size_t)(h->periods - g) * sizeof *h->bound);
        h->bound[g + 1] = at;
        h->periods++;
    }
}

void bars_hours_free(bars_hours *h) {
    if (!h) return;
    free(h->seen);
    free(h->active);
    free(h->summer);
    free(h->open);
    free(h->ever);
    free(h->count);
    free(h->possible);
    free(h);
}

static bool fill(bars_hours *h, const rows *r, size_t from, const when_zone *z, err *e) {
    size_t cells = (size_t)(DAYS * h->slots), weeks = (size_t)h->weeks;
    h->seen = calloc(weeks * cells, 1);
    h->active = calloc(weeks, sizeof *h->active);
    h->summer = calloc(weeks * DAYS + AHEAD, 1);
    h->count = calloc(cells, sizeof *h->count);
    h->possible = calloc(cells, sizeof *h->possible);
    int32_t *before = calloc(cells, sizeof *before);
    bool ok = h->seen && h->active && h->summer && h->count && h->possible && before;
    if (ok) {
        mark_bars(h, r, from, z);
        split_periods(h, before);
        size_t places = (size_t)place_of(h, h->periods, 0, 0);
        h->open = calloc(places, sizeof *h->open);
        h->ever = calloc(places, sizeof *h->ever);
    }
    free(before);
    if (!ok || !h->open || !h->ever) return err_run(e, "%s: no memory for its hours", r->name);
    if (!mark_summers(h, e)) return false;
    choose_seasons(h);
    return true;
}

bars_hours *bars_hours_new(const rows *r, size_t from, const when_zone *z, int64_t span, err *e) {
    enum { CELLS_MOST = 1 << 28 };
    size_t hint = 0;
    bars_hours *h = calloc(1, sizeof *h);
    if (!h) {
        err_run(e, "%s: no memory for its hours", r->name);
        return NULL;
    }
    int64_t first = when_local(z, r->row[from].bar.time, &hint);
    int64_t last = when_local(z, r->row[r->count - 1].bar.time, &hint);
    h->span = span;
    h->slots = (WHEN_DAY + span - 1) / span;
    h->monday = monday_of(floor_by(first, WHEN_DAY));
    h->weeks = (floor_by(last, WHEN_DAY) - h->monday) / DAYS + 1;
    h->first = cell_of(h, first);
    h->last = cell_of(h, last);
    bool fits = h->weeks * DAYS * h->slots <= CELLS_MOST;
    if (!fits)
        err_input(e, "%s: bars of %lld s over %lld weeks are too many to survey; are all its stamps right?", r->name,
            (long long)span, (long long)h->weeks);
    if (fits && fill(h, r, from, z, e)) return h;
    bars_hours_free(h);
    return NULL;
}

static int period_of(const bars_hours *h, int64_t week) {
    int g = 0;
    while (g + 1 < h->periods && week >= h->bound[g + 1]) g++;
    return g;
}

// Slots of one of the tables between those of two moments; -1 where the hours of one of them are not known.
static int64_t sum_between(const bars_hours *h, const int32_t *table, int64_t a, int64_t b) {
    int64_t from = cell_of(h, a), to = cell_of(h, b), sum = 0;
    if (from < 0 || to >= (h->weeks * DAYS + AHEAD) * h->slots) return -1;
    int64_t first = from / h->slots, last = to / h->slots;
    for (int64_t day = first; day <= last && from < to; day++) {
        int64_t at = place_of(h, period_of(h, day / DAYS), season_of(h, h->rule, day), day % DAYS);
        int64_t begin = day == first ? from % h->slots + 1 : 0, end = day == last ? to % h->slots : h->slots;
        sum += table[at + end] - table[at + begin];
    }
    return sum;
}

int64_t bars_hours_between(const bars_hours *h, int64_t a, int64_t b) {
    int64_t open = sum_between(h, h->open, a, b);
    return open > 0 ? open : 0;
}

int64_t bars_hours_ever(const bars_hours *h, int64_t a, int64_t b) {
    return sum_between(h, h->ever, a, b);
}

double bars_hours_fullest(const bars_hours *h) {
    int64_t days = 0;
    int32_t best = 0;
    memset(h->count, 0, (size_t)h->slots * sizeof *h->count);
    for (int64_t day = DAYS; day < (h->weeks - 1) * DAYS; day++) {
        const uint8_t *seen = h->seen + day * h->slots;
        bool middle = day % DAYS >= 1 && day % DAYS <= 3;
        if (!middle || !(h->slots == 1 ? h->active[day / DAYS] : memchr(seen, 1, (size_t)h->slots) != NULL)) continue;
        days++;
        for (int64_t i = 0; i < h->slots; i++) h->count[i] += seen[i];
    }
    for (int64_t i = 0; i < h->slots; i++)
        if (h->count[i] > best) best = h->count[i];
    return days < FULL_LEAST ? 1 : (double)best / (double)days;
}

// The words for one season of the last period.
static bool tell_season(const bars_hours *h, int season, char *buf, size_t n, bool *pattern, err *e) {
    bool *open = calloc((size_t)(DAYS * h->slots), sizeof *open);
    if (!open) return err_run(e, "no memory for hours");
    for (int d = 0; d < DAYS; d++)
        for (int64_t i = 0; i < h->slots; i++) {
            const int32_t *before = h->open + place_of(h, h->periods - 1, season, d);
            open[d * h->slots + i] = before[i + 1] > before[i];
        }
    bars_hours_text(buf, n, open, h->slots, h->span, pattern);
    free(open);
    return true;
}

bool bars_hours_tell(const bars_hours *h, bars_report *p, err *e) {
    bool ok = true;
    if (h->weeks <= TELL_LEAST) return true;
    p->seasons = h->rule;
    for (int s = 0; s < SEASONS && ok; s++)
        if (!s || h->rule != BARS_SEASONS_NONE)
            ok = tell_season(h, s, p->hours[s], sizeof p->hours[s], &p->hours_pattern, e);
    if (strcmp(p->hours[0], p->hours[1]) == 0) p->hours[1][0] = 0;
    p->hours_changes = h->periods - 1;
    p->hours_since = (h->monday + h->bound[h->periods - 1] * DAYS) * WHEN_DAY;
    return ok;
}
