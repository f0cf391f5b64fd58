// A bar of the finest frame: from its close to the intent.
#include "live/session_work.h"

#include "base/json.h"
#include "task/market.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void session_note(session *s, int k, int64_t time, const char *kind, limits_answer answer, const char *text) {
    const char *symbol = k < 0 ? "" : s->trader[k].symbol, *word = limits_answer_key(answer);
    journal_put_event(s->journal, s->now, time, symbol, kind, word, text);
    s->note = realloc(s->note, (size_t)(s->notes + 1) * sizeof *s->note);
    NEED(s->note, "out of memory for notes");
    char *copy = strdup(text);
    NEED(copy, "out of memory for a note");
    s->note[s->notes++] = (session_event){symbol, kind, word, copy, time};
}

static void end_notes(session *s, bool tell) {
    for (int i = 0; i < s->notes; i++) {
        const session_event *n = &s->note[i];
        if (tell && s->listener.event)
            s->listener.event(s->listener.arg, n->symbol, n->time, n->kind, n->answer, n->text);
        free(n->text);
    }
    free(s->note);
    s->note = NULL;
    s->notes = 0;
}

// A program that has kept the session waiting for seconds, up to the last commit or since, is told.
static void note_lock(session *s) {
    const double least = 2;
    char text[96];
    double seconds = journal_locked(s->journal);
    if (seconds < least) return;
    snprintf(text, sizeof text, "another program had the state locked for %.0f s", seconds);
    session_note(s, -1, INT64_MIN, "locked", LIMITS_NOTE, text);
}

bool session_commit(session *s, err *e) {
    note_lock(s);
    bool ok = journal_commit(s->journal, e);
    end_notes(s, ok);
    return ok;
}

void session_abandon(session *s) {
    journal_abandon(s->journal);
    end_notes(s, false);
}

bool session_tell(session *s, int k, int64_t time, const char *kind, limits_answer a, const char *text, err *e) {
    if (!journal_begin(s->journal, e)) return false;
    session_note(s, k, time, kind, a, text);
    session_keep_limits(s, k); // one of them may have said stop
    return session_commit(s, e);
}

void session_give(session *s, int k, const session_intent *i) {
    bool given = !s->listener.intent || s->listener.intent(s->listener.arg, i);
    s->trader[k].unsent = given ? i->intent.id : 0;
}

const char *session_key(char key[SESSION_KEY_ROOM], const char *what, const trader *t) {
    snprintf(key, SESSION_KEY_ROOM, "%s:%s", what, t->symbol);
    return key;
}

void session_keep_limits(session *s, int k) {
    char key[SESSION_KEY_ROOM];
    for (int i = k < 0 ? 0 : k; i < (k < 0 ? s->traders : k + 1); i++) {
        char *text = limits_save(&s->trader[i].limits);
        journal_put_word(s->journal, session_key(key, "limits", &s->trader[i]), text);
        free(text);
    }
}

// The decision made of one bar.
typedef struct {
    trader *t;
    int k;
    const feed_event *ev;
    journal_decision out;
    limits_verdict verdict;
    account_order next;
    bool closes_day; // the day's end closed a position: whoever carries intents out is told
    journal_intent intent;
} deal;

// A verdict of this bar: into the journal, and joined with the others.
static void judge(session *s, deal *d, limits_verdict v) {
    if (v.answer >= LIMITS_NOTE) session_note(s, d->k, d->ev->bar.time, limits_rule_key(v.rule), v.answer, v.text);
    limits_worse(&d->verdict, &v);
}

// The order for the open of a bar: what was decided at the close before. A position that the day before should have
// closed is not held on: the day ended before its hours.
static const account_order *order_at_open(session *s, deal *d, account_order *flat) {
    trader *t = d->t;
    const account_order *o = t->has_order ? &t->order : NULL;
    if (!books_overnight(&t->books, &d->ev->bar)) return o;
    session_note(s, d->k, d->ev->bar.time, "day_close", LIMITS_NOTE,
        "the day before ended earlier than its hours; its position is closed at this open");
    d->closes_day = true;
    *flat = (account_order){0};
    return o && o->units != t->books.replay.books.units ? o : flat;
}

// Fills what was decided at the close before.
static bool fill(session *s, deal *d, err *e) {
    trader *t = d->t;
    const bar *b = &d->ev->bar;
    books_trade ended[BOOKS_TRADES_MOST];
    account_order flat;
    int64_t refusals = t->books.refusals;
    const account_order *o = order_at_open(s, d, &flat);
    int n = books_bar(&t->books, b, o, hours_ends_day(s->hours, t->symbol, s->span[0], b), ended, e);
    if (n < 0) return false;
    if (t->has_order) journal_put_filled(s->journal, t->symbol, b->time, t->books.refusals > refusals);
    for (int i = 0; i < n; i++) {
        journal_put_trade(s->journal, t->symbol, &ended[i]);
        d->closes_day |= ended[i].trade.reason == ACCOUNT_BY_DAY;
    }
    t->has_order = false;
    return true;
}

// The position that stays as it is.
account_order session_keep_position(const account *a) {
    int side = a->units > 0 ? 1 : -1;
    if (!a->units) return (account_order){0};
    return (account_order){
        a->units, a->stop == -ACCOUNT_NEVER ? 0 : side * a->stop, a->target == ACCOUNT_NEVER ? 0 : side * a->target};
}

static bool is_same_side(int64_t a, int64_t b) {
    return (a > 0 && b > 0) || (a < 0 && b < 0);
}

static bool shrinks(const account *a, const account_order *o) {
    return !o->units || (is_same_side(a->units, o->units) && llabs(o->units) < llabs(a->units));
}

// The order that a verdict leaves.
static void restrict_to(const account *a, limits_answer answer, account_order *o) {
    if (answer < LIMITS_SKIP) return;
    if (answer > LIMITS_SKIP)
        *o = (account_order){0};
    else if (a->units && !is_same_side(a->units, o->units))
        *o = (account_order){0};
    else if (!shrinks(a, o))
        *o = session_keep_position(a);
}

static double lots_of(const account_rules *r, int64_t units) {
    return (double)units / (double)r->contract;
}

static void limit_position(session *s, deal *d) {
    const replay *p = &d->t->books.replay;
    double close = (double)d->t->books.rows.close[1] / 1e8, allowed;
    double wanted = lots_of(&p->rules, d->next.units), held = lots_of(&p->rules, p->books.units);
    int64_t lots;
    bool over = false;
    if (!follow_changes(&p->books, &d->next) || !d->next.units) return;
    limits_verdict v = limits_position(&s->limits, &d->t->limits, wanted, held,
        close * ((double)p->rules.contract / 1e8), (double)d->t->books.equity / 1e8, &allowed);
    if (v.answer == LIMITS_PASS) return;
    if (v.answer >= LIMITS_NOTE) session_note(s, d->k, d->ev->bar.time, limits_rule_key(v.rule), v.answer, v.text);
    if (v.answer > LIMITS_SKIP) limits_worse(&d->verdict, &v);
    if (v.answer < LIMITS_SKIP) return;
    if (allowed != wanted && account_fixed(allowed, &lots)) d->next.units = account_units(&p->rules, lots, &over);
    if (over || !d->next.units) d->next = (account_order){0};
    d->out.kind = DECISION_HELD;
}

static void limit_order(session *s, deal *d) {
    const account *a = &d->t->books.replay.books;
    if (!follow_changes(a, &d->next)) return;
    bool less = shrinks(a, &d->next);
    limits_verdict v = limits_order(&s->limits, &d->t->limits, d->ev->at, less);
    if (v.answer == LIMITS_PASS) return;
    judge(s, d, v);
    if (v.answer >= LIMITS_SKIP) restrict_to(a, v.answer, &d->next);
}

static void limit(session *s, deal *d) {
    const account *a = &d->t->books.replay.books;
    account_order was = d->next;
    restrict_to(a, d->verdict.answer, &d->next);
    limit_position(s, d);
    limit_order(s, d);
    if (memcmp(&was, &d->next, sizeof was) != 0) {
        d->out.kind = DECISION_HELD;
        d->out.why = d->verdict.text[0] ? d->verdict.text : "cut to the largest position";
    }
}

// Inputs outside what training saw.
static void judge_inputs(session *s, deal *d, const task *of) {
    int64_t outside, all;
    live_outside(of->scaler, s->board, d->k, s->limits.outside_by, &outside, &all);
    judge(s, d, limits_outside(&s->limits, &d->t->limits, (size_t)outside, (size_t)all));
}

// The model's answer and the decision that it leads to.
static bool answer(session *s, deal *d, err *e) {
    trader *t = d->t;
    journal_decision *o = &d->out;
    int64_t close = t->books.rows.close[1];
    if (!live_model_answer(s->model, d->k, s->answer, e)) return false;
    o->inputs = board_sum(s->board, d->k);
    const task *own = &s->model->trained.task;
    int64_t horizon = own->job.forecasts ? own->data->target_width : s->model->width;
    o->answer = s->answer + (own->job.forecasts ? settings_median(&own->settings) * horizon : 0);
    o->width = horizon;
    limits_verdict finite = limits_answers(&s->limits, &t->limits, s->answer, (size_t)s->model->width);
    if (finite.answer != LIMITS_PASS) o->width = 0;
    judge(s, d, finite);
    judge_inputs(s, d, own);
    o->score = finite.answer != LIMITS_PASS
                   ? (double)NAN
                   : market_answer(&s->model->trained, &s->label, s->answer, (double)close / 1e8);
    o->side = decide_side(&t->record.rule, o->score);
    decide_prediction at = {o->score, o->volatility, close};
    o->kind = DECISION_MADE;
    books_decide(&t->books, &t->record.rule, &at, &d->next);
    limit(s, d);
    return true;
}

static const char ruined_text[] = "the agent is ruined: it decides no more; name another --state to begin anew";

static bool is_ruined(session *s, const deal *d) {
    bool was = live_agent_was_ruined(s->agent, d->k), is = live_agent_is_ruined(s->agent, d->k, &d->t->books);
    if (is && !was) session_note(s, d->k, d->ev->bar.time, "ruin", LIMITS_FLAT, ruined_text);
    return is;
}

// The agent's action, and the order that it leads to; a ruined one only closes what it holds.
static bool act(session *s, deal *d, err *e) {
    bool finite;
    float none = NAN;
    d->out.kind = DECISION_MADE;
    if (is_ruined(s, d)) {
        d->next = (account_order){0};
        d->out.kind = DECISION_HELD;
        d->out.why = ruined_text;
        return true;
    }
    if (!session_ask_agent(s, d->k, &d->out, &d->next, &finite, e)) return false;
    judge(s, d, limits_answers(&s->limits, &d->t->limits, finite ? s->answer : &none, finite ? d->out.width : 1));
    judge_inputs(s, d, &live_agent_trained(s->agent)->task.world.task);
    limit(s, d);
    return true;
}

// A bar that is not answered. It may ruin an agent, which closes what it holds as soon as somebody can trade.
static bool take_unanswered(session *s, deal *d, err *e) {
    books_pass(&d->t->books, &d->t->record.rule);
    if (d->verdict.answer > LIMITS_SKIP && !d->ev->history) limit(s, d);
    return !s->agent || is_ruined(s, d) || session_show_agent(s, d->k, d->ev->bar.end, e);
}

// The intent of an order that was decided at the close of a bar, without its id.
static journal_intent intent_of(const session *s, const deal *d, account_order o) {
    const trader *t = d->t;
    int64_t end = d->ev->bar.end;
    journal_intent i = {.time = end,
        .until = end + s->span[0],
        .order = o,
        .lots = (int64_t)account_round((account_wide)o.units * ACCOUNT_ONE, t->books.replay.rules.contract),
        .price = t->books.rows.close[1]};
    strcpy(i.symbol, t->symbol);
    return i;
}

// A program that was told to be flat behind the books is asked again for what they hold, once somebody may trade on it.
static void ask_again(session *s, const deal *d) {
    trader *t = d->t;
    const account *a = &t->books.replay.books;
    bool decided = d->out.kind == DECISION_MADE || d->out.kind == DECISION_HELD;
    if (!t->astray || (a->units && (!decided || d->verdict.answer >= LIMITS_SKIP))) return;
    session_intent i = {intent_of(s, d, session_keep_position(a)), true};
    i.intent.id = i.intent.time > t->astray ? i.intent.time : t->astray + 1;
    t->astray = 0;
    if (a->units && s->listener.intent) s->listener.intent(s->listener.arg, &i);
}

static void order(session *s, deal *d) {
    trader *t = d->t;
    const account *a = &t->books.replay.books;
    const bar *b = &d->ev->bar;
    d->out.order = d->next;
    t->has_order = d->out.changes = follow_changes(a, &d->next);
    if (!d->out.changes && !d->closes_day) return;
    t->order = d->next;
    d->intent = intent_of(s, d, d->next);
    d->intent.id = journal_put_intent(s->journal, &d->intent);
    if (!t->has_order) journal_put_filled(s->journal, t->symbol, b->time, false); // paper books are there already
    s->tally.intents++;
}

static void count(session *s, const deal *d) {
    s->tally.bars++;
    s->tally.caught += d->out.kind == DECISION_CAUGHT;
    s->tally.cold += d->out.kind == DECISION_COLD;
    s->tally.decided += d->out.kind == DECISION_MADE || d->out.kind == DECISION_HELD;
    s->tally.held += d->out.kind == DECISION_HELD;
}

// Everything of a bar, inside its transaction.
static bool take(session *s, deal *d, err *e) {
    trader *t = d->t;
    const bar *b = &d->ev->bar;
    if (!fill(s, d, e)) return false;
    limits_stale(&s->limits, &t->limits, d->ev->at, 0);
    d->out = (journal_decision){
        .symbol = t->symbol, .bar = *b, .made = d->ev->at, .inputs = -1, .equity = t->books.equity, .score = NAN};
    d->out.volatility = session_push(s, d->k, b);
    d->verdict = t->before;
    t->before = LIMITS_FINE;
    judge(s, d, session_judge_price(s, d->k, b));
    judge(s, d, limits_equity(&s->limits, &t->limits, d->ev->at, t->books.equity));
    limits_verdict stands = limits_standing(&s->limits, &t->limits);
    limits_worse(&d->verdict, &stands);
    d->next = session_keep_position(&t->books.replay.books);
    d->out.kind = d->ev->history ? DECISION_CAUGHT : DECISION_COLD;
    bool answers = !d->ev->history && session_is_ready(s, d->k);
    if (!(!answers ? take_unanswered(s, d, e) : s->agent ? act(s, d, e) : answer(s, d, e))) return false;
    order(s, d);
    if (d->ev->bid > 0 && !d->ev->history && session_fills_at(s, d->k, b, b->end) &&
        !session_fill_quote(s, d->k, d->ev, b->end, e))
        return false;
    journal_put_bar(s->journal, t->symbol, 0, b);
    journal_put_decision(s->journal, &d->out);
    if (t->unsent) journal_put_sent(s->journal, t->unsent);
    t->time = b->time;
    t->end = b->end;
    journal_put_books(s->journal, &(journal_books){t->symbol, t->time, &t->books, t->has_order, t->order});
    session_keep_limits(s, d->k);
    if (s->agent) session_keep_memory(s, d->k);
    if (!t->kept || ++t->unsaved >= STATE_EVERY) session_save_state(s, d->k);
    return true;
}

bool session_bar(session *s, int k, const feed_event *ev, err *e) {
    deal d = {.t = &s->trader[k], .k = k, .ev = ev, .verdict = LIMITS_FINE};
    if (!journal_begin(s->journal, e)) return false;
    if (!take(s, &d, e)) {
        session_abandon(s);
        return false;
    }
    if (!session_commit(s, e)) return false;
    count(s, &d);
    d.t->kept = true;
    d.t->unsent = 0;
    if (!d.intent.id) {
        ask_again(s, &d);
        return true;
    }
    d.t->astray = 0;
    session_give(s, k, &(session_intent){d.intent, false});
    return true;
}
