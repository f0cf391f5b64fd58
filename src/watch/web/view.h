// A run as the server knows it: its summary, curves and events, which grow as the run writes.
//
// run.db is followed (watch/tail.h): the run notices nothing, and only what came since the last time is read. Curves
// are strips: their memory is bounded, and what a deep zoom asks for is read again from the file.
#ifndef TRADEWIND_WATCH_WEB_VIEW_H
#define TRADEWIND_WATCH_WEB_VIEW_H

#include "base/err.h"
#include "base/json.h"
#include "watch/strip.h"

enum { VIEW_CURVES = 256, VIEW_EVENTS = 200, VIEW_SPARK = 48, VIEW_NAME = 72 };

typedef enum { CURVE_METRIC, CURVE_EPOCH, CURVE_STEPS, CURVE_SAMPLE } curve_kind;

// x is the epoch, the step, or seconds since 1970.
typedef struct {
    char name[VIEW_NAME]; // "validation/mcc", "steps/loss", "device/utilisation"
    curve_kind kind;
    int column;              // of its kind's table
    char part[24], word[48]; // of a metric
    strip values;

} view_curve;

typedef struct {
    double time;
    int64_t step;
    char kind[24], *text;
} view_event;

typedef struct view view;

// Summary of a run, as it says itself.
typedef struct {
    char status[16], version[32]; // status: "killed" where nobody trains there any more; "" where it is not known
    char note[400];
    const char *config, *plan; // or NULL
    double started, changed;
    double seconds;             // of all epochs
    int64_t epochs, best_epoch; // that ended; 0: none
    int64_t step;               // the last one
    int64_t begun, done;        // the epoch that has not ended, and samples of it
    char *confusion;            // of the best epoch, as JSON; or NULL
    char trouble[400];          // why run.db cannot be read; empty: it can
} view_summary;

view *view_new(const char *dir);
void view_free(view *v);

// Reads what is new, if something is. True where the view has changed.
bool view_refresh(view *v);

// Gives up curves, events and the open file, but for the summary and the spark; view_refresh reads them again.
void view_rest(view *v);
bool view_rests(const view *v);

const view_summary *view_sum(const view *v);

// True once it was seen how run.db stands; at some moments it moves, and is to be looked at again.
bool view_known(const view *v);

// The session that trades the run (watch/live_view.h), or NULL: there is none, or the view rests. It is the view's.
json_t *view_live(const view *v);

size_t view_bytes(const view *v);

int view_curves(const view *v);
const view_curve *view_curve_at(const view *v, int i);
const view_curve *view_find(const view *v, const char *name);

// The newest events, the oldest of them first.
int view_events(const view *v);
const view_event *view_event_at(const view *v, int i);

// The curve that tells most of the run, or NULL: the description's metric on validation, an agent's reward, or a loss.
// Its name stays known where the curves were given up; "" before any is.
const char *view_main(const view *v);

// Its value at the best epoch; NAN.
double view_main_best(const view *v);

// It in few points; their number.
int view_spark(const view *v, strip_point out[2 * VIEW_SPARK + 4]);

// The last value of a curve, and that at the best epoch; NAN.
double view_last(const view *v, const char *name);
double view_best(const view *v, const char *name);

// Draws a window of a curve: where the strip is too coarse, from the file itself. At most 2 * points + 4 points.
int view_draw(view *v, const view_curve *c, double from, double to, int points, strip_point *out);

#endif
