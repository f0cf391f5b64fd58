// Actions of a trained agent on their way to a file of comma-separated values, an .npz or the screen.
#include "base/file.h"
#include "base/term.h"
#include "base/text.h"
#include "cli/age.h"
#include "cli/agent_commands.h"
#include "cli/answers.h"
#include "cli/ask.h"
#include "cli/use.h"
#include "data/when.h"
#include "task/agent_answers.h"
#include "task/output.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

// A file of comma-separated values

static void print_head(const agent_answers *a, FILE *f) {
    fprintf(f, "open_time,close_time,close%s,signal,%s,position,equity\n", a->data->panel ? ",symbol" : "",
        a->numbers ? "direction,size" : "action,p_short,p_flat,p_long");
}

static void print_row(const agent_answers *a, int64_t i, FILE *f) {
    const struct agent_answer *x = &a->item[i];
    char open[32], close[32], equity[40];
    fprintf(f, "%s,%s,%.10g", when_moment_text(open, sizeof open, x->bar.time),
        when_moment_text(close, sizeof close, x->bar.end), x->bar.close);
    if (a->data->panel) fputc(',', f);
    if (a->data->panel) answers_print_name("", a->data->panel_names[x->series], f);
    fprintf(f, ",%d,", x->is->side);
    if (a->numbers)
        fprintf(f, "%.9g,%.9g", (double)x->is->action[0], x->share);
    else
        fprintf(f, "%s,%.9g,%.9g,%.9g", agent_choice_names[(int)x->is->action[0]], (double)x->is->chance[0],
            (double)x->is->chance[1], (double)x->is->chance[2]);
    fprintf(f, ",%.10g,%s\n", x->lots, account_text(equity, sizeof equity, x->is->equity, 2));
}

// Some rows at a time: they are text in memory before they are in the file.
static bool write_csv(const agent_answers *a, const char *path, err *e) {
    enum { ROWS = 4096 };
    file_writer w;
    bool ok = file_writer_open(&w, path, e);
    for (int64_t i = 0; ok && i < a->count; i += ROWS) {
        text_out t;
        text_open(&t);
        if (i == 0) print_head(a, t.out);
        for (int64_t k = i; k < i + ROWS && k < a->count; k++) print_row(a, k, t.out);
        char *text = text_close(&t);
        ok = text ? file_writer_write(&w, text, t.bytes, e) : err_run(e, "%s: out of memory", path);
        free(text);
    }
    ok = ok && file_writer_commit(&w, e);
    file_writer_abandon(&w);
    return ok;
}

// The pass

static int64_t open_of(const agent_answers *a, const play_bar *b) {
    return dataset_bar(&a->data->stream[0].bars, agent_market_bar(&a->t->task.world.market, a->data, b->row)).time;
}

// The first bar of the passes, and whether all of them begin there.
static int64_t pass_begin(const agent_answers *a, bool *same) {
    int64_t first = open_of(a, &a->pass.bar[a->pass.run[0].first]);
    *same = true;
    for (int64_t k = 1; k < a->pass.runs; k++) {
        int64_t at = open_of(a, &a->pass.bar[a->pass.run[k].first]);
        *same &= at == first;
        if (at < first) first = at;
    }
    return first;
}

// An answer depends on the books, so it is told where these begin.
static void tell_pass(const agent_answers *a, FILE *out) {
    char from[32], bars[32], cash[40];
    bool same;
    const account_rules *r = &a->t->task.world.market.rules[0];
    int64_t first = pass_begin(a, &same);
    term_count(bars, sizeof bars, (double)a->pass.bars);
    fprintf(out, "pass      greedy, from %s UTC%s, over %s bars, with a cash of %s at the beginning%s\n",
        when_moment_text(from, sizeof from, first), same ? "" : " or later", bars,
        account_text(cash, sizeof cash, r->cash, 2), a->pass.runs > 1 ? " of each" : "");
    for (int64_t k = 0; k < a->pass.runs; k++) {
        const play_run *run = &a->pass.run[k];
        if (!run->ruined) continue;
        const play_bar *last = &a->pass.bar[run->first + run->count - 1];
        fprintf(out, "ruin      %s%sthe pass ended at the bar of %s UTC (agent.ruin); later bars have no action\n",
            a->data->panel ? a->data->panel_names[agent_market_series(&a->t->task.world.market, last->row)] : "",
            a->data->panel ? ": " : "", when_moment_text(from, sizeof from, open_of(a, last)));
    }
}

// The screen

static json_t *answer_json(const agent_answers *a, int64_t i) {
    const struct agent_answer *x = &a->item[i];
    char open[32], close[32];
    json_t *j = json_pack("{s:s, s:s, s:f}", "open_time", when_moment_text(open, sizeof open, x->bar.time),
        "close_time", when_moment_text(close, sizeof close, x->bar.end), "close", x->bar.close);
    if (a->data->panel) json_object_set_new(j, "symbol", json_string(a->data->panel_names[x->series]));
    json_t *chance = json_object();
    for (int k = 0; k < PLAY_CHOICES; k++)
        json_object_set_new(chance, agent_choice_names[k], json_number((double)x->is->chance[k]));
    if (a->numbers)
        json_join(j, json_pack("{s:o, s:f}", "direction", json_number((double)x->is->action[0]), "size", x->share));
    else
        json_object_set_new(j, "action", json_string(agent_choice_names[(int)x->is->action[0]]));
    if (a->numbers)
        json_decref(chance);
    else
        json_object_set_new(j, "probability", chance);
    json_join(j, json_pack("{s:i, s:f, s:f}", "signal", x->is->side, "position", x->lots, "equity",
                     (double)x->is->equity / 1e8));
    bool same;
    json_object_set_new(j, "pass_from", json_string(when_moment_text(open, sizeof open, pass_begin(a, &same))));
    if (agent_answers_trained_on(a, i)) json_object_set_new(j, "trained_on", json_true());
    json_t *late = age_late(a->data, a->data->panel ? x->series : 0);
    if (late) json_object_set_new(j, "stale", late);
    return j;
}

static void print_answer(const agent_answers *a, const struct agent_answer *x) {
    char when[32];
    printf("%s%s", a->data->panel ? a->data->panel_names[x->series] : "", a->data->panel ? "  " : "");
    printf("closed %s UTC  close %-10.10g", when_moment_text(when, sizeof when, x->bar.end), x->bar.close);
    if (a->numbers)
        printf("  direction %.3f  size %.3f", (double)x->is->action[0], x->share);
    else
        printf("  %-5s", agent_choice_names[(int)x->is->action[0]]);
    for (int k = 0; !a->numbers && k < PLAY_CHOICES; k++)
        printf("  %s %.3f", agent_choice_names[k], (double)x->is->chance[k]);
    printf("  signal %d  position %.6g  equity %.2f\n", x->is->side, x->lots, (double)x->is->equity / 1e8);
}

static void print_answers(const agent_answers *a, bool json) {
    for (int64_t i = 0; i < a->count; i++) {
        if (json)
            json_line(stdout, answer_json(a, i));
        else
            print_answer(a, &a->item[i]);
    }
}

// The command

static void warn_late(const cli_options *o, const agent_answers *a) {
    json_t *late = cli_given(o, "--latest") ? age_late(a->data, -1) : NULL, *text;
    size_t i;
    json_array_foreach(late, i, text) fprintf(
        o->quiet ? stderr : stdout, "%s%s\n", o->quiet ? "tradewind: stale: " : "warning   ", json_string_value(text));
    json_decref(late);
}

static void tell_notes(const cli_options *o, const agent_answers *a, FILE *out) {
    tell_pass(a, out);
    use_warn(&a->notes, a->count, out);
    if (cli_given(o, "--latest")) age_tell(a->data, out);
}

static void tell_file(const cli_options *o, const agent_answers *a, const char *path) {
    const char *part = a->t->task.world.part;
    char n[32];
    if (o->json) {
        bool same;
        json_t *all = json_pack("{s:s, s:s, s:s, s:I, s:s, s:s}", "weights", a->t->weights, "data", a->data->name,
            "part", part, "bars", (json_int_t)a->count, "pass_from",
            when_moment_text(n, sizeof n, pass_begin(a, &same)), "file", path);
        if (cli_given(o, "--latest"))
            json_object_set_new(all, "newest_age_s", json_integer((json_int_t)time(NULL) - age_newest(a->data)));
        use_add_json(&a->notes, all);
        json_line(stdout, all);
    }
    if (o->json || o->quiet) return;
    term_count(n, sizeof n, (double)a->count);
    printf("%s: actions at %s bars (%s, %s) by %s\n", path, n, a->data->name, part, a->t->weights);
    tell_notes(o, a, stdout);
}

// The file to write may be none of the run's data and weights, nor anything that predict did not write.
static bool has_place(const trained_agent *t, const char *path, err *e) {
    const char *list[TASK_INPUTS_MOST + 1] = {t->weights};
    int n = task_inputs(t->task.config, list + 1);
    return output_may_replace(path, OUTPUT_ANSWERS, list, n + 1, e);
}

static bool write_file(const agent_answers *a, const char *path, err *e) {
    size_t n = strlen(path);
    return strcmp(path + n - 4, ".npz") == 0 ? agent_answers_write_npz(a, path, e) : write_csv(a, path, e);
}

static bool has_data(const trained_agent *t, err *e) {
    return t->actor || err_input(e,
                           "%s: is an agent of %s, which has no bars to answer for; `tradewind evaluate` plays "
                           "its episodes",
                           t->weights, agent_task_env(&t->task));
}

bool agent_predict_command(const cli_options *o, const char *path, err *e) {
    trained_agent t;
    agent_answers a = {0};
    trained_options ask = {.run = o->word[0],
        .overrides = o->word + 1,
        .override_count = o->words - 1,
        .data = cli_given(o, "--data"),
        .part = cli_given(o, "--part"),
        .version = TRADEWIND_VERSION};
    if (!use_latest(o, &ask.latest, e) || !ask_devices(o, &ask.devices, e) || !trained_agent_open(&t, &ask, e))
        return false;
    use_tell_agent(&t.task, o);
    bool ok = has_data(&t, e) && (!path || has_place(&t, path, e)) && agent_answers_make(&a, &t, ask.latest, e) &&
              (!path || write_file(&a, path, e));
    if (ok && !path && !o->quiet) tell_notes(o, &a, o->json ? stderr : stdout);
    if (ok && !o->json) warn_late(o, &a);
    if (ok && !path) print_answers(&a, o->json);
    if (ok && path) tell_file(o, &a, path);
    agent_answers_done(&a);
    trained_agent_close(&t);
    return ok;
}
