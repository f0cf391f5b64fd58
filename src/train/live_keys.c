#include "train/live_keys.h"

#include "data/when.h"

#include <string.h>

enum { FREE = KEY_FREE | KEY_UNTUNED };

#define ANSWERS "ignore|note|skip|flat|stop"

static const config_key keys[] = {
    {"live", CONFIG_MAP, NULL, 0, 0, NULL, "how a trained model trades a stream of bars (doc/live.md)", FREE},
    {"live.max_lots", CONFIG_REAL, "none", ABOVE_0, 1e9, "none", "largest position of one instrument, in lots", FREE},
    {"live.max_exposure", CONFIG_REAL, "1", ABOVE_0, 10000, "none",
        "largest value of a position, as a multiple of the equity; above 1 the account's leverage is used", FREE},
    {"live.max_day_loss", CONFIG_REAL, "0.05", ABOVE_0, 1, "none",
        "largest loss within a day, as a share of the equity at its start", FREE},
    {"live.max_loss", CONFIG_REAL, "0.2", ABOVE_0, 1, "none",
        "largest loss in all, as a share of the equity at the beginning", FREE},
    {"live.max_orders", CONFIG_INT, "60", 1, LIMITS_ORDERS_MOST, "none", "orders within a minute", FREE},
    {"live.stale", CONFIG_REAL, "120", 1, 1e6, "none", "seconds without a bar after one was due", FREE},
    {"live.clock_jump", CONFIG_REAL, "5", 0.1, 1e6, "none",
        "seconds by which the machine's clock may move otherwise than time does", FREE},
    {"live.late", CONFIG_REAL, "60", 0.001, 1e9, "none", "seconds after its close from which a bar is late", FREE},
    {"live.outside_share", CONFIG_REAL, "0.25", 0, 0.999, "none",
        "share of the inputs that may lie outside what training saw", FREE},
    {"live.outside_by", CONFIG_REAL, "6", 1, 1e6, NULL, "deviations from the mean at which an input lies outside",
        FREE},
    {"live.day_start", CONFIG_TEXT, "00:00", 0, 0, NULL, "time of day, UTC, at which a day of live.max_day_loss begins",
        FREE},
    {"live.durable", CONFIG_CHOICE, "process", 0, 0, "process|power",
        "what a decision survives before it is acted on: the end of the process, or of the power (synced, slower)",
        FREE},
    {"live.fills", CONFIG_CHOICE, "open", 0, 0, "open|quote",
        "what orders fill at: the open of the next bar, as in a backtest, or the feed's next bid and ask", FREE},
#define LIMIT(id, word, answer, help) {"live.answer." word, CONFIG_CHOICE, answer, 0, 0, ANSWERS, help, FREE},
#include "train/limits.def"
#undef LIMIT
};

static const struct {
    const char *word, *key, *help;
} rules[LIMITS_RULES] = {
#define LIMIT(id, word, answer, help) {word, "live.answer." word, help},
#include "train/limits.def"
#undef LIMIT
};

static const char *const answers[] = {[LIMITS_PASS] = "pass",
    [LIMITS_IGNORE] = "ignore",
    [LIMITS_NOTE] = "note",
    [LIMITS_SKIP] = "skip",
    [LIMITS_FLAT] = "flat",
    [LIMITS_STOP] = "stop"};

const config_key *live_keys(size_t *count) {
    *count = sizeof keys / sizeof *keys;
    return keys;
}

const char *limits_rule_key(limits_rule r) {
    return rules[r].word;
}

const char *limits_rule_text(limits_rule r) {
    return rules[r].help;
}

const char *limits_answer_key(limits_answer a) {
    return answers[a];
}

static double number_of(const config *c, const char *key) {
    return config_is(c, key, "none") ? 0 : config_real(c, key);
}

static limits_answer answer_of(const config *c, const char *key) {
    limits_answer a = LIMITS_IGNORE;
    while (a < LIMITS_STOP && strcmp(config_text(c, key), answers[a]) != 0) a++;
    return a;
}

bool limits_read(const config *c, limits *l, err *e) {
    *l = (limits){.max_lots = number_of(c, "live.max_lots"),
        .max_exposure = number_of(c, "live.max_exposure"),
        .max_day_loss = number_of(c, "live.max_day_loss"),
        .max_loss = number_of(c, "live.max_loss"),
        .stale = number_of(c, "live.stale"),
        .clock_jump = number_of(c, "live.clock_jump"),
        .late = number_of(c, "live.late"),
        .outside_share = config_is(c, "live.outside_share", "none") ? 1 : config_real(c, "live.outside_share"),
        .outside_by = config_real(c, "live.outside_by")};
    if (!config_is(c, "live.max_orders", "none")) l->max_orders = (int)config_int(c, "live.max_orders");
    l->power = config_is(c, "live.durable", "power");
    l->quotes = config_is(c, "live.fills", "quote");
    for (int r = 0; r < LIMITS_RULES; r++) l->answer[r] = answer_of(c, rules[r].key);
    const char *day = config_text(c, "live.day_start");
    return when_read_clock(day, strlen(day), &l->day_start) ||
           config_fail(c, "live.day_start", e, "%.40s: is no time of day; write 22:00", day);
}

// A threshold with its unit; "none" where there is none.
static void print_threshold(const limits *l, limits_rule r, char *text, size_t n) {
    double v = 0, by = 1;
    const char *unit = "";
    snprintf(text, n, "%s", "");
    if (r == LIMIT_POSITION && l->max_lots > 0 && l->max_exposure > 0)
        snprintf(text, n, "%g lots, %g times the equity", l->max_lots, l->max_exposure);
    else if (r == LIMIT_POSITION && l->max_lots > 0)
        v = l->max_lots, unit = " lots";
    else if (r == LIMIT_POSITION)
        v = l->max_exposure, unit = " times the equity";
    if (r == LIMIT_DAY_LOSS) v = l->max_day_loss, by = 100, unit = " % of the day's first equity";
    if (r == LIMIT_LOSS) v = l->max_loss, by = 100, unit = " % of the first equity";
    if (r == LIMIT_ORDERS) v = l->max_orders, unit = " in 60 s";
    if (r == LIMIT_STALE) v = l->stale, unit = " s";
    if (r == LIMIT_CLOCK) v = l->clock_jump, unit = " s";
    if (r == LIMIT_LATE) v = l->late, unit = " s";
    if (r == LIMIT_OUTSIDE && l->outside_share < 1)
        snprintf(text, n, "%g %% beyond %g deviations", 100 * l->outside_share, l->outside_by);
    if (v > 0) snprintf(text, n, "%g%s", by * v, unit);
    bool has = r <= LIMIT_LATE || r == LIMIT_OUTSIDE;
    if (has && !*text) snprintf(text, n, "none");
}

void limits_print(const limits *l, FILE *out) {
    for (int r = 0; r < LIMITS_RULES; r++) {
        char text[96];
        print_threshold(l, (limits_rule)r, text, sizeof text);
        fprintf(out, "%-13s %-6s  %s\n", rules[r].word, answers[l->answer[r]], text);
    }
}
