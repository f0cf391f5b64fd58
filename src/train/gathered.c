#include "train/gathered.h"

#include "base/err.h"

#include <stdio.h>
#include <string.h>

void gathered_init(gathered *to, int room) {
    arena_init(&to->arena);
    to->room = room;
    to->entry = arena_array(&to->arena, (size_t)room, sizeof *to->entry);
    to->count = 0;
}

void gathered_add(gathered *to, const char *name, safetensors_type type, size_t element, shape s, const void *data) {
    CHECK(to->count < to->room, "more than %d tensors", to->room);
    safetensors_entry *t = &to->entry[to->count++];
    *t = (safetensors_entry){.name = name, .type = type, .rank = s.rank, .data = data};
    memcpy(t->dim, s.dim, (size_t)s.rank * sizeof *t->dim);
    t->bytes = (size_t)shape_count(s) * element;
}

void gathered_slab(gathered *to, const graph *g, const char *prefix, const float *slab) {
    for (int i = 0; i < graph_parameters(g); i++) {
        const tensor_info *p = graph_info(g, graph_parameter_at(g, i));
        const char *name = arena_format(&to->arena, "%s%s", prefix, p->name);
        gathered_add(to, name, SAFE_F32, sizeof(float), p->shape, slab + p->offset);
    }
}

void gathered_scaler(gathered *to, const scaler *s, const dataset *d) {
    for (int i = 0; s && i < s->streams; i++) {
        const char *name = d->stream[i].name;
        shape each = s->series > 1 ? shape2(s->series, s->width[i]) : shape1(s->width[i]);
        gathered_add(to, arena_format(&to->arena, "scaler.%s.mean", name), SAFE_F32, sizeof(float), each, s->mean[i]);
        gathered_add(to, arena_format(&to->arena, "scaler.%s.std", name), SAFE_F32, sizeof(float), each, s->std[i]);
    }
    if (!s || !target_scales(s->target)) return;
    gathered_add(to, "scaler.target.mean", SAFE_F32, sizeof(float), shape1(1), &s->target.mean);
    gathered_add(to, "scaler.target.std", SAFE_F32, sizeof(float), shape1(1), &s->target.std);
}

bool gathered_same_shape(const safetensors_entry *t, shape s) {
    bool same = t->rank == s.rank;
    for (int i = 0; same && i < s.rank; i++) same = t->dim[i] == s.dim[i];
    return same;
}

bool gathered_fill(const graph *g, const safetensors *from, const char *prefix, const char *path, float *slab, err *e) {
    memset(slab, 0, (size_t)graph_slab_elements(g) * sizeof *slab);
    for (int i = 0; i < graph_parameters(g); i++) {
        const tensor_info *p = graph_info(g, graph_parameter_at(g, i));
        char name[512];
        snprintf(name, sizeof name, "%s%s", prefix, p->name);
        const safetensors_entry *t = safetensors_find(from, name);
        if (!t || t->type != SAFE_F32 || !gathered_same_shape(t, p->shape))
            return err_input(e, "%s: tensor %s is missing or of another shape; it is of another model", path, name);
        memcpy(slab + p->offset, t->data, t->bytes);
    }
    return true;
}
