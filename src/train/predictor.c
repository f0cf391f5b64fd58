#include "train/predictor.h"

#include "base/err.h"
#include "train/snapshot.h"

#include <stdlib.h>

struct predictor {
    space *space; // of its own, or NULL
    store *data;  // of its own, or NULL
    engine *engine;
    batches batches;
    inference inference;
};

static engine_options options(const settings *s, const device *d, queue *q) {
    return (engine_options){.device = d, .queue = q, .rows = s->batch_size, .inference = true};
}

engine_memory predictor_memory(const job *j, const settings *s, const device *d, queue *q) {
    engine_options o = options(s, d, q);
    return engine_measure_job(j, &o);
}

static bool place(predictor *p, const predictor_place *at, const job *j, err *e) {
    if (at->space) return engine_place(p->engine, at->space, at->data, e);
    p->data = engine_data(j, at->device->host_memory);
    p->space = space_new(at->device, at->queue, engine_measure(p->engine).total, e);
    return p->space && store_place(p->data, at->queue, p->space, e) && engine_place(p->engine, p->space, p->data, e);
}

predictor *predictor_new(const predictor_place *at, const job *j, const settings *s, err *e) {
    predictor *p = calloc(1, sizeof *p);
    if (!p) {
        err_run(e, "out of memory for a predictor");
        return NULL;
    }
    engine_options o = options(s, at->device, at->queue);
    p->engine = engine_new(j, &o);
    p->inference = (inference){at->device, at->queue, p->engine, &p->batches, s->batch_size};
    if (place(p, at, j, e) && batches_open(&p->batches, at->device, at->queue, p->engine, s, e)) return p;
    predictor_free(p);
    return NULL;
}

void predictor_free(predictor *p) {
    if (!p) return;
    batches_close(&p->batches);
    engine_free(p->engine);
    store_free(p->data);
    space_free(p->space);
    free(p);
}

bool predictor_load(predictor *p, const char *path, err *e) {
    return snapshot_follow(p->engine, path, e) && snapshot_load_weights(p->engine, path, e);
}

bool predictor_copy(predictor *p, const store *from, err *e) {
    return store_copy(engine_store(p->engine), from, e);
}

const inference *predictor_inference(const predictor *p) {
    return &p->inference;
}
