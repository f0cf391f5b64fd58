#include "train/snapshot.h"

#include "base/arena.h"
#include "base/half.h"
#include "run/checkpoint.h"
#include "run/weights.h"
#include "train/gathered.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    COUNT_EPOCH,
    COUNT_DONE,
    COUNT_BEST_EPOCH,
    COUNT_BAD,
    COUNT_BEST_IS_NOW,
    COUNT_WAITING,
    COUNT_FALLS,
    COUNT_STEP,
    COUNTS = COUNT_STEP + 8
};
enum { VALUE_SECONDS, VALUE_BEST, VALUE_LR, VALUE_PLATEAU_LR, VALUE_PLATEAU_BEST, VALUES };
enum { STATES_MOST = 256, NOTES_MOST = 16 };

static const job *job_of(const snapshot *s) {
    return engine_job(s->x);
}

static graph *graph_of(const snapshot *s) {
    return engine_job(s->x)->g;
}

static size_t slab_bytes(const graph *g) {
    return (size_t)graph_slab_elements(g) * sizeof(float);
}

// Weights of targets in other units would forecast in those.
static bool check_target(const snapshot *s, const safetensors *from, const char *path, err *e) {
    const scaler *sc = job_of(s)->scaler;
    const safetensors_entry *mean = safetensors_find(from, "scaler.target.mean"),
                            *std = safetensors_find(from, "scaler.target.std");
    target_scale is = sc ? sc->target : (target_scale){0}, was = {0};
    if (mean && mean->bytes == sizeof was.mean) memcpy(&was.mean, mean->data, sizeof was.mean);
    if (std && std->bytes == sizeof was.std) memcpy(&was.std, std->data, sizeof was.std);
    if (!target_scales(is) && !target_scales(was)) return true;
    if (memcmp(&is, &was, sizeof is) == 0) return true;
    return err_input(e, "%s: was trained on targets that were %s; train without --resume", path,
        target_scales(was) ? "scaled otherwise" : "not scaled yet");
}

// The first number of a stream's scales that has other bits than those of the file.
static bool check_scale(const snapshot *s, int stream, const char *what, const float *is, const safetensors *from,
    const char *path, err *e) {
    const scaler *sc = job_of(s)->scaler;
    const dataset *d = job_of(s)->data;
    const char *const *columns = d->stream[stream].series.columns;
    int64_t width = sc->width[stream], count = sc->series * width;
    char name[96], column[32];
    snprintf(name, sizeof name, "scaler.%.64s.%s", d->stream[stream].name, what);
    const safetensors_entry *t = safetensors_find(from, name);
    if (!t || t->type != SAFE_F32 || t->bytes != (size_t)count * sizeof *is)
        return err_input(e, "%s: %s is missing or of another size; it is of other data", path, name);
    for (int64_t i = 0; i < count; i++) {
        float was;
        memcpy(&was, (const char *)t->data + (size_t)i * sizeof was, sizeof was);
        if (memcmp(&was, &is[i], sizeof was) == 0) continue;
        snprintf(column, sizeof column, "%lld", (long long)(i % width + 1));
        return err_input(e,
            "%s: column %.80s of %s%s%s has a %s of %.9g over the training part, had %.9g: the data or the program "
            "have "
            "changed; go on with those it began with, or train without --resume",
            path, columns ? columns[i % width] : column, d->stream[stream].name, sc->series > 1 ? ", " : "",
            sc->series > 1 ? d->panel_names[i / width] : "", what, (double)is[i], (double)was);
    }
    return true;
}

// Weights see their inputs through the scales that were fitted when the run began.
static bool check_scales(const snapshot *s, const safetensors *from, const char *path, err *e) {
    const scaler *sc = job_of(s)->scaler;
    bool ok = check_target(s, from, path, e);
    for (int i = 0; ok && sc && i < sc->streams; i++)
        ok = check_scale(s, i, "mean", sc->mean[i], from, path, e) &&
             check_scale(s, i, "std", sc->std[i], from, path, e);
    return ok;
}

static float *take_slab(const graph *g, err *e) {
    float *slab = malloc(slab_bytes(g) + 1);
    if (!slab) err_run(e, "out of memory for %zu bytes of weights", slab_bytes(g));
    return slab;
}

// States: whatever lives across steps. Those with a row a sample are batches, which the host writes before each.

static int list_states(const graph *g, tensor *list) {
    int n = 0;
    for (int i = 1; i <= graph_tensors(g); i++) {
        const tensor_info *t = graph_info(g, (tensor){i});
        if (t->role != ROLE_STATE || shape_is_batch(t->shape)) continue;
        CHECK(n < STATES_MOST, "more than %d states", STATES_MOST);
        list[n++] = (tensor){i};
    }
    return n;
}

// Bytes as they are: a state is read back only into the same graph.
static shape state_shape(const graph *g, tensor t) {
    const tensor_info *info = graph_info(g, t);
    return shape1((int64_t)((size_t)shape_count(info->shape) * dtype_bytes(info->type)));
}

static bool add_states(gathered *to, const snapshot *s, err *e) {
    tensor list[STATES_MOST];
    const graph *g = graph_of(s);
    int n = list_states(g, list);
    for (int k = 0; k < n; k++) {
        shape bytes = state_shape(g, list[k]);
        void *data = arena_take(&to->arena, (size_t)bytes.dim[0]);
        if (!store_read(engine_store(s->x), g, list[k], data, e)) return false;
        gathered_add(to, arena_format(&to->arena, "state.%s", graph_info(g, list[k])->name), SAFE_U8, 1, bytes, data);
    }
    return true;
}

// The version before numbered the states of a graph, from 0, and gave several the same name.
static const safetensors_entry *find_state(const safetensors *from, const graph *g, int k, tensor t) {
    char name[512];
    snprintf(name, sizeof name, "state.%s", graph_info(g, t)->name);
    const safetensors_entry *found = safetensors_find(from, name);
    snprintf(name, sizeof name, "state.%d.%s", k, graph_info(g, t)->given);
    return found ? found : safetensors_find(from, name);
}

static bool load_states(const snapshot *s, const safetensors *from, const char *path, err *e) {
    tensor list[STATES_MOST];
    const graph *g = graph_of(s);
    int n = list_states(g, list);
    for (int k = 0; k < n; k++) {
        const safetensors_entry *t = find_state(from, g, k, list[k]);
        if (!t || t->bytes != (size_t)state_shape(g, list[k]).dim[0])
            return err_input(e, "%s: state %s is missing or of another size", path, graph_info(g, list[k])->name);
        if (!store_write(engine_store(s->x), g, list[k], t->data, e)) return false;
    }
    return true;
}

// Where training stands

static void add_standing(gathered *to, const standing *at) {
    int64_t *count = arena_array(&to->arena, COUNTS, sizeof *count);
    double *value = arena_array(&to->arena, VALUES, sizeof *value);
    const step_cursor *c = &at->cursor;
    const int64_t record[8] = {(int64_t)at->progress.seed, (int64_t)at->progress.update, (int64_t)c->span[0].first,
        (int64_t)c->count, (int64_t)c->position, (int64_t)c->row, c->epoch, c->shuffle};
    count[COUNT_EPOCH] = at->epoch;
    count[COUNT_DONE] = at->done;
    count[COUNT_BEST_EPOCH] = at->stop.best_epoch;
    count[COUNT_BAD] = at->stop.bad;
    count[COUNT_BEST_IS_NOW] = at->best_is_now;
    count[COUNT_WAITING] = at->plateau.waiting;
    count[COUNT_FALLS] = at->plateau.falls;
    memcpy(count + COUNT_STEP, record, sizeof record);
    value[VALUE_SECONDS] = at->seconds;
    value[VALUE_BEST] = at->stop.best;
    value[VALUE_LR] = (double)at->progress.lr;
    value[VALUE_PLATEAU_LR] = at->plateau.lr;
    value[VALUE_PLATEAU_BEST] = at->plateau.best;
    gathered_add(to, "trainer.counts", SAFE_I64, sizeof *count, shape1(COUNTS), count);
    gathered_add(to, "trainer.values", SAFE_F64, sizeof *value, shape1(VALUES), value);
    int64_t *span = arena_array(&to->arena, 2 * SPANS_MOST, sizeof *span);
    for (uint32_t i = 0; i < c->spans; i++) {
        span[2 * i] = (int64_t)c->span[i].first;
        span[2 * i + 1] = (int64_t)c->span[i].before;
    }
    gathered_add(to, "trainer.spans", SAFE_I64, sizeof *span, shape2(c->spans, 2), span);
}

// The version before has one span, and no list of them.
static bool load_spans(step_cursor *c, uint64_t first, const safetensors *from) {
    const safetensors_entry *t = safetensors_find(from, "trainer.spans");
    c->spans = 1;
    c->span[0] = (step_span){first, 0};
    if (!t) return true;
    if (t->type != SAFE_I64 || t->rank != 2 || t->dim[1] != 2 || t->dim[0] > SPANS_MOST) return false;
    c->spans = (uint32_t)t->dim[0];
    for (uint32_t i = 0; i < c->spans; i++) memcpy(&c->span[i], (const char *)t->data + 16 * i, 16);
    return true;
}

static bool load_standing(standing *at, const safetensors *from, const char *path, err *e) {
    int64_t count[COUNTS];
    double value[VALUES];
    const safetensors_entry *c = safetensors_find(from, "trainer.counts"),
                            *v = safetensors_find(from, "trainer.values");
    if (!c || !v || c->bytes != sizeof count || v->bytes != sizeof value)
        return err_input(e, "%s: does not say where the run stood", path);
    memcpy(count, c->data, sizeof count);
    memcpy(value, v->data, sizeof value);
    const int64_t *p = count + COUNT_STEP;
    stop before = at->stop;
    *at = (standing){.epoch = count[COUNT_EPOCH], .done = count[COUNT_DONE], .seconds = value[VALUE_SECONDS]};
    at->stop = (stop){before.patience, before.lower, count[COUNT_BEST_EPOCH], value[VALUE_BEST], count[COUNT_BAD]};
    at->best_is_now = count[COUNT_BEST_IS_NOW] != 0;
    at->plateau =
        (plateau){value[VALUE_PLATEAU_LR], value[VALUE_PLATEAU_BEST], count[COUNT_WAITING], count[COUNT_FALLS]};
    at->progress = (step_progress){.seed = (uint64_t)p[0], .update = (uint64_t)p[1], .lr = (float)value[VALUE_LR]};
    at->cursor = (step_cursor){.count = (uint64_t)p[3],
        .position = (uint64_t)p[4],
        .row = (uint64_t)p[5],
        .epoch = (uint32_t)p[6],
        .shuffle = (uint32_t)p[7]};
    at->update = checkpoint_step(from);
    if (!load_spans(&at->cursor, (uint64_t)p[2], from))
        return err_input(e, "%s: trainer.spans is not a list of spans; it is damaged", path);
    if (at->epoch >= 1 && at->done >= 0 && at->stop.best_epoch >= 0 && at->stop.best_epoch < at->epoch) return true;
    return err_input(e, "%s: says that it stands in epoch %" PRId64 "; it is damaged", path, at->epoch);
}

// Checkpoints that do not say in what their best epoch was judged are of runs that have had one precision.
static bool load_best_precision(const snapshot *s, const safetensors *from, const char *path, err *e) {
    const char *name = safetensors_metadata(from, "best_precision");
    s->at->best_precision = job_of(s)->precision;
    return !name || precision_find(name, &s->at->best_precision) ||
           err_input(e, "%s: says that its best epoch was of %.20s; it is damaged", path, name);
}

// Saving

static bool write_gathered(
    const gathered *g, const snapshot *s, const char *path, const safetensors_note *notes, int note_count, err *e) {
    safetensors_note all[NOTES_MOST];
    char epoch[32], done[32], best[32];
    int n = 0;
    CHECK(note_count + 7 <= NOTES_MOST, "%d notes", note_count);
    snprintf(epoch, sizeof epoch, "%" PRId64, s->at->epoch);
    snprintf(done, sizeof done, "%" PRId64, s->at->done);
    snprintf(best, sizeof best, "%" PRId64, s->at->stop.best_epoch);
    for (; n < note_count; n++) all[n] = notes[n];
    all[n++] = (safetensors_note){"format", "pt"};
    all[n++] = (safetensors_note){"epoch", epoch};
    all[n++] = (safetensors_note){"done", done};
    all[n++] = (safetensors_note){"best_epoch", best};
    all[n++] = (safetensors_note){"precision", precision_name(job_of(s)->precision)};
    if (s->trivial.key) all[n++] = s->trivial;
    if (s->at->stop.best_epoch) all[n++] = (safetensors_note){"best_precision", precision_name(s->at->best_precision)};
    return checkpoint_write(path, s->at->update, g->entry, g->count, all, n, e);
}

// Reads a slab of the device and lists it; false on failure. The memory is the caller's to free.
static bool gather_slab(gathered *g, const snapshot *s, slab_kind kind, const char *prefix, float **memory, err *e) {
    graph *of = graph_of(s);
    if (kind != SLAB_WEIGHTS && !graph_uses_slab(of, kind)) return true;
    *memory = take_slab(of, e);
    if (!*memory || !store_read(engine_store(s->x), of, graph_slab(of, kind), *memory, e)) return false;
    gathered_slab(g, of, prefix, *memory);
    return true;
}

bool snapshot_save(const snapshot *s, const char *path, const safetensors_note *notes, int note_count, err *e) {
    gathered g;
    float *slab[3] = {0};
    gathered_init(&g, 4 * graph_parameters(graph_of(s)) + STATES_MOST + 2 * STREAMS_MOST + 5);
    bool ok = store_progress_read(engine_store(s->x), &s->at->progress, e) &&
              program_cursor(engine_steps(s->x), &s->at->cursor, e) &&
              gather_slab(&g, s, SLAB_WEIGHTS, "", &slab[0], e) &&
              gather_slab(&g, s, SLAB_MOMENT1, "moment1.", &slab[1], e) &&
              gather_slab(&g, s, SLAB_MOMENT2, "moment2.", &slab[2], e);
    if (ok && s->at->stop.best_epoch && !s->at->best_is_now) gathered_slab(&g, graph_of(s), "best.", s->best);
    ok = ok && add_states(&g, s, e);
    if (ok) gathered_scaler(&g, job_of(s)->scaler, job_of(s)->data);
    if (ok) add_standing(&g, s->at);
    ok = ok && write_gathered(&g, s, path, notes, note_count, e);
    for (int i = 0; i < 3; i++) free(slab[i]);
    arena_done(&g.arena);
    return ok;
}

bool snapshot_save_weights(const snapshot *s, const char *path, const safetensors_note *notes, int note_count, err *e) {
    safetensors_note all[NOTES_MOST] = {{"format", "pt"}, {"precision", precision_name(s->weights)}};
    int n = 2;
    if (s->trivial.key) all[n++] = s->trivial;
    CHECK(note_count + n <= NOTES_MOST, "%d notes", note_count);
    for (int i = 0; i < note_count; i++) all[n++] = notes[i];
    gathered g;
    float *slab = NULL;
    gathered_init(&g, 4 * graph_parameters(graph_of(s)) + STATES_MOST + 2 * STREAMS_MOST + 5);
    bool ok = gather_slab(&g, s, SLAB_WEIGHTS, "", &slab, e);
    if (ok) gathered_scaler(&g, job_of(s)->scaler, job_of(s)->data);
    ok = ok && weights_write(path, g.entry, g.count, all, n, e);
    free(slab);
    arena_done(&g.arena);
    return ok;
}

// Loading

static bool load_slab(
    const snapshot *s, const safetensors *from, slab_kind kind, const char *prefix, const char *path, err *e) {
    graph *g = graph_of(s);
    if (kind != SLAB_WEIGHTS && !graph_uses_slab(g, kind)) return true;
    float *slab = take_slab(g, e);
    bool ok = slab && gathered_fill(g, from, prefix, path, slab, e) &&
              store_write(engine_store(s->x), g, graph_slab(g, kind), slab, e);
    free(slab);
    return ok;
}

bool snapshot_load(const snapshot *s, const safetensors *from, const char *path, err *e) {
    if (!check_scales(s, from, path, e)) return false;
    if (!load_standing(s->at, from, path, e) || !load_best_precision(s, from, path, e)) return false;
    if (!load_slab(s, from, SLAB_WEIGHTS, "", path, e) || !load_slab(s, from, SLAB_MOMENT1, "moment1.", path, e) ||
        !load_slab(s, from, SLAB_MOMENT2, "moment2.", path, e) || !load_states(s, from, path, e))
        return false;
    if (s->at->stop.best_epoch &&
        !gathered_fill(graph_of(s), from, s->at->best_is_now ? "" : "best.", path, s->best, e))
        return false;
    return store_progress_write(engine_store(s->x), &s->at->progress, e) &&
           program_seek(engine_steps(s->x), &s->at->cursor, e);
}

// Weights from elsewhere

static float value_at(const safetensors_entry *t, int64_t i) {
    const unsigned char *data = t->data;
    uint16_t bits;
    float v = 0;
    double wide;
    switch (t->type) {
    case SAFE_F32: memcpy(&v, data + 4 * i, 4); break;
    case SAFE_F64:
        memcpy(&wide, data + 8 * i, 8);
        v = (float)wide;
        break;
    case SAFE_F16:
        memcpy(&bits, data + 2 * i, 2);
        v = half_widen(bits);
        break;
    case SAFE_BF16: memcpy((unsigned char *)&v + 2, data + 2 * i, 2); break;
    default: CHECK(false, "type %d holds no numbers of a model", (int)t->type);
    }
    return v;
}

// A few names, and how many more there are.
typedef struct {
    char text[300];
    int count;
} names;

static void note_name(names *n, const char *name) {
    size_t used = strlen(n->text);
    if (n->count++ < 4) snprintf(n->text + used, sizeof n->text - used, "%s%.60s", used ? ", " : "", name);
}

static const char *names_text(names *n, const char *what, char *out, size_t room) {
    out[0] = 0;
    if (n->count > 4)
        snprintf(out, room, "; %s %s and %d more", what, n->text, n->count - 4);
    else if (n->count)
        snprintf(out, room, "; %s %s", what, n->text);
    return out;
}

static bool of_checkpoint(const char *name) {
    static const char *const prefixes[] = {"moment1.", "moment2.", "best.", "state.", "trainer.", "scaler."};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0) return true;
    return false;
}

static bool take_weights(const graph *g, const safetensors *from, const char *path, float *slab, err *e) {
    names missing = {0}, other = {0}, extra = {0};
    char a[400], b[400], c[400];
    for (int i = 0; i < graph_parameters(g); i++) {
        const tensor_info *p = graph_info(g, graph_parameter_at(g, i));
        const safetensors_entry *t = safetensors_find(from, p->name);
        bool fits = t && gathered_same_shape(t, p->shape) && t->type <= SAFE_BF16;
        if (!fits) note_name(t ? &other : &missing, p->name);
        for (int64_t k = 0; fits && k < shape_count(p->shape); k++) slab[p->offset + k] = value_at(t, k);
    }
    for (int i = 0; i < safetensors_count(from); i++) {
        const char *name = safetensors_at(from, i)->name;
        if (!graph_parameter_named(g, name).id && !of_checkpoint(name)) note_name(&extra, name);
    }
    if (!missing.count && !other.count && !extra.count) return true;
    return err_input(e, "%s: does not fit the model%s%s%s", path, names_text(&missing, "missing", a, sizeof a),
        names_text(&other, "of another shape or type", b, sizeof b), names_text(&extra, "unknown", c, sizeof c));
}

bool snapshot_load_weights(engine *x, const char *path, err *e) {
    graph *g = engine_job(x)->g;
    safetensors *from = weights_open(path, e);
    float *slab = from ? take_slab(g, e) : NULL;
    if (slab) memset(slab, 0, slab_bytes(g));
    bool ok = slab && take_weights(g, from, path, slab, e) &&
              store_write(engine_store(x), g, graph_slab(g, SLAB_WEIGHTS), slab, e);
    free(slab);
    safetensors_close(from);
    return ok;
}

bool snapshot_follow(engine *x, const char *path, err *e) {
    safetensors *s = weights_open(path, e);
    if (!s) return false;
    const char *name = safetensors_metadata(s, "precision");
    const job *other = engine_find(x, name);
    safetensors_close(s);
    return !other || engine_change(x, other, e);
}
