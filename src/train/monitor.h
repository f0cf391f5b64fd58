// The monitor of a run: a thread that reads, at an interval, what the device shows (memory, utilisation, temperature,
// power, clocks) while the run goes on.
//
// The thread asks the device and leaves samples in a ring; it writes no file and holds no lock that others take while
// they train. Whoever trains takes the samples between steps (one look at a number where there is none) and is told
// there when memory runs short. Nothing is allocated after monitor_start. Where the ring is full because nobody has
// taken samples for long, new ones are lost, and counted.
#ifndef TRADEWIND_TRAIN_MONITOR_H
#define TRADEWIND_TRAIN_MONITOR_H

#include "graph/device.h"
#include "run/db.h"

typedef struct monitor monitor;

enum { MONITOR_RING = 1024 }; // samples that can wait

typedef struct {
    const device *device;
    queue *queue; // must outlive monitor_stop
    double every; // seconds from one reading to the next
    size_t limit; // bytes of the device that this process may take; 0: none is set
} monitor_options;

// Starts to read, at once; NULL, with ERR_RUN, where no thread can be started.
monitor *monitor_start(const monitor_options *o, err *e);

// Takes one more reading and ends the thread; what it has left can still be taken. Safe to call twice.
void monitor_stop(monitor *m);
void monitor_free(monitor *m); // stops it too; NULL is fine

// The oldest sample that was not taken yet; false where there is none, or no monitor. `warning` gets a line where with
// this sample this process has come to 90 % of its limit, or everyone to 90 % of the device's memory, and else nothing.
// It is told again only when the use has been below 85 % in between.
bool monitor_take(monitor *m, db_sample_row *row, char *warning, size_t room);

// Gauges over all samples so far.
db_gauges monitor_gauges(const monitor *m);

// Samples that found no place.
int64_t monitor_lost(const monitor *m);

#endif
