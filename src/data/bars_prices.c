// Prices that cannot be: bars off their neighbours, splits, two instruments in one file, swapped columns.
//
// The measure is the file's own usual move, the median of close against open where they differ, with floors that real
// crashes stay below. A bar is off where it is five times its neighbours (the close before and the open after it)
// or a fifth of them, or one of its prices nine times or a ninth: by a power of ten it is a decimal slip, else a spike.
// A jump is a step from close to open that lasts, into a bar whose own range is small beside it: a market that falls so
// far trades on the way. By a simple factor (3:2, 2:1, 10:1, ...), from 1.4 and 12 usual moves on, it is a split; by
// another, from 1.5 and 60 usual moves on, a change of level. Steps over 10 % and 20 usual moves are noted only. So the
// 20 % of October 1987, a currency's lost peg and a flash crash to an eighth pass, and all of a market whose smallest
// step of price is large. Highs and lows over 10 %, 20 usual moves and 4 usual ranges beyond open and close are noted:
// a wrong one is one bar of many, and markets have such wicks.
//
// A part of a file that goes on from a dataset is judged with the dataset's bars before it, from the first new bar on:
// a day has too few bars for a measure of its own, and a split between two files shows at their seam only.
//
// Opens of bars that follow one another continue the close before them. Where rows of a finer file were left out by a
// regular pattern, the rest looks like bars of a coarser frame, but the moves of the lost bars lie between a close and
// the next open. Bars of less than a day, one span apart, are refused where the mean move from close to open is 0.75 of
// that from open to close or more, and that from close to close 1.25 of it or more. Measured on gold and euro, 5 min to
// 4 h, and frames made of these: 0.01 to 0.08 and 1.00; with every second row 0.86 to 1.10 and 1.32 to 1.49, with every
// third 1.26 to 1.39 and 1.64 to 1.72. Prices that bounce between bid and ask have steps to the open, too (0.95), which
// the next step undoes: their move from close to close is 1.1 or less. A market of few trades in a bar misses moves as
// well (7 trades: 0.61 and 1.20), and shows it by flat bars: with more than 1 % of these nothing is said.
#include "data/bars_rows.h"
#include "data/median.h"

#include <math.h>
#include <stdio.h>

enum { SAMPLES = 2048, LEAST = 32, TENS_MOST = 6 };

static const double OFF_WHOLE = 5, OFF_PART = 9;

typedef struct {
    rows *r;
    size_t seam; // the first bar that is judged; 0: no bars before it are known
    unsigned force;
    double move;         // the usual one, as a share
    double whole, part;  // factors from which on a bar, or one of its prices, is off
    double split, level; // logarithms of the steps from which on they are judged
    double noted, wick;  // and those from which on they are noted
    double gate;         // factor of the smallest step that any rule looks at
} prices;

static const bar *bar_at(const prices *p, size_t i) {
    return &p->r->row[i].bar;
}

static long long line_of(const prices *p, size_t i) {
    return (long long)p->r->row[i].line;
}

// The usual move within bars, so that jumps between them do not raise it; of bars that are mostly flat, from close to
// close.
static double usual_move(const prices *p) {
    double within[SAMPLES + 1], between[SAMPLES + 1];
    size_t n = 0, m = 0;
    for (size_t i = 1, by = p->r->count / SAMPLES + 1; i < p->r->count; i += by) {
        const bar *a = bar_at(p, i - 1), *b = bar_at(p, i);
        if (b->close != b->open) within[n++] = fabs(b->close / b->open - 1);
        if (b->close != a->close) between[m++] = fabs(b->close / a->close - 1);
    }
    return n >= LEAST / 2 ? median(within, n) : median(between, m);
}

// The usual way from low to high, as a share.
static double usual_range(const prices *p) {
    double range[SAMPLES + 1];
    size_t n = 0;
    for (size_t i = 0, by = p->r->count / SAMPLES + 1; i < p->r->count; i += by)
        range[n++] = bar_at(p, i)->high / bar_at(p, i)->low - 1;
    return median(range, n);
}

static prices measure(rows *r, size_t seam, unsigned force) {
    prices p = {.r = r, .seam = seam, .force = force};
    p.move = usual_move(&p);
    p.whole = fmax(OFF_WHOLE, 1 + 100 * p.move);
    p.part = fmax(OFF_PART, 1 + 100 * p.move);
    p.split = fmax(log(1.4), 12 * p.move);
    p.level = fmax(log(1.5), 60 * p.move);
    p.noted = fmax(log(1.1), 20 * p.move);
    p.wick = fmax(p.noted, 4 * usual_range(&p));
    p.gate = exp(fmin(p.noted, fmin(p.split, p.level)));
    return p;
}

// How far a factor may be from a simple one.
static double tolerance(const prices *p) {
    return fmin(fmax(0.02, 3 * p->move), 0.05);
}

// The power of ten that a factor is near to, or 0.
static int tens(const prices *p, double factor) {
    double power = round(log10(factor));
    bool near = fabs(factor / pow(10, power) - 1) < 2 * tolerance(p);
    return near && fabs(power) <= TENS_MOST ? (int)power : 0;
}

// True where a factor above 1 is near a:b of small numbers; finds them.
static bool simple(const prices *p, double factor, int *a, int *b) {
    static const int halves[] = {3, 4, 5, 6, 8, 10, 12, 14, 16, 20, 24, 30, 32, 40, 50, 60, 80, 100, 200, 2000};
    for (size_t i = 0; i < sizeof halves / sizeof *halves; i++) {
        if (fabs(factor / (halves[i] / 2.0) - 1) >= tolerance(p)) continue;
        *a = halves[i] % 2 ? halves[i] : halves[i] / 2;
        *b = halves[i] % 2 ? 2 : 1;
        return true;
    }
    return false;
}

// A bar off its neighbours, or some of its prices: refused as a slip or a spike.
static bool judge_off(const prices *p, size_t i, double around, err *e) {
    const bar *b = bar_at(p, i);
    const struct {
        const char *name;
        double value;
    } all[] = {{"open", b->open}, {"close", b->close}, {"high", b->high}, {"low", b->low}};
    const char *name = NULL;
    double factor = 1;
    int off = 0;
    for (int k = 0; k < 4; k++) {
        double f = all[k].value / around;
        if (f < sqrt(p->part) && f > 1 / sqrt(p->part)) continue;
        off++;
        if (name) continue;
        name = all[k].name;
        factor = f;
    }
    if (off == 4) name = "bar";
    if (!name) return true;
    bool turns = i + 2 < p->r->count && fabs(bar_at(p, i + 2)->close / b->close - 1) < 0.2;
    if (off == 4 && turns)
        return bars_force_refuse(p->force, BARS_FORCE_LEVELS, &p->r->report->forced, e,
            "%s:%lld: every other bar is %.4g times its neighbours (are two instruments in one file?); give each its "
            "own",
            p->r->name, line_of(p, i), factor);
    if (tens(p, factor))
        return bars_force_refuse(p->force, BARS_FORCE_SLIPS, &p->r->report->forced, e,
            "%s:%lld: the %s is %g times its neighbours: its decimal point is in the wrong place; correct the row",
            p->r->name, line_of(p, i), name, pow(10, tens(p, factor)));
    return bars_force_refuse(p->force, BARS_FORCE_SPIKES, &p->r->report->forced, e,
        "%s:%lld: the %s is %.4g times its neighbours; correct or remove the row", p->r->name, line_of(p, i), name,
        factor);
}

static double step_at(const prices *p, size_t i) {
    return log(bar_at(p, i)->open / bar_at(p, i - 1)->close);
}

// A jump goes far in one step, and little within the bar after it.
static bool is_jump(const prices *p, size_t i, double step) {
    const bar *b = bar_at(p, i);
    return log(b->high / b->low) < fabs(step) / 8;
}

// The bar at which a jump is undone, and how many jumps of any kind there are from bar `i` on; these are not counted
// where changes of level are forced, as files of many jumps would take long.
static size_t jump_back(const prices *p, size_t i, double step, size_t *jumps) {
    size_t back = 0;
    *jumps = 0;
    for (size_t k = i; k < p->r->count; k++) {
        double open = bar_at(p, k)->open, close = bar_at(p, k - 1)->close;
        if (open < close * p->gate && close < open * p->gate) continue;
        double other = step_at(p, k);
        if (fabs(other) < p->split || !is_jump(p, k, other)) continue;
        ++*jumps;
        if (!back && fabs(other + step) < 0.1 * fabs(step)) back = k;
        if (back && p->force & BARS_FORCE_LEVELS) break;
    }
    return back;
}

static bool judge_jump(const prices *p, size_t i, double step, err *e) {
    char when[32];
    int a = 0, b = 0;
    size_t jumps;
    double factor = exp(step), size = exp(fabs(step));
    bool split = fabs(step) >= p->split && simple(p, size, &a, &b);
    if (!split && fabs(step) < p->level) return true;
    size_t back = jump_back(p, i, step, &jumps);
    unsigned *forced = &p->r->report->forced;
    bool goes_on = p->seam && i == p->seam;
    const char *before = goes_on ? "the set's last" : "those before";
    when_text(when, sizeof when, bar_at(p, i)->time);
    if (back && tens(p, factor))
        return bars_force_refuse(p->force, BARS_FORCE_SLIPS, forced, e,
            "%s:%lld: prices from here to line %lld are %g times those around: the decimal point is in the wrong "
            "place; correct the rows",
            p->r->name, line_of(p, i), line_of(p, back - 1), pow(10, tens(p, factor)));
    if (back)
        return bars_force_refuse(p->force, BARS_FORCE_LEVELS, forced, e,
            "%s:%lld: prices jump to %.4g times those before and back, %zu jumps in all (are two instruments in one "
            "file?); give each its own",
            p->r->name, line_of(p, i), factor, jumps);
    if (split)
        return bars_force_refuse(p->force, BARS_FORCE_SPLITS, forced, e,
            "%s:%lld: prices from %s on are %.4g times %s, as after a split of %d:%d, or news; use adjusted prices",
            p->r->name, line_of(p, i), when, factor, before, step < 0 ? a : b, step < 0 ? b : a);
    return bars_force_refuse(p->force, BARS_FORCE_LEVELS, forced, e,
        "%s:%lld: prices from %s on are %.4g times %s (%s, or was there news?); %s", p->r->name, line_of(p, i), when,
        factor, before, goes_on ? "is it another instrument" : "are two instruments in one file",
        goes_on ? "give its own bars" : "give each its own");
}

static void note_jump(const prices *p, size_t i, double step) {
    bars_report *r = p->r->report;
    bars_rows_tally(p->r, BARS_JUMP, (int64_t)p->r->row[i].line);
    if (r->jump_line && fabs(step) <= fabs(log(r->jump))) return;
    r->jump = exp(step);
    r->jump_line = (int64_t)p->r->row[i].line;
}

static void note_wick(const prices *p, size_t i) {
    bars_report *r = p->r->report;
    const bar *b = bar_at(p, i);
    double up = b->high / fmax(b->open, b->close), down = b->low / fmin(b->open, b->close);
    double wick = up * down > 1 ? up : down;
    if (fabs(log(wick)) < p->wick) return;
    bars_rows_tally(p->r, BARS_WICK, line_of(p, i));
    if (r->wick_line && fabs(log(wick)) <= fabs(log(r->wick))) return;
    r->wick = wick;
    r->wick_line = line_of(p, i);
}

// One bar and the step to it. An off bar makes two steps of its own, to it and to the next; `*off` is the last such
// bar.
static bool judge_bar(const prices *p, size_t i, size_t *off, err *e) {
    size_t n = p->r->count;
    const bar *b = bar_at(p, i);
    double before = i ? bar_at(p, i - 1)->close : bar_at(p, 1)->open;
    double after = i + 1 < n ? bar_at(p, i + 1)->open : before;
    double high = fmax(before, after), low = fmin(before, after);
    bool whole = b->low > high * p->whole || b->high * p->whole < low;
    if (whole || b->high > high * p->part || b->low * p->part < low) {
        if (!judge_off(p, i, b->high > high * p->whole ? high : low, e)) return false;
        *off = i;
    } else
        note_wick(p, i);
    if (!i || *off == i || *off + 1 == i) return true;
    if (b->open < before * p->gate && before < b->open * p->gate) return true;
    double step = step_at(p, i);
    if (fabs(step) >= p->noted) note_jump(p, i, step);
    return !is_jump(p, i, step) || judge_jump(p, i, step, e);
}

// Nearly all bars lie near the close before them, and need no closer look.
static bool judge_bars(const prices *p, err *e) {
    size_t n = p->r->count, off = n;
    double near = fmin(p->gate, OFF_WHOLE), before = p->seam ? bar_at(p, p->seam - 1)->close : 0;
    for (size_t i = p->seam; i < n; i++) {
        const bar *b = bar_at(p, i);
        bool plain = b->high < before * near && before < b->low * near;
        before = b->close;
        if (!plain && !judge_bar(p, i, &off, e)) return false;
    }
    return true;
}

// An open is near the close before it. Where closes are nearer to the open before them, the two are swapped.
static bool judge_columns(const prices *p, err *e) {
    double right[SAMPLES + 1], wrong[SAMPLES + 1];
    size_t n = 0;
    for (size_t i = 1, by = p->r->count / SAMPLES + 1; i < p->r->count; i += by, n++) {
        const bar *a = bar_at(p, i - 1), *b = bar_at(p, i);
        right[n] = fabs(b->open / a->close - 1);
        wrong[n] = fabs(b->close / a->open - 1);
    }
    if (2 * median(wrong, n) >= median(right, n)) return true;
    return bars_force_refuse(p->force, BARS_FORCE_COLUMNS, &p->r->report->forced, e,
        "%s%s%s: closes are near the open before them, not opens near the close before: open and close are swapped, or "
        "stamps run the wrong way; correct the file",
        p->r->name, *p->r->symbol ? " " : "", p->r->symbol);
}

// Opens that do not continue the closes before them, as the head tells. Far steps are not counted, so that jumps are
// not taken for lost bars.
static bool judge_opens(const prices *p, int64_t span, err *e) {
    enum { PAIRS_LEAST = 256, FAR = 8 };
    double within = 0, before = 0, both = 0;
    size_t n = 0, flat = 0;
    for (size_t i = 1, by = p->r->count / SAMPLES + 1; i < p->r->count; i += by) {
        const bar *a = bar_at(p, i - 1), *b = bar_at(p, i);
        double step = fabs(b->open / a->close - 1);
        if (b->time - a->time != span || step > FAR * p->move) continue;
        within += fabs(b->close / b->open - 1);
        before += step;
        both += fabs(b->close / a->close - 1);
        flat += b->high == b->low;
        n++;
    }
    if (span >= WHEN_DAY || n < PAIRS_LEAST || 100 * flat > n || within <= 0) return true;
    if (before < 0.75 * within || both < 1.25 * within) return true;
    // Moves grow with the root of time: those from close to close are 1.41 of those of a bar where one of two is lost.
    char fine[32], hint[64] = "a finer file with few of its rows";
    if (both < 1.55 * within)
        snprintf(hint, sizeof hint, "every second row of a file of %s", when_span_text(fine, sizeof fine, span / 2));
    return bars_force_refuse(p->force, BARS_FORCE_THIN, &p->r->report->forced, e,
        "%s%s%s: opens do not continue the closes before them: bars are missing between them (is it %s?); export it "
        "whole",
        p->r->name, *p->r->symbol ? " " : "", p->r->symbol, hint);
}

static bool judge_conflicts(const prices *p, err *e) {
    const bars_tally *t = &p->r->report->tally[BARS_CONFLICT];
    if (t->count < LEAST || 20 * t->count < p->r->report->rows) return true;
    return bars_force_refuse(p->force, BARS_FORCE_CONFLICTS, &p->r->report->forced, e,
        "%s:%lld: %lld of %lld rows have the stamp of a later row and other figures (are two instruments in one "
        "file?); "
        "give each its own",
        p->r->name, (long long)t->line, (long long)t->count, (long long)p->r->report->rows);
}

// Columns, stamps and missing rows are matters of the file by itself.
bool bars_rows_prices(rows *r, const joined_rows *j, int64_t span, unsigned force, err *e) {
    rows joined = j->all;
    if (joined.count < LEAST) return true;
    prices all = measure(&joined, j->seam, force), own = measure(r, 0, force);
    bool many = r->count >= LEAST;
    return (!many || (judge_conflicts(&own, e) && judge_columns(&own, e))) && judge_bars(&all, e) &&
           (!many || judge_opens(&own, span, e));
}
