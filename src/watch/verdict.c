#include "watch/verdict.h"

#include "run/outline.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const double GOOD_USE = 80, FAIR_USE = 50; // percent
static const double LOW_CLOCK = 0.85;             // of the most that was seen
static const double HOT = 80;                     // degrees Celsius, from which cards of all kinds slow down
static const double POWER_BOUND = 0.97;           // of the most that was seen
static const double NARROW = 0.90, TIGHT = 0.97;  // of a memory limit
static const double MANY_SKIPPED = 0.01, SOME_SKIPPED = 0.001; // of all steps
static const double SLOWER = 0.85, MUCH_SLOWER = 0.70;         // of the best rate
static const double SHORT_STEP = 1e-3; // seconds: launching its kernels takes much of such a step
static const double SMALL_MODEL = 1e6; // parameters

// Seconds that all epochs must have taken before their rates are judged: shorter ones are noise.
static const double SECONDS_LEAST = 5;

enum { EPOCHS_LEAST = 4, RATES_LEAST = 6, RATES_LATE = 3 };

const char *verdict_word(verdict_grade g) {
    static const char *const words[] = {"good", "fair", "poor"};
    return words[g];
}

static bool is_known(double v) {
    return isfinite(v) && v > 0;
}

// Clocks

static bool is_slowed(const verdict_figures *f) {
    return f->card && is_known(f->clock) && is_known(f->clock_most) && f->clock < LOW_CLOCK * f->clock_most &&
           f->utilisation >= FAIR_USE;
}

static const char *why_slowed(const verdict_figures *f) {
    if (f->temperature >= HOT) return "thermal throttling";
    if (is_known(f->power_most) && f->power >= POWER_BOUND * f->power_most) return "the power limit holds it back";
    return "neither hot nor at its most power: a limit that was set, or other work";
}

verdict verdict_clocks(const verdict_figures *f) {
    verdict v = {.about = "clocks"};
    if (!is_slowed(f)) return v;
    v.grade = f->clock < 0.7 * f->clock_most ? VERDICT_POOR : VERDICT_FAIR;
    int n = snprintf(v.text, sizeof v.text, "clocks at %.0f of %.0f MHz: %s", f->clock, f->clock_most, why_slowed(f));
    if (f->temperature >= HOT && n > 0 && (size_t)n < sizeof v.text)
        snprintf(v.text + n, sizeof v.text - (size_t)n, " at %.0f C", f->temperature);
    return v;
}

// Utilisation

static const char *why_idle(const verdict_figures *f) {
    if (f->streamed) return "the loader is the limit; data come from the host";
    if (!f->card) return "few threads, a small model or batch, or others at work";
    bool small = is_known(f->parameters) && f->parameters < SMALL_MODEL;
    if (small || (is_known(f->step_seconds) && f->step_seconds < SHORT_STEP))
        return "the model is too small for it; a larger batch may fill it";
    return "the host or other programs hold it back";
}

verdict verdict_utilisation(const verdict_figures *f) {
    verdict v = {.about = "utilisation"};
    if (!isfinite(f->utilisation) || f->utilisation < 0) return v;
    v.grade = f->utilisation >= GOOD_USE ? VERDICT_GOOD : f->utilisation >= FAIR_USE ? VERDICT_FAIR : VERDICT_POOR;
    const char *why = v.grade == VERDICT_GOOD ? "" : why_idle(f), *colon = *why ? ": " : "";
    // Others may keep the processors busy: what is known is this run's share.
    if (f->card)
        snprintf(v.text, sizeof v.text, "the card is busy %.0f %% of the time%s%s", f->utilisation, colon, why);
    else
        snprintf(v.text, sizeof v.text, "the run uses %.0f %% of the processors%s%s", f->utilisation, colon, why);
    return v;
}

// Memory

verdict_limit verdict_limit_read(const char *config, bool card) {
    double gb = outline_number(config, card ? "gpu_optimization.max_memory_gb" : "gpu_optimization.max_host_memory_gb");
    double share = card ? outline_number(config, "gpu_optimization.memory_fraction") : NAN;
    return (verdict_limit){is_known(gb) ? gb * 0x1p30 : NAN, is_known(share) ? share : NAN};
}

// A limit of a little more than the device has means all of it.
double verdict_limit_bytes(const verdict_limit *l, double total) {
    double bytes = is_known(l->bytes) ? l->bytes : l->share * total;
    return is_known(total) && bytes > total ? total : bytes;
}

// A limit of one's own first, then the device.
verdict verdict_memory(const verdict_figures *f) {
    verdict v = {.about = "memory"};
    bool own = is_known(f->limit) && is_known(f->process), all = is_known(f->used) && is_known(f->total);
    double part = own ? f->process / f->limit : 0, whole = all ? f->used / f->total : 0;
    if (!own && !all) return v;
    double share = fmax(part, whole), left = part >= whole ? f->limit - f->process : f->total - f->used;
    v.grade = share >= TIGHT ? VERDICT_POOR : share >= NARROW ? VERDICT_FAIR : VERDICT_GOOD;
    const char *of = part >= whole ? "the limit"
                     : f->card     ? "the card's memory, with what others use"
                                   : "the machine's memory";
    if (left < 0)
        snprintf(v.text, sizeof v.text, "%.0f MB beyond %s", -left / 1e6, of);
    else
        snprintf(v.text, sizeof v.text, "%.0f %% of %s at most; %.0f MB free", 100 * share, of, left / 1e6);
    return v;
}

// Steps without a finite gradient

verdict verdict_overflow(const verdict_figures *f) {
    verdict v = {.about = "overflow"};
    if (!is_known(f->skipped) || !is_known(f->steps)) return v;
    double share = f->skipped / f->steps;
    v.grade = share > MANY_SKIPPED ? VERDICT_POOR : share > SOME_SKIPPED ? VERDICT_FAIR : VERDICT_GOOD;
    snprintf(v.text, sizeof v.text, "%.0f of %.0f steps skipped: gradients were not finite%s", f->skipped, f->steps,
        v.grade == VERDICT_POOR ? "; try bf16, or a lower rate" : "");
    return v;
}

// The loss

// The last epoch with the least loss, from 0.
static int least_at(const double *v, int n) {
    int at = 0;
    for (int i = 1; i < n; i++)
        if (v[i] < v[at] || !isfinite(v[at])) at = i;
    return at;
}

verdict verdict_loss(const verdict_figures *f) {
    verdict v = {.about = "loss"};
    int n = f->losses, best = n ? least_at(f->loss, n) : 0, since = n - 1 - best;
    if (n && !isfinite(f->loss[n - 1])) {
        v.grade = VERDICT_POOR;
        snprintf(v.text, sizeof v.text, "the validation loss is not finite since the last epoch");
        return v;
    }
    double wait = is_known(f->patience) ? f->patience / 2 : fmax(3, n / 4.0);
    if (n < EPOCHS_LEAST || since < wait || since < 2) return v;
    bool rises = f->loss[n - 1] > f->loss[best] + 0.1 * fabs(f->loss[0] - f->loss[best]);
    v.grade = rises ? VERDICT_POOR : VERDICT_FAIR;
    snprintf(v.text, sizeof v.text, "validation loss: none better for %d epochs, since %.4g at epoch %d%s", since,
        f->loss[best], best + 1, rises ? ", and rises: overfitting" : "");
    return v;
}

// Throughput

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median3(const double *v) {
    double s[3] = {v[0], v[1], v[2]};
    qsort(s, 3, sizeof *s, by_value);
    return s[1];
}

// Three epochs at a time, so that one slow epoch is no verdict.
verdict verdict_throughput(const verdict_figures *f) {
    verdict v = {.about = "throughput"};
    if (f->rates < RATES_LEAST || f->seconds < SECONDS_LEAST) return v;
    double late = median3(f->rate + f->rates - RATES_LATE), best = 0;
    int at = 0;
    for (int i = 0; i + RATES_LATE <= f->rates; i++) {
        double m = median3(f->rate + i);
        if (m > best) at = i;
        if (m > best) best = m;
    }
    if (!(late < SLOWER * best)) return v;
    v.grade = late < MUCH_SLOWER * best ? VERDICT_POOR : VERDICT_FAIR;
    snprintf(v.text, sizeof v.text, "%.0f %s/s, %.0f %% fewer than around %s %d", late, f->agent ? "steps" : "samples",
        100 * (1 - late / best), f->agent ? "iteration" : "epoch", at + 2);
    return v;
}

// All

int verdicts(const verdict_figures *f, verdict out[VERDICTS_MOST]) {
    const verdict all[VERDICTS_MOST] = {verdict_clocks(f), verdict_utilisation(f), verdict_memory(f),
        verdict_overflow(f), verdict_loss(f), verdict_throughput(f)};
    int n = 0;
    for (int g = VERDICT_POOR; g >= VERDICT_GOOD; g--)
        for (int i = 0; i < VERDICTS_MOST; i++)
            if (all[i].text[0] && (int)all[i].grade == g) out[n++] = all[i];
    return n;
}
