// tradewind live: a trained model on a stream of bars, on paper.
#include "base/clock.h"
#include "base/term.h"
#include "cli/ask.h"
#include "cli/cli.h"
#include "cli/live_drift.h"
#include "cli/live_show.h"
#include "live/candidate.h"
#include "live/intents.h"
#include "live/newest.h"
#include "task/output.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LIST_MOST = OWN_MOST, LATE_TOLD = 3 };

static const double look_every = 1, wait_most = 0.25, search_every = 30;

// A session that runs, and everything around it.
typedef struct {
    const cli_options *o;
    session_options as;
    const char *symbol[LIST_MOST], *history[LIST_MOST], *from[LIST_MOST];
    int feeds;
    live_feed *feed[LIST_MOST];
    char *run, *state, *stop; // `stop`: the file whose coming ends the session
    char temporary[1024];     // state of a rehearsal that keeps none; "": it is kept
    session *session;
    hours *hours; // of the instruments
    intents exec;
    err lost;       // an intent could not be given
    int64_t late;   // bars in a row that came late
    bool came_late; // the next bar does
    double began, looked, searched;
    int64_t newest;  // when the weights of the model were made
    json_t *refused; // candidates that do not fit, with when they were made
    candidate taken; // the run that has replaced the first one
    live_latency latency;
    progress bar;
} live;

static volatile sig_atomic_t killed;

static void on_kill(int signal) {
    (void)signal;
    killed = 1;
}

// Options

static int list_given(const cli_options *o, const char *name, const char **list) {
    int n = 0;
    for (int i = 0; i < o->owns; i++)
        if (strcmp(o->own[i].name, name) == 0) list[n++] = o->own[i].value;
    return n;
}

static bool is_replay(const char *feed) {
    return strncmp(feed, "replay:", 7) == 0;
}

// A rehearsal without a place for its state leaves none. A walk's is the walk's own: it goes on with its next fold.
static bool choose_state(live *v, err *e) {
    const char *given = cli_given(v->o, "--state");
    if (!given && v->as.rehearsal) {
        const char *dir = getenv("TMPDIR");
        int n = snprintf(v->temporary, sizeof v->temporary, "%s/tradewind-live-XXXXXX", dir ? dir : "/tmp");
        if (n >= (int)sizeof v->temporary) return err_input(e, "$TMPDIR is too long; name a file with --state");
        int fd = mkstemp(v->temporary);
        if (fd < 0)
            return err_run(e, "%s: cannot be made: %s; name a file with --state", v->temporary, strerror(errno));
        close(fd);
        given = v->temporary;
    }
    v->state = given ? strdup(given) : live_default_state(v->o->word[0]);
    NEED(v->state && asprintf(&v->stop, "%s.stop", v->state) >= 0, "out of memory for a path");
    return true;
}

static bool check_models(const cli_options *o, err *e) {
    const char *dir = cli_given(o, "--model-dir");
    struct stat st;
    if (!dir || (stat(dir, &st) == 0 && S_ISDIR(st.st_mode))) return true;
    return err_input(
        e, "--model-dir %s: there is no such directory; make it, or name the one that newer runs come to", dir);
}

static bool ask(live *v, err *e) {
    const cli_options *o = v->o;
    session_options *as = &v->as;
    cli_options on = *o;
    if (!o->words) return err_input(e, "no run given; name its directory");
    v->feeds = list_given(o, "--feed", v->from);
    if (!v->feeds) return err_input(e, "no feed given; name one with --feed (`tradewind live --help` lists them)");
    as->rehearsal = true;
    for (int i = 0; i < v->feeds; i++) as->rehearsal &= is_replay(v->from[i]);
    as->symbol = v->symbol;
    as->symbols = list_given(o, "--symbol", v->symbol);
    as->history = v->history;
    as->histories = list_given(o, "--history", v->history);
    if (as->histories == 1 && strcmp(v->history[0], "none") == 0) as->histories = 0;
    if (!cli_given(o, "--history")) as->histories = -1;
    as->build = cli_given(o, "--build") != NULL;
    if (strcmp(o->device, "auto") == 0) on.device = "cpu";
    if (!o->threads) on.threads = 1; // a bar is too little for several
    if (!(v->run = live_newest(o->word[0], e)) || !ask_devices(&on, &as->run.devices, e)) return false;
    if (cli_given(o, "--model-dir") && trained_is_agent(v->run))
        return err_input(e,
            "--model-dir: %s is of an agent, which no other replaces, as it decides by an account and a "
            "memory of its own; leave it out, and start a session of the newer run",
            v->run);
    as->run.run = v->run;
    as->run.overrides = o->word + 1;
    as->run.override_count = o->words - 1;
    as->run.version = TRADEWIND_VERSION;
    if (!check_models(o, e) || !choose_state(v, e)) return false;
    as->state = v->state;
    return true;
}

// Intents

static bool list_targets(live *v, feed_target *to, int *count, err *e) {
    int n = 0;
    for (int k = 0; k < session_count(v->session); k++) {
        session_view view = session_at(v->session, k);
        journal_intent i;
        if (!journal_newest_intent(session_journal(v->session), view.symbol, &i, e)) return false;
        if (!i.id) continue;
        feed_target *t = &to[n++];
        *t = (feed_target){.id = i.id, .lots = (double)i.lots / 1e8, .decided = i.time, .until = i.until};
        t->stop = (double)i.order.stop / 1e8;
        t->target = (double)i.order.target / 1e8;
        snprintf(t->symbol, sizeof t->symbol, "%s", view.symbol);
    }
    *count = n;
    return true;
}

// Target positions of all instruments, to feeds that take them.
static bool put_targets(live *v, err *e) {
    bool any = false;
    int n;
    for (int i = 0; i < v->feeds; i++) any |= live_feed_takes_targets(v->feed[i]);
    if (!any) return true;
    feed_target *all = calloc((size_t)session_count(v->session), sizeof *all);
    NEED(all, "out of memory for target positions");
    bool ok = list_targets(v, all, &n, e);
    for (int i = 0; ok && i < v->feeds; i++)
        if (live_feed_takes_targets(v->feed[i])) ok = live_feed_put_targets(v->feed[i], all, n, e);
    free(all);
    return ok;
}

static bool on_intent(void *arg, const session_intent *i) {
    live *v = arg;
    err why = {0};
    bool ok = (!v->exec.path || intents_put(&v->exec, i, &why)) && put_targets(v, &why);
    if (!ok && !v->lost.kind) v->lost = why;
    live_show_intent(v->o, i, &v->as);
    return ok;
}

// An intent that could not be given ends the session: nobody would know what it holds.
static bool none_lost(const live *v, err *e) {
    if (v->lost.kind) *e = v->lost;
    return !v->lost.kind;
}

// Bars that come late in a row are told a few times, then counted; bars of the past all come late.
static bool is_told(live *v, const char *kind) {
    if (strcmp(kind, feed_note_key(FEED_LATE)) != 0) return true;
    v->came_late = true;
    if (++v->late == LATE_TOLD + 1) live_show_late(v->o, 0, &v->bar);
    return v->late <= LATE_TOLD || v->o->verbose || v->o->json;
}

static void end_late(live *v) {
    if (v->late > LATE_TOLD) live_show_late(v->o, v->late, &v->bar);
    v->late = 0;
}

static void on_event(
    void *arg, const char *symbol, int64_t time, const char *kind, const char *answer, const char *text) {
    live *v = arg;
    if (is_told(v, kind)) live_show_event(v->o, &(live_event){symbol, time, kind, answer, text}, &v->bar);
}

// Feeds

static bool open_feeds(live *v, err *e) {
    static int64_t span[FEED_SPANS_MOST];
    static const char *wanted[LIST_MOST];
    int spans = session_spans(v->session, span), n = session_count(v->session);
    const limits *l = session_limits(v->session);
    for (int k = 0; k < n && k < LIST_MOST; k++) wanted[k] = session_at(v->session, k).symbol;
    bool named = wanted[0][0] != 0 && n <= LIST_MOST;
    v->hours = hours_new();
    if (!session_hours(v->session, v->hours, e)) return false;
    for (int i = 0; i < v->feeds; i++) {
        feed_options f = {.from = v->from[i],
            .bars = session_reading(v->session),
            .spans = span,
            .span_count = spans,
            .symbol = n == 1 ? wanted[0] : NULL,
            .wanted = wanted,
            .wanted_count = named ? n : 0,
            .late = l->late,
            .missing = hours_missing,
            .arg = v->hours};
        if (!(v->feed[i] = live_feed_open(&f, e))) return false;
        if (!session_tell_known(v->session, v->feed[i], e)) return false;
    }
    return true;
}

typedef enum { TURN_GOT, TURN_NOTHING, TURN_OVER, TURN_FAILED } turn;

// The next event of any feed; waits a little where there is none.
static turn next_event(live *v, double wait, feed_event *ev, err *e) {
    int over = 0;
    for (int i = 0; i < v->feeds; i++) {
        feed_answer a = live_feed_next(v->feed[i], v->feeds == 1 ? wait : 0, ev, e);
        if (a == FEED_GOT) return TURN_GOT;
        if (a == FEED_FAILED) return TURN_FAILED;
        over += a == FEED_OVER;
    }
    if (over == v->feeds) return TURN_OVER;
    if (v->feeds > 1 && wait > 0) usleep((useconds_t)(FEED_POLL * 1e6));
    return TURN_NOTHING;
}

// The session

// The file that ends a session: its coming is a wish to be flat, once. It goes when the wish is kept in the state.
static bool obey_stop(live *v, err *e) {
    if (!killed && access(v->stop, F_OK) != 0) return true;
    const char *why = killed ? "the signal USR1" : "tradewind live --stop, or the file beside the state";
    if (!session_kill(v->session, live_feed_now(v->feed[0]), why, e)) return false;
    killed = 0;
    unlink(v->stop);
    return true;
}

// A newer model that has passed its own evaluation takes over. One that does not fit is told, once, and hides no other.
static bool search(live *v, err *e) {
    const char *dir = cli_given(v->o, "--model-dir");
    double now = clock_seconds();
    candidate c;
    err why = {0};
    if (!dir || (v->searched > 0 && now - v->searched < search_every)) return true;
    v->searched = now;
    if (!v->newest) v->newest = candidate_made(v->run);
    if (!v->refused) v->refused = json_object();
    while (candidate_find(&c, dir, v->newest, v->refused)) {
        if (session_replace(v->session, c.run, live_feed_now(v->feed[0]), &why)) {
            candidate_done(&v->taken);
            v->taken = c;
            v->newest = c.made;
            return true;
        }
        json_object_set_new(v->refused, c.run, json_integer(c.made));
        candidate_done(&c);
        if (why.kind == ERR_RUN) {
            *e = why;
            return false;
        }
        live_show_event(v->o, &(live_event){"", INT64_MIN, "model", "refused", why.text}, &v->bar);
    }
    return true;
}

static bool look(live *v, err *e) {
    double now = clock_seconds();
    if (now - v->looked < look_every) return true;
    v->looked = now;
    if (!obey_stop(v, e) || !none_lost(v, e) || !search(v, e)) return false;
    return v->as.rehearsal || (session_look(v->session, live_feed_now(v->feed[0]), now, e) && none_lost(v, e));
}

static void measure(live *v, const feed_event *ev, int64_t decided) {
    if (ev->kind == FEED_BAR && session_count_all(v->session).decided > decided && ev->received > 0)
        live_latency_add(&v->latency, clock_seconds() - ev->received);
}

// A wish to stop comes before any bar that waits.
static bool take(live *v, const feed_event *ev, err *e) {
    if (!obey_stop(v, e) || !none_lost(v, e)) return false;
    int64_t decided = session_count_all(v->session).decided;
    if (!session_take(v->session, ev, e)) return false;
    if (ev->kind == FEED_BAR && !v->came_late) end_late(v);
    if (ev->kind == FEED_BAR) v->came_late = false;
    measure(v, ev, decided);
    session_rest(v->session);
    return none_lost(v, e);
}

static bool run_session(live *v, err *e) {
    feed_event ev;
    while (!cli_interrupted()) {
        turn t = next_event(v, wait_most, &ev, e);
        if (t == TURN_FAILED) return false;
        if (t == TURN_OVER) return session_flush(v->session, e) && none_lost(v, e);
        if (t == TURN_GOT && !take(v, &ev, e)) return false;
        if (!look(v, e)) return false;
        if (session_is_over(v->session)) return true;
        if (t == TURN_GOT) live_show_progress(&v->bar, v->session, &ev);
    }
    return true;
}

// A program that carries intents out may have been told to be flat, behind the books, as they could not be written.
static void undo_flat_elsewhere(live *v) {
    char text[280];
    for (int k = 0; v->exec.path && k < session_count(v->session); k++) {
        session_view view = session_at(v->session, k);
        journal_intent newest;
        err unused;
        int64_t id;
        double position, units = (double)view.books->replay.books.units;
        if (units == 0 || !journal_newest_intent(session_journal(v->session), view.symbol, &newest, &unused)) continue;
        if (!intents_newest(v->exec.path, view.symbol, &id, &position) || id <= newest.id || position != 0) continue;
        snprintf(text, sizeof text,
            "%.80s ends with a flat position, given when the books could not be written; they hold %.8g units, which "
            "are asked for again with the next bar that is decided on",
            v->exec.path, units / 1e8);
        session_ask_again(v->session, k, id);
        live_show_event(
            v->o, &(live_event){view.symbol, view.time, "exec", limits_answer_key(LIMITS_FLAT), text}, &v->bar);
    }
}

// The first event tells where the history ends: bars of the feed are not taken twice.
static bool begin(live *v, err *e) {
    feed_event ev;
    turn t = next_event(v, 0, &ev, e);
    if (t == TURN_FAILED) return false;
    bool bar = t == TURN_GOT && (ev.kind == FEED_BAR || ev.span);
    if (!session_begin(v->session, bar ? ev.bar.time : INT64_MAX, e)) return false;
    live_show_begin(v->o, v->session, &v->as, v->from, v->feeds, t == TURN_GOT && ev.history);
    undo_flat_elsewhere(v);
    if (!search(v, e)) return false;
    // Targets are told at once, and with them the heartbeat: an advisor that hears nothing goes flat.
    return session_repeat(v->session, e) && none_lost(v, e) && put_targets(v, e) && (t != TURN_GOT || take(v, &ev, e));
}

static bool check_stopped(live *v, err *e) {
    if (cli_given(v->o, "--clear")) {
        unlink(v->stop);
        return session_clear(v->session, live_feed_now(v->feed[0]), e);
    }
    if (!session_is_over(v->session)) return true;
    // The last wish to be flat may not have been given.
    return session_repeat(v->session, e) && none_lost(v, e) &&
           err_input(e, "%s: the session was stopped; `tradewind live --status %s` says why, --clear takes it back",
               v->state, v->state);
}

// The wish to be flat, with an id below that of any later close, and above that of a position that was asked for again.
static void give_flat(live *v, session_intent *newest) {
    err unused;
    int64_t id;
    double position;
    if (!newest->intent.id) return;
    bool again = intents_newest(v->exec.path, newest->intent.symbol, &id, &position) && position != 0;
    if (again && id > newest->intent.id) newest->intent.id = id;
    newest->intent.id++;
    newest->intent.order = (account_order){0};
    newest->intent.lots = 0;
    intents_put(&v->exec, newest, &unused);
}

// Positions bought elsewhere are sold elsewhere where the session cannot go on with its books. An intent that could not
// be given is given at the next start: no id may have passed it.
static void leave(live *v) {
    session_intent flat = {.repeat = false};
    err unused;
    if (v->lost.kind) return;
    for (int k = 0; v->exec.path && k < session_count(v->session); k++) {
        session_view view = session_at(v->session, k);
        if (!journal_newest_intent(session_journal(v->session), view.symbol, &flat.intent, &unused)) continue;
        give_flat(v, &flat);
    }
}

// The same where the session cannot even begin, as nothing can be written any more. Another one that writes from
// elsewhere knows better.
static void leave_unopened(live *v) {
    session_intent flat = {.repeat = false};
    err unused;
    size_t i;
    json_t *row;
    if (!v->exec.path || !journal_is_read_only(v->state) || journal_is_in_use(v->state)) return;
    journal *j = journal_read(v->state, &unused);
    json_t *rows = j ? journal_rows(j, "SELECT DISTINCT symbol FROM intents", NULL, &unused) : NULL;
    json_array_foreach(rows, i, row) {
        const char *symbol = json_string_value(json_object_get(row, "symbol"));
        if (journal_newest_intent(j, symbol ? symbol : "", &flat.intent, &unused)) give_flat(v, &flat);
    }
    json_decref(rows);
    journal_close(j);
}

static bool write_trades(live *v, err *e) {
    const char *path = cli_given(v->o, "--trades");
    return !path || session_write_trades(v->session, 0, path, e);
}

static bool check_trades(const live *v, err *e) {
    const char *path = cli_given(v->o, "--trades"), *const inputs[] = {v->run, v->state};
    if (!path) return true;
    if (session_count(v->session) > 1) return err_input(e, "--trades: is of one instrument; name it with --symbol");
    return output_may_replace(path, OUTPUT_TRADES, inputs, 2, e);
}

// A limit that ended the session is a failure; a wish is none.
static bool tell_stop(const live *v, err *e) {
    limits_rule by = session_stopped_by(v->session);
    if (by == LIMITS_RULES || by == LIMIT_KILL) return true;
    return err_run(e, "%s: stopped by the limit %s; `tradewind live --status` says more, --clear takes it back",
        v->state, limits_rule_key(by));
}

static bool trade(live *v, err *e) {
    const char *exec = cli_given(v->o, "--exec");
    session_listener l = {on_intent, on_event, v};
    const char *const inputs[] = {v->run, v->state};
    progress_init(&v->bar, stderr, "live", 0, v->o->quiet || v->o->json || !v->as.rehearsal);
    if (exec && (!output_may_replace(exec, OUTPUT_INTENTS, inputs, 2, e) || !intents_open(&v->exec, exec, e)))
        return false;
    v->session = session_open(&v->as, &l, e);
    if (!v->session) leave_unopened(v);
    v->exec.sync = v->session && session_limits(v->session)->power;
    if (!v->session || !check_trades(v, e) || !open_feeds(v, e) || !check_stopped(v, e)) return false;
    v->began = clock_seconds();
    bool ok = begin(v, e) && run_session(v, e);
    end_late(v);
    progress_done(&v->bar);
    if (!ok) leave(v);
    ok = ok && write_trades(v, e);
    if (ok)
        live_show_end(v->o, v->session, &v->as,
            &(live_end){clock_seconds() - v->began, cli_given(v->o, "--latency") ? &v->latency : NULL,
                v->temporary[0] ? NULL : v->state, cli_given(v->o, "--trades")});
    return ok && tell_stop(v, e);
}

static void close_all(live *v) {
    session_close(v->session);
    for (int i = 0; i < v->feeds; i++) live_feed_close(v->feed[i]);
    hours_free(v->hours);
    intents_close(&v->exec);
    if (v->temporary[0]) live_forget_state(v->temporary);
    candidate_done(&v->taken);
    json_decref(v->refused);
    free(v->run);
    free(v->state);
    free(v->stop);
}

static const struct {
    const char *option;
    bool (*look)(const cli_options *o, const char *state, err *e);
} from_outside[] = {{"--status", live_show_status}, {"--stop", live_ask_stop}, {"--drift", live_drift}};

// Looks at the state of a session, or asks it to stop, where an option says so: `*done`.
static bool look_from_outside(const cli_options *o, bool *done, err *e) {
    for (size_t i = 0; i < sizeof from_outside / sizeof *from_outside; i++) {
        const char *named = cli_given(o, from_outside[i].option);
        char *state = NULL;
        if (!named) continue;
        *done = true;
        bool ok = live_named_state(named, &state, e) && from_outside[i].look(o, state, e);
        free(state);
        return ok;
    }
    return true;
}

static bool run(const cli_options *o, err *e) {
    bool done = false, ok = look_from_outside(o, &done, e);
    if (done) return ok;
    live *v = calloc(1, sizeof *v);
    NEED(v, "out of memory for a session");
    v->o = o;
    v->exec.fd = -1;
    cli_watch_signals();
    sigaction(SIGUSR1, &(struct sigaction){.sa_handler = on_kill}, NULL);
    ok = ask(v, e) && trade(v, e);
    close_all(v);
    free(v);
    return ok;
}

static void more(void) {
    puts("Feeds:");
    live_feed_help(stdout);
}

const cli_command cli_live = {"live", "RUN --feed FEED [key=value...]", "a trained model on a stream of bars, on paper",
    "RUN is a run's directory, of a model or an agent, an ensemble's, or a walk's, of which the newest fold that is\n"
    "trained answers. The session warms up from history, takes bars as they close, decides by the rule of `backtest`\n"
    "or as the agent acts, and keeps the books of an account. With the same bars it gives the same answers and trades\n"
    "as `backtest RUN --bars FILE`. No real order is ever sent. Ctrl-C ends it; the same command goes on where it\n"
    "ended, also after a kill.\n"
    "  --feed FEED         where bars come from; several are read side by side\n"
    "  --history FILE      bars to warm up with, before the feed's; several for several frames; none: the feed warms "
    "up\n"
    "                      (default: the bars of the run's data)\n"
    "  --state FILE        where the session keeps its books (default: RUN/live.db; a replay alone keeps nothing)\n"
    "  --symbol NAME       an instrument to trade; can be repeated (default: all of the run's data)\n"
    "  --build             make slower bars of the fastest, also where training had files of them\n"
    "  --exec FILE         append intents, a line of JSON each, for another program to carry out (doc/live.md)\n"
    "  --trades FILE       at the end, write all trades as `backtest --trades` does\n"
    "  --latency           at the end, times from the arrival of a bar to the committed decision\n"
    "  --clear             take back a stop: by a limit, --stop, or the signal USR1\n"
    "  --model-dir DIR     the newest run below DIR that is trained, evaluated as better than trivial answers, and "
    "has\n"
    "                      the rule of a backtest replaces the model, without a pause\n"
    "  --status STATE      show positions, books and events of a session, running or not\n"
    "  --drift STATE       compare the newest answers of a session with the run's validation\n"
    "  --last N            how many of them (default: 1000)\n"
    "  --stop STATE        ask a session to close its positions and end\n"
    "A run's directory stands for its live.db as STATE of --status, --drift and --stop.\n"
    "Limits are keys of the section live: (train --help lists them). A replay is compared with a backtest, so that\n"
    "limits of the account act there only where they are given here as KEY=VALUE.\n",
    more, NULL, WORDS_MOST, run,
    "--feed --history --state --symbol --exec --trades --model-dir --status --stop --drift --last",
    "--build --latency --clear"};
