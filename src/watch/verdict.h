// Verdicts on a run, in words: what people look up a dozen figures for. Pure functions over figures, which the terminal
// and the page show.
#ifndef TRADEWIND_WATCH_VERDICT_H
#define TRADEWIND_WATCH_VERDICT_H

#include <stdbool.h>
#include <stdint.h>

typedef enum { VERDICT_GOOD, VERDICT_FAIR, VERDICT_POOR } verdict_grade;

typedef struct {
    const char *about; // "utilisation", "memory", "clocks", "overflow", "loss", "throughput"
    verdict_grade grade;
    char text[160]; // a sentence without its full stop; empty: there is nothing to say
} verdict;

// NaN or 0: not known.
typedef struct {
    bool card;                // samples are of a card; else of the processors
    double utilisation;       // percent, the mean of late
    double clock, clock_most; // MHz: the mean of late, and the most since the run began
    double temperature;       // degrees Celsius, the most of late
    double power, power_most; // watts: the mean of late, and the most since the run began
    double process, limit;    // bytes: of this process at most, and its limit
    double used, total;       // bytes: of the device by everyone at most, and in all
    bool streamed;            // data come from the host batch by batch
    double step_seconds;      // of one step
    double parameters;        // of the model
    double steps, skipped;    // taken in all, and skipped for gradients that were not finite
    const double *loss;       // of validation, by epoch from the first
    int losses;               // epochs
    double patience;          // epochs
    const double *rate;       // samples a second, by epoch from the first
    int rates;
    bool agent;     // epochs are iterations, and samples steps
    double seconds; // of all epochs
} verdict_figures;

verdict verdict_utilisation(const verdict_figures *f);
verdict verdict_clocks(const verdict_figures *f);
verdict verdict_memory(const verdict_figures *f);
verdict verdict_overflow(const verdict_figures *f);
verdict verdict_loss(const verdict_figures *f);
verdict verdict_throughput(const verdict_figures *f);

enum { VERDICTS_MOST = 6 };

// All that have something to say, the worst first; how many.
int verdicts(const verdict_figures *f, verdict out[VERDICTS_MOST]);

const char *verdict_word(verdict_grade g); // "good", "fair", "poor"

// A run's own limit of memory, as its description gives it: bytes, or a share of a card's memory. NaN: not given.
typedef struct {
    double bytes, share;
} verdict_limit;

// The card's, or the host's where the run computes on the CPU. `config` may be NULL.
verdict_limit verdict_limit_read(const char *config, bool card);

// The limit in bytes on a device of so many, NaN: not known; NaN where there is no limit.
double verdict_limit_bytes(const verdict_limit *l, double total);

#endif
