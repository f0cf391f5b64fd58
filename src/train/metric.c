#include "train/metric.h"

#include <math.h>
#include <string.h>

static double ratio(double a, double b) {
    return b > 0 ? a / b : 0;
}

static double row_sum(const int64_t *count, int K, int k) {
    double sum = 0;
    for (int i = 0; i < K; i++) sum += (double)count[k * K + i];
    return sum;
}

static double column_sum(const int64_t *count, int K, int k) {
    double sum = 0;
    for (int i = 0; i < K; i++) sum += (double)count[i * K + k];
    return sum;
}

double metric_accuracy(const int64_t *count, int K) {
    double correct = 0, all = 0;
    for (int k = 0; k < K; k++) {
        correct += (double)count[k * K + k];
        all += row_sum(count, K, k);
    }
    return ratio(correct, all);
}

double metric_mcc(const int64_t *count, int K) {
    double c = 0, s = 0, pt = 0, pp = 0, tt = 0;
    for (int k = 0; k < K; k++) {
        double t = row_sum(count, K, k), p = column_sum(count, K, k);
        c += (double)count[k * K + k];
        s += t;
        pt += p * t;
        pp += p * p;
        tt += t * t;
    }
    return ratio(c * s - pt, sqrt((s * s - pp) * (s * s - tt)));
}

double metric_macro_f1(const int64_t *count, int K) {
    double sum = 0;
    for (int k = 0; k < K; k++)
        sum += ratio(2 * (double)count[k * K + k], row_sum(count, K, k) + column_sum(count, K, k));
    return K > 0 ? sum / K : 0;
}

class_score metric_of_class(const int64_t *count, int K, int k) {
    double right = (double)count[k * K + k], is = row_sum(count, K, k), said = column_sum(count, K, k);
    return (class_score){ratio(right, said), ratio(right, is), ratio(2 * right, is + said), (int64_t)is};
}

double metric_balanced_accuracy(const int64_t *count, int K) {
    double sum = 0, present = 0;
    for (int k = 0; k < K; k++) {
        class_score c = metric_of_class(count, K, k);
        sum += c.recall;
        present += c.support > 0;
    }
    return ratio(sum, present);
}

static double mean(double sum, double weight) {
    return weight > 0 ? sum / weight : (double)NAN;
}

double metric_mae(const double *errors) {
    return mean(errors[ERRORS_ABSOLUTE], errors[ERRORS_WEIGHT]);
}

double metric_rmse(const double *errors) {
    return sqrt(mean(errors[ERRORS_SQUARE], errors[ERRORS_WEIGHT]));
}

double metric_smape(const double *errors) {
    return mean(errors[ERRORS_SMAPE], errors[ERRORS_WEIGHT]);
}

double metric_mase(const double *errors) {
    return mean(errors[ERRORS_SCALED], errors[ERRORS_SCALED_WEIGHT]);
}

double metric_owa(double smape, double mase, double naive2_smape, double naive2_mase) {
    return (mean(smape, naive2_smape) + mean(mase, naive2_mase)) / 2;
}

static double loss_value(const metric_score *s) {
    return s->loss;
}

static double accuracy_value(const metric_score *s) {
    return metric_accuracy(s->confusion, s->classes);
}

static double mcc_value(const metric_score *s) {
    return metric_mcc(s->confusion, s->classes);
}

static double macro_f1_value(const metric_score *s) {
    return metric_macro_f1(s->confusion, s->classes);
}

static double balanced_accuracy_value(const metric_score *s) {
    return metric_balanced_accuracy(s->confusion, s->classes);
}

static double mae_value(const metric_score *s) {
    return metric_mae(s->errors);
}

static double rmse_value(const metric_score *s) {
    return metric_rmse(s->errors);
}

static double smape_value(const metric_score *s) {
    return metric_smape(s->errors);
}

static double mase_value(const metric_score *s) {
    return metric_mase(s->errors);
}

static double owa_value(const metric_score *s) {
    return metric_owa(metric_smape(s->errors), metric_mase(s->errors), s->naive2_smape, s->naive2_mase);
}

static const metric metrics[] = {
#define METRIC(name, title, higher, tasks) {#name, title, higher, tasks, name##_value},
#include "train/metric.def"
#undef METRIC
};
enum { METRICS = sizeof metrics / sizeof *metrics };

const metric *metric_at(int i) {
    return i >= 0 && i < METRICS ? &metrics[i] : NULL;
}

const metric *metric_find(const char *name) {
    for (int i = 0; i < METRICS; i++)
        if (strcmp(metrics[i].name, name) == 0) return &metrics[i];
    return NULL;
}

const metric *metric_usual(unsigned task) {
    return metric_find(task & METRIC_CLASSES ? "mcc" : task & METRIC_SERIES ? "smape" : "mae");
}

double metric_value(const metric *m, const metric_score *s) {
    bool known = m->tasks & METRIC_CLASSES ? s->confusion != NULL : s->errors != NULL;
    return known || m->value == loss_value ? m->value(s) : (double)NAN;
}
