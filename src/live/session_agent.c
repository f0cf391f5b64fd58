// The agent of a session: its answers as decisions, and what it remembers in the journal.
#include "live/session_work.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

bool session_open_agent(session *s, err *e) {
    s->answer = calloc(PLAY_CHOICES, sizeof *s->answer);
    NEED(s->answer, "out of memory for an answer");
    return (s->agent = live_agent_open(&(model_options){s->options.run, s->board}, e)) != NULL;
}

bool session_is_ready(const session *s, int k) {
    return board_ready(s->board, k) && (!s->agent || !live_agent_needs(s->agent, k));
}

bool session_ask_agent(session *s, int k, journal_decision *o, account_order *next, bool *finite, err *e) {
    const books *b = &s->trader[k].books;
    agent_reply r;
    if (!live_agent_answer(s->agent, k, b, o->bar.end, &r, e)) return false;
    *next = session_keep_position(&b->replay.books);
    *finite = r.finite;
    o->inputs = board_sum(s->board, k);
    o->score = NAN;
    if (!r.finite) return true;
    memcpy(s->answer, r.number, (size_t)r.width * sizeof *s->answer);
    o->answer = s->answer;
    o->width = r.width;
    o->side = r.side;
    if (r.orders) *next = (account_order){.units = r.units};
    return true;
}

bool session_show_agent(session *s, int k, int64_t end, err *e) {
    agent_reply unused;
    return !live_agent_remembers(s->agent, k) || live_agent_answer(s->agent, k, &s->trader[k].books, end, &unused, e);
}

void session_keep_memory(session *s, int k) {
    const trader *t = &s->trader[k];
    size_t bytes = live_agent_memory(s->agent);
    void *block = malloc(bytes);
    NEED(block, "out of memory for a memory of %zu bytes", bytes);
    live_agent_keep(s->agent, k, block);
    journal_put_memory(s->journal, t->symbol, t->time, s->weights, block, bytes);
    free(block);
}

// Other weights remember nothing: their episode begins.
bool session_take_memory(session *s, int k, err *e) {
    const trader *t = &s->trader[k];
    size_t bytes;
    void *block;
    if (!journal_take_memory(s->journal, t->symbol, t->time, s->weights, &block, &bytes, e)) return false;
    bool ok =
        !block || live_agent_recall(s->agent, k, block, bytes) ||
        err_input(e, "%s: what the agent remembers is damaged; name another --state to begin anew", s->options.state);
    free(block);
    return ok;
}
