// The story of a run so far: what a view shows of it, gathered row by row as they come (watch/tail.h), in bounded
// memory however long the run is.
#ifndef TRADEWIND_WATCH_STORY_H
#define TRADEWIND_WATCH_STORY_H

#include "watch/tail.h"
#include "watch/trace.h"
#include "watch/verdict.h"

enum { STORY_CURVES_MOST = 96, STORY_EVENTS = 64, STORY_CLASSES_MOST = 12, STORY_LATE = 30 };

// A metric of a part, epoch by epoch.
typedef struct {
    char part[16], name[48];
    trace *values;
    double last, best; // best: of the best epoch; NaN: none
} story_curve;

typedef struct {
    double time;
    char kind[16], text[200];
} story_event;

// Samples of the monitor, over seconds since its first sample.
typedef enum {
    GAUGE_PROCESS,
    GAUGE_USED,
    GAUGE_UTILISATION,
    GAUGE_TEMPERATURE,
    GAUGE_POWER,
    GAUGE_CLOCK,
    GAUGES
} story_gauge;

typedef struct {
    // From the description and the plan.
    char model[32], agent[32], device[96], metric[32], precision[16];
    bool card, streamed;
    double parameters, epochs, patience, batch, samples,
        limit; // limit: bytes; NaN where there is none or it is not known
    verdict_limit asked;
    double timesteps; // of an agent in all

    int curves;
    story_curve curve[STORY_CURVES_MOST];
    trace *loss, *lr; // of training, by step
    trace *rate;      // samples a second, by epoch
    trace *gauge[GAUGES];
    double most[GAUGES], late[GAUGES]; // the most; the mean of the last STORY_LATE samples
    double ring[GAUGES][STORY_LATE];
    int64_t samples_seen;
    double first_sample;
    db_sample_row now; // the last sample

    int64_t epoch, best_epoch, step; // the last one that ended, the best one
    int64_t begun, done;             // the epoch that has not ended and samples of it; 0: none
    double seconds;                  // of all epochs
    double epoch_seconds[3];         // of the last three
    double step_time, lr_now, grad_now, loss_now, begun_at;
    int classes;
    double confusion[STORY_CLASSES_MOST][STORY_CLASSES_MOST]; // of the best epoch
    story_event event[STORY_EVENTS];                          // a ring
    int64_t events;

    double *losses, *rates; // of all epochs, for the verdicts
    int losses_count, rates_count;
    uint64_t described; // life whose description was read
} story;

story *story_new(void);
void story_free(story *s);

// Takes what is new of a run; true where there was something.
bool story_take(story *s, tail *t, tail_cursor *c);

// The curve of a part and a name, or NULL.
const story_curve *story_find(const story *s, const char *part, const char *name);

typedef struct {
    double share;  // 0 to 1; NaN: not known
    double rate;   // samples (of an agent: steps) a second; NaN
    double left;   // seconds to the end of all epochs; NaN
    int64_t epoch; // that goes on, or the last one
} story_progress;

story_progress story_progress_of(const story *s, const tail_now *now);

// Verdicts on the run, the worst first.
int story_verdicts(const story *s, verdict out[VERDICTS_MOST]);

#endif
