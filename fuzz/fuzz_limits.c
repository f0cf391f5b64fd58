// The saved state of the limits from bytes: what is taken is written as it was read, and every rule works on it.
#include "live/limits.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void use(limits_state *s, double v) {
    static const float odd[] = {0, 1, 7, NAN};
    limits l = {.max_lots = 1,
        .max_exposure = 1,
        .max_day_loss = 0.05,
        .max_loss = 0.2,
        .max_orders = 10,
        .stale = 10,
        .clock_jump = 5,
        .outside_share = 0.1,
        .outside_by = 6};
    for (int r = 0; r < LIMITS_RULES; r++) l.answer[r] = LIMITS_IGNORE + (limits_answer)(r % 5);
    double allowed;
    limits_standing(&l, s);
    limits_equity(&l, s, v, 1000);
    limits_equity(&l, s, v + 86400, 10);
    limits_stale(&l, s, v, 1);
    limits_clock(&l, s, v, 3);
    limits_clock(&l, s, v + 50, 4);
    limits_position(&l, s, v, 0.5, 100, 1000, &allowed);
    CHECK(!isnan(allowed), "a position that is no number");
    limits_inputs(&l, s, odd, 4);
    limits_answers(&l, s, odd, 4);
    for (int i = 0; i < 12; i++) limits_order(&l, s, v, i % 2);
    CHECK(s->orders >= 0 && s->orders <= LIMITS_ORDERS_MOST, "%d orders", s->orders);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    limits_state s, again;
    err e = {0};
    limits_begin(&s);
    if (!limits_load(&s, (const char *)data, size, &e)) {
        CHECK(e.kind == ERR_INPUT && e.text[0], "no reason");
        return 0;
    }
    char *text = limits_save(&s);
    CHECK(limits_load(&again, text, strlen(text), &e), "%s", e.text);
    char *second = limits_save(&again);
    CHECK(!strcmp(text, second), "saved otherwise: %s and %s", text, second);
    free(text);
    free(second);
    use(&s, s.machine);
    return 0;
}
