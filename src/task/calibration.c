#include "task/calibration.h"

static void add_classes(calibration *c, const answers *a) {
    const dataset *d = a->data;
    c->classes = d->classes;
    for (int k = 0; k < d->classes; k++)
        for (int64_t i = 0; i < a->samples.count; i++) {
            double p = (double)a->answer[i * d->classes + k];
            calibration_bin *b = &c->bin[k][p >= 1 ? CALIBRATION_BINS - 1 : (int)(p * CALIBRATION_BINS)];
            b->count++;
            b->sum += p;
            b->right += d->label[a->sample[i]] == k;
        }
}

static int64_t count_below(const answers *a, int64_t quantile) {
    const dataset *d = a->data;
    int64_t H = d->target_width, below = 0;
    for (int64_t i = 0; i < a->samples.count; i++) {
        const float *target = d->target + a->sample[i] * H, *forecast = a->answer + i * a->width + quantile * H;
        for (int64_t h = 0; h < H; h++) below += target[h] <= forecast[h];
    }
    return below;
}

static void add_quantiles(calibration *c, const answers *a) {
    int64_t H = a->data->target_width;
    c->quantiles = (int)(a->width / H);
    c->targets += a->samples.count * H;
    for (int q = 0; q < c->quantiles; q++) {
        c->level[q] = a->t->task.settings.quantiles.level[q];
        c->below[q] += count_below(a, q);
    }
}

void calibration_add(calibration *c, const answers *a) {
    if (a->choice)
        add_classes(c, a);
    else if (a->width > a->data->target_width)
        add_quantiles(c, a);
}

static json_t *bins_json(const calibration_bin *b) {
    json_t *all = json_array();
    for (int i = 0; i < CALIBRATION_BINS; i++)
        json_array_append_new(all, json_pack("{s:f, s:f, s:I, s:o, s:o}", "low", (double)i / CALIBRATION_BINS, "high",
                                       (i + 1.0) / CALIBRATION_BINS, "count", (json_int_t)b[i].count, "mean",
                                       json_number(b[i].sum / (double)b[i].count), "share",
                                       json_number((double)b[i].right / (double)b[i].count)));
    return all;
}

void calibration_put(const calibration *c, const dataset *d, json_t *to) {
    char name[CLASS_NAME_ROOM];
    json_t *all = json_array();
    for (int k = 0; k < c->classes; k++)
        json_array_append_new(
            all, json_pack("{s:s, s:o}", "class", dataset_class_name(d, k, name), "bins", bins_json(c->bin[k])));
    for (int q = 0; q < c->quantiles; q++)
        json_array_append_new(all, json_pack("{s:f, s:o}", "level", (double)c->level[q], "share",
                                       json_number((double)c->below[q] / (double)c->targets)));
    if (json_array_size(all)) json_object_set(to, c->classes ? "calibration" : "coverage", all);
    json_decref(all);
}
