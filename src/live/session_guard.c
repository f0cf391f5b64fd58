// Watch over a session while no bar comes: clocks, bars that are due, and stops.
#include "live/session_work.h"

#include "data/when.h"

#include <stdlib.h>
#include <string.h>

// Looking

// When the next bar of an instrument should have closed; 0 while its market may be closed: weekends.
static double due_of(const session *s, const trader *t) {
    if (t->end == INT64_MIN || !t->kept) return 0;
    double due = (double)(t->end + s->span[0]);
    int day = when_weekday((int64_t)due);
    return day >= 5 ? 0 : due;
}

bool session_look(session *s, double now, double steady, err *e) {
    s->now = now;
    for (int k = 0; k < s->traders; k++) {
        trader *t = &s->trader[k];
        limits_verdict v[2] = {
            limits_clock(&s->limits, &t->limits, now, steady), limits_stale(&s->limits, &t->limits, now, due_of(s, t))};
        for (int i = 0; i < 2; i++) {
            limits_worse(&t->before, &v[i]);
            if (v[i].answer < LIMITS_NOTE) continue;
            if (!session_tell(s, k, INT64_MIN, limits_rule_key(v[i].rule), v[i].answer, v[i].text, e)) return false;
            if (v[i].answer > LIMITS_SKIP && !session_go_flat(s, k, e)) return false;
        }
        if (t->waits && now - t->waiting.at > WAIT_FOR_COARSE && !session_release(s, k, e)) return false;
    }
    return true;
}

// Stopping

bool session_go_flat(session *s, int k, err *e) {
    trader *t = &s->trader[k];
    const account *a = &t->books.replay.books;
    bool wants = t->has_order ? t->order.units != 0 : a->units != 0;
    if (!t->kept || !wants) return true;
    journal_intent i = {.time = t->end, .until = t->end + s->span[0], .price = t->books.rows.close[1]};
    strcpy(i.symbol, t->symbol);
    if (!journal_begin(s->journal, e)) return false;
    t->order = (account_order){0};
    t->has_order = a->units != 0;
    i.id = journal_put_intent(s->journal, &i);
    if (!t->has_order) journal_put_filled(s->journal, t->symbol, t->time, false); // paper books are flat already
    if (t->unsent) journal_put_sent(s->journal, t->unsent);
    journal_put_books(s->journal, &(journal_books){t->symbol, t->time, &t->books, t->has_order, t->order});
    session_keep_limits(s, k);
    if (!journal_commit(s->journal, e)) return false;
    s->tally.intents++;
    session_give(s, k, &(session_intent){i, false});
    return true;
}

bool session_kill(session *s, double now, const char *why, err *e) {
    s->now = now;
    if (!journal_begin(s->journal, e)) return false;
    for (int k = 0; k < s->traders; k++) {
        limits_state *l = &s->trader[k].limits;
        if (!l->stopped) l->stopped_by = LIMIT_KILL;
        l->stopped = true;
    }
    session_keep_limits(s, -1);
    session_note(s, -1, INT64_MIN, limits_rule_key(LIMIT_KILL), LIMITS_STOP, why);
    if (!session_commit(s, e)) return false;
    for (int k = 0; k < s->traders; k++)
        if (!session_go_flat(s, k, e)) return false;
    return true;
}

bool session_clear(session *s, double now, err *e) {
    s->now = now;
    if (!journal_begin(s->journal, e)) return false;
    for (int k = 0; k < s->traders; k++) limits_clear(&s->trader[k].limits, s->trader[k].books.equity);
    session_keep_limits(s, -1);
    session_note(s, -1, INT64_MIN, "cleared", LIMITS_NOTE, "a stop was taken back");
    return session_commit(s, e);
}

bool session_is_stopped(const session *s) {
    for (int k = 0; k < s->traders; k++)
        if (s->trader[k].limits.stopped) return true;
    return false;
}

limits_rule session_stopped_by(const session *s) {
    for (int k = 0; k < s->traders; k++)
        if (s->trader[k].limits.stopped) return s->trader[k].limits.stopped_by;
    return LIMITS_RULES;
}

bool session_is_over(const session *s) {
    for (int k = 0; k < s->traders; k++)
        if (s->trader[k].books.replay.books.units || s->trader[k].has_order) return false;
    return session_is_stopped(s);
}
