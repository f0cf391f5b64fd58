#include "cli/live_show.h"

#include "base/file.h"
#include "base/json.h"
#include "data/when.h"
#include "live/intents.h"
#include "run/live_file.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SHOWN = 40, COLUMNS_MOST = 10 };

// Latency

static const double shortest = 1e-7, growth = 1.02;

void live_latency_add(live_latency *l, double seconds) {
    double at = seconds > shortest ? log(seconds / shortest) / log(growth) : 0;
    l->slot[at < LATENCY_SLOTS - 1 ? (int)at : LATENCY_SLOTS - 1]++;
    l->count++;
    l->most = fmax(l->most, seconds);
}

double live_latency_at(const live_latency *l, double share) {
    int64_t before = 0, wanted = (int64_t)ceil(share * (double)l->count);
    for (int i = 0; i < LATENCY_SLOTS; i++)
        if ((before += l->slot[i]) >= wanted) return fmin(shortest * pow(growth, i + 1), l->most);
    return l->most;
}

// Words

static bool is_silent(const cli_options *o) {
    return o->quiet || o->json;
}

static const char *money(char *text, int64_t v) {
    snprintf(text, SHOWN, "%.2f", (double)v / 1e8);
    return text;
}

static const char *moment(char *text, int64_t time) {
    if (time == INT64_MIN) return "";
    return when_moment_text(text, SHOWN, time);
}

static const char *name_of(const char *symbol) {
    return *symbol ? symbol : "position";
}

static const char *side_text(char *text, int64_t lots) {
    char n[SHOWN];
    if (!lots) return "flat";
    snprintf(text, SHOWN, "%s %s", lots > 0 ? "long" : "short", account_text(n, sizeof n, llabs(lots), 0));
    return text;
}

// The beginning

static void show_frames(const session *s) {
    const dataset *d = session_data(s);
    int64_t span[FEED_SPANS_MOST];
    char text[SHOWN];
    int n = session_spans(s, span);
    printf("bars      %s", when_span_text(text, sizeof text, d->span[0]));
    for (int i = 1; i < d->streams; i++) {
        bool fed = false;
        for (int k = 0; k < n; k++) fed |= span[k] == d->span[i];
        printf("; %s %s", when_span_text(text, sizeof text, d->span[i]), fed ? "from the feed" : "made of them");
    }
    putchar('\n');
}

static void show_instrument(const session *s, int k, bool held, bool verbose) {
    session_view v = session_at(s, k);
    char text[500], when[SHOWN], n[SHOWN];
    term_count(n, sizeof n, (double)v.warmed);
    if (v.books->bars) {
        printf(
            "%-9s goes on behind %s, equity %s\n", name_of(v.symbol), moment(when, v.time), money(n, v.books->equity));
    } else if (v.time != INT64_MIN) {
        printf("%-9s warmed up with %s bars to %s", name_of(v.symbol), n, moment(when, v.time));
        if (v.needs) printf("; about %lld more are needed before the first answer", (long long)v.needs);
        puts(v.needs && held ? ", those that the feed holds included" : "");
    } else {
        printf("%-9s begins with the feed; about %lld bars are needed before the first answer%s\n", name_of(v.symbol),
            (long long)v.needs, held ? ", those that the feed holds included" : "");
    }
    if (!session_agent(s) && (k == 0 || verbose)) printf("signal    %s\n", decide_text(v.rule, text, sizeof text));
}

static void show_agent(const trained_agent *a) {
    const market_settings *m = &a->task.agent.test.env.market;
    printf("agent     greedy, %s, with %g of the equity in a full position, by the account that it sees\n",
        m->continuous ? "a direction and a size" : "short, flat or long", m->size);
}

void live_show_begin(
    const cli_options *o, const session *s, const session_options *as, const char *const *feed, int feeds, bool held) {
    const trained_agent *a = session_agent(s);
    int members = a ? a->members : session_model(s)->trained.members;
    const data_notes *notes = session_notes(s);
    if (is_silent(o)) return;
    printf("run       %s%s\n", as->run.run, members ? ", an ensemble" : "");
    for (int i = 0; i < feeds; i++) printf("feed      %s\n", feed[i]);
    for (int i = 0; i < notes->warnings; i++) printf("warning   %s\n", notes->warning[i]);
    show_frames(s);
    if (a) show_agent(a);
    for (int k = 0; k < session_count(s); k++) show_instrument(s, k, held, o->verbose);
    if (o->verbose) limits_print(session_limits(s), stdout);
    fflush(stdout);
}

// While it runs

void live_show_intent(const cli_options *o, const session_intent *i, const session_options *as) {
    const journal_intent *x = &i->intent;
    char side[SHOWN], when[SHOWN], price[SHOWN], stop[SHOWN], target[SHOWN];
    if (o->json && !o->quiet && !as->rehearsal) {
        json_t *line = intents_json(i);
        json_object_set_new(line, "kind", json_string("intent"));
        json_line(stdout, line);
    }
    if (is_silent(o) || (as->rehearsal && !o->verbose)) return;
    account_text(price, sizeof price, x->price, 2);
    printf("intent    %s %s %s at a close of %s", moment(when, x->time), x->symbol, side_text(side, x->lots), price);
    if (x->order.stop) printf(", stop %s", account_text(stop, sizeof stop, x->order.stop, 2));
    if (x->order.target) printf(", target %s", account_text(target, sizeof target, x->order.target, 2));
    printf(" (%lld%s)\n", (long long)x->id, i->repeat ? ", again" : "");
    fflush(stdout);
}

// A rehearsal is told what changed it; all is in the journal.
void live_show_event(const cli_options *o, const live_event *ev, progress *bar) {
    char when[SHOWN];
    bool other = strcmp(ev->kind, limits_rule_key(LIMIT_INSTRUMENT)) == 0; // a backtest warns too
    bool minor = !other && strcmp(ev->answer, limits_answer_key(LIMITS_NOTE)) == 0;
    if (minor && (!bar->quiet || strcmp(ev->kind, "end") == 0) && !o->verbose) return;
    if (o->json && !o->quiet)
        json_line(stdout, json_pack("{s:s, s:s, s:s, s:s, s:s, s:s}", "kind", "event", "symbol", ev->symbol, "time",
                              moment(when, ev->time), "event", ev->kind, "answer", ev->answer, "text", ev->text));
    if (is_silent(o)) return;
    progress_line(bar, "%-9s %s%s%s%s%s: %s", ev->kind, moment(when, ev->time), ev->time == INT64_MIN ? "" : " ",
        ev->symbol, *ev->symbol ? " " : "", ev->answer, ev->text);
    if (bar->quiet) {
        printf("%-9s %s %s %s: %s\n", ev->kind, moment(when, ev->time), ev->symbol, ev->answer, ev->text);
        fflush(stdout);
    }
}

void live_show_late(const cli_options *o, int64_t bars, progress *bar) {
    if (is_silent(o) || !bar->quiet) return;
    if (bars)
        printf("late      %lld bars in a row; each is an event of the state\n", (long long)bars);
    else
        printf("late      further ones are counted; bars of the past are rehearsed with --feed replay:FILE, or traded "
               "as they come with live.late=none live.stale=none\n");
    fflush(stdout);
}

void live_show_progress(progress *bar, const session *s, const feed_event *ev) {
    char when[SHOWN];
    if (bar->quiet || ev->kind != FEED_BAR) return;
    session_tally t = session_count_all(s);
    progress_at(bar, (double)t.bars, "%s, %lld intents", moment(when, ev->bar.time), (long long)t.intents);
}

// The end

static int64_t count_trades(session *s, int k) {
    int64_t trades;
    err unused;
    free(journal_trades(session_journal(s), session_at(s, k).symbol, &trades, &unused));
    return trades;
}

static json_t *instrument_json(session *s, int k) {
    session_view v = session_at(s, k);
    const books *b = v.books;
    int64_t trades = count_trades(s, k);
    return json_pack("{s:s, s:f, s:f, s:f, s:I, s:I, s:I}", "symbol", v.symbol, "position",
        (double)b->replay.books.units / (double)v.rules->contract, "equity", (double)b->equity / 1e8, "cash",
        (double)b->replay.books.cash / 1e8, "trades", (json_int_t)trades, "bars", (json_int_t)b->bars, "refused",
        (json_int_t)b->refusals);
}

static json_t *latency_json(const live_latency *l) {
    return json_pack("{s:I, s:f, s:f, s:f, s:f}", "decisions", (json_int_t)l->count, "median_ms",
        1e3 * live_latency_at(l, 0.5), "p99_ms", 1e3 * live_latency_at(l, 0.99), "p999_ms",
        1e3 * live_latency_at(l, 0.999), "most_ms", 1e3 * l->most);
}

static void tell_json(session *s, const live_end *end) {
    session_tally t = session_count_all(s);
    json_t *all = json_array();
    for (int k = 0; k < session_count(s); k++) json_array_append_new(all, instrument_json(s, k));
    json_t *line = json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:b, s:o}", "kind", "end", "bars",
        (json_int_t)t.bars, "caught_up", (json_int_t)t.caught, "cold", (json_int_t)t.cold, "decided",
        (json_int_t)t.decided, "held", (json_int_t)t.held, "intents", (json_int_t)t.intents, "seconds", end->seconds,
        "stopped", session_is_stopped(s), "instruments", all);
    if (end->latency) json_object_set_new(line, "latency", latency_json(end->latency));
    json_line(stdout, line);
}

static void show_end_of(session *s, int k) {
    session_view v = session_at(s, k);
    char side[SHOWN], equity[SHOWN];
    int64_t trades = count_trades(s, k), lots;
    lots = (int64_t)account_round((account_wide)v.books->replay.books.units * ACCOUNT_ONE, v.rules->contract);
    printf("%-9s %s, equity %s, %lld trade%s\n", name_of(v.symbol), side_text(side, lots),
        money(equity, v.books->equity), (long long)trades, term_s(trades));
}

// A stop that has closed all positions stands; one that has not yet is gone on with.
static void show_state_of(const session *s, const char *state) {
    if (state)
        printf(
            "state     %s; the same command %sgoes on from here\n", state, session_is_over(s) ? "with --clear " : "");
    if (!session_is_stopped(s)) return;
    printf("stopped   by the rule %s", limits_rule_key(session_stopped_by(s)));
    if (state) printf("; `tradewind live --status %s` says why", state);
    putchar('\n');
}

void live_show_end(const cli_options *o, session *s, const session_options *as, const live_end *end) {
    session_tally t = session_count_all(s);
    char n[SHOWN], m[SHOWN];
    (void)as;
    if (o->json) tell_json(s, end);
    if (is_silent(o)) return;
    term_count(n, sizeof n, (double)t.bars);
    term_count(m, sizeof m, (double)t.decided);
    printf("taken     %s bars in %.1f s: %s decided, %lld caught up, %lld before features had warmed up\n", n,
        end->seconds, m, (long long)t.caught, (long long)t.cold);
    if (t.held) printf("limits    changed %lld decisions\n", (long long)t.held);
    for (int k = 0; k < session_count(s); k++) show_end_of(s, k);
    if (end->latency && end->latency->count)
        printf("latency   median %.3f ms, 99 %% %.3f ms, 99.9 %% %.3f ms, longest %.3f ms, of %lld decisions\n",
            1e3 * live_latency_at(end->latency, 0.5), 1e3 * live_latency_at(end->latency, 0.99),
            1e3 * live_latency_at(end->latency, 0.999), 1e3 * end->latency->most, (long long)end->latency->count);
    if (end->trades) printf("trades    %s\n", end->trades);
    show_state_of(s, end->state);
}

// From outside

char *live_default_state(const char *run) {
    char *state = NULL;
    NEED(asprintf(&state, "%s/live.db", run) >= 0, "out of memory for a path");
    return state;
}

// A cell as text; money has two digits.
static const char *cell(char *text, size_t room, const json_t *row, const char *column) {
    const json_t *v = json_object_get(row, column);
    bool is_money = !strcmp(column, "equity") || !strcmp(column, "cash") || !strcmp(column, "result");
    if (json_is_string(v)) return json_string_value(v);
    text[0] = 0;
    if (json_is_integer(v)) snprintf(text, room, "%lld", (long long)json_integer_value(v));
    if (json_is_real(v)) snprintf(text, room, is_money ? "%.2f" : "%.6g", json_real_value(v));
    return text;
}

// Room that a column needs, below 0 where it is of texts, which stand at its left.
static int room_of(json_t *rows, const char *column) {
    size_t i, most = strlen(column);
    bool is_text = true;
    json_t *row;
    char text[SHOWN];
    json_array_foreach(rows, i, row) {
        size_t n = strlen(cell(text, sizeof text, row, column));
        if (n > most) most = n;
        is_text &= !json_is_number(json_object_get(row, column));
    }
    return is_text ? -(int)most : (int)most;
}

// The last column of texts ends with its text.
static void show_line(const json_t *row, const char *const *columns, const int *room, int count) {
    char text[SHOWN];
    for (int c = 0; c < count; c++) {
        const char *is = row ? cell(text, sizeof text, row, columns[c]) : columns[c];
        printf("  %*s", c + 1 == count && room[c] < 0 ? 0 : room[c], is);
    }
    putchar('\n');
}

static void show_rows(const char *title, json_t *rows, const char *const *columns, int count) {
    int room[COLUMNS_MOST];
    size_t i;
    json_t *row;
    if (!json_array_size(rows)) return;
    printf("%s\n", title);
    for (int c = 0; c < count; c++) room[c] = room_of(rows, columns[c]);
    show_line(NULL, columns, room, count);
    json_array_foreach(rows, i, row) show_line(row, columns, room, count);
}

static const struct {
    const char *title, *columns[COLUMNS_MOST];
    int count;
} shown[LIVE_FILE_PARTS] = {
    [LIVE_FILE_BOOKS] = {"books",
        {"symbol", "bar", "position", "equity", "cash", "since", "entry_price", "stop", "target", "trades"}, 10},
    [LIVE_FILE_INTENTS] = {"newest intents", {"id", "symbol", "decided", "position", "status"}, 5},
    [LIVE_FILE_TRADES] = {"newest trades", {"symbol", "units", "entry", "exit", "result", "reason"}, 6},
    [LIVE_FILE_EVENTS] = {"newest events", {"at", "symbol", "kind", "answer", "text"}, 5},
};

bool live_show_status(const cli_options *o, const char *state, err *e) {
    journal *j = journal_read(state, e);
    if (!j) return false;
    json_t *all = json_pack("{s:s, s:b}", "state", state, "running", journal_is_in_use(state));
    bool ok = true;
    if (!o->json) printf("state     %s, %s\n", state, journal_is_in_use(state) ? "a session runs" : "no session runs");
    for (int i = 0; ok && i < LIVE_FILE_PARTS; i++) {
        json_t *rows = journal_rows(j, live_file_parts[i].sql, NULL, e);
        ok = rows != NULL;
        if (ok && !o->json) show_rows(shown[i].title, rows, shown[i].columns, shown[i].count);
        if (ok) json_object_set_new(all, live_file_parts[i].name, rows);
    }
    if (ok && o->json)
        json_line(stdout, all);
    else
        json_decref(all);
    journal_close(j);
    return ok;
}

bool live_named_state(const char *named, char **state, err *e) {
    struct stat st;
    bool there = stat(named, &st) == 0, is_run = there && S_ISDIR(st.st_mode);
    *state = is_run ? live_default_state(named) : strdup(named);
    NEED(*state, "out of memory for a path");
    if (there && !is_run && !S_ISREG(st.st_mode))
        return err_input(e, "%s: is no state of a session: it is no file", named);
    return !is_run || access(*state, F_OK) == 0 ||
           err_input(
               e, "%s: no session has kept a state in this directory; name the file that --state had given it", named);
}

// A state that only cannot be looked at for now, as where another program has it locked, may be a session's.
static bool may_be_state(const char *path, err *e) {
    if (journal_is_in_use(path)) return true;
    journal *j = journal_read(path, e);
    journal_close(j);
    return j || e->kind != ERR_INPUT;
}

bool live_ask_stop(const cli_options *o, const char *state, err *e) {
    char *path = NULL;
    if (!may_be_state(state, e)) return false;
    *e = (err){0};
    NEED(asprintf(&path, "%s.stop", state) >= 0, "out of memory for a path");
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    bool ok = fd >= 0 || file_fail(e, path, "cannot be made", errno);
    if (fd >= 0) close(fd);
    if (ok && !is_silent(o))
        printf("asked     %s: %s\n", state,
            journal_is_in_use(state) ? "the session closes its positions within a second, and ends"
                                     : "no session runs; the next one closes its positions and ends");
    free(path);
    return ok;
}

void live_forget_state(const char *state) {
    static const char *const ends[] = {"", "-wal", "-shm", "-journal", ".lock", ".stop"};
    char path[128];
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        snprintf(path, sizeof path, "%s%s", state, ends[i]);
        unlink(path);
    }
}
