// Measuring instead of guessing: how fast a job trains at one batch size after the other, in each way and precision
// that its description leaves open and its memory limit allows, and which of them to take.
//
// A candidate is run by the trainer, as `train` would run it: the same jobs, slabs and recordings, one after the other
// on one queue. What is measured are whole steps after a warm-up, in rounds, of which the median counts; twice where
// there is time, and the faster of both stays. Everything together keeps to a time: what is left is shared out among
// the candidates that are left, and those of which a few steps would already break it are passed over. The gradient
// noise scale (train/noise.h) is measured in the same run.
//
// At last the winner is run in other ways to compute it, with other products on a card or fewer threads on the CPU, in
// the time that is kept for that. One of them is taken where it is faster by 2 % (TUNE_GAIN) each time.
//
// The rule of choice is tune_choose, which is pure. Figures depend on the machine's moment; nothing else does.
// It prints nothing and keeps nothing (train/wisdom.h does).
#ifndef TRADEWIND_TRAIN_TUNE_H
#define TRADEWIND_TRAIN_TUNE_H

#include "train/choose.h"
#include "train/noise.h"

enum {
    TUNE_BATCHES_MOST = 64,
    TUNE_PRECISIONS_MOST = 4,
    TUNE_WAYS_MOST = 3, // of a batch in a precision
    TUNE_ROWS_MOST = TUNE_BATCHES_MOST * TUNE_PRECISIONS_MOST * TUNE_WAYS_MOST,
    TUNE_TRIALS_MOST = 3,
    TUNE_WHY = 256,
    TUNE_LEARNT = 100
};

// A candidate and what became of it.
typedef struct {
    way way;
    int64_t batch; // effective
    precision precision;
    bool usual;           // the precision is the one that a run would take without being told
    size_t bytes;         // of the device: base, where it is known, and plan
    double seconds;       // of a step, the median round; 0: not measured, and `why` says why
    double spread;        // slowest round less the fastest, as a share of that
    double samples_per_s; // rows of a step, by that
    double epoch_s;       // of all steps of an epoch
    double share;         // of the best rate; above 1 where a precision is less than 5 % faster than the usual one
    char why[TUNE_WHY];
    bool large; // it was passed over, as it does not fit
    bool ends;  // larger ones were passed over in this precision for the same reason
} tune_row;

// The jobs of one precision, with the data on the device and from the host; NULL where that is not open.
typedef struct {
    precision precision;
    job *near, *far;
} tune_jobs;

// A way to compute a winner, and what became of it.
typedef struct {
    products_by products;
    int threads;    // of the CPU, on a queue of its own; 0: the task's queue
    double seconds; // as of a row
    double slowest; // of its measurements
    double samples_per_s;
    char why[TUNE_WHY]; // not measured: the reason
} tune_trial;

typedef struct {
    const device *device;
    queue *queue;
    queue_options options; // that it was opened with
    const dataset *data;
    const split *split;
    const settings *described;
    const budget *budget;
    tune_jobs jobs[TUNE_PRECISIONS_MOST]; // the usual precision first
    int precisions;
    int64_t batch[TUNE_BATCHES_MOST]; // effective, rising
    int batches;
    // Trials of the winner: products and threads. The first is how the jobs and the queue are.
    tune_trial trial[TUNE_TRIALS_MOST];
    int trials;     // 0: nothing is open
    double seconds; // for all of it
    double target;  // share of the best rate that is enough, from 0 to 1
    // Told now and then what is being measured (NULL: the noise scale) and what share of all is done, from 0 to 1.
    // Returning false stops. Or NULL.
    bool (*on_progress)(void *arg, const tune_row *at, double share);
    void *arg;
} tune_task;

typedef struct {
    int rows;
    tune_row row[TUNE_ROWS_MOST]; // by precision, then by batch
    int best, knee, winner;       // rows; -1 where nothing was measured
    bool capped;                  // the noise scale made the winner smaller than the knee
    noise_scale start, later;     // at the initial weights, and after `steps` steps of training
    const char *noise_why;        // why it was not measured, where it was not
    int64_t steps;
    tune_trial trial[TUNE_TRIALS_MOST]; // of the winner; the first is the winner as it is in the table
    int trials, taken;                  // which of them to take; 0: the winner stays as it is
    bool interrupted;
    double seconds; // that it took
} tune_result;

// Powers of two and three quarters of them, from..to: 256, 384, 512, 768 ... Their number.
int tune_batches(int64_t from, int64_t to, int64_t *list, int room);

// Measures. Candidates that do not fit, take too long or fail are left in the table with the reason. False where none
// could be measured: ERR_RUN with the first reason, which for a limit is the planner's refusal.
bool tune_run(const tune_task *t, tune_result *r, err *e);

// From rates and noise scale: shares, the best rate, the knee and the winner. The knee is the smallest batch with the
// target's share of the best rate. The winner is the knee, or the first batch that is no smaller than the later noise
// scale where that is smaller; a scale after fewer than TUNE_LEARNT steps, from which it still grows, does not count.
// The fastest of a batch's ways counts; a precision that is not the usual one has to be faster than it by 5 %
// (TUNE_MARGIN).
void tune_choose(tune_result *r, double target);

// A batch's row among its ways and precisions by that rule; -1 where none was measured.
int tune_best_of(const tune_result *r, int64_t batch);

// Which of the trials to take: the fastest of those whose slowest measurement is faster than the first by 2 %
// (TUNE_GAIN), else the first.
void tune_take(tune_result *r);

#define TUNE_MARGIN 1.05
#define TUNE_GAIN   1.02

#endif
