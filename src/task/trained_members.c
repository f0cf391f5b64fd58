#include "task/trained_members.h"

#include "run/db.h"
#include "run/run.h"
#include "run/weights.h"
#include "task/members.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

char *trained_member_weights(const char *ensemble, int k) {
    char *dir = members_dir(ensemble, k), *path = run_path(dir, "best.safetensors");
    free(dir);
    return path;
}

bool trained_is_unfinished(const char *dir) {
    db_summary sum;
    err unused;
    char *path = run_path(dir, "run.db");
    db_reader *db = db_reader_open(path, &unused);
    bool unfinished = db && db_read(db, &sum, &unused) && strcmp(sum.status, "done") != 0;
    db_reader_close(db);
    free(path);
    return unfinished;
}

static bool is_trained(const char *ensemble, int k) {
    struct stat st;
    char *dir = members_dir(ensemble, k), *weights = trained_member_weights(ensemble, k);
    bool is = stat(weights, &st) == 0 && !trained_is_unfinished(dir);
    free(dir);
    free(weights);
    return is;
}

bool trained_members_find(const char *word, int members, char **dir, char **weights, err *e) {
    bool all = !trained_is_unfinished(word);
    for (int k = 1; all && k <= members; k++) all = is_trained(word, k);
    if (!all)
        return err_input(
            e, "%s: its members are not all trained; go on with `tradewind train %s/config.yaml --resume`", word, word);
    *dir = members_dir(word, 1);
    *weights = trained_member_weights(word, 1);
    return true;
}

// True where one file has the scales of the other, to the bit.
static bool same_scales(const safetensors *a, const safetensors *b) {
    int more = 0;
    for (int i = 0; i < safetensors_count(a); i++) {
        const safetensors_entry *x = safetensors_at(a, i), *y = safetensors_find(b, x->name);
        if (strncmp(x->name, "scaler.", 7) != 0) continue;
        if (!y || x->bytes != y->bytes || memcmp(x->data, y->data, x->bytes) != 0) return false;
        more++;
    }
    for (int i = 0; i < safetensors_count(b); i++) more -= strncmp(safetensors_at(b, i)->name, "scaler.", 7) == 0;
    return more == 0;
}

bool trained_members_agree(
    const char *ensemble, int members, const contract *is, unsigned must, const safetensors *first, err *e) {
    bool ok = true;
    for (int k = 2; ok && k <= members; k++) {
        char *path = trained_member_weights(ensemble, k);
        safetensors *f = weights_open(path, e);
        ok = f && contract_fits(f, path, is, must & ~CONTRACT_SCALER, e) &&
             (same_scales(first, f) ||
                 err_input(e, "%s: has other scales than member 1; train the ensemble again", path));
        safetensors_close(f);
        free(path);
    }
    return ok;
}

void trained_members_note(data_notes *n, const char *ensemble) {
    char *file = run_path(ensemble, "config.yaml");
    data_notes_description(n, file, "these may be other members");
    free(file);
}
