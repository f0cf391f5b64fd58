#include "live/session.h"

#include "base/json.h"
#include "base/text.h"
#include "live/session_work.h"
#include "task/backtest_work.h"
#include "task/keys.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

// Opening: instruments, rules, limits

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
        if (series < 0) return err_input(e, "--symbol %s: %s has no such instrument", o->symbol[k], d->name);
        for (int i = 0; i < k; i++)
            if (s->trader[i].series == series) return err_input(e, "--symbol %s: is given twice", o->symbol[k]);
        t->series = series;
        t->time = t->end = INT64_MIN;
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
    limits *l = &s->limits;
    if (!task_key_given(t, "live.max_exposure")) l->max_exposure = 0;
    if (!task_key_given(t, "live.max_day_loss")) l->max_day_loss = 0;
    if (!task_key_given(t, "live.max_loss")) l->max_loss = 0;
    if (!task_key_given(t, "live.max_orders")) l->max_orders = 0;
    if (!task_key_given(t, "live.outside_share")) l->outside_share = 1;
}

static char *copy_text(const char *text) {
    char *copy = text ? strdup(text) : NULL;
    NEED(copy || !text, "out of memory for a text");
    return copy;
}

// Files of bars are read as those of the run's data were: a set from import says how.
static void take_reading(session *s, const trained *own) {
    const dataset *d = own->task.data;
    const bars_options *r = &own->task.settings.bars;
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

static bool read_settings(session *s, const trained *own, const session_options *o, err *e) {
    const task *t = &own->task;
    const dataset *d = t->data;
    s->label = build_defaults;
    if (!market_has_bars(d, e) || !backtest_work_tradable(own, o->run.run, e)) return false;
    if (!build_label_read(json_object_get(d->about, "label"), &s->label))
        return err_input(e, "%s: does not say what its labels mean; make it again with import", d->name);
    if (!account_terms_read(t->config, &s->terms, e) || !limits_read(t->config, &s->limits, e)) return false;
    if (o->rehearsal) lift_limits(s, t);
    choose_frames(s, d, o->build);
    take_reading(s, own);
    return choose_traders(s, d, o, e) && check_frames(s, d, e);
}

// Rules. They are fitted once, and the journal keeps them, as long as the weights are the same.

// The rule that the journal keeps; `known` is false where there is none for these weights and settings.
static bool take_rule(session *s, trader *t, const char *settings, bool *known, err *e) {
    char key[SESSION_KEY_ROOM], *text;
    err unused;
    if (!journal_word(s->journal, session_key(key, "rule", t), &text, e)) return false;
    json_t *all = text ? json_read(text, strlen(text), &unused) : NULL;
    const char *was = json_string_value(json_object_get(all, "settings"));
    const char *weights = json_string_value(json_object_get(all, "weights"));
    bool ok = was && strcmp(was, settings) == 0 && weights && s->weights[0] && strcmp(weights, s->weights) == 0 &&
              rule_from_json(json_object_get(all, "rule"), &t->record);
    t->point = json_integer_value(json_object_get(all, "point"));
    *known = ok && t->point > 0;
    t->other = text && !*known;
    json_decref(all);
    free(text);
    return true;
}

// For those who score the answers later (live/drift.h): the run that answers from here on.
static void keep_meaning(session *s, const char *run) {
    json_t *label = build_label_json(&s->label);
    char *text = json_dumps(label, JSON_COMPACT | JSON_REAL_PRECISION(17)), *dir = trained_dir(run);
    NEED(text && dir, "out of memory for a label");
    journal_put_word(s->journal, "label", text);
    journal_put_word(s->journal, "run", dir);
    json_decref(label);
    free(text);
    free(dir);
}

static bool keep_rule(session *s, const trader *t, const char *settings, err *e) {
    char key[SESSION_KEY_ROOM];
    json_t *all = json_pack("{s:s, s:s, s:I, s:o}", "settings", settings, "weights", s->weights, "point",
        (json_int_t)t->point, "rule", rule_to_json(&t->record));
    char *text = json_dumps(all, JSON_COMPACT | JSON_REAL_PRECISION(17));
    json_decref(all);
    NEED(text, "out of memory for a rule");
    bool ok = journal_begin(s->journal, e);
    if (ok) journal_put_word(s->journal, session_key(key, "rule", t), text);
    free(text);
    return ok && journal_commit(s->journal, e);
}

static bool make_rule(trader *t, trained *own, const char *run, err *e) {
    account_terms terms;
    quotes q;
    const char *symbol = t->symbol[0] ? t->symbol : NULL;
    if (!backtest_work_rule(&t->record, &terms, own, run, symbol, e)) return false;
    if (!market_quote(&q, own->task.data, t->series, &terms, e)) return false;
    t->point = q.point;
    quotes_done(&q);
    return true;
}

static void put_rate(FILE *f, const account_rate *r) {
    fprintf(f, "%.17g %d,", r->value, (int)r->measure);
}

// Settings of the description that a rule follows from, as a text that the caller frees.
static bool settings_text(const task *t, const account_terms *a, char **text, err *e) {
    signal_settings s;
    text_out to;
    if (!signal_read(t->config, &s, e)) return false;
    text_open(&to);
    FILE *f = to.out;
    const double real[] = {s.threshold, s.stop, s.target, s.size, a->cash, a->leverage, a->margin_call, a->contract,
        a->lot_step, a->point};
    const account_rate *const rate[] = {&a->spread, &a->commission, &a->slippage, &a->swap_long, &a->swap_short};
    for (size_t i = 0; i < sizeof real / sizeof *real; i++) fprintf(f, "%.17g,", real[i]);
    for (size_t i = 0; i < sizeof rate / sizeof *rate; i++) put_rate(f, rate[i]);
    fprintf(f, "%lld,%d,%d,%d,%d,%d,%d", (long long)s.hold, (int)s.exit, (int)s.sizing, a->last_open, a->target_first,
        a->entry_stop, a->shorts);
    *text = text_close(&to);
    NEED(*text, "out of memory for settings");
    return true;
}

static bool make_traders(session *s, trained *own, const char *run, err *e) {
    char *settings = NULL;
    bool ok = settings_text(&own->task, &s->terms, &settings, e) && weights_identity(run, s->weights, e) &&
              journal_begin(s->journal, e);
    if (ok) keep_meaning(s, run);
    ok = ok && journal_commit(s->journal, e);
    for (int k = 0; ok && k < s->traders; k++) {
        trader *t = &s->trader[k];
        bool known = false;
        ok = take_rule(s, t, settings, &known, e) && (known || make_rule(t, own, run, e)) &&
             books_init(&t->books, &s->terms, t->point, t->symbol[0] ? t->symbol : "live", e) &&
             (t->meter = volatility_new(t->record.rule.volatility_bars, e)) && (known || keep_rule(s, t, settings, e));
    }
    free(settings);
    return ok;
}

// Knowledge of the journal

static bool note_in_transaction(
    session *s, int k, int64_t time, const char *kind, limits_answer a, const char *text, err *e) {
    if (!journal_begin(s->journal, e)) return false;
    session_note(s, k, time, kind, a, text);
    session_keep_limits(s, k); // one of them may have said stop
    return session_commit(s, e);
}

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
            !note_in_transaction(s, k, INT64_MIN, "rule", LIMITS_NOTE,
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
        *cold |= !t->kept;
    }
    return leaves_none_out(s, e) && tell_others(s, e);
}

static bool make_board(session *s, const trained *own, err *e) {
    int64_t *of = calloc((size_t)s->traders, sizeof *of);
    NEED(of, "out of memory for %d instruments", s->traders);
    for (int k = 0; k < s->traders; k++) of[k] = s->trader[k].series;
    s->board = board_new(&(board_options){own->task.data, own->task.window, s->traders, of, s->made}, e);
    free(of);
    return s->board != NULL;
}

// On the run's own data, which are closed again once the session has begun.
static bool prepare(session *s, err *e) {
    const session_options *o = &s->options;
    trained_options as = o->run;
    as.part = "validation";
    if (!trained_open(&s->own, &as, e)) return false;
    s->owns = true;
    return read_settings(s, &s->own, o, e) && (s->journal = journal_open(o->state, s->limits.power, e)) &&
           make_traders(s, &s->own, o->run.run, e) && make_board(s, &s->own, e) && restore(s, &s->cold, e);
}

static void close_model(session *s) {
    if (s->model) live_model_close(s->model);
    free(s->model);
    free(s->answer);
    s->model = NULL;
    s->answer = NULL;
}

// Opens a model on the board; it takes the place of the one before only where nothing fails.
static bool open_model(session *s, const trained_options *run, err *e) {
    live_model *m = calloc(1, sizeof *m);
    NEED(m, "out of memory for a model");
    float *answer = NULL;
    bool ok = live_model_open(m, &(model_options){*run, s->board}, e);
    if (ok && !(answer = calloc((size_t)m->width, sizeof *answer))) ok = err_run(e, "no memory for an answer");
    if (!ok) {
        live_model_close(m);
        free(m);
        return false;
    }
    close_model(s);
    s->model = m;
    s->answer = answer;
    return true;
}

session *session_open(const session_options *o, const session_listener *l, err *e) {
    session *s = calloc(1, sizeof *s);
    NEED(s, "out of memory for a session");
    s->options = *o;
    s->listener = *l;
    if (prepare(s, e) && open_model(s, &o->run, e)) return s;
    session_close(s);
    return NULL;
}

static void close_own(session *s) {
    if (s->owns) trained_close(&s->own);
    s->owns = false;
}

bool session_begin(session *s, int64_t until, err *e) {
    const session_options *o = &s->options;
    CHECK(s->owns, "a session begins twice");
    bool ok = !s->cold || (o->histories < 0 ? session_warm_data(s, s->own.task.data, until, e)
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
    close_model(s);
    journal_close(s->journal);
    board_free(s->board);
    free(s->tz);
    free(s->columns);
    free(s);
}

// Another model

// The rule of a run that takes over. An account is of one instrument, and so is a rule.
static bool read_rule(const session *s, const char *run, rule_record *to, err *e) {
    bool there;
    if (!rule_read(run, to, &there, e)) return false;
    if (!there) return err_input(e, "%s: has no rule for its weights; make it with `tradewind backtest %s`", run, run);
    for (int k = 0; k < s->traders; k++) {
        const trader *t = &s->trader[k];
        if (strcmp(to->symbol, t->symbol) != 0)
            return err_input(e, "%s: its rule is of %s, and %s is traded", run, to->symbol, t->symbol);
        if (to->rule.volatility_bars != t->record.rule.volatility_bars)
            return err_input(e, "%s: measures volatility over %lld bars, and %lld were measured here", run,
                (long long)to->rule.volatility_bars, (long long)t->record.rule.volatility_bars);
    }
    return true;
}

bool session_replace(session *s, const char *run, double now, err *e) {
    rule_record rule;
    char text[300];
    trained_options as = s->options.run;
    as.run = run;
    s->now = now;
    char weights[WEIGHTS_IDENTITY_ROOM];
    if (!read_rule(s, run, &rule, e) || !weights_identity(run, weights, e) || !open_model(s, &as, e)) return false;
    memcpy(s->weights, weights, sizeof weights);
    for (int k = 0; k < s->traders; k++) s->trader[k].record = rule;
    snprintf(text, sizeof text, "%.200s answers from here on", run);
    if (!journal_begin(s->journal, e)) return false;
    keep_meaning(s, run);
    session_note(s, -1, INT64_MIN, "model", LIMITS_NOTE, text);
    return session_commit(s, e);
}

// The feed

int session_spans(const session *s, int64_t span[FEED_SPANS_MOST]) {
    int n = 0;
    for (int f = 0; f < s->frames; f++)
        if (!f || !(s->made & (1u << f))) span[n++] = s->span[f];
    return n;
}

bars_options session_reading(const session *s) {
    return s->reading;
}

const limits *session_limits(const session *s) {
    return &s->limits;
}

bool session_tell_known(session *s, live_feed *f, err *e) {
    for (int k = 0; k < s->traders; k++)
        for (int i = 0; i < s->frames; i++) {
            int64_t count;
            bar *all = journal_bars(s->journal, s->trader[k].symbol, i, INT64_MIN, FEED_KNOWN, &count, e);
            if (!all) return false;
            if (count) live_feed_know(f, s->trader[k].symbol, s->span[i], all, count);
            free(all);
        }
    return true;
}

bool session_repeat(session *s, err *e) {
    for (int k = 0; k < s->traders; k++) {
        session_intent i = {.repeat = true};
        if (!journal_newest_intent(s->journal, s->trader[k].symbol, &i.intent, e)) return false;
        if (i.intent.id && !i.intent.sent) session_give(s, k, &i);
    }
    return true;
}

// A bar of the feed without a symbol is of the only instrument, and so is any where the run knows none.
static int trader_of(const session *s, const char *symbol) {
    if (s->traders == 1 && (!*symbol || !s->trader[0].symbol[0])) return 0;
    for (int k = 0; k < s->traders; k++)
        if (strcmp(s->trader[k].symbol, symbol) == 0) return k;
    return -1;
}

static int frame_of(const session *s, int64_t span) {
    for (int f = 0; f < s->frames; f++)
        if (s->span[f] == span && (!f || !(s->made & (1u << f)))) return f;
    return -1;
}

// Coarser bars

// True where a coarser bar must have closed by the end of `b` and has not come.
static bool lacks_coarse(session *s, int k, const bar *b) {
    trader *t = &s->trader[k];
    for (int f = 1; f < s->frames; f++) {
        int64_t seen = board_end(s->board, k, f), waits = board_waiting(s->board, k, f), span = s->span[f];
        int64_t end = waits > seen ? waits : seen;
        if (s->made & (1u << f) || end == INT64_MIN) continue;
        if (t->closed[f] != end) {
            t->closed[f] = end;
            t->begun[f] = INT64_MIN;
        }
        if (t->begun[f] == INT64_MIN && b->time >= end) t->begun[f] = b->time;
        if (t->begun[f] == INT64_MIN) continue;
        if (b->end >= end + ((t->begun[f] - end) / span + 1) * span) return true;
    }
    return false;
}

static bool take_coarse(session *s, int k, int frame, const feed_event *ev, err *e) {
    if (!s->trader[k].kept) {
        board_wait(s->board, k, frame, &ev->bar);
        return true;
    }
    if (!journal_begin(s->journal, e)) return false;
    journal_put_bar(s->journal, s->trader[k].symbol, frame, &ev->bar);
    if (!journal_commit(s->journal, e)) return false;
    board_wait(s->board, k, frame, &ev->bar);
    return true;
}

// The finest frame

// A bar of the past, before anything was decided: it only warms up.
static bool is_past(const session *s, int k, const feed_event *ev) {
    return ev->history && !s->trader[k].kept;
}

static bool take_fine(session *s, int k, const feed_event *ev, err *e) {
    trader *t = &s->trader[k];
    if (!is_past(s, k, ev)) return session_bar(s, k, ev, e);
    session_push(s, k, &ev->bar);
    t->time = ev->bar.time;
    t->end = ev->bar.end;
    t->warmed++;
    t->before = LIMITS_FINE;
    return true;
}

static bool release(session *s, int k, err *e) {
    trader *t = &s->trader[k];
    if (!t->waits) return true;
    feed_event ev = t->waiting;
    t->waits = false;
    return take_fine(s, k, &ev, e);
}

static bool take_bar(session *s, const feed_event *ev, err *e) {
    int k = trader_of(s, ev->symbol), f = frame_of(s, ev->span);
    if (k < 0 || f < 0) return true; // an instrument or a frame that is not traded
    trader *t = &s->trader[k];
    if (f) {
        if (!take_coarse(s, k, f, ev, e)) return false;
        return !t->waits || lacks_coarse(s, k, &t->waiting.bar) || release(s, k, e);
    }
    if (!release(s, k, e)) return false;
    if (ev->bar.time <= t->time) return true; // of the history, or taken by an earlier process
    if (!lacks_coarse(s, k, &ev->bar)) return take_fine(s, k, ev, e);
    t->waiting = *ev;
    t->waits = true;
    return true;
}

void session_rest(session *s) {
    journal_rest(s->journal);
}

bool session_flush(session *s, err *e) {
    for (int k = 0; k < s->traders; k++)
        if (!release(s, k, e)) return false;
    return true;
}

// Notes

static bool take_note(session *s, const feed_event *ev, err *e) {
    int k = trader_of(s, ev->symbol);
    limits_verdict v = LIMITS_FINE;
    bool of_series = k >= 0 && ev->span;
    // Notes of bars of the past are no surprise.
    bool behind = ev->note == FEED_REVISED || ev->note == FEED_OUT_OF_ORDER; // of bars that are known by nature
    if (of_series && (ev->history || ev->bar.time <= s->trader[k].time) && !behind) return true;
    if (of_series) v = limits_feed(&s->limits, &s->trader[k].limits, ev);
    if (of_series) limits_worse(&s->trader[k].before, &v);
    if (v.answer == LIMITS_IGNORE) return true;
    limits_answer a = v.answer ? v.answer : LIMITS_NOTE;
    int64_t time = ev->span ? ev->bar.time : INT64_MIN;
    return note_in_transaction(s, of_series ? k : -1, time, feed_note_key(ev->note), a, ev->text, e);
}

bool session_take(session *s, const feed_event *ev, err *e) {
    s->now = ev->at;
    if (ev->kind == FEED_BAR) return take_bar(s, ev, e);
    if (ev->kind != FEED_NOTE) return true;
    if (ev->note == FEED_END && !session_flush(s, e)) return false;
    return take_note(s, ev, e);
}

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
            if (!note_in_transaction(s, k, INT64_MIN, limits_rule_key(v[i].rule), v[i].answer, v[i].text, e))
                return false;
            if (v[i].answer > LIMITS_SKIP && !session_go_flat(s, k, e)) return false;
        }
        if (t->waits && now - t->waiting.at > WAIT_FOR_COARSE && !release(s, k, e)) return false;
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

// Showing

int session_count(const session *s) {
    return s->traders;
}

session_view session_at(const session *s, int k) {
    const trader *t = &s->trader[k];
    return (session_view){.symbol = t->symbol,
        .books = &t->books,
        .rule = &t->record.rule,
        .record = &t->record,
        .rules = &t->books.replay.rules,
        .time = t->time,
        .needs = board_needs(s->board, k),
        .warmed = t->warmed,
        .stopped = t->limits.stopped};
}

const live_model *session_model(const session *s) {
    return s->model;
}

journal *session_journal(session *s) {
    return s->journal;
}

session_tally session_count_all(const session *s) {
    return s->tally;
}

bool session_write_trades(session *s, int k, const char *path, err *e) {
    const trader *t = &s->trader[k];
    int64_t count;
    books_trade *all = journal_trades(s->journal, t->symbol, &count, e);
    if (!all) return false;
    if (t->kept && books_ended(&t->books, &all[count])) count++;
    bool ok = books_write_trades(path, all, count, &t->books.replay.rules, e);
    free(all);
    return ok;
}
