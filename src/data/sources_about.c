// The words of a dataset of bars, from which further bars can be read and labelled as the first ones were.
#include "data/sources.h"
#include "data/when.h"

static json_t *one_source(const sources *s, int series, int frame) {
    const build_series *x = &s->build.of[series];
    const build_bars_of *from = &x->frame[frame];
    json_t *j = json_pack("{s:s, s:s, s:I, s:I}", "stream", s->build.frame[frame].name, "file", from->file, "span",
        (json_int_t)s->build.frame[frame].span, "bars", (json_int_t)from->count);
    if (j && x->symbol[0]) json_object_set_new(j, "symbol", json_string(x->symbol));
    if (j && from->made) json_object_set_new(j, "made", json_true());
    return j;
}

json_t *sources_about(const sources *s, const build_options *o, const bars_options *reading) {
    char words[256];
    json_t *all = json_array();
    for (int k = 0; k < s->build.series; k++)
        for (int i = 0; i < s->build.frames; i++) json_array_append_new(all, one_source(s, k, i));
    // An order that a file showed holds for what follows it, which may be too short to show one.
    when_order known = reading->date_order;
    for (int i = 0; i < s->files && !known; i++) known = s->file[i].bars.report.date_order;
    const char *order = known ? when_order_text(known) : NULL;
    json_t *how = json_pack("{s:s?, s:s?, s:s?, s:b, s:b}", "tz", reading->tz, "date_order", order, "columns",
        reading->columns, "keep_coarse", reading->keep_coarse, "keep_filled", reading->keep_filled);
    json_t *about = json_pack("{s:s, s:o, s:o, s:s, s:o}", "made_of", "bars", "sources", all, "label",
        build_label_json(o), "types", o->compact ? "compact" : "f32", "reading", how);
    if (about && s->forced)
        json_object_set_new(about, "forced", json_string(bars_force_text(words, sizeof words, s->forced)));
    return about;
}
