#include "cli/age.h"

#include "base/term.h"
#include "data/latest.h"
#include "data/when.h"

#include <time.h>

enum { DAY = 86400, NAMED_MOST = 4 };

static bar last_bar(const dataset *d, int64_t series) {
    const bar_table *t = &d->stream[0].bars;
    return dataset_bar(t, t->start[series + 1] - 1);
}

static bool has_bars(const dataset *d, int64_t series) {
    const int64_t *start = d->stream[0].bars.start;
    return start[series + 1] > start[series];
}

int64_t age_newest(const dataset *d) {
    int64_t newest = INT64_MIN;
    for (int64_t k = 0; k < dataset_series(d); k++)
        if (has_bars(d, k) && last_bar(d, k).end > newest) newest = last_bar(d, k).end;
    return newest;
}

// True where so many seconds are more than three bars and a long weekend.
static bool is_long(const dataset *d, int64_t seconds) {
    bar b = last_bar(d, 0);
    return seconds > 3 * (b.end - b.time) + 4 * DAY;
}

// Instruments whose bars end long before those of others; some are named.
static void tell_behind(const dataset *d, int64_t newest, FILE *out) {
    char when[32], days[32];
    int64_t behind = 0;
    for (int64_t k = 0; k < d->panel; k++) {
        int64_t last = has_bars(d, k) ? last_bar(d, k).end : newest;
        if (!is_long(d, newest - last) || ++behind > NAMED_MOST) continue;
        term_count(days, sizeof days, (double)((newest - last) / DAY));
        fprintf(out, "note      %s ends %s UTC, %s days before the newest bar\n", d->panel_names[k],
            when_moment_text(when, sizeof when, last), days);
    }
    if (behind > NAMED_MOST)
        fprintf(out, "note      %lld more end long before the newest bar\n", (long long)behind - NAMED_MOST);
}

void age_tell(const dataset *d, FILE *out) {
    char when[32], days[32];
    int64_t newest = age_newest(d), age = (int64_t)time(NULL) - newest;
    term_count(days, sizeof days, (double)(age / DAY));
    if (is_long(d, age))
        fprintf(out, "note      newest bar closed %s UTC, %s days ago\n", when_moment_text(when, sizeof when, newest),
            days);
    tell_behind(d, newest, out);
}

json_t *age_late(const dataset *d, int64_t series) {
    json_t *all = NULL;
    char text[192];
    for (int64_t k = 0; k < dataset_series(d); k++)
        for (int i = 1; i < d->streams && (series < 0 || series == k); i++) {
            if (!latest_is_late(d, k, i, text, sizeof text)) continue;
            if (!all) all = json_array();
            json_array_append_new(all, json_string(text));
        }
    return all;
}
