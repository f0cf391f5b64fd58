#include "train/batches.h"

#include "base/err.h"

bool batches_open(batches *b, const device *d, queue *q, engine *x, const settings *s, err *e) {
    const job *j = engine_job(x);
    *b = (batches){.feed = engine_feed(x), .pinned = {d, q}};
    if (!b->feed) return true;
    loader_options o = job_loader(j, s, !d->host_memory);
    loader_memory memory = pinned_memory(&b->pinned);
    o.memory = &memory;
    CHECK(loader_layout_of(j->data, &o).index == feed_batch(b->feed), "a feed that was laid out for other rows");
    b->loader = loader_new(j->data, &o, e);
    return b->loader != NULL;
}

void batches_close(batches *b) {
    loader_free(b->loader);
    b->loader = NULL;
}

bool batches_seek(batches *b, const loader_range *r, err *e) {
    if (!b->loader) return true;
    if (!feed_done(b->feed, false, e)) return false;
    loader_seek(b->loader, r);
    return true;
}

bool batches_next(batches *b, err *e) {
    loader_batch batch;
    if (!b->loader) return true;
    if (!feed_done(b->feed, true, e)) return false;
    CHECK(loader_next(b->loader, &batch), "a step beyond the end of its samples");
    return feed_next(b->feed, batch.block, e);
}

bool batches_settled(batches *b, err *e) {
    return !b->loader || feed_done(b->feed, false, e);
}
