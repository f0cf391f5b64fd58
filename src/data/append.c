#include "data/append.h"

#include "data/when.h"

#include <string.h>

// Streams as bars make them: spans rising, tables of f32 with names, every bar after the one before it.
static bool stream_fits(const dataset *d, int i) {
    const int64_t most = (int64_t)1 << 40; // seconds: 34,000 years
    const stream *s = &d->stream[i];
    const bar_table *t = &s->bars;
    bool ok = d->span[i] > (i ? d->span[i - 1] : 0) && s->series.columns && table_floats(&s->series);
    for (int64_t k = 0; ok && k < dataset_series(d); k++)
        for (int64_t r = t->start[k]; ok && r < t->start[k + 1]; r++) {
            const int64_t *time = t->time + 2 * r;
            ok = time[0] > (r > t->start[k] ? time[-2] : -most) && time[1] > time[0] && time[1] < most;
        }
    return ok;
}

static bool symbols_fit(const dataset *d) {
    bool ok = true;
    for (int64_t k = 0; ok && k < d->panel; k++) ok = strcmp(k ? d->panel_names[k - 1] : "", d->panel_names[k]) < 0;
    return ok;
}

static bool vector_fits(const table *t, const build_options *o) {
    const table_part *p = t->part;
    if (!o->vector) return true;
    if (!o->compact) return t->parts == 1 && p[0].type == COLUMN_F32 && t->width == STRATEGY_COLUMNS;
    return t->parts == 2 && p[0].type == COLUMN_I8 && p[0].width == STRATEGIES && p[1].type == COLUMN_F16 &&
           p[1].width == STRATEGIES;
}

// True where the arrays are those that bars with these options give.
static bool arrays_fit(const dataset *d, const build_options *o) {
    bool labels = o->label == BUILD_FORECAST ? d->target && d->target_width == o->horizon
                                             : d->label && d->classes == build_classes(o);
    bool ok = d->streams <= FRAMES_MOST && d->end && d->price && labels && symbols_fit(d) &&
              vector_fits(&d->vector, o) && !d->volatility == !build_volatility_bars(o);
    for (int i = 0; ok && i < d->streams; i++) ok = stream_fits(d, i);
    return ok;
}

bool append_options(const dataset *old, build_options *o, bars_options *reading, err *e) {
    const char *made_of = json_string_value(json_object_get(old->about, "made_of"));
    if (!made_of || strcmp(made_of, "bars") != 0)
        return err_input(e, "%s: is not made of bars; bars can be added to such a set only", old->name);
    const json_t *how = json_object_get(old->about, "reading");
    *o = build_defaults;
    if (!old->state || !old->stream[0].bars.count || !json_is_object(how) ||
        !build_label_read(json_object_get(old->about, "label"), o))
        return err_input(
            e, "%s: keeps no bars to go on from, as older versions made it; import all bars anew", old->name);
    const char *types = json_string_value(json_object_get(old->about, "types"));
    o->compact = types && strcmp(types, "compact") == 0;
    o->vector = old->vector.width > 0;
    if (!arrays_fit(old, o))
        return err_input(e, "%s: its arrays are not what it says it was made of; import all bars anew", old->name);
    const char *order = json_string_value(json_object_get(how, "date_order"));
    const char *forced = json_string_value(json_object_get(old->about, "forced"));
    err unused;
    if (order) when_order_read(order, &reading->date_order);
    if (forced) bars_force_read(forced, &reading->force, &unused);
    reading->columns = json_string_value(json_object_get(how, "columns"));
    reading->tz = json_string_value(json_object_get(how, "tz"));
    reading->keep_coarse = json_is_true(json_object_get(how, "keep_coarse"));
    reading->keep_filled = json_is_true(json_object_get(how, "keep_filled"));
    return true;
}

json_t *append_about(const dataset *old, const dataset *now, unsigned forced) {
    char words[256];
    const char *before = json_string_value(json_object_get(old->about, "forced"));
    err unused;
    json_t *about = json_deep_copy(old->about), *all = json_object_get(about, "sources");
    for (int64_t k = 0; k < dataset_series(now); k++)
        for (int i = 0; i < now->streams; i++) {
            const int64_t *start = now->stream[i].bars.start;
            json_t *of = json_array_get(all, (size_t)(k * now->streams + i));
            json_object_set_new(of, "bars", json_integer((json_int_t)(start[k + 1] - start[k])));
        }
    if (before) bars_force_read(before, &forced, &unused);
    if (forced) json_object_set_new(about, "forced", json_string(bars_force_text(words, sizeof words, forced)));
    return about;
}
