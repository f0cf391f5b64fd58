// The section `live:` of a description: thresholds and answers of the safety rules (live/limits.h acts on them).
#ifndef TRADEWIND_TRAIN_LIVE_KEYS_H
#define TRADEWIND_TRAIN_LIVE_KEYS_H

#include "base/config.h"

// Answers to a broken rule, from mild to severe. `pass`: no rule is broken.
typedef enum { LIMITS_PASS, LIMITS_IGNORE, LIMITS_NOTE, LIMITS_SKIP, LIMITS_FLAT, LIMITS_STOP } limits_answer;

// Rules. limits.def has a row for each: its key, its usual answer and its sentence.
typedef enum {
#define LIMIT(id, word, answer, help) LIMIT_##id,
#include "train/limits.def"
#undef LIMIT
    LIMITS_RULES
} limits_rule;

typedef struct {
    limits_answer answer[LIMITS_RULES];
    double max_lots;      // of one instrument, either side; 0: no limit
    double max_exposure;  // value of the position, as a multiple of the equity; 0: no limit
    double max_day_loss;  // share of the equity at the day's start; 0: no limit
    double max_loss;      // share of the equity at the beginning; 0: no limit
    int max_orders;       // within 60 seconds; 0: no limit
    double stale;         // seconds without a bar after one was due; 0: never
    double clock_jump;    // seconds by which the two clocks may part between two looks; 0: any
    double late;          // seconds after its close from which a bar is late; 0: none is
    double outside_share; // of the inputs, beyond outside_by deviations of what training saw; 0: any
    double outside_by;
    int64_t day_start; // second of the UTC day at which a day begins
    bool power;        // every decision is on the disk before it is acted on
    bool quotes;       // orders fill at the feed's quotes
} limits;

enum { LIMITS_ORDERS_MOST = 1000 }; // of max_orders

// Rows for a table of keys.
const config_key *live_keys(size_t *count);

// Reads the section after config_check. ERR_INPUT names the key.
bool limits_read(const config *c, limits *l, err *e);

// The rules in a few lines for people: threshold and answer of each.
void limits_print(const limits *l, FILE *out);

// A rule in a word ("day_loss") and in a sentence; an answer in a word ("flat").
const char *limits_rule_key(limits_rule r);
const char *limits_rule_text(limits_rule r);
const char *limits_answer_key(limits_answer a);

#endif
