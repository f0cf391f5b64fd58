// Rules that signals follow. They are fitted once, and the journal keeps them, as long as the weights are the same.
#include "live/session_work.h"

#include "base/json.h"
#include "base/text.h"
#include "task/backtest_work.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The rule that the journal keeps; `known` is false where there is none for these weights and settings.
static bool take_rule(session *s, trader *t, const char *settings, bool *known, err *e) {
    char key[SESSION_KEY_ROOM], *text;
    err unused;
    if (!journal_word(s->journal, session_key(key, "rule", t), &text, e)) return false;
    json_t *all = text ? json_read(text, strlen(text), &unused) : NULL;
    const char *was = json_string_value(json_object_get(all, "settings"));
    const char *weights = json_string_value(json_object_get(all, "weights"));
    bool ok = was && strcmp(was, settings) == 0 && weights && s->weights[0] && strcmp(weights, s->weights) == 0 &&
              (s->by_agent || rule_from_json(json_object_get(all, "rule"), &t->record));
    t->point = json_integer_value(json_object_get(all, "point"));
    *known = ok && t->point > 0;
    t->other = text && !*known;
    json_decref(all);
    free(text);
    return true;
}

void session_keep_meaning(session *s, const char *run) {
    json_t *label = s->by_agent ? json_pack("{s:s}", "kind", "agent") : build_label_json(&s->label);
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
        (json_int_t)t->point, "rule", s->by_agent ? json_null() : rule_to_json(&t->record));
    char *text = json_dumps(all, JSON_COMPACT | JSON_REAL_PRECISION(17));
    json_decref(all);
    NEED(text, "out of memory for a rule");
    bool ok = journal_begin(s->journal, e);
    if (ok) journal_put_word(s->journal, session_key(key, "rule", t), text);
    free(text);
    return ok && journal_commit(s->journal, e);
}

// An agent has no rule; prices of both have a point.
static bool make_rule(session *s, trader *t, const char *run, err *e) {
    account_terms terms = s->terms;
    quotes q;
    const char *symbol = t->symbol[0] ? t->symbol : NULL;
    if (!s->by_agent && !backtest_work_rule(&t->record, &terms, &s->own, run, symbol, e)) return false;
    if (!market_quote(&q, s->task->data, t->series, &terms, e)) return false;
    t->point = q.point;
    quotes_done(&q);
    return true;
}

static void put_rate(FILE *f, const account_rate *r) {
    fprintf(f, "%.17g %d,", r->value, (int)r->measure);
}

// Settings of the description that a rule follows from, as a text that the caller frees.
static bool settings_text(const session *of, char **text, err *e) {
    const account_terms *a = &of->terms;
    signal_settings s;
    text_out to;
    if (!signal_read(of->task->config, &s, e)) return false;
    text_open(&to);
    FILE *f = to.out;
    const double real[] = {s.threshold, s.stop, s.target, s.size, a->cash, a->leverage, a->margin_call, a->contract,
        a->lot_step, a->point};
    const account_rate *const rate[] = {&a->spread, &a->commission, &a->slippage, &a->swap_long, &a->swap_short};
    for (size_t i = 0; i < sizeof real / sizeof *real; i++) fprintf(f, "%.17g,", real[i]);
    for (size_t i = 0; i < sizeof rate / sizeof *rate; i++) put_rate(f, rate[i]);
    fprintf(f, "%lld,%d,%d,%d,%d,%d,%d", (long long)s.hold, (int)s.exit, (int)s.sizing, a->last_open, a->target_first,
        a->entry_stop, a->shorts);
    if (a->day_close) fputs(",day", f);
    if (of->by_agent) {
        const market_settings *k = &of->own_agent.task.agent.test.env.market;
        fprintf(f, ",agent,%.17g,%.17g", k->size, k->ruin);
    }
    *text = text_close(&to);
    NEED(*text, "out of memory for settings");
    return true;
}

bool session_make_rules(session *s, const char *run, err *e) {
    char *settings = NULL;
    bool ok = settings_text(s, &settings, e) && weights_identity(run, s->weights, e) && journal_begin(s->journal, e);
    if (ok) session_keep_meaning(s, run);
    ok = ok && journal_commit(s->journal, e);
    for (int k = 0; ok && k < s->traders; k++) {
        trader *t = &s->trader[k];
        bool known = false;
        ok = take_rule(s, t, settings, &known, e) && (known || make_rule(s, t, run, e)) &&
             books_init(&t->books, &s->terms, t->point, t->symbol[0] ? t->symbol : "live", e) &&
             (s->by_agent || (t->meter = volatility_new(t->record.rule.volatility_bars, e))) &&
             (known || keep_rule(s, t, settings, e));
    }
    free(settings);
    return ok;
}
