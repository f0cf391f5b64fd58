#include "task/data_notes.h"

#include "data/when.h"
#include "run/run.h"

#include <stdio.h>
#include <string.h>

static bool read_time(const char *text, int64_t *time) {
    when_stamp s;
    if (!text || !when_read(text, strlen(text), &s)) return false;
    *time = s.time;
    return true;
}

bool data_notes_in_training(const data_notes *n, int64_t known) {
    return known >= n->from && known <= n->until;
}

// Counts the samples that lie in the time that the weights were trained on: data that grew or were made anew are split
// elsewhere.
static void count_trained_on(data_notes *n, const task *t, const char *part, const split_part *samples,
    const contract *was, const contract *is) {
    const int64_t *time = t->data->time;
    if (!time || !read_time(was->trained_from, &n->from) || !read_time(was->trained_to, &n->until)) return;
    n->trained_same = strcmp(part, "train") == 0 && is->trained_from && is->trained_to &&
                      strcmp(is->trained_from, was->trained_from) == 0 && strcmp(is->trained_to, was->trained_to) == 0;
    snprintf(n->trained_to, sizeof n->trained_to, "%s", was->trained_to);
    n->trained_on = 0;
    for (int64_t i = 0; i < samples->count; i++)
        n->trained_on += data_notes_in_training(n, time[part_sample(samples, i)]);
}

void data_notes_description(data_notes *n, const char *file, const char *what) {
    if (!run_text_changed(file)) return;
    snprintf(n->warning[n->warnings++], DATA_WARNING_ROOM,
        "%s was changed after the run, so %s than the weights' own; put it back, or remove its last line", file, what);
}

bool data_notes_make(data_notes *n, const task *t, const char *part, const split_part *samples, const safetensors *f,
    const char *path, err *e) {
    contract *was, *is;
    *n = (data_notes){.trained_on = -1};
    data_notes_description(n, t->options.description.file, "these may be other samples");
    if (!contract_read(&was, f, path, e)) return false;
    if (!was) return true;
    is = task_contract(t);
    count_trained_on(n, t, part, samples, was, is);
    if (contract_zones_differ(was, is, n->warning[n->warnings], DATA_WARNING_ROOM)) n->warnings++;
    if (contract_symbols_differ(was, is, n->warning[n->warnings], DATA_WARNING_ROOM)) n->warnings++;
    if (contract_prices_differ(was, t->data, samples, n->warning[n->warnings], DATA_WARNING_ROOM)) n->warnings++;
    contract_free(was);
    contract_free(is);
    return true;
}

void data_notes_none(data_notes *n) {
    *n = (data_notes){.trained_on = -1};
}

void data_notes_files(data_notes *n, const contract *own, const task *t) {
    contract *is = task_contract(t);
    if (contract_files_differ(own, is, n->warning[n->warnings], DATA_WARNING_ROOM)) n->warnings++;
    contract_free(is);
}
