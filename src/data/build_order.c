// The order of samples: (close, symbol), those without a label behind the others.
#include "data/build_work.h"

#include <inttypes.h>
#include <stdlib.h>

// The instrument whose next bar closes first; of several the first by symbol. -1: none is left.
static int64_t earliest(const build *b, const int64_t *next) {
    int64_t best = -1, when = 0;
    for (int s = 0; s < b->from->series; s++) {
        const work *w = &b->work[s];
        if (next[s] >= w->count[0]) continue;
        int64_t end = build_end_of(b, w, 0, next[s]);
        if (best >= 0 && end >= when) continue;
        best = s;
        when = end;
    }
    return best;
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

bool build_order(build *b, err *e) {
    count_labels(b);
    if (!has_samples(b, e)) return false;
    int64_t *next = calloc((size_t)b->from->series, sizeof *next), labelled = 0, rest = b->samples;
    bool ok = next != NULL;
    for (int s = 0; ok && s < b->from->series; s++) {
        work *w = &b->work[s];
        next[s] = w->first;
        w->place = malloc((size_t)(w->count[0] - w->first) * sizeof *w->place);
        ok = w->place != NULL;
    }
    if (!ok) err_run(e, "no memory to order %" PRId64 " samples", b->samples + b->unlabelled);
    for (int64_t s; ok && (s = earliest(b, next)) >= 0; next[s]++) {
        work *w = &b->work[s];
        w->place[next[s] - w->first] = (int32_t)(build_is_labelled(b, w, next[s]) ? labelled++ : rest++);
    }
    free(next);
    return ok;
}
