#include "task/agent_answers.h"

#include "data/npz.h"
#include "task/output.h"

#include <stdlib.h>

const char *const agent_choice_names[PLAY_CHOICES] = {"short", "flat", "long"};

void agent_answers_done(agent_answers *a) {
    agent_pass_done(&a->pass);
    free(a->item);
    *a = (agent_answers){0};
}

static int by_close(const void *x, const void *y) {
    const struct agent_answer *a = x, *b = y;
    if (a->bar.end != b->bar.end) return a->bar.end < b->bar.end ? -1 : 1;
    return a->series < b->series ? -1 : a->series > b->series;
}

static void take(agent_answers *a, const play_bar *is) {
    const agent_data *w = &a->t->task.world;
    const market_settings *k = &a->t->task.agent.test.env.market;
    struct agent_answer *to = &a->item[a->count++];
    *to = (struct agent_answer){.is = is,
        .bar = dataset_bar(&a->data->stream[0].bars, agent_market_bar(&w->market, a->data, is->row)),
        .series = agent_market_series(&w->market, is->row)};
    to->lots = (double)is->units / (double)w->market.rules[to->series].contract;
    market_side(k, is->action, &to->share);
}

// Bars are known when they close.
bool agent_answers_trained_on(const agent_answers *a, int64_t i) {
    return a->notes.trained_on >= 0 && data_notes_in_training(&a->notes, a->item[i].bar.end);
}

static void count_trained_on(agent_answers *a) {
    int64_t n = 0;
    for (int64_t i = 0; i < a->count; i++) n += agent_answers_trained_on(a, i);
    if (a->notes.trained_on >= 0) a->notes.trained_on = n;
}

bool agent_answers_make(agent_answers *a, trained_agent *t, int64_t latest, err *e) {
    *a = (agent_answers){.t = t,
        .data = t->task.world.task.data,
        .notes = t->notes,
        .numbers = t->task.agent.test.env.market.continuous};
    if (!trained_agent_play(t, &a->pass, e)) return false;
    a->item = calloc((size_t)a->pass.bars, sizeof *a->item);
    if (!a->item) {
        agent_answers_done(a);
        return err_run(e, "out of memory for the actions at %lld bars", (long long)a->pass.bars);
    }
    for (int64_t k = 0; k < a->pass.runs; k++) {
        const play_run *r = &a->pass.run[k];
        int64_t from = latest && r->count > latest ? r->count - latest : 0;
        for (int64_t i = from; i < r->count; i++) take(a, &a->pass.bar[r->first + i]);
    }
    qsort(a->item, (size_t)a->count, sizeof *a->item, by_close);
    count_trained_on(a);
    return true;
}

// The file

enum { WHOLE_COLUMNS = 2, REAL_COLUMNS = 3, SHORT_COLUMNS = 3 };

typedef struct {
    int64_t *whole[WHOLE_COLUMNS]; // open_time, close_time
    double *real[REAL_COLUMNS];    // close, position, equity
    float *single[SHORT_COLUMNS];  // signal, direction, size
    float *chance;                 // [count, PLAY_CHOICES]
    int32_t *action;
    const char **name;
} columns;

static void columns_done(columns *c) {
    free(c->whole[0]);
    free(c->real[0]);
    free(c->single[0]);
    free(c->chance);
    free(c->action);
    free(c->name);
}

static bool columns_take(columns *c, size_t n, err *e) {
    *c = (columns){.chance = calloc(n, PLAY_CHOICES * sizeof *c->chance),
        .action = calloc(n, sizeof *c->action),
        .name = calloc(n, sizeof *c->name)};
    int64_t *whole = calloc(n, WHOLE_COLUMNS * sizeof *whole);
    double *real = calloc(n, REAL_COLUMNS * sizeof *real);
    float *single = calloc(n, SHORT_COLUMNS * sizeof *single);
    for (size_t k = 0; k < WHOLE_COLUMNS; k++) c->whole[k] = whole ? whole + k * n : NULL;
    for (size_t k = 0; k < REAL_COLUMNS; k++) c->real[k] = real ? real + k * n : NULL;
    for (size_t k = 0; k < SHORT_COLUMNS; k++) c->single[k] = single ? single + k * n : NULL;
    if (whole && real && single && c->chance && c->action && c->name) return true;
    columns_done(c);
    return err_run(e, "out of memory for the actions at %zu bars", n);
}

static void columns_fill(columns *c, const agent_answers *a) {
    for (int64_t i = 0; i < a->count; i++) {
        const struct agent_answer *x = &a->item[i];
        c->whole[0][i] = x->bar.time;
        c->whole[1][i] = x->bar.end;
        c->real[0][i] = x->bar.close;
        c->real[1][i] = x->lots;
        c->real[2][i] = (double)x->is->equity / 1e8;
        c->single[0][i] = (float)x->is->side;
        c->single[1][i] = x->is->action[0];
        c->single[2][i] = (float)x->share;
        c->action[i] = a->numbers ? 0 : (int32_t)x->is->action[0];
        for (int k = 0; k < PLAY_CHOICES; k++) c->chance[i * PLAY_CHOICES + k] = x->is->chance[k];
        if (a->data->panel) c->name[i] = a->data->panel_names[x->series];
    }
}

static bool write_actions(npz_writer *w, const agent_answers *a, const columns *c, err *e) {
    int64_t n = a->count, dim[2] = {n, PLAY_CHOICES};
    if (a->numbers)
        return npz_writer_array(w, "direction", NPY_F32, 1, &n, c->single[1], e) &&
               npz_writer_array(w, "size", NPY_F32, 1, &n, c->single[2], e);
    return npz_writer_array(w, "probability", NPY_F32, 2, dim, c->chance, e) &&
           npz_writer_array(w, "action", NPY_I32, 1, &n, c->action, e) &&
           npz_writer_text(w, "actions", agent_choice_names, PLAY_CHOICES, e);
}

bool agent_answers_write_npz(const agent_answers *a, const char *path, err *e) {
    int64_t n = a->count;
    columns c;
    npz_writer w;
    if (!columns_take(&c, (size_t)n, e)) return false;
    columns_fill(&c, a);
    bool ok = npz_writer_open(&w, path, e) && npz_writer_text(&w, output_mark, (const char *const[]){"1"}, 1, e) &&
              write_actions(&w, a, &c, e) && npz_writer_array(&w, "open_time", NPY_I64, 1, &n, c.whole[0], e) &&
              npz_writer_array(&w, "close_time", NPY_I64, 1, &n, c.whole[1], e) &&
              npz_writer_array(&w, "close", NPY_F64, 1, &n, c.real[0], e) &&
              npz_writer_array(&w, "signal", NPY_F32, 1, &n, c.single[0], e) &&
              npz_writer_array(&w, "position", NPY_F64, 1, &n, c.real[1], e) &&
              npz_writer_array(&w, "equity", NPY_F64, 1, &n, c.real[2], e);
    if (ok && a->data->panel) ok = npz_writer_text(&w, "symbol", c.name, n, e);
    ok = ok && npz_writer_commit(&w, e);
    npz_writer_abandon(&w);
    columns_done(&c);
    return ok;
}
