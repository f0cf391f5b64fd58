#include "data/walk.h"

#include "data/volatility.h"

#include "base/rng.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { DAY = 86400, HOUR = 3600 };

static double unit(uint64_t seed, int64_t at, uint32_t lane) {
    rng_block r = rng_philox(seed, (uint32_t)at, (uint32_t)(at >> 32), (uint32_t)RNG_TEST << 16 | lane, 7);
    return ((double)r.v[0] + 0.5) / 4294967296.0;
}

static bool closed(int64_t time) {
    int64_t day = (time / DAY + 3) % 7, second = time % DAY;
    if (day == 4 && second >= 21 * HOUR) return true;
    if (day == 5 || (day == 6 && second < 22 * HOUR)) return true;
    return second >= 21 * HOUR && second < 22 * HOUR;
}

// A price as quoted: in hundredths.
static double quoted(double x) {
    return floor(x * 100 + 0.5) / 100;
}

static void fill(bar *b, double before, double scale, uint64_t seed, int64_t t) {
    double jump = unit(seed, t, 0) < 0.01 ? 4 * (unit(seed, t, 1) - 0.5) : 0;
    b->open = quoted(before * (1 + scale * jump));
    b->close = quoted(b->open * exp(scale * (unit(seed, t, 2) + unit(seed, t, 3) + unit(seed, t, 4) - 1.5)));
    b->high = quoted(fmax(b->open, b->close) * (1 + scale * unit(seed, t, 5) * unit(seed, t, 5)));
    b->low = quoted(fmin(b->open, b->close) * (1 - scale * unit(seed, t, 6) * unit(seed, t, 6)));
    if (unit(seed, t, 7) < 0.01) b->high = b->low = b->close = b->open;
    b->volume = unit(seed, t, 8) < 0.01 ? 0 : floor(1000 * unit(seed, t, 9) * (1 + scale * 500));
    b->spread = floor(20 + 10 * unit(seed, t, 10));
}

bar *walk_bars(int64_t count, int64_t span, uint64_t seed) {
    bar *bars = calloc((size_t)count, sizeof *bars);
    if (!bars) abort();
    int64_t time = 1704067200; // 2024-01-01
    double price = 2000;
    for (int64_t t = 0; t < count; t++) {
        double scale = 1e-3 * (1.2 + sin((double)t / 300) * cos((double)t / 7000));
        while (closed(time) || unit(seed, time, 11) < 0.003) time += span;
        bars[t].time = time;
        bars[t].end = time + span;
        // Pulled towards 2000, so that a long walk stays a price.
        fill(&bars[t], price * pow(2000 / price, 1e-4), scale, seed, t);
        price = bars[t].close;
        time += span;
    }
    return bars;
}

void walk_put(const char *path, int64_t count, int64_t span, uint64_t seed) {
    bar *bars = walk_bars(count, span, seed);
    FILE *f = fopen(path, "w");
    if (!f) abort();
    fputs("time,open,high,low,close,tick_volume,spread\n", f);
    for (const bar *b = bars; b < bars + count; b++)
        fprintf(f, "%lld,%.9g,%.9g,%.9g,%.9g,%.0f,%.0f\n", (long long)b->time, b->open, b->high, b->low, b->close,
            b->volume, b->spread);
    if (fclose(f)) abort();
    free(bars);
}

void walk_scramble(bar *b, uint64_t seed) {
    double open = 1 + 5000 * unit(seed, b->time, 20), close = 1 + 5000 * unit(seed, b->time, 21);
    b->open = open;
    b->close = close;
    b->high = fmax(open, close) * (1 + unit(seed, b->time, 22));
    b->low = fmin(open, close) * (1 - 0.9 * unit(seed, b->time, 23));
    b->volume = 1e6 * unit(seed, b->time, 24);
    b->spread = 1e3 * unit(seed, b->time, 25);
}

static bool parse(const char *line, bar *b) {
    struct tm tm = {0};
    double volume, spread;
    if (sscanf(line, "%d-%d-%d %d:%d:%d,%lf,%lf,%lf,%lf,%lf,%lf", &tm.tm_year, &tm.tm_mon, &tm.tm_mday, &tm.tm_hour,
            &tm.tm_min, &tm.tm_sec, &b->open, &b->high, &b->low, &b->close, &volume, &spread) != 12)
        return false;
    tm.tm_year -= 1900;
    tm.tm_mon--;
    b->time = timegm(&tm);
    b->volume = volume;
    b->spread = spread;
    return true;
}

bar *walk_file(const char *tests, const char *name, int64_t *count) {
    const char *dir = getenv("TRADEWIND_DATA");
    char path[4096], line[512];
    if (dir)
        snprintf(path, sizeof path, "%s/%s", dir, name);
    else
        snprintf(path, sizeof path, "%s/../../shared/data/%s", tests, name);
    FILE *f = fopen(path, "r");
    if (!f) return NULL;
    int64_t room = 1 << 20, n = 0;
    bar *bars = calloc((size_t)room, sizeof *bars);
    while (bars && n < room && fgets(line, sizeof line, f)) n += parse(line, &bars[n]);
    fclose(f);
    *count = n;
    return bars;
}

double *walk_volatility(const bar *bars, int64_t count, int64_t n) {
    err e = {0};
    if (!n) return NULL;
    double *all = calloc((size_t)count + 1, sizeof *all);
    volatility *v = volatility_new(n, &e);
    if (!all || !v) abort();
    for (int64_t t = 0; t < count; t++) all[t] = volatility_push(v, &bars[t]);
    volatility_free(v);
    return all;
}

int64_t *walk_ends(const bar *bars, int64_t count) {
    int64_t *all = calloc((size_t)count + 1, sizeof *all);
    if (!all) abort();
    for (int64_t t = 0; t < count; t++) all[t] = bars[t].end;
    return all;
}
