#include "data/append.h"

#include "data/when.h"

#include <string.h>

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
