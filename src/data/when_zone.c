// Zones as tables: the moments at which a clock was put forward or back, and what it was ahead of UTC in between.
//
// Zoneinfo files are TZif (RFC 8536): transitions, then a rule in POSIX TZ form that holds after the last of them. The
// rule is written out as transitions up to WHEN_YEAR_LAST, so that looking up knows tables only. What a file says is
// bounded before it is believed; leap seconds and abbreviations are not read.
#include "data/when.h"

#include "base/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { FILE_MOST = 1 << 20, CHANGES_MOST = 8192, OFFSET_MOST = 26 * 3600, ROOM_OF_RULE = 2 * 300 };

struct when_zone {
    size_t changes, room;
    int64_t *at;     // [changes] UTC, ascending
    int32_t *offset; // [changes + 1] seconds ahead of UTC before each change; the last one holds for ever
};

void when_zone_free(when_zone *z) {
    if (!z) return;
    free(z->at);
    free(z->offset);
    free(z);
}

static when_zone *zone_alloc(size_t room, int32_t first, err *e) {
    when_zone *z = calloc(1, sizeof *z);
    if (z) {
        z->room = room;
        z->at = calloc(room + 1, sizeof *z->at);
        z->offset = calloc(room + 1, sizeof *z->offset);
    }
    if (z && z->at && z->offset) {
        z->offset[0] = first;
        return z;
    }
    when_zone_free(z);
    err_run(e, "no memory for a time zone");
    return NULL;
}

// Adds a change; one at the moment of the last change takes its place, and one before it is left out.
static void zone_add(when_zone *z, int64_t at, int32_t offset) {
    if (z->changes && at < z->at[z->changes - 1]) return;
    if (z->changes && at == z->at[z->changes - 1]) {
        z->offset[z->changes] = offset;
        return;
    }
    CHECK(z->changes < z->room, "a zone of more than %zu changes", z->room);
    z->at[z->changes++] = at;
    z->offset[z->changes] = offset;
}

// A day of the year and a time on it, as POSIX TZ writes one end of daylight saving.
typedef struct {
    char kind; // 'M': the `week`th `day` of a month (week 5 is the last); 'J': day 1..365, 29 February never counted;
               // 'n': day 0..365
    int month, week, day;
    int64_t time; // seconds after midnight
} rule_end;

typedef struct {
    int32_t standard, daylight;
    bool changes;
    rule_end start, end;
} rule;

static bool read_int(const char **p, int most, int *v) {
    if (**p < '0' || **p > '9') return false;
    for (*v = 0; **p >= '0' && **p <= '9'; ++*p) {
        *v = *v * 10 + (**p - '0');
        if (*v > most) return false;
    }
    return true;
}

// [+-]hh[:mm[:ss]]
static bool read_hms(const char **p, int hours_most, int64_t *seconds) {
    bool negative = **p == '-';
    if (negative || **p == '+') ++*p;
    int part[3] = {0};
    if (!read_int(p, hours_most, &part[0])) return false;
    for (int i = 1; i < 3 && **p == ':'; i++) {
        ++*p;
        if (!read_int(p, 59, &part[i])) return false;
    }
    *seconds = part[0] * 3600 + part[1] * 60 + part[2];
    if (negative) *seconds = -*seconds;
    return true;
}

static bool skip_name(const char **p) {
    const char *from = *p;
    if (**p == '<') {
        *p = strchr(*p, '>');
        if (!*p) return false;
        ++*p;
        return true;
    }
    while ((**p >= 'A' && **p <= 'Z') || (**p >= 'a' && **p <= 'z')) ++*p;
    return *p - from >= 3;
}

static bool read_end(const char **p, rule_end *r) {
    if (**p != ',') return false;
    ++*p;
    *r = (rule_end){.kind = 'n', .time = 2 * 3600};
    bool ok;
    if (**p == 'M') {
        ++*p;
        r->kind = 'M';
        ok = read_int(p, 12, &r->month) && *(*p)++ == '.' && read_int(p, 5, &r->week) && *(*p)++ == '.' &&
             read_int(p, 6, &r->day) && r->month && r->week;
    } else {
        if (**p == 'J') r->kind = *(*p)++;
        ok = read_int(p, 365, &r->day) && (r->kind == 'n' || r->day);
    }
    if (!ok || **p != '/') return ok;
    ++*p;
    return read_hms(p, 167, &r->time);
}

// A whole POSIX TZ text: EST5EDT,M3.2.0,M11.1.0
static bool rule_read(const char *p, rule *r) {
    *r = (rule){0};
    int64_t west = 0;
    if (!skip_name(&p) || !read_hms(&p, 24, &west)) return false;
    r->standard = (int32_t)-west;
    r->daylight = r->standard + 3600;
    if (!*p) return true;
    r->changes = true;
    if (!skip_name(&p)) return false;
    if (*p != ',') {
        if (!read_hms(&p, 24, &west)) return false;
        r->daylight = (int32_t)-west;
    }
    return read_end(&p, &r->start) && read_end(&p, &r->end) && !*p;
}

static int64_t end_local(const rule_end *r, int year) {
    int64_t first = when_day(year, 1, 1), day;
    if (r->kind == 'M') {
        int64_t month = when_day(year, r->month, 1);
        int64_t next = r->month == 12 ? when_day(year + 1, 1, 1) : when_day(year, r->month + 1, 1);
        int sunday_first = (when_weekday(month * WHEN_DAY) + 1) % 7;
        day = month + (r->day - sunday_first + 7) % 7 + 7 * (r->week - 1);
        while (day >= next) day -= 7;
    } else if (r->kind == 'J') {
        bool leap = when_day(year + 1, 1, 1) - first == 366;
        day = first + r->day - 1 + (leap && r->day >= 60);
    } else {
        day = first + r->day;
    }
    return day * WHEN_DAY + r->time;
}

// Adds the changes of years `from` to `to`; before and between them the clock shows standard time.
static void rule_apply(when_zone *z, const rule *r, int from, int to) {
    for (int year = from; r->changes && year <= to; year++) {
        int64_t start = end_local(&r->start, year) - r->standard;
        int64_t end = end_local(&r->end, year) - r->daylight;
        if (start < end) zone_add(z, start, r->daylight);
        zone_add(z, end, r->standard);
        if (start >= end) zone_add(z, start, r->daylight);
    }
}

// One block of a TZif file: what its header counts, and where its parts begin.
typedef struct {
    uint32_t times, types;
    size_t width; // of a time
    const unsigned char *time, *index, *type;
    const unsigned char *end;
} tzif;

static uint32_t be32(const unsigned char *p) {
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static int64_t be_time(const unsigned char *p, size_t width) {
    if (width == 4) return (int32_t)be32(p);
    return (int64_t)((uint64_t)be32(p) << 32 | be32(p + 4));
}

static bool tzif_block(const unsigned char *p, const unsigned char *end, size_t width, tzif *b) {
    if (end - p < 44 || memcmp(p, "TZif", 4) != 0) return false;
    uint32_t n[6]; // UT marks, standard marks, leap seconds, times, types, characters
    for (int i = 0; i < 6; i++) {
        n[i] = be32(p + 20 + 4 * i);
        if (n[i] > FILE_MOST) return false;
    }
    size_t bytes = n[3] * (width + 1) + (size_t)n[4] * 6 + n[5] + n[2] * (width + 4) + n[1] + n[0];
    if ((size_t)(end - p) - 44 < bytes || !n[4]) return false;
    b->times = n[3];
    b->types = n[4];
    b->width = width;
    b->time = p + 44;
    b->index = b->time + n[3] * width;
    b->type = b->index + n[3];
    b->end = p + 44 + bytes;
    return true;
}

static bool tzif_offset(const tzif *b, unsigned type, int32_t *offset) {
    if (type >= b->types) return false;
    *offset = (int32_t)be32(b->type + (size_t)type * 6);
    return *offset >= -OFFSET_MOST && *offset <= OFFSET_MOST;
}

// The rule after the last transition: a line of its own behind the block. Absent or empty is fine.
static bool tzif_rule(const tzif *b, const unsigned char *end, rule *r, bool *found) {
    char text[128];
    *found = false;
    const unsigned char *p = b->end;
    if (p == end || *p != '\n') return p == end;
    p++;
    const unsigned char *stop = memchr(p, '\n', (size_t)(end - p));
    if (!stop || (size_t)(stop - p) >= sizeof text) return false;
    if (stop == p) return true;
    memcpy(text, p, (size_t)(stop - p));
    text[stop - p] = 0;
    *found = true;
    return strlen(text) == (size_t)(stop - p) && rule_read(text, r);
}

static bool tzif_fill(when_zone *z, const tzif *b, const rule *r) {
    // Far before any bar; files may begin with the big bang.
    const int64_t early = when_day(1800, 1, 1) * WHEN_DAY, late = when_day(2300, 1, 1) * WHEN_DAY;
    for (uint32_t i = 0; i < b->times; i++) {
        int32_t offset;
        int64_t at = be_time(b->time + i * b->width, b->width);
        if (!tzif_offset(b, b->index[i], &offset)) return false;
        if (i && at <= be_time(b->time + (i - 1) * b->width, b->width)) return false;
        if (at < early) z->offset[0] = offset;
        if (at >= early && at < late) zone_add(z, at, offset);
    }
    if (!r) return true;
    if (!r->changes && !z->changes) z->offset[0] = r->standard;
    int from = z->changes ? when_split(z->at[z->changes - 1]).year : WHEN_YEAR_FIRST;
    rule_apply(z, r, from < WHEN_YEAR_FIRST ? WHEN_YEAR_FIRST : from, WHEN_YEAR_LAST);
    return true;
}

static when_zone *tzif_parse(const unsigned char *p, size_t n, const char *name, err *e) {
    const unsigned char *end = p + n;
    tzif b;
    rule r;
    bool ruled = false;
    int32_t first = 0;
    when_zone *z = NULL;
    bool ok = tzif_block(p, end, 4, &b);
    if (ok && p[4] >= '2') ok = tzif_block(b.end, end, 8, &b) && tzif_rule(&b, end, &r, &ruled);
    ok = ok && b.times <= CHANGES_MOST && tzif_offset(&b, 0, &first);
    if (ok) {
        z = zone_alloc(b.times + ROOM_OF_RULE + 4, first, e);
        if (!z) return NULL;
        ok = tzif_fill(z, &b, ruled ? &r : NULL);
    }
    if (ok) return z;
    when_zone_free(z);
    err_input(
        e, "time zone '%s': its zoneinfo file is damaged; reinstall tzdata or give an offset such as +02:00", name);
    return NULL;
}

static bool unknown(const char *name, err *e) {
    return err_input(e,
        "time zone '%.64s' is not known; give UTC, an offset such as +02:00, mt5, or a name such as Europe/Berlin",
        name);
}

// Zoneinfo names are paths below a folder: nothing that could leave it gets through.
static bool name_ok(const char *name) {
    size_t n = strlen(name);
    if (!n || n > 64 || name[0] == '/' || name[n - 1] == '/' || strstr(name, "..") || strstr(name, "//")) return false;
    return strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_+-/") == n;
}

static when_zone *zone_file(const char *name, err *e) {
    const char *folder = getenv("TZDIR");
    if (!folder || !*folder) folder = "/usr/share/zoneinfo";
    char path[4096];
    if (!name_ok(name) || (size_t)snprintf(path, sizeof path, "%s/%s", folder, name) >= sizeof path) {
        unknown(name, e);
        return NULL;
    }
    size_t bytes = 0;
    char *data = file_read(path, FILE_MOST, &bytes, NULL);
    if (!data) {
        unknown(name, e);
        return NULL;
    }
    when_zone *z = tzif_parse((const unsigned char *)data, bytes, name, e);
    free(data);
    return z;
}

static when_zone *zone_mt5(err *e) {
    // Clocks change at 02:00 in New York, which is 09:00 here before the change.
    static const struct {
        const char *text;
        int from, to;
    } rules[] = {
        {"<+02>-2<+03>,M4.5.0/9,M10.5.0/9", 1967, 1986},
        {"<+02>-2<+03>,M4.1.0/9,M10.5.0/9", 1987, 2006},
        {"<+02>-2<+03>,M3.2.0/9,M11.1.0/9", 2007, WHEN_YEAR_LAST},
    };
    when_zone *z = zone_alloc(ROOM_OF_RULE, 7200, e);
    for (size_t i = 0; z && i < sizeof rules / sizeof *rules; i++) {
        rule r;
        CHECK(rule_read(rules[i].text, &r), "rule %s", rules[i].text);
        rule_apply(z, &r, rules[i].from, rules[i].to);
    }
    return z;
}

// "+2", "-05:30", "+0530", with or without UTC or GMT before it.
static bool fixed_offset(const char *name, int32_t *offset) {
    bool named = !strncasecmp(name, "UTC", 3) || !strncasecmp(name, "GMT", 3);
    if (named) name += 3;
    if (!*name) return (*offset = 0, named);
    bool west = *name == '-';
    if (!west && *name != '+') return false;
    size_t n = strlen(++name), digits = strspn(name, "0123456789");
    int hour, minute = 0;
    if (digits == n && n == 4) {
        hour = (name[0] - '0') * 10 + name[1] - '0';
        minute = (name[2] - '0') * 10 + name[3] - '0';
    } else {
        if (digits < 1 || digits > 2 || !read_int(&name, 15, &hour)) return false;
        if (*name && (*name++ != ':' || strlen(name) != 2 || !read_int(&name, 59, &minute) || *name)) return false;
    }
    if (hour > 15 || minute > 59) return false;
    *offset = (west ? -1 : 1) * (hour * 3600 + minute * 60);
    return true;
}

when_zone *when_zone_new(const char *name, err *e) {
    int32_t offset;
    if (!strcasecmp(name, "mt5")) return zone_mt5(e);
    if (!strcasecmp(name, "EST")) return zone_alloc(0, -5 * 3600, e);
    if (!strcasecmp(name, "Z")) return zone_alloc(0, 0, e);
    if (fixed_offset(name, &offset)) return zone_alloc(0, offset, e);
    return zone_file(name, e);
}

// Where the local clock reaches change `i`; the end of the stretch before it.
static int64_t local_end(const when_zone *z, size_t i) {
    return z->at[i] + z->offset[i];
}

int64_t when_utc(const when_zone *z, int64_t local, int64_t before, size_t *hint, when_kind *kind) {
    size_t i = *hint, n = z->changes;
    *kind = WHEN_PLAIN;
    if (i > n || (i > 0 && local < local_end(z, i - 1)) || (i < n && local >= local_end(z, i))) {
        size_t low = 0, high = n; // the first stretch that ends after `local`
        while (low < high) {
            size_t middle = low + (high - low) / 2;
            if (local < local_end(z, middle))
                high = middle;
            else
                low = middle + 1;
        }
        *hint = i = low;
    }
    int64_t utc = local - z->offset[i];
    if (i > 0 && utc < z->at[i - 1]) {
        *kind = WHEN_SKIPPED;
        return local - z->offset[i - 1];
    }
    if (i < n && local - z->offset[i + 1] >= z->at[i]) {
        int64_t later = local - z->offset[i + 1];
        *kind = WHEN_AMBIGUOUS;
        if (utc <= before && before < later) return later;
    }
    return utc;
}

int64_t when_local(const when_zone *z, int64_t utc, size_t *hint) {
    size_t i = *hint, n = z->changes;
    if (i > n || (i > 0 && utc < z->at[i - 1]) || (i < n && utc >= z->at[i])) {
        size_t low = 0, high = n;
        while (low < high) {
            size_t middle = low + (high - low) / 2;
            if (utc < z->at[middle])
                high = middle;
            else
                low = middle + 1;
        }
        *hint = i = low;
    }
    return utc + z->offset[i];
}

// The same day and time of day some months later; the month's last day where it has no such day, or where the bar opens
// on the last day of its month, as months of an eastern clock do in UTC: 28 February to 31 March.
static int64_t add_months(int64_t local, int64_t months) {
    when_parts p = when_split(local);
    int64_t all = (int64_t)p.year * 12 + p.month - 1 + months;
    int year = (int)(all / 12), month = (int)(all % 12) + 1,
        day = when_date_ok(p.year, p.month, p.day + 1) ? p.day : 31;
    while (!when_date_ok(year, month, day) && day > 28) day--;
    return when_day(year, month, day) * WHEN_DAY + p.hour * WHEN_HOUR + p.minute * 60 + p.second;
}

int64_t when_bar_end(const when_zone *z, int64_t open, int64_t span, size_t *hint) {
    if (span <= WHEN_HOUR) return open + span;
    int64_t local = when_local(z, open, hint);
    int64_t shown = span % WHEN_MONTH ? local + span : add_months(local, span / WHEN_MONTH);
    // The clock of a stretch shows it, or jumps over it where the stretch begins.
    size_t i = *hint;
    while (i < z->changes && shown - z->offset[i] >= z->at[i]) i++;
    int64_t end = shown - z->offset[i];
    return i > *hint && end < z->at[i - 1] ? z->at[i - 1] : end;
}
