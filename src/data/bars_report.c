// The report on bars that were read, for people and for programs.
#include "data/bars.h"

#include "base/term.h"
#include "data/when.h"

#include <stdarg.h>
#include <string.h>

static const struct {
    const char *key, *text;
} findings[BARS_FINDINGS] = {
    [BARS_EMPTY] = {"empty", "all prices missing"},
    [BARS_NOT_POSITIVE] = {"not_positive", "a price of zero or less"},
    [BARS_HIGH_LOW] = {"high_low", "high or low does not enclose open and close"},
    [BARS_FILLED] = {"filled", "flat filling of closed hours"},
    [BARS_DUPLICATE] = {"duplicates", "equal to another row"},
    [BARS_CONFLICT] = {"conflicts", "the stamp of a later row, other figures"},
    [BARS_COARSE] = {"coarse", "coarser bars"},
    [BARS_STRADDLING] = {"straddling", "holds the range of a coarse bar"},
    [BARS_UNSORTED] = {"unsorted", "rows out of place, sorted"},
    [BARS_REPEATED] = {"repeated_hour", "in an hour that the clock showed twice"},
    [BARS_SKIPPED] = {"skipped_hour", "in an hour that the clock skipped; is the zone right?"},
    [BARS_WEEKEND] = {"weekend", "on a weekend"},
    [BARS_FLAT] = {"flat", "flat (open, high, low and close equal)"},
    [BARS_NO_VOLUME] = {"no_volume", "without volume"},
    [BARS_NO_SPREAD] = {"no_spread", "without a spread"},
    [BARS_SHORT_STEP] = {"short_steps", "sooner than a span after the bar before"},
    [BARS_JUMP] = {"jumps", "opens far from the close before"},
    [BARS_WICK] = {"wicks", "high or low far from open and close"},
    [BARS_GAP] = {"gaps", "gaps"},
};

bool bars_left_out(bars_finding f) {
    return f <= BARS_STRADDLING;
}

const char *bars_finding_key(bars_finding f) {
    return findings[f].key;
}

const char *bars_finding_text(bars_finding f) {
    return findings[f].text;
}

static const char *count_text(char *buf, size_t n, int64_t v) {
    term_count(buf, n, (double)v);
    return buf;
}

__attribute__((format(printf, 3, 4))) static void say(FILE *out, const char *label, const char *fmt, ...) {
    va_list args;
    fprintf(out, "  %-10s ", label);
    va_start(args, fmt);
    vfprintf(out, fmt, args);
    va_end(args);
    fputc('\n', out);
}

// The findings of one side, less those that have a line of their own; the label stands before the first. Returns how
// many there were.
static int print_findings(FILE *out, const bars_report *p, bool left_out) {
    int shown = 0;
    for (bars_finding f = 0; f < BARS_FINDINGS; f++) {
        char count[32];
        const bars_tally *t = &p->tally[f];
        bool told = f == BARS_COARSE || f == BARS_GAP || f == BARS_JUMP || f == BARS_WICK ||
                    (f == BARS_NO_VOLUME && !p->has_volume) || (f == BARS_NO_SPREAD && !p->has_spread);
        if (!t->count || told || bars_left_out(f) != left_out) continue;
        const char *label = shown++ ? "" : left_out ? "left out" : "noted";
        say(out, label, "%9s  %s, first in line %lld", count_text(count, sizeof count, t->count), findings[f].text,
            (long long)t->line);
    }
    return shown;
}

static void print_gaps(FILE *out, const bars_report *p) {
    char count[32], missing[32], length[32], at[32];
    const bars_tally *t = &p->tally[BARS_GAP];
    if (!t->count) return;
    say(out, "gaps", "%9s  with %s bar%s missing, first before line %lld; the longest is %s from %s UTC",
        count_text(count, sizeof count, t->count), count_text(missing, sizeof missing, p->missing), term_s(p->missing),
        (long long)t->line, when_span_text(length, sizeof length, p->longest), when_text(at, sizeof at, p->longest_at));
}

static void print_coarse(FILE *out, const bars_report *p) {
    char count[32], span[32], from[32], until[32];
    bool dropped = p->tally[BARS_COARSE].count > 0;
    if (p->coarse_rows)
        say(out, "coarse", "%9s  rows at the beginning are of %s, until %s UTC: %s",
            count_text(count, sizeof count, p->coarse_rows), when_span_text(span, sizeof span, p->coarse_span),
            when_text(until, sizeof until, p->coarse_until), dropped ? "left out" : "kept; gaps are those after them");
    for (int i = 0; i < p->stretches && i < BARS_STRETCHES_MOST; i++) {
        const bars_stretch *s = &p->stretch[i];
        say(out, "coarse", "%9s  rows from line %lld on are of %s, %s to %s UTC: %s",
            count_text(count, sizeof count, s->rows), (long long)s->line, when_span_text(span, sizeof span, s->span),
            when_text(from, sizeof from, s->first), when_text(until, sizeof until, s->last),
            dropped ? "left out" : "kept");
    }
    if (p->stretches > BARS_STRETCHES_MOST)
        say(out, "", "and %lld more such stretches: %s", (long long)(p->stretches - BARS_STRETCHES_MOST),
            dropped ? "left out" : "kept");
}

static void print_jumps(FILE *out, const bars_report *p) {
    char count[32];
    const bars_tally *t = &p->tally[BARS_JUMP];
    if (!t->count) return;
    say(out, "jumps",
        "%9s  over 10 %% and 20 usual moves from a close to the next open, first in line %lld; the largest to "
        "%.4g times the close, in line %lld",
        count_text(count, sizeof count, t->count), (long long)t->line, p->jump, (long long)p->jump_line);
}

static void print_wicks(FILE *out, const bars_report *p) {
    char count[32];
    const bars_tally *t = &p->tally[BARS_WICK];
    if (!t->count) return;
    say(out, "wicks",
        "%9s  over 10 %% and far over the usual from open and close to a high or low, first in line %lld; the largest "
        "to "
        "%.4g times the nearer one, in line %lld",
        count_text(count, sizeof count, t->count), (long long)t->line, p->wick, (long long)p->wick_line);
}

// Hours of the week at the end of the file, in winter and in summer where they differ, and when they changed.
static void print_hours(FILE *out, const bars_report *p) {
    char since[32];
    if (!p->hours[0][0]) return;
    say(out, "hours", "%s%s%s", p->hours[0], p->hours_pattern ? "; is that the market, or are bars missing?" : "",
        strcmp(p->zone, "UTC") ? ", on the file's clock" : "");
    if (p->hours[1][0])
        say(out, "", "in %s summer: %s", p->seasons == BARS_SEASONS_EUROPE ? "Europe's" : "New York's", p->hours[1]);
    if (p->hours_changes)
        say(out, "", "they changed %d time%s, last in the week of %s; shown as since then", p->hours_changes,
            term_s(p->hours_changes), when_text(since, sizeof since, p->hours_since));
}

static void print_forced(FILE *out, const bars_report *p) {
    char list[128];
    if (p->forced) say(out, "forced", "kept although refused: %s", bars_force_text(list, sizeof list, p->forced));
}

static void print_open(FILE *out, const bars_report *p) {
    if (p->last_bar == BARS_OPEN_WHEN_WRITTEN)
        say(out, "left out", "%9d  the last bar, which was not over when the file was written", 1);
}

static void print_thin(FILE *out, const bars_report *p) {
    if (p->last_bar == BARS_THIN) say(out, "last bar", "has hardly any volume and may be unfinished; kept");
}

void bars_report_print(FILE *out, const char *name, const bars *b) {
    const bars_report *p = &b->report;
    char a[32], c[32];
    fprintf(out, "%s%s%s: %s, bars of %s\n", name, *b->symbol ? " " : "", b->symbol, b->format,
        when_span_text(a, sizeof a, b->span));
    say(out, "bars", "%9s  of %s rows%s", count_text(a, sizeof a, b->count), count_text(c, sizeof c, p->rows),
        p->end_only ? " at the end of the file; those before are known" : "");
    say(out, "time", "%s to %s UTC", when_text(a, sizeof a, p->first), when_text(c, sizeof c, p->last));
    say(out, "zone", "%s%s", p->zone, p->zone_assumed ? " (assumed; --tz or data.tz names another)" : "");
    if (p->date_order)
        say(out, "dates", "%s, as line %lld shows", p->date_order == WHEN_DMY ? "day, month, year" : "month, day, year",
            (long long)p->date_order_line);
    bool mixed = 10 * p->tally[BARS_UNSORTED].count > p->rows;
    if (p->turned) say(out, "order", mixed ? "mixed; sorted" : "from new to old; turned round");
    print_coarse(out, p);
    int findings_shown = print_findings(out, p, true);
    print_open(out, p);
    findings_shown += print_findings(out, p, false);
    print_jumps(out, p);
    print_wicks(out, p);
    print_gaps(out, p);
    print_hours(out, p);
    if (!p->has_volume) say(out, "volume", "unknown");
    if (!p->has_spread) say(out, "spread", "unknown");
    print_thin(out, p);
    print_forced(out, p);
    if (!findings_shown && !p->tally[BARS_GAP].count && !p->coarse_rows && !p->tally[BARS_JUMP].count &&
        !p->tally[BARS_WICK].count && !p->forced)
        say(out, "findings", "none");
}

void bars_report_brief(FILE *out, const char *name, const bars *b) {
    const bars_report *p = &b->report;
    int64_t left_out = p->last_bar == BARS_OPEN_WHEN_WRITTEN;
    char a[32], c[32];
    for (bars_finding f = 0; f < BARS_FINDINGS; f++) left_out += bars_left_out(f) ? p->tally[f].count : 0;
    fprintf(out, "bars      %s%s%s: %s bars of %s", name, *b->symbol ? " " : "", b->symbol,
        count_text(a, sizeof a, b->count), when_span_text(c, sizeof c, b->span));
    fprintf(out, ", %s to %s UTC", when_text(a, sizeof a, p->first), when_text(c, sizeof c, p->last));
    fprintf(out, "; %s row%s left out, %s gap%s", count_text(a, sizeof a, left_out), term_s(left_out),
        count_text(c, sizeof c, p->tally[BARS_GAP].count), term_s(p->tally[BARS_GAP].count));
    if (p->missing) fprintf(out, " with %s bar%s missing", count_text(a, sizeof a, p->missing), term_s(p->missing));
    fprintf(out, "; zone %s%s\n", p->zone, p->zone_assumed ? " (assumed)" : "");
    print_coarse(out, p);
    print_findings(out, p, true);
    print_open(out, p);
    if (p->tally[BARS_SKIPPED].count)
        say(out, "noted", "%9s  %s", count_text(a, sizeof a, p->tally[BARS_SKIPPED].count),
            findings[BARS_SKIPPED].text);
    print_jumps(out, p);
    print_wicks(out, p);
    if (p->hours_pattern) print_hours(out, p);
    print_thin(out, p);
}

static json_t *tallies_json(const bars_report *p) {
    json_t *all = json_object();
    for (bars_finding f = 0; f < BARS_FINDINGS; f++) {
        const bars_tally *t = &p->tally[f];
        if (!t->count) continue;
        json_object_set_new(
            all, findings[f].key, json_pack("{s:I, s:I}", "count", (json_int_t)t->count, "line", (json_int_t)t->line));
    }
    return all;
}

static json_t *stretches_json(const bars_report *p) {
    json_t *all = json_array();
    for (int i = 0; i < p->stretches && i < BARS_STRETCHES_MOST; i++) {
        const bars_stretch *s = &p->stretch[i];
        char first[32], last[32];
        json_array_append_new(all, json_pack("{s:I, s:I, s:s, s:s, s:I}", "rows", (json_int_t)s->rows, "span",
                                       (json_int_t)s->span, "first", when_text(first, sizeof first, s->first), "last",
                                       when_text(last, sizeof last, s->last), "line", (json_int_t)s->line));
    }
    return all;
}

static json_t *hours_json(const bars_report *p) {
    static const char *const seasons[] = {"none", "New York", "Europe"};
    char since[32];
    return json_pack("{s:s, s:s, s:s, s:b, s:i, s:s?}", "week", p->hours[0], "summer",
        p->hours[1][0] ? p->hours[1] : p->hours[0], "seasons", seasons[p->seasons], "pattern", p->hours_pattern,
        "changes", p->hours_changes, "since", p->hours_changes ? when_text(since, sizeof since, p->hours_since) : NULL);
}

static json_t *forced_json(unsigned set) {
    json_t *all = json_array();
    for (unsigned i = 0; i < BARS_FORCES; i++)
        if (set & 1u << i) json_array_append_new(all, json_string(bars_force_name((bars_force)(1u << i))));
    return all;
}

json_t *bars_report_json(const char *name, const bars *b) {
    static const char *const last_bar[] = {"finished", "open_when_written", "thin"};
    const bars_report *p = &b->report;
    char first[32], last[32], until[32], from[32];
    json_t *j = json_pack("{s:s, s:s, s:I, s:I, s:I, s:s, s:s, s:s, s:b, s:b, s:s, s:b, s:b}", "file", name, "format",
        b->format, "span", (json_int_t)b->span, "rows", (json_int_t)p->rows, "bars", (json_int_t)b->count, "first",
        when_text(first, sizeof first, p->first), "last", when_text(last, sizeof last, p->last), "zone", p->zone,
        "zone_assumed", p->zone_assumed, "turned", p->turned, "last_bar", last_bar[p->last_bar], "has_volume",
        p->has_volume, "has_spread", p->has_spread);
    bool ok = j && !json_object_set_new(j, "findings", tallies_json(p));
    if (ok && p->date_order) ok = !json_object_set_new(j, "date_order", json_string(when_order_text(p->date_order)));
    if (ok && *b->symbol) ok = !json_object_set_new(j, "symbol", json_string(b->symbol));
    if (ok && p->coarse_rows)
        ok = !json_object_set_new(j, "coarse",
            json_pack("{s:I, s:I, s:s}", "rows", (json_int_t)p->coarse_rows, "span", (json_int_t)p->coarse_span,
                "until", when_text(until, sizeof until, p->coarse_until)));
    if (ok && p->stretches) ok = !json_object_set_new(j, "coarse_stretches", stretches_json(p));
    if (ok && p->stretches > BARS_STRETCHES_MOST)
        ok = !json_object_set_new(
            j, "coarse_stretches_more", json_integer((json_int_t)(p->stretches - BARS_STRETCHES_MOST)));
    if (ok && p->jump_line)
        ok = !json_object_set_new(
            j, "jump", json_pack("{s:o, s:I}", "factor", json_number(p->jump), "line", (json_int_t)p->jump_line));
    if (ok && p->wick_line)
        ok = !json_object_set_new(
            j, "wick", json_pack("{s:o, s:I}", "factor", json_number(p->wick), "line", (json_int_t)p->wick_line));
    if (ok && p->hours[0][0]) ok = !json_object_set_new(j, "hours", hours_json(p));
    if (ok && p->forced) ok = !json_object_set_new(j, "forced", forced_json(p->forced));
    if (ok && p->missing)
        ok = !json_object_set_new(j, "gap",
            json_pack("{s:I, s:I, s:s}", "missing", (json_int_t)p->missing, "longest", (json_int_t)p->longest, "from",
                when_text(from, sizeof from, p->longest_at)));
    if (ok) return j;
    json_decref(j);
    return NULL;
}
