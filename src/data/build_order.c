// The order of samples: (close, symbol), those without a label behind the others.
#include "data/build_work.h"

#include <inttypes.h>
#include <stdlib.h>

// The next bar of an instrument, in a heap of all of them.
typedef struct {
    int64_t end, bar;
    int series;
} head;

static bool is_before(const head *a, const head *b) {
    return a->end != b->end ? a->end < b->end : a->series < b->series;
}

// Puts the head at `at` to where no head below it is before it.
static void sink(head *heap, int count, int at) {
    for (int below = 2 * at + 1; below < count; at = below, below = 2 * at + 1) {
        if (below + 1 < count && is_before(&heap[below + 1], &heap[below])) below++;
        if (!is_before(&heap[below], &heap[at])) return;
        head moved = heap[at];
        heap[at] = heap[below];
        heap[below] = moved;
    }
}

static void count_labels(build *b) {
    for (int s = 0; s < b->from->series; s++) {
        work *w = &b->work[s];
        int64_t last = w->first - 1, labelled = 0;
        for (int64_t t = w->first; t < w->count[0]; t++) {
            if (!build_is_labelled(b, w, t)) continue;
            labelled++;
            last = t;
        }
        b->samples += labelled;
        b->unlabelled += w->count[0] - w->first - labelled;
        b->report.unlabelled_end += w->count[0] - 1 - last;
    }
    b->report.unlabelled = b->unlabelled;
}

static bool has_samples(const build *b, err *e) {
    const work *w = &b->work[0];
    if (b->samples) return true;
    int64_t rest = w->count[0] - w->first, reach = build_reach(b->o);
    if (rest <= reach)
        return err_input(e,
            "%s: %" PRId64 " bars follow the warm-up of %" PRId64 ", and a label looks %" PRId64
            " bars ahead; give more history or a shorter %s",
            w->from->frame[0].file, rest, w->first, reach, b->o->label == BUILD_BARRIER ? "--limit" : "--horizon");
    return err_input(e,
        "%s: %" PRId64 " bars, of which %" PRId64
        " are needed to warm up, and none of the rest has a label; give more history",
        w->from->frame[0].file, w->count[0], w->first);
}

static bool take_places(build *b, head *heap) {
    for (int s = 0; s < b->from->series; s++) {
        work *w = &b->work[s];
        heap[s] = (head){build_end_of(b, w, 0, w->first), w->first, s};
        w->place = malloc((size_t)(w->count[0] - w->first) * sizeof *w->place);
        if (!w->place) return false;
    }
    return true;
}

bool build_order(build *b, err *e) {
    count_labels(b);
    if (!has_samples(b, e)) return false;
    int count = b->from->series;
    int64_t labelled = 0, rest = b->samples;
    head *heap = malloc((size_t)count * sizeof *heap);
    bool ok = heap && take_places(b, heap);
    if (!ok) err_run(e, "no memory to order %" PRId64 " samples", b->samples + b->unlabelled);
    for (int i = count / 2; ok && i-- > 0;) sink(heap, count, i);
    while (ok && count) {
        work *w = &b->work[heap->series];
        int64_t t = heap->bar++;
        w->place[t - w->first] = (int32_t)(build_is_labelled(b, w, t) ? labelled++ : rest++);
        if (heap->bar < w->count[0])
            heap->end = build_end_of(b, w, 0, heap->bar);
        else
            *heap = heap[--count];
        sink(heap, count, 0);
    }
    free(heap);
    return ok;
}
