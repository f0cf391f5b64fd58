#include "data/split.h"

bool split_make(const dataset *d, const split_options *o, split *s, err *e) {
    int64_t gap = (o->purge < 0 ? d->horizon : o->purge) + o->embargo;
    int64_t train = (int64_t)((double)d->samples * o->train),
            validation = (int64_t)((double)d->samples * o->validation);
    if (train + gap + validation > d->samples) validation = d->samples - train - gap;
    if (train < 1 || validation < 1)
        return err_input(e,
            "a split of %lld samples into %.0f %% training, a gap of %lld and %.0f %% validation leaves a part empty; "
            "use "
            "more data or a smaller embargo",
            (long long)d->samples, o->train * 100, (long long)gap, o->validation * 100);
    s->train = (span){0, train};
    s->validation = (span){train + gap, validation};
    s->dropped = gap;
    return true;
}
