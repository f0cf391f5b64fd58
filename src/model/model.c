#include "model/model.h"

#include "base/err.h"
#include "model/kind.h"

#include <inttypes.h>
#include <string.h>

static const struct {
    const char *name;
    const kind *kind;
} models[] = {
#define MODEL(kind) {#kind, &model_##kind},
#include "model/model.def"
#undef MODEL
};

static const kind *kind_of(model_kind k) {
    CHECK((unsigned)k < MODEL_COUNT, "model %d", (int)k);
    return models[k].kind;
}

const config_key *model_keys(model_kind k, size_t *count) {
    *count = kind_of(k)->key_count;
    return kind_of(k)->keys;
}

// True where a list of words, separated by spaces, has one of `n` bytes.
static bool has_word(const char *list, const char *word, size_t n) {
    for (const char *at = list; *at;) {
        size_t length = strcspn(at, " ");
        if (length == n && strncmp(at, word, n) == 0) return true;
        at += length + strspn(at + length, " ");
    }
    return false;
}

bool model_reads(model_kind k, const char *path) {
    static const char section[] = "model.";
    const kind *of = kind_of(k);
    if (strncmp(path, section, sizeof section - 1) != 0) return false;
    const char *key = path + sizeof section - 1;
    size_t n = strcspn(key, ".");
    return has_word("kind", key, n) || has_word(of->reads, key, n) || config_row(of->keys, of->key_count, path);
}

bool model_read(const config *c, const model_data *d, model_spec *s, err *e) {
    for (int k = 0; k < MODEL_COUNT; k++)
        if (models[k].kind->check && !models[k].kind->check(c, e)) return false;
    *s = (model_spec){.kind = model_find(config_text(c, "model.kind")),
        .streams = d->streams,
        .classes = d->classes,
        .horizon = d->horizon,
        .quantiles = d->quantiles,
        .dropout = (float)config_real(c, "model.dropout")};
    for (int i = 0; i < d->streams; i++) s->stream[i].name = d->stream[i];
    return kind_of(s->kind)->read(c, d, s, e);
}

tensor model_build(graph *g, const model_spec *s) {
    tensor out = kind_of(s->kind)->build(g, s);
    CHECK(graph_segments(g) <= MODEL_SEGMENTS_MOST, "%s: %d segments", model_name(s->kind), graph_segments(g));
    return out;
}

int64_t model_outputs(const model_spec *s) {
    return s->classes ? s->classes : s->horizon * (s->quantiles ? s->quantiles : 1);
}

const char *model_describe(const model_spec *s, char *text, size_t room) {
    model_text t = {text, room, 0};
    kind_say(&t, "%s", model_name(s->kind));
    kind_of(s->kind)->describe(s, &t);
    if (s->dropout > 0) kind_say(&t, ", dropout");
    if (s->classes) kind_say(&t, ", %" PRId64 " classes", s->classes);
    if (!s->classes) kind_say(&t, ", %" PRId64 " steps, %" PRId64 " quantiles", s->horizon, s->quantiles);
    return text;
}

model_kind model_find(const char *name) {
    int k = 0;
    while (k < MODEL_COUNT && strcmp(models[k].name, name) != 0) k++;
    return (model_kind)k;
}

const char *model_name(model_kind k) {
    return models[k].name;
}

window_layout model_layout(model_kind k) {
    return kind_of(k)->layout;
}

int64_t model_steps_most(model_kind k) {
    return kind_of(k)->steps_most;
}

const char *model_segment(model_kind k) {
    return kind_of(k)->segment;
}
