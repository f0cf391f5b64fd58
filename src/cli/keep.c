#include "cli/keep.h"

#include "run/results.h"
#include "run/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

// Parts mean what they meant in training where nothing was changed.
bool keep_wanted(const cli_options *o, const char *part) {
    static const char *const parts[] = {"train", "validation", "test"};
    struct stat st;
    bool own = o->words == 1 && !cli_given(o, "--data") && stat(o->word[0], &st) == 0 && S_ISDIR(st.st_mode);
    for (size_t i = 0; own && i < sizeof parts / sizeof *parts; i++)
        if (strcmp(part, parts[i]) == 0) return true;
    return false;
}

void keep_note(kept *k, bool ok, char *path) {
    if (ok)
        k->file[k->files++] = path;
    else
        free(path);
}

void keep_evaluation(kept *k, const cli_options *o, const evaluation *v) {
    const char *dir = o->word[0];
    *k = (kept){0};
    if (!keep_wanted(o, v->t->part)) return;
    keep_note(k, evaluation_store(v, dir, &k->why), run_path(dir, results_name(RESULTS_EVALUATION)));
    char *path = k->files ? evaluation_store_answers(v, dir, &k->why) : NULL;
    keep_note(k, path != NULL, path);
}

void keep_done(kept *k) {
    for (int i = 0; i < k->files; i++) free(k->file[i]);
}

void keep_tell(const kept *k, const cli_options *o) {
    bool plain = !o->json && !o->quiet;
    if (plain && k->files) {
        printf("\nstored    ");
        for (int i = 0; i < k->files; i++) printf("%s%s", i ? ", " : "", k->file[i]);
        putchar('\n');
    }
    if (k->why.kind != ERR_NONE)
        fprintf(plain ? stdout : stderr, "%snot stored: %s\n", plain ? "note      " : "tradewind: ", k->why.text);
}

json_t *keep_json(const kept *k) {
    json_t *all = json_array();
    for (int i = 0; i < k->files; i++) {
        json_t *path = json_string(k->file[i]);
        json_array_append_new(all, path ? path : json_null());
    }
    return all;
}
