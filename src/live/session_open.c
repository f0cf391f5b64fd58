// A session opens on a run and goes on from its journal, begins, and closes.
#include "live/session_work.h"

#include "base/json.h"
#include "task/agent_backtest.h"
#include "task/backtest_work.h"
#include "task/keys.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

// Instruments, frames, limits

static int64_t find_series(const dataset *d, const char *symbol) {
    for (int64_t k = 0; k < d->panel; k++)
        if (strcmp(d->panel_names[k], symbol) == 0) return k;
    return -1;
}

static bool choose_traders(session *s, const dataset *d, const session_options *o, err *e) {
    int64_t all = dataset_series(d);
    s->traders = o->symbols ? o->symbols : (int)all;
    s->trader = calloc((size_t)s->traders, sizeof *s->trader);
    if (!s->trader) return err_run(e, "no memory for %d instruments", s->traders);
    for (int k = 0; k < s->traders; k++) {
        trader *t = &s->trader[k];
        int64_t series = o->symbols ? find_series(d, o->symbol[k]) : k;
        if (series < 0) return market_refuse(d, o->symbol[k], e);
        for (int i = 0; i < k; i++)
            if (s->trader[i].series == series) return err_input(e, "--symbol %s: is given twice", o->symbol[k]);
        t->series = series;
        t->time = t->end = t->taken = INT64_MIN;
        t->before = LIMITS_FINE;
        limits_begin(&t->limits);
        if (d->panel) snprintf(t->symbol, sizeof t->symbol, "%s", d->panel_names[series]);
    }
    return true;
}

// Frames that were made of the finest in training are made here too; all are with `build`.
static void choose_frames(session *s, const dataset *d, bool build) {
    size_t i;
    json_t *each;
    s->frames = d->streams;
    for (int f = 0; f < d->streams; f++) s->span[f] = d->span[f];
    for (int f = 1; build && f < d->streams; f++) s->made |= 1u << f;
    json_array_foreach(json_object_get(d->about, "sources"), i, each) {
        const char *name = json_string_value(json_object_get(each, "stream"));
        for (int f = 1; name && f < d->streams; f++)
            if (strcmp(d->stream[f].name, name) == 0 && json_is_true(json_object_get(each, "made"))) s->made |= 1u << f;
    }
}

static bool check_frames(const session *s, const dataset *d, err *e) {
    for (int f = 1; f < s->frames; f++)
        if (s->made & (1u << f) && !frame_divides(s->span[0], s->span[f]))
            return err_input(e, "%s: bars of %s cannot be made of those of %s; give the feed both", d->name,
                d->stream[f].name, d->stream[0].name);
    return true;
}

// A rehearsal is compared with a backtest, which knows no limits but those that somebody asked for.
static void lift_limits(session *s, const task *t) {
    const task_description *given = &t->options.description;
    limits *l = &s->limits;
    if (!task_key_given(given, "live.max_exposure")) l->max_exposure = 0;
    if (!task_key_given(given, "live.max_day_loss")) l->max_day_loss = 0;
    if (!task_key_given(given, "live.max_loss")) l->max_loss = 0;
    if (!task_key_given(given, "live.max_orders")) l->max_orders = 0;
    if (!task_key_given(given, "live.outside_share")) l->outside_share = 1;
    if (!task_key_given(given, "live.answer.instrument")) l->answer[LIMIT_INSTRUMENT] = LIMITS_NOTE;
}

static char *copy_text(const char *text) {
    char *copy = text ? strdup(text) : NULL;
    NEED(copy || !text, "out of memory for a text");
    return copy;
}

// Files of bars are read as those of the run's data were: a set from import says how.
static void take_reading(session *s) {
    const dataset *d = s->task->data;
    const bars_options *r = &s->task->settings.bars;
    json_t *set = json_object_get(d->about, "reading");
    const char *tz = json_string_value(json_object_get(set, "tz"));
    const char *columns = json_string_value(json_object_get(set, "columns"));
    const char *order = json_string_value(json_object_get(set, "date_order"));
    s->tz = copy_text(tz ? tz : r->tz);
    s->columns = copy_text(columns ? columns : r->columns);
    s->reading = (bars_options){.tz = s->tz, .columns = s->columns, .date_order = r->date_order};
    if (order) when_order_read(order, &s->reading.date_order);
    s->reading.force = r->force;
}

static bool read_settings(session *s, const session_options *o, err *e) {
    const task *t = s->task;
    const dataset *d = t->data;
    s->label = build_defaults;
    if (!market_has_bars(d, e) || (!s->by_agent && !backtest_work_tradable(&s->own, o->run.run, e))) return false;
    if (!s->by_agent && !build_label_read(json_object_get(d->about, "label"), &s->label))
        return err_input(e, "%s: does not say what its labels mean; make it again with import", d->name);
    if (!account_terms_read(t->config, &s->terms, e) || !limits_read(t->config, &s->limits, e)) return false;
    if (o->rehearsal) lift_limits(s, t);
    choose_frames(s, d, o->build);
    take_reading(s);
    return choose_traders(s, d, o, e) && check_frames(s, d, e);
}

// Knowledge of the journal

static bool take_limits(session *s, trader *t, err *e) {
    char key[SESSION_KEY_ROOM], *text;
    if (!journal_word(s->journal, session_key(key, "limits", t), &text, e)) return false;
    bool ok = !text || limits_load(&t->limits, text, strlen(text), e);
    free(text);
    return ok;
}

// True where a symbol is traded by this session.
static bool is_traded(const session *s, const char *symbol) {
    for (int k = 0; k < s->traders; k++)
        if (strcmp(s->trader[k].symbol, symbol) == 0) return true;
    return false;
}

// Nobody would close a position of an instrument that is left out.
static bool leaves_none_out(const session *s, err *e) {
    json_t *rows = journal_rows(s->journal, "SELECT symbol FROM books WHERE units != 0 OR order_units != 0", NULL, e),
           *each;
    size_t i;
    bool ok = rows != NULL;
    json_array_foreach(rows, i, each) {
        const char *symbol = json_string_value(json_object_get(each, "symbol"));
        if (!symbol || is_traded(s, symbol)) continue;
        ok = err_input(e, "%s: holds a position of %s, which would be left alone; name it with --symbol too",
            s->options.state, *symbol ? symbol : "an instrument without a name");
        break;
    }
    json_decref(rows);
    return ok;
}

// A state that goes on by another rule says so.
static bool tell_others(session *s, err *e) {
    s->now = (double)time(NULL);
    for (int k = 0; k < s->traders; k++)
        if (s->trader[k].kept && s->trader[k].other &&
            !session_tell(s, k, INT64_MIN, "rule", LIMITS_NOTE,
                "weights, signal or account settings are not those that the state was kept with; the rule is made anew",
                e))
            return false;
    return true;
}

// Goes on where an earlier process ended; `*cold` is set where an instrument has nothing to go on from.
static bool restore(session *s, bool *cold, err *e) {
    for (int k = 0; k < s->traders; k++) {
        trader *t = &s->trader[k];
        bool ok = journal_take_books(s->journal, t->symbol, &t->books, &t->time, &t->has_order, &t->order, &t->kept, e);
        if (!ok || !take_limits(s, t, e) || (t->kept && !session_load_state(s, k, e))) return false;
        if (t->kept && s->by_agent && !session_take_memory(s, k, e)) return false;
        *cold |= !t->kept;
        t->taken = t->time;
    }
    return leaves_none_out(s, e) && tell_others(s, e);
}

static bool make_board(session *s, err *e) {
    int64_t *of = calloc((size_t)s->traders, sizeof *of);
    NEED(of, "out of memory for %d instruments", s->traders);
    for (int k = 0; k < s->traders; k++) of[k] = s->trader[k].series;
    s->board = board_new(&(board_options){s->task->data, s->task->window, s->traders, of, s->made}, e);
    free(of);
    return s->board != NULL;
}

typedef struct {
    const task *task;
    err *why;
} key_judge;

static void refuse_unused(void *arg, const told_key *k) {
    const key_judge *j = arg;
    if (j->why->kind || !backtest_work_unused(j->task, k)) return;
    err_input(j->why, "%s: has no effect on a session: %s; leave it out", k->key, k->text);
}

// A key without effect may be trusted to have one.
static bool check_unused(const task *t, err *e) {
    err why = {0};
    task_each_key(t, refuse_unused, &(key_judge){t, &why});
    if (why.kind) *e = why;
    return !why.kind;
}

// The run on its own data, which are closed again once the session has begun.
static bool open_own(session *s, err *e) {
    const session_options *o = &s->options;
    trained_options as = o->run;
    s->by_agent = trained_is_agent(o->run.run);
    if (!s->by_agent) {
        if (!backtest_work_keys(&o->run, "session", e)) return false;
        as.part = "validation";
        s->task = &s->own.task;
        s->owns = trained_open(&s->own, &as, e);
        return s->owns && check_unused(s->task, e);
    }
    if (!agent_backtest_keys(&o->run, "session", e)) return false;
    as.live = true;
    s->task = &s->own_agent.task.world.task;
    s->owns = trained_agent_open(&s->own_agent, &as, e);
    return s->owns && (s->own_agent.actor || err_input(e, "%s: is an agent of %s, which has no bars to trade on",
                                                 o->run.run, agent_task_env(&s->own_agent.task)));
}

// Hours tell the last bar of a day before the next one comes, and whether a quote is of behind a bar that is late.
static bool learn_hours(session *s, err *e) {
    s->hours = hours_new();
    return (!s->terms.day_close && !s->limits.quotes) || session_hours(s, s->hours, e);
}

static bool prepare(session *s, err *e) {
    const session_options *o = &s->options;
    return open_own(s, e) && read_settings(s, o, e) && learn_hours(s, e) &&
           (s->journal = journal_open(o->state, s->limits.power, e)) && session_make_rules(s, o->run.run, e) &&
           make_board(s, e);
}

session *session_open(const session_options *o, const session_listener *l, err *e) {
    session *s = calloc(1, sizeof *s);
    NEED(s, "out of memory for a session");
    s->options = *o;
    s->listener = *l;
    bool ok = prepare(s, e) && (s->by_agent ? session_open_agent(s, e) : session_open_model(s, &o->run, e));
    ok = ok && trained_contract(o->run.run, &s->trained_on, e);
    if (ok && restore(s, &s->cold, e)) return s;
    session_close(s);
    return NULL;
}

static void close_own(session *s) {
    if (s->owns) s->by_agent ? trained_agent_close(&s->own_agent) : trained_close(&s->own);
    s->owns = false;
}

bool session_begin(session *s, int64_t until, err *e) {
    const session_options *o = &s->options;
    CHECK(s->owns, "a session begins twice");
    bool ok = !s->cold || (o->histories < 0 ? session_warm_data(s, s->task->data, until, e)
                                            : session_warm_files(s, o->history, o->histories, until, e));
    close_own(s);
    return ok;
}

// Notes that were due with a bar that will not come.
static void note_sent(session *s) {
    err unused;
    bool any = false;
    for (int k = 0; k < s->traders; k++) any |= s->trader[k].unsent != 0;
    if (!any || !s->journal || !journal_begin(s->journal, &unused)) return;
    for (int k = 0; k < s->traders; k++)
        if (s->trader[k].unsent) journal_put_sent(s->journal, s->trader[k].unsent);
    journal_commit(s->journal, &unused);
}

void session_close(session *s) {
    if (!s) return;
    close_own(s);
    if (s->trader) note_sent(s);
    for (int k = 0; s->trader && k < s->traders; k++) {
        books_done(&s->trader[k].books);
        volatility_free(s->trader[k].meter);
    }
    free(s->trader);
    session_close_model(s);
    live_agent_close(s->agent);
    contract_free(s->trained_on);
    journal_close(s->journal);
    board_free(s->board);
    hours_free(s->hours);
    free(s->tz);
    free(s->columns);
    free(s);
}
